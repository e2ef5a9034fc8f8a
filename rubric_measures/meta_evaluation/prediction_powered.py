"""Prediction-powered inference: a mean from few assessors' labels and many of a model, with a valid interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rubric_measures.base.errors import InputError
from rubric_measures.meta_evaluation._bootstrap import FloatArray

__all__ = ["PredictionPowered", "prediction_powered_mean"]


@dataclass(frozen=True, slots=True)
class PredictionPowered:
    """A mean by prediction-powered inference, beside the two simpler ones.

    Attributes:
        mean: the estimate.
        low: lower end of its interval.
        high: upper end.
        power: λ, how far the model's labels are used: 0 not at all, 1 fully.
        assessor_mean: from the assessors' labels alone.
        assessor_low: lower end of the interval from assessors' labels alone.
        assessor_high: upper end.
        naive_mean: from all model labels, taken as if they were the truth.
        naive_low: lower end of its interval, which does not hold where the model is biased.
        naive_high: upper end.
        labelled: number of units with an assessor's label.
        unlabelled: number of units with a model label only.
        level: the nominal coverage.
    """

    mean: float
    low: float
    high: float
    power: float
    assessor_mean: float
    assessor_low: float
    assessor_high: float
    naive_mean: float
    naive_low: float
    naive_high: float
    labelled: int
    unlabelled: int
    level: float


def _influence(values: FloatArray) -> FloatArray:
    """(v − mean)/n, scaled so that the sum of squares is the variance of the mean with n − 1."""
    size = len(values)
    result: FloatArray = (values - values.mean()) / size * np.sqrt(size / (size - 1))
    return result


def _reach(parts: FloatArray, units: int, level: float) -> float:
    """Half an interval: the t quantile of so many units by the standard error of a sum of influences."""
    from scipy.special import stdtrit

    return float(stdtrit(units - 1, (1.0 + level) / 2.0)) * float(np.sqrt((parts**2).sum()))


def prediction_powered_mean(
    assessed: ArrayLike,
    model: ArrayLike,
    model_unlabelled: ArrayLike,
    *,
    level: float = 0.95,
    power: float | None = None,
) -> PredictionPowered:
    """The mean assessor's label of a population from a few assessed units and many that only a model graded (PPI++).

    θ = mean(Y) + λ (mean(f̃) − mean(f)), Y assessors' labels and f model labels of the same n units, f̃ model labels of N
    other units of the same population. λ minimises the variance: λ = Cov(Y, f) / ((1 + n/N) Var(f, f̃)), cut to [0, 1];
    so a useless model costs nothing. Interval: θ ± t √(Var(Y − λf)/n + λ² Var(f̃)/N), variances with n − 1. The paper's
    t is the normal quantile; ours is Student's with n − 1 degrees of freedom, because the samples are small: coverage
    by simulation is in benchmarks/README.md.
    The assessed units must be a random sample.

    A unit is a query (a run's score on it). Units must be independent; passages of one query are not.

    Args:
        assessed: (n,) assessors' labels or scores.
        model: (n,) the model's for the same units.
        model_unlabelled: (N,) the model's for the others.
        level: the nominal coverage.
        power: λ where it is not to be tuned; 1 is classical PPI, 0 uses assessors' labels alone.

    Raises:
        InputError: fewer than two units on a side, a value is not finite.

    Source: Angelopoulos, Duchi and Zrnic, PPI++: Efficient Prediction-Powered Inference (2023), sections 2 and 6;
    Angelopoulos et al., Prediction-Powered Inference (Science 2023).

    >>> result = prediction_powered_mean([1, 0, 1, 1], [1, 0, 1, 1], [1, 0, 0, 1, 0, 0, 1, 0])
    >>> round(result.power, 4), round(result.mean, 4)
    (0.6111, 0.5208)
    """
    truth, guess, others = (np.asarray(values, dtype=np.float64) for values in (assessed, model, model_unlabelled))
    if len(truth) < 2 or len(others) < 2:
        raise InputError(f"prediction-powered inference needs two units a side, not {len(truth)} and {len(others)}")
    if not all(np.isfinite(values).all() for values in (truth, guess, others)):
        raise InputError("a label is not finite; leave units out where a grade is missing (and say so)")
    if not 0.0 < level < 1.0:
        raise InputError(f"an interval's level is between 0 and 1, not {level}")
    amount = _tuned_power(truth, guess, others) if power is None else float(power)
    mean = float(truth.mean() + amount * (others.mean() - guess.mean()))
    parts = np.concatenate([_influence(truth - amount * guess), amount * _influence(others)])
    everything = np.concatenate([guess, others])
    reach = _reach(parts, len(truth), level)
    human_reach = _reach(_influence(truth), len(truth), level)
    naive_reach = _reach(_influence(everything), len(everything), level)
    by_assessors, naive = float(truth.mean()), float(everything.mean())
    return PredictionPowered(
        mean,
        mean - reach,
        mean + reach,
        amount,
        by_assessors,
        by_assessors - human_reach,
        by_assessors + human_reach,
        naive,
        naive - naive_reach,
        naive + naive_reach,
        len(truth),
        len(others),
        level,
    )


def _tuned_power(truth: FloatArray, guess: FloatArray, others: FloatArray) -> float:
    everything = np.concatenate([guess, others])
    if np.ptp(everything) == 0.0:
        # A model that always says the same carries no information.
        return 0.0
    spread = float(everything.var(ddof=1))
    shared = float(((truth - truth.mean()) * (guess - guess.mean())).sum()) / (len(truth) - 1)
    return min(1.0, max(0.0, shared / ((1.0 + len(truth) / len(others)) * spread)))
