"""In what order people check grades: disagreement, influence on the leaderboard, a random audit sample, a query."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from rubric_measures.review.events import Cell, PersonGrade
from rubric_measures.review.material import Material, QueryMaterial

__all__ = [
    "ORDERS",
    "Order",
    "QueueEntry",
    "audit_sample",
    "by_disagreement",
    "by_influence",
    "make_queue",
    "spread_of",
]

Order = Literal["disagreement", "influence", "audit", "query"]
ORDERS: tuple[Order, ...] = ("disagreement", "influence", "audit", "query")


class QueueEntry(NamedTuple):
    """One grade to check, and why it stands where it stands."""

    cell: Cell
    score: float
    why: str


def by_disagreement(
    material: Material, people: Mapping[Cell, Mapping[str, PersonGrade]] | None = None
) -> list[QueueEntry]:
    """Grades on which graders (and people) differ, the largest difference first; those that agree are left out.

    score = max − min over all graders that rate 0 to 5 and all people, in 0 to 5. Ties stand in file order.
    """
    people = people or {}
    entries = [entry for cell in material.cells if (entry := spread_of(material, cell, people.get(cell, {})))]
    return sorted(entries, key=lambda entry: -entry.score)


def spread_of(material: Material, cell: Cell, people: Mapping[str, PersonGrade]) -> QueueEntry | None:
    """How far the grades of one cell lie apart; None where they agree."""
    grades = list(material.queries[cell.query_id].others.get((cell.doc_id, cell.item_id), {}).values())
    grades += [said.final for said in people.values() if said.final is not None]
    spread = max(grades) - min(grades) if grades else 0
    return QueueEntry(cell, spread, f"{len(grades)} grades differ by {spread}") if spread else None


def by_influence(material: Material, rel: int = 4, cutoff: int = 20) -> list[QueueEntry]:
    """Grades by how much of the leaderboard turns on them, most first; those that move nothing are left out.

    A grade moves the Rubric-Cover@`cutoff` of those runs that rank the passage and have no other passage in the cutoff
    that covers the item. With n such runs of N, score = n (N − n) / |R_q|: the pairs of runs whose difference changes
    if the grade falls on the other side of `rel`, each by 1 / |R_q|. All runs alike (n = N) move together: score 0.
    """
    runs = {run for query in material.queries.values() for run in query.record.rankings}
    entries = []
    for query in material.queries.values():
        moved = _moved(query, rel, cutoff)
        size = len(query.record.grades.items)
        for (doc_id, item_id), count in moved.items():
            score = count * (len(runs) - count) / size
            if score:
                cell = Cell(query.query_id, doc_id, item_id)
                entries.append(QueueEntry(cell, score, f"moves {count} of {len(runs)} runs"))
    return sorted(entries, key=lambda entry: (-entry.score, entry.cell))


def _moved(query: QueryMaterial, rel: int, cutoff: int) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    covered = query.record.grades.at_least(rel)
    bit = {item.item_id: 1 << index for index, item in enumerate(query.record.grades.items)}
    for ranking in query.record.rankings.values():
        once = twice = 0
        for doc_id in ranking[:cutoff]:
            mask = covered.get(doc_id, 0)
            twice |= once & mask
            once |= mask
        for doc_id in ranking[:cutoff]:
            # A grade matters where nothing covers the item, or only this passage does.
            matters = ~once | (covered.get(doc_id, 0) & ~twice)
            for item_id in query.passages[doc_id].grades:
                if matters & bit[item_id]:
                    counts[doc_id, item_id] = counts.get((doc_id, item_id), 0) + 1
    return counts


def audit_sample(material: Material, seed: int = 0, size: int = 100) -> list[QueueEntry]:
    """A random sample of all grades; the same for the same seed, whatever the order of the file.

    Every grade has a random number made of the seed and its ids (SHA-256), and the smallest `size` are the sample: so a
    larger sample contains the smaller one.
    """

    def number(cell: Cell) -> bytes:
        return hashlib.sha256("\0".join((str(seed), *cell)).encode("utf-8", "surrogatepass")).digest()

    return [QueueEntry(cell, 0.0, "audit sample") for cell in sorted(material.cells, key=number)[:size]]


def make_queue(
    material: Material,
    order: Order,
    *,
    query_id: str = "",
    seed: int = 0,
    size: int = 100,
    people: Mapping[Cell, Mapping[str, PersonGrade]] | None = None,
) -> Sequence[QueueEntry]:
    """The queue of an order; `query_id` keeps only the grades of one query."""
    if order == "disagreement":
        entries = by_disagreement(material, people)
    elif order == "influence":
        entries = by_influence(material)
    elif order == "audit":
        entries = audit_sample(material, seed, size)
    else:
        entries = [QueueEntry(cell, 0.0, "") for cell in material.cells]
    return [entry for entry in entries if entry.cell.query_id == query_id] if query_id else entries
