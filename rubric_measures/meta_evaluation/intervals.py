"""Bootstrap intervals of rank correlations: over queries where both sides have scores for each, else over runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.meta_evaluation._bootstrap import (
    PIECE,
    USUAL_DRAWS,
    Draws,
    FloatArray,
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
    "Interval",
    "QueryTau",
    "correlate_over_queries",
    "correlate_over_runs",
    "drawn_over_queries",
    "pooled_tau",
    "query_tau",
]


@dataclass(frozen=True, slots=True)
class CoefficientInterval:
    """A coefficient with its bootstrap interval.

    Attributes:
        coefficient: the point estimate, with p-value or reason.
        interval: None when no interval was asked for.
        unit: what was resampled: `query` or `run`.
    """

    coefficient: Coefficient
    interval: Interval | None
    unit: str


@dataclass(frozen=True, slots=True)
class QueryTau:
    """Kendall's τ-b at query level.

    Attributes:
        interval: the value with its interval over queries.
        queries: queries that count.
        undefined: queries left out because all runs are tied there on a side (or a side has no scores).
    """

    interval: Interval
    queries: int
    undefined: int


def _bounds(base: str, runs: int) -> tuple[float, float]:
    if base == "max_rank_drop":
        return (0.0, max(runs - 1.0, 0.0))
    return (0.0, 1.0) if base == "rbo" else (-1.0, 1.0)


def _kendall_in_pieces(x: FloatArray, table: FloatArray, counts: FloatArray, official: FloatArray | None) -> FloatArray:
    """τ-b of every measure in every round: (rounds, measures). `x` are official scores of runs, or per-query ones."""
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
    """The rounds in which a run has no score, because none of its queries was drawn; they do not count."""
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


def correlate_over_queries(
    official: ArrayLike,
    scores: ArrayLike,
    name: str = "kendall",
    draws: Draws = USUAL_DRAWS,
) -> list[CoefficientInterval]:
    """One coefficient of the official leaderboard with many measures, with symmetric bootstrap intervals over queries.

    The official side is either a score of each run (then only the measures are resampled), or a table of queries × runs
    (then both are resampled with the same queries). A run's score is its mean over the drawn queries. The interval is a
    `symmetric_interval`; its docstring says why it is not BCa. A top-k variant keeps the runs that are in the official
    top k of the full data.

    Args:
        official: (runs,) or (queries, runs), higher is better; NaN in a table is a missing score.
        scores: (queries, runs) or (queries, runs, measures).
        name: the coefficient.
        draws: rounds (0 for no interval), seed and level.

    Returns:
        one result a measure.

    Raises:
        InputError: a run has no score at all.
    """
    points, replicates = drawn_over_queries(official, scores, name, draws)
    if draws.rounds == 0:
        return [CoefficientInterval(point, None, "query") for point in points]
    queries = len(np.asarray(scores))
    result = []
    for measure, point in enumerate(points):
        if point.value is None:
            interval = Interval(None, None, None, draws.level, queries, 0, point.reason)
        elif queries < 2:
            interval = Interval(
                point.value, None, None, draws.level, queries, 0, "one query only; an interval needs two"
            )
        else:
            bounds = _bounds(parse_coefficient(point.name)[0], point.runs)
            interval = symmetric_interval(point.value, replicates[:, measure], draws.level, queries, bounds)
        result.append(CoefficientInterval(point, interval, "query"))
    return result


def drawn_over_queries(
    official: ArrayLike, scores: ArrayLike, name: str, draws: Draws
) -> tuple[list[Coefficient], FloatArray]:
    """The coefficient of each measure, and its value in every round; see `correlate_over_queries`.

    Returns:
        a coefficient a measure, and (rounds, measures), all of the same resampled queries; no round where there are
        fewer than two queries.

    Raises:
        InputError: a run has no score at all.
    """
    base, k = parse_coefficient(name)
    x, table = np.asarray(official, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    table = table[:, :, None] if table.ndim == 2 else table
    queries = table.shape[0]
    ones = np.ones((1, queries))
    x_mean = x if x.ndim == 1 else weighted_means(ones, x)[0]
    if k is not None and len(x_mean):
        chosen = top_k(x_mean, k)
        x, x_mean, table = x[..., chosen], x_mean[chosen], table[:, chosen]
    means = weighted_means(ones, table.reshape(queries, -1))[0].reshape(table.shape[1:])
    points = [replace(correlate(x_mean, means[:, measure], base), name=name) for measure in range(table.shape[2])]
    fixed = x if x.ndim == 1 else None
    if draws.rounds == 0 or queries < 2:
        return points, np.empty((0, len(points)))
    return points, _replicates(base, x, table, bootstrap_counts(queries, draws.rounds, draws.seed), fixed)


def correlate_over_runs(
    official: Sequence[float] | FloatArray,
    scores: Sequence[float] | FloatArray,
    name: str = "kendall",
    draws: Draws = USUAL_DRAWS,
) -> CoefficientInterval:
    """One coefficient of two leaderboards that have no per-query scores, with a BCa interval over runs.

    Pairs (official score, score) are drawn with replacement. Two copies of a run are tied on both sides. τ-b, τ_AP,b, ρ
    and r can have ties. τ_AP has no such interval, because its official ranking must have none; nor has RBO, which
    takes a tie for an unknown order: two equal leaderboards with copies are no longer at 1.

    Args:
        official: a score a run, higher is better; pass runs in order of their ids for an interval that does not
            depend on the order.
        scores: the other leaderboard's.
        name: the coefficient.
        draws: rounds (0 for no interval), seed and level.
    """
    base, k = parse_coefficient(name)
    point = correlate(official, scores, name)
    x, y = np.asarray(official, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if draws.rounds == 0:
        return CoefficientInterval(point, None, "run")
    if point.value is None:
        return CoefficientInterval(point, Interval(None, None, None, draws.level, len(x), 0, point.reason), "run")
    if k is not None:
        chosen = top_k(x, k)
        x, y = x[chosen], y[chosen]
    runs = len(x)
    reason = _NO_COPIES.get(base, f"{runs} runs only; an interval needs three" if runs < 3 else "")
    if reason:
        return CoefficientInterval(point, Interval(point.value, None, None, draws.level, runs, 0, reason), "run")
    batch = COEFFICIENTS[base]
    counts = bootstrap_counts(runs, draws.rounds, draws.seed).astype(np.intp)
    drawn = np.repeat(np.tile(np.arange(runs), draws.rounds), counts.ravel()).reshape(-1, runs)
    others = np.array([[j for j in range(runs) if j != i] for i in range(runs)])
    interval = bca_interval(point.value, batch(x[drawn], y[drawn]), batch(x[others], y[others]), draws.level, runs)
    return CoefficientInterval(point, interval, "run")


# Coefficients whose value changes where a run is drawn twice.
_NO_COPIES = {
    "tau_ap": "runs drawn twice tie in the official ranking; use tau_ap_b",
    "rbo": "runs drawn twice are ties, an order that it does not know; tau_ap_b has an interval",
}


def query_tau(
    official: ArrayLike,
    scores: ArrayLike,
    draws: Draws = USUAL_DRAWS,
) -> QueryTau:
    """Kendall's τ-b of the runs per query, averaged over queries.

    Runs without a score on either side (NaN) are left out of that query. Queries where τ is undefined take no part and
    are counted.

    Args:
        official: (queries, runs), higher is better.
        scores: (queries, runs).
        draws: rounds (0 for no interval), seed and level.

    Source: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), the τ "averaged over topics" of its score figures.
    """
    x, y = np.asarray(official, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    taus = np.full(len(x), np.nan)
    for query in range(len(x)):
        present = ~(np.isnan(x[query]) | np.isnan(y[query]))
        taus[query] = kendall_batch(x[query][None, present], y[query][None, present])[0]
    undefined = int(np.isnan(taus).sum())
    queries = len(taus) - undefined
    defined = taus[~np.isnan(taus)]
    if not queries:
        nothing = Interval(None, None, None, draws.level, 0, 0, "τ is undefined on every query")
        return QueryTau(nothing, 0, undefined)
    if draws.rounds == 0:
        return QueryTau(Interval(float(defined.mean()), None, None, draws.level, queries), queries, undefined)
    interval = bootstrap_statistic(
        lambda counts: weighted_means(counts, defined[:, None])[:, 0],
        queries,
        draws,
    )
    return QueryTau(interval, queries, undefined)


def pooled_tau(
    official: ArrayLike,
    scores: ArrayLike,
    draws: Draws = USUAL_DRAWS,
) -> QueryTau:
    """Kendall's τ-b over all query/run pairs, with an interval over queries.

    Every bootstrap round is a quadratic form: with C_ts the concordant minus discordant pairs between the runs of
    queries t and s, and counts c, τ_b = cᵀCc / sqrt(cᵀX c · cᵀY c), X and Y the pairs that are untied on each side. So
    the pairs are compared once, not once a round.

    Args:
        official: (queries, runs), higher is better; NaN is missing and the query/run pair left out.
        scores: (queries, runs).
        draws: rounds (0 for no interval), seed and level.

    Source: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), the τ over all topic/run pairs.
    """
    x, y = np.asarray(official, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    queries = len(x)
    missing = np.isnan(x) | np.isnan(y)
    both, untied_x, untied_y = (np.zeros((queries, queries)) for _ in range(3))
    for first in range(queries):
        for second in range(first, queries):
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
    if draws.rounds == 0 and queries:
        value = float(statistic(np.ones((1, queries)))[0])
        reason = "all pairs are tied on a side" if np.isnan(value) else ""
        return QueryTau(
            Interval(None if reason else value, None, None, draws.level, counted, 0, reason), counted, queries - counted
        )
    interval = bootstrap_statistic(
        statistic, queries, replace(draws, rounds=max(draws.rounds, 1)), method="symmetric", bounds=(-1.0, 1.0)
    )
    return QueryTau(interval, counted, queries - counted)
