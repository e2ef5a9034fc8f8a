"""A plan for all measures of a call, a scorer for each query, a value for each run: what computes the measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import ir_measures
from ir_measures.measures.base import Measure
from ir_measures.util import ScoredDoc

from rubric_measures.base.errors import MeasureError
from rubric_measures.grades.compiled import Label, OnFailed, QueryGrades
from rubric_measures.measures._coverage import WeightedMasks, at_least, nugget_weights, union_at
from rubric_measures.measures._intent_aware import IntentAware
from rubric_measures.measures._label_measures import Hits, LabelScorer, label_scorer
from rubric_measures.measures._terms import Term, term_of
from rubric_measures.measures.definitions import ITEM_MEASURES, RubricMeasure
from rubric_measures.measures.delegated import delegated

__all__ = ["Coverage", "Plan", "QueryScorer", "cutoff_of", "is_supported"]


def cutoff_of(measure: Measure) -> int | None:
    """How many passages of a ranking a measure looks at; None when all."""
    cutoff = measure.params.get("cutoff")
    if cutoff is None and hasattr(measure, "inner"):
        cutoff = measure.inner().params.get("cutoff")
    return cutoff if isinstance(cutoff, int) else None


def is_supported(measure: Measure) -> bool:
    """Whether this package computes the measure: its own ones, and ir_measures' over subtopics."""
    return isinstance(measure, RubricMeasure) or measure.NAME in ITEM_MEASURES


RankingScorer = Callable[[Sequence[str]], float]


@dataclass(frozen=True)
class _OfHits:
    """A measure that needs to know only where the judged documents stand."""

    score: LabelScorer


@dataclass(frozen=True)
class Coverage:
    """How many of the grades that a value needed exist.

    Attributes:
        needed: passages in the cutoff × items of the query.
        graded: those with a valid grade.
        failed: those whose grade failed; the rest was never graded.
    """

    needed: int
    graded: int
    failed: int


class Plan:
    """All measures of one call, grouped so that many levels and cutoffs cost about what one costs.

    Args:
        measures: measures that `is_supported`; order is kept.

    Raises:
        MeasureError: a measure is not supported here.
    """

    def __init__(self, measures: Sequence[Measure]) -> None:
        self.measures = list(measures)
        for measure in self.measures:
            if not is_supported(measure):
                raise MeasureError(
                    f"{measure} is no measure over rubric items; write RubricQrels(measure={str(measure)!r})"
                )
            measure.validate_params()
        self._terms = [term_of(measure) if isinstance(measure, RubricMeasure) else None for measure in self.measures]

    def for_query(self, grades: QueryGrades, on_failed: OnFailed = "exclude") -> QueryScorer:
        """Prepares the scoring of any number of rankings of one query."""
        return QueryScorer(self.measures, self._terms, grades, on_failed)


class QueryScorer:
    """Scores rankings of one query for all measures of a plan; made by `Plan.for_query`."""

    def __init__(
        self, measures: Sequence[Measure], terms: Sequence[Term | None], grades: QueryGrades, on_failed: OnFailed
    ) -> None:
        self._measures = measures
        self._terms = terms
        # Where failed grades count as a grade none is failed here; only the counts below still know.
        self._grades = grades.counting_failed(on_failed)
        self._on_failed: OnFailed = on_failed
        # Whether only judged passages count -> the cutoffs of the coverage measures.
        self._cutoffs: dict[bool, set[int]] = {}
        for term in terms:
            if term:
                self._cutoffs.setdefault(term.judged_only, set()).add(term.cutoff)
        self._reachable_items: dict[int, int] = {}
        self._weights: dict[str, WeightedMasks] = {}
        self._intents: dict[int, IntentAware] = {}
        self._labels: dict[tuple[Label, int], Mapping[str, int]] = {}
        self._scorers: list[Term | RankingScorer | _OfHits] = []
        # doc_id -> the number of its valid grades, and of its failed ones
        self._valid = {doc_id: sum(map(int.bit_count, levels.values())) for doc_id, levels in grades.levels.items()}
        self._lost = {doc_id: mask.bit_count() for doc_id, mask in grades.failed.items()}
        for measure, term in zip(measures, terms, strict=True):
            if term is not None:
                self._weight(measure, term)
                self._scorers.append(term)
            elif measure.NAME in ITEM_MEASURES:
                self._scorers.append(self._intent_scorer(measure))
            else:
                self._scorers.append(self._label_scorer(measure))

    @property
    def query_id(self) -> str:
        """The query whose rankings are scored."""
        return self._grades.query_id

    def _weight(self, measure: Measure, term: Term) -> None:
        if term.weights in self._weights:
            return
        weights = nugget_weights(self._grades.items, term.weights)
        if isinstance(weights, str):
            what = "weight" if term.weights == "weight" else "importance (vital or okay)"
            raise MeasureError(
                f"{measure} needs the {what} of every item, and item {weights!r} of query {self._grades.query_id!r} "
                "has none; score with a test bank that gives it (or assignments with --compat nuggetizer)"
            )
        self._weights[term.weights] = WeightedMasks(weights)

    def _intent_scorer(self, measure: Measure) -> RankingScorer:
        rel = measure["rel"]
        if rel not in self._intents:
            self._intents[rel] = IntentAware(self._grades.at_least(rel))
        intents = self._intents[rel]
        cutoff = measure.params.get("cutoff")
        name = measure.NAME
        compute: RankingScorer
        if name in ("alpha_DCG", "alpha_nDCG"):
            method = intents.alpha_dcg if name == "alpha_DCG" else intents.alpha_ndcg
            compute = lambda ranking: method(ranking, cutoff, measure["alpha"])  # noqa: E731
        elif name in ("NRBP", "nNRBP"):
            rbp = intents.nrbp if name == "NRBP" else intents.nnrbp
            compute = lambda ranking: rbp(ranking, measure["alpha"], measure["beta"])  # noqa: E731
        elif name in ("ERR_IA", "nERR_IA"):
            err = intents.err_ia if name == "ERR_IA" else intents.nerr_ia
            compute = lambda ranking: err(ranking, cutoff)  # noqa: E731
        elif name == "P_IA":
            compute = lambda ranking: intents.p_ia(ranking, cutoff or max(len(ranking), 1))  # noqa: E731
        elif name == "AP_IA":
            compute = intents.ap_ia
        else:
            compute = lambda ranking: intents.subtopic_recall(ranking, cutoff)  # noqa: E731
        if "judged_only" in measure.SUPPORTED_PARAMS and measure["judged_only"]:
            return lambda ranking: compute(self._judged_only(ranking))
        return compute

    def _label_scorer(self, measure: Measure) -> RankingScorer | _OfHits:
        inner = measure.inner()
        kind = measure.value("label"), measure.value("rel")
        labels = self._labels[kind] = self._labels.get(kind) or self._grades.labels(*kind)
        scorer = label_scorer(inner, labels)
        if scorer is not None:
            return _OfHits(scorer)
        if inner.NAME == "NumRel":
            # The program behind ir_measures' own counts from label 1 only. As there, 0 for what a run does not rank.
            count = float(sum(label >= inner["rel"] for label in labels.values()))
            return lambda ranking: count if ranking else 0.0
        query_id = self._grades.query_id
        qrels = [ir_measures.Qrel(query_id, doc_id, label) for doc_id, label in labels.items()]
        if not qrels:
            return lambda ranking: float(inner.DEFAULT)
        with delegated([inner], measure):
            evaluator = ir_measures.evaluator([inner], qrels)

        def delegate(ranking: Sequence[str]) -> float:
            if not ranking:
                return float(inner.DEFAULT)
            # Scores that say the rank: every provider then sees the order of the one sort, without ties. All above 0,
            # which is what Compat takes documents for that are not ranked.
            top = len(ranking)
            run = [ScoredDoc(query_id, doc_id, float(top - place)) for place, doc_id in enumerate(ranking)]
            with delegated([inner], measure):
                value = float(evaluator.calc_aggregate(run)[inner])
            if math.isnan(value):
                raise MeasureError(f"{measure} has no value for query {query_id!r}; leave the measure or the query out")
            return value

        return delegate

    def _judged_only(self, ranking: Sequence[str]) -> Sequence[str]:
        return list(filter(self._valid.__contains__, ranking))

    def hits(self, ranking: Sequence[str]) -> Hits:
        """Where the graded passages stand in a ranking; computed once, many measures need only that."""
        graded = self._valid
        ranks = [rank for rank, doc_id in enumerate(ranking, 1) if doc_id in graded]
        return Hits(ranks, [ranking[rank - 1] for rank in ranks])

    def __call__(self, ranking: Sequence[str], hits: Hits | None = None) -> list[float | None]:
        """The value of each measure, in the order of the plan.

        Args:
            ranking: doc_ids, best first, without repetition.
            hits: `hits(ranking)`, where the caller has it already.

        Returns:
            one value a measure; None where nothing can be said, because the grades of all items (or passages) failed.

        Raises:
            MeasureError: on_failed is `error` and a grade that is needed failed.
        """
        if hits is None:
            hits = self.hits(ranking)
        reached = self._reached(hits)
        values: list[float | None] = []
        for measure, scorer in zip(self._measures, self._scorers, strict=True):
            if isinstance(scorer, Term):
                values.append(self._coverage_value(scorer, *reached[scorer.judged_only, scorer.cutoff]))
            elif self._grades.failed and self._is_unknown(measure, hits):
                values.append(None)
            elif isinstance(scorer, _OfHits):
                values.append(scorer.score(hits))
            else:
                values.append(scorer(ranking))
        return values

    def _is_unknown(self, measure: Measure, hits: Hits) -> bool:
        """Whether all that is known of the query is that grades failed, of ranked passages too: then nothing is scored.

        As with the items of coverage measures, a ranking without such passages is known to score 0.
        """
        failed = self._grades.failed
        lost = next((doc_id for doc_id in hits.doc_ids[: hits.within(cutoff_of(measure))] if doc_id in failed), None)
        if lost is None or self._on_failed == "zero":
            return False
        if self._on_failed == "error":
            raise MeasureError(
                f"query {self._grades.query_id!r}: a grade of the ranked passage {lost!r} failed; grade again, or "
                "choose how failures count (--on-failed exclude or zero)"
            )
        return not any(self._grades.levels.values())

    def _reached(self, hits: Hits) -> dict[tuple[bool, int], tuple[Sequence[str], Mapping[int, int]]]:
        """For each kind of coverage measure the graded passages in its cutoff, and the items they reach, by grade."""
        reached: dict[tuple[bool, int], tuple[Sequence[str], Mapping[int, int]]] = {}
        for judged_only, cutoffs in self._cutoffs.items():
            lengths = {cutoff: cutoff if judged_only else hits.within(cutoff) for cutoff in cutoffs}
            unions = union_at(self._grades.levels, hits.doc_ids, lengths.values())
            for cutoff, length in lengths.items():
                reached[judged_only, cutoff] = hits.doc_ids[:length], unions[length]
        return reached

    def _coverage_value(self, term: Term, doc_ids: Sequence[str], by_grade: Mapping[int, int]) -> float | None:
        weights = self._weights[term.weights]
        total, reached = 0.0, 0
        for rel, credit in term.levels:
            mask = at_least(by_grade, rel)
            reached |= mask
            total += credit * weights.sum(mask)
        unknown = self._undetermined(doc_ids, reached) if self._grades.failed else 0
        if term.normalised:
            denominator = float(self._reachable(term.levels[0][0]))
        else:
            denominator = weights.positive_without(unknown) if unknown else weights.positive
        if not denominator:
            return None if unknown and weights.positive else 0.0
        value = total / denominator
        return max(value, 0.0) if term.clip else value

    def _undetermined(self, doc_ids: Sequence[str], reached: int) -> int:
        """The items that no ranked passage covers and whose grade failed for one: they may be covered or not."""
        lost = self._failed_for(doc_ids) & ~reached
        if lost and self._on_failed == "error":
            index = (lost & -lost).bit_length() - 1
            raise MeasureError(
                f"query {self._grades.query_id!r}: item {self._grades.items[index].item_id!r} has a failed grade for a "
                "ranked passage; grade again, or choose how failures count (--on-failed exclude or zero)"
            )
        return lost if self._on_failed == "exclude" else 0

    def _failed_for(self, doc_ids: Sequence[str]) -> int:
        lost = 0
        for doc_id in doc_ids:
            lost |= self._grades.failed.get(doc_id, 0)
        return lost

    def lost_penalties(self, ranking: Sequence[str]) -> int:
        """How many items of negative weight cost nothing because their grade failed for a ranked passage.

        A penalty is not in the denominator, so such an item counts as not covered, unless failed grades count as a
        grade: the score may be too high. Items that another ranked passage covers cost what they cost. 0 without such
        weights.
        """
        if not self._grades.failed:
            return 0
        lost = 0
        reached = self._reached(self.hits(ranking))
        for term in self._terms:
            if term is None:
                continue
            penalties = sum(mask for weight, mask in self._weights[term.weights].groups if weight < 0)
            if penalties:
                doc_ids, by_grade = reached[term.judged_only, term.cutoff]
                covered = at_least(by_grade, min(rel for rel, _ in term.levels))
                lost |= self._failed_for(doc_ids) & penalties & ~covered
        return lost.bit_count()

    def _reachable(self, rel: int) -> int:
        """The number of items that any graded passage covers."""
        if rel not in self._reachable_items:
            self._reachable_items[rel] = at_least(self._all_reach(), rel).bit_count()
        return self._reachable_items[rel]

    def _all_reach(self) -> Mapping[int, int]:
        return union_at(self._grades.levels, list(self._grades.levels), [len(self._grades.levels)]).popitem()[1]

    def coverage(self, length: int, hits: Hits, cutoff: int | None) -> Coverage:
        """How many grades of the first `cutoff` passages × all items exist.

        Args:
            length: the length of the ranking.
            hits: where the graded passages stand in it.
            cutoff: None for the whole ranking.
        """
        top = length if cutoff is None else min(length, cutoff)
        doc_ids = hits.doc_ids[: hits.within(top)]
        graded = sum(map(self._valid.__getitem__, doc_ids))
        failed = sum(self._lost.get(doc_id, 0) for doc_id in doc_ids) if self._lost else 0
        return Coverage(top * len(self._grades.items), graded, failed)

    def without_passages(self) -> QueryScorer:
        """A scorer of the same query that knows no passage: it scores the empty ranking alike, and is small."""
        return QueryScorer(
            self._measures, self._terms, QueryGrades(self._grades.query_id, self._grades.items, {}), self._on_failed
        )

    def best_possible(self) -> list[float | None]:
        """The best value that any ranking of the graded passages could reach; None where it is not known.

        Coverage: all graded passages together, whatever the cutoff (the workbench's `_overall_`; finding the best k of
        them is NP-hard). Labels: the passages by descending label. Items as subtopics: the greedy ideal ranking.
        With penalties (negative weights) the best is not known.
        """
        everything = sorted(self._grades.levels)
        whole = Hits(range(1, len(everything) + 1), everything)
        by_grade = self._all_reach()
        ideal: dict[tuple[Label, int], Hits] = {}
        values: list[float | None] = []
        for measure, scorer in zip(self._measures, self._scorers, strict=True):
            if isinstance(scorer, Term):
                has_penalty = any(weight < 0 for weight, _ in self._weights[scorer.weights].groups)
                values.append(None if has_penalty else self._coverage_value(scorer, everything, by_grade))
            elif self._grades.failed and self._is_unknown(measure, whole):
                values.append(None)
            elif measure.NAME in ITEM_MEASURES and not isinstance(scorer, _OfHits):
                values.append(scorer(self._intents[measure["rel"]].greedy_ranking()))
            else:
                kind = measure.value("label"), measure.value("rel")
                if kind not in ideal:
                    labels = self._labels[kind]
                    # A stable sort: passages with one label stay in the order of their ids.
                    best = sorted(filter(labels.__contains__, everything), key=labels.__getitem__, reverse=True)
                    ideal[kind] = Hits(range(1, len(best) + 1), best)
                hits = ideal[kind]
                values.append(scorer.score(hits) if isinstance(scorer, _OfHits) else scorer(hits.doc_ids))
        return values
