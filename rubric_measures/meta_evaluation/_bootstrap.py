"""The query bootstrap: resampled queries as counts, so that all statistics are one matrix product; BCa intervals.

The unit is the query (for correlations without per-query scores, the run). What is drawn depends only on the seed, the
number of units and the number of rounds, and not on runs, measures or their order; callers sort their queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.base.errors import InputError
from rubric_measures.base.seeds import seeded

FloatArray = NDArray[np.float64]
Method = Literal["bca", "symmetric"]

DEFAULT_ROUNDS = 10_000
DEFAULT_SEED = 42

# Bootstrap means are compared with each other (ranks, ties); later decimals hold only the order of summation.
_DECIMALS = 12

# Arrays of (samples, pairs of runs) are cut into pieces of about this many numbers, which stay in the processor's
# cache: five times faster than pieces of four millions.
PIECE = 300_000


def pieces(samples: int, width: int) -> list[slice]:
    """Slices of the samples, each of about `PIECE` numbers when a sample has `width` of them."""
    step = max(1, PIECE // max(1, width))
    return [slice(start, min(start + step, samples)) for start in range(0, samples, step)]


def score_table(columns: Sequence[Mapping[str, float | None]]) -> tuple[FloatArray, list[str]]:
    """(queries, columns) scores, NaN where one is missing, and the queries, sorted."""
    queries = sorted({query for column in columns for query in column})
    table = np.array([[column.get(query) for column in columns] for query in queries], dtype=np.float64)
    return table.reshape(len(queries), len(columns)), queries


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """numerator / denominator, NaN where the denominator is 0."""
    result = np.full(np.broadcast(numerator, denominator).shape, np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


@dataclass(frozen=True, slots=True)
class Draws:
    """How a bootstrap draws.

    Attributes:
        rounds: the number of samples; 0 for no intervals, where these may be left out.
        seed: see `bootstrap_counts`.
        level: the nominal coverage of intervals, in (0, 1).
    """

    rounds: int = DEFAULT_ROUNDS
    seed: int = DEFAULT_SEED
    level: float = 0.95


USUAL_DRAWS = Draws()


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of one statistic.

    Attributes:
        estimate: the statistic of the data; None where it is undefined.
        low: the lower end; None where no interval can be given.
        high: the upper end; None likewise.
        level: the nominal coverage, such as 0.95.
        units: how many units (queries or runs) were resampled.
        undefined: in how many rounds the statistic was undefined; these rounds are left out.
        reason: why there is no interval; empty otherwise.
        method: `bca` or `symmetric`.
    """

    estimate: float | None
    low: float | None
    high: float | None
    level: float = 0.95
    units: int = 0
    undefined: int = 0
    reason: str = ""
    method: Method = "bca"


def bootstrap_counts(units: int, rounds: int = DEFAULT_ROUNDS, seed: int = DEFAULT_SEED) -> FloatArray:
    """How often each unit is drawn in each round: (rounds, units); each row sums to the number of units.

    Numpy's PCG64 generator draws them.

    Raises:
        InputError: units or rounds is below 1.

    >>> bootstrap_counts(4, 3, seed=1).sum(axis=1).tolist()
    [4.0, 4.0, 4.0]
    """
    if units < 1 or rounds < 1:
        raise InputError(f"a bootstrap needs at least one unit and one round, not {units} and {rounds}")
    drawn = seeded(seed).multinomial(units, np.full(units, 1.0 / units), size=rounds)
    counts: FloatArray = drawn.astype(np.float64)
    return counts


def half_counts(units: int, splits: int, seed: int = DEFAULT_SEED) -> tuple[FloatArray, FloatArray]:
    """Two random halves of the units in each split, as counts: (splits, units) each; of an odd number one is left out.

    >>> first, second = half_counts(5, 3, seed=1)
    >>> (first + second).sum(axis=1).tolist()
    [4.0, 4.0, 4.0]
    """
    half = units // 2
    order = np.argsort(seeded(seed).random((splits, units)), axis=1)
    first, second = np.zeros((splits, units)), np.zeros((splits, units))
    np.put_along_axis(first, order[:, :half], 1.0, axis=1)
    np.put_along_axis(second, order[:, half : 2 * half], 1.0, axis=1)
    return first, second


def jackknife_counts(units: int) -> FloatArray:
    """The leave-one-out samples as counts: ones with a zero diagonal, (units, units)."""
    counts: FloatArray = 1.0 - np.eye(units)
    return counts


def weighted_means(counts: FloatArray, scores: ArrayLike) -> FloatArray:
    """The mean of every column under every row of counts; NaN scores are missing and take no part.

    mean_b,j = Σ_t c_bt s_tj / Σ_t c_bt [s_tj present]. Rounded to 12 decimals, so that equal means stay equal.
    Counts are (rounds, queries), scores (queries, columns); the result is (rounds, columns), NaN where no drawn query
    has a score.
    """
    values = np.asarray(scores, dtype=np.float64)
    present = ~np.isnan(values)
    if present.all():
        sizes = counts.sum(axis=1, keepdims=True)
        totals = counts @ values
    else:
        sizes = counts @ present.astype(np.float64)
        totals = counts @ np.where(present, values, 0.0)
    means = np.full(totals.shape, np.nan)
    np.divide(totals, sizes, out=means, where=sizes > 0)
    return np.round(means, _DECIMALS, out=means)


def bca_intervals(
    estimates: ArrayLike, replicates: ArrayLike, jackknife: ArrayLike, level: float = 0.95
) -> tuple[FloatArray, FloatArray, NDArray[np.int_]]:
    """Bias-corrected and accelerated bootstrap intervals of many statistics at once.

    With z_0 = Φ⁻¹(share of replicates below the estimate, half of those equal to it), a = Σ d³ / (6 (Σ d²)^1.5), d the
    mean of the leave-one-out values minus each of them: the ends are the replicates' quantiles at
    Φ(z_0 + (z_0 + z) / (1 − a (z_0 + z))) for z = Φ⁻¹((1 ∓ level) / 2), linearly interpolated.

    Replicates are (rounds, columns), leave-one-out values (units, columns); NaN ones are left out. The result is low,
    high (NaN where the estimate, or every replicate, is NaN) and the number of NaN replicates, (columns,) each.

    Raises:
        InputError: the level is not between 0 and 1.

    Source: Efron, Better Bootstrap Confidence Intervals (JASA 1987).
    """
    from scipy.special import ndtr, ndtri

    _check_level(level)
    theta = np.asarray(estimates, dtype=np.float64)
    drawn = np.sort(np.asarray(replicates, dtype=np.float64), axis=0)
    left_out = np.asarray(jackknife, dtype=np.float64)
    undefined = np.isnan(drawn).sum(axis=0)
    defined = len(drawn) - undefined
    usable = (defined > 0) & ~np.isnan(theta)
    sizes = np.maximum(defined, 1)
    below = (drawn < theta).sum(axis=0) + 0.5 * (drawn == theta).sum(axis=0)
    # All replicates on one side would put z_0 at infinity: half a replicate is the most that can be said.
    share = np.clip(below / sizes, 0.5 / sizes, 1.0 - 0.5 / sizes)
    bias = ndtri(share)
    acceleration = _acceleration(left_out)
    ends = []
    for tail in ((1.0 - level) / 2.0, (1.0 + level) / 2.0):
        shifted = bias + ndtri(tail)
        alpha = ndtr(bias + shifted / (1.0 - acceleration * shifted))
        ends.append(np.where(usable, _quantiles(drawn, alpha, defined), np.nan))
    return ends[0], ends[1], undefined


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise InputError(f"an interval's level is between 0 and 1, not {level}")


def _acceleration(left_out: FloatArray) -> FloatArray:
    present = ~np.isnan(left_out)
    sizes = np.maximum(present.sum(axis=0), 1)
    centre = np.where(present, left_out, 0.0).sum(axis=0) / sizes
    gaps = np.where(present, centre - left_out, 0.0)
    spread = np.sqrt((gaps**2).sum(axis=0))
    result = np.zeros(len(spread))
    # Skewness is scale-free: dividing first keeps the cubes of tiny scores from underflowing.
    real = spread > 1e-12 * np.maximum(1.0, np.abs(centre))
    result[real] = ((gaps[:, real] / spread[real]) ** 3).sum(axis=0) / 6.0
    return result


def _quantiles(ordered: FloatArray, alpha: FloatArray, defined: NDArray[np.int_]) -> FloatArray:
    """Quantile alpha_j of column j, whose first defined_j rows are its sorted values; linear interpolation."""
    place = alpha * np.maximum(defined - 1, 0)
    lower = np.floor(place).astype(np.intp)
    upper = np.minimum(lower + 1, np.maximum(defined - 1, 0))
    columns = np.arange(ordered.shape[1])
    below, above = ordered[lower, columns], ordered[upper, columns]
    quantile: FloatArray = below + (place - lower) * (above - below)
    return quantile


def bca_interval(
    estimate: float, replicates: ArrayLike, jackknife: ArrayLike, level: float = 0.95, units: int = 0
) -> Interval:
    """The BCa interval of one statistic; see `bca_intervals`.

    >>> bca_interval(0.5, [0.5, 0.5, 0.5], [0.5, 0.5], units=2)
    Interval(estimate=0.5, low=0.5, high=0.5, level=0.95, units=2, undefined=0, reason='', method='bca')
    """
    column = np.asarray(replicates, dtype=np.float64)[:, None]
    (interval,) = bca_columns([estimate], column, np.asarray(jackknife, dtype=np.float64)[:, None], level, units)
    return interval


def bca_columns(
    estimates: Sequence[float], replicates: FloatArray, jackknife: FloatArray, level: float = 0.95, units: int = 0
) -> list[Interval]:
    """The BCa intervals of many statistics, one a column; see `bca_intervals`."""
    ends = zip(estimates, *bca_intervals(estimates, replicates, jackknife, level), strict=True)
    result = []
    for estimate, low, high, undefined in ends:
        missing = int(undefined)
        if np.isnan(estimate):
            result.append(Interval(None, None, None, level, units, missing, "the statistic is undefined"))
        elif np.isnan(low):
            result.append(
                Interval(float(estimate), None, None, level, units, missing, "undefined in every bootstrap round")
            )
        else:
            result.append(Interval(float(estimate), float(low), float(high), level, units, missing))
    return result


def symmetric_interval(
    estimate: float,
    replicates: ArrayLike,
    level: float = 0.95,
    units: int = 0,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> Interval:
    """The symmetric bootstrap interval of one statistic: θ ± q, q the level-quantile of |θ* − θ|, inside the bounds.

    Resampling queries adds noise to a leaderboard, and noise lowers every rank correlation: nearly all replicates lie
    below the estimate. A percentile interval then misses the value that more queries would give. BCa has too few
    replicates above the estimate to correct with, and may miss even the estimate. A reflected interval shrinks to a
    point where the estimate is 1. The symmetric interval assumes that the truth is as far from the estimate as
    replicates are, on either side. Its coverage is in benchmarks/README.md.

    Raises:
        InputError: the level is not between 0 and 1.

    Source: Hall, On Symmetric Bootstrap Confidence Intervals (JRSS B 1988).

    >>> symmetric_interval(0.5, [0.25, 0.5, 0.75], level=0.5).low
    0.25
    """
    _check_level(level)
    drawn = np.asarray(replicates, dtype=np.float64)
    defined = drawn[~np.isnan(drawn)]
    missing = len(drawn) - len(defined)
    if np.isnan(estimate):
        return Interval(None, None, None, level, units, missing, "the statistic is undefined", "symmetric")
    if not len(defined):
        return Interval(
            float(estimate), None, None, level, units, missing, "undefined in every bootstrap round", "symmetric"
        )
    reach = float(np.quantile(np.abs(defined - estimate), level))
    low, high = max(estimate - reach, bounds[0]), min(estimate + reach, bounds[1])
    return Interval(float(estimate), float(low), float(high), level, units, missing, "", "symmetric")


def bootstrap_statistic(
    statistic: Callable[[FloatArray], FloatArray],
    units: int,
    draws: Draws = USUAL_DRAWS,
    *,
    method: Method = "bca",
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> Interval:
    """The interval of any statistic that can be computed from counts of units.

    Args:
        statistic: counts (samples, units) -> values (samples,), NaN where undefined.
        units: the number of queries (or runs); with fewer than two there is no interval.
        draws: rounds, seed and level.
        method: `bca`, or `symmetric` for statistics that noise biases (correlations).
        bounds: the range of the statistic, for `symmetric`.
    """
    level = draws.level
    if units < 1:
        return Interval(None, None, None, level, units, 0, "there is nothing to resample")
    estimate = float(statistic(np.ones((1, units)))[0])
    if np.isnan(estimate):
        return Interval(None, None, None, level, units, 0, "the statistic is undefined")
    if units < 2:
        return Interval(estimate, None, None, level, units, 0, "one unit only; an interval needs two")
    replicates = statistic(bootstrap_counts(units, draws.rounds, draws.seed))
    if method == "symmetric":
        return symmetric_interval(estimate, replicates, level, units, bounds)
    return bca_interval(estimate, replicates, statistic(jackknife_counts(units)), level, units)


def bootstrap_means(scores: ArrayLike, draws: Draws = USUAL_DRAWS) -> list[Interval]:
    """The mean of every column (a run, or a run and measure) with its BCa interval over queries.

    Args:
        scores: (queries, columns), one row a query; NaN is a missing score and takes no part in the column's mean.
        draws: rounds, seed and level; all columns see the same resampled queries.

    Returns:
        one interval a column, in the scores' unit; `units` is the number of queries that have a score. A column with
        fewer than two scores has no interval, and a column with none no estimate.

    Raises:
        InputError: a score is infinite.

    >>> result = bootstrap_means([[0.0], [1.0], [1.0], [0.0]], Draws(2000))
    >>> result[0].estimate, result[0].low, result[0].high
    (0.5, 0.0, 1.0)
    """
    table = np.asarray(scores, dtype=np.float64)
    if np.isinf(table).any():
        raise InputError("a score is infinite; leave it out or correct it")
    queries, columns = table.shape
    level = draws.level
    if queries == 0:
        return [Interval(None, None, None, level, 0, 0, "there is no query")] * columns
    estimates = weighted_means(np.ones((1, queries)), table)[0]
    counts, left_out = bootstrap_counts(queries, draws.rounds, draws.seed), jackknife_counts(queries)
    result: list[Interval] = []
    # Column by column in pieces: sorting needs a copy of all replicates.
    step = max(1, 20_000_000 // draws.rounds)
    for start in range(0, columns, step):
        piece = slice(start, start + step)
        low, high, undefined = bca_intervals(
            estimates[piece], weighted_means(counts, table[:, piece]), weighted_means(left_out, table[:, piece]), level
        )
        sizes = (~np.isnan(table[:, piece])).sum(axis=0)
        for index, size in enumerate(sizes):
            estimate = float(estimates[start + index])
            if size == 0:
                result.append(Interval(None, None, None, level, 0, 0, "no query has a score"))
            elif size == 1:
                result.append(Interval(estimate, None, None, level, 1, 0, "one query only; an interval needs two"))
            else:
                result.append(
                    Interval(estimate, float(low[index]), float(high[index]), level, int(size), int(undefined[index]))
                )
    return result
