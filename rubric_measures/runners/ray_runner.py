"""The Ray runner: what the local runner does, with the calls made by a pool of actors."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rubric_measures.backends import Backend, make_backend
from rubric_measures.backends.base import Request
from rubric_measures.base.errors import InputError, MissingExtraError, RejectedError
from rubric_measures.runners._local import LocalRunner
from rubric_measures.runners._ray_connection import connected
from rubric_measures.runners._ray_worker import BackendSpec
from rubric_measures.runners._run_state import RunState
from rubric_measures.runners.ray_pool import RayPool, RaySettings

__all__ = ["RayRunner", "ray_backend"]

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
    from rubric_measures.backends.hf.loading import choose_device

    if gpus:
        return "cuda"
    return "cpu" if gpus == 0 else choose_device("auto")


def _dtype_there(settings: RaySettings, device: str) -> str:
    from rubric_measures.backends.hf.loading import choose_dtype

    with connected(settings.address) as ray:
        chosen: str = ray.get(ray.remote(choose_dtype).options(num_gpus=settings.gpus_per_actor).remote("auto", device))
    return chosen
