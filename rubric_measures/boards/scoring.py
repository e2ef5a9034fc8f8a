"""Runs scored by measures, query by query, to a board.

Scoring: rankings × measures × queries to a leaderboard, and digests of what it was scored from.

Equal content has equal digests. The order of queries, passages, items, lines and runs does not matter, nor do the names
of files and whether they are packed.

Runs beside grades, scored one by one.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING

from ir_measures.measures.base import MeanAgg, Measure
from ir_measures.util import Metric

from rubric_measures.base.errors import InputError, MeasureError
from rubric_measures.base.sorting import Placed, RankNotes
from rubric_measures.boards.board import Best, BoardInputs, Cell, Failures, Leaderboard, refuse_many_failed
from rubric_measures.formats.leaderboards import OVERALL
from rubric_measures.formats.trec import as_known, distinct_run_names, map_runs, renamed, spaced_ids, written_id
from rubric_measures.measures.grades import (
    Grades,
    OnFailed,
    QueryGrades,
    note_dropped,
    note_lost_penalties,
    note_unscored,
    refuse_share,
    resolved,
)
from rubric_measures.measures.labels import StandardMeasure
from rubric_measures.measures.measure import Computation, Coverage, ExactMean, Needed
from rubric_measures.measures.provider import metrics_of, refuse_unscored, worst_share
from rubric_measures.measures.scoring import LeftOpen, Plan, QueryScorer, SameScale, Scored
from rubric_measures.types.entities import Ranking, Run, Signature, made_by

if TYPE_CHECKING:
    from rubric_measures.formats.columns import Ranked
    from rubric_measures.measures.loading import RecordQuery


_LOG = logging.getLogger("rubric_measures")


def texts_digest(parts: Iterable[str]) -> str:
    """Twelve hex digits of texts in their order, parted by a NUL."""
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _digest_of(named: Mapping[str, str]) -> str:
    return texts_digest(text for pair in sorted(named.items()) for text in pair)


def grades_digest(grades: QueryGrades) -> str:
    """Twelve hex digits of all that measures read of a query: its items with importance, weight and facet; its grades.

    Grades that failed count as such; grades of items that the bank lacks are not part of it.
    """
    docs = sorted(grades.levels)
    rows = [grades.levels[doc_id] for doc_id in docs]
    parts = [f"{len(grades.items)} {len(docs)}", *docs]
    masks: list[int] = []
    for grade in sorted(set(chain.from_iterable(rows))):
        given = [row.get(grade, 0) for row in rows]
        if any(given):
            parts.append(str(grade))
            masks += given
    for doc_id, mask in sorted(grades.failed.items()):
        if mask:
            parts.append(doc_id)
            masks.append(mask)
    # A row a mask and a digit an item, the first item last: an item's column is a slice, wherever the item stands. Of
    # all masks the digits are made at once; the bit before the first keeps leading zeros.
    size = len(grades.items) // 8 + 1
    packed = b"".join([mask.to_bytes(size, "big") for mask in masks])
    digits = bin(int.from_bytes(b"\1" + packed, "big"))[3:]
    width = 8 * size
    for place, item in sorted(enumerate(grades.items, 1), key=lambda placed: placed[1].item_id):
        column = digits[width - place :: width]
        parts.append(f"{item.item_id}\0{item.importance}\0{item.weight!r}\0{item.part}\0{column}")
    for doc_id, sentences in sorted(grades.answers.items()):
        parts.append(
            f"{doc_id}\0" + "\0".join(f"{one.item_id} {one.joined} {list(one.citations)}" for one in sentences)
        )
    return texts_digest(parts)


def ranking_digest(doc_ids: Sequence[str]) -> str:
    """Twelve hex digits of a ranking's documents in their order; the id of a single one, which says as much.

    So a digest in the place of the documents has itself as digest.
    """
    return doc_ids[0] if len(doc_ids) == 1 else texts_digest(doc_ids)


def inputs_settings(inputs: BoardInputs) -> dict[str, object]:
    """The digests of grades, of runs and of judgments (where there are some) in one each, for the signature."""
    qrels = {"qrels": _digest_of(inputs.qrels)} if inputs.qrels else {}
    return {"scored": _digest_of(inputs.grades), "runs": _digest_of(inputs.runs), **qrels}


class InputsReader:
    """Collects the digests while a leaderboard is scored, in any order."""

    def __init__(self) -> None:
        self._grades: dict[str, str] = {}
        self._runs: dict[str, dict[str, str]] = {}

    def add_grades(self, name: str, grades: QueryGrades) -> None:
        """Takes the grades of a query (or of a facet, under its name)."""
        self._grades[name] = grades_digest(grades)

    def add_run(self, run_id: str, rankings: Iterable[tuple[str, str]] = ()) -> None:
        """Takes digests of a run's rankings, by query, or what else is to be digested of it."""
        self._runs.setdefault(run_id, {}).update(rankings)

    def read(self) -> BoardInputs:
        """What was collected."""
        return BoardInputs(
            dict(sorted(self._grades.items())),
            {run_id: _digest_of(rankings) for run_id, rankings in sorted(self._runs.items())},
        )


@dataclass
class Tally:
    """A count of the grades that a run's values needed."""

    needed: int = 0
    graded: int = 0
    failed: int = 0

    def add(self, coverage: Coverage) -> None:
        """Counts those of one query, too."""
        self.needed += coverage.needed
        self.graded += coverage.graded
        self.failed += coverage.failed


def cell_of(values: Iterable[float | None]) -> Cell:
    """Mean and standard error of the values of one run and measure, without counts of grades."""
    return make_cell(values, Tally())


def is_summed(measure: Measure) -> bool:
    """Whether a measure's values are not averaged over the queries: a count, which ir_measures sums."""
    return not isinstance(measure.aggregator(), MeanAgg)


def make_cell(values: Iterable[float | None], tally: Tally, measure: Measure | None = None) -> Cell:
    """Mean and standard error of the values of one run and measure, with counts of grades.

    Args:
        values: the values of the queries; None where one could not be scored. Of ir_measures' own measures the last
            digit of the mean hangs on their order.
        tally: the counts.
        measure: says how the values are put together; by their exact mean without it.
    """
    scored = [value for value in values if value is not None]
    share = tally.graded / tally.needed if tally.needed else None
    if not scored:
        return Cell(None, None, 0, share, tally.failed)
    aggregator = ExactMean() if measure is None else measure.aggregator()
    if type(aggregator) is ExactMean:
        mean = ExactMean.of(scored)
    else:
        for value in scored:
            aggregator.add(value)
        mean = float(aggregator.result())
    error = None
    if len(scored) > 1 and isinstance(aggregator, MeanAgg):
        error = math.sqrt(math.fsum((value - mean) ** 2 for value in scored) / (len(scored) - 1) / len(scored))
    return Cell(mean, error, len(scored), share, tally.failed)


def best_of(values: Mapping[str, float | None], measure: Measure | None = None) -> Best | None:
    """The best possible score, of query_id -> value; None where it is not known for every query, or there is none."""
    known = {query_id: value for query_id, value in sorted(values.items()) if value is not None}
    cell = make_cell(known.values(), Tally(), measure)
    return None if cell.mean is None or len(known) < len(values) else Best(cell.mean, cell.standard_error, known)


def with_failures(
    cell: Cell, values: Mapping[str, float | None], failures: Mapping[str, LeftOpen], tally: Tally, measure: Measure
) -> Cell:
    """The cell with what failed grades leave open of it.

    Args:
        cell: mean and standard error of the values.
        values: query_id -> value; None where one could not be scored.
        failures: query_id -> what failed grades leave open of its value, of the queries where some failed.
        tally: the counts of grades.
        measure: the measure.
    """
    unscored = list(values.values()).count(None)
    is_open = any(one.bounds is None or one.bounds[0] < one.bounds[1] for one in failures.values())
    if not (tally.failed or unscored or is_open):
        return cell
    share = tally.failed / tally.needed if tally.needed else 0.0
    found = [(value, failures.get(query_id)) for query_id, value in values.items()]
    zeros = [value if failure is None else failure.zero for value, failure in found]
    bounds = [(value, value) if failure is None else failure.bounds or (None, None) for value, failure in found]
    low, high = (_aggregated(column, measure) for column in zip(*bounds, strict=True))
    zero = _aggregated(zeros, measure)
    return replace(
        cell,
        failures=Failures(
            share,
            unscored,
            None if cell.mean is None or zero is None else cell.mean - zero,
            None if is_summed(measure) else _error_of_failures(found),
            None if low is None or high is None else (low, high),
        ),
    )


def _aggregated(values: Sequence[float | None], measure: Measure) -> float | None:
    """The mean (or sum) over all queries; None where one is not known."""
    known = [value for value in values if value is not None]
    return make_cell(known, Tally(), measure).mean if len(known) == len(values) else None


def _error_of_failures(found: Sequence[tuple[float | None, LeftOpen | None]]) -> float | None:
    """The standard error of a mean for failures at random; None where it is not known.

    se² = Σ_q spread_q² / Q² + U s² (1 + U / (Q − U)) / Q², with U of Q queries without a value, and s² the variance of
    the values of the others.
    """
    scored = [(value, 0.0 if failure is None else failure.spread) for value, failure in found if value is not None]
    spreads = [spread for _, spread in scored if spread is not None]
    total, lost = len(found), len(found) - len(scored)
    if len(spreads) < len(scored) or (lost and len(scored) < 2):
        return None
    squared = math.fsum(spread**2 for spread in spreads)
    if lost:
        mean = math.fsum(value for value, _ in scored) / len(scored)
        variance = math.fsum((value - mean) ** 2 for value, _ in scored) / (len(scored) - 1)
        squared += lost * variance * (1 + lost / len(scored))
    return math.sqrt(squared) / total


def collect_cells(values: Mapping[str, Mapping[str, Mapping[str, float | None]]]) -> dict[str, dict[str, Cell]]:
    """Means and standard errors of run_id -> measure -> query_id -> value, without counts of grades."""
    return {
        run_id: {name: cell_of(queries.values()) for name, queries in row.items()} for run_id, row in values.items()
    }


@dataclass
class RunRow:
    """What one run collects: for each measure query_id -> value and what failed grades leave open of it.

    It counts the grades that were needed, see `Plan.needs`. `order` has the queries as the run has them.
    """

    columns: list[dict[str, float | None]]
    tallies: dict[Needed, Tally]
    failures: list[dict[str, LeftOpen]]
    missing: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    order: Sequence[str] = ()
    rankings: dict[str, str] = field(default_factory=dict)
    lost_penalties: int = 0
    dropped: int = 0

    def in_order(self, column: Mapping[str, float | None], computation: Computation) -> Mapping[str, float | None]:
        """The values, which are sorted by query, in the order in which ir_measures gives them.

        Of programs behind it those of the run's queries come first.
        """
        if not isinstance(computation, StandardMeasure):
            return column
        ranked = dict.fromkeys(query_id for query_id in self.order if query_id in column)
        return {query_id: column[query_id] for query_id in (*ranked, *(one for one in column if one not in ranked))}

    def add(self, query_id: str, scored: Scored) -> None:
        """Takes what the run scores for a query, or for a facet of one."""
        for column, value in zip(self.columns, scored.values, strict=True):
            column[query_id] = value
        if scored.failures:
            for open_of, failure in zip(self.failures, scored.failures, strict=True):
                open_of[query_id] = failure
        for which, tally in self.tallies.items():
            tally.add(scored.needed[which])
        self.lost_penalties += scored.lost_penalties
        self.dropped += scored.dropped
        if scored.doc_ids:
            self.rankings[query_id] = ranking_digest(scored.doc_ids)
        else:
            self.missing.append(query_id)


def measure_names(measures: Sequence[Measure], asked: Sequence[Measure] | None = None) -> list[str]:
    """The names of a leaderboard's columns.

    Args:
        measures: with all levels said.
        asked: the measures that were asked for, where their levels are those of the scale.

    Raises:
        MeasureError: there is none, or one twice.
    """
    names = [str(measure) for measure in measures]
    if not names:
        raise MeasureError("name at least one measure")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        written = {str(one) for one, name in zip(asked or measures, names, strict=True) if name == twice}
        if len(written) > 1:
            raise MeasureError(f"{min(written - {twice})} is {twice} on the scale of these grades; ask for one of them")
        raise MeasureError(f"measure {twice} is asked for twice")
    return names


class Scoring:
    """A leaderboard while it is made: queries are prepared, rankings scored and put into the rows of their runs."""

    def __init__(self, measures: Sequence[Measure], on_failed: OnFailed | None, overall: bool) -> None:
        self.names = measure_names(measures)
        self.plan = Plan(measures)
        self.scales = SameScale()
        self.on_failed: OnFailed = resolved(on_failed)
        self.is_on_failed_given = on_failed is not None
        self.inputs = InputsReader()
        self.rows: dict[str, RunRow] = {}
        self.best: list[dict[str, float | None]] | None = [{} for _ in self.names] if overall else None
        # Where facets are scored apart, each has a scorer of its own, and all have the rankings of their query.
        self.scorers: dict[str, QueryScorer] = {}
        self.parts: dict[str, list[str]] = {}
        self.without_items: list[str] = []

    def new_row(self) -> RunRow:
        """The row of a run that scored nothing yet."""
        return RunRow([{} for _ in self.names], {which: Tally() for which in self.plan.needs}, [{} for _ in self.names])

    def prepare(self, name: str, grades: QueryGrades) -> QueryScorer | None:
        """Takes a query, or a facet of one; None where it has no item, and so no score."""
        of_query = self.parts.setdefault(grades.query_id, [])
        if not grades.items:
            self.without_items.append(name)
            return None
        of_query.append(name)
        self.inputs.add_grades(name, grades)
        scorer = self.scorers[name] = self.plan.for_query(grades, self.on_failed)
        self._say_levels(grades)
        if self.best is not None:
            for column, value in zip(self.best, scorer.best_possible(), strict=True):
                column[name] = value
        return scorer

    def _say_levels(self, grades: QueryGrades) -> None:
        """Puts the levels of the scale into the measures' names, of the first query that has grades."""
        said = self.plan.said(self.scales, grades)
        if said is not self.plan:
            self.plan, self.names = said, measure_names(said.measures, self.plan.measures)

    def prepare_all(self, grades: Grades) -> None:
        """Takes all queries of grades that are in memory."""
        for name, query in sorted(grades.queries.items()):
            scorer = self.prepare(name, query)
            if scorer is not None:
                scorer.prepare_failures()

    def score(self, name: str, ranking: Sequence[str]) -> Scored:
        """What a ranking scores for a query, or for a facet of one, with the digest in the place of its documents.

        A digest is made fastest at once, and the documents need not be held until all of the run is scored.
        """
        scored = self.scorers[name].score(ranking, failures=True)
        return scored._replace(doc_ids=[ranking_digest(scored.doc_ids)]) if len(scored.doc_ids) > 1 else scored

    def row(self, found: Mapping[str, Mapping[str, Scored]]) -> RunRow:
        """The row of a run of which all is known: query_id -> what each of its parts scores."""
        row = self.new_row()
        row.order = list(found)
        for query_id, parts in found.items():
            for name, scored in parts.items():
                row.add(name, scored)
            if query_id not in self.parts:
                row.unknown.append(query_id)
        return row

    def finish(self, settings: Mapping[str, object], ranks: RankNotes | None = None) -> Leaderboard:
        """The leaderboard. What a run does not rank scores as an empty ranking does.

        Raises:
            InputError: there is no run.
        """
        if not self.rows:
            raise InputError("there is no run to score")
        for row in self.rows.values():
            for name, scorer in self.scorers.items():
                if name not in row.columns[0]:
                    row.add(name, scorer.score((), failures=True))
        for run_id, row in self.rows.items():
            self.inputs.add_run(run_id, row.rankings.items())
        inputs = self.inputs.read()
        rows, best = self.rows, self._known_best()
        values = {run_id: self._by_query(row) for run_id, row in sorted(rows.items())}
        cells = {run_id: self._cells(rows[run_id], of_run.values()) for run_id, of_run in values.items()}
        if not self.is_on_failed_given and any(cell.failed for row in cells.values() for cell in row.values()):
            refuse_many_failed(cells)
        if dropped := sum(row.dropped for row in rows.values()):
            note_dropped(dropped)
        if lost := sum(row.lost_penalties for row in rows.values()):
            note_lost_penalties(lost, max(sorted(rows), key=lambda run_id: rows[run_id].lost_penalties))
        return Leaderboard(
            self.names,
            values,
            cells,
            Signature({"measures": self.names, **_settings(self.on_failed, settings), **inputs_settings(inputs)}),
            {run_id: row.missing for run_id, row in rows.items() if row.missing},
            {run_id: sorted(row.unknown) for run_id, row in rows.items() if row.unknown},
            ranks=ranks or RankNotes(),
            without_items=sorted(self.without_items),
            inputs=inputs,
            best=best,
        )

    def _by_query(self, row: RunRow) -> dict[str, dict[str, float | None]]:
        """Measure -> query -> value, sorted by query."""
        # All columns have the same queries.
        queries = sorted(row.columns[0])
        columns = [{query_id: column[query_id] for query_id in queries} for column in row.columns]
        return dict(zip(self.names, columns, strict=True))

    def _cells(self, row: RunRow, by_query: Iterable[Mapping[str, float | None]]) -> dict[str, Cell]:
        columns = map(row.in_order, by_query, self.plan.computations)
        return {
            name: with_failures(
                make_cell(column.values(), row.tallies[which], measure),
                column,
                failures,
                row.tallies[which],
                measure,
            )
            for name, column, failures, which, measure in zip(
                self.names, columns, row.failures, self.plan.needs, self.plan.measures, strict=True
            )
        }

    def _known_best(self) -> dict[str, Best]:
        """The best possible score by each measure by which it is known for every query."""
        if self.best is None:
            return {}
        unknown = [name for name, column in zip(self.names, self.best, strict=True) if None in column.values()]
        if unknown:
            _LOG.warning(
                "the best possible score (%s) is not known by %s: the measure says none, or a penalty (negative "
                "weight) or a query of which all grades failed stands against it",
                *(OVERALL, " ".join(unknown)),
            )
        found = zip(self.names, self.best, self.plan.measures, strict=True)
        return {name: best for name, column, measure in found if (best := best_of(column, measure))}


def _settings(on_failed: OnFailed, more: Mapping[str, object]) -> dict[str, object]:
    from rubric_measures.base import __version__

    return {"version": __version__, "on_failed": on_failed, "sort": "score,doc_id", "missing": "zero", **more}


def needed_depth(measures: Sequence[Measure], on_failed: OnFailed = "error") -> int | None:
    """How many documents of a ranking the measures look at; None when all.

    Measures over labels and subtopics look deeper where passages whose grades failed leave the ranking.
    """
    plan = Plan(measures)
    return None if on_failed == "expected" and plan.condenses else plan.depth


def score_records(
    queries: Iterable[RecordQuery],
    measures: Sequence[Measure],
    *,
    run_ids: Iterable[str] = (),
    on_failed: OnFailed | None = None,
    overall: bool = True,
    settings: Mapping[str, object] | None = None,
) -> Leaderboard:
    """Scores the rankings inside graded records.

    Args:
        queries: what `loading.select_queries` gives.
        measures: as for `score_runs`.
        run_ids: runs that have a row also where they rank none of the queries.
        on_failed: see `Grades`.
        overall: as for `score_runs`.
        settings: as for `score_runs`.

    Raises:
        InputError: the records hold no ranking.
        MeasureError: a measure cannot be computed from these grades.
    """
    scoring = Scoring(measures, on_failed, overall)
    rows = scoring.rows
    for run_id in run_ids:
        rows[run_id] = scoring.new_row()
    grade_sets: set[str] = set()
    made: set[str] = set()
    notes = RankNotes()
    for query in queries:
        grade_sets.update(map(str, query.grade_sets))
        made |= query.made
        # The facets of a query have the same rankings.
        if query.query_id not in scoring.parts:
            for run_id, ranking in query.rankings.items():
                notes = notes.adding(Placed(ranking, query.disagreements.get(run_id, 0)))
        for run_id in query.rankings.keys() - rows.keys():
            rows[run_id] = scoring.new_row()
        name = query.part or query.query_id
        scorer = scoring.prepare(name, query.grades)
        if scorer is None:
            continue
        for run_id, ranking in query.rankings.items():
            rows[run_id].add(name, scorer.score(ranking, failures=True))
    if not rows:
        raise InputError("the records hold no ranking; give run files")
    said = {"grades": sorted(grade_sets), **made_by(made), **(settings or {}), "sort": "rank,score,doc_id"}
    return scoring.finish(said, notes)


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
        paths: the files; memory is that of a piece of a file a thread.
        measures: as for `score_runs`.
        overall: as for `score_runs`.
        workers: threads that read; None takes one for each core, up to eight.
        watch: wraps the iteration over the files (a progress bar).

    Raises:
        FormatError: a file is no run.
        InputError: two runs have one name, or there is no run.
        MeasureError: a measure cannot be computed from these grades.
    """
    scoring = Scoring(measures, grades.on_failed_given, overall)
    scoring.prepare_all(grades)
    spaced = spaced_ids(scoring.parts)
    depth = needed_depth(measures, resolved(grades.on_failed_given))

    @cache
    def spaced_docs(name: str) -> Mapping[str, str]:
        return spaced_ids(grades.queries[name].levels)

    def take(query_id: str, ranked: Ranked) -> Sequence[str] | Ranking:
        if spaced.get(query_id, query_id) not in scoring.parts:
            return ()
        return ranked.ranking() if scoring.plan.reads_scores else ranked.doc_ids(depth)

    def known(taken: Sequence[str] | Ranking, name: str) -> Sequence[str]:
        if isinstance(taken, Ranking):
            return taken.with_scores(renamed(taken.doc_ids, spaced_docs(name)))
        return renamed(taken, spaced_docs(name))

    def row(found: Mapping[str, Sequence[str] | Ranking]) -> RunRow:
        rankings = {spaced.get(query_id, query_id): taken for query_id, taken in found.items()}
        return scoring.row(
            {
                query_id: {name: scoring.score(name, known(taken, name)) for name in scoring.parts.get(query_id, ())}
                for query_id, taken in rankings.items()
            }
        )

    scored = [(tag, row(found)) for tag, found in map_runs(paths, take, workers, watch)]
    names = distinct_run_names([tag for tag, _ in scored], paths)
    scoring.rows.update((name, row) for name, (_, row) in zip(names, scored, strict=True))
    return scoring.finish(grades.source)


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
    """Scores a run query by query, as ir_measures does with all grades at hand.

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
