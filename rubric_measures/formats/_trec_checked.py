"""TREC runs and qrels of any shape, line by line: slow, tolerant, and able to say which line is wrong."""

from __future__ import annotations

import logging
import math
import re
from pathlib import Path

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import note_unfinished
from rubric_measures.types.entities import Qrel, Ranking, count_disagreements, put_in_order
from rubric_measures.types.scales import MOST_RELEVANT, as_number

# Of the comments that ir_metadata puts at the top of a run (Breuer, Keller and Schaer, SIGIR 2022).
START, END = "# ir_metadata.start", "# ir_metadata.end"
_LOG = logging.getLogger("rubric_measures")
_SPACE = re.compile("[ \t\v\f\r]+")
_DIGITS = 18
_RUN_SUFFIXES = {".run", ".txt", ".trec", ".res", ".tsv", ".input"}


def checked_rankings(text: str, name: str) -> tuple[str, dict[str, tuple[Ranking, int]]]:
    """The tag and the rankings of any run file, each with the number of places where its rank column disagrees.

    Raises:
        FormatError: names the line where something is wrong.
    """
    rows: dict[str, tuple[list[str], list[str], list[float]]] = {}
    seen: dict[tuple[str, str], int] = {}
    tags: set[str] = set()
    columns = 0
    # ir_metadata at the top are comments.
    header = text.startswith(START)
    for number, line in enumerate(text.split("\n"), 1):
        row = columns_of(line)
        if not row or (header and line.startswith("#")):
            header = header and not line.startswith(END)
            continue
        if len(row) not in ({columns} if columns else {5, 6}):
            expected = "query_id Q0 doc_id rank score" + (" tag" if columns != 5 else "")
            raise FormatError(_wrong_columns(len(row), expected, line), path=name, line=number)
        columns = len(row)
        query_id, _, doc_id, rank, score = row[:5]
        tags.update(row[5:])
        if not is_number(score) or not math.isfinite(float(score)):
            raise FormatError(f"{score[:40]!r} is not a finite number", path=name, line=number, field="score")
        if not is_rank(rank):
            problem = f"{rank[:40]!r} is not an integer from 0 of at most {_DIGITS} digits"
            raise FormatError(problem, path=name, line=number, field="rank")
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
    note_unfinished(text, name)
    rankings = {
        query_id: (put_in_order(doc_ids, scores), count_disagreements(ranks, scores))
        for query_id, (doc_ids, ranks, scores) in rows.items()
    }
    if len(tags) == 1:
        return tags.pop(), rankings
    run_id = run_name_of(name)
    found = f"has {len(tags)} different tags" if tags else "has no tag column"
    _LOG.warning("%s: %s; the run is called %s", name, found, run_id)
    return run_id, rankings


def checked_qrels(text: str, name: str) -> list[Qrel]:
    """The judgments of any qrels file; a line that repeats an earlier one is left out and counted.

    Raises:
        FormatError: names the line where something is wrong.
    """
    qrels: dict[tuple[str, str, str], Qrel] = {}
    repeated = 0
    for number, line in enumerate(text.split("\n"), 1):
        row = columns_of(line)
        if not row:
            continue
        if len(row) != 4:
            problem = _wrong_columns(len(row), "query_id iteration doc_id relevance", line)
            raise FormatError(problem, path=name, line=number)
        query_id, iteration, doc_id, relevance = row
        try:
            qrel = Qrel(query_id, doc_id, relevance_of(relevance), iteration)
        except (ValueError, OverflowError):
            raise FormatError(f"relevance {relevance[:40]!r} is not a number", path=name, line=number) from None
        if not is_relevance(qrel.relevance):
            problem = f"relevance {relevance[:40]} is beyond reason; expected a number between ±{MOST_RELEVANT}"
            raise FormatError(problem, path=name, line=number)
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
    note_unfinished(text, name)
    if repeated:
        _LOG.warning("%s: %d lines repeat an earlier judgment and were left out", name, repeated)
    return list(qrels.values())


def columns_of(line: str) -> list[str]:
    """The columns of a line, cut at blanks and tabs only: an id may hold any other space."""
    stripped = line.strip(" \t\v\f\r")
    return _SPACE.split(stripped) if stripped else []


def is_rank(token: str) -> bool:
    """Whether a token is an integer from 0, and no longer than any number of documents."""
    return token.isascii() and token.isdecimal() and len(token) <= _DIGITS


def relevance_of(token: str) -> float:
    """The relevance that a token says: an `int`, or a `float` where it has a fraction.

    Raises:
        ValueError, OverflowError: it is no finite number.
    """
    try:
        return int(token)
    except ValueError:
        return as_number(float(token))


def is_relevance(value: float) -> bool:
    """Whether a judgment is within what the programs that compute measures can hold."""
    return -MOST_RELEVANT <= value <= MOST_RELEVANT


def run_name_of(name: str) -> str:
    """The run's name where no tag says it: the file's, without the usual endings."""
    path = Path(name)
    if path.suffix == ".gz":
        path = path.with_suffix("")
    stem = path.stem if path.suffix in _RUN_SUFFIXES else path.name
    return "_".join(stem.split()) or "run"


def _wrong_columns(found: int, expected: str, line: str) -> str:
    why = "lines end in a carriage return alone; write line feeds" if "\r" in line.strip() else "ids cannot hold spaces"
    wanted = len(expected.split())
    if {found, wanted} == {4, 6}:
        why = f"it looks like {'a run' if found == 6 else 'qrels'}: are qrels and run the wrong way round?"
    return f"has {found} columns; expected {wanted}: {expected} ({why})"


def is_number(token: str) -> bool:
    """Whether a text is a number."""
    try:
        float(token)
    except ValueError:
        return False
    return True
