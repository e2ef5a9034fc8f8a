"""Are two runs different: paired tests over queries, corrections for many pairs, effect sizes, groups of equals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rubric_measures.base.errors import InputError
from rubric_measures.base.seeds import seeded
from rubric_measures.meta_evaluation._bootstrap import DEFAULT_ROUNDS, DEFAULT_SEED, FloatArray
from rubric_measures.types.scales import LARGEST_SCORE

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
