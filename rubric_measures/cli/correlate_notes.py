"""Notes of `correlate`: what its numbers leave out."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rubric_measures.meta_evaluation.leaderboard_correlation import LeaderboardCorrelation

__all__ = ["say_correlations"]

_LOG = logging.getLogger("rubric_measures")


def _without_interval(result: LeaderboardCorrelation) -> dict[str, list[str]]:
    """Reason -> the coefficients that have a value, and for this reason no interval."""
    reasons: dict[str, list[str]] = {}
    for one in result.coefficients:
        if one.coefficient.value is not None and one.interval is not None and one.interval.low is None:
            reasons.setdefault(one.interval.reason, []).append(one.coefficient.name)
    return reasons


def say_correlations(results: Sequence[LeaderboardCorrelation]) -> int:
    """Notes what the numbers leave out, each once; 1 when official runs are missing or a coefficient is undefined."""
    notes: dict[str, int] = {}
    incomplete = False
    for result in results:
        if result.missing:
            incomplete = True
            names = ", ".join(result.missing[:5]) + (", …" if len(result.missing) > 5 else "")
            text = f"{len(result.missing)} official runs are missing and left out ({names})"
            notes[text] = notes.get(text, 0) + 1
        if result.extra:
            names = ", ".join(result.extra[:5]) + (", …" if len(result.extra) > 5 else "")
            text = f"{len(result.extra)} runs are not in the official leaderboard and left out ({names})"
            notes[text] = notes.get(text, 0) + 1
        for text in result.notes:
            notes[text] = notes.get(text, 0) + 1
        undefined: dict[str, list[str]] = {}
        for one in result.coefficients:
            if one.coefficient.value is None:
                incomplete = True
                undefined.setdefault(one.coefficient.reason, []).append(one.coefficient.name)
        for reason, names_of in undefined.items():
            text = f"{', '.join(names_of)} undefined: {reason}"
            notes[text] = notes.get(text, 0) + 1
        for reason, names_of in _without_interval(result).items():
            text = f"{', '.join(names_of)} without an interval: {reason}"
            notes[text] = notes.get(text, 0) + 1
    drops = [result for result in results if result.worst_drop]
    if drops:
        worst = max(drops, key=lambda result: result.worst_drop or 0.0)
        _LOG.info("the largest rank drop is %g, of run %s by %s", worst.worst_drop, worst.worst_run, worst.name)
    for text, count in notes.items():
        _LOG.warning("%s%s", text, f" (in {count} leaderboards)" if count > 1 else "")
    return 1 if incomplete else 0
