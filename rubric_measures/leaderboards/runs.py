"""Runs beside grades, scored one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ir_measures.measures.base import Measure
from ir_measures.util import Metric

from rubric_measures.base.errors import InputError
from rubric_measures.base.parallel import forked_map
from rubric_measures.formats.trec import as_known, distinct_run_names, map_run, renamed, spaced_ids, written_id
from rubric_measures.leaderboards.board import Leaderboard
from rubric_measures.leaderboards.scoring import RunRow, Scoring
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
from rubric_measures.measures.provider import metrics_of, refuse_unscored, worst_share
from rubric_measures.measures.scoring import Plan, SameScale, Scored
from rubric_measures.types.entities import Ranking, Run

__all__ = ["Evaluation", "evaluate_run", "score_run_files", "score_runs"]


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
