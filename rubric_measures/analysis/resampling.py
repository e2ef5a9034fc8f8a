"""Resampling: draws, intervals, permutation tests, corrections of many tests.

The one source of numpy's random numbers: a seed gives one generator, and a seed that gives none is refused.

The query bootstrap: resampled queries as counts, so that all statistics are one matrix product; BCa intervals.

The unit is the query (for correlations without per-query scores, the run). What is drawn depends only on the seed, the
number of units and the number of rounds, and not on runs, measures or their order; callers sort their queries.

Are two runs different: paired tests over queries, corrections for many pairs, effect sizes, groups of equals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.base.errors import InputError
from rubric_measures.types.scales import LARGEST_SCORE


def seeded(seed: int) -> np.random.Generator:
    """numpy's PCG64 generator of a seed.

    Raises:
        InputError: the seed is negative.

    >>> int(seeded(1).integers(100))
    47
    """
    import numpy as np

    if seed < 0:
        raise InputError(f"a seed is 0 or more, not {seed}")
    return np.random.default_rng(seed)


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


Correction = Literal["none", "holm", "bh"]

# Up to this many queries all 2^n sign flips are enumerated, and the p-value is exact.
_EXACT_QUERIES = 13
# Sums of the same numbers in another order differ by rounding: permutations within this share count as ties.
ROUNDING = 1e-10
_PIECE = 4_000_000


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Two runs compared over the queries that both have.

    Attributes:
        mean_difference: mean of a − b, in the measure's unit.
        low: lower end of the t interval of the mean difference; None where undefined.
        high: its upper end.
        t: the paired t statistic; None where undefined.
        p_t: two-sided p-value of the t-test, Student's t with n − 1 degrees of freedom; None where undefined.
        p_permutation: two-sided p-value of the sign-flip permutation test.
        exact: whether it is that of all 2^n flips; else they were drawn, p = (hits + 1) / (rounds + 1).
        effect_size: Cohen's d_z = mean difference / standard deviation of the differences; None where that is 0.
        wins: queries where a > b.
        ties: queries where a = b.
        losses: queries where a < b.
        queries: the number of queries.
        reason: why the t-test is undefined; empty otherwise.
    """

    mean_difference: float
    low: float | None
    high: float | None
    t: float | None
    p_t: float | None
    p_permutation: float
    exact: bool
    effect_size: float | None
    wins: int
    ties: int
    losses: int
    queries: int
    reason: str = ""

    @property
    def p(self) -> float | None:
        """p_t; where all differences are one and the same number, p_permutation, which is exact; None without either.

        Two runs that are identical on every query, or have one query only, have no test.
        """
        is_shift = self.p_t is None and self.queries > 1 and self.wins + self.losses == self.queries
        return self.p_permutation if is_shift else self.p_t


def _signs(queries: int, rounds: int, seed: int) -> FloatArray:
    """All 2^n signs of a few queries, else drawn ones: (flips, queries)."""
    if queries <= _EXACT_QUERIES:
        codes = np.arange(1 << queries)
        return 1.0 - 2.0 * ((codes[:, None] >> np.arange(queries)) & 1).astype(np.float64)
    return 1.0 - 2.0 * seeded(seed).integers(0, 2, size=(rounds, queries)).astype(np.float64)


def _sign_flip_p(
    differences: FloatArray, rounds: int, seed: int, is_one_sided: bool = False
) -> tuple[FloatArray, bool]:
    """p-values of the mean of every column (queries, pairs) under random signs, and whether they are exact."""
    queries, pairs = differences.shape
    exact = queries <= _EXACT_QUERIES
    signs = _signs(queries, rounds, seed)
    observed = differences.sum(axis=0) if is_one_sided else np.abs(differences.sum(axis=0))
    limit = observed - ROUNDING * np.abs(differences).sum(axis=0)
    hits = np.zeros(pairs)
    step = max(1, _PIECE // max(1, pairs))
    for start in range(0, len(signs), step):
        sums = signs[start : start + step] @ differences
        hits += ((sums if is_one_sided else np.abs(sums)) >= limit).sum(axis=0)
    return (hits / len(signs) if exact else (hits + 1.0) / (len(signs) + 1.0)), exact


def one_sided_flips(differences: FloatArray, rounds: int = DEFAULT_ROUNDS, seed: int = DEFAULT_SEED) -> FloatArray:
    """Sign-flip p-values of a mean above 0, one for each column of (queries, pairs): how often it is as large."""
    return _sign_flip_p(differences, rounds, seed, True)[0]


def paired_tests(
    a: ArrayLike,
    b: ArrayLike,
    *,
    rounds: int = DEFAULT_ROUNDS,
    seed: int = DEFAULT_SEED,
    level: float = 0.95,
) -> list[PairedTest]:
    """Paired t-test and sign-flip permutation test of every column of `a` with the same column of `b`.

    t = mean(d) / (sd(d) / √n), sd with n − 1. The permutation test flips the sign of every query's difference: it
    asks how often |mean| is at least as large. All pairs see the same flips. Where all differences are equal, t is
    undefined (None); the permutation test still says p = 1 for identical runs, and 2 / 2^n where one run is better by
    the same on all n queries: only the data's own signs and their opposite reach the mean.

    Both are per-query scores, (queries,) or (queries, pairs); flips are drawn where there are more than 13 queries.

    Raises:
        InputError: a score is not finite.

    Source: Smucker, Allan and Carterette (CIKM 2007) for both tests in retrieval; Cohen (1988) for the effect
    size.
    """
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    differences = (left - right).reshape(len(left), -1)
    if not (np.abs(differences) <= LARGEST_SCORE).all():
        raise InputError("a paired test needs finite scores (at most 1e100); leave out queries that a run misses")
    p_values, exact = _sign_flip_p(differences, rounds, seed)
    return [
        _one_test(differences[:, column], float(p_values[column]), exact, level)
        for column in range(differences.shape[1])
    ]


def _one_test(differences: FloatArray, p_permutation: float, exact: bool, level: float) -> PairedTest:
    from scipy.special import stdtr, stdtrit

    queries = len(differences)
    mean = float(differences.mean())
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    t = p_t = low = high = effect = None
    reason = ""
    scale = float(np.abs(differences).max())
    if queries < 2:
        reason = "one query only; the t-test needs two"
    elif float(np.ptp(differences)) <= ROUNDING * scale:
        reason = "the runs are identical on every query" if scale == 0 else "the runs differ by the same on every query"
        if scale:
            p_permutation, exact = exact_shift_p(queries), True
    else:
        deviation = float(differences.std(ddof=1))
        freedom = queries - 1
        error = deviation / np.sqrt(queries)
        t = mean / error
        p_t = float(2.0 * stdtr(freedom, -abs(t)))
        reach = float(stdtrit(freedom, (1.0 + level) / 2.0)) * error
        low, high = mean - reach, mean + reach
        effect = mean / deviation
    return PairedTest(
        mean, low, high, t, p_t, p_permutation, exact, effect, wins, queries - wins - losses, losses, queries,
        reason,
    )  # fmt: skip


def exact_shift_p(queries: int) -> float:
    """The sign-flip p-value of a run that is better by the same on all of n queries: 2 of 2^n flips reach the mean."""
    return float(2.0 ** (1 - queries))


def adjust(p_values: Sequence[float | None], correction: Correction = "holm") -> list[float | None]:
    """p-values adjusted for the number of tests; None (undefined) stays None and does not count as a test.

    Holm: the i-th smallest of m becomes max over j ≤ i of min(1, (m − j + 1) p_(j)); bounds the chance of any false
    difference. BH: min over j ≥ i of min(1, m p_(j) / j); bounds the expected share of false ones.

    Source: Holm (1979); Benjamini and Hochberg (1995).

    >>> adjust([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    >>> adjust([0.01, 0.04, 0.03], "bh")
    [0.03, 0.04, 0.04]
    """
    known = [(value, index) for index, value in enumerate(p_values) if value is not None]
    result = list(p_values)
    if correction == "none":
        return result
    known.sort()
    tests = len(known)
    bound = 0.0 if correction == "holm" else 1.0
    order = list(enumerate(known, 1))
    for rank, (value, index) in order if correction == "holm" else reversed(order):
        if correction == "holm":
            bound = max(bound, min(1.0, (tests - rank + 1) * value))
        else:
            bound = min(bound, tests * value / rank)
        result[index] = bound
    return result


def groups_of_equals(means: Sequence[float], p_values: ArrayLike, alpha: float = 0.05) -> list[tuple[int, ...]]:
    """The groups of runs that cannot be told apart: maximal stretches of the ranking without a significant pair inside.

    The ranking is by mean, descending, then by index; a pair is different when its adjusted p < alpha, NaN is not. A
    group has at least two runs, in order of the ranking, best group first; a run may be in several groups, or in none.

    >>> groups_of_equals([3.0, 2.0, 1.0], [[1, 0.5, 0.01], [0.5, 1, 0.3], [0.01, 0.3, 1]])
    [(0, 1), (1, 2)]
    """
    table = np.asarray(p_values, dtype=np.float64)
    runs = len(means)
    order = sorted(range(runs), key=lambda run: (-means[run], run))
    different = table[np.ix_(order, order)] < alpha
    groups: list[tuple[int, ...]] = []
    furthest = -1
    for start in range(runs):
        end = start
        while end + 1 < runs and not different[start : end + 1, end + 1].any():
            end += 1
        if end > start and end > furthest:
            groups.append(tuple(order[start : end + 1]))
        furthest = max(furthest, end)
    return groups
