"""What `leaderboard` computes beside means: intervals, comparisons, groups, checks; and its notes."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Sequence

from rubric_measures.base.errors import InputError
from rubric_measures.formats.leaderboards import LeaderboardTable, read_leaderboard
from rubric_measures.leaderboards.scoring import Leaderboard
from rubric_measures.meta_evaluation.leaderboard_checks import LeaderboardChecks
from rubric_measures.meta_evaluation.leaderboard_report import (
    LeaderboardReport,
    compare_board,
    mean_intervals,
    powered_means,
)

__all__ = ["build_report", "say_report"]


def build_report(
    board: Leaderboard, options: argparse.Namespace, checks: Callable[[], LeaderboardChecks]
) -> LeaderboardReport:
    """Computes what the options ask for."""
    if options.rounds < 1:
        raise InputError("--rounds is 1 or more")
    if options.human_form and not options.human:
        raise InputError("--human-form says what --human reads; name its file, too")
    if options.baseline and options.groups:
        raise InputError("--baseline compares with one run, --groups all pairs; choose one")
    drawn = {"rounds": options.rounds, "seed": options.seed}
    comparisons = {}
    if options.baseline or options.groups:
        tests = {"procedure": options.correction, "test": options.test, "alpha": options.alpha}
        comparisons = compare_board(board, baseline=options.baseline, **tests, **drawn)
    return LeaderboardReport(
        board,
        mean_intervals(board, level=options.level, **drawn) if options.intervals else {},
        comparisons,
        checks() if options.checks else None,
        powered_means(board, _human_scores(board, options), level=options.level) if options.human else {},
        {**drawn, "level": options.level},
    )


def _human_scores(board: Leaderboard, options: argparse.Namespace) -> LeaderboardTable:
    """People's scores; the names of the leaderboard tell the columns of a file that does not."""
    topics = {topic for row in board.values.values() for queries in row.values() for topic in queries}
    table = read_leaderboard(
        options.human, form=options.human_form, topics=topics, runs=board.values, measures=board.measures
    )
    if not table.query_ids:
        raise InputError(f"{options.human}: holds no per-topic scores; --human compares people and model by topic")
    return table


def say_report(report: LeaderboardReport) -> None:
    """Notes what ties and missing grades do to the order."""
    log = logging.getLogger("rubric_measures")
    if report.checks is None:
        return
    for top in report.checks.top:
        if top.changed:
            log.warning(
                "%s: ties decide the winner: %s by document id, %s in file order",
                top.measure,
                _names(top.by_doc_id),
                _names(top.by_file_order),
            )
    tied = [check for check in report.checks.runs if check.tied]
    if tied:
        worst = max(tied, key=lambda check: check.tied or 0.0)
        log.info(
            "%d of %d runs have tied scores inside the cutoff; most has %s (%.1f %%)",
            len(tied),
            len(report.checks.runs),
            worst.run_id,
            100 * (worst.tied or 0.0),
        )


def _names(runs: Sequence[str]) -> str:
    return " and ".join(runs[:3]) + (f" and {len(runs) - 3} more" if len(runs) > 3 else "")
