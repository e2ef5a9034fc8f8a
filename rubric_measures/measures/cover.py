"""Rubric-Cover: the share of the rubric items that the top k passages cover.

Leave-one-out expected coverage: what failed grades are expected to earn, read off the valid grades of a ranking. The
formula, its worked examples and its standard error are those of docs/scores.md, "Failed grades".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rubric_measures.base.errors import MeasureError
from rubric_measures.measures.measure import (
    CUTOFF,
    JUDGED_ONLY,
    BoundsScorer,
    CoverageMeasure,
    QueryContext,
    RankedDocs,
    RankingScorer,
    Top,
    min_grade,
    register,
)


class _Grouped:
    """Items grouped by what they weigh, so that a mask is one popcount a group.

    Attributes:
        groups: (weight, mask of the items), sorted, so that sums do not depend on the order of the items.
    """

    __slots__ = ("groups",)

    def __init__(self, groups: Iterable[tuple[float, int]]) -> None:
        self.groups = sorted(groups)

    def sum(self, mask: int) -> float:
        """What the items in the mask weigh together."""
        total = 0.0
        for weight, members in self.groups:
            total += weight * (mask & members).bit_count()
        return total


class Weights(_Grouped):
    """Weights of one sign, as amounts.

    Attributes:
        members: the mask of all items.
        total: what they weigh together.
    """

    __slots__ = ("members", "total")

    def __init__(self, groups: Iterable[tuple[float, int]]) -> None:
        super().__init__(groups)
        self.members = sum(mask for _, mask in self.groups)
        self.total = self.sum(self.members)

    @property
    def mean(self) -> float:
        """The mean weight."""
        return self.total / self.members.bit_count()


class ItemWeights(_Grouped):
    """The weights of a query's items: the positive ones, and the penalties by their amounts."""

    __slots__ = ("penalties", "positive")

    def __init__(self, weights: Iterable[float]) -> None:
        groups: dict[float, int] = {}
        for index, weight in enumerate(weights):
            if weight:
                groups[weight] = groups.get(weight, 0) | 1 << index
        super().__init__(groups.items())
        self.positive = Weights((weight, mask) for weight, mask in groups.items() if weight > 0)
        self.penalties = Weights((-weight, mask) for weight, mask in groups.items() if weight < 0)

    @property
    def both(self) -> Weights:
        """All items that weigh anything, by their amounts."""
        groups: dict[float, int] = {}
        for weight, mask in (*self.positive.groups, *self.penalties.groups):
            groups[weight] = groups.get(weight, 0) | mask
        return Weights(groups.items())


class Gain(NamedTuple):
    """What failed grades are expected to earn at one level.

    Attributes:
        value: Σ w_i (1 − (1 − p)^m_i) over the items that no passage covers, m_i of their grades having failed.
        spread: Σ w_i √(π_i (1 − π_i)) over them, for the standard error.
    """

    value: float
    spread: float


_NOTHING = Gain(0.0, 0.0)


def expected_gain(query: QueryContext, top: Top, rel: int, weights: Weights, others: Weights) -> Gain | None:
    """What the failed grades of the top k passages are expected to earn, by leave-one-out expected coverage.

    p = a / (a + b), with a = the weight of the items that exactly one passage covers, and b = Σ w_i n_i over the items
    that none covers, n_i being their valid grades: of the (passage, item) pairs that have a grade and whose item no
    other passage covers, the share that covers. Where a + b = 0, p is the covering share of all valid grades.

    Args:
        query: the query.
        top: its top k passages.
        rel: the grade from which on an item is covered.
        weights: what the items weigh that are asked about; the others earn nothing.
        others: what the items weigh whose grades are asked where those have no valid one.

    Returns:
        the gain; None where a grade failed and there is no valid one to read p from.
    """
    failed, covering, valid = query.grades.failed, query.covering(rel), query.valid_masks
    seen = twice = 0
    for doc_id in top.doc_ids:
        mask = covering.get(doc_id, 0)
        twice |= seen & mask
        seen |= mask
    # at_least[j]: the items of which more than j grades failed.
    at_least: list[int] = []
    misses = 0.0
    open_items = weights.members & ~seen
    for doc_id in top.doc_ids:
        lost = failed.get(doc_id, 0)
        # A facet may have a grade beside a failed one: below the level nobody knows whether it is covered.
        misses += weights.sum(valid[doc_id] & open_items & ~lost)
        lost &= open_items
        for place, mask in enumerate(at_least):
            if not lost:
                break
            at_least[place], lost = mask | lost, mask & lost
        if lost:
            at_least.append(lost)
    if not at_least:
        return _NOTHING
    once = weights.sum(seen & ~twice)
    share = once / (once + misses) if once + misses else _covering_share(query, top, rel, weights, others)
    if share is None:
        return None
    mean = weights.mean
    smoothed = (once + mean / 2) / (once + misses + mean)
    value = spread = 0.0
    for count, mask in enumerate(at_least, 1):
        # Of the items of which exactly `count` grades failed.
        exactly = mask & ~at_least[count] if count < len(at_least) else mask
        weight = weights.sum(exactly)
        value += weight * (1 - (1 - share) ** count)
        missed = (1 - smoothed) ** count
        spread += weight * math.sqrt(missed * (1 - missed))
    return Gain(value, spread)


def _covering_share(query: QueryContext, top: Top, rel: int, weights: Weights, others: Weights) -> float | None:
    """The share that covers of all valid grades in the top k, by weight; None where there are none."""
    covering, valid = query.covering(rel), query.valid_masks
    for some in (weights, others):
        graded = math.fsum(some.sum(valid[doc_id]) for doc_id in top.doc_ids)
        if graded:
            return math.fsum(some.sum(covering.get(doc_id, 0)) for doc_id in top.doc_ids) / graded
    return None


def each_item(query: QueryContext) -> Weights:
    """Every item by the same weight."""
    return query.shared("each", lambda: Weights([(1.0, (1 << len(query.items)) - 1)]))


def covered_share(
    query: QueryContext, rel: int, weights: Sequence[float] | None = None
) -> Callable[[Top], float | None]:
    """The share of the items that the top k passages cover, with failed grades as the user chose (`on_failed`).

    That is: earning what they are expected to earn; or as not covered; or as a grade. It is what
    `CoverageMeasure.formula` gives, as that of `RubricCover`.

    Args:
        query: the query.
        rel: the grade from which on an item is covered.
        weights: a weight for each of `query.items`, 0 or more; all count the same if None.

    Returns:
        the share of a top k by weight, in [0, 1]; None where all that is known of it is that grades failed.

    Raises:
        MeasureError: the weights are not one an item, or one is negative.
    """
    if weights is None:
        by_weight = each_item(query)
    elif len(weights) != len(query.items) or not all(0 <= weight < math.inf for weight in weights):
        raise MeasureError(f"query {query.query_id!r}: a share takes one weight an item, 0 or more")
    else:
        by_weight = ItemWeights(weights).positive

    def expected(top: Top) -> float | None:
        gain = expected_gain(query, top, rel, by_weight, by_weight)
        return None if gain is None else (by_weight.sum(top.at_least(rel)) + gain.value) / by_weight.total

    def certain(top: Top) -> float:
        covered = top.at_least(rel)
        query.refuse_open(top, covered)
        return by_weight.sum(covered) / by_weight.total if by_weight.total else 0.0

    return expected if query.is_expecting and by_weight.total else certain


def known(low: float | None, high: float | None) -> tuple[float, float] | None:
    """The bounds, where there are both."""
    return None if low is None or high is None else (low, high)


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
