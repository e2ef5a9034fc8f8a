"""The actors of a pool of Ray: each makes its backend from a spec, and answers blocks of requests with it."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rubric_measures.backends import Backend, make_backend
from rubric_measures.backends.base import Reply, Request
from rubric_measures.base.errors import DeviceLostError, RejectedError, RubricMeasuresError
from rubric_measures.base.parallel import Notes
from rubric_measures.runners._ray_desk import Order, pack, unpack_requests

__all__ = ["BackendSpec", "Returned", "Worker"]

_LOST = "processes of actors died over this passage"

# Replies in order, None where there is none; and why nothing can work any more.
Answers = tuple[list[Reply | None], RubricMeasuresError | None]


@dataclass(frozen=True)
class BackendSpec:
    """Which backend every actor makes for itself; it is pickled, so it holds no live object.

    Attributes:
        model: the model as the command line writes it.
        options: the settings of its backend.
        make: makes the backend from both; a function of a module that the actors can import.
    """

    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    make: Callable[..., Backend] = make_backend

    def build(self) -> Backend:
        """The backend."""
        return self.make(self.model, **self.options)


class Returned(NamedTuple):
    """What an actor returns for a block.

    Attributes:
        block: its number.
        replies: the replies in order, None for those that a problem left out; None in all where they come from
            elsewhere.
        problem: why nothing can work any more.
        rejected: whether that is an endpoint which accepts no call.
        notes: (level, line) of what the backend had to say.
    """

    block: int
    replies: list[Reply | None] | None = None
    problem: str = ""
    rejected: bool = False
    notes: tuple[tuple[int, str], ...] = ()


class Worker:
    """An actor: makes its backend from the spec and answers blocks with it.

    Name, options and version must be those that the driver has, as they are in the key of every reply. File names in
    the spec are relative to `folder`, where the driver works.
    """

    def __init__(self, spec: BackendSpec, expected: Mapping[str, object], version: str, folder: str, desk: Any) -> None:
        import ray

        context = ray.get_runtime_context()
        self._desk = desk
        self._who = context.get_actor_id(), context.get_node_id()
        desk.enter.remote(self._who[0], context.current_actor)
        threading.Thread(target=_leave_with, args=(desk, context.current_actor), daemon=True).start()
        self._backend: Backend | None = None
        self._problem = ""
        self._notes = Notes()
        logger = logging.getLogger("rubric_measures")
        logger.addHandler(self._notes)
        logger.setLevel(logging.INFO)  # this process is ours, and the driver knows what is to be shown
        with contextlib.suppress(OSError):
            os.chdir(folder)
        try:
            self._backend = self._made(spec, expected, version)
        except Exception as error:
            self._problem = _described(error)

    @staticmethod
    def _made(spec: BackendSpec, expected: Mapping[str, object], version: str) -> Backend:
        from rubric_measures.base import __version__

        if version != __version__:
            raise RubricMeasuresError(f"rubric_measures is {__version__} here and {version} in the driver")
        backend = spec.build()
        found = {"model": backend.model, **backend.options}
        if found != expected:
            names = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
            raise RubricMeasuresError(
                f"{names[0]} is {found.get(names[0])!r} here and {expected.get(names[0])!r} in the driver; "
                "name it among the model's settings"
            )
        return backend

    def __call__(self, table: Any) -> Any:
        """Answers the blocks of a table (one, as a rule)."""
        import pyarrow

        found = [
            pack(self._returned(block, data))
            for block, data in zip(table.column("block").to_pylist(), table.column("data").to_pylist(), strict=True)
        ]
        return pyarrow.table({"returned": pyarrow.array(found, pyarrow.binary())})

    def _returned(self, number: int, data: bytes) -> Returned:
        import ray

        if self._backend is None:
            return Returned(number, problem=self._problem)
        order: Order = ray.get(self._desk.begin.remote(number, *self._who))
        if order.stop:
            return Returned(number, problem=f"on {socket.gethostname()}: {order.stop}")
        if order.skip or not data:
            return Returned(number)
        requests = unpack_requests(data)
        if order.single:
            replies, error = self._one_by_one(self._backend, number, requests, order)
        else:
            replies, error = answers(self._backend, requests)
        if isinstance(error, DeviceLostError):
            # Lost for this process only: the next one finds out whether it was the block, and which passage of it.
            ray.get(self._desk.dying.remote(number, _described(error)))
            os._exit(1)
        problem = _described(error) if error is not None else ""
        return Returned(number, replies, problem, isinstance(error, RejectedError), self._notes.take())

    def _one_by_one(self, backend: Backend, number: int, requests: Sequence[Request], order: Order) -> Answers:
        import ray

        replies: list[Reply | None] = []
        for place, (_, members) in enumerate(itertools.groupby(requests, key=lambda request: request.group)):
            passage = list(members)
            if place in order.known:
                replies += order.known[place]
            elif place in order.lost:
                replies += [Reply(None, "failed", _LOST + order.reason) for _ in passage]
            else:
                ray.get(self._desk.trying.remote(number, place))
                found, error = answers(backend, passage)
                replies += found
                if error is not None:
                    return replies + [None] * (len(requests) - len(replies)), error
                ray.get(self._desk.answered.remote(number, place, found))
        return replies, None


def _leave_with(desk: Any, actor: Any) -> None:
    """Sends an actor away when its desk is gone: it would keep its processors from the actors of the next stream."""
    import ray

    try:
        ray.get(desk.end.remote())
    except ray.exceptions.RayActorError:
        ray.kill(actor)


def answers(backend: Backend, requests: Sequence[Request]) -> Answers:
    """The replies to some requests, in order, and why nothing can work any more (None: it can).

    Where the backend breaks down over a request, that one fails alone. The replies that were there before nothing
    worked any more are paid, so they come with the error; the others are None.
    """
    found: dict[str, Reply] = {}
    end: RubricMeasuresError | None = None
    reason = "the backend left it unanswered"
    try:
        for request, reply in backend.complete(iter(requests)):
            found[request.key] = _plain(reply)
    except RubricMeasuresError as error:
        end = error
    except Exception as error:
        reason = _described(error)
    missing = [request for request in requests if request.key not in found] if end is None else []
    if len(missing) == 1 and len(requests) == 1:
        found[missing[0].key] = Reply(None, "failed", reason)
    elif missing:
        # Halves: whatever broke it is found in few steps, and the others keep company.
        half = (len(missing) + 1) // 2
        for part in (missing[:half], missing[half:]):
            if part and end is None:
                replies, end = answers(backend, part)
                found |= {request.key: reply for request, reply in zip(part, replies, strict=True) if reply is not None}
    return [found.get(request.key) for request in requests], end


def _plain(reply: Reply) -> Reply:
    return reply if type(reply.raw) is dict else dataclasses.replace(reply, raw=dict(reply.raw))


def _described(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, RubricMeasuresError) else f"{type(error).__name__}: {text}"
