"""Tests of τ without the noise of queries."""

import numpy as np

from rubric_measures.analysis.coefficients import correlate, noise_free_tau
from rubric_measures.analysis.resampling import Draws

DRAWS = Draws(1000, 3)


def drawn(runs: int, queries: int, noise: float, seed: int, shared: float = 0.0):
    """True τ, and both tables of scores."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=runs)
    y = 0.9 * x + np.sqrt(1 - 0.81) * generator.normal(size=runs)
    e = generator.normal(size=(queries, runs))
    f = shared * e + np.sqrt(1 - shared**2) * generator.normal(size=(queries, runs))
    truth = correlate(x, y, "kendall").value
    return truth, 0.1 * x + noise * e + generator.normal(size=(queries, 1)), 0.1 * y + noise * f


def test_noise_is_taken_out() -> None:
    gaps = []
    for seed in range(25):
        truth, x, y = drawn(30, 50, 0.25, seed)
        found = noise_free_tau(x, y, DRAWS)
        seen = correlate(x.mean(axis=0), y.mean(axis=0), "kendall").value
        gaps.append((seen - truth, found.estimate - truth, found.low <= truth <= found.high))
    observed, expected, held = np.mean(gaps, axis=0)
    # Noise lowers what is seen by more than a tenth; what is expected is right but for chance.
    assert observed < -0.1 < -0.05 < expected < 0.05
    assert held >= 0.85


def test_what_has_none() -> None:
    _, x, y = drawn(20, 30, 0.1, 2)
    assert noise_free_tau(x, x, DRAWS).reason.startswith("the means of a side")
    assert "four runs" in noise_free_tau(x[:, :3], y[:, :3], DRAWS).reason
    generator = np.random.default_rng(9)
    nothing = [noise_free_tau(generator.normal(size=(20, 8)), generator.normal(size=(20, 8)), Draws(200, seed))
               for seed in range(20)]  # fmt: skip
    # Runs of pure noise: either it is said that they do not differ, or the interval is wide.
    assert all(one.estimate is None or one.high - one.low > 0.5 for one in nothing)
