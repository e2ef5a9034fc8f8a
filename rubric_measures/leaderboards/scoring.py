"""Scoring runs: runs × measures × queries to a leaderboard, from run files, records or rankings in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ir_measures.measures.base import Measure

from rubric_measures.base.entities import Signature, made_by
from rubric_measures.base.errors import InputError, MeasureError
from rubric_measures.base.parallel import forked_map
from rubric_measures.base.sorting import Placed, RankNotes
from rubric_measures.formats.trec import Ranking, distinct_run_names, map_run
from rubric_measures.formats.trec_ids import as_known, spaced_ids, written_id
from rubric_measures.grades.compiled import Grades, OnFailed, QueryGrades
from rubric_measures.grades.notes import note_lost_penalties
from rubric_measures.leaderboards.board import (
    OVERALL,
    Cell,
    InputsReader,
    Leaderboard,
    Tally,
    cell_of,
    collect_cells,
    make_cell,
    ranking_digest,
)
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
    rankings: dict[str, str] = field(default_factory=dict)
    lost_penalties: int = 0

    def add(self, query_id: str, scored: Scored) -> None:
        for column, value in zip(self.columns, scored.values, strict=True):
            column[query_id] = value
        for cutoff, tally in self.tallies.items():
            tally.add(scored.needed[cutoff])
        self.lost_penalties += scored.lost_penalties
        if scored.doc_ids:
            self.rankings[query_id] = ranking_digest(scored.doc_ids)
        else:
            self.missing.append(query_id)


class _Scoring:
    """A leaderboard while it is made: queries are prepared, rankings scored and put into the rows of their runs."""

    def __init__(self, measures: Sequence[Measure], on_failed: OnFailed, overall: bool) -> None:
        self.names = [str(measure) for measure in measures]
        if not self.names:
            raise MeasureError("name at least one measure")
        if len(set(self.names)) != len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise MeasureError(f"measure {twice} is asked for twice")
        self.plan = Plan(measures)
        self.on_failed: OnFailed = on_failed
        self.inputs = InputsReader()
        self.rows: dict[str, _RunRow] = {}
        self.best = self.new_row() if overall else None
        # Where facets are scored apart, each has a scorer of its own, and all have the rankings of their query.
        self.scorers: dict[str, QueryScorer] = {}
        self.parts: dict[str, list[str]] = {}
        self.without_items: list[str] = []

    def new_row(self) -> _RunRow:
        return _RunRow([{} for _ in self.names], {cutoff: Tally() for cutoff in self.plan.cutoffs})

    def prepare(self, name: str, grades: QueryGrades) -> QueryScorer | None:
        """Takes a query, or a facet of one; None where it has no item, and so no score."""
        of_query = self.parts.setdefault(grades.query_id, [])
        if not grades.items:
            self.without_items.append(name)
            return None
        of_query.append(name)
        self.inputs.add_grades(name, grades)
        scorer = self.scorers[name] = self.plan.for_query(grades, self.on_failed)
        if self.best is not None:
            for column, value in zip(self.best.columns, scorer.best_possible(), strict=True):
                column[name] = value
        return scorer

    def prepare_all(self, grades: Grades) -> None:
        """Takes all queries of grades that are in memory."""
        for name, query in sorted(grades.queries.items()):
            self.prepare(name, query)

    def row(self, found: Mapping[str, Mapping[str, Scored]]) -> _RunRow:
        """The row of a run of which all is known: query_id -> what each of its parts scores."""
        row = self.new_row()
        for query_id, parts in found.items():
            for name, scored in parts.items():
                row.add(name, scored)
            if query_id not in self.parts:
                row.unknown.append(query_id)
        return row

    def finish(self, settings: Mapping[str, object], ranks: RankNotes | None = None) -> Leaderboard:
        """The leaderboard. What a run does not rank scores as an empty ranking does.

        Raises:
            InputError: there is no run, or one has the name of the row of the best possible score.
        """
        if not self.rows:
            raise InputError("there is no run to score")
        if OVERALL in self.rows:
            raise InputError(f"a run is called {OVERALL}, the name of the row of the best possible score; rename it")
        for row in self.rows.values():
            for name, scorer in self.scorers.items():
                if name not in row.columns[0]:
                    row.add(name, scorer.score(()))
        for run_id, row in self.rows.items():
            self.inputs.add_run(run_id, row.rankings.items())
        inputs = self.inputs.read()
        if self.best is not None:
            self.rows[OVERALL] = self.best
        values: dict[str, dict[str, dict[str, float | None]]] = {}
        cells: dict[str, dict[str, Cell]] = {}
        rows = self._with_known_best(self.rows)
        for run_id, row in sorted(rows.items()):
            columns = [dict(sorted(column.items())) for column in row.columns]
            values[run_id] = dict(zip(self.names, columns, strict=True))
            cells[run_id] = {
                name: make_cell(column.values(), row.tallies[cutoff], measure)
                for name, column, cutoff, measure in zip(
                    self.names, columns, self.plan.cutoffs, self.plan.measures, strict=True
                )
            }
        lost = sum(row.lost_penalties for row in rows.values())
        if lost:
            note_lost_penalties(lost, max(sorted(rows), key=lambda run_id: rows[run_id].lost_penalties))
        return Leaderboard(
            self.names,
            values,
            cells,
            Signature({"measures": self.names, **_settings(self.on_failed, settings), **inputs.settings()}),
            {run_id: row.missing for run_id, row in rows.items() if row.missing},
            {run_id: sorted(row.unknown) for run_id, row in rows.items() if row.unknown},
            ranks=ranks or RankNotes(),
            without_items=sorted(self.without_items),
            inputs=inputs,
        )

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


def _settings(on_failed: OnFailed, more: Mapping[str, object]) -> dict[str, object]:
    from rubric_measures import __version__

    return {"version": __version__, "on_failed": on_failed, "sort": "score,doc_id", "missing": "zero", **more}


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
    scoring = _Scoring(measures, grades.on_failed, overall)
    scoring.prepare_all(grades)
    for run_id, rankings in runs:
        if run_id in scoring.rows:
            raise InputError(f"two runs are called {run_id!r}; rename one")
        scoring.rows[run_id] = scoring.row(
            {
                query_id: {name: scoring.scorers[name].score(ranking) for name in scoring.parts.get(query_id, ())}
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
    scoring = _Scoring(measures, grades.on_failed, overall)
    scoring.prepare_all(grades)
    spaced = spaced_ids(scoring.parts)

    def score_query(query_id: str, ranking: Ranking) -> dict[str, Scored]:
        return {
            name: scoring.scorers[name].score(as_known(ranking.doc_ids, grades.queries[name].levels))
            for name in scoring.parts.get(spaced.get(query_id, query_id), ())
        }

    def score(path: str) -> tuple[str, _RunRow]:
        run_id, found = map_run(path, score_query)
        return run_id, scoring.row({spaced.get(query_id, query_id): scored for query_id, scored in found.items()})

    scored = list(forked_map(score, paths, workers, watch))
    names = distinct_run_names([tag for tag, _ in scored], paths)
    scoring.rows.update((name, row) for name, (_, row) in zip(names, scored, strict=True))
    return scoring.finish({**grades.source, **(settings or {})})


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
        queries: the stream of `loading.read_records`.
        measures: as for `score_runs`.
        runs: the runs; None scores the rankings inside the records.
        on_failed: see `Grades`.
        overall: as for `score_runs`.
        settings: as for `score_runs`.

    Raises:
        InputError: the records hold no ranking.
        MeasureError: a measure cannot be computed from these grades.
    """
    scoring = _Scoring(measures, on_failed, overall)
    rows = scoring.rows
    for run in runs.runs if runs is not None else ():
        rows[run.run_id] = scoring.new_row()
    grade_sets: set[str] = set()
    made: set[str] = set()
    notes = RankNotes()
    for query in queries:
        grade_sets.update(map(str, query.grade_sets))
        made |= query.made
        rankings = query.rankings if runs is None else _ranked_by(runs, query.grades)
        # The facets of a query have the same rankings.
        if runs is None and query.query_id not in scoring.parts:
            for run_id, ranking in rankings.items():
                notes = notes.adding(Placed(ranking, query.disagreements.get(run_id, 0)))
        for run_id in rankings.keys() - rows.keys():
            rows[run_id] = scoring.new_row()
        name = query.part or query.query_id
        scorer = scoring.prepare(name, query.grades)
        if scorer is None:
            continue
        for run_id, ranking in rankings.items():
            rows[run_id].add(name, scorer.score(ranking))
        # For the runs that do not rank the query, some of which may be known later only.
        scoring.scorers[name] = scorer.without_passages()
    if not rows:
        raise InputError("the records hold no ranking; give run files")
    said = {"grades": sorted(grade_sets), **made_by(made), **(settings or {})}
    if runs is None:
        said["sort"] = "rank,score,doc_id"
    else:
        known = {*scoring.parts, *map(written_id, scoring.parts)}
        for run in runs.runs:
            rows[run.run_id].unknown += run.places.keys() - known
    return scoring.finish(said, notes)
