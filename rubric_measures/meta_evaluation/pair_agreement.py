"""Do two measures call the same pairs of runs significantly different."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.base.errors import InputError
from rubric_measures.meta_evaluation._significance import ROUNDING, adjust, complete_table

__all__ = ["PairAgreement", "significant_pair_agreement"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How two measures agree on which pairs of runs are different.

    Attributes:
        active_agreements: both significant, same direction.
        active_disagreements: both significant, opposite directions.
        mixed_agreements: one significant, same direction (or the other side tied).
        mixed_disagreements: one significant, opposite directions.
        passive_agreements: neither significant, same direction (or tied on a side).
        passive_disagreements: neither significant, opposite directions.
        reference_significant: pairs that are different under the reference.
        recovered: how many of those the other measure finds too, in the same direction.
    """

    active_agreements: int
    active_disagreements: int
    mixed_agreements: int
    mixed_disagreements: int
    passive_agreements: int
    passive_disagreements: int
    reference_significant: int
    recovered: int

    @property
    def active_share(self) -> float | None:
        """2 AA / (2 AA + MA + MD + 2 AD): agreement on the pairs that either side calls different; None without any."""
        total = (
            2 * self.active_agreements
            + self.mixed_agreements
            + self.mixed_disagreements
            + 2 * self.active_disagreements
        )
        return 2 * self.active_agreements / total if total else None


def significant_pair_agreement(official: ArrayLike, scores: ArrayLike, *, alpha: float = 0.05) -> PairAgreement:
    """Agreement of two measures on the significantly different pairs of runs (paired t-tests over queries).

    Each side tests its pairs and corrects them by itself. A pair whose test is undefined (identical runs) is not
    significant.

    Args:
        official: (queries, runs), complete.
        scores: (queries, runs), complete, same runs; the queries may be others.
        alpha: significance level after correction.

    Raises:
        InputError: the runs differ in number, or a score is missing.

    Source: Moffat, Scholer and Thomas (ADCS 2012) and Faggioli and Ferro (ECIR 2021) for the counts.
    """
    x, y = complete_table(official), complete_table(scores)
    if x.shape[1] != y.shape[1]:
        raise InputError(f"the two tables have {x.shape[1]} and {y.shape[1]} runs; join them first")
    first, second = np.triu_indices(x.shape[1], 1)
    (x_way, x_real), (y_way, y_real) = (_directions(table, first, second, alpha) for table in (x, y))
    opposite = x_way * y_way < 0
    both, one, none = x_real & y_real, x_real ^ y_real, ~(x_real | y_real)
    return PairAgreement(
        int((both & ~opposite).sum()),
        int((both & opposite).sum()),
        int((one & ~opposite).sum()),
        int((one & opposite).sum()),
        int((none & ~opposite).sum()),
        int((none & opposite).sum()),
        int(x_real.sum()),
        int((both & ~opposite).sum()),
    )


def _directions(
    table: FloatArray, first: NDArray[np.intp], second: NDArray[np.intp], alpha: float
) -> tuple[FloatArray, NDArray[np.bool_]]:
    from scipy.special import stdtr

    differences = table[:, first] - table[:, second]
    queries = len(differences)
    mean, deviation = differences.mean(axis=0), differences.std(axis=0, ddof=1)
    varies = np.ptp(differences, axis=0) > ROUNDING * np.abs(differences).max(axis=0)
    p_values: list[float | None] = [None] * len(mean)
    t = np.abs(mean[varies]) / (deviation[varies] / np.sqrt(queries))
    for column, p in zip(np.flatnonzero(varies), 2.0 * stdtr(queries - 1, -t), strict=True):
        p_values[int(column)] = float(p)
    adjusted = adjust(p_values, "holm")
    real = np.array([value is not None and value < alpha for value in adjusted], dtype=np.bool_)
    return np.sign(mean), real
