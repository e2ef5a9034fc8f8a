"""By how much the best of a grid flatters: picked on half of the queries, and looked at on the other half."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rubric_measures.meta_evaluation._bootstrap import FloatArray, half_counts, score_table, weighted_means
from rubric_measures.meta_evaluation.correlation import COEFFICIENTS, parse_coefficient, top_k
from rubric_measures.meta_evaluation.leaderboard_correlation import GridCell, RunScores, query_table

__all__ = ["Pick", "pick_of_grid"]

_SPLITS = 200


@dataclass(frozen=True, slots=True)
class Pick:
    """The best cell of a grid, when it is picked on one half of the queries and looked at on the other.

    Attributes:
        coefficient: what the best is best by.
        cells: how many cells are picked from.
        queries: how many queries a half has.
        splits: how often the queries were split; splits in which no cell has a value are left out.
        chosen: the mean value of the cell that is picked, on the queries that it was picked on; None with a reason.
        held_out: its mean value on the other queries; None likewise.
        same: the share of splits in which the cell is picked that is best on all queries; None likewise.
        reason: why there is none.
    """

    coefficient: str
    cells: int
    queries: int
    splits: int
    chosen: float | None
    held_out: float | None
    same: float | None
    reason: str = ""

    @property
    def flattery(self) -> float | None:
        """By how much the pick looks better than it is: chosen − held_out; of `max_rank_drop` a flattered one is below.

        It is that of half the queries; with all of them it is smaller.
        """
        return None if self.chosen is None or self.held_out is None else self.chosen - self.held_out


def pick_of_grid(official: RunScores, cells: Sequence[GridCell], coefficient: str, *, seed: int = 42) -> Pick:
    """How a cell does that is the best of a grid, on queries that it was not picked on.

    All cells are compared over the runs that they and the official leaderboard have, and over the queries that all
    cells have. Where the official leaderboard has scores of these queries, both sides are means over the half; else its
    scores are taken as given.

    Args:
        official: the official leaderboard.
        cells: the grid; cells without a result take no part.
        coefficient: what the best is best by.
        seed: of the splits.

    Source: the split-sample estimate of the optimism of a selection, Efron and Tibshirani, An Introduction to the
    Bootstrap (1993), chapter 17.
    """
    base, k = parse_coefficient(coefficient)
    known = [
        (cell.result.value(coefficient), cell.scores)
        for cell in cells
        if cell.result is not None and cell.scores is not None and cell.result.value(coefficient) is not None
    ]

    def nothing(reason: str) -> Pick:
        return Pick(coefficient, len(known), 0, 0, None, None, None, reason)

    if len(known) < 2:
        return nothing("fewer than two cells to pick from")
    boards = [scores for _, scores in known]
    runs = sorted(official.means.keys() & set.intersection(*(set(one.means) for one in boards)))
    tables = [query_table(one, runs) for one in boards]
    if not runs or any(table is None for table in tables):
        return nothing("a cell has no scores by query")
    queries = sorted(set.intersection(*(set(table[1]) for table in tables if table is not None)))
    if len(queries) < 4:
        return nothing("fewer than four queries that all cells have")
    reference = query_table(official, runs)
    x = np.array([official.means[run] for run in runs])
    if k is not None:
        runs = [runs[place] for place in top_k(x, k)]
        x = np.array([official.means[run] for run in runs])
    halves = half_counts(len(queries), _SPLITS, seed)
    by_query = reference is not None and set(queries) <= set(reference[1])

    def means(scores: RunScores, counts: FloatArray) -> FloatArray:
        table, _ = score_table([{query: scores.queries[run].get(query) for query in queries} for run in runs])
        return weighted_means(counts, table)

    sign = -1.0 if base == "max_rank_drop" else 1.0
    found = np.empty((2, _SPLITS, len(boards)))
    for side, counts in enumerate(halves):
        truth = means(official, counts) if by_query else np.broadcast_to(x, (_SPLITS, len(runs)))
        for place, board in enumerate(boards):
            found[side, :, place] = sign * COEFFICIENTS[base](truth, means(board, counts))
    defined = ~np.isnan(found).any(axis=(0, 2))
    if not defined.any():
        return nothing("undefined in every split")
    first, second = found[0, defined], found[1, defined]
    best = np.argmax(first, axis=1)
    rows = np.arange(len(best))
    values = np.array([sign * float(value or 0.0) for value, _ in known])
    is_best = values[best] == values.max()
    return Pick(
        coefficient,
        len(boards),
        len(queries) // 2,
        int(defined.sum()),
        sign * float(first[rows, best].mean()),
        sign * float(second[rows, best].mean()),
        float(is_best.mean()),
    )
