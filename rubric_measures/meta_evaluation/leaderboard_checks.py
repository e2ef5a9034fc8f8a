"""What can be wrong beneath a leaderboard: unjudged passages, missing topics, ties that decide the winner."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from ir_measures.measures.base import Measure

from rubric_measures.base.files import read_text
from rubric_measures.base.sorting import Gap
from rubric_measures.formats.run_names import distinct_run_names
from rubric_measures.formats.trec import columns_of, read_run
from rubric_measures.formats.trec_ids import as_known, written_id
from rubric_measures.grades.compiled import Grades, OnFailed, QueryGrades
from rubric_measures.grades.loading import RecordQuery
from rubric_measures.leaderboards.run_spool import RowSpool
from rubric_measures.leaderboards.scoring import OVERALL, Leaderboard, needed_depth, score_records, score_runs

__all__ = [
    "LeaderboardChecks",
    "RawRun",
    "RunCheck",
    "TopRun",
    "check_leaderboard",
    "check_records",
    "check_spooled",
    "raw_runs",
]


@dataclass(frozen=True)
class RawRun:
    """A run before any tie is broken.

    Attributes:
        run_id: the run.
        rankings: query_id -> (doc_id, score), higher is better, in file order.
    """

    run_id: str
    rankings: Mapping[str, Sequence[tuple[str, float]]]


@dataclass(frozen=True, slots=True)
class RunCheck:
    """One run.

    Attributes:
        run_id: the run.
        topics: topics of the leaderboard that the run ranks.
        missing: topics that it does not rank.
        judged: Judged@k: the share of the passages within the cutoff that have a grade; None without passages.
        tied: the share of the passages within the cutoff whose score another passage of the ranking has, too; None
            without passages.
    """

    run_id: str
    topics: int
    missing: tuple[str, ...]
    judged: float | None
    tied: float | None


@dataclass(frozen=True, slots=True)
class TopRun:
    """Which run is best under each tie rule.

    Attributes:
        measure: the measure.
        by_doc_id: best runs (several when their means are equal) with ties by document id, descending: ours.
        by_file_order: best runs with ties in file order.
        changed: whether the two differ: then a tie rule decides the winner.
    """

    measure: str
    by_doc_id: tuple[str, ...]
    by_file_order: tuple[str, ...]
    changed: bool


@dataclass(frozen=True)
class LeaderboardChecks:
    """The checks of a leaderboard.

    Attributes:
        cutoff: k, the largest cutoff of the measures; None when one reads the whole ranking.
        runs: one entry a run, in order of run_id.
        top: one entry a measure.
    """

    cutoff: int | None
    runs: tuple[RunCheck, ...]
    top: tuple[TopRun, ...]


def raw_runs(paths: Iterable[str | os.PathLike[str]]) -> Iterator[RawRun]:
    """TREC run files in file order, one at a time; read twice, the first time to check them.

    Raises:
        FormatError: a file is no run.
    """
    paths = list(paths)
    names = distinct_run_names([read_run(path).run_id for path in paths], paths)
    for path, name in zip(paths, names, strict=True):
        read = read_run(path)
        rankings: dict[str, list[tuple[str, float]]] = {query_id: [] for query_id in read.rankings}
        for line in read_text(path).split("\n"):
            columns = columns_of(line)
            if columns:
                rankings[columns[0]].append((columns[2], float(columns[4])))
        yield RawRun(name, rankings)


def _rows_of_records(query: RecordQuery) -> dict[str, list[tuple[str, float]]]:
    """The rankings inside graded records: passages in file order, scored by rank (passages of one rank are tied).

    Documents without a record stand at the end of the rows, with the ranks that they keep.
    """
    runs: dict[str, list[tuple[str, float]]] = {}
    for run_id, places in query.ranks.items():
        own = set(query.rankings.get(run_id, ()))
        ranks = {place.doc_id: place.rank for place in places if place.doc_id in own}
        runs[run_id] = [(doc_id, -float(ranks[doc_id])) for doc_id in query.passages if doc_id in ranks]
        below = 0
        for doc_id in reversed(query.rankings.get(run_id, ())):
            below = below - 1 if isinstance(doc_id, Gap) else ranks[doc_id]
            if isinstance(doc_id, Gap):
                runs[run_id].append((doc_id, -float(below)))
    return runs


def _rows_of(run: RawRun, query: QueryGrades) -> Sequence[tuple[str, float]]:
    """A run's rows for a query."""
    return _known(run.rankings.get(query.query_id) or run.rankings.get(written_id(query.query_id), ()), query)


def _known(rows: Sequence[tuple[str, float]], query: QueryGrades) -> Sequence[tuple[str, float]]:
    """Rows under the ids of the grades where these hold spaces, which a run file cannot."""
    doc_ids = as_known([doc_id for doc_id, _ in rows], query.levels)
    return [(doc_id, score) for doc_id, (_, score) in zip(doc_ids, rows, strict=True)]


def _in_file_order(rows: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Score descending; sorting is stable, so equal scores stay in file order."""
    return sorted(rows, key=lambda row: -row[1])


@dataclass
class _Tally:
    """What is counted of one run, query by query."""

    ranked: set[str] = field(default_factory=set)
    inside: int = 0
    judged: int = 0
    tied: int = 0

    def add(self, query: QueryGrades, rows: Sequence[tuple[str, float]], cutoff: int | None) -> list[str]:
        """Counts one ranking, and gives its documents with ties in file order."""
        ranked = _in_file_order(rows)
        if not ranked:
            return []
        self.ranked.add(query.query_id)
        counts: dict[float, int] = {}
        for _, score in ranked:
            counts[score] = counts.get(score, 0) + 1
        head = ranked if cutoff is None else ranked[:cutoff]
        self.inside += len(head)
        self.tied += sum(counts[score] > 1 for _, score in head)
        # Which of tied passages stand inside the cutoff depends on the rule: ours decides who counts as judged.
        ours = sorted(sorted(ranked, key=lambda row: row[0], reverse=True), key=lambda row: -row[1])
        self.judged += sum(doc_id in query.levels for doc_id, _ in ours[: len(head)])
        return [doc_id for doc_id, _ in ranked]

    def check(self, run_id: str, queries: AbstractSet[str]) -> RunCheck:
        return RunCheck(
            run_id,
            len(self.ranked),
            tuple(sorted(queries - self.ranked)),
            self.judged / self.inside if self.inside else None,
            self.tied / self.inside if self.inside else None,
        )


def _best(board: Leaderboard, measure: str) -> tuple[str, ...]:
    means = {
        run: round(row[measure].mean, 12)  # type: ignore[arg-type]
        for run, row in board.cells.items()
        if run != OVERALL and row[measure].mean is not None
    }
    return tuple(sorted(run for run, mean in means.items() if mean == max(means.values())))


def check_leaderboard(
    board: Leaderboard, grades: Grades, runs: Iterable[RawRun], measures: Sequence[Measure]
) -> LeaderboardChecks:
    """Judged@k, missing topics and ties of every run, and whether the tie rule decides the winner.

    Ours breaks ties by document id, descending (trec_eval's rule); the other rule keeps file order, as several tools
    do. All runs are scored once more under that rule.

    Args:
        board: the leaderboard, scored with our rule.
        grades: the grades that it was scored with.
        runs: the runs with their scores; consumed once.
        measures: the measures of the leaderboard.

    Raises:
        InputError: there is no run.
    """
    cutoff = needed_depth(measures)
    tallies: dict[str, _Tally] = {}

    def reordered() -> Iterator[tuple[str, Mapping[str, Sequence[str]]]]:
        for run in runs:
            tally = tallies[run.run_id] = _Tally()
            yield (
                run.run_id,
                {
                    query_id: tally.add(query, _rows_of(run, query), cutoff)
                    for query_id, query in grades.queries.items()
                },
            )

    other = score_runs(grades, reordered(), measures, overall=False)
    return _checks(board, other, cutoff, tallies, {query.query_id for query in grades.queries.values()})


def check_records(
    board: Leaderboard, queries: Iterable[RecordQuery], measures: Sequence[Measure], on_failed: OnFailed = "exclude"
) -> LeaderboardChecks:
    """The same for the rankings inside graded records, as a stream: memory is that of one query.

    Passages of one rank are tied.

    Args:
        board: the leaderboard, scored with our rule.
        queries: the records, read with `keep_ranks`; consumed once.
        measures: the measures of the leaderboard.
        on_failed: see `graded.Grades`.

    Raises:
        InputError: there is no run.
    """
    cutoff = needed_depth(measures)
    tallies: dict[str, _Tally] = {}
    seen: set[str] = set()

    def reordered() -> Iterator[RecordQuery]:
        for query in queries:
            seen.add(query.query_id)
            orders = {
                run_id: tallies.setdefault(run_id, _Tally()).add(query.grades, rows, cutoff)
                for run_id, rows in _rows_of_records(query).items()
            }
            yield replace(query, rankings={run_id: order for run_id, order in orders.items() if order}, ranks={})
            del query

    other = score_records(reordered(), measures, on_failed=on_failed, overall=False)
    return _checks(board, other, cutoff, tallies, seen)


def check_spooled(
    board: Leaderboard,
    queries: Iterable[RecordQuery],
    runs: RowSpool,
    measures: Sequence[Measure],
    on_failed: OnFailed = "exclude",
) -> LeaderboardChecks:
    """The same for run files beside graded records, as a stream: memory is that of one query.

    Args:
        board: the leaderboard, scored with our rule.
        queries: the records; consumed once.
        runs: the rows of the run files.
        measures: the measures of the leaderboard.
        on_failed: see `graded.Grades`.
    """
    cutoff = needed_depth(measures)
    tallies = {run.run_id: _Tally() for run in runs.runs}
    seen: set[str] = set()

    def counted() -> Iterator[RecordQuery]:
        for query in queries:
            seen.add(query.query_id)
            written = runs.rows(written_id(query.query_id))
            for run_id, rows in {**written, **runs.rows(query.query_id)}.items():
                tallies[run_id].add(query.grades, _known(rows, query.grades), cutoff)
            yield query
            del query

    other = score_records(counted(), measures, runs=runs, on_failed=on_failed, overall=False)
    return _checks(board, other, cutoff, tallies, seen)


def _checks(
    board: Leaderboard, other: Leaderboard, cutoff: int | None, tallies: Mapping[str, _Tally], queries: AbstractSet[str]
) -> LeaderboardChecks:
    top = []
    for measure in board.measures:
        ours, theirs = _best(board, measure), _best(other, measure)
        top.append(TopRun(measure, ours, theirs, ours != theirs))
    runs = tuple(tally.check(run_id, queries) for run_id, tally in sorted(tallies.items()))
    return LeaderboardChecks(cutoff, runs, tuple(top))
