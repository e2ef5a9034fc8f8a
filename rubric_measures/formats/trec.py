"""TREC runs and qrels: reading (fast, and line by line where a file is in doubt), the one sort, writing."""

from __future__ import annotations

import logging
import math
import operator
import os
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from rubric_measures.errors import FormatError, InputError
from rubric_measures.files import atomic_writer, path_name, read_text

__all__ = [
    "IdCleaner",
    "Qrel",
    "Ranking",
    "Run",
    "columns_of",
    "make_run",
    "read_qrels",
    "read_run",
    "run_name_of",
    "write_qrels",
    "write_runs",
]

_LOG = logging.getLogger("rubric_measures")
# str.split() also splits at these, trec_eval does not: a document id may hold them.
_FOREIGN_SPACE = re.compile("[\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_SPACE = re.compile("[ \t\v\f\r]+")
_MARK = "\x01"
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


# Query id -> its ranking, and how many neighbours of it the rank column orders otherwise.
_Counted = dict[str, tuple[Ranking, int]]


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
    run_id, rankings = _regular_rankings(text) or _checked_rankings(text, name)
    disagreements = [count for _, count in rankings.values() if count]
    if disagreements:
        _LOG.warning(
            "%s: the rank column disagrees with the scores in %d queries (%d places); the scores count",
            name,
            len(disagreements),
            sum(disagreements),
        )
    return Run(run_id, {query_id: ranking for query_id, (ranking, _) in rankings.items()}, sum(disagreements))


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
    return _regular_qrels(text) or _checked_qrels(text, name)


def write_qrels(path: str | os.PathLike[str], qrels: Iterable[tuple[str, str, int, str]]) -> None:
    """Writes judgments (query_id, doc_id, relevance, iteration) as `query_id iteration doc_id relevance`, in order.

    Spaces inside an id are written as `%20` and the like, said once with the count.

    Raises:
        InputError: the file cannot be written, or an id is empty.
    """
    clean = IdCleaner()
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
    clean = IdCleaner()
    with atomic_writer(path) as stream:
        for run in runs:
            tag = clean(run.run_id)
            for query_id, ranking in run.rankings.items():
                written = clean(query_id)
                for rank, (doc_id, score) in enumerate(zip(ranking.doc_ids, ranking.scores, strict=True), 1):
                    stream.write(f"{written} Q0 {clean(doc_id)} {rank} {score!r} {tag}\n")
    clean.say(path_name(path))


class IdCleaner:
    """Percent-encodes the spaces of ids, and counts the ids that had some.

    Calling it with an id gives the id to write; `InputError` for an empty one.
    """

    def __init__(self) -> None:
        self._written: dict[str, str] = {}
        self._plain: set[str] = set()

    def __call__(self, identifier: str) -> str:
        """The id to write; an `InputError` for an empty one."""
        if not identifier:
            raise InputError("an empty id cannot be written to a TREC file")
        if len(identifier.split()) == 1 and not identifier[0].isspace() and not identifier[-1].isspace():
            if "%" in identifier:
                self._plain.add(identifier)
                self._check(identifier)
            return identifier
        written = "".join(
            "".join(f"%{byte:02X}" for byte in char.encode()) if char.isspace() else char for char in identifier
        )
        self._written[identifier] = written
        self._check(written)
        return written

    def _check(self, written: str) -> None:
        if written in self._plain and written in self._written.values():
            raise InputError(f"the ids {written!r} and {unquote(written)!r} would be written alike; rename one")

    def say(self, name: str) -> None:
        """Says once, with the count, that ids were changed in the file `name`."""
        if self._written:
            identifier, written = next(iter(self._written.items()))
            _LOG.warning(
                "%s: %d ids hold spaces and were percent-encoded (%r became %s)",
                name,
                len(self._written),
                identifier,
                written,
            )


def _regular_qrels(text: str) -> list[Qrel] | None:
    """The judgments of a file that is proved to have four columns on every line; None where anything is in doubt."""
    if _MARK in text or _may_hold_foreign_space(text):
        return None
    tokens = text.rstrip().replace("\n", f" {_MARK} ").split()
    lines, rest = divmod(len(tokens) + 1, 5)
    if rest or not lines or tokens[4::5].count(_MARK) != lines - 1 or tokens.count(_MARK) != lines - 1:
        return None
    query_ids, iterations, doc_ids = tokens[0::5], tokens[1::5], tokens[2::5]
    try:
        relevances = list(map(int, tokens[3::5]))
    except ValueError:
        return None
    if len(set(zip(query_ids, doc_ids, iterations, strict=True))) != lines:
        return None
    return list(map(Qrel, query_ids, doc_ids, relevances, iterations))


def _checked_qrels(text: str, name: str) -> list[Qrel]:
    """The judgments of any qrels file, line by line; names the line where something is wrong."""
    qrels: dict[tuple[str, str, str], Qrel] = {}
    repeated = 0
    for number, line in enumerate(text.split("\n"), 1):
        row = columns_of(line)
        if not row:
            continue
        if len(row) != 4:
            problem = _wrong_columns(len(row), "query_id iteration doc_id relevance")
            raise FormatError(problem, path=name, line=number)
        query_id, iteration, doc_id, relevance = row
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
    if not qrels:
        raise FormatError("is empty; expected lines 'query_id iteration doc_id relevance'", path=name)
    if repeated:
        _LOG.warning("%s: %d lines repeat an earlier judgment and were left out", name, repeated)
    return list(qrels.values())


def _may_hold_foreign_space(text: str) -> bool:
    if text.isascii():
        return any(space in text for space in "\x1c\x1d\x1e\x1f")
    return _FOREIGN_SPACE.search(text) is not None


def _regular_rankings(text: str) -> tuple[str, _Counted] | None:
    """The tag and the rankings of a file that is proved to be in order; None where anything is in doubt."""
    if _may_hold_foreign_space(text):
        return None
    first = text.partition("\n")[0]
    gap = "\t" if "\t" in first else " "
    columns = first.split(gap)
    if len(columns) != 6 or columns != first.split() or "\r" in text or _MARK in text:
        return None
    tag = columns[5]
    if not text.endswith("\n"):
        text += "\n"
    rankings: _Counted = {}
    for start, end in _blocks(text):
        block = _regular_block(text[start:end], gap, columns[1], tag)
        if block is None or block[0] in rankings:
            return None
        rankings[block[0]] = block[1:]
    return tag, rankings


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Guesses where each query's lines start and end, by bisection: right when they stand together."""
    start, width, total = 0, 1 << 12, len(text)
    while start < total:
        token = text[start : start + 1000].split(None, 1)[0] if not text[start].isspace() else ""
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


def _regular_block(block: str, gap: str, second: str, tag: str) -> tuple[str, Ranking, int] | None:
    """The query and the ranking of a block of lines; None unless each line has six columns and nothing is wrong.

    The constant columns are not cut but replaced, together with the line ends, by a mark that the file does not hold:
    when there are as many marks as line ends, and every fourth token is one, then row i is line i.
    """
    query_id = block.partition(gap)[0]
    tail, head = f"{gap}{tag}\n", f"{query_id}{gap}{second}{gap}"
    if query_id.split() != [query_id] or not (block.startswith(head) and block.endswith(tail)):
        return None
    lines = block.count("\n")
    marked = block[len(head) : -len(tail)].replace(tail + head, f" {_MARK} ")
    if len(block) - len(marked) != lines * len(tail + head) - (lines - 1) * 3:
        return None
    tokens = marked.split()
    doc_ids, ranks = tokens[0::4], tokens[1::4]
    if len(tokens) != 4 * lines - 1 or tokens[3::4].count(_MARK) != lines - 1 or len(set(doc_ids)) != lines:
        return None
    try:
        scores = list(map(float, tokens[2::4]))
    except ValueError:
        return None
    if not math.isfinite(sum(scores)):
        return None
    counted = _counts_up(ranks)
    if not counted and not all(map(_is_rank, ranks)):
        return None
    if counted and all(map(operator.gt, scores, islice(scores, 1, None))):
        return query_id, Ranking(doc_ids, scores), 0
    return query_id, _in_order(doc_ids, scores), _disagreements(ranks, scores)


def _is_number(token: str) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def _is_rank(token: str) -> bool:
    return token.isascii() and token.isdecimal()


def _checked_rankings(text: str, name: str) -> tuple[str, _Counted]:
    """The tag and the rankings of any run file, line by line; names the line where something is wrong."""
    rows: dict[str, tuple[list[str], list[str], list[float]]] = {}
    seen: dict[tuple[str, str], int] = {}
    tags: set[str] = set()
    columns = 0
    for number, line in enumerate(text.split("\n"), 1):
        row = columns_of(line)
        if not row:
            continue
        if len(row) not in ({columns} if columns else {5, 6}):
            expected = "query_id Q0 doc_id rank score" + (" tag" if columns != 5 else "")
            raise FormatError(_wrong_columns(len(row), expected), path=name, line=number)
        columns = len(row)
        query_id, _, doc_id, rank, score = row[:5]
        tags.update(row[5:])
        if not _is_number(score) or not math.isfinite(float(score)):
            raise FormatError(f"{score[:40]!r} is not a finite number", path=name, line=number, field="score")
        if not _is_rank(rank):
            raise FormatError(f"{rank[:40]!r} is not an integer from 0", path=name, line=number, field="rank")
        before = seen.setdefault((query_id, doc_id), number)
        if before != number:
            problem = f"document {doc_id!r} of query {query_id!r} is already in line {before}"
            raise FormatError(problem, path=name, line=number)
        doc_ids, ranks, scores = rows.setdefault(query_id, ([], [], []))
        doc_ids.append(doc_id)
        ranks.append(rank)
        scores.append(float(score))
    if not rows:
        raise FormatError("is empty; expected lines 'query_id Q0 doc_id rank score tag'", path=name)
    rankings = {
        query_id: (_in_order(doc_ids, scores), _disagreements(ranks, scores))
        for query_id, (doc_ids, ranks, scores) in rows.items()
    }
    if len(tags) == 1:
        return tags.pop(), rankings
    run_id = run_name_of(name)
    found = f"has {len(tags)} different tags" if tags else "has no tag column"
    _LOG.warning("%s: %s; the run is called %s", name, found, run_id)
    return run_id, rankings


def _wrong_columns(found: int, expected: str) -> str:
    return f"has {found} columns; expected {len(expected.split())}: {expected} (ids cannot hold spaces)"


def columns_of(line: str) -> list[str]:
    """The columns of a line, cut at blanks and tabs only: an id may hold any other space."""
    stripped = line.strip(" \t\v\f\r")
    return _SPACE.split(stripped) if stripped else []


def run_name_of(name: str) -> str:
    """The run's name where no tag says it: the file's, without the usual endings."""
    path = Path(name)
    if path.suffix == ".gz":
        path = path.with_suffix("")
    stem = path.stem if path.suffix in _RUN_SUFFIXES else path.name
    return "_".join(stem.split()) or "run"


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


def _disagreements(ranks: list[str], scores: list[float]) -> int:
    """Neighbours in the order of the ranks of which the later has the higher score; equal ranks say nothing."""
    pairs = sorted((int(rank), -score) for rank, score in zip(ranks, scores, strict=True))
    return sum(earlier[0] < later[0] and earlier[1] > later[1] for earlier, later in pairwise(pairs))


def _first_twice(doc_ids: Iterable[str]) -> str:
    seen: set[str] = set()
    for doc_id in doc_ids:
        if doc_id in seen:
            return doc_id
        seen.add(doc_id)
    raise AssertionError("no document occurs twice")
