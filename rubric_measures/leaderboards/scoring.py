"""Scoring runs: runs × measures × queries to a leaderboard, from run files, records or rankings in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ir_measures.measures.base import Measure

from rubric_measures.base.errors import InputError, MeasureError
from rubric_measures.base.parallel import forked_map
from rubric_measures.base.signature import Signature, made_by
from rubric_measures.base.sorting import Placed, RankNotes
from rubric_measures.formats.run_names import distinct_run_names
from rubric_measures.formats.trec import Ranking, map_run
from rubric_measures.formats.trec_ids import as_known, spaced_ids, written_id
from rubric_measures.grades.compiled import Grades, OnFailed, QueryGrades
from rubric_measures.grades.notes import note_lost_penalties
from rubric_measures.leaderboards.board import OVERALL, Cell, Leaderboard, Tally, cell_of, collect_cells, make_cell
from rubric_measures.measures.scoring import Plan, QueryScorer, Scored

if TYPE_CHECKING:
    from rubric_measures.grades.loading import RecordQuery
    from rubric_measures.leaderboards.run_spool import RunSpool

_LOG = logging.getLogger("rubric_measures")

__all__ = [
    "OVERALL",
    "Cell",
    "Leaderboard",
    "cell_of",
    "collect_cells",
    "needed_depth",
    "score_records",
    "score_run_files",
    "score_runs",
]


@dataclass
class _RunRow:
    """What one run collects: for each measure query_id -> value, for each cutoff the count of needed grades."""

    columns: list[dict[str, float | None]]
    tallies: dict[int | None, Tally]
    missing: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    lost_penalties: int = 0

    def add(self, query_id: str, scored: Scored) -> None:
        for column, value in zip(self.columns, scored.values, strict=True):
            column[query_id] = value
        for cutoff, tally in self.tallies.items():
            tally.add(scored.needed[cutoff])
        self.lost_penalties += scored.lost_penalties
        if scored.is_missing:
            self.missing.append(query_id)


class _Scoring:
    """The measures of a leaderboard, and how one ranking is scored."""

    def __init__(self, measures: Sequence[Measure]) -> None:
        self.names = [str(measure) for measure in measures]
        if not self.names:
            raise MeasureError("name at least one measure")
        if len(set(self.names)) != len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise MeasureError(f"measure {twice} is asked for twice")
        self.plan = Plan(measures)
        self.cutoffs = self.plan.cutoffs

    def new_row(self) -> _RunRow:
        return _RunRow([{} for _ in self.names], {cutoff: Tally() for cutoff in self.cutoffs})

    def overall(self, scorers: Mapping[str, QueryScorer]) -> _RunRow:
        row = self.new_row()
        for query_id, scorer in scorers.items():
            for column, value in zip(row.columns, scorer.best_possible(), strict=True):
                column[query_id] = value
        return row

    def _with_known_best(self, rows: Mapping[str, _RunRow]) -> Mapping[str, _RunRow]:
        """The rows with the best possible score by those measures alone of which it is known for every query."""
        best = rows.get(OVERALL)
        if best is None:
            return rows
        known = {name: None not in column.values() for name, column in zip(self.names, best.columns, strict=True)}
        if all(known.values()):
            return rows
        _LOG.warning(
            "the best possible score (%s) is not known by %s: a penalty (negative weight) or a query of which all "
            "grades failed stands against it",
            OVERALL,
            " ".join(name for name, is_known in known.items() if not is_known),
        )
        others = {run_id: row for run_id, row in rows.items() if run_id != OVERALL}
        if not any(known.values()):
            return others
        columns = [column if known[name] else {} for name, column in zip(self.names, best.columns, strict=True)]
        return {**others, OVERALL: replace(best, columns=columns)}

    def finish(self, rows: Mapping[str, _RunRow], settings: Mapping[str, object]) -> Leaderboard:
        values: dict[str, dict[str, dict[str, float | None]]] = {}
        cells: dict[str, dict[str, Cell]] = {}
        rows = self._with_known_best(rows)
        for run_id, row in sorted(rows.items()):
            columns = [dict(sorted(column.items())) for column in row.columns]
            values[run_id] = dict(zip(self.names, columns, strict=True))
            cells[run_id] = {
                name: make_cell(column.values(), row.tallies[cutoff], measure)
                for name, column, cutoff, measure in zip(
                    self.names, columns, self.cutoffs, self.plan.measures, strict=True
                )
            }
        missing = {run_id: row.missing for run_id, row in rows.items() if row.missing}
        unknown = {run_id: sorted(row.unknown) for run_id, row in rows.items() if row.unknown}
        worst = max(sorted(rows), key=lambda run_id: rows[run_id].lost_penalties)
        note_lost_penalties(sum(row.lost_penalties for row in rows.values()), worst)
        return Leaderboard(self.names, values, cells, Signature({"measures": self.names, **settings}), missing, unknown)


def _settings(on_failed: OnFailed, more: Mapping[str, object] | None) -> dict[str, object]:
    from rubric_measures import __version__

    return {"version": __version__, "on_failed": on_failed, "sort": "score,doc_id", "missing": "zero", **(more or {})}


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
        overall: also report the best score that any run could reach with the graded passages, by the measures of which
            it is known: not with penalties (negative weights), nor where all grades of a query failed, which is said.
        settings: what else belongs into the signature.

    Raises:
        InputError: two runs have one name, or there is no run.
        MeasureError: a measure cannot be computed from these grades.
    """
    scoring = _Scoring(measures)
    scorers = _scorers(scoring, grades)
    rows: dict[str, _RunRow] = {}
    for run_id, rankings in runs:
        _merge(rows, run_id, _score_run(scoring, scorers, rankings, grades))
    return _finish(scoring, scorers, rows, grades, overall, settings)


def _scorers(scoring: _Scoring, grades: Grades) -> dict[str, QueryScorer]:
    return {
        query_id: scoring.plan.for_query(query, grades.on_failed)
        for query_id, query in sorted(grades.queries.items())
        if query.items
    }


def _score_run(
    scoring: _Scoring, scorers: Mapping[str, QueryScorer], rankings: Mapping[str, Sequence[str]], grades: Grades
) -> _RunRow:
    row = scoring.new_row()
    for query_id, scorer in scorers.items():
        # Where facets are scored apart, several of them have the rankings of one query.
        row.add(query_id, scorer.score(rankings.get(scorer.query_id, ())))
    row.unknown += rankings.keys() - {query.query_id for query in grades.queries.values()}
    return row


def _merge(rows: dict[str, _RunRow], run_id: str, row: _RunRow) -> None:
    if run_id in rows:
        raise InputError(f"two runs are called {run_id!r}; rename one")
    rows[run_id] = row


def _finish(
    scoring: _Scoring,
    scorers: Mapping[str, QueryScorer],
    rows: dict[str, _RunRow],
    grades: Grades,
    overall: bool,
    settings: Mapping[str, object] | None,
) -> Leaderboard:
    if not rows:
        raise InputError("there is no run to score")
    if OVERALL in rows:
        raise InputError(f"a run is called {OVERALL}, the name of the row of the best possible score; rename it")
    if overall:
        rows[OVERALL] = scoring.overall(scorers)
    board = scoring.finish(rows, _settings(grades.on_failed, {**grades.source, **(settings or {})}))
    return replace(board, without_items=sorted(grades.queries.keys() - scorers.keys()))


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
    scoring = _Scoring(measures)
    scorers = _scorers(scoring, grades)

    # Where facets are scored apart, several of them have the rankings of one query.
    parts: dict[str, list[str]] = {query.query_id: [] for query in grades.queries.values()}
    for name, scorer in scorers.items():
        parts[scorer.query_id].append(name)

    spaced = spaced_ids(parts)

    def score_query(query_id: str, ranking: Ranking) -> dict[str, Scored]:
        return {
            name: scorers[name].score(as_known(ranking.doc_ids, grades.queries[name].levels))
            for name in parts.get(spaced.get(query_id, query_id), ())
        }

    def score(path: str) -> tuple[str, _RunRow]:
        run_id, taken = map_run(path, score_query)
        found = {spaced.get(query_id, query_id): scored for query_id, scored in taken.items()}
        row = scoring.new_row()
        row.unknown += found.keys() - parts.keys()
        for name, scorer in scorers.items():
            scored = found.get(scorer.query_id)
            row.add(name, scored[name] if scored else scorer.score(()))
        return run_id, row

    scored = list(forked_map(score, paths, workers, watch))
    names = distinct_run_names([tag for tag, _ in scored], paths)
    rows = {name: row for name, (_, row) in zip(names, scored, strict=True)}
    return _finish(scoring, scorers, rows, grades, overall, settings)


def _ranked_by(runs: RunSpool, query: QueryGrades) -> dict[str, Sequence[str]]:
    rankings = runs.rankings(query.query_id)
    written = written_id(query.query_id)
    if written != query.query_id:
        rankings = {**runs.rankings(written), **rankings}
    return {run_id: as_known(doc_ids, query.levels) for run_id, doc_ids in rankings.items()}


def needed_depth(measures: Sequence[Measure]) -> int | None:
    """How many documents of a ranking the measures look at; None when all."""
    return Plan(measures).depth


def score_records(
    queries: Iterable[RecordQuery],
    measures: Sequence[Measure],
    *,
    runs: RunSpool | None = None,
    on_failed: OnFailed = "exclude",
    overall: bool = True,
    settings: Mapping[str, object] | None = None,
) -> Leaderboard:
    """Scores runs against a stream of graded records, one query at a time: memory is that of one query and the values.

    Args:
        queries: the stream of `selection.read_records`.
        measures: as for `score_runs`.
        runs: the runs; None scores the rankings inside the records.
        on_failed: see `graded.Grades`.
        overall: as for `score_runs`.
        settings: as for `score_runs`.

    Raises:
        InputError: the records hold no ranking.
        MeasureError: a measure cannot be computed from these grades.
    """
    scoring = _Scoring(measures)
    rows: dict[str, _RunRow] = {run.run_id: scoring.new_row() for run in runs.runs} if runs is not None else {}
    best = scoring.new_row()
    # What a run that does not rank the query scores for it, to be filled in for runs that appear later.
    empty: dict[str, QueryScorer] = {}
    grade_sets: set[str] = set()
    made: set[str] = set()
    known_queries: set[str] = set()
    without_items: set[str] = set()
    notes = RankNotes()
    for query in queries:
        grade_sets.update(map(str, query.grade_sets))
        made |= query.made
        name = query.part or query.query_id
        rankings = query.rankings if runs is None else _ranked_by(runs, query.grades)
        # The facets of a query have the same rankings.
        if runs is None and query.query_id not in known_queries:
            for run_id, ranking in rankings.items():
                notes = notes.adding(Placed(ranking, query.disagreements.get(run_id, 0)))
        known_queries.add(query.query_id)
        for run_id in rankings.keys() - rows.keys():
            rows[run_id] = scoring.new_row()
        if not query.grades.items:
            without_items.add(name)
            continue
        scorer = scoring.plan.for_query(query.grades, on_failed)
        for run_id, ranking in rankings.items():
            rows[run_id].add(name, scorer.score(ranking))
        if overall:
            for column, values in zip(best.columns, scoring.overall({name: scorer}).columns, strict=True):
                column.update(values)
        empty[name] = scorer.without_passages()
    if not rows:
        raise InputError("the records hold no ranking; give run files")
    for row in rows.values():
        for query_id, scorer in empty.items():
            if query_id not in row.columns[0]:
                row.add(query_id, scorer.score(()))
    if runs is not None:
        known = set(known_queries).union(map(written_id, known_queries))
        for run in runs.runs:
            rows[run.run_id].unknown += run.places.keys() - known
    if overall:
        rows[OVERALL] = best
    said = {"grades": sorted(grade_sets), **made_by(made), **(settings or {})}
    if runs is None:
        said["sort"] = "rank,score,doc_id"
    board = scoring.finish(rows, _settings(on_failed, said))
    return replace(board, ranks=notes, without_items=sorted(without_items))
