"""The account of a run: what it and others paid over one cache, what may still be paid, and which calls are its own."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rubric_measures.backends.base import Reply, Request
from rubric_measures.backends.replies.cache import LedgerRow, Spent, new_owner
from rubric_measures.runners._stats import RunStats

if TYPE_CHECKING:
    from rubric_measures.runners._local import LocalRunner

__all__ = ["UNKNOWN_COST", "Account"]

_LOG = logging.getLogger("rubric_measures")
_FLUSH_SECONDS = 0.05  # without price and limit, the ledger may be so late: a grader on this machine is quicker than it
UNKNOWN_COST = "the model does not say how many tokens a call took, so its cost is unknown: limit the calls instead"


class Account:
    """What one run pays, beside what the ledger of its cache says of all other runs.

    Args:
        runner: the cache, the limits and the price.
        stats: the counts of the run; perhaps of several one after the other.

    Attributes:
        is_limited: whether there is a limit on calls or cost.
        leases: whether calls have to be taken before they are made, as other processes may make them.
    """

    def __init__(self, runner: LocalRunner, stats: RunStats) -> None:
        self._runner, self._stats = runner, stats
        cache = runner.cache
        self._cache = cache if cache is not None and cache.is_written and not runner.cache_only else None
        self.leases = self._cache is not None and self._cache.is_shared
        self._owner = new_owner()
        self._before = (stats.calls, stats.cost)
        self._pending: dict[tuple[str, str, bool], list[float]] = {}
        self._written = (0, 0.0)
        self._flushed = time.monotonic()
        self._others_calls, self._others_cost, self._elsewhere = 0, 0.0, 0
        self._mean = 0.0  # what a call to this model cost before, by the ledger
        self._of_query: dict[str, float] = {}
        self._open: Counter[str] = Counter()
        self._beats: threading.Thread | None = None
        self._ended = threading.Event()
        self._told_unpriced = False
        self.is_limited = any(
            limit is not None for limit in (runner.max_calls, runner.max_cost, runner.max_cost_per_query)
        )
        self._is_exact = self.is_limited or runner.price is not None
        self._refresh()

    # ---- what was paid
    @property
    def calls(self) -> int:
        """The calls of all runs over the cache, so far."""
        return self._others_calls + self._stats.calls - self._before[0]

    @property
    def cost(self) -> float:
        """What they cost."""
        return self._others_cost + self._stats.cost - self._before[1]

    def _refresh(self) -> None:
        """Reads what others paid meanwhile."""
        if self._cache is None:
            self._before = (0, 0.0)
            return
        if not self.is_limited:
            return
        rows = self._cache.ledger()
        self._others_calls = sum(row.calls for row in rows) - self._written[0]
        if self._runner.price is not None:
            self._others_cost = max(0.0, sum(map(self._cost_of, rows)) - self._written[1])
            mine = [row for row in rows if row.model == self._runner.backend.model]
            self._mean = sum(map(self._cost_of, mine)) / max(1, sum(row.calls for row in mine))
        if self._runner.max_cost_per_query is not None:
            found: dict[str, float] = {}
            for row in self._cache.ledger(by_query=True):
                found[row.query] = found.get(row.query, 0.0) + self._cost_of(row)
            for (_, query, _), values in self._pending.items():
                found[query] = found.get(query, 0.0) + values[4]
            self._of_query = found

    def _cost_of(self, row: LedgerRow) -> float:
        """What a row of the ledger cost; calls of this model that were made without a price cost what it says now."""
        if row.cost is not None:
            return row.cost
        price, model = self._runner.price, self._runner.backend.model
        if price is not None and row.model == model:
            if row.calls > row.failed and not row.prompt_tokens:
                self._stats.limit = self._stats.limit or UNKNOWN_COST
            return price.of_reply(Reply("", prompt_tokens=row.prompt_tokens, completion_tokens=row.completion_tokens))
        if not self._told_unpriced:
            self._told_unpriced = True
            text = "the ledger of %s has calls of %s without a price: they count as 0 in the limit on the cost"
            _LOG.warning(text, self._cache.path if self._cache else "", row.model)
        return 0.0

    def note(self, request: Request, reply: Reply, cost: float) -> Sequence[Spent]:
        """Notes a call that was made; returns what has to be put into the ledger now."""
        query = request.query
        if self.is_limited:
            self._open[query] -= 1
            self._of_query[query] = self._of_query.get(query, 0.0) + cost
        if self._cache is None:
            return ()
        tokens, is_answer = reply.prompt_tokens + reply.completion_tokens, reply.is_answer
        # A call that brought neither answer nor tokens cost nothing, whatever the price.
        priced = bool(cost) or (self._runner.price is not None and tokens > 0) or not (is_answer or tokens)
        values = self._pending.setdefault((request.model, query, priced), [0, 0, 0, 0, 0.0])
        values[0] += 1
        values[1] += not is_answer
        values[2] += reply.prompt_tokens
        values[3] += reply.completion_tokens
        values[4] += cost
        if self._is_exact or time.monotonic() - self._flushed >= _FLUSH_SECONDS:
            return self._take_pending()
        return ()

    def _take_pending(self) -> list[Spent]:
        found = [
            Spent(*key, int(calls), int(failed), int(prompt), int(completion), cost)
            for key, (calls, failed, prompt, completion, cost) in self._pending.items()
        ]
        self._pending.clear()
        calls, cost = self._written
        self._written = (calls + sum(one.calls for one in found), cost + sum(one.cost for one in found))
        self._flushed = time.monotonic()
        return found

    # ---- what may still be paid
    def reached(self, handed: int) -> str:
        """Which limit forbids another call beside the `handed` ones; empty where none does."""
        runner, stats = self._runner, self._stats
        if stats.limit:
            return stats.limit
        under_way = handed + self._elsewhere
        text = ""
        if runner.max_calls is not None and self.calls + under_way >= runner.max_calls:
            text = f"the limit of {runner.max_calls} calls was reached"
            if self._others_calls:
                text += f", {self._others_calls} of them by other runs over this cache"
        elif runner.max_cost is not None and self.cost + self.expected(under_way) >= runner.max_cost:
            text = f"the limit of {runner.max_cost:g} on the cost was reached"
            if self._others_cost:
                text += f", {self._others_cost:.6g} of it by other runs over this cache"
        return text

    def reached_for_query(self, request: Request) -> str:
        """Whether the limit for a query forbids another call about it, in words; empty where it does not."""
        limit = self._runner.max_cost_per_query
        if limit is None or not request.query:
            return ""
        spent = self._of_query.get(request.query, 0.0)
        if spent + self.expected(self._open[request.query]) < limit:
            return ""
        return f"the limit of {limit:g} on the cost of a query was reached"

    def expected(self, under_way: int) -> float:
        """What the calls under way and one more will cost, if they cost what those before did on average."""
        calls = self._stats.calls
        return (self._stats.cost / calls if calls else self._mean) * (under_way + 1)

    def must_wait(self, request: Request, reserved: float) -> bool:
        """Whether a call waits for those in flight: until one is answered, nobody knows what a call costs.

        Thoughts come on top of the longest reply, so there is no bound. A batch that takes hours has none: its first
        one has as many requests as fit the limit by what they cost at most, not one.
        """
        runner = self._runner
        if runner.max_cost is None and runner.max_cost_per_query is None:
            return False
        if self._stats.calls > self._stats.failed or self._mean or not self._open.total():
            return False
        if not getattr(runner.backend, "in_batches", False):
            return True
        most = self.most_of(request)
        if runner.max_cost_per_query is not None and self._open[request.query] and request.query:
            spent = self._of_query.get(request.query, 0.0)
            if spent + (self._open[request.query] + 1) * most > runner.max_cost_per_query:
                return True
        return runner.max_cost is not None and self.cost + reserved + most > runner.max_cost

    def most_of(self, request: Request) -> float:
        """The most that a call can cost; 0 without a limit on the cost, so that nothing is counted for nobody."""
        runner = self._runner
        if runner.max_cost is None and runner.max_cost_per_query is None:
            return 0.0
        return runner.price.most_of(request) if runner.price else float("inf")

    # ---- whose calls are whose
    def hand(self, request: Request) -> None:
        """Notes that a call begins."""
        self._open[request.query] += 1

    def drop(self) -> None:
        """Notes that no call is under way any more."""
        self._open.clear()

    def take(self, under_way: Iterable[str], wanted: Sequence[str]) -> tuple[list[str], set[str]]:
        """Takes calls that are to be made next: those that are ours, and those that another process is making.

        What is in neither is more than a limit allows.
        """
        assert self._cache is not None
        held = list(under_way)

        def room(elsewhere: int) -> int:
            self._elsewhere = elsewhere
            self._refresh()
            limit = self._runner.max_calls
            return len(wanted) if limit is None else limit - self.calls - len(held) - elsewhere

        found = self._cache.lease(self._owner, held, wanted, room)
        if self._beats is None:
            self._beats = threading.Thread(target=self._beat, name="rubric_measures-lease", daemon=True)
            self._beats.start()
        return found

    def _beat(self) -> None:
        """Says now and then that this run is there, as long as it is: a call may take an hour."""
        assert self._cache is not None
        seconds = self._cache.renew(self._owner)
        while not self._ended.wait(seconds):
            with contextlib.suppress(Exception):
                self._cache.renew(self._owner)

    def made_elsewhere(self, keys: Iterable[str]) -> set[str]:
        """Those of the keys whose calls other processes are still making."""
        return self._cache.made_elsewhere(self._owner, keys) if self._cache is not None else set()

    def close(self) -> None:
        """Puts into the ledger what is not there yet, and gives all calls back."""
        self._ended.set()
        if self._cache is None:
            return
        if self._pending:
            self._cache.put_many((), self._take_pending())
        if self._beats is not None:
            self._beats.join()
            self._cache.release(self._owner)
