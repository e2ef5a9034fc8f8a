"""Pictures of a tournament: ratings with intervals, and who beat whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rubric_measures.plots.cells import draw_cells
from rubric_measures.plots.dots import DotPanel, draw_groups, draw_means, group_columns
from rubric_measures.plots.style import BLUE, figure_of, legend_below, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_tournament"]


def plot_tournament(
    ratings: Mapping[str, float],
    intervals: Mapping[str, tuple[float | None, float | None]],
    groups: Sequence[Sequence[str]],
    rates: Sequence[Sequence[float | None]],
    title: str,
) -> Figure:
    """Ratings with their intervals, best first, beside the win matrix: the share of games that the row won.

    An interval without an end goes on to the edge, with a triangle there. Grey cells are of agents that never met.

    Args:
        ratings: agent -> rating, best first.
        intervals: agent -> low and high; None where nothing bounds it. Agents may be left out.
        groups: agents that cannot be told apart.
        rates: (agents, agents) in the order of the ratings: row beats column, 0 to 1; None where they never met.
        title: what is shown.
    """
    agents = list(ratings)
    ends = [end for pair in intervals.values() for end in pair if end is not None] + list(ratings.values())
    spare = 0.08 * (max(ends) - min(ends) or 1.0)
    low, high = min(ends) - spare, max(ends) + spare
    spans = {
        agent: (low if left is None else left, high if right is None else right)
        for agent, (left, right) in intervals.items()
    }
    place = {agent: row for row, agent in enumerate(agents)}
    names = 0.07 * max(map(len, agents))
    columns = group_columns(agents, groups)
    below = 0.045 * max(map(len, agents))
    figure, (left_axes, right_axes) = figure_of(
        5.0 + names * 2 + 0.45 * len(agents), 0.9 + below + 0.28 * len(agents), 2
    )
    draw_means(left_axes, place, DotPanel("rating", ratings, spans), "rating")
    for side, marker, edge in ((0, "<", low), (1, ">", high)):
        open_ended = [place[agent] for agent, pair in intervals.items() if pair[side] is None]
        if open_ended:
            left_axes.plot([edge] * len(open_ended), open_ended, marker, color=BLUE, markersize=5, gid=f"open-{side}")
    draw_groups(left_axes, place, groups, columns)
    left_axes.set_yticks(range(len(agents)), agents, fontsize=8)
    left_axes.set_ylim(len(agents) - 0.4, -0.6)
    left_axes.set_xlabel("rating (400 points: odds of ten to one)", fontsize=9)
    left_axes.grid(axis="x", color="0.92", linewidth=0.6)
    table = np.array(rates, dtype=np.float64).reshape(len(agents), len(agents))
    texts = [["" if np.isnan(rate) else f"{rate:.2f}" for rate in row] for row in table]
    draw_cells(right_axes, table, texts, (0.0, 1.0), "games that the row won", agents, agents)
    titled(figure, title)
    legend_below(figure)
    return figure
