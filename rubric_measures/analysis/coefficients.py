"""Rank correlation: Kendall, Spearman, Pearson, top-weighted ones, and their intervals.

Rank correlation in which errors at the top weigh most: τ_AP with and without ties, τ_GAP, rank-biased overlap.

Rank correlation of two leaderboards: Kendall τ-b, Spearman, Pearson, τ_AP (also with ties), τ_GAP, RBO, rank drop.

Every coefficient is one batch function on two arrays of shape (samples, runs), so that a point estimate (one sample)
and ten thousand bootstrap rounds run the same formula. Scores are always "higher is better"; negate ranks.
A value that does not exist (all runs tied, fewer than two runs) is NaN in a batch and `None`
with a reason in a `Coefficient`; it is never 0 and never 1.

Kendall's τ of two leaderboards without the noise of their queries: what ever more queries would lead to.

Bootstrap intervals of rank correlations over queries.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.analysis.resampling import (
    USUAL_DRAWS,
    Drawn,
    Draws,
    FloatArray,
    Interval,
    Resample,
    mean_intervals,
    pieces,
    ratio,
    seeded,
    weighted_means,
    within,
)
from rubric_measures.analysis.significance import variance_components
from rubric_measures.base.errors import InputError, UnknownNameError, counted
from rubric_measures.types.scales import LARGEST_SCORE

Batch = Callable[[FloatArray, FloatArray], FloatArray]


def in_pieces(batch: Batch) -> Batch:
    """The same for so many samples at once as the processor's cache can hold with all pairs of runs."""

    @wraps(batch)
    def whole(x: FloatArray, y: FloatArray) -> FloatArray:
        found = [batch(x[piece], y[piece]) for piece in pieces(len(x), x.shape[1] ** 2)]
        return np.concatenate([np.empty(0), *found])

    return whole


@in_pieces
def tau_ap_batch(x: FloatArray, y: FloatArray) -> FloatArray:
    """AP correlation of the estimated ranking `y` with the true ranking `x`, errors at the top weigh most.

    Without ties τ_AP = 2/(n−1) Σ_{i=2..n} C(i)/(i−1) − 1, with C(i) the number of runs above rank i of y that x, too,
    has above the run at rank i. Where y has ties this is τ_AP,a, the mean over all orders of the tied runs.
    In [−1, 1], not symmetric. NaN where x has ties (a true ranking has none; use `tau_ap_b_batch`), where all runs are
    tied in y, and with fewer than two runs.

    Source: Yilmaz, Aslam and Robertson (SIGIR 2008); ties: Urbano and Marrero (ICTIR 2017), section 3.
    """
    samples, runs = x.shape
    if runs < 2:
        return np.full(samples, np.nan)
    # H(0) … H(2 · runs), H(n) = 1 + 1/2 + … + 1/n.
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, 2 * runs + 1))])
    above = y[:, None, :] > y[:, :, None]
    place = 1 + above.sum(axis=2)
    tied = (y[:, None, :] == y[:, :, None]).sum(axis=2)
    concordant = (above & (x[:, None, :] > x[:, :, None])).sum(axis=2)
    # A run of a group of t that starts at rank p stands at p, p+1, …, p+t−1 equally often.
    spread = harmonic[place + tied - 2] - harmonic[np.maximum(place - 2, 0)]
    total = np.where(place > 1, concordant * spread / tied, 0.0)
    # Inside a group every pair is concordant in half of the orders.
    inside = (tied - 1) - (place - 1) * (harmonic[place + tied - 2] - harmonic[place - 1])
    total += inside / (2.0 * tied)
    undefined = _has_ties(x) | (place.max(axis=1) == 1)
    return np.where(undefined, np.nan, 2.0 * total.sum(axis=1) / (runs - 1) - 1.0)


def _tau_ap_b_one_way(x: FloatArray, y: FloatArray) -> FloatArray:
    above = y[:, None, :] > y[:, :, None]
    place = 1 + above.sum(axis=2)
    concordant = (above & (x[:, None, :] > x[:, :, None])).sum(axis=2)
    below_top = place > 1
    share = np.where(below_top, concordant / np.maximum(place - 1, 1), 0.0).sum(axis=1)
    return 2.0 * ratio(share, below_top.sum(axis=1).astype(np.float64)) - 1.0


@in_pieces
def tau_ap_b_batch(x: FloatArray, y: FloatArray) -> FloatArray:
    """Symmetric AP correlation of two rankings that may both have ties, τ_AP,b.

    The mean of two directions; in one direction 2/(n − t_1) Σ_{i > t_1} C(i)/(p_i − 1) − 1, where p_i is the first rank
    of the group of run i, t_1 the size of the top group, C(i) the runs above that group which the other ranking, too,
    has above run i. In [−1, 1]; NaN where all runs of a side are tied.

    Source: Urbano and Marrero, The Treatment of Ties in AP Correlation (ICTIR 2017), section 4.
    """
    return (_tau_ap_b_one_way(x, y) + _tau_ap_b_one_way(y, x)) / 2.0


@in_pieces
def tau_gap_batch(x: FloatArray, y: FloatArray) -> FloatArray:
    """Head-weighted, gap-sensitive correlation of the estimated ranking `y` with the true scores `x`, τ_GAP.

    τ_GAP = 2/m Σ_i Σ_j |CG_ji| / Σ_j |G_ji| − 1, over the runs j that y has above run i. G_ji is x_j − x_i, and CG_ji
    is the same where x, too, has j above i, else 0. Of two errors at one rank that over the larger gap costs more.
    m counts the runs i that have a run above with another true score, n − 1 without ties. Ties are not in the paper: as
    in τ_AP,b the runs of one group are not above each other. In [−1, 1], not symmetric; `x` may be multiplied by a
    factor, or have a constant added. NaN where no run counts (a side is all tied, or fewer than two runs).

    Source: Gao and Oard, A Head-Weighted Gap-Sensitive Correlation Coefficient (SIGIR 2015), equation 3, and the
    `tau_gap` of autojudge-evaluate, whose version 1.1.0 orders tied runs by their names.

    >>> tau_gap_batch(np.array([[0.9, 0.5, 0.4]]), np.array([[3.0, 1.0, 2.0]])).round(4).tolist()
    [0.8]
    """
    above = y[:, None, :] > y[:, :, None]
    gaps = np.where(above, x[:, None, :] - x[:, :, None], 0.0)
    shares = ratio(np.maximum(gaps, 0.0).sum(axis=2), np.abs(gaps).sum(axis=2))
    counts = ~np.isnan(shares)
    known = np.where(counts, shares, 0.0).sum(axis=1)
    return 2.0 * ratio(known, counts.sum(axis=1).astype(np.float64)) - 1.0


def _contributions(scores: FloatArray) -> FloatArray:
    """How much of each run is in the ranking down to depth 1 … n: (samples, runs, depths), in [0, 1]."""
    first = (scores[:, None, :] > scores[:, :, None]).sum(axis=2)[:, :, None]
    size = (scores[:, None, :] == scores[:, :, None]).sum(axis=2)[:, :, None]
    depth = np.arange(1, scores.shape[1] + 1)[None, None, :]
    share: FloatArray = np.clip((depth - first) / size, 0.0, 1.0)
    return share


def _has_ties(scores: FloatArray) -> NDArray[np.bool_]:
    ordered = np.sort(scores, axis=1)
    tied: NDArray[np.bool_] = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    return tied


@in_pieces
def rbo_batch(x: FloatArray, y: FloatArray) -> FloatArray:
    """Rank-biased overlap, extrapolated, of two rankings of the same runs, with persistence p = 0.9.

    RBO_EXT = (1−p)/p [Σ_{d=1..n} A_d p^d + A_n p^(n+1)/(1−p)], A_d the agreement of the two rankings at depth d. With
    X_d = Σ_i c_i(d) c'_i(d), c_i(d) the share of run i above depth d, A_d = X_d / d: a tie is an unknown order, and the
    value the mean over all orders (the paper's RBO^a). In [0, 1].

    Source: Webber, Moffat and Zobel (TOIS 2010); ties: Corsi and Urbano (SIGIR 2024), sections 4 and 5.
    """
    p, depths = 0.9, np.arange(1, x.shape[1] + 1)
    agreement = (_contributions(x) * _contributions(y)).sum(axis=1) / depths
    tail = agreement[:, -1] * p ** (len(depths) + 1) / (1.0 - p)
    result: FloatArray = (1.0 - p) / p * (agreement @ p**depths + tail)
    return result


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One correlation of two leaderboards.

    Attributes:
        name: `kendall`, …, with `@k` for a top-k variant.
        value: the coefficient, or None where it is undefined.
        runs: the number of runs that were compared.
        p_value: two-sided, for no association; None where no test is defined (τ_AP, τ_GAP, RBO, rank drop) or value
            is None.
        reason: why value is None; empty otherwise.
        interval: its bootstrap interval; None when none was asked for.
        resampled: what was resampled: `query`, or nothing.
    """

    name: str
    value: float | None
    runs: int
    p_value: float | None = None
    reason: str = ""
    interval: Interval | None = None
    resampled: Literal["", "query"] = ""

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The ends of the interval."""
        return (None, None) if self.interval is None else (self.interval.low, self.interval.high)


def ranks(scores: ArrayLike, ties: Literal["average", "min"] = "average") -> FloatArray:
    """The rank of every score, 1 for the highest; tied scores share the average (or the smallest) of their ranks.

    >>> ranks([0.2, 0.9, 0.2]).tolist()
    [2.5, 1.0, 2.5]
    >>> ranks([0.2, 0.9, 0.2], ties="min").tolist()
    [2.0, 1.0, 2.0]
    """
    from scipy.stats import rankdata

    values = -np.asarray(scores, dtype=np.float64)
    result: FloatArray = np.asarray(rankdata(values, method=ties, axis=-1), dtype=np.float64)
    return result


def top_k(official: ArrayLike, k: int) -> NDArray[np.intp]:
    """The indices of the runs whose official rank is at most k; runs tied at rank k are all kept.

    Args:
        official: scores, higher is better.
        k: the number of ranks, at least 1.

    >>> top_k([0.9, 0.5, 0.5, 0.1], 2).tolist()
    [0, 1, 2]
    """
    chosen: NDArray[np.intp] = np.flatnonzero(ranks(official, ties="min") <= k)
    return chosen


@in_pieces
def kendall_batch(x: FloatArray, y: FloatArray) -> FloatArray:
    """Kendall's τ-b of every row of `x` with the same row of `y`.

    τ_b = (C − D) / sqrt((P − T_x)(P − T_y)), with P pairs, C concordant, D discordant, T_x and T_y tied in x and in y.
    In [−1, 1]; NaN where all runs of a side are tied or there are fewer than two.

    Source: Kendall, Rank Correlation Methods (1945 form for ties).

    >>> kendall_batch(np.array([[4.0, 3.0, 2.0, 1.0]]), np.array([[4.0, 2.0, 3.0, 1.0]])).round(4).tolist()
    [0.6667]
    """
    first, second = np.triu_indices(x.shape[1], 1)
    # Sums of up to 2^24 units are exact in float32, which is several times faster than integers here.
    exact = "f4" if len(first) <= 1 << 24 else "f8"
    left, right = (
        ((side[:, first] > side[:, second]).view(np.int8)
         - (side[:, first] < side[:, second]).view(np.int8)).astype(exact)
        for side in (x, y)
    )  # fmt: skip
    both, untied, others = (np.einsum("bp,bp->b", *pair).astype(np.float64)
                            for pair in ((left, right), (left, left), (right, right)))  # fmt: skip
    return ratio(both, np.sqrt(untied * others))


def pearson_batch(x: FloatArray, y: FloatArray) -> FloatArray:
    """Pearson's r of every row of `x` with the same row of `y`; in [−1, 1], NaN where a side is constant."""
    left = x - x.mean(axis=1, keepdims=True)
    right = y - y.mean(axis=1, keepdims=True)
    # A constant row leaves rounding noise after centring: constancy is decided on the values themselves.
    varies = (np.ptp(x, axis=1) > 0) & (np.ptp(y, axis=1) > 0)
    both = np.einsum("bp,bp->b", left, right)
    norm = np.sqrt(np.einsum("bp,bp->b", left, left) * np.einsum("bp,bp->b", right, right))
    return np.where(varies, np.clip(ratio(both, norm), -1.0, 1.0), np.nan)


def spearman_batch(x: FloatArray, y: FloatArray) -> FloatArray:
    """Spearman's ρ: Pearson's r of average-tie ranks; in [−1, 1], NaN where all runs of a side are tied."""
    return pearson_batch(ranks(x), ranks(y))


def rank_drop_batch(x: FloatArray, y: FloatArray) -> FloatArray:
    """The maximum rank drop: the most ranks that a run loses from `x` to `y`, average-tie ranks; 0 is best."""
    drop: FloatArray = (ranks(y) - ranks(x)).max(axis=1)
    return drop


COEFFICIENTS: dict[str, Batch] = {
    "kendall": kendall_batch,
    "spearman": spearman_batch,
    "pearson": pearson_batch,
    "tau_ap": tau_ap_batch,
    "tau_ap_b": tau_ap_b_batch,
    "tau_gap": tau_gap_batch,
    "rbo": rbo_batch,
    "max_rank_drop": rank_drop_batch,
}


def parse_coefficient(text: str) -> tuple[str, int | None]:
    """The coefficient and the k of `kendall`, `kendall@15`, ….

    Raises:
        UnknownNameError: no such coefficient.
        InputError: what follows `@` is no positive whole number.

    >>> parse_coefficient("tau_ap@10")
    ('tau_ap', 10)
    """
    base, at, tail = text.partition("@")
    if base not in COEFFICIENTS:
        raise UnknownNameError("coefficient", base, COEFFICIENTS)
    if at and not re.fullmatch(r"[1-9][0-9]*", tail):
        raise InputError(f"coefficient {text!r}: after '@' comes a positive whole number")
    return base, int(tail) if at else None


def _sides(official: ArrayLike, scores: ArrayLike, name: str) -> tuple[FloatArray, FloatArray, str]:
    """Both sides for the runs that a coefficient is about, those of the official top k for `@k`, and its base.

    Args:
        official: (runs,) or (queries, runs).
        scores: (runs,) or (queries, runs).
        name: the coefficient.
    """
    base, k = parse_coefficient(name)
    x, y = np.asarray(official, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if k is not None and x.size:
        chosen = top_k(x if x.ndim == 1 else weighted_means(np.ones((1, len(x))), x)[0], k)
        x, y = x[..., chosen], y[..., chosen]
    return x, y, base


def undefined_reason(base: str, x: FloatArray, y: FloatArray) -> str:
    """Why a coefficient of these two lists is undefined; empty when the formula does not say."""
    if len(x) < 2:
        return f"{counted(len(x), 'run')} in common; a correlation needs two"
    if np.ptp(x) == 0:
        return "all runs are tied in the first leaderboard"
    if base == "tau_ap" and len(np.unique(x)) < len(x):
        return "the first leaderboard has ties; use tau_ap_b"
    if np.ptp(y) == 0:
        return "all runs are tied in the second leaderboard"
    return ""


def correlate(official: ArrayLike, scores: ArrayLike, name: str, *, test: bool = True) -> Coefficient:
    """One coefficient of two leaderboards over the same runs, with the p-value where scipy gives one.

    Args:
        official: the reference's score of each run, higher is better (negate ranks).
        scores: the other leaderboard's, same order.
        name: a name of `COEFFICIENTS`, with `@k` for the runs of official rank ≤ k only.
        test: also compute the p-value, which takes most of the time.

    Returns:
        the coefficient; `value` is None with a reason where it is undefined (all runs tied on a side, fewer than two
        runs, ties in the official ranking for τ_AP).

    Raises:
        UnknownNameError: no such coefficient.
        InputError: a score is not finite.

    >>> correlate([3, 2, 1], [0.9, 0.4, 0.5], "kendall").value.__round__(4)
    0.3333
    >>> correlate([3, 2, 1], [1, 1, 1], "kendall").reason
    'all runs are tied in the second leaderboard'
    """
    x, y, base = _sides(official, scores, name)
    if not ((np.abs(x) <= LARGEST_SCORE).all() and (np.abs(y) <= LARGEST_SCORE).all()):
        raise InputError("a correlation needs finite scores (at most 1e100); leave out runs without a score")
    reason = undefined_reason(base, x, y)
    if reason:
        return Coefficient(name, None, len(x), reason=reason)
    value = float(COEFFICIENTS[base](x[None, :], y[None, :])[0])
    return Coefficient(name, value, len(x), _p_value(base, x, y) if test else None)


def _p_value(base: str, x: FloatArray, y: FloatArray) -> float | None:
    from scipy import stats

    tests = {"kendall": stats.kendalltau, "spearman": stats.spearmanr, "pearson": stats.pearsonr}
    # With two runs r is always ±1, and there is nothing to test.
    if base not in tests or len(x) < 3:
        return None
    with warnings.catch_warnings():
        # scipy warns of nearly constant input; the p-value is what its formula gives, rounding included.
        warnings.simplefilter("ignore")
        p = float(tests[base](x, y).pvalue)
    return p if np.isfinite(p) else None


# Where less of the variance of means is of the runs, symmetric intervals cover less than 85 %: 1 − 1.5 / runs, 0.7 at
# least and 0.96 at most (benchmarks/README.md).
_LEAST_RELIABILITY, _LOST_RELIABILITY = 0.96, 1.5
# So many draws of the true means; τ of each is known to about 0.005.
_MOST_DRAWS = 2000
# Where fewer of the covariances that are drawn leave runs a variance of their own, nothing can be said.
_LEAST_KEPT = 0.05


def noise_free_tau(official: ArrayLike, scores: ArrayLike, draws: Draws = USUAL_DRAWS) -> Interval:
    """The τ that two measures would have over ever more queries of the same kind.

    The noise of queries moves runs past each other, on both sides, and so lowers τ; where the noise of both sides goes
    together, because the queries are the same, it raises τ. The model: a run's pair of true means is normal among runs
    with covariance T, and the pair of scores of a query is that, what the query does to all runs, and noise with
    covariance E. So the means of runs have the covariance B = T + E/n. E and B are drawn from their inverse Wishart
    posteriors (of the residuals of a two-way analysis of variance, and of the means), and kept where B − E/n is a
    covariance; the true means are then drawn as normal with mean T B⁻¹ (means) and covariance T − T B⁻¹ T. The estimate
    is the mean of τ of what is drawn, the interval its quantiles; or a
    reason says why there is none. How right it is, and where it is not, stands in benchmarks/README.md.

    Args:
        official: (queries, runs), complete.
        scores: (queries, runs), the same queries and runs.
        draws: seed, level and rounds (at most 2,000 are drawn; 0 gives nothing).

    Source: the random-effects model of generalizability theory for two measures (Brennan, Generalizability Theory 2001,
    chapter 9), drawn as in Gelman et al., Bayesian Data Analysis (2013), chapter 5; for one measure the question is
    that of Urbano and Marrero (SIGIR 2016).
    """
    x, y = np.asarray(official, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    queries, runs = x.shape
    means = np.stack([x.mean(axis=0), y.mean(axis=0)], axis=1)
    nothing = partial(Interval, None, None, None, draws.level, queries, 0)
    if queries < 2 or runs < 4:
        return nothing("needs two queries and four runs")
    if draws.rounds == 0:
        return nothing("")
    centred = np.stack([table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
                        for table in (x, y)], axis=-1).reshape(-1, 2)  # fmt: skip
    among = means - means.mean(axis=0)
    within, between = centred.T @ centred, among.T @ among
    if min(np.linalg.eigvalsh(between)[0] / max(np.trace(between), 1e-300), np.trace(between)) < 1e-12:
        return nothing("the means of a side are all equal, or both sides are the same")
    generator = seeded(draws.seed)
    size = min(draws.rounds, _MOST_DRAWS)
    noise = _inverse_wishart(within, (queries - 1) * (runs - 1), 4 * size, generator) / queries
    whole = _inverse_wishart(between, runs - 1, 4 * size, generator)
    real = whole - noise
    kept = np.flatnonzero((real[:, 0, 0] > 0) & (real[:, 1, 1] > 0) & (np.linalg.det(real) > 0))
    if len(kept) < _LEAST_KEPT * len(real):
        return nothing("too few queries to say: the noise of the queries hides how runs differ")
    kept = kept[:size]
    weight = real[kept] @ np.linalg.inv(whole[kept])
    spread = np.linalg.cholesky(_positive(real[kept] - weight @ real[kept]))
    drawn = np.einsum("sab,rb->sra", weight, among)
    drawn += np.einsum("sab,srb->sra", spread, generator.standard_normal((len(kept), runs, 2)))
    taus = kendall_batch(drawn[:, :, 0], drawn[:, :, 1])
    low, high = np.quantile(taus, [(1.0 - draws.level) / 2.0, (1.0 + draws.level) / 2.0])
    return Interval(float(taus.mean()), float(low), float(high), draws.level, queries, method="quantiles")


def _positive(covariances: FloatArray) -> FloatArray:
    """Covariances that rounding may have left without a Cholesky factor."""
    symmetric = (covariances + covariances.transpose(0, 2, 1)) / 2.0
    floor = 1e-12 * np.trace(symmetric, axis1=1, axis2=2) + 1e-30
    values, vectors = np.linalg.eigh(symmetric)
    values = np.maximum(values, floor[:, None])
    result: FloatArray = np.einsum("sab,sb,scb->sac", vectors, values, vectors)
    return result


def _inverse_wishart(sums: FloatArray, freedom: int, size: int, generator: np.random.Generator) -> FloatArray:
    """Draws of a 2 × 2 covariance whose sums of squares these are, with so many degrees of freedom: (size, 2, 2)."""
    # Bartlett's factor of a Wishart matrix A Aᵀ with identity scale.
    factor = np.zeros((size, 2, 2))
    factor[:, 0, 0] = np.sqrt(generator.chisquare(freedom, size))
    factor[:, 1, 1] = np.sqrt(generator.chisquare(max(freedom - 1, 1), size))
    factor[:, 1, 0] = generator.standard_normal(size)
    # Σ = L (A Aᵀ)⁻¹ Lᵀ with L Lᵀ the sums.
    floor = 1e-12 * float(np.trace(sums)) + 1e-300
    root = np.linalg.cholesky(sums + floor * np.eye(2))
    half = root @ np.linalg.inv(factor).transpose(0, 2, 1)
    result: FloatArray = half @ half.transpose(0, 2, 1)
    return result


def _bounds(base: str, runs: int) -> tuple[float, float]:
    if base == "max_rank_drop":
        return (0.0, max(runs - 1.0, 0.0))
    return (0.0, 1.0) if base == "rbo" else (-1.0, 1.0)


def correlate_over_queries(
    official: ArrayLike, scores: ArrayLike, name: str = "kendall", draws: Draws = USUAL_DRAWS
) -> Coefficient:
    """One coefficient of the official leaderboard with another one, with a symmetric bootstrap interval over queries.

    The official side is either a score of each run (then only the other is resampled), or a table of queries × runs
    (then both are resampled with the same queries). A run's score is its mean over the drawn queries. A top-k variant
    keeps the runs that are in the official top k of the full data. The interval is a symmetric one; `Drawn.intervals`
    says why it is not BCa. There is none where the reliability of the means of a side is below 1 − 1.5 / runs (0.7 at
    least, 0.96 at most): there it covers less than 85 % at a nominal 95 %.

    Args:
        official: (runs,) or (queries, runs), higher is better; NaN in a table is a missing score.
        scores: (queries, runs).
        name: the coefficient.
        draws: rounds (0 for no interval), seed and level.

    Raises:
        InputError: a run has no score at all.
    """
    x, table, base = _sides(official, scores, name)
    point, drawn = drawn_over_queries(x, table, base, draws)
    point = replace(point, name=name)
    if draws.rounds == 0:
        return replace(point, resampled="query")
    (one,) = drawn.intervals("symmetric", _bounds(base, point.runs))
    if point.value is None:
        one = replace(one, reason=point.reason)
    elif one.low is not None and (_is_noise(table) or (x.ndim == 2 and _is_noise(x))):
        one = replace(one, low=None, high=None, reason="too few queries to say: noise hides how runs differ")
    return replace(point, interval=one, resampled="query")


def _is_noise(table: FloatArray) -> bool:
    """Whether the means of (queries, runs) hold so much noise that the symmetric interval of τ is far too narrow."""
    if min(table.shape) < 2 or np.isnan(table).any():
        return False
    reliability = variance_components(table).reliability
    least = min(_LEAST_RELIABILITY, 1.0 - _LOST_RELIABILITY / max(5, table.shape[1]))
    return reliability is not None and reliability < least


def drawn_over_queries(x: FloatArray, table: FloatArray, base: str, draws: Draws) -> tuple[Coefficient, Drawn]:
    """The coefficient of all runs, and what was drawn of it; see `correlate_over_queries`.

    Raises:
        InputError: a run has no score at all.
    """

    def values(counts: FloatArray) -> FloatArray:
        means = weighted_means(counts, table)
        reference = np.broadcast_to(x, means.shape) if x.ndim == 1 else weighted_means(counts, x)
        # Rounds in which a run has no score, because none of its queries was drawn, do not count.
        whole = ~np.isnan(reference + means).any(axis=1)
        result = np.full(len(counts), np.nan)
        result[whole] = COEFFICIENTS[base](reference[whole], means[whole])
        return result

    ones = np.ones((1, len(table)))
    x_mean = x if x.ndim == 1 else weighted_means(ones, x)[0]
    return correlate(x_mean, weighted_means(ones, table)[0], base), Resample(len(table), draws).draw(values)


def query_tau(official: ArrayLike, scores: ArrayLike, draws: Draws = USUAL_DRAWS) -> Interval:
    """Kendall's τ-b of the runs per query, averaged over queries.

    Runs without a score on either side (NaN) are left out of that query. Queries where τ is undefined take no
    part; `units` counts the others.

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
    defined = taus[~np.isnan(taus)]
    (interval,) = mean_intervals(defined[:, None], draws)
    if not len(defined):
        interval = replace(interval, reason="τ is undefined on every query")
    return within(interval, -1.0)


def pooled_tau(official: ArrayLike, scores: ArrayLike, draws: Draws = USUAL_DRAWS) -> Interval:
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
    both, untied_x, untied_y = np.zeros((3, queries, queries))
    for first in range(queries):
        valid = ~(missing[first][:, None] | missing[:, None, :])
        x_signs, y_signs = (np.where(valid, np.sign(one[first][:, None] - one[:, None, :]), 0.0) for one in (x, y))
        for target, signs in ((both, x_signs * y_signs), (untied_x, np.abs(x_signs)), (untied_y, np.abs(y_signs))):
            target[first] = signs.sum(axis=(1, 2))

    def statistic(counts: FloatArray) -> FloatArray:
        top, left, right = (((counts @ matrix) * counts).sum(axis=1) for matrix in (both, untied_x, untied_y))
        return ratio(top, np.sqrt(left * right))

    (interval,) = Resample(queries, draws).draw(statistic).intervals("symmetric", (-1.0, 1.0))
    return interval
