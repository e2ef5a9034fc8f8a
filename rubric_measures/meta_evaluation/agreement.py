"""Do two or more graders agree: confusion, kappa, Krippendorff's α, binarised at every cutoff, Bland–Altman."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.errors import InputError
from rubric_measures.meta_evaluation.bootstrap import DEFAULT_ROUNDS, DEFAULT_SEED, Interval, bootstrap_statistic
from rubric_measures.meta_evaluation.krippendorff import krippendorff_alpha

__all__ = [
    "Agreement",
    "BinaryAgreement",
    "BlandAltman",
    "Histogram",
    "TopicSpread",
    "agreement",
    "binary_agreement",
    "binary_at_all_cutoffs",
    "bland_altman",
    "confusion",
    "kappa_interval",
    "kappa_of_confusion",
    "label_histogram",
    "topic_spread",
]

FloatArray = NDArray[np.float64]
Weights = Literal["none", "linear", "quadratic"]


def _labels(values: Sequence[int] | ArrayLike, side: str) -> NDArray[np.int_]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"{side}: labels must be a list of whole numbers")
    return array.astype(np.int_)


def _pair(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    left, right = _labels(a, "first source"), _labels(b, "second source")
    if left.shape != right.shape:
        raise InputError(f"agreement needs labels of the same documents; got {len(left)} and {len(right)}")
    return left, right


def confusion(a: ArrayLike, b: ArrayLike, labels: Sequence[int] | None = None) -> NDArray[np.int_]:
    """Counts of label pairs: row i, column j is how often `a` says labels[i] and `b` says labels[j].

    Args:
        a: whole-number labels.
        b: the other source's, same documents in the same order.
        labels: the scale, ascending; by default all labels that occur.

    Raises:
        InputError: lengths differ, or a label is not on the scale.

    >>> confusion([0, 1, 1], [0, 0, 1]).tolist()
    [[1, 0], [1, 1]]
    """
    left, right = _pair(a, b)
    scale = np.unique(np.concatenate([left, right])) if labels is None else np.asarray(labels, dtype=np.int_)
    position = {int(label): index for index, label in enumerate(scale)}
    unknown = ({int(v) for v in left} | {int(v) for v in right}) - position.keys()
    if unknown:
        raise InputError(f"label {min(unknown)} is not on the scale {scale.tolist()}")
    table = np.zeros((len(scale), len(scale)), dtype=np.int_)
    rows, columns = np.searchsorted(scale, left), np.searchsorted(scale, right)
    np.add.at(table, (rows, columns), 1)
    return table


def _disagreement(labels: FloatArray, weights: Weights) -> FloatArray:
    gaps = np.abs(labels[:, None] - labels[None, :])
    if weights == "none":
        result: FloatArray = (gaps > 0).astype(np.float64)
        return result
    return gaps if weights == "linear" else gaps**2


def _kappas(tables: FloatArray, weights: FloatArray) -> FloatArray:
    """κ of many confusion tables (samples, k, k); NaN where chance alone explains everything."""
    observed = np.einsum("bij,ij->b", tables, weights)
    chance = np.einsum("bi,bj,ij->b", tables.sum(axis=2), tables.sum(axis=1), weights)
    totals = tables.sum(axis=(1, 2))
    result = np.full(len(tables), np.nan)
    np.divide(observed * totals, chance, out=result, where=chance > 0)
    return 1.0 - result


def kappa_of_confusion(
    table: ArrayLike, labels: Sequence[int] | None = None, weights: Weights = "none"
) -> float | None:
    """Cohen's κ of a confusion table.

    κ = 1 − Σ w_ij n_ij / Σ w_ij e_ij, e_ij = n_i. n_.j / n; w_ij = [i ≠ j] for Cohen's κ, |l_i − l_j| for linear and
    (l_i − l_j)² for quadratic weights, l being the label itself (not its position on the scale). In [−1, 1].

    Args:
        table: square counts.
        labels: the label of each row and column; 0, 1, … by default.
        weights: `none`, `linear` or `quadratic`.

    Returns:
        κ, or None where it is undefined: nothing was labelled, or both sources give one and the same label throughout.

    Source: Cohen (1960, 1968).

    >>> round(kappa_of_confusion([[20, 5], [10, 15]]), 4)
    0.4
    """
    counts = np.asarray(table, dtype=np.float64)
    scale = np.arange(len(counts), dtype=np.float64) if labels is None else np.asarray(labels, dtype=np.float64)
    if counts.ndim != 2 or counts.shape != (len(scale), len(scale)):
        raise InputError(f"kappa needs a square table with a label a row, not shape {counts.shape}")
    value = float(_kappas(counts[None], _disagreement(scale, weights))[0])
    return None if np.isnan(value) else value


def kappa_interval(
    a: ArrayLike,
    b: ArrayLike,
    topics: Sequence[Hashable],
    weights: Weights = "none",
    *,
    rounds: int = DEFAULT_ROUNDS,
    seed: int = DEFAULT_SEED,
    level: float = 0.95,
) -> Interval:
    """Cohen's κ with its BCa interval over topics: labels inside a topic are not independent, topics are.

    Args:
        a: labels.
        b: the other source's.
        topics: the topic of each document; topics are resampled in sorted order, so the order of the rows is no matter.
        weights: see `kappa_of_confusion`.
        rounds: bootstrap samples.
        seed: see `bootstrap_counts`.
        level: the nominal coverage.
    """
    left, right = _pair(a, b)
    if len(topics) != len(left):
        raise InputError(f"{len(left)} labels need as many topics, not {len(topics)}")
    scale, flat = np.unique(np.concatenate([left, right]), return_inverse=True)
    names = sorted(set(topics), key=str)
    place = {name: index for index, name in enumerate(names)}
    size = len(scale)
    tables = np.zeros((len(names), size, size))
    rows = np.array([place[topic] for topic in topics], dtype=np.intp)
    np.add.at(tables, (rows, flat[: len(left)], flat[len(left) :]), 1.0)
    loss = _disagreement(scale.astype(np.float64), weights)
    columns = tables.reshape(len(names), -1)

    def statistic(counts: FloatArray) -> FloatArray:
        return _kappas((counts @ columns).reshape(-1, size, size), loss)

    return bootstrap_statistic(statistic, len(names), rounds=rounds, seed=seed, level=level)


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

    Raises:
        InputError: lengths differ, nothing to compare, or a value is not finite.

    Source: Bland and Altman (Lancet 1986); in this field RAGElo (Rackauckas et al. 2024).

    >>> result = bland_altman([1, 2, 3], [1, 1, 1])
    >>> result.bias, round(result.high, 2)
    (1.0, 2.96)
    """
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if left.ndim != 1 or left.shape != right.shape or not len(left):
        raise InputError(f"Bland–Altman needs the same, non-empty documents, not shapes {left.shape}, {right.shape}")
    differences = left - right
    if not np.isfinite(differences).all():
        raise InputError("Bland–Altman needs finite values")
    bias = float(differences.mean())
    if len(differences) < 2:
        return BlandAltman(bias, None, None, None, 1)
    deviation = float(differences.std(ddof=1))
    return BlandAltman(bias, deviation, bias - 1.96 * deviation, bias + 1.96 * deviation, len(differences))


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
    """

    cutoff_a: int
    cutoff_b: int
    both: int
    only_a: int
    only_b: int
    neither: int
    kappa: float | None

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
    left, right = _pair(a, b)
    if not len(left):
        raise InputError("agreement needs at least one document that both sources label")
    x, y = left >= cutoff_a, right >= cutoff_b
    cells = int((x & y).sum()), int((x & ~y).sum()), int((~x & y).sum()), int((~x & ~y).sum())
    return BinaryAgreement(cutoff_a, cutoff_b, *cells, binary_kappa(*cells))


def binary_at_all_cutoffs(a: ArrayLike, b: ArrayLike) -> list[BinaryAgreement]:
    """`binary_agreement` at every pair of cutoffs that splits each source: all its labels but the lowest."""
    left, right = _pair(a, b)
    return [
        binary_agreement(left, right, int(cutoff_a), int(cutoff_b))
        for cutoff_a in np.unique(left)[1:]
        for cutoff_b in np.unique(right)[1:]
    ]


@dataclass(frozen=True, slots=True)
class Histogram:
    """How often a source uses each label of its scale.

    Attributes:
        counts: label -> number of documents, ascending, also labels that never occur.
        unused: labels of the scale that never occur.
    """

    counts: dict[int, int]
    unused: tuple[int, ...]


def label_histogram(labels: ArrayLike, scale: Sequence[int] | None = None) -> Histogram:
    """The label histogram of a source; a judge that never uses a grade shows in `unused`.

    Args:
        labels: whole numbers.
        scale: the labels that the source may use; by default all from the smallest (or 0) to the largest that occurs.

    >>> label_histogram([0, 3, 3]).unused
    (1, 2)
    """
    values = _labels(labels, "labels")
    found = Counter(values.tolist())
    if scale is None:
        scale = range(min(0, *found), max(found) + 1) if found else ()
    every = sorted({*scale, *found})
    return Histogram({label: found[label] for label in every}, tuple(label for label in every if not found[label]))


@dataclass(frozen=True, slots=True)
class TopicSpread:
    """How a statistic spreads over topics.

    Attributes:
        values: topic -> value, None where undefined there.
        mean: over the topics where it is defined; None without any.
        deviation: standard deviation over topics (n − 1); None with fewer than two.
        low: the smallest value.
        median: the middle one.
        high: the largest.
        undefined: number of topics where it is undefined.
    """

    values: dict[str, float | None]
    mean: float | None
    deviation: float | None
    low: float | None
    median: float | None
    high: float | None
    undefined: int


def topic_spread(
    a: ArrayLike,
    b: ArrayLike,
    topics: Sequence[str],
    statistic: Callable[[NDArray[np.int_], NDArray[np.int_]], float | None] | None = None,
) -> TopicSpread:
    """A statistic of the two sources per topic, Cohen's κ by default.

    Args:
        a: labels.
        b: the other source's.
        topics: the topic of each document.
        statistic: (labels, labels) -> value or None.
    """
    left, right = _pair(a, b)
    if len(topics) != len(left):
        raise InputError(f"{len(left)} labels need as many topics, not {len(topics)}")
    chosen = statistic or (lambda x, y: kappa_of_confusion(confusion(x, y)))
    rows: dict[str, list[int]] = {}
    for index, topic in enumerate(topics):
        rows.setdefault(topic, []).append(index)
    values = {topic: chosen(left[rows[topic]], right[rows[topic]]) for topic in sorted(rows)}
    known = np.array([value for value in values.values() if value is not None])
    if not len(known):
        return TopicSpread(values, None, None, None, None, None, len(values))
    deviation = float(known.std(ddof=1)) if len(known) > 1 else None
    return TopicSpread(
        values,
        float(known.mean()),
        deviation,
        float(known.min()),
        float(np.median(known)),
        float(known.max()),
        len(values) - len(known),
    )


@dataclass(frozen=True, slots=True)
class Agreement:
    """Everything that two label sources say about each other on the documents that both label.

    Attributes:
        pairs: number of documents.
        labels: the joint scale, ascending.
        confusion: rows are the first source's labels, columns the second's.
        exact_match: share of documents with the same label.
        mean_difference: mean of first − second.
        kappa: Cohen's κ.
        linear_kappa: with linear weights.
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
    linear_kappa: float | None
    quadratic_kappa: float | None
    alpha_nominal: float | None
    alpha_ordinal: float | None
    bland_altman: BlandAltman


def agreement(a: ArrayLike, b: ArrayLike) -> Agreement:
    """All agreement statistics of two label sources over the same documents.

    Raises:
        InputError: lengths differ, there is no document, or labels are not whole numbers.

    >>> agreement([0, 1, 2, 2], [0, 1, 1, 2]).exact_match
    0.75
    """
    left, right = _pair(a, b)
    if not len(left):
        raise InputError("agreement needs at least one document that both sources label")
    labels = np.unique(np.concatenate([left, right]))
    scale = [int(label) for label in labels]
    table = confusion(left, right, scale)
    both = np.stack([left, right]).astype(np.float64)
    return Agreement(
        len(left),
        tuple(scale),
        tuple(tuple(int(count) for count in row) for row in table),
        float((left == right).mean()),
        float((left - right).mean()),
        kappa_of_confusion(table, scale),
        kappa_of_confusion(table, scale, "linear"),
        kappa_of_confusion(table, scale, "quadratic"),
        krippendorff_alpha(both, "nominal"),
        krippendorff_alpha(both, "ordinal"),
        bland_altman(left, right),
    )
