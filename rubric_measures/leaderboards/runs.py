"""Runs beside grades: scored one by one where grades are in memory; kept on disk where records are streamed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import IO

from ir_measures.measures.base import Measure
from ir_measures.util import Metric

from rubric_measures.base.errors import InputError
from rubric_measures.base.parallel import forked_map
from rubric_measures.formats.trec import Ranking, Run, distinct_run_names, map_run
from rubric_measures.formats.trec_ids import as_known, renamed, spaced_ids, written_id
from rubric_measures.grades.compiled import Grades, OnFailed, QueryGrades, resolved
from rubric_measures.grades.notes import note_dropped, note_lost_penalties, note_unscored, refuse_share
from rubric_measures.leaderboards.board import Leaderboard
from rubric_measures.leaderboards.scoring import RunRow, Scoring
from rubric_measures.measures.provider import metrics_of, refuse_unscored, worst_share
from rubric_measures.measures.scoring import Plan, SameScale, Scored

try:
    import fcntl
except ImportError:  # no POSIX system: there are no forked processes either
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "Evaluation",
    "RowSpool",
    "RunSpool",
    "evaluate_run",
    "run_on_disk",
    "score_run_files",
    "score_runs",
    "spool_rows",
    "spool_runs",
]


def score_runs(
    grades: Grades,
    runs: Iterable[tuple[str, Mapping[str, Sequence[str]]]],
    measures: Sequence[Measure],
    *,
    overall: bool = True,
) -> Leaderboard:
    """Scores runs against grades, one run at a time.

    Args:
        grades: the grades and the bank; queries of the bank that a run lacks score 0, without items none.
        runs: (run_id, query_id -> doc_ids best first); consumed once, so runs may be read from files as they come.
        measures: this package's measures, or ir_measures' measures over subtopics.
        overall: also report the best score that any run could reach with the graded passages. It is unknown with
            penalties (negative weights) and where all grades of a query failed; a note says so.

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
                query_id: {name: scoring.score(name, ranking) for name in scoring.parts.get(query_id, ())}
                for query_id, ranking in rankings.items()
            }
        )
    return scoring.finish(grades.source)


def score_run_files(
    grades: Grades,
    paths: Sequence[str],
    measures: Sequence[Measure],
    *,
    overall: bool = True,
    workers: int | None = None,
    watch: Callable[[Iterable[str]], Iterable[str]] = lambda paths: paths,
) -> Leaderboard:
    """Scores TREC run files, several at a time; the numbers do not depend on how many.

    Args:
        grades: as for `score_runs`.
        paths: the files; memory is that of one file a worker.
        measures: as for `score_runs`.
        overall: as for `score_runs`.
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

    @cache
    def spaced_docs(name: str) -> Mapping[str, str]:
        return spaced_ids(grades.queries[name].levels)

    def known(ranking: Ranking, name: str) -> Sequence[str]:
        doc_ids = renamed(ranking.doc_ids, spaced_docs(name))
        return ranking.with_scores(doc_ids) if scoring.plan.reads_scores else doc_ids

    def score_query(query_id: str, ranking: Ranking) -> dict[str, Scored]:
        names = scoring.parts.get(spaced.get(query_id, query_id), ())
        return {name: scoring.score(name, known(ranking, name)) for name in names}

    def score(path: str) -> tuple[str, RunRow]:
        run_id, found = map_run(path, score_query)
        return run_id, scoring.row({spaced.get(query_id, query_id): scored for query_id, scored in found.items()})

    scored = list(forked_map(score, paths, workers, watch))
    names = distinct_run_names([tag for tag, _ in scored], paths)
    scoring.rows.update((name, row) for name, (_, row) in zip(names, scored, strict=True))
    return scoring.finish(grades.source)


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

    def texts(self, query_id: str) -> dict[str, str]:
        """run_id -> the lines of a query; runs that do not rank it have none."""
        found: dict[str, str] = {}
        for run in self.runs:
            place = run.places.get(query_id)
            if place is not None:
                self.stream.seek(place[0])
                found[run.run_id] = self.stream.read(place[1]).decode("utf-8")
        return found


class RunSpool(_Spool):
    """Runs on disk by their rankings, best first."""

    def rankings(self, query_id: str) -> dict[str, Sequence[str]]:
        """run_id -> the doc_ids of a query, best first; runs that do not rank the query have none."""
        return {run_id: text.split("\n") for run_id, text in self.texts(query_id).items()}


class RowSpool(_Spool):
    """Runs on disk with their scores, before any tie is broken."""

    def rows(self, query_id: str) -> dict[str, list[tuple[str, float]]]:
        """run_id -> the rows (doc_id, score) of a query, as they were given; runs that do not rank it have none."""
        found = {}
        for run_id, text in self.texts(query_id).items():
            pairs = (line.split("\t") for line in text.split("\n"))
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
        raise _no_room(error) from None
    return places


def _no_room(error: OSError) -> InputError:
    return InputError(
        f"{tempfile.gettempdir()}: large runs need room for a temporary file "
        f"({error.strerror or error}); name another folder with the environment variable TMPDIR"
    )


class _OnDisk(Mapping[str, Ranking]):
    """The rankings of a run in a file, each read when it is asked for: scores, then documents, one a line.

    Args:
        stream: the file.
        places: query_id -> where its ranking begins, how many documents it has, and the bytes of their names.
    """

    def __init__(self, stream: IO[bytes], places: Mapping[str, tuple[int, int, int]]) -> None:
        self._stream, self._places = stream, places

    def __getitem__(self, query_id: str) -> Ranking:
        start, count, length = self._places[query_id]
        self._stream.seek(start)
        scores = array("d", self._stream.read(8 * count)).tolist()
        # An order of the file that is another one follows.
        names = self._stream.read(length).decode("utf-8").split("\n")
        return Ranking(names[:count], scores, names[count:])

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@contextlib.contextmanager
def run_on_disk(path: str) -> Iterator[Run]:
    """A run file as a run whose rankings lie in a temporary file that goes with the block; memory is that of one query.

    Raises:
        FormatError: the file is no run.
        InputError: there is no room for the file.
    """
    with tempfile.TemporaryFile(prefix="rubric_measures-") as stream:

        def kept(_: str, ranking: Ranking) -> tuple[int, int, int]:
            names = "\n".join((*ranking.doc_ids, *ranking.as_given)).encode("utf-8")
            try:
                start = stream.tell()
                stream.write(array("d", ranking.scores).tobytes())
                return start, len(ranking), stream.write(names)
            except OSError as error:
                raise _no_room(error) from None

        run_id, places = map_run(path, kept)
        yield Run(run_id, _OnDisk(stream, places))


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


@dataclass(frozen=True)
class Evaluation:
    """The values of one run.

    Attributes:
        measures: the measures, in the order asked for, with the levels of the scale.
        metrics: a value a query and measure, in ir_measures' order: the queries as the run has them, then those that it
            does not rank, sorted; measures as asked for.
        queries: the queries that were scored.
        without_items: queries that have no score, because they have no items.
        ranked: documents that the run ranks for them.
        graded: of these, how many were graded at all.
        failed: failed grades of these.
        on_failed: how they counted.
        share: the share of failed grades among those that the measure needs of which most failed, in [0, 1].
    """

    measures: Sequence[Measure]
    metrics: Sequence[Metric]
    queries: frozenset[str]
    ranked: int
    graded: int
    failed: int
    without_items: frozenset[str] = frozenset()
    on_failed: OnFailed = "expected"
    share: float = 0.0


def evaluate_run(
    queries: Iterable[QueryGrades], run: Run, measures: Sequence[Measure], on_failed: OnFailed | None = None
) -> Evaluation:
    """Scores a run query by query, as ir_measures does with all grades at hand; memory is that of one query.

    Args:
        queries: the grades, each query once, in any order; consumed once. Queries that the run lacks score 0.
        run: the run, as a TREC file has it (spaces of ids percent-encoded); its queries without grades are left out.
        measures: this package's measures, or ir_measures' measures over subtopics.
        on_failed: see `Grades`.

    Raises:
        MeasureError: a measure cannot be computed from these grades.
    """
    plan, scales = Plan(measures), SameScale()
    found: dict[str, Scored] = {}
    ranked = graded = failed = lost = unscored = dropped = 0
    without_items: set[str] = set()
    for query in queries:
        if not query.items:
            without_items.add(query.query_id)
            continue
        ranking = run.rankings.get(query.query_id) or run.rankings.get(written_id(query.query_id))
        doc_ids = as_known(ranking.doc_ids, query.levels) if ranking else ()
        if ranking and plan.reads_scores:
            doc_ids = ranking.with_scores(doc_ids)
        plan = plan.said(scales, query)
        scored = found[query.query_id] = plan.for_query(query, resolved(on_failed)).score(doc_ids)
        lost += scored.lost_penalties
        unscored += list(scored.values).count(None)
        dropped += scored.dropped
        ranked += len(doc_ids)
        # Of answers the documents are graded that they cite.
        graded += sum(doc_id in query.levels or doc_id in query.answers for doc_id in doc_ids)
        failed += sum(query.failed.get(doc_id, 0).bit_count() for doc_id in doc_ids)
        if query.answers:
            failed += max(one.failed for one in scored.needed.values())
        del query
    queries_found = frozenset(found)
    ranked_first = [query_id for query_id in as_known(list(run.rankings), queries_found) if query_id in found]
    order = dict.fromkeys([*ranked_first, *sorted(found)])
    share = worst_share([scored.needed for scored in found.values()])
    if on_failed is None:
        refuse_share(share, "the scores need")
    ordered = [metric for query_id in order for metric in metrics_of(query_id, plan.measures, found[query_id])]
    refuse_unscored(plan.measures if found else (), {metric.measure for metric in ordered})
    note_lost_penalties(lost)
    note_unscored(unscored)
    note_dropped(dropped)
    counted = resolved(on_failed)
    no_items = frozenset(without_items)
    return Evaluation(plan.measures, ordered, queries_found, ranked, graded, failed, no_items, counted, share)
