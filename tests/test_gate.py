"""The gate: arithmetic of its limit, the common pause, and that no slot is ever lost."""

from __future__ import annotations

import asyncio

import pytest

from rubric_measures.backends.gate import Gate


def answer(gate: Gate, *rejected: bool, pause: float = 0.0) -> None:
    """Calls that enter and leave one after the other, at a moment when nobody waits."""
    for one in rejected:
        gate.in_flight += 1
        gate.leave(one, pause)


def test_the_limit_moves_once_a_window() -> None:
    gate = Gate(32)
    answer(gate, *[True] * 8, *[False] * 23)
    assert gate.limit == 32
    # 8 of 32 rejected, s = 1/4: 32 * (1 - 1/16) + 3/4 * 32/16 = 30 + 1.5
    answer(gate, False)
    assert gate.limit == pytest.approx(31.5)
    # A window of 31 with all rejected: 31.5 * 0 + 0, but at least 1.
    answer(gate, *[True] * 31)
    assert gate.limit == 1
    # Then windows of four; without rejections 1 + 2, 3 + 2.
    answer(gate, *[False] * 8)
    assert gate.limit == 5


def test_the_limit_stays_at_most_the_ceiling() -> None:
    gate = Gate(4)
    answer(gate, *[False] * 40)
    assert gate.limit == 4


@pytest.mark.parametrize(("share", "low"), [(5, 64), (2, 6)])
def test_random_rejections_do_not_close_it(share: int, low: float) -> None:
    gate = Gate(64)
    # Every fifth: 64 * (1 - 1/25) + 4/5 * 4 = 64.6, so it stays. Every second: x/4 = 2 gives x = 8.
    for number in range(5000):
        answer(gate, number % share == 0)
    assert low <= gate.limit <= 64


def test_everyone_pauses_only_after_mostly_rejections() -> None:
    now = [100.0]
    gate = Gate(4, clock=lambda: now[0])
    answer(gate, True, True, False, False, pause=5)
    assert gate._pause_until == 0
    answer(gate, True, True, True, False, True, True, True, True, pause=5)
    # 4 of 4 in the second window; the answer before it ended the row of pauses.
    assert gate._pause_until == 105
    now[0] = 105.5

    async def enter() -> None:
        await asyncio.wait_for(gate.enter(), 1)

    asyncio.run(enter())
    answer(gate, True, True, True, pause=5)
    gate.leave(True, 5)
    # The second pause in a row is twice as long.
    assert gate._pause_until == 105.5 + 10


def test_slots_are_bounded_and_none_is_lost() -> None:
    async def run() -> tuple[int, int]:
        gate, most, done = Gate(5), 0, 0

        async def call(number: int) -> None:
            nonlocal most, done
            await gate.enter()
            most = max(most, gate.in_flight)
            await asyncio.sleep(0)
            if number % 7 == 0:
                gate.abandon()
            else:
                gate.leave(number % 3 == 0)
            done += 1

        tasks = [asyncio.create_task(call(number)) for number in range(500)]
        await asyncio.sleep(0)
        # Those who go while they wait must not take a slot with them.
        for task in tasks[100:200]:
            task.cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
        assert gate.in_flight == 0
        return most, done

    assert asyncio.run(run()) == (5, 400)
