"""Query files: JSON object, JSON list, JSON lines or TSV; queries may have facets (as those of TREC CAR)."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rubric_measures.errors import FormatError, InputError
from rubric_measures.files import atomic_writer, path_name, read_text
from rubric_measures.formats.json_models import parse_json

__all__ = ["QueryFile", "read_queries", "read_query_file", "write_queries"]

_LOG = logging.getLogger("rubric_measures")
_ID_FIELDS = ("query_id", "qid", "id", "squid", "request_id")
_TEXT_FIELDS = ("text", "query", "title", "query_text")
_FACET_FIELDS = ("facets", "query_facets")
_FACET_ID_FIELDS = ("facet_id", "heading_id", "id")
_FACET_TEXT_FIELDS = ("facet_text", "heading", "text", "title")


@dataclass(frozen=True)
class QueryFile:
    """What a query file says.

    Attributes:
        texts: query id -> text, in file order.
        facets: (query id, facet id) -> heading, in file order.
    """

    texts: Mapping[str, str]
    facets: Mapping[tuple[str, str], str] = field(default_factory=dict)


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
    - JSON list or JSON lines of {`query_id`|`qid`|`id`|`squid`|`request_id`, `text`|`query`|`title`, `facets`};
    - TSV: query id, tab, text.

    `facets` is an object facet id -> heading, or a list of {`facet_id`|`heading_id`|`id`, `facet_text`|`heading`|
    `text`}. Ids that are numbers become text; a query that comes twice with the same text is kept once; both are said.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it has none of the forms, holds no queries, or gives one query two texts.
    """
    name = path_name(path)
    content = read_text(path)
    texts: dict[str, str] = {}
    facets: dict[tuple[str, str], str] = {}
    numbers = repeated = 0
    for line, query_id, text, own_facets in _rows(content, name):
        if not isinstance(query_id, str):
            query_id = str(query_id)
            numbers += 1
        if not query_id.strip():
            raise FormatError("the query id is empty", path=name, line=line)
        if query_id in texts:
            repeated += 1
            if texts[query_id] != text:
                raise FormatError(f"query {query_id!r} comes twice with different texts", path=name, line=line)
        texts[query_id] = text
        for facet_id, heading in own_facets.items():
            facets[query_id, facet_id] = heading
    if not texts:
        raise FormatError("holds no queries", path=name)
    if numbers:
        _LOG.warning("%s: %d query ids are numbers; read as text", name, numbers)
    if repeated:
        _LOG.warning("%s: %d queries come twice with the same text", name, repeated)
    return QueryFile(texts, facets)


_Row = tuple[int, str | int | float, str, dict[str, str]]


def _rows(content: str, name: str) -> Iterator[_Row]:
    start = content.lstrip()[:1]
    if start == "[":
        values = parse_json(content, path=name)
        for index, value in enumerate(values):
            yield _record(value, name, 0, f"[{index}]")
    elif start == "{":
        yield from _json_objects(content, name)
    else:
        for line, text in enumerate(content.split("\n"), 1):
            if text.strip():
                query_id, tab, rest = text.partition("\t")
                if not tab:
                    raise FormatError(
                        "expected `query_id<TAB>text`, JSON or JSON lines; found no tab", path=name, line=line
                    )
                yield line, query_id.strip(), rest.strip(), {}


def _json_objects(content: str, name: str) -> Iterator[_Row]:
    """One object for all queries, or one object a line."""
    lines = [(number, line) for number, line in enumerate(content.split("\n"), 1) if line.strip()]
    first: Any = None
    if len(lines) == 1 or (lines[0][1].rstrip().endswith("}") and lines[1][1].lstrip().startswith("{")):
        first = parse_json(lines[0][1], path=name, line=lines[0][0])
    if isinstance(first, dict) and _pick(first, _ID_FIELDS) is not None:
        for number, line in lines:
            yield _record(parse_json(line, path=name, line=number), name, number, "")
        return
    parse_json(content, path=name)
    try:
        pairs = json.loads(content, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is not JSON: {error}", path=name) from None
    for query_id, value in pairs:
        if isinstance(value, str):
            yield 0, query_id, value, {}
        else:
            yield _record({"query_id": query_id, **_plain(value)}, name, 0, query_id)


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as pairs, so that a query that comes twice is seen."""


def _plain(value: Any) -> dict[str, Any]:
    return (
        {key: dict(inner) if isinstance(inner, _Pairs) else inner for key, inner in value}
        if isinstance(value, _Pairs)
        else {}
    )


def _pick(value: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _record(value: Any, name: str, line: int, where: str) -> _Row:
    if not isinstance(value, dict):
        raise FormatError("expected an object {query_id, text}", path=name, line=line, field=where)
    query_id, text = _pick(value, _ID_FIELDS), _pick(value, _TEXT_FIELDS)
    if isinstance(query_id, bool) or not isinstance(query_id, str | int | float):
        raise FormatError(f"expected a query id in one of {', '.join(_ID_FIELDS)}", path=name, line=line, field=where)
    if not isinstance(text, str):
        raise FormatError(f"expected text in one of {', '.join(_TEXT_FIELDS)}", path=name, line=line, field=where)
    return line, query_id, text, _facets(_pick(value, _FACET_FIELDS), name, line, where)


def _facets(value: Any, name: str, line: int, where: str) -> dict[str, str]:
    if value is None:
        return {}
    found: dict[str, str] = {}
    entries = value.items() if isinstance(value, dict) else value if isinstance(value, list) else [value]
    for entry in entries:
        if isinstance(entry, _Pairs):
            entry = dict(entry)
        if isinstance(entry, dict):
            facet_id, text = _pick(entry, _FACET_ID_FIELDS), _pick(entry, _FACET_TEXT_FIELDS)
        else:
            facet_id, text = entry if isinstance(entry, tuple) and len(entry) == 2 else (None, None)
        if not isinstance(facet_id, str) or not isinstance(text, str):
            raise FormatError(
                "expected facets as {facet id: heading}", path=name, line=line, field=f"{where}.facets".strip(".")
            )
        if found.setdefault(facet_id, text) != text:
            raise FormatError(f"facet {facet_id!r} comes twice with different texts", path=name, line=line, field=where)
    return found


def write_queries(path: str | os.PathLike[str], queries: Mapping[str, str]) -> None:
    """Writes queries: a JSON object, JSON lines when the name says `.jsonl`, TSV when `.tsv` (`.gz` may follow).

    Raises:
        InputError: there are none, or (TSV) an id or a text holds a tab or a line end.
    """
    name = path_name(path)
    if not queries:
        raise InputError(f"{name}: there are no queries to write")
    kind = name.removesuffix(".gz").rpartition(".")[2]
    with atomic_writer(path) as stream:
        if kind == "tsv":
            for query_id, text in queries.items():
                if any(mark in query_id + text for mark in "\t\r\n"):
                    raise InputError(f"{name}: query {query_id!r} holds a tab or a line end; write .json or .jsonl")
                stream.write(f"{query_id}\t{text}\n")
        elif kind == "jsonl":
            for query_id, text in queries.items():
                stream.write(json.dumps({"query_id": query_id, "text": text}, ensure_ascii=False) + "\n")
        else:
            stream.write(json.dumps(dict(queries), ensure_ascii=False, indent=1) + "\n")
