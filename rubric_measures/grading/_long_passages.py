"""Long passages: what the model's context cannot hold is cut into chunks, truncated or refused; never the question."""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Callable
from typing import NamedTuple

from rubric_measures.grading._settings import GradingSettings
from rubric_measures.models.base import Backend
from rubric_measures.types.scales import Message

_PER_MESSAGE = 8  # what a chat template or special tokens add to a message, at most
_LEAST_ROOM = 16  # with less room than this for the passage, nothing sensible can be shown
_BOUNDARY = re.compile(r"\s+")


class Fit(NamedTuple):
    """The pieces of a passage that are shown one by one; none when it is refused.

    Attributes:
        pieces: the whole passage, its chunks, or its beginning.
        status: `graded` or `truncated` for pieces that may be graded, `refused` or `failed` without any.
        note: what was done to the passage, empty when nothing was.
        spans: where in the passage each piece begins and ends, in characters; None for a whole passage.
    """

    pieces: tuple[str, ...]
    status: str = "graded"
    note: str = ""
    spans: tuple[tuple[int, int], ...] | None = None


class Fitter:
    """Fits passages into the context of a model.

    Args:
        backend: the model; its own tokenizer counts.
        settings: what to do with passages that are too long.

    Attributes:
        count: the tokens of a text.
    """

    def __init__(self, backend: Backend, settings: GradingSettings) -> None:
        self._limit = backend.context_tokens
        # An encoder-decoder writes its reply elsewhere.
        self._shared = bool(getattr(backend, "reply_shares_context", True))
        self._settings = settings
        self.count = functools.lru_cache(maxsize=4096)(backend.count_tokens)

    @property
    def unlimited(self) -> bool:
        """Whether every passage fits, or nobody knows."""
        return self._limit is None

    def why_too_long(self, messages: tuple[Message, ...], reply_tokens: int) -> str:
        """Why messages and their reply do not fit; empty when they do, or when nobody knows."""
        if self._limit is None:
            return ""
        taken = self._taken(messages, reply_tokens)
        return f"it needs {taken} of the model's {self._limit} tokens" if taken > self._limit else ""

    def _taken(self, messages: tuple[Message, ...], reply_tokens: int) -> int:
        shown = sum(self.count(message.content) + _PER_MESSAGE for message in messages)
        return shown + (reply_tokens if self._shared else 0)

    def room(self, frame: tuple[Message, ...], reply_tokens: int) -> int:
        """How many tokens of a passage go into messages that are shown with an empty one; for models with a limit."""
        return (self._limit or 0) - self._taken(frame, reply_tokens)

    def fit(self, text: str, frame: tuple[Message, ...], reply_tokens: int, shown: Callable[[str], str] = str) -> Fit:
        """What of a passage is shown at once.

        Args:
            text: the passage.
            frame: the messages with an empty passage.
            reply_tokens: how long the reply may be.
            shown: a piece as the messages show it, which may be longer.
        """
        if self._limit is None:
            return Fit((text,))
        room = self.room(frame, reply_tokens)

        def count(piece: str) -> int:
            return self.count(shown(piece))

        length = count(text)
        if length <= room:
            return Fit((text,))
        if room < _LEAST_ROOM:
            note = f"question and reply need {self._limit - room} of the model's {self._limit} tokens"
            return Fit((), "failed", note, ())
        found = f"{length} tokens, room for {room}"
        how = self._settings.long_passages
        if how == "refuse":
            return Fit((), "refused", f"the passage is too long: {found}", ())
        if how == "truncate":
            end = _longest_prefix(text, 0, room, count)
            return Fit((text[:end],), "truncated", f"the passage was cut: {found}", ((0, end),))
        spans = overlapping_chunks(text, room, self._settings.chunk_overlap, count)
        pieces = tuple(text[start:end] for start, end in spans)
        return Fit(pieces, "graded", f"graded in {len(pieces)} chunks: {found}", spans)


def overlapping_chunks(
    text: str, room: int, overlap: float, count: Callable[[str], int]
) -> tuple[tuple[int, int], ...]:
    """Cuts a text between words into chunks of at most `room` tokens, each repeating the end of the one before.

    Args:
        text: the text.
        room: tokens a chunk may have.
        overlap: the share of a chunk (in characters) that the next one repeats.
        count: counts tokens.

    Returns:
        Where each chunk begins and ends, in characters; together they hold every character of the text, whitespace at
        the seams aside.
    """
    chunks = []
    start = 0
    while True:
        end = _longest_prefix(text, start, room, count)
        shown = text[start:end].strip()
        if shown:
            first = text.index(shown, start)
            chunks.append((first, first + len(shown)))
        if end >= len(text) or not text[end:].strip():
            return tuple(chunks) or ((0, 0),)
        wanted = start + max(1, round((end - start) * (1 - overlap)))
        # Begin at a word, unless there is none before the end of the chunk.
        boundary = _BOUNDARY.search(text, wanted - 1, end)
        start = boundary.end() if boundary and boundary.end() < end else end


def _longest_prefix(text: str, start: int, room: int, count: Callable[[str], int]) -> int:
    """The end of the longest stretch from `start` that has at most `room` tokens and ends between words."""
    ends = [match.start() for match in _BOUNDARY.finditer(text, start) if match.start() > start] + [len(text)]
    fitting = _bisect(len(ends), lambda place: count(text[start : ends[place]]) <= room)
    if fitting:
        return ends[fitting - 1]
    # One word longer than the room (no blanks in the script, or garbage): cut inside it.
    inside = _bisect(ends[0] - start, lambda place: count(text[start : start + place + 1]) <= room)
    return start + max(1, inside)


def _bisect(size: int, holds: Callable[[int], bool]) -> int:
    """How many of the first places hold, for a condition that holds up to some place."""
    return bisect.bisect_left(range(size), True, key=lambda place: not holds(place))
