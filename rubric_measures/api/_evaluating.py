"""One run scored as ir_measures' own program scores it, a value a query and measure in its order."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ir_measures.measures.base import Measure
from ir_measures.util import Metric, ScoredDoc

from rubric_measures.api._loading import (
    Bank,
    are_items,
    are_labels,
    bank_of,
    content_of,
    judgments_of,
    load,
    refuse_filters,
)
from rubric_measures.api._runs import run_of
from rubric_measures.base.errors import InputError
from rubric_measures.formats.trec import as_known, read_run, spaced_ids
from rubric_measures.measures import RubricMeasure, is_supported
from rubric_measures.measures.grades import BANK_DOC, Grades, OnFailed, note_queries, note_without_items
from rubric_measures.measures.intent_aware import INTENT_AWARE
from rubric_measures.measures.labels import compute, real_label
from rubric_measures.measures.provider import RubricProvider
from rubric_measures.measures.scoring import Measures, note_labels, parse_measures, rubric_measures_of
from rubric_measures.types.entities import Run

if TYPE_CHECKING:
    from rubric_measures.boards.scoring import Evaluation

_LOG = logging.getLogger("rubric_measures")


@dataclass(frozen=True)
class RunValues:
    """The values of one run.

    Attributes:
        measures: the measures, in the order asked for; standard ones over grades as `RubricQrels`.
        metrics: a value a query and measure, in ir_measures' order.
        evaluation: what is known beside the values, where they are computed from grades.
        run: the run, likewise.
        asked: the measures as asked for.
    """

    measures: Sequence[Measure]
    metrics: Sequence[Metric]
    evaluation: Evaluation | None = None
    run: Run | None = None
    asked: Sequence[Measure] = ()

    @property
    def failed(self) -> int:
        """Failed grades of ranked passages."""
        return 0 if self.evaluation is None else self.evaluation.failed

    @property
    def means(self) -> Mapping[Measure, float]:
        """Each measure over all queries, as ir_measures puts its values together."""
        aggregators = {measure: measure.aggregator() for measure in self.measures}
        # A plain sum hangs on the order in its last digit; of what is computed here it is that of the query ids.
        ours = sorted((one for one in self.metrics if is_supported(one.measure)), key=lambda one: one.query_id)
        for metric in [*ours, *(one for one in self.metrics if not is_supported(one.measure))]:
            aggregators[metric.measure].add(metric.value)
        return {measure: aggregator.result() for measure, aggregator in aggregators.items()}

    def log_notes(self) -> None:
        """Logs how much of what was ranked is graded at all, and which measures were wrapped."""
        if self.evaluation is None or self.run is None:
            return
        one = self.evaluation
        note_labels(self.asked)
        asked = set(as_known(list(self.run.rankings), one.queries | one.without_items))
        note_queries({self.run.run_id: asked - one.queries - one.without_items}, {self.run.run_id: one.queries - asked})
        note_without_items(one.without_items)
        if one.failed:
            _LOG.warning(
                "%d grades of ranked passages failed; counted as %s; %.1f %% of what a measure needs (a "
                "leaderboard shows what they leave open)",
                one.failed,
                one.on_failed,
                100 * one.share,
                extra={"settings": ("on_failed",)},
            )
        if one.graded < one.ranked:
            _LOG.info("%d of %d ranked passages are graded", one.graded, one.ranked)


def evaluate(
    source: str,
    run: str,
    measures: Measures,
    bank: Bank | None = None,
    *,
    provider: str | None = None,
    facets: bool = False,
    on_failed: OnFailed | None = None,
    **chosen: Any,
) -> RunValues:
    """Scores one run file. Judgments of documents go to ir_measures as they are.

    Args:
        source: a file that `load` reads, or an ir_datasets id; `-` is standard input.
        run: a TREC run file; `-` is standard input.
        measures: see `score`; ir_measures itself computes those over judgments of documents.
        bank: the test bank.
        provider: compute with this provider of ir_measures.
        facets: score facets in the place of items.
        on_failed: see `load`.
        chosen: which grades count, see `load`.

    Raises:
        InputError: an argument does nothing for what the source holds, or a file cannot be read.
        MeasureError: a measure cannot be computed from these grades.
    """
    if source == run == "-":
        raise InputError("only one of grades and run can be standard input")
    asked = parse_measures(measures)
    content = content_of(source)
    is_ours = provider in (None, RubricProvider.NAME)
    is_graded = content in ("records", "assignments", "support", "added")
    if is_graded and not is_ours:
        raise _no_judgments(source, asked, provider)
    if is_graded:
        return _of_grades(load(source, bank, on_failed=on_failed, **chosen), run, asked, facets)
    if is_ours and (bank is not None or any(is_supported(measure) for measure in asked)):
        return _of_grades(load(source, bank, on_failed=on_failed, **chosen), run, asked, facets)
    refuse_filters(source, chosen)
    if not is_ours and (bank is not None or facets):
        raise InputError(
            f"{provider} knows neither a bank nor facets; leave them or it out", settings=("bank", "facets", "provider")
        )
    rows = judgments_of(source)
    has_items = are_items(rows)
    # Of real labels, too, it is said here which measures there are.
    if has_items or real_label(rows) is not None:
        if is_ours:
            return _of_grades(load(rows, bank_of(bank), on_failed=on_failed), run, asked, facets)
        if has_items and not all(measure.NAME in INTENT_AWARE for measure in asked):
            raise _no_judgments(source, asked, provider)
        rows = [row for row in rows if row.doc_id != BANK_DOC]
    if facets:
        raise InputError(
            f"{source}: holds judgments of documents, which have no facets; leave them out", settings=("facets",)
        )
    return RunValues(asked, list(compute(asked, rows, _as_judged(_scored_docs(run), rows), provider)))


def _no_judgments(source: str, measures: Sequence[Measure], provider: str | None) -> InputError:
    others = [measure.NAME in INTENT_AWARE for measure in measures if not isinstance(measure, RubricMeasure)]
    ways = ["qrels of items (for measures over subtopics)"] if True in others else []
    ways += ["qrels of passages (for measures over passages)"] if False in others else []
    first = f"write {' and '.join(ways)} first, or " if ways else ""
    return InputError(
        f"{provider} reads judgments, and {source} holds grades of items; {first}leave the provider out",
        settings=("provider",),
    )


def _of_grades(grades: Grades, path: str, asked: Sequence[Measure], facets: bool) -> RunValues:
    from rubric_measures.boards.scoring import evaluate_run

    measures = asked if are_labels(grades) else rubric_measures_of(asked)
    run = run_of(path)
    of_queries = (grades.by_facet() if facets else grades).queries
    found = evaluate_run(of_queries.values(), run, measures, grades.on_failed_given)
    return RunValues(found.measures, found.metrics, found, run, asked)


def _scored_docs(path: str) -> list[ScoredDoc]:
    """The run in file order, checked: some providers of ir_measures break ties by it."""
    return [
        ScoredDoc(query_id, doc_id, score)
        for query_id, ranking in read_run(path).rankings.items()
        for doc_id, score in ranking.with_scores(ranking.doc_ids).given
    ]


def _as_judged(run: list[ScoredDoc], qrels: Sequence[Any]) -> list[ScoredDoc]:
    """The run with the ids of the judgments where those hold spaces, which a run file cannot."""
    queries = spaced_ids({row.query_id for row in qrels})
    docs = spaced_ids({row.doc_id for row in qrels})
    if not queries and not docs:
        return run
    return [ScoredDoc(queries.get(row[0], row[0]), docs.get(row[1], row[1]), row[2]) for row in run]
