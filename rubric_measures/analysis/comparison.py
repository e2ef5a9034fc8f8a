"""Runs compared by query: tests, verdicts, and how many queries an experiment needs.

Where the variance of a leaderboard's scores comes from: runs, queries, and the rest that only both explain.

How likely a test decides, and how many queries it needs for that: the t-test, equivalence.

What tests of pairs conclude: better, worse, the same within the smallest difference that matters, or not decided.

Runs against runs: paired tests of all pairs or against a baseline, corrected, with groups of equals.

How many queries an experiment needs, and what a measure can tell: from the scores of a board that is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.analysis.resampling import (
    DEFAULT_ROUNDS,
    DEFAULT_SEED,
    ROUNDING,
    Correction,
    FloatArray,
    PairedTest,
    adjust,
    groups_of_equals,
    one_sided_flips,
    paired_tests,
)
from rubric_measures.base.errors import InputError, UnknownNameError


@dataclass(frozen=True, slots=True)
class Components:
    """Variance components of scores, in squared units of the measure.

    Attributes:
        runs: variance of the runs' true means; 0 where the estimate is negative.
        queries: variance of the queries' difficulty; likewise.
        rest: variance of what a run does on a query beyond both; noise of runs and queries cannot be told from it.
        run_count: how many runs.
        query_count: how many queries.
    """

    runs: float
    queries: float
    rest: float
    run_count: int
    query_count: int

    @property
    def shares(self) -> list[float | None]:
        """The shares of runs, queries and rest in the sum of the three; None of 0."""
        parts = (self.runs, self.queries, self.rest)
        total = self.runs + self.queries + self.rest
        return [part / total if total else None for part in parts]

    @property
    def reliability(self) -> float | None:
        """The share of the variance of the means that is of runs: runs / (runs + rest / queries), Eρ²; None of 0."""
        whole = self.runs + self.rest / self.query_count
        return self.runs / whole if whole > 0 else None


def variance_components(scores: ArrayLike) -> Components:
    """The components of a two-way analysis of variance of runs and queries, both random, one score a cell.

    MS_runs = n Σ (x̄_r − x̄)² / (k − 1), MS_queries = k Σ (x̄_q − x̄)² / (n − 1), MS_rest that of what is left;
    σ²_runs = (MS_runs − MS_rest) / n, σ²_queries = (MS_queries − MS_rest) / k, σ²_rest = MS_rest.

    Args:
        scores: (queries, runs), complete, two or more of both.

    Source: Bodoff and Li (SIGIR 2007) and Urbano, Marrero and Martín (SIGIR 2013), generalizability theory for test
    collections; the expected mean squares are those of Cornfield and Tukey (1956).

    >>> found = variance_components([[0.2, 0.6], [0.4, 0.6], [0.6, 0.9]])
    >>> round(found.runs, 4), round(found.queries, 4), round(found.rest, 4)
    (0.0433, 0.03, 0.005)
    """
    table = np.asarray(scores, dtype=np.float64)
    n, k = table.shape
    by_run, by_query, mean = table.mean(axis=0), table.mean(axis=1), table.mean()
    runs = n * float(((by_run - mean) ** 2).sum()) / (k - 1)
    queries = k * float(((by_query - mean) ** 2).sum()) / (n - 1)
    rest = float(((table - by_run - by_query[:, None] + mean) ** 2).sum()) / ((n - 1) * (k - 1))
    # What is left by rounding alone is nothing.
    rest = rest if rest > 1e-20 * max(1.0, runs, queries) else 0.0
    return Components(max((runs - rest) / n, 0.0), max((queries - rest) / k, 0.0), rest, k, n)


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


Test = Literal["t", "permutation"]
Intervals = Literal["simultaneous", "each"]
CORRECTIONS: tuple[Correction, ...] = ("holm", "bh", "none")


@dataclass(frozen=True)
class Pair:
    """Two runs.

    Attributes:
        first: run id; in a comparison with a baseline the other run.
        second: run id; the baseline.
        test: the paired tests of first − second, over the queries that both have. Its interval is as
            `Comparison.intervals` says.
        p_adjusted: the p-value after correction; None where the test is undefined.
        significant: whether p_adjusted < alpha.
        verdict: what is concluded; None where it was not asked for.
    """

    first: str
    second: str
    test: PairedTest
    p_adjusted: float | None
    significant: bool
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Comparison:
    """Runs compared by one measure.

    Attributes:
        measure: the measure.
        baseline: the run that all others are compared with; None when all pairs are.
        means: run -> mean over the queries that all runs have, best first.
        queries: the queries that all runs have.
        left_out: queries that some run lacks.
        pairs: the comparisons.
        groups: groups of runs that cannot be told apart, best first; empty with a baseline.
        procedure: the correction for the number of comparisons.
        test: whose p-values are corrected: `t` or `permutation`.
        alpha: the significance level.
        intervals: `simultaneous` where all intervals of differences hold the true ones at once with probability
            1 − alpha: Bonferroni's for `holm` (a little wider than its test asks). `each` where each does so by itself,
            and the correction is of the p-values alone.
        outlook: how many queries separate how many pairs; None where verdicts were not asked for.
    """

    measure: str
    baseline: str | None
    means: Mapping[str, float]
    queries: tuple[str, ...]
    left_out: tuple[str, ...]
    pairs: tuple[Pair, ...]
    groups: tuple[tuple[str, ...], ...]
    procedure: Correction
    test: Test
    alpha: float
    intervals: Intervals = "each"
    outlook: Outlook | None = None


def common_queries(scores: Mapping[str, Mapping[str, float]], measure: str) -> tuple[list[str], list[str]]:
    """The queries that all runs have, and those that some run lacks, sorted.

    Raises:
        InputError: there is no query that all have.
    """
    every = {query for values in scores.values() for query in values}
    common = sorted(query for query in every if all(query in values for values in scores.values()))
    if not common:
        raise InputError(f"{measure}: the runs have no query in common; compare runs over the same queries")
    return common, sorted(every - set(common))


def compare_runs(
    scores: Mapping[str, Mapping[str, float]],
    measure: str,
    *,
    baseline: str | None = None,
    procedure: Correction = "holm",
    test: Test = "t",
    alpha: float = 0.05,
    rounds: int = DEFAULT_ROUNDS,
    seed: int = DEFAULT_SEED,
    smallest: float | None = None,
) -> Comparison:
    """Paired comparisons of runs over the queries that both have.

    Of a run that is better by the same on every query, the exact permutation test counts, whatever the test.

    Args:
        scores: run -> query -> score.
        measure: what the scores are, for the output.
        baseline: compare every other run with this one; None compares all pairs.
        procedure: `holm`, `bh` or `none`, for the number of p-values.
        test: `t` (paired t-test) or `permutation` (sign flips).
        alpha: significance level.
        rounds: of the permutation tests.
        seed: of the permutation tests.
        smallest: the smallest difference that matters, for verdicts; None for none.

    Raises:
        InputError: fewer than two runs, no common query, a procedure that does not fit, or alpha is no level.
        UnknownNameError: the baseline is not among the runs.
    """
    _check(scores, measure, baseline, procedure, test, alpha)
    queries, left_out = common_queries(scores, measure)
    # By id, so that draws do not depend on the order of the runs.
    runs = sorted(scores)
    table = np.array([[scores[run][query] for run in runs] for query in queries])
    means = dict(sorted(zip(runs, table.mean(axis=0).tolist(), strict=True), key=lambda item: (-item[1], item[0])))
    order = list(means)
    if baseline is None:
        names = list(combinations(order, 2))
    else:
        names = [(run, baseline) for run in order if run != baseline]
    level = 1.0 - alpha / (len(names) if procedure == "holm" else 1)
    tests = _tests(scores, names, rounds, seed, level)
    adjusted = adjust([one.p if test == "t" else one.p_permutation for one in tests], procedure)
    pairs = tuple(
        Pair(a, b, one, p, p is not None and p < alpha) for (a, b), one, p in zip(names, tests, adjusted, strict=True)
    )
    groups = () if baseline is not None else _groups(order, means, pairs, alpha)
    intervals: Intervals = "simultaneous" if procedure == "holm" else "each"
    found = Comparison(
        measure, baseline, means, tuple(queries), tuple(left_out), pairs, groups, procedure, test, alpha, intervals
    )
    if smallest is None:
        return found
    flips = (rounds, seed) if test == "permutation" else None
    components = variance_components(table) if len(queries) > 1 else None
    return _with_verdicts(found, scores, components, smallest, flips)


def _with_verdicts(
    found: Comparison,
    scores: Mapping[str, Mapping[str, float]],
    components: Components | None,
    smallest: float,
    flips: tuple[int, int] | None,
) -> Comparison:
    """The comparison with a verdict on each pair."""
    differences = [
        np.array([scores[pair.first][query] - scores[pair.second][query]
                  for query in sorted(scores[pair.first].keys() & scores[pair.second].keys())])
        for pair in found.pairs
    ]  # fmt: skip
    concluded = verdicts(
        differences, [pair.p_adjusted for pair in found.pairs], found.procedure,
        smallest=smallest, alpha=found.alpha, flips=flips,
    )  # fmt: skip
    ahead = outlook(
        differences, [pair.significant for pair in found.pairs], found.procedure, components,
        smallest=smallest, alpha=found.alpha,
    )  # fmt: skip
    pairs = tuple(replace(pair, verdict=one) for pair, one in zip(found.pairs, concluded, strict=True))
    return replace(found, pairs=pairs, outlook=ahead)


def _check(
    scores: Mapping[str, object], measure: str, baseline: str | None, procedure: str, test: str, alpha: float
) -> None:
    if procedure not in CORRECTIONS:
        raise InputError(f"unknown correction {procedure!r}; expected one of {', '.join(CORRECTIONS)}")
    if test not in ("t", "permutation"):
        raise InputError(f"unknown test {test!r}; expected t or permutation")
    if baseline is not None and baseline not in scores:
        raise UnknownNameError("run", baseline, scores, settings=("baseline",))
    if not 0.0 < alpha < 1.0:
        raise InputError(f"a significance level is between 0 and 1, not {alpha:g}")
    if len(scores) < 2:
        raise InputError(f"{measure}: {len(scores)} run(s) with per-query scores; a comparison needs two")


def _tests(
    scores: Mapping[str, Mapping[str, float]], names: Sequence[tuple[str, str]], rounds: int, seed: int, level: float
) -> list[PairedTest]:
    """The paired tests of each two runs over the queries that both have."""
    # Pairs over the same queries see the same flips, so they are tested together.
    places: dict[tuple[str, ...], list[int]] = {}
    for place, (a, b) in enumerate(names):
        places.setdefault(tuple(sorted(scores[a].keys() & scores[b].keys())), []).append(place)
    found: dict[int, PairedTest] = {}
    for queries, pairs in places.items():
        first, second = (
            np.array([[scores[names[pair][side]][query] for pair in pairs] for query in queries]) for side in (0, 1)
        )
        found |= zip(pairs, paired_tests(first, second, rounds=rounds, seed=seed, level=level), strict=True)
    return [found[place] for place in range(len(names))]


def _groups(
    order: Sequence[str], means: Mapping[str, float], pairs: Sequence[Pair], alpha: float
) -> tuple[tuple[str, ...], ...]:
    place = {run: index for index, run in enumerate(order)}
    matrix = np.full((len(order), len(order)), np.nan)
    for pair in pairs:
        if pair.p_adjusted is not None:
            i, j = place[pair.first], place[pair.second]
            matrix[i, j] = matrix[j, i] = pair.p_adjusted
    found = groups_of_equals([means[run] for run in order], matrix, alpha)
    return tuple(tuple(order[index] for index in group) for group in found)


@dataclass(frozen=True, slots=True)
class Design:
    """What one measure asks of an experiment, and what it told in the board.

    Attributes:
        measure: the measure.
        left_out: queries that some run lacks.
        components: of the variance of scores.
        deviation: σ_d, the standard deviation of a query's difference of two runs: √(2 rest).
        one_pair: the queries with which a paired t-test of two runs finds a difference of δ, with the power asked for.
        all_pairs: the same where all pairs of the runs to compare are tested, each at α / pairs (Bonferroni).
        detectable: the difference of two runs that as many queries as the board has find with that power, each pair at
            α / pairs; None with one query or no deviation.
        separated: the share of the board's pairs that are different after correction: discriminative power.
    """

    measure: str
    left_out: int
    components: Components
    deviation: float
    one_pair: int | None
    all_pairs: int | None
    detectable: float | None
    separated: float


def design(
    scores: Mapping[str, Mapping[str, float]],
    measure: str,
    smallest: float,
    *,
    runs: int | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    correction: Correction = "holm",
) -> Design:
    """Topic set size design from a board, and what the board could tell.

    All variances are of the two-way analysis of variance of runs and queries, over the queries that all runs have.

    Args:
        scores: run -> query -> score, of two runs or more.
        measure: for the result.
        smallest: δ, the difference that the experiment shall find.
        runs: how many runs it will compare, as many as the board has by default.
        alpha: the level of each of its tests before correction.
        power: with which it shall find δ.
        correction: of the board's own pairs: `holm`, `bh` or `none`.

    Raises:
        InputError: fewer than two runs or common queries, δ or the power are none.

    Source: Sakai, Topic set size design (Information Retrieval Journal 2016): the designs by t-test, with his σ²
    of the two-way analysis; Sakai (SIGIR 2006) for discriminative power.
    """
    check_smallest(smallest)
    if not 0.0 < power < 1.0:
        raise InputError(f"a power is between 0 and 1, not {power:g}", settings=("power",))
    count = len(scores) if runs is None else runs
    if count < 2:
        raise InputError(f"an experiment compares two runs at least, not {count}", settings=("run_count",))
    compared = compare_runs(scores, measure, procedure=correction, alpha=alpha, rounds=1)
    queries, left_out = common_queries(scores, measure)
    if len(queries) < 2:
        raise InputError(f"{measure}: one query that all runs have; a design needs the variance of two")
    table = np.array([[scores[run][query] for run in sorted(scores)] for query in queries])
    components = variance_components(table)
    deviation = float(np.sqrt(2.0 * components.rest))
    pairs = count * (count - 1) // 2
    return Design(
        measure,
        len(left_out),
        components,
        deviation,
        _least_t(smallest, deviation, alpha, power),
        _least_t(smallest, deviation, alpha / pairs, power),
        _detectable(deviation, len(queries), alpha / pairs, power),
        sum(pair.significant for pair in compared.pairs) / len(compared.pairs),
    )


def _least_t(difference: float, deviation: float, alpha: float, power: float) -> int | None:
    if not deviation:
        return 2
    queries = least_queries(lambda n: t_power(difference, deviation, n, alpha) >= power, 1)[0]
    return None if np.isinf(queries) else int(queries)


def _detectable(deviation: float, queries: int, alpha: float, power: float) -> float | None:
    """The difference that a paired t-test of so many queries finds with that power."""
    from scipy.optimize import brentq

    if not deviation:
        return None
    # In units of the standard error; a t-test of two queries at a small level asks for thousands of them.
    error = deviation / np.sqrt(queries)
    high = 1.0
    while float(t_power(high * error, deviation, queries, alpha)) < power:
        high *= 2.0
        if high > 1e9:
            return None
    found: float = brentq(lambda size: float(t_power(size * error, deviation, queries, alpha)) - power, 0.0, high)
    return float(found * error)
