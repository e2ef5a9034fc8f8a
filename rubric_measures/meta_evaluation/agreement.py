"""Do two graders agree: all statistics of two label sources, Bland–Altman, histograms, κ by query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.meta_evaluation._bootstrap import USUAL_DRAWS, Draws, FloatArray, Interval
from rubric_measures.meta_evaluation._table_statistics import Columns, alphas, column_intervals, label_columns
from rubric_measures.meta_evaluation.kappa import confusion, kappa_of_confusion, paired_labels, whole_labels

__all__ = [
    "Agreement",
    "BlandAltman",
    "Histogram",
    "QuerySpread",
    "agreement",
    "alpha_intervals",
    "bland_altman",
    "label_histogram",
    "query_spread",
]


@dataclass(frozen=True, slots=True)
class BlandAltman:
    """Bias and limits of agreement of two sources on the same scale.

    Attributes:
        bias: mean of first − second.
        deviation: standard deviation of the differences (n − 1); None with fewer than two pairs.
        low: bias − 1.96 deviation.
        high: bias + 1.96 deviation.
        pairs: number of pairs.
    """

    bias: float
    deviation: float | None
    low: float | None
    high: float | None
    pairs: int


def bland_altman(a: ArrayLike, b: ArrayLike) -> BlandAltman:
    """Bland–Altman analysis: bias = mean(a − b), limits of agreement bias ± 1.96 SD.

    Args:
        a: numbers of the first source.
        b: of the second, same documents in the same order.

    Source: Bland and Altman (Lancet 1986); in this field RAGElo (Rackauckas et al. 2024).

    >>> result = bland_altman([1, 2, 3], [1, 1, 1])
    >>> result.bias, round(result.high, 2)
    (1.0, 2.96)
    """
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    differences = left - right
    bias = float(differences.mean())
    if len(differences) < 2:
        return BlandAltman(bias, None, None, None, 1)
    deviation = float(differences.std(ddof=1))
    return BlandAltman(bias, deviation, bias - 1.96 * deviation, bias + 1.96 * deviation, len(differences))


@dataclass(frozen=True, slots=True)
class Histogram:
    """How often a source uses each label of its scale.

    Attributes:
        counts: label -> number of documents, ascending, also labels that never occur.
        unused: labels of the scale that never occur.
    """

    counts: dict[int, int]
    unused: tuple[int, ...]


def label_histogram(labels: ArrayLike, scale: Sequence[int]) -> Histogram:
    """The label histogram of a source; `unused` has the grades that a judge never gives.

    Args:
        labels: whole numbers.
        scale: the labels that the source may use.

    >>> label_histogram([0, 3, 3], range(4)).unused
    (1, 2)
    """
    values = whole_labels(labels, "labels")
    found = Counter(values.tolist())
    every = sorted({*scale, *found})
    return Histogram({label: found[label] for label in every}, tuple(label for label in every if not found[label]))


@dataclass(frozen=True, slots=True)
class QuerySpread:
    """How κ spreads over queries.

    Attributes:
        values: query -> value, None where undefined there.
        mean: over the queries where it is defined; None without any.
        deviation: standard deviation over queries (n − 1); None with fewer than two.
        least: the smallest value; not the end of an interval.
        median: the middle one.
        greatest: the largest value.
        undefined: number of queries where it is undefined.
    """

    values: dict[str, float | None]
    mean: float | None
    deviation: float | None
    least: float | None
    median: float | None
    greatest: float | None
    undefined: int


def query_spread(
    a: ArrayLike,
    b: ArrayLike,
    queries: Sequence[str],
) -> QuerySpread:
    """Cohen's κ of the two sources per query."""
    left, right = paired_labels(a, b)
    rows: dict[str, list[int]] = {}
    for index, query in enumerate(queries):
        rows.setdefault(query, []).append(index)
    values = {query: kappa_of_confusion(confusion(left[rows[query]], right[rows[query]])) for query in sorted(rows)}
    known = np.array([value for value in values.values() if value is not None])
    if not len(known):
        return QuerySpread(values, None, None, None, None, None, len(values))
    deviation = float(known.std(ddof=1)) if len(known) > 1 else None
    return QuerySpread(
        values,
        float(known.mean()),
        deviation,
        float(known.min()),
        float(np.median(known)),
        float(known.max()),
        len(values) - len(known),
    )


def _coincidences(table: FloatArray, present: NDArray[np.bool_], values: FloatArray) -> FloatArray:
    """What each unit adds to the coincidence matrix, (units, values, values); units have at least two labels."""
    counts = np.stack([((table == value) & present).sum(axis=0) for value in values], axis=1).astype(np.float64)
    weights = 1.0 / (counts.sum(axis=1) - 1.0)
    pairs = counts[:, :, None] * counts[:, None, :] - np.eye(len(values)) * counts[:, None, :]
    scaled: FloatArray = pairs * weights[:, None, None]
    return scaled


def alpha_intervals(ratings: FloatArray, queries: Sequence[str], draws: Draws = USUAL_DRAWS) -> dict[str, Interval]:
    """α (see `alphas`), nominal and ordinal, of two or more graders, with BCa intervals over queries.

    Documents with fewer than two labels take no part.

    Args:
        ratings: one row a grader, one column a document; NaN is a missing label.
        queries: the query of each document.
        draws: rounds (0 for no intervals), seed and level.
    """
    present = ~np.isnan(ratings)
    usable = present.sum(axis=0) >= 2
    table, present = ratings[:, usable], present[:, usable]
    values = np.unique(table[present])
    of_unit = np.asarray(queries)[usable]
    names, rows = np.unique(of_unit, return_inverse=True)
    matrices = np.zeros((len(names), len(values), len(values)))
    np.add.at(matrices, rows, _coincidences(table, present, values))

    def statistics(summed: FloatArray) -> Columns:
        return {level: alphas(summed, values, level) for level in ("nominal", "ordinal")}

    return column_intervals(matrices, statistics, draws)[0]


@dataclass(frozen=True, slots=True)
class Agreement:
    """All agreement statistics of two label sources, on the documents that both label.

    Attributes:
        pairs: number of documents.
        labels: the joint scale, ascending.
        confusion: rows are the first source's labels, columns the second's.
        exact_match: share of documents with the same label.
        mean_difference: mean of first − second.
        kappa: Cohen's κ.
        quadratic_kappa: with quadratic weights.
        alpha_nominal: Krippendorff's α, nominal.
        alpha_ordinal: Krippendorff's α, ordinal.
        bland_altman: bias and limits of agreement.
    """

    pairs: int
    labels: tuple[int, ...]
    confusion: tuple[tuple[int, ...], ...]
    exact_match: float
    mean_difference: float
    kappa: float | None
    quadratic_kappa: float | None
    alpha_nominal: float | None
    alpha_ordinal: float | None
    bland_altman: BlandAltman


def agreement(a: ArrayLike, b: ArrayLike) -> Agreement:
    """All agreement statistics of two label sources over the same documents.

    Raises:
        InputError: labels are not whole numbers.

    >>> agreement([0, 1, 2, 2], [0, 1, 1, 2]).exact_match
    0.75
    """
    left, right = paired_labels(a, b)
    labels = np.unique(np.concatenate([left, right])).tolist()
    table = confusion(left, right, labels)
    found = label_columns(table[None].astype(np.float64), np.array(labels, dtype=np.float64))
    values = {name: None if np.isnan(column[0]) else float(column[0]) for name, column in found.items()}
    return Agreement(
        len(left),
        tuple(labels),
        tuple(map(tuple, table.tolist())),
        float((left == right).mean()),
        float((left - right).mean()),
        values["kappa"],
        values["quadratic_kappa"],
        values["alpha_nominal"],
        values["alpha_ordinal"],
        bland_altman(left, right),
    )
