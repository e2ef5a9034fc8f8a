"""What `grade` does around the grading: a progress bar, Ctrl-C, a calmer garbage collector."""

from __future__ import annotations

import contextlib
import gc
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rubric_measures.grading.regrading import AmendCounts
    from rubric_measures.runners import RunStats

__all__ = ["Interrupts", "fewer_collections", "request_bar", "say_amended", "shown_on"]


class Interrupts:
    """The first Ctrl-C sets `event`, so that calls in flight are finished and kept; the second one interrupts."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._before: Any = None

    def __enter__(self) -> Self:
        # Only the main thread may handle signals; elsewhere an interrupt stays what it was.
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.event.is_set():
            raise KeyboardInterrupt
        self.event.set()


@contextlib.contextmanager
def fewer_collections() -> Iterator[None]:
    """Lets the cyclic collector look seldom: grading makes many objects that live until their query is written."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextlib.contextmanager
def request_bar(total: int | None) -> Iterator[Callable[[RunStats], None] | None]:
    """A progress bar of so many requests on standard error when that is a terminal; else nothing."""
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(total=total, unit=" requests", smoothing=0.1, file=sys.stderr) as bar:
        yield shown_on(bar)


def shown_on(bar: Any) -> Callable[[RunStats], None]:
    """What shows the counts of a run on a bar of tqdm."""

    def show(stats: RunStats) -> None:
        bar.set_postfix(stats.progress, refresh=False)
        bar.update(stats.answered - bar.n)

    return show


def say_amended(counts: AmendCounts, passages: str) -> None:
    """Notes what following the edits of a bank changed and left."""
    log = logging.getLogger("rubric_measures")
    log.info(
        "only what edits touched: %d items graded anew; %d grade sets amended, %d left as they were",
        len(counts.items),
        counts.amended,
        counts.untouched,
    )
    if counts.taken_out:
        log.info(
            "%d stale grades of items that changed or left are taken out (%s has them)", counts.taken_out, passages
        )
    if counts.failures_left:
        log.warning("%d failed grades of unchanged items are left; grade without --only-changed", counts.failures_left)
    if counts.without:
        log.warning("%d passages have no grades by this grader and get none; see --only-changed", counts.without)
    if counts.other_settings:
        log.warning("%d grade sets of this model and prompt have other settings and are left", counts.other_settings)
    if counts.elsewhere:
        names = ", ".join(f"{count} by {name}" for name, count in sorted(counts.elsewhere.items()))
        log.warning("grades of changed items that may be older than the change are left: %s", names)
