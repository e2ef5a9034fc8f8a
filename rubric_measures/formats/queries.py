"""Queries and topics: of any track, of tables, of TREC (SGML, XML).

Queries may have facets (as those of TREC CAR) and say how long an answer may be (as the topics of generation tracks).
"""

from __future__ import annotations

import html
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import note_unfinished, path_name, peek_head, read_text
from rubric_measures.formats.base import Head
from rubric_measures.formats.reports import Length, track_rules
from rubric_measures.formats.specs import Inside, Row, fields_of, same, spec, table, whole
from rubric_measures.formats.tables import Cells, Rows


class Limit(NamedTuple):
    """How long an answer may be, in whitespace words or NFKC characters."""

    most: int
    unit: Length


@dataclass(frozen=True)
class QueryFile:
    """What a file of queries or topics says.

    Attributes:
        texts: query id -> text, in file order.
        facets: (query id, facet id) -> heading, in file order.
        further: query id -> fields of its record that we do not know, kept as they are; and its limits.
        further_of_facets: (query id, facet id) -> the same of a facet's record.
    """

    texts: Mapping[str, str]
    facets: Mapping[tuple[str, str], str] = field(default_factory=dict)
    further: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    further_of_facets: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)

    def facets_of(self, query_id: str) -> dict[str, str]:
        """Facet id -> heading of one query."""
        return {facet_id: said for (one, facet_id), said in self.facets.items() if one == query_id}

    @cached_property
    def limits(self) -> dict[str, Limit]:
        """Query id -> how long an answer may be, where the query says it: `limit` characters or `word_limit` words."""
        units: list[tuple[str, Length]] = [("word_limit", "words"), ("limit", "characters")]
        return {
            query_id: Limit(said[name], unit)
            for name, unit in units
            for query_id, said in self.further.items()
            if said.get(name) is not None
        }


def join_queries(files: Iterable[QueryFile]) -> QueryFile:
    """The queries of several files, with the facets and further fields of all.

    Raises:
        InputError: two files contradict each other.
    """
    texts: dict[str, str] = {}
    facets: dict[tuple[str, str], str] = {}
    further: dict[Any, dict[str, Any]] = {}

    def join(known: dict[Any, Any], found: Mapping[Any, Any], query_id: str, what: str) -> None:
        for name, value in found.items():
            if known.setdefault(name, value) != value:
                raise InputError(f"query {query_id!r} has different {what.format(name)} in the files")

    for one in files:
        for query_id, said in one.texts.items():
            join(texts, {query_id: said}, query_id, "texts")
            join(further.setdefault(query_id, {}), one.further.get(query_id, {}), query_id, "values of {}")
        for key, heading in one.facets.items():
            join(facets, {key: heading}, key[0], f"headings of facet {key[1]!r}")
            join(further.setdefault(key, {}), one.further_of_facets.get(key, {}), key[0], "values of {}")
    of_queries = {query_id: further[query_id] for query_id in texts if further[query_id]}
    return QueryFile(texts, facets, of_queries, {key: further[key] for key in facets if further[key]})


def _most(value: Any) -> int:
    if (found := whole(value)) < 1:
        raise ValueError("expected a whole number above 0")
    return found


_FACETS = Inside({"": fields_of(table("facets")["fields"], {})})


def _facets(value: Any) -> list[Row]:
    """Facets of a list, or of an object id -> heading."""
    if not isinstance(value, dict | list):
        raise ValueError("expected facets as {facet id: heading}")
    if isinstance(value, dict):
        value = [{"facet_id": one, "facet_text": said} for one, said in value.items()]
    rows = _FACETS(value)
    counts = Counter(row.said["facet_id"] for row in rows)
    if again := [one for one, count in counts.items() if count > 1]:
        raise ValueError(f"facet {again[0]!r} comes twice")
    return rows


def _written_facets(rows: list[Row]) -> Any:
    if any(row.further for row in rows):
        return _FACETS.written({**row.said, "further": row.further} for row in rows)
    return {row.said["facet_id"]: row.said["text"] for row in rows}


def _into(rows: list[Row]) -> QueryFile:
    texts, facets, further, of_facets = {}, {}, {}, {}
    for _, said, others, _ in rows:
        query_id = said["query_id"]
        texts[query_id] = said["text"]
        if kept := {name: said[name] for name in _LIMITS if said[name] is not None} | others:
            further[query_id] = kept
        for facet in said["facets"] or ():
            key = (query_id, facet.said["facet_id"])
            facets[key] = facet.said["text"]
            if facet.further:
                of_facets[key] = facet.further
    return QueryFile(texts, facets, further, of_facets)


def _outof(queries: QueryFile) -> Iterator[dict[str, Any]]:
    facets: dict[str, list[Row]] = {}
    for (query_id, facet_id), said in queries.facets.items():
        others = dict(queries.further_of_facets.get((query_id, facet_id), {}))
        facets.setdefault(query_id, []).append(Row(0, {"facet_id": facet_id, "text": said}, others))
    for query_id, said in queries.texts.items():
        further = queries.further.get(query_id, {})
        limits = {name: further.get(name) for name in _LIMITS}
        yield {"query_id": query_id, "text": said, "facets": facets.get(query_id), **limits, "further": further}


_LIMITS = ("limit", "word_limit")


def _outof_topics(queries: QueryFile) -> Iterator[dict[str, Any]]:
    """Topics have a title in short, and the text that was read beside it where that was another field."""
    for said in _outof(queries):
        title = said["further"].get("title")
        beside = {"text": title, "further": {**said["further"], "narrative": said["text"]}}
        yield said if title is None else said | beside


_SPEC, _TOPICS = (
    spec(name, {"facets": (_facets, _written_facets), "limit": (_most, same)}, into=_into, outof=outof)
    for name, outof in (("queries", _outof), ("topics", _outof_topics))
)
write_queries = _SPEC.write


def read_queries(source: Any) -> dict[str, str]:
    """Query id -> text of a query file; see `read_query_file` for the forms.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it has none of the forms, holds no queries, or gives one query two texts.
    """
    return dict(read_query_file(source).texts)


def read_query_file(source: Any) -> QueryFile:
    """Reads queries or topics in any of these forms, told apart by content.

    - JSON object: query id -> text, or -> the fields of one query;
    - JSON list, JSON lines, CSV, or TSV with a header: the fields of a query each;
    - TSV: query id, tab, text;
    - TREC's topics, as SGML (`<top>`) or XML (`<topic number="1">`); subtopics become facets.

    Fields are the id (`query_id`, `qid`, `request_id`, …), the text (`text`, `query`, `title`, `narrative`, …),
    `facets` (an object facet id -> heading, or a list of {`facet_id`|`heading_id`|`id`, `facet_text`|`heading`|
    `text`}), and how long an answer may be (`limit`, in characters, or `word_limit`). Ids that are numbers become text;
    a query that comes twice with the same content is kept once, which is said. Fields that we do not know are kept.

    Args:
        source: the file; or a data frame, a mapping, or rows in memory.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it has none of the forms, holds no queries, names a field of a query twice, or says two things of
            one query.
    """
    is_file = isinstance(source, str | os.PathLike)
    is_tagged = is_file and peek_head(source).lstrip()[:1] == b"<"
    found: QueryFile = _SPEC.read(_trec_rows(source) if is_tagged else source)
    return found


# One topic of TREC, and the tags in it; those of SGML are not closed.
_BLOCK = re.compile(
    r"<(?P<tag>topic|top)\b(?P<attributes>[^>]*)>(?P<body>.*?)(?=<(?P=tag)\b|</(?P=tag)>|\Z)", re.S | re.I
)
_TAG = re.compile(r"<([a-z][\w-]*)([^>]*)>", re.I)
_LABEL = re.compile(r"\A\s*(?:Number|Topic|Title|Description|Narrative)\s*:", re.I)
_NUMBER = re.compile(r"""\b(?:number|num|id|qid)\s*=\s*["']([^"']*)["']""", re.I)
_WHOLE_NAMES = {"num": "query_id", "number": "query_id", "desc": "description", "narr": "narrative"}
# What of a topic is asked: the first that it has.
_ASKED = ("title", "query", "", "question", "description", "summary")


def _trec_rows(path: str | os.PathLike[str]) -> Rows:
    """The topics of TREC in a file, one a row."""
    content, name = read_text(path), path_name(path)
    note_unfinished(content, name)
    # Lines are counted with those of comments.
    content = re.sub(r"<!--.*?-->", lambda found: "\n" * found[0].count("\n"), content, flags=re.S)
    return Rows(name, None, ((_line_of(content, found), _topic(found)) for found in _BLOCK.finditer(content)))


def _line_of(content: str, found: re.Match[str]) -> int:
    return content.count("\n", 0, found.start()) + 1


def _topic(found: re.Match[str]) -> Cells:
    own, *parts = _TAG.split(found["body"])
    cells: dict[str, Any] = {"": _plain(own)}
    facets: dict[str, str] = {}
    if number := _NUMBER.search(found["attributes"]):
        cells["query_id"] = number[1]
    for tag, attributes, said in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        number = _NUMBER.search(attributes)
        if tag.lower() == "subtopic" and number:
            facets[number[1]] = _plain(said)
        else:
            cells.setdefault(_WHOLE_NAMES.get(tag.lower(), tag.lower()), _plain(said))
    asked = next((name for name in _ASKED if cells.get(name)), None)
    if asked is not None:
        cells["text"] = cells[asked]
    return {to: said for to, said in {**cells, "facets": facets}.items() if said and to not in ("", asked)}


def _plain(said: str) -> str:
    """The text behind a tag, without what closes it and without the label that TREC wrote there."""
    return " ".join(html.unescape(_LABEL.sub("", said.partition("</")[0])).split())


def _may_be_queries(head: Head) -> bool:
    """Whether queries may be in it: it is JSON, TREC's topics, or a table of an id and a text."""
    if head.is_json:
        return head.value is not None
    return "\t" in head.line or _SPEC.recognise(head) or _BLOCK.search(head.line + "\n" + head.rest) is not None


QUERIES = _SPEC.format._replace(read=read_query_file, recognise=_may_be_queries)
TOPICS = _TOPICS.format._replace(read=read_query_file, recognise=lambda head: "request_id" in head.object)


def limit_for(track: str | None, own: Limit | None = None) -> Limit | None:
    """The limit of answers: the topic's own, else the track's, else None.

    Args:
        track: see `track_rules`, or None; RAGTIME gives each topic a limit of its own.
        own: that of the topic, where it says one.

    Raises:
        UnknownNameError: nobody knows the track.
    """
    rules = track_rules(track) if track is not None else ()
    if own is not None:
        return own
    limits = {Limit(one.limit, one.unit) for one in rules}
    found = limits.pop() if len(limits) == 1 else None
    return found if found is not None and found.most else None


def length_of(text: str, unit: Length) -> int:
    """The length of an answer in whitespace words, or in characters after NFKC normalisation.

    >>> length_of("ﬁve  words", "words"), length_of("ﬁve", "characters")
    (2, 4)
    """
    return len(text.split()) if unit == "words" else len(unicodedata.normalize("NFKC", text))
