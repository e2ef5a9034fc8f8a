"""The gate in front of an endpoint: how many calls may be in flight, how fast they begin, when all of them wait."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from math import inf

__all__ = ["Gate"]

_SMALLEST_WINDOW = 4  # answers
_SPAN = 0.5  # seconds that a window takes at least once the pace is set
_SURE = 16  # answers, some of which were rejections
_FEW = 0.15  # with fewer rejections than this, nobody slows down
_MANY = 0.4
_OVERLOAD = 0.7  # with more rejections than this, they are no accident
_DISBELIEF = 60.0  # seconds for which rejections at random change nothing
_LOOK_AGAIN = 0.25  # seconds
_LONGEST_HOLD = 16  # windows
_ALIKE = 2  # cuts of the pace that changed nothing, before they are taken for no matter of the pace
_BELOW, _FASTER = 0.95, 0.05


class Gate:
    """One shared limit for an endpoint's calls: a ceiling of calls in flight, and a pace once calls are turned away.

    Answers are judged in windows (as many answers as calls may be in flight, at least four; with a pace, half a second
    or more). With s the share of rejections in a window and g the calls per second that were not turned away:

    - s >= 0.15: the pace becomes 0.95 g, so that the next calls begin one by one, as fast as the endpoint takes them
      (at first an eighth of the ceiling a second at least; where nothing is taken, half of the pace).
      Where a slower pace turned nobody away, it is that one again, kept for two windows, then six, then up to sixteen:
      an endpoint that saves nothing up turns every other call away as soon as they come a little too fast.
    - s < 0.15: the pace is 1.05 times as high, then 1.1, then 1.2 times; twice as high while it is below half of the
      last g. When nobody had to wait for it, there is no pace any more.
    - s does not fall by half under two lower paces (and is at most 0.7): the endpoint rejects at random, whatever the
      pace. Then there is none, and rejections are let pass for a minute.
    - s > 0.7: everyone pauses for as long as the endpoint asked; where it did not say, each further pause without an
      answer in between is twice as long, up to 64 times.

    A rejected call waits by itself, and is no reason for the others to wait. Used from one event loop only.

    Args:
        ceiling: the most calls in flight, at least 1.
        clock: seconds, for tests.
    """

    def __init__(self, ceiling: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.ceiling = ceiling
        self.limit = float(ceiling)
        self.pace = inf
        self.in_flight = 0
        self._clock = clock
        self._pause_until = 0.0
        self._last_start = -inf
        self._turn = asyncio.Lock()
        self._capacity = 0.0
        self._clean = 0
        self._share_before = 0.0
        self._good = 0.0  # the pace of the last window in which few calls were turned away
        self._hold = self._held = 0  # windows to stay with it: at the last fall, and still
        self._believe_from = self._sure_until = 0.0
        self._alike = 0  # cuts in a row that changed nothing
        self._pauses = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._window = 0
        self._begin_window()

    async def enter(self) -> int:
        """Waits for a slot and takes it; the caller gives it back by `leave` or `abandon`.

        Returns:
            the number of the window in which the call begins, for `leave`.
        """
        while self.in_flight >= int(self.limit):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake()
                raise
        self.in_flight += 1
        try:
            await self._take_turn()
        except asyncio.CancelledError:
            self.in_flight -= 1
            self._wake()
            raise
        self._started += 1
        return self._window

    async def _take_turn(self) -> None:
        """Waits, first come first served, until no pause holds and the pace lets the next call begin."""
        async with self._turn:
            while True:
                now = self._clock()
                if self._pause_until and now >= self._pause_until:
                    self._pause_until = 0.0
                    self._begin_window()
                left = max(self._pause_until, self._next_start) - now
                if left <= 0:
                    break
                self._delayed += 1
                # The pace may be raised, or a pause begin, in the meantime.
                await asyncio.sleep(min(left, _LOOK_AGAIN))
            # Late sleepers may catch up a little, so that a high pace is kept.
            self._last_start = max(self._next_start, now - _LOOK_AGAIN / 10)

    @property
    def _next_start(self) -> float:
        return self._last_start + 1 / self.pace

    def abandon(self, window: int) -> None:
        """Gives a slot and a turn back that were not used; `window` is what `enter` returned."""
        self.in_flight -= 1
        self._last_start -= 1 / self.pace
        if window == self._window:
            self._started -= 1
        self._wake()

    def leave(self, window: int, rejected: bool, pause: float = 0.0, *, asked: bool = False) -> None:
        """Gives a slot back after an answer.

        Args:
            window: what `enter` returned.
            rejected: the endpoint said that it has too much to do (or did not answer in time).
            pause: for how many seconds nobody should call, if most answers are rejections.
            asked: the endpoint itself said how long.
        """
        self.in_flight -= 1
        if not rejected:
            self._pauses = 0
            self.limit = min(float(self.ceiling), self.limit + 1)
        elapsed = self._clock() - self._window_from
        # Calls that began earlier say nothing about the pace of now.
        if window == self._window:
            self._answers += 1
            self._rejections += rejected
            if self._is_enough(elapsed) and not self._pause_until:
                self._judge(elapsed, pause, asked)
                self._begin_window()
        self._wake()

    def _is_enough(self, elapsed: float) -> bool:
        """Whether the window is at its end. A few rejections among a few answers may be an accident."""
        if self.pace == inf and self._clock() >= self._believe_from:
            # Where most calls are turned away at once, half a second is too long.
            settled = elapsed >= _SPAN or self._rejections >= _MANY * self._started
            return settled and self._answers >= max(_SMALLEST_WINDOW, int(self.limit))
        many = _MANY if 0 < self._good < self.pace else _OVERLOAD
        is_clear = not self._rejections or self._rejections > many * self._started
        least = _SMALLEST_WINDOW if is_clear and self.pace < inf else _SURE
        return elapsed >= _SPAN and self._answers >= least

    def _begin_window(self) -> None:
        self._window += 1
        self._window_from = self._clock()
        self._answers = self._rejections = self._started = self._delayed = 0

    def _judge(self, elapsed: float, pause: float, asked: bool) -> None:
        was_open = self.pace == inf
        # Rejections come back sooner than replies: of the first answers most are rejections, however few there are. So
        # what has no answer yet counts as accepted.
        share = self._rejections / self._started
        accepted = (self._started - self._rejections) / max(elapsed, _SPAN)
        if share < _FEW:
            self._speed_up()
        elif share <= _OVERLOAD and self._is_accident(share):
            self.pace, self._share_before, self._alike = inf, 0.0, 0
            self._believe_from = self._clock() + _DISBELIEF
        elif share > _OVERLOAD or self._clock() >= self._believe_from:
            if self._clock() < self._believe_from:  # it was no accident
                self._believe_from = 0.0
                self._sure_until = self._clock() + _DISBELIEF
            self._clean = 0
            is_probe = self._good > _BELOW * accepted and self._good < self.pace and share <= _OVERLOAD
            if was_open:
                # The first answers say little about the rate; it is found from below.
                self.pace = max(_BELOW * accepted, self.ceiling / 8)
            elif is_probe:
                # Back to what went well before, and the longer the more often a faster pace does not.
                self.pace = self._good
                self._held = self._hold = min(_LONGEST_HOLD, 2 * self._hold + 2)
            else:
                # Where nothing is taken, nobody knows what will be after the pause: at least one call a second tells.
                self.pace = _BELOW * accepted or max(1.0, self.pace / 2)
                self._good = 0.0
            self._share_before = 0.0 if was_open or is_probe or share > _OVERLOAD else share
            if was_open:
                self._capacity = inf
            elif share <= _OVERLOAD:
                self._capacity = accepted  # more rejections than that say that nothing goes now, and nothing of later
        if share > _OVERLOAD and pause > 0:
            self._pause_until = self._clock() + (pause if asked else pause * 2.0 ** min(self._pauses, 6))
            self._pauses += 1

    def _is_accident(self, share: float) -> bool:
        """Whether rejections stay as frequent as before the pace was cut: then they do not come from it."""
        if not 0 < self._share_before <= 2 * share or self._clock() < self._sure_until:
            self._alike = 0
            return False
        # The first cut may have been too small: it goes by what was accepted, and that may have been saved up.
        self._alike += 1
        return self._alike >= _ALIKE

    def _speed_up(self) -> None:
        self._share_before = 0.0
        if self.pace == inf:
            return
        if not self._delayed:
            self.pace = inf  # nobody had to wait for it
            self._good = 0.0
            return
        if not self._rejections:
            self._hold = self._hold if self.pace <= self._good else 0
            self._good = self.pace
        if self._held:
            self._held -= 1
        else:
            self.pace *= 2 if self.pace < self._capacity / 2 else 1 + _FASTER * 2.0 ** min(self._clean, 2)
            self._clean += 1

    def restart(self) -> None:
        """Begins anew with one call in flight, for an endpoint that has to prove itself; each answer adds one."""
        self.limit = 1.0
        self.pace = inf
        self._pause_until = self._share_before = self._believe_from = self._good = 0.0
        self._begin_window()

    def _wake(self) -> None:
        free = int(self.limit) - self.in_flight
        while free > 0 and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                free -= 1
