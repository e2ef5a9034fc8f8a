"""Asking a model questions whose replies are read: retries as further draws, failures as records."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from rubric_measures.models.base import Reply, Request, refuse_settings
from rubric_measures.models.running import Job, LocalRunner, RunStats
from rubric_measures.prompts.verdicts import Parsed
from rubric_measures.types.scales import Message

__all__ = [
    "BankCall",
    "Caller",
    "Failure",
    "ask_all",
    "ask_each",
    "normalised",
    "run_jobs",
    "without_duplicates",
]

K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True)
class Caller:
    """A model as the makers of test banks use it.

    Attributes:
        runner: the model behind its cache and limits.
        options: generation options of every request, beside those of the backend.
        retries: how often a reply that cannot be read, or that never came, is drawn again (as the next replicate, so
            that no cached reply is read twice).
        stats: counts of what was asked; they grow with every use.

    Raises:
        InputError: a generation option is a setting of the backend.
    """

    runner: LocalRunner
    options: Mapping[str, object] = field(default_factory=dict)
    retries: int = 1
    stats: RunStats = field(default_factory=RunStats)

    def __post_init__(self) -> None:
        refuse_settings(self.runner.backend, self.options)

    @property
    def model(self) -> str:
        """The backend's canonical name."""
        return self.runner.backend.model

    def request(self, messages: tuple[Message, ...], draw: int, longest: int = 0) -> Request:
        """The request of one draw; `longest` is how long the reply may be in place of what the options say."""
        options = {**self.runner.backend.options, **self.options, **({"max_tokens": longest} if longest else {})}
        return Request(self.model, messages, options, replicate=draw)

    def more_tokens(self, messages: tuple[Message, ...]) -> int:
        """How long a reply may be that was cut and is asked for once more, four times as long; 0: it would not fit."""
        reply, limit = self.options.get("max_tokens"), self.runner.backend.context_tokens
        if not isinstance(reply, int) or not self.retries:
            return 0
        shown = sum(self.runner.backend.count_tokens(message.content) for message in messages)
        more = 4 * reply if limit is None else min(4 * reply, limit - shown)
        return more if more > reply else 0

    def why_too_long(self, messages: tuple[Message, ...]) -> str:
        """Why a prompt cannot be asked: it and its reply do not fit the model, which would cut it. Empty if they do."""
        backend = self.runner.backend
        if backend.context_tokens is None:
            return ""
        shown = sum(backend.count_tokens(message.content) for message in messages)
        reply = self.options.get("max_tokens", 0)
        if shown + (reply if isinstance(reply, int) else 0) <= backend.context_tokens:
            return ""
        return f"{shown} tokens and a reply of {reply} do not fit the model's {backend.context_tokens}"


class Failure(NamedTuple):
    """One call that led to nothing: for which query, which step, and why."""

    query_id: str
    step: str
    reason: str


@dataclass(frozen=True)
class BankCall(Generic[T]):
    """One question to the model: what is shown, how the reply is read."""

    messages: tuple[Message, ...]
    read: Callable[[str], Parsed[T]]


def ask_all(
    caller: Caller, asks: Sequence[BankCall[T]]
) -> Generator[Sequence[Request], Sequence[Reply], list[Parsed[T]]]:
    """A step of a job that asks some questions together; the outcomes are in their order."""
    outcomes: dict[int, Parsed[T]] = {}
    waiting = []
    for place, ask in enumerate(asks):
        if problem := caller.why_too_long(ask.messages):
            outcomes[place] = Parsed(None, problem)
        else:
            waiting.append(place)
    longest: dict[int, int] = {}
    for draw in range(caller.retries + 1):
        if not waiting:
            break
        replies = yield [caller.request(asks[place].messages, draw, longest.get(place, 0)) for place in waiting]
        again = []
        for place, reply in zip(waiting, replies, strict=True):
            outcomes[place] = _read(asks[place], reply)
            if outcomes[place].value is not None:
                continue
            if reply.status != "truncated":
                again.append(place)
            elif reply.is_answer and place not in longest and (more := caller.more_tokens(asks[place].messages)):
                # With as many tokens it would be cut again.
                longest[place] = more
                again.append(place)
        waiting = again
    return [outcomes[place] for place in range(len(asks))]


def _read(ask: BankCall[T], reply: Reply) -> Parsed[T]:
    if reply.status != "ok" or reply.text is None:
        return Parsed(None, f"{reply.status}: {reply.error or 'no text'}")
    return ask.read(reply.text)


def run_jobs(caller: Caller, jobs: Iterable[tuple[K, Job[T]]]) -> dict[K, T]:
    """Runs all jobs; name -> result. The order is that in which they were done: look results up by name."""
    return dict(caller.runner.run(jobs, caller.stats))


def ask_each(caller: Caller, asks: Sequence[BankCall[T]]) -> list[Parsed[T]]:
    """Asks questions that do not wait for each other; the outcomes are in their order."""
    found = run_jobs(caller, ((place, ask_all(caller, [ask])) for place, ask in enumerate(asks)))
    return [found[place][0] for place in range(len(asks))]


_PUNCTUATION = re.compile(r"[.,;:!?'\"()\[\]{}…«»“”‘’`*_/–—]|-(?!\d)")


def normalised(text: str) -> str:
    """A text without what does not tell two items apart: case, punctuation, width, blanks (but "C++" is not "C#").

    >>> normalised("  What is a “leap” year? ") == normalised("what is a leap year")
    True
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    # A text of punctuation only keeps it: else all of them would be equal.
    return " ".join(_PUNCTUATION.sub(" ", folded).split()) or folded.strip()


def without_duplicates(texts: Iterable[str]) -> tuple[str, ...]:
    """The texts whose normalised form comes for the first time, in order."""
    known: set[str] = set()
    kept = []
    for text in texts:
        key = normalised(text)
        if key and key not in known:
            known.add(key)
            kept.append(text)
    return tuple(kept)
