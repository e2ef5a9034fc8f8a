"""The canary suite: known cases through the grading path, and how often the grader was fooled; for `verify`."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rubric_measures.base.entities import TestBank

if TYPE_CHECKING:
    from rubric_measures.grading import GradingPlan
    from rubric_measures.records.streaming import PassageGroup
    from rubric_measures.runners.progress import Progress
    from rubric_measures.verification.sections import Section

__all__ = ["CanaryRun", "run_canaries"]

_LOG = logging.getLogger("rubric_measures")


@dataclass(frozen=True)
class CanaryRun:
    """What the canary suite found.

    Attributes:
        sections: the report; none of a dry run.
        is_complete: every case has a grade.
        plan: of a dry run, what it would take.
    """

    sections: tuple[Section, ...] = ()
    is_complete: bool = True
    plan: GradingPlan | None = None


def run_canaries(
    groups: Iterable[PassageGroup],
    bank: TestBank,
    *,
    model: str,
    base_url: str | Sequence[str] | None = None,
    model_option: Mapping[str, Any] | None = None,
    prompt: Sequence[str] = (),
    cache: str | os.PathLike[str] | None = None,
    cases: int = 3,
    seed: int = 0,
    min_rating: int = 4,
    dry_run: bool = False,
    prices: str | os.PathLike[str] | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
    source: str = "",
    progress: Progress = False,
) -> CanaryRun:
    """Builds the canaries of passages, grades them and reports.

    Args:
        groups: passages by query, to make cases of.
        bank: the items.
        model: see `grade`, as for `base_url`, `model_option`, `prompt`, `prices`, `max_calls` and `max_cost`.
        base_url: see `grade`.
        model_option: see `grade`.
        prompt: see `grade`.
        cache: the file of the reply cache; None keeps no replies.
        cases: cases of each kind a query, where several can be made.
        seed: of the choice of cases.
        min_rating: the least grade that covers an item.
        dry_run: make no call; `plan` of the result says what would be called.
        prices: see `grade`.
        max_calls: see `grade`.
        max_cost: see `grade`.
        source: where the passages are from, for errors.
        progress: True shows a bar on standard error; a function is told the counts (`RunStats`).

    Raises:
        InputError: a setting is wrong, or no case can be made.
        GradingError: the model cannot be used.
        KeyboardInterrupt: the user stopped the run; calls in flight were finished.
    """
    from rubric_measures.grading import Grader, GradingReport, GradingSettings, estimate
    from rubric_measures.runners.models import CallSettings
    from rubric_measures.runners.progress import note_limit
    from rubric_measures.verification.canaries import build_canaries, canary_report
    from rubric_measures.verification.statistics_sections import canary_sections

    built = build_canaries(groups, bank, seed, cases, source)
    calls = CallSettings(
        model, model_option or {}, base_url, cache, prices=prices, max_calls=max_calls, max_cost=max_cost
    )
    asked = calls.make()
    # An empty passage is one of the cases: what the model makes of it is to be seen.
    grader = Grader(asked.runner(), tuple(prompt), GradingSettings(empty_texts="ask"))
    if dry_run:
        with asked.planning() as runner:
            planned = dataclasses.replace(grader, runner=runner)
            return CanaryRun(plan=estimate(planned, lambda: built, bank, asked.price))
    # What is wrong with prompts is found before a cache is made.
    makers = grader.makers(bank)
    total = len(makers) * sum(len(case.passages) * len(bank.for_query(case.query_id)) for case in built)
    graded = GradingReport()
    with asked.asking(progress, total) as runner:
        grader = dataclasses.replace(grader, runner=runner)
        try:
            report = canary_report(grader.grade_records(built, bank, graded), min_rating)
        except KeyboardInterrupt:
            if not calls.is_kept and graded.run.calls:
                text = "%d calls of this run are lost: name a cache to keep them"
                _LOG.warning(text, graded.run.calls, extra={"settings": ("cache",)})
            raise
    note_limit(graded.run, is_kept=calls.is_kept)
    _LOG.info("canary suite: %d grades: %s", graded.by_status.total(), graded.run)
    failed = sum(count.failed for count in report.counts.values())
    if failed:
        _LOG.warning("%d canary grades failed: they count neither way", failed)
    return CanaryRun(tuple(canary_sections(report, min_rating)), not failed)
