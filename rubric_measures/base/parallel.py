"""A map over forked processes: results in order, notes and errors as if it ran here; plain where that pays more."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from rubric_measures.base.errors import RubricMeasuresError

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


def _ends() -> list[signal.Signals]:
    """The signals that end a process; Windows lacks one."""
    return [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def _begin() -> None:
    """Prepares a worker: it lives for one map, and ends at once when it is told to.

    What the parent does about signals is not for it: a handler in Python can come too late for a wait that has begun.
    """
    for number in _ends():
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ends())
    # Looking for cyclic garbage would walk, and so copy, all that it inherited.
    gc.disable()


def _work(thing: Any) -> tuple[Any, BaseException | None, tuple[tuple[int, str], ...]]:
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
        RubricMeasuresError: a process was killed.
        Exception: the first one that the function raises, in the order of the things.
    """
    if workers is None:
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
        workers = min(available, len(things)) if len(things) >= _FEW else 1
    # A forked copy of a process with threads may hold their locks forever.
    if workers < 2 or not sys.platform.startswith("linux") or threading.active_count() > 1:
        yield from map(function, watch(things))
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import active_children, get_context

    global _inherited  # noqa: PLW0603
    logger = logging.getLogger("rubric_measures")
    _inherited = function
    others = set(active_children())
    try:
        with ProcessPoolExecutor(workers, get_context("fork"), _begin) as pool:
            try:
                # A signal waits until a new worker has put off the parent's handlers.
                before = signal.pthread_sigmask(signal.SIG_BLOCK, _ends())
                try:
                    waiting = deque(pool.submit(_work, thing) for thing in things)
                finally:
                    signal.pthread_sigmask(signal.SIG_SETMASK, before)
                for _ in watch(things):
                    result, error, notes = waiting.popleft().result()
                    for level, message in notes:
                        logger.log(level, "%s", message)
                    if error is not None:
                        raise error
                    yield result
            except BaseException:
                # Nobody waits for what workers are still at.
                for worker in {*active_children()} - others:
                    worker.terminate()
                raise
    except BrokenProcessPool:
        raise RubricMeasuresError(
            "a worker process was killed, as the system does where memory is short; give fewer files at once"
        ) from None
    finally:
        _inherited = None
