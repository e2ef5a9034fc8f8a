"""Calls spread over a Ray cluster: blocks of requests go through a pool of actors by Ray Data, replies come back.

The cache, the jobs and the limits stay in the process of the driver, which runs them as it does without Ray.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib.util
import itertools
import logging
import os
import pickle
import queue
import socket
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any

from rubric_measures.base import __version__
from rubric_measures.base.errors import (
    BackendError,
    DeviceLostError,
    GradingError,
    InputError,
    MissingExtraError,
    RejectedError,
    RubricMeasuresError,
)
from rubric_measures.base.plugins import require
from rubric_measures.models import make_backend
from rubric_measures.models.base import Backend, Reply, Request
from rubric_measures.models.running import Complete, LocalRunner
from rubric_measures.types.scales import Message

_LOG = logging.getLogger("rubric_measures")
_IN_FLIGHT = 2  # blocks that each actor has: one that it answers, and the next
_TICK = 0.5  # seconds until a Ctrl-C is noticed
_DEATHS = 12  # of processes one after the other without any reply between
_PROCESSORS = 4  # of an actor without a GPU
_BLOCK_OF_MODEL, _BLOCK = 16, 256  # passages
_LOST = "processes of actors died over this passage"

# Makes the backend of an actor: `make_backend`, or another function of a module that the actors can import.
Maker = Callable[[], Backend]


@dataclass(frozen=True)
class RaySettings:
    """The size of a pool.

    Attributes:
        actors: how many actors; None takes one for each GPU that is there, else one for each four processors.
        gpus_per_actor: the GPUs (or the share of one) of each actor; None takes 1 where the model computes on a GPU,
            else 0.
        batch_size: the passages of a block; None takes 16 for models in the actors, else 256.
        address: the cluster, `HOST:PORT` or `auto`; empty starts a Ray of its own on this machine.
    """

    actors: int | None = None
    gpus_per_actor: float | None = None
    batch_size: int | None = None
    address: str = ""

    def __post_init__(self) -> None:
        for name, low, high in (("actors", 1, 100_000), ("gpus_per_actor", 0, 1000), ("batch_size", 1, 10**6)):
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise InputError(f"{name} is {value}; expected {low} to {high}")
        gpus = self.gpus_per_actor
        if gpus is not None and gpus > 1 and gpus != int(gpus):
            raise InputError(f"gpus_per_actor is {gpus:g}; expected a whole number, or a share below 1")
        if self.address.startswith("ray://"):
            raise InputError(
                f"{self.address}: expected HOST:PORT or auto; run the command on a node of the cluster, or as a Ray job"
            )


_TO_ANSWER = 15.0  # seconds for the head of a cluster to take a connection
_STORE = 512 << 20  # bytes of shared memory of a Ray of our own: blocks are small
QUIET = {
    "RAY_ENABLE_AUTO_CONNECT": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
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
    require("ray.data", "ray")
    if ray.is_initialized():
        yield ray
        return
    # What Ray Data logs as an error is an actor that died, or what is raised here in a line.
    logging.getLogger("ray.data").setLevel(logging.CRITICAL + 1)
    own: dict[str, Any] = {} if address else {"include_dashboard": False, "object_store_memory": _STORE}
    try:
        _find_cluster(address)
        with _no_stderr():
            ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **own)
    except Exception as error:
        where = f"the Ray cluster at {address} cannot be joined" if address else "Ray cannot be started"
        said = " ".join(str(error).split())[:300] or type(error).__name__
        # Ray gives the user's token to `auto` by itself, and to an address only when it is told to.
        token = "; if the cluster asks for a token, set RAY_AUTH_MODE=token" if address.rpartition(":")[1] else ""
        raise BackendError(f"{where}: {said}{token}") from None
    from ray._private import worker

    # Ray has no option that keeps what it says of tasks it begins again off standard output, where records may go.
    worker._worker_logs_enabled = False
    try:
        yield ray
    finally:
        ray.shutdown()
        worker._worker_logs_enabled = True


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


class Line:
    """The blocks that Ray Data has not read, in a process beside the driver; with it all actors of its stream end."""

    def __init__(self) -> None:
        self._blocks: asyncio.Queue[bytes] = asyncio.Queue()
        self._taken = 0

    async def put(self, block: bytes) -> None:
        """Puts a block at the end."""
        await self._blocks.put(block)

    async def take(self, place: int) -> bytes:
        """Takes the first block, or waits for one.

        Raises:
            RuntimeError: so many were not taken before: a process took more and is gone. Ray would drop what they were.
        """
        if place != self._taken:
            raise RuntimeError("the process that read the blocks was gone")
        self._taken += 1
        return await self._blocks.get()

    async def end(self) -> None:
        """Waits for ever."""
        await asyncio.Event().wait()


def _leave_with(line: Any, actor: Any) -> None:
    import ray

    try:
        ray.get(line.end.remote())
    except ray.exceptions.RayActorError:
        # Ray Data lets go of its actors some time, and they would keep their processors from those of the next stream.
        ray.kill(actor)


class Worker:
    """An actor: makes its backend and answers blocks with it.

    Name, options and version must be those that the driver has, as they are in the key of every reply. File names among
    the options are relative to `folder`, where the driver works.
    """

    def __init__(self, make: Maker, expected: Mapping[str, object], version: str, folder: str, line: Any) -> None:
        import ray

        context = ray.get_runtime_context()
        if context.was_current_actor_reconstructed:
            # Ray would begin again for ever what killed a process; this ends the stream, so that the driver knows.
            raise RuntimeError("a process of the Ray pool was gone")
        threading.Thread(target=_leave_with, args=(line, context.current_actor), daemon=True).start()
        self._notes = BufferingHandler(10**6)
        _LOG.addHandler(self._notes)
        _LOG.setLevel(logging.INFO)  # this process is ours, and the driver knows what is to be shown
        with contextlib.suppress(OSError):
            os.chdir(folder)
        self._problem: RubricMeasuresError | None = None
        try:
            if version != __version__:
                raise BackendError(f"rubric_measures is {__version__} here and {version} in the driver")
            self._backend = make()
            found = {"model": self._backend.model, **self._backend.options}
            for name in sorted({*found, *expected}):
                if found.get(name) != expected.get(name):
                    here, there = found.get(name), expected.get(name)
                    raise BackendError(
                        f"{name} is {here!r} here and {there!r} in the driver; name it among the model's settings"
                    )
        except Exception as error:
            self._problem = BackendError(_described(error))

    def __call__(self, table: Any) -> Any:
        """Answers the blocks of a table (one, as a rule)."""
        import pyarrow

        return pyarrow.table({"data": [self._answered(data.as_py()) for data in table["data"]]})

    def _answered(self, data: bytes) -> bytes:
        """The number of a block, its replies (None: there is none), what went wrong, and what the backend had to say.

        Replies that were there before nothing worked any more are paid, so they come with the problem.
        """
        from ray import cloudpickle

        number, requests = pickle.loads(data)
        replies: dict[str, Reply] = {}
        problem = self._problem
        try:
            for request, reply in self._backend.complete(iter(requests)) if problem is None else ():
                replies[request.key] = reply
        except RubricMeasuresError as error:
            problem = error
        except Exception as error:
            # What a backend does not expect is found out as what kills it: by which passage it comes.
            problem = DeviceLostError(_described(error))
        notes = [(record.levelno, record.getMessage()) for record in self._notes.buffer]
        self._notes.flush()
        found: bytes = cloudpickle.dumps((number, [replies.get(one.key) for one in requests], problem, notes))
        return found


def _described(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, RubricMeasuresError) else f"{type(error).__name__}: {text}"


def _feed(_: Any, line: Any) -> Iterator[Any]:
    """The stream of blocks as Ray Data reads it: a row a block."""
    import pyarrow
    import ray

    for place in itertools.count():
        yield pyarrow.table({"data": [ray.get(line.take.remote(place))]})


def _read(dataset: Any, results: queue.SimpleQueue[Any]) -> None:
    try:
        for table in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
            for data in table["data"]:
                results.put(pickle.loads(data.as_py()))
        said = "it ended"
    except BaseException as error:
        # Not the exception: its frames would keep the actors, and these their processors.
        said = " ".join(str(error).split())[:300] or type(error).__name__
    results.put(_gone(said))


def _gone(said: str) -> tuple[None, list[Reply], GradingError, list[Any]]:
    """What comes back where nothing does, as from an actor."""
    return None, [], GradingError(said), []


def _nodes(ray: Any) -> set[str]:
    return {node["NodeID"] for node in ray.nodes() if node["Alive"]}


def _passages(requests: Iterable[Request]) -> Iterator[list[Request]]:
    """The requests passage by passage; one without a group is a passage by itself."""
    return (list(of) for _, of in itertools.groupby(requests, lambda one: one.group or one.key))


def pool_size(ray: Any, settings: RaySettings) -> tuple[int, int, float]:
    """How many actors there will be, and the processors and GPUs of each.

    Raises:
        BackendError: an actor needs more GPUs than this machine has.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = settings.gpus_per_actor or 0.0
    processors = [int(node.get("CPU", 0)) for node in nodes if node.get("CPU", 0) >= 1] or [1]
    if gpus:
        cpus = 1
        places = sum(int(node.get("GPU", 0) / gpus) for node in nodes)
    else:
        # Processors are shared out, so that the threads of models do not stand in each other's way.
        share = sum(processors) // settings.actors if settings.actors else _PROCESSORS
        cpus = max(1, min([share, *processors]))
        places = sum(count // cpus for count in processors)
    if not places and not settings.address:
        raise BackendError(f"an actor needs {gpus:g} GPUs, and this machine has fewer", settings=("gpus_per_actor",))
    actors = settings.actors or max(1, places)
    if actors > places:
        _LOG.warning("there is room for %d of %d actors now; the others wait for nodes", places, actors)
    return actors, cpus, gpus


@dataclass(frozen=True)
class RayRunner(LocalRunner):
    """Runs jobs over a pool of Ray actors; the cache, the jobs and the limits stay in this process.

    Requests that the cache does not answer go out in blocks of whole passages, as many as the actors can take; the
    replies of a block are in the cache before its results are handed on. The results are those of the local runner,
    whatever the number of actors and the order in which blocks return. Ray starts with the first call.

    Attributes:
        make: makes the backend of an actor; `backend` is the same one in this process, which makes no call.
        settings: the size of the pool.
    """

    make: Maker = field(kw_only=True)
    settings: RaySettings = field(default_factory=RaySettings)

    @contextlib.contextmanager
    def calling(self) -> Iterator[Complete]:
        """What makes the calls of one run: the actors of a pool, which ends with it."""
        pool = _Pool(self)
        try:
            yield pool.complete
        finally:
            pool.close()


class _Pool:
    """A stream of Ray Data through actors: it begins with the first block, and anew when a process died.

    When a process dies, what was under way goes out again, and nothing new does until all of it is answered. When
    another one dies meanwhile, one passage is out at a time: so the one is found over which they die.
    """

    def __init__(self, runner: RayRunner) -> None:
        self._runner = runner
        self._size = runner.settings.batch_size or _BLOCK
        self._window = 1
        self._numbers = itertools.count()
        self._under_way: dict[int, list[Request]] = {}
        self._again: deque[list[Request]] = deque()
        self._deaths = 0  # since what was under way at the first of them is not answered yet
        self._in_row = 0
        self._line: Any = None
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._stream, self._stack = contextlib.ExitStack(), contextlib.ExitStack()

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Sends blocks out while there is room for them, and yields what comes back.

        Raises:
            MissingExtraError: Ray is not installed.
            BackendError: the model cannot be used in the actors, or the cluster cannot be.
            RejectedError: an endpoint accepts no call.
            GradingError: processes keep dying without any reply between.
            KeyboardInterrupt: the run was stopped, and what was sent is answered.
        """
        passages = _passages(requests)
        problem: BackendError | None = None
        told = False
        if self._line is None:
            self._begin()
        while True:
            if problem is None and not self._is_stopped:
                self._fill(passages)
            if not self._under_way:
                break
            if self._is_stopped and not told:
                told = True
                _LOG.info("waiting for %d blocks that were sent; Ctrl-C again drops them", len(self._under_way))
            try:
                number, replies, error, notes = self._results.get(timeout=_TICK)
            except queue.Empty:
                if self._nodes - _nodes(self._ray):
                    self._results.put(_gone("a node left the cluster"))
                continue
            for level, note in notes:
                _LOG.log(level, "%s", note)
            if type(error) in (GradingError, DeviceLostError):
                yield from self._died(error)
                continue
            if error is not None and problem is None:
                text = f"the model cannot be used in the Ray actors: {error}"
                problem = error if isinstance(error, RejectedError) else BackendError(text)
            self._in_row = 0
            pairs = zip(self._under_way.pop(number), replies, strict=True)
            yield from ((request, reply) for request, reply in pairs if reply is not None)
        if problem is not None:
            raise problem
        if self._is_stopped:
            raise KeyboardInterrupt

    @property
    def _is_stopped(self) -> bool:
        return self._runner.stop is not None and self._runner.stop.is_set()

    def _fill(self, passages: Iterator[list[Request]]) -> None:
        from ray import cloudpickle

        if not self._again and not self._under_way:
            self._deaths = 0
        while len(self._under_way) < (1 if self._deaths > 1 else self._window):
            if self._again:
                block = self._again.popleft()
            elif self._deaths:
                return
            else:
                block = list(itertools.chain.from_iterable(itertools.islice(passages, self._size)))
            if not block:
                return
            if self._line is None:
                self._begin()
            number = next(self._numbers)
            self._under_way[number] = block
            # What was computed from them stays here.
            plain = [dataclasses.replace(one, messages=tuple(Message(*part) for part in one.messages)) for one in block]
            self._line.put.remote(cloudpickle.dumps((number, plain)))

    def _died(self, error: Exception) -> Iterator[tuple[Request, Reply]]:
        """Begins anew with what was under way, but for a passage over which processes died."""
        self._end()
        self._deaths += 1
        self._in_row += 1
        if self._in_row > _DEATHS:
            raise GradingError(f"Ray keeps failing ({error}); finished calls are in the cache: run again to continue")
        _LOG.warning("a process of the Ray pool was gone; %d blocks are begun again", len(self._under_way))
        lost, self._under_way = list(self._under_way.values()), {}
        if self._deaths > 1:
            lost = [passage for block in lost for passage in _passages(block)]
        if self._deaths > 2 and len(lost) == 1:
            note = f"{_LOST} ({error})" if isinstance(error, DeviceLostError) else _LOST
            yield from ((request, Reply(None, "failed", note)) for request in lost.pop())
        self._again.extendleft(reversed(lost))

    def _begin(self) -> None:
        runner = self._runner
        ray = self._ray = self._stack.enter_context(connected(runner.settings.address))
        if self._is_stopped:
            raise KeyboardInterrupt
        # Few blocks are no mistake of the user.
        warnings.filterwarnings("ignore", "The minimum number of concurrent actors", UserWarning)
        self._nodes = _nodes(ray)
        actors, cpus, gpus = pool_size(ray, runner.settings)
        self._window = _IN_FLIGHT * actors
        # Blocks stay with the driver's node until an actor takes them: another node may leave with what it holds.
        here = {"ray.io/node-id": ray.get_runtime_context().get_node_id()}
        self._line = ray.remote(Line).options(max_concurrency=1000, num_cpus=0, label_selector=here).remote()
        # Of the ways to begin a dataset, this one needs no task: all processors may be taken.
        seed = ray.data.from_items([{"seed": 0}], override_num_blocks=1)
        # Every row is a block of Ray Data's: a stream must not be kept until it makes a block of megabytes.
        seed.context.target_max_block_size = 1
        seed.context.enable_progress_bars = False
        seed.context.execution_no_progress_timeout_s = -1.0  # a block may take a slow model as long as it likes
        # It takes GPUs for batches of a size that is said, and no other.
        rows: dict[str, Any] = {"batch_size": 1, "batch_format": "pyarrow"}
        expected = {"model": runner.backend.model, **runner.backend.options}
        dataset = seed.map_batches(
            _feed, fn_kwargs={"line": self._line}, num_cpus=0, label_selector=here, **rows
        ).map_batches(
            Worker,
            fn_constructor_args=(runner.make, expected, __version__, str(Path.cwd()), self._line),
            compute=ray.data.ActorPoolStrategy(size=actors, max_tasks_in_flight_per_actor=_IN_FLIGHT),
            num_cpus=cpus,
            num_gpus=gpus or None,
            **rows,
        )
        self._results = queue.SimpleQueue()
        reader = threading.Thread(target=_read, args=(dataset, self._results), name="rubric_measures-ray", daemon=True)
        reader.start()
        self._stream.callback(reader.join, 60)
        self._stream.callback(ray.kill, self._line)

    def _end(self) -> None:
        """Ends the stream; blocks under way are lost."""
        self._line = None
        self._stream.close()

    def close(self) -> None:
        """Ends the stream and, where Ray is our own, Ray."""
        self._end()
        self._stack.close()


def ray_backend(model: str, options: dict[str, Any], settings: RaySettings) -> tuple[Backend, Maker, RaySettings]:
    """The backend of a model for this process, its maker for actors, and the settings with what the model needs.

    Device and dtype of a Hugging Face model are settled here, for all actors alike: they are part of the key of every
    reply. On a cluster whose actors have GPUs, one of its nodes is asked what its GPU computes in.

    Raises:
        InputError: the settings do not go together.
        MissingExtraError: Ray, or what the model needs, is not installed.
        BackendError: the model or the cluster cannot be used.
    """
    if importlib.util.find_spec("ray") is None:
        raise MissingExtraError("the Ray runner", "ray")
    if options.get("batch") is not None:
        raise InputError("the Batch API computes elsewhere; Ray actors cannot help it", settings=("runner",))
    if not model.startswith("hf:"):
        backend = make_backend(model, **options)
        return backend, partial(make_backend, model, **{**getattr(backend, "settings_here", {}), **options}), settings
    from rubric_measures.models.hf import choose_device, choose_dtype

    device, gpus = str(options.get("device", "auto")), settings.gpus_per_actor
    if device.startswith("cuda:"):
        raise InputError(f"device={device}: Ray gives every actor a GPU of its own; say device=cuda")
    if device == "auto":
        if gpus is None and settings.address:
            with connected(settings.address) as ray:
                gpus = float(ray.cluster_resources().get("GPU", 0) > 0)
        device = choose_device("auto") if gpus is None else "cuda" if gpus else "cpu"
    if gpus is None:
        gpus = float(device == "cuda")
    if gpus and device == "cpu":
        raise InputError("device=cpu needs no GPU for its actors", settings=("gpus_per_actor",))
    options = {**options, "device": device}
    if settings.address and gpus and options.get("dtype", "auto") == "auto":
        with connected(settings.address) as ray:
            options["dtype"] = ray.get(ray.remote(choose_dtype).options(num_gpus=gpus).remote("auto", device))
    backend = make_backend(model, **options)
    options["dtype"] = backend.options["dtype"]
    size = settings.batch_size or _BLOCK_OF_MODEL
    settings = dataclasses.replace(settings, gpus_per_actor=gpus, batch_size=size)
    return backend, partial(make_backend, model, **options), settings
