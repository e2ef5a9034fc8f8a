"""Rank correlation of two leaderboards: Kendall τ-b, Spearman, Pearson, τ_AP with and without ties, RBO, rank drop.

Every coefficient is one batch function on two arrays of shape (samples, runs), so that a point estimate (one sample)
and ten thousand bootstrap rounds run the same formula. Scores are always "higher is better"; turn ranks into scores
with `scores_from_ranks`. A value that does not exist (all runs tied, fewer than two runs) is NaN in a batch and `None`
with a reason in a `Coefficient`; it is never 0 and never 1.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.errors import InputError, UnknownNameError

__all__ = [
    "COEFFICIENTS",
    "Coefficient",
    "CoefficientName",
    "correlate",
    "kendall_batch",
    "max_rank_drop",
    "parse_coefficient",
    "pearson_batch",
    "rank_drop_batch",
    "ranks",
    "rbo_batch",
    "scores_from_ranks",
    "spearman_batch",
    "tau_ap_b_batch",
    "tau_ap_batch",
    "top_k",
]

FloatArray = NDArray[np.float64]
Batch = Callable[[FloatArray, FloatArray], FloatArray]

# Arrays of (samples, pairs of runs) are cut into pieces of about this many numbers, which stay in the processor's
# cache: five times faster than pieces of four millions.
PIECE = 300_000


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One correlation of two leaderboards.

    Attributes:
        name: `kendall`, …, with `@k` for a top-k variant.
        value: the coefficient, or None where it is undefined.
        runs: the number of runs that were compared.
        p_value: two-sided, for no association; None where no test is defined (τ_AP, RBO, rank drop) or value is None.
        reason: why value is None; empty otherwise.
    """

    name: str
    value: float | None
    runs: int
    p_value: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CoefficientName:
    """A coefficient's name taken apart: `kendall@15` is `base="kendall"`, `k=15`."""

    base: str
    k: int | None = None

    def __str__(self) -> str:
        return self.base if self.k is None else f"{self.base}@{self.k}"


def scores_from_ranks(rank_values: ArrayLike) -> FloatArray:
    """Ranks (1 is best) as scores (higher is better): score = −rank.

    >>> scores_from_ranks([1, 2, 3]).tolist()
    [-1.0, -2.0, -3.0]
    """
    return -np.asarray(rank_values, dtype=np.float64)


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
    if k < 1:
        raise InputError(f"top-k needs k of at least 1, not {k}")
    chosen: NDArray[np.intp] = np.flatnonzero(ranks(official, ties="min") <= k)
    return chosen


def pieces(samples: int, width: int) -> list[slice]:
    """Slices of the samples, each of about `PIECE` numbers when a sample has `width` of them."""
    step = max(1, PIECE // max(1, width))
    return [slice(start, min(start + step, samples)) for start in range(0, samples, step)]


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """numerator / denominator, NaN where the denominator is 0."""
    result = np.full(np.broadcast(numerator, denominator).shape, np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


def pair_signs(scores: FloatArray) -> NDArray[np.int8]:
    """The sign of score_i − score_j for all pairs i < j, one row a sample: what Kendall's τ is made of."""
    first, second = np.triu_indices(scores.shape[1], 1)
    left, right = scores[:, first], scores[:, second]
    return (left > right).view(np.int8) - (left < right).view(np.int8)


def kendall_from_signs(x_signs: NDArray[np.int8], y_signs: NDArray[np.int8]) -> FloatArray:
    """Kendall's τ-b of rows of pair signs; see `kendall_batch`."""
    # Sums of up to 2^24 units are exact in float32, which is several times faster than integers here.
    exact = "f4" if x_signs.shape[1] <= 1 << 24 else "f8"
    x: FloatArray = x_signs.astype(exact)
    y: FloatArray = y_signs.astype(exact)
    both = np.einsum("bp,bp->b", x, y).astype(np.float64)
    untied_x = np.einsum("bp,bp->b", x, x).astype(np.float64)
    untied_y = np.einsum("bp,bp->b", y, y).astype(np.float64)
    return _ratio(both, np.sqrt(untied_x * untied_y))


def kendall_batch(x: FloatArray, y: FloatArray) -> FloatArray:
    """Kendall's τ-b of every row of `x` with the same row of `y`.

    τ_b = (C − D) / sqrt((P − T_x)(P − T_y)), with P pairs, C concordant, D discordant, T_x and T_y tied in x and in y.
    In [−1, 1]; NaN where all runs of a side are tied or there are fewer than two.

    Source: Kendall, Rank Correlation Methods (1945 form for ties).

    >>> kendall_batch(np.array([[4.0, 3.0, 2.0, 1.0]]), np.array([[4.0, 2.0, 3.0, 1.0]])).round(4).tolist()
    [0.6667]
    """
    runs = x.shape[1]
    result = np.empty(len(x))
    for piece in pieces(len(x), runs * runs // 2):
        result[piece] = kendall_from_signs(pair_signs(x[piece]), pair_signs(y[piece]))
    return result


def pearson_batch(x: FloatArray, y: FloatArray) -> FloatArray:
    """Pearson's r of every row of `x` with the same row of `y`; in [−1, 1], NaN where a side is constant."""
    if x.shape[1] == 0:
        return np.full(len(x), np.nan)
    left = x - x.mean(axis=1, keepdims=True)
    right = y - y.mean(axis=1, keepdims=True)
    # A constant row leaves rounding noise after centring: constancy is decided on the values themselves.
    varies = (np.ptp(x, axis=1) > 0) & (np.ptp(y, axis=1) > 0)
    both = np.einsum("bp,bp->b", left, right)
    norm = np.sqrt(np.einsum("bp,bp->b", left, left) * np.einsum("bp,bp->b", right, right))
    return np.where(varies, np.clip(_ratio(both, norm), -1.0, 1.0), np.nan)


def spearman_batch(x: FloatArray, y: FloatArray) -> FloatArray:
    """Spearman's ρ: Pearson's r of average-tie ranks; in [−1, 1], NaN where all runs of a side are tied."""
    if x.shape[1] == 0:
        return np.full(len(x), np.nan)
    return pearson_batch(ranks(x), ranks(y))


def _harmonic(length: int) -> FloatArray:
    """H(0) … H(length), H(n) = 1 + 1/2 + … + 1/n."""
    return np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, length + 1))])


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
    harmonic = _harmonic(2 * runs)
    result = np.empty(samples)
    for piece in pieces(samples, runs * runs):
        xs, ys = x[piece], y[piece]
        above = ys[:, None, :] > ys[:, :, None]
        place = 1 + above.sum(axis=2)
        tied = (ys[:, None, :] == ys[:, :, None]).sum(axis=2)
        concordant = (above & (xs[:, None, :] > xs[:, :, None])).sum(axis=2)
        # A run of a group of t that starts at rank p stands at p, p+1, …, p+t−1 equally often.
        spread = harmonic[place + tied - 2] - harmonic[np.maximum(place - 2, 0)]
        total = np.where(place > 1, concordant * spread / tied, 0.0)
        # Inside a group every pair is concordant in half of the orders.
        inside = (tied - 1) - (place - 1) * (harmonic[place + tied - 2] - harmonic[place - 1])
        total += inside / (2.0 * tied)
        ordered = np.sort(xs, axis=1)
        has_ties = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        undefined = has_ties | (place.max(axis=1) == 1)
        result[piece] = np.where(undefined, np.nan, 2.0 * total.sum(axis=1) / (runs - 1) - 1.0)
    return result


def _tau_ap_b_one_way(x: FloatArray, y: FloatArray) -> FloatArray:
    above = y[:, None, :] > y[:, :, None]
    place = 1 + above.sum(axis=2)
    concordant = (above & (x[:, None, :] > x[:, :, None])).sum(axis=2)
    below_top = place > 1
    share = np.where(below_top, concordant / np.maximum(place - 1, 1), 0.0).sum(axis=1)
    return 2.0 * _ratio(share, below_top.sum(axis=1).astype(np.float64)) - 1.0


def tau_ap_b_batch(x: FloatArray, y: FloatArray) -> FloatArray:
    """Symmetric AP correlation of two rankings that may both have ties, τ_AP,b.

    The mean of two directions; in one direction 2/(n − t_1) Σ_{i > t_1} C(i)/(p_i − 1) − 1, where p_i is the first rank
    of the group of run i, t_1 the size of the top group, C(i) the runs above that group which the other ranking, too,
    has above run i. In [−1, 1]; NaN where all runs of a side are tied.

    Source: Urbano and Marrero, The Treatment of Ties in AP Correlation (ICTIR 2017), section 4.
    """
    samples, runs = x.shape
    result = np.empty(samples)
    for piece in pieces(samples, runs * runs):
        xs, ys = x[piece], y[piece]
        result[piece] = (_tau_ap_b_one_way(xs, ys) + _tau_ap_b_one_way(ys, xs)) / 2.0
    return result


def _contributions(scores: FloatArray, ties: str) -> FloatArray:
    """How much of each run is in the ranking down to depth 1 … n: (samples, runs, depths), in [0, 1]."""
    runs = scores.shape[1]
    first = (scores[:, None, :] > scores[:, :, None]).sum(axis=2)[:, :, None]
    size = (scores[:, None, :] == scores[:, :, None]).sum(axis=2)[:, :, None]
    depth = np.arange(1, runs + 1)[None, None, :]
    if ties == "w":
        entered: FloatArray = (depth > first).astype(np.float64)
        return entered
    share: FloatArray = np.clip((depth - first) / size, 0.0, 1.0)
    return share


def rbo_batch(x: FloatArray, y: FloatArray, p: float = 0.9, ties: Literal["a", "b", "w"] = "a") -> FloatArray:
    """Rank-biased overlap, extrapolated, of two rankings of the same runs.

    RBO_EXT = (1−p)/p [Σ_{d=1..n} A_d p^d + A_n p^(n+1)/(1−p)], A_d the agreement of the two rankings at depth d. With
    X_d = Σ_i c_i(d) c'_i(d), c_i(d) the share of run i above depth d: ties "a" (a tie is an unknown order; the mean
    over all orders) A_d = X_d / d; "b" (the same, corrected for what ties hide) A_d = X_d / (|c(d)| |c'(d)|); "w" (a
    tie is equality, all of a group enter with its first rank) A_d = 2 X_d / (Σ c + Σ c'). In [0, 1]; with everything
    tied "b" and "w" say 1 and "a" its chance value; NaN where there is no run.

    Args:
        x: scores, (samples, runs), higher is better.
        y: the other leaderboard's.
        p: persistence, between 0 and 1; the higher, the deeper it looks.
        ties: the variant.

    Raises:
        InputError: p is not between 0 and 1.

    Source: Webber, Moffat and Zobel (TOIS 2010); ties: Corsi and Urbano (SIGIR 2024), sections 4 and 5.
    """
    if not 0.0 < p < 1.0:
        raise InputError(f"RBO's persistence p is {p}; it lies between 0 and 1")
    samples, runs = x.shape
    if runs == 0:
        return np.full(samples, np.nan)
    weights = p ** np.arange(1, runs + 1)
    result = np.empty(samples)
    for piece in pieces(samples, runs * runs):
        left, right = _contributions(x[piece], ties), _contributions(y[piece], ties)
        overlap = (left * right).sum(axis=1)
        if ties == "w":
            agreement = 2.0 * overlap / (left.sum(axis=1) + right.sum(axis=1))
        elif ties == "a":
            agreement = overlap / np.arange(1, runs + 1)
        else:
            agreement = overlap / np.sqrt((left**2).sum(axis=1) * (right**2).sum(axis=1))
        tail = agreement[:, -1] * p ** (runs + 1) / (1.0 - p)
        result[piece] = (1.0 - p) / p * (agreement @ weights + tail)
    return result


def rank_drop_batch(x: FloatArray, y: FloatArray) -> FloatArray:
    """The maximum rank drop: the most ranks that a run loses from `x` to `y`, average-tie ranks; 0 is best."""
    if x.shape[1] == 0:
        return np.full(len(x), np.nan)
    drop: FloatArray = (ranks(y) - ranks(x)).max(axis=1)
    return drop


def max_rank_drop(official: ArrayLike, scores: ArrayLike) -> tuple[float, int]:
    """The most ranks a run loses from the official leaderboard to the other, and the index of the first such run.

    Average-tie ranks, so a drop may be a half. In [0, n − 1], 0 when no run loses a rank.

    Raises:
        InputError: there is no run, or the lengths differ.

    It shows the worst case for one system, which a τ near 1 can hide.
    """
    x, y = _two_arrays(official, scores)
    if not len(x):
        raise InputError("the maximum rank drop needs at least one run")
    drops = ranks(y) - ranks(x)
    worst = int(np.argmax(drops))
    return float(drops[worst]), worst


COEFFICIENTS: dict[str, Batch] = {
    "kendall": kendall_batch,
    "spearman": spearman_batch,
    "pearson": pearson_batch,
    "tau_ap": tau_ap_batch,
    "tau_ap_b": tau_ap_b_batch,
    "rbo": rbo_batch,
    "max_rank_drop": rank_drop_batch,
}


def parse_coefficient(text: str) -> CoefficientName:
    """Reads `kendall`, `kendall@15`, ….

    Raises:
        UnknownNameError: no such coefficient.
        InputError: what follows `@` is no positive whole number.

    >>> parse_coefficient("tau_ap@10")
    CoefficientName(base='tau_ap', k=10)
    """
    base, at, tail = text.partition("@")
    if base not in COEFFICIENTS:
        raise UnknownNameError("coefficient", base, COEFFICIENTS)
    if at and not re.fullmatch(r"[1-9][0-9]*", tail):
        raise InputError(f"coefficient {text!r}: after '@' comes a positive whole number")
    return CoefficientName(base, int(tail) if at else None)


def _two_arrays(official: ArrayLike, scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, y = np.asarray(official, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise InputError(f"a correlation needs two lists of the same length, not shapes {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("a correlation needs finite scores; leave runs without a score out (and say so)")
    return x, y


def undefined_reason(name: CoefficientName, x: FloatArray, y: FloatArray) -> str:
    """Why a coefficient of these two lists is undefined; empty when the formula does not say."""
    if len(x) < 2:
        return f"{len(x)} run{'' if len(x) == 1 else 's'} in common; a correlation needs two"
    if np.ptp(x) == 0:
        return "all runs are tied in the first leaderboard"
    if name.base == "tau_ap" and len(np.unique(x)) < len(x):
        return "the first leaderboard has ties; use tau_ap_b"
    if np.ptp(y) == 0:
        return "all runs are tied in the second leaderboard"
    return ""


def correlate(
    official: Sequence[float] | FloatArray, scores: Sequence[float] | FloatArray, name: str | CoefficientName
) -> Coefficient:
    """One coefficient of two leaderboards over the same runs, with the p-value where scipy gives one.

    Args:
        official: the reference's score of each run, higher is better (`scores_from_ranks` for ranks).
        scores: the other leaderboard's, same order.
        name: a name of `COEFFICIENTS`, with `@k` for the runs of official rank ≤ k only.

    Returns:
        the coefficient; `value` is None with a reason where it is undefined (all runs tied on a side, fewer than two
        runs, ties in the official ranking for τ_AP).

    Raises:
        UnknownNameError: no such coefficient.
        InputError: lengths differ, or a score is not finite.

    >>> correlate([3, 2, 1], [0.9, 0.4, 0.5], "kendall").value.__round__(4)
    0.3333
    >>> correlate([3, 2, 1], [1, 1, 1], "kendall").reason
    'all runs are tied in the second leaderboard'
    """
    wanted = parse_coefficient(name) if isinstance(name, str) else name
    x, y = _two_arrays(official, scores)
    if wanted.k is not None and len(x):
        chosen = top_k(x, wanted.k)
        x, y = x[chosen], y[chosen]
    reason = undefined_reason(wanted, x, y)
    if reason:
        return Coefficient(str(wanted), None, len(x), reason=reason)
    value = float(COEFFICIENTS[wanted.base](x[None, :], y[None, :])[0])
    return Coefficient(str(wanted), value, len(x), _p_value(wanted.base, x, y))


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
