"""Tests of τ without the noise of queries, and of what the best of a grid is worth."""

import numpy as np

from rubric_measures.analysis.correlation import correlate, noise_free_tau
from rubric_measures.analysis.leaderboards import GridCell, RunScores, correlate_leaderboards, pick_of_grid
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
        gaps.append((found.observed - truth, found.expected - truth, found.low <= truth <= found.high))
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
    assert all(one.expected is None or one.high - one.low > 0.5 for one in nothing)


def cell(name: str, table, official: RunScores) -> GridCell:
    runs = [f"r{i:02}" for i in range(table.shape[1])]
    queries = {run: {f"q{i:02}": float(table[i, j]) for i in range(len(table))} for j, run in enumerate(runs)}
    scores = RunScores(name, {run: float(np.mean(list(of.values()))) for run, of in queries.items()}, queries)
    found = correlate_leaderboards(official, scores, ["kendall"], Draws(0), details=False)
    return GridCell("model", name, "question", name, found, scores=scores)


def test_a_pick_from_noise_flatters_and_a_clear_one_does_not() -> None:
    generator = np.random.default_rng(4)
    quality = generator.normal(size=12)
    official = RunScores("official", {f"r{i:02}": float(one) for i, one in enumerate(quality)})
    noise = [cell(f"n{i}", generator.normal(size=(20, 12)), official) for i in range(30)]
    found = pick_of_grid(official, noise, "kendall")
    # All cells are noise: what is picked is nothing elsewhere.
    assert found.chosen > 0.2 and abs(found.held_out) < 0.15
    assert found.flattery == found.chosen - found.held_out
    clear = [*noise[:5], cell("good", quality + 0.01 * generator.normal(size=(20, 12)), official)]
    found = pick_of_grid(official, clear, "kendall")
    assert found.same == 1.0 and abs(found.flattery) < 0.02
    assert (found.cells, found.queries, found.splits) == (6, 10, 200)
