"""Resampling: one engine for intervals, families of differences and sign flips.

A statistic is a function of weights, how often each unit counts: (samples, units) -> (samples, values). The data are
one sample of ones, a bootstrap round is a sample of counts, a leave-one-out sample has one 0. So any statistic that is
such a function has intervals (`Drawn.intervals`) and p-values of all its differences (`Drawn.apart`).

The unit is the query (for correlations without per-query scores, the run). What is drawn depends only on the seed, the
number of units and the number of rounds, and not on runs, measures or their order; callers sort their queries.

The one source of numpy's random numbers: a seed gives one generator, and a seed that gives none is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.base.errors import InputError, UnknownNameError, counted
from rubric_measures.base.tables import Ranged


def seeded(seed: int) -> np.random.Generator:
    """numpy's PCG64 generator of a seed.

    Raises:
        InputError: the seed is negative.

    >>> int(seeded(1).integers(100))
    47
    """
    if seed < 0:
        raise InputError(f"a seed is 0 or more, not {seed}")
    return np.random.default_rng(seed)


FloatArray = NDArray[np.float64]
Method = Literal["bca", "symmetric", "t", "quantiles"]
Statistic = Callable[[FloatArray], ArrayLike]
"""Weights (samples, units) -> values (samples, k) or (samples,), NaN where undefined."""

# Sums of the same numbers in another order differ by rounding: what differs by less is taken for equal.
ROUNDING = 1e-10
# Bootstrap means are compared with each other (ranks, ties); later decimals hold only the order of summation.
_DECIMALS = 12
# With fewer queries differences of bootstrapped statistics are found too often (benchmarks/README.md).
FEW_QUERIES = 25
FEWEST_QUERIES = 6
# With fewer queries BCa intervals of means are too narrow (benchmarks/README.md).
_ENOUGH_FOR_BCA = 25

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


def check_level(level: float) -> None:
    """Refuses what is no nominal coverage of an interval.

    Raises:
        InputError: it is below 0.5, or not below 1.
    """
    if not 0.5 <= level < 1.0:
        text = (
            f"the level is the coverage of intervals, from 0.5 to below 1, not {level:g}; for tests at 5 % write 0.95"
        )
        raise InputError(text, settings=("level",))


@dataclass(frozen=True, slots=True)
class Draws:
    """How a bootstrap draws.

    Attributes:
        rounds: rounds of what is drawn; 0 for no intervals, where these may be left out.
        seed: seed of everything that is drawn, 0 or more.
        level: nominal coverage of intervals, from 0.5 to below 1.

    Raises:
        InputError: it is no such level, or the rounds are fewer than 0.
    """

    rounds: int = 10_000
    seed: int = 42
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.rounds < 0:
            raise InputError("the number of rounds is 0 or more", settings=("rounds",))
        check_level(self.level)


USUAL_DRAWS = Draws()

Correction = Literal["max-t", "holm", "bh", "none"]
CORRECTIONS: tuple[Correction, ...] = ("max-t", "holm", "bh", "none")


@dataclass(frozen=True, slots=True)
class Tests(Draws):
    """How runs are tested against each other.

    Attributes:
        rounds: rounds of what is drawn, 1 or more.
        level: nominal coverage of intervals, from 0.5 to below 1; the significance level is what is left.
        correction: for many comparisons: max-t flips signs of queries, for all pairs at once; the others are t-tests.
        smallest: the smallest difference that matters, above 0, in the measure's unit: runs that differ by less are the
            same. By default 0.02 where all scores are from 0 to 1; else no two runs are called the same.

    Raises:
        InputError: a level, number or name is none of these; or there are no rounds.
    """

    # So that pytest takes it for no class of tests.
    __test__ = False

    correction: Correction = "max-t"
    smallest: float | None = None

    def __post_init__(self) -> None:
        Draws.__post_init__(self)
        if self.rounds < 1:
            raise InputError("the number of rounds is 1 or more", settings=("rounds",))
        if self.correction not in CORRECTIONS:
            raise UnknownNameError("correction", self.correction, CORRECTIONS, settings=("correction",))
        if self.smallest is not None and not 0.0 < self.smallest < np.inf:
            raise InputError(
                f"the smallest difference that matters is above 0, not {self.smallest:g}", settings=("smallest",)
            )

    @property
    def alpha(self) -> float:
        """The significance level, without what rounding adds to 1 − 0.95."""
        return round(1.0 - self.level, 15)


USUAL_TESTS = Tests()


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
        method: `bca`, `symmetric`, `t`, or `quantiles` of what was drawn.
    """

    estimate: float | None
    low: float | None
    high: float | None
    level: float = 0.95
    units: int = 0
    undefined: int = 0
    reason: str = ""
    method: Method = "bca"


def ranged(one: Interval | None) -> Ranged | None:
    """The interval as a cell of a table."""
    return None if one is None else Ranged(one.estimate, one.low, one.high)


def within(one: Interval, least: float, most: float = 1.0) -> Interval:
    """The interval inside the values that the statistic can have."""

    def inside(end: float | None) -> float | None:
        return None if end is None else min(max(end, least), most)

    return replace(one, estimate=inside(one.estimate), low=inside(one.low), high=inside(one.high))


# Why what does not vary has no interval.
_SAME = "it is the same however one draws, which says nothing of chance"
_NEARLY_SAME = "nearly all draws give the same, which says little of chance"


def wide(one: Interval, reason: str = _SAME) -> Interval:
    """The interval, or none where it has no width: what is the same however one draws says nothing of chance."""
    if one.low is None or one.high is None or one.high - one.low > ROUNDING:
        return one
    return replace(one, low=None, high=None, reason=reason)


def without_width(intervals: Iterable[tuple[str, Interval | None]]) -> list[str]:
    """What stands below a table of named intervals: which are left out because they have no width."""
    lacking: dict[str, dict[str, None]] = {}
    for name, one in intervals:
        if one is not None and one.reason in (_SAME, _NEARLY_SAME):
            lacking.setdefault(one.reason, {})[name] = None
    notes = []
    for reason, names in lacking.items():
        *some, last = [*names] if len(names) < 5 else [*[*names][:3], f"{len(names) - 3} more"]
        notes.append(f"{' and '.join(filter(None, (', '.join(some), last)))} without an interval: {reason}")
    return notes


def bootstrap_counts(units: int, rounds: int = 10_000, seed: int = 42) -> FloatArray:
    """How often each unit is drawn in each round: (rounds, units); each row sums to the number of units.

    >>> bootstrap_counts(4, 3, seed=1).sum(axis=1).tolist()
    [4.0, 4.0, 4.0]
    """
    drawn = seeded(seed).multinomial(units, np.full(units, 1.0 / units), size=rounds)
    counts: FloatArray = drawn.astype(np.float64)
    return counts


def weighted_means(counts: FloatArray, scores: ArrayLike) -> FloatArray:
    """The mean of every column under every row of counts; NaN scores are missing and take no part.

    mean_b,j = Σ_t c_bt s_tj / Σ_t c_bt [s_tj present]. Rounded to 12 decimals, so that equal means stay equal.
    Counts are (samples, queries), scores (queries, columns); the result is (samples, columns), NaN where no drawn query
    has a score.
    """
    values = np.asarray(scores, dtype=np.float64)
    present = ~np.isnan(values)
    sizes = counts.sum(axis=1, keepdims=True) if present.all() else counts @ present.astype(np.float64)
    means = ratio(counts @ np.where(present, values, 0.0), sizes)
    return np.round(means, _DECIMALS, out=means)


class Resample:
    """Units that are drawn again; all statistics of one object see the same draws.

    Args:
        units: the number of queries (or runs).
        draws: rounds, seed and level.
    """

    def __init__(self, units: int, draws: Draws = USUAL_DRAWS) -> None:
        self.units, self.draws = units, draws

    @cached_property
    def counts(self) -> FloatArray:
        """(rounds, units); no round where none is asked for or there is nothing to choose from."""
        if not self.draws.rounds or self.units < 2:
            return np.empty((0, self.units))
        return bootstrap_counts(self.units, self.draws.rounds, self.draws.seed)

    def draw(self, statistic: Statistic) -> Drawn:
        """The statistic of the data, in every round, and without each unit."""

        def values(weights: FloatArray) -> FloatArray:
            return np.asarray(statistic(weights), dtype=np.float64).reshape(len(weights), -1)

        (estimates,) = values(np.ones((1, self.units)))
        if not len(self.counts):
            nothing = np.empty((0, len(estimates)))
            return Drawn(estimates, nothing, nothing, self.units, self.draws)
        left_out = values(1.0 - np.eye(self.units))
        return Drawn(estimates, values(self.counts), left_out, self.units, self.draws)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Statistics that were drawn together.

    Attributes:
        estimates: of the data, (k,); NaN where undefined.
        replicates: (rounds, k).
        left_out: (units, k), without each unit.
        units: how many units were drawn.
        draws: how.
    """

    estimates: FloatArray
    replicates: FloatArray
    left_out: FloatArray
    units: int
    draws: Draws

    def intervals(self, method: Method = "bca", bounds: tuple[float, float] = (-np.inf, np.inf)) -> list[Interval]:
        """The interval of each statistic.

        `t`, and `bca` of fewer than 25 units: θ ± t s inside the bounds, with Student's t of n − 1 degrees and s² =
        (n − 1) / n Σ d², d the leave-one-out values minus their mean. Of so few BCa intervals are too narrow: those of
        κ covered .89 to .93 at 10 queries, these .94 to .95 (benchmarks/README.md). Where leaving one unit out changes
        nothing and the draws differ all the same, s knows nothing of it, and the interval is BCa.

        `bca`: bias-corrected and accelerated. With z_0 = Φ⁻¹(share of replicates below the estimate, half of those
        equal to it), a = Σ d³ / (6 (Σ d²)^1.5), d the mean of the leave-one-out values minus each of them: the ends are
        the replicates' quantiles at Φ(z_0 + (z_0 + z) / (1 − a (z_0 + z))) for z = Φ⁻¹((1 ∓ level) / 2).

        `symmetric`: θ ± q inside the bounds, q the level-quantile of |θ* − θ|. Resampling queries adds noise to a
        leaderboard, and noise lowers every rank correlation: nearly all replicates lie below the estimate. A percentile
        interval then misses the value that more queries would give. BCa has too few replicates above the estimate to
        correct with. The symmetric interval assumes that the truth is as far from the estimate as replicates are, on
        either side. Its coverage is in benchmarks/README.md.

        Source: Tukey, Bias and Confidence in Not Quite Large Samples (1958), for the jackknife; Efron, Better Bootstrap
        Confidence Intervals (JASA 1987); Hall, On Symmetric Bootstrap Confidence Intervals (JRSS B 1988).
        """
        from scipy.special import stdtrit

        result = []
        method = "t" if method == "bca" and self.units < _ENOUGH_FOR_BCA else method
        shares = self._shares() if method != "symmetric" and len(self.replicates) else None
        left_out = np.where(np.isnan(self.left_out), self.estimates, self.left_out)
        for column, estimate in enumerate(self.estimates.tolist()):
            drawn = self.replicates[:, column]
            drawn = drawn[~np.isnan(drawn)]
            missing = len(self.replicates) - len(drawn)
            told = (self.draws.level, self.units, missing)
            if np.isnan(estimate):
                result.append(Interval(None, None, None, *told, "the statistic is undefined", method))
            elif not len(drawn):
                reason = "undefined in every bootstrap round" if missing else "no interval was asked for"
                reason = "one unit only; an interval needs two" if self.units < 2 else reason
                result.append(Interval(estimate, None, None, *told, reason, method))
            else:
                varies = np.ptp(drawn) > ROUNDING
                error = left_out[:, column].std() * np.sqrt(self.units - 1)
                own: Method = "bca" if method == "t" and error <= ROUNDING and varies else method
                if own == "bca" and shares is not None:
                    low, high = np.quantile(drawn, shares[:, column])
                else:
                    reach = np.quantile(np.abs(drawn - estimate), self.draws.level)
                    if own == "t":
                        reach = stdtrit(self.units - 1, (1.0 + self.draws.level) / 2.0) * error
                    low, high = max(estimate - reach, bounds[0]), min(estimate + reach, bounds[1])
                why = _NEARLY_SAME if varies else _SAME
                result.append(wide(Interval(estimate, float(low), float(high), *told, "", own), why))
        return result

    def _shares(self) -> FloatArray:
        """The shares of replicates below the ends of BCa intervals: (2, k)."""
        from scipy.special import ndtr, ndtri

        drawn, theta = self.replicates, self.estimates
        sizes = np.maximum((~np.isnan(drawn)).sum(axis=0), 1)
        below = (drawn < theta).sum(axis=0) + 0.5 * (drawn == theta).sum(axis=0)
        # All replicates on one side would put z_0 at infinity: half a replicate is the most that can be said.
        bias = ndtri(np.clip(below / sizes, 0.5 / sizes, 1.0 - 0.5 / sizes))
        present = ~np.isnan(self.left_out)
        centre = ratio(np.where(present, self.left_out, 0.0).sum(axis=0), present.sum(axis=0).astype(np.float64))
        gaps = np.where(present, centre - self.left_out, 0.0)
        spread = np.sqrt((gaps**2).sum(axis=0))
        # Skewness is scale-free: dividing first keeps the cubes of tiny scores from underflowing.
        real = spread > 1e-12 * np.maximum(1.0, np.abs(centre))
        skew = ((gaps / np.where(real, spread, np.inf)) ** 3).sum(axis=0) / 6.0
        tails = ndtri([[(1.0 - self.draws.level) / 2.0], [(1.0 + self.draws.level) / 2.0]])
        shares: FloatArray = ndtr(bias + (bias + tails) / (1.0 - skew * (bias + tails)))
        return shares

    def apart(self) -> NDArray[np.bool_]:
        """Which two of the statistics differ: where `reaches` does not span their difference, (k, k)."""
        with np.errstate(invalid="ignore"):
            differ: NDArray[np.bool_] = np.abs(self.estimates[:, None] - self.estimates) > self.reaches()
        return differ

    def reaches(self) -> FloatArray:
        """Half the intervals of the differences of all pairs, which hold all true ones at once at the level: (k, k).

        With d* the difference of two statistics in a round, d that of the data, s the standard deviation of d* and n
        units: c s √(n / (n − 1)). c is the level-quantile of the largest |d* − d| / s of all pairs in a round, taken
        from the normal distribution to Student's t with n − 1 degrees: of few units s itself is not known well.
        Judges of the same queries are correlated, and the largest of each round knows that, which Holm's correction
        does not.
        It is 0 of two that differ by the same in every round, NaN of a statistic that is undefined, and infinite with
        fewer than six queries or too few rounds. With all signs alike, chance alone has p = 1/16 or more of five
        queries, and rounds that draw one query again and again know no chance at all. Rounds in which a statistic is
        undefined are left out.

        How often equal graders and agents are told apart is in benchmarks/README.md.

        Source: Romano and Wolf, Exact and Approximate Stepdown Methods for Multiple Hypothesis Testing (JASA 2005),
        the single-step form.
        """
        from scipy.special import ndtr, stdtrit

        known = np.flatnonzero(np.isfinite(self.estimates))
        result = np.full((len(self.estimates), len(self.estimates)), np.nan)
        theta, drawn = self.estimates[known], self.replicates[:, known]
        drawn = drawn[~np.isnan(drawn).any(axis=1)]
        result[np.ix_(known, known)] = np.inf
        np.fill_diagonal(result, 0.0)
        # How many rounds may be as far out, so that p, of which the data are one more round, is below 1 − level.
        allowed = int(np.ceil((1.0 - self.draws.level) * (len(drawn) + 1) - ROUNDING)) - 2
        if self.units < FEWEST_QUERIES or allowed < 0:
            return result
        centred = drawn - theta
        largest = np.zeros(len(drawn))
        spreads = np.zeros((len(known), len(known)))
        for place in range(len(known) - 1):
            gaps = centred[:, place, None] - centred[:, place + 1 :]
            spread = gaps.std(axis=0, ddof=1)
            # A difference that is the same in every round is no chance, however small it is.
            spreads[place, place + 1 :] = np.where(spread > ROUNDING, spread, 0.0)
            sizes = np.abs(gaps) / np.where(spread > ROUNDING, spread, np.inf)
            np.maximum(largest, sizes.max(axis=1), out=largest)
        limit = np.sort(largest)[-1 - allowed] * (1.0 + ROUNDING)
        limit = -stdtrit(self.units - 1, ndtr(-limit)) / np.sqrt(1.0 - 1.0 / self.units)
        # Where runs are equal in every round, they differ by rounding.
        result[np.ix_(known, known)] = np.maximum(limit * (spreads + spreads.T), ROUNDING)
        return result


def few_queries(queries: int) -> str:
    """What stands beside letters that `Drawn.apart` gave of so few queries; empty where they are enough."""
    if queries >= FEW_QUERIES:
        return ""
    if queries < FEWEST_QUERIES:
        return f"only {counted(queries, 'query')}: so few tell nothing apart"
    known = "by κ, five equal graders on 10 queries: 7 % instead of 5 %"
    return f"only {counted(queries, 'query')}: what is equal may be told apart too often ({known})"


def mean_intervals(scores: ArrayLike, draws: Draws = USUAL_DRAWS) -> list[Interval]:
    """The mean of every column (a run, or a run and measure) with its interval over queries.

    With fewer than 25 scores the interval is Student's, mean ± t s / √n: BCa intervals of so few are too narrow (at 10
    queries they cover 91 % at a nominal 95 %). Of scores from 0 to 1 it is cut to these. From 25 on it is BCa.

    Args:
        scores: (queries, columns), one row a query; NaN is a missing score and takes no part in the column's mean.
        draws: rounds, seed and level; all columns see the same resampled queries.

    Returns:
        one interval a column, in the scores' unit; `units` is the number of queries that have a score. A column with
        fewer than two scores has no interval, and a column with none no estimate.

    Raises:
        InputError: a score is infinite.

    >>> result = mean_intervals([[0.0], [1.0], [1.0], [0.0]])
    >>> result[0].estimate, result[0].low, result[0].high, result[0].method
    (0.5, 0.0, 1.0, 't')
    """
    from scipy.special import stdtrit

    table = np.asarray(scores, dtype=np.float64)
    if np.isinf(table).any():
        raise InputError("a score is infinite; leave it out or correct it")
    queries, columns = table.shape
    sizes = (~np.isnan(table)).sum(axis=0).tolist()
    engine = Resample(queries, draws)
    many = [column for column in range(columns) if sizes[column] >= _ENOUGH_FOR_BCA and draws.rounds]
    drawn: dict[int, Interval] = {}
    # Column by column in pieces: ten thousand rounds of all of them would fill the memory.
    for start in range(0, len(many), 1000):
        some = many[start : start + 1000]
        found = engine.draw(lambda counts, some=some: weighted_means(counts, table[:, some]))  # type: ignore[misc]
        drawn |= zip(some, found.intervals(), strict=True)
    result = []
    means = weighted_means(np.ones((1, queries)), table)[0].tolist()
    for column, size in enumerate(sizes):
        told: tuple[float, int, int] = (draws.level, size, 0)
        mean = means[column] if size else None
        reason = "" if size > 1 else "one query only; an interval needs two" if size else "no query has a score"
        if reason or not draws.rounds:
            result.append(Interval(mean, None, None, *told, reason or "no interval was asked for", "t"))
        elif column in drawn:
            result.append(replace(drawn[column], units=size))
        else:
            error = float(np.nanstd(table[:, column], ddof=1)) / np.sqrt(size)
            reach = float(stdtrit(size - 1, (1.0 + draws.level) / 2.0)) * error
            one = Interval(mean, means[column] - reach, means[column] + reach, *told, "", "t")
            is_share = np.nanmin(table[:, column]) >= 0.0 and np.nanmax(table[:, column]) <= 1.0
            result.append(wide(within(one, 0.0) if is_share else one))
    return result


# Up to this many queries all 2^n sign flips are enumerated, and p-values are exact.
_EXACT_QUERIES = 13
# What is left of the squares of a pair is at least this share, so that rounding makes no t infinite.
_LEAST_REST = 1e-8
# And t statistics of the same flips, summed in another order, are taken for equal within this share.
_SAME_T = 1e-6


@dataclass(frozen=True, slots=True)
class Family:
    """Paired differences that were tested together; each array has a value a pair.

    Attributes:
        means: mean differences, in the measure's unit.
        errors: their standard errors, s / √n with n − 1 in s.
        t: paired t statistics; NaN where undefined (one query, or all differences are equal).
        p: two-sided p-values of the paired t-test, Student's t with n − 1 degrees; of a run that is better by the same
            on all n queries that of the sign flips, 2 / 2^n: only the data's own signs and their opposite reach the
            mean. NaN where undefined (one query, or identical runs).
        adjusted: p-values for the number of tests; NaN likewise.
        low: lower ends of intervals: above 0, or the upper ones below 0, exactly where adjusted < alpha. NaN where
            there is none: p is undefined, or so few queries have no sign flips that are rarer than alpha.
        high: upper ends.
        different: whether adjusted < alpha.
        critical: by how many standard errors a mean has to differ from 0.
        queries: how many there are.
    """

    means: FloatArray
    errors: FloatArray
    t: FloatArray
    p: FloatArray
    adjusted: FloatArray
    low: FloatArray
    high: FloatArray
    different: NDArray[np.bool_]
    critical: float
    queries: int


def paired_family(
    differences: ArrayLike,
    correction: Correction = "max-t",
    alpha: float = 0.05,
    rounds: int = 10_000,
    seed: int = 42,
) -> Family:
    """Tests of the means of many paired differences, and the intervals that belong to them.

    `max-t`: the sign of each query is flipped, the same for all pairs, and p is how often the largest |t| of all pairs
    is at least the pair's. Intervals are mean ± c error, c the limit of that |t| for alpha: all hold the true
    differences at once with probability 1 − alpha. Up to 13 queries all flips count, and p is exact.

    The others are paired t-tests at a level that the correction gives: alpha for `none`, alpha (r or 1) / m for `bh`
    and alpha / (m − r) for `holm`, with r of m pairs different. Of `bh` the intervals of the different pairs miss the
    truth with an expected share of alpha at most; of `holm` they are those of its last step.

    Args:
        differences: (queries, pairs).
        correction: for the number of pairs.
        alpha: the level of significance.
        rounds: of the sign flips, where there are more than 13 queries.
        seed: of the sign flips.

    Source: Westfall and Young, Resampling-Based Multiple Testing (1993), the single-step form; Smucker, Allan and
    Carterette (CIKM 2007) for both tests in retrieval; Holm (1979); Benjamini and Hochberg (1995); Benjamini and
    Yekutieli, False Discovery Rate-Adjusted Multiple Confidence Intervals (JASA 2005).
    """
    from scipy.special import stdtr, stdtrit

    table = np.asarray(differences, dtype=np.float64)
    n = len(table)
    means = table.mean(axis=0)
    gaps = table - means
    freedom = max(n - 1, 1)
    errors = np.sqrt((gaps**2).sum(axis=0) / (n * freedom))
    most = np.abs(table).max(axis=0)
    varies = (n > 1) & (np.abs(gaps).max(axis=0) > ROUNDING * most)
    shifts = (n > 1) & ~varies & (most > 0)
    t = np.where(varies, means / np.where(varies, errors, 1.0), np.nan)
    p = np.where(varies, 2.0 * stdtr(freedom, -np.abs(t)), np.where(shifts, 2.0 ** (1 - n), np.nan))
    tested = varies | shifts
    if correction == "max-t":
        found, critical = _max_t(table, alpha, rounds, seed)
        adjusted = np.where(tested, found, np.nan)
        # Where runs differ by nearly the same everywhere the interval has the error that their t is cut to.
        errors = np.fmax(errors, np.sqrt(_LEAST_REST * (table**2).sum(axis=0) / (n * freedom)))
    else:
        adjusted = adjust(p, correction)
        decided, tests = int((adjusted < alpha).sum()), max(int(tested.sum()), 1)
        steps = {"holm": 1.0 / max(tests - decided, 1), "bh": max(decided, 1) / tests, "none": 1.0}
        critical = float(stdtrit(freedom, 1.0 - alpha * steps[correction] / 2.0))
        errors = np.where(shifts, 0.0, errors)
    different = adjusted < alpha
    # Fewer queries have no sign flips that are rare enough.
    is_known = 2.0 ** (1 - n) < alpha and np.isfinite(critical)
    known = tested & (is_known if correction == "max-t" else varies | different)
    reach = np.where(known, critical * errors, np.nan)
    low, high = means - reach, means + reach
    return Family(means, errors, t, p, adjusted, low, high, different, critical, n)


def _max_t(differences: FloatArray, alpha: float, rounds: int, seed: int) -> tuple[FloatArray, float]:
    """p-values of all columns by the largest |t| of each sign flip, and the |t| that is needed for p < alpha."""
    queries, pairs = differences.shape
    is_exact = queries <= _EXACT_QUERIES
    if is_exact:
        signs = 1.0 - 2.0 * ((np.arange(1 << queries)[:, None] >> np.arange(queries)) & 1)
    else:
        signs = 1.0 - 2.0 * seeded(seed).integers(0, 2, size=(rounds, queries))
    squares = (differences**2).sum(axis=0)
    floor = np.where(squares > 0, _LEAST_REST * squares, np.inf)

    def square_t(sums: FloatArray) -> FloatArray:
        parts = sums * sums / queries
        result: FloatArray = (queries - 1.0) * parts / np.maximum(squares - parts, floor)
        return result

    # Nobody flips the signs of no query.
    largest = np.concatenate(
        [square_t(signs[piece] @ differences).max(axis=1, initial=0.0) for piece in pieces(len(signs), pairs)]
    )
    ordered = np.sort(np.sqrt(largest))
    sums = differences.sum(axis=0)
    # A sum of nothing but rounding is no difference: every flip is as large.
    seen = np.sqrt(square_t(np.where(np.abs(sums) > ROUNDING * np.abs(differences).sum(axis=0), sums, 0.0)))
    # The data are one of all flips; of drawn ones they are one more.
    own = 0 if is_exact else 1
    hits = len(ordered) - np.searchsorted(ordered, seen * (1.0 - _SAME_T))
    whole = len(ordered) + own
    allowed = int(np.ceil(alpha * whole - ROUNDING)) - own - 1
    # So few rounds may have no p below alpha.
    limit = float(ordered[-1 - allowed]) / (1.0 - _SAME_T) if allowed >= 0 else np.inf
    return (hits + own) / whole, limit


def adjust(p_values: ArrayLike, correction: Correction = "holm") -> FloatArray:
    """p-values adjusted for the number of tests; NaN (undefined) stays NaN and does not count as a test.

    Holm: the i-th smallest of m becomes max over j ≤ i of min(1, (m − j + 1) p_(j)); bounds the chance of any false
    difference. BH: min over j ≥ i of min(1, m p_(j) / j); bounds the expected share of false ones.

    Source: Holm (1979); Benjamini and Hochberg (1995).

    >>> adjust([0.01, 0.04, float("nan"), 0.03]).tolist()
    [0.03, 0.06, nan, 0.06]
    >>> adjust([0.01, 0.04, 0.03], "bh").tolist()
    [0.03, 0.04, 0.04]
    """
    from scipy.stats import false_discovery_control

    result = np.array(p_values, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(result))
    if correction == "holm":
        known = known[np.argsort(result[known], kind="stable")]
        steps = np.minimum(1.0, (len(known) - np.arange(len(known))) * result[known])
        result[known] = np.maximum.accumulate(steps)
    elif correction == "bh" and len(known):
        result[known] = false_discovery_control(result[known])
    return result


def groups_of_equals(means: Sequence[float], different: ArrayLike) -> list[tuple[int, ...]]:
    """Groups of runs that cannot be told apart: two are in one group together exactly where they are not different.

    In a group no two are different, and no other run could join it. From each pair that is in no group yet, the best
    first and with the furthest, a group grows by the run that has most such pairs with it. What the others hold is left
    out at the end. So there are at most as many groups as pairs; where no run that differs stands between two that do
    not, they are the longest stretches of the ranking.

    The ranking is by mean, descending, then by index. A group has at least two runs, in order of the ranking, the group
    of the best first; a run may be in several groups, or in none.

    Args:
        means: of the runs.
        different: (runs, runs), whether two are different.

    Source: compact letter displays, Piepho (Journal of Computational and Graphical Statistics 2004); grown as in Gramm
    et al., Algorithms for Compact Letter Displays (Computational Statistics & Data Analysis 2007).

    >>> groups_of_equals([3.0, 2.0, 1.0], [[0, 0, 1], [0, 0, 0], [1, 0, 0]])
    [(0, 1), (1, 2)]
    >>> groups_of_equals([3.0, 2.0, 1.0], [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    [(0, 2), (1, 2)]
    """
    runs = len(means)
    order = sorted(range(runs), key=lambda run: (-means[run], run))
    apart = np.asarray(different, dtype=np.bool_).reshape(runs, runs)[np.ix_(order, order)]
    equal = ~(apart | apart.T | np.eye(runs, dtype=np.bool_))
    groups: list[list[int]] = []
    left = equal.copy()
    for first in range(runs):
        while left[first].any():
            group = [first, int(np.flatnonzero(left[first])[-1])]
            while (open_to := equal[group].all(axis=0)).any():
                group.append(int(np.argmax(np.where(open_to, left[group].sum(axis=0), -1))))
            left[np.ix_(group, group)] = False
            groups.append(sorted(group))
    times = np.zeros((runs, runs), dtype=np.intp)
    for group in groups:
        times[np.ix_(group, group)] += 1
    kept = []
    for group in groups:
        inside = np.ix_(group, group)
        if (times[inside] + np.eye(len(group)) > 1).all():
            times[inside] -= 1
        else:
            kept.append(group)
    return [tuple(order[place] for place in group) for group in sorted(kept)]
