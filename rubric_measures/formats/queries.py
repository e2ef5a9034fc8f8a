"""Queries and topics: of TREC, of tables.

Query files: JSON object, JSON list, JSON lines or TSV; queries may have facets (as those of TREC CAR).

Topics of generation tracks: what is asked, how long an answer may be, and the limits of the tracks.
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from pydantic import Field, TypeAdapter, model_validator

from rubric_measures.base.errors import FormatError, InputError, warn
from rubric_measures.base.files import atomic_writer, note_unfinished, path_name, peek_head, read_text
from rubric_measures.base.json_files import JsonLines, Record, TextId, validate_line
from rubric_measures.base.json_text import check_keys, json_texts, parse_json, scanned_json
from rubric_measures.formats.base import Format, Head
from rubric_measures.formats.reports import Length, track_rules

_ID_FIELDS = ("query_id", "qid", "_id", "id", "squid", "request_id", "topic_id", "narrative_id")
_TEXT_FIELDS = ("text", "query", "title", "query_text", "narrative")
_FACET_FIELDS = ("facets", "query_facets")
_FACET_ID_FIELDS = ("facet_id", "heading_id", "id")
_FACET_TEXT_FIELDS = ("facet_text", "heading", "text", "title")


@dataclass(frozen=True)
class QueryFile:
    """What a query file says.

    Attributes:
        texts: query id -> text, in file order.
        facets: (query id, facet id) -> heading, in file order.
        further: query id -> fields of its record that we do not know, kept as they are.
        further_of_facets: (query id, facet id) -> the same of a facet's record.
    """

    texts: Mapping[str, str]
    facets: Mapping[tuple[str, str], str] = field(default_factory=dict)
    further: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    further_of_facets: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)

    def facets_of(self, query_id: str) -> dict[str, str]:
        """Facet id -> heading of one query."""
        return {facet_id: text for (one, facet_id), text in self.facets.items() if one == query_id}


class _Facet(NamedTuple):
    text: str
    further: Mapping[str, Any]


class _QueryRow(NamedTuple):
    """One query of a file."""

    line: int
    query_id: str | int | float
    text: str
    facets: Mapping[str, _Facet] = {}
    further: Mapping[str, Any] = {}


class _Collected:
    """Queries put together, row by row; what contradicts what was there before is refused."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.facets: dict[tuple[str, str], str] = {}
        self.further: dict[str, dict[str, Any]] = {}
        self.further_of_facets: dict[tuple[str, str], dict[str, Any]] = {}

    def add(self, query_id: str, text: str, facets: Mapping[str, _Facet], further: Mapping[str, Any]) -> str | None:
        """Adds a query; says what of it is there with another value, None where nothing is."""
        if self.texts.setdefault(query_id, text) != text:
            return "texts"
        wrong = _joined(self.further.setdefault(query_id, {}), further)
        for facet_id, facet in facets.items():
            key = (query_id, facet_id)
            if self.facets.setdefault(key, facet.text) != facet.text:
                return f"headings of facet {facet_id!r}"
            wrong = wrong or _joined(self.further_of_facets.setdefault(key, {}), facet.further)
        return f"values of {wrong}" if wrong else None

    def file(self) -> QueryFile:
        """All of it."""
        further = {query_id: fields for query_id, fields in self.further.items() if fields}
        of_facets = {key: fields for key, fields in self.further_of_facets.items() if fields}
        return QueryFile(self.texts, self.facets, further, of_facets)


def _joined(known: dict[str, Any], found: Mapping[str, Any]) -> str | None:
    for name, value in found.items():
        if known.setdefault(name, value) != value:
            return name
    return None


def join_queries(files: Iterable[QueryFile]) -> QueryFile:
    """The queries of several files, with the facets and further fields of all.

    Raises:
        InputError: two files contradict each other.
    """
    joined = _Collected()
    for one in files:
        facets = _facets_of(one)
        for query_id, text in one.texts.items():
            wrong = joined.add(query_id, text, facets.get(query_id, {}), one.further.get(query_id, {}))
            if wrong is not None:
                raise InputError(f"query {query_id!r} has different {wrong} in the files")
    return joined.file()


def _facets_of(queries: QueryFile) -> dict[str, dict[str, _Facet]]:
    found: dict[str, dict[str, _Facet]] = {}
    for (query_id, facet_id), text in queries.facets.items():
        further = queries.further_of_facets.get((query_id, facet_id), {})
        found.setdefault(query_id, {})[facet_id] = _Facet(text, further)
    return found


def read_queries(path: str | os.PathLike[str]) -> dict[str, str]:
    """Query id -> text of a query file; see `read_query_file` for the forms.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it has none of the forms, holds no queries, or gives one query two texts.
    """
    return dict(read_query_file(path).texts)


def read_query_file(path: str | os.PathLike[str]) -> QueryFile:
    """Reads queries in any of these forms, told apart by content.

    - JSON object: query id -> text, or -> {`text`|`query`|`title`, `facets`};
    - JSON list or JSON lines of {`query_id`|`qid`|`_id`|`id`|`squid`|`request_id`|`topic_id`|`narrative_id`, `text`|
      `query`|`title`|`narrative`, `facets`};
    - TSV: query id, tab, text.

    `facets` is an object facet id -> heading, or a list of {`facet_id`|`heading_id`|`id`, `facet_text`|`heading`|
    `text`}. Ids that are numbers become text; a query that comes twice with the same text is kept once; both are said.
    Fields that we do not know are kept.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it has none of the forms, holds no queries, names a field of a query twice, or says two things of
            one query.
    """
    name = path_name(path)
    content = read_text(path)
    found = _Collected()
    numbers = repeated = 0
    for line, query_id, text, facets, further in _rows(content, name):
        if not isinstance(query_id, str):
            query_id = str(query_id)
            numbers += 1
        if not query_id.strip():
            raise FormatError("the query id is empty", path=name, line=line)
        repeated += query_id in found.texts
        wrong = found.add(query_id, text, facets, further)
        if wrong is not None:
            raise FormatError(f"query {query_id!r} comes twice with different {wrong}", path=name, line=line)
    if not found.texts:
        raise FormatError("holds no queries", path=name)
    warn("%s: %d query ids are numbers; read as text", name, numbers)
    warn("%s: %d queries come twice with the same text", name, repeated)
    return found.file()


def _rows(content: str, name: str) -> Iterator[_QueryRow]:
    start = content.lstrip()[:1]
    if start == "[":
        values = parse_json(content, path=name)
        check_keys(content, path=name)
        for index, value in enumerate(values):
            yield _record(value, name, 0, f"[{index}]")
    elif start == "{":
        yield from _json_objects(content, name)
    else:
        note_unfinished(content, name)
        for line, text in enumerate(content.split("\n"), 1):
            if text.strip():
                query_id, tab, rest = text.partition("\t")
                if not tab:
                    raise FormatError(
                        "expected `query_id<TAB>text`, JSON or JSON lines; found no tab", path=name, line=line
                    )
                yield _QueryRow(line, query_id.strip(), rest.strip())


def _json_objects(content: str, name: str) -> Iterator[_QueryRow]:
    """One object for all queries, or one for each."""
    texts = list(scanned_json(content, name))
    first = parse_json(texts[0][1], path=name, line=texts[0][0])
    if len(texts) > 1 or (isinstance(first, dict) and _pick(first, _ID_FIELDS) is not None):
        for number, data in texts:
            value = parse_json(data, path=name, line=number)
            check_keys(data, path=name, line=number)
            yield _record(value, name, number, "")
        return
    values = parse_json(content, path=name)
    check_keys(content, path=name)
    for query_id, value in values.items():
        if isinstance(value, str):
            yield _QueryRow(0, query_id, value)
            continue
        if not isinstance(value, dict):
            raise FormatError(f"expected text in one of {', '.join(_TEXT_FIELDS)}", path=name, field=query_id)
        fields = {"query_id": query_id, **value}
        if fields["query_id"] != query_id:
            raise FormatError(f"is called {fields['query_id']!r} inside", path=name, field=query_id)
        yield _record(fields, name, 0, query_id)


def _pick(value: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _rest(value: Mapping[str, Any], *known: tuple[str, ...]) -> dict[str, Any]:
    """What is left of a record when the first name of each list that has a value is taken, and names without one."""
    taken = {next((name for name in names if value.get(name) is not None), None) for names in known}
    empty = {name for names in known for name in names if value.get(name) is None}
    return {name: inner for name, inner in value.items() if name not in taken and name not in empty}


def _record(value: Any, name: str, line: int, where: str) -> _QueryRow:
    if not isinstance(value, dict):
        raise FormatError("expected an object {query_id, text}", path=name, line=line, field=where)
    query_id, text = _pick(value, _ID_FIELDS), _pick(value, _TEXT_FIELDS)
    if isinstance(query_id, bool) or not isinstance(query_id, str | int | float):
        raise FormatError(f"expected a query id in one of {', '.join(_ID_FIELDS)}", path=name, line=line, field=where)
    if not isinstance(text, str):
        raise FormatError(f"expected text in one of {', '.join(_TEXT_FIELDS)}", path=name, line=line, field=where)
    facets = _facets(_pick(value, _FACET_FIELDS), name, line, where)
    return _QueryRow(line, query_id, text, facets, _rest(value, _ID_FIELDS, _TEXT_FIELDS, _FACET_FIELDS))


def _facets(value: Any, name: str, line: int, where: str) -> dict[str, _Facet]:
    if value is None:
        return {}
    found: dict[str, _Facet] = {}
    entries = list(value.items()) if isinstance(value, dict) else value if isinstance(value, list) else [value]
    for entry in entries:
        further: dict[str, Any] = {}
        if isinstance(entry, dict):
            facet_id, text = _pick(entry, _FACET_ID_FIELDS), _pick(entry, _FACET_TEXT_FIELDS)
            further = _rest(entry, _FACET_ID_FIELDS, _FACET_TEXT_FIELDS)
        else:
            facet_id, text = entry if isinstance(entry, tuple) and len(entry) == 2 else (None, None)
        if not isinstance(facet_id, str) or not isinstance(text, str):
            raise FormatError(
                "expected facets as {facet id: heading}", path=name, line=line, field=f"{where}.facets".strip(".")
            )
        if found.setdefault(facet_id, _Facet(text, further)) != (text, further):
            raise FormatError(f"facet {facet_id!r} comes twice with different texts", path=name, line=line, field=where)
    return found


def write_queries(path: str | os.PathLike[str], queries: Mapping[str, str] | QueryFile) -> None:
    """Writes queries: a JSON object, JSON lines when the name says `.jsonl`, TSV when `.tsv` (`.gz` may follow).

    Facets and further fields are written as JSON; TSV cannot hold them, which is said with the count.

    Raises:
        InputError: there are none, or (TSV) an id or a text holds a tab or a line end, or blanks at its ends.
    """
    name = path_name(path)
    content = queries if isinstance(queries, QueryFile) else QueryFile(queries)
    if not content.texts:
        raise InputError(f"{name}: there are no queries to write")
    kind = name.removesuffix(".gz").rpartition(".")[2]
    with atomic_writer(path) as stream:
        if kind == "tsv":
            for query_id, text in content.texts.items():
                if any(mark in query_id + text for mark in "\t\r\n") or any(
                    one != one.strip() for one in (query_id, text)
                ):
                    raise InputError(
                        f"{name}: query {query_id!r} holds a tab or a line end, or blanks at its ends; "
                        "write .json or .jsonl"
                    )
                stream.write(f"{query_id}\t{text}\n")
            say_lost_fields(content, name)
        elif kind == "jsonl":
            for query_id, fields in _written(content):
                stream.write(json.dumps({"query_id": query_id, **fields}, ensure_ascii=False) + "\n")
        else:
            entries = {
                query_id: fields if len(fields) > 1 else fields["text"] for query_id, fields in _written(content)
            }
            stream.write(json.dumps(entries, ensure_ascii=False, indent=1) + "\n")


def _written(queries: QueryFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """Of each query its record but for the id."""
    facets = _facets_of(queries)
    for query_id, text in queries.texts.items():
        fields: dict[str, Any] = {"text": text}
        own = facets.get(query_id, {})
        if any(facet.further for facet in own.values()):
            fields["facets"] = [
                {"facet_id": facet_id, "facet_text": facet.text, **facet.further} for facet_id, facet in own.items()
            ]
        elif own:
            fields["facets"] = {facet_id: facet.text for facet_id, facet in own.items()}
        yield query_id, {**fields, **queries.further.get(query_id, {})}


def say_lost_fields(queries: QueryFile, name: str) -> None:
    """Says once what is lost in a file of ids and texts only."""
    faceted = len({query_id for query_id, _ in queries.facets})
    counts = ((faceted, "facets"), (len(queries.further), "further fields"))
    lost = ", ".join(f"{what} of {count} queries" for count, what in counts if count)
    if lost:
        warn("%s: %s left out: it holds ids and texts only; write .json or .jsonl", name, lost)


def _may_be_queries(head: Head) -> bool:
    """Whether queries may be in it: it is JSON, or has a tab between an id and a text."""
    return head.goes_on or head.value is not None if head.is_json else "\t" in head.line


QUERIES = Format("queries", "queries: .json, .jsonl or .tsv by name", read_query_file, write_queries, _may_be_queries)

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
