"""TREC runs and qrels in which nothing is in doubt, cut a query at a time: fast, or nothing at all.

A file is regular when the lines of each query stand together, columns are parted by one blank or tab, a run has one
tag, and nothing is wrong. That is proved for each query before its rows are used; at the first doubt the whole file is
left to `_trec_checked`, which knows every shape and names the line where something is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, TypeVar

from rubric_measures.base.files import note_unfinished
from rubric_measures.base.runs import Ranking, count_disagreements, put_in_order
from rubric_measures.base.sorting import falls_in_both
from rubric_measures.formats._trec_checked import is_rank, is_relevance, relevance_of

T = TypeVar("T")

# str.split() also splits at these, trec_eval does not: a document id may hold them.
_FOREIGN_SPACE = re.compile("[\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
# Stands for what is the same in every line; no regular file holds it.
_MARK = "\x01"
# Some queries' lines. Larger pieces would be new memory for each file instead of used memory.
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
    gap = second = tag = ""
    try:
        for query_id, block in _blocks(stream, rest := bytearray()):
            if not gap:
                first = block.partition("\n")[0]
                gap = "\t" if "\t" in first else " "
                columns = first.split(gap)
                if len(columns) != 6 or columns != first.split():
                    return None
                second, tag = columns[1], columns[5]
            if query_id in taken:
                return None
            ranking, disagreements = _ranking(block, f"{query_id}{gap}{second}{gap}", f"{gap}{tag}\n")
            taken[query_id] = take(query_id, ranking), disagreements
    except _DoubtError:
        return None
    if taken:
        note_unfinished(bytes(rest), name)
    return (tag, taken) if taken else None


def regular_qrels(stream: BinaryIO, take: Callable[[QueryQrels], T], name: str = "") -> dict[str, T] | None:
    """What `take` makes of each query's judgments, as `regular_rankings` does it; None where anything is in doubt."""
    taken: dict[str, T] = {}
    try:
        for query_id, block in _blocks(stream, rest := bytearray()):
            if query_id in taken:
                return None
            taken[query_id] = take(_qrels(query_id, block))
    except _DoubtError:
        return None
    note_unfinished(bytes(rest), name)
    return taken or None


def _decoded(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise _DoubtError from None
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if "\r" in text or _MARK in text or _may_hold_foreign_space(text):
        raise _DoubtError
    return text


def _may_hold_foreign_space(text: str) -> bool:
    if text.isascii():
        return any(space in text for space in "\x1c\x1d\x1e\x1f")
    return _FOREIGN_SPACE.search(text) is not None


def _blocks(stream: BinaryIO, unfinished: bytearray) -> Iterator[tuple[str, str]]:
    """Each query with its lines, if the lines of a query stand together; whoever uses them has to prove it.

    A last line without an end is put into `unfinished`, too.
    """
    text, rest = "", b""
    data = stream.read(_PIECE).removeprefix(b"\xef\xbb\xbf")
    while data:
        data = rest + data
        cut = data.rfind(b"\n") + 1
        if not cut and len(data) >= _PIECE:
            # A line of this length is no line of a run.
            raise _DoubtError
        text += _decoded(data[:cut])
        rest = data[cut:]
        start = 0
        for start, end in _bounds(text):
            if end < len(text):
                yield _query_of(text, start), text[start:end]
        # The last query may go on in the next piece.
        text = text[start:]
        data = stream.read(max(_PIECE, len(text)))
    if rest:
        unfinished += rest
        text += _decoded(rest + b"\n")
    for start, end in _bounds(text):
        yield _query_of(text, start), text[start:end]


def _query_of(text: str, start: int) -> str:
    tokens = text[start : start + 1000].split(None, 1)
    if not tokens or not text.startswith(tokens[0], start):
        raise _DoubtError
    return tokens[0]


def _bounds(text: str) -> Iterator[tuple[int, int]]:
    """Guesses where each query's lines start and end, by bisection: right when they stand together."""
    start, width, total = 0, 1 << 12, len(text)
    while start < total:
        token = _query_of(text, start)
        query = text[start : start + len(token) + 1]
        low, high = start, total
        while (probe := text.find("\n", low + width) + 1) and probe < total:
            if not text.startswith(query, probe):
                high = probe
                break
            low, width = probe, 2 * width
        # A line of the query starts at `low`, a foreign one (or the end) is at `high`.
        while probe := text.find("\n", (low + high) // 2, high - 1) + 1 or text.find("\n", low, high - 1) + 1:
            if text.startswith(query, probe):
                low = probe
            else:
                high = probe
        yield start, high
        start, width = high, high - start


def _ranking(block: str, head: str, tail: str) -> tuple[Ranking, int]:
    """The ranking in a block of lines that all begin with `head` and end with `tail`, and its rank disagreements.

    The constant columns are not cut but replaced, together with the line ends, by a mark that the file does not hold:
    when there are as many marks as line ends, and every fourth token is one, then row i is line i.

    Raises:
        _DoubtError: a line has not six columns, or something is wrong.
    """
    if not (block.startswith(head) and block.endswith(tail)):
        raise _DoubtError
    lines = block.count("\n")
    marked = block[len(head) : -len(tail)].replace(tail + head, f" {_MARK} ")
    if len(block) - len(marked) != lines * len(tail + head) - (lines - 1) * 3:
        raise _DoubtError
    tokens = marked.split()
    doc_ids, ranks = tokens[0::4], tokens[1::4]
    if len(tokens) != 4 * lines - 1 or tokens[3::4].count(_MARK) != lines - 1 or len(set(doc_ids)) != lines:
        raise _DoubtError
    scores = _finite_scores(tokens[2::4])
    counted = _counts_up(ranks)
    if not counted and not all(map(is_rank, ranks)):
        raise _DoubtError
    if counted and falls_in_both(scores):
        return Ranking(doc_ids, scores), 0
    return put_in_order(doc_ids, scores), count_disagreements(ranks, scores)


def _finite_scores(tokens: list[str]) -> list[float]:
    """The tokens as Python floats.

    Where all are JSON numbers with a fraction, as a JSON list: the same doubles in a third of the time.
    """
    from pydantic_core import from_json

    text = ",".join(tokens)
    try:
        # A JSON number has one point at the most, and only numbers have a sum.
        if text.count(".") == len(tokens):
            scores: list[float] = from_json(f"[{text}]", allow_inf_nan=False)
            if len(scores) == len(tokens) and math.isfinite(sum(scores)):
                return scores
    except (ValueError, TypeError):
        pass
    try:
        scores = list(map(float, tokens))
    except ValueError:
        raise _DoubtError from None
    if not math.isfinite(sum(scores)):
        raise _DoubtError
    return scores


_COUNT: list[str] = []


def _counts_up(ranks: list[str]) -> bool:
    """Whether the ranks are 0, 1, 2, … or 1, 2, 3, …"""
    if len(_COUNT) <= len(ranks):
        _COUNT.extend(map(str, range(len(_COUNT), 2 * len(ranks) + 1)))
    first = ranks[0] == "1"
    return _COUNT[first : len(ranks) + first] == ranks


def _qrels(query_id: str, block: str) -> QueryQrels:
    """The judgments in a block of lines of one query, proved as those of `_ranking` are.

    Raises:
        _DoubtError: a line has not four columns, or something is wrong.
    """
    gap = block[len(query_id)]
    head = f"{query_id}{gap}"
    lines = block.count("\n")
    marked = block[len(head) : -1].replace(f"\n{head}", f" {_MARK} ")
    if len(block) - len(marked) != lines * len(head) + lines - (lines - 1) * 3:
        raise _DoubtError
    tokens = marked.split()
    iterations, doc_ids = tokens[0::4], tokens[1::4]
    if len(tokens) != 4 * lines - 1 or tokens[3::4].count(_MARK) != lines - 1:
        raise _DoubtError
    if len(set(zip(doc_ids, iterations, strict=True))) != lines:
        raise _DoubtError
    relevances: list[float]
    try:
        relevances = list(map(int, tokens[2::4]))
    except ValueError:
        relevances = _real_relevances(tokens[2::4])
    if not (is_relevance(min(relevances)) and is_relevance(max(relevances))):
        raise _DoubtError
    return QueryQrels(query_id, doc_ids, relevances, iterations)


def _real_relevances(tokens: list[str]) -> list[float]:
    """Judgments of which some have fractions."""
    try:
        return list(map(relevance_of, tokens))
    except (ValueError, OverflowError):
        raise _DoubtError from None
