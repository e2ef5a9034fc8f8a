"""The ir_measures provider: all measures of a call over one materialised run, a query at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import ir_measures
from ir_measures import providers
from ir_measures.measures.base import Measure
from ir_measures.util import Metric, RunConverter, ScoredDoc

from rubric_measures.base.errors import MeasureError, warn
from rubric_measures.measures.measure import PROVIDER, RubricMeasure, is_supported, other_providers, refuse_real

if TYPE_CHECKING:
    from rubric_measures.boards.board import Leaderboard
    from rubric_measures.measures.grades import Grades
    from rubric_measures.types.entities import Run


def _read(run: Any) -> Run:
    """Anything that ir_measures takes as a run; one without rows ranks nothing.

    Raises:
        InputError: it is none, a score is no finite number, or a document stands twice in a query's ranking.
    """
    from rubric_measures.corpora.loading import run_of
    from rubric_measures.types.entities import Run

    held = run if isinstance(run, dict) or hasattr(run, "itertuples") else list(run)
    return run_of(held) if len(held) else Run("none", {})


def scored(
    measures: Sequence[Measure], grades: Grades, run: Run, shown: Sequence[Measure] | None = None
) -> tuple[Leaderboard, list[Metric]]:
    """The board of one run; and its values in ir_measures' order: the queries as the run has them, then those that it
    does not rank, sorted. A value of which all that is known is that grades failed is left out.

    Args:
        measures: this package's measures, or ir_measures' measures over subtopics; order is kept.
        grades: the grades.
        run: the run; queries that it lacks score 0.
        shown: what the values are of; the measures with the levels of the scale, if None.

    Raises:
        MeasureError: a measure cannot be computed from these grades, or has no mean; or too many grades failed and
            nobody said how they count.
    """
    from rubric_measures.boards.scoring import score_runs
    from rubric_measures.measures.measure import parse_measures

    run_id, rankings = run.run_id, run.with_scores()
    board = score_runs(grades, [(run_id, rankings)], measures, overall=False)
    columns = {name: cell.per_query for name, cell in board.cells[run_id].items()}
    for name, column in columns.items():
        if column and board.cells[run_id][name].mean is None:
            raise MeasureError(
                f"{name}: grades that it needs failed or were never asked, so there is nothing to score; grade again, "
                "count failures as not covered (zero), or read the bounds of a leaderboard",
                settings=("on_failed",),
            )
    there: Mapping[str, Any] = next(iter(columns.values()), {})
    pairs = list(zip(shown or parse_measures(board.measures), columns.values(), strict=True))
    metrics = [
        Metric(query_id=query_id, measure=measure, value=value)
        for query_id in dict.fromkeys([*(name for name in rankings if name in there), *there])
        for measure, column in pairs
        if (value := column[query_id]) is not None
    ]
    return board, metrics


class RubricEvaluator(providers.Evaluator):  # type: ignore[misc]
    """Scores runs against grades; see `scored`. A query without items has no denominator, and so no score."""

    def __init__(self, measures: Sequence[Measure], grades: Grades) -> None:
        super().__init__(measures, sorted(name for name, query in grades.queries.items() if query.items))
        self._asked, self._grades = measures, grades

    def iter_calc(self, run: Any) -> Iterator[Metric]:
        """The values; what they do not show is logged."""
        from msgspec.structs import replace

        board, metrics = scored(self._asked, self._grades, _read(run), self._asked)
        # In the order in which boards sum them.
        yield from sorted(metrics, key=lambda one: str(one.query_id))
        # Queries of a run or of the judgments alone are as ir_measures takes them.
        replace(board, missing={}, unknown={}).log_notes()


class RubricProvider(providers.Provider):  # type: ignore[misc]
    """Computes this package's measures, and ir_measures' measures over subtopics with rubric items as subtopics.

    It stands before all others in ir_measures' pipeline, and hands their measures on to them. What others read is
    decided here, as only a provider sees judgments and measures together: of `Grades` and of item rows a standard
    measure reads one label a passage, as it would silently keep the last of several rows. All else they get untouched:
    over plain judgments every measure of ir_measures has the value that it has without this package.
    """

    NAME = PROVIDER

    def supports(self, measure: Measure) -> bool:
        """Whether the measure is computed here, or by another provider of the pipeline."""
        measure.validate_params()
        return is_supported(measure) or _is_theirs(measure)

    def _evaluator(self, measures: Iterable[Measure], qrels: Any) -> providers.Evaluator:
        from rubric_measures.measures.grades import Grades
        from rubric_measures.measures.qrels import build_grades

        # ir_measures hands over a set; sorted, so that results come in one order whatever the hash seed.
        asked = sorted(measures, key=str)
        qrels = _for_all(asked, qrels)
        # Those over subtopics, of plain judgments, where nobody else can.
        is_plain = not isinstance(qrels, Grades)
        kept = (one for one in asked if isinstance(one, RubricMeasure) or not (is_plain and _is_theirs(one)))
        ours = list(filter(is_supported, kept))
        theirs = [one for one in asked if one not in ours]
        evaluators = [other_providers().evaluator(some, rows) for some, rows in _rows_for(theirs, qrels)]
        if ours:
            evaluators.append(RubricEvaluator(ours, build_grades(qrels)))
        void = _void_passages(qrels) if theirs else {}
        return evaluators[0] if len(evaluators) == 1 and not void else _JointEvaluator(asked, evaluators, void)


def _is_theirs(measure: Measure) -> bool:
    """Whether another provider of the pipeline computes the measure."""
    return any(one.supports(measure) and one.is_available() for one in other_providers().providers)


class _JointEvaluator(providers.Evaluator):  # type: ignore[misc]
    """Evaluators side by side, each with the queries that it knows.

    Those of other providers see no passages of which all that is known is that grades failed.
    """

    def __init__(
        self, measures: Sequence[Measure], evaluators: Sequence[providers.Evaluator], void: Mapping[str, Set[str]]
    ) -> None:
        super().__init__(measures, list(dict.fromkeys(query_id for one in evaluators for query_id in one.qrel_qids)))
        self._evaluators, self._void = evaluators, void

    def iter_calc(self, run: Any) -> Iterator[Metric]:
        from rubric_measures.measures.findings import DROPPED, Note, say

        for evaluator, one in zip(self._evaluators, RunConverter(run).tee(len(self._evaluators)), strict=True):
            rows = one.run
            if self._void and not isinstance(evaluator, RubricEvaluator):
                ranked = {query_id: of.with_scores().given for query_id, of in _read(rows).rankings.items()}
                given = [ScoredDoc(query_id, *pair) for query_id, pairs in ranked.items() for pair in pairs]
                rows = [row for row in given if row.doc_id not in self._void.get(row.query_id, ())]
                gone = len(given) - len(rows)
                say([Note(DROPPED % gone)] if gone else [])
            yield from evaluator.iter_calc(rows)


def _void_passages(qrels: Any) -> dict[str, Set[str]]:
    """query_id -> passages of which all that is known is that grades failed, where these leave rankings."""
    from rubric_measures.measures.grades import Grades

    if not isinstance(qrels, Grades) or qrels.on_failed != "expected":
        return {}
    return {
        query_id: {doc_id for doc_id, row in query.docs.items() if query.void[row]}
        for query_id, query in qrels.queries.items()
        if query.void.any()
    }


def register_provider() -> None:
    """Puts the provider into ir_measures' registry and pipeline; a second call changes nothing."""
    if PROVIDER not in providers.registry:
        ir_measures.DefaultPipeline.providers.insert(0, providers.register(RubricProvider()))


def _rows_for(measures: Sequence[Measure], qrels: Any) -> Iterator[tuple[list[Measure], Any]]:
    """The measures of other providers with the rows that they read: of grades the labels."""
    from rubric_measures.measures.grades import Grades

    if not isinstance(qrels, Grades):
        qrels = qrels if isinstance(qrels, dict) or hasattr(qrels, "itertuples") else list(qrels)
        # Of several levels or alphas in one call the program behind them gives all but one zeros.
        yield from (([one], qrels) for one in measures if is_supported(one))
        others = [one for one in measures if not is_supported(one)]
        if others:
            yield others, qrels
        return
    if measures:
        # Measures of `ir_measures.define` may read fractions.
        standard = [measure for measure in measures if not hasattr(measure, "runtime_impl")]
        labels = qrels.qrels
        refuse_real(labels if standard else (), " ".join(map(str, standard)))
        yield list(measures), labels


def _for_all(measures: Sequence[Measure], qrels: Any) -> Any:
    """Item rows as `Grades`, where other measures are to read them too.

    A standard measure reads one row a passage and would silently keep the last of several. Where it is asked together
    with a measure of this package, or given rows that declare a test bank, it gets the labels that the grades imply.
    """
    from rubric_measures.measures.grades import BANK_DOC, Grades

    if isinstance(qrels, dict | Grades):
        return qrels
    if hasattr(qrels, "itertuples"):
        named = {"query_id", "doc_id"} <= set(qrels.columns)
        pairs = list(zip(qrels["query_id"].tolist(), qrels["doc_id"].tolist(), strict=True)) if named else []
        has_items = "iteration" in qrels.columns
    else:
        qrels = list(qrels) if hasattr(qrels, "__iter__") else qrels
        pairs = [(getattr(row, "query_id", None), getattr(row, "doc_id", None)) for row in qrels]
        has_items = any(hasattr(row, "iteration") for row in qrels)
    is_ours = any(isinstance(measure, RubricMeasure) for measure in measures)
    is_repeated = has_items and len(set(pairs)) < len(pairs)
    if not (is_ours and is_repeated) and all(doc_id != BANK_DOC for _, doc_id in pairs):
        if is_repeated and (theirs := [str(one) for one in measures if not is_supported(one)]):
            text = "%s: these qrels have several rows a document, of which one counts; load() makes grades of them"
            warn(text, " ".join(theirs))
        return qrels
    from rubric_measures.measures.qrels import build_grades

    return build_grades(qrels)
