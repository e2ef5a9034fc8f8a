"""One run scored as ir_measures' own program scores it, a value a query and measure in its order."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ir_measures.measures.base import Measure
from ir_measures.util import Metric

from rubric_measures.base.errors import naming
from rubric_measures.boards.provider import scored
from rubric_measures.corpora.loading import (
    AnyRun,
    Bank,
    Gradable,
    are_items,
    are_labels,
    are_rows,
    content_of,
    grader_of,
    is_table,
    judgments_of,
    labels_in,
    load,
    named_files,
    run_of,
)
from rubric_measures.formats.judged import TOOLKITS, refuse_choice
from rubric_measures.measures.findings import Note, of_wrapped, say
from rubric_measures.measures.findings import of_run as of_ranked
from rubric_measures.measures.grades import BANK_DOC, DIRECT_ITEM, LABEL_ITEMS, Grades, OnFailed
from rubric_measures.measures.measure import (
    INTENT_AWARE,
    Measures,
    compute,
    is_supported,
    parse_measures,
    real_label,
    rubric_measures_of,
)

if TYPE_CHECKING:
    from rubric_measures.measures.grade_sets import Grader


@dataclass(frozen=True)
class RunValues:
    """The values of one run.

    Attributes:
        measures: the measures, in the order asked for; standard ones over grades as `RubricQrels`.
        metrics: a value a query and measure, in ir_measures' order.
        failed: how many grades failed, of those that the measure needs that needs most.
        notes: what the values do not show, and what may be wrong with grades and run.
        said: those of them that were logged while the run was read.
    """

    measures: Sequence[Measure]
    metrics: Sequence[Metric]
    failed: int = 0
    notes: Sequence[Note] = ()
    said: Sequence[Note] = ()

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
        """Logs the `notes`, but those that were logged while the run was read."""
        say(self.notes[len(self.said) :])


def evaluate(
    source: Gradable,
    run: AnyRun,
    measures: Measures,
    bank: Bank | None = None,
    *,
    grader: str | Grader | None = None,
    on_failed: OnFailed | None = None,
) -> RunValues:
    """Scores one run. Judgments of documents go to ir_measures as they are.

    >>> from ir_measures import Qrel
    >>> found = evaluate([Qrel("q1", "d1", 1)], {"q1": {"d2": 2.0, "d1": 1.0}}, "RR")
    >>> [(str(measure), mean) for measure, mean in found.means.items()]
    [('RR', 0.5)]

    Args:
        source: what `load` takes; `-` is standard input.
        run: a TREC run file (`-` is standard input), or a run in memory, as `score` takes it.
        measures: see `score`; ir_measures itself computes those over judgments of documents or of their subtopics.
        bank: the test bank.
        grader: whose grades count: a name, or `model=…,prompt=…,scale=0-5:4`; see `load`.
        on_failed: see `load`.

    Raises:
        InputError: an argument does nothing for what the source holds, or a file cannot be read.
        MeasureError: a measure cannot be computed from these grades.
    """
    asked, wanted, lines = parse_measures(measures), grader_of(grader), list[str]()
    with contextlib.ExitStack() as stack, naming(source, beside=[run]):
        of_run = run if are_rows(run) else named_files(run, stack)
        # A frame of ir_measures, which may name items, is no table of grades.
        held: Any = source
        if not isinstance(held, Grades):
            is_frame = hasattr(held, "itertuples") and not is_table(held)
            held = held.itertuples(index=False) if is_frame else named_files(held, stack)
        held = held if isinstance(held, str | Grades) else list(held)
        is_judged = isinstance(held, list) and bool(held) and hasattr(held[0], "relevance")
        content = content_of(held) if isinstance(held, str) else "judgments" if is_judged else "records"
        called = held if isinstance(held, str) else "the source"
        is_graded = content in ("records", *TOOLKITS, "support labels", "grades")
        over_subtopics = all(measure.NAME in INTENT_AWARE for measure in asked)
        is_told = wanted is not None or not over_subtopics
        is_asked = bank is not None or (any(map(is_supported, asked)) and is_told)
        if is_graded or is_asked:
            return _of_grades(load(held, bank, grader=wanted, on_failed=on_failed), of_run, asked)
        # Most are labels of documents in a file, of which no row has to be made.
        is_other = over_subtopics or is_judged or content == "dataset" or held == "-"
        judged: Any = None if is_other else labels_in(str(held))
        refuse_choice(called, wanted)
        best: Any = judged or {}
        if judged is None:
            rows: Any = judgments_of(held) if isinstance(held, str) else held
            # Of real labels, too, it is said here which measures there are.
            is_read_here = are_items(rows) or over_subtopics or real_label(rows) is not None
            if is_read_here and not (over_subtopics and _have_plain_subtopics(rows)):
                return _of_grades(load(rows, on_failed=on_failed), of_run, asked)
            judged = [row for row in rows if row.doc_id != BANK_DOC]
            for row in judged:
                of_query = best.setdefault(row.query_id, {})
                of_query[row.doc_id] = max(row.relevance, of_query.get(row.doc_id, row.relevance))
        ranked = run_of(of_run, lines)
        # In file order, by which some providers of ir_measures break ties.
        scores = {query_id: dict(of_query.given) for query_id, of_query in ranked.with_scores().items()}
        metrics = list(compute(asked, judged, scores))
        said = list(map(Note, lines))
        notes = [*said, *of_ranked(ranked, best, asked)]
    if over_subtopics:
        # Each of these measures was computed by itself.
        places = {query_id: place for place, query_id in enumerate(dict.fromkeys(one.query_id for one in metrics))}
        metrics.sort(key=lambda one: (places[one.query_id], asked.index(one.measure)))
    return RunValues(asked, metrics, notes=notes, said=said)


def _have_plain_subtopics(rows: Sequence[Any]) -> bool:
    """Whether judgments name subtopics, and declare no bank: ir_measures has its own numbers of them, ties too."""
    subtopics = {getattr(row, "iteration", DIRECT_ITEM) for row in rows}
    is_bank = any(row.doc_id == BANK_DOC for row in rows)
    return not (subtopics <= LABEL_ITEMS or is_bank or real_label(rows) is not None)


def _of_grades(grades: Grades, of_run: Any, asked: Sequence[Measure]) -> RunValues:
    measures = asked if are_labels(grades) else rubric_measures_of(asked)
    lines: list[str] = []
    run = run_of(of_run, lines)
    said = list(map(Note, lines))
    board, metrics = scored(measures, grades, run)
    notes = [*said, *(() if measures is asked else of_wrapped(asked)), *board.notes]
    failed = max(cell.failed for cell in board.cells[run.run_id].values())
    return RunValues(parse_measures(board.measures), metrics, failed, notes, said)
