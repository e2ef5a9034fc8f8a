"""Would a race end early? Runs leave it when they are worse, topic by topic, by tests that survive being looked at.

Run as `python -m benchmarks.racing [--repeats 4000] [BOARD.json …]` from the repository root: races of drawn runs, then
of the shuffled topics of boards (`leaderboard --format json`), then gates. A run leaves the race when another one is
better; the race is decided when one is left. All alphas are .05, two-sided. The tests:

- `paired t`: Student's t after each topic, of each pair by itself. It does not survive looking.
- `O'Brien-Fleming`: five looks; at look k a z of 2.040 √(5 / k) is needed (O'Brien and Fleming, A Multiple Testing
  Procedure for Clinical Trials, Biometrics 35, 1979; the constant from Jennison and Turnbull, Group Sequential Methods,
  2000, table 2.3). Its level is taken for one of Student's t, and parted among all pairs (Bonferroni).
- `max-t`: the same five levels, of the largest |t| of all pairs by sign flips (Westfall and Young, 1993).
- `sequence`: an asymptotic confidence sequence after each topic from the fifth on (Waudby-Smith, Arbour, Sinha, Kennedy
  and Ramdas, Annals of Statistics 52, 2024, theorem 2.2, Robbins' normal mixture). With the standard deviation s, a
  mean of n has to be s √(2 (n ρ² + 1) / (n² ρ²) · log(√(n ρ² + 1) / alpha)) away; ρ² makes that least in the middle of
  the race. Alpha is parted among all pairs, and the z taken for one of Student's t.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

from rubric_measures.analysis.boards import load_board
from rubric_measures.analysis.resampling import paired_family

Array: TypeAlias = NDArray[np.float64]
ALPHA, LOOKS, FEWEST = 0.05, 5, 5
LEVELS = 2.0 * norm.sf(2.040 / np.sqrt(np.arange(1, LOOKS + 1) / LOOKS))
"""The two-sided level of each look of O'Brien and Fleming."""

Test: TypeAlias = Callable[[Array, int, int], "Array | float | None"]
"""Scores so far (races × topics × runs), all topics, pairs -> the |t| that is needed now; None where nobody looks."""


def paired(scores: Array, topics: int, pairs: int) -> float | None:
    """Of each pair by itself, whenever somebody looks."""
    so_far = scores.shape[1]
    return float(t.isf(ALPHA / 2.0, so_far - 1)) if so_far >= FEWEST else None


def look_of(so_far: int, topics: int) -> int | None:
    """Which of the five looks this is, from 0."""
    ends = [round(topics * look / LOOKS) for look in range(1, LOOKS + 1)]
    return ends.index(so_far) if so_far in ends and so_far > 2 else None


def obrien_fleming(scores: Array, topics: int, pairs: int) -> float | None:
    """Five looks, parted among the pairs."""
    so_far = scores.shape[1]
    look = look_of(so_far, topics)
    return None if look is None else float(t.isf(LEVELS[look] / pairs / 2.0, so_far - 1))


def max_t(scores: Array, topics: int, pairs: int) -> Array | None:
    """Five looks, the largest of all pairs, of each race by itself."""
    look = look_of(scores.shape[1], topics)
    if look is None:
        return None
    first, second = np.triu_indices(scores.shape[2], 1)
    families = [paired_family(one[:, first] - one[:, second], "max-t", LEVELS[look], rounds=2000) for one in scores]
    return np.array([family.critical for family in families])


def sequence(scores: Array, topics: int, pairs: int) -> float | None:
    """After each topic, parted among the pairs."""
    so_far, alpha = scores.shape[1], ALPHA / pairs
    square = (-2.0 * np.log(alpha) + np.log(-2.0 * np.log(alpha)) + 1.0) / (topics / 2.0)
    grown = so_far * square + 1.0
    needed = np.sqrt(2.0 * grown / (so_far * square) * np.log(np.sqrt(grown) / alpha))
    return float(t.isf(norm.sf(needed), so_far - 1)) if so_far >= FEWEST else None


TESTS: dict[str, Test] = {
    "paired t": paired, "O'Brien-Fleming": obrien_fleming, "max-t": max_t, "sequence": sequence
}  # fmt: skip


def race(scores: Array, test: Test) -> tuple[Array, NDArray[np.bool_]]:
    """Of how many topics each run of each race was graded, and whether it is left at the end."""
    races, topics, runs = scores.shape
    is_in, graded = np.ones((races, runs), bool), np.zeros((races, runs))
    sums, squares = np.zeros((races, runs)), np.zeros((races, runs, runs))
    for so_far in range(1, topics + 1):
        new = scores[:, so_far - 1]
        sums, squares = sums + new, squares + new[:, :, None] * new[:, None, :]
        # Of a race that is decided nothing more is graded.
        graded += is_in & (is_in.sum(axis=1, keepdims=True) > 1)
        limit = test(scores[:, :so_far], topics, runs * (runs - 1) // 2)
        if limit is not None:
            means = sums / so_far
            shared = (squares - so_far * means[:, :, None] * means[:, None, :]) / (so_far - 1)
            own = np.einsum("rii->ri", shared)
            errors = np.sqrt(np.maximum(own[:, :, None] + own[:, None, :] - 2.0 * shared, 0.0) / so_far)
            behind = means[:, :, None] - means[:, None, :] < -np.reshape(limit, (-1, 1, 1)) * errors
            is_in &= ~(behind & is_in[:, None, :]).any(axis=2)
    return graded, is_in


def row(name: str, scores: Array, test: str, best: int | None) -> None:
    """Prints what races come to by one test; `best` is how many runs are equally best, None where nobody knows."""
    graded, left = race(scores, TESTS[test])
    topics = scores.shape[1]
    thrown = "—" if best is None else f"{(~left[:, :best]).any(axis=1).mean():.3f}"
    saved = [1.0 - graded.max(axis=1).mean() / topics, 1.0 - graded.mean() / topics]
    cells = [thrown, *(f"{one:.3f}" for one in ((left.sum(axis=1) == 1).mean(), *saved))]
    print(f"| {name} | {test} | {len(scores)} | {' | '.join(cells)} |", flush=True)


def drawn(repeats: int) -> None:
    """Races of runs whose truth is known: equal ones, and such as are spread by a part of a topic's noise."""
    generator = np.random.default_rng(1)
    for runs, spread, best in ((2, 0.0, 2), (26, 0.0, 26), (26, 0.7, 1), (26, 1.4, 1)):
        truth = np.sort(generator.normal(0.0, spread, (repeats, 1, runs)))[:, :, ::-1]
        scores = truth + generator.normal(0.0, 1.0, (repeats, 30, runs))
        for test in TESTS:
            # Sign flips take long.
            some = scores[: max(repeats // 20, 1)] if test == "max-t" else scores
            row(f"{runs} × 30, spread {spread}", some, test, best)


def given(paths: Sequence[str], repeats: int) -> None:
    """Races of the topics of real boards, shuffled, by the first measure."""
    generator = np.random.default_rng(2)
    for path in paths:
        board = load_board(path)
        values = [row[board.measures[0]] for row in board.values.values()]
        table = np.array([[of[query] or 0.0 for query in sorted(of)] for of in values]).T
        scores = np.stack([table[generator.permutation(len(table))] for _ in range(max(repeats // 20, 1))])
        for test in TESTS:
            some = scores[: max(repeats // 200, 1)] if test == "max-t" else scores
            row(f"{Path(path).stem}, {table.shape[1]} × {table.shape[0]}", some, test, None)


def gates(repeats: int) -> None:
    """Prints how soon a gate is decided: the mean of one run, so many standard deviations of a topic away from it."""
    generator = np.random.default_rng(3)
    print("\n| gate is away by | topics | test | decided | of all, on the wrong side | topics saved |\n|" + "---|" * 6)
    for topics, away in itertools.product((30, 50), (0.0, 0.25, 0.5, 1.0)):
        # Against a run that always scores what the gate asks for.
        scores = np.zeros((repeats, topics, 2))
        scores[:, :, 0] = generator.normal(away, 1.0, (repeats, topics))
        for test in ("O'Brien-Fleming", "sequence"):
            graded, left = race(scores, TESTS[test])
            found = [(left.sum(axis=1) == 1).mean(), (~left[:, 0]).mean(), 1.0 - graded[:, 0].mean() / topics]
            print(f"| {away} | {topics} | {test} | {' | '.join(f'{one:.3f}' for one in found)} |", flush=True)


def main() -> None:
    """Prints a line for each kind of race and test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("boards", nargs="*")
    parser.add_argument("--repeats", type=int, default=4000)
    options = parser.parse_args()
    print("| board | test | races | a best run thrown out | decided | topics saved | grades saved |\n|" + "---|" * 7)
    drawn(options.repeats)
    given(options.boards, options.repeats)
    gates(options.repeats)


if __name__ == "__main__":
    main()
