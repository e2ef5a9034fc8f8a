"""Labels of graders against each other: confusion, Bland–Altman."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rubric_measures.analysis.agreement import Agreement, bland_altman
from rubric_measures.plots.cells import cells_figure, draw_cells
from rubric_measures.plots.style import BLUE, ORANGE, figure_of, legend_below, name_axes, shown_number, signed, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_bland_altman", "plot_confusion"]


def plot_confusion(found: Agreement, names: tuple[str, str] = ("first", "second")) -> Figure:
    """How many documents have which two labels; the diagonal, where both agree, is bold, and κ stands above.

    Colours are shares of a row, so that rare labels are seen, too; the numbers are counts.

    Args:
        found: the agreement of two sources.
        names: of the sources: rows and columns.
    """
    counts = np.array(found.confusion, dtype=np.float64)
    labels = [str(label) for label in found.labels]
    sums = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, sums, out=np.zeros_like(counts), where=sums > 0)
    figure, axes = cells_figure(labels, labels, 0.7, 0.45)
    texts = [[f"{count:.0f}" for count in row] for row in counts]
    bold = np.eye(len(labels), dtype=np.bool_)
    draw_cells(axes, shares, texts, (0.0, 1.0), "share of the row", labels, labels, bold)
    axes.tick_params(axis="x", rotation=0)
    name_axes(axes, f"label by {names[1]}", f"label by {names[0]}")
    kappa = "undefined" if found.kappa is None else shown_number(found.kappa)
    titled(figure, f"Labels of {found.pairs} documents: {100 * found.exact_match:.1f} % equal, κ = {kappa}")
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
    figure, (axes,) = figure_of(5.4, 3.4)
    most = int(counts.max())
    sizes = 12 + 260 * counts / most if most > 1 else np.full(len(counts), 14.0)
    axes.scatter(points[:, 0], points[:, 1], s=sizes, color=BLUE, alpha=0.55, linewidths=0, gid="pairs")
    # What the sizes mean: drawn nowhere, for the legend alone.
    for count in sorted({1, most}):
        size = 12 + 260 * count / most if most > 1 else 14.0
        what = "1 document" if count == 1 else f"{count} documents"
        axes.scatter([], [], s=size, color=BLUE, alpha=0.55, linewidths=0, label=what)
    axes.axhline(result.bias, color=ORANGE, linewidth=1.2, label=f"bias {signed(result.bias)}", gid="bias")
    if result.low is not None and result.high is not None:
        limits = f"limits of agreement (bias ± 1.96 SD): {signed(result.low)} and {signed(result.high)}"
        for value, label, name in ((result.high, limits, "high"), (result.low, "", "low")):
            axes.axhline(value, color=ORANGE, linestyle="--", linewidth=1.0, label=label, gid=name)
    axes.axhline(0, color="0.7", linewidth=0.7, zorder=0)
    name_axes(axes, f"mean of {names[0]} and {names[1]}", f"{names[0]} − {names[1]}")
    axes.margins(0.1)
    titled(figure, f"Differences of the labels of {result.pairs} documents against their means")
    legend_below(figure)
    return figure
