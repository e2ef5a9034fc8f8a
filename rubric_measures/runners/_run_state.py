"""The state of one run: which jobs wait for which replies, and what the backend gets next."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from rubric_measures.backends.base import Reply, Request
from rubric_measures.base.errors import RejectedError
from rubric_measures.runners._account import UNKNOWN_COST, Account
from rubric_measures.runners._stats import RunStats

if TYPE_CHECKING:
    from rubric_measures.runners._local import LocalRunner

__all__ = ["Job", "RunState"]

K = TypeVar("K")
T = TypeVar("T")

# A job yields requests and is sent their replies in the same order, as often as it likes; then it returns its result.
# So a style that retries, verifies or cuts a passage into chunks is a plain function that reads from top to bottom.
Job = Generator[Sequence[Request], Sequence[Reply], T]

_LOG = logging.getLogger("rubric_measures")
_BLOCK = 256  # requests that are looked up in the cache together
_LEASED = 64  # calls that are taken together, before they are made
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
        self.account = Account(runner, stats)
        self.misses: deque[Request] = deque()  # not in the cache
        self.ready: deque[Request] = deque()  # of these, those that are ours to make, not yet handed to the backend
        self.elsewhere: dict[str, Request] = {}  # and those that another process is making
        self.version = -1  # of the cache, when requests were last looked up
        self.told_waiting = False
        self.lease, self.taken = _LEASED, 0.0  # how many calls are taken together, and when some were
        self.looked = 0.0  # when it was last looked what became of these
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
        return self.exhausted and not (self.steps or self.misses or self.ready or self.waiting or self.done)

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
            self.account.drop()
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
        if self.account.is_limited:
            self.account.hand(request)
            self.reserved += self.account.most_of(request)

    def next_miss(self) -> Request | None:
        """The next request for the backend; None at the end, when stopped or held, or when results wait to be read."""
        with self.lock:
            while True:
                if self._is_stopped():
                    return None
                if (self.ready or self.misses) and self._limit_reached():
                    self._leave_out()
                elif self.ready:
                    if not self.account.is_limited:
                        return self.ready.popleft()
                    if reason := self.account.reached_for_query(self.ready[0]):
                        self._leave_out_one(reason)
                        continue
                    return None if self.account.must_wait(self.ready[0], self.reserved) else self.ready.popleft()
                elif self.misses:
                    self._take()
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
            self.stats.jobs += 1
            yield self.done.popleft()

    def settle(self, request: Request, reply: Reply) -> None:
        """Puts a reply into the cache and hands it to everyone who waits for it."""
        with self.lock:
            if request.key in self.handed:  # a backend that answers twice is not paid twice
                cache = self.runner.cache
                cost = self._cost_of(reply)
                spent = self.account.note(request, reply, cost)
                kept = cache.put(request, reply, spent) if cache is not None else reply
                self._settle(request, reply, kept, cost)

    def settle_block(self, answered: Sequence[tuple[Request, Reply]]) -> None:
        """Settles a block of replies, which are in the cache all together or not at all."""
        with self.lock:
            answered = [pair for pair in answered if pair[0].key in self.handed]
            cache = self.runner.cache
            costs = [self._cost_of(reply) for _, reply in answered]
            spent = [
                one
                for (request, reply), cost in zip(answered, costs, strict=True)
                for one in self.account.note(request, reply, cost)
            ]
            kept = cache.put_many(answered, spent) if cache is not None else [reply for _, reply in answered]
            for (request, reply), stored, cost in zip(answered, kept, costs, strict=True):
                self._settle(request, reply, stored, cost)

    def _cost_of(self, reply: Reply) -> float:
        return self.runner.price.of_reply(reply) if self.runner.price else 0.0

    def _settle(self, request: Request, reply: Reply, kept: Reply, cost: float) -> None:
        self.handed.remove(request.key)
        if self.account.is_limited:
            self.reserved = self.reserved - self.account.most_of(request) if self.handed else 0.0
        self.stats.count_call(request, reply, cost)
        if self.runner.max_cost is not None and self.stats.unpriced:
            # An unknown cost is not 0: the limit could not be held.
            self.stats.limit = self.stats.limit or UNKNOWN_COST
        for job, place in self.waiting.pop(request.key):
            self._deliver(job, place, kept)

    def _is_stopped(self) -> bool:
        if self.runner.stop is not None and self.runner.stop.is_set():
            self.stopped = True
        return self.stopped

    def _limit_reached(self) -> bool:
        """Whether no further call may be made. Replies from the cache cost nothing, so the run goes on with those."""
        if not self.stats.limit and self.account.is_limited:
            self.stats.limit = self.account.reached(len(self.handed))
        return bool(self.stats.limit)

    def _leave_out(self) -> None:
        """Answers the requests that may not become calls."""
        if self.ready:
            self.misses.extendleft(reversed(self.ready))
            self.ready.clear()
            if self.account.leases:
                self.account.take(self.handed, ())
        while self.misses:
            self._fail(self.misses.popleft(), self.stats.limit)

    def _leave_out_one(self, reason: str) -> None:
        """Answers the next request, which may not become a call as its query has cost enough."""
        request = self.ready.popleft()
        self.stats.limited_queries.add(request.query)
        self.stats.query_limit = reason
        self._fail(request, reason)

    def _fail(self, request: Request, reason: str) -> None:
        self.stats.missing += 1
        self._answer(request, Reply(None, "failed", f"not asked: {reason}"))

    def _answer(self, request: Request, reply: Reply) -> None:
        for job, place in self.waiting.pop(request.key):
            self._deliver(job, place, reply)

    def _take(self) -> None:
        """Takes the next requests as calls of ours; those that another process is making are waited for."""
        now = time.monotonic()
        # To take calls is a transaction, which costs more than a call that is answered at once.
        is_quick = now - self.taken < _LOOK_SECONDS and len(self.handed) < _LEASED // 2
        self.lease, self.taken = 2 * self.lease if is_quick else _LEASED, now
        wanted = [self.misses.popleft() for _ in range(min(len(self.misses), max(self.lease, len(self.handed))))]
        if not self.account.leases:
            self.ready.extend(wanted)
            return
        taken, elsewhere = self.account.take(self.handed, [request.key for request in wanted])
        if self.runner.cache is not None and self.runner.cache.version() != self.version:
            # Another process may have been done with some of them since they were looked up.
            self._receive({request.key: request for request in wanted})
        ours = set(taken)
        for request in wanted:
            if request.key in self.waiting:
                if request.key in elsewhere:
                    self.elsewhere[request.key] = request
                else:
                    (self.ready if request.key in ours else self.misses).append(request)
        if self.elsewhere and time.monotonic() - self.looked > _LOOK_SECONDS:
            self._look_elsewhere()

    def _receive(self, requests: Mapping[str, Request]) -> int:
        """Hands on the replies that others have put into the cache meanwhile; how many there are."""
        cache = self.runner.cache
        found = cache.get_many(list(requests)) if cache is not None else {}
        self.stats.count_cached(found.values())
        for key, reply in found.items():
            self._answer(requests[key], reply)
        return len(found)

    def _look_elsewhere(self) -> bool:
        """Takes the replies that others have made, and as ours the calls that they gave up; whether there was one."""
        self.looked = time.monotonic()
        before = len(self.elsewhere)
        still = self.account.made_elsewhere(self.elsewhere)
        self._receive(self.elsewhere)
        self.misses.extend(one for key, one in self.elsewhere.items() if key in self.waiting and key not in still)
        self.elsewhere = {key: one for key, one in self.elsewhere.items() if key in self.waiting and key in still}
        return len(self.elsewhere) < before

    def wait_for_others(self) -> None:
        """Waits a moment where nothing is left to do but what other processes are making."""
        if not self.elsewhere or self.handed:
            return
        with self.lock:
            if self._look_elsewhere():
                return
            if not self.told_waiting:
                self.told_waiting = True
                _LOG.info("waiting for %d calls that another process over this cache is making", len(self.elsewhere))
        if self.runner.stop is not None:
            self.runner.stop.wait(_LOOK_SECONDS)
        else:
            time.sleep(_LOOK_SECONDS)

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
        if cache is not None and self.account.leases:
            self.version = cache.version()
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
