"""Tests of comparisons of systems: pairs, baselines, corrections, queries that are missing, order of runs."""

import numpy as np
import pytest

from rubric_measures.analysis.comparison import CORRECTIONS, compare_runs
from rubric_measures.analysis.resampling import adjust
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
    assert [pair.p_adjusted for pair in result.pairs] == adjust([pair.test.p_t for pair in result.pairs])
    permuted = compare_runs(given, "m", test="permutation", procedure="bh")
    expected = adjust([pair.test.p_permutation for pair in permuted.pairs], "bh")
    assert [pair.p_adjusted for pair in permuted.pairs] == expected


def test_baseline() -> None:
    given, _ = scores()
    result = compare_runs(given, "m", baseline="a", rounds=500)
    assert all(pair.second == "a" for pair in result.pairs)
    assert len(result.pairs) == 2
    assert result.groups == ()
    assert [pair.p_adjusted for pair in result.pairs] == adjust([pair.test.p_t for pair in result.pairs])
    assert all(pair.significant for pair in result.pairs)


@pytest.mark.parametrize("procedure", CORRECTIONS)
def test_order_of_runs_and_queries_does_not_matter(procedure) -> None:
    given, _ = scores(8)
    turned = {run: dict(reversed(list(given[run].items()))) for run in reversed(list(given))}
    assert compare_runs(given, "m", procedure=procedure, rounds=200) == compare_runs(
        turned, "m", procedure=procedure, rounds=200
    )


def test_queries_that_a_run_lacks_are_left_out_and_named() -> None:
    given, _ = scores(5)
    del given["b"]["t2"]
    result = compare_runs(given, "m")
    assert result.left_out == ("t2",)
    # Means are over the queries that all have, each test over those that both have.
    assert {pair.first + pair.second: pair.test.queries for pair in result.pairs} == {"cb": 4, "ca": 5, "ba": 4}
    whole = compare_runs({run: given[run] for run in "ac"}, "m", procedure="none").pairs
    (same,) = (pair for pair in compare_runs(given, "m", procedure="none").pairs if pair.first + pair.second == "ca")
    assert (same.test, same.p_adjusted) == (whole[0].test, whole[0].p_adjusted)


def test_identical_runs_have_no_t_but_share_a_group() -> None:
    result = compare_runs({"a": {"1": 0.5, "2": 0.4}, "b": {"1": 0.5, "2": 0.4}}, "m")
    assert result.pairs[0].p_adjusted is None
    assert not result.pairs[0].significant
    assert result.groups == (("a", "b"),)


def test_a_run_that_is_better_by_the_same_everywhere_is_tested_exactly() -> None:
    base = {f"t{i}": i / 20 for i in range(8)}
    given = {"a": base, "b": {query: score + 0.1 for query, score in base.items()}}
    for procedure in ("holm", "bh", "none"):
        (pair,) = compare_runs(given, "m", procedure=procedure).pairs
        assert (pair.p_adjusted, pair.significant) == (2 / 2**8, True)


def test_intervals_are_corrected_as_the_tests_are_or_say_that_they_are_not() -> None:
    stats = pytest.importorskip("scipy.stats")
    given, table = scores()
    holm = compare_runs(given, "m")
    assert holm.intervals == "simultaneous"
    for pair in holm.pairs:
        a, b = (table[:, "abc".index(run)] for run in (pair.first, pair.second))
        # Three pairs: Bonferroni's intervals are at 1 − 0.05 / 3.
        expected = stats.ttest_rel(a, b).confidence_interval(1 - 0.05 / 3)
        assert (pair.test.low, pair.test.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    plain = compare_runs(given, "m", procedure="none", alpha=0.1)
    assert plain.intervals == "each"
    for pair in plain.pairs:
        a, b = (table[:, "abc".index(run)] for run in (pair.first, pair.second))
        assert pair.test.low == pytest.approx(stats.ttest_rel(a, b).confidence_interval(0.9).low)
    assert compare_runs(given, "m", procedure="bh").intervals == "each"


def test_wrong_input() -> None:
    given, _ = scores(3)
    with pytest.raises(UnknownNameError, match="unknown run 'z'"):
        compare_runs(given, "m", baseline="z")
    with pytest.raises(InputError, match="needs two"):
        compare_runs({"a": {"1": 0.5}}, "m")
    with pytest.raises(InputError, match="no query in common"):
        compare_runs({"a": {"1": 0.5}, "b": {"2": 0.5}}, "m")
    with pytest.raises(InputError, match="unknown correction"):
        compare_runs(given, "m", procedure="bonferroni")
