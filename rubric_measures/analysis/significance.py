"""Runs compared by query: tests, verdicts, and how many queries an experiment needs.

Where the variance of a leaderboard's scores comes from: runs, queries, and the rest that only both explain.

How likely a t-test decides, and how many queries it needs for that.

What the interval of a pair says: better, worse, the same within the smallest difference that matters, or not decided.

Runs against runs: paired tests of all pairs or against a baseline, corrected, with groups of equals.

How many queries an experiment needs, from the scores of a board that is there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rubric_measures.analysis.resampling import (
    USUAL_TESTS,
    Family,
    FloatArray,
    Tests,
    groups_of_equals,
    paired_family,
)
from rubric_measures.base.errors import InputError, UnknownNameError, counted
from rubric_measures.base.tables import number
from rubric_measures.types.scales import LARGEST_SCORE


@dataclass(frozen=True, slots=True)
class Components:
    """Variance components of scores, in squared units of the measure.

    Attributes:
        runs: variance of the runs' true means; 0 where the estimate is negative.
        queries: variance of the queries' difficulty; likewise.
        rest: variance of what a run does on a query beyond both; noise of runs and queries cannot be told from it.
        run_count: how many runs.
        query_count: how many queries.
        reliability: the share of the variance of the means that is of runs: runs / (runs + rest / queries), Eρ²; None
            of 0.
    """

    runs: float
    queries: float
    rest: float
    run_count: int
    query_count: int
    reliability: float | None


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
    true = max((runs - rest) / n, 0.0)
    whole = true + rest / n
    return Components(true, max((queries - rest) / k, 0.0), rest, k, n, true / whole if whole > 0 else None)


# A test that so many queries do not decide is not decided by queries.
MOST_QUERIES = 1_000_000
# Beyond this non-centrality a test that asks for 0.1 % of error has power 1 in double precision.
_FAR = 35.0


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
    # P(T < −reach) is P(T' > reach) of the mirrored distribution; far beyond the mean nothing is left of it.
    lower = np.clip(np.nan_to_num(1.0 - nctdtr(n - 1.0, -far, reach)), 0.0, 1.0)
    power: FloatArray = np.where(far >= _FAR, 1.0, 1.0 - nctdtr(n - 1.0, far, reach) + lower)
    return np.clip(power, 0.0, 1.0)


def least_queries(decides: Callable[[int], bool]) -> int | None:
    """The least number of queries, at least 2, from which on a test decides; None beyond a million.

    Args:
        decides: a number of queries -> whether the test decides with them; once it does, more queries do.
    """
    if not decides(MOST_QUERIES):
        return None
    return bisect_left(range(2, MOST_QUERIES), True, key=decides) + 2


# The smallest difference that matters of scores from 0 to 1.
DEFAULT_SMALLEST = 0.02
# With fewer queries nothing is said about more.
_LEAST_FOR_OUTLOOK = 10
# Of the tests that more queries would make, and the normal quantile of it.
POWER, _POWER_Z = 0.8, 0.8416212335729143
Conclusion = Literal["better", "worse", "same", "undecided"]
# The shares of pairs whose number of queries is told.
_SHARES = (0.5, 0.75, 0.9, 0.95)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What more queries would do for a whole board.

    Attributes:
        power: the power that `more_queries` ask for.
        queries: the queries of the board.
        pairs: how many pairs are compared.
        separated: the share of them that is called different.
        expected: the share that a board of so many other queries is expected to call different; None where nothing
            says it: runs do not differ beyond noise, or differ by the same on every query.
        needed: (share of the pairs, queries of a board that is expected to separate it; None where a million do not).
    """

    power: float
    queries: int
    pairs: int
    separated: float
    expected: float | None
    needed: tuple[tuple[float, int | None], ...]


def _outlook(family: Family, runs: float) -> Outlook:
    """How many queries separate how many of the pairs.

    The differences that are seen are too large on average, because noise spreads runs. So each is shrunk to what it is
    worth: with σ² the variance of runs beyond noise and s²/n the squared standard error of the difference d, the true
    one is normal with mean B d and variance 2 σ² (1 − B), B = 2 σ² / (2 σ² + s²/n). A board of N other queries finds it
    with P(|Z| > t), Z normal with mean B d √N / s and variance 1 + 2 σ² (1 − B) N / s², t the limit that this board's
    intervals have. By simulation: benchmarks/README.md.

    Args:
        family: the tests.
        runs: the variance of the runs' true means.
    """
    from scipy.special import ndtr

    pairs, varies = len(family.means), ~np.isnan(family.t)
    expected: float | None = None
    needed: list[tuple[float, int | None]] = []
    if runs > 0 and varies.any():
        means, errors, limit = family.means[varies], family.errors[varies], family.critical
        spreads = errors * np.sqrt(family.queries)
        prior = 2.0 * runs
        worth = prior / (prior + errors**2)
        # Runs that differ by a constant everywhere do so whatever the number of queries.
        constant = int((family.different & ~varies).sum())

        def share(n: int) -> float:
            centre = worth * np.abs(means) * np.sqrt(n) / spreads
            spread = np.sqrt(1.0 + prior * (1.0 - worth) * n / spreads**2)
            found = ndtr((centre - limit) / spread) + ndtr((-centre - limit) / spread)
            return (float(found.sum()) + constant) / pairs

        expected = share(family.queries)
        needed = [(wanted, least_queries(lambda n, wanted=wanted: share(n) >= wanted)) for wanted in _SHARES]  # type: ignore[misc]
    return Outlook(POWER, family.queries, pairs, float(family.different.mean()), expected, tuple(needed))


def _more_queries(family: Family, smallest: float | None) -> tuple[list[int | None], list[int | None]]:
    """How many more queries decide each pair: if its true difference is the one seen, and whatever it is.

    With w the half width of its interval, z the quantile of the power and c the limit: an interval of N queries leaves
    0 with that power where d √N / s ≥ c + z, and stays within δ where (δ − d) √N / s ≥ c + z. Where 2 w ≤ δ one of
    both is sure.
    """
    spreads = family.errors * np.sqrt(family.queries)
    distance, wanted = np.abs(family.means), family.critical + _POWER_Z
    with np.errstate(divide="ignore", invalid="ignore"):
        queries = (wanted * spreads / distance) ** 2
        sure = np.full(len(queries), np.inf)
        if smallest is not None:
            near = np.where(distance < smallest, (wanted * spreads / (smallest - distance)) ** 2, np.inf)
            sure = (2.0 * family.critical * spreads / smallest) ** 2
            queries = np.fmin(np.fmin(queries, near), sure)
    return tuple(
        [None if not one <= MOST_QUERIES else max(int(np.ceil(one)) - family.queries, 1) for one in column]
        for column in (queries, sure)
    )  # type: ignore[return-value]  # fmt: skip


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Two runs compared.

    Attributes:
        mean_difference: mean of first − second, in the measure's unit.
        low: lower end of the interval of the mean difference; None where undefined. Of scores from 0 to 1 it is -1 at
            least.
        high: its upper end; of such scores 1 at most.
        t: the paired t statistic; None where undefined.
        p: two-sided p-value of the t-test before correction, see `Family.p`; None where undefined.
        effect_size: Cohen's d_z = mean difference / standard deviation of the differences; None where that is 0.
        wins: queries where the first run is better.
        ties: queries where both are equal.
        losses: queries where it is worse.
        queries: the number of queries.
        reason: why the t-test is undefined; empty otherwise.
    """

    mean_difference: float
    low: float | None
    high: float | None
    t: float | None
    p: float | None
    effect_size: float | None
    wins: int
    ties: int
    losses: int
    queries: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs.

    Attributes:
        first: run id; in a comparison with a baseline the other run.
        second: run id; the baseline.
        test: the paired test of first − second.
        p_adjusted: the p-value after correction; None where the test is undefined.
        significant: whether p_adjusted < alpha: the interval is on one side of 0.
        conclusion: `better` or `worse` where the interval is on one side of 0, `same` where it holds 0 and no
            difference that matters, else `undecided`.
        more_queries: how many more queries decide an undecided pair with power 0.8, if the true difference is the one
            seen; None for decided pairs, with fewer than ten queries and where a million do not.
        at_most: how many more decide it whatever the true difference is; it depends on the deviation alone.
    """

    first: str
    second: str
    test: PairedTest
    p_adjusted: float | None
    significant: bool
    conclusion: Conclusion
    more_queries: int | None = None
    at_most: int | None = None

    def is_small(self, smallest: float | None) -> bool:
        """Whether they are told apart, and differ by less than matters."""
        ends = [abs(end) for end in (self.test.low, self.test.high) if end is not None]
        return self.significant and bool(ends) and max(ends) < (smallest or 0.0)

    def said(self, smallest: float | None = None, places: int = 3, *, of_second: bool = False) -> str:
        """What the interval says of the first run against the second, in words; or of the second against the first."""
        low, high, mean, queries = self.test.low, self.test.high, self.test.mean_difference, self.test.queries
        if low is None or high is None:
            is_equal = self.test.ties == queries
            return "the same on every query" if is_equal else f"not known: {counted(queries, 'query')} only"
        near, far = sorted((abs(low), abs(high)))
        if self.conclusion in ("better", "worse"):
            word = "better" if (self.conclusion == "better") != of_second else "worse"
            ends = dict.fromkeys(number(end, places) for end in (near, far))
            return f"{word} by {' to '.join(ends)}{', too little to matter' * self.is_small(smallest)}"
        if self.conclusion == "same":
            return f"they differ by at most {number(far, places)}"
        return (
            f"not known: {queries} queries tell differences above {number(max(high - mean, mean - low), places)} only"
        )


@dataclass(frozen=True)
class Comparison:
    """Runs compared by one measure.

    Attributes:
        measure: the measure.
        baseline: the run that all others are compared with; None when all pairs are.
        means: run -> mean, best first.
        queries: the queries that all runs have: everything is over these.
        left_out: queries that some run lacks.
        pairs: the comparisons.
        groups: groups of runs that cannot be told apart, best first; empty with a baseline.
        tests: how they were tested; `smallest` is None where it was not given and scores are not in [0, 1].
        outlook: how many queries separate how many pairs; None with fewer than ten queries.
        unscored: runs without a score, which take no part.
    """

    measure: str
    baseline: str | None
    means: Mapping[str, float]
    queries: tuple[str, ...]
    left_out: tuple[str, ...]
    pairs: tuple[Pair, ...]
    groups: tuple[tuple[str, ...], ...]
    tests: Tests
    outlook: Outlook | None = None
    unscored: tuple[str, ...] = ()

    def said(self) -> str:
        """Who cannot be told apart from the best, or who is better and worse than the baseline; before it of which runs
        that is said, where some have no score.
        """
        if not self.unscored:
            return self._said()
        have = f"{_named(self.unscored)} {'has' if len(self.unscored) == 1 else 'have'} none"
        return f"of {counted(len(self.means), 'run')} with a score ({have}): {self._said()}"

    def _said(self) -> str:
        if self.baseline is not None:
            words = {"better": "better than", "worse": "worse than", "": "not told apart from"}
            found: dict[str, list[str]] = {
                f"{what} {self.baseline}{little * ', by too little to matter'}": [
                    pair.first
                    for pair in self.pairs
                    if (word, little) == (pair.conclusion * pair.significant, pair.is_small(self.tests.smallest))
                ]
                for word, what in words.items()
                for little in (False, True)
            }
            return "; ".join(f"{what}: {_named(runs)}" for what, runs in found.items() if runs)
        best = next(iter(self.means))
        if len(self.means) == 1:
            return f"{best} stands alone, and is compared with nothing"
        top = [run for run, mean in self.means.items() if mean == self.means[best]]
        tied = top if len(top) > 1 else []
        of_best = [pair for pair in self.pairs if pair.first == best]
        found = {
            f"not told apart from {best if tied else 'it'}": [pair.second for pair in of_best if not pair.significant],
            "better, by too little to matter, than": [
                pair.second for pair in of_best if pair.is_small(self.tests.smallest)
            ],
        }
        if not any(found.values()):
            return f"{best} is better than {'all others' if len(of_best) > 1 else of_best[0].second}"
        highest = f"{_named(tied)} have the same, highest mean" if tied else f"{best} has the highest mean"
        return "; ".join([highest, *(f"{what}: {_named(runs)}" for what, runs in found.items() if runs)])


def _named(runs: Sequence[str]) -> str:
    more = f" and {counted(len(runs) - 5, 'more run')}" if len(runs) > 6 else ""
    return ", ".join(runs[: 5 if more else 6]) + more


def compare_runs(
    scores: Mapping[str, Mapping[str, float]], measure: str, *, baseline: str | None = None, tests: Tests = USUAL_TESTS
) -> Comparison:
    """Paired comparisons of runs over the queries that all have; see `paired_family`. A run alone has no pairs.

    Args:
        scores: run -> query -> score.
        measure: what the scores are, for the output.
        baseline: compare every other run with this one; None compares all pairs.
        tests: how; without a smallest difference that matters it is 0.02 where all scores are in [0, 1].

    Raises:
        InputError: fewer than two runs of several have a score, or they have no common query.
        UnknownNameError: the baseline is not among the runs.
        InputError: a smallest difference of more than 1 is given, and all scores are from 0 to 1.
    """
    if not isinstance(tests, Tests):
        problem = f"{tests!r:.60} is no way to test; write Tests(correction='holm')"
        raise InputError(problem, settings=("tests",))
    unscored = tuple(sorted(run for run, values in scores.items() if not values))
    scores = {run: values for run, values in scores.items() if values}
    _check(scores, measure, baseline, unscored)
    is_unit = all(0.0 <= score <= 1.0 for of_run in scores.values() for score in of_run.values())
    if tests.smallest is None and is_unit:
        tests = replace(tests, smallest=DEFAULT_SMALLEST)
    if is_unit and tests.smallest and tests.smallest > 1.0:
        text = f"{measure}: scores from 0 to 1 cannot differ by {tests.smallest:g}; write 0.05 for 5 %"
        raise InputError(text, settings=("smallest",))
    every = set().union(*scores.values())
    queries = sorted(every.intersection(*scores.values()))
    if not queries:
        raise InputError(f"{measure}: the runs have no query in common; give boards of the same queries, not rankings")
    # By id, so that draws do not depend on the order of the runs.
    runs = sorted(scores)
    table = np.array([[scores[run][query] for run in runs] for query in queries], dtype=np.float64)
    if not (np.abs(table) <= LARGEST_SCORE).all():
        raise InputError("a paired test needs finite scores (at most 1e100); leave out queries that a run misses")
    place = {run: column for column, run in enumerate(runs)}
    means = dict(sorted(zip(runs, table.mean(axis=0).tolist(), strict=True), key=lambda item: (-item[1], item[0])))
    order = list(means)
    ids = combinations(order, 2) if baseline is None else ((run, baseline) for run in order if run != baseline)
    names_of = list(ids)
    first, second = ([place[pair[side]] for pair in names_of] for side in (0, 1))
    differences = table[:, first] - table[:, second]
    family = paired_family(differences, tests.correction, tests.alpha, tests.rounds, tests.seed)
    ahead = None
    more: Sequence[Sequence[int | None]] = [[None] * len(names_of)] * 2
    if len(queries) >= _LEAST_FOR_OUTLOOK and names_of:
        ahead = _outlook(family, variance_components(table).runs)
        more = _more_queries(family, tests.smallest)
    pairs = tuple(_pairs(names_of, differences, family, tests.smallest, more, 1.0 if is_unit else np.inf))
    groups: list[tuple[int, ...]] = []
    if baseline is None:
        different = np.zeros((len(order), len(order)), dtype=np.bool_)
        different[np.triu_indices(len(order), 1)] = family.different
        groups = groups_of_equals([means[run] for run in order], different)
    return Comparison(
        measure, baseline, means, tuple(queries), tuple(sorted(every.difference(queries))), pairs,
        tuple(tuple(order[index] for index in group) for group in groups), tests, ahead, unscored,
    )  # fmt: skip


def _pairs(
    names: Sequence[tuple[str, str]],
    differences: FloatArray,
    family: Family,
    smallest: float | None,
    more: Sequence[Sequence[int | None]],
    most: float,
) -> Iterator[Pair]:
    ends = np.maximum(family.low, -most), np.minimum(family.high, most)
    wins, losses = (differences > 0).sum(axis=0).tolist(), (differences < 0).sum(axis=0).tolist()
    for place, (first, second) in enumerate(names):
        mean, queries = float(family.means[place]), family.queries
        low, high, t, p, adjusted = (
            None if np.isnan(column[place]) else float(column[place])
            for column in (*ends, family.t, family.p, family.adjusted)
        )
        test = PairedTest(
            mean, low, high, t, p, None if t is None else t / float(np.sqrt(queries)),
            wins[place], queries - wins[place] - losses[place], losses[place], queries,
            "one query only; the t-test needs two" if queries < 2
            else "" if t is not None
            else "the runs differ by the same on every query" if mean
            else "the runs are identical on every query",
        )  # fmt: skip
        is_different = bool(family.different[place])
        conclusion: Conclusion = "undecided"
        if is_different:
            conclusion = "better" if mean > 0 else "worse"
        elif smallest is not None and low is not None and high is not None and max(-low, high) < smallest:
            conclusion = "same"
        is_open = conclusion == "undecided" and low is not None
        ahead = (more[0][place], more[1][place]) if is_open else (None, None)
        yield Pair(first, second, test, adjusted, is_different, conclusion, *ahead)


def _check(scores: Mapping[str, object], measure: str, baseline: str | None, unscored: Sequence[str]) -> None:
    if baseline in unscored:
        raise InputError(f"{measure}: {baseline} has no score to compare with", settings=("baseline",))
    if baseline is not None and baseline not in scores:
        raise UnknownNameError("run", baseline, scores, settings=("baseline",))
    if len(scores) < 2 and (unscored or baseline is not None or not scores):
        without = f" ({_named(unscored)} without)" if unscored else ""
        text = f"{counted(len(scores), 'run')} with per-query scores{without}; a comparison needs two"
        raise InputError(f"{measure}: {text}")


@dataclass(frozen=True, slots=True)
class Design:
    """What one measure asks of an experiment.

    Attributes:
        measure: the measure.
        unscored: runs without a score, which take no part.
        left_out: queries that some run lacks.
        components: of the variance of scores.
        deviation: σ_d, the standard deviation of a query's difference of two runs: √(2 rest).
        smallest: δ, the difference that the experiment shall find.
        one_pair: the queries with which a paired t-test of two runs finds a difference of δ, with power 0.8;
            None where a million do not, and where the board has fewer than ten: these do not know the deviation.
        all_pairs: the same where all pairs of the board's runs are tested, each at α / pairs (Bonferroni).
    """

    measure: str
    unscored: tuple[str, ...]
    left_out: int
    components: Components
    deviation: float
    smallest: float
    one_pair: int | None
    all_pairs: int | None


def design(scores: Mapping[str, Mapping[str, float]], measure: str, *, tests: Tests = USUAL_TESTS) -> Design:
    """Topic set size design from a board, with power 0.8.

    All variances are of the two-way analysis of variance of runs and queries, over the queries that all runs have.

    Args:
        scores: run -> query -> score, of two runs or more.
        measure: for the result.
        tests: δ, the difference that the experiment shall find, is the smallest that matters,
            and α the level of each of its tests before correction.

    Raises:
        InputError: fewer than two runs or common queries, or δ is none.

    Source: Sakai, Topic set size design (Information Retrieval Journal 2016): the designs by t-test, with his σ²
    of the two-way analysis.
    """
    compared = compare_runs(scores, measure, tests=replace(tests, correction="none"))
    smallest, alpha = compared.tests.smallest, tests.alpha
    if smallest is None:
        text = f"{measure}: scores are not from 0 to 1; name the smallest difference that matters"
        raise InputError(text, settings=("smallest",))
    queries, count = len(compared.queries), len(compared.means)
    if count < 2:
        raise InputError(f"{measure}: only one run has per-query scores; a design needs two")
    if queries < 2:
        raise InputError(f"{measure}: all runs share only one query; a design needs two")
    components = variance_components([[scores[run][query] for run in compared.means] for query in compared.queries])
    deviation = float(np.sqrt(2.0 * components.rest))
    pairs = count * (count - 1) // 2
    one_pair, all_pairs = (
        least_queries(lambda n, level=level: not deviation or bool(t_power(smallest, deviation, n, level) >= POWER))  # type: ignore[misc]
        if queries >= _LEAST_FOR_OUTLOOK
        else None
        for level in (alpha, alpha / pairs)
    )
    left_out = len(compared.left_out)
    return Design(measure, compared.unscored, left_out, components, deviation, smallest, one_pair, all_pairs)
