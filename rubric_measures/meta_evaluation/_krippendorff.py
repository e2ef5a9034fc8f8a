"""Krippendorff's α: agreement of two or more graders, with labels missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.base.errors import InputError

__all__ = ["Level", "krippendorff_alpha"]

FloatArray = NDArray[np.float64]
Level = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(ratings: Sequence[Sequence[float | None]] | ArrayLike, level: Level = "ordinal") -> float | None:
    """Krippendorff's α of two or more graders, labels may be missing.

    α = 1 − D_o / D_e over the coincidence matrix: o_ck = Σ_u (pairs c, k of unit u) / (m_u − 1), n_c = Σ_k o_ck,
    D_o = Σ o_ck δ²_ck, D_e = Σ n_c n_k δ²_ck / (n − 1). δ² = [c ≠ k] (nominal), (c − k)² (interval), or
    (Σ_{g=c..k} n_g − (n_c + n_k)/2)² (ordinal). Units with fewer than two labels take no part.

    Args:
        ratings: one row a grader, one column a document; None or NaN is a missing label.
        level: the scale of measurement.

    Returns:
        α ≤ 1 (0 is chance), or None where it is undefined: no document has two labels, or only one label occurs.

    Raises:
        InputError: rows of different lengths.

    Source: Krippendorff, Computing Krippendorff's Alpha-Reliability (2011).
    """
    rows = [[np.nan if value is None else float(value) for value in row] for row in np.asarray(ratings, dtype=object)]
    if len({len(row) for row in rows}) > 1:
        raise InputError("alpha needs one label (or none) of every grader for every document")
    table = np.array(rows, dtype=np.float64).reshape(len(rows), -1)
    present = ~np.isnan(table)
    usable = present.sum(axis=0) >= 2
    table, present = table[:, usable], present[:, usable]
    values = np.unique(table[present])
    if len(values) < 2:
        return None
    # Labels of each unit as counts by value: (units, values).
    counts = np.stack([((table == value) & present).sum(axis=0) for value in values], axis=1).astype(np.float64)
    weights = 1.0 / (counts.sum(axis=1) - 1.0)
    coincidence = np.einsum("uc,uk,u->ck", counts, counts, weights) - np.diag(counts.T @ weights)
    sizes = coincidence.sum(axis=1)
    loss = _distance(values, sizes, level)
    observed, expected = float((coincidence * loss).sum()), float((np.outer(sizes, sizes) * loss).sum())
    return 1.0 - (float(sizes.sum()) - 1.0) * observed / expected


def _distance(values: FloatArray, sizes: FloatArray, level: Level) -> FloatArray:
    if level == "nominal":
        unequal: FloatArray = (values[:, None] != values[None, :]).astype(np.float64)
        return unequal
    if level == "interval":
        return (values[:, None] - values[None, :]) ** 2
    if level != "ordinal":
        raise InputError(f"unknown level of measurement {level!r}; expected nominal, ordinal or interval")
    upto = np.cumsum(sizes)
    # Σ_{g=c..k} n_g − (n_c + n_k)/2 is the distance of the groups' middles.
    middle = upto - sizes / 2.0
    return (middle[:, None] - middle[None, :]) ** 2
