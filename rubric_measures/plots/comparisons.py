"""Pictures of runs that were compared: differences to a baseline, and groups that cannot be told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rubric_measures.analysis.comparison import Comparison
from rubric_measures.plots.dots import DotPanel, draw_means, draw_queries, group_columns, lines_of, rows_figure
from rubric_measures.plots.style import BLUE, ORANGE, figure_of, legend_below, shown_number, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_critical_difference", "plot_differences"]


def plot_differences(comparison: Comparison, differences: Mapping[str, Sequence[float]] | None = None) -> Figure:
    """Every run minus the baseline, best first: the mean difference with its interval, single queries in grey.

    Runs that differ from the baseline after correction have a filled point, the others a hollow one.

    Args:
        comparison: with a baseline.
        differences: run -> run minus baseline on each query; empty where it is not known.
    """
    pairs = sorted(comparison.pairs, key=lambda pair: -pair.test.mean_difference)
    runs = [pair.first for pair in pairs]
    figure, (axes,) = rows_figure(runs, [comparison.measure])
    place = {run: row for row, run in enumerate(runs)}
    panel = DotPanel(
        comparison.measure,
        {pair.first: pair.test.mean_difference for pair in pairs},
        {
            pair.first: (pair.test.low, pair.test.high)
            for pair in pairs
            if pair.test.low is not None and pair.test.high is not None
        },
        differences or {},
    )
    axes.axvline(0, color="0.35", linewidth=0.9, linestyle=":", label=f"as {comparison.baseline}", gid="baseline")
    draw_queries(axes, place, panel)
    draw_means(axes, place, panel, "mean difference")
    alike = [pair for pair in pairs if not pair.significant]
    axes.plot(
        [pair.test.mean_difference for pair in alike], [place[pair.first] for pair in alike], "o", color=BLUE,
        markerfacecolor="white", markersize=5.5, label="no significant difference", gid="alike",
    )  # fmt: skip
    axes.set_xlabel(f"{lines_of(comparison.measure)}\nminus that of {comparison.baseline}", fontsize=9)
    over = f"over {len(comparison.queries)} queries"
    titled(figure, f"Differences to {comparison.baseline} {over}: {_tested(comparison)}")
    legend_below(figure)
    return figure


def _tested(comparison: Comparison) -> str:
    each = "all intervals at once" if comparison.intervals == "simultaneous" else "each interval by itself"
    level = f"{100 * (1 - comparison.alpha):.4g} %"
    return f"mean and {level} interval ({each}; {comparison.test} test, {comparison.procedure})"


def plot_critical_difference(comparison: Comparison, shown: int = 30) -> Figure:
    """Runs on one axis of scores, their names at both sides; a bar joins the runs of a group that cannot be told apart.

    Args:
        comparison: of all pairs.
        shown: at most so many runs, best first.

    Source: after Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets (JMLR 2006), with mean scores
    in the place of mean ranks.
    """
    order = list(comparison.means)[:shown]
    means = [comparison.means[run] for run in order]
    rank = {run: index for index, run in enumerate(order)}
    kept = [[rank[run] for run in group if run in rank] for group in comparison.groups]
    groups = [group for group in kept if len(group) > 1]
    columns = group_columns(order, [[order[index] for index in group] for group in groups])
    bars = max(columns, default=-1) + 1
    half = (len(order) + 1) // 2
    names = 0.07 * max(map(len, order)) + 0.5
    figure, (axes,) = figure_of(4.2 + 2 * names, 0.6 + 0.13 * bars + 0.22 * half)
    width = (means[0] - means[-1]) or 1.0
    left, right = means[-1] - 0.06 * width, means[0] + 0.06 * width
    first = 0.6 * bars + 1
    for index, (run, mean) in enumerate(zip(order, means, strict=True)):
        # The better half is named at the right, the best one on top; the other half mirrors it.
        is_right = index < half
        depth = first + (index if is_right else len(order) - 1 - index)
        edge = right if is_right else left
        axes.plot([mean, mean, edge], [0, depth, depth], color="0.5", linewidth=0.8, gid=f"line-{index + 1}")
        text = f"{shown_number(mean)}  {run}" if is_right else f"{run}  {shown_number(mean)}"
        axes.annotate(
            text, (edge, depth), xytext=(4 if is_right else -4, 0), textcoords="offset points", va="center",
            ha="left" if is_right else "right", fontsize=8, annotation_clip=False,
        )  # fmt: skip
    axes.plot(means, [0] * len(means), "o", color=BLUE, markersize=4.5, gid="means", clip_on=False)
    for number, (group, column) in enumerate(zip(groups, columns, strict=True), 1):
        axes.plot(
            [means[group[0]], means[group[-1]]], [0.6 * (column + 1)] * 2, "-s", color=ORANGE, linewidth=2.6,
            markersize=4, label="" if number > 1 else "cannot be told apart", gid=f"group-{number}",
        )  # fmt: skip
    axes.set_ylim(first + half - 0.4, 0)
    axes.set_xlim(left, right)
    axes.set_yticks([])
    axes.xaxis.tick_top()
    for side, seen in (("left", False), ("bottom", False), ("top", True)):
        axes.spines[side].set_visible(seen)
    axes.set_title(lines_of(comparison.measure), fontsize=9)
    best = "" if len(order) == len(comparison.means) else f"best {len(order)} of "
    test = f"{comparison.test} test, {comparison.procedure}, α = {comparison.alpha:g}"
    titled(figure, f"{best}{len(comparison.means)} runs over {len(comparison.queries)} queries: mean ({test})")
    legend_below(figure)
    return figure
