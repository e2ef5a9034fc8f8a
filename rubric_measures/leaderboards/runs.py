"""Runs beside grades: scored one by one where grades are in memory; kept on disk where records are streamed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO

from ir_measures.measures.base import Measure

from rubric_measures.base.errors import InputError
from rubric_measures.base.parallel import forked_map
from rubric_measures.formats.trec import Ranking, distinct_run_names, map_run
from rubric_measures.formats.trec_ids import as_known, spaced_ids
from rubric_measures.grades.compiled import Grades
from rubric_measures.leaderboards.board import Leaderboard
from rubric_measures.leaderboards.scoring import RunRow, Scoring
from rubric_measures.measures.scoring import Scored

try:
    import fcntl
except ImportError:  # no POSIX system: there are no forked processes either
    fcntl = None  # type: ignore[assignment]

__all__ = ["RowSpool", "RunSpool", "score_run_files", "score_runs", "spool_rows", "spool_runs"]


def score_runs(
    grades: Grades,
    runs: Iterable[tuple[str, Mapping[str, Sequence[str]]]],
    measures: Sequence[Measure],
    *,
    overall: bool = True,
    settings: Mapping[str, object] | None = None,
) -> Leaderboard:
    """Scores runs against grades, one run at a time.

    Args:
        grades: the grades and the bank; queries of the bank that a run lacks score 0, without items none.
        runs: (run_id, query_id -> doc_ids best first); consumed once, so runs may be read from files as they come.
        measures: this package's measures, or ir_measures' measures over subtopics.
        overall: also report the best score that any run could reach with the graded passages. It is unknown with
            penalties (negative weights) and where all grades of a query failed; a note says so.
        settings: what else belongs into the signature.

    Raises:
        InputError: two runs have one name, or there is no run.
        MeasureError: a measure cannot be computed from these grades.
    """
    scoring = Scoring(measures, grades.on_failed_given, overall)
    scoring.prepare_all(grades)
    for run_id, rankings in runs:
        if run_id in scoring.rows:
            raise InputError(f"two runs are called {run_id!r}; rename one")
        scoring.rows[run_id] = scoring.row(
            {
                query_id: {
                    name: scoring.scorers[name].score(ranking, failures=True)
                    for name in scoring.parts.get(query_id, ())
                }
                for query_id, ranking in sorted(rankings.items())
            }
        )
    return scoring.finish({**grades.source, **(settings or {})})


def score_run_files(
    grades: Grades,
    paths: Sequence[str],
    measures: Sequence[Measure],
    *,
    overall: bool = True,
    settings: Mapping[str, object] | None = None,
    workers: int | None = None,
    watch: Callable[[Iterable[str]], Iterable[str]] = lambda paths: paths,
) -> Leaderboard:
    """Scores TREC run files, several at a time; the numbers do not depend on how many.

    Args:
        grades: as for `score_runs`.
        paths: the files; memory is that of one file a worker.
        measures: as for `score_runs`.
        overall: as for `score_runs`.
        settings: as for `score_runs`.
        workers: processes that read and score; None takes one for each core where that pays.
        watch: wraps the iteration over the files (a progress bar).

    Raises:
        FormatError: a file is no run.
        InputError: two runs have one name, or there is no run.
        MeasureError: a measure cannot be computed from these grades.
    """
    scoring = Scoring(measures, grades.on_failed_given, overall)
    scoring.prepare_all(grades)
    spaced = spaced_ids(scoring.parts)

    def known(ranking: Ranking, levels: Collection[str]) -> Sequence[str]:
        doc_ids = as_known(ranking.doc_ids, levels)
        return ranking.with_scores(doc_ids) if scoring.plan.reads_scores else doc_ids

    def score_query(query_id: str, ranking: Ranking) -> dict[str, Scored]:
        return {
            name: scoring.scorers[name].score(known(ranking, grades.queries[name].levels), failures=True)
            for name in scoring.parts.get(spaced.get(query_id, query_id), ())
        }

    def score(path: str) -> tuple[str, RunRow]:
        run_id, found = map_run(path, score_query)
        return run_id, scoring.row({spaced.get(query_id, query_id): scored for query_id, scored in found.items()})

    scored = list(forked_map(score, paths, workers, watch))
    names = distinct_run_names([tag for tag, _ in scored], paths)
    scoring.rows.update((name, row) for name, (_, row) in zip(names, scored, strict=True))
    return scoring.finish({**grades.source, **(settings or {})})


@dataclass(frozen=True)
class _SpooledRun:
    """One run's rankings in the spool: query_id -> (offset, length) of the doc_ids, one a line."""

    run_id: str
    places: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class _Spool:
    """Runs whose lines lie on disk, by query; memory is that of one query.

    Attributes:
        runs: the runs, in the order of their files.
        stream: the spool.
    """

    runs: Sequence[_SpooledRun]
    stream: IO[bytes]

    def lines(self, query_id: str) -> dict[str, Sequence[str]]:
        """run_id -> the lines of a query; runs that do not rank it have none."""
        found: dict[str, Sequence[str]] = {}
        for run in self.runs:
            place = run.places.get(query_id)
            if place is not None:
                self.stream.seek(place[0])
                found[run.run_id] = self.stream.read(place[1]).decode("utf-8").split("\n")
        return found


class RunSpool(_Spool):
    """Runs on disk by their rankings, best first."""

    def rankings(self, query_id: str) -> dict[str, Sequence[str]]:
        """run_id -> the doc_ids of a query, best first; runs that do not rank the query have none."""
        return self.lines(query_id)


class RowSpool(_Spool):
    """Runs on disk with their scores, before any tie is broken."""

    def rows(self, query_id: str) -> dict[str, list[tuple[str, float]]]:
        """run_id -> the rows (doc_id, score) of a query, as they were given; runs that do not rank it have none."""
        found = {}
        for run_id, lines in self.lines(query_id).items():
            pairs = (line.split("\t") for line in lines)
            found[run_id] = [(doc_id, float(score)) for doc_id, score in pairs]
        return found


@contextlib.contextmanager
def spool_rows(
    runs: Iterable[tuple[str, Mapping[str, Sequence[tuple[str, float]]]]],
) -> Iterator[RowSpool]:
    """Keeps the rows of runs, by query, in a temporary file that goes with the block.

    Args:
        runs: (run_id, query_id -> rows (doc_id, score)); consumed once, a run at a time.

    Raises:
        InputError: there is no room for the file.
    """
    with tempfile.TemporaryFile(prefix="rubric_measures-") as stream:
        spooled = []
        for run_id, rankings in runs:
            blocks = {
                query_id: "\n".join(f"{doc_id}\t{score!r}" for doc_id, score in rows).encode("utf-8")
                for query_id, rows in rankings.items()
            }
            spooled.append(_SpooledRun(run_id, _written(stream, blocks)))
        yield RowSpool(spooled, stream)


@contextlib.contextmanager
def spool_runs(
    paths: Sequence[str],
    depth: int | None = None,
    *,
    workers: int | None = None,
    watch: Callable[[Iterable[str]], Iterable[str]] = lambda paths: paths,
) -> Iterator[RunSpool]:
    """Reads run files once and keeps their rankings, by query, in a temporary file that goes with the block.

    The file has no name (where the system can do that), so nothing is left of it however the process ends.

    Args:
        paths: TREC run files.
        depth: how many documents of a ranking are needed; None keeps all.
        workers: see `forked_map`.
        watch: see `forked_map`.

    Raises:
        FormatError: a file is no run.
        InputError: two runs have one name, or there is no run.
    """
    if not paths:
        raise InputError("there is no run to score")
    with tempfile.TemporaryFile(prefix="rubric_measures-") as stream:
        spooled = list(forked_map(lambda path: _spool(path, stream, depth), paths, workers, watch))
        names = distinct_run_names([run.run_id for run in spooled], paths)
        yield RunSpool([replace(run, run_id=name) for run, name in zip(spooled, names, strict=True)], stream)


def _spool(path: str, stream: IO[bytes], depth: int | None) -> _SpooledRun:
    run_id, blocks = map_run(path, lambda _, ranking: "\n".join(ranking.doc_ids[:depth]).encode("utf-8"))
    return _SpooledRun(run_id, _written(stream, blocks))


def _written(stream: IO[bytes], blocks: Mapping[str, bytes]) -> dict[str, tuple[int, int]]:
    """Puts the blocks at the end of the stream; where each stands."""
    places: dict[str, tuple[int, int]] = {}
    try:
        with _end_of(stream) as start:
            for query_id, block in blocks.items():
                places[query_id] = (start, len(block))
                start += len(block)
            stream.write(b"".join(blocks.values()))
            stream.flush()
    except OSError as error:
        raise InputError(
            f"{tempfile.gettempdir()}: runs beside large records need room for a temporary file "
            f"({error.strerror or error}); name another folder with the environment variable TMPDIR"
        ) from None
    return places


@contextlib.contextmanager
def _end_of(stream: IO[bytes]) -> Iterator[int]:
    """The stream at its end, for one process at a time; forked processes have one position in it."""
    if fcntl is not None:
        fcntl.lockf(stream, fcntl.LOCK_EX)
    try:
        yield stream.seek(0, os.SEEK_END)
    finally:
        if fcntl is not None:
            fcntl.lockf(stream, fcntl.LOCK_UN)
