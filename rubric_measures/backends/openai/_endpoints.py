"""One endpoint of a run, and the sharing of calls among several: by free slots, a passage's calls on one endpoint."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rubric_measures.backends.base import Request
from rubric_measures.backends.openai._gate import Gate
from rubric_measures.backends.openai._known import Known

__all__ = ["Call", "Endpoint", "Sharing"]

_DROP_AFTER = 8
_LONGEST_COOLDOWN = 300.0
# Groups that come again (a second question about a passage) find their endpoint as long as this many others do not.
_REMEMBERED_GROUPS = 4096


class Call:
    """One request under way: how often it failed and was turned away, since when it is tried, and what that cost.

    `paid` are the tokens, shown and written, of answers that were no reply.
    """

    __slots__ = ("began", "failures", "paid", "rejections", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.failures = self.rejections = 0
        self.began = 0.0
        self.paid = (0, 0)

    def pay(self, tokens: tuple[int, int]) -> None:
        """Counts tokens of an answer that was no reply."""
        self.paid = self.paid[0] + tokens[0], self.paid[1] + tokens[1]


class Endpoint:
    """One base URL during one run: its client, its gate, and whether it is in use.

    Attributes:
        url: the base URL, as messages show it.
        client: the HTTP client.
        gate: the limit on its calls.
        known: what it showed about the model.
        answered: how many replies it gave.
        rejected: how many calls it called wrong before its first reply.
        closed: why it is out of use for good; empty while it is not.
        resting: whether it asked for so long a wait that nobody counts on it until then.
    """

    def __init__(
        self,
        url: str,
        client: Any,
        slots: int,
        cooldown: float,
        clock: Callable[[], float] = time.monotonic,
        known: Known | None = None,
    ) -> None:
        self.url = url
        self.client = client
        self.gate = Gate(slots, clock)
        self.known = known or Known()
        if not self.known.answered:
            # A wrong key, or a field that it does not take, costs one call; each answer allows one more.
            self.gate.restart()
        self.answered = 0
        self.rejected = 0
        self.closed = ""
        self.resting = False
        self._clock = clock
        self._first_cooldown = self._cooldown = cooldown
        self._failures = 0
        self._back_at = 0.0

    @property
    def up(self) -> bool:
        """Whether calls go to it now."""
        return not self.closed and not self._back_at

    def succeeded(self) -> None:
        """Notes a reply; the first one lets the others begin."""
        if not self.known.answered:
            self.known.answered = True
            self.gate.open()
        self.answered += 1
        self._failures = 0
        self._cooldown = self._first_cooldown

    def failed(self) -> bool:
        """Notes a failure; whether it has failed so often in a row that others should do its work."""
        self._failures += 1
        return self.up and self._failures >= _DROP_AFTER

    def drop(self) -> float:
        """Takes it out of use for a while, twice as long each time; for how many seconds."""
        seconds = self._cooldown
        self._back_at = self._clock() + seconds
        self._cooldown = min(_LONGEST_COOLDOWN, 2 * seconds)
        return seconds

    def rest(self, seconds: float) -> None:
        """Takes it out of use for as long as it asked."""
        self._back_at = self._clock() + seconds
        self.resting = True

    async def ready(self) -> bool:
        """Waits until it is in use; False when it never will be. It comes back with one call at a time, on trial."""
        while self._back_at and not self.closed:
            left = self._back_at - self._clock()
            if left > 0:
                await asyncio.sleep(left)
            else:
                self._back_at = 0.0
                self.resting = False
                self._failures = _DROP_AFTER - 1
                self.gate.restart()
        return not self.closed


class Sharing:
    """The calls that wait for an endpoint: group by group, each group on one endpoint while that is in use.

    A group belongs to the first endpoint with a free slot that has no group of its own waiting. Only a group with more
    waiting calls than an endpoint has slots is shared, by endpoints that have nothing else to do.
    """

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self.endpoints = endpoints
        self._groups: OrderedDict[object, deque[Call]] = OrderedDict()
        self._owners: OrderedDict[object, Endpoint] = OrderedDict()
        self._idle: dict[Endpoint, deque[asyncio.Future[None]]] = {endpoint: deque() for endpoint in endpoints}

    def add(self, calls: Iterable[Call], *, first: bool = False) -> None:
        """Puts calls in line; `first`: before the others of their group, and their group before other groups."""
        count = 0
        for call in calls:
            # A request without a group is a group of its own.
            group: object = call.request.group or call
            queue = self._groups.setdefault(group, deque())
            if first:
                queue.appendleft(call)
                self._groups.move_to_end(group, last=False)
            else:
                queue.append(call)
            count += 1
        self._wake(count)

    def take(self, endpoint: Endpoint) -> Call | None:
        """The next call for an endpoint that has a slot for it; None when there is none."""
        group = self._chosen(endpoint)
        if group is None:
            return None
        queue = self._groups[group]
        call = queue.popleft()
        if not queue:
            del self._groups[group]
        return call

    def _chosen(self, endpoint: Endpoint) -> object:
        """Its own first group, else the first that is nobody's, else the first that is too large for its owner."""
        if len(self.endpoints) == 1:
            return next(iter(self._groups), None)
        owned = [(group, self._owners.get(group)) for group in self._groups]
        mine = (group for group, owner in owned if owner is endpoint)
        free = (group for group, owner in owned if owner is None or not owner.up)
        for group in itertools.chain(mine, free):
            if isinstance(group, str):
                self._owners[group] = endpoint
                self._owners.move_to_end(group)
                if len(self._owners) > _REMEMBERED_GROUPS:
                    self._owners.popitem(last=False)
            return group
        return next((group for group, owner in owned if owner and len(self._groups[group]) > owner.gate.ceiling), None)

    async def wait(self, endpoint: Endpoint) -> None:
        """Waits until there may be a call for an endpoint."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle[endpoint].append(waiter)
        await waiter

    def release(self, endpoint: Endpoint) -> None:
        """Lets others have the groups of an endpoint that was dropped."""
        for group in [group for group, owner in self._owners.items() if owner is endpoint]:
            del self._owners[group]
        self._wake(sum(len(queue) for queue in self._groups.values()))

    def _wake(self, count: int) -> None:
        # Whose groups the new calls are of is not looked up: who finds nothing waits again.
        for idle in self._idle.values():
            for _ in range(min(count, len(idle))):
                waiter = idle.popleft()
                if not waiter.done():
                    waiter.set_result(None)
