"""Intent-aware measures with rubric items as subtopics: novelty is rewarded, the n-th passage on an item counts less.

Definitions and normalisations are those of NIST's ndeval program (TREC Web track), which pyndeval wraps, without its
limits: any cutoff, any number of parameters in one call, and @1 is normalised too (ndeval forgets it for ERR-IA@1 and
alpha-DCG@1, which so exceed 1). Passages are bit masks of the items they cover; items that no
passage covers take no part (as in ndeval), so StRecall is the normalised cover.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence

from ir_measures.measures.base import Measure

from rubric_measures.measures.measure import BoundsScorer, OfIrMeasures, QueryContext, RankedDocs, RankingScorer


def bits(mask: int) -> list[int]:
    """The places of the bits that are set, ascending."""
    members = []
    while mask:
        low = mask & -mask
        members.append(low.bit_length() - 1)
        mask ^= low
    return members


class IntentAware:
    """The intent-aware measures of one query at one relevance level.

    Args:
        covering: doc_id -> mask of the items it covers at the level, over all graded passages.
        ideal: the same for what values are normalised by, the ideal ranking and the number of subtopics; `covering` by
            default.
    """

    def __init__(self, covering: Mapping[str, int], ideal: Mapping[str, int] | None = None) -> None:
        self._covering = covering
        self._best = covering if ideal is None else ideal
        union = 0
        for mask in self._best.values():
            union |= mask
        self.reachable = union
        self.subtopics = union.bit_count()
        self._ideals: dict[tuple[float, int | None], tuple[list[float], list[str]]] = {}

    def gains(self, ranking: Sequence[str], alpha: float, depth: int | None) -> list[float]:
        """The novelty gain of each rank: sum over the covered items of (1 - alpha)^(passages above that cover it)."""
        seen: dict[int, int] = {}
        result = []
        get = self._covering.get
        for doc_id in ranking[:depth]:
            items = bits(get(doc_id, 0))
            result.append(_gain(items, seen, 1 - alpha))
            for item in items:
                seen[item] = seen.get(item, 0) + 1
        return result

    def _ideal_gains(self, alpha: float, depth: int | None) -> list[float]:
        return self._ideal(alpha, depth)[0]

    def greedy_ranking(self, alpha: float = 0.5) -> list[str]:
        """The doc_ids of the greedy ideal ranking."""
        return self._ideal(alpha, None)[1]

    def _ideal(self, alpha: float, depth: int | None) -> tuple[list[float], list[str]]:
        """The gains and documents of the ideal ranking, built greedily as ndeval does (the exact ideal is NP-hard).

        Gains only fall as items are seen, so a heap of outdated gains finds the best passage without looking at all.
        Ties go to the larger document id, as everywhere in this package (and in ndeval).
        """
        key = (alpha, depth)
        if key not in self._ideals:
            doc_ids = sorted(self._best, reverse=True)
            covering = [bits(self._best[doc_id]) for doc_id in doc_ids]
            seen: dict[int, int] = {}
            heap = [(-float(len(items)), position) for position, items in enumerate(covering)]
            heapq.heapify(heap)
            gains: list[float] = []
            order: list[str] = []
            while heap and (depth is None or len(gains) < depth):
                outdated, position = heap[0]
                gain = _gain(covering[position], seen, 1 - alpha)
                if gain != -outdated:
                    heapq.heapreplace(heap, (-gain, position))
                    continue
                heapq.heappop(heap)
                gains.append(gain)
                order.append(doc_ids[position])
                for item in covering[position]:
                    seen[item] = seen.get(item, 0) + 1
            self._ideals[key] = (gains, order)
        return self._ideals[key]

    @staticmethod
    def _dcg(gains: Sequence[float]) -> float:
        return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1) if gain)

    @staticmethod
    def _err(gains: Sequence[float]) -> float:
        return sum(gain / rank for rank, gain in enumerate(gains, 1) if gain)

    @staticmethod
    def _rbp(gains: Sequence[float], beta: float) -> float:
        return sum(gain * beta ** (rank - 1) for rank, gain in enumerate(gains, 1) if gain)

    def _perfect(self, alpha: float, depth: int) -> list[float]:
        """The gains of a ranking whose every passage covers every item: the collection-independent maximum."""
        return [self.subtopics * (1 - alpha) ** rank for rank in range(depth)]

    def alpha_dcg(self, ranking: Sequence[str], cutoff: int | None, alpha: float) -> float:
        """alpha-DCG@k over that of a ranking whose passages all cover everything, in [0, 1] (Clarke et al., 2008)."""
        return _ratio(
            self._dcg(self.gains(ranking, alpha, cutoff)), self._dcg(self._perfect(alpha, cutoff or len(ranking)))
        )

    def alpha_ndcg(self, ranking: Sequence[str], cutoff: int | None, alpha: float) -> float:
        """alpha-DCG@k over that of the greedy ideal ranking of the graded passages (Clarke et al., SIGIR 2008)."""
        return _ratio(self._dcg(self.gains(ranking, alpha, cutoff)), self._dcg(self._ideal_gains(alpha, cutoff)))

    def err_ia(self, ranking: Sequence[str], cutoff: int | None) -> float:
        """ERR-IA@k, collection-independent: sum of gain / rank over its maximum (Chapelle et al., CIKM 2009)."""
        return _ratio(
            self._err(self.gains(ranking, 0.5, cutoff)), self._err(self._perfect(0.5, cutoff or len(ranking)))
        )

    def nerr_ia(self, ranking: Sequence[str], cutoff: int | None) -> float:
        """ERR-IA@k over that of the greedy ideal ranking (Chapelle et al., CIKM 2009)."""
        return _ratio(self._err(self.gains(ranking, 0.5, cutoff)), self._err(self._ideal_gains(0.5, cutoff)))

    def nrbp(self, ranking: Sequence[str], alpha: float, beta: float) -> float:
        """NRBP = (1 - (1 - alpha) beta) / items * sum of gain * beta^(rank - 1) (Clarke, Kolla, Vechtomova, 2009)."""
        if not self.subtopics:
            return 0.0
        return (1 - (1 - alpha) * beta) * self._rbp(self.gains(ranking, alpha, None), beta) / self.subtopics

    def nnrbp(self, ranking: Sequence[str], alpha: float, beta: float) -> float:
        """NRBP over that of the greedy ideal ranking of the graded passages."""
        return _ratio(
            self._rbp(self.gains(ranking, alpha, None), beta), self._rbp(self._ideal_gains(alpha, None), beta)
        )

    def p_ia(self, ranking: Sequence[str], cutoff: int) -> float:
        """Intent-aware precision: the mean over the items of P@k."""
        if not self.subtopics:
            return 0.0
        return sum(self._covering.get(doc_id, 0).bit_count() for doc_id in ranking[:cutoff]) / cutoff / self.subtopics

    def ap_ia(self, ranking: Sequence[str]) -> float:
        """Intent-aware average precision: the mean over the items of AP with the passages that cover the item."""
        if not self.subtopics:
            return 0.0
        relevant: dict[int, int] = {}
        for mask in self._best.values():
            for item in bits(mask):
                relevant[item] = relevant.get(item, 0) + 1
        found: dict[int, int] = {}
        total: dict[int, float] = dict.fromkeys(relevant, 0.0)
        for rank, doc_id in enumerate(ranking, 1):
            for item in bits(self._covering.get(doc_id, 0)):
                found[item] = found.get(item, 0) + 1
                total[item] = total.get(item, 0.0) + found[item] / rank
        # fsum: the order of the items in the bank must not show, not even in the last digit.
        return math.fsum(value / relevant.get(item, 1) for item, value in total.items()) / self.subtopics

    def subtopic_recall(self, ranking: Sequence[str], cutoff: int | None) -> float:
        """The share of the items that any graded passage covers, which the top k passages cover (Zhai et al., 2003)."""
        union = 0
        for doc_id in ranking[:cutoff]:
            union |= self._covering.get(doc_id, 0)
        return union.bit_count() / self.subtopics if self.subtopics else 0.0


def _gain(items: Sequence[int], seen: Mapping[int, int], keep: float) -> float:
    # fsum: equal gains must compare equal whatever the order of the items.
    return math.fsum(keep ** seen.get(item, 0) for item in items)


def _ratio(value: float, maximum: float) -> float:
    return value / maximum if maximum else 0.0


# ir_measures' measures over subtopics: the value of a ranking, by the measure with its parameters. ir_measures gives
# alpha, beta and rel their defaults.
INTENT_AWARE: Mapping[str, Callable[[IntentAware, Sequence[str], Measure], float]] = {
    "alpha_DCG": lambda query, ranking, of: query.alpha_dcg(ranking, of.params.get("cutoff"), of["alpha"]),
    "alpha_nDCG": lambda query, ranking, of: query.alpha_ndcg(ranking, of.params.get("cutoff"), of["alpha"]),
    "ERR_IA": lambda query, ranking, of: query.err_ia(ranking, of.params.get("cutoff")),
    "nERR_IA": lambda query, ranking, of: query.nerr_ia(ranking, of.params.get("cutoff")),
    "NRBP": lambda query, ranking, of: query.nrbp(ranking, of["alpha"], of["beta"]),
    "nNRBP": lambda query, ranking, of: query.nnrbp(ranking, of["alpha"], of["beta"]),
    "P_IA": lambda query, ranking, of: query.p_ia(ranking, of.params.get("cutoff") or max(len(ranking), 1)),
    "AP_IA": lambda query, ranking, of: query.ap_ia(ranking),
    "StRecall": lambda query, ranking, of: query.subtopic_recall(ranking, of.params.get("cutoff")),
}


class IntentAwareMeasure(OfIrMeasures):
    """One of ir_measures' own measures over subtopics, with rubric items as subtopics."""

    @property
    def reads_items(self) -> bool:
        """It does."""
        return True

    def _subtopics(self, query: QueryContext) -> IntentAware:
        rel = self.measure["rel"]
        return query.shared(("intent aware", rel), lambda: IntentAware(query.covering(rel)))

    def prepare(self, query: QueryContext) -> RankingScorer:
        """The value of a ranking by the items that its passages cover."""
        measure, compute, subtopics = self.measure, INTENT_AWARE[self.measure.NAME], self._subtopics(query)
        if self.skips_unjudged:
            return lambda ranked: compute(subtopics, ranked.judged, measure)
        return lambda ranked: compute(subtopics, ranked.doc_ids, measure)

    def bounds(self, lowest: QueryContext, highest: QueryContext) -> BoundsScorer:
        """The gains of the fewest covered items, normalised by those of the most, and the other way round."""
        rel, compute = self.measure["rel"], INTENT_AWARE[self.measure.NAME]
        low, high = lowest.covering(rel), highest.covering(rel)
        least, most = IntentAware(low, high), IntentAware(high, low)

        def ranking(ranked: RankedDocs) -> Sequence[str]:
            return ranked.judged if self.skips_unjudged else ranked.doc_ids

        def bounds(of_lowest: RankedDocs, of_highest: RankedDocs) -> tuple[float, float]:
            ids = ranking(of_highest)
            # Without a known subtopic, whatever is covered may be all there is.
            greatest = compute(most, ids, self.measure) if low else float(any(doc_id in high for doc_id in ids))
            return compute(least, ranking(of_lowest), self.measure), min(greatest, 1.0)

        return bounds

    def best(self, query: QueryContext, score: RankingScorer) -> float | None:
        """The value of the greedy ideal ranking."""
        return score(query.ranked(self._subtopics(query).greedy_ranking()))
