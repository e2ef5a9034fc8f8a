"""Rubric-Qrels: any standard measure over the relevance labels that grades imply."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence

import ir_measures
from ir_measures.measures.base import _NOT_PROVIDED, Agg, MeanAgg, Measure
from ir_measures.util import ScoredDoc

from rubric_measures.base.errors import MeasureError
from rubric_measures.grades.compiled import Label
from rubric_measures.measures._label_formulas import label_scorer
from rubric_measures.measures.delegated import checked_measure, delegated, other_providers, refuse_real
from rubric_measures.measures.intent_aware import INTENT_AWARE, bits
from rubric_measures.measures.measure import (
    CUTOFF,
    BoundsScorer,
    OfIrMeasures,
    ParamInfo,
    QueryContext,
    RankedDocs,
    RankingScorer,
    RubricMeasure,
    min_grade,
    register,
)
from rubric_measures.types.entities import ScoredIds
from rubric_measures.types.scales import Scale

__all__ = ["RubricQrels", "StandardMeasure"]


class _RubricQrels(RubricMeasure):
    """Any measure of ir_measures over the labels that the grades imply (Rubric-Qrels, EXAM-Qrels).

    label="max": label(p) = max over r of grade(p, r), and 0 where that is below rel; label="count": the number of
    items with grade >= rel. Passages without grades are unjudged. A measure with a relevance level takes `rel` as its
    own for label="max" (write it inside the name, measure="P(rel=2)@20", to set it yourself, as for "count").

    label="item": intent-aware, with graded gains. Each item's grades are labels of their own, and the value is the mean
    over the items of which some passage has a grade above 0, or of `rel` where the standard measure has a level. For
    nDCG, ERR, RBP, AP, RR, P, R and Success.

    .. cite:: Farzi and Dietz, EXAM++, LLM4Eval 2024, section 4.3; Dietz, SIGIR 2024; over items Agrawal et al., WSDM
        2009, section 4
    """

    PRETTY_NAME = "Rubric-Qrels"
    SHORT_DESC = "A standard measure over relevance labels that are derived from the grades of the passages."
    SUPPORTED_PARAMS = {
        "measure": ParamInfo(dtype=str, required=True, desc="the standard measure, such as nDCG@10 or AP"),
        "label": ParamInfo(
            dtype=str, choices=["max", "count", "item"], default="max", desc="how item grades become a label"
        ),
        "rel": min_grade("relevant (max), or as covering an item (count)"),
        "cutoff": CUTOFF,
    }

    def levels(self, scale: Scale | None) -> dict[str, int]:
        """As of every measure; measures that read graded labels need no level."""
        if self.value("label") != "count" and not _needs_level(self.inner()):
            return {}
        return super().levels(scale)

    def said_levels(self) -> list[int]:
        """As of every measure; where the label is a grade, also the level inside the standard measure."""
        inner = self.inner().params.get("rel")
        return super().said_levels() + ([inner] if self.value("label") != "count" and isinstance(inner, int) else [])

    def check(self) -> None:
        """The standard measure is one, and no parameter is given twice."""
        self.inner()

    def inner(self) -> Measure:
        """The standard measure with this measure's cutoff and relevance level put in.

        Raises:
            MeasureError: the measure is unknown, is one over items, or a parameter is given twice.
        """
        return _standard(self.params["measure"], self.value("cutoff"), self.value("label"), self.params.get("rel"))

    def aggregator(self) -> Agg:
        """As the standard measure is aggregated: counts (NumRet, NumRel, NumQ) are summed, all others averaged."""
        aggregator = self.inner().aggregator()
        return super().aggregator() if isinstance(aggregator, MeanAgg) else aggregator

    @property
    def depth(self) -> int | None:
        """The cutoff, here or in the standard measure; of single items failed grades may be anywhere."""
        return None if self.value("label") == "item" else self._cutoff

    @property
    def needs(self) -> int | None:
        """The grades up to the cutoff."""
        return self._cutoff

    @property
    def _cutoff(self) -> int | None:
        cutoff = self.inner().params.get("cutoff")
        return cutoff if isinstance(cutoff, int) else None

    @property
    def reads_items(self) -> bool:
        """Whether items have labels of their own."""
        return bool(self.value("label") == "item")

    @property
    def skips_unjudged(self) -> bool:
        """Whether the standard measure does."""
        return bool(self.inner().params.get("judged_only"))

    def prepare(self, query: QueryContext) -> RankingScorer:
        """The standard measure over the labels of the query: by a formula of ours, else by a program's."""
        inner = self.inner()
        label, rel = self.value("label"), self.value("rel")
        if label == "item":
            return self._mean_over_items(query, inner)
        labels = query.labels(label, rel)
        highest = query.grades.scale.highest if label == "max" and query.grades.scale is not None else None
        scorer = label_scorer(inner, labels, highest)
        if scorer is not None:
            return scorer
        if inner.NAME == "NumRel":
            # The program behind ir_measures' own counts from label 1 only. As there, 0 for what a run does not rank.
            count = float(sum(label >= inner["rel"] for label in labels.values()))
            return lambda ranked: count if ranked.doc_ids else 0.0
        return _delegated(inner, self, query.query_id, labels, _by_rank)

    def _mean_over_items(self, query: QueryContext, inner: Measure) -> RankingScorer:
        """The mean over the items of the standard measure by the grades of one item.

        For an item the passages leave the ranking whose grade of it failed, where failures count as expected.
        """
        of_item: dict[int, dict[str, float]] = {}
        for doc_id, levels in query.grades.levels.items():
            for grade, mask in levels.items():
                for bit in bits(mask):
                    of_item.setdefault(bit, {})[doc_id] = grade
        scale = query.grades.scale
        scorers = []
        level = inner.params.get("rel")
        for bit, labels in sorted(of_item.items()):
            best = max(labels.values())
            if best > 0 if level is None else best >= level:
                scorer = label_scorer(inner, labels, None if scale is None else scale.highest)
                if scorer is None:
                    raise MeasureError(
                        f"{self}: nDCG, AP, RR, P, R and Success are averaged over items, and where the scale is known "
                        "ERR and RBP; name one of these"
                    )
                lost = query.grades.failed.items() if query.is_expecting else ()
                scorers.append((scorer, frozenset(doc_id for doc_id, mask in lost if mask >> bit & 1)))

        def score(ranked: RankedDocs) -> float:
            values = []
            for scorer, lost in scorers:
                hit = lost and not lost.isdisjoint(ranked.doc_ids)
                kept = query.ranked([one for one in ranked.doc_ids if one not in lost]) if hit else ranked
                values.append(scorer(kept))
            # fsum: the order of the items must not show, not even in the last digit.
            return math.fsum(values) / len(values) if values else 0.0

        return score

    def best(self, query: QueryContext, score: RankingScorer) -> float | None:
        """The value of the passages by descending label; over items the best ranking is not known."""
        label = self.value("label")
        return None if label == "item" else score(query.by_label(label, self.value("rel")))

    def bounds(self, lowest: QueryContext, highest: QueryContext) -> BoundsScorer | None:
        """By the lowest labels, normalised by the highest, and the other way round; of measures that we compute.

        They are not known over items.
        """
        label, rel = self.value("label"), self.value("rel")
        if label == "item" or (label == "max" and lowest.grades.scale is None):
            return None
        return _label_bounds(self.inner(), lowest, highest, label, rel)


def _by_rank(ranking: Sequence[str]) -> list[tuple[str, float]]:
    # Scores that say the rank: every provider then sees the order of the one sort, without ties. All above 0, which is
    # what Compat takes documents for that are not ranked.
    top = len(ranking)
    return [(doc_id, float(top - place)) for place, doc_id in enumerate(ranking)]


def _as_given(ranking: Sequence[str]) -> Sequence[tuple[str, float]]:
    # Programs sort in several ways: by single or double precision, ties by document or by place.
    return ranking.given if isinstance(ranking, ScoredIds) else _by_rank(ranking)


def _delegated(
    inner: Measure,
    shown: Measure,
    query_id: str,
    labels: Mapping[str, float],
    scored: Callable[[Sequence[str]], Sequence[tuple[str, float]]],
) -> RankingScorer:
    """The scorer of a standard measure by the program that ir_measures has for it.

    Args:
        inner: the measure.
        shown: what errors call it.
        query_id: the query.
        labels: doc_id -> label.
        scored: gives the scores of a ranking's documents.
    """
    qrels = [ir_measures.Qrel(query_id, doc_id, label) for doc_id, label in labels.items()]
    if not qrels:
        return lambda ranked: float(inner.DEFAULT)
    refuse_real(qrels, shown)
    with delegated([inner], shown):
        evaluator = other_providers().evaluator([inner], qrels)

    def score(ranked: RankedDocs) -> float:
        ranking: Sequence[str] = ranked.doc_ids
        if not ranking:
            return float(inner.DEFAULT)
        run = [ScoredDoc(query_id, doc_id, score) for doc_id, score in scored(ranking)]
        with delegated([inner], shown):
            value = float(evaluator.calc_aggregate(run)[inner])
        if math.isnan(value):
            raise MeasureError(f"{shown} has no value for query {query_id!r}; leave the measure or the query out")
        return value

    return score


class StandardMeasure(OfIrMeasures):
    """A measure of ir_measures over labels that stand for themselves, computed by the program behind it.

    Of a query with labels that have fractions, which no such program reads, it is computed here.
    """

    def __init__(self, measure: Measure) -> None:
        super().__init__(checked_measure(measure))

    def prepare(self, query: QueryContext) -> RankingScorer:
        """The value of a ranking by the labels of the query.

        Raises:
            MeasureError: there are grades of items, which it would silently collapse.
        """
        if not query.grades.is_of_labels:
            raise MeasureError(
                f"{self.measure} is no measure over rubric items; write RubricQrels(measure={str(self.measure)!r})"
            )
        labels = query.labels()
        if any(type(label) is not int for label in labels.values()):
            scale = query.grades.scale
            scorer = label_scorer(self.measure, labels, None if scale is None else scale.highest)
            if scorer is not None:
                return scorer
        return _delegated(self.measure, self.measure, query.query_id, labels, _as_given)

    def best(self, query: QueryContext, score: RankingScorer) -> float | None:
        """The value of the passages by descending label."""
        return score(query.by_label())

    def bounds(self, lowest: QueryContext, highest: QueryContext) -> BoundsScorer | None:
        """As of `RubricQrels`."""
        return None if lowest.grades.scale is None else _label_bounds(self.measure, lowest, highest, "max", None)


def _label_bounds(
    measure: Measure, lowest: QueryContext, highest: QueryContext, label: Label, rel: int | None
) -> BoundsScorer | None:
    low, high = lowest.labels(label, rel), highest.labels(label, rel)
    scale = lowest.grades.scale
    top = scale.highest if label == "max" and scale is not None else None
    # All measures there rise with every label of the ranking: only what they are normalised by stands against it.
    least, most = label_scorer(measure, low, top, high), label_scorer(measure, high, top, low)
    if least is None or most is None:
        return None
    of_least, of_most = least, most

    def bounds(of_lowest: RankedDocs, of_highest: RankedDocs) -> tuple[float, float]:
        return of_least(of_lowest), min(of_most(of_highest), 1.0)

    return bounds


def _needs_level(measure: Measure) -> bool:
    """Whether a standard measure reads labels as relevant or not, and nobody said from which label on."""
    info = measure.SUPPORTED_PARAMS.get("rel")
    return info is not None and info.default is not _NOT_PROVIDED and "rel" not in measure.params


@functools.lru_cache(maxsize=4096)
def _standard(name: str, cutoff: int | None, label: str, given: int | None) -> Measure:
    """The measure inside a RubricQrels; every query asks for it, and parsing takes longer than scoring."""
    try:
        inner = ir_measures.parse_measure(name)
    except (NameError, ValueError) as error:
        raise MeasureError(f"RubricQrels: measure={name!r}: {error}") from None
    if isinstance(inner, RubricMeasure) or inner.NAME in INTENT_AWARE:
        raise MeasureError(f"RubricQrels: {name} reads items, not labels; use it by itself")
    if cutoff is not None:
        if "cutoff" not in inner.SUPPORTED_PARAMS:
            raise MeasureError(f"RubricQrels: {name} has no cutoff")
        if inner.params.get("cutoff", cutoff) != cutoff:
            raise MeasureError(f"RubricQrels: {name} and @{cutoff} are two cutoffs; give one")
        inner = inner(cutoff=cutoff)
    if label != "count" and "rel" in inner.SUPPORTED_PARAMS:
        if given is not None and inner.params.get("rel", given) != given:
            raise MeasureError(f"RubricQrels: {name} and rel={given} are two levels; give one")
        if inner.NAME == "NumRet" and given is not None and "rel" not in inner.params:
            # Without a level it counts all documents, and a name does not tell the usual level from none.
            raise MeasureError(
                f'RubricQrels: {name} counts all documents; for those of a level say "{name}(rel={given})"'
            )
        if "rel" not in inner.params and given is not None:
            inner = inner(rel=given)
    try:
        return checked_measure(inner)
    except MeasureError as error:
        raise MeasureError(f"RubricQrels: measure={name!r}: {error}") from None


RubricQrels = register(_RubricQrels)
