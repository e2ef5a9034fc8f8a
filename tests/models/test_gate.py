"""The gate, in virtual time: rate limits are met and kept, random rejections let pass, no slot is lost."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from dataclasses import dataclass

import pytest

from rubric_measures.models.calling import Gate
from tests.virtual_time import clock, run


@dataclass
class Limits:
    """What an endpoint lets pass: calls per second after a burst, calls at once, calls a minute, all but a share."""

    delay: float = 0.05
    rate: float = 0.0
    burst: float = 5.0
    at_once: int = 0
    a_minute: int = 0
    random: float = 0.0
    asks: float = 0.0


class Endpoint:
    """Turns calls away, and says so within 2 ms; other calls take about `delay` seconds."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.draw = limits, random.Random(1)
        self.tokens, self.refilled = limits.burst, clock()
        self.rejected = self.answered = self.busy = self.minute = self.used = 0

    def turns_away(self) -> bool:
        limits = self.limits
        if (limits.random and self.draw.random() < limits.random) or (limits.at_once and self.busy >= limits.at_once):
            return True
        now = clock()
        if limits.a_minute:
            self.used = self.used if now // 60 == self.minute else 0
            self.minute = int(now // 60)
            if self.used == limits.a_minute:
                return True
            self.used += 1
        if limits.rate:
            self.tokens = min(limits.burst, self.tokens + (now - self.refilled) * limits.rate)
            self.refilled = now
            if self.tokens < 1 - 1e-9:
                return True
            self.tokens -= 1
        return False

    async def call(self) -> bool:
        if self.turns_away():
            self.rejected += 1
            await asyncio.sleep(0.002)
            return False
        self.busy += 1
        await asyncio.sleep(self.limits.delay * self.draw.uniform(0.8, 1.2))
        self.busy -= 1
        self.answered += 1
        return True


async def grade(calls: int, limits: Limits, ceiling: int = 64) -> tuple[float, int]:
    """Makes so many calls as the engine does: seconds and rejections."""
    endpoint, gate, loop = Endpoint(limits), Gate(ceiling, clock), asyncio.get_running_loop()
    line, waiting = deque([0] * calls), asyncio.Semaphore(calls)

    def again(attempt: int) -> None:
        line.appendleft(attempt)
        waiting.release()

    async def work() -> None:
        while True:
            await waiting.acquire()
            if endpoint.answered == calls:
                break
            window = await gate.enter()
            attempt = line.popleft()
            if await endpoint.call():
                gate.leave(window, False)
                if endpoint.answered == calls:
                    break
                continue
            rest = 60 - clock() % 60 if limits.a_minute and limits.asks else 0.0
            wait = rest or limits.asks or 0.5 * 2 ** min(attempt, 4)
            wait *= endpoint.draw.uniform(1.0, 1.05) if limits.asks else endpoint.draw.uniform(0.5, 1.0)
            gate.leave(window, True, wait, asked=bool(limits.asks))
            loop.call_later(wait, again, attempt + 1)
        waiting.release()

    await asyncio.gather(*(work() for _ in range(ceiling)))
    assert gate.in_flight == 0
    return clock(), endpoint.rejected


@pytest.mark.parametrize(
    ("calls", "limits", "share"),
    [
        (2000, Limits(rate=100, asks=1), 0.85),
        (1000, Limits(rate=20, delay=0.5, burst=20, asks=2), 0.8),
        (1000, Limits(rate=8, delay=5, burst=60, asks=20), 0.7),
        (10000, Limits(rate=1000, burst=100, asks=1), 0.8),
        (2000, Limits(rate=100, burst=20, asks=1, random=0.1), 0.7),
        # One by one and no faster: a call that comes a little too early is turned away, and the pace with it halved.
        (200, Limits(rate=1, burst=1, delay=1, asks=5), 0.6),
        # What is saved up at the beginning is no reason to take rejections for random ones.
        (1000, Limits(rate=5), 0.9),
    ],
)
def test_a_rate_limit_is_met_and_kept(calls: int, limits: Limits, share: float) -> None:
    seconds, rejected = run(grade(calls, limits))
    assert seconds < (calls - limits.burst) / limits.rate / share
    # Beside what comes at once before anything is known, few calls are made in vain.
    assert rejected < 300 + 0.2 * calls / (1 - limits.random)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_random_rejections_slow_nobody_down(share: float) -> None:
    seconds, _ = run(grade(8000, Limits(random=share, asks=1)))
    # At best 64 calls a 50 ms; besides, a second for each time that an unlucky call is turned away.
    assert seconds < 8000 / (1 - share) * 0.05 / 64 * 1.5 + 8


def test_slots_are_bounded_and_none_is_lost() -> None:
    async def scenario() -> tuple[int, int, int]:
        gate, most, done = Gate(5, clock), 0, 0

        async def call(number: int) -> None:
            nonlocal most, done
            window = await gate.enter()
            most = max(most, gate.in_flight)
            await asyncio.sleep(0.01)
            gate.leave(window, number % 3 == 0, 0.1)
            done += 1

        tasks = [asyncio.create_task(call(number)) for number in range(500)]
        await asyncio.sleep(0.05)
        # Those who go while they wait, for a slot or for their turn, must not take it with them.
        gone = sum(task.cancel() for task in tasks[100:200])
        await asyncio.gather(*tasks, return_exceptions=True)
        assert gate.in_flight == 0
        return most, done, gone

    most, done, gone = run(scenario())
    assert most == 5
    assert (done, gone) == (400, 100)
