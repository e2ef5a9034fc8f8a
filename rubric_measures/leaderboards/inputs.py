"""What a leaderboard was scored from, by its content: digests of the grades and items of each query, and of each run.

Two digests are equal where the content is, whatever the order of queries, passages, items, lines and runs, and however
files are called or packed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import itemgetter

from rubric_measures.grades.compiled import QueryGrades

__all__ = ["BoardInputs", "InputsReader", "grades_digest", "ranking_digest"]


def _digest(parts: Iterable[str]) -> str:
    """Twelve hex digits of texts in their order; no id holds a NUL."""
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _digest_of(named: Mapping[str, str]) -> str:
    return _digest(text for pair in sorted(named.items()) for text in pair)


def grades_digest(grades: QueryGrades) -> str:
    """Twelve hex digits of all that measures read of a query: its items with importance, weight and facet; its grades.

    Grades that failed count as such; grades of items that the bank lacks are not part of it.
    """
    order = sorted(range(len(grades.items)), key=lambda index: grades.items[index].item_id)
    pick = itemgetter(*order) if order else tuple
    width = len(order)

    def canonical(mask: int) -> str:
        """The mask as a digit an item, in the order of the items' ids."""
        return "".join(pick(f"{mask:0{width}b}"[::-1]))

    parts = [f"{width} {len(grades.levels)}"]
    for index in order:
        item = grades.items[index]
        parts.append(f"{item.item_id}\0{item.importance}\0{item.weight!r}\0{item.part}")
    for doc_id, levels in sorted(grades.levels.items()):
        known = [(grade, canonical(mask)) for grade, mask in levels.items() if mask]
        parts.append(f"{doc_id}\0{sorted(known)}")
    for doc_id, mask in sorted(grades.failed.items()):
        if mask:
            parts.append(f"{doc_id}\0{canonical(mask)}")
    return _digest(parts)


def ranking_digest(doc_ids: Iterable[str]) -> str:
    """Twelve hex digits of a ranking's documents in their order."""
    return _digest(doc_ids)


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
        return {"scored": _digest_of(self.grades), "runs": _digest_of(self.runs)}


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
            {run_id: _digest_of(rankings) for run_id, rankings in sorted(self._runs.items())},
        )
