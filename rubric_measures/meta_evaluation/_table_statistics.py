"""Statistics of many confusion tables at once, so that data and bootstrap rounds run the same formulas.

Tables are (samples, labels, labels): the rows of each are the first source's labels, or the truth's. A value that does
not exist is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rubric_measures.meta_evaluation._bootstrap import (
    Draws,
    FloatArray,
    Interval,
    bca_columns,
    bootstrap_counts,
    jackknife_counts,
    ratio,
)

__all__ = [
    "Columns",
    "alphas",
    "binary_tables",
    "column_intervals",
    "distances",
    "gwet_ac1",
    "joint_scale",
    "kappas",
    "label_columns",
    "query_tables",
    "rates_columns",
]

Level = Literal["nominal", "ordinal"]
# Name -> a value of every sample.
Columns = dict[str, FloatArray]


def distances(labels: FloatArray, quadratic: bool = False) -> FloatArray:
    """The weight of every pair of labels: [i ≠ j], or (i − j)²."""
    gaps = labels[:, None] - labels[None, :]
    result: FloatArray = gaps**2 if quadratic else (gaps != 0).astype(np.float64)
    return result


def kappas(tables: FloatArray, weights: FloatArray) -> FloatArray:
    """κ of every table; NaN where chance alone explains everything. See `kappa.kappa_of_confusion`."""
    observed = np.einsum("bij,ij->b", tables, weights)
    rows, columns = _margins(tables)
    chance = np.einsum("bj,bj->b", rows @ weights, columns)
    return 1.0 - ratio(observed * np.einsum("bi->b", rows), chance)


def _margins(tables: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The sums of rows and of columns; einsum adds up short axes several times faster than sum does."""
    return np.einsum("bij->bi", tables), np.einsum("bij->bj", tables)


def alphas(coincidences: FloatArray, values: FloatArray, level: Level) -> FloatArray:
    """Krippendorff's α of every coincidence matrix; NaN where one label only occurs.

    α = 1 − D_o / D_e over the coincidence matrix: o_ck = Σ_u (pairs c, k of unit u) / (m_u − 1), n_c = Σ_k o_ck,
    D_o = Σ o_ck δ²_ck, D_e = Σ n_c n_k δ²_ck / (n − 1). δ² = [c ≠ k] (nominal) or (Σ_{g=c..k} n_g − (n_c + n_k)/2)²
    (ordinal). The coincidences of two sources without missing labels are a confusion table and its transpose, added.
    α ≤ 1; 0 is chance.

    Source: Krippendorff, Computing Krippendorff's Alpha-Reliability (2011).
    """
    sizes, _ = _margins(coincidences)
    if level == "ordinal":
        # Σ_{g=c..k} n_g − (n_c + n_k)/2 is the distance of the groups' middles.
        middle = np.cumsum(sizes, axis=1) - sizes / 2.0
        gaps = middle[:, :, None] - middle[:, None, :]
        loss = gaps * gaps
    else:
        loss = np.broadcast_to(distances(values), coincidences.shape)
    observed = np.einsum("bij,bij->b", coincidences, loss)
    expected = np.einsum("bi,bi->b", sizes, np.einsum("bij,bj->bi", loss, sizes))
    result: FloatArray = 1.0 - (np.einsum("bi->b", sizes) - 1.0) * ratio(observed, expected)
    return result


def gwet_ac1(tables: FloatArray) -> FloatArray:
    """Gwet's AC1 of every table; the scale has as many labels as a table has rows. NaN with one label only.

    AC1 = (p_o − p_e) / (1 − p_e), p_e = Σ_k π_k (1 − π_k) / (K − 1), π_k the mean share of label k in both sources.

    Source: Gwet, Computing inter-rater reliability and its variance in the presence of high agreement (2008).
    """
    labels = tables.shape[1]
    rows, columns = _margins(tables)
    totals = np.einsum("bi->b", rows)
    if labels < 2:
        return np.full(len(tables), np.nan)
    shares = ratio((rows + columns) / 2.0, totals[:, None])
    chance = np.einsum("bi,bi->b", shares, 1.0 - shares) / (labels - 1)
    observed = ratio(np.einsum("bii->b", tables), totals)
    return ratio(observed - chance, 1.0 - chance)


def label_columns(tables: FloatArray, scale: FloatArray) -> Columns:
    """The statistics of whole labels by name; `mean_difference` is that of first − second."""
    totals = np.einsum("bij->b", tables)
    both = tables + tables.transpose(0, 2, 1)
    return {
        "exact_match": ratio(np.einsum("bii->b", tables), totals),
        "mean_difference": ratio(np.einsum("bij,ij->b", tables, scale[:, None] - scale[None, :]), totals),
        "kappa": kappas(tables, distances(scale)),
        "quadratic_kappa": kappas(tables, distances(scale, quadratic=True)),
        "alpha_nominal": alphas(both, scale, "nominal"),
        "alpha_ordinal": alphas(both, scale, "ordinal"),
        "ac1": gwet_ac1(tables),
    }


def binary_tables(
    tables: FloatArray, scale: FloatArray, cutoffs: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], FloatArray]:
    """The tables of labels binarised at cutoffs of both sides, positive before negative: each (samples, 2, 2)."""
    sides = [((scale >= first, scale < first), (scale >= second, scale < second)) for first, second in cutoffs]
    cells = [np.outer(row, column).ravel() for rows, columns in sides for row in rows for column in columns]
    if not cells:
        return {}
    summed = tables.reshape(len(tables), -1) @ np.stack(cells, axis=1).astype(np.float64)
    return {pair: summed[:, 4 * place : 4 * place + 4].reshape(-1, 2, 2) for place, pair in enumerate(cutoffs)}


def rates_columns(tables: FloatArray) -> Columns:
    """κ of two-by-two tables, and TPR, TNR and F1 of the second source against the first, the truth.

    TPR = TP / P, TNR = TN / N, F1 = 2 TP / (2 TP + FP + FN).
    """
    hit, missed, alarm, rest = tables[:, 0, 0], tables[:, 0, 1], tables[:, 1, 0], tables[:, 1, 1]
    return {
        "kappa": kappas(tables, distances(np.array([1.0, 0.0]))),
        "tpr": ratio(hit, hit + missed),
        "tnr": ratio(rest, rest + alarm),
        "f1": ratio(2.0 * hit, 2.0 * hit + alarm + missed),
    }


def joint_scale(a: NDArray[np.int_], b: NDArray[np.int_], ends: tuple[int, int]) -> list[int]:
    """The labels of a scale, and those outside it that one of two sources uses; AC1 counts them."""
    return sorted({*range(ends[0], ends[1] + 1), *a.tolist(), *b.tolist()})


def query_tables(
    a: NDArray[np.int_], b: NDArray[np.int_], queries: Sequence[str], names: Sequence[str], scale: Sequence[int]
) -> FloatArray:
    """A confusion table of each named query: (queries, labels, labels).

    Args:
        a: the first source's labels, all of the scale.
        b: the second's.
        queries: the query of each document, one of the names.
        names: the queries in the order that they are resampled in.
        scale: the labels, ascending.
    """
    place = {name: index for index, name in enumerate(names)}
    rows = np.array([place[query] for query in queries], dtype=np.intp)
    size = len(scale)
    cells = (rows * size + np.searchsorted(scale, a)) * size + np.searchsorted(scale, b)
    counts = np.bincount(cells, minlength=len(names) * size * size).astype(np.float64)
    return counts.reshape(len(names), size, size)


def column_intervals(
    tables: FloatArray,
    statistics: Callable[[FloatArray], Columns],
    draws: Draws,
    counts: FloatArray | None = None,
) -> tuple[dict[str, Interval], Columns]:
    """Statistics of summed tables with BCa intervals over queries, and their bootstrap replicates.

    Args:
        tables: a table (of any square size) of each query.
        statistics: summed tables -> named values.
        draws: rounds (0 for no intervals), seed and level.
        counts: the resampled queries, where many callers share them; see `bootstrap_counts`.
    """
    queries = len(tables)
    found = {name: float(column[0]) for name, column in statistics(tables.sum(axis=0, keepdims=True)).items()}
    if not draws.rounds or queries < 2:
        reason = "one query only; an interval needs two" if draws.rounds else "no interval was asked for"
        return {name: _without(value, draws.level, queries, reason) for name, value in found.items()}, {}
    flat = tables.reshape(queries, -1)
    if counts is None:
        counts = bootstrap_counts(queries, draws.rounds, draws.seed)
    drawn, left_out = (
        statistics((sample @ flat).reshape(-1, *tables.shape[1:])) for sample in (counts, jackknife_counts(queries))
    )
    stacked = [np.stack([columns[name] for name in found], axis=1) for columns in (drawn, left_out)]
    intervals = bca_columns(list(found.values()), stacked[0], stacked[1], draws.level, queries)
    return dict(zip(found, intervals, strict=True)), drawn


def _without(value: float, level: float, queries: int, reason: str) -> Interval:
    if np.isnan(value):
        return Interval(None, None, None, level, queries, 0, "the statistic is undefined")
    return Interval(value, None, None, level, queries, 0, reason)
