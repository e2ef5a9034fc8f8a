"""Pictures: dot plots of boards and differences, and how they are written.

Writing pictures: PDF, SVG or PNG, under their name only when they are whole.

Dot plots: a row a run with its score, interval and queries, a panel a measure; and the parts they are made of.
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

from rubric_measures.base.errors import InputError, warn
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.plugins import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Of Okabe and Ito's palette.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.62"


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
    figure: Figure = require("matplotlib.figure", "plot").Figure((max(5.0, width), height), layout="constrained")
    # A notebook shows the figures of pyplot; of others it prints the type alone.
    vars(figure)["_repr_png_"] = partial(_as_png, figure)
    every = list(figure.subplots(1, len(panels), squeeze=False, sharey=True).flat)
    every[0].set_yticks(range(len(runs)), runs, fontsize=8)
    every[0].set_ylim(len(runs) - 0.4, -0.6)
    place = {run: row for row, run in enumerate(runs)}
    for number, (axes, panel, text) in enumerate(zip(every, panels, texts, strict=True), 1):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        # What is drawn stands above the grid.
        axes.set_axisbelow(True)
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
    _name_parts(figure)
    return figure


def _name_parts(figure: Figure) -> None:
    """Gives the figure one legend of all panels below them, which has what several name once; it grows by that."""
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


def shown_number(value: float) -> str:
    """A score as it stands beside its point: three decimal places, fewer of large ones, with a true minus.

    >>> shown_number(0.52222), shown_number(1512.34), shown_number(-0.25)
    ('0.522', '1512.3', '−0.250')
    """
    return (f"{value:.3f}" if abs(value) < 100 else f"{value:.1f}").replace("-", "−")
