"""Drawing a board: what its pictures need, put together from its scores."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rubric_measures.leaderboards.board import BELOW, OVERALL, Leaderboard

if TYPE_CHECKING:
    from rubric_measures.meta_evaluation.intervals import Draws
    from rubric_measures.meta_evaluation.run_comparison import Comparison, Procedure, Test
    from rubric_measures.plots.boards import DotPanel

__all__ = ["plot_board"]


def plot_board(
    board: Leaderboard,
    path: str | os.PathLike[str],
    draws: Draws,
    correction: Procedure,
    test: Test,
    alpha: float,
) -> None:
    """Writes the dot plot of a board, see `Board.plot`."""
    from rubric_measures.meta_evaluation.leaderboard_report import mean_intervals
    from rubric_measures.meta_evaluation.run_comparison import compare_runs
    from rubric_measures.plots.boards import plot_dots
    from rubric_measures.plots.files import check_figure_path, save_figures

    check_figure_path(path)
    runs = [run for run in board.ranking() if run != OVERALL and run not in BELOW]
    intervals = {
        run: {name: (one.low, one.high) for name, one in row.items() if one.low is not None and one.high is not None}
        for run, row in mean_intervals(board, draws).items()
    }
    panels = []
    for name in board.measures:
        compared = None
        if not _is_sum(board, name) and _share_queries(board, name, runs):
            scores = {run: _scored(board, run, name) for run in runs}
            compared = compare_runs(
                scores, name, procedure=correction, test=test, alpha=alpha, rounds=draws.rounds, seed=draws.seed
            )
        panels.append(_panel(board, name, runs, intervals, compared))
    counts = sorted({board.cells[run][name].queries for run in runs for name in board.measures})
    over = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    said = [f"{len(runs)} runs over {over} queries: mean"]
    if any(panel.intervals for panel in panels):
        said.append(f"with {100 * draws.level:.4g} % interval")
    if any(panel.groups for panel in panels):
        said.append(f"and groups that cannot be told apart ({test} test, {correction}, α = {alpha:g})")
    save_figures([plot_dots(runs, panels, " ".join(said))], path)


def _is_sum(board: Leaderboard, name: str) -> bool:
    """Whether a measure is a count that is summed over queries: such cells have no standard error."""
    return all(row[name].standard_error is None and row[name].queries > 1 for row in board.cells.values())


def _share_queries(board: Leaderboard, name: str, runs: list[str]) -> bool:
    return len(runs) > 1 and len(set.intersection(*(set(_scored(board, run, name)) for run in runs))) > 1


def _scored(board: Leaderboard, run: str, name: str) -> dict[str, float]:
    """Query -> value, of the queries that could be scored."""
    return {query_id: value for query_id, value in board.values[run][name].items() if value is not None}


def _panel(
    board: Leaderboard,
    name: str,
    runs: list[str],
    intervals: dict[str, dict[str, tuple[float, float]]],
    compared: Comparison | None,
) -> DotPanel:
    from rubric_measures.plots.boards import DotPanel

    is_sum = _is_sum(board, name)
    best = board.cells[OVERALL][name].mean if OVERALL in board.cells else None
    return DotPanel(
        f"{name} (sum)" if is_sum else name,
        {run: mean for run in runs if (mean := board.cells[run][name].mean) is not None},
        {} if is_sum else {run: intervals[run][name] for run in runs if name in intervals[run]},
        {} if is_sum else {run: list(_scored(board, run, name).values()) for run in runs},
        () if compared is None else compared.groups,
        best,
    )
