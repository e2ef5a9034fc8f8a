"""Kendall's τ of two leaderboards without the noise of their queries: what ever more queries would lead to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rubric_measures.base.seeds import seeded
from rubric_measures.meta_evaluation._bootstrap import USUAL_DRAWS, Draws, FloatArray
from rubric_measures.meta_evaluation.correlation import kendall_batch

__all__ = ["NoiseFreeTau", "noise_free_tau"]

# So many draws of the true means; τ of each is known to about 0.005.
_MOST_DRAWS = 2000
# Where fewer of the covariances that are drawn leave runs a variance of their own, nothing can be said.
_LEAST_KEPT = 0.05


@dataclass(frozen=True, slots=True)
class NoiseFreeTau:
    """Kendall's τ of the true means of two measures.

    Attributes:
        observed: τ-b of the means over these queries; None where a side is all tied.
        expected: the expected τ of the true means, given the scores; None with a reason.
        low: lower end of its interval; None likewise.
        high: upper end.
        level: the nominal coverage.
        runs: how many runs.
        queries: how many queries.
        reason: why there is none; empty where it was not asked for.
    """

    observed: float | None
    expected: float | None
    low: float | None
    high: float | None
    level: float
    runs: int
    queries: int
    reason: str = ""


def noise_free_tau(official: ArrayLike, scores: ArrayLike, draws: Draws = USUAL_DRAWS) -> NoiseFreeTau:
    """The τ that two measures would have over ever more queries of the same kind.

    The noise of queries moves runs past each other, on both sides, and so lowers τ; where the noise of both sides goes
    together, because the queries are the same, it raises τ. The model: a run's pair of true means is normal among runs
    with covariance T, and the pair of scores of a query is that, what the query does to all runs, and noise with
    covariance E. So the means of runs have the covariance B = T + E/n. E and B are drawn from their inverse Wishart
    posteriors (of the residuals of a two-way analysis of variance, and of the means), and kept where B − E/n is a
    covariance; the true means are then drawn as normal with mean T B⁻¹ (means) and covariance T − T B⁻¹ T. `expected`
    is the mean of τ of what is drawn, the interval its quantiles. How right it is, and where it is not, stands in
    benchmarks/README.md.

    Args:
        official: (queries, runs), complete.
        scores: (queries, runs), the same queries and runs.
        draws: seed, level and rounds (at most 2,000 are drawn; 0 gives the observed value alone).

    Source: the random-effects model of generalizability theory for two measures (Brennan, Generalizability Theory 2001,
    chapter 9), drawn as in Gelman et al., Bayesian Data Analysis (2013), chapter 5; for one measure the question is
    that of Urbano and Marrero (SIGIR 2016).
    """
    x, y = np.asarray(official, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    queries, runs = x.shape
    means = np.stack([x.mean(axis=0), y.mean(axis=0)], axis=1)
    rounded = np.round(means, 12)
    found = float(kendall_batch(rounded[None, :, 0], rounded[None, :, 1])[0])
    observed = None if np.isnan(found) else found

    def nothing(reason: str) -> NoiseFreeTau:
        return NoiseFreeTau(observed, None, None, None, draws.level, runs, queries, reason)

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
        return nothing("the runs do not differ beyond the noise of the queries")
    kept = kept[:size]
    weight = real[kept] @ np.linalg.inv(whole[kept])
    spread = np.linalg.cholesky(_positive(real[kept] - weight @ real[kept]))
    drawn = np.einsum("sab,rb->sra", weight, among)
    drawn += np.einsum("sab,srb->sra", spread, generator.standard_normal((len(kept), runs, 2)))
    taus = kendall_batch(drawn[:, :, 0], drawn[:, :, 1])
    low, high = np.quantile(taus, [(1.0 - draws.level) / 2.0, (1.0 + draws.level) / 2.0])
    return NoiseFreeTau(observed, float(taus.mean()), float(low), float(high), draws.level, runs, queries)


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
