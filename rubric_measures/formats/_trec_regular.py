"""TREC runs and qrels in which nothing is in doubt, a query at a time: fast, or nothing at all.

A file is regular when the lines of each query stand together, all have the same number of columns, a run has one tag,
and nothing is wrong. At the first doubt the whole file is left to `_trec_checked`, which knows every shape and names
the line where something is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, TypeVar

from rubric_measures.base.files import note_unfinished
from rubric_measures.base.sorting import falls_in_both
from rubric_measures.formats._trec_checked import is_rank, is_relevance, relevance_of
from rubric_measures.types.entities import Ranking, count_disagreements, put_in_order

T = TypeVar("T")

# str.split() also splits at these, trec_eval does not: a document id may hold them.
_FOREIGN_SPACE = re.compile("[\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_PIECE = 1 << 18


class QueryQrels(NamedTuple):
    """The judgments of one query by column."""

    query_id: str
    doc_ids: list[str]
    relevances: list[float]
    iterations: list[str]


class _DoubtError(Exception):
    """The file is not proved to be regular."""


def regular_rankings(
    stream: BinaryIO, take: Callable[[str, Ranking], T], name: str = ""
) -> tuple[str, dict[str, tuple[T, int]]] | None:
    """The tag of a run, and what `take` makes of each ranking, with the places where its rank column disagrees.

    Args:
        stream: the file.
        take: called with (query_id, ranking) as soon as a query is read; what it did counts for nothing when the file
            turns out not to be regular, so it must have no effect but its result.
        name: the file, for the note that its last line has no end.

    Returns:
        None where anything is in doubt.
    """
    taken: dict[str, tuple[T, int]] = {}
    tags: set[str] = set()
    try:
        for query_id, cells in _queries(stream, 6, name):
            tags.update(cells[5::6])
            if len(tags) > 1:
                return None
            ranking, disagreements = _ranking(cells[2::6], cells[3::6], cells[4::6])
            taken[query_id] = take(query_id, ranking), disagreements
    except _DoubtError:
        return None
    return (tags.pop(), taken) if taken else None


def regular_qrels(stream: BinaryIO, take: Callable[[QueryQrels], T], name: str = "") -> dict[str, T] | None:
    """What `take` makes of each query's judgments, as `regular_rankings` does it; None where anything is in doubt."""
    taken: dict[str, T] = {}
    try:
        for query_id, cells in _queries(stream, 4, name):
            taken[query_id] = take(_qrels(query_id, cells[1::4], cells[2::4], cells[3::4]))
    except _DoubtError:
        return None
    return taken or None


def _queries(stream: BinaryIO, columns: int, name: str) -> Iterator[tuple[str, list[str]]]:
    """Each query with the cells of its lines, one line after the other.

    Raises:
        _DoubtError: a line has another number of columns, or the lines of a query do not stand together.
    """
    seen: set[str] = set()
    cells: list[str] = []
    query_id = text = ""
    while data := stream.read(_PIECE):
        data += stream.readline()
        text = _decoded(data if seen else data.removeprefix(b"\xef\xbb\xbf"))
        for row in map(str.split, text.split("\n")):
            if len(row) != columns:
                if row:
                    raise _DoubtError
                continue
            if row[0] != query_id:
                if cells:
                    yield query_id, cells
                query_id, cells = row[0], []
                if query_id in seen:
                    raise _DoubtError
                seen.add(query_id)
            cells += row
    if cells:
        yield query_id, cells
        note_unfinished(text, name)


def _decoded(data: bytes) -> str:
    """The text of some lines, in which nothing but blanks and tabs parts columns."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise _DoubtError from None
    if any(space in text for space in "\x1c\x1d\x1e\x1f") if text.isascii() else _FOREIGN_SPACE.search(text):
        raise _DoubtError
    return text


def _ranking(doc_ids: list[str], ranks: list[str], scores: list[str]) -> tuple[Ranking, int]:
    """The ranking of a query, and its rank disagreements.

    Raises:
        _DoubtError: something is wrong.
    """
    if len(set(doc_ids)) < len(doc_ids):
        raise _DoubtError
    try:
        values = list(map(float, scores))
    except ValueError:
        raise _DoubtError from None
    if not math.isfinite(sum(values)):
        raise _DoubtError
    counted = _counts_up(ranks)
    if not counted and not all(map(is_rank, ranks)):
        raise _DoubtError
    if counted and falls_in_both(values):
        return Ranking(doc_ids, values), 0
    return put_in_order(doc_ids, values), count_disagreements(ranks, values)


_COUNT: list[str] = []


def _counts_up(ranks: list[str]) -> bool:
    """Whether the ranks are 0, 1, 2, … or 1, 2, 3, …"""
    if len(_COUNT) <= len(ranks):
        _COUNT.extend(map(str, range(len(_COUNT), 2 * len(ranks) + 1)))
    first = ranks[0] == "1"
    return _COUNT[first : len(ranks) + first] == ranks


def _qrels(query_id: str, iterations: list[str], doc_ids: list[str], labels: list[str]) -> QueryQrels:
    """The judgments of a query.

    Raises:
        _DoubtError: something is wrong.
    """
    if len(set(zip(doc_ids, iterations, strict=True))) < len(doc_ids):
        raise _DoubtError
    try:
        relevances = list(map(relevance_of, labels))
    except (ValueError, OverflowError):
        raise _DoubtError from None
    if not (is_relevance(min(relevances)) and is_relevance(max(relevances))):
        raise _DoubtError
    return QueryQrels(query_id, doc_ids, relevances, iterations)
