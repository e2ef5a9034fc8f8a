"""What records say about grades that edits of the bank made stale: which items were graded anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rubric_measures.formats.workbench import ItemGradeSet, provenance_of

__all__ = ["regraded_of"]


def regraded_of(entry: ItemGradeSet) -> Mapping[str, str]:
    """item_id -> what the item said when it was graded anew after an edit; empty for sets that never were."""
    known: Any = provenance_of(entry).get("regraded")
    return known if isinstance(known, Mapping) else {}
