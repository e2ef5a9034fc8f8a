"""Gates on a board: limits, and a kept board that it may not be worse than."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.boards.board import BELOW, Leaderboard
from rubric_measures.formats.leaderboards import OVERALL
from rubric_measures.measures.scoring import column_named

# Nearly all boards are made without gates, and need none of what these read and compute.
if TYPE_CHECKING:
    from rubric_measures.api._checking import KeptBoard
    from rubric_measures.formats.leaderboards import LeaderboardTable

_LOG = logging.getLogger("rubric_measures")
# How many queries a line names.
_NAMED = 5
_SAID = {"bank": "bank", "grades": "grader", "graders": "settings of the grader"}


@dataclass(frozen=True)
class Gates:
    """What a board has to pass.

    Attributes:
        limits: measure -> the least mean.
        name: the file of the kept board; empty for none.
        kept: what it says about how it was made.
        table: its scores.
        baseline: its run with which all are compared; empty where each is with the run of its name.
        by: how much lower a mean may be; None goes by the paired test.
        alpha: the significance level of the test.
    """

    limits: Mapping[str, float] = field(default_factory=dict)
    name: str = ""
    kept: KeptBoard | None = None
    table: LeaderboardTable | None = None
    baseline: str = ""
    by: float | None = None
    alpha: float = 0.05

    def failed(self, board: Leaderboard, runs: Sequence[str] | None = None) -> list[str]:
        """What a board fails, a line each, with how much it lacks and on which queries; empty where it passes.

        Args:
            board: the scores; with a kept board its first measure counts.
            runs: the runs that have to pass; None for all.

        Raises:
            InputError: a run has no run to be compared with, or shares no query with it.
            UnknownNameError: there is no such measure or run.
        """
        if not self.limits and self.kept is None:
            return []
        lines = runs_under(board, self.limits, runs)
        if self.kept is None or self.table is None:
            return lines
        now = board.signature.settings
        different = [_SAID[name] for name in _SAID if self.kept.settings.get(name) != now.get(name)]
        if different:
            text = "%s was scored with another %s: the difference may be theirs"
            _LOG.warning(text, self.name, " and other ".join(different))
        measure = board.measures[0]
        values = self.table.per_query(column_named(measure, self.kept.measures))
        return lines + runs_worse(
            board,
            values,
            measure,
            baseline=self.baseline or None,
            by=self.by,
            alpha=self.alpha,
            runs=runs,
            name=Path(self.name).name,
        )


def read_gates(
    fail_under: Iterable[str] | Mapping[str, float] = (),
    fail_if_worse_than: str | os.PathLike[str] | None = None,
    *,
    by: float | None = None,
    alpha: float = 0.05,
) -> Gates:
    """The gates, with the kept board read: a board that is written later may take its place.

    Args:
        fail_under: the least means: `NuggetV=0.7`, or measure -> number.
        fail_if_worse_than: a board as JSON, with `:RUN` behind it where all runs are compared with that one; else each
            is with the run of its name, or with the only one. Worse is lower and told apart by a paired t-test over the
            queries that both have.
        by: worse is lower by more than this, whatever the test.
        alpha: the significance level.

    Raises:
        InputError: a limit is no limit, or there is nothing to be worse than.
        FormatError: the file is no board.
    """
    limits = fail_under if isinstance(fail_under, Mapping) else dict(map(parsed_limit, fail_under or ()))
    if fail_if_worse_than is None:
        if by is not None:
            text = "how much worse is too much is said, and not worse than what; name a kept board"
            raise InputError(text, settings=("by", "fail_if_worse_than"))
        return Gates(limits)
    path, baseline = os.fspath(fail_if_worse_than), ""
    if not Path(path).exists() and ":" in path:
        path, _, baseline = path.rpartition(":")
    from rubric_measures.api._checking import read_board
    from rubric_measures.formats.leaderboards import read_leaderboard

    return Gates(limits, path, read_board(path), read_leaderboard(path), baseline, by, alpha)


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
    from rubric_measures.analysis.comparison import compare_runs

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
