"""Does a judge favour a group of runs: how far it moves them against all others, beside the official scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rubric_measures.base.errors import InputError
from rubric_measures.meta_evaluation._bootstrap import (
    USUAL_DRAWS,
    Draws,
    FloatArray,
    Interval,
    bootstrap_statistic,
    weighted_means,
)

__all__ = ["GroupShift", "chosen_runs", "group_shifts"]


@dataclass(frozen=True, slots=True)
class GroupShift:
    """How far a judge moves the runs of one group.

    Attributes:
        group: the group.
        runs: how many of the runs are of it.
        others: how many are not.
        shift: the mean of (the judge's score − the official one) over its runs, minus that over the others, both scores
            in standard deviations of the runs' means; above 0 the judge favours it. Its interval is over queries, the
            runs being these.
    """

    group: str
    runs: int
    others: int
    shift: Interval


def group_shifts(
    official: ArrayLike, scores: ArrayLike, groups: Sequence[str | None], draws: Draws = USUAL_DRAWS
) -> list[GroupShift]:
    """The interaction of judge and group, for each group that has runs, and others beside them.

    The judge's scores and the official ones may be of different measures. So the runs' means of each side are taken in
    standard deviations from their mean, (x̄_r − x̄) / s, anew in each bootstrap round.

    Args:
        official: (queries, runs); NaN is missing.
        scores: the judge's, the same queries and runs.
        groups: the group of each run; None for a run of no group.
        draws: rounds (0 for no intervals), seed and level.

    Returns:
        the groups, the most favoured first; none where all runs are of one group.

    Raises:
        InputError: the shapes differ.
    """
    x, y = np.asarray(official, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 2 or x.shape[1] != len(groups):
        raise InputError(f"a judge's scores of shape {y.shape} do not fit official ones of shape {x.shape}")
    found = []
    for group in sorted({one for one in groups if one is not None}):
        members = np.array([one == group for one in groups])
        if members.all():
            continue

        def shift(counts: FloatArray, members: np.ndarray[tuple[int], np.dtype[np.bool_]] = members) -> FloatArray:
            gap = _standard(weighted_means(counts, y)) - _standard(weighted_means(counts, x))
            moved: FloatArray = gap[:, members].mean(axis=1) - gap[:, ~members].mean(axis=1)
            return moved

        if draws.rounds:
            interval = bootstrap_statistic(shift, len(x), draws)
        else:
            value = float(shift(np.ones((1, len(x))))[0])
            interval = Interval(None if np.isnan(value) else value, None, None, draws.level, len(x))
        found.append(GroupShift(group, int(members.sum()), int((~members).sum()), interval))
    return sorted(found, key=lambda one: (-(one.shift.estimate or 0.0), one.group))


def _standard(means: FloatArray) -> FloatArray:
    """(rounds, runs) in standard deviations from the mean of the runs; NaN where all are equal."""
    spread = means.std(axis=1, ddof=1, keepdims=True)
    result: FloatArray = (means - means.mean(axis=1, keepdims=True)) / np.where(spread > 1e-12, spread, np.nan)
    return result


def chosen_runs(runs: Sequence[str], groups: Mapping[str, str], where: Sequence[str]) -> set[str]:
    """The runs that pass all conditions `group=NAME` and `group!=NAME`.

    A run without a group passes `group!=NAME` only.

    Raises:
        InputError: a condition is none, or names a group that no run has.

    >>> sorted(chosen_runs(["a", "b", "c"], {"a": "x", "b": "y"}, ["group!=y"]))
    ['a', 'c']
    """
    kept = set(runs)
    for condition in where:
        name, sign, group = condition.partition("!=" if "!=" in condition else "=")
        if name.strip() != "group" or not sign or not group.strip():
            raise InputError(f"{condition!r}: expected group=NAME or group!=NAME", settings=("where",))
        if group.strip() not in groups.values():
            known = ", ".join(sorted(set(groups.values())))
            raise InputError(f"{condition!r}: no run is of that group; there are {known}", settings=("where",))
        is_in = {run for run in runs if groups.get(run) == group.strip()}
        kept &= is_in if sign == "=" else set(runs) - is_in
    return kept
