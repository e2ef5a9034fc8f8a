"""A leaderboard with what one needs to trust it: intervals, comparisons with a baseline or among all, checks."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from rubric_measures.base.errors import InputError
from rubric_measures.boards.board import BELOW, NO_RUNS, Leaderboard
from rubric_measures.formats.leaderboards import LeaderboardTable
from rubric_measures.meta_evaluation._bootstrap import USUAL_DRAWS, Draws, Interval, bootstrap_means, score_table
from rubric_measures.meta_evaluation.leaderboard_checks import LeaderboardChecks
from rubric_measures.meta_evaluation.prediction_powered import PredictionPowered, prediction_powered_mean
from rubric_measures.meta_evaluation.run_comparison import Comparison

__all__ = ["LeaderboardReport", "mean_intervals", "powered_means"]

_LOG = logging.getLogger("rubric_measures")


@dataclass(frozen=True)
class LeaderboardReport:
    """A leaderboard and what was asked for beside it.

    Attributes:
        board: the leaderboard.
        intervals: run -> measure -> interval of the mean; empty when not asked for.
        comparisons: measure -> comparison; empty when not asked for.
        checks: None when not asked for.
        powered: run -> measure -> mean from a sample of assessors' grades and the model's; empty likewise.
        settings: rounds, seed and level of what was drawn.
    """

    board: Leaderboard
    intervals: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict)
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    checks: LeaderboardChecks | None = None
    powered: Mapping[str, Mapping[str, PredictionPowered]] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)


def mean_intervals(board: Leaderboard, draws: Draws = USUAL_DRAWS) -> dict[str, dict[str, Interval]]:
    """The BCa interval of every run's mean by every measure; queries are resampled, the same ones for all.

    Args:
        board: the leaderboard; queries that could not be scored take no part in a mean.
        draws: rounds, seed and level.

    Returns:
        run -> measure -> interval; `units` is the number of queries in the mean.
    """
    names = [(run, measure) for run in board.values if run not in BELOW for measure in board.measures]
    table, _ = score_table([board.values[run][measure] for run, measure in names])
    result: dict[str, dict[str, Interval]] = {}
    for (run, measure), interval in zip(names, bootstrap_means(table, draws), strict=True):
        result.setdefault(run, {})[measure] = interval
    return result


def powered_means(
    board: Leaderboard, assessors: LeaderboardTable, *, level: float = 0.95
) -> dict[str, dict[str, PredictionPowered]]:
    """Every run's mean from a few queries that assessors graded and all that the model graded (PPI++).

    Args:
        board: scores by the model's grades, on all queries.
        assessors: per-query scores of the same runs and measures by assessors' grades, on some queries. Where it has
            one measure only, that one stands for each measure of the leaderboard that has no column of its name.
        level: the nominal coverage.

    Returns:
        run -> measure -> result, for the runs that both have. Queries are the units.

    Raises:
        InputError: no run is in both, or a run has fewer than two assessed or two other queries.
    """
    result: dict[str, dict[str, PredictionPowered]] = {}
    strangers: set[tuple[str, str]] = set()
    for measure in board.measures:
        name = assessors.measures[0] if len(assessors.measures) == 1 else measure
        if name not in assessors.measures:
            raise InputError(
                f"the assessors' scores have no measure {measure}; they have {', '.join(assessors.measures)}"
            )
        assessed = assessors.per_query(name)
        for run in sorted(board.values.keys() & assessed.keys() - NO_RUNS):
            model = {query: value for query, value in board.values[run][measure].items() if value is not None}
            both = sorted(model.keys() & assessed[run].keys())
            rest = sorted(model.keys() - assessed[run].keys())
            strangers.update((run, query) for query in assessed[run].keys() - model.keys())
            try:
                powered = prediction_powered_mean(
                    [assessed[run][query] for query in both],
                    [model[query] for query in both],
                    [model[query] for query in rest],
                    level=level,
                )
            except InputError as error:
                raise InputError(f"run {run}, {measure}: {error}") from None
            result.setdefault(run, {})[measure] = powered
    if not result:
        raise InputError("no run has scores by assessors; their leaderboard must name the same runs")
    _note_left_out(strangers, set(board.values) - NO_RUNS, set(assessors.run_ids) - NO_RUNS)
    return result


def _note_left_out(strangers: set[tuple[str, str]], runs: set[str], assessed: set[str]) -> None:
    """Says which scores by assessors are left out, and which runs have none."""
    if strangers:
        example = min(strangers)
        _LOG.warning(
            "%d scores by assessors left out: the leaderboard has none of that run on that query (such as %s on %s)",
            *(len(strangers), *example),
        )
    for names, what in (
        (assessed - runs, "runs with scores by assessors are not on the leaderboard and left out"),
        (runs - assessed, "runs have no scores by assessors"),
    ):
        if names:
            shown = ", ".join(sorted(names)[:5]) + (", …" if len(names) > 5 else "")
            _LOG.warning("%d %s (%s)", len(names), what, shown)
