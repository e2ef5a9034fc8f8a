"""The gate in front of an endpoint: how many calls may be in flight, how fast they begin, when all of them wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from math import inf, sqrt

__all__ = ["Gate"]

_SPAN = 0.5  # seconds that a window takes at least
_FEW, _OVERLOAD = 0.15, 0.7  # shares of rejections
_BELOW = 0.95
_GROWTH = 1.1
_ALIKE = 2  # cuts of the pace that changed nothing
_LOOK_AGAIN = 0.25  # seconds


class Gate:
    """One shared limit for an endpoint's calls: a ceiling of calls in flight, and a pace once calls are turned away.

    Answers are judged in windows of half a second or more. With s the share of rejections in a window (less what
    chance may do) and g the calls per second that were not turned away:

    - s > 0.15: the pace becomes 0.95 g, so that the next calls begin one by one, as fast as the endpoint takes them.
    - else the pace grows by a tenth. When nobody had to wait for it, there is none.
    - s is as high after cuts as before: the endpoint rejects at random. Then there is no pace, and so much is let pass.
    - s > 0.7: everyone pauses for as long as the endpoint asked; where it did not say, each further pause without an
      answer in between is twice as long, up to 64 times.

    A rejected call waits by itself, and is no reason for the others to wait. Used from one event loop only.
    """

    def __init__(self, ceiling: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.ceiling = ceiling
        self.in_flight = 0
        self._clock = clock
        self._turn = asyncio.Lock()
        self._free = asyncio.Event()
        self._last_start = -inf
        self._window = self._pauses = 0
        self.limit = float(ceiling)
        self.pace = inf
        self._pause_until = 0.0
        self._few = _FEW
        self._share_before, self._alike = 0.0, 0  # rejections at the last cut; cuts in a row that changed nothing
        self._begin_window()

    def open(self) -> None:
        """Ends a trial with a lower `limit`: as many calls may be in flight as the ceiling says."""
        self.limit = float(self.ceiling)
        self._free.set()

    async def enter(self) -> int:
        """Waits, first come first served, for a slot and a turn; the caller gives them back by `leave`.

        Returns:
            the number of the window in which the call begins, for `leave`.
        """
        async with self._turn:
            while True:
                now = self._clock()
                if self._pause_until and now >= self._pause_until:
                    self._pause_until = 0.0
                    self._begin_window()
                next_start = self._last_start + 1 / self.pace
                left = max(self._pause_until, next_start) - now
                if self.in_flight >= int(self.limit):
                    self._free.clear()
                    await self._free.wait()
                elif left > 0:
                    self._delayed += 1
                    # The pace may be raised, or a pause begin, in the meantime.
                    await asyncio.sleep(min(left, _LOOK_AGAIN))
                else:
                    break
            # Late sleepers may catch up a little, so that a high pace is kept.
            self._last_start = max(next_start, now - _LOOK_AGAIN / 10)
            self.in_flight += 1
            self._started += 1
            return self._window

    def leave(self, window: int, rejected: bool, pause: float = 0.0, *, asked: bool = False) -> None:
        """Gives a slot back after an answer; `window` is what `enter` returned.

        A rejection says that the endpoint has too much to do (or did not answer in time). If most answers are
        rejections, nobody calls for `pause` seconds, which the endpoint `asked` for or not.
        """
        if not rejected:
            self._pauses = 0
            self.limit = min(float(self.ceiling), self.limit + 1)
        # Calls that began earlier say nothing about the pace of now.
        if window == self._window and not self._pause_until:
            self._answers += 1
            self._rejections += rejected
            if self._is_enough():
                self._judge(pause, asked)
                self._begin_window()
        self.in_flight -= 1
        self._free.set()

    def _begin_window(self) -> None:
        self._window += 1
        self._window_from = self._clock()
        self._answers = self._rejections = self._started = self._delayed = 0

    def _is_enough(self) -> bool:
        """Whether the window is at its end. A few rejections among a few answers may be an accident."""
        elapsed = self._clock() - self._window_from
        if self.pace == inf:
            # Where most calls are turned away at once, half a second is too long.
            return self._answers >= max(4, int(self.limit)) and (
                elapsed >= _SPAN or self._rejections > 0.4 * self._started
            )
        is_clear = not self._rejections or self._rejections > _OVERLOAD * self._started
        return elapsed >= _SPAN and self._answers >= (4 if is_clear else 16)

    def _judge(self, pause: float, asked: bool) -> None:
        # Rejections come back sooner than replies: what has no answer yet counts as accepted.
        share = self._rejections / self._started
        if self._rejections <= self._few * self._started + sqrt(self._started) / 4:
            self._speed_up()
        else:
            self._slow_down(share)
        if share > _OVERLOAD and pause > 0:
            self._pause_until = self._clock() + (pause if asked else pause * 2.0 ** min(self._pauses, 6))
            self._pauses += 1

    def _slow_down(self, share: float) -> None:
        accepted = (self._started - self._rejections) / max(self._clock() - self._window_from, _SPAN)
        if self.pace == inf:
            # The first answers say little about the rate; it is found from below.
            self.pace = max(_BELOW * accepted, self.ceiling / 8)
            self._share_before, self._few = 0.0, _FEW
        elif share > _OVERLOAD:
            # Where nothing is taken, nobody knows what will be after the pause: at least one call a second tells.
            self.pace = _BELOW * accepted or max(1.0, self.pace / 2)
            self._share_before, self._few = 0.0, _FEW
        elif self._is_random(share):
            self.pace, self._few = inf, _OVERLOAD
        else:
            self.pace = _BELOW * accepted

    def _is_random(self, share: float) -> bool:
        """Whether rejections are as frequent as before the pace was cut, again and again: then it is not the cause."""
        self._alike = self._alike + 1 if 0 < self._share_before <= 2 * share else 0
        self._share_before = share
        return self._alike >= _ALIKE

    def _speed_up(self) -> None:
        self._share_before = 0.0
        if not self._delayed:
            self.pace = inf  # nobody had to wait for it
        else:
            if not self._rejections:
                self._few = _FEW
            self.pace *= _GROWTH
