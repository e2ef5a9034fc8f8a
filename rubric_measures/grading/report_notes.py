"""What is said at the end of grading: what was made, what is missing and why, and what helps."""

from __future__ import annotations

import logging

from rubric_measures.grading._report import GradingReport
from rubric_measures.grading.regrading import AmendCounts
from rubric_measures.runners.progress import note_limit

__all__ = ["note_amended", "note_report"]

_LOG = logging.getLogger("rubric_measures")


def note_report(report: GradingReport, *, deterministic: bool = False, is_kept: bool = True) -> None:
    """Notes what was done.

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
    note_limit(report.run, is_kept=is_kept)
    lacking = {status: count for status, count in sorted(report.ungraded.items()) if count}
    if not lacking:
        return
    counts = ", ".join(f"{count} {status}" for status, count in lacking.items())
    advice = _advice(report, deterministic)
    _LOG.warning(
        "%d of %d are not graded: %s%s",
        sum(lacking.values()),
        made.total(),
        counts,
        "".join(f"; {text}" for text, _ in advice),
        extra={"settings": [name for _, name in advice if name]},
    )
    for status in lacking:
        reasons = [f"{reason} ({count})" for count, reason in report.common_reasons(status)]
        _LOG.warning("%s: %s", status, "; ".join(reasons))


def _advice(report: GradingReport, deterministic: bool) -> list[tuple[str, str]]:
    """What may help against what is missing, without what cannot; each with the parameter that it is about."""
    found = []
    if report.run.failed and report.ungraded["failed"] and not deterministic:
        found.append(("run again to retry what failed", ""))
    if report.ungraded["unparsed"] and not deterministic:
        found.append(("unreadable replies are drawn again with more retries", "retries"))
    ended = any(maker.style.asker.options.get("stop") for maker in report.makers)
    if ended and any("the reply is empty" in reason for _, reason in report.common_reasons("unparsed", 200)):
        found.append(("a model that begins its reply with an empty line needs the option stop=null", "option"))
    if report.ungraded["truncated"]:
        found.append(("replies that were cut need a higher max_tokens", "max_tokens"))
        if any("HTTP" in reason for _, reason in report.common_reasons("truncated", 200)):
            text = "with the model's option context_tokens=N, what an endpoint finds too long is graded in chunks"
            found.append((text, "model_option"))
    if any("too long" in reason for _, reason in report.common_reasons("refused", 200)):
        text = "passages that are too long are graded where long_passages is chunk or truncate"
        found.append((text, "long_passages"))
    return found


def note_amended(counts: AmendCounts, passages: str) -> None:
    """Notes what following the edits of a bank changed and left."""
    _LOG.info(
        "only what edits touched: %d items graded anew; %d grade sets amended, %d left as they were",
        len(counts.items),
        counts.amended,
        counts.untouched,
    )
    if counts.taken_out:
        _LOG.info(
            "%d stale grades of items that changed or left are taken out (%s has them)", counts.taken_out, passages
        )
    if counts.failures_left:
        _LOG.warning("%d failed grades of unchanged items are left; grade whatever lacks a grade", counts.failures_left,
                     extra={"settings": ("only_changed",)})  # fmt: skip
    if counts.without:
        _LOG.warning("%d passages have no grades by this grader and get none, as only changes are graded",
                     counts.without, extra={"settings": ("only_changed",)})  # fmt: skip
    if counts.other_settings:
        _LOG.warning("%d grade sets of this model and prompt have other settings and are left", counts.other_settings)
    if counts.elsewhere:
        names = ", ".join(f"{count} by {name}" for name, count in sorted(counts.elsewhere.items()))
        _LOG.warning("grades of changed items that may be older than the change are left: %s", names)
