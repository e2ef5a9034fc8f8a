"""Backends for the tests of the Ray runner: the actors import this module and make them by name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rubric_measures.base.errors import BackendError
from rubric_measures.models.base import Backend, Reply, Request

_NEVER = 600.0  # seconds after which a test has failed anyway


@dataclass
class Diary:
    """Rates by the length of the prompt, writes every call into a file, and does what the texts of prompts say.

    Attributes:
        folder: where `calls` and the marks of the tests lie.
        gate: wait before a prompt with this text until the folder has a file `open`; `waiting` is a sign of it.
        raises: break down over a prompt with this text.
        kills_once: kill the process over a prompt with this text, but only the first time of all.
        ends: say that nothing can work any more over a prompt with this text.
        hopeless: say that nothing can work.
    """

    folder: Path
    gate: str = ""
    raises: str = ""
    kills_once: str = ""
    ends: str = ""
    hopeless: bool = False

    model = "diary"
    deterministic = True
    context_tokens = None

    @property
    def options(self) -> Mapping[str, object]:
        return {}

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        if self.hopeless:
            raise BackendError("no such model")
        for request in requests:
            text = request.messages[-1].content
            with (self.folder / "calls").open("a", encoding="utf-8") as stream:
                stream.write(f"{os.getpid()}\t{request.key}\n")
            if self.gate and self.gate in text:
                (self.folder / "waiting").touch()
                _wait_for(self.folder / "open")
            if self.ends and self.ends in text:
                raise BackendError("the model is gone")
            if self.raises and self.raises in text:
                raise ValueError("poison")
            if self.kills_once and self.kills_once in text and _first(self.folder / "killed"):
                os.kill(os.getpid(), signal.SIGKILL)
            yield (
                request,
                Reply(str(len(text) % 6), prompt_tokens=len(text), completion_tokens=1, raw={"model": "diary-1"}),
            )


def _wait_for(path: Path) -> None:
    end = time.monotonic() + _NEVER
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.02)


def _first(path: Path) -> bool:
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def make_diary(model: str, **options: Any) -> Backend:
    return Diary(Path(model), **options)


def drive(folder: str, options: dict[str, Any], arguments: list[str]) -> int:
    """The command line with the diary as its model, for processes that are killed or interrupted.

    Args:
        folder: the diary's.
        options: of the diary.
        arguments: the command line.
    """
    from rubric_measures.cli import main
    from rubric_measures.models import ray_runner

    make = partial(make_diary, folder, **options)

    def made(model: str, _: object, actors: int, gpus: None, size: int, address: str) -> Any:
        return ray_runner.RayRunner(make(), make=make, actors=actors, batch_size=size, address=address)

    ray_runner.ray_runner = made
    return main(arguments)
