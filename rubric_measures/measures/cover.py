"""Rubric-Cover, the nugget scores V, W and A, and cover by weights.

Rubric-Cover: the share of the rubric items that the top k passages cover.

Nugget scores A, V and W: the mean credit of what the top k passages (or an answer) support.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable

from ir_measures.measures.base import ParamInfo

from rubric_measures.base.errors import MeasureError
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
from rubric_measures.measures.scoring import ItemWeights, Weights, covered_share, each_item, expected_gain, known
from rubric_measures.types.entities import RubricItem
from rubric_measures.types.scales import Scale


class _RubricCover(CoverageMeasure):
    """The share of the query's rubric items that some passage among the top k covers.

    RubricCover(rel)@k = |{r in R_q : some p among the top k has grade(p, r) >= rel}| / |R_q|, in [0, 1]; R_q is the
    complete test bank of the query.

    .. cite:: Dietz, A Workbench for Autograding Retrieve/Generate Systems, SIGIR 2024 (as EXAM-Cover);
       Farzi and Dietz, EXAM++, LLM4Eval 2024, section 4.3
    """

    PRETTY_NAME = "Rubric-Cover"
    SHORT_DESC = "The share of the test bank's items that the top k passages cover with at least the minimum grade."
    SUPPORTED_PARAMS = {
        "rel": min_grade("covering an item"),
        "cutoff": CUTOFF,
        "judged_only": JUDGED_ONLY,
    }

    def formula(self, query: QueryContext) -> Callable[[Top], float | None]:
        """Covered items / items of the bank; with failed grades see `covered_share`."""
        rel, size = self.value("rel"), len(query.items)
        if query.grades.failed or not size:
            return covered_share(query, rel)
        return lambda top: top.at_least(rel).bit_count() / size

    def _reached(self, query: QueryContext) -> Callable[[Top], float | None]:
        """How many items the top k passages are expected to cover; None where nothing is known."""
        rel, weights = self.value("rel"), each_item(query)

        def reached(top: Top) -> float | None:
            gain = expected_gain(query, top, rel, weights, weights)
            return None if gain is None else top.at_least(rel).bit_count() + gain.value

        return reached

    def bounds(self, lowest: QueryContext, highest: QueryContext) -> BoundsScorer:
        """The cover with all failed grades as the lowest, and as the highest."""
        low, high = self.prepare(lowest), self.prepare(highest)

        def bounds(of_lowest: RankedDocs, of_highest: RankedDocs) -> tuple[float, float] | None:
            return known(low(of_lowest), high(of_highest))

        return bounds

    def spread(self, query: QueryContext) -> RankingScorer:
        """The spread of the expected items, over the denominator."""
        kind = query.top(self.value("cutoff"), self.value("judged_only"))
        rel, weights, size = self.value("rel"), each_item(query), self._size(query)

        def spread(ranked: RankedDocs) -> float | None:
            gain = expected_gain(query, ranked.top(kind), rel, weights, weights)
            return None if gain is None or not size else gain.spread / size

        return spread

    def _size(self, query: QueryContext) -> float | None:
        """The denominator where failed grades count as they are expected."""
        return len(query.items)


class _nRubricCover(_RubricCover):
    """Rubric-Cover divided by what any graded passages reach: the items covered by at least one graded passage.

    In [0, 1]; 0 when no graded passage covers any item.

    .. cite:: Dietz, SIGIR 2024 (normalised EXAM-Cover)
    """

    PRETTY_NAME = "Normalised Rubric-Cover"
    SHORT_DESC = "The covered share of those items that any graded passage covers."

    def formula(self, query: QueryContext) -> Callable[[Top], float | None]:
        """Covered items / items that any graded passage covers, both as they are expected where grades failed."""
        rel = self.value("rel")
        if query.is_expecting:
            reached, size = self._reached(query), self._size(query)

            def expected(top: Top) -> float | None:
                found = reached(top)
                if found is None or not size:
                    return None if found is None else 0.0
                # What is left open is expected from this ranking alone, so it may promise more than all passages do.
                return min(found / size, 1.0)

            return expected
        reachable = query.everything.at_least(rel).bit_count()

        def cover(top: Top) -> float:
            covered = top.at_least(rel)
            query.refuse_open(top, covered)
            return covered.bit_count() / reachable if reachable else 0.0

        return cover

    def bounds(self, lowest: QueryContext, highest: QueryContext) -> BoundsScorer:
        """The fewest items over the most that could be reached, and the most over the fewest."""
        kinds = [query.top(self.value("cutoff"), self.value("judged_only")) for query in (lowest, highest)]
        rel = self.value("rel")
        fewest, most = (query.everything.at_least(rel).bit_count() for query in (lowest, highest))

        def bounds(of_lowest: RankedDocs, of_highest: RankedDocs) -> tuple[float, float]:
            low = of_lowest.top(kinds[0]).at_least(rel).bit_count()
            high = of_highest.top(kinds[1]).at_least(rel).bit_count()
            return low / most if most else 0.0, min(high / max(fewest, 1), 1.0)

        return bounds

    def spread(self, query: QueryContext) -> RankingScorer:
        """Those of the numerator and of the denominator, as if they were independent: the first may be 0 alone."""
        of_top, score, size = super().spread(query), self.prepare(query), self._size(query)
        rel, weights = self.value("rel"), each_item(query)
        every = query.shared(("open", rel), lambda: expected_gain(query, query.everything, rel, weights, weights))

        def spread(ranked: RankedDocs) -> float | None:
            own, value = of_top(ranked), score(ranked)
            if own is None or value is None or every is None or not size:
                return None
            return math.hypot(own, value * every.spread / size)

        return spread

    def _size(self, query: QueryContext) -> float | None:
        return query.shared(("reachable", self.value("rel")), lambda: self._reached(query)(query.everything))


RubricCover = register(_RubricCover)
nRubricCover = register(_nRubricCover)  # noqa: N816 - named as ir_measures names nDCG, nERR_IA, nNRBP


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
