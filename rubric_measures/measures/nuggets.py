"""Nugget scores A, V and W: the mean credit of what the top k passages (or an answer) support; cover by weights."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable

from ir_measures.measures.base import ParamInfo

from rubric_measures.base.errors import MeasureError
from rubric_measures.measures.cover import ItemWeights, Weights, expected_gain
from rubric_measures.measures.measure import (
    CUTOFF,
    JUDGED_ONLY,
    BoundsScorer,
    CoverageMeasure,
    OfItems,
    QueryContext,
    RankedDocs,
    RankingScorer,
    Top,
    min_grade,
    register,
)
from rubric_measures.types.entities import RubricItem
from rubric_measures.types.scales import Scale


class CreditMeasure(CoverageMeasure):
    """The weighted mean credit of the items: sum over items of w_i s_i / sum of the positive w_i.

    s_i is 1 for support (grade >= rel), 0.5 for partial support (grade >= partial_rel), else 0: the levels are those of
    the scale where they are left out. Of several passages the best grade of an item counts. With strict=True partial
    support earns 0. 0 where no weight is positive.
    """

    SUPPORTED_PARAMS = {
        "rel": min_grade("support (credit 1)"),
        "partial_rel": min_grade("partial support (credit 0.5)"),
        "strict": ParamInfo(dtype=bool, default=False, desc="partial support earns nothing"),
        "cutoff": CUTOFF,
        "judged_only": JUDGED_ONLY,
    }

    def check(self) -> None:
        """Partial support asks for no more than support."""
        if "rel" in self.params and self.params.get("partial_rel", self.params["rel"]) > self.params["rel"]:
            raise MeasureError(
                f"{self.NAME}: partial_rel={self.value('partial_rel')} is above rel={self.value('rel')}; "
                "partial support cannot ask for more than support"
            )

    def levels(self, scale: Scale | None) -> dict[str, int]:
        """As of every measure; where no grade is partial, `partial_rel` is `rel`."""
        levels = super().levels(scale)
        rel = levels.get("rel", self.params.get("rel"))
        if "partial_rel" in self.params or self.value("strict") or rel is None:
            return levels
        if scale is None:
            raise self.unknown_scale("partial_rel")
        return {**levels, "partial_rel": rel if scale.partial is None else min(scale.partial, rel)}

    @abstractmethod
    def weight(self, item: RubricItem) -> float:
        """What an item weighs.

        Raises:
            MeasureError: the item does not say what the measure needs to know.
        """

    def missing(self, item: RubricItem, what: str) -> MeasureError:
        """The error of an item that does not say what it weighs."""
        return MeasureError(
            f"{self} needs the {what} of every item, and item {item.item_id!r} of query {item.query_id!r} has none; "
            "score with a test bank that gives it, or assignments by the rules of nuggetizer's program",
            settings=("bank", "compat"),
        )

    def lowest(self) -> int:
        """The lowest grade that earns credit."""
        return int(self.value("rel") if self.value("strict") else self.value("partial_rel"))

    def weights(self, query: QueryContext) -> ItemWeights:
        """The weights of the query's items."""
        return query.shared(("weights", self.NAME), lambda: ItemWeights(map(self.weight, query.items)))

    def formula(self, query: QueryContext) -> Callable[[Top], float | None]:
        """Sum of w_i s_i / sum of the positive w_i; failed grades as the user chose."""
        weights, rel, lowest = self.weights(query), self.value("rel"), self.lowest()
        if query.is_expecting:
            return self._expected(query)
        denominator = weights.positive.total

        def credit(top: Top) -> float | None:
            supported = top.at_least(rel)
            # What is supported is partially supported, too, so half of both sums is 1 for it.
            partially = supported if lowest == rel else top.at_least(lowest)
            total = weights.sum(supported)
            if lowest != rel:
                total = 0.5 * total + 0.5 * weights.sum(partially)
            query.refuse_open(top, partially)
            return total / denominator if denominator else 0.0

        return credit

    def _shares(self) -> list[tuple[int, float]]:
        """The levels that earn credit, with the share that each earns."""
        rel, lowest = self.value("rel"), self.lowest()
        return [(rel, 1.0)] if lowest == rel else [(rel, 0.5), (lowest, 0.5)]

    def _gains(self, query: QueryContext, top: Top) -> tuple[float, float] | None:
        """What failed grades are expected to earn, and its spread, in weight; None where nothing is known.

        A penalty that is expected costs; p is that of the penalties alone.
        """
        weights = self.weights(query)
        value = spread = 0.0
        for rel, share in self._shares():
            for sign, side in ((1, weights.positive), (-1, weights.penalties)):
                gain = expected_gain(query, top, rel, side, weights.both)
                if gain is None:
                    return None
                value += sign * share * gain.value
                spread += share * gain.spread
        return value, spread

    def _expected(self, query: QueryContext) -> Callable[[Top], float | None]:
        weights = self.weights(query)

        def credit(top: Top) -> float | None:
            if not weights.positive.total:
                return 0.0
            gains = self._gains(query, top)
            if gains is None:
                return None
            earned = math.fsum(share * weights.sum(top.at_least(rel)) for rel, share in self._shares())
            return (earned + gains[0]) / weights.positive.total

        return credit

    def spread(self, query: QueryContext) -> RankingScorer:
        """The spread of the expected credit, over the denominator."""
        kind = query.top(self.value("cutoff"), self.value("judged_only"))
        size = self.weights(query).positive.total

        def spread(ranked: RankedDocs) -> float | None:
            gains = self._gains(query, ranked.top(kind)) if size else (0.0, 0.0)
            return None if gains is None else gains[1] / size if size else 0.0

        return spread

    def bounds(self, lowest: QueryContext, highest: QueryContext) -> BoundsScorer:
        """The credit with failed grades of penalties as the highest and of other items as the lowest, and the other
        way round.
        """
        kinds = [query.top(self.value("cutoff"), self.value("judged_only")) for query in (lowest, highest)]
        weights, shares = self.weights(lowest), self._shares()

        def total(side: Weights, top: Top) -> float:
            return math.fsum(share * side.sum(top.at_least(rel)) for rel, share in shares)

        def bounds(of_lowest: RankedDocs, of_highest: RankedDocs) -> tuple[float, float]:
            size = weights.positive.total
            if not size:
                return 0.0, 0.0
            low, high = of_lowest.top(kinds[0]), of_highest.top(kinds[1])
            return (
                (total(weights.positive, low) - total(weights.penalties, high)) / size,
                (total(weights.positive, high) - total(weights.penalties, low)) / size,
            )

        return bounds


class _NuggetA(CreditMeasure):
    """The mean credit over all nuggets: A = sum of s_i / N, in [0, 1].

    .. cite:: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), scoring
    """

    PRETTY_NAME = "All-nugget score"
    SHORT_DESC = "The mean credit of an answer over all nuggets."

    def weight(self, item: RubricItem) -> float:
        """1, whatever the nugget."""
        return 1.0


class _NuggetV(CreditMeasure):
    """The mean credit over the vital nuggets: V = sum of s_i over vital / n_vital, in [0, 1]; 0 where none is vital.

    V with strict=True is the primary measure of the TREC 2024 RAG track.

    .. cite:: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), scoring
    """

    PRETTY_NAME = "Vital-nugget score"
    SHORT_DESC = "The mean credit of an answer over the vital nuggets."

    @property
    def needs(self) -> OfItems:
        """The grades of vital nuggets alone."""
        return OfItems(self.depth, "vital")

    def weight(self, item: RubricItem) -> float:
        """1 for vital, 0 for okay."""
        if item.importance is None:
            raise self.missing(item, "importance (vital or okay)")
        return 1.0 if item.importance == "vital" else 0.0


class _NuggetW(CreditMeasure):
    """The weighted credit: W = (sum of s_i over vital + 0.5 sum over okay) / (n_vital + 0.5 n_okay), in [0, 1].

    .. cite:: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), scoring
    """

    PRETTY_NAME = "Weighted nugget score"
    SHORT_DESC = "The mean credit of an answer, vital nuggets counting 1 and okay nuggets 0.5."

    def weight(self, item: RubricItem) -> float:
        """1 for vital, 0.5 for okay."""
        if item.importance is None:
            raise self.missing(item, "importance (vital or okay)")
        return 1.0 if item.importance == "vital" else 0.5


NuggetA = register(_NuggetA)
NuggetV = register(_NuggetV)
NuggetW = register(_NuggetW)


class _WeightedCover(CreditMeasure):
    """The weighted credit over criteria of any weight: sum of w_i s_i / sum of the positive w_i.

    Criteria of negative weight are penalties, so the value lies in (-inf, 1]; clip=True reports values below 0 as 0.
    0 where no criterion has a positive weight.
    """

    PRETTY_NAME = "Weighted coverage"
    SHORT_DESC = "The weighted credit of an answer; criteria of negative weight are penalties."
    SUPPORTED_PARAMS = {
        **CreditMeasure.SUPPORTED_PARAMS,
        "clip": ParamInfo(dtype=bool, default=False, desc="report values below 0 as 0"),
    }

    @property
    def needs(self) -> OfItems:
        """The grades of criteria that weigh something."""
        return OfItems(self.depth, "weighing")

    def weight(self, item: RubricItem) -> float:
        """The item's own weight."""
        if item.weight is None:
            raise self.missing(item, "weight")
        return item.weight

    def formula(self, query: QueryContext) -> Callable[[Top], float | None]:
        """As of `CreditMeasure`, not below 0 where it is clipped."""
        credit = super().formula(query)
        if not self.value("clip"):
            return credit

        def clipped(top: Top) -> float | None:
            value = credit(top)
            return None if value is None else max(value, 0.0)

        return clipped

    def bounds(self, lowest: QueryContext, highest: QueryContext) -> BoundsScorer:
        """As of `CreditMeasure`, not below 0 where it is clipped."""
        bounds = super().bounds(lowest, highest)
        if not self.value("clip"):
            return bounds

        def clipped(of_lowest: RankedDocs, of_highest: RankedDocs) -> tuple[float, float] | None:
            found = bounds(of_lowest, of_highest)
            return None if found is None else (max(found[0], 0.0), max(found[1], 0.0))

        return clipped

    def best(self, query: QueryContext, score: RankingScorer) -> float | None:
        """Not known where there are penalties: a ranking may avoid them."""
        return None if self.weights(query).penalties.members else super().best(query, score)

    def lost_penalties(self, query: QueryContext, ranked: RankedDocs) -> int:
        """Penalties of which a grade failed for a ranked passage, while no other passage is known to deserve them.

        Such an item counts as not covered where failed grades count as zero: the score may be too high.
        """
        penalties = self.weights(query).penalties.members
        if not penalties or query.is_expecting:
            return 0
        top = ranked.top(query.top(self.value("cutoff"), self.value("judged_only")))
        return top.failed(query.grades.failed) & penalties & ~top.at_least(self.lowest())


WeightedCover = register(_WeightedCover)
