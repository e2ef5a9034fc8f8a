"""The desk of a pool of Ray actors: a process that keeps the blocks which are not answered yet."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from rubric_measures.backends.base import Message, Reply, Request

__all__ = ["Desk", "Order", "feed", "pack", "pack_requests", "unpack_requests"]

_DEATHS_IN_ROW = 12  # and three for each actor: processes that died with no reply between, before the run is given up


class Order(NamedTuple):
    """What an actor is told when it begins a block.

    Attributes:
        skip: another actor has the block, or it is not wanted any more.
        single: a process died over the block: its passages are answered one by one.
        known: of those, the replies that were there before it died.
        lost: of those, the places of passages over which two more processes died.
        reason: what the last of these processes said, if it could.
        stop: why the whole run is at its end.
    """

    skip: bool = False
    single: bool = False
    known: Mapping[int, list[Reply | None]] = MappingProxyType({})
    lost: frozenset[int] = frozenset()
    reason: str = ""
    stop: str = ""


@dataclass
class _Block:
    """A block under way: its requests, who has begun it, and what came of its passages one by one."""

    data: bytes
    actor: str = ""
    node: str = ""
    deaths: int = 0
    reason: str = ""
    known: dict[int, list[Reply | None]] = field(default_factory=dict)
    tried: dict[int, int] = field(default_factory=dict)


class Desk:
    """Keeps the blocks that are not answered yet, in a process of its own beside the driver.

    Blocks are read by their place in the stream: a stream that is read again after a failure is the same one.
    """

    def __init__(self) -> None:
        self._order: list[int] = []
        self._open: dict[int, _Block] = {}
        self._recalled: set[int] = set()  # before they were here
        self._changed = asyncio.Condition()
        self._finished = False
        self._deaths_in_row = 0
        self._actors: dict[str, Any] = {}
        self.redone = 0

    async def enter(self, name: str, actor: Any) -> None:
        """An actor is there (again)."""
        self._actors[name] = actor

    async def add(self, block: int, data: bytes) -> None:
        """Puts a block at the end of the stream."""
        if block in self._recalled:
            return
        async with self._changed:
            self._open[block] = _Block(data)
            self._order.append(block)
            self._changed.notify_all()

    async def at(self, place: int) -> tuple[int, bytes] | None:
        """The block at a place of the stream, empty when it is answered; waits for it; None at the end."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._finished or place < len(self._order))
            if self._finished:
                return None
            block = self._order[place]
            return block, self._open[block].data if block in self._open else b""

    async def begin(self, number: int, actor: str, node: str) -> Order:
        """An actor begins a block; when the same actor has begun it before, its process died over it."""
        block = self._open.get(number)
        if block is None or (block.actor and block.actor != actor):
            return Order(skip=True)
        if block.actor:
            block.deaths += 1
            self.redone += 1
            self._deaths_in_row += 1
            if self._deaths_in_row >= _DEATHS_IN_ROW + 3 * len(self._actors):
                stop = f"the processes of actors died {self._deaths_in_row} times in a row{block.reason}"
                return Order(stop=stop)
        block.actor, block.node = actor, node
        lost = frozenset(place for place, tries in block.tried.items() if tries > 1 and place not in block.known)
        return Order(single=block.deaths > 0, known=dict(block.known), lost=lost, reason=block.reason)

    async def dying(self, number: int, reason: str) -> None:
        """The process of an actor is about to end over a block."""
        if (block := self._open.get(number)) is not None:
            block.reason = f" ({reason})"

    async def trying(self, number: int, place: int) -> None:
        """An actor is about to answer one passage of a block that killed a process."""
        if (block := self._open.get(number)) is not None:
            block.tried[place] = block.tried.get(place, 0) + 1

    async def answered(self, number: int, place: int, replies: list[Reply | None]) -> None:
        """It did."""
        self._deaths_in_row = 0
        if (block := self._open.get(number)) is not None:
            block.known[place] = replies

    async def done(self, number: int) -> None:
        """The driver has the replies of a block."""
        self._open.pop(number, None)
        self._deaths_in_row = 0

    async def nodes_left(self, alive: Sequence[str]) -> int:
        """Lets others have the blocks that no living node has begun; returns how many of them had been begun."""
        begun = 0
        async with self._changed:
            for number, block in self._open.items():
                if block.node not in alive:
                    begun += bool(block.actor)
                    block.actor = block.node = ""
                    self._order.append(number)
            self.redone += begun
            self._changed.notify_all()
        return begun

    async def recall(self, numbers: Sequence[int]) -> list[int]:
        """Takes back those of some blocks that no actor has begun; Ray may let this call overtake that of `add`."""
        waiting = [number for number in numbers if number not in self._open or not self._open[number].actor]
        for number in waiting:
            if self._open.pop(number, None) is None:
                self._recalled.add(number)
        return waiting

    async def cancel(self) -> list[Any]:
        """No block is wanted any more; returns the actors."""
        async with self._changed:
            self._open.clear()
            self._finished = True
            self._changed.notify_all()
        return list(self._actors.values())

    async def end(self) -> None:
        """Waits until no block is wanted any more."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._finished)

    async def times_redone(self) -> int:
        """How often a block was begun again because a process or a node was gone."""
        return self.redone


def feed(_: Any, desk: Any) -> Iterator[Any]:
    """The stream of blocks as Ray Data reads it: a row a block."""
    import pyarrow
    import ray

    place = 0
    while (found := ray.get(desk.at.remote(place))) is not None:
        block, data = found
        yield pyarrow.table({"block": pyarrow.array([block]), "data": pyarrow.array([data], pyarrow.binary())})
        place += 1


def pack(value: object) -> bytes:
    """A value as bytes."""
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def pack_requests(requests: Sequence[Request]) -> bytes:
    """Requests as bytes: what tells them, and not what was computed from it; equal options are written once."""
    return pack(
        [
            (
                request.options_json,
                request.model,
                [(message.role, message.content) for message in request.messages],
                request.options if type(request.options) is dict else dict(request.options),
                request.labels,
                request.replicate,
                request.group,
            )
            for request in requests
        ]
    )


def unpack_requests(data: bytes) -> list[Request]:
    """The requests of `pack_requests`."""
    return [
        Request.of_parts(options_json, model, tuple(Message(*message) for message in messages), *others)
        for options_json, model, messages, *others in pickle.loads(data)
    ]
