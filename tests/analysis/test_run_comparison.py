"""Tests of comparisons of systems: pairs, baselines, corrections, queries that are missing, order of runs."""

import numpy as np
import pytest
from scipy import stats

from rubric_measures import Tests
from rubric_measures.analysis.board_reports import group_letters
from rubric_measures.analysis.comparison import compare_runs
from rubric_measures.analysis.resampling import CORRECTIONS, adjust
from rubric_measures.base.errors import InputError, UnknownNameError


def scores(queries: int = 20):
    generator = np.random.default_rng(0)
    table = generator.normal(0, 0.1, (queries, 3)) + np.array([0.2, 0.6, 0.61])
    return {run: {f"t{i}": float(table[i, j]) for i in range(queries)} for j, run in enumerate("abc")}, table


def test_all_pairs_and_groups() -> None:
    given, _ = scores()
    result = compare_runs(given, "m")
    assert list(result.means) == sorted(given, key=lambda run: -result.means[run])
    assert {(pair.first, pair.second) for pair in result.pairs} == {
        (list(result.means)[i], list(result.means)[j]) for i, j in ((0, 1), (0, 2), (1, 2))
    }
    assert result.groups == (tuple(list(result.means)[:2]),)
    assert result.tests.correction == "max-t" and [pair.significant for pair in result.pairs] == [False, True, True]
    for procedure in ("holm", "bh"):
        found = compare_runs(given, "m", tests=Tests(correction=procedure)).pairs
        assert [pair.p_adjusted for pair in found] == adjust([pair.test.p for pair in found], procedure).tolist()


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


def test_baseline() -> None:
    given, _ = scores()
    result = compare_runs(given, "m", baseline="a", tests=Tests(rounds=500))
    assert all(pair.second == "a" for pair in result.pairs)
    assert len(result.pairs) == 2
    assert result.groups == ()
    assert all(pair.significant for pair in result.pairs)


def test_queries_that_a_run_lacks_are_left_out_and_named() -> None:
    given, _ = scores(5)
    del given["b"]["t2"]
    result = compare_runs(given, "m")
    assert result.left_out == ("t2",)
    # Means are over the queries that all have, each test over those that both have.
    assert {pair.first + pair.second: pair.test.queries for pair in result.pairs} == {"cb": 4, "ca": 5, "ba": 4}
    whole = compare_runs({run: given[run] for run in "ac"}, "m", tests=Tests(correction="none")).pairs
    (same,) = (
        pair
        for pair in compare_runs(given, "m", tests=Tests(correction="none")).pairs
        if pair.first + pair.second == "ca"
    )
    assert (same.test, same.p_adjusted) == (whole[0].test, whole[0].p_adjusted)


def test_a_run_that_is_better_by_the_same_everywhere_is_tested_exactly() -> None:
    base = {f"t{i}": i / 20 for i in range(8)}
    given = {"a": base, "b": {query: score + 0.1 for query, score in base.items()}}
    for procedure in CORRECTIONS:
        (pair,) = compare_runs(given, "m", tests=Tests(correction=procedure)).pairs
        assert (pair.p_adjusted, pair.significant) == (2 / 2**8, True)
        assert pair.said() == "better by 0.100"


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
