"""What records keep about the making of single grades: distributions over grades, replicates, the model's reasons.

A grade set has them under `details`: item -> `distribution` (grade -> probability), `replicates` ([grade, reply], …),
`reason`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

from rubric_measures.base.errors import InputError
from rubric_measures.records.models import DirectGrade, ItemGradeSet
from rubric_measures.types.scales import LARGEST_SCORE, as_number

__all__ = ["GRADE_CHOICES", "GradeChoice", "confidence_of", "details_of", "distributions_of", "grade_by", "reasons_of"]

GradeChoice = Literal["expected", "mode", "median"]
GRADE_CHOICES: tuple[GradeChoice, ...] = ("expected", "mode", "median")
Distribution = Mapping[int, float]
"""Grade -> probability; together they are 1."""


def details_of(entry: ItemGradeSet | DirectGrade) -> Mapping[str, Mapping[str, Any]]:
    """What a grade set says about the making of single grades, by item; the item of a direct label is "0"."""
    found = (entry.model_extra or {}).get("details")
    return found if isinstance(found, Mapping) else {}


def reasons_of(entry: ItemGradeSet | DirectGrade) -> dict[str, str]:
    """Item -> the model's reason, of the items that have one; those of several draws are joined, a line each."""
    found = {}
    for item_id, details in details_of(entry).items():
        said = details.get("reason")
        drawn = said if isinstance(said, list) else [said]
        if text := "\n".join(one for one in drawn if isinstance(one, str) and one):
            found[item_id] = text
    return found


def distributions_of(entry: ItemGradeSet | DirectGrade) -> dict[str, Distribution]:
    """Item -> distribution over its grades, of the items that have one.

    That is the distribution that the model gave its labels; without one, the share of the replicates that gave each
    grade, of those that gave any.

    Raises:
        InputError: one is no distribution, or replicates are none.
    """
    found: dict[str, Distribution] = {}
    for item_id, details in details_of(entry).items():
        if not isinstance(details, Mapping):
            raise InputError(f"item {item_id!r}: its details are no object ({details!r:.80})")
        said = details.get("distribution")
        grades = _drawn(details.get("replicates"), item_id)
        if said is not None:
            found[item_id] = _checked(said, item_id)
        elif grades:
            found[item_id] = {grade: count / len(grades) for grade, count in sorted(Counter(grades).items())}
    return found


def _drawn(said: Any, item_id: str) -> list[int]:
    """The grades of the replicates that have one."""
    if said is None:
        return []
    if not isinstance(said, list | tuple) or not all(map(_is_draw, said)):
        raise InputError(f"item {item_id!r}: its replicates are no pairs of grade and reply ({said!r:.80})")
    return [grade for grade, _ in said if grade is not None]


def _is_draw(said: Any) -> bool:
    if not isinstance(said, list | tuple) or len(said) != 2:
        return False
    return said[0] is None or (type(said[0]) is int and abs(said[0]) <= LARGEST_SCORE)


def _checked(said: Any, item_id: str) -> Distribution:
    try:
        shares = {int(grade): float(share) for grade, share in said.items()}
        total = math.fsum(shares.values())
        if min(shares.values()) < 0 or not abs(total - 1) < 1e-3 or max(map(abs, shares)) > LARGEST_SCORE:
            raise ValueError
    except (AttributeError, TypeError, ValueError):
        problem = f"item {item_id!r}: its distribution over grades is no probabilities that make 1 ({said!r:.80})"
        raise InputError(problem) from None
    return {grade: share / total for grade, share in sorted(shares.items())}


def confidence_of(distribution: Distribution) -> float:
    """The probability of the most probable grade, above 0 and at most 1."""
    return max(distribution.values())


def grade_by(distribution: Distribution, how: GradeChoice) -> float:
    """The grade that a distribution gives.

    Args:
        distribution: grade -> probability.
        how: `expected`: Σ grade · probability, rounded to six decimals, an `int` where it has no fraction; `mode`: the
            most probable grade, of equally probable ones the lowest; `median`: the lowest grade that, with those below
            it, has half of the probability or more.

    >>> grade_by({0: 0.25, 3: 0.5, 4: 0.25}, "expected"), grade_by({0: 0.5, 3: 0.5}, "mode")
    (2.5, 0)
    """
    if how == "expected":
        return as_number(round(math.fsum(grade * share for grade, share in distribution.items()), 6))
    if how == "mode":
        return max(sorted(distribution), key=distribution.__getitem__)
    below = 0.0
    for grade in sorted(distribution):
        below += distribution[grade]
        # Shares such as 1/3 do not add up to the last digit.
        if below >= 0.5 - 1e-9:
            return grade
    return max(distribution)
