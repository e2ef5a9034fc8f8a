"""Tests of significance: scipy, statsmodels and ranx, hand-worked numbers, degenerate comparisons, groups."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rubric_measures.analysis.leaderboards import significant_pair_agreement
from rubric_measures.analysis.resampling import adjust, groups_of_equals, paired_tests
from rubric_measures.base.errors import InputError


def test_paired_test_by_hand() -> None:
    # d = 1, 2, 0, 1: mean 1, sum of squares about the mean 2, sd = sqrt(2/3), t = 1 / (sd/2) = 2.4495, d_z = 1.2247.
    (result,) = paired_tests([2.0, 3.0, 1.0, 2.0], [1.0, 1.0, 1.0, 1.0])
    assert result.mean_difference == 1.0
    assert result.t == pytest.approx(2.4495, abs=1e-4)
    assert result.effect_size == pytest.approx(1.2247, abs=1e-4)
    # Of the 16 sign flips |sum| = 4 needs all of 1, 2, 1 alike; the zero is free: 2 · 2 = 4 of 16.
    assert (result.p_permutation, result.exact) == (0.25, True)
    assert (result.wins, result.ties, result.losses, result.queries) == (3, 1, 0, 4)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=10))
def test_paired_tests_are_scipys(pairs) -> None:
    a, b = ([pair[side] / 10 for pair in pairs] for side in (0, 1))
    (ours,) = paired_tests(a, b)
    differences = np.subtract(a, b)
    if np.ptp(differences) < 1e-9:
        assert ours.t is None and ours.p_t is None and ours.reason
    else:
        theirs = stats.ttest_rel(a, b)
        assert ours.t == pytest.approx(theirs.statistic)
        assert ours.p_t == pytest.approx(theirs.pvalue)
        interval = theirs.confidence_interval(0.95)
        assert (ours.low, ours.high) == (pytest.approx(interval.low), pytest.approx(interval.high))
    flips = [abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
             for signs in itertools.product((1, -1), repeat=len(pairs))]  # fmt: skip
    observed = abs(differences.sum())
    assert ours.p_permutation == pytest.approx(np.mean([flip >= observed - 1e-9 for flip in flips]))


def test_drawn_permutations_agree_with_scipy() -> None:
    # The oldest scipy that we allow calls `rng` otherwise.
    pytest.importorskip("scipy", minversion="1.15")
    generator = np.random.default_rng(4)
    a, b = generator.random(40), generator.random(40)
    a += 0.1
    (ours,) = paired_tests(a, b)
    assert not ours.exact
    theirs = stats.permutation_test(
        (a - b,), np.mean, permutation_type="samples", n_resamples=20000, rng=np.random.default_rng(0)
    )
    # Two estimates of p from 10,000 and 20,000 draws: four standard errors.
    error = 4 * np.sqrt(ours.p_permutation * (1 - ours.p_permutation) * (1 / 10000 + 1 / 20000))
    assert ours.p_permutation == pytest.approx(float(theirs.pvalue), abs=error)
    assert paired_tests(a, b) == [ours]
    assert paired_tests(np.stack([b, a], 1), np.stack([a, b], 1))[1] == ours


def test_drawn_permutations_agree_with_ranx() -> None:
    ranx = pytest.importorskip("ranx.statistical_tests")
    generator = np.random.default_rng(4)
    a, b = generator.random(40) + 0.1, generator.random(40)
    (ours,) = paired_tests(a, b)
    theirs, _ = ranx.fisher_randomization_test(a, b, n_permutations=10000)
    error = 4 * np.sqrt(ours.p_permutation * (1 - ours.p_permutation) * 2 / 10000)
    assert ours.p_permutation == pytest.approx(theirs, abs=error)


def test_identical_and_shifted_runs_have_no_t() -> None:
    same, shifted = paired_tests(np.array([[0.1, 0.3], [0.2, 0.4]]), np.array([[0.1, 0.1], [0.2, 0.2]]))
    assert (same.t, same.p_permutation, same.reason) == (None, 1.0, "the runs are identical on every query")
    # Better by 0.2 on both of two queries: of the four sign flips two reach the mean.
    assert (shifted.p_t, shifted.p_permutation, shifted.exact, shifted.p, same.p) == (None, 0.5, True, 0.5, None)
    many = np.linspace(0, 1, 20)
    (drawn,) = paired_tests(many + 0.1, many)
    assert (drawn.p, drawn.exact) == (2 / 2**20, True)
    assert "by the same on every query" in shifted.reason
    (single,) = paired_tests([0.5], [0.1])
    assert "one query only" in single.reason and single.p is None


def test_adjust_is_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p_values = np.random.default_rng(1).random(30) ** 2
    for correction, theirs in (("holm", "holm"), ("bh", "fdr_bh")):
        expected = multitest.multipletests(p_values, method=theirs)[1]
        assert adjust(list(p_values), correction) == pytest.approx(list(expected))
    assert adjust([0.5, None, 0.1], "none") == [0.5, None, 0.1]
    assert adjust([]) == []


def test_comparisons_need_complete_tables() -> None:
    with pytest.raises(InputError, match="finite"):
        paired_tests([0.1, np.nan], [0.1, 0.2])


def test_groups_of_equals() -> None:
    # Ranking 2, 0, 1, 3: 2~0, 0~1, 2≠1, 3 differs from all.
    means = [0.8, 0.7, 0.9, 0.1]
    p_values = np.array([[1, 0.4, 0.6, 0.001], [0.4, 1, 0.02, 0.001], [0.6, 0.02, 1, 0.001], [0.001, 0.001, 0.001, 1]])
    assert groups_of_equals(means, p_values) == [(2, 0), (0, 1)]
    assert groups_of_equals(means, np.ones((4, 4))) == [(2, 0, 1, 3)]
    assert groups_of_equals(means, np.zeros((4, 4))) == []
    undefined = np.full((2, 2), np.nan)
    assert groups_of_equals([0.5, 0.5], undefined) == [(0, 1)]


def test_significant_pair_agreement() -> None:
    generator = np.random.default_rng(6)
    noise = generator.normal(0, 0.01, (20, 3))
    official = noise + np.array([0.9, 0.5, 0.5])
    upside_down = noise + np.array([0.1, 0.5, 0.5])
    same = significant_pair_agreement(official, official)
    assert (same.active_agreements, same.passive_agreements, same.active_disagreements) == (2, 1, 0)
    assert same.active_share == 1.0
    turned = significant_pair_agreement(official, upside_down)
    assert (turned.active_agreements, turned.active_disagreements) == (0, 2)
    assert (turned.active_share, turned.recovered, turned.reference_significant) == (0.0, 0, 2)
    shifted = np.linspace(0, 1, 20)[:, None] + np.array([0.0, 0.1])
    assert significant_pair_agreement(shifted, shifted).active_agreements == 1
    flat = significant_pair_agreement(np.zeros((5, 3)), np.zeros((5, 3)))
    assert (flat.passive_agreements, flat.active_share) == (3, None)
    mixed = significant_pair_agreement(official, np.zeros((20, 3)))
    assert (mixed.mixed_agreements, mixed.passive_agreements) == (2, 1)


def test_pair_agreement_uses_the_paired_t_test() -> None:
    scores = np.random.default_rng(8).random((10, 6)) + np.linspace(0, 0.5, 6)
    p_values = [stats.ttest_rel(scores[:, i], scores[:, j]).pvalue for i, j in itertools.combinations(range(6), 2)]
    expected = sum(1 for p in adjust(p_values) if p is not None and p < 0.05)
    assert significant_pair_agreement(scores, scores).reference_significant == expected
