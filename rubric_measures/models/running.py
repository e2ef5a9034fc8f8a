"""The order and parallelism of calls in one process: budgets, replies kept, prices, statistics.

The counts of a run: what was asked, what answered it, what it cost; one piece for every maker of grades.

The account of a run: what it and others paid over one cache, and what may still be paid.

The state of one run: which jobs wait for which replies, and what the backend gets next.

What models cost: price tables, and the price of a call before and after it is made.

The local runner: jobs that ask a model step by step, behind one cache, each request in flight once.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar, cast

import msgspec

from rubric_measures.base.errors import GradingError, tell, warn
from rubric_measures.base.files import path_name, read_text
from rubric_measures.base.json_text import check_keys, parse_json, typed
from rubric_measures.models.base import ATTEMPT_STEP, Backend, Reply, Request, Tally, llm_name
from rubric_measures.models.replies import ReplyCache, Spent


def tokens_in(raw: Mapping[str, Any], name: str) -> int:
    """A count of tokens that a reply keeps beside its text; 0 where it has none."""
    count = raw.get(name)
    return count if type(count) is int and count > 0 else 0


@dataclass
class RunStats:
    """Counts of one run; they only grow.

    Attributes:
        cached: requests answered from the cache.
        shared: requests answered by an equal one in flight.
        calls: requests answered by the backend.
        failed: of these, those without an answer.
        truncated: of these, those whose reply was cut; they are answers.
        redrawn: of the calls, those that drew a reply again which could not be read.
        missing: requests that were not in the cache when no call, or no further one, was allowed.
        prompt_tokens: tokens shown in calls.
        completion_tokens: tokens written in calls, thoughts included.
        reasoning_tokens: of these, those of thoughts.
        prefix_tokens: of the tokens shown, those that the endpoint had in its own cache.
        left_out: field -> replies of calls that were made without it, as the endpoint does not take it.
        cost: what the calls cost, by their price; 0 without one.
        unpriced: answers that neither cost anything nor say how many tokens they took: what they cost is unknown.
        limit: which limit on calls or cost was reached; empty when none was.
    """

    cached: int = 0
    shared: int = 0
    calls: int = 0
    failed: int = 0
    truncated: int = 0
    redrawn: int = 0
    missing: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    prefix_tokens: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    cost: float = 0.0
    unpriced: int = 0
    limit: str = ""

    @property
    def answered(self) -> int:
        """Requests that have their reply, wherever it came from."""
        return self.cached + self.shared + self.calls + self.missing

    @property
    def progress(self) -> dict[str, int]:
        """What a progress bar shows beside its length."""
        tokens = self.prompt_tokens + self.completion_tokens
        cut = {"truncated": self.truncated} if self.truncated else {}
        return {"calls": self.calls, "cached": self.cached, "failed": self.failed, **cut, "tokens": tokens}

    def __str__(self) -> str:
        counts = {"failed": self.failed, "truncated": self.truncated}
        said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return f"{self.calls or 'no'} calls{f' ({said})' if said else ''}, {self.cached} replies from the cache"


UNKNOWN_COST = "the model does not say how many tokens a call took, so its cost is unknown: limit the calls instead"


class Account:
    """What one run pays, beside what all other runs over its cache paid; both are sums over the rows of the cache.

    Args:
        runner: the cache, the limits and the price.
        stats: the counts of the run; perhaps of several one after the other.

    Attributes:
        is_limited: whether there is a limit on calls or cost.
    """

    def __init__(self, runner: LocalRunner, stats: RunStats) -> None:
        self._runner, self._stats = runner, stats
        self._limits_cost = runner.max_cost is not None
        self.is_limited = (self._limits_cost or runner.max_calls is not None) and runner.max_calls != 0
        self._store = runner.cache
        self._mark, self._final = 0, Spent()  # the last row of the cache that is in this sum
        self._paid = Spent()
        if self.is_limited:
            self._refresh()
        if self._limits_cost and self._paid.foreign:
            text = "%s has %d calls of other models without a price, which the limit on the cost counts as 0"
            warn(text, self._store.path, self._paid.foreign)

    def _refresh(self) -> None:
        """Reads what was paid."""
        runner, price = self._runner, self._runner.price or Price(0.0, 0.0)
        self._mark, final, rest = self._store.paid(self._mark, runner.backend.model, (price.input, price.output))
        self._final = self._final.plus(final)
        self._paid = self._final.plus(rest)
        if self._limits_cost and self._paid.silent:
            # An unknown cost is not 0: the limit could not be held.
            self._stats.limit = self._stats.limit or UNKNOWN_COST

    @property
    def _mean(self) -> float:
        """What a call costs on average, as far as it is known."""
        return self._paid.known_cost / self._paid.known if self._paid.known else 0.0

    def may(self) -> bool:
        """Whether another call may be made, else `RunStats.limit` says why; others cannot make one meanwhile."""
        self._refresh()
        runner, stats = self._runner, self._stats
        if stats.limit:
            return False
        if runner.max_calls is not None and self._paid.calls >= runner.max_calls:
            stats.limit = f"the limit of {runner.max_calls} calls was reached"
        # What is not known yet, and one more call, may cost what the others did.
        elif runner.max_cost is not None and self._paid.cost + self._mean * (self._paid.unknown + 1) >= runner.max_cost:
            stats.limit = f"the limit of {runner.max_cost:g} on the cost was reached"
        return not stats.limit

    @property
    def is_unsure(self) -> bool:
        """Whether a limit on the cost holds, and no call has been answered that would say what one costs.

        Then a call waits for those in flight. The longest reply is no bound, as a model's thoughts cost, too.
        """
        return self._limits_cost and self._stats.calls == self._stats.failed and not self._mean

    def put(self, request: Request, reply: Reply) -> Reply:
        """Notes and counts what came back, and returns the reply that counts; see `ReplyCache.put`."""
        shown, written, is_answer = reply.prompt_tokens, reply.completion_tokens, reply.is_answer
        price, stats = self._runner.price, self._stats
        cost = price.of(shown, written) if price is not None else 0.0
        # A call that brought neither answer nor tokens cost nothing, whatever the price.
        is_priced = price is not None if shown + written else not is_answer
        kept = self._store.put(request, reply, cost=cost if is_priced else None)
        stats.calls += 1
        stats.redrawn += request.replicate >= ATTEMPT_STEP
        stats.failed += not is_answer
        stats.truncated += is_answer and reply.status == "truncated"
        stats.prompt_tokens += shown
        stats.completion_tokens += written
        if raw := reply.raw:
            stats.reasoning_tokens += tokens_in(raw, "reasoning_tokens")
            stats.prefix_tokens += tokens_in(raw, "cached_tokens")
            left_out = raw.get("left_out")
            stats.left_out.update(map(str, left_out) if isinstance(left_out, list) else ())
        stats.cost += cost
        stats.unpriced += is_answer and not cost + shown
        return kept


K = TypeVar("K")
T = TypeVar("T")

# A job yields requests and is sent their replies in the same order, as often as it likes; then it returns its result.
# So a style that retries, verifies or cuts a passage into chunks is a plain function that reads from top to bottom.
Job = Generator[Sequence[Request], Sequence[Reply], T]
Complete = Callable[[Iterable[Request]], Iterator[tuple[Request, Reply]]]  # as a backend has it
_BLOCK = 256  # requests that are looked up in the cache together
_LEASED = 16  # calls that are taken together, at least
_LOOK_SECONDS = 0.2  # between two looks at what other processes have made
_BACKLOG = 1024  # results that may wait for their reader before the backend is given a pause


@dataclass
class _Started(Generic[K, T]):
    """A job under way: its generator, and the replies of its present step as far as they are there."""

    name: K
    generator: Job[T]
    requests: Sequence[Request] = ()
    replies: list[Reply | None] = field(default_factory=list)
    open: int = 0


class RunState(Iterator[Request], Generic[K, T]):
    """One run: its jobs, and the requests that they wait for. A backend iterates over it to get the requests.

    A backend may look at `stop`: once it is set, no call and no further attempt begins, and only requests that are in
    flight are answered.
    """

    def __init__(
        self,
        runner: LocalRunner,
        jobs: Iterator[tuple[K, Job[T]]],
        stats: RunStats,
        hold: Callable[[int], bool],
    ) -> None:
        self.runner, self.jobs, self.stats = runner, jobs, stats
        self.hold = hold
        self.stop = runner.stop or threading.Event()
        self.first: Request | None = None  # was pulled, to see whether there is one
        self.under_way = 0  # jobs that have begun and are not done
        self.exhausted = False
        self.steps: deque[_Started[K, T]] = deque()  # have asked, and nothing of it was looked up yet
        self.asked = 0  # the requests of these
        self.account = Account(runner, stats)
        self.misses: deque[Request] = deque()  # not in the cache
        self.ready: deque[Request] = deque()  # of these, those that are ours to make, not yet handed to the backend
        self.elsewhere: dict[str, Request] = {}  # and those that another process is making
        self.told_waiting = False
        self.looked = 0.0  # when it was last looked what became of these
        self.waiting: dict[str, list[tuple[_Started[K, T], int]]] = {}  # key -> who waits for its reply
        self.handed: set[str] = set()
        self.done: deque[tuple[K, T]] = deque()
        self.fault: Exception | None = None  # of the jobs, not of the model

    def __next__(self) -> Request:
        found, self.first = self.first or self.next_miss(), None
        if found is None:
            raise StopIteration
        return found

    def next_miss(self) -> Request | None:
        """The next request for the backend; None at the end, when stopped or held, or when results wait to be read."""
        while True:
            if self.stop.is_set():
                return None
            if (self.ready or self.misses) and self.stats.limit:
                self._leave_out()
            elif self.ready:
                request = self.ready.popleft()
                self.handed.add(request.key)
                return request
            elif self.misses:
                if self.handed and self.account.is_unsure:
                    return None
                self._take()
                continue
            elif self.elsewhere and time.monotonic() - self.looked > _LOOK_SECONDS:
                # Their replies may be there, or others may have given them up.
                self.looked = time.monotonic()
                self.misses.extend(self.elsewhere.values())
                self.elsewhere.clear()
                continue
            if len(self.done) > _BACKLOG:
                return None
            block = self._next_block()
            if block:
                self._look_up(block)
            else:
                return None

    def take_done(self) -> Iterator[tuple[K, T]]:
        """The results that are there."""
        if self.done and self.runner.progress:
            self.runner.progress(self.stats)
        while self.done:
            yield self.done.popleft()

    def settle(self, request: Request, reply: Reply) -> None:
        """Puts a reply into the cache and hands it to everyone who waits for it."""
        if request.key not in self.handed:  # a backend that answers twice is not paid twice
            return
        kept = self.account.put(request, reply)
        self.handed.remove(request.key)
        self._answer(request.key, kept)

    def _leave_out(self) -> None:
        """Answers the requests that may not become calls. Replies from the cache cost nothing, so the run goes on."""
        self.runner.cache.release([request.key for request in self.ready])
        self.misses.extendleft(reversed(self.ready))
        self.ready.clear()
        while self.misses:
            self.stats.missing += 1
            self._answer(self.misses.popleft().key, Reply(None, "failed", f"not asked: {self.stats.limit}"))

    def _answer(self, key: str, reply: Reply) -> None:
        for job, place in self.waiting.pop(key):
            job.replies[place] = reply
            job.open -= 1
            if not job.open:
                self._advance(job, cast(list[Reply], job.replies))

    def _take(self) -> None:
        """Takes the next requests as calls of ours; those that another process is making are waited for."""
        # What it takes is paid, whatever becomes of this process.
        size = 1 if self.account.is_limited else max(_LEASED, len(self.handed))
        wanted = [self.misses.popleft() for _ in range(min(len(self.misses), size))]
        may = self.account.may if self.account.is_limited else None
        taken, elsewhere, answered = self.runner.cache.ask(wanted, may)
        # Another process may have been done with some of them since they were looked up.
        self.stats.cached += len(answered)
        for request in wanted:
            if request.key in taken:
                self.ready.append(request)
            elif request.key in elsewhere:
                self.elsewhere[request.key] = request
            elif request.key in answered:
                self._answer(request.key, answered[request.key])
            else:
                self.misses.append(request)

    def wait_for_others(self) -> None:
        """Waits a moment where nothing is left to do but what other processes are making."""
        if not self.elsewhere or self.handed:
            return
        if not self.told_waiting:
            self.told_waiting = True
            tell("waiting for %d calls that another process over this cache is making", len(self.elsewhere))
        self.stop.wait(_LOOK_SECONDS)

    def _next_block(self) -> list[_Started[K, T]]:
        """The jobs whose requests are looked up next."""
        while self.asked < _BLOCK and not self.exhausted and not self.hold(self.under_way):
            try:
                name, generator = next(self.jobs)
            except StopIteration:
                self.exhausted = True
                break
            except Exception as error:
                self._end_with(error)
                break
            self.under_way += 1
            self._advance(_Started(name, generator), None)
            if len(self.done) > _BACKLOG:
                break
        block: list[_Started[K, T]] = []
        size = 0
        while self.steps and size < _BLOCK:
            block.append(self.steps.popleft())
            size += block[-1].open
        self.asked -= size
        return block

    def _look_up(self, block: list[_Started[K, T]]) -> None:
        cache = self.runner.cache
        stored = cache.get_many([request.key for job in block for request in job.requests])
        for job in block:
            # Inlined for what is in the cache: a re-run consists of it.
            replies = [stored.get(request.key) for request in job.requests]
            missing = [place for place, reply in enumerate(replies) if reply is None]
            job.replies, job.open = replies, len(missing)
            self.stats.cached += len(replies) - job.open
            for place in missing:
                request = job.requests[place]
                waiting = self.waiting.setdefault(request.key, [])
                waiting.append((job, place))
                if len(waiting) > 1:
                    self.stats.shared += 1
                elif self.runner.max_calls == 0:
                    if self.runner.tally is not None:
                        self.runner.tally.add(request, self.runner.backend)
                    self.stats.missing += 1
                    self._answer(request.key, Reply(None, "failed", "not in the cache, and no call is allowed"))
                else:
                    self.misses.append(request)
            if not missing:
                self._advance(job, cast(list[Reply], replies))

    def _advance(self, job: _Started[K, T], replies: Sequence[Reply] | None) -> None:
        """Lets a job take its next step; its new requests stand before those of jobs that have not begun."""
        try:
            while True:
                requests = job.generator.send(replies) if replies is not None else next(job.generator)
                if requests:
                    break
                replies = []
        except StopIteration as stop:
            self.under_way -= 1
            self.done.append((job.name, stop.value))
            return
        except Exception as error:
            self._end_with(error)
            return
        job.requests, job.open = requests, len(requests)
        self.steps.append(job)
        self.asked += len(requests)

    def _end_with(self, error: Exception) -> None:
        """Begins no further job; calls under way are paid, so they are finished and kept before the error is heard."""
        self.fault = self.fault or error
        self.exhausted = True


# A whole number of 400 digits is below infinity, and none that can be computed with.
_Sum = Annotated[float, msgspec.Meta(ge=0, le=sys.float_info.max)]


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model costs, in the user's currency for a million tokens.

    Attributes:
        input: of tokens shown.
        output: of tokens written, thoughts included.
    """

    input: _Sum
    output: _Sum

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The cost of so many tokens.

        >>> Price(2.5, 10).of(1_000_000, 100_000)
        3.5
        """
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


def load_prices(path: str | os.PathLike[str]) -> dict[str, Price]:
    """Reads a price table: JSON, `{"gpt-4o": {"input": 2.5, "output": 10}, …}`, for a million tokens.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it is no such object.
    """
    name = path_name(path)
    text = read_text(path)
    table = parse_json(text, path=name)
    check_keys(text, path=name)
    return typed(dict[str, Price], table, name)


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The price of a model by its canonical name, its name in the records, or the name with its kind; None: unknown."""
    kind = model.partition(":")[0]
    names = model, llm_name(model), f"{kind}:{llm_name(model)}"
    return next((prices[name] for name in names if name in prices), None)


@dataclass(frozen=True)
class LocalRunner:
    """Runs jobs over one backend in this process.

    Jobs are started in the order of the iterable and only as fast as the backend takes requests, so neither jobs nor
    requests pile up. Every finished call is in the cache before its result is handed on, and before `progress` hears
    of it.

    Attributes:
        backend: the model.
        cache: where replies are kept; by default in memory, as long as the runner is there.
        max_calls: make so many calls at most, those of all other runs over the cache included, killed ones too;
            what they do not answer is a failed reply that says so. With 0, whatever was paid before, what is not in
            the cache fails as that, and the cache is only read.
        max_cost: make no call that would cost more than this in all, likewise. The first call is
            waited for, as nobody knows what the model thinks; then calls are made together as long as they are within
            the limit, if each costs what the others did on average.
        price: what calls cost; needed for a limit on the cost.
        progress: is called now and then with the counts.
        stop: when it is set, no further call begins; those in flight are finished, then `KeyboardInterrupt` is raised.
        tally: where no call is made, counts those that would be.
    """

    backend: Backend
    cache: ReplyCache = field(default_factory=lambda: ReplyCache(":memory:"))
    max_calls: int | None = None
    max_cost: float | None = None
    price: Price | None = None
    progress: Callable[[RunStats], None] | None = None
    stop: threading.Event | None = None
    tally: Tally | None = None

    def run(
        self,
        jobs: Iterable[tuple[K, Job[T]]],
        stats: RunStats | None = None,
        hold: Callable[[int], bool] = lambda _: False,
    ) -> Iterator[tuple[K, T]]:
        """Runs the jobs and yields (name, result) of each as it is done, in no particular order.

        Args:
            jobs: the jobs by name.
            stats: is filled with counts.
            hold: is asked before each job, with the number of those under way; while it is true no further one begins.
                It must be false when all results were taken.

        Raises:
            BackendError: the model cannot be used at all.
            GradingError: the backend left requests unanswered.
            KeyboardInterrupt: `stop` was set.
            Exception: what the iterable of jobs or a job raised, once every call under way is finished and kept.
        """
        run = RunState(self, iter(jobs), stats if stats is not None else RunStats(), hold)
        with self.cache.leasing(), self.calling() as complete:
            # Until every job is done, and every result was taken.
            while not run.exhausted or run.steps or run.misses or run.ready or run.waiting or run.done:
                run.first = run.next_miss()
                yield from run.take_done()
                if run.first is None:
                    if run.stop.is_set():
                        raise KeyboardInterrupt
                    run.wait_for_others()
                    continue
                for request, reply in complete(run):
                    run.settle(request, reply)
                    yield from run.take_done()
                if run.handed and not run.stop.is_set():
                    text = f"{len(run.handed)} requests were not answered; run the command again"
                    raise GradingError(f"{self.backend.model}: {text}")
            if run.fault:
                raise run.fault

    @contextlib.contextmanager
    def calling(self) -> Iterator[Complete]:
        """What makes the calls of one run: all in which runners differ."""
        yield self.backend.complete
