"""Dot plots: a row a run with its score, interval and queries, a panel a measure; and the parts they are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rubric_measures.base.errors import InputError
from rubric_measures.base.plugins import require
from rubric_measures.plots.style import BLUE, GREY, ORANGE, figure_of, legend_below, shown_number, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "DotPanel",
    "draw_groups",
    "draw_means",
    "draw_queries",
    "group_columns",
    "lines_of",
    "plot_dots",
    "rows_figure",
]

FloatArray = NDArray[np.float64]
# More points than this are drawn as one image inside of the picture: each would be an element of an SVG.
_MANY_POINTS = 20_000
BEST = "all passages together, or the best ranking"


@dataclass(frozen=True)
class DotPanel:
    """The scores of runs by one measure.

    Attributes:
        measure: the measure, for the axis.
        means: run -> score, in the measure's own unit; a run without one has an empty row.
        intervals: run -> (low, high); of some runs or none.
        queries: run -> the scores of its queries; of some runs or none.
        groups: runs that cannot be told apart, a group a sequence; empty where nobody asked.
        best: the score of all passages together, or of the best ranking, where it is known.
    """

    measure: str
    means: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    queries: Mapping[str, Sequence[float]] = field(default_factory=dict)
    groups: Sequence[Sequence[str]] = ()
    best: float | None = None


def plot_dots(runs: Sequence[str], panels: Sequence[DotPanel], title: str) -> Figure:
    """A panel a measure, a row a run: the mean with its interval in the measure's own unit, single queries in grey.

    The numbers stand to the right. Behind them, a column of squares joins the runs of each group that cannot be told
    apart.

    Args:
        runs: from top to bottom, the same in all panels.
        panels: one or more.
        title: what is shown, and over how many queries.

    Raises:
        InputError: there is no run, or no panel.
    """
    if not runs or not panels:
        raise InputError("there is no run to plot")
    columns = [group_columns(runs, panel.groups) for panel in panels]
    most = [max(found, default=-1) + 1 for found in columns]
    figure, every = rows_figure(runs, [panel.measure for panel in panels], most)
    place = {run: row for row, run in enumerate(runs)}
    for number, (axes, panel, found) in enumerate(zip(every, panels, columns, strict=True), 1):
        draw_queries(axes, place, panel)
        draw_means(axes, place, panel)
        draw_groups(axes, place, panel.groups, found)
        if panel.best is not None:
            axes.axvline(panel.best, color="0.35", linewidth=0.9, linestyle=":", label=BEST, gid="best")
        for artist in axes.findobj(lambda one: one.get_gid() is not None):
            # Names in the SVG, for those who style it or read it back.
            artist.set_gid(f"{artist.get_gid()}-{number}")
    titled(figure, title)
    legend_below(figure)
    return figure


def rows_figure(runs: Sequence[str], measures: Sequence[str], columns: Sequence[int] = ()) -> tuple[Figure, list[Any]]:
    """A panel a measure with a row a run, with room for the names, the numbers and columns of groups."""
    texts = [lines_of(measure) for measure in measures]
    width = 0.07 * max(map(len, runs)) + 3.4 * len(measures) + 0.09 * sum(columns)
    height = 0.4 + 0.24 * len(runs) + 0.16 * max(text.count("\n") + 1 for text in texts)
    figure, every = figure_of(max(5.0, width), height, len(measures), sharey=True)
    for axes, text in zip(every, texts, strict=True):
        axes.set_xlabel(text, fontsize=9)
        axes.grid(axis="x", color="0.92", linewidth=0.6)
        axes.tick_params(axis="y", length=0)
    every[0].set_yticks(range(len(runs)), runs, fontsize=8)
    every[0].set_ylim(len(runs) - 0.4, -0.6)
    return figure, every


def lines_of(name: str) -> str:
    """A measure's name in lines, broken behind commas and brackets; no letter is lost."""
    lines = [""]
    for part in name.replace(",", ",\0").replace("(", "(\0").split("\0"):
        if lines[-1] and len(lines[-1]) + len(part) > 44:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def draw_means(axes: Any, place: Mapping[str, int], panel: DotPanel, name: str = "mean") -> None:
    """A point a run with its interval, and its number to the right."""
    spans = [(run, *panel.intervals[run]) for run in place if run in panel.intervals]
    if spans:
        axes.hlines(
            [place[run] for run, _, _ in spans], [low for _, low, _ in spans], [high for _, _, high in spans],
            color=BLUE, linewidth=2.2, label="interval", gid="intervals",
        )  # fmt: skip
    scored = [run for run in place if run in panel.means]
    axes.plot(
        [panel.means[run] for run in scored], [place[run] for run in scored],
        "o", color=BLUE, markersize=5.5, label=name, gid="means",
    )  # fmt: skip
    beside = axes.get_yaxis_transform()
    for run in scored:
        axes.annotate(
            shown_number(panel.means[run]), (1.0, place[run]), xycoords=beside, xytext=(5, 0),
            textcoords="offset points", va="center", fontsize=8, annotation_clip=False,
        )  # fmt: skip


def draw_queries(axes: Any, place: Mapping[str, int], panel: DotPanel) -> None:
    """Points of equal scores stand above each other in their row, as far as it has room."""
    values = {run: panel.queries[run] for run in place if run in panel.queries}
    every = [value for found in values.values() for value in found]
    if not every:
        return
    step = (max(every) - min(every)) / 120 or 1.0
    x: list[float] = []
    y: list[float] = []
    for run, found in values.items():
        seen = Counter[int]()
        stacks = Counter(int(value // step) for value in found)
        for value in found:
            stack = int(value // step)
            gap = min(0.13, 0.62 / max(stacks[stack] - 1, 1))
            x.append(value)
            y.append(place[run] + gap * (seen[stack] - (stacks[stack] - 1) / 2))
            seen[stack] += 1
    axes.scatter(
        x, y, s=9, color=GREY, linewidths=0, label="single query", gid="queries", rasterized=len(x) > _MANY_POINTS
    )


def group_columns(runs: Sequence[str], groups: Sequence[Sequence[str]]) -> list[int]:
    """In which column each group stands: the first one where no other group's rows are in its way."""
    place = {run: row for row, run in enumerate(runs)}
    taken: list[list[tuple[int, int]]] = []
    columns = []
    for group in groups:
        rows = [place[run] for run in group if run in place]
        span = (min(rows, default=0), max(rows, default=0))
        free = (
            number for number, spans in enumerate(taken) if all(span[1] < low or high < span[0] for low, high in spans)
        )
        column = next(free, len(taken))
        if column == len(taken):
            taken.append([])
        taken[column].append(span)
        columns.append(column)
    return columns


def draw_groups(axes: Any, place: Mapping[str, int], groups: Sequence[Sequence[str]], columns: Sequence[int]) -> None:
    """Beside the numbers: a square a member, on a line from the first to the last."""
    moved = require("matplotlib.transforms", "plot").offset_copy
    for number, (group, column) in enumerate(zip(groups, columns, strict=True)):
        rows = sorted(place[run] for run in group if run in place)
        if len(rows) < 2:
            continue
        beside = moved(axes.get_yaxis_transform(), axes.figure, x=44 + 6.5 * column, units="points")
        axes.plot(
            [1.0] * len(rows), rows, "-s", color=ORANGE, linewidth=1.4, markersize=4, transform=beside, clip_on=False,
            label="" if number else "cannot be told apart", gid=f"group-{number + 1}",
        )  # fmt: skip
