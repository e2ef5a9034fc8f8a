"""What a grading run counts: grades by status, reasons of those that are missing, replicates, calls."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rubric_measures.grading._combining import BY_RULE
from rubric_measures.grading._order_effect import OrderEffect
from rubric_measures.grading._outcomes import Outcome
from rubric_measures.grading.regrading import AmendCounts
from rubric_measures.runners import RunStats

if TYPE_CHECKING:
    from rubric_measures.grading._recording import EntryMaker

__all__ = ["GradingReport"]

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_MOST_REASONS = 200


@dataclass
class GradingReport:
    """Counts of one run of a grader; they only grow.

    Attributes:
        statuses: prompt class -> status -> grades made in this run.
        kept: grades that were there already.
        passages: passages that were gone through.
        flagged: of these, those that look like instructions to the grader.
        replicated: grades that come from several replicates.
        ungraded: status -> outcomes without what was asked for: a grade, or the text of an extraction. Grades of a text
            or a reply that was cut are none of them.
        reasons: (status, reason with its numbers masked) -> how often, and one such reason.
        flips: sum over them of the share of replicates that differ from the combined grade.
        by_rule: grades 0 that only the rules of the nuggetizer program make (`compat`).
        order: what the order of the nuggets in label lists did to their grades, where it was permuted.
        amended: what was left and what was changed, where only edits of the bank are followed.
        run: the calls.
        makers: what made the grades, prompt by prompt.
    """

    statuses: dict[str, Counter[str]] = field(default_factory=dict)
    kept: int = 0
    passages: int = 0
    flagged: int = 0
    replicated: int = 0
    ungraded: Counter[str] = field(default_factory=Counter)
    reasons: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    flips: float = 0.0
    by_rule: int = 0
    order: OrderEffect = field(default_factory=OrderEffect)
    amended: AmendCounts = field(default_factory=AmendCounts)
    run: RunStats = field(default_factory=RunStats)
    makers: Sequence[EntryMaker] = field(default=(), compare=False, repr=False)

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
        details = outcome.details or {}
        drawn: Any = details.get("replicates")
        if drawn and outcome.grade is not None:
            self.replicated += 1
            self.flips += sum(grade != outcome.grade for grade, _ in drawn) / len(drawn)
        places: Any = details.get("places")
        if drawn and places:
            self.order.add(places, [grade for grade, _ in drawn])

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
