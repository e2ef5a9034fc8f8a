"""The notes of `leaderboard` on what it computes beside means."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rubric_measures.meta_evaluation.leaderboard_report import LeaderboardReport

__all__ = ["say_report"]


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
