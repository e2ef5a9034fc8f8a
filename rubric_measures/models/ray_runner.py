"""Calls spread over a Ray cluster: blocks of requests go to a pool of actors, replies come back.

The cache, the jobs and the limits stay in the process of the driver, which runs them as it does without Ray.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import itertools
import logging
import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rubric_measures.base import __version__
from rubric_measures.base.errors import (
    BackendError,
    DeviceLostError,
    GradingError,
    InputError,
    MissingExtraError,
    RubricMeasuresError,
)
from rubric_measures.base.plugins import require
from rubric_measures.models import make_backend
from rubric_measures.models.base import Backend, Reply, Request, one_line
from rubric_measures.models.running import Complete, LocalRunner

_LOG = logging.getLogger("rubric_measures")
_IN_FLIGHT = 2  # blocks that each actor has: one that it answers, and the next
_TICK = 0.5  # seconds until a Ctrl-C is noticed
_DEATHS = 12  # of processes one after the other without any reply between
_FATAL = 3  # of processes over one passage
_PROCESSORS = 4  # of an actor without a GPU
_BLOCK_OF_MODEL, _BLOCK = 16, 256  # passages

# Makes the backend of an actor: `make_backend`, or another function of a module that the actors can import.
Maker = Callable[[], Backend]
# Of the requests of a block (None: there is none), and what went wrong.
Answer = tuple[list[Reply | None], RubricMeasuresError | None]


_TO_ANSWER = 15.0  # seconds for the head of a cluster to take a connection
_STORE = 512 << 20  # bytes of shared memory of a Ray of our own: blocks are small
QUIET = {
    "RAY_ENABLE_AUTO_CONNECT": "0",
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
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
    if ray.is_initialized():
        yield ray
        return
    own: dict[str, Any] = {} if address else {"include_dashboard": False, "object_store_memory": _STORE}
    try:
        _find_cluster(address)
        ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **own)
    except Exception as error:
        where = f"the Ray cluster at {address} cannot be joined" if address else "Ray cannot be started"
        raise BackendError(f"{where}: {one_line(error)}") from None
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


class Worker:
    """An actor: makes its backend and answers blocks with it.

    Name, options and version must be those that the driver has, as they are in the key of every reply. File names among
    the options are relative to `folder`, where the driver works.
    """

    def __init__(self, make: Maker, expected: Mapping[str, object], folder: str) -> None:
        with contextlib.suppress(OSError):
            os.chdir(folder)
        self._problem: RubricMeasuresError | None = None
        try:
            self._backend = make()
            found = {"version": __version__, "model": self._backend.model, **self._backend.options}
            for name in sorted({*found, *expected}):
                if found.get(name) != expected.get(name):
                    here, there = found.get(name), expected.get(name)
                    raise BackendError(
                        f"{name} is {here!r} here and {there!r} in the driver; name it among the model's settings"
                    )
        except Exception as error:
            self._problem = BackendError(_said(error))

    def answer(self, block: list[Request]) -> Answer:
        """The replies of a block; those that were there before nothing worked any more are paid, so they come, too."""
        replies: dict[str, Reply] = {}
        problem = self._problem
        try:
            for request, reply in self._backend.complete(iter(block)) if problem is None and block else ():
                replies[request.key] = reply
        except RubricMeasuresError as error:
            problem = error
        except Exception as error:
            # What a backend does not expect is found out as what kills it: by which passage it comes.
            problem = DeviceLostError(_said(error))
        return [replies.get(one.key) for one in block], problem


def _said(error: Exception) -> str:
    return one_line(error if isinstance(error, RubricMeasuresError) else f"{type(error).__name__}: {error}")


def _passages(requests: Iterable[Request]) -> Iterator[list[Request]]:
    """The requests passage by passage; one without a group is a passage by itself."""
    return (list(of) for _, of in itertools.groupby(requests, lambda one: one.group or one.key))


@dataclass(frozen=True)
class RayRunner(LocalRunner):
    """Runs jobs over a pool of Ray actors; the cache, the jobs and the limits stay in this process.

    Requests that the cache does not answer go out in blocks of whole passages, as many as the actors can take; the
    replies of a block are in the cache before its results are handed on. The results are those of the local runner,
    whatever the number of actors and the order in which blocks return. Ray starts with the first call.

    Attributes:
        make: makes the backend of an actor; `backend` is the same one in this process, which makes no call.
        actors: how many actors; None takes one for each GPU that is there, else one for each four processors.
        gpus_per_actor: the GPUs (or the share of one) of each actor.
        batch_size: the passages of a block.
        address: the cluster, `HOST:PORT` or `auto`; empty starts a Ray of its own on this machine.
    """

    make: Maker = field(kw_only=True)
    actors: int | None = None
    gpus_per_actor: float = 0.0
    batch_size: int = _BLOCK
    address: str = ""

    def pool_size(self, ray: Any) -> tuple[int, int]:
        """How many actors there will be, and the processors of each.

        Raises:
            BackendError: an actor needs more GPUs than this machine has.
        """
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if gpus := self.gpus_per_actor:
            cpus, places = 1, sum(int(node.get("GPU", 0) / gpus) for node in nodes)
        else:
            # So that the threads of models do not stand in each other's way.
            processors = [int(node["CPU"]) for node in nodes if node.get("CPU", 0) >= 1] or [1]
            cpus = 1 if self.actors else min(_PROCESSORS, *processors)
            places = sum(count // cpus for count in processors)
        if not places and not self.address:
            text = f"an actor needs {gpus:g} GPUs, and this machine has fewer"
            raise BackendError(text, settings=("gpus_per_actor",))
        actors = self.actors or max(1, places)
        if actors > places:
            _LOG.warning("there is room for %d of %d actors now; the others wait for nodes", places, actors)
        return actors, cpus

    @contextlib.contextmanager
    def calling(self) -> Iterator[Complete]:
        """What makes the calls of one run: the actors of a pool, which ends with it."""
        with contextlib.closing(_Pool(self)) as pool:
            yield pool.complete


@dataclass(eq=False)
class _Actor:
    """An actor, the answers that it owes with their blocks, the oldest first, and whether it gave one.

    The first block is empty: it is answered when the actor has its place and its model.
    """

    handle: Any
    owed: deque[tuple[Any, list[Request]]]
    is_ready: bool = False


class _Pool:
    """Actors that answer blocks of requests; one that dies is replaced, and what it had goes out again.

    What killed it is in the block that it answered: its passages go out one by one, and one over which process after
    process dies fails.
    """

    def __init__(self, runner: RayRunner) -> None:
        self._runner = runner
        self._actors: list[_Actor] = []
        self._again: deque[list[Request]] = deque()
        self._deaths: Counter[str] = Counter()  # first request of a passage -> processes that died over its block
        self._in_row = 0
        self._problem: BackendError | None = None
        self._stack = contextlib.ExitStack()

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Sends blocks out while there is room for them, and yields what comes back.

        Raises:
            MissingExtraError: Ray is not installed.
            BackendError: the model cannot be used in the actors, or the cluster cannot be.
            GradingError: processes keep dying without any reply between.
            KeyboardInterrupt: the run was stopped, and what was sent is answered.
        """
        passages = _passages(requests)
        if not self._actors:
            self._begin()
        while True:
            ends = self._problem is not None or self._is_stopped
            is_all_sent = ends or self._send(passages)
            if is_all_sent and not any(block for actor in self._actors for _, block in actor.owed):
                break
            owing = {actor.owed[0][0]: actor for actor in self._actors if actor.owed}
            for answer in self._ray.wait(list(owing), timeout=_TICK)[0]:
                yield from self._taken(owing[answer])
        if self._problem is not None:
            raise self._problem
        if self._is_stopped:
            raise KeyboardInterrupt

    @property
    def _is_stopped(self) -> bool:
        return self._runner.stop is not None and self._runner.stop.is_set()

    def _begin(self) -> None:
        runner = self._runner
        self._ray = self._stack.enter_context(connected(runner.address))
        if self._is_stopped:
            raise KeyboardInterrupt
        count, cpus = runner.pool_size(self._ray)
        expected = {"version": __version__, "model": runner.backend.model, **runner.backend.options}
        of_actors = self._ray.remote(Worker).options(num_cpus=cpus, num_gpus=runner.gpus_per_actor or None)
        self._make = partial(of_actors.remote, runner.make, expected, str(Path.cwd()))
        self._actors = [self._begun() for _ in range(count)]

    def _begun(self) -> _Actor:
        handle = self._make()
        return _Actor(handle, deque([(handle.answer.remote([]), [])]))

    def _send(self, passages: Iterator[list[Request]]) -> bool:
        """Gives every actor that is ready as many blocks as it may have; whether there were no more."""
        while ready := [one for one in self._actors if one.is_ready and len(one.owed) < _IN_FLIGHT]:
            if self._again:
                block = self._again.popleft()
            else:
                block = list(itertools.chain.from_iterable(itertools.islice(passages, self._runner.batch_size)))
            if not block:
                return True
            actor = min(ready, key=lambda one: len(one.owed))
            # What was computed from them stays here.
            plain = list(map(dataclasses.replace, block))
            actor.owed.append((actor.handle.answer.remote(plain), block))
        return False

    def _taken(self, actor: _Actor) -> Iterator[tuple[Request, Reply]]:
        """The replies of the oldest block that an actor owes."""
        answer, block = actor.owed.popleft()
        replies: list[Reply | None] = [None for _ in block]
        error: RubricMeasuresError | None
        try:
            replies, error = self._ray.get(answer)
        except self._ray.exceptions.RayError as gone:
            error = GradingError(_said(gone))
        pairs = list(zip(block, replies, strict=True))
        yield from ((request, reply) for request, reply in pairs if reply is not None)
        if any(replies):
            self._in_row = 0
        actor.is_ready = error is None
        if type(error) in (GradingError, DeviceLostError):
            yield from self._died(actor, [request for request, reply in pairs if reply is None], error)
        elif error is not None and self._problem is None:
            text = f"the model cannot be used in the Ray actors: {error}"
            self._problem = BackendError(text)

    def _died(self, actor: _Actor, lost: list[Request], error: Exception | None) -> Iterator[tuple[Request, Reply]]:
        """Replaces an actor that died over some requests, which go out again but for a passage that keeps killing."""
        self._in_row += 1
        if self._in_row > _DEATHS:
            raise GradingError(f"Ray keeps failing ({error}); finished calls are in the cache: run again to continue")
        waiting = [block for _, block in actor.owed if block]
        _LOG.warning("a process of the Ray pool died; %d blocks are begun again", bool(lost) + len(waiting))
        self._ray.kill(actor.handle)
        self._actors[self._actors.index(actor)] = self._begun()
        passages = list(_passages(lost))
        self._deaths.update(passage[0].key for passage in passages)
        if len(passages) == 1 and self._deaths[passages[0][0].key] >= _FATAL:
            note = f"processes of actors died over this passage ({error})"
            yield from ((request, Reply(None, "failed", note)) for request in passages.pop())
        self._again.extendleft(reversed([*passages, *waiting]))

    def close(self) -> None:
        """Ends the actors and, where Ray is our own, Ray."""
        for actor in self._actors:
            self._ray.kill(actor.handle)
        self._stack.close()


def ray_runner(
    model: str, options: dict[str, Any], actors: int | None, gpus: float | None, size: int | None, address: str
) -> RayRunner:
    """A runner over actors with a model, which has its backend in this process, too.

    Device and dtype of a Hugging Face model are settled here, for all actors alike: they are part of the key of every
    reply. On a cluster whose actors have GPUs the dtype is bfloat16 where none is named.

    Args:
        model: the name of the model.
        options: the settings of its backend.
        actors: how many actors; None takes what there is room for.
        gpus: the GPUs (or the share of one) of each; None takes 1 where the model computes on a GPU, else 0.
        size: the passages of a block; None takes 16 for models in the actors, else 256.
        address: the cluster; see `RayRunner`.

    Raises:
        InputError: the settings do not go together.
        MissingExtraError: Ray, or what the model needs, is not installed.
        BackendError: the model or the cluster cannot be used.
    """
    if gpus is not None and gpus > 1 and gpus != int(gpus):
        raise InputError(f"gpus_per_actor is {gpus:g}; expected a whole number, or a share below 1")
    if address.startswith("ray://"):
        raise InputError(f"{address}: expected HOST:PORT or auto; run on a node of the cluster, or as a Ray job")
    if importlib.util.find_spec("ray") is None:
        raise MissingExtraError("ray", "ray")
    if is_local := model.startswith("hf:"):
        from rubric_measures.models.hf import choose_device

        device = str(options.get("device", "auto"))
        if device == "auto":
            if gpus is None and address:
                with connected(address) as ray:
                    gpus = float(ray.cluster_resources().get("GPU", 0) > 0)
            device = choose_device("auto") if gpus is None else "cuda" if gpus else "cpu"
        gpus = float(device == "cuda") if gpus is None else gpus
        options = {**options, "device": device}
        if address and gpus and options.get("dtype", "auto") == "auto":
            options["dtype"] = "bfloat16"  # this machine need not be one that computes
    backend = make_backend(model, **options)
    if is_local:
        options["dtype"] = backend.options["dtype"]
    make = partial(make_backend, model, **options)
    size = size or (_BLOCK_OF_MODEL if is_local else _BLOCK)
    return RayRunner(backend, make=make, actors=actors, gpus_per_actor=gpus or 0.0, batch_size=size, address=address)
