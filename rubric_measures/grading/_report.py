"""What a grading run counts, and what is said at its end: what was made, what is missing and why, what helps."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rubric_measures.base.errors import counted
from rubric_measures.grading._combining import BY_RULE, Outcome
from rubric_measures.grading.regrading import AmendCounts
from rubric_measures.models.running import RunStats
from rubric_measures.models.settings import note_limit

if TYPE_CHECKING:
    from rubric_measures.grading._recording import GradeSetMaker

_LOG = logging.getLogger("rubric_measures")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_MOST_REASONS = 200


@dataclass
class OrderEffect:
    """How far the grades of one item depend on the place at which the model saw it; counts only grow.

    The deviation of a replicate is its grade minus the mean grade of the same item and passage over all replicates,
    so that easy and hard items do not matter.

    Attributes:
        graded: items (of a passage) with two or more graded replicates at different places.
        by_place: place in the list, from 1 -> (number of grades, sum of their deviations).
    """

    graded: int = 0
    by_place: dict[int, tuple[int, float]] = field(default_factory=dict)

    def add(self, places: Sequence[int], grades: Sequence[int | None]) -> None:
        """Counts the replicates of one item; those without a grade are left out."""
        known = [(place, grade) for place, grade in zip(places, grades, strict=True) if grade is not None]
        if len({place for place, _ in known}) < 2:
            return
        self.graded += 1
        mean = sum(grade for _, grade in known) / len(known)
        for place, grade in known:
            count, total = self.by_place.get(place, (0, 0.0))
            self.by_place[place] = (count + 1, total + grade - mean)

    @property
    def deviations(self) -> dict[int, float]:
        """Place -> mean deviation, in grades; 0 everywhere when the order has no effect."""
        return {place: total / count for place, (count, total) in sorted(self.by_place.items())}

    def __str__(self) -> str:
        """One line: the mean deviation at each place, and the greatest difference between two places."""
        found = self.deviations
        if not found:
            return "no item was graded at two places"
        listed = ", ".join(f"{place}: {value:+.3f}" for place, value in found.items())
        spread = max(found.values()) - min(found.values())
        what = "mean deviation of an item's grade by place in the list"
        return f"{what} {listed} (range {spread:.3f}, {self.graded} items)"


@dataclass
class GradingReport:
    """Counts of one run of a grader; they only grow.

    Attributes:
        statuses: prompt class -> status -> grades made in this run.
        kept: grades that were there already.
        passages: passages that were gone through.
        replicated: grades that come from several replicates.
        ungraded: status -> outcomes without what was asked for: a grade, or the text of an extraction. Grades of a text
            or a reply that was cut are none of them.
        reasons: (status, reason with its numbers masked) -> how often, and one such reason.
        flips: sum over them of the share of replicates that differ from the combined grade.
        by_rule: grades 0 that only the rules of the nuggetizer program make (`compat`).
        order: what the order of items in lists did to their grades, where it was permuted.
        singly: items that were asked about by themselves, as a reply about several did not grade them.
        amended: what was left and what was changed, where only edits of the bank are followed.
        run: the calls.
        makers: what made the grades, prompt by prompt.
    """

    statuses: dict[str, Counter[str]] = field(default_factory=dict)
    kept: int = 0
    passages: int = 0
    replicated: int = 0
    ungraded: Counter[str] = field(default_factory=Counter)
    reasons: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    flips: float = 0.0
    by_rule: int = 0
    order: OrderEffect = field(default_factory=OrderEffect)
    singly: int = 0
    amended: AmendCounts = field(default_factory=AmendCounts)
    run: RunStats = field(default_factory=RunStats)
    makers: Sequence[GradeSetMaker] = field(default=(), compare=False, repr=False)

    @property
    def by_status(self) -> Counter[str]:
        """status -> grades, over all prompts."""
        return sum(self.statuses.values(), Counter())

    @property
    def is_complete(self) -> bool:
        """Whether all that was asked for is there: no grade is missing, and no limit ended the run."""
        return not self.run.limit and not any(self.ungraded.values())

    @property
    def unparsed_retries(self) -> int:
        """The calls that drew replies again which could not be read; a call that several grades share is one."""
        return self.run.redrawn

    @property
    def flip_rate(self) -> float | None:
        """The share of replicates whose grade differs from the combined one, 0 to 1; None without replicates."""
        return self.flips / self.replicated if self.replicated else None

    def add(self, prompt_class: str, outcomes: Iterable[Outcome]) -> None:
        """Counts outcomes of one prompt."""
        counts = self.statuses.setdefault(prompt_class, Counter())
        for outcome in outcomes:
            counts[outcome.status] += 1
            # Most outcomes are a grade and nothing else.
            if outcome.note or outcome.details or outcome.status != "graded":
                self._add_details(outcome)

    def _add_details(self, outcome: Outcome) -> None:
        self.by_rule += outcome.status == "graded" and outcome.note.endswith(BY_RULE)
        if outcome.status != "graded":
            self.ungraded[outcome.status] += outcome.grade is None
            self._count_reason(outcome)
        details: Mapping[str, Any] = outcome.details or {}
        self.singly += "asked_singly" in details
        drawn: Any = details.get("replicates")
        if drawn and outcome.grade is not None:
            self.replicated += 1
            self.flips += sum(grade != outcome.grade for grade, _ in drawn) / len(drawn)
        places: Any = details.get("places")
        if drawn and places:
            # A grade of an item that was asked about singly has no place in a list.
            pieces = len((details.get("chunks") or [[""]])[0])
            alone = {call // pieces for call in details.get("asked_singly", ())}
            self.order.add(places, [None if number in alone else grade for number, (grade, _) in enumerate(drawn)])

    def _count_reason(self, outcome: Outcome) -> None:
        masked = outcome.status, _NUMBER.sub("#", outcome.note)
        if len(self.reasons) >= _MOST_REASONS and masked not in self.reasons:
            masked = outcome.status, "other reasons"
        count, first = self.reasons.get(masked, (0, outcome.note if masked[1] != "other reasons" else masked[1]))
        self.reasons[masked] = count + 1, first

    def common_reasons(self, status: str, most: int = 3) -> list[tuple[int, str]]:
        """The most frequent reasons of a status: how often, and one such reason."""
        found = [reason for (of, _), reason in self.reasons.items() if of == status]
        return sorted(found, key=lambda reason: (-reason[0], reason[1]))[:most]


def note_report(report: GradingReport, *, deterministic: bool = False, is_kept: bool = True) -> None:
    """Notes what was done.

    Args:
        report: the counts of the run.
        deterministic: the model would reply the same to the same request, so that asking again helps nobody.
        is_kept: there is a cache that outlives the run.
    """
    made = report.by_status
    _LOG.info(
        "%s of %s%s: %s",
        counted(made.total(), "grade"),
        counted(report.passages, "passage"),
        f" ({report.kept} more were there already)" if report.kept else "",
        report.run,
    )
    if report.unparsed_retries:
        _LOG.info("%d of the calls drew replies again that could not be read", report.unparsed_retries)
    if report.flip_rate is not None:
        _LOG.info("flip rate of the replicates: %.4f", report.flip_rate)
    if report.order.graded:
        _LOG.info("order of the items: %s", report.order)
    if report.singly:
        text = "%d items were asked about singly, as replies about several did not grade them"
        _LOG.info(text, report.singly)
    if report.by_rule:
        _LOG.warning("%d grades are 0 by the rules of the nuggetizer program: replies it counts so", report.by_rule)
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
