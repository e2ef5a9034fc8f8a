"""Why a model gave its grades, as records keep it: item -> `reason` under `details` of a grade set."""

from __future__ import annotations

from rubric_measures.records.distributions import details_of
from rubric_measures.records.models import DirectGrade, ItemGradeSet

__all__ = ["reasons_of"]


def reasons_of(entry: ItemGradeSet | DirectGrade) -> dict[str, str]:
    """Item -> the model's reason, of the items that have one; those of several draws are joined, a line each."""
    found = {}
    for item_id, details in details_of(entry).items():
        said = details.get("reason")
        drawn = said if isinstance(said, list) else [said]
        if text := "\n".join(one for one in drawn if isinstance(one, str) and one):
            found[item_id] = text
    return found
