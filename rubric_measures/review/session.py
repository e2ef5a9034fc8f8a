"""One review in progress: the records, the state, and what is computed once and kept (queues, leaderboards)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from ir_measures.measures.base import Measure

from rubric_measures.base.errors import RubricMeasuresError
from rubric_measures.review._agreement import agreement_rows
from rubric_measures.review._bank_formats import bank_formats
from rubric_measures.review._events import AssessorGrade, CellKey, Snapshot
from rubric_measures.review._impact import Impact, Scores, impact_of
from rubric_measures.review._impact_items import ItemImpacts, ItemScores
from rubric_measures.review._pages import load_templates
from rubric_measures.review._stale_items import left_items
from rubric_measures.review.queues import (
    ORDERS,
    AmendedQueue,
    CellQueue,
    Order,
    QueueEntry,
    by_influence,
    by_score,
    make_queue,
    spread_of,
    without,
)
from rubric_measures.review.review_data import Material
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
    """A queue, and how to find the place of a grade in it.

    Attributes:
        entries: the grades to check.
        place: the place of a grade; None where it is not in the queue.
        last_id: the last event that it knows of.
        said: what assessors then had said.
        moved: the grades whose entries assessors changed, with the present ones; None where they left the queue.
        base: the queue before anybody said anything; None where this is it.
    """

    entries: Sequence[QueueEntry]
    place: Callable[[CellKey], int | None]
    last_id: int
    said: Mapping[CellKey, Mapping[str, AssessorGrade]]
    moved: Mapping[CellKey, QueueEntry | None]
    base: Queue | None

    def has(self, cell: CellKey) -> bool:
        """Whether a grade is in the queue; quicker than its place."""
        if cell in self.moved:
            return self.moved[cell] is not None
        return (self.base or self).place(cell) is not None


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
    """

    material: Material
    store: ReviewStore
    measures: Sequence[Measure]
    bank_path: str
    project: Path
    default_assessor: str = ""
    blind: bool = True
    # Two locks: nobody who wants a queue waits for a leaderboard.
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _queue_lock: threading.RLock = field(default_factory=threading.RLock)
    _queues: dict[QueueChoice, Queue] = field(default_factory=dict)
    # What became of items that count no more, at which event; the queues kept are without them.
    _left: tuple[int, Mapping[tuple[str, str], str]] = -1, MappingProxyType({})
    _influence: list[QueueEntry] | None = None
    _scores: Scores | None = None
    _items: ItemScores | None = None
    _impact: tuple[int, list[Impact]] | None = None

    def prepare(self) -> None:
        """Computes what every screen needs, before the first one is asked for."""
        for order in ORDERS:
            self.queue(QueueChoice(order), self.store.snapshot())
        self.item_impact(self.store.snapshot())
        # Loads what the other screens compute with, and the templates.
        len(self.material.digests)
        bank_formats()
        agreement_rows(self.material, self.store.snapshot())
        load_templates()

    def queue(self, choice: QueueChoice, snapshot: Snapshot) -> Queue:
        """The queue of a choice, without items that count no more; disagreement takes assessors into account."""
        with self._queue_lock:
            self.left(snapshot)
            made = self._queues.get(choice) or self._of_graders(choice)
            if choice.order == "disagreement" and made.last_id != snapshot.last_id:
                made = self._with_assessors(choice, made, snapshot)
            # The one asked for last stands last, and the one that nobody asked for the longest time goes.
            self._queues.pop(choice, None)
            self._queues[choice] = made
            if len(self._queues) > _KEPT:
                del self._queues[next(iter(self._queues))]
            return made

    def left(self, snapshot: Snapshot) -> Mapping[tuple[str, str], str]:
        """(query_id, item_id) -> what was done to it, of items whose grades count no more, or wait."""
        with self._queue_lock:
            if self._left[0] != snapshot.last_id:
                left = left_items(snapshot)
                if left.keys() != self._left[1].keys():
                    self._queues.clear()
                self._left = snapshot.last_id, left
            return self._left[1]

    def _of_graders(self, choice: QueueChoice) -> Queue:
        _, left = self._left
        entries: Sequence[QueueEntry]
        if choice.order == "influence" and not choice.query_id:
            # What takes longest: an edit of the bank takes entries out, and moves none.
            self._influence = by_influence(self.material) if self._influence is None else self._influence
            entries = without(self._influence, left)
        else:
            entries = make_queue(
                self.material,
                choice.order,
                query_id=choice.query_id,
                seed=choice.seed,
                size=choice.size,
                left=left,
            )
        if isinstance(entries, CellQueue):
            return Queue(entries, entries.place, 0, {}, {}, None)
        places = {entry.cell: place for place, entry in enumerate(entries)}
        return Queue(entries, places.get, 0, {}, {}, None)

    def _with_assessors(self, choice: QueueChoice, known: Queue, snapshot: Snapshot) -> Queue:
        """A queue as it was before, with the few grades that assessors moved since put where they now belong.

        It is neither sorted again nor copied: with hundreds of thousands of grades, that takes longer than a screen
        may (a new list of that length also keeps the garbage collector busy).
        """
        base = known.base or known
        moved = dict(known.moved)
        # What assessors said and took back has to be put back as well.
        for cell in known.said.keys() | snapshot.grades.keys():
            # What nobody touched since is the very same object in both.
            if known.said.get(cell) is snapshot.grades.get(cell) or choice.query_id not in ("", cell.query_id):
                continue
            if (cell.query_id, cell.item_id) in self._left[1]:
                continue
            at = base.place(cell)
            first = base.entries[at] if at is not None else None
            new = spread_of(self.material, cell, snapshot.grades.get(cell, {}))
            if new == first:
                moved.pop(cell, None)
            else:
                moved[cell] = new
        entries = AmendedQueue(base.entries, base.place, moved, by_score(self.material))

        def place(cell: CellKey) -> int | None:
            if cell in moved:
                entry = moved[cell]
                return entries.place_of(entry) if entry is not None else None
            at = base.place(cell)
            return entries.place_of(base.entries[at]) if at is not None else None

        return Queue(entries, place, snapshot.last_id, snapshot.grades, moved, base)

    def impact(self, snapshot: Snapshot) -> list[Impact]:
        """The leaderboards before and after what assessors did."""
        with self._lock:
            if self._scores is None:
                self._scores = Scores(self.material, self.measures)
                self._items = ItemScores(self._scores)
            if self._impact is None or self._impact[0] != snapshot.last_id:
                self._impact = snapshot.last_id, impact_of(self._scores, snapshot)
            return self._impact[1]

    def catch_up(self) -> None:
        """Computes the impact of what assessors did since; nothing where that is under way."""
        if self._lock.acquire(blocking=False):
            try:
                self.item_impact(self.store.snapshot(), size=0)
            except RubricMeasuresError:
                # Nobody asked; whoever opens the impact screen is told why it has nothing to show.
                pass
            finally:
                self._lock.release()

    def item_impact(self, snapshot: Snapshot, query_id: str = "", start: int = 0, size: int = 50) -> ItemImpacts:
        """The items before and after what assessors did: those that changed, or all of one query."""
        with self._lock:
            self.impact(snapshot)
            assert self._items is not None
            return self._items.impacts(snapshot, query_id, start, size)
