"""TREC runs and qrels: reading (fast, and line by line where a file is in doubt), the one sort, writing."""

from __future__ import annotations

import logging
import math
import operator
import os
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

from rubric_measures.errors import FormatError, InputError
from rubric_measures.files import atomic_writer, path_name, read_text

__all__ = ["Qrel", "Ranking", "Run", "make_run", "read_qrels", "read_run", "write_qrels", "write_runs"]

_T = TypeVar("_T")
_LOG = logging.getLogger("rubric_measures")
# str.split() also splits at these, trec_eval does not: a document id may hold them.
_FOREIGN_SPACE = re.compile("[\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_SPACE = re.compile("[ \t\v\f\r]+")
_RUN_SUFFIXES = {".run", ".txt", ".trec", ".res", ".tsv", ".input"}


class Qrel(NamedTuple):
    """One judgment, with the fields of an ir_measures `Qrel`; `iteration` is the item (subtopic) of diversity qrels."""

    query_id: str
    doc_id: str
    relevance: int
    iteration: str = "0"


@dataclass(frozen=True, slots=True)
class Ranking:
    """The documents of one query in the one sort: score descending, then doc_id descending (trec_eval's rule).

    Attributes:
        doc_ids: the documents, best first; no document twice.
        scores: their scores, parallel to `doc_ids`; finite.
    """

    doc_ids: Sequence[str]
    scores: Sequence[float]

    def __len__(self) -> int:
        return len(self.doc_ids)

    @property
    def ties(self) -> int:
        """How many neighbours in the ranking have equal scores."""
        return sum(earlier == later for earlier, later in pairwise(self.scores))

    @property
    def near_ties(self) -> int:
        """How many neighbours differ here but are equal in single precision, in which trec_eval compares them."""
        single = array("f", self.scores)
        return sum(earlier == later for earlier, later in pairwise(single)) - self.ties


@dataclass(frozen=True, slots=True)
class Run:
    """The rankings of one system.

    Attributes:
        run_id: the system's name.
        rankings: query id -> its ranking, in the order of the queries' first lines.
        rank_disagreements: neighbours whose rank column and scores disagree (the scores count).
    """

    run_id: str
    rankings: Mapping[str, Ranking]
    rank_disagreements: int = 0

    @property
    def ties(self) -> int:
        """The neighbours with equal scores, in all queries."""
        return sum(ranking.ties for ranking in self.rankings.values())

    @property
    def near_ties(self) -> int:
        """The neighbours that are equal in single precision only, in all queries."""
        return sum(ranking.near_ties for ranking in self.rankings.values())


class _Columns(NamedTuple):
    """The columns of a run file; `lines` is empty where row i is line i + 1; `run_id` is empty where no tag says it."""

    query_ids: list[str]
    doc_ids: list[str]
    ranks: list[str]
    scores: list[str]
    run_id: str
    lines: Sequence[int]

    def line(self, row: int) -> int:
        return self.lines[row] if self.lines else row + 1


def make_run(run_id: str, rows: Iterable[tuple[str, str, float]]) -> Run:
    """Builds a run from rows (query_id, doc_id, score) in any order.

    Raises:
        InputError: a score is not finite, or a document occurs twice for a query.
    """
    grouped: dict[str, tuple[list[str], list[float]]] = {}
    for query_id, doc_id, score in rows:
        doc_ids, scores = grouped.setdefault(query_id, ([], []))
        doc_ids.append(doc_id)
        scores.append(float(score))
    for query_id, (doc_ids, scores) in grouped.items():
        if len(set(doc_ids)) != len(doc_ids):
            raise InputError(f"run {run_id!r}, query {query_id!r}: document {_first_twice(doc_ids)!r} occurs twice")
        for doc_id, score in zip(doc_ids, scores, strict=True):
            if not math.isfinite(score):
                raise InputError(f"run {run_id!r}, query {query_id!r}, document {doc_id!r}: score {score} is no number")
    return Run(run_id, {query_id: _in_order(doc_ids, scores) for query_id, (doc_ids, scores) in grouped.items()})


def read_run(path: str | os.PathLike[str]) -> Run:
    """Reads a run file: `query_id Q0 doc_id rank score tag`, tabs or spaces; five columns where there is no tag.

    The lines of a query may stand anywhere. Scores are Python floats (double precision); the rank column is only
    compared with them. The run is named after its tag, or after the file where there is none or several (said).

    Raises:
        InputError: the file cannot be opened.
        FormatError: the file is empty; a line has the wrong number of columns, a score that is not a finite number, a
            rank that is not an integer from 0, or a document that its query already has.
    """
    name = path_name(path)
    text = read_text(path)
    columns = _regular_columns(text) or _checked_columns(text, name)
    del text
    scores = _finite_scores(columns, name)
    rankings: dict[str, Ranking] = {}
    disagreements = disagreeing = 0
    for query_id, spans in _spans(columns.query_ids).items():
        doc_ids = _cut(columns.doc_ids, spans)
        query_scores = _cut(scores, spans)
        if len(set(doc_ids)) != len(doc_ids):
            _raise_twice(columns, query_id, name)
        ranks = _cut(columns.ranks, spans)
        ordered = all(map(operator.gt, query_scores, islice(query_scores, 1, None)))
        if not (ordered and _counts_up(ranks)):
            here = _disagreements(columns, spans, ranks, query_scores, name)
            disagreements += here
            disagreeing += here > 0
        rankings[query_id] = Ranking(doc_ids, query_scores) if ordered else _in_order(doc_ids, query_scores)
    if disagreements:
        _LOG.warning(
            "%s: the rank column disagrees with the scores in %d queries (%d places); the scores count",
            name,
            disagreeing,
            disagreements,
        )
    return Run(columns.run_id or _named_after(name), rankings, disagreements)


def read_qrels(path: str | os.PathLike[str]) -> list[Qrel]:
    """Reads judgments `query_id iteration doc_id relevance` (diversity qrels: the item id is the iteration).

    A line that repeats an earlier one is left out and counted.

    Raises:
        InputError: the file cannot be opened.
        FormatError: the file is empty; a line does not have four columns or its relevance is not an integer; two lines
            judge the same query, iteration and document differently.
    """
    name = path_name(path)
    text = read_text(path)
    lines = text.split("\n")
    split = _SPACE.split if _FOREIGN_SPACE.search(text) else None
    rows = [split(line.strip(" \t\v\f\r")) for line in lines] if split else [line.split() for line in lines]
    numbers: Sequence[int] = range(1, len(rows) + 1)
    if set(map(len, rows)) != {4}:
        kept = [(number, row) for number, row in enumerate(rows, 1) if row and row != [""]]
        numbers, rows = [number for number, _ in kept], [row for _, row in kept]
        for number, row in kept:
            if len(row) != 4:
                raise FormatError(
                    _wrong_columns(len(row), "query_id iteration doc_id relevance"), path=name, line=number
                )
    if not rows:
        raise FormatError("is empty; expected lines 'query_id iteration doc_id relevance'", path=name)
    qrels: dict[tuple[str, str, str], Qrel] = {}
    repeated = 0
    for number, (query_id, iteration, doc_id, relevance) in zip(numbers, rows, strict=True):
        try:
            qrel = Qrel(query_id, doc_id, int(relevance), iteration)
        except ValueError:
            raise FormatError(f"relevance {relevance[:40]!r} is not an integer", path=name, line=number) from None
        earlier = qrels.setdefault((query_id, doc_id, iteration), qrel)
        if earlier is not qrel:
            if earlier.relevance != qrel.relevance:
                problem = (
                    f"document {doc_id!r} of query {query_id!r} was judged {earlier.relevance} before, now {relevance}"
                )
                raise FormatError(problem, path=name, line=number)
            repeated += 1
    if repeated:
        _LOG.warning("%s: %d lines repeat an earlier judgment and were left out", name, repeated)
    return list(qrels.values())


def write_qrels(path: str | os.PathLike[str], qrels: Iterable[tuple[str, str, int, str]]) -> None:
    """Writes judgments (query_id, doc_id, relevance, iteration) as `query_id iteration doc_id relevance`, in order.

    Spaces inside an id are written as `%20` and the like, said once with the count.

    Raises:
        InputError: the file cannot be written, or an id is empty.
    """
    clean = _IdCleaner()
    with atomic_writer(path) as stream:
        for query_id, doc_id, relevance, iteration in qrels:
            stream.write(f"{clean(query_id)} {clean(iteration)} {clean(doc_id)} {relevance:d}\n")
    clean.say(path_name(path))


def write_runs(path: str | os.PathLike[str], runs: Iterable[Run]) -> None:
    """Writes runs as `query_id Q0 doc_id rank score tag`, ranks from 1 in the one sort, one run after the other.

    Spaces inside an id are written as `%20` and the like, said once with the count.

    Raises:
        InputError: the file cannot be written, or an id is empty.
    """
    clean = _IdCleaner()
    with atomic_writer(path) as stream:
        for run in runs:
            tag = clean(run.run_id)
            for query_id, ranking in run.rankings.items():
                written = clean(query_id)
                for rank, (doc_id, score) in enumerate(zip(ranking.doc_ids, ranking.scores, strict=True), 1):
                    stream.write(f"{written} Q0 {clean(doc_id)} {rank} {score!r} {tag}\n")
    clean.say(path_name(path))


class _IdCleaner:
    """Percent-encodes the spaces of ids, and counts the ids that had some."""

    def __init__(self) -> None:
        self._written: dict[str, str] = {}

    def __call__(self, identifier: str) -> str:
        if not identifier:
            raise InputError("an empty id cannot be written to a TREC file")
        if len(identifier.split()) == 1 and not identifier[0].isspace() and not identifier[-1].isspace():
            return identifier
        written = "".join(
            "".join(f"%{byte:02X}" for byte in char.encode()) if char.isspace() else char for char in identifier
        )
        self._written[identifier] = written
        return written

    def say(self, name: str) -> None:
        if self._written:
            identifier, written = next(iter(self._written.items()))
            _LOG.warning(
                "%s: %d ids hold spaces and were percent-encoded (%r became %s)",
                name,
                len(self._written),
                identifier,
                written,
            )


def _regular_columns(text: str) -> _Columns | None:
    """The columns of a file that is proved to have six on every line; None where it may not.

    All tokens are cut at once and sliced: row i is tokens 6i … 6i + 5. The proof that rows are lines: every line ends
    with the token `tag`, there are as many lines as rows, every sixth token is `tag`, and no other token can be it
    (not a number, not a query, not the second column, no document): so line ends and row ends are the same places.
    """
    if not text.isascii() or any(space in text for space in "\x1c\x1d\x1e\x1f\r"):
        return None
    tokens = text.split()
    rows, rest = divmod(len(tokens), 6)
    if rest or not rows:
        return None
    tag, second = tokens[5], tokens[1]
    lines = text.count(f" {tag}\n") or text.count(f"\t{tag}\n")
    if not text.endswith("\n"):
        lines += text.endswith((f" {tag}", f"\t{tag}"))
    if lines != rows or text.count("\n") != rows - (not text.endswith("\n")) or tag == second:
        return None
    query_ids, doc_ids, ranks, scores = tokens[0::6], tokens[2::6], tokens[3::6], tokens[4::6]
    if tokens[1::6].count(second) != rows or tokens[5::6].count(tag) != rows:
        return None
    if _is_number(tag) or tag in query_ids or tag in doc_ids:
        return None
    return _Columns(query_ids, doc_ids, ranks, scores, tag, ())


def _is_number(token: str) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def _checked_columns(text: str, name: str) -> _Columns:
    """The columns of any run file, line by line; names the line that has too many or too few."""
    rows: list[list[str]] = []
    numbers: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip(" \t\v\f\r")
        if not stripped:
            continue
        row = _SPACE.split(stripped)
        if len(row) not in {5, 6} or (rows and len(row) != len(rows[0])):
            expected = "query_id Q0 doc_id rank score" + ("" if rows and len(rows[0]) == 5 else " tag")
            raise FormatError(_wrong_columns(len(row), expected), path=name, line=number)
        rows.append(row)
        numbers.append(number)
    if not rows:
        raise FormatError("is empty; expected lines 'query_id Q0 doc_id rank score tag'", path=name)
    query_ids, _, doc_ids, ranks, scores, *tags = map(list, zip(*rows, strict=True))
    names = set(tags[0]) if tags else set()
    if len(names) == 1:
        run_id = names.pop()
    else:
        run_id = _named_after(name)
        found = f"has {len(names)} different tags" if names else "has no tag column"
        _LOG.warning("%s: %s; the run is called %s", name, found, run_id)
    return _Columns(query_ids, doc_ids, ranks, scores, run_id, numbers)


def _wrong_columns(found: int, expected: str) -> str:
    return f"has {found} columns; expected {len(expected.split())}: {expected} (ids cannot hold spaces)"


def _named_after(name: str) -> str:
    """The run's name where no tag says it: the file's, without the usual endings."""
    path = Path(name)
    if path.suffix == ".gz":
        path = path.with_suffix("")
    stem = path.stem if path.suffix in _RUN_SUFFIXES else path.name
    return "_".join(stem.split()) or "run"


def _finite_scores(columns: _Columns, name: str) -> list[float]:
    try:
        scores = list(map(float, columns.scores))
        if math.isfinite(sum(scores)):
            return scores
    except ValueError:
        pass
    for row, token in enumerate(columns.scores):
        if not _is_number(token) or not math.isfinite(float(token)):
            raise FormatError(
                f"score {token[:40]!r} is not a finite number", path=name, line=columns.line(row), field="score"
            )
    # Finite scores whose sum is not: possible near the largest float.
    return list(map(float, columns.scores))


def _spans(query_ids: list[str]) -> dict[str, list[tuple[int, int]]]:
    """Query id -> the row ranges (start, end) that hold its lines; most files have one range a query."""
    spans: dict[str, list[tuple[int, int]]] = {}
    total, start, guess = len(query_ids), 0, 1
    while start < total:
        query_id = query_ids[start]
        end = start + guess
        # Queries mostly have as many lines as the one before: count in C first, walk only where that fails.
        if not (
            end <= total
            and (end == total or query_ids[end] != query_id)
            and query_ids[start:end].count(query_id) == guess
        ):
            end = start + 1
            while end < total and query_ids[end] == query_id:
                end += 1
        spans.setdefault(query_id, []).append((start, end))
        start, guess = end, end - start
    return spans


def _cut(column: list[_T], spans: list[tuple[int, int]]) -> list[_T]:
    if len(spans) == 1:
        return column[slice(*spans[0])]
    return [value for start, end in spans for value in column[start:end]]


def _in_order(doc_ids: Sequence[str], scores: Sequence[float]) -> Ranking:
    """The one sort: score, then doc_id, both descending."""
    pairs = sorted(zip(scores, doc_ids, strict=True), reverse=True)
    return Ranking([doc_id for _, doc_id in pairs], [score for score, _ in pairs])


_COUNT: list[str] = []


def _counts_up(ranks: list[str]) -> bool:
    """Whether the ranks are 0, 1, 2, … or 1, 2, 3, …"""
    if len(_COUNT) <= len(ranks):
        _COUNT.extend(map(str, range(len(_COUNT), 2 * len(ranks) + 1)))
    first = ranks[0] == "1"
    return _COUNT[first : len(ranks) + first] == ranks


def _disagreements(
    columns: _Columns, spans: list[tuple[int, int]], ranks: list[str], scores: list[float], name: str
) -> int:
    """Neighbours in the order of the ranks of which the later has the higher score; equal ranks say nothing."""
    numbers: list[int] = []
    rows = (row for start, end in spans for row in range(start, end))
    for row, token in zip(rows, ranks, strict=True):
        if not token.isdecimal():
            raise FormatError(
                f"rank {token[:40]!r} is not an integer from 0", path=name, line=columns.line(row), field="rank"
            )
        numbers.append(int(token))
    pairs = sorted(zip(numbers, (-score for score in scores), strict=True))
    return sum(earlier[0] < later[0] and earlier[1] > later[1] for earlier, later in pairwise(pairs))


def _first_twice(doc_ids: Iterable[str]) -> str:
    seen: set[str] = set()
    for doc_id in doc_ids:
        if doc_id in seen:
            return doc_id
        seen.add(doc_id)
    raise AssertionError("no document occurs twice")


def _raise_twice(columns: _Columns, query_id: str, name: str) -> None:
    first: dict[str, int] = {}
    for row, (other, doc_id) in enumerate(zip(columns.query_ids, columns.doc_ids, strict=True)):
        if other != query_id:
            continue
        if doc_id in first:
            before = columns.line(first[doc_id])
            problem = f"document {doc_id!r} of query {query_id!r} is already in line {before}"
            raise FormatError(problem, path=name, line=columns.line(row))
        first[doc_id] = row
