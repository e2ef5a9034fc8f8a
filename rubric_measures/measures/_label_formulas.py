"""The common measures over relevance labels, as trec_eval defines them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from itertools import compress

from ir_measures.measures.base import Measure

from rubric_measures.measures.measure import RankedDocs

__all__ = ["label_scorer"]


LabelScorer = Callable[[RankedDocs], float]


def _ndcg(labels: Mapping[str, int], cutoff: int | None) -> LabelScorer:
    """nDCG = sum of label / log2(rank + 1), over that of the labels in descending order; labels below 0 count as 0.

    Source: Järvelin and Kekäläinen, TOIS 2002, in trec_eval's form (`ndcg`, `ndcg_cut`).
    """
    gains = {doc_id: label for doc_id, label in labels.items() if label > 0}
    best = sorted(gains.values(), reverse=True)[:cutoff]
    ideal = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(best, 1))

    def score(ranked: RankedDocs) -> float:
        if not ideal:
            return 0.0
        top = ranked.within(cutoff)
        total = 0.0
        for rank, gain in zip(ranked.ranks[:top], map(gains.get, ranked.judged[:top]), strict=True):
            if gain is not None:
                total += gain / math.log2(rank + 1)
        return total / ideal

    return score


def _average_precision(relevant: Set[str], cutoff: int | None) -> LabelScorer:
    """AP = sum over the ranks of relevant documents of the precision there, over the number of relevant documents."""

    def score(ranked: RankedDocs) -> float:
        total = 0.0
        for found, rank in enumerate(ranked.ranks_of(relevant, cutoff), 1):
            total += found / rank
        return total / len(relevant) if relevant else 0.0

    return score


def _reciprocal_rank(relevant: Set[str], cutoff: int | None) -> LabelScorer:
    """RR = 1 / rank of the first relevant document; 0 when there is none (within the cutoff)."""

    def score(ranked: RankedDocs) -> float:
        first = next(compress(ranked.ranks, map(relevant.__contains__, ranked.judged)), None)
        return 0.0 if first is None or (cutoff is not None and first > cutoff) else 1 / first

    return score


def _found(relevant: Set[str], cutoff: int, ranked: RankedDocs) -> int:
    return len(ranked.ranks_of(relevant, cutoff))


def _precision(relevant: Set[str], cutoff: int) -> LabelScorer:
    """P@k = relevant documents among the first k, over k (also when the ranking is shorter)."""
    return lambda ranked: _found(relevant, cutoff, ranked) / cutoff


def _recall(relevant: Set[str], cutoff: int) -> LabelScorer:
    """R@k = relevant documents among the first k, over the relevant documents; 0 when there are none."""
    return lambda ranked: _found(relevant, cutoff, ranked) / len(relevant) if relevant else 0.0


def _success(relevant: Set[str], cutoff: int) -> LabelScorer:
    """Success@k = 1 when a relevant document is among the first k, else 0."""
    return lambda ranked: float(_found(relevant, cutoff, ranked) > 0)


def label_scorer(measure: Measure, labels: Mapping[str, int]) -> LabelScorer | None:
    """The scorer of one query for a standard measure, or None where ir_measures has to compute it.

    Args:
        measure: a measure of ir_measures.
        labels: doc_id -> relevance label of the query.

    Returns:
        a function from a ranking to the value.
    """
    cutoff = measure.params.get("cutoff")
    given = {name for name, value in measure.params.items() if value != measure.SUPPORTED_PARAMS[name].default}
    name = measure.NAME
    if name == "nDCG" and given <= {"cutoff"}:
        return _ndcg(labels, cutoff)
    if name not in ("AP", "RR", "P", "R", "Success") or not given <= {"cutoff", "rel"}:
        return None
    rel = measure["rel"]
    relevant = frozenset(doc_id for doc_id, label in labels.items() if label >= rel)
    if name == "AP":
        return _average_precision(relevant, cutoff)
    if name == "RR":
        return _reciprocal_rank(relevant, cutoff)
    if cutoff is None:
        return None
    return {"P": _precision, "R": _recall, "Success": _success}[name](relevant, cutoff)
