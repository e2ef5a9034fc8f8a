"""A leaderboard of graders: CPU time of the command with 40 of 5,000 labels, and how often equals are told apart.

python -m benchmarks.graders            all
python -m benchmarks.graders time       the time only
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from rubric_measures.analysis.agreement import LabelSource, compare_sources
from rubric_measures.analysis.resampling import Draws

GRADERS, QUERIES, DEPTH = 40, 100, 50
# Of a query: graders err more on some queries than on others, so documents of a query are not independent.
SPREAD = 0.1


def labels(generator: np.random.Generator, queries: int, depth: int, skills: list[float]) -> list[list[list[int]]]:
    """Labels 0 to 3 of the truth and of graders, by query; each is right with its skill, give or take the query's."""
    truth = generator.integers(0, 4, (queries, depth))
    hard = generator.normal(0, SPREAD, (queries, 1))
    every = [truth]
    for skill in skills:
        is_right = generator.random(truth.shape) < skill + hard
        every.append(np.where(is_right, truth, generator.integers(0, 4, truth.shape)))
    return [source.tolist() for source in every]


def time(_: int) -> None:
    """CPU seconds of the whole command, files read and Python started, on one thread of the matrix library."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        skills = [0.4 + 0.01 * place for place in range(GRADERS)]
        for place, source in enumerate(labels(np.random.default_rng(0), QUERIES, DEPTH, skills)):
            paths.append(Path(folder) / f"{place:02}.qrels")
            paths[-1].write_text(
                "".join(f"q{q} 0 d{q}-{i} {label}\n" for q, row in enumerate(source) for i, label in enumerate(row))
            )
        command = [sys.executable, "-m", "rubric_measures", "agreement", *map(str, paths), "--format", "tsv"]
        before = os.times()
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
        after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"\n{GRADERS} graders of {QUERIES * DEPTH:,} labels, 10,000 rounds: {seconds:.2f} CPU seconds")


def groups(simulations: int) -> None:
    """How often any two of five equal graders are told apart, nominal 5 %, and two unequal ones; 500 rounds."""
    print("\n| queries | five equal graders, any pair apart | skill .5 against .6 | .5 against .7 |\n|---|---|---|---|")
    for queries in (10, 25, 50, 100):
        found = []
        for skills in ([0.6] * 5, [0.5, 0.6], [0.5, 0.7]):
            hits = 0
            for seed in range(simulations):
                sources = labels(np.random.default_rng(seed), queries, 20, skills)
                graders = [
                    LabelSource(str(place), {(f"q{q:03}", str(i)): label for q, row in enumerate(source)
                                       for i, label in enumerate(row)})
                    for place, source in enumerate(sources)
                ]  # fmt: skip
                board = compare_sources(graders, [(2, 2)], scale=range(4), draws=Draws(500, seed))
                hits += max(map(len, board.groups), default=0) < len(skills)
            found.append(f"{hits / simulations:.3f}")
        print(f"| {queries} | {' | '.join(found)} |", flush=True)


def main() -> None:
    """Runs the parts that are named."""
    parts = {"time": time, "groups": groups}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *parts], default=[])
    parser.add_argument("--repeats", type=int, default=200, help="simulations (default 200)")
    options = parser.parse_args()
    for name in options.parts or parts:
        parts[name](options.repeats)


if __name__ == "__main__":
    main()
