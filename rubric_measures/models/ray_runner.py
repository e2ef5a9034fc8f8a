"""Calls spread over a Ray cluster.

The driver's side of a pool of Ray actors: blocks of requests go out in a stream of Ray Data, blocks of replies come
back.

The Ray runner: what the local runner does, with the calls made by a pool of actors.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import logging
import pickle
import queue
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rubric_measures.base.errors import BackendError, GradingError, InputError, MissingExtraError, RejectedError
from rubric_measures.models import make_backend
from rubric_measures.models.base import Backend, Reply, Request
from rubric_measures.models.ray_workers import BackendSpec, Desk, Returned, Worker, connected, feed, pack_requests
from rubric_measures.models.running import LocalRunner, RunState

_LOG = logging.getLogger("rubric_measures")
_IN_FLIGHT = 2  # blocks that each actor has: one that it answers, and the next
_TICK = 0.5  # seconds until a Ctrl-C is noticed
_LOOK_AROUND = 5.0  # seconds between two looks at the nodes of the cluster, while no block comes
_RESTARTS = 3  # streams that break one after the other without a block between
_PROCESSORS = 4  # of an actor without a GPU


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


class RayPool:
    """A pool of actors that answer blocks of requests; it starts with the first block.

    Blocks come back in any order, each exactly once. An actor whose process dies is replaced by Ray, and its block
    redone; blocks of a node that left are given to others; a stream that breaks is begun anew with the open blocks.
    The backend of an actor must have the name and options that the driver `expected`.
    """

    def __init__(self, spec: BackendSpec, expected: Mapping[str, object], settings: RaySettings) -> None:
        self._spec, self._expected, self._settings = spec, dict(expected), settings
        self._open: dict[int, list[Request]] = {}
        self._next = 0
        self._stack = contextlib.ExitStack()
        self._ray: Any = None
        self._stream: _Execution | None = None
        self._problem: BackendError | None = None
        self._breaks = 0
        self._redone = 0
        self._alive: frozenset[str] = frozenset()
        self._window = 0
        self._recalled = False

    @property
    def open(self) -> bool:
        """Whether `take` has something to say: there are blocks without replies, or there is a problem."""
        return bool(self._open) or self._problem is not None

    @property
    def has_room(self) -> bool:
        """Whether another block may go out: every actor has work, and a few blocks are on their way."""
        return self._problem is None and (not self._window or len(self._open) < self._window)

    def submit(self, requests: Sequence[Request]) -> None:
        """Sends a block out."""
        self._started()
        number, self._next = self._next, self._next + 1
        self._open[number] = list(requests)
        self._send(number)

    def take(self, stop: threading.Event | None = None) -> list[tuple[Request, Reply]]:
        """Waits for a block and returns its requests with their replies, as many as there are before a problem.

        Args:
            stop: when it is set, blocks that no actor has begun are taken back; the result is empty when none is left.

        Raises:
            BackendError: the model cannot be used in the actors.
            RejectedError: an endpoint accepted no call of a block. The others can be taken.
            GradingError: Ray keeps failing.
        """
        looked = time.monotonic()
        while self.open:
            if self._problem is not None:
                problem, self._problem = self._problem, None
                raise problem
            stream = self._started()
            if stop is not None and stop.is_set():
                self._recall(stream)
            try:
                found = stream.results.get(timeout=_TICK)
            except queue.Empty:
                if time.monotonic() - looked > _LOOK_AROUND:
                    self._look_around(stream)
                    looked = time.monotonic()
                continue
            if isinstance(found, Returned):
                answered = self._answered(stream, found)
                if answered is not None:
                    return answered
            else:
                self._broken(found)
        return []

    def close(self) -> None:
        """Ends the stream and, where Ray is our own, Ray; blocks under way are lost."""
        try:
            if self._stream is not None:
                with contextlib.suppress(Exception):
                    self._redone += self._ray.get(self._stream.desk.times_redone.remote(), timeout=5)
                self._stream.close(self._ray, bool(self._open))
        finally:
            self._stream = None
            self._stack.close()
        if self._redone:
            _LOG.warning("%d blocks were begun again: processes or nodes of the Ray pool were gone", self._redone)
            self._redone = 0

    def _started(self) -> _Execution:
        if self._stream is not None:
            return self._stream
        if self._ray is None:
            self._ray = self._stack.enter_context(connected(self._settings.address))
            self._stack.enter_context(_few_blocks_are_no_mistake())
        actors, cpus, gpus = pool_size(self._ray, self._settings)
        self._window = _IN_FLIGHT * actors + 2
        self._alive = _alive(self._ray)
        self._stream = _Execution(self._ray, self._spec, self._expected, actors, cpus, gpus)
        for number in self._open:
            self._send(number)
        return self._stream

    def _send(self, number: int) -> None:
        assert self._stream is not None
        self._stream.desk.add.remote(number, pack_requests(self._open[number]))

    def _answered(self, stream: _Execution, found: Returned) -> list[tuple[Request, Reply]] | None:
        for level, note in found.notes:
            _LOG.log(level, "%s", note)
        if found.rejected:
            self._problem = RejectedError(found.problem)
        elif found.problem:
            self._problem = BackendError(f"the model cannot be used in the Ray actors: {found.problem}")
        if found.replies is None or found.block not in self._open:
            return None
        stream.desk.done.remote(found.block)
        self._breaks = 0
        pairs = zip(self._open.pop(found.block), found.replies, strict=True)
        return [(request, reply) for request, reply in pairs if reply is not None]

    def _broken(self, reason: str) -> None:
        """Begins the stream anew, unless it keeps breaking."""
        self._breaks += 1
        if self._breaks > _RESTARTS or not self._ray.is_initialized():
            raise GradingError(f"Ray keeps failing ({reason}); finished calls are in the cache: run again to continue")
        _LOG.warning("the stream of Ray Data broke and is begun anew: %s", reason)
        if self._stream is not None:
            self._stream.close(self._ray, True)
        self._stream = None

    def _recall(self, stream: _Execution) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError):
            for number in self._ray.get(stream.desk.recall.remote(list(self._open))):
                self._open.pop(number, None)
        if self._open and not self._recalled:
            _LOG.info("waiting for %d blocks that actors have begun; Ctrl-C again drops them", len(self._open))
        self._recalled = True

    def _look_around(self, stream: _Execution) -> None:
        """Gives the blocks of nodes that left to others."""
        try:
            alive = _alive(self._ray)
        except Exception as error:
            raise GradingError(f"the Ray cluster is gone ({error}); run again to continue") from None
        gone, self._alive = self._alive - alive, alive
        if gone:
            _LOG.warning("%d nodes left the Ray cluster; %d are there", len(gone), len(alive))
            stream.desk.nodes_left.remote(sorted(alive))


@contextlib.contextmanager
def _few_blocks_are_no_mistake() -> Iterator[None]:
    """Keeps Ray Data from telling the user how to divide a dataset that has fewer blocks than there are actors."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The minimum number of concurrent actors", UserWarning)
        yield


def _alive(ray: Any) -> frozenset[str]:
    return frozenset(node["NodeID"] for node in ray.nodes() if node["Alive"])


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


class _Execution:
    """One execution of Ray Data, read by a thread."""

    def __init__(
        self, ray: Any, spec: BackendSpec, expected: Mapping[str, object], actors: int, cpus: int, gpus: float
    ) -> None:
        from rubric_measures.base import __version__

        # Blocks stay with the driver's node until an actor takes them: another node may leave with what it holds.
        here = {"ray.io/node-id": ray.get_runtime_context().get_node_id()}
        self.desk = ray.remote(Desk).options(max_concurrency=1000, num_cpus=0, label_selector=here).remote()
        self.results: queue.SimpleQueue[Returned | str] = queue.SimpleQueue()
        dataset = _dataset(ray, self.desk, here).map_batches(
            Worker,
            fn_constructor_args=(spec, expected, __version__, str(Path.cwd()), self.desk),
            compute=ray.data.ActorPoolStrategy(size=actors, max_tasks_in_flight_per_actor=_IN_FLIGHT),
            batch_size=None,
            batch_format="pyarrow",
            num_cpus=cpus,
            num_gpus=gpus or None,
        )
        self._thread = threading.Thread(target=self._read, args=(dataset,), name="rubric_measures-ray", daemon=True)
        self._thread.start()

    def _read(self, dataset: Any) -> None:
        try:
            for table in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
                for data in table.column("returned").to_pylist():
                    self.results.put(pickle.loads(data))
            self.results.put("it ended")
        except BaseException as error:
            # Not the exception: its frames would keep the actors, and these their processors.
            self.results.put(" ".join(str(error).split())[:300] or type(error).__name__)

    def close(self, ray: Any, at_once: bool) -> None:
        """Ends the execution; `at_once` does not wait for blocks under way."""
        with contextlib.suppress(Exception):
            for actor in ray.get(self.desk.cancel.remote(), timeout=30):
                if at_once:
                    ray.kill(actor)
        self._thread.join(60)
        # References to it stay behind, with which it would live as long as the driver.
        with contextlib.suppress(Exception):
            ray.kill(self.desk)


def _dataset(ray: Any, desk: Any, here: dict[str, str]) -> Any:
    """The stream of blocks, a row a block."""
    # Of the ways to begin a dataset, this one needs no task: all processors may be taken.
    seed = ray.data.from_items([{"seed": 0}], override_num_blocks=1)
    # Every row is a block of Ray Data's: a stream must not be kept until it makes a block of megabytes.
    seed.context.target_max_block_size = 1
    seed.context.enable_progress_bars = False
    if hasattr(seed.context, "execution_no_progress_timeout_s"):
        seed.context.execution_no_progress_timeout_s = -1.0  # a block may take a slow model as long as it likes
    return seed.map_batches(
        feed, fn_kwargs={"desk": desk}, batch_size=None, batch_format="pyarrow", num_cpus=0, label_selector=here
    )


K = TypeVar("K")
T = TypeVar("T")
_BLOCK_OF_MODEL, _BLOCK = 16, 256  # passages


@dataclass(frozen=True)
class RayRunner(LocalRunner):
    """Runs jobs over a pool of Ray actors; the cache, the jobs and the limits stay in this process.

    Requests that the cache does not answer go out in blocks of whole passages, as many as the actors can take; a block
    that comes back is in the cache before its results are handed on. The results are those of the local runner,
    whatever the number of actors and the order in which blocks return. Ray starts with the first call.

    Attributes:
        spec: the backend that every actor makes; `backend` is the same one in this process, which makes no call.
        settings: the size of the pool.
    """

    spec: BackendSpec = field(default_factory=lambda: BackendSpec("lexical"))
    settings: RaySettings = field(default_factory=RaySettings)

    def _ask(self, run: RunState[K, T]) -> Iterator[tuple[K, T]]:
        """Makes the calls of a run in actors.

        Raises:
            MissingExtraError: Ray is not installed.
            BackendError: also, the cluster cannot be used.
            GradingError: also, the cluster is gone.
        """
        pool = RayPool(self.spec, {"model": self.backend.model, **self.backend.options}, self.settings)
        draft = _Draft(self.settings.batch_size or self._block_size)
        rejected = ""
        try:
            while True:
                more = self._fill(run, pool, draft)
                if run.done:
                    yield from run.take_done()
                elif pool.open:
                    try:
                        run.settle_block(pool.take(self.stop))
                    except RejectedError as error:
                        # Blocks that are under way may have replies all the same.
                        run.reject(error)
                        rejected = rejected or str(error)
                        draft.take()
                elif run.stopped:
                    raise KeyboardInterrupt
                elif rejected and run.handed:
                    run.give_up(rejected)
                elif not more and run.finished:
                    run.raise_fault()
                    return
                else:
                    run.wait_for_others()
        finally:
            pool.close()

    @property
    def _block_size(self) -> int:
        return _BLOCK_OF_MODEL if self.spec.model.startswith("hf:") else _BLOCK

    @staticmethod
    def _fill(run: RunState[K, T], pool: RayPool, draft: _Draft) -> bool:
        """Sends blocks out while there is room for them; whether there may be more."""
        while pool.has_room:
            request = run.next_miss()
            if request is None:
                # Results that wait to be read hold requests back: then the block is not at its end yet.
                if draft.requests and not run.done and not run.stopped:
                    pool.submit(draft.take())
                return False
            run.hand(request)
            if draft.is_full_before(request):
                pool.submit(draft.take())
            draft.add(request)
        return True


class _Draft:
    """A block of so many passages that is being filled; a passage's requests are in one block."""

    def __init__(self, passages: int) -> None:
        self.requests: list[Request] = []
        self._passages = passages
        self._groups = 0

    def is_full_before(self, request: Request) -> bool:
        """Whether the request belongs into the next block."""
        return self._groups >= self._passages and self._is_new(request)

    def add(self, request: Request) -> None:
        """Adds a request."""
        self._groups += self._is_new(request)
        self.requests.append(request)

    def take(self) -> list[Request]:
        """The requests; the next block begins."""
        requests, self.requests, self._groups = self.requests, [], 0
        return requests

    def _is_new(self, request: Request) -> bool:
        return not self.requests or not request.group or request.group != self.requests[-1].group


def ray_backend(model: str, options: dict[str, Any], settings: RaySettings) -> tuple[Backend, BackendSpec, RaySettings]:
    """The backend of a model for this process, its spec for actors, and the settings with what the model needs.

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
        return backend, BackendSpec(model, {**getattr(backend, "settings_here", {}), **options}), settings
    options = dict(options)
    device, gpus = str(options.get("device", "auto")), settings.gpus_per_actor
    if device == "auto":
        if gpus is None and settings.address:
            with connected(settings.address) as ray:
                gpus = float(ray.cluster_resources().get("GPU", 0) > 0)
        device = _device(gpus)
    elif device.startswith("cuda:"):
        raise InputError(f"device={device}: Ray gives every actor a GPU of its own; say device=cuda")
    if gpus is None:
        gpus = float(device == "cuda")
    if gpus and device == "cpu":
        raise InputError("device=cpu needs no GPU for its actors", settings=("gpus_per_actor",))
    settings = dataclasses.replace(settings, gpus_per_actor=gpus)
    options["device"] = device
    if settings.address and gpus and options.get("dtype", "auto") == "auto":
        options["dtype"] = _dtype_there(settings, device)
    backend = make_backend(model, **options)
    options["dtype"] = backend.options["dtype"]
    return backend, BackendSpec(model, options), settings


def _device(gpus: float | None) -> str:
    from rubric_measures.models.hf import choose_device

    if gpus:
        return "cuda"
    return "cpu" if gpus == 0 else choose_device("auto")


def _dtype_there(settings: RaySettings, device: str) -> str:
    from rubric_measures.models.hf import choose_dtype

    with connected(settings.address) as ray:
        chosen: str = ray.get(ray.remote(choose_dtype).options(num_gpus=settings.gpus_per_actor).remote("auto", device))
    return chosen
