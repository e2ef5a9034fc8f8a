"""The common measures over relevance labels, as trec_eval defines them; the rest is delegated to ir_measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from ir_measures.measures.base import _NOT_PROVIDED, Measure

__all__ = ["LabelScorer", "label_scorer"]

LabelScorer = Callable[[Sequence[str]], float]


def _ndcg(labels: Mapping[str, int], cutoff: int | None) -> LabelScorer:
    """nDCG = sum of label / log2(rank + 1), over that of the labels in descending order; labels below 0 count as 0.

    Source: Järvelin and Kekäläinen, TOIS 2002, in trec_eval's form (`ndcg`, `ndcg_cut`).
    """
    gains = {doc_id: label for doc_id, label in labels.items() if label > 0}
    ideal_gains = sorted(gains.values(), reverse=True)[:cutoff]
    ideal = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(ideal_gains, 1))

    def score(ranking: Sequence[str]) -> float:
        if not ideal:
            return 0.0
        total = 0.0
        for rank, doc_id in enumerate(ranking[:cutoff], 1):
            gain = gains.get(doc_id)
            if gain is not None:
                total += gain / math.log2(rank + 1)
        return total / ideal

    return score


def _average_precision(labels: Mapping[str, int], cutoff: int | None, rel: int) -> LabelScorer:
    """AP = sum over the ranks of relevant passages of precision there, over the number of relevant passages."""
    relevant = {doc_id for doc_id, label in labels.items() if label >= rel}

    def score(ranking: Sequence[str]) -> float:
        found, total = 0, 0.0
        for rank, doc_id in enumerate(ranking[:cutoff], 1):
            if doc_id in relevant:
                found += 1
                total += found / rank
        return total / len(relevant) if relevant else 0.0

    return score


def _reciprocal_rank(labels: Mapping[str, int], cutoff: int | None, rel: int) -> LabelScorer:
    """RR = 1 / rank of the first relevant passage; 0 when there is none (within the cutoff)."""
    relevant = {doc_id for doc_id, label in labels.items() if label >= rel}

    def score(ranking: Sequence[str]) -> float:
        return next((1 / rank for rank, doc_id in enumerate(ranking[:cutoff], 1) if doc_id in relevant), 0.0)

    return score


def _precision(labels: Mapping[str, int], cutoff: int, rel: int) -> LabelScorer:
    """P@k = relevant passages among the first k, over k (also when the ranking is shorter)."""
    relevant = {doc_id for doc_id, label in labels.items() if label >= rel}
    return lambda ranking: sum(doc_id in relevant for doc_id in ranking[:cutoff]) / cutoff


def _recall(labels: Mapping[str, int], cutoff: int, rel: int) -> LabelScorer:
    """R@k = relevant passages among the first k, over the relevant passages; 0 when there are none."""
    relevant = {doc_id for doc_id, label in labels.items() if label >= rel}
    if not relevant:
        return lambda ranking: 0.0
    return lambda ranking: sum(doc_id in relevant for doc_id in ranking[:cutoff]) / len(relevant)


def _success(labels: Mapping[str, int], cutoff: int, rel: int) -> LabelScorer:
    """Success@k = 1 when a relevant passage is among the first k, else 0."""
    relevant = {doc_id for doc_id, label in labels.items() if label >= rel}
    return lambda ranking: float(any(doc_id in relevant for doc_id in ranking[:cutoff]))


def label_scorer(measure: Measure, labels: Mapping[str, int]) -> LabelScorer | None:
    """The scorer of one query for a standard measure, or None where ir_measures has to compute it.

    Args:
        measure: a measure of ir_measures.
        labels: doc_id -> relevance label of the query.

    Returns:
        a function from the ranking (doc_ids, best first) to the value.
    """
    cutoff = measure.params.get("cutoff")
    given = {name for name, value in measure.params.items() if value != _default(measure, name)}
    name = measure.NAME
    if name == "nDCG" and given <= {"cutoff"}:
        return _ndcg(labels, cutoff)
    if given <= {"cutoff", "rel"}:
        rel = measure["rel"] if "rel" in measure.SUPPORTED_PARAMS else 1
        if name == "AP":
            return _average_precision(labels, cutoff, rel)
        if name == "RR":
            return _reciprocal_rank(labels, cutoff, rel)
        if cutoff is not None:
            if name == "P":
                return _precision(labels, cutoff, rel)
            if name == "R":
                return _recall(labels, cutoff, rel)
            if name == "Success":
                return _success(labels, cutoff, rel)
    return None


def _default(measure: Measure, name: str) -> object:
    return measure.SUPPORTED_PARAMS[name].default if name in measure.SUPPORTED_PARAMS else _NOT_PROVIDED
