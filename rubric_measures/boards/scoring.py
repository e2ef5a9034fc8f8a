"""Runs scored by measures, a query at a time, to a board.

Equal content has equal digests. The order of queries, passages, items, lines and runs does not matter, nor do the names
of files and whether they are packed.

What can be wrong beneath a leaderboard: unjudged passages, missing queries, ties that decide the order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from ir_measures.measures.base import Agg, MeanAgg, Measure
from msgspec.structs import replace

from rubric_measures.base import __version__
from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.boards.board import Leaderboard, worst_failed
from rubric_measures.formats.columns import DocRows, Ranked
from rubric_measures.formats.trec import distinct_run_names, map_runs
from rubric_measures.measures.core import Array, Scores
from rubric_measures.measures.findings import DROPPED, SAMPLED, Looked, Note, refuse_other, same_rankings, without_items
from rubric_measures.measures.grades import Grades, OnFailed, QueryGrades, refuse_share, texts_digest
from rubric_measures.measures.measure import is_supported, measure_names
from rubric_measures.measures.scoring import HEAD, Plan, QueryScorer, QueryScores, RankedRows, tied
from rubric_measures.types.entities import (
    Best,
    BoardInputs,
    Cell,
    Failures,
    LeaderboardChecks,
    Run,
    RunCheck,
    Signature,
    in_order,
    made_by,
    rank_texts,
    ranked,
)

if TYPE_CHECKING:
    from rubric_measures.measures.loading import RecordQuery


def digest_of(named: Mapping[str, str]) -> str:
    """Twelve hex digits of named digests, in any order."""
    return texts_digest(text for pair in sorted(named.items()) for text in pair)


def inputs_settings(inputs: BoardInputs) -> dict[str, object]:
    """The digests of grades, of runs and of judgments (where there are some) in one each, for the signature."""
    qrels = {"qrels": digest_of(inputs.qrels)} if inputs.qrels else {}
    return {"scored": digest_of(inputs.grades), "runs": digest_of(inputs.runs), **qrels}


def is_summed(measure: Measure) -> bool:
    """Whether a measure's values are not averaged over the queries: a count, which ir_measures sums."""
    return not (getattr(measure, "is_averaged", False) or isinstance(measure.aggregator(), MeanAgg))


def _aggregated(values: Iterable[float], aggregator: Agg) -> float:
    """The values of one or more queries put together."""
    for value in values:
        aggregator.add(value)
    return float(aggregator.result())


def cell_of(
    values: Mapping[str, float | None],
    grades: Sequence[int] = (0, 0, 0),
    measure: Measure | None = None,
    listed: Iterable[float | None] | None = None,
) -> Cell:
    """Mean and standard error of the values of one run and measure, with counts of grades.

    Args:
        values: query_id -> value; None where one could not be scored.
        grades: how many grades the values needed, how many of them exist, and how many failed.
        measure: says how the values are put together; by their exact mean without it.
        listed: what is put together, where it is not the values as they stand. Of ir_measures' own measures the last
            digit of the mean hangs on their order.
    """
    scored = [value for value in (values.values() if listed is None else listed) if value is not None]
    needed, graded, failed = grades
    share = graded / needed if needed else None
    if not scored:
        return Cell(None, None, 0, share, failed, per_query=values)
    aggregator = None if measure is None or getattr(measure, "is_averaged", False) else measure.aggregator()
    mean, error = fmean(scored) if aggregator is None else _aggregated(scored, aggregator), None
    if len(scored) > 1 and (aggregator is None or isinstance(aggregator, MeanAgg)):
        error = math.sqrt(math.fsum([(value - mean) ** 2 for value in scored]) / (len(scored) - 1) / len(scored))
    return Cell(mean, error, len(scored), share, failed, per_query=values)


def best_of(values: Mapping[str, float | None], measure: Measure | None = None) -> Best | None:
    """The best possible score, of query_id -> value; None where it is not known for every query, or there is none."""
    known = {query_id: value for query_id, value in sorted(values.items()) if value is not None}
    cell = cell_of(known, measure=measure)
    return None if cell.mean is None or len(known) < len(values) else Best(cell.mean, cell.standard_error, known)


def _left_open(picked: Sequence[tuple[QueryScores, Array]], known: Array) -> Array:
    """Measures × what failed grades leave open (see `Scores`) × runs × queries, of what `Scoring.finish` has."""
    found = np.stack([known] * 5, axis=1)
    found[:, 4] = 0
    for place, (scores, rows) in enumerate(picked):
        if scores.left_open is not None:
            # Of a query that a run does not rank nothing is open.
            ranked = np.flatnonzero(rows >= 0)
            found[:, :, ranked, place] = scores.left_open[:, :, rows[ranked]]
    return found


def _with_failures(cell: Cell, needed: int, measure: Measure, left: Scores) -> Cell:
    """The cell with what failed grades leave open of it.

    Args:
        cell: mean and standard error of the values.
        needed: how many grades they needed.
        measure: the measure.
        left: what they leave open, by query.
    """
    lost = np.isnan(left.value)
    if not (cell.failed or lost.any() or not (left.low >= left.high).all()):
        return cell
    is_exact = getattr(measure, "is_averaged", False)
    certain, least, most = (
        None if np.isnan(column).any() else fmean(column) if is_exact else _aggregated(column, measure.aggregator())
        for column in map(np.ndarray.tolist, left[1:4])
    )
    failures = Failures(
        cell.failed / needed if needed else 0.0,
        int(lost.sum()),
        None if cell.mean is None or certain is None else cell.mean - certain,
        None if is_summed(measure) else _error_of_failures(left.value[~lost], left.spread[~lost], len(lost)),
        None if least is None or most is None else (least, most),
    )
    return replace(cell, failures=failures)


def _error_of_failures(scored: Array, spreads: Array, total: int) -> float | None:
    """The standard error of a mean for failures at random; None where it is not known.

    se² = Σ_q spread_q² / Q² + U s² (1 + U / (Q − U)) / Q², with U of Q queries without a value, and s² the variance of
    the values of the others.
    """
    lost = total - len(scored)
    if np.isnan(spreads).any() or (lost and len(scored) < 2):
        return None
    squared = math.fsum(spreads**2)
    if lost:
        squared += lost * float(np.var(scored, ddof=1)) * (1 + lost / len(scored))
    return math.sqrt(squared) / total


class Scoring:
    """A leaderboard while it is made: all runs of a query by all measures.

    Args:
        measures: the measures.
        given: how failed grades count, see `Grades`.
        overall: whether the best possible score is asked for.
        queries: grades in memory, by query; of each run the rankings are then taken, and scored at the end.
            Without them it is a query at a time.

    Attributes:
        plan: the measures.
        scorers: of the grades in memory, query_id -> its scorer; None where it has no item.
        order: run_id -> queries as the run has them.
    """

    def __init__(
        self,
        measures: Sequence[Measure],
        given: OnFailed | None,
        overall: bool,
        queries: Mapping[str, QueryGrades] = MappingProxyType({}),
    ) -> None:
        # Over labels of passages AP and AP(rel=1) are one: the level is no scale's.
        measures = [one for at, one in enumerate(measures) if is_supported(one) or one not in measures[:at]]
        measure_names(measures)
        self.plan = Plan(measures, given or "expected")
        self.order: dict[str, list[str]] = {}
        self._unknown: dict[str, list[str]] = {}
        self._given, self._looked = given, Looked()
        self._graded: dict[str, str] = {}
        self._without_items: list[str] = []
        # run_id -> query -> digest of its ranking.
        self._ranked: dict[str, dict[str, str]] = {}
        # query -> scores of its rankings and, at the end, of an empty one; and where those of the runs stand that rank
        # something.
        self._found: dict[str, tuple[QueryScores, Mapping[str, int]]] = {}
        self._best: list[dict[str, float | None]] = [{} for _ in measures] if overall else []
        self._taken: dict[str, dict[str, RankedRows]] = {}
        self.scorers = {name: self.prepare(query) for name, query in sorted(queries.items())}

    def take(self, run_id: str, found: Mapping[str, RankedRows | None], path: str = "") -> None:
        """Takes a run over grades in memory: query_id -> its ranking; None where the query has no scorer.

        Errors name its file, if it has one.

        Raises:
            InputError: another run has the name, or no query is one of the grades.
        """
        if run_id in self.order:
            raise FormatError(f"two runs are called {run_id!r}; rename one", path=path)
        refuse_other(path or run_id, found.keys(), self.scorers.keys())
        self.order[run_id] = [name for name, ranking in found.items() if ranking is not None]
        self._unknown[run_id] = sorted(found.keys() - self.scorers.keys())
        for name, ranking in found.items():
            if ranking is not None:
                self._taken.setdefault(name, {})[run_id] = ranking

    def prepare(self, grades: QueryGrades) -> QueryScorer | None:
        """Takes a query; None where it has no item, and so no score."""
        name = grades.query_id
        if not grades.items:
            self._without_items.append(name)
            return None
        self._graded[name] = grades.digest
        said = self.plan.said
        scorer = self.plan.for_query(grades)
        if self.plan.said is not said:
            measure_names(self.plan.said.measures, self.plan.measures)
        if self._best:
            for column, value in zip(self._best, scorer.best_possible(), strict=True):
                column[name] = value
        return scorer

    def score(self, scorer: QueryScorer, rankings: Mapping[str, RankedRows]) -> None:
        """Scores all rankings of a query: run_id -> ranking."""
        name = scorer.grades.query_id
        ranked = {run_id: one for run_id, one in rankings.items() if one.length}
        self._looked.add(scorer.grades, ranked)
        scores = scorer.score([*ranked.values(), RankedRows([], 0)])
        self._found[name] = scores, {run_id: place for place, run_id in enumerate(ranked)}
        for run_id, one in ranked.items():
            self._ranked.setdefault(run_id, {})[name] = one.digest

    def finish(self, settings: Mapping[str, object], ranks: Mapping[str, int] = MappingProxyType({})) -> Leaderboard:
        """The leaderboard. What a run does not rank scores as an empty ranking does.

        Raises:
            InputError: there is no run.
        """
        if not self.order:
            raise InputError("there is no run to score")
        for name, scorer in self.scorers.items():
            if scorer is not None:
                self.score(scorer, self._taken.pop(name, {}))
        runs, measures, found = sorted(self.order), self.plan.said.measures, dict(sorted(self._found.items()))
        names = list(map(str, measures))
        # Measures × runs × queries; NaN where a value is not known.
        known = np.zeros((len(measures), len(runs), len(found)))
        needed, dropped = np.zeros((*known.shape[:2], 3), int), 0
        picked = [(scores, np.array([at.get(run_id, -1) for run_id in runs])) for scores, at in found.values()]
        # Measures × runs: whether the value of a query hangs on grades that were never asked, or failed.
        is_open, is_partial = np.zeros(known.shape[:2], bool), False
        for place, (scores, rows) in enumerate(picked):
            if scores.is_partial:
                is_partial, is_open = True, is_open | np.isnan(scores.values[:, rows])
            known[:, :, place] = scores.values[:, rows]
            needed += np.stack([scores.needed[one.needed][rows] for one in self.plan.computations])
            dropped += int(scores.dropped[rows].sum())
        # Failed grades that count as a grade leave nothing open, but are said.
        inexact = [name for name, of in zip(names, is_open, strict=True) if of.any()] if is_partial else None
        has_open = needed[..., 2].any() or any(scores.left_open is not None for scores, _ in picked)
        left_open = _left_open(picked, known) if has_open else None
        scored = known.astype(object)
        # A mean of those queries alone that need no further grade would be of a choice of them.
        scored[np.isnan(known) | is_open[:, :, None]] = None
        cells: dict[str, dict[str, Cell]] = {run_id: {} for run_id in runs}
        for number, (name, measure) in enumerate(zip(names, measures, strict=True)):
            for place, run_id in enumerate(runs):
                of_query, listed = dict(zip(found, scored[number, place].tolist(), strict=True)), None
                if not is_supported(measure):
                    # As ir_measures gives them: of programs behind it those of the run's queries come first.
                    ranked = [one for one in self.order[run_id] if one in found]
                    listed = [of_query[one] for one in dict.fromkeys([*ranked, *found])]
                cell = cell_of(of_query, needed[number, place].tolist(), measure, listed)
                if left_open is not None:
                    left = Scores(*left_open[number, :, place])
                    cell = _with_failures(cell, int(needed[number, place, 0]), measure, left)
                cells[run_id][name] = cell
        asked = list(zip(names, measures, self._best, strict=False))
        best = {name: one for name, measure, column in asked if (one := best_of(column, measure)) is not None}
        # Where scores by a measure are known by bounds alone, nobody asks for the best.
        hidden = [name for name, _, column in asked if None in column.values() and name not in (inexact or ())]
        notes = [*self._looked.notes(measures), *map(Note, rank_texts(ranks) if ranks else ())]
        notes += without_items(self._without_items) if self._without_items else ()
        notes += [Note(DROPPED % dropped)] if dropped else []
        if hidden:
            text = (
                f"the best possible score is not known by {' '.join(hidden)}: the measure says none, or a "
                "penalty (negative weight), a query of which all grades failed, or grades never asked stand against it"
            )
            notes.append(Note(text, tuple(hidden), False))
        if left_open is not None:
            share, run_id, name = worst_failed(cells)
            if self._given is None:
                refuse_share(share, f"{name} needs of run {run_id}")
        said = {"version": __version__, "on_failed": self.plan.on_failed, "sort": "score,doc_id", "missing": "zero"}
        inputs = BoardInputs(
            dict(sorted(self._graded.items())), {run_id: digest_of(self._ranked.get(run_id, {})) for run_id in runs}
        )
        if len(runs) > 1:
            ranked_by = {run_id: inputs.runs[run_id] for run_id in runs if run_id in self._ranked}
            notes += same_rankings(ranked_by, len(found))
        return Leaderboard(
            names,
            cells,
            Signature({"measures": names, **said, **settings, **inputs_settings(inputs)}),
            {run_id: lacking for run_id in runs if (lacking := [one for one in found if run_id not in found[one][1]])},
            {run_id: unknown for run_id, unknown in self._unknown.items() if unknown},
            inputs=inputs,
            best=best,
            findings=notes,
            inexact=inexact,
        )


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
    scoring.order.update((run_id, []) for run_id in run_ids)
    grade_sets, made, notes = set[str](), set[str](), Counter[str]()
    for query in queries:
        grade_sets.update(map(str, query.grade_sets))
        made |= query.made
        for run_id in query.rankings:
            scoring.order.setdefault(run_id, []).append(query.query_id)
        notes.update(query.notes)
        scorer = scoring.prepare(query.grades)
        if scorer is not None:
            found = {run_id: scorer.ranked(one) for run_id, one in query.rankings.items()}
            scoring.score(scorer, found | {run: found[run]._replace(is_tied=True) for run in query.tied})
    if not scoring.order:
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
    """Scores runs in memory against grades.

    Args:
        grades: the grades and the bank; queries of the bank that a run lacks score 0, without items none.
        runs: (run_id, query_id -> doc_ids best first); consumed once.
        measures: this package's measures, or ir_measures' measures over subtopics.
        overall: also report the best score that any run could reach with the graded passages. It is unknown with
            penalties (negative weights) and where all grades of a query failed; a note says so.

    Raises:
        InputError: two runs have one name, or there is no run.
        MeasureError: a measure cannot be computed from these grades.
    """
    scoring = Scoring(measures, grades.on_failed_given, overall, grades.queries)
    for run_id, rankings in runs:
        found = ((name, scoring.scorers.get(name), ranking) for name, ranking in rankings.items())
        scoring.take(run_id, {name: None if of is None else of.ranked(ranking) for name, of, ranking in found})
    return scoring.finish(grades.source)


def score_run_files(
    asked: Sequence[tuple[Grades, Sequence[Measure]]],
    paths: Sequence[str],
    *,
    overall: bool = True,
    watch: Callable[[Iterable[str]], Iterable[str]] = lambda paths: paths,
    said: list[str] | None = None,
) -> list[Leaderboard]:
    """Scores TREC run files, several at a time; the numbers do not depend on how many.

    Args:
        asked: grades and the measures over them, as for `score_runs`: a leaderboard each. The files are read once.
        paths: the files.
        overall: as for `score_runs`.
        watch: wraps the iteration over the files (a progress bar).
        said: takes the lines that are logged of the files.

    Raises:
        FormatError: a file is no run.
        InputError: two runs have one name, or there is no run.
        MeasureError: a measure cannot be computed from these grades.
    """
    # Of each leaderboard what its grades call queries and passages.
    sides, indexes = [], []
    for grades, measures in asked:
        scoring = Scoring(measures, grades.on_failed_given, overall, grades.queries)
        docs = {query_id: scorer.grades.docs for query_id, scorer in scoring.scorers.items() if scorer is not None}
        depths = [one.depth or math.inf for one in scoring.scorers.values() if one is not None]
        # Programs see whole rankings.
        indexes.append(DocRows(docs, math.inf if scoring.plan.reads_ids else max(depths, default=1)))
        sides.append((scoring, list(docs)[:SAMPLED]))

    def take(query_id: str, ranked: Ranked) -> list[RankedRows | None]:
        found = list[RankedRows | None]()
        is_tied = ranked.lines is not None and tied(ranked.scores)
        for (scoring, sampled), looked_up in zip(sides, ranked.rows, strict=True):
            scorer = scoring.scorers.get(query_id)
            if scorer is None:
                found.append(None)
                continue
            ids: Sequence[str] = ranked.ranking().with_scores() if scoring.plan.reads_ids else ()
            rows = looked_up[: scorer.depth]
            is_odd = query_id in sampled or rows.max(initial=-1) < 0
            heads = [one.decode() for one in ranked.docs.at(slice(len(rows[:HEAD]))).texts()] if is_odd else ()
            digest = ranked.digest(len(rows))
            found.append(RankedRows(rows, len(ranked.scores), digest, ids, heads, is_tied))
        return found

    read = list(map_runs(paths, take, watch, said, indexes))
    names = [tag for tag, _ in read]
    if len(set(names)) < len(names):
        names = distinct_run_names(names, paths, said)
    for place, (scoring, _) in enumerate(sides):
        for name, path, (_, found) in zip(names, paths, read, strict=True):
            scoring.take(name, {query_id: of[place] for query_id, of in found.items()}, path)
    return [side[0].finish(grades.source) for side, (grades, _) in zip(sides, asked, strict=True)]


def _tally(query: QueryGrades, rows: Sequence[tuple[str, float]], cutoff: int | None) -> Counter[str]:
    """What `RunCheck` counts of one ranking within the cutoff."""
    # Sorting is stable: equal scores stay in file order.
    in_file_order = sorted(rows, key=lambda row: -row[1])[:cutoff]
    scores = Counter(score for _, score in rows)
    in_double = sorted(((score, doc_id) for doc_id, score in rows), reverse=True)
    by_file = [doc_id for doc_id, _ in in_file_order]
    by_double = [doc_id for _, doc_id in in_double[:cutoff]]
    by_single = [doc_id for _, doc_id in in_order(in_double)[:cutoff]]
    return Counter(
        inside=len(in_file_order),
        tied=sum(scores[score] > 1 for _, score in in_file_order),
        order_by_ties=by_file != by_double,
        order_by_precision=by_double != by_single,
        # Which passages stand inside the cutoff depends on the rule: ours decides who counts as judged.
        judged=sum(doc_id in query.docs for doc_id in ranked(rows)[:cutoff]),
    )


def check_leaderboard(grades: Grades, runs: Sequence[Run], measures: Sequence[Measure]) -> LeaderboardChecks:
    """Judged@k, missing queries and ties of every run.

    We break ties by document id, descending (trec_eval's rule); several other tools keep file order.

    Args:
        grades: those of the leaderboard.
        runs: the runs, as their files have them.
        measures: the measures of the leaderboard.
    """
    cutoff, seen, checks = Plan(measures).depth, grades.queries.keys(), []
    for run in sorted(runs, key=lambda one: one.run_id):
        found = {query_id: ids for query_id, ids in run.with_scores().items() if query_id in seen}
        of: Counter[str] = Counter()
        for query_id, ids in found.items():
            of.update(_tally(grades.queries[query_id], ids.given, cutoff))
        inside = of["inside"]
        judged, shared = (of[name] / inside if inside else None for name in ("judged", "tied"))
        by_rules = of["order_by_ties"], of["order_by_precision"]
        checks.append(RunCheck(run.run_id, len(found), tuple(sorted(seen - found.keys())), judged, shared, *by_rules))
    return LeaderboardChecks(cutoff, tuple(checks))
