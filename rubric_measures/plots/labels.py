"""Labels of graders against each other: Bland–Altman."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rubric_measures.meta_evaluation.agreement import bland_altman
from rubric_measures.plots.style import COLOURS, figure_of, name_axes, signed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_bland_altman"]


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
    figure, (axes,) = figure_of(5.0, 3.6)
    sizes = 12 + 260 * counts / counts.max() if counts.max() > 1 else 14
    axes.scatter(points[:, 0], points[:, 1], s=sizes, color=COLOURS[0], alpha=0.55, linewidths=0)
    lines = [("bias", result.bias, "-")]
    if result.low is not None and result.high is not None:
        lines += [("+1.96 SD", result.high, "--"), ("−1.96 SD", result.low, "--")]
    for name, value, dash in lines:
        axes.axhline(value, color=COLOURS[1], linestyle=dash, linewidth=1.0)
        axes.annotate(
            f"{name} {signed(value)}",
            (1.0, value),
            xycoords=("axes fraction", "data"),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            annotation_clip=False,
        )
    axes.axhline(0, color="0.7", linewidth=0.7, zorder=0)
    name_axes(axes, f"mean of {names[0]} and {names[1]}", f"{names[0]} − {names[1]}")
    axes.margins(0.1)
    return figure
