"""The common measures over relevance labels, as trec_eval, gdeval and cwl_eval define them, up to any label."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from itertools import compress

from ir_measures.measures.base import Measure

from rubric_measures.measures.measure import RankedDocs

LabelScorer = Callable[[RankedDocs], float]


def _ndcg(labels: Mapping[str, float], ideal_labels: Mapping[str, float], cutoff: int | None, exp: bool) -> LabelScorer:
    """nDCG = sum of gain / log2(rank + 1), over that of the labels in descending order; labels below 0 count as 0.

    The gain is the label, or 2^label - 1 where it is exponential.

    Source: Järvelin and Kekäläinen, TOIS 2002, in trec_eval's form (`ndcg`, `ndcg_cut`); Burges et al., ICML 2005.
    """
    gains = {doc_id: 2.0**label - 1 if exp else label for doc_id, label in labels.items() if label > 0}
    best = sorted((label for label in ideal_labels.values() if label > 0), reverse=True)[:cutoff]
    ideal = sum((2.0**label - 1 if exp else label) / math.log2(rank + 1) for rank, label in enumerate(best, 1))

    def score(ranked: RankedDocs) -> float:
        if not gains:
            return 0.0
        top = ranked.within(cutoff)
        total = 0.0
        for rank, gain in zip(ranked.ranks[:top], map(gains.get, ranked.judged[:top]), strict=True):
            if gain is not None:
                total += gain / math.log2(rank + 1)
        return _over(total, ideal)

    return score


def _over(value: float, best: float) -> float:
    """A value over the best one; where that is 0, any value is the best."""
    return value / best if best else float(value > 0)


def _err(labels: Mapping[str, float], cutoff: int | None, highest: int) -> LabelScorer:
    """ERR = sum over ranks of R / rank times the product of (1 - R) above, with R = (2^label - 1) / 2^highest.

    Labels below 0 count as 0. Source: Chapelle et al., CIKM 2009; gdeval has the highest label 4 always.
    """
    stops = {doc_id: (2.0**label - 1) / 2.0**highest for doc_id, label in labels.items() if label > 0}

    def score(ranked: RankedDocs) -> float:
        top = ranked.within(cutoff)
        total, goes_on = 0.0, 1.0
        for rank, stop in zip(ranked.ranks[:top], map(stops.get, ranked.judged[:top]), strict=True):
            if stop is not None:
                total += goes_on * stop / rank
                goes_on *= 1 - stop
        return total

    return score


def _rank_biased_precision(gains: Mapping[str, float], cutoff: int | None, persistence: float) -> LabelScorer:
    """RBP = (1 - p) sum of gain * p^(rank - 1), with gains in [0, 1].

    Source: Moffat and Zobel, TOIS 2008.
    """

    def score(ranked: RankedDocs) -> float:
        top = ranked.within(cutoff)
        placed = zip(ranked.ranks[:top], ranked.judged[:top], strict=True)
        return (1 - persistence) * sum(gains.get(doc_id, 0.0) * persistence ** (rank - 1) for rank, doc_id in placed)

    return score


def _average_precision(relevant: Set[str], number: int, cutoff: int | None) -> LabelScorer:
    """AP = sum over the ranks of relevant documents of the precision there, over the number of relevant documents."""

    def found_of(ranked: RankedDocs) -> float:
        total = 0.0
        for found, rank in enumerate(ranked.ranks_of(relevant, cutoff), 1):
            total += found / rank
        return total

    # Where grades failed, the lowest that they may be seldom makes other documents relevant.
    key = "AP", relevant, cutoff
    return lambda ranked: _over(ranked.kept(key, lambda: found_of(ranked)), number)


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


def _recall(relevant: Set[str], number: int, cutoff: int) -> LabelScorer:
    """R@k = relevant documents among the first k, over the number of relevant documents; 0 when there are none."""
    return lambda ranked: _over(_found(relevant, cutoff, ranked), number)


def _success(relevant: Set[str], cutoff: int) -> LabelScorer:
    """Success@k = 1 when a relevant document is among the first k, else 0."""
    return lambda ranked: float(_found(relevant, cutoff, ranked) > 0)


def label_scorer(
    measure: Measure,
    labels: Mapping[str, float],
    highest: int | None = None,
    ideal_labels: Mapping[str, float] | None = None,
) -> LabelScorer | None:
    """The scorer of one query for a standard measure, or None where ir_measures has to compute it.

    Args:
        measure: a measure of ir_measures.
        labels: doc_id -> relevance label of the query.
        highest: the highest label of their scale, where it is known: ERR and graded RBP are normalised by it.
        ideal_labels: what measures that are normalised by the best ranking are normalised by; the labels by default.

    Returns:
        a function from a ranking to the value.
    """
    cutoff = measure.params.get("cutoff")
    ideal = labels if ideal_labels is None else ideal_labels
    given = {name for name, value in measure.params.items() if value != measure.SUPPORTED_PARAMS[name].default}
    name = measure.NAME
    if name == "nDCG" and given <= {"cutoff", "dcg"}:
        return _ndcg(labels, ideal, cutoff, measure["dcg"] == "exp-log2")
    if name == "ERR" and highest is not None:
        return _err(labels, cutoff, highest)
    if name == "RBP" and (highest is not None or "rel" in given):
        if "rel" in given:
            gains = {doc_id: 1.0 for doc_id, label in labels.items() if label >= measure["rel"]}
        else:
            gains = {doc_id: label / (highest or 1) for doc_id, label in labels.items() if label > 0}
        return _rank_biased_precision(gains, cutoff, measure["p"])
    if name not in ("AP", "RR", "P", "R", "Success") or not given <= {"cutoff", "rel"}:
        return None
    rel = measure["rel"]
    relevant = frozenset([doc_id for doc_id, label in labels.items() if label >= rel])
    number = len(relevant) if ideal is labels else len([label for label in ideal.values() if label >= rel])
    if name == "AP":
        return _average_precision(relevant, number, cutoff)
    if name == "RR":
        return _reciprocal_rank(relevant, cutoff)
    if cutoff is None:
        return None
    if name == "R":
        return _recall(relevant, number, cutoff)
    return {"P": _precision, "Success": _success}[name](relevant, cutoff)
