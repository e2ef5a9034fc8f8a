"""Tests of significance: scipy, statsmodels and ranx, hand-worked numbers, degenerate comparisons, groups."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from rubric_measures.analysis.resampling import CORRECTIONS, adjust, paired_family


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=10))
@example([(1, 0), (0, 4), (1, 0), (10, 8)])
def test_paired_tests_are_scipys(pairs) -> None:
    a, b = ([pair[side] / 10 for pair in pairs] for side in (0, 1))
    differences = np.subtract(a, b)
    ours, flipped = paired_family(differences[:, None], "none"), paired_family(differences[:, None])
    if np.ptp(differences) < 1e-9:
        assert np.isnan(ours.t[0])
    else:
        theirs = stats.ttest_rel(a, b)
        assert ours.t[0] == pytest.approx(theirs.statistic)
        assert ours.p[0] == ours.adjusted[0] == pytest.approx(theirs.pvalue)
        interval = theirs.confidence_interval(0.95)
        assert (ours.low[0], ours.high[0]) == (pytest.approx(interval.low), pytest.approx(interval.high))
    flips = [abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
             for signs in itertools.product((1, -1), repeat=len(pairs))]  # fmt: skip
    # Of one pair, a larger |t| is a larger |mean|, as the squares are the same under all flips.
    if differences.any():
        expected = np.mean([flip >= abs(differences.sum()) - 1e-9 for flip in flips])
        assert flipped.adjusted[0] == pytest.approx(expected)


def test_drawn_flips_agree_with_scipy() -> None:
    # The oldest scipy that we allow calls `rng` otherwise.
    pytest.importorskip("scipy", minversion="1.15")
    generator = np.random.default_rng(4)
    a, b = generator.random(40), generator.random(40)
    a += 0.1
    (ours,) = paired_family((a - b)[:, None]).adjusted
    theirs = stats.permutation_test(
        (a - b,), np.mean, permutation_type="samples", n_resamples=20000, rng=np.random.default_rng(0)
    )
    # Two estimates of p from 10,000 and 20,000 draws: four standard errors.
    error = 4 * np.sqrt(ours * (1 - ours) * (1 / 10000 + 1 / 20000))
    assert ours == pytest.approx(float(theirs.pvalue), abs=error)


def test_the_largest_t_of_each_flip_by_enumeration() -> None:
    """p of several pairs by all flips of seven queries."""
    table = np.random.default_rng(3).normal(0.3, 0.5, (7, 4))
    differences = np.stack([table[:, i] - table[:, j] for i, j in itertools.combinations(range(4), 2)], axis=1)
    differences[:, 5] += 1.5

    def t(values):
        return abs(stats.ttest_1samp(values, 0).statistic)

    largest = [max(t(column * signs) for column in differences.T)
               for signs in itertools.product((1, -1), repeat=7)]  # fmt: skip
    expected = [np.mean([one >= t(column) * (1 - 1e-6) for one in largest]) for column in differences.T]
    assert paired_family(differences).adjusted == pytest.approx(expected)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 30), st.integers(2, 6), st.integers(0, 1000), st.sampled_from(CORRECTIONS), st.floats(0.01, 0.4))
def test_no_interval_contradicts_a_verdict(queries, runs, seed, correction, alpha) -> None:
    generator = np.random.default_rng(seed)
    table = np.round(generator.normal(0.1 * np.arange(runs), 0.2, (queries, runs)), generator.integers(0, 4))
    first, second = np.triu_indices(runs, 1)
    found = paired_family(table[:, first] - table[:, second], correction, alpha, rounds=500)
    known = ~np.isnan(found.low)
    assert (found.different == (found.adjusted < alpha)).all()
    assert (known | ~found.different).all()
    assert (found.different == ((found.low > 0) | (found.high < 0)))[known].all()


def test_adjust_is_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p_values = np.random.default_rng(1).random(30) ** 2
    for correction, theirs in (("holm", "holm"), ("bh", "fdr_bh")):
        expected = multitest.multipletests(p_values, method=theirs)[1]
        assert adjust(p_values, correction).tolist() == pytest.approx(list(expected))
    assert adjust([0.5, 0.1], "none").tolist() == [0.5, 0.1]
