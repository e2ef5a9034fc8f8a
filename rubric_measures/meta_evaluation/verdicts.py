"""What tests of pairs conclude: better, worse, the same within the smallest difference that matters, or not decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.meta_evaluation._bootstrap import FloatArray
from rubric_measures.meta_evaluation._power import check_smallest, equivalence_power, least_queries, t_power
from rubric_measures.meta_evaluation._significance import ROUNDING, Correction, adjust, one_sided_flips
from rubric_measures.meta_evaluation.variance import Components

__all__ = ["DEFAULT_SMALLEST", "Outlook", "Verdict", "equivalence_p", "outlook", "verdicts"]

DEFAULT_SMALLEST = 0.02
# Of the tests that more queries would make.
_POWER = 0.8
Conclusion = Literal["better", "worse", "same", "undecided"]
# The shares of pairs whose number of queries is told.
_SHARES = (0.5, 0.75, 0.9, 0.95)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is concluded of a pair.

    Attributes:
        conclusion: of the first run against the second: `better` or `worse` (different after correction), `same` (the
            difference is shown to be below the smallest one that matters), or `undecided`.
        p_same: the p-value of the equivalence test, corrected; None where it is undefined.
        within: whether the difference is shown to be below the smallest one. Of runs that are `better` or `worse` it
            says that the difference is there, and does not matter.
        more_queries: how many more queries decide an undecided pair with power 0.8, if the true difference is
            the one seen: the fewer of those that show a difference and those that show that it is too small to matter;
            None for decided pairs and where a million do not.
        at_most: how many more queries decide it whatever the true difference is; it depends on the deviation alone.
    """

    conclusion: Conclusion
    p_same: float | None
    within: bool
    more_queries: int | None = None
    at_most: int | None = None


@dataclass(frozen=True, slots=True)
class Outlook:
    """What more queries would do for a whole board.

    Attributes:
        smallest: δ, the smallest difference that matters.
        power: the power that `more_queries` ask for.
        queries: the queries of the board.
        pairs: how many pairs are compared.
        separated: the share of them that is called different.
        expected: the share that a board of so many other queries is expected to call different; None where the runs do
            not differ beyond noise.
        needed: (share of the pairs, queries of a board that is expected to separate it; None where a million do not).
    """

    smallest: float
    power: float
    queries: int
    pairs: int
    separated: float
    expected: float | None
    needed: tuple[tuple[float, int | None], ...]


def equivalence_p(differences: ArrayLike, smallest: float) -> float | None:
    """Two one-sided t-tests: the p-value of |mean difference| < δ, the larger of the two.

    t₁ = (d̄ + δ) / (s/√n) against d ≤ −δ, and t₂ = (d̄ − δ) / (s/√n) against d ≥ δ. Where all differences are equal, the
    exact sign-flip test counts: 2^−n if they are below δ, else 1. None with one query.

    Source: Schuirmann, A comparison of the two one-sided tests procedure (1987).

    >>> round(equivalence_p([0.01, -0.01, 0.02, 0.0], 0.05), 4)
    0.003
    """
    from scipy.special import stdtr

    values = np.asarray(differences, dtype=np.float64)
    n = len(values)
    if n < 2:
        return None
    mean = float(values.mean())
    if float(np.ptp(values)) <= ROUNDING * float(np.abs(values).max()):
        return float(2.0**-n) if abs(mean) < smallest else 1.0
    error = float(values.std(ddof=1)) / np.sqrt(n)
    return float(max(stdtr(n - 1, -(mean + smallest) / error), stdtr(n - 1, (mean - smallest) / error)))


def verdicts(
    differences: Sequence[FloatArray],
    p_adjusted: Sequence[float | None],
    correction: Correction,
    *,
    smallest: float = DEFAULT_SMALLEST,
    alpha: float = 0.05,
    flips: tuple[int, int] | None = None,
) -> list[Verdict]:
    """The verdict on each pair.

    Differences and equivalences are two families of tests, and each is corrected by itself: with `holm` the chance of
    any false "better" or "worse" is at most α, and that of any false "same" is at most α.

    `more_queries` and `at_most` are by t-tests at the level that the correction has for the next pair: α / (m − r) of
    Holm, α (r + 1) / m of BH, r the pairs already decided that way. With half widths w of a difference's t interval
    and v of the equivalence test's, w + v ≤ δ decides for sure: what is not different is then within δ.

    Args:
        differences: of each pair the differences of its queries, first − second.
        p_adjusted: of each pair the corrected p-value of its difference; None where it has none.
        correction: `holm`, `bh` or `none`.
        smallest: δ, the smallest difference that matters, in the measure's unit.
        alpha: the level of both families.
        flips: rounds and seed of sign flips in the place of t-tests.

    Raises:
        InputError: δ is not above 0.
    """
    check_smallest(smallest)
    if flips is None:
        raw = [equivalence_p(one, smallest) for one in differences]
    else:
        both = [np.stack([one + smallest, smallest - one], axis=1) for one in differences]
        raw = [float(one_sided_flips(one, *flips).max()) if len(one) > 1 else None for one in both]
    p_same = adjust(raw, correction)
    different = np.array([p is not None and p < alpha for p in p_adjusted], dtype=np.bool_)
    within = np.array([p is not None and p < alpha for p in p_same], dtype=np.bool_)
    levels = [next_level(alpha, len(differences), int(found.sum()), correction) for found in (different, within)]
    more: dict[int, tuple[int | None, int | None]] = {}
    several = [place for place in np.flatnonzero(~different & ~within).tolist() if len(differences[place]) > 1]
    if several:
        needed = _needed([differences[place] for place in several], levels[0], levels[1], smallest)
        for place, *ends in zip(several, *needed, strict=True):
            more[place] = (_beyond(ends[0], differences[place]), _beyond(ends[1], differences[place]))
    return [
        Verdict(
            _conclusion(float(one.mean()), bool(different[place]), bool(within[place])),
            p_same[place],
            bool(within[place]),
            *more.get(place, (None, None)),
        )
        for place, one in enumerate(differences)
    ]


def _conclusion(mean: float, is_different: bool, is_within: bool) -> Conclusion:
    if is_different:
        return "better" if mean > 0 else "worse"
    return "same" if is_within else "undecided"


def next_level(alpha: float, pairs: int, decided: float, correction: Correction) -> float:
    """The level of the next pair's test where some pairs are decided already."""
    if correction == "none":
        return alpha
    if correction == "bh":
        return alpha * min(decided + 1.0, float(pairs)) / pairs
    return alpha / max(pairs - decided, 1.0)


def _beyond(queries: float, differences: FloatArray) -> int | None:
    """How many more than there are; at least one, because these decide nothing."""
    return None if np.isinf(queries) else max(int(queries) - len(differences), 1)


def _needed(
    differences: Sequence[FloatArray], level: float, level_same: float, smallest: float
) -> tuple[FloatArray, FloatArray]:
    """The queries that decide each pair if its true difference is the one seen, and whatever it is."""
    from scipy.special import stdtrit

    means = np.array([one.mean() for one in differences])
    # Two runs that differ by the same everywhere have no deviation; rounding is the least there can be.
    spreads = np.array([max(one.std(ddof=1), ROUNDING * smallest) for one in differences])

    def sure(n: FloatArray) -> NDArray[np.bool_]:
        half = (stdtrit(n - 1.0, 1.0 - level / 2.0) + stdtrit(n - 1.0, 1.0 - level_same)) * spreads / np.sqrt(n)
        decided: NDArray[np.bool_] = half <= smallest
        return decided

    at_most = least_queries(sure, len(means))
    apart = least_queries(lambda n: t_power(means, spreads, n, level) >= _POWER, len(means))
    near = np.full(len(means), np.inf)
    small = np.flatnonzero(np.abs(means) < smallest)
    if len(small):
        near[small] = least_queries(
            lambda n: equivalence_power(means[small], spreads[small], n, level_same, smallest) >= _POWER, len(small)
        )
    return np.minimum(np.minimum(apart, near), at_most), at_most


def outlook(
    differences: Sequence[FloatArray],
    decided: Sequence[bool],
    correction: Correction,
    components: Components | None,
    *,
    smallest: float = DEFAULT_SMALLEST,
    alpha: float = 0.05,
) -> Outlook:
    """How many queries separate how many of the pairs.

    The differences that are seen are too large on average, because noise spreads runs. So each is shrunk to what it is
    worth: with σ² the variance of runs beyond noise and s²/n the squared standard error of the difference d, the true
    one is normal with mean B d and variance 2 σ² (1 − B), B = 2 σ² / (2 σ² + s²/n). A board of N other queries finds it
    with P(|Z| > t), Z normal with mean B d √N / s and variance 1 + 2 σ² (1 − B) N / s². The level is that of the
    correction where as many pairs are different as are expected. By simulation: benchmarks/README.md.

    Args:
        differences: of each pair the differences of its queries.
        decided: of each pair whether it is called different.
        correction: `holm`, `bh` or `none`.
        components: the variance components of the board; None where they are not known.
        smallest: for the result.
        alpha: the level.
    """
    pairs = len(differences)
    queries = max(map(len, differences))
    separated = sum(decided) / pairs
    several = [one for one in differences if len(one) > 1 and np.ptp(one) > 0]
    expected, needed = None, []
    if components is not None and components.runs > 0 and several:
        seen = np.array([(one.mean(), one.std(ddof=1), len(one)) for one in several])
        means, spreads, sizes = seen.T
        # Runs that are equal, or differ by a constant, everywhere are as they are, whatever the number of queries.
        constant = sum(1 for one in differences if len(one) > 1 and np.ptp(one) == 0 and one[0] != 0)

        def share(n: float) -> float:
            return (_expected_share(n, means, spreads, sizes, components.runs, alpha, correction, pairs) * len(several)
                    + constant) / pairs  # fmt: skip

        expected = share(float(queries))
        for wanted in _SHARES:

            def is_enough(n: FloatArray, wanted: float = wanted) -> NDArray[np.bool_]:
                return np.array([share(float(n[0])) >= wanted])

            found = float(least_queries(is_enough, 1)[0])
            needed.append((wanted, None if np.isinf(found) else int(found)))
    return Outlook(smallest, _POWER, queries, pairs, separated, expected, tuple(needed))


def _expected_share(
    n: float,
    means: FloatArray,
    spreads: FloatArray,
    sizes: FloatArray,
    variance: float,
    alpha: float,
    correction: Correction,
    pairs: int,
) -> float:
    """The expected share of pairs that n queries call different."""
    from scipy.special import ndtr, stdtrit

    prior, noise = 2.0 * variance, spreads**2 / sizes
    worth = prior / (prior + noise)
    centre = worth * np.abs(means) * np.sqrt(n) / spreads
    spread = np.sqrt(1.0 + prior * (1.0 - worth) * n / spreads**2)
    share = 0.0
    # The level depends on how many pairs are different, and that on the level; the first fixed point from below.
    for _ in range(100):
        limit = float(stdtrit(n - 1.0, 1.0 - next_level(alpha, pairs, share * pairs, correction) / 2.0))
        found = float(np.mean(ndtr((centre - limit) / spread) + ndtr((-centre - limit) / spread)))
        if found - share < 1e-6:
            break
        share = found
    return found
