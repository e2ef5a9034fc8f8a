"""Topics of generation tracks: what is asked, how long an answer may be, and the limits of the tracks."""

from __future__ import annotations

import os
import unicodedata
from typing import Any, NamedTuple, Self

from pydantic import Field, TypeAdapter, model_validator

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import path_name, peek_head
from rubric_measures.base.json_files import JsonLines, Record, TextId, check_keys, json_texts, parse_json, validate_line
from rubric_measures.formats.base import Format
from rubric_measures.formats.queries import read_queries
from rubric_measures.formats.track_rules import Length, track_rules

__all__ = [
    "TOPICS",
    "Limit",
    "Topic",
    "length_of",
    "limit_for",
    "read_topics",
    "read_track_topics",
    "write_topics",
]

# Tracks name a topic's id, and what it asks, in many ways.
_IDS = ("request_id", "qid", "topic_id", "narrative_id", "qa_id", "query_id", "id")
_TEXTS = ("narrative", "title", "query", "topic", "question", "text")


class Limit(NamedTuple):
    """How long an answer may be, in whitespace words or NFKC characters."""

    most: int
    unit: Length


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

    @property
    def own_limit(self) -> Limit | None:
        """How long an answer may be, where the topic itself says it."""
        if self.limit is not None:
            return Limit(self.limit, "characters")
        return Limit(self.word_limit, "words") if self.word_limit is not None else None


_TOPICS = JsonLines(TypeAdapter(Topic), "topics", lambda topic: (topic.query_id,), by_hand=True)
read_topics, write_topics = _TOPICS.read, _TOPICS.write


def read_track_topics(path: str | os.PathLike[str]) -> dict[str, Topic]:
    """The topics of a file as any track gives them, by id: objects, one list of them, or lines `id<TAB>text`.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it holds no topics, or one of them twice; names file and line.
    """
    name = path_name(path)
    if peek_head(path).lstrip()[:1] not in (b"{", b"["):
        return _of_queries(path)
    topics: dict[str, Topic] = {}
    for line, data in json_texts(path):
        check_keys(data, path=name, line=line)
        content = parse_json(data, path=name, line=line)
        found = dict(content) if isinstance(content, dict) else {}
        topic_id = next((found[key] for key in _IDS if found.get(key) is not None), None)
        text = next((found[key] for key in _TEXTS if found.get(key) is not None), None)
        if topic_id is None or text is None:
            if not topics and name != "-" and isinstance(content, dict) and len(content) > 1:
                return _of_queries(path)
            problem = (
                f"expected a topic, with an id in one of {', '.join(_IDS)} and a text in one of {', '.join(_TEXTS)}"
            )
            raise FormatError(problem, path=name, line=line)
        fields: dict[str, Any] = {**found, "request_id": topic_id, "qid": None, "title": text, "query": None}
        topic = validate_line(_TOPICS.adapter, fields, path=name, line=line)
        if topics.setdefault(topic.query_id, topic) is not topic:
            raise FormatError(f"topic {topic.query_id!r} comes twice", path=name, line=line)
    if not topics:
        raise FormatError("is empty; expected topics", path=name)
    return topics


def _of_queries(path: str | os.PathLike[str]) -> dict[str, Topic]:
    """Topics of a file of queries, which has ids and texts alone."""
    queries = read_queries(path)
    if empty := next((key for key, text in queries.items() if not text), None):
        raise FormatError(f"query {empty!r} has no text", path=path_name(path))
    return {key: Topic(request_id=key, title=text) for key, text in queries.items()}


def limit_for(track: str | None, topic: Topic | None = None) -> Limit | None:
    """The limit of answers: the topic's own, else the track's, else None.

    Args:
        track: see `track_rules`, or None; RAGTIME gives each topic a limit of its own.
        topic: the topic, where there is a file of topics.

    Raises:
        UnknownNameError: nobody knows the track.
    """
    rules = track_rules(track) if track is not None else ()
    if topic is not None and topic.own_limit is not None:
        return topic.own_limit
    limits = {(one.limit, one.unit) for one in rules}
    most, unit = limits.pop() if len(limits) == 1 else (None, "words")
    return Limit(most, unit) if most is not None else None


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
