"""Tests of intervals of correlations: point values, seeds, top-k, per-query and pooled τ against scipy."""

import numpy as np
import pytest
from scipy import stats

from rubric_measures.analysis.correlation import (
    COEFFICIENTS,
    correlate,
    correlate_over_queries,
    correlate_over_runs,
    pooled_tau,
    query_tau,
)
from rubric_measures.analysis.resampling import Draws, bootstrap_counts


def tables(queries: int = 12, runs: int = 8, seed: int = 0):
    generator = np.random.default_rng(seed)
    quality = generator.random(runs)
    x = np.round(np.clip(quality + generator.normal(0, 0.1, (queries, runs)), 0, 1), 1)
    y = np.round(np.clip(quality + generator.normal(0, 0.15, (queries, runs)), 0, 1), 1)
    return x, y


@pytest.mark.parametrize("name", [*COEFFICIENTS, "kendall@4"])
def test_point_values_are_those_of_the_means_and_intervals_hold_them(name) -> None:
    x, y = tables()
    result = correlate_over_queries(x, y, name, draws=Draws(200))
    assert result.value == correlate(np.round(x.mean(0), 12), np.round(y.mean(0), 12), name).value
    interval = result.interval
    assert interval is not None and interval.low is not None and interval.high is not None
    assert interval.low <= interval.estimate <= interval.high
    assert interval.units == 12


def test_replicates_are_those_of_resampled_queries() -> None:
    x, y = tables()
    result = correlate_over_queries(x, y, "kendall", draws=Draws(50, 9))
    taus = []
    for counts in bootstrap_counts(12, 50, seed=9).astype(int):
        drawn = np.repeat(np.arange(12), counts)
        taus.append(stats.kendalltau(np.round(x[drawn].mean(0), 12), np.round(y[drawn].mean(0), 12)).statistic)
    estimate = result.value
    reach = np.quantile(np.abs(np.array(taus) - estimate), 0.95)
    assert result.interval.low == pytest.approx(max(-1.0, estimate - reach))
    assert result.interval.high == pytest.approx(min(1.0, estimate + reach))


def test_one_query_or_no_rounds() -> None:
    x, y = tables()
    single = correlate_over_queries(x[:1], y[:1], "kendall", draws=Draws(100))
    assert single.interval.low is None
    assert "needs two" in single.interval.reason
    bare = correlate_over_queries(x, y, "kendall", draws=Draws(0))
    assert bare.interval is None
    tied = correlate_over_queries(x, np.zeros_like(y), "kendall", draws=Draws(100))
    assert tied.value is None
    assert tied.interval.reason == "all runs are tied in the second leaderboard"


def test_over_runs() -> None:
    x, y = tables(runs=15)
    result = correlate_over_runs(x.mean(0), y.mean(0), "kendall", draws=Draws(300))
    assert result.resampled == "run"
    assert result.interval.low < result.value < result.interval.high
    assert result == correlate_over_runs(x.mean(0), y.mean(0), "kendall", draws=Draws(300))
    assert "tau_ap_b" in correlate_over_runs(np.arange(15.0), y.mean(0), "tau_ap", draws=Draws(10)).interval.reason
    assert "needs three" in correlate_over_runs([1.0, 2.0], [1.0, 2.0], "kendall", draws=Draws(10)).interval.reason
    assert correlate_over_runs([1.0, 2.0], [1.0, 1.0], draws=Draws(10)).interval.estimate is None
    assert correlate_over_runs([1.0, 2.0, 3.0], [1.0, 3.0, 2.0], draws=Draws(0)).interval is None


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_an_interval_over_runs_holds_its_estimate(name) -> None:
    """Also of two equal leaderboards: a run drawn twice must not lower what does not depend on chance."""
    x, y = np.arange(12.0), tables(runs=12)[1].mean(0)
    for other in (x, y):
        result = correlate_over_runs(x, other, name, draws=Draws(200))
        assert result.value is not None
        if name in ("rbo", "tau_ap"):
            assert result.interval.low is None and "runs drawn twice" in result.interval.reason
        else:
            assert result.interval.low <= result.value <= result.interval.high


def test_query_tau_is_the_mean_of_scipys() -> None:
    x, y = tables()
    x[3], y[5, 2] = 0.5, np.nan
    taus = []
    for query in range(12):
        present = ~np.isnan(y[query])
        taus.append(stats.kendalltau(x[query][present], y[query][present]).statistic)
    result = query_tau(x, y, draws=Draws(100))
    assert result.interval.estimate == pytest.approx(np.nanmean(taus))
    assert (result.queries, result.undefined) == (11, 1)
    assert query_tau(x, y, draws=Draws(0)).interval.estimate == pytest.approx(np.nanmean(taus))
    # Student's interval of few queries ends where a correlation does.
    few = query_tau([[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3]], [[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 3, 2]])
    assert 0 < few.interval.low < few.interval.estimate < few.interval.high == 1.0
    nothing = query_tau(np.zeros_like(x), y)
    assert (nothing.interval.estimate, nothing.undefined) == (None, 12)


def test_pooled_tau_is_scipys_over_all_pairs_and_rounds_repeat_queries() -> None:
    x, y = tables()
    y[0, 0] = np.nan
    present = ~np.isnan(y).ravel()
    expected = stats.kendalltau(x.ravel()[present], y.ravel()[present]).statistic
    result = pooled_tau(x, y, draws=Draws(100))
    assert result.interval.estimate == pytest.approx(expected)
    assert pooled_tau(x, y, draws=Draws(0)).interval.estimate == pytest.approx(expected)
    assert result.interval.low < expected < result.interval.high
    tied = pooled_tau(np.zeros_like(x), y, draws=Draws(0))
    assert tied.interval.estimate is None
    assert tied.interval.reason


@pytest.mark.parametrize("name", list(COEFFICIENTS))
def test_rounds_without_any_score_of_a_run_say_nothing(name) -> None:
    """A run with one query only has no score in the rounds that leave it out; its rank there would be made up."""
    _, y = tables(queries=4, runs=4)
    # An official ranking without ties, so that τ_AP is defined; the last run has a score on the first query only.
    official = np.array([4.0, 3.0, 2.0, 1.0])
    y[1:, 3] = np.nan
    result = correlate_over_queries(official, y, name, draws=Draws(40, 1))
    without = int((bootstrap_counts(4, 40, 1)[:, 0] == 0).sum())
    assert 0 < without < 40
    assert result.interval is not None and result.interval.undefined == without
