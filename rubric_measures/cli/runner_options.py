"""Where calls are made: the options of `grade` for runners, and the runner that they ask for."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rubric_measures.base.errors import InputError

if TYPE_CHECKING:
    from rubric_measures.backends import Backend
    from rubric_measures.runners import LocalRunner

__all__ = ["add_runner_options", "choose_runner"]

_RAY_OPTIONS = ("ray_address", "actors", "gpus_per_actor", "batch_size")


def add_runner_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say where calls are made."""
    add = parser.add_argument_group("where calls are made").add_argument
    add("--runner", choices=("local", "ray"), default="local", help="this process (default), or actors of Ray")
    add("--ray-address", metavar="ADDRESS", help="the Ray cluster, HOST:PORT or auto (default: a Ray on this machine)")
    add("--actors", type=int, metavar="N", help="actors, each with a model (default: by GPUs, else 4 processors each)")
    add("--gpus-per-actor", type=float, metavar="N", help="GPUs of an actor, or the share of one (default: by model)")
    add("--batch-size", type=int, metavar="N", help="passages that an actor gets at once (default: by model)")


def choose_runner(
    args: argparse.Namespace, backend_options: dict[str, Any], cache: str
) -> tuple[Backend, Callable[..., LocalRunner]]:
    """The backend, and what makes the runner from a cache (here, its path) and limits.

    Raises:
        InputError: an option has no effect, or makes no sense.
        MissingExtraError: Ray, or what the model needs, is not installed.
    """
    given = [name for name in _RAY_OPTIONS if getattr(args, name) is not None]
    if args.runner == "local" and given:
        raise InputError(f"--{given[0].replace('_', '-')} has no effect without --runner ray; leave it out")
    if args.runner == "ray":
        from rubric_measures.runners.ray_pool import RaySettings

        settings = RaySettings(args.actors, args.gpus_per_actor, args.batch_size, args.ray_address or "")
    # A run that makes no call needs no actors.
    if args.runner == "local" or args.cache_only:
        from rubric_measures.cli.model_options import backend_of
        from rubric_measures.runners import LocalRunner

        backend = backend_of(args.model, backend_options, cache if args.cache_only else None)
        return backend, functools.partial(LocalRunner, backend)
    from rubric_measures.runners.ray_runner import RayRunner, ray_backend

    backend, spec, settings = ray_backend(args.model, backend_options, settings)
    return backend, functools.partial(RayRunner, backend, spec=spec, settings=settings)
