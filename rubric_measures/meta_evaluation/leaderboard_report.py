"""A leaderboard with what it takes to trust it: intervals, comparisons with a baseline or among all, checks."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from rubric_measures.base.errors import InputError
from rubric_measures.formats.leaderboards import LeaderboardTable
from rubric_measures.leaderboards.scoring import OVERALL, Leaderboard
from rubric_measures.meta_evaluation._bootstrap import USUAL_DRAWS, Draws, Interval, bootstrap_means
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
        powered: run -> measure -> mean from a human sample and the model's grades; empty when not asked for.
        settings: rounds, seed and level of what was drawn.
    """

    board: Leaderboard
    intervals: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict)
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    checks: LeaderboardChecks | None = None
    powered: Mapping[str, Mapping[str, PredictionPowered]] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)


def mean_intervals(board: Leaderboard, draws: Draws = USUAL_DRAWS) -> dict[str, dict[str, Interval]]:
    """The BCa interval of every run's mean by every measure; topics are resampled, the same ones for all.

    Args:
        board: the leaderboard; queries that could not be scored take no part in a mean.
        draws: rounds, seed and level.

    Returns:
        run -> measure -> interval; `units` is the number of topics in the mean.
    """
    topics = sorted({topic for row in board.values.values() for column in row.values() for topic in column})
    names = [(run, measure) for run in board.values for measure in board.measures]
    table = np.full((len(topics), len(names)), np.nan)
    place = {topic: index for index, topic in enumerate(topics)}
    for column, (run, measure) in enumerate(names):
        for topic, value in board.values[run][measure].items():
            if value is not None:
                table[place[topic], column] = value
    result: dict[str, dict[str, Interval]] = {}
    for (run, measure), interval in zip(names, bootstrap_means(table, draws), strict=True):
        result.setdefault(run, {})[measure] = interval
    return result


def powered_means(
    board: Leaderboard, human: LeaderboardTable, *, level: float = 0.95
) -> dict[str, dict[str, PredictionPowered]]:
    """Every run's mean from a few topics that people graded and all topics that the model graded (PPI++).

    Args:
        board: scores by the model's grades, on all topics.
        human: per-topic scores of the same runs and measures by people's grades, on some of the topics. Where it has
            one measure only, that one stands for each measure of the leaderboard that has no column of its name.
        level: the nominal coverage.

    Returns:
        run -> measure -> result, for the runs that both have. Topics are the units.

    Raises:
        InputError: no run is in both, or a run has fewer than two human-graded or two other topics.
    """
    result: dict[str, dict[str, PredictionPowered]] = {}
    strangers: set[tuple[str, str]] = set()
    for measure in board.measures:
        name = measure if measure in human.measures else human.measures[0] if len(human.measures) == 1 else None
        if name is None:
            raise InputError(f"the human scores have no measure {measure}; they have {', '.join(human.measures)}")
        people = human.per_query(name)
        for run in sorted(board.values.keys() & people.keys() - {OVERALL}):
            model = {topic: value for topic, value in board.values[run][measure].items() if value is not None}
            both = sorted(model.keys() & people[run].keys())
            rest = sorted(model.keys() - people[run].keys())
            strangers.update((run, topic) for topic in people[run].keys() - model.keys())
            try:
                powered = prediction_powered_mean(
                    [people[run][topic] for topic in both],
                    [model[topic] for topic in both],
                    [model[topic] for topic in rest],
                    level=level,
                )
            except InputError as error:
                raise InputError(f"run {run}, {measure}: {error}") from None
            result.setdefault(run, {})[measure] = powered
    if not result:
        raise InputError("no run has human scores; the human leaderboard must name the same runs")
    _note_left_out(strangers, set(board.values) - {OVERALL}, set(human.run_ids) - {OVERALL})
    return result


def _note_left_out(strangers: set[tuple[str, str]], runs: set[str], people: set[str]) -> None:
    """Says what human scores are about that the leaderboard lacks, and the other way round."""
    if strangers:
        example = min(strangers)
        _LOG.warning(
            "%d human scores left out: the leaderboard has no score of that run on that topic (such as %s on %s)",
            *(len(strangers), *example),
        )
    for names, what in (
        (people - runs, "runs with human scores are not on the leaderboard and left out"),
        (runs - people, "runs have no human scores"),
    ):
        if names:
            shown = ", ".join(sorted(names)[:5]) + (", …" if len(names) > 5 else "")
            _LOG.warning("%d %s (%s)", len(names), what, shown)
