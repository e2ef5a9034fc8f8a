"""How likely a test decides, and how many queries it needs for that: the t-test, equivalence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.base.errors import InputError
from rubric_measures.meta_evaluation._bootstrap import FloatArray

# A test that so many queries do not decide is not decided by queries.
MOST_QUERIES = 1_000_000
# Beyond this non-centrality a test that asks for 0.1 % of error has power 1 in double precision.
_FAR = 35.0
# Nodes of the integral over the standard deviation; 64 give five digits.
_NODES = 64


def t_power(difference: ArrayLike, deviation: ArrayLike, queries: ArrayLike, alpha: ArrayLike) -> FloatArray:
    """The power of the two-sided paired t-test: P(|T| > t_{1−α/2}), T noncentral t with √n d/σ and n − 1 degrees.

    Args:
        difference: the true mean difference d.
        deviation: σ, the standard deviation of a query's difference, above 0.
        queries: n, at least 2.
        alpha: the level.

    Source: Cohen, Statistical Power Analysis (1988); in retrieval: Sakai, Topic set size design (IRJ 2016).

    >>> round(float(t_power(0.5, 1.0, 34, 0.05)), 4)
    0.8078
    """
    from scipy.special import nctdtr, stdtrit

    n = np.asarray(queries, dtype=np.float64)
    far = np.minimum(np.abs(difference) / np.asarray(deviation, dtype=np.float64) * np.sqrt(n), _FAR)
    reach = stdtrit(n - 1.0, 1.0 - np.asarray(alpha, dtype=np.float64) / 2.0)
    # Beyond the mean by eight standard deviations of T nothing is left of the lower tail.
    power: FloatArray = np.where(far >= _FAR, 1.0, 1.0 - nctdtr(n - 1.0, far, reach) + _lower(n - 1.0, far, reach))
    return np.clip(power, 0.0, 1.0)


def _lower(freedom: FloatArray, far: FloatArray, reach: FloatArray) -> FloatArray:
    """P(T < −reach), which is P(T' > reach) of the mirrored distribution."""
    from scipy.special import nctdtr

    below: FloatArray = 1.0 - nctdtr(freedom, -far, reach)
    return np.clip(np.nan_to_num(below), 0.0, 1.0)


def equivalence_power(
    difference: ArrayLike, deviation: ArrayLike, queries: ArrayLike, alpha: ArrayLike, smallest: float
) -> FloatArray:
    """The power of two one-sided t-tests to show that |d| < δ.

    With S the sample's standard deviation: E_S [Φ((δ − t S/√n − d) √n/σ) − Φ((t S/√n − δ − d) √n/σ)]⁺, t the
    1 − α quantile; Σ over quantiles of the χ² distribution of S² (Gauss and Legendre's nodes).

    Args:
        difference: the true mean difference d.
        deviation: σ, above 0.
        queries: n, at least 2.
        alpha: the level of each of the two tests.
        smallest: δ.

    Source: Schuirmann (1987); the exact power as in Phillips (1990), by an integral of our own.
    """
    from scipy.special import chdtri, ndtr, stdtrit

    d, sigma, n, level = np.broadcast_arrays(
        *(np.asarray(value, dtype=np.float64) for value in (difference, deviation, queries, alpha))
    )
    places, weights = np.polynomial.legendre.leggauss(_NODES)
    shares, weights = (places + 1.0) / 2.0, weights / 2.0
    freedom = n[..., None] - 1.0
    drawn = sigma[..., None] * np.sqrt(chdtri(freedom, shares) / freedom)
    root = np.sqrt(n)[..., None]
    reach = stdtrit(freedom, 1.0 - level[..., None]) * drawn / root
    upper, lower = (
        ndtr((end - d[..., None]) * root / sigma[..., None]) for end in (smallest - reach, reach - smallest)
    )
    inside: FloatArray = np.clip(upper - lower, 0.0, None) @ weights
    return inside


def least_queries(decides: Callable[[FloatArray], NDArray[np.bool_]], size: int) -> FloatArray:
    """The least number of queries, at least 2, from which on each of `size` tests decides; infinity beyond a million.

    Args:
        decides: numbers of queries (size,) -> whether each test decides with them; once it does, more queries do.
        size: how many tests.
    """
    low, high = np.full(size, 1.0), np.full(size, float(MOST_QUERIES))
    never = ~decides(high)
    while (high - low > 1.0).any():
        middle = np.floor((low + high) / 2.0)
        # A search that ended asks about 2 queries at least, as the tests do.
        found = decides(np.maximum(middle, 2.0))
        high, low = np.where(found, middle, high), np.where(found, low, middle)
    return np.where(never, np.inf, np.maximum(high, 2.0))


def check_smallest(smallest: float) -> None:
    """Refuses a smallest difference that is none."""
    if not 0.0 < smallest < np.inf:
        raise InputError(
            f"the smallest difference that matters is above 0, not {smallest:g}", settings=("smallest", "delta")
        )
