"""Rubric-Cover: the share of the rubric items that the top k passages cover."""

from __future__ import annotations

import math
from collections.abc import Callable

from rubric_measures.measures.expected import covered_share, each_item, expected_gain, known
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

__all__ = ["RubricCover", "nRubricCover"]


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
