"""The local runner: jobs that ask a model step by step, behind one cache, each request in flight once."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar, cast

from rubric_measures.backends.base import Backend, Reply, Request
from rubric_measures.backends.replies.cache import ReplyCache
from rubric_measures.base.errors import GradingError, InputError, RejectedError
from rubric_measures.runners._stats import RunStats

__all__ = ["Job", "LocalRunner", "Pricing", "RunState", "RunStats"]

K = TypeVar("K")
T = TypeVar("T")

# A job yields requests and is sent their replies in the same order, as often as it likes; then it returns its result.
# So a style that retries, verifies or cuts a passage into chunks is a plain function that reads from top to bottom.
Job = Generator[Sequence[Request], Sequence[Reply], T]

_BLOCK = 256  # requests that are looked up in the cache together
_BACKLOG = 1024  # results that may wait for their reader before the backend is given a pause


class Pricing(Protocol):
    """What a model costs, for limits and counts."""

    def of_reply(self, reply: Reply) -> float:
        """The cost of a call, by the tokens that its reply reports."""
        ...

    def most_of(self, request: Request) -> float:
        """What a call can cost at most, before it is made; infinity where nobody can say."""
        ...


@dataclass
class _Started(Generic[K, T]):
    """A job under way: its generator, and the replies of its present step as far as they are there."""

    name: K
    generator: Job[T]
    requests: Sequence[Request] = ()
    replies: list[Reply | None] = field(default_factory=list)
    open: int = 0


@dataclass(frozen=True)
class LocalRunner:
    """Runs jobs over one backend in this process.

    Jobs are started in the order of the iterable and only as fast as the backend takes requests, so neither jobs nor
    requests pile up. Every finished call is in the cache before its result is handed on, and before `progress` hears
    of it.

    Attributes:
        backend: the model.
        cache: where replies are kept; None keeps none.
        cache_only: make no call; what is not in the cache fails.
        max_calls: make so many calls at most; what they do not answer is a failed reply that says so.
        max_cost: make no call that would cost more than this in all, likewise. Until a first call was answered, calls
            are made together only as long as the most that they can cost is within the limit (one is always made);
            then as long as they are, if each costs what the others did on average.
        price: what calls cost; needed for `max_cost`.
        progress: is called now and then with the counts.
        stop: when it is set, no further call begins; those in flight are finished, then `KeyboardInterrupt` is raised.
    """

    backend: Backend
    cache: ReplyCache | None = None
    cache_only: bool = False
    max_calls: int | None = None
    max_cost: float | None = None
    price: Pricing | None = None
    progress: Callable[[RunStats], None] | None = None
    stop: threading.Event | None = None

    def __post_init__(self) -> None:
        if self.max_calls is not None and self.max_calls < 0:
            raise InputError(f"the limit of {self.max_calls} calls is below 0")

    def run(
        self,
        jobs: Iterable[tuple[K, Job[T]]],
        stats: RunStats | None = None,
        hold: Callable[[], bool] | None = None,
    ) -> Iterator[tuple[K, T]]:
        """Runs the jobs and yields (name, result) of each as it is done, in no particular order.

        Args:
            jobs: the jobs by name.
            stats: is filled with counts.
            hold: is asked before each job; while it is true no further one begins, and those under way are finished. It
                must be false when all results were taken.

        Raises:
            BackendError: the model cannot be used at all. Where an endpoint only accepts no call, and the cache has
                replies or some came before, the calls fail instead.
            GradingError: the backend left requests unanswered.
            KeyboardInterrupt: `stop` was set.
            Exception: what the iterable of jobs or a job raised, once every call under way is finished and kept.
        """
        return self._ask(RunState(self, iter(jobs), stats if stats is not None else RunStats(), hold))

    def _ask(self, run: RunState[K, T]) -> Iterator[tuple[K, T]]:
        """Makes the calls of a run: all in which runners differ; see `run`."""
        while True:
            request = run.next_miss()
            yield from run.take_done()
            if request is None:
                if run.stopped:
                    raise KeyboardInterrupt
                if run.finished:
                    run.raise_fault()
                    return
                continue
            try:
                for asked, reply in self.backend.complete(run.feed(request)):
                    run.settle(asked, reply)
                    yield from run.take_done()
            except RejectedError as error:
                run.reject(error)
                run.give_up(str(error))
            if run.handed:
                raise GradingError(
                    f"{self.backend.model}: {len(run.handed)} requests were not answered; run the command again"
                )


def _never() -> bool:
    return False


class RunState(Generic[K, T]):
    """The state of one run, for runners. A backend may pull requests from a thread of its own, hence the lock."""

    def __init__(
        self,
        runner: LocalRunner,
        jobs: Iterator[tuple[K, Job[T]]],
        stats: RunStats,
        hold: Callable[[], bool] | None = None,
    ) -> None:
        self.runner, self.jobs, self.stats = runner, jobs, stats
        self.hold = hold if hold is not None else _never
        self.lock = threading.RLock()
        self.exhausted = False
        self.steps: deque[_Started[K, T]] = deque()  # have asked, and nothing of it was looked up yet
        self.asked = 0  # the requests of these
        self.misses: deque[Request] = deque()  # not in the cache, not yet handed to the backend
        self.waiting: dict[str, list[tuple[_Started[K, T], int]]] = {}  # key -> who waits for its reply
        self.handed: set[str] = set()
        self.reserved = 0.0  # the most that these can cost, where there is a limit on the cost
        self.done: deque[tuple[K, T]] = deque()
        self.stopped = False
        self.fault: Exception | None = None  # of the jobs, not of the model
        self.rejection: RejectedError | None = None

    @property
    def finished(self) -> bool:
        """Whether every job is done and every result was taken."""
        return self.exhausted and not (self.steps or self.misses or self.waiting or self.done)

    def raise_fault(self) -> None:
        """Raises what was wrong with the jobs, if anything: to be called when all that was under way is finished."""
        if self.fault is not None:
            raise self.fault
        if self.rejection is not None and not self._has_answers:
            raise self.rejection

    @property
    def _has_answers(self) -> bool:
        return self.stats.cached > 0 or self.stats.calls > self.stats.failed

    def reject(self, error: RejectedError) -> None:
        """Begins no further call, since the endpoint accepts none: those to come fail. The cache is still read.

        What an endpoint accepted before is no reason to write nothing now; whether it did, in an earlier run, may only
        show at the end.

        Raises:
            RejectedError: it never did.
        """
        if not self._has_answers and not self.runner.cache:
            raise error
        self.rejection = self.rejection or error
        self.stats.limit = self.stats.limit or str(error)

    def give_up(self, reason: str) -> None:
        """Fails the calls under way, with the reason."""
        with self.lock:
            reply = Reply(None, "failed", reason)
            for key in sorted(self.handed):
                self.stats.missing += 1
                for job, place in self.waiting.pop(key):
                    self._deliver(job, place, reply)
            self.handed.clear()
            self.reserved = 0.0

    def feed(self, first: Request) -> Iterator[Request]:
        """What the backend pulls: the requests that nothing else answers, passage by passage."""
        request: Request | None = first
        while request is not None:
            self.hand(request)
            yield request
            request = self.next_miss()

    def hand(self, request: Request) -> None:
        """Notes that a request is with the backend."""
        self.handed.add(request.key)
        self.reserved += self._most_of(request)

    def next_miss(self) -> Request | None:
        """The next request for the backend; None at the end, when stopped or held, or when results wait to be read."""
        with self.lock:
            while True:
                if self._is_stopped():
                    return None
                if self.misses and self._limit_reached():
                    self._leave_out()
                elif self.misses:
                    return None if self._must_wait() else self.misses.popleft()
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
            self.stats.jobs += 1
            yield self.done.popleft()

    def settle(self, request: Request, reply: Reply) -> None:
        """Puts a reply into the cache and hands it to everyone who waits for it."""
        with self.lock:
            if request.key in self.handed:  # a backend that answers twice is not paid twice
                cache = self.runner.cache
                kept = cache.put(request, reply) if cache is not None else reply
                self._settle(request, reply, kept)

    def settle_block(self, answered: Sequence[tuple[Request, Reply]]) -> None:
        """Settles a block of replies, which are in the cache all together or not at all."""
        with self.lock:
            answered = [pair for pair in answered if pair[0].key in self.handed]
            cache = self.runner.cache
            kept = cache.put_many(answered) if cache is not None else [reply for _, reply in answered]
            for (request, reply), stored in zip(answered, kept, strict=True):
                self._settle(request, reply, stored)

    def _settle(self, request: Request, reply: Reply, kept: Reply) -> None:
        self.handed.remove(request.key)
        self.reserved = self.reserved - self._most_of(request) if self.handed else 0.0
        self.stats.count_call(request, reply, self.runner.price.of_reply(reply) if self.runner.price else 0.0)
        if self.runner.max_cost is not None and self.stats.unpriced:
            # An unknown cost is not 0: the limit could not be held.
            self.stats.limit = self.stats.limit or (
                "the model does not say how many tokens a call took, so its cost is unknown: limit the calls instead"
            )
        for job, place in self.waiting.pop(request.key):
            self._deliver(job, place, kept)

    def _is_stopped(self) -> bool:
        if self.runner.stop is not None and self.runner.stop.is_set():
            self.stopped = True
        return self.stopped

    def _limit_reached(self) -> bool:
        """Whether no further call may be made. Replies from the cache cost nothing, so the run goes on with those."""
        runner, stats = self.runner, self.stats
        if stats.limit:
            return True
        if runner.max_calls is not None and stats.calls + len(self.handed) >= runner.max_calls:
            stats.limit = f"the limit of {runner.max_calls} calls was reached"
        elif runner.max_cost is not None and stats.cost + self._expected() >= runner.max_cost:
            stats.limit = f"the limit of {runner.max_cost:g} on the cost was reached"
        return bool(stats.limit)

    def _leave_out(self) -> None:
        """Answers the requests that may not become calls."""
        reply = Reply(None, "failed", f"not asked: {self.stats.limit}")
        while self.misses:
            self.stats.missing += 1
            for job, place in self.waiting.pop(self.misses.popleft().key):
                self._deliver(job, place, reply)

    def _must_wait(self) -> bool:
        """Whether the next call waits for those in flight: until one is answered, only what they cost at most is known.

        So the first batch of a Batch API has as many requests as surely fit the limit, not one.
        """
        limit, stats = self.runner.max_cost, self.stats
        if limit is None or not self.handed or stats.calls > stats.failed:
            return False
        return stats.cost + self.reserved + self._most_of(self.misses[0]) > limit

    def _most_of(self, request: Request) -> float:
        """The most that a call can cost; 0 without a limit on the cost, so that nothing is counted for nobody."""
        runner = self.runner
        if runner.max_cost is None:
            return 0.0
        return runner.price.most_of(request) if runner.price else math.inf

    def _expected(self) -> float:
        """What the calls in flight will cost, if they cost what the others did on average."""
        return self.stats.cost / self.stats.calls * (len(self.handed) + 1) if self.stats.calls else 0.0

    def _next_block(self) -> list[_Started[K, T]]:
        """The jobs whose requests are looked up next."""
        while self.asked < _BLOCK and not self.exhausted and not self.hold():
            try:
                name, generator = next(self.jobs)
            except StopIteration:
                self.exhausted = True
                break
            except Exception as error:
                self._end_with(error)
                break
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
        stored = cache.get_many([request.key for job in block for request in job.requests]) if cache is not None else {}
        for job in block:
            # Inlined for what is in the cache: a re-run consists of it.
            replies = [stored.get(request.key) for request in job.requests]
            missing = [place for place, reply in enumerate(replies) if reply is None]
            job.replies, job.open = replies, len(missing)
            self.stats.count_cached(replies)
            for place in missing:
                self._miss(job, place)
            if not missing:
                self._advance(job, cast(list[Reply], replies))

    def _miss(self, job: _Started[K, T], place: int) -> None:
        """Finds out who answers a request that is not in the cache."""
        request = job.requests[place]
        if request.key in self.waiting:
            self.stats.shared += 1
            self.waiting[request.key].append((job, place))
        elif self.runner.cache_only:
            self.stats.missing += 1
            self._deliver(job, place, Reply(None, "failed", "not in the cache, and no call is allowed"))
        else:
            self.waiting[request.key] = [(job, place)]
            self.misses.append(request)

    def _deliver(self, job: _Started[K, T], place: int, reply: Reply) -> None:
        job.replies[place] = reply
        job.open -= 1
        if not job.open:
            self._advance(job, cast(list[Reply], job.replies))

    def _advance(self, job: _Started[K, T], replies: Sequence[Reply] | None) -> None:
        """Lets a job take its next step; its new requests stand before those of jobs that have not begun."""
        try:
            while True:
                requests = job.generator.send(replies) if replies is not None else next(job.generator)
                if requests:
                    break
                replies = []
        except StopIteration as stop:
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
