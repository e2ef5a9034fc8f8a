"""Tests of comparisons of systems: pairs, baselines, corrections, queries that are missing, order of runs."""

import numpy as np
import pytest
from scipy import stats

from rubric_measures import Tests
from rubric_measures.analysis.comparing import group_letters
from rubric_measures.analysis.significance import compare_runs
from rubric_measures.base.errors import InputError, UnknownNameError


def scores(queries: int = 20):
    generator = np.random.default_rng(0)
    table = generator.normal(0, 0.1, (queries, 3)) + np.array([0.2, 0.6, 0.61])
    return {run: {f"t{i}": float(table[i, j]) for i in range(queries)} for j, run in enumerate("abc")}, table


def test_runs_share_a_letter_exactly_where_they_are_not_told_apart() -> None:
    generator = np.random.default_rng(1)
    noise = generator.normal(0, 0.2, (50, 60)) * generator.uniform(0.4, 1.2, 60)
    table = generator.normal(0.5, 0.08, 60) + noise
    result = compare_runs(
        {f"r{run}": dict(enumerate(scores)) for run, scores in enumerate(table.T.tolist())},
        "m",
        tests=Tests(rounds=500),
    )
    for pair in result.pairs:
        of_first, of_second = (group_letters(run, result.groups) for run in (pair.first, pair.second))
        assert set(of_first).isdisjoint(of_second) is pair.significant
        # An interval holds 0 exactly where the test tells nothing apart.
        assert (pair.test.low > 0 or pair.test.high < 0) is pair.significant
    # The data are one more round: nothing is less likely than that.
    assert min(pair.p_adjusted for pair in result.pairs) == pytest.approx(1 / 501)


def test_intervals_are_at_the_level_at_which_the_tests_decide() -> None:
    given, table = scores()

    def expected(pair, level):
        a, b = (table[:, "abc".index(run)] for run in (pair.first, pair.second))
        ends = stats.ttest_rel(a, b).confidence_interval(level)
        return pytest.approx((ends.low, ends.high))

    # Two of three pairs differ: Holm's last step is at α / 1, BH's at 2 α / 3.
    for procedure, alpha, level in (("holm", 0.05, 0.95), ("bh", 0.05, 1 - 0.05 * 2 / 3), ("none", 0.1, 0.9)):
        found = compare_runs(given, "m", tests=Tests(correction=procedure, level=1 - alpha))
        assert [pair.significant for pair in found.pairs] == [False, True, True]
        for pair in found.pairs:
            assert (pair.test.low, pair.test.high) == expected(pair, level)
    simultaneous = compare_runs(given, "m")
    assert all(pair.test.high - pair.test.low > high - low for pair in simultaneous.pairs
               for low, high in [expected(pair, 0.95).expected])  # fmt: skip


def test_wrong_input() -> None:
    given, _ = scores(3)
    with pytest.raises(UnknownNameError, match="unknown run 'z'"):
        compare_runs(given, "m", baseline="z")
    with pytest.raises(InputError, match="needs two"):
        compare_runs({"a": {"1": 0.5}, "b": {}}, "m")
    with pytest.raises(InputError, match="no query in common"):
        compare_runs({"a": {"1": 0.5}, "b": {"2": 0.5}}, "m")
    with pytest.raises(InputError, match="unknown correction"):
        compare_runs(given, "m", tests=Tests(correction="bonferroni"))
