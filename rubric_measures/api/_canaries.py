"""The canary suite: known cases through the grading path, and how often the grader was fooled; for `verify`."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from rubric_measures.base.errors import InputError
from rubric_measures.types.entities import TestBank
from rubric_measures.types.scales import covering_level

if TYPE_CHECKING:
    from rubric_measures.grading import GradingPlan
    from rubric_measures.models.settings import CallOptions, Progress
    from rubric_measures.records.models import QueryPassages
    from rubric_measures.verification.sections import Section

_LOG = logging.getLogger("rubric_measures")


@dataclass(frozen=True)
class CanaryRun:
    """What the canary suite found.

    Attributes:
        sections: the report; none of a dry run.
        is_complete: every case has a grade.
        plan: of a dry run, the calls that it would need.
    """

    sections: tuple[Section, ...] = ()
    is_complete: bool = True
    plan: GradingPlan | None = None


def run_canaries(
    groups: Iterable[QueryPassages],
    bank: TestBank,
    *,
    model: str,
    prompt: Sequence[str] = (),
    cases: int = 3,
    seed: int = 0,
    min_rating: int | None = None,
    dry_run: bool = False,
    source: str = "",
    progress: Progress = False,
    **options: Unpack[CallOptions],
) -> CanaryRun:
    """Builds the canaries of passages, grades them and reports.

    Args:
        groups: passages by query, to make cases of.
        bank: the items.
        model: see `grade`.
        prompt: see `grade`.
        cases: cases of each kind a query, where several can be made.
        seed: of the choice of cases.
        min_rating: the least grade that covers an item; None takes that of the prompt's scale.
        dry_run: make no call; `plan` of the result says what would be called.
        source: where the passages are from, for errors.
        progress: True shows a bar on standard error; a function is told the counts (`RunStats`).
        options: how the model is asked, and limits; see `CallOptions`.

    Raises:
        InputError: a setting is wrong, or no case can be made.
        GradingError: the model cannot be used.
        KeyboardInterrupt: the user stopped the run; calls in flight were finished.
    """
    from rubric_measures.grading import Grader, GradingReport, GradingSettings, estimate
    from rubric_measures.models.settings import CallSettings, note_limit
    from rubric_measures.prompts import load_prompt
    from rubric_measures.verification.graders import build_canaries, canary_report
    from rubric_measures.verification.sections import canary_sections

    if of_pairs := next((name for name in prompt if load_prompt(name).target == "support"), None):
        text = f"prompt {of_pairs} judges sentences by what they cite, and the suite makes passages for items"
        raise InputError(f"{text}; choose a prompt that grades items", settings=("prompt",))
    calls = CallSettings(model, **options)
    asked = calls.make()
    # An empty passage is one of the cases: what the model makes of it is to be seen.
    grader = Grader(asked.runner(), tuple(prompt), GradingSettings(empty_texts="ask"))
    # What is wrong with prompts is found before a cache is made.
    makers = grader.makers(bank)
    scales = [scale for maker in makers if (scale := maker.style.prompt.grade_scale) is not None]
    for scale in scales:
        # A level that it does not reach is found before a call is made.
        covering_level(scale, min_rating)
    highest = dict.fromkeys(scale.name_of(scale.highest) for scale in scales)
    built = build_canaries(groups, bank, seed, cases, source, [*highest] or ["5"])
    if dry_run:
        with asked.planning() as runner:
            planned = dataclasses.replace(grader, runner=runner)
            return CanaryRun(plan=estimate(planned, lambda: built, bank, asked.price))
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
    return CanaryRun(tuple(canary_sections(report)), not failed)
