"""Gates: limits below which scores may not fall, for continuous integration; what fails is a line that says where."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.leaderboards.board import BELOW, OVERALL, Leaderboard
from rubric_measures.measures.scoring import column_named
from rubric_measures.meta_evaluation.run_comparison import compare_runs

__all__ = ["parsed_limit", "runs_under", "runs_worse"]

# How many queries a line names.
_NAMED = 5


def parsed_limit(text: str) -> tuple[str, float]:
    """The measure and the least mean of `NuggetV=0.7`.

    Raises:
        InputError: it is of another form.

    >>> parsed_limit("NuggetV(strict=True)=0.7")
    ('NuggetV(strict=True)', 0.7)
    """
    name, _, number = text.rpartition("=")
    try:
        # A measure may end in a setting: `NuggetV(rel=4)` alone is no limit.
        least = float(number)
    except ValueError:
        least = math.nan
    if not name.strip() or not math.isfinite(least):
        raise InputError(f"limit {text!r}: expected MEASURE=NUMBER, as in NuggetV=0.7", settings=("fail_under",))
    return name.strip(), least


def runs_under(board: Leaderboard, limits: Mapping[str, float], runs: Sequence[str] | None = None) -> list[str]:
    """A line for each run and measure whose mean is under its limit, or that has none.

    Args:
        board: the scores.
        limits: measure -> the least mean that passes; `NuggetV` is the board's column of that measure.
        runs: the runs that have to pass; None for all.

    Raises:
        UnknownNameError: the board has no such measure or run.
    """
    lines = []
    for name, least in limits.items():
        measure = column_named(name, board.measures)
        for run in _chosen(board, runs):
            mean = board.cells[run][measure].mean
            if mean is None:
                lines.append(f"{measure} of {run} has no score, and {least:g} is the least")
            elif mean < least:
                values = board.values[run][measure]
                low = sorted((value, query) for query, value in values.items() if value is not None and value < least)
                said = _queries([(query, f"{value:.3g}") for value, query in low])
                lines.append(f"{measure} of {run} is {mean:.4f}, {least - mean:.4f} under {least:g}; lowest: {said}")
    return lines


def runs_worse(
    board: Leaderboard,
    kept: Mapping[str, Mapping[str, float]],
    measure: str,
    *,
    baseline: str | None = None,
    by: float | None = None,
    alpha: float = 0.05,
    runs: Sequence[str] | None = None,
    name: str = "the kept board",
) -> list[str]:
    """A line for each run that is worse than its baseline by one measure, over the queries that both have.

    Worse is lower and told apart by a two-sided paired t-test; with `by`, lower by more than that, whatever the test.

    Args:
        board: the scores.
        kept: run -> query -> score by the measure, of the board that is compared with.
        measure: the measure, as the board calls it.
        baseline: the run of `kept` with which all are compared; None takes the one of the same name, or the only one.
        by: how much lower a mean may be.
        alpha: the significance level.
        runs: the runs that have to pass; None for all.
        name: what the kept board is called, for messages.

    Raises:
        UnknownNameError: there is no such run.
        InputError: a run has no baseline, or shares no query with it.
    """
    if by is not None and not by >= 0:
        raise InputError(f"a mean may be lower by 0 or more, not by {by:g}", settings=("by",))
    if baseline is not None and baseline not in kept:
        raise UnknownNameError("run", baseline, kept, where=name, settings=("fail_if_worse_than",))
    lines = []
    for run in _chosen(board, runs):
        other = baseline or (run if run in kept else next(iter(kept)) if len(kept) == 1 else None)
        if other is None:
            text = f"{name} has no run {run} to compare with; name one of {', '.join(kept)}"
            raise InputError(text, settings=("fail_if_worse_than",))
        ours = {query: value for query, value in board.values[run][measure].items() if value is not None}
        # Two names that are never the same.
        mine, theirs = f"{run} now", f"{other} before"
        found = compare_runs(
            {mine: ours, theirs: kept[other]}, measure, baseline=theirs, procedure="none", alpha=alpha, rounds=1
        )
        [pair] = found.pairs
        drop = -pair.test.mean_difference
        if drop <= 0 or not (pair.significant if by is None else drop > by + 1e-12):
            continue
        lost = sorted((ours[query] - kept[other][query], query) for query in found.queries)
        said = _queries([(query, f"{change:+.3g}") for change, query in lost if change < 0])
        p = "" if pair.p_adjusted is None else f" (p = {pair.p_adjusted:.2g}, {len(found.queries)} queries)"
        lines.append(f"{measure} of {run} is {drop:.4f} below {other} of {name}{p}; lost: {said}")
    return lines


def _chosen(board: Leaderboard, runs: Sequence[str] | None) -> list[str]:
    there = [run for run in board.ranking() if run != OVERALL and run not in BELOW]
    for run in runs or ():
        if run not in there:
            raise UnknownNameError("run", run, there)
    return there if runs is None else list(runs)


def _queries(changes: Sequence[tuple[str, str]]) -> str:
    said = ", ".join(f"{query} {value}" for query, value in changes[:_NAMED])
    return said + (f" and {len(changes) - _NAMED} more" if len(changes) > _NAMED else "")
