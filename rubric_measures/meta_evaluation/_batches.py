"""What batch coefficients share: pieces of samples that fit into the processor's cache, ratios that may not exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["PIECE", "FloatArray", "pieces", "ratio", "score_table"]

FloatArray = NDArray[np.float64]

# Arrays of (samples, pairs of runs) are cut into pieces of about this many numbers, which stay in the processor's
# cache: five times faster than pieces of four millions.
PIECE = 300_000


def pieces(samples: int, width: int) -> list[slice]:
    """Slices of the samples, each of about `PIECE` numbers when a sample has `width` of them."""
    step = max(1, PIECE // max(1, width))
    return [slice(start, min(start + step, samples)) for start in range(0, samples, step)]


def score_table(columns: Sequence[Mapping[str, float | None]]) -> tuple[FloatArray, list[str]]:
    """(queries, columns) scores, NaN where one is missing, and the queries, sorted."""
    queries = sorted({query for column in columns for query in column})
    table = np.array([[column.get(query) for column in columns] for query in queries], dtype=np.float64)
    return table.reshape(len(queries), len(columns)), queries


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """numerator / denominator, NaN where the denominator is 0."""
    result = np.full(np.broadcast(numerator, denominator).shape, np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result
