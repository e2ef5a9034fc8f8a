"""One review in progress: the records, the state, and what is computed once and kept (queues)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np
from ir_measures.measures.base import Measure
from numpy.typing import NDArray

from rubric_measures.review._agreement import AgreementRow, agreement_rows
from rubric_measures.review._events import Snapshot
from rubric_measures.review._impact import Impact, impact_of
from rubric_measures.review._pages import load_templates
from rubric_measures.review._stale_items import left_items
from rubric_measures.review.queues import (
    LIVE_ORDERS,
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
    # By choice, each with the event that it knows of.
    _queues: dict[QueueChoice, tuple[int, CellQueue]] = field(default_factory=dict)
    # What became of items that count no more, at which event; the queues kept are without them.
    _left: tuple[int, Mapping[tuple[str, str], str]] = -1, MappingProxyType({})
    _kept_cells: NDArray[np.bool_] | None = None
    _agreements: tuple[int, list[AgreementRow]] | None = None

    @property
    def link_names(self) -> list[str]:
        """Those who work under a link of their own: who was given queries, and the adjudicator."""
        return list(dict.fromkeys([*self.assignments, *([self.adjudicator] if self.adjudicator else [])]))

    def prepare(self) -> None:
        """Computes what every screen needs, before the first one is asked for."""
        for order in ORDERS:
            self.queue(QueueChoice(order), self.store.snapshot())
        # Says what is wrong with the measures. The rest loads what the other screens compute with, and the templates.
        self.impact(self.store.snapshot())
        len(self.material.digests)
        self.agreements(self.store.snapshot())
        load_templates()

    @cached_property
    def _influence(self) -> list[QueueEntry]:
        return by_influence(self.material)

    def queue(self, choice: QueueChoice, snapshot: Snapshot) -> CellQueue:
        """The queue of a choice, without items that count no more."""
        with self._lock:
            self.left(snapshot)
            known = self._queues.pop(choice, None)
            if known is None or (choice.order in LIVE_ORDERS and known[0] != snapshot.last_id):
                influence = self._influence if choice.order == "influence" else None
                made = make_queue(self.material, choice, snapshot.grades, kept=self._kept_cells, influence=influence)
                known = snapshot.last_id, made
            # The one asked for last stands last, and the one that nobody asked for the longest time goes.
            self._queues[choice] = known
            if len(self._queues) > _KEPT:
                del self._queues[next(iter(self._queues))]
            return known[1]

    def agreements(self, snapshot: Snapshot) -> list[AgreementRow]:
        """How well assessors agree with the grader and with each other."""
        known = self._agreements
        if known is None or known[0] != snapshot.last_id:
            self._agreements = known = snapshot.last_id, agreement_rows(self.material, snapshot)
        return known[1]

    def left(self, snapshot: Snapshot) -> Mapping[tuple[str, str], str]:
        """(query_id, item_id) -> what was done to it, of items whose grades count no more, or wait."""
        with self._lock:
            if self._left[0] != snapshot.last_id:
                left = left_items(snapshot)
                if left.keys() != self._left[1].keys():
                    self._queues.clear()
                    self._kept_cells = kept_cells(self.material, left)
                self._left = snapshot.last_id, left
            return self._left[1]

    def impact(self, snapshot: Snapshot) -> list[Impact]:
        """The leaderboards before and after what assessors did."""
        return impact_of(self.material, self.measures, snapshot)
