"""One review in progress: the records, the state, and what is computed once and kept (queues, leaderboards)."""

from __future__ import annotations

import gc
import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ir_measures.measures.base import Measure

from rubric_measures.review.agreeing import agreement_rows
from rubric_measures.review.events import Cell, Snapshot
from rubric_measures.review.impact import Impact, Scores, impact_of
from rubric_measures.review.impact_items import ItemImpacts, ItemScores
from rubric_measures.review.material import Material
from rubric_measures.review.queues import ORDERS, Order, QueueEntry, make_queue, spread_of
from rubric_measures.review.store import ReviewStore

__all__ = ["Queue", "QueueChoice", "Review"]

_KEPT = 24


@dataclass(frozen=True)
class QueueChoice:
    """Which queue: its order, the query (all where it is empty) and the seed of the audit sample."""

    order: Order = "disagreement"
    query_id: str = ""
    seed: int = 0
    size: int = 100


@dataclass(frozen=True)
class Queue:
    """A queue, and how to find the place of a grade in it."""

    entries: Sequence[QueueEntry]
    place: Callable[[Cell], int | None]


@dataclass
class Review:
    """One review.

    Attributes:
        material: what is reviewed.
        store: what people did.
        measures: the measures of the impact screen.
        bank_path: the bank's file.
        project: the folder that the page may write to.
        default_person: who works here when the browser does not say.
    """

    material: Material
    store: ReviewStore
    measures: Sequence[Measure]
    bank_path: str
    project: Path
    default_person: str = ""
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _queues: dict[tuple[QueueChoice, int], Queue] = field(default_factory=dict)
    _scores: Scores | None = None
    _items: ItemScores | None = None
    _impact: tuple[int, list[Impact]] | None = None

    def prepare(self) -> None:
        """Computes what every screen needs, before the first one is asked for."""
        for order in ORDERS:
            self.queue(QueueChoice(order), Snapshot())
        self.item_impact(self.store.snapshot())
        # Loads what the progress screen computes with.
        agreement_rows(self.material, self.store.snapshot())
        # The records are never let go, and looking through them for garbage would stop an answer for a second.
        gc.collect()
        gc.freeze()

    def queue(self, choice: QueueChoice, snapshot: Snapshot) -> Queue:
        """The queue of a choice; that of disagreement takes people's grades into account."""
        people = choice.order == "disagreement" and bool(snapshot.grades)
        key = (choice, snapshot.last_id if people else 0)
        with self._lock:
            if key not in self._queues:
                made = self._with_people(choice, snapshot) if people else self._of_graders(choice)
                if len(self._queues) >= _KEPT:
                    # The oldest queue that a person's grade has made stale, or else the oldest one.
                    self._queues.pop(next((old for old in self._queues if old[1]), next(iter(self._queues))))
                self._queues[key] = made
            return self._queues[key]

    def _of_graders(self, choice: QueueChoice) -> Queue:
        entries = make_queue(self.material, choice.order, query_id=choice.query_id, seed=choice.seed, size=choice.size)
        return Queue(entries, {entry.cell: place for place, entry in enumerate(entries)}.get)

    def _with_people(self, choice: QueueChoice, snapshot: Snapshot) -> Queue:
        """The graders' queue, with the few grades that people moved put where they now belong.

        It is not sorted again: that would take longer than a screen may, with hundreds of thousands of grades.
        """
        numbers = self.material.numbers

        def order(entry: QueueEntry) -> tuple[float, int]:
            return -entry.score, numbers[entry.cell]

        base = self.queue(choice, Snapshot())
        scores: dict[Cell, float] = {}
        entries = list(base.entries)
        for cell, people in snapshot.grades.items():
            if choice.query_id not in ("", cell.query_id):
                continue
            old_place = base.place(cell)
            old = base.entries[old_place] if old_place is not None else None
            new = spread_of(self.material, cell, people)
            if old != new:
                if old is not None:
                    del entries[bisect_left(entries, order(old), key=order)]
                if new is not None:
                    insort(entries, new, key=order)
                scores[cell] = new.score if new else 0.0

        def place(cell: Cell) -> int | None:
            first = base.place(cell)
            score = scores.get(cell, base.entries[first].score if first is not None else 0.0)
            return bisect_left(entries, (-score, numbers[cell]), key=order) if score else None

        return Queue(entries, place)

    def impact(self, snapshot: Snapshot) -> list[Impact]:
        """The leaderboards before and after what people did."""
        with self._lock:
            if self._scores is None:
                self._scores = Scores(self.material, self.measures)
                self._items = ItemScores(self._scores)
            if self._impact is None or self._impact[0] != snapshot.last_id:
                self._impact = snapshot.last_id, impact_of(self._scores, snapshot)
            return self._impact[1]

    def item_impact(self, snapshot: Snapshot, query_id: str = "", start: int = 0, size: int = 50) -> ItemImpacts:
        """The items before and after what people did: those that changed, or all of one query."""
        with self._lock:
            self.impact(snapshot)
            assert self._items is not None
            return self._items.impacts(snapshot, query_id, start, size)
