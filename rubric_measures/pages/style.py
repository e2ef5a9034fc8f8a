"""How pictures look, and how they are written.

How all pictures look: colours, sizes, names of axes, legends; and how numbers are written beside points.

Writing pictures: PDF, SVG or PNG, under their name only when they are whole.
"""

from __future__ import annotations

import io
import logging
import math
import os
import textwrap
import warnings
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.plugins import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Okabe and Ito's palette without yellow, which print loses.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
BLUE, ORANGE, GREY = COLOURS[0], COLOURS[1], "0.62"
# A letter of 9 points is about so many inches wide.
LETTER = 0.075


def figure_of(
    width: float, height: float, panels: int = 1, across: int | None = None, **options: Any
) -> tuple[Figure, list[Any]]:
    """A figure of so many inches with its panels side by side, without frames above and to the right.

    Args:
        width: of the figure.
        height: likewise.
        panels: how many axes, from left to right.
        across: how many stand in a row; all, if None.
        options: of `Figure.subplots`, such as `sharey`.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure: Figure = require("matplotlib.figure", "plot").Figure(figsize=(width, height), layout="constrained")
    # A notebook shows the figures of pyplot; of others it prints the type alone.
    vars(figure)["_repr_png_"] = partial(_as_png, figure)
    across = min(across or panels, panels)
    found = list(figure.subplots(-(-panels // across), across, squeeze=False, **options).flat)
    for axes in found[panels:]:
        axes.remove()
    for axes in found[:panels]:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        # What is drawn stands above the grid.
        axes.set_axisbelow(True)
    return figure, found[:panels]


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


def name_points(
    axes: Any, x: Iterable[float], y: Iterable[float], names: Sequence[str], spans: Sequence[Sequence[float]] = ()
) -> None:
    """Names beside points of a finished figure, each where no other name and no point is in its way.

    A name that has to stand apart from its point is joined to it by a line.

    Args:
        axes: the axes.
        x: of the points.
        y: likewise.
        names: of the points.
        spans: the ends of lines that names keep away from: x, y, x, y each.
    """
    axes.figure.draw_without_rendering()
    points = 72 / axes.figure.dpi
    window = axes.get_window_extent()

    def spot(a: float, b: float) -> tuple[float, float]:
        across, up = axes.transData.transform((a, b))
        return (across - window.x0) * points, (up - window.y0) * points

    x, y = list(x), list(y)
    spots = [spot(a, b) for a, b in zip(x, y, strict=True)]
    taken = [(a - 4, b - 4, a + 4, b + 4) for a, b in spots]
    for a, b, c, d in spans:
        (left, low), (right, high) = spot(a, b), spot(c, d)
        taken.append((left - 1, low - 1, right + 1, high + 1))
    for (a, b), value_x, value_y, name in zip(spots, x, y, names, strict=True):
        length = 4.2 * len(name)
        # Right, left, above and below, then the corners; the same farther away.
        places = [
            place
            for far in (0, 10, 22, 36, 52)
            for place in (
                *((6 + far, -3), (-6 - far - length, -3), (-length / 2, 6 + far), (-length / 2, -13 - far)),
                *((5 + far, 6 + far), (5 + far, -13 - far)),
                *((-5 - far - length, 6 + far), (-5 - far - length, -13 - far)),
            )
        ]
        boxes = [(a + dx, b + dy, a + dx + length, b + dy + 8) for dx, dy in places]
        free = (
            number
            for number, box in enumerate(boxes)
            if box[0] >= 0 and box[1] >= 0 and box[2] <= window.width * points + 8 and box[3] <= window.height * points
            and not any(_overlap(box, other) for other in taken)
        )  # fmt: skip
        number = next(free, 0)
        taken.append(boxes[number])
        line = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3} if number > 7 else None
        about = {"xytext": places[number], "textcoords": "offset points", "fontsize": 7, "arrowprops": line}
        axes.annotate(name, (value_x, value_y), **about)


def _overlap(box: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]


def signed(value: float) -> str:
    """Two decimal places, with a true minus.

    >>> signed(-0.5)
    '−0.50'
    """
    return f"{value:.2f}".replace("-", "−")


def shown_number(value: float) -> str:
    """A score as it stands beside its point: three decimal places, fewer of large ones, with a true minus.

    >>> shown_number(0.52222), shown_number(1512.34), shown_number(-0.25)
    ('0.522', '1512.3', '−0.250')
    """
    return (f"{value:.3f}" if abs(value) < 100 else f"{value:.1f}").replace("-", "−")


_LOG = logging.getLogger("rubric_measures")
SUFFIXES = (".pdf", ".svg", ".png")
# Pages that are files of their own.
_MOST_FILES = 100
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

    PDF holds all pages. SVG and PNG (300 dpi) hold one: further ones are `NAME-2.svg`, `NAME-3.svg` and so on beside
    it, which is said.

    Args:
        figures: one or more; made one after the other, so that many pages need no memory.
        path: the file. Where it is a symbolic link, its target is written. None writes nothing.

    Returns:
        the first page, which a notebook shows.

    Raises:
        InputError: another ending, a file cannot be written, or there are more than 100 pages for as many files; then
            nothing is left of any.
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
        figures = chain([first], pages)
        # Not into the file: where the disk is full, some formats end in other errors, which do not name it.
        drawn = [_pdf(figures)] if target.suffix.lower() == ".pdf" else _files(figures, target)
    if any("missing from font" in str(one.message) for one in said):
        _LOG.warning("%s: the font lacks some characters of the names; they are drawn as boxes", target)
    try:
        # All are written before the first one has its name.
        with ExitStack() as written:
            for number, content in enumerate(drawn, 1):
                path = target if number == 1 else target.with_stem(f"{target.stem}-{number}")
                cast(io.TextIOWrapper, written.enter_context(atomic_writer(path))).buffer.write(content)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror or error})") from None
    if len(drawn) > 1:
        last = target.with_stem(f"{target.stem}-{len(drawn)}").name
        _LOG.info("%d pages: %s to %s; .pdf holds all in one file", len(drawn), target, last)
    return first


def _as_png(figure: Figure) -> bytes:
    with require("matplotlib", "plot").rc_context(_SETTINGS):
        figure.savefig(drawn := io.BytesIO(), format="png", dpi=100)
    return drawn.getvalue()


def _files(figures: Iterable[Figure], target: Path) -> list[bytes]:
    drawn: list[bytes] = []
    form = target.suffix.lower()[1:]
    for figure in figures:
        if len(drawn) == _MOST_FILES:
            raise InputError(f"{target}: there are more than {_MOST_FILES} pages, and as many files; give .pdf")
        page = io.BytesIO()
        figure.savefig(page, format=form, dpi=300, metadata={"Date": None} if form == "svg" else {})
        drawn.append(page.getvalue())
    return drawn


def _pdf(figures: Iterable[Figure]) -> bytes:
    drawn = io.BytesIO()
    pages: Any = require("matplotlib.backends.backend_pdf", "plot").PdfPages
    with pages(drawn, metadata={"CreationDate": None}) as book:
        for figure in figures:
            book.savefig(figure)
    return drawn.getvalue()
