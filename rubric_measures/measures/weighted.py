"""Weighted coverage: criteria of any weight, negative ones being penalties."""

from __future__ import annotations

from collections.abc import Callable

from rubric_measures.base.entities import RubricItem
from rubric_measures.measures.measure import (
    BoundsScorer,
    ParamInfo,
    QueryContext,
    RankedDocs,
    RankingScorer,
    Top,
    register,
)
from rubric_measures.measures.nuggets import CreditMeasure

__all__ = ["WeightedCover"]


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

        A penalty is not in the denominator, so such an item counts as not covered, unless failed grades count as a
        grade or as what they are expected: the score may be too high.
        """
        penalties = self.weights(query).penalties.members
        if not penalties or query.is_expecting:
            return 0
        top = ranked.top(query.top(self.value("cutoff"), self.value("judged_only")))
        return query.failed_for(top.doc_ids) & penalties & ~top.at_least(self.lowest())


WeightedCover = register(_WeightedCover)
