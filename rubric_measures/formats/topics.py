"""Topics of generation tracks: what is asked, how long an answer may be, and the limits of the tracks."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, Self

from pydantic import Field, TypeAdapter, model_validator

from rubric_measures.base.errors import UnknownNameError
from rubric_measures.base.json_files import JsonLines, TextId
from rubric_measures.formats.base import Format
from rubric_measures.records.models import Record

__all__ = [
    "TOPICS",
    "TRACK_LIMITS",
    "Length",
    "Limit",
    "Topic",
    "length_of",
    "limit_for",
    "read_topics",
    "write_topics",
]

Length = Literal["words", "characters"]


class Limit(NamedTuple):
    """How long an answer may be, in whitespace words or NFKC characters."""

    most: int
    unit: Length


# The guidelines of the tracks; RAGTIME gives each topic a limit of its own.
TRACK_LIMITS: Mapping[str, Limit | None] = MappingProxyType(
    {
        "rag24": Limit(400, "words"),
        "rag25": Limit(400, "words"),
        "rag26": Limit(1024, "words"),
        "dragun": Limit(250, "words"),
        "ragtime": None,
    }
)


class Topic(Record):
    """One topic.

    Attributes:
        request_id: the topic's id, or `qid`.
        title: what is asked, in short, or `query`.
        problem_statement: what is asked, in full.
        background: who asks.
        limit: the greatest length in NFKC characters (RAGTIME).
        word_limit: the greatest length in words.
    """

    request_id: TextId | None = None
    qid: TextId | None = None
    title: str | None = None
    query: str | None = None
    problem_statement: str | None = None
    background: str | None = None
    limit: int | None = Field(default=None, gt=0)
    word_limit: int | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        for names in (("request_id", "qid"), ("title", "query")):
            found = {getattr(self, name) for name in names} - {None}
            if not found or "" in found:
                raise ValueError(f"has no {' or '.join(names)}")
            if len(found) > 1:
                raise ValueError(f"{' and '.join(names)} differ")
        return self

    @property
    def query_id(self) -> str:
        """The topic's id."""
        return self.request_id or self.qid or ""

    @property
    def text(self) -> str:
        """What is asked, in short."""
        return self.title or self.query or ""


_TOPICS = JsonLines(TypeAdapter(Topic), "topics", lambda topic: (topic.query_id,), by_hand=True)
read_topics, write_topics = _TOPICS.read, _TOPICS.write


def limit_for(track: str | None, topic: Topic | None = None) -> Limit | None:
    """The limit of answers: the topic's own, else the track's, else None.

    Args:
        track: one of `TRACK_LIMITS`, or None.
        topic: the topic, where there is a file of topics.

    Raises:
        UnknownNameError: nobody knows the track.
    """
    if track is not None and track not in TRACK_LIMITS:
        raise UnknownNameError("track", track, TRACK_LIMITS)
    if topic is not None and topic.limit is not None:
        return Limit(topic.limit, "characters")
    if topic is not None and topic.word_limit is not None:
        return Limit(topic.word_limit, "words")
    return TRACK_LIMITS[track] if track is not None else None


def length_of(text: str, unit: Length) -> int:
    """The length of an answer in whitespace words, or in characters after NFKC normalisation.

    >>> length_of("ﬁve  words", "words"), length_of("ﬁve", "characters")
    (2, 4)
    """
    return len(text.split()) if unit == "words" else len(unicodedata.normalize("NFKC", text))


TOPICS = Format(
    "topics",
    "topics with titles, problem statements and limits",
    read_topics,
    write_topics,
    lambda head: "request_id" in head.object,
)
