"""Figures of leaderboards and labels (matplotlib, extra `plot`): PNG, SVG or PDF, colour-blind safe, readable in print.

Every function takes plain data and returns a figure, or raises `MissingExtraError` without matplotlib; `save_figure`
writes it. Nothing here touches the global state of matplotlib, so figures can be made in any thread and on machines
without a display.
"""

from __future__ import annotations

import io
import logging
import os
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.base.errors import InputError
from rubric_measures.base.extras import require
from rubric_measures.base.files import followed
from rubric_measures.meta_evaluation.agreement import bland_altman
from rubric_measures.meta_evaluation.correlation import correlate
from rubric_measures.meta_evaluation.intervals import Draws, pooled_tau, query_tau

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "check_figure_path",
    "pareto_front",
    "plot_bland_altman",
    "plot_critical_difference",
    "plot_leaderboards",
    "plot_length",
    "plot_manual_automatic",
    "save_figure",
]

_LOG = logging.getLogger(__name__)

FloatArray = NDArray[np.float64]

# Okabe and Ito's palette without yellow, which print loses; every series has a marker and a dash of its own as well.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_SUFFIXES = (".png", ".svg", ".pdf")


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    figure: Figure = require("matplotlib.figure", "plot").Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8)
    return figure, axes


def _name_axes(axes: Any, x: str, y: str, beside: float = 1.0) -> None:
    """Labels the axes; a long label, such as a file's name, is broken into lines that the figure has room for."""
    width, height = axes.figure.get_size_inches()
    # A letter of 9 points takes about 0.075 inches; what stands beside the axes takes an inch, or more for names.
    axes.set_xlabel(textwrap.fill(x, max(20, int((width - beside) / 0.075))), fontsize=9)
    axes.set_ylabel(textwrap.fill(y, int((height - 0.8) / 0.075)), fontsize=9)


def _legend_above(axes: Any) -> None:
    """Above the axes, where it hides no point; as many columns as its texts leave room for."""
    longest = max((len(text) for text in axes.get_legend_handles_labels()[1]), default=0)
    room = int(axes.figure.get_figwidth() / (0.7 + 0.07 * longest))
    axes.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(3, max(1, room)))


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def check_figure_path(path: str | os.PathLike[str]) -> Path:
    """The path, if a figure can be written there; a command asks before it computes.

    Raises:
        InputError: no file name, another ending than .png, .svg or .pdf, or a folder that does not exist.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path: {path!r:.60} is no file name; a figure is written as {', '.join(_SUFFIXES)}")
    target = Path(path)
    if target.suffix.lower() not in _SUFFIXES:
        raise InputError(f"{target}: a figure is written as {', '.join(_SUFFIXES)}")
    if not target.parent.is_dir():
        raise InputError(f"{target}: the folder does not exist")
    return target


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Writes a figure as PNG (300 dpi), SVG or PDF, by the name's ending; equal figures give equal bytes.

    Where the path is a symbolic link, its target is written.

    Raises:
        InputError: another ending, or a folder that cannot be written.
    """
    target = check_figure_path(path)
    matplotlib = require("matplotlib", "plot")
    file = followed(target)
    partial = file.with_name(f".{file.stem}.part{target.suffix}")
    # Text stays text in SVG, fonts are embedded as such in PDF; no dates, so that figures can be compared.
    settings = {"svg.fonttype": "none", "svg.hashsalt": "rubric_measures", "pdf.fonttype": 42}
    metadata = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}[target.suffix.lower()]
    try:
        # Not into the file: where the disk is full, some formats end in other errors, which do not name it.
        drawn = io.BytesIO()
        with matplotlib.rc_context(settings), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            figure.savefig(drawn, format=target.suffix[1:].lower(), dpi=300, metadata=metadata)
        if any("missing from font" in str(one.message) for one in said):
            _LOG.warning("%s: the font lacks some characters of the names; they are drawn as boxes", target)
        partial.write_bytes(drawn.getvalue())
        partial.replace(file)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror or error})") from None
    finally:
        partial.unlink(missing_ok=True)


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
    figure, axes = _figure(max(5.0, 1.5 + 0.16 * len(order)), height)
    spread = min(0.5, 0.14 * (len(leaderboards) - 1))
    shifts = np.linspace(-spread / 2, spread / 2, len(leaderboards)) if len(leaderboards) > 1 else [0.0]
    for index, (name, scores) in enumerate(leaderboards.items()):
        values, span = _normalised(scores, order)
        bars = None
        if errors is not None and errors.get(name) and span:
            bars = np.array([errors[name].get(run, 0.0) for run in order]) / span
        style = index % len(_COLOURS)
        axes.errorbar(
            np.arange(len(order)) + shifts[index],
            values,
            yerr=bars,
            label=name,
            color=_COLOURS[style],
            marker=_MARKERS[style],
            linestyle=_DASHES[style],
            markersize=3.5,
            linewidth=0.9,
            elinewidth=0.6,
            capsize=1.2,
        )
    axes.set_xticks(np.arange(len(order)), order, rotation=90, fontsize=7)
    axes.set_xlim(-0.8, len(order) - 0.2)
    _name_axes(axes, label, "score, min-max normalised")
    axes.grid(axis="y", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    _legend_above(axes)
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
    figure, axes = _figure(4.2, 4.2)
    axes.scatter(x, y, s=7, color=_COLOURS[4], alpha=0.45, linewidths=0, label="query and run")
    # Equal means stay equal: later decimals hold only the order of summation.
    x_runs: FloatArray = np.round(np.asarray(np.nanmean(x, axis=0)), 12)
    y_runs: FloatArray = np.round(np.asarray(np.nanmean(y, axis=0)), 12)
    axes.scatter(x_runs, y_runs, s=34, color=_COLOURS[1], marker="D", edgecolors="black", linewidths=0.5, label="run")
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
    _name_axes(axes, *names)
    _legend_above(axes)
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
    figure, axes = _figure(5.2, 3.6)
    front = pareto_front(x, y)
    axes.scatter(x, y, s=20, color=_COLOURS[0], alpha=0.75, linewidths=0, label="run")
    axes.plot(
        x[front], y[front], color=_COLOURS[1], marker="D", markersize=5, linewidth=1.0, drawstyle="steps-post",
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
    _name_axes(axes, *names)
    axes.margins(0.08)
    axes.grid(color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)
    _legend_above(axes)
    return figure


def plot_bland_altman(a: ArrayLike, b: ArrayLike, names: tuple[str, str] = ("first", "second")) -> Figure:
    """Bland–Altman: difference against mean, with bias and limits of agreement; area shows how many points coincide.

    Args:
        a: labels or scores of the first source.
        b: of the second.
        names: of the sources.

    Raises:
        InputError: nothing to compare.

    Source: Bland and Altman (Lancet 1986).
    """
    result = bland_altman(a, b)
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    points, counts = np.unique(np.stack([(left + right) / 2, left - right], axis=1), axis=0, return_counts=True)
    figure, axes = _figure(5.0, 3.6)
    sizes = 12 + 260 * counts / counts.max() if counts.max() > 1 else 14
    axes.scatter(points[:, 0], points[:, 1], s=sizes, color=_COLOURS[0], alpha=0.55, linewidths=0)
    lines = [("bias", result.bias, "-")]
    if result.low is not None and result.high is not None:
        lines += [("+1.96 SD", result.high, "--"), ("−1.96 SD", result.low, "--")]
    for name, value, dash in lines:
        axes.axhline(value, color=_COLOURS[1], linestyle=dash, linewidth=1.0)
        axes.annotate(
            f"{name} {_signed(value)}",
            (1.0, value),
            xycoords=("axes fraction", "data"),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            annotation_clip=False,
        )
    axes.axhline(0, color="0.7", linewidth=0.7, zorder=0)
    _name_axes(axes, f"mean of {names[0]} and {names[1]}", f"{names[0]} − {names[1]}")
    axes.margins(0.1)
    return figure


def plot_critical_difference(
    means: Mapping[str, float], groups: Sequence[Sequence[str]], measure: str = "score", shown: int = 30
) -> Figure:
    """Runs ranked by score; a bar joins the runs of each group that cannot be told apart.

    Args:
        means: run -> mean score.
        groups: as `run_comparison.Comparison.groups` has them.
        measure: the label of the axis.
        shown: at most so many runs, best first.

    Raises:
        InputError: there is no run.

    Source: after Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets (JMLR 2006).
    """
    if not means:
        raise InputError("there is no run to plot")
    order = sorted(means, key=lambda run: (-means[run], run))[:shown]
    figure, axes = _figure(5.6, max(1.6, 0.6 + 0.2 * len(order)))
    values = [means[run] for run in order]
    places = np.arange(len(order))
    axes.hlines(places, min(values), values, color="0.8", linewidth=0.8)
    axes.plot(values, places, "o", color=_COLOURS[0], markersize=4.5)
    rank = {run: index for index, run in enumerate(order)}
    width = (max(values) - min(values)) or 1.0
    kept = [[rank[run] for run in group if run in rank] for group in groups]
    for column, group in enumerate(sorted(group for group in kept if len(group) > 1)):
        x = max(values) + width * (0.06 + 0.035 * column)
        axes.vlines(x, group[0] - 0.25, group[-1] + 0.25, color=_COLOURS[1], linewidth=2.4)
    # The bars stand to the right of the scores; ticks there would be scores that cannot be.
    axes.set_xticks([tick for tick in axes.get_xticks() if min(values) - width <= tick <= max(values) + 0.05 * width])
    axes.set_xlim(min(values) - 0.06 * width, None)
    axes.set_yticks(places, order, fontsize=7)
    axes.set_ylim(len(order) - 0.4, -0.6)
    note = "" if len(order) == len(means) else f" (best {len(order)} of {len(means)})"
    _name_axes(
        axes, f"{measure}; a bar joins runs that cannot be told apart{note}", "", 0.5 + 0.055 * max(map(len, order))
    )
    axes.grid(axis="x", color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)
    return figure
