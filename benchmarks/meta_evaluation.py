"""Meta-evaluation: time of the whole grid, and coverage of its intervals by simulation.

python -m benchmarks.meta_evaluation            everything
python -m benchmarks.meta_evaluation time       the grid's time only
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray

from rubric_measures.analysis.coefficients import drawn_over_queries, kendall_batch, pooled_tau, query_tau
from rubric_measures.analysis.resampling import (
    Draws,
    Resample,
    mean_intervals,
    paired_family,
    weighted_means,
)

FloatArray = NDArray[np.float64]
RUNS, QUERIES, MEASURES = 58, 54, 30


def simulated(runs: int, queries: int, measures: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Official scores (runs,) and per-query scores (queries, runs, measures) in [0, 1]."""
    generator = np.random.default_rng(seed)
    quality = generator.normal(size=runs)
    scores = 0.5 + 0.1 * quality[None, :, None] + 0.2 * generator.normal(size=(queries, runs, measures))
    return quality, np.clip(scores, 0, 1)


def timed(name: str, rounds: str, function: object) -> None:
    start, cpu = time.perf_counter(), time.process_time()
    function()  # type: ignore[operator]
    wall = time.perf_counter() - start
    print(f"| {name} | {rounds} | {wall:.2f} | {time.process_time() - cpu:.2f} |", flush=True)


def times(_: int) -> None:
    """Seconds of each part at the size of TREC DL 2020."""
    official, scores = simulated(RUNS, QUERIES, MEASURES)
    first, second = scores[:, :, 0], scores[:, :, 1]
    left, right = np.triu_indices(RUNS, 1)
    print(f"\n{RUNS} runs x {QUERIES} queries x {MEASURES} measures\n")
    print("| what | rounds | seconds | CPU seconds |\n|---|---|---|---|")
    table = scores.reshape(QUERIES, -1)
    timed(f"intervals of all {table.shape[1]} means", "10,000", lambda: mean_intervals(table))
    for name in ("kendall", "spearman", "pearson", "tau_ap_b", "rbo"):
        timed(
            f"{name} of {MEASURES} measures, intervals over queries",
            "10,000",
            lambda name=name: [
                drawn_over_queries(official, scores[:, :, place], name, Draws())[1].intervals("symmetric")
                for place in range(MEASURES)
            ],
        )
    timed("τ per query and τ over all pairs, one measure", "10,000",
          lambda: (query_tau(first, second), pooled_tau(first, second)))  # fmt: skip
    timed("sign flips of all 1,653 pairs", "10,000", lambda: paired_family(first[:, left] - first[:, right]))


def covers(low: float, high: float, truth: float) -> bool:
    return low - 1e-9 <= truth <= high + 1e-9


def mean_coverage(simulations: int) -> None:
    """How often the interval of a mean over queries holds the true mean: Student's below 25 queries, then BCa."""
    print(f"\nInterval of a mean, nominal 95 %, {simulations} simulations, 1,000 rounds\n")
    print("| queries | scores | coverage |\n|---|---|---|")
    generator = np.random.default_rng(1)
    for queries in (10, 25, 54, 100):
        for name, a, b in (("symmetric, Beta(2, 2)", 2.0, 2.0), ("skewed, Beta(0.5, 2)", 0.5, 2.0)):
            table = generator.beta(a, b, size=(queries, simulations))
            intervals = mean_intervals(table, Draws(1000, 7))
            hits = [covers(one.low, one.high, a / (a + b)) for one in intervals]  # type: ignore[arg-type]
            print(f"| {queries} | {name} | {np.mean(hits):.3f} |", flush=True)


def tau_coverage(simulations: int, rounds: int = 500) -> None:
    """How often intervals of Kendall's τ over queries hold the τ of the noise-free means."""
    print(f"\nIntervals of τ over queries, nominal 95 %, {simulations} simulations, {rounds} rounds\n")
    print("| runs | queries | spread of runs / noise of a query | percentile | BCa | symmetric (ours) |")
    print("|---|---|---|---|---|---|")
    generator = np.random.default_rng(2)
    for runs, queries, spread, noise in (
        (10, 50, 0.1, 0.1),
        (30, 100, 0.1, 0.1),
        (30, 50, 0.1, 0.2),
        (58, 54, 0.1, 0.2),
        (58, 54, 0.05, 0.2),
        (30, 50, 0.03, 0.2),
    ):
        hits = np.zeros(3)
        for seed in range(simulations):
            official = generator.normal(size=runs)
            quality = official + 0.5 * generator.normal(size=runs)
            truth = float(kendall_batch(official[None], quality[None])[0])
            scores = spread * quality + noise * generator.normal(size=(queries, runs))

            def taus(counts: FloatArray, official: FloatArray = official, scores: FloatArray = scores) -> FloatArray:
                return kendall_batch(np.broadcast_to(official, (len(counts), len(official))),
                                     weighted_means(counts, scores))  # fmt: skip

            drawn = Resample(queries, Draws(rounds, seed)).draw(taus)
            (bca,), (symmetric,) = drawn.intervals(), drawn.intervals("symmetric", (-1.0, 1.0))
            low, high = np.quantile(drawn.replicates, [0.025, 0.975])
            for place, (lower, upper) in enumerate(((low, high), (bca.low, bca.high), (symmetric.low, symmetric.high))):
                hits[place] += covers(lower, upper, truth)  # type: ignore[arg-type]
        shares = " | ".join(f"{share:.2f}" for share in hits / simulations)
        print(f"| {runs} | {queries} | {spread} / {noise} | {shares} |", flush=True)


def main() -> None:
    """Runs the parts that are named."""
    parts = {"time": times, "means": mean_coverage, "tau": tau_coverage}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *parts], default=[])
    parser.add_argument("--repeats", type=int, default=2000, help="simulations (default 2000)")
    options = parser.parse_args()
    for name in options.parts or parts:
        parts[name](options.repeats)


if __name__ == "__main__":
    main()
