"""Rank correlation in which errors at the top weigh most: τ_AP with and without ties, τ_GAP, rank-biased overlap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rubric_measures.meta_evaluation._bootstrap import FloatArray, pieces, ratio


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
        undefined = _has_ties(xs) | (place.max(axis=1) == 1)
        result[piece] = np.where(undefined, np.nan, 2.0 * total.sum(axis=1) / (runs - 1) - 1.0)
    return result


def _tau_ap_b_one_way(x: FloatArray, y: FloatArray) -> FloatArray:
    above = y[:, None, :] > y[:, :, None]
    place = 1 + above.sum(axis=2)
    concordant = (above & (x[:, None, :] > x[:, :, None])).sum(axis=2)
    below_top = place > 1
    share = np.where(below_top, concordant / np.maximum(place - 1, 1), 0.0).sum(axis=1)
    return 2.0 * ratio(share, below_top.sum(axis=1).astype(np.float64)) - 1.0


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
    samples, runs = x.shape
    result = np.empty(samples)
    for piece in pieces(samples, runs * runs):
        xs, ys = x[piece], y[piece]
        above = ys[:, None, :] > ys[:, :, None]
        gaps = np.where(above, xs[:, None, :] - xs[:, :, None], 0.0)
        shares = ratio(np.maximum(gaps, 0.0).sum(axis=2), np.abs(gaps).sum(axis=2))
        counts = ~np.isnan(shares)
        result[piece] = (
            2.0 * ratio(np.where(counts, shares, 0.0).sum(axis=1), counts.sum(axis=1).astype(np.float64)) - 1.0
        )
    return result


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


def _rbo_without_ties(x: FloatArray, y: FloatArray, p: float) -> FloatArray:
    """RBO_EXT where no run is tied: run i is in both rankings from depth m_i on, m_i the larger of its two ranks.

    So Σ_d X_d p^d / d = Σ_i W(m_i) with W(m) = Σ_{d=m..n} p^d / d, and A_n = 1: a look-up for each run, not for each
    run and depth.
    """
    runs = x.shape[1]
    depths = np.arange(1, runs + 1)
    tails = np.cumsum((p**depths / depths)[::-1])[::-1]
    rank_x, rank_y = (np.argsort(np.argsort(-scores, axis=1), axis=1) for scores in (x, y))
    seen: FloatArray = tails[np.maximum(rank_x, rank_y)].sum(axis=1)
    result: FloatArray = (1.0 - p) / p * (seen + p ** (runs + 1) / (1.0 - p))
    return result


def rbo_batch(x: FloatArray, y: FloatArray, p: float = 0.9) -> FloatArray:
    """Rank-biased overlap, extrapolated, of two rankings of the same runs.

    RBO_EXT = (1−p)/p [Σ_{d=1..n} A_d p^d + A_n p^(n+1)/(1−p)], A_d the agreement of the two rankings at depth d. With
    X_d = Σ_i c_i(d) c'_i(d), c_i(d) the share of run i above depth d, A_d = X_d / d: a tie is an unknown order, and the
    value the mean over all orders (the paper's RBO^a). In [0, 1].

    The persistence p is between 0 and 1; the higher, the deeper it looks.

    Source: Webber, Moffat and Zobel (TOIS 2010); ties: Corsi and Urbano (SIGIR 2024), sections 4 and 5.
    """
    samples, runs = x.shape
    weights = p ** np.arange(1, runs + 1)
    result = np.empty(samples)
    tied = _has_ties(x) | _has_ties(y)
    result[~tied] = _rbo_without_ties(x[~tied], y[~tied], p)
    rows = np.flatnonzero(tied)
    for part in pieces(len(rows), runs * runs):
        piece = rows[part]
        agreement = (_contributions(x[piece]) * _contributions(y[piece])).sum(axis=1) / np.arange(1, runs + 1)
        tail = agreement[:, -1] * p ** (runs + 1) / (1.0 - p)
        result[piece] = (1.0 - p) / p * (agreement @ weights + tail)
    return result
