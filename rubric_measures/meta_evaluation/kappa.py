"""Cohen's κ: confusion tables, weights, labels binarised at cutoffs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.base.errors import InputError
from rubric_measures.meta_evaluation._bootstrap import Interval
from rubric_measures.meta_evaluation._table_statistics import distances, kappas

__all__ = [
    "BinaryAgreement",
    "binary_agreement",
    "binary_kappa",
    "confusion",
    "kappa_of_confusion",
    "paired_labels",
    "whole_labels",
]


def whole_labels(values: Sequence[int] | ArrayLike, side: str) -> NDArray[np.int_]:
    """Labels as an array.

    Raises:
        InputError: they are no whole numbers.
    """
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"{side}: labels must be a list of whole numbers")
    return array.astype(np.int_)


def paired_labels(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """The labels of two sources over the same documents, in the same order.

    Raises:
        InputError: labels are no whole numbers.
    """
    return whole_labels(a, "first source"), whole_labels(b, "second source")


def confusion(a: ArrayLike, b: ArrayLike, labels: Sequence[int] | None = None) -> NDArray[np.int_]:
    """Counts of label pairs: row i, column j is how often `a` says labels[i] and `b` says labels[j].

    Args:
        a: whole-number labels.
        b: the other source's, same documents in the same order.
        labels: the scale, ascending, with all labels that occur; by default these.

    >>> confusion([0, 1, 1], [0, 0, 1]).tolist()
    [[1, 0], [1, 1]]
    """
    left, right = paired_labels(a, b)
    scale = np.unique(np.concatenate([left, right])) if labels is None else np.asarray(labels, dtype=np.int_)
    table = np.zeros((len(scale), len(scale)), dtype=np.int_)
    rows, columns = np.searchsorted(scale, left), np.searchsorted(scale, right)
    np.add.at(table, (rows, columns), 1)
    return table


def kappa_of_confusion(
    table: ArrayLike, labels: Sequence[int] | None = None, *, quadratic: bool = False
) -> float | None:
    """Cohen's κ of a confusion table.

    κ = 1 − Σ w_ij n_ij / Σ w_ij e_ij, e_ij = n_i. n_.j / n; w_ij = [i ≠ j] for Cohen's κ, and (l_i − l_j)² for
    quadratic weights, l being the label itself (not its position on the scale). In [−1, 1].

    Args:
        table: square counts.
        labels: the label of each row and column; 0, 1, … by default.
        quadratic: whether errors weigh by the square of their size.

    Returns:
        κ, or None where it is undefined: nothing was labelled, or both sources give one and the same label throughout.

    Source: Cohen (1960, 1968).

    >>> round(kappa_of_confusion([[20, 5], [10, 15]]), 4)
    0.4
    """
    counts = np.asarray(table, dtype=np.float64)
    scale = np.arange(len(counts), dtype=np.float64) if labels is None else np.asarray(labels, dtype=np.float64)
    value = float(kappas(counts[None], distances(scale, quadratic))[0])
    return None if np.isnan(value) else value


@dataclass(frozen=True, slots=True)
class BinaryAgreement:
    """Agreement of labels binarised at a cutoff on each side (positive: label ≥ cutoff).

    Attributes:
        cutoff_a: inclusive cutoff of the first source.
        cutoff_b: of the second.
        both: positive in both.
        only_a: positive in the first only.
        only_b: positive in the second only.
        neither: positive in none.
        kappa: Cohen's κ; None where it is undefined (both sources constant).
        interval: κ with its interval over queries; None where none was computed.
    """

    cutoff_a: int
    cutoff_b: int
    both: int
    only_a: int
    only_b: int
    neither: int
    kappa: float | None
    interval: Interval | None = None

    @property
    def exact_match(self) -> float:
        """The share of documents with the same binary label."""
        return (self.both + self.neither) / (self.both + self.only_a + self.only_b + self.neither)


def binary_kappa(both: int, only_a: int, only_b: int, neither: int) -> float | None:
    """Cohen's κ of a two-by-two table, None where it is undefined.

    >>> round(binary_kappa(601, 1284, 29, 8880), 4)
    0.4279
    """
    return kappa_of_confusion([[both, only_a], [only_b, neither]])


def binary_agreement(a: ArrayLike, b: ArrayLike, cutoff_a: int, cutoff_b: int) -> BinaryAgreement:
    """Counts and κ of `a ≥ cutoff_a` against `b ≥ cutoff_b`.

    >>> binary_agreement([5, 4, 0], [3, 1, 0], 4, 2).kappa.__round__(4)
    0.4
    """
    left, right = paired_labels(a, b)
    x, y = left >= cutoff_a, right >= cutoff_b
    cells = int((x & y).sum()), int((x & ~y).sum()), int((~x & y).sum()), int((~x & ~y).sum())
    return BinaryAgreement(cutoff_a, cutoff_b, *cells, binary_kappa(*cells))
