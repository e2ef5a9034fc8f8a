"""How failed grades count in scores: left out, as not covered, as a grade that is named, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from rubric_measures.base.errors import InputError

__all__ = ["OnFailed", "check_on_failed", "levels_with_failed"]

OnFailed = Literal["exclude", "zero", "error"] | int
_NAMES = ("exclude", "zero", "error")


def check_on_failed(value: object) -> OnFailed:
    """How failed grades count, when it is one of the ways: `exclude`, `zero`, `error`, or the grade that they count as.

    Records do not say how high the scale of their grades goes, so the upper bound of a score is asked for with the
    scale's highest grade: 5 of ratings, 2 of nugget assignments, 1 of yes and no.

    Raises:
        InputError: it is none of them.
    """
    if value in _NAMES or (type(value) is int and value >= 1):
        return cast(OnFailed, value)
    raise InputError(f"on_failed is {value!r}; expected exclude, zero, error, or a grade of 1 or more")


def levels_with_failed(
    levels: Mapping[str, Mapping[int, int]], failed: Mapping[str, int], grade: int
) -> dict[str, Mapping[int, int]]:
    """The grades of passages (see `graded.QueryGrades.levels`) in which failed ones have a grade.

    Args:
        levels: doc_id -> {grade: mask of the items}.
        failed: doc_id -> mask of the items whose grade failed; of a facet, which may have a grade beside a failed one,
            the better counts.
        grade: what they count as.
    """
    filled = dict(levels)
    for doc_id, lost in failed.items():
        known = levels.get(doc_id, {})
        for level, mask in known.items():
            if level >= grade:
                lost &= ~mask
        of_doc = {level: kept for level, mask in known.items() if (kept := mask & ~lost)}
        if lost:
            of_doc[grade] = of_doc.get(grade, 0) | lost
        filled[doc_id] = of_doc
    return filled
