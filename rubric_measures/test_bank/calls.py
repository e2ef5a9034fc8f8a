"""Asking a model many questions whose replies are read: retries as further draws, failures as records."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from rubric_measures.backends.base import Message, Reply, Request
from rubric_measures.errors import GradingError
from rubric_measures.prompts import Parsed

__all__ = ["Ask", "Caller", "Failure", "Outcome", "ask_all", "normalised", "without_duplicates"]

T = TypeVar("T")


@dataclass(frozen=True)
class Caller:
    """A model as the makers of test banks use it; what is cached, bounded and parallel is decided by `complete`.

    Attributes:
        model: the backend's canonical name.
        complete: requests in, each with its reply out, in any order (a backend's method, or one behind a cache).
        options: generation options of every request.
        retries: how often a reply that cannot be read, or that never came, is drawn again (as the next replicate, so
            that no cached reply is read twice).
    """

    model: str
    complete: Callable[[Iterable[Request]], Iterator[tuple[Request, Reply]]]
    options: Mapping[str, object] = field(default_factory=dict)
    retries: int = 1


class Failure(NamedTuple):
    """One call that led to nothing: for which query, which step, and why."""

    query_id: str
    step: str
    reason: str


@dataclass(frozen=True)
class Ask(Generic[T]):
    """One question to the model: who asks (unique), what is shown, how the reply is read."""

    name: tuple[str, int]
    messages: tuple[Message, ...]
    read: Callable[[str], Parsed[T]]


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What came of one question: a value, or None and the reason; and the draws that it took."""

    value: T | None
    reason: str = ""
    draws: int = 1


def ask_all(caller: Caller, asks: Iterable[Ask[T]]) -> dict[tuple[str, int], Outcome[T]]:
    """Asks all questions, equal ones once; name -> outcome, in the order of the questions.

    Raises:
        GradingError: the model did not answer a request at all, which no backend may do.
    """
    everyone = list(asks)
    waiting = everyone
    outcomes: dict[tuple[str, int], Outcome[T]] = {}
    for draw in range(caller.retries + 1):
        by_key: dict[str, list[Ask[T]]] = {}
        requests: dict[str, Request] = {}
        for ask in waiting:
            request = Request(caller.model, ask.messages, dict(caller.options), replicate=draw)
            requests.setdefault(request.key, request)
            by_key.setdefault(request.key, []).append(ask)
        again: list[Ask[T]] = []
        for request, reply in caller.complete(iter(requests.values())):
            for ask in by_key.pop(request.key, ()):
                parsed = _read(ask, reply)
                outcomes[ask.name] = Outcome(parsed.value, parsed.reason, draw + 1)
                if parsed.value is None:
                    again.append(ask)
        if by_key:
            raise GradingError(f"{caller.model}: {len(by_key)} requests were not answered; run the command again")
        # The order of retries must not follow the order of the replies.
        names = {ask.name for ask in again}
        waiting = [ask for ask in waiting if ask.name in names]
        if not waiting:
            break
    return {ask.name: outcomes[ask.name] for ask in everyone}


def _read(ask: Ask[T], reply: Reply) -> Parsed[T]:
    if reply.status != "ok" or reply.text is None:
        return Parsed(None, f"{reply.status}: {reply.error or 'no text'}")
    return ask.read(reply.text)


def normalised(text: str) -> str:
    """A text without what does not tell two items apart: case, punctuation, width, blanks.

    >>> normalised("  What is a “leap” year? ") == normalised("what is a leap year")
    True
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = re.sub(r"[^\w\s]|_", " ", folded).split()
    # A text of symbols only ("C++?", "→") keeps them: else all of them would be equal.
    return " ".join(words) or folded.strip()


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
