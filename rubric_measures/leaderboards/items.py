"""The best grade of each item within each run's ranking: what coverage counts, shown item by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rubric_measures.base.entities import RubricItem
from rubric_measures.base.scales import Scale
from rubric_measures.grades.compiled import QueryGrades

__all__ = ["ItemGrades", "item_grades"]


@dataclass(frozen=True)
class ItemGrades:
    """The best grades of one query.

    Attributes:
        query_id: the query, or `query/facet`.
        items: its items.
        best: run -> the best grade of each item; None where no passage has a grade of it.
        scale: of the grades; None where it is not known.
        covers: the least grade that covers an item; None where the scale is not known.
    """

    query_id: str
    items: tuple[RubricItem, ...]
    best: Mapping[str, tuple[float | None, ...]]
    scale: Scale | None
    covers: int | None


def item_grades(
    name: str,
    grades: QueryGrades,
    rankings: Mapping[str, Sequence[str]],
    cutoff: int | None = None,
) -> ItemGrades:
    """The best grade of each item among the passages of each run.

    Args:
        name: what the query is called.
        grades: its grades.
        rankings: run -> doc_ids, best first.
        cutoff: how many passages of a ranking count; None for all.
    """
    best = {run: _best(grades, ranking if cutoff is None else ranking[:cutoff]) for run, ranking in rankings.items()}
    covers = None if grades.scale is None else grades.scale.covers
    return ItemGrades(name, grades.items, best, grades.scale, covers)


def _best(grades: QueryGrades, doc_ids: Sequence[str]) -> tuple[float | None, ...]:
    masks: dict[float, int] = {}
    for doc_id in doc_ids:
        for grade, mask in grades.levels.get(doc_id, {}).items():
            masks[grade] = masks.get(grade, 0) | mask
    falling = sorted(masks, reverse=True)
    return tuple(
        next((grade for grade in falling if masks[grade] >> place & 1), None) for place in range(len(grades.items))
    )
