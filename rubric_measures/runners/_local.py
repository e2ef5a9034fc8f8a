"""The local runner: jobs that ask a model step by step, behind one cache, each request in flight once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from rubric_measures.backends.base import Backend
from rubric_measures.backends.replies.cache import ReplyCache
from rubric_measures.base.errors import GradingError, InputError, RejectedError
from rubric_measures.runners._run_state import Job, RunState
from rubric_measures.runners._stats import RunStats
from rubric_measures.runners.prices import Price

__all__ = ["LocalRunner"]

K = TypeVar("K")
T = TypeVar("T")


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
        max_calls: make so many calls at most, those of all other runs over the cache included (its ledger has them);
            what they do not answer is a failed reply that says so.
        max_cost: make no call that would cost more than this in all, likewise. The first call is
            waited for, as nobody knows what the model thinks; then calls are made together as long as they are within
            the limit, if each costs what the others did on average. A backend whose calls are `in_batches` gets as many
            in the first one as cost no more at most.
        max_cost_per_query: the same for the calls about each query.
        price: what calls cost; needed for limits on the cost.
        progress: is called now and then with the counts.
        stop: when it is set, no further call begins; those in flight are finished, then `KeyboardInterrupt` is raised.
    """

    backend: Backend
    cache: ReplyCache | None = None
    cache_only: bool = False
    max_calls: int | None = None
    max_cost: float | None = None
    max_cost_per_query: float | None = None
    price: Price | None = None
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
        run = RunState(self, iter(jobs), stats if stats is not None else RunStats(), hold)
        try:
            yield from self._ask(run)
        finally:
            run.account.close()

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
                run.wait_for_others()
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
