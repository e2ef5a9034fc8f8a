"""What a collection has: queries and topics (of any track, tables, SGML, XML of TREC); documents, all or wanted ones.

Queries may have facets (as those of TREC CAR) and say how long an answer may be (as the topics of generation tracks).
"""

from __future__ import annotations

import html
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from rubric_measures.base.errors import FormatError, warn
from rubric_measures.base.files import note_unfinished, path_name, peek_head, read_text
from rubric_measures.formats.answers import Length
from rubric_measures.formats.base import Head, PathName, given
from rubric_measures.formats.specs import Inside, Row, Spec, fields_of, same, spec, table
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
        further: query id -> what else its record says, as it stands there.
    """

    texts: Mapping[str, str]
    further: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def facets(self) -> dict[str, dict[str, str]]:
        """Query id -> facet id -> heading, of queries that have some."""
        return {query_id: _headings(one["facets"]) for query_id, one in self.further.items() if one.get("facets")}

    def limit_of(self, query_id: str) -> Limit | None:
        """How long an answer may be, where the query says it: `limit` characters or `word_limit` words."""
        said = self.further.get(query_id, {})
        units: list[tuple[str, Length]] = [("limit", "characters"), ("word_limit", "words")]
        return next((Limit(said[name], unit) for name, unit in units if isinstance(said.get(name), int)), None)


_FACETS = Inside({"": fields_of(table("facets")["fields"], {})})


def _headings(value: Any) -> dict[str, str]:
    """Facet id -> heading, of a list or an object.

    Raises:
        ValueError: it is neither, or a facet comes twice.
    """
    if isinstance(value, dict):
        value = [{"facet_id": one, "facet_text": said} for one, said in value.items()]
    rows = _FACETS(value)
    found = {row.said["facet_id"]: row.said["text"] for row in rows}
    if len(found) < len(rows):
        raise ValueError("a facet comes twice")
    return found


def _facets(value: Any) -> Any:
    """Facets as they stand there, which are right."""
    _headings(value)
    return value


def queries_of(rows: Iterable[Row]) -> QueryFile:
    """What rows say, by our names."""
    found = {row.said.pop("query_id"): (row.said.pop("text"), given(row.said) | row.further) for row in rows}
    texts = {query_id: text for query_id, (text, _) in found.items()}
    return QueryFile(texts, {query_id: further for query_id, (_, further) in found.items() if further})


def said_of_queries(queries: QueryFile) -> Iterator[dict[str, Any]]:
    """What a format says of each query."""
    for query_id, text in queries.texts.items():
        yield {"query_id": query_id, "text": text, "further": queries.further.get(query_id, {})}


def _outof_topics(queries: QueryFile) -> Iterator[dict[str, Any]]:
    """Topics have a title in short, and the text that was read beside it where that was another field."""
    for said in said_of_queries(queries):
        title = said["further"].get("title")
        beside = {"text": title, "further": {**said["further"], "narrative": said["text"]}}
        yield said if title is None else said | beside


_SPEC, _TOPICS = (
    spec(name, {"facets": (_facets, same)}, into=queries_of, outof=outof)
    for name, outof in (("queries", said_of_queries), ("topics", _outof_topics))
)


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
_ASKED = ("text", "title", "query", "", "question", "description", "summary")


def _trec_rows(path: str | os.PathLike[str]) -> Rows:
    """The topics of TREC in a file, one a row."""
    content, name = read_text(path), path_name(path)
    note_unfinished(content, name)
    # Lines are counted with those of comments.
    content = re.sub(r"<!--.*?-->", lambda found: "\n" * found[0].count("\n"), content, flags=re.S)
    found = _BLOCK.finditer(content)
    return Rows(name, ((content.count("\n", 0, one.start()) + 1, _topic(one)) for one in found))


def _topic(found: re.Match[str]) -> Cells:
    own, *parts = _TAG.split(found["body"])
    cells: dict[str, Any] = {"": _plain(own)}
    facets: dict[str, str] = {}
    for tag, attributes, said in [("num", "", _number(found["attributes"])), *zip(*[iter(parts)] * 3, strict=True)]:
        name = _WHOLE_NAMES.get(tag.lower(), tag.lower())
        if name == "subtopic" and (number := _number(attributes)):
            facets[number] = _plain(said)
        else:
            cells[name] = cells.get(name) or _plain(said)
    asked = next((name for name in _ASKED if cells.get(name)), "")
    cells["text"] = cells.pop(asked)
    return {to: said for to, said in {**cells, "facets": facets}.items() if said and to}


def _number(attributes: str) -> str:
    found = _NUMBER.search(attributes)
    return found[1] if found else ""


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


def length_of(text: str, unit: Length) -> int:
    """The length of an answer in whitespace words, or in characters after NFKC normalisation.

    >>> length_of("ﬁve  words", "words"), length_of("ﬁve", "characters")
    (2, 4)
    """
    return len(text.split()) if unit == "words" else len(unicodedata.normalize("NFKC", text))


class Document(NamedTuple):
    """A document of a collection in which documents have titles."""

    doc_id: str
    title: str
    text: str

    def default_text(self) -> str:
        """title and text"""
        return f"{self.title}\n{self.text}".strip()


DOCUMENTS: Spec[list[Row]] = spec("documents")


def read_documents(paths: Sequence[PathName], wanted: AbstractSet[str] | None = None) -> dict[str, Document]:
    """doc_id -> document of files in any of the forms.

    Args:
        paths: the files, gzipped or plain.
        wanted: the ids of the documents to keep; None keeps all. Lines of other documents are passed over: that they
            have an id is all that is looked at.

    Raises:
        InputError: a file cannot be opened.
        FormatError: naming file and line: a field is missing, an id has two texts, there are no documents.
    """
    found: dict[str, tuple[Document, str, int]] = {}
    for path in paths:
        name, again = path_name(path), 0
        for line, said, *_ in DOCUMENTS.rows(path, wanted):
            document = Document(**said)
            known, first, at = found.setdefault(document.doc_id, (document, name, line))
            if known != document:
                where = f"line {at}" if first == name else f"{first}:{at}"
                raise FormatError(f"{document.doc_id!r} has another text in {where}", path=name, line=line)
            again += (first, at) != (name, line)
        warn("%s: %d documents repeat an earlier one; each is kept once", name, again)
    return {doc_id: document for doc_id, (document, *_) in found.items()}
