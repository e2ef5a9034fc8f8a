"""Report sections of the statistics: items, the size of the bank, graders, canaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rubric_measures.selection import RecordQuery
from rubric_measures.verification.bank_stability import RunCoverage, StabilityPoint, bank_stability
from rubric_measures.verification.item_statistics import Discrimination, duplicate_items, item_statistics
from rubric_measures.verification.sections import Cell, Section

__all__ = ["item_sections", "stability_section"]


def _said(value: float | None, reason: str) -> Cell:
    return f"undefined: {reason}" if value is None else round(value, 4)


def _discrimination(one: Discrimination) -> Cell:
    return _said(one.value, one.reason)


def item_sections(
    queries: Sequence[RecordQuery], coverage: RunCoverage, min_judgment: int, min_rating: int
) -> Iterator[Section]:
    """Item statistics, and near-duplicate items."""
    yield Section(
        "items",
        f"Items: covered from grade {min_rating}, relevant from judgment {min_judgment}, {len(coverage.runs)} runs",
        ["query_id", "graded", "failed", "covering", "by_relevant", "by_not_relevant", "r_judgment", "r_leaderboard",
         "covered", "flips", "item_id", "item"],
        [
            [
                row.query_id, row.graded, row.failed, row.covering,
                _said(row.relevant_share, "no relevant passage"),
                _said(row.other_share, "no passage judged not relevant"),
                _discrimination(row.by_judgment), _discrimination(row.by_run), row.always or None,
                "undefined: fewer than two runs" if row.flips is None else row.flips, row.item_id, row.item_text,
            ]
            for row in item_statistics(queries, coverage, min_judgment, min_rating)
        ],
    )  # fmt: skip
    yield Section(
        "duplicate-items",
        "Near-duplicate items",
        ["query_id", "overlap", "same_text", "first", "second", "first_item_id", "second_item_id"],
        [
            [
                row.query_id, round(row.overlap, 4), "yes" if row.same_text else "no", row.first.text, row.second.text,
                row.first.item_id, row.second.item_id,
            ]
            for row in duplicate_items(queries)
        ],
    )  # fmt: skip


def stability_section(coverage: RunCoverage, points: Sequence[StabilityPoint] | None = None) -> Section:
    """Bank size against leaderboard stability."""
    reason = "fewer than two runs, or all of them tied"
    return Section(
        "bank-stability",
        f"Bank size: Kendall's τ-b of {len(coverage.runs)} runs to the leaderboard of the full bank",
        ["items_a_query", "rounds", "undefined", "tau_mean", "tau_low", "tau_high"],
        [
            [one.size, one.rounds, one.undefined, *(_said(value, reason) for value in (one.mean, one.low, one.high))]
            for one in (bank_stability(coverage) if points is None else points)
        ],
    )
