"""One review in progress: the records, the state, and what is computed once and kept (queues)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ir_measures.measures.base import Measure

from rubric_measures.review._events import Snapshot
from rubric_measures.review._impact import impact_of
from rubric_measures.review._stale_items import left_items
from rubric_measures.review.queues import (
    ORDERS,
    CellQueue,
    QueueChoice,
    QueueEntry,
    by_influence,
    kept_cells,
    make_queue,
)
from rubric_measures.review.review_data import Material
from rubric_measures.review.store import ReviewStore

__all__ = ["Review"]

# How many queues are kept.
_KEPT = 24


@dataclass
class Review:
    """One review.

    Attributes:
        material: what is reviewed.
        store: what assessors did.
        measures: the measures of the impact screen.
        bank_path: the bank's file.
        project: the folder that the page may write to.
        default_assessor: who works here when the browser does not say.
        blind: the grader's grade is hidden until the assessor has given theirs.
        audit: how many grades the random audit sample has.
        guidelines: instructions for assessors, as HTML; empty where there are none.
        assignments: assessor -> the queries that they were given; others work on all.
        adjudicator: who decides what assessors differ on; empty where nobody does.
        token: what other machines have to show; None where only this machine can connect.
        next_command: (records, bank) -> what to type to grade the items that wait for grades; the command line says it.
    """

    material: Material
    store: ReviewStore
    measures: Sequence[Measure]
    bank_path: str
    project: Path
    default_assessor: str = ""
    blind: bool = True
    audit: int = 100
    guidelines: str = ""
    assignments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    adjudicator: str = ""
    token: str | None = None
    next_command: Callable[[str, str], str] | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)
    # The event after which what is kept was computed; what became of items that count no more; the queues without them.
    _known: int = -1
    _left: Mapping[tuple[str, str], str] = field(default_factory=dict)
    _queues: dict[QueueChoice, CellQueue] = field(default_factory=dict)

    @property
    def link_names(self) -> list[str]:
        """Those who work under a link of their own: who was given queries, and the adjudicator."""
        return list(dict.fromkeys([*self.assignments, *([self.adjudicator] if self.adjudicator else [])]))

    def prepare(self) -> None:
        """Computes what every screen needs, before the first one is asked for."""
        for order in ORDERS:
            self.queue(QueueChoice(order), self.store.snapshot())
        # Says what is wrong with the measures.
        impact_of(self.material, self.measures, self.store.snapshot())

    @cached_property
    def _influence(self) -> list[QueueEntry]:
        return by_influence(self.material)

    def queue(self, choice: QueueChoice, snapshot: Snapshot) -> CellQueue:
        """The queue of a choice, without items that count no more."""
        with self._lock:
            left = self.left(snapshot)
            if choice not in self._queues:
                influence = self._influence if choice.order == "influence" else None
                kept = kept_cells(self.material, left)
                made = make_queue(self.material, choice, snapshot.grades, kept=kept, influence=influence)
                if len(self._queues) == _KEPT:
                    self._queues.clear()
                self._queues[choice] = made
            return self._queues[choice]

    def left(self, snapshot: Snapshot) -> Mapping[tuple[str, str], str]:
        """(query_id, item_id) -> what was done to it, of items whose grades count no more, or wait."""
        with self._lock:
            if self._known != snapshot.last_id:
                self._known, self._left = snapshot.last_id, left_items(snapshot)
                self._queues.clear()
            return self._left
