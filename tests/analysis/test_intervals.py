"""Tests of intervals of correlations: point values, seeds, top-k, per-query and pooled τ against scipy."""

import numpy as np
import pytest
from scipy import stats

from rubric_measures.analysis.coefficients import (
    COEFFICIENTS,
    correlate_over_queries,
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


def test_query_tau_is_the_mean_of_scipys() -> None:
    x, y = tables()
    x[3], y[5, 2] = 0.5, np.nan
    taus = []
    for query in range(12):
        present = ~np.isnan(y[query])
        taus.append(stats.kendalltau(x[query][present], y[query][present]).statistic)
    result = query_tau(x, y, draws=Draws(100))
    assert result.estimate == pytest.approx(np.nanmean(taus))
    assert result.units == 11
    assert query_tau(x, y, draws=Draws(0)).estimate == pytest.approx(np.nanmean(taus))
    # Student's interval of few queries ends where a correlation does.
    few = query_tau([[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3]], [[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 3, 2]])
    assert 0 < few.low < few.estimate < few.high == 1.0
    nothing = query_tau(np.zeros_like(x), y)
    assert (nothing.estimate, nothing.units) == (None, 0)


def test_pooled_tau_is_scipys_over_all_pairs_and_rounds_repeat_queries() -> None:
    x, y = tables()
    y[0, 0] = np.nan
    present = ~np.isnan(y).ravel()
    expected = stats.kendalltau(x.ravel()[present], y.ravel()[present]).statistic
    result = pooled_tau(x, y, draws=Draws(100))
    assert result.estimate == pytest.approx(expected)
    assert pooled_tau(x, y, draws=Draws(0)).estimate == pytest.approx(expected)
    assert result.low < expected < result.high
    tied = pooled_tau(np.zeros_like(x), y, draws=Draws(0))
    assert tied.estimate is None
    assert tied.reason


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


def test_an_interval_is_given_where_it_holds() -> None:
    """Runs differ by the noise of their means and three times more: that is enough for ten runs, not for forty."""
    generator = np.random.default_rng(2)
    for runs, is_given in ((10, True), (40, False)):
        quality, noise = np.linspace(0.3, 0.7, runs), generator.normal(0, 0.25, (2, 50, runs))
        official, scores = quality + noise
        found = correlate_over_queries(official, scores, draws=Draws(200)).interval
        assert (found.low is not None) is is_given, runs
        assert is_given or found.reason.startswith("too few queries to say")
    # Of the best five of ten, which stand close together, less can be said than of all.
    quality = np.array([0.71, 0.7, 0.7, 0.69, 0.69, 0.1, 0.2, 0.3, 0.4, 0.5])
    official, scores = quality + generator.normal(0, 0.25, (2, 50, 10))
    ends = [
        correlate_over_queries(official, scores, name, Draws(200)).interval.low for name in ("kendall", "kendall@5")
    ]
    assert ends[0] is not None and ends[1] is None
