"""Settings of a model and its calls, and the progress that is shown.

Around a run of calls: Ctrl-C that keeps finished work, a progress bar, and the note where a limit ended the run.

A model to be asked, from plain settings: its backend, price, limits and cache, and the runner of its calls.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from rubric_measures.base.errors import InputError, RubricMeasuresError, UnknownNameError, refuse_ignored, warn
from rubric_measures.models import make_backend
from rubric_measures.models.base import Backend
from rubric_measures.models.replies import ReplyCache
from rubric_measures.models.running import LocalRunner, RunStats, load_prices, price_of

# True shows a bar; a function gets the counts now and then.
Progress = bool | Callable[[RunStats], None]


@contextlib.contextmanager
def interrupts() -> Iterator[threading.Event]:
    """What the first Ctrl-C sets, so that calls in flight are finished and kept; the second one interrupts.

    So do the signals that end a process, where they are handled as Ctrl-C is, as by the command line.
    """
    event = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # Only the main thread may handle signals; elsewhere, and where it is ignored, an interrupt stays what it was.
    is_main = threading.current_thread() is threading.main_thread()
    before = {one: signal.signal(one, handle) for one in numbers if is_main and callable(signal.getsignal(one))}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def request_bar(total: int | None, unit: str, name: str | None) -> Iterator[Callable[[RunStats], None]]:
    """What a runner tells its counts to: a bar on standard error."""
    from tqdm import tqdm

    with tqdm(total=total, desc=name, unit=f" {unit}", smoothing=0.1, file=sys.stderr) as bar:

        def show(stats: RunStats) -> None:
            bar.set_postfix(stats.progress, refresh=False)
            bar.update(stats.answered - bar.n)

        yield show


def note_limit(stats: RunStats, *, is_kept: bool = True) -> None:
    """Says that a limit was reached, and how to go on (with a cache that is kept, or without)."""
    if stats.limit:
        again = "raise it and run again" if stats.limit.startswith("the limit") else "run again to go on"
        how = f"{again}: finished calls are in the cache" if is_kept else "name a cache to go on later"
        settings = () if is_kept else ("cache",)
        warn(f"{stats.limit}, {stats.missing} requests were not made; {how}", settings=settings)


IN_MEMORY = ":memory:"
# More calls, and more money, than anybody has.
_MOST = 10**9


def given_of(settings: Any) -> dict[str, Any]:
    """The fields of a settings object that are not what they are by default."""
    return {one.name: value for one in fields(settings) if (value := getattr(settings, one.name)) != one.default}


def refuse_outside(settings: Any, **ranges: tuple[int, int]) -> None:
    """Refuses a number of a settings object that is none, or lies outside of its range; None says nothing.

    Args:
        settings: the object.
        ranges: field -> its least and its highest value.

    Raises:
        InputError: names the field and the range.
    """
    for name, (low, high) in ranges.items():
        value = getattr(settings, name)
        if hasattr(value, "item"):  # numpy's, which JSON does not hold
            object.__setattr__(settings, name, value := value.item())
        if value is not None and not (isinstance(value, int | float) and low <= value <= high):
            raise InputError(f"{name} is {value!r}; expected a number from {low} to {high}", settings=(name,))


def refuse_plain(model: Any, asking: Any, calls: Any) -> None:
    """Refuses what is no model, and plain values in the place of settings objects.

    Raises:
        InputError: names the parameter, and what is expected.
    """
    for name, value, kinds, expected in (
        ("model", model, ("complete", "casefold"), "a model's name, or a backend"),
        ("asking", asking, ("replicates",), "Asking(…)"),
        ("calls", calls, ("max_calls",), "Calls(…)"),
    ):
        if not any(hasattr(value, one) for one in kinds):
            raise InputError(f"{name} is {value!r:.60}; expected {expected}")


@dataclass(frozen=True)
class Calls:
    """Where a model is called, what is kept of its replies, and what its calls may cost.

    >>> Calls(cache="replies.sqlite", max_calls=0).is_kept
    True

    Attributes:
        base_url: the endpoint of an `openai:` model.
        model_option: settings of the model's backend.
        cache: the file of the reply cache; by default it lies beside the output, and without one replies are held in
            memory, as long as the run takes.
        prices: the file of a price table, needed for a limit on the cost and for what a dry run says about it; JSON:
            `{"gpt-4o": {"input": 2.5, "output": 10}}`, for a million tokens.
        max_calls: make so many calls at most in all runs over the cache; the others fail. With 0 no call is made: what
            is not in the cache fails.
        max_cost: make no call that costs more in all runs over the cache; needs prices.
        runner: `local`, this process, or `ray`, actors of Ray.
        ray_address: the Ray cluster, `HOST:PORT` or `auto`; by default a Ray of its own on this machine.
        actors: how many actors, each with a model; by default as GPUs, else four processors each.
        gpus_per_actor: GPUs of an actor, or the share of one; by default as the model needs.
        batch_size: passages that an actor gets at once; by default as the model needs.

    Raises:
        UnknownNameError: there is no such runner.
        InputError: a setting has no effect, or a limit is below 0.
    """

    base_url: str | None = None
    model_option: Mapping[str, Any] | None = None
    cache: str | os.PathLike[str] | None = None
    prices: str | os.PathLike[str] | None = None
    max_calls: int | None = None
    max_cost: float | None = None
    runner: Literal["local", "ray"] = "local"
    ray_address: str | None = None
    actors: int | None = None
    gpus_per_actor: float | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        if self.runner not in ("local", "ray"):
            raise UnknownNameError("runner", self.runner, ("local", "ray"), settings=("runner",))
        of_ray = ("ray_address", "actors", "gpus_per_actor", "batch_size")
        if idle := [name for name in of_ray if self.runner == "local" and getattr(self, name) is not None]:
            refuse_ignored(idle, "without the runner ray", "runner")
        any_number, from_one = (0, _MOST), (1, _MOST)
        refuse_outside(self, max_calls=any_number, max_cost=any_number, gpus_per_actor=any_number)
        refuse_outside(self, actors=from_one, batch_size=from_one)

    @property
    def is_kept(self) -> bool:
        """Whether the replies outlive the run."""
        return self.cache is not None and os.fspath(self.cache) != IN_MEMORY

    def to(self, model: str | Backend) -> LocalRunner:
        """What runs calls of a model, with its backend, price and limits; `asking` opens its cache.

        Args:
            model: its name (`lexical`, `scripted:FILE`, `hf:NAME`, `openai:NAME`, `litellm:PROVIDER/NAME`), or a
                backend of one's own.

        Raises:
            InputError: a setting makes no sense, or a limit on the cost has no price.
            UnknownNameError: there is no such model or setting of a backend.
            BackendError: the model cannot be used.
            MissingExtraError: Ray, or what the model needs, is not installed.
        """
        options = {**(self.model_option or {}), **({"base_url": self.base_url} if self.base_url else {})}
        # A run that makes no call needs no actors.
        if self.runner == "ray" and self.max_calls != 0:
            if not isinstance(model, str):
                raise InputError("actors make their model themselves: name it, as a plug-in if it is your own")
            from rubric_measures.models.ray_runner import ray_runner

            sizes = self.actors, self.gpus_per_actor, self.batch_size, self.ray_address or ""
            runner: LocalRunner = ray_runner(model, options, *sizes)
        elif isinstance(model, str):
            runner = LocalRunner(make_backend(model, **options))
        elif options:
            named = ", ".join(options)
            raise InputError(f"{named}: a backend has its settings already; give them to {model.model}")
        else:
            runner = LocalRunner(model)
        name = runner.backend.model
        price = price_of(name, load_prices(self.prices)) if self.prices else None
        if self.max_cost is not None and price is None:
            text = f"a limit on the cost needs a price for {name}; give a price table with an entry for it"
            raise InputError(text, settings=("max_cost", "prices"))
        return replace(runner, price=price, max_cost=self.max_cost)

    @contextlib.contextmanager
    def asking(
        self,
        runner: LocalRunner,
        progress: Progress = False,
        total: int | None = None,
        unit: str = "requests",
        name: str | None = None,
        stop: threading.Event | None = None,
        stats: RunStats | None = None,
    ) -> Iterator[LocalRunner]:
        """The runner over its cache, with progress; the first Ctrl-C lets calls in flight finish and be kept.

        What became of the calls is said where an interrupt or an error ends the run.

        Args:
            runner: what `to` gave.
            progress: what it tells its counts to; see `Progress`.
            total: the requests to come, for a bar.
            unit: what a bar calls them.
            name: what stands before the bar.
            stop: ends the calls when it is set, where somebody else listens to Ctrl-C.
            stats: the counts of the calls.
        """
        with contextlib.ExitStack() as stack:
            path = self.cache or IN_MEMORY
            # Without calls nothing is added, and no file made.
            is_there, is_read = Path(path).is_file(), self.max_calls == 0
            cache = ReplyCache(path if is_there or not is_read else IN_MEMORY, read_only=is_there and is_read)
            opened = stack.enter_context(cache)
            told = stack.enter_context(request_bar(total, unit, name)) if progress is True else progress or None
            stop = stop or stack.enter_context(interrupts())
            try:
                yield replace(runner, cache=opened, max_calls=self.max_calls, progress=told, stop=stop)
            except (KeyboardInterrupt, RubricMeasuresError) as error:
                self._say_kept(stats or RunStats(), isinstance(error, KeyboardInterrupt) and not is_read)
                raise

    def _say_kept(self, stats: RunStats, is_stopped: bool) -> None:
        answered = stats.calls - stats.failed
        if self.is_kept and (answered or is_stopped):
            then = "run again to continue" if is_stopped else "what is wrong:"
            warn(f"{answered} calls of this run are in the cache: {then}")
        elif answered:
            warn(f"{answered} calls of this run are lost: name a cache to keep them", settings=("cache",))
