"""What scoring says once, with a count: queries, grades and penalties that are left out of the numbers."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping

from rubric_measures.base.errors import MeasureError, counted

__all__ = [
    "note_dropped",
    "note_left_out",
    "note_lost_penalties",
    "note_queries",
    "note_unscored",
    "note_whole",
    "note_without_items",
    "refuse_share",
]

_LOG = logging.getLogger("rubric_measures")


def note_lost_penalties(count: int, run_id: str = "") -> None:
    """Says once how many penalties cost nothing because their grades failed (see `Scored.lost_penalties`)."""
    if count:
        _LOG.warning(
            "%d items of negative weight have a failed grade and count as no penalty%s: scores may be too high",
            count,
            f" (most in run {run_id})" if run_id else "",
        )


# From this share of failed grades on nobody gets scores who did not ask for them.
TOO_MANY = 0.2


def refuse_share(share: float, needed: str) -> None:
    """Refuses scores of grades of which so many failed that nobody should get them without asking for them.

    Args:
        share: the share of the needed grades that failed.
        needed: what needs them.

    Raises:
        MeasureError: there are that many.
    """
    if share >= TOO_MANY:
        raise MeasureError(
            f"{100 * share:.0f} % of the grades that {needed} failed, too many for a default; grade again, or say how "
            "they count (expected, zero or a grade)",
            settings=("on_failed",),
        )


def note_unscored(count: int) -> None:
    """Says once how many values there are none of, because of all grades that they need it is known only that they
    failed.
    """
    if count:
        _LOG.warning("%d values are not scored, because all grades that they need failed", count)


def note_dropped(count: int) -> None:
    """Says once how many passages left rankings because all their grades failed (see `Scored.dropped`)."""
    if count:
        _LOG.warning(
            "%d passages whose grades all failed left the rankings of measures over labels and subtopics; "
            "programs that read exported qrels keep them, as not judged",
            count,
        )


def note_queries(unknown: Mapping[str, Collection[str]], missing: Mapping[str, Collection[str]]) -> None:
    """Says which queries of runs nobody graded, and which queries runs lack.

    Args:
        unknown: run_id -> queries that it ranks, and that neither grades nor bank have.
        missing: run_id -> queries to score that it does not rank.
    """
    strangers = {run_id: min(queries) for run_id, queries in unknown.items() if queries}
    if strangers:
        count = len(set().union(*unknown.values()))
        run_id = min(strangers, key=lambda run_id: (strangers[run_id], run_id))
        of, such = f"run {run_id}", strangers[run_id]
        if len(strangers) > 1:
            of, such = f"{len(strangers)} runs", f"{such} of run {run_id}"
        left = "is not graded and was" if count == 1 else "are not graded and were"
        _LOG.warning("%s of %s %s left out (such as %s)", counted(count, "query"), of, left, such)
    for run_id, queries in sorted(missing.items()):
        if queries:
            _LOG.warning(
                "run %s does not rank %s (such as %s), and scores 0 there",
                *(run_id, counted(len(queries), "query"), min(queries)),
            )


def note_without_items(queries: Collection[str]) -> None:
    """Says once how many queries have no items: there is no denominator, so they have no score."""
    if queries:
        _LOG.warning(
            "%d queries have no items, so they have no score and are in no mean (such as %s)",
            len(queries),
            min(queries),
        )


def note_whole(queries: Collection[str]) -> None:
    """Says once how many queries have no facets where facets are scored or written."""
    if queries:
        _LOG.warning("%d queries have no facets and stay whole (such as %s)", len(queries), min(queries))


def note_left_out(left_out: Counter[str]) -> None:
    """Says once how many grades were left out because the bank does not have their items."""
    if left_out:
        example = min(left_out)
        _LOG.warning(
            "%d grades left out: their %d items are not in the test bank (such as %s)",
            left_out.total(),
            len(left_out),
            example,
        )
