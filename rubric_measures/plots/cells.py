"""Tables of cells that are the darker the more they hold: items by runs, queries by runs, labels against labels."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.base.errors import InputError
from rubric_measures.plots.style import figure_of, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["cells_figure", "draw_cells", "plot_items", "plot_queries"]

FloatArray = NDArray[np.float64]
# Cells beyond this number have no text, which nobody could read.
_MANY_CELLS = 6_000


def draw_cells(
    axes: Any,
    values: FloatArray,
    texts: Sequence[Sequence[str]],
    span: tuple[float, float],
    unit: str,
    rows: Sequence[str],
    columns: Sequence[str],
    bold: NDArray[np.bool_] | None = None,
) -> None:
    """Cells with their texts, white where they are light; a cell without a value is grey and has no text.

    Args:
        axes: where.
        values: (rows, columns); NaN is missing.
        texts: of the cells.
        span: the values of the lightest and the darkest colour.
        unit: what the values are, beside the bar of colours.
        rows: the names of the rows, top down.
        columns: the names of the columns.
        bold: which texts are bold.
    """
    low, high = span if span[1] > span[0] else (span[0], span[0] + 1)
    # Cells, not an image: they stay sharp in print.
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(values), cmap="Blues", vmin=low, vmax=high, edgecolors="white", linewidth=0.6
    )
    mesh.set_gid("cells")
    axes.set_facecolor("0.9")
    if values.size <= _MANY_CELLS:
        for row, column in zip(*np.nonzero(~np.isnan(values)), strict=True):
            dark = (values[row, column] - low) / (high - low) > 0.55
            axes.text(
                column + 0.5, row + 0.5, texts[row][column], ha="center", va="center", fontsize=7,
                color="white" if dark else "black",
                weight="bold" if bold is not None and bold[row, column] else "normal",
            )  # fmt: skip
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows, fontsize=8)
    axes.set_ylim(len(rows), 0)
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns, fontsize=8, rotation=40, ha="right", rotation_mode="anchor")
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    bar = axes.figure.colorbar(mesh, ax=axes, label=unit, fraction=0.05, aspect=30, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8)


def cells_figure(rows: Sequence[str], columns: Sequence[str], wide: float, tall: float = 0.24) -> tuple[Figure, Any]:
    """A figure in which every cell of so many inches, and the names beside them, have room."""
    names = 0.065 * max(map(len, rows), default=0)
    below = 0.05 * max(map(len, columns), default=0)
    figure, (axes,) = figure_of(max(4.5, 1.2 + names + wide * len(columns)), max(1.6, 0.5 + below + tall * len(rows)))
    return figure, axes


def plot_items(
    items: Sequence[str],
    best: Mapping[str, Sequence[float | None]],
    title: str,
    scale: tuple[float, float] | None = None,
    covers: float | None = None,
) -> Figure:
    """Items by runs for one query: the best grade of each item among a run's passages; grades that cover it are bold.

    Items are in order of their mean grade over the runs, the best covered first.

    Args:
        items: the texts of the items.
        best: run -> the best grade of each item, None where there is none; runs from left to right.
        title: which query, and how many passages of a run.
        scale: the lowest and highest grade; of the grades there are, if None.
        covers: the least grade that covers.

    Raises:
        InputError: there is no item or no run.
    """
    values = np.array([best[run] for run in best], dtype=np.float64).T
    if not values.size:
        raise InputError("there is no item or no run to plot")
    graded = ~np.isnan(values)
    sums, counts = np.where(graded, values, 0).sum(axis=1), graded.sum(axis=1)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf)
    order = np.argsort(-means, kind="stable")
    values = values[order]
    names = [textwrap.shorten(items[index], 64, placeholder=" …") for index in order]
    found = values[~np.isnan(values)]
    span = scale or ((float(found.min()), float(found.max())) if found.size else (0.0, 1.0))
    figure, axes = cells_figure(names, list(best), 0.42)
    texts = [["" if np.isnan(value) else f"{value:g}" for value in row] for row in values]
    draw_cells(axes, values, texts, span, "grade", names, list(best), None if covers is None else values >= covers)
    titled(figure, title)
    return figure


def plot_queries(queries: Sequence[str], runs: Sequence[str], values: ArrayLike, measure: str, title: str) -> Figure:
    """Queries by runs: every query's score by one measure, in its own unit; the easiest query first.

    Args:
        queries: the queries.
        runs: from left to right.
        values: (queries, runs); NaN where a query could not be scored.
        measure: for the bar of colours.
        title: what is shown.

    Raises:
        InputError: there is no query or no run.
    """
    table = np.asarray(values, dtype=np.float64).reshape(len(queries), len(runs))
    known = table[~np.isnan(table)]
    if not known.size:
        raise InputError("there is no score to plot")
    scored = ~np.isnan(table)
    means = np.where(scored, table, 0).sum(axis=1) / np.maximum(scored.sum(axis=1), 1)
    order = np.argsort(-means, kind="stable")
    table = table[order]
    names = [queries[index] for index in order]
    figure, axes = cells_figure(names, runs, 0.5)
    places = 2 if abs(known).max() < 10 else 0
    texts = [["" if np.isnan(value) else f"{value:.{places}f}" for value in row] for row in table]
    draw_cells(axes, table, texts, (min(0.0, float(known.min())), float(known.max())), measure, names, runs)
    titled(figure, title)
    return figure
