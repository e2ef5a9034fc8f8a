"""Pictures: boards as dots, differences, scores; how all look, and how they are written.

How all pictures look: colours, sizes, names of axes, legends; and how numbers are written beside points.

Writing pictures: PDF, SVG or PNG, under their name only when they are whole.

Dot plots: a row a run with its score, interval and queries, a panel a measure; and the parts they are made of.

Scores of runs against other scores of the same runs, by run and query.
"""

from __future__ import annotations

import io
import math
import os
import textwrap
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from rubric_measures.analysis.coefficients import correlate, pooled_tau, query_tau, ranks
from rubric_measures.analysis.resampling import Draws, FloatArray
from rubric_measures.base.errors import InputError, counted, warn
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.plugins import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Okabe and Ito's palette without yellow, which print loses.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
BLUE, ORANGE, GREY = COLOURS[0], COLOURS[1], "0.62"
# A letter of 9 points is about so many inches wide.
LETTER = 0.075


def figure_of(width: float, height: float, panels: int = 1, **options: Any) -> tuple[Figure, list[Any]]:
    """A figure of so many inches with its panels side by side, without frames above and to the right.

    Args:
        width: of the figure.
        height: likewise.
        panels: how many axes, from left to right.
        options: of `Figure.subplots`, such as `sharey`.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure: Figure = require("matplotlib.figure", "plot").Figure(figsize=(width, height), layout="constrained")
    # A notebook shows the figures of pyplot; of others it prints the type alone.
    vars(figure)["_repr_png_"] = partial(_as_png, figure)
    found = list(figure.subplots(1, panels, squeeze=False, **options).flat)
    for axes in found:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        # What is drawn stands above the grid.
        axes.set_axisbelow(True)
    return figure, found


def wrapped(text: str, inches: float) -> str:
    """The text in lines that have so much room; its own lines stay lines."""
    return "\n".join(textwrap.fill(line, max(14, int(inches / LETTER))) for line in text.split("\n") if line)


def name_axes(axes: Any, x: str, y: str, beside: float = 1.0) -> None:
    """Labels the axes; a long label, such as a file's name, is broken into lines that the figure has room for.

    Pictures have no title: a caption stands beside them. What one must know to read the numbers is in the labels.

    Args:
        axes: the axes.
        x: the label below.
        y: the label to the left.
        beside: the inches that stand beside the axes: more for names of runs.
    """
    width, height = axes.figure.get_size_inches()
    below = wrapped(x, width - beside)
    axes.set_xlabel(below, fontsize=9)
    axes.set_ylabel(wrapped(y, height - 0.7 - 0.16 * below.count("\n")), fontsize=9)


def finished(figure: Figure) -> Figure:
    """The figure with one legend of all panels below them, which has what several name once; it grows by that."""
    named: dict[str, Any] = {}
    for axes in figure.axes:
        handles, names = axes.get_legend_handles_labels()
        named.update(zip(names, handles, strict=True))
    if named:
        # Columns are as wide as their longest name.
        widths = [0.6 + 0.06 * len(name) for name in named]
        columns = len(named)
        while columns > 1 and sum(max(widths[one::columns]) for one in range(columns)) > figure.get_figwidth():
            columns -= 1
        figure.set_figheight(figure.get_figheight() + 0.18 * math.ceil(len(named) / columns))
        style = {"fontsize": 8, "frameon": False, "ncols": columns, "columnspacing": 1.2}
        figure.legend(named.values(), named, loc="outside lower left", **style)
    return figure


# Of names beside points.
_NAME = {"fontsize": 7, "va": "center", "annotation_clip": False}
_NAME_WIDTH, _NAME_HEIGHT = 0.06, 0.125


def name_points(axes: Any, x: FloatArray, y: FloatArray, names: Sequence[str]) -> None:
    """Names to the right of the axes in the order of their points from top to bottom, each joined to its point.

    So no two overlap where the axes have `_NAME_HEIGHT` inches for each; a letter has `_NAME_WIDTH`.
    """
    line = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.6, "shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5)}
    for height, place in zip(np.linspace(1.0, 0.0, len(names)), np.argsort(-y, kind="stable"), strict=True):
        about = {**_NAME, "xytext": (1.05, height), "textcoords": "axes fraction", "arrowprops": line}
        axes.annotate(names[place], (x[place], y[place]), **about)


SUFFIXES = (".pdf", ".svg", ".png")
# Text stays text in SVG, fonts are embedded as such in PDF; equal figures give equal bytes.
_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "rubric_measures", "pdf.fonttype": 42}


def check_figure_path(path: str | os.PathLike[str]) -> Path:
    """The path, if a figure can be written there; a command asks before it computes.

    Raises:
        InputError: no file name, another ending than .pdf, .svg or .png, or a folder that does not exist.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path: {path!r:.60} is no file name; a figure is written as {', '.join(SUFFIXES)}")
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise InputError(f"{target}: a figure is written as {', '.join(SUFFIXES)}")
    if not target.parent.is_dir():
        raise InputError(f"{target}: the folder does not exist")
    return target


def save_figures(figures: Iterable[Figure], path: str | os.PathLike[str] | None) -> Figure:
    """Writes the pages of a picture, by the name's ending; equal figures give equal bytes.

    PDF holds all pages, SVG and PNG (300 dpi) one.

    Args:
        figures: one or more; made one after the other, so that many pages need no memory.
        path: the file. Where it is a symbolic link, its target is written. None writes nothing.

    Returns:
        the first page, which a notebook shows.

    Raises:
        InputError: another ending, the file cannot be written, or there are several pages and it is no PDF.
    """
    target = None if path is None else check_figure_path(path)
    with (
        require("matplotlib", "plot").rc_context(_SETTINGS),
        warnings.catch_warnings(record=True) as said,
    ):
        warnings.simplefilter("always")
        first = next(pages := iter(figures))
        if target is None:
            return first
        # Not into the file: where the disk is full, some formats end in other errors, which do not name it.
        drawn, form = io.BytesIO(), target.suffix.lower()[1:]
        if form == "pdf":
            book: Any = require("matplotlib.backends.backend_pdf", "plot").PdfPages
            with book(drawn, metadata={"CreationDate": None}) as written:
                for figure in chain([first], pages):
                    written.savefig(figure)
        elif next(pages, None) is not None:
            raise InputError(f"{target}: has several pages, and .pdf alone holds them; give such a file")
        else:
            first.savefig(drawn, format=form, dpi=300, metadata={"Date": None} if form == "svg" else {})
    if any("missing from font" in str(one.message) for one in said):
        warn("%s: the font lacks some characters of the names; they are drawn as boxes", target)
    try:
        with atomic_writer(target) as stream:
            cast(io.TextIOWrapper, stream).buffer.write(drawn.getvalue())
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror or error})") from None
    return first


def _as_png(figure: Figure) -> bytes:
    with require("matplotlib", "plot").rc_context(_SETTINGS):
        figure.savefig(drawn := io.BytesIO(), format="png", dpi=100)
    return drawn.getvalue()


# More points than this are drawn as one image inside of the picture: each would be an element of an SVG.
_MANY_POINTS = 20_000
BEST = "all passages together, or the best ranking"


@dataclass(frozen=True)
class DotPanel:
    """The scores of runs by one measure.

    Attributes:
        measure: the measure, for the axis.
        means: run -> score, in the measure's own unit; a run without one has an empty row.
        intervals: run -> (low, high), None where there is none; of some runs or none.
        queries: run -> the scores of its queries; of some runs or none.
        groups: runs that cannot be told apart, a group a sequence; empty where nobody asked.
        line: where a line stands: the score of all passages together, or of the best ranking, where it is known.
        line_name: of the line; no name has no entry in the legend.
        alike: runs that are not different; their points are hollow.
    """

    measure: str
    means: Mapping[str, float]
    intervals: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    queries: Mapping[str, Sequence[float]] = field(default_factory=dict)
    groups: Sequence[Sequence[str]] = ()
    line: float | None = None
    line_name: str = BEST
    alike: Sequence[str] = ()


def plot_dots(runs: Sequence[str], panels: Sequence[DotPanel], note: str) -> Figure:
    """A panel a measure, a row a run: the mean with its interval in the measure's own unit, single queries in grey.

    The numbers stand to the right. Behind them, a column of squares joins the runs of each group that cannot be told
    apart.

    Args:
        runs: one or more, from top to bottom, the same in all panels.
        panels: one or more.
        note: what points and intervals are, and over how many queries; below each measure.
    """
    texts = [f"{textwrap.fill(panel.measure, 44)}\n{textwrap.fill(note, 48)}" for panel in panels]
    most = sum(len(panel.groups) for panel in panels)
    width = 0.07 * max(map(len, runs)) + 3.4 * len(panels) + 0.09 * most
    height = 0.4 + 0.24 * len(runs) + 0.16 * max(text.count("\n") + 1 for text in texts)
    figure, every = figure_of(max(5.0, width), height, len(panels), sharey=True)
    every[0].set_yticks(range(len(runs)), runs, fontsize=8)
    every[0].set_ylim(len(runs) - 0.4, -0.6)
    place = {run: row for row, run in enumerate(runs)}
    for number, (axes, panel, text) in enumerate(zip(every, panels, texts, strict=True), 1):
        axes.set_xlabel(text, fontsize=9)
        axes.grid(axis="x", color="0.92", linewidth=0.6)
        axes.tick_params(axis="y", length=0)
        _draw_scores(axes, place, panel)
        _draw_groups(axes, place, panel.groups)
        if panel.line is not None:
            axes.axvline(panel.line, color="0.35", linewidth=0.9, linestyle=":", label=panel.line_name, gid="line")
        for artist in axes.findobj(lambda one: one.get_gid() is not None):
            # Names in the SVG, for those who style it or read it back.
            artist.set_gid(f"{artist.get_gid()}-{number}")
    return finished(figure)


def _draw_scores(axes: Any, place: Mapping[str, int], panel: DotPanel) -> None:
    """A point a run with its interval, its number to the right, and grey points: the darker, the more queries."""
    points = [(value, place[run]) for run in place for value in panel.queries.get(run, ())]
    if points:
        x, y = zip(*points, strict=True)
        look: Any = {"s": 14, "color": GREY, "alpha": 0.5, "linewidths": 0, "rasterized": len(points) > _MANY_POINTS}
        axes.scatter(x, y, label="single query", gid="queries", **look)
    spans = [(run, *panel.intervals[run]) for run in place if None not in panel.intervals.get(run, (None,))]
    if spans:
        axes.hlines(
            [place[run] for run, _, _ in spans], [low for _, low, _ in spans], [high for _, _, high in spans],
            color=BLUE, linewidth=2.2, label="interval", gid="intervals",
        )  # fmt: skip
    scored = [run for run in place if run in panel.means]
    alike = {"markerfacecolor": "white", "label": "not significant", "gid": "alike"}
    for some, more in ((scored, {"label": "mean", "gid": "means"}), (panel.alike, alike)):
        if some:
            means, rows = [panel.means[run] for run in some], [place[run] for run in some]
            axes.plot(means, rows, "o", color=BLUE, markersize=5.5, **more)
    for run in scored:
        axes.annotate(
            shown_number(panel.means[run]), (1.0, place[run]), xycoords=axes.get_yaxis_transform(), xytext=(5, 0),
            textcoords="offset points", va="center", fontsize=8, annotation_clip=False,
        )  # fmt: skip


def _draw_groups(axes: Any, place: Mapping[str, int], groups: Sequence[Sequence[str]]) -> None:
    """Beside the numbers, a column a group: a square a member, on a line from the first to the last."""
    moved = require("matplotlib.transforms", "plot").offset_copy
    for number, group in enumerate(groups):
        rows = sorted(place[run] for run in group if run in place)
        beside = moved(axes.get_yaxis_transform(), axes.figure, x=44 + 6.5 * number, units="points")
        axes.plot(
            [1.0] * len(rows), rows, "-s", color=ORANGE, linewidth=1.4, markersize=4, transform=beside, clip_on=False,
            label="" if number else "cannot be told apart", gid=f"group-{number + 1}",
        )  # fmt: skip


# Of more runs, only so many are named.
_MANY_NAMES, _NAMED = 30, 10


def _shown(value: float | None) -> str:
    return "undefined" if value is None else shown_number(value)


def plot_scatter(
    runs: Sequence[str],
    official: ArrayLike,
    scores: ArrayLike,
    names: tuple[str, str] = ("official", "scores"),
    errors: tuple[Mapping[str, float], Mapping[str, float]] = ({}, {}),
) -> Figure:
    """Scores against official scores, a named point a run; with scores by query also a small point a query and run.

    Both axes are in their own units; where both are shares, they have one scale, and a line on which both are equal.
    The τ of the runs stands below; with scores by query also their τ by query, averaged, and over all pairs.

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
    # All, or of many those whose ranks on the two sides differ most.
    moved = np.argsort(-np.abs(ranks(x_runs) - ranks(y_runs)), kind="stable")
    place = sorted(moved[: _NAMED if len(known) > _MANY_NAMES else None].tolist())
    tall = max(3.2, _NAME_HEIGHT * len(place))
    beside = 1.0 + _NAME_WIDTH * max(len(known[index]) for index in place)
    figure, (axes,) = figure_of(4.2 + beside, tall + 1.2)
    if by_query:
        axes.plot(
            x.ravel(), y.ravel(), "o", markersize=2.6, color=COLOURS[4], alpha=0.5, markeredgewidth=0,
            label="query and run", gid="queries",
        )  # fmt: skip
    if any(errors):
        bars = [[side.get(run, 0.0) for run in known] for side in errors]
        axes.errorbar(x_runs, y_runs, bars[1], bars[0], "none", ecolor="0.35", elinewidth=0.8, label="standard error")
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
    taus = [f"τ of runs {_shown(correlate(x_runs, y_runs, 'kendall').value)}"]
    if by_query:
        taus.append(f"mean of those of queries {_shown(query_tau(x, y, Draws(0)).estimate)}")
        taus.append(f"of all pairs {_shown(pooled_tau(x, y, Draws(0)).estimate)}")
    over = f" over {counted(len(x), 'query')}" if by_query else ""
    few = f"; named: the {_NAMED} whose ranks differ most" if len(place) < len(known) else ""
    name_axes(axes, f"{names[0]}\n{counted(len(known), 'run')}{over}: {', '.join(taus)}{few}", names[1], beside)
    name_points(axes, x_runs[place], y_runs[place], [known[index] for index in place])
    return finished(figure)


def shown_number(value: float) -> str:
    """A score as it stands beside its point: three decimal places, fewer of large ones, with a true minus.

    >>> shown_number(0.52222), shown_number(1512.34), shown_number(-0.25)
    ('0.522', '1512.3', '−0.250')
    """
    return (f"{value:.3f}" if abs(value) < 100 else f"{value:.1f}").replace("-", "−")
