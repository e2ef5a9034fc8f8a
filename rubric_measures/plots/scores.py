"""Scores of runs against other scores of the same runs: ranks, points by run and query, smaller banks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from rubric_measures.analysis.correlation import correlate, pooled_tau, query_tau
from rubric_measures.analysis.resampling import Draws
from rubric_measures.base.errors import InputError
from rubric_measures.plots.dots import lines_of
from rubric_measures.plots.style import (
    BLUE,
    COLOURS,
    ORANGE,
    figure_of,
    legend_below,
    name_axes,
    name_points,
    shown_number,
    titled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_ranks", "plot_scatter", "plot_stability"]

FloatArray = NDArray[np.float64]
# Beyond this many runs, names of all would cover the points.
_MANY_NAMES = 30


def _shown(value: float | None) -> str:
    return "undefined" if value is None else shown_number(value)


def plot_ranks(
    official: Mapping[str, float], others: Mapping[str, Mapping[str, float]], name: str, queries: int = 0
) -> Figure:
    """Ranks against official ranks, a panel a leaderboard, with τ; the runs that move most are named.

    Equal scores share the mean of their ranks; rank 1 is the best, at the upper left. On the line both leaderboards
    agree. Named are up to eight runs that move by two ranks or more.

    Args:
        official: run -> official score, higher is better.
        others: name of a leaderboard -> run -> score.
        name: of the official scores.
        queries: how many queries these are over; 0 where nobody knows.
    """
    across = min(3, len(others))
    rows = -(-len(others) // across)
    figure, every = figure_of(max(4.2, 3.4 * across), 3.4 * rows, len(others), across)
    for number, (axes, (other, scores)) in enumerate(zip(every, others.items(), strict=True), 1):
        runs = sorted(official.keys() & scores.keys())
        x_scores, y_scores = [official[run] for run in runs], [scores[run] for run in runs]
        x, y = (np.asarray(rankdata([-score for score in side])) for side in (x_scores, y_scores))
        axes.plot([1, len(runs)], [1, len(runs)], color="0.45", linewidth=1.0, linestyle=":", label="the same rank")
        axes.set_xlim(0.4, len(runs) + 0.6)
        axes.set_ylim(len(runs) + 0.6, 0.4)
        moved = sorted(range(len(runs)), key=lambda place: (-abs(x[place] - y[place]), place))
        named = [place for place in moved if abs(x[place] - y[place]) >= 2][:8]
        rest = [place for place in range(len(runs)) if place not in named]
        axes.plot(x[rest], y[rest], "o", color=BLUE, markersize=4.5, label="run", gid=f"runs-{number}")
        if named:
            axes.plot(
                x[named], y[named], "D", color=ORANGE, markersize=5.5, label="moves most", gid=f"outliers-{number}"
            )
            name_points(axes, list(x[named]), list(y[named]), [runs[place] for place in named])
        tau = _shown(correlate(x_scores, y_scores, "kendall", test=False).value)
        axes.set_title(f"{lines_of(other)}\nτ = {tau}, {len(runs)} runs", fontsize=9)
        axes.set_xlabel(f"rank by {lines_of(name)}", fontsize=9)
        axes.set_ylabel("rank", fontsize=9)
        axes.locator_params(integer=True, nbins=8)
        axes.set_aspect("equal")
    over = f" over {queries} queries" if queries else ""
    titled(figure, f"Ranks of {len(official)} runs against those by {name}{over}")
    legend_below(figure)
    return figure


def plot_scatter(
    runs: Sequence[str],
    official: ArrayLike,
    scores: ArrayLike,
    names: tuple[str, str] = ("official", "scores"),
    errors: tuple[Mapping[str, float], Mapping[str, float]] = ({}, {}),
) -> Figure:
    """Scores against official scores, a named point a run; with scores by query also a small point a query and run.

    Both axes are in their own units; where both are shares, they have one scale, and a line on which both are equal.
    The τ of the runs stands above; with scores by query also their τ by query, averaged, and over all pairs.

    Args:
        runs: the runs.
        official: a score a run, or (queries, runs), whose means over the queries that both sides have are the runs'
            scores; NaN is missing.
        scores: likewise, of the same shape.
        names: the labels of the axes.
        errors: run -> standard error of its score, on both sides; runs may be left out.

    Raises:
        InputError: the sides differ in shape, or no run has a score on both.

    Source: after Pradeep et al., AutoNuggetizer (TREC 2024 RAG), Figure 6.
    """
    x, y = np.asarray(official, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    missing = np.isnan(x) | np.isnan(y)
    if missing.all():
        raise InputError("the two sides have no query and run in common")
    x, y = np.where(missing, np.nan, np.atleast_2d(x)), np.where(missing, np.nan, np.atleast_2d(y))
    scored = ~np.isnan(x).all(axis=0)
    x, y, known = x[:, scored], y[:, scored], [runs[int(place)] for place in np.flatnonzero(scored)]
    by_query = len(x) > 1
    # Equal means stay equal: later decimals hold only the order of summation.
    x_runs: FloatArray = np.round(np.asarray(np.nanmean(x, axis=0)), 12)
    y_runs: FloatArray = np.round(np.asarray(np.nanmean(y, axis=0)), 12)
    figure, (axes,) = figure_of(5.2, 4.4)
    if by_query:
        axes.plot(
            x.ravel(), y.ravel(), "o", markersize=2.6, color=COLOURS[4], alpha=0.5, markeredgewidth=0,
            label="query and run", gid="queries",
        )  # fmt: skip
    if any(errors):
        spans = [[side.get(run, 0.0) for run in known] for side in errors]
        axes.errorbar(x_runs, y_runs, spans[1], spans[0], "none", ecolor="0.35", elinewidth=0.8, label="standard error")
    axes.plot(
        x_runs, y_runs, "D", markersize=5.5, color=ORANGE, markeredgecolor="black", markeredgewidth=0.5, label="run",
        gid="runs",
    )  # fmt: skip
    if min(np.nanmin(x), np.nanmin(y)) >= 0 and max(np.nanmax(x), np.nanmax(y)) <= 1:
        ends = [min(axes.get_xlim()[0], axes.get_ylim()[0]), max(axes.get_xlim()[1], axes.get_ylim()[1])]
        axes.plot(ends, ends, color="0.45", linewidth=0.9, linestyle=":", zorder=0, label="equal scores")
        axes.set_xlim(*ends)
        axes.set_ylim(*ends)
        axes.set_aspect("equal")
    place = _worth_naming(x_runs, y_runs)
    name_points(axes, list(x_runs[place]), list(y_runs[place]), [known[index] for index in place])
    taus = [f"τ of runs {_shown(correlate(x_runs, y_runs, 'kendall').value)}"]
    if by_query:
        taus.append(f"per query, averaged, {_shown(query_tau(x, y, Draws(0)).interval.estimate)}")
        taus.append(f"of all pairs {_shown(pooled_tau(x, y, Draws(0)).interval.estimate)}")
    over = f" over {len(x)} queries" if by_query else ""
    titled(figure, f"{len(known)} runs{over}: {', '.join(taus)}")
    name_axes(axes, *names)
    legend_below(figure)
    return figure


def _worth_naming(x: FloatArray, y: FloatArray) -> list[int]:
    """All runs, or of many those whose ranks on the two sides differ most."""
    if len(x) <= _MANY_NAMES:
        return list(range(len(x)))
    moved = np.abs(rankdata(x) - rankdata(y))
    return [int(place) for place in np.argsort(-moved, kind="stable")[:10]]


def plot_stability(sizes: Sequence[int], taus: Sequence[tuple[float, float, float]], of: str = "") -> Figure:
    """τ to the full bank over the bank's size: the mean as a line, the range of the samples as a band.

    Args:
        sizes: items a query.
        taus: mean, least and greatest τ of the samples, of each size.
        of: what is ranked over what: "7 runs over 9 queries".

    Raises:
        InputError: there is no size.
    """
    if not sizes:
        raise InputError("there is nothing to plot: τ is undefined at every size (fewer than two runs, or all tied)")
    mean, low, high = np.array(taus, dtype=np.float64).T
    figure, (axes,) = figure_of(5.2, 3.2)
    axes.fill_between(sizes, low, high, color=COLOURS[4], alpha=0.35, linewidth=0, label="range of the samples")
    axes.plot(sizes, mean, color=BLUE, marker="o", markersize=4, label="mean", gid="means")
    axes.locator_params(axis="x", integer=True)
    name_axes(axes, "items a query", "τ to the leaderboard of the full bank")
    axes.grid(color="0.92", linewidth=0.6)
    titled(figure, f"How few items keep the leaderboard{f' of {of}' if of else ''}: τ of random parts of the bank")
    legend_below(figure)
    return figure
