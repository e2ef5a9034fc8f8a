"""Gates on a board: limits, and a kept board that it may not be worse than."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rubric_measures.base.errors import InputError
from rubric_measures.measures.scoring import column_named

# Nearly all boards are made without gates, and need none of what these read and compute.
if TYPE_CHECKING:
    from rubric_measures.api._checking import KeptBoard
    from rubric_measures.formats.leaderboards import LeaderboardTable
    from rubric_measures.leaderboards.board import Leaderboard

_LOG = logging.getLogger("rubric_measures")
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
        from rubric_measures.meta_evaluation.gates import runs_under, runs_worse

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
    limits = fail_under if isinstance(fail_under, Mapping) else _parsed(fail_under)
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


def _parsed(limits: Iterable[str]) -> dict[str, float]:
    if not limits:
        return {}
    from rubric_measures.meta_evaluation.gates import parsed_limit

    return dict(map(parsed_limit, limits))
