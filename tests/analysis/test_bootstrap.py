"""Tests of the query bootstrap: scipy's BCa, seeds, order of runs, missing scores, degenerate statistics."""

import numpy as np
import pytest
from scipy import stats

from rubric_measures.analysis.resampling import Drawn, Draws, Interval, Resample, mean_intervals, weighted_means


def interval(estimate, replicates, left_out, level=0.95, method="bca", **more) -> Interval:
    """The interval of one statistic from these replicates."""
    columns = (np.array(values, dtype=float)[:, None] for values in (replicates, left_out))
    (result,) = Drawn(np.array([estimate]), *columns, len(left_out), Draws(level=level)).intervals(method, **more)
    return result


@pytest.mark.parametrize("has_ties", [False, True])
def test_bca_is_scipys_given_the_same_replicates(has_ties: bool) -> None:
    # The oldest scipy that we allow calls `rng` otherwise.
    pytest.importorskip("scipy", minversion="1.15")
    generator = np.random.default_rng(0)
    # Of ones and zeros many replicates are what the data say; half of them count as below it.
    sample = np.repeat([0.0, 1.0], [20, 10]) if has_ties else generator.exponential(size=30)
    theirs = stats.bootstrap(
        (sample,), np.mean, n_resamples=4000, method="BCa", rng=np.random.default_rng(1), vectorized=True
    )
    jackknife = weighted_means(1 - np.eye(30), sample[:, None])[:, 0]
    ours = interval(float(sample.mean()), theirs.bootstrap_distribution, jackknife)
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=1e-6)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=1e-6)


def test_means_have_students_interval_below_25_queries_and_bca_from_there() -> None:
    scores = np.random.default_rng(2).random((25, 1))
    scores[[3, 20], 0] = 1.1, 3.0
    (few,), (many,) = mean_intervals(scores[:24]), mean_intervals(scores)
    theirs = stats.ttest_1samp(scores[:24, 0], 0).confidence_interval(0.95)
    assert (few.method, few.units, many.method, many.units) == ("t", 24, "bca", 25)
    assert (few.low, few.high) == (pytest.approx(theirs.low), pytest.approx(theirs.high))
    assert many == Resample(25).draw(lambda counts: weighted_means(counts, scores)).intervals()[0]
    (short,) = mean_intervals([[0.0], [0.2], [1.0]])
    assert (short.low, short.high, short.method) == (0.0, 1.0, "t")
    # The scores are skewed, and so is the interval.
    assert many.high - many.estimate > many.estimate - many.low


def test_symmetric_interval() -> None:
    # Distances from 0.9: 0.3, 0.2, 0.1; their median is 0.2: [0.7, 1.1], cut to 1.
    given = ([0.6, 0.7, 0.8], [0.9, 0.9], 0.5, "symmetric")
    result = interval(0.9, *given, bounds=(-1.0, 1.0))
    assert (result.low, result.high, result.method) == (pytest.approx(0.7), 1.0, "symmetric")
    # An estimate at the bound is not certain for that.
    assert interval(1.0, *given, bounds=(-1.0, 1.0)).low == pytest.approx(0.7)
