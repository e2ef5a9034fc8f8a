"""One run scored against a stream of grades: values by query and measure, and how much of what was ranked is graded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ir_measures.measures.base import Measure
from ir_measures.util import Metric

from rubric_measures.formats.trec import Run
from rubric_measures.formats.trec_ids import as_known, written_id
from rubric_measures.grades.compiled import OnFailed, QueryGrades, resolved
from rubric_measures.grades.notes import note_dropped, note_lost_penalties, note_unscored, refuse_share
from rubric_measures.measures.provider import metrics_of, refuse_unscored, worst_share
from rubric_measures.measures.scoring import Plan, SameScale, Scored

__all__ = ["Evaluation", "evaluate_run"]


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
    """

    measures: Sequence[Measure]
    metrics: Sequence[Metric]
    queries: frozenset[str]
    ranked: int
    graded: int
    failed: int
    without_items: frozenset[str] = frozenset()
    on_failed: OnFailed = "expected"


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
        graded += sum(doc_id in query.levels for doc_id in doc_ids)
        failed += sum(query.failed.get(doc_id, 0).bit_count() for doc_id in doc_ids)
        del query
    queries_found = frozenset(found)
    ranked_first = [query_id for query_id in as_known(list(run.rankings), queries_found) if query_id in found]
    order = dict.fromkeys([*ranked_first, *sorted(found)])
    if on_failed is None:
        refuse_share(worst_share([scored.needed for scored in found.values()]), "the scores need")
    ordered = [metric for query_id in order for metric in metrics_of(query_id, plan.measures, found[query_id])]
    refuse_unscored(plan.measures if found else (), {metric.measure for metric in ordered})
    note_lost_penalties(lost)
    note_unscored(unscored)
    note_dropped(dropped)
    counted = resolved(on_failed)
    return Evaluation(plan.measures, ordered, queries_found, ranked, graded, failed, frozenset(without_items), counted)
