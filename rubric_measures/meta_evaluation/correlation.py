"""Rank correlation of two leaderboards: Kendall τ-b, Spearman, Pearson, τ_AP (also with ties), τ_GAP, RBO, rank drop.

Every coefficient is one batch function on two arrays of shape (samples, runs), so that a point estimate (one sample)
and ten thousand bootstrap rounds run the same formula. Scores are always "higher is better"; negate ranks.
A value that does not exist (all runs tied, fewer than two runs) is NaN in a batch and `None`
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

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.meta_evaluation._bootstrap import FloatArray, pieces, ratio
from rubric_measures.meta_evaluation._top_weighted import rbo_batch, tau_ap_b_batch, tau_ap_batch, tau_gap_batch
from rubric_measures.types.scales import LARGEST_SCORE

__all__ = [
    "COEFFICIENTS",
    "Coefficient",
    "correlate",
    "kendall_batch",
    "parse_coefficient",
    "pearson_batch",
    "rank_drop_batch",
    "ranks",
    "spearman_batch",
    "top_k",
]

Batch = Callable[[FloatArray, FloatArray], FloatArray]


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
    """

    name: str
    value: float | None
    runs: int
    p_value: float | None = None
    reason: str = ""


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
    return ratio(both, np.sqrt(untied_x * untied_y))


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


def _two_arrays(official: ArrayLike, scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, y = np.asarray(official, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if not ((np.abs(x) <= LARGEST_SCORE).all() and (np.abs(y) <= LARGEST_SCORE).all()):
        raise InputError("a correlation needs finite scores (at most 1e100); leave out runs without a score")
    return x, y


def undefined_reason(base: str, x: FloatArray, y: FloatArray) -> str:
    """Why a coefficient of these two lists is undefined; empty when the formula does not say."""
    if len(x) < 2:
        return f"{len(x)} run{'' if len(x) == 1 else 's'} in common; a correlation needs two"
    if np.ptp(x) == 0:
        return "all runs are tied in the first leaderboard"
    if base == "tau_ap" and len(np.unique(x)) < len(x):
        return "the first leaderboard has ties; use tau_ap_b"
    if np.ptp(y) == 0:
        return "all runs are tied in the second leaderboard"
    return ""


def correlate(
    official: Sequence[float] | FloatArray,
    scores: Sequence[float] | FloatArray,
    name: str,
    *,
    test: bool = True,
) -> Coefficient:
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
    base, k = parse_coefficient(name)
    x, y = _two_arrays(official, scores)
    if k is not None and len(x):
        chosen = top_k(x, k)
        x, y = x[chosen], y[chosen]
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
