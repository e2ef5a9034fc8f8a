"""Scores of runs against other scores of the same runs: leaderboards in official order, by query and run, by length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.base.errors import InputError
from rubric_measures.meta_evaluation.correlation import correlate
from rubric_measures.meta_evaluation.intervals import Draws, pooled_tau, query_tau
from rubric_measures.plots.style import COLOURS, MARKERS, figure_of, legend_above, name_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["pareto_front", "plot_leaderboards", "plot_length", "plot_manual_automatic"]

FloatArray = NDArray[np.float64]
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))


def _normalised(scores: Mapping[str, float], runs: Sequence[str]) -> tuple[FloatArray, float]:
    values = np.array([scores.get(run, np.nan) for run in runs])
    if np.isnan(values).all():
        raise InputError("a leaderboard has none of the runs that are to be plotted")
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    span = high - low
    return ((values - low) / span if span else np.where(np.isnan(values), np.nan, 0.5)), span


def plot_leaderboards(
    order: Sequence[str],
    leaderboards: Mapping[str, Mapping[str, float]],
    errors: Mapping[str, Mapping[str, float]] | None = None,
    label: str = "runs in official order",
) -> Figure:
    """Several leaderboards over the runs in official order, each min-max normalised to [0, 1], with error bars.

    Args:
        order: the runs, officially best first.
        leaderboards: name -> run -> score, higher is better; runs without a score have a gap. All runs tied: 0.5.
        errors: name -> run -> standard error, in the scores' unit.
        label: of the axis of runs.

    Raises:
        InputError: no leaderboard, or one without any of the runs.

    Source: Farzi and Dietz, EXAM++ (LLM4Eval 2024), Figure 2.
    """
    if not leaderboards:
        raise InputError("there is no leaderboard to plot")
    # Long run names and legends take height of their own, not that of the axes.
    height = 3.0 + 0.06 * max((len(run) for run in order), default=0) + 0.18 * len(leaderboards)
    figure, (axes,) = figure_of(max(5.0, 1.5 + 0.16 * len(order)), height)
    spread = min(0.5, 0.14 * (len(leaderboards) - 1))
    shifts = np.linspace(-spread / 2, spread / 2, len(leaderboards)) if len(leaderboards) > 1 else [0.0]
    for index, (name, scores) in enumerate(leaderboards.items()):
        values, span = _normalised(scores, order)
        bars = None
        if errors is not None and errors.get(name) and span:
            bars = np.array([errors[name].get(run, 0.0) for run in order]) / span
        style = index % len(COLOURS)
        axes.errorbar(
            np.arange(len(order)) + shifts[index],
            values,
            yerr=bars,
            label=name,
            color=COLOURS[style],
            marker=MARKERS[style],
            linestyle=_DASHES[style],
            markersize=3.5,
            linewidth=0.9,
            elinewidth=0.6,
            capsize=1.2,
        )
    axes.set_xticks(np.arange(len(order)), order, rotation=90, fontsize=7)
    axes.set_xlim(-0.8, len(order) - 0.2)
    name_axes(axes, label, "score, min-max normalised")
    axes.grid(axis="y", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    legend_above(axes)
    return figure


def plot_manual_automatic(
    manual: ArrayLike, automatic: ArrayLike, names: tuple[str, str] = ("manual", "automatic")
) -> Figure:
    """Manual against automatic scores of query/run pairs (small) and runs (large), with the three τ's in the corner.

    Args:
        manual: (queries, runs) scores; NaN is missing.
        automatic: (queries, runs), same runs and queries.
        names: the labels of the axes.

    Raises:
        InputError: the tables differ in shape, or no query/run pair has a score on both sides.

    Source: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), Figure 6.
    """
    x, y = np.asarray(manual, dtype=np.float64), np.asarray(automatic, dtype=np.float64)
    if x.ndim != 2 or x.shape != y.shape:
        raise InputError(f"manual and automatic scores need one shape (queries × runs), not {x.shape} and {y.shape}")
    missing = np.isnan(x) | np.isnan(y)
    if missing.all():
        raise InputError("manual and automatic scores have no query in common")
    x, y = np.where(missing, np.nan, x), np.where(missing, np.nan, y)
    scored = ~missing.all(axis=0)
    x, y = x[:, scored], y[:, scored]
    figure, (axes,) = figure_of(4.2, 4.2)
    axes.scatter(x, y, s=7, color=COLOURS[4], alpha=0.45, linewidths=0, label="query and run")
    # Equal means stay equal: later decimals hold only the order of summation.
    x_runs: FloatArray = np.round(np.asarray(np.nanmean(x, axis=0)), 12)
    y_runs: FloatArray = np.round(np.asarray(np.nanmean(y, axis=0)), 12)
    axes.scatter(x_runs, y_runs, s=34, color=COLOURS[1], marker="D", edgecolors="black", linewidths=0.5, label="run")
    taus = (
        ("τ of runs", correlate(x_runs, y_runs, "kendall").value),
        ("τ per query, averaged", query_tau(x, y, Draws(0)).interval.estimate),
        ("τ of all pairs", pooled_tau(x, y, Draws(0)).interval.estimate),
    )
    text = "\n".join(f"{name}: {'undefined' if value is None else f'{value:.3f}'}" for name, value in taus)
    box = {"facecolor": "white", "edgecolor": "0.6", "boxstyle": "round,pad=0.4", "linewidth": 0.6}
    axes.text(0.97, 0.03, text, transform=axes.transAxes, ha="right", va="bottom", fontsize=8, bbox=box)
    low, high = min(np.nanmin(x), np.nanmin(y)), max(np.nanmax(x), np.nanmax(y))
    margin = 0.04 * (high - low or 1.0)
    axes.plot([low, high], [low, high], color="0.6", linewidth=0.7, linestyle=":", zorder=0)
    axes.set_xlim(low - margin, high + margin)
    axes.set_ylim(low - margin, high + margin)
    axes.set_aspect("equal")
    name_axes(axes, *names)
    legend_above(axes)
    return figure


def pareto_front(lengths: ArrayLike, scores: ArrayLike) -> list[int]:
    """The indices of the runs that no other run beats in both: shorter and better; by length, ascending.

    A run is on the front unless another is at most as long and at least as good, and differs in one of them.

    >>> pareto_front([100, 200, 150, 300], [0.3, 0.6, 0.2, 0.6])
    [0, 1]
    """
    x, y = np.asarray(lengths, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    front = []
    for index in np.lexsort((-y, x)):
        better = (x <= x[index]) & (y >= y[index]) & ((x < x[index]) | (y > y[index]))
        if not better.any():
            front.append(int(index))
    return front


def plot_length(
    runs: Sequence[str], lengths: ArrayLike, scores: ArrayLike, names: tuple[str, str] = ("words", "score")
) -> Figure:
    """Score against answer length, a point a run, with the Pareto front drawn and its runs named.

    Raises:
        InputError: lengths differ.

    Source: Pradeep et al., AutoNuggetizer (TREC 2024 RAG), Figure 7.
    """
    x, y = np.asarray(lengths, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(runs) != len(x) or not len(x):
        raise InputError("every run needs one length and one score")
    figure, (axes,) = figure_of(5.2, 3.6)
    front = pareto_front(x, y)
    axes.scatter(x, y, s=20, color=COLOURS[0], alpha=0.75, linewidths=0, label="run")
    axes.plot(
        x[front], y[front], color=COLOURS[1], marker="D", markersize=5, linewidth=1.0, drawstyle="steps-post",
        label="Pareto front",
    )  # fmt: skip
    for place, index in enumerate(front):
        right = x[index] <= (x.min() + x.max()) / 2
        axes.annotate(
            runs[index],
            (x[index], y[index]),
            xytext=(5 if right else -5, 5 if place % 2 else -9),
            textcoords="offset points",
            ha="left" if right else "right",
            fontsize=7,
        )
    name_axes(axes, *names)
    axes.margins(0.08)
    axes.grid(color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)
    legend_above(axes)
    return figure
