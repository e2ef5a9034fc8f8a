"""What `grade` says at its end: what was made, what is missing and why, and what helps."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rubric_measures.grading import GradingReport
    from rubric_measures.runners import RunStats

__all__ = ["note_limit", "say_report"]

_LOG = logging.getLogger("rubric_measures")


def note_limit(stats: RunStats, *, is_kept: bool = True) -> bool:
    """Says that a limit was reached, and how to go on; whether one was.

    Args:
        stats: the counts of the run.
        is_kept: there is a cache that outlives the run.
    """
    if stats.limit:
        again = "raise it and run again" if stats.limit.startswith("the limit") else "run again to go on"
        how = f"{again}: finished calls are in the cache" if is_kept else "name a --cache to go on later"
        _LOG.warning("%s, %d requests were not made; %s", stats.limit, stats.missing, how)
    return bool(stats.limit)


def say_report(report: GradingReport, *, deterministic: bool = False, is_kept: bool = True) -> int:
    """Notes what was done; the exit code: 1 when something that was asked for is missing.

    Args:
        report: the counts of the run.
        deterministic: the model would reply the same to the same request, so that asking again helps nobody.
        is_kept: there is a cache that outlives the run.
    """
    made = report.by_status
    _LOG.info(
        "%d grades of %d passages%s: %s",
        made.total(),
        report.passages,
        f" ({report.kept} more were there already)" if report.kept else "",
        report.run,
    )
    if report.unparsed_retries:
        _LOG.info("%d of the calls drew replies again that could not be read", report.unparsed_retries)
    if report.flip_rate is not None:
        _LOG.info("flip rate of the replicates: %.4f", report.flip_rate)
    if report.order.graded:
        _LOG.info("order of the nuggets: %s", report.order)
    if report.by_rule:
        _LOG.warning("%d grades are 0 by the rules of the nuggetizer program: replies it counts so", report.by_rule)
    if report.flagged:
        _LOG.warning("%d passages look like instructions to the grader (see looks_like_instruction)", report.flagged)
    if cut := made["truncated"] - report.ungraded["truncated"]:
        _LOG.warning("%d grades are of passages or replies that were cut (status truncated)", cut)
    is_limited = note_limit(report.run, is_kept=is_kept)
    lacking = {status: count for status, count in sorted(report.ungraded.items()) if count}
    if not lacking:
        return int(is_limited)
    counts = ", ".join(f"{count} {status}" for status, count in lacking.items())
    advice = "".join(f"; {text}" for text in _advice(report, deterministic))
    _LOG.warning("%d of %d are not graded: %s%s", sum(lacking.values()), made.total(), counts, advice)
    for status in lacking:
        reasons = [f"{reason} ({count})" for count, reason in report.common_reasons(status)]
        _LOG.warning("%s: %s", status, "; ".join(reasons))
    return 1


def _advice(report: GradingReport, deterministic: bool) -> list[str]:
    """What may help against what is missing, without what cannot."""
    found = []
    if report.run.failed and report.ungraded["failed"] and not deterministic:
        found.append("run again to retry what failed")
    if report.ungraded["unparsed"] and not deterministic:
        found.append("raise --retries to draw unreadable replies again")
    ended = any(maker.style.asker.options.get("stop") for maker in report.makers)
    if ended and any("the reply is empty" in reason for _, reason in report.common_reasons("unparsed", 200)):
        found.append("a model that begins its reply with an empty line needs --option stop=null")
    if report.ungraded["truncated"]:
        found.append("replies that were cut need a higher --max-tokens")
        if any("HTTP" in reason for _, reason in report.common_reasons("truncated", 200)):
            found.append("with --model-option context_tokens=N, what an endpoint finds too long is graded in chunks")
    if any("too long" in reason for _, reason in report.common_reasons("refused", 200)):
        found.append("passages that are too long are graded with --long-passages chunk or truncate")
    return found
