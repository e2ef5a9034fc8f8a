"""Bootstrap intervals of rank correlations: over topics where both sides have per-topic scores, over runs otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.base.errors import InputError
from rubric_measures.meta_evaluation._batches import PIECE, FloatArray
from rubric_measures.meta_evaluation._bootstrap import (
    USUAL_DRAWS,
    Draws,
    Interval,
    bca_interval,
    bootstrap_counts,
    bootstrap_statistic,
    symmetric_interval,
    weighted_means,
)
from rubric_measures.meta_evaluation.correlation import (
    COEFFICIENTS,
    Coefficient,
    CoefficientName,
    correlate,
    kendall_batch,
    kendall_from_signs,
    pair_signs,
    parse_coefficient,
    top_k,
)

__all__ = [
    "CoefficientInterval",
    "Draws",
    "TopicTau",
    "correlate_over_runs",
    "correlate_over_topics",
    "pooled_tau",
    "topic_tau",
]


@dataclass(frozen=True, slots=True)
class CoefficientInterval:
    """A coefficient with its bootstrap interval.

    Attributes:
        coefficient: the point estimate, with p-value or reason.
        interval: None when no interval was asked for.
        unit: what was resampled: `topic` or `run`.
    """

    coefficient: Coefficient
    interval: Interval | None
    unit: str


@dataclass(frozen=True, slots=True)
class TopicTau:
    """Kendall's τ-b at topic level.

    Attributes:
        interval: the value with its interval over topics.
        topics: topics that count.
        undefined: topics left out because all runs are tied there on a side (or a side has no scores).
    """

    interval: Interval
    topics: int
    undefined: int


def _bounds(base: str, runs: int) -> tuple[float, float]:
    if base == "max_rank_drop":
        return (0.0, max(runs - 1.0, 0.0))
    return (0.0, 1.0) if base == "rbo" else (-1.0, 1.0)


def _kendall_in_pieces(x: FloatArray, table: FloatArray, counts: FloatArray, official: FloatArray | None) -> FloatArray:
    """τ-b of every measure in every round: (rounds, measures). `x` are official scores of runs, or per-topic ones."""
    runs, measures = table.shape[1], table.shape[2]
    rounds = len(counts)
    result = np.empty((rounds, measures))
    step = max(1, PIECE // max(1, runs * runs // 2))
    flat = table.reshape(table.shape[0], runs * measures)
    for start in range(0, rounds, step):
        piece = slice(start, min(start + step, rounds))
        means = weighted_means(counts[piece], flat).reshape(-1, runs, measures)
        reference = (
            np.broadcast_to(official, (len(means), runs)) if official is not None else weighted_means(counts[piece], x)
        )
        signs = pair_signs(reference)
        for measure in range(measures):
            taus = kendall_from_signs(signs, pair_signs(means[:, :, measure]))
            result[piece, measure] = np.where(_lacks_a_run(reference, means[:, :, measure]), np.nan, taus)
    return result


def _lacks_a_run(x: FloatArray, y: FloatArray) -> NDArray[np.bool_]:
    """The rounds in which a run has no score, because every topic that it has was left out: they say nothing."""
    lacking: NDArray[np.bool_] = np.isnan(np.concatenate([x, y], axis=1)).any(axis=1)
    return lacking


def _replicates(
    base: str, x: FloatArray, table: FloatArray, counts: FloatArray, official: FloatArray | None
) -> FloatArray:
    runs, measures = table.shape[1], table.shape[2]
    if base == "kendall":
        return _kendall_in_pieces(x, table, counts, official)
    result = np.empty((len(counts), measures))
    reference = np.broadcast_to(official, (len(counts), runs)) if official is not None else weighted_means(counts, x)
    for measure in range(measures):
        means = weighted_means(counts, table[:, :, measure])
        whole = ~_lacks_a_run(reference, means)
        result[whole, measure] = COEFFICIENTS[base](reference[whole], means[whole])
        result[~whole, measure] = np.nan
    return result


def correlate_over_topics(
    official: ArrayLike,
    scores: ArrayLike,
    name: str | CoefficientName = "kendall",
    draws: Draws = USUAL_DRAWS,
) -> list[CoefficientInterval]:
    """One coefficient of the official leaderboard with many measures, with symmetric bootstrap intervals over topics.

    The official side is either a score of each run (then only the measures are resampled, the official ranking is
    given), or a table of topics × runs (then both are resampled with the same topics). A run's score is its mean over
    the drawn topics. The interval is a `symmetric_interval`, which says why it is not BCa. A top-k
    variant keeps the runs that are in the official top k of the full data.

    Args:
        official: (runs,) or (topics, runs), higher is better; NaN in a table is a missing score.
        scores: (topics, runs) or (topics, runs, measures).
        name: the coefficient.
        draws: rounds (0 for no interval), seed and level.

    Returns:
        one result a measure.

    Raises:
        InputError: shapes do not fit, or a run has no score at all.
    """
    wanted = parse_coefficient(name) if isinstance(name, str) else name
    x, table = np.asarray(official, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    table = table[:, :, None] if table.ndim == 2 else table
    if table.ndim != 3 or x.ndim not in (1, 2) or x.shape[-1] != table.shape[1]:
        raise InputError(f"official scores of shape {x.shape} do not fit scores of shape {table.shape}")
    if x.ndim == 2 and x.shape[0] != table.shape[0]:
        raise InputError(f"official scores have {x.shape[0]} topics, the measures {table.shape[0]}")
    topics = table.shape[0]
    ones = np.ones((1, topics))
    x_mean = x if x.ndim == 1 else weighted_means(ones, x)[0]
    if wanted.k is not None and len(x_mean):
        chosen = top_k(x_mean, wanted.k)
        x, x_mean, table = x[..., chosen], x_mean[chosen], table[:, chosen]
    base = CoefficientName(wanted.base)
    means = weighted_means(ones, table.reshape(topics, -1))[0].reshape(table.shape[1:])
    points = [
        replace(correlate(x_mean, means[:, measure], base), name=str(wanted)) for measure in range(table.shape[2])
    ]
    if draws.rounds == 0:
        return [CoefficientInterval(point, None, "topic") for point in points]
    fixed = x if x.ndim == 1 else None
    if topics >= 2:
        replicates = _replicates(wanted.base, x, table, bootstrap_counts(topics, draws.rounds, draws.seed), fixed)
    result = []
    for measure, point in enumerate(points):
        if point.value is None:
            interval = Interval(None, None, None, draws.level, topics, 0, point.reason)
        elif topics < 2:
            interval = Interval(
                point.value, None, None, draws.level, topics, 0, "one topic only; an interval needs two"
            )
        else:
            interval = symmetric_interval(
                point.value, replicates[:, measure], draws.level, topics, _bounds(wanted.base, len(x_mean))
            )
        result.append(CoefficientInterval(point, interval, "topic"))
    return result


def correlate_over_runs(
    official: Sequence[float] | FloatArray,
    scores: Sequence[float] | FloatArray,
    name: str | CoefficientName = "kendall",
    draws: Draws = USUAL_DRAWS,
) -> CoefficientInterval:
    """One coefficient of two leaderboards that have no per-topic scores, with a BCa interval over runs.

    Pairs (official score, score) are drawn with replacement. Two copies of a run are tied on both sides, which τ-b,
    τ_AP,b, ρ and r take; τ_AP has no such interval, because the official ranking must have no ties.

    Args:
        official: a score a run, higher is better; pass runs in order of their ids for an interval that does not
            depend on the order.
        scores: the other leaderboard's.
        name: the coefficient.
        draws: rounds (0 for no interval), seed and level.
    """
    wanted = parse_coefficient(name) if isinstance(name, str) else name
    point = correlate(official, scores, wanted)
    x, y = np.asarray(official, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if draws.rounds == 0:
        return CoefficientInterval(point, None, "run")
    if point.value is None:
        return CoefficientInterval(point, Interval(None, None, None, draws.level, len(x), 0, point.reason), "run")
    if wanted.k is not None:
        chosen = top_k(x, wanted.k)
        x, y = x[chosen], y[chosen]
    runs = len(x)
    if wanted.base == "tau_ap" or runs < 3:
        reason = (
            "runs drawn twice tie in the official ranking; use tau_ap_b"
            if wanted.base == "tau_ap"
            else f"{runs} runs only; an interval needs three"
        )
        return CoefficientInterval(point, Interval(point.value, None, None, draws.level, runs, 0, reason), "run")
    batch = COEFFICIENTS[wanted.base]
    counts = bootstrap_counts(runs, draws.rounds, draws.seed).astype(np.intp)
    drawn = np.repeat(np.tile(np.arange(runs), draws.rounds), counts.ravel()).reshape(-1, runs)
    others = np.array([[j for j in range(runs) if j != i] for i in range(runs)])
    interval = bca_interval(point.value, batch(x[drawn], y[drawn]), batch(x[others], y[others]), draws.level, runs)
    return CoefficientInterval(point, interval, "run")


def _two_tables(official: ArrayLike, scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, y = np.asarray(official, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if x.ndim != 2 or x.shape != y.shape:
        raise InputError(f"per-topic scores must be two tables of topics × runs, not of shapes {x.shape} and {y.shape}")
    return x, y


def topic_tau(
    official: ArrayLike,
    scores: ArrayLike,
    draws: Draws = USUAL_DRAWS,
) -> TopicTau:
    """Kendall's τ-b of the runs per topic, averaged over topics.

    Runs without a score on either side (NaN) are left out of that topic. Topics where τ is undefined take no part and
    are counted.

    Args:
        official: (topics, runs), higher is better.
        scores: (topics, runs).
        draws: rounds (0 for no interval), seed and level.

    Source: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), the τ "averaged over topics" of its score figures.
    """
    x, y = _two_tables(official, scores)
    taus = np.full(len(x), np.nan)
    for topic in range(len(x)):
        present = ~(np.isnan(x[topic]) | np.isnan(y[topic]))
        taus[topic] = kendall_batch(x[topic][None, present], y[topic][None, present])[0]
    undefined = int(np.isnan(taus).sum())
    topics = len(taus) - undefined
    defined = taus[~np.isnan(taus)]
    if not topics:
        nothing = Interval(None, None, None, draws.level, 0, 0, "τ is undefined on every topic")
        return TopicTau(nothing, 0, undefined)
    if draws.rounds == 0:
        return TopicTau(Interval(float(defined.mean()), None, None, draws.level, topics), topics, undefined)
    interval = bootstrap_statistic(
        lambda counts: weighted_means(counts, defined[:, None])[:, 0],
        topics,
        draws,
    )
    return TopicTau(interval, topics, undefined)


def pooled_tau(
    official: ArrayLike,
    scores: ArrayLike,
    draws: Draws = USUAL_DRAWS,
) -> TopicTau:
    """Kendall's τ-b over all topic/run pairs, with an interval over topics.

    Every bootstrap round is a quadratic form: with C_ts the concordant minus discordant pairs between the runs of
    topics t and s, and counts c, τ_b = cᵀCc / sqrt(cᵀX c · cᵀY c), X and Y the pairs that are untied on each side. So
    the pairs are compared once, not once a round.

    Args:
        official: (topics, runs), higher is better; NaN is missing and the topic/run pair left out.
        scores: (topics, runs).
        draws: rounds (0 for no interval), seed and level.

    Source: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), the τ over all topic/run pairs.
    """
    x, y = _two_tables(official, scores)
    topics = len(x)
    missing = np.isnan(x) | np.isnan(y)
    both, untied_x, untied_y = (np.zeros((topics, topics)) for _ in range(3))
    for first in range(topics):
        for second in range(first, topics):
            valid = ~(missing[first][:, None] | missing[second][None, :])
            x_signs = np.where(valid, np.sign(x[first][:, None] - x[second][None, :]), 0.0)
            y_signs = np.where(valid, np.sign(y[first][:, None] - y[second][None, :]), 0.0)
            for target, value in (
                (both, (x_signs * y_signs).sum()),
                (untied_x, np.abs(x_signs).sum()),
                (untied_y, np.abs(y_signs).sum()),
            ):
                target[first, second] = target[second, first] = value

    def statistic(counts: FloatArray) -> FloatArray:
        top, left, right = (((counts @ matrix) * counts).sum(axis=1) for matrix in (both, untied_x, untied_y))
        result = np.full(len(counts), np.nan)
        norm = np.sqrt(left * right)
        np.divide(top, norm, out=result, where=norm > 0)
        return result

    counted = int((~missing).any(axis=1).sum())
    if draws.rounds == 0 and topics:
        value = float(statistic(np.ones((1, topics)))[0])
        reason = "all pairs are tied on a side" if np.isnan(value) else ""
        return TopicTau(
            Interval(None if reason else value, None, None, draws.level, counted, 0, reason), counted, topics - counted
        )
    interval = bootstrap_statistic(
        statistic, topics, replace(draws, rounds=max(draws.rounds, 1)), method="symmetric", bounds=(-1.0, 1.0)
    )
    return TopicTau(interval, counted, topics - counted)
