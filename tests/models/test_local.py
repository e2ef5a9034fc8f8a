"""The local runner: cache first, equal requests once, jobs step by step, limits; its gate, in virtual time."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from rubric_measures.base.errors import GradingError, InputError
from rubric_measures.models.base import Reply, Request
from rubric_measures.models.calling import Gate
from rubric_measures.models.replies import ReplyCache
from rubric_measures.models.running import Job, LocalRunner, Price, RunStats
from rubric_measures.models.settings import Calls
from rubric_measures.types.scales import Message
from tests.virtual_time import clock, run


@dataclass
class Echo:
    """Replies with the text that it is shown, in blocks of `window`, last request first."""

    window: int = 1
    seen: list[str] = field(default_factory=list)
    failing: frozenset[str] = frozenset()
    cut: frozenset[str] = frozenset()
    tokens: tuple[int, int] = (3, 1)

    model = "echo"
    options: Mapping[str, object] = field(default_factory=dict)
    context_tokens = None

    def count_tokens(self, text: str) -> int:
        return len(text)

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        source = iter(requests)
        while True:
            block = list(itertools.islice(source, self.window))
            if not block:
                return
            for request in reversed(block):
                text = request.messages[0].content
                self.seen.append(text)
                if text in self.failing:
                    yield request, Reply(None, "failed", "lost")
                elif text in self.cut:
                    yield request, Reply(text, "truncated", "cut", *self.tokens)
                else:
                    yield request, Reply(text, "ok", "", *self.tokens)


def flat(cost: float) -> Price:
    """Every call costs the same, for the one token of its reply."""
    return Price(0, cost * 1e6)


def ask(text: str, replicate: int = 0) -> Request:
    return Request("echo", (Message("user", text),), replicate=replicate)


def once(text: str) -> Job[str | None]:
    [reply] = yield [ask(text)]
    return reply.text


def twice(text: str) -> Job[list[str | None]]:
    """Asks two things, then one that depends on the replies, then nothing."""
    first, second = yield [ask(text), ask(text + "!")]
    [third] = yield [ask(f"{first.text}{second.text}")]
    nothing = yield []
    assert nothing == []
    return [first.text, second.text, third.text]


def test_cut_replies_are_paid_once_and_are_no_failures() -> None:
    """Replies longer than allowed are the rule with models that explain themselves; their grades were read."""
    stats, again = RunStats(), RunStats()
    with ReplyCache(":memory:") as cache:
        echo = Echo(window=2, cut=frozenset("abcde"))
        runner = LocalRunner(echo, cache, max_cost=100, price=flat(2))
        first = dict(runner.run(((text, once(text)) for text in "abcdef"), stats))
        second = dict(LocalRunner(echo, cache, max_calls=0).run(((text, once(text)) for text in "abcdef"), again))
    assert first == second == {text: text for text in "abcdef"}
    # The first call tells the cost, though it was cut; then two at a time are asked, and answered last one first.
    assert echo.seen == ["a", "c", "b", "e", "d", "f"]
    assert (stats.calls, stats.failed, stats.truncated, stats.cost) == (6, 0, 5, 12.0)
    assert str(stats) == "6 calls (5 truncated), 0 replies from the cache"
    assert stats.progress == {"calls": 6, "cached": 0, "failed": 0, "truncated": 5, "tokens": 24}
    assert (again.calls, again.cached, again.missing) == (0, 6, 0)


def test_the_limit_on_calls_keeps_what_is_done() -> None:
    with ReplyCache(":memory:") as cache:
        cache.put(ask("f"), Reply("f"))
        echo, stats = Echo(window=4), RunStats()
        results = dict(LocalRunner(echo, cache, max_calls=3).run(((text, once(text)) for text in "abcdef"), stats))
        assert sorted(echo.seen) == ["a", "b", "c"]
        # What the cache answers costs nothing, so it is taken after the limit as well.
        assert results == {"a": "a", "b": "b", "c": "c", "d": None, "e": None, "f": "f"}
        assert (stats.calls, stats.cached, stats.missing) == (3, 1, 2)
        assert stats.limit == "the limit of 3 calls was reached"
        # The cache's ledger has the three calls: the same limit allows no further one, a higher one goes on.
        rest, stats = Echo(), RunStats()
        dict(LocalRunner(rest, cache, max_calls=3).run(((text, once(text)) for text in "abcdef"), stats))
        assert (rest.seen, stats.missing) == ([], 2)
        assert stats.limit == "the limit of 3 calls was reached"
        results = dict(LocalRunner(rest, cache, max_calls=5).run((text, once(text)) for text in "abcdef"))
    assert rest.seen == ["d", "e"]
    assert results == {text: text for text in "abcdef"}


@pytest.mark.parametrize("window", [1, 100])
def test_the_limit_on_cost_stops_before_it_is_passed(window: int) -> None:
    # Every call costs 2; after two calls 4 are spent, the next is expected to cost 2, and 4 + 2 >= 5. Before the first
    # reply nobody knows what a call costs, so that a backend of many calls at a time begins with one.
    echo = Echo(window)
    stats = RunStats()
    with ReplyCache(":memory:") as cache:
        runner = LocalRunner(echo, cache, max_cost=5, price=flat(2))
        results = dict(runner.run(((text, once(text)) for text in "abcdef"), stats))
    assert echo.seen == ["a", "b"]
    assert results == {"a": "a", "b": "b", **dict.fromkeys("cdef")}
    assert (stats.limit, stats.missing) == ("the limit of 5 on the cost was reached", 4)


def test_a_cost_that_nobody_knows_is_not_0() -> None:
    # The replies carry no counts of tokens, so a price a token cannot say what they cost.
    echo, stats = Echo(tokens=(0, 0)), RunStats()
    runner = LocalRunner(echo, max_cost=5, price=flat(2))
    results = dict(runner.run(((text, once(text)) for text in "abc"), stats))
    assert (results, stats.missing) == ({"a": "a", "b": None, "c": None}, 2)
    assert "its cost is unknown: limit the calls instead" in stats.limit
    with pytest.raises(InputError, match="max_calls is -1; expected a number from 0"):
        Calls(max_calls=-1)


def test_stop_finishes_what_is_in_flight() -> None:
    stop = threading.Event()
    with ReplyCache(":memory:") as cache:
        runner = LocalRunner(Echo(window=4), cache, stop=stop)
        results = runner.run((text, once(text)) for text in "abcdefgh")
        next(results)
        stop.set()
        with pytest.raises(KeyboardInterrupt):
            list(results)
        assert len(cache) == 4


@pytest.mark.parametrize("window", [1, 7, 100])
def test_calls_under_way_are_kept_when_the_input_turns_out_wrong(window: int) -> None:
    def jobs() -> Iterator[tuple[int, Job[list[str]]]]:
        yield from ((number, twice(f"{number}.")) for number in range(20))
        raise InputError("line 21 is wrong")

    taken = []
    with ReplyCache(":memory:") as cache:
        echo = Echo(window)
        with pytest.raises(InputError, match="line 21 is wrong"):
            taken += list(LocalRunner(echo, cache).run(jobs()))
        # Two calls, then a third one, for each of the 20 jobs.
        assert (len(cache), len(echo.seen)) == (60, 60)


def test_a_backend_that_answers_twice_is_paid_once() -> None:
    class Twice(Echo):
        def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
            return (answer for answer in super().complete(requests) for _ in range(2))

    stats = RunStats()
    results = dict(LocalRunner(Twice(), max_cost=100, price=flat(2)).run(((text, once(text)) for text in "abc"), stats))
    assert (results, stats.calls, stats.cost) == ({text: text for text in "abc"}, 3, 6)


def test_a_backend_that_forgets_requests_is_found_out() -> None:
    class Forgetful(Echo):
        def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
            for number, request in enumerate(requests):
                if number != 1:
                    yield request, Reply("x")

    with pytest.raises(GradingError, match="1 request was not answered"):
        list(LocalRunner(Forgetful()).run((text, once(text)) for text in "abc"))


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
