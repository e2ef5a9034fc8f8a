"""In what order assessors check grades: disagreement, influence on the leaderboard, a random audit sample, a query."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from rubric_measures.base.sorting import Gap
from rubric_measures.grades.assessors import HUMAN
from rubric_measures.review._events import AssessorGrade, CellKey
from rubric_measures.review.review_data import Material, QueryMaterial

__all__ = [
    "ORDERS",
    "AmendedQueue",
    "CellQueue",
    "Order",
    "QueueEntry",
    "audit_sample",
    "by_disagreement",
    "by_influence",
    "by_score",
    "make_queue",
    "spread_of",
    "with_assessors",
    "without",
]

Order = Literal["disagreement", "influence", "audit", "query"]
ORDERS: tuple[Order, ...] = ("disagreement", "influence", "audit", "query")
# Graders lie far apart from here on. The queue tells no more than that: a place among cells that are 5 apart would say
# that the graders gave 0 and 5, to somebody who knows the grades of its neighbours and has still to give this one.
FAR = 3
# Items by (query_id, item_id), of which no grade is to be checked.
Items = Collection[tuple[str, str]]


class QueueEntry(NamedTuple):
    """One grade to check, and why it stands where it stands."""

    cell: CellKey
    score: float
    why: str


class CellQueue(Sequence[QueueEntry]):
    """A queue as the places of its grades in `Material.cells`: entries are made when they are looked at.

    Args:
        material: the grades.
        numbers: the places, in the order of the queue; no place twice.
        entry: the entry of a place.
    """

    def __init__(self, material: Material, numbers: NDArray[np.int64], entry: Callable[[int], QueueEntry]) -> None:
        self._known, self._numbers, self._entry = material.numbers, numbers, entry
        self._start = int(numbers.min()) if len(numbers) else 0
        self._places = np.full(int(numbers.max()) + 1 - self._start if len(numbers) else 0, -1, dtype=np.int64)
        self._places[numbers - self._start] = np.arange(len(numbers))

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> QueueEntry: ...

    @overload
    def __getitem__(self, place: slice) -> list[QueueEntry]: ...

    def __getitem__(self, place: int | slice) -> QueueEntry | list[QueueEntry]:
        if isinstance(place, slice):
            return [self._entry(number) for number in self._numbers[place].tolist()]
        return self._entry(int(self._numbers[place]))

    def place(self, cell: CellKey) -> int | None:
        """Where a grade stands; None where it is not in the queue."""
        at = self._known.get(cell, -1) - self._start
        found = int(self._places[at]) if 0 <= at < len(self._places) else -1
        return found if found >= 0 else None


def by_disagreement(material: Material, query_id: str = "", left: Items = ()) -> CellQueue:
    """Grades on which graders differ, those that lie far apart first; those that agree are left out.

    score = 2 where max − min ≥ `FAR`, else 1, over all graders that rate 0 to 5 and assessors' grades in the records.
    Ties stand in file order. `with_assessors` takes what assessors say now into account.
    """
    places = _range(material, query_id)
    spreads = material.spreads[places.start : places.stop]
    classes = (spreads > 0).astype(np.int8) + (spreads >= FAR)
    numbers = np.argsort(-classes, kind="stable")[: np.count_nonzero(spreads)] + places.start
    numbers = numbers[~_are_left(material, left)[numbers]]
    return CellQueue(material, numbers, lambda number: _entry_of(material, material.cells[number], {}))


def _are_left(material: Material, left: Items) -> NDArray[np.bool_]:
    """For each grade in `cells`, whether it is of one of these items."""
    found = np.zeros(len(material.cells), dtype=np.bool_)
    for query_id in {query_id for query_id, _ in left}:
        for number in material.ranges.get(query_id, range(0)):
            found[number] = (query_id, material.cells[number].item_id) in left
    return found


def _range(material: Material, query_id: str) -> range:
    return material.ranges.get(query_id, range(0)) if query_id else range(len(material.cells))


def _entry_of(material: Material, cell: CellKey, assessors: Mapping[str, AssessorGrade]) -> QueueEntry:
    said = material.queries[cell.query_id].others(cell.doc_id, cell.item_id)
    # Who graded it in an earlier review, too, has one grade: the later.
    said |= {f"{HUMAN}{assessor}": one.final for assessor, one in assessors.items() if one.final is not None}
    grades = said.values()
    spread = max(grades) - min(grades) if grades else 0
    return QueueEntry(cell, (spread > 0) + (spread >= FAR), f"{len(grades)} grades differ by {spread}")


def spread_of(material: Material, cell: CellKey, assessors: Mapping[str, AssessorGrade]) -> QueueEntry | None:
    """How far the grades of one cell lie apart, those of assessors too; None where they agree."""
    entry = _entry_of(material, cell, assessors)
    return entry if entry.score else None


def with_assessors(
    material: Material,
    queue: CellQueue,
    assessors: Mapping[CellKey, Mapping[str, AssessorGrade]],
    query_id: str = "",
    left: Items = (),
) -> AmendedQueue:
    """The queue of disagreement with assessors' grades among the graders'."""
    moved = {
        cell: spread_of(material, cell, said)
        for cell, said in assessors.items()
        if query_id in ("", cell.query_id) and (cell.query_id, cell.item_id) not in left
    }
    return AmendedQueue(queue, queue.place, moved, by_score(material))


def by_score(material: Material) -> Callable[[QueueEntry], tuple[float, int]]:
    """What a queue of disagreement is sorted by."""
    numbers = material.numbers
    return lambda entry: (-entry.score, numbers[entry.cell])


def by_influence(material: Material, rel: int = 4, cutoff: int = 20, query_id: str = "") -> list[QueueEntry]:
    """Grades by how much of the leaderboard turns on them, most first; those that move nothing are left out.

    A grade moves the Rubric-Cover@`cutoff` of those runs that rank the passage and have no other passage in the cutoff
    that covers the item. With n such runs of N, score = n (N − n) / |R_q|: the pairs of runs whose difference changes
    if the grade falls on the other side of `rel`, each by 1 / |R_q|. All runs alike (n = N) move together: score 0.
    """
    runs = {run for query in material.queries.values() for run in query.record.rankings}
    entries = []
    for query in material.queries.values():
        if query_id not in ("", query.query_id):
            continue
        moved = _moved(query, rel, cutoff)
        size = len(query.record.grades.items)
        for (doc_id, item_id), count in moved.items():
            score = count * (len(runs) - count) / size
            if score:
                cell = CellKey(query.query_id, doc_id, item_id)
                entries.append(QueueEntry(cell, score, f"moves {count} of {len(runs)} runs"))
    return sorted(entries, key=lambda entry: (-entry.score, entry.cell))


def without(entries: list[QueueEntry], left: Items) -> list[QueueEntry]:
    """The entries that are of none of these items."""
    if not left:
        return entries
    return [entry for entry in entries if (entry.cell.query_id, entry.cell.item_id) not in left]


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
            if isinstance(doc_id, Gap):
                continue
            # A grade matters where nothing covers the item, or only this passage does.
            matters = ~once | (covered.get(doc_id, 0) & ~twice)
            for item_id in query.passages[doc_id].grades:
                if matters & bit[item_id]:
                    counts[doc_id, item_id] = counts.get((doc_id, item_id), 0) + 1
    return counts


def audit_sample(
    material: Material, seed: int = 0, size: int = 100, query_id: str = "", left: Items = ()
) -> list[QueueEntry]:
    """A random sample of all grades, or of those of one query; the same for the same seed, whatever the file's order.

    Every grade has a random number made of its ids (64 bits of their SHA-256) and the seed, and the smallest `size`
    are the sample: so a larger sample contains the smaller one.
    """
    places = _range(material, query_id)
    cells = np.arange(places.start, places.stop)
    cells = cells[~_are_left(material, left)[cells]]
    digests = material.digests[cells]
    numbers = _mixed(digests ^ _mixed(np.array([seed % (1 << 64)], dtype=np.uint64)))
    chosen = np.argpartition(numbers, size)[:size] if size < len(numbers) else np.arange(len(numbers))
    chosen = cells[chosen[np.argsort(numbers[chosen])]]
    return [QueueEntry(material.cells[place], 0.0, "audit sample") for place in chosen.tolist()]


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finishing step of the generator splitmix64: every bit of the result depends on every bit of the number.

    Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def make_queue(
    material: Material,
    order: Order,
    *,
    query_id: str = "",
    seed: int = 0,
    size: int = 100,
    assessors: Mapping[CellKey, Mapping[str, AssessorGrade]] | None = None,
    left: Items = (),
) -> Sequence[QueueEntry]:
    """The queue of an order; `query_id` keeps only the grades of one query, and those of `left` items are not in it."""
    if order == "disagreement":
        graders = by_disagreement(material, query_id, left)
        return with_assessors(material, graders, assessors, query_id, left) if assessors else graders
    if order == "influence":
        return without(by_influence(material, query_id=query_id), left)
    if order == "audit":
        return audit_sample(material, seed, size, query_id, left)
    places = _range(material, query_id)
    numbers = np.arange(places.start, places.stop)
    numbers = numbers[~_are_left(material, left)[numbers]]
    return CellQueue(material, numbers, lambda number: QueueEntry(material.cells[number], 0.0, ""))


class AmendedQueue(Sequence[QueueEntry]):
    """A sorted queue with a few entries moved, as a view: the queue itself may be long and is not copied.

    Args:
        base: the queue, sorted by `order`.
        place: the place of a grade in it; None where it is not in it.
        moved: the entries that changed; None for grades that left the queue.
        order: what the queue is sorted by; no two entries are equal in it.
    """

    def __init__(
        self,
        base: Sequence[QueueEntry],
        place: Callable[[CellKey], int | None],
        moved: Mapping[CellKey, QueueEntry | None],
        order: Callable[[QueueEntry], tuple[float, int]],
    ) -> None:
        self._base, self._order = base, order
        self._added = sorted((entry for entry in moved.values() if entry is not None), key=order)
        removed = sorted(at for cell in moved if (at := place(cell)) is not None)
        self._removed = removed
        # The entry that stands n-th among those left in the base had `t` removed ones before it.
        self._left = [at - number for number, at in enumerate(removed)]
        self._places = [
            at - bisect_left(removed, at) + number
            for number, entry in enumerate(self._added)
            for at in (bisect_left(base, order(entry), key=order),)
        ]

    def __len__(self) -> int:
        return len(self._base) - len(self._removed) + len(self._added)

    @overload
    def __getitem__(self, place: int) -> QueueEntry: ...

    @overload
    def __getitem__(self, place: slice) -> list[QueueEntry]: ...

    def __getitem__(self, place: int | slice) -> QueueEntry | list[QueueEntry]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError("place is outside of the queue")
        place %= len(self)
        before = bisect_left(self._places, place)
        if before < len(self._places) and self._places[before] == place:
            return self._added[before]
        rest = place - before
        return self._base[rest + bisect_right(self._left, rest)]

    def place_of(self, entry: QueueEntry) -> int:
        """Where an entry stands, or would stand."""
        number = bisect_left(self._added, self._order(entry), key=self._order)
        if number < len(self._added) and self._added[number] == entry:
            return self._places[number]
        at = bisect_left(self._base, self._order(entry), key=self._order)
        return at - bisect_left(self._removed, at) + number
