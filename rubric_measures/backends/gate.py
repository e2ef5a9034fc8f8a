"""The gate in front of an endpoint: how many calls may be in flight, and when all of them wait."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

__all__ = ["Gate"]

_SMALLEST_WINDOW = 4
_MOSTLY = 0.5


class Gate:
    """One shared limit on the calls in flight: additive increase, multiplicative decrease, common pause.

    The limit moves once in a window of as many answers as it allows calls (at least four): with s the share of them
    that were rejections, `limit <- limit * (1 - s^2) + (1 - s) * ceiling / 16`. So a limiter that turns away all that
    is above its rate is met within a few windows, while rejections at random (s stays what it is, however small the
    limit) cost little: at s = 0.2 the limit stays at its ceiling, at s = 0.5 it stays at an eighth of it. Everyone
    pauses only after a window in which most answers were rejections; else only the rejected call waits.

    Used from one event loop only.

    Args:
        ceiling: the most calls in flight, at least 1.
        clock: seconds, for tests.
    """

    def __init__(self, ceiling: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.ceiling = ceiling
        self.limit = float(ceiling)
        self.in_flight = 0
        self._clock = clock
        self._pause_until = 0.0
        self._answers = 0
        self._rejections = 0
        self._pauses = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> None:
        """Waits for a slot and takes it; the caller gives it back by `leave` or `abandon`."""
        while True:
            if self._pause_until:
                left = self._pause_until - self._clock()
                if left > 0:
                    await asyncio.sleep(left)
                    continue
                self._pause_until = 0.0
            if self.in_flight < int(self.limit):
                self.in_flight += 1
                return
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake()
                raise

    def abandon(self) -> None:
        """Gives a slot back that was not used."""
        self.in_flight -= 1
        self._wake()

    def leave(self, rejected: bool, pause: float = 0.0) -> None:
        """Gives a slot back after an answer.

        Args:
            rejected: the endpoint said that it has too much to do (or did not answer in time).
            pause: for how many seconds nobody should call, if most answers are rejections; each further pause without
                an answer in between is twice as long, up to 64 times.
        """
        self.in_flight -= 1
        self._answers += 1
        self._rejections += rejected
        self._pauses = self._pauses if rejected else 0
        if self._answers >= max(_SMALLEST_WINDOW, int(self.limit)):
            share = self._rejections / self._answers
            grown = self.limit * (1 - share * share) + (1 - share) * max(1.0, self.ceiling / 16)
            self.limit = min(float(self.ceiling), max(1.0, grown))
            self._answers = self._rejections = 0
            # Judged by whole windows: rejections come back sooner than replies, so the first answers after a pause
            # are mostly rejections, however few there are.
            if share > _MOSTLY and pause > 0 and not self._pause_until:
                self._pause_until = self._clock() + pause * 2.0 ** min(self._pauses, 6)
                self._pauses += 1
        self._wake()

    def restart(self) -> None:
        """Begins anew with one call in flight, for an endpoint that has to prove itself."""
        self.limit = 1.0
        self._pause_until = 0.0
        self._answers = self._rejections = 0

    def _wake(self) -> None:
        free = int(self.limit) - self.in_flight
        while free > 0 and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                free -= 1
