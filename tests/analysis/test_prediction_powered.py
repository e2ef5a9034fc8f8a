"""Tests of prediction-powered inference: ppi_py, hand-worked numbers, what it is at the ends of its power."""

import numpy as np
import pytest
from scipy import stats

from rubric_measures.analysis.calibration import prediction_powered_mean
from rubric_measures.base.errors import InputError


def sample(seed: int = 0, assessed: int = 60, model: int = 400):
    generator = np.random.default_rng(seed)
    truth = generator.random(assessed + model)
    guess = np.clip(truth + generator.normal(0.1, 0.15, assessed + model), 0, 1)
    return truth[:assessed], guess[:assessed], guess[assessed:]


def test_it_is_ppi_pys_at_its_power() -> None:
    ppi_py = pytest.importorskip("ppi_py")
    truth, guess, others = sample()
    ours = prediction_powered_mean(truth, guess, others)
    expected = ppi_py.ppi_mean_pointestimate(truth, guess, others, lam=ours.power)
    assert ours.mean == pytest.approx(float(np.squeeze(expected)))
    low, high = ppi_py.ppi_mean_ci(truth, guess, others, alpha=0.05, lam=ours.power)
    # Their variances divide by n, ours by n − 1; their quantile is the normal one, ours Student's with 59.
    width = (ours.high - ours.low) * stats.norm.ppf(0.975) / stats.t.ppf(0.975, 59)
    assert width == pytest.approx(float(np.squeeze(high - low)), rel=0.01)


def test_tuned_power_by_hand() -> None:
    # Cov(Y, f) = .25 (n − 1); the twelve f and f̃ hold six ones: Var = 12 · .25 / 11. λ = .25 / (1.5 · 3/11) = 11/18.
    result = prediction_powered_mean([1, 0, 1, 1], [1, 0, 1, 1], [1, 0, 0, 1, 0, 0, 1, 0])
    assert result.power == pytest.approx(11 / 18)
    assert result.mean == pytest.approx(0.75 + 11 / 18 * (3 / 8 - 3 / 4))
    assert (result.assessor_mean, result.naive_mean, result.labelled, result.unlabelled) == (0.75, 0.5, 4, 8)


def test_a_useless_model_costs_nothing() -> None:
    truth, guess, others = sample()
    constant = prediction_powered_mean(truth, np.full(60, 0.3), np.full(400, 0.3))
    assert (constant.power, constant.mean) == (0.0, constant.assessor_mean)
    assert constant.low == pytest.approx(constant.assessor_low)
    assert constant.high == pytest.approx(constant.assessor_high)
    # A model that contradicts assessors would get a negative weight; it gets none.
    assert prediction_powered_mean(truth, 1 - guess, 1 - others).power == 0.0


def test_wrong_input() -> None:
    with pytest.raises(InputError, match="two units a side"):
        prediction_powered_mean([1], [1], [1, 0])
    with pytest.raises(InputError, match="not finite"):
        prediction_powered_mean([1, np.nan], [1, 0], [1, 0])
    with pytest.raises(InputError, match="level"):
        prediction_powered_mean([1, 0], [1, 0], [1, 0], level=1.5)
