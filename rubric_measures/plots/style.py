"""How all pictures look: colours, sizes, titles, names of axes, legends; and how numbers are written beside points."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from rubric_measures.base.extras import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "COLOURS",
    "GREY",
    "MARKERS",
    "ORANGE",
    "figure_of",
    "legend_above",
    "legend_below",
    "name_axes",
    "plain",
    "shown_number",
    "signed",
    "titled",
]

# Okabe and Ito's palette without yellow, which print loses; every series has a marker of its own as well, so that it is
# known in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
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
    found = list(figure.subplots(1, panels, squeeze=False, **options)[0])
    for axes in found:
        plain(axes)
    return figure, found


def plain(axes: Any) -> None:
    """No frame above and to the right, small numbers, what is drawn above the grid."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.set_axisbelow(True)


def titled(figure: Figure, title: str) -> None:
    """Says above all panels what the picture shows, in as many lines as it needs; the figure grows by them."""
    lines = textwrap.wrap(title, max(30, int(figure.get_figwidth() / LETTER)))
    figure.set_figheight(figure.get_figheight() + 0.16 * len(lines))
    figure.suptitle("\n".join(lines), fontsize=9, ha="left", x=0.01)


def name_axes(axes: Any, x: str, y: str, beside: float = 1.0) -> None:
    """Labels the axes; a long label, such as a file's name, is broken into lines that the figure has room for.

    Args:
        axes: the axes.
        x: the label below.
        y: the label to the left.
        beside: the inches that stand beside the axes: more for names of runs.
    """
    width, height = axes.figure.get_size_inches()
    axes.set_xlabel(textwrap.fill(x, max(20, int((width - beside) / LETTER))), fontsize=9)
    axes.set_ylabel(textwrap.fill(y, max(10, int((height - 0.8) / LETTER))), fontsize=9)


def legend_above(axes: Any) -> None:
    """Above the axes, where it hides no point; as many columns as its texts leave room for."""
    longest = max((len(text) for text in axes.get_legend_handles_labels()[1]), default=0)
    room = int(axes.figure.get_figwidth() / (0.7 + 0.07 * longest))
    axes.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(3, max(1, room)))


def legend_below(figure: Figure) -> None:
    """One legend of all panels, below them; what several have stands there once. The figure grows by it."""
    named: dict[str, Any] = {}
    for axes in figure.axes:
        handles, names = axes.get_legend_handles_labels()
        named.update(zip(names, handles, strict=True))
    if named:
        room = int(figure.get_figwidth() / (0.5 + 0.06 * max(map(len, named))))
        columns = max(1, min(len(named), room))
        figure.set_figheight(figure.get_figheight() + 0.18 * math.ceil(len(named) / columns))
        figure.legend(
            named.values(), named, fontsize=8, frameon=False, loc="outside lower left", ncols=columns
        )  # fmt: skip


def signed(value: float) -> str:
    """Two decimal places, with a true minus.

    >>> signed(-0.5)
    '−0.50'
    """
    return f"{value:.2f}".replace("-", "−")


def shown_number(value: float) -> str:
    """A score as it stands beside its point: three decimal places, fewer of large ones.

    >>> shown_number(0.52222), shown_number(1512.34)
    ('0.522', '1512.3')
    """
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.1f}"
