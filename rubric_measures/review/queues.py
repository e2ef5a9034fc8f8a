"""In what order assessors check grades: disagreement, influence on the leaderboard, uncertainty, an audit, a query."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from rubric_measures.base.sorting import Gap
from rubric_measures.measures.grade_sets import HUMAN
from rubric_measures.review._events import AssessorGrade, CellKey, adjudicated
from rubric_measures.review.review_data import Material, QueryMaterial

__all__ = [
    "ORDERS",
    "CellQueue",
    "Order",
    "QueueChoice",
    "QueueEntry",
    "by_influence",
    "kept_cells",
    "make_queue",
    "waits_for",
]

Order = Literal["disagreement", "influence", "uncertainty", "audit", "query", "decide", "differ"]
ORDERS: tuple[Order, ...] = ("disagreement", "influence", "uncertainty", "audit", "query")


def _far(material: Material) -> int:
    """From which difference on graders lie far apart: 3 of the scale 0 to 5, 2 of 0 to 3 and 0 to 2, 1 of yes and no.

    The queue tells no more than that: a place among cells that are 5 apart would say that the graders gave 0 and 5, to
    somebody who knows the grades of its neighbours and has still to give this one.
    """
    return -(-3 * (material.scale.highest - material.scale.lowest) // 5)


@dataclass(frozen=True)
class QueueChoice:
    """Which queue.

    Attributes:
        order: of the grades.
        query_id: only this query; empty takes all.
        seed: of the audit sample.
        size: of the audit sample.
        assessor: who asks, of the orders `decide` and `differ`; empty in others.
        queries: only these queries, where the assessor was given some; empty takes all.
        judges: of the order `differ`: the assessor is the adjudicator, who decides what others differ on.
    """

    order: Order = "disagreement"
    query_id: str = ""
    seed: int = 0
    size: int = 100
    assessor: str = ""
    queries: tuple[str, ...] = ()
    judges: bool = False


class QueueEntry(NamedTuple):
    """One grade to check, and why it stands where it stands."""

    cell: CellKey
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


def make_queue(
    material: Material,
    choice: QueueChoice,
    assessors: Mapping[CellKey, Mapping[str, AssessorGrade]],
    *,
    kept: NDArray[np.bool_] | None = None,
    influence: Sequence[QueueEntry] | None = None,
) -> CellQueue:
    """The queue of a choice.

    Args:
        material: what is reviewed.
        choice: which queue.
        assessors: what assessors say now; only the order of disagreement hangs on it.
        kept: see `kept_cells`; None keeps all.
        influence: see `by_influence`, where it is known already.
    """
    asked = [
        places
        for query_id, places in material.ranges.items()
        if choice.query_id in ("", query_id) and (not choice.queries or query_id in choice.queries)
    ]
    numbers = np.concatenate([np.arange(0), *(np.arange(places.start, places.stop) for places in asked)])
    if kept is not None:
        numbers = numbers[kept[numbers]]
    if choice.order == "disagreement":
        return _by_disagreement(material, numbers, assessors)
    if choice.order == "influence":
        known = by_influence(material) if influence is None else influence
        entries = {material.numbers[entry.cell]: entry for entry in known}
        found = np.array(list(entries), dtype=np.int64)
        return CellQueue(material, found[np.isin(found, numbers)], entries.__getitem__)
    if choice.order == "uncertainty":
        return _by_uncertainty(material, numbers)
    why = {"decide": "to decide", "differ": "assessors differ", "audit": "audit sample"}.get(choice.order, "")
    if choice.order == "audit":
        numbers = _audit_sample(material, numbers, choice.seed, choice.size)
    elif why:
        waits = choice.order == "decide"
        chosen = [
            material.numbers[cell]
            for cell, said in assessors.items()
            if (waits_for(said, choice.assessor) if waits else _is_split(material, cell, said, choice))
        ]
        numbers = numbers[np.isin(numbers, np.array(chosen, dtype=np.int64))]
    return CellQueue(material, numbers, lambda number: QueueEntry(material.cells[number], why))


def waits_for(said: Mapping[str, AssessorGrade], assessor: str) -> bool:
    """Whether an assessor's grade of a cell differs from the grader's, and nobody said yet which grade stands."""
    mine = said.get(assessor)
    return mine is not None and mine.grade is not None and mine.final is None and adjudicated(said) is None


def _is_split(material: Material, cell: CellKey, said: Mapping[str, AssessorGrade], choice: QueueChoice) -> bool:
    """Whether assessors differ on a cell, nobody decided it, and the one who asks has not still to grade it blindly."""
    if adjudicated(said) is not None or material.settled(cell) is not None:
        return False
    grades = dict(material.earlier(cell))
    for name, one in said.items():
        if (grade := one.grade if one.final is None else one.final) is not None:
            grades[name] = grade
    return len(set(grades.values())) > 1 and (choice.assessor in grades or choice.judges)


def kept_cells(material: Material, left: Collection[tuple[str, str]]) -> NDArray[np.bool_]:
    """For each grade in `cells`, whether it is of none of these items, given as (query_id, item_id)."""
    kept = np.ones(len(material.cells), dtype=np.bool_)
    for query_id in {query_id for query_id, _ in left}:
        for number in material.ranges.get(query_id, range(0)):
            kept[number] = (query_id, material.cells[number].item_id) not in left
    return kept


def _by_disagreement(
    material: Material, numbers: NDArray[np.int64], assessors: Mapping[CellKey, Mapping[str, AssessorGrade]]
) -> CellQueue:
    """Grades on which graders differ, those that lie far apart first; those that agree are left out.

    Far is max − min ≥ `_far`, over all graders on one scale and assessors' grades. Ties stand in file order.
    """
    far = _far(material)

    def entry(number: int) -> QueueEntry:
        cell = material.cells[number]
        grades = _all_grades(material, cell, assessors.get(cell, {}))
        return QueueEntry(cell, f"{len(grades)} grades differ by {max(grades) - min(grades):.6g}")

    spreads = material.spreads.copy()
    for cell, said in assessors.items():
        grades = _all_grades(material, cell, said)
        spreads[material.numbers[cell]] = max(grades) - min(grades) if grades else 0
    spreads = spreads[numbers]
    classes = (spreads > 0).astype(np.int8) + (spreads >= far)
    chosen = np.argsort(-classes, kind="stable")[: np.count_nonzero(spreads)]
    return CellQueue(material, numbers[chosen], entry)


def _by_uncertainty(material: Material, numbers: NDArray[np.int64]) -> CellQueue:
    """Grades by the probability of the most probable grade, the least first; those without a distribution are left out.

    Ties stand in file order. What is most probable is not told: the assessor has still to give a grade.
    """
    known = material.confidences[numbers]
    order = np.argsort(known, kind="stable")[: np.count_nonzero(~np.isnan(known))]

    def entry(number: int) -> QueueEntry:
        return QueueEntry(material.cells[number], f"confidence {material.confidences[number]:.2f}")

    return CellQueue(material, numbers[order], entry)


def _all_grades(material: Material, cell: CellKey, said: Mapping[str, AssessorGrade]) -> Collection[float]:
    grades = material.queries[cell.query_id].others(cell.doc_id, cell.item_id)
    # Who graded it in an earlier review, too, has one grade: the later.
    grades |= {f"{HUMAN}{name}": one.final for name, one in said.items() if one.final is not None}
    return grades.values()


def by_influence(material: Material) -> list[QueueEntry]:
    """Grades by how much of the leaderboard turns on them, most first; those that move nothing are left out.

    A grade moves the Rubric-Cover@20 of those runs that rank the passage and have no other passage in the cutoff
    that covers the item. With n such runs of N, score = n (N − n) / |R_q|: the pairs of runs whose difference changes
    if the grade falls on the other side of the level that covers, each by 1 / |R_q|. All runs alike (n = N) move
    together: score 0.
    """
    runs = {run for query in material.queries.values() for run in query.record.rankings}
    entries: list[tuple[float, QueueEntry]] = []
    for query in material.queries.values():
        moved = _moved(query, material.scale.covers)
        size = len(query.record.grades.items)
        for (doc_id, item_id), count in moved.items():
            score = count * (len(runs) - count) / size
            if score:
                cell = CellKey(query.query_id, doc_id, item_id)
                entries.append((-score, QueueEntry(cell, f"moves {count} of {len(runs)} runs")))
    return [entry for _, entry in sorted(entries)]


def _moved(query: QueryMaterial, rel: int, cutoff: int = 20) -> dict[tuple[str, str], int]:
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


def _audit_sample(material: Material, cells: NDArray[np.int64], seed: int, size: int) -> NDArray[np.int64]:
    """A random sample of grades; the same for the same seed, whatever the file's order.

    Every grade has a random number made of its ids (64 bits of their SHA-256) and the seed, and the smallest `size`
    are the sample: so a larger sample contains the smaller one.
    """
    numbers = _mixed(material.digests[cells] ^ _mixed(np.array([seed % (1 << 64)], dtype=np.uint64)))
    chosen = np.argpartition(numbers, size)[:size] if size < len(numbers) else np.arange(len(numbers))
    return cells[chosen[np.argsort(numbers[chosen])]]


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finishing step of the generator splitmix64: every bit of the result depends on every bit of the number.

    Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
