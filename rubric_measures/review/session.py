"""One review in progress: the records, the state, and what is computed once and kept (queues, leaderboards)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ir_measures.measures.base import Measure

from rubric_measures.review.events import Cell, Snapshot
from rubric_measures.review.impact import Impact, Scores, impact_of
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
    """A queue, and where in it each grade stands."""

    entries: Sequence[QueueEntry]
    places: dict[Cell, int]


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
    _impact: tuple[int, list[Impact]] | None = None

    def prepare(self) -> None:
        """Computes what every screen needs, before the first one is asked for."""
        for order in ORDERS:
            self.queue(QueueChoice(order), Snapshot())
        self.impact(self.store.snapshot())

    def queue(self, choice: QueueChoice, snapshot: Snapshot) -> Queue:
        """The queue of a choice; that of disagreement takes people's grades into account."""
        people = choice.order == "disagreement" and bool(snapshot.grades)
        key = (choice, snapshot.last_id if people else 0)
        with self._lock:
            if key not in self._queues:
                entries: Sequence[QueueEntry]
                if people:
                    entries = self._with_people(choice, snapshot)
                else:
                    entries = make_queue(
                        self.material, choice.order, query_id=choice.query_id, seed=choice.seed, size=choice.size
                    )
                if len(self._queues) >= _KEPT:
                    self._queues.pop(next(iter(self._queues)))
                self._queues[key] = Queue(entries, {entry.cell: place for place, entry in enumerate(entries)})
            return self._queues[key]

    def _with_people(self, choice: QueueChoice, snapshot: Snapshot) -> list[QueueEntry]:
        """The graders' queue, with the few grades that people touched put where they now belong."""
        fresh = {
            cell: spread_of(self.material, cell, people)
            for cell, people in snapshot.grades.items()
            if choice.query_id in ("", cell.query_id)
        }
        base = self.queue(choice, Snapshot()).entries
        entries = [(fresh.pop(entry.cell) or entry) if entry.cell in fresh else entry for entry in base]
        entries += [entry for entry in fresh.values() if entry is not None]
        return sorted(entries, key=lambda entry: -entry.score)

    def impact(self, snapshot: Snapshot) -> list[Impact]:
        """The leaderboards before and after what people did."""
        with self._lock:
            if self._scores is None:
                self._scores = Scores(self.material, self.measures)
            if self._impact is None or self._impact[0] != snapshot.last_id:
                self._impact = snapshot.last_id, impact_of(self._scores, snapshot)
            return self._impact[1]
