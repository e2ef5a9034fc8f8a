"""Tests of the query bootstrap: scipy's BCa, seeds, order of runs, missing scores, degenerate statistics."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rubric_measures.analysis.resampling import (
    Draws,
    Interval,
    bca_interval,
    bca_intervals,
    bootstrap_counts,
    bootstrap_means,
    bootstrap_statistic,
    jackknife_counts,
    symmetric_interval,
    weighted_means,
)
from rubric_measures.base.errors import InputError


def test_counts_are_reproducible_resamples() -> None:
    first, second = bootstrap_counts(7, 50, seed=5), bootstrap_counts(7, 50, seed=5)
    assert (first == second).all()
    assert (first.sum(axis=1) == 7).all()
    assert not (first == bootstrap_counts(7, 50, seed=6)).all()
    with pytest.raises(InputError, match="at least one unit"):
        bootstrap_counts(0, 10)


def test_bca_is_scipys_given_the_same_replicates() -> None:
    # The oldest scipy that we allow calls `rng` otherwise.
    pytest.importorskip("scipy", minversion="1.15")
    generator = np.random.default_rng(0)
    sample = generator.exponential(size=30)
    theirs = stats.bootstrap(
        (sample,), np.mean, n_resamples=4000, method="BCa", rng=np.random.default_rng(1), vectorized=True
    )
    jackknife = weighted_means(jackknife_counts(30), sample[:, None])[:, 0]
    ours = bca_interval(float(sample.mean()), theirs.bootstrap_distribution, jackknife, units=30)
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=1e-6)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=1e-6)


def test_mean_interval_by_hand() -> None:
    # Scores 0, 1 and two rounds: replicates 0 and 1 around the estimate 0.5; share below = (1 + 0)/2, z0 = 0; jackknife
    # 1 and 0 is symmetric, a = 0. So the ends are the 2.5 % and 97.5 % quantiles of {0, 1}: 0.025 and 0.975.
    result = bca_interval(0.5, [0.0, 1.0], [1.0, 0.0], units=2)
    assert (result.low, result.high) == (pytest.approx(0.025), pytest.approx(0.975))


def test_columns_do_not_depend_on_their_order_or_company() -> None:
    scores = np.random.default_rng(2).random((12, 5))
    together = bootstrap_means(scores, draws=Draws(500))
    order = [3, 0, 4, 1, 2]
    shuffled = bootstrap_means(scores[:, order], draws=Draws(500))
    assert [shuffled[order.index(column)] for column in range(5)] == together
    assert bootstrap_means(scores[:, 2:3], draws=Draws(500))[0] == together[2]
    assert bootstrap_means(scores, draws=Draws(500, 7)) != together


def test_missing_scores_take_no_part() -> None:
    scores = np.array([[0.0, np.nan, np.nan], [1.0, 0.25, np.nan], [0.5, 0.75, np.nan]])
    full, partial, empty = bootstrap_means(scores, draws=Draws(200))
    assert (full.estimate, full.units) == (0.5, 3)
    assert (partial.estimate, partial.units) == (0.5, 2)
    assert empty == Interval(None, None, None, 0.95, 0, 0, "no query has a score")
    # A round that draws the first query three times has no score of the second column.
    assert partial.undefined > 0


def test_one_query_has_no_interval() -> None:
    (result,) = bootstrap_means([[0.4]], draws=Draws(10))
    assert (result.estimate, result.low, result.high) == (0.4, None, None)
    assert "needs two" in result.reason
    assert bootstrap_means(np.zeros((0, 2)))[1].reason == "there is no query"


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_intervals_of_means_are_ordered_and_inside_the_scores(scores) -> None:
    (result,) = bootstrap_means([[score] for score in scores], draws=Draws(200))
    assert result.low is not None and result.high is not None
    assert min(scores) - 1e-9 <= result.low <= result.high <= max(scores) + 1e-9


def test_constant_and_undefined_statistics() -> None:
    low, high, undefined = bca_intervals([0.5, np.nan], [[0.5, np.nan], [0.5, 1.0]], [[0.5, 1.0], [0.5, 1.0]])
    assert (low[0], high[0]) == (0.5, 0.5)
    assert np.isnan(low[1]) and np.isnan(high[1])
    assert undefined.tolist() == [0, 1]
    nothing = bootstrap_statistic(lambda counts: np.full(len(counts), np.nan), 4, draws=Draws(10))
    assert (nothing.estimate, nothing.reason) == (None, "the statistic is undefined")
    never = bca_interval(0.5, [np.nan, np.nan], [0.5, 0.5], units=2)
    assert (never.low, never.undefined, never.reason) == (None, 2, "undefined in every bootstrap round")


def test_symmetric_interval() -> None:
    # Distances from 0.9: 0.3, 0.2, 0.1; their median is 0.2: [0.7, 1.1], cut to 1.
    result = symmetric_interval(0.9, [0.6, 0.7, 0.8], level=0.5, bounds=(-1.0, 1.0))
    assert (result.low, result.high, result.method) == (pytest.approx(0.7), 1.0, "symmetric")
    # An estimate at the bound is not certain for that.
    assert symmetric_interval(1.0, [0.6, 0.7, 0.8], level=0.5, bounds=(-1.0, 1.0)).low == pytest.approx(0.7)
    assert symmetric_interval(float("nan"), [0.5]).reason == "the statistic is undefined"
    with pytest.raises(InputError, match="between 0 and 1"):
        symmetric_interval(0.5, [0.5], level=95)
    assert symmetric_interval(0.5, [float("nan")]).reason == "undefined in every bootstrap round"


def test_wrong_input() -> None:
    with pytest.raises(InputError, match="infinite"):
        bootstrap_means([[np.inf], [1.0]])
    with pytest.raises(InputError, match="between 0 and 1"):
        bootstrap_means([[0.5], [1.0]], Draws(level=95))
