"""The ir_measures provider: all measures of a call from one materialised run and one compiled set of grades a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isnan
from typing import Any

import ir_measures
from ir_measures import providers
from ir_measures.measures.base import Measure
from ir_measures.util import Metric

from rubric_measures.base.errors import InputError, MeasureError
from rubric_measures.base.sorting import ranked
from rubric_measures.grades.compiled import BANK_DOC, Grades, ItemRows
from rubric_measures.grades.notes import note_lost_penalties, note_without_items
from rubric_measures.grades.rows import build_grades
from rubric_measures.measures.plan import Plan, QueryScorer, is_supported

__all__ = ["RubricProvider", "rankings_of", "register"]


def rankings_of(run: Any) -> dict[str, Sequence[str]]:
    """query_id -> doc_ids in the one sort, of anything that ir_measures takes as a run.

    Args:
        run: named tuples (query_id, doc_id, score) in any order, a pandas frame, or a dict of dicts.

    Raises:
        InputError: a score is NaN or no number, or a document stands twice in a query's ranking.
    """
    scored: dict[str, list[tuple[str, float]]] = {}
    for query_id, doc_id, score in _run_rows(run):
        scored.setdefault(str(query_id), []).append((str(doc_id), score))
    rankings: dict[str, Sequence[str]] = {}
    for query_id, pairs in scored.items():
        try:
            is_wrong = any(isnan(score) for _, score in pairs)
        except (TypeError, OverflowError):
            is_wrong = True
        if is_wrong or len({doc_id for doc_id, _ in pairs}) < len(pairs):
            raise _wrong_ranking(query_id, pairs)
        rankings[query_id] = ranked(pairs)
    return rankings


def _wrong_ranking(query_id: str, pairs: Iterable[tuple[str, Any]]) -> InputError:
    """What is wrong with the first document of a ranking that has something wrong."""
    seen: set[str] = set()
    for doc_id, score in pairs:
        where = f"query {query_id!r}, document {doc_id!r}"
        try:
            if isnan(score):
                return InputError(f"{where}: the score is NaN")
        except TypeError:
            return InputError(f"{where}: the score is {score!r:.60}, no number; give a float")
        except OverflowError:
            return InputError(f"{where}: the score is too large for a float")
        if doc_id in seen:
            break
        seen.add(doc_id)
    return InputError(f"query {query_id!r}: document {doc_id!r} stands twice in the run")


def _run_rows(run: Any) -> Iterable[tuple[Any, Any, float]]:
    if isinstance(run, dict):
        return ((query_id, doc_id, score) for query_id, docs in run.items() for doc_id, score in docs.items())
    if hasattr(run, "itertuples"):
        missing = {"query_id", "doc_id", "score"} - set(run.columns)
        if missing:
            raise InputError(f"the run has no column {', '.join(sorted(missing))}")
        return zip(run["query_id"].tolist(), run["doc_id"].tolist(), run["score"].tolist(), strict=True)
    return ((row.query_id, row.doc_id, row.score) for row in run)


class RubricEvaluator(providers.Evaluator):  # type: ignore[misc]
    """Scores runs against compiled grades."""

    def __init__(self, measures: Iterable[Measure], grades: Grades) -> None:
        # ir_measures hands over a set; sorted, so that results come in one order whatever the hash seed.
        ordered = sorted(measures, key=str)
        # A query without items has no denominator, and so no score.
        scored = {query_id: query for query_id, query in sorted(grades.queries.items()) if query.items}
        super().__init__(ordered, list(scored))
        plan = Plan(ordered)
        self._scorers: Mapping[str, QueryScorer] = {
            query_id: plan.for_query(query, grades.on_failed) for query_id, query in scored.items()
        }
        self._without_items = grades.queries.keys() - scored.keys()

    def iter_calc(self, run: Any) -> Iterator[Metric]:
        """Yields one metric a query and measure, queries and measures sorted; queries missing from the run score 0,
        queries without items have no value and are counted in a note.
        """
        rankings = rankings_of(run)
        yield from self.iter_values(rankings)
        note_lost_penalties(self.lost_penalties(rankings))
        note_without_items(self._without_items)

    def lost_penalties(self, rankings: Mapping[str, Sequence[str]]) -> int:
        """Items of negative weight, over all queries, that cost nothing because their grades failed."""
        return sum(scorer.lost_penalties(rankings.get(query_id, ())) for query_id, scorer in self._scorers.items())

    def iter_values(self, rankings: Mapping[str, Sequence[str]]) -> Iterator[Metric]:
        """As `iter_calc`, of query_id -> doc_ids, best first; what else is to be known is not said."""
        for query_id, scorer in self._scorers.items():
            for measure, value in zip(self.measures, scorer(rankings.get(query_id, ())), strict=True):
                if value is None:
                    raise MeasureError(
                        f"{measure}, query {query_id!r}: the grades of all items failed, so there is nothing to score; "
                        'grade again, or count failures as not covered (on_failed="zero")'
                    )
                yield Metric(query_id=query_id, measure=measure, value=value)


class RubricProvider(providers.Provider):  # type: ignore[misc]
    """Computes this package's measures, and ir_measures' measures over subtopics with rubric items as subtopics."""

    NAME = "rubric_measures"

    def supports(self, measure: Measure) -> bool:
        """Whether the measure is computed here."""
        measure.validate_params()
        return is_supported(measure)

    def _evaluator(self, measures: Iterable[Measure], qrels: Any) -> RubricEvaluator:
        return RubricEvaluator(measures, build_grades(qrels))

    def qrel_inputs(self, measures: Iterable[Measure]) -> list[str]:
        """Item grades say their item in `iteration`."""
        return ["query_id", "doc_id", "relevance", "iteration"]


def register() -> None:
    """Puts the provider into ir_measures' registry and default pipeline; a second call changes nothing.

    It stands before pyndeval, so that several intent-aware measures in one call are right, and after the providers of
    the standard measures, whose queries are those with judgments.
    """
    if RubricProvider.NAME in providers.registry:
        return
    provider = RubricProvider()
    providers.register(provider)
    pipeline = ir_measures.DefaultPipeline.providers
    names = [known.NAME for known in pipeline]
    pipeline.insert(names.index("pyndeval") if "pyndeval" in names else len(names), provider)
    evaluator_of = ir_measures.DefaultPipeline._evaluator

    def evaluator(measures: Iterable[Measure], qrels: Any) -> providers.Evaluator:
        asked = list(measures)
        return evaluator_of(asked, _for_all(asked, qrels))

    ir_measures.DefaultPipeline._evaluator = evaluator


def _for_all(measures: Sequence[Measure], qrels: Any) -> Any:
    """Item rows as `Grades`, where standard measures are to read them too.

    A standard measure reads one row a passage and would silently keep the last of several. Where it is asked together
    with a measure over items, or given rows that declare a test bank, it gets the labels that the grades imply.
    """
    if isinstance(qrels, dict | Grades | ItemRows) or all(map(is_supported, measures)):
        return qrels
    is_frame = hasattr(qrels, "itertuples")
    if not is_frame and hasattr(qrels, "__iter__"):
        qrels = list(qrels)
    doc_ids = qrels["doc_id"].tolist() if is_frame and "doc_id" in qrels.columns else ()
    declares = BANK_DOC in doc_ids if is_frame else any(getattr(row, "doc_id", None) == BANK_DOC for row in qrels)
    if not declares and not any(map(is_supported, measures)):
        return qrels
    if is_frame:
        has_items = "iteration" in qrels.columns
        pairs = list(zip(qrels["query_id"].tolist(), doc_ids, strict=True)) if has_items else []
    else:
        pairs = [(row.query_id, row.doc_id) for row in qrels if hasattr(row, "iteration")]
    return build_grades(qrels) if declares or len(set(pairs)) < len(pairs) else qrels
