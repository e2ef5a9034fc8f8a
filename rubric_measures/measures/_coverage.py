"""The one coverage kernel: which items the top k passages cover, and what the covered items are worth.

Cover, V, W, A and weighted criteria are one formula, sum over items of w_i * g(best grade of item i among the top k)
divided by sum of w_i, with g a threshold or a partial credit. A passage's covered items are a bit mask, so the best
grades of k passages are k bitwise ors, however many items there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rubric_measures.base.entities import RubricItem

__all__ = ["WeightedMasks", "at_least", "nugget_weights", "union_at"]


def union_at(
    levels: Mapping[str, Mapping[int, int]], doc_ids: Sequence[str], lengths: Iterable[int]
) -> dict[int, dict[int, int]]:
    """The items that the first n passages reach at each grade, for each n.

    Args:
        levels: doc_id -> {grade: mask of the items with that grade}; has all of `doc_ids`.
        doc_ids: graded passages, best first.
        lengths: the ns, in any order.

    Returns:
        n -> {grade: mask}; see `at_least`.
    """
    result: dict[int, dict[int, int]] = {}
    union: dict[int, int] = {}
    start = 0
    for length in sorted(set(lengths)):
        for doc_id in doc_ids[start:length]:
            for grade, mask in levels[doc_id].items():
                union[grade] = union.get(grade, 0) | mask
        start = length
        result[length] = union.copy()
    return result


def at_least(by_grade: Mapping[int, int], rel: int) -> int:
    """The mask of the items that are reached with a grade of `rel` or better."""
    union = 0
    for grade, mask in by_grade.items():
        if grade >= rel:
            union |= mask
    return union


class WeightedMasks:
    """The weights of a query's items, grouped by value, so that a mask is summed with one popcount a group."""

    __slots__ = ("groups", "positive")

    def __init__(self, weights: Iterable[float]) -> None:
        groups: dict[float, int] = {}
        for index, weight in enumerate(weights):
            if weight:
                groups[weight] = groups.get(weight, 0) | 1 << index
        # Sorted, so that floating-point sums do not depend on the order of the items.
        self.groups = sorted(groups.items())
        self.positive = sum(weight * mask.bit_count() for weight, mask in self.groups if weight > 0)

    def sum(self, mask: int) -> float:
        """The sum of the weights of the items in the mask."""
        total = 0.0
        for weight, members in self.groups:
            total += weight * (mask & members).bit_count()
        return total

    def positive_without(self, mask: int) -> float:
        """The sum of the positive weights of the items that are not in the mask."""
        return self.positive - sum(
            weight * (mask & members).bit_count() for weight, members in self.groups if weight > 0
        )


def nugget_weights(items: Sequence[RubricItem], scheme: str) -> list[float] | str:
    """The weight of each item under a scheme, or the id of an item that lacks what the scheme needs.

    Args:
        items: the items of a query.
        scheme: `all` (1 each), `vital` (1 and 0), `weighted` (vital 1, okay 0.5), `weight` (the item's own weight).
    """
    if scheme == "all":
        return [1.0] * len(items)
    weights: list[float] = []
    for item in items:
        if scheme == "weight":
            if item.weight is None:
                return item.item_id
            weights.append(item.weight)
        elif item.importance is None:
            return item.item_id
        else:
            okay = 0.0 if scheme == "vital" else 0.5
            weights.append(1.0 if item.importance == "vital" else okay)
    return weights
