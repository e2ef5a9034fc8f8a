"""What a leaderboard was scored from, by its content: digests of the grades and items of each query, and of each run.

Two digests are equal where the content is, whatever the order of queries, passages, items, lines and runs, and however
files are called or packed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rubric_measures.base.signature import content_hash
from rubric_measures.grades.compiled import QueryGrades

__all__ = ["BoardInputs", "InputsReader", "grades_digest", "ranking_digest"]


def _short(value: object) -> str:
    return content_hash(value)[:12]


def grades_digest(grades: QueryGrades) -> str:
    """Twelve hex digits of all that measures read of a query: its items with importance, weight and facet; its grades.

    Grades that failed count as such; grades of items that the bank lacks are not part of it.
    """
    order = sorted(range(len(grades.items)), key=lambda index: grades.items[index].item_id)
    place = {index: position for position, index in enumerate(order)}
    in_order = order == list(range(len(order)))
    seen: dict[int, str] = {}

    def canonical(mask: int) -> str:
        """The mask with its bits in the order of the items' ids."""
        if mask not in seen:
            moved = mask if in_order else sum(1 << place[index] for index in place if mask >> index & 1)
            seen[mask] = f"{moved:x}"
        return seen[mask]

    items = [grades.items[index] for index in order]
    return _short(
        [
            [[item.item_id, item.importance, item.weight, item.part] for item in items],
            [
                [doc_id, [[grade, canonical(mask)] for grade, mask in sorted(levels.items()) if mask]]
                for doc_id, levels in sorted(grades.levels.items())
            ],
            [[doc_id, canonical(mask)] for doc_id, mask in sorted(grades.failed.items()) if mask],
        ]
    )


def ranking_digest(doc_ids: Sequence[str]) -> str:
    """Twelve hex digits of a ranking's documents in their order."""
    return _short(list(doc_ids))


@dataclass(frozen=True)
class BoardInputs:
    """The digests of what a leaderboard was scored from.

    Attributes:
        grades: query_id -> digest of its items and grades.
        runs: run_id -> digest of its rankings of these queries, as deep as the measures look.
    """

    grades: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)

    def settings(self) -> dict[str, object]:
        """Both in one digest each, for the signature."""
        return {"scored": _short(dict(self.grades)), "runs": _short(dict(self.runs))}


class InputsReader:
    """Collects the digests while a leaderboard is scored, in any order."""

    def __init__(self) -> None:
        self._grades: dict[str, str] = {}
        self._runs: dict[str, dict[str, str]] = {}

    def add_grades(self, name: str, grades: QueryGrades) -> None:
        """Takes the grades of a query (or of a facet, under its name)."""
        self._grades[name] = grades_digest(grades)

    def add_run(self, run_id: str, rankings: Iterable[tuple[str, str]] = ()) -> None:
        """Takes digests of a run's rankings, by query."""
        self._runs.setdefault(run_id, {}).update(rankings)

    def read(self) -> BoardInputs:
        """What was collected."""
        return BoardInputs(
            dict(sorted(self._grades.items())),
            {run_id: _short(rankings) for run_id, rankings in sorted(self._runs.items())},
        )
