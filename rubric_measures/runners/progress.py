"""Around a run of calls: Ctrl-C that keeps finished work, a progress bar, and the note where a limit ended the run."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Self

from rubric_measures.runners._stats import RunStats

__all__ = ["Interrupts", "Progress", "note_limit", "request_bar"]

# True shows a bar on standard error; a function gets the counts now and then.
Progress = bool | Callable[[RunStats], None]
_LOG = logging.getLogger("rubric_measures")


class Interrupts:
    """The first Ctrl-C sets `event`, so that calls in flight are finished and kept; the second one interrupts.

    So do the signals that end a process, where they are handled as Ctrl-C is (`cli.Interruptible`).
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Only the main thread may handle signals; elsewhere an interrupt stays what it was.
        if threading.current_thread() is threading.main_thread():
            self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._handle)
            for name in ("SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)
                if number is not None and callable(signal.getsignal(number)):
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.event.is_set():
            raise KeyboardInterrupt
        self.event.set()


@contextlib.contextmanager
def request_bar(
    progress: Progress, total: int | None = None, unit: str = "requests", name: str | None = None
) -> Iterator[Callable[[RunStats], None] | None]:
    """What a runner tells its counts to: a bar on standard error, the function that was given, or nothing."""
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield None
        return
    from tqdm import tqdm

    with tqdm(total=total, desc=name, unit=f" {unit}", smoothing=0.1, file=sys.stderr) as bar:

        def show(stats: RunStats) -> None:
            bar.set_postfix(stats.progress, refresh=False)
            bar.update(stats.answered - bar.n)

        yield show


def note_limit(stats: RunStats, *, is_kept: bool = True) -> bool:
    """Says that a limit was reached, and how to go on (with a cache that is kept, or without); whether one was."""
    if stats.limited_queries:
        names = sorted(stats.limited_queries)
        listed = f"{', '.join(names[:3])}{', …' if len(names) > 3 else ''}"
        _LOG.warning("%s for %d queries (%s)", stats.query_limit, len(names), listed)
    if stats.limit:
        again = "raise it and run again" if stats.limit.startswith("the limit") else "run again to go on"
        how = f"{again}: finished calls are in the cache" if is_kept else "name a cache to go on later"
        settings = () if is_kept else ("cache",)
        _LOG.warning("%s, %d requests were not made; %s", stats.limit, stats.missing, how, extra={"settings": settings})
    return bool(stats.limit)
