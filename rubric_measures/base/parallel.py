"""A map over forked processes: results in order, notes and errors as if it ran here; plain where that pays more."""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

__all__ = ["Notes", "forked_map"]

T = TypeVar("T")
R = TypeVar("R")

# A fork and its pipes cost about as much as reading this many runs.
_FEW = 8

# What the workers inherit by forking; closures cannot be sent through a pipe.
_inherited: Callable[[Any], Any] | None = None


class Notes(logging.Handler):
    """Collects what a worker has to say, as (level, line), for the parent to say it in order."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps a line."""
        self._lines.append((record.levelno, record.getMessage()))

    def take(self) -> tuple[tuple[int, str], ...]:
        """What there is, once."""
        lines, self._lines = tuple(self._lines), []
        return lines


def _work(thing: Any) -> tuple[Any, BaseException | None, tuple[tuple[int, str], ...]]:
    # A worker lives for one map. Looking for cyclic garbage would walk, and so copy, all that it inherited.
    gc.disable()
    logger = logging.getLogger("rubric_measures")
    notes = Notes()
    logger.handlers, logger.propagate = [notes], False
    assert _inherited is not None
    try:
        return _inherited(thing), None, notes.take()
    except Exception as error:
        return None, error, notes.take()


def forked_map(
    function: Callable[[T], R],
    things: Sequence[T],
    workers: int | None = None,
    watch: Callable[[Iterable[T]], Iterable[T]] = lambda things: things,
) -> Iterator[R]:
    """Applies a pure function to each thing, several at a time, and yields the results in order.

    The function may be a closure over large data: processes are forked, so nothing is copied until it is changed.
    Where there is no fork, one core, few things or other threads, it runs here.

    Args:
        function: what to apply; its result must be picklable.
        things: picklable arguments.
        workers: the number of processes; None takes the cores that this process may use.
        watch: wraps the iteration (a progress bar).

    Raises:
        Exception: the first one that the function raises, in the order of the things.
    """
    if workers is None:
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
        workers = min(available, len(things)) if len(things) >= _FEW else 1
    # A forked copy of a process with threads may hold their locks forever.
    if workers < 2 or not sys.platform.startswith("linux") or threading.active_count() > 1:
        yield from map(function, watch(things))
        return
    import multiprocessing

    global _inherited  # noqa: PLW0603
    logger = logging.getLogger("rubric_measures")
    _inherited = function
    try:
        with multiprocessing.get_context("fork").Pool(workers) as pool:
            results = pool.imap(_work, things)
            for _ in watch(things):
                result, error, notes = next(results)
                for level, message in notes:
                    logger.log(level, "%s", message)
                if error is not None:
                    raise error
                yield result
    finally:
        _inherited = None
