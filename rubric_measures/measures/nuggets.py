"""Nugget scores A, V and W: the mean credit of what the top k passages (or an answer) support."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable

from rubric_measures.base.entities import RubricItem
from rubric_measures.base.errors import MeasureError
from rubric_measures.base.scales import Scale
from rubric_measures.measures.measure import (
    CUTOFF,
    JUDGED_ONLY,
    CoverageMeasure,
    ParamInfo,
    QueryContext,
    Top,
    min_grade,
    register,
)

__all__ = ["CreditMeasure", "NuggetA", "NuggetV", "NuggetW"]


class ItemWeights:
    """The weights of a query's items, grouped by value, so that a mask is summed with one popcount a group."""

    __slots__ = ("groups", "penalties", "positive")

    def __init__(self, weights: Iterable[float]) -> None:
        groups: dict[float, int] = {}
        for index, weight in enumerate(weights):
            if weight:
                groups[weight] = groups.get(weight, 0) | 1 << index
        # Sorted, so that floating-point sums do not depend on the order of the items.
        self.groups = sorted(groups.items())
        self.positive = sum(weight * mask.bit_count() for weight, mask in self.groups if weight > 0)
        self.penalties = sum(mask for weight, mask in self.groups if weight < 0)

    def sum(self, mask: int) -> float:
        """The sum of the weights of the items in the mask."""
        total = 0.0
        for weight, members in self.groups:
            total += weight * (mask & members).bit_count()
        return total

    def positive_without(self, mask: int) -> float:
        """The sum of the positive weights of the items that are not in the mask."""
        if not mask:
            return self.positive
        return self.positive - sum(
            weight * (mask & members).bit_count() for weight, members in self.groups if weight > 0
        )


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
        """Sum of w_i s_i / sum of the positive w_i, without the items of which nobody can know."""
        weights, rel, lowest = self.weights(query), self.value("rel"), self.lowest()

        def credit(top: Top) -> float | None:
            supported = top.at_least(rel)
            # What is supported is partially supported, too, so half of both sums is 1 for it.
            partially = supported if lowest == rel else top.at_least(lowest)
            total = weights.sum(supported)
            if lowest != rel:
                total = 0.5 * total + 0.5 * weights.sum(partially)
            unknown = query.undetermined(top, partially)
            denominator = weights.positive_without(unknown)
            if not denominator:
                return None if unknown and weights.positive else 0.0
            return total / denominator

        return credit


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
