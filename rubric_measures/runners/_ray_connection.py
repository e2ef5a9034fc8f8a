"""The connection to Ray: one that starts by itself and says nothing, or a cluster that is there."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

from rubric_measures.base.errors import BackendError
from rubric_measures.base.plugins import require

__all__ = ["QUIET", "connected"]

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
