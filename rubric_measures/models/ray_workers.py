"""What runs on a Ray cluster: the connection, the desk that hands out work, the workers.

The connection to Ray: one that starts by itself and says nothing, or a cluster that is there.

The desk of a pool of Ray actors: a process that keeps the blocks which are not answered yet.

The actors of a pool of Ray: each makes its backend from a spec, and answers blocks of requests with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import logging
import os
import pickle
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from rubric_measures.base.errors import BackendError, DeviceLostError, RejectedError, RubricMeasuresError
from rubric_measures.base.plugins import require
from rubric_measures.models import make_backend
from rubric_measures.models.base import Backend, Reply, Request
from rubric_measures.types.scales import Message

_TO_ANSWER = 15.0  # seconds for the head of a cluster to take a connection
_STORE = 512 << 20  # bytes of shared memory of a Ray of our own: blocks are small
QUIET = {
    "RAY_ENABLE_AUTO_CONNECT": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


@contextlib.contextmanager
def connected(address: str) -> Iterator[Any]:
    """The module `ray`, connected: to the Ray that this process uses already, to a cluster, or to one of its own.

    Raises:
        MissingExtraError: Ray is not installed.
        BackendError: there is no cluster at the address, or Ray cannot be started.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    ray = require("ray", "ray")
    require("ray.data", "ray")
    if ray.is_initialized():
        yield ray
        return
    # What Ray Data logs as an error is an actor that died, or what is raised here in a line.
    logging.getLogger("ray.data").setLevel(logging.CRITICAL + 1)
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address:
            _find_cluster(address)
            with _no_stderr():
                ray.init(address=address, **quiet)
        else:
            with _no_stderr(), _interrupts_held():
                ray.init(address="local", include_dashboard=False, object_store_memory=_STORE, **quiet)
    except Exception as error:
        where = f"the Ray cluster at {address} cannot be joined" if address else "Ray cannot be started"
        said = " ".join(str(error).split())[:300] or type(error).__name__
        # Ray gives the user's token to `auto` by itself, and to an address only when it is told to.
        token = "; if the cluster asks for a token, set RAY_AUTH_MODE=token" if address.rpartition(":")[1] else ""
        raise BackendError(f"{where}: {said}{token}") from None
    with _silent_raylet():
        try:
            yield ray
        finally:
            ray.shutdown()


def _find_cluster(address: str) -> None:
    """Looks for a cluster before Ray does, which tries for many minutes without a word.

    Raises:
        OSError: nobody listens at the address.
    """
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal():
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_TO_ANSWER):
            pass


@contextlib.contextmanager
def _silent_raylet() -> Iterator[None]:
    """Keeps Ray's messages about tasks that it begins again off standard output, where records may be written."""
    from ray._private import worker

    before = getattr(worker, "_worker_logs_enabled", True)
    setattr(worker, "_worker_logs_enabled", False)  # noqa: B010 (Ray has no option for it)
    try:
        yield
    finally:
        setattr(worker, "_worker_logs_enabled", before)  # noqa: B010


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keeps a Ctrl-C waiting until Ray is there: half a Ray would stay behind, and none may be lost.

    Processes that are started meanwhile never see one: a terminal sends it to all, and the driver decides.
    """
    heard: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    # Blocked signals are what children inherit; a thread that does not block them may still be handed one.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number)) if main else None
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if main:
            signal.signal(signal.SIGINT, before)
            if heard:
                signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def _no_stderr() -> Iterator[None]:
    """Keeps what Ray's libraries print while they start from the terminal; what goes wrong comes as an exception."""
    sys.stderr.flush()
    kept = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


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


class Notes(logging.Handler):
    """Collects what a worker has to say, as (level, line), for the driver to say it."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps a line."""
        self._lines.append((record.levelno, record.getMessage()))

    def take(self) -> tuple[tuple[int, str], ...]:
        """What there is, once."""
        lines, self._lines = tuple(self._lines), []
        return lines


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
