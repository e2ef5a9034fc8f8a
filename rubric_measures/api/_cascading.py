"""The second model of a cascade: asked about what the first one leaves in doubt; the grades of both become one set."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections import Counter
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rubric_measures.api._records import GradedRecords
from rubric_measures.base.errors import InputError

if TYPE_CHECKING:
    from rubric_measures.base.entities import TestBank
    from rubric_measures.grades.panels import Condition, Said
    from rubric_measures.grading import Grader
    from rubric_measures.records.models import GradedPassage, QueryPassages
    from rubric_measures.runners.models import Model, RunnerOptions
    from rubric_measures.runners.progress import Progress

_LOG = logging.getLogger("rubric_measures")
# What the grades of a cascade are called.
_NAME = "panel:cascade"


@dataclass(frozen=True)
class Second:
    """The second model, and when it is asked."""

    asked: Model
    condition: Condition

    @classmethod
    def asked_for(
        cls,
        then: str | None,
        when: str | None,
        calls: RunnerOptions,
        base_url: str | None,
        model_option: Mapping[str, Any] | None,
        only_changed: bool,
    ) -> Second | None:
        """The second model of some settings, if there is one; the calls are those of the first, but for endpoint and
        backend.

        Raises:
            InputError: one of the two is missing, or the condition is none; settings have no model.
        """
        from rubric_measures.grades.panels import parse_condition
        from rubric_measures.runners.models import CallSettings

        if then is None and when is None:
            if base_url or model_option:
                text = "there is no second model; leave its settings out"
                raise InputError(text, settings=("then_base_url", "then_model_option", "then"))
            return None
        if then is None or when is None:
            text = "a cascade needs a second model, and when it is asked: name both or none"
            raise InputError(text, settings=("then", "when"))
        if only_changed:
            text = "a cascade grades everything; leave it out to follow edits, or grade with each model by itself"
            raise InputError(text, settings=("then", "only_changed"))
        own: Any = {**calls, "base_url": base_url, "model_option": model_option}
        return cls(CallSettings(then, **own).make(), parse_condition(when))

    def check(self, first: Grader, bank: TestBank) -> None:
        """Finds what would be found wrong after the first model has graded everything.

        Raises:
            InputError: a prompt does not suit the second model, or grades nothing; both models are the same one.
        """
        again = dataclasses.replace(first, runner=self.asked.runner())
        for one, other in zip(first.makers(bank), again.makers(bank), strict=True):
            name = one.style.prompt.prompt_class
            if not one.style.graded:
                raise InputError(f"prompt {name} makes no grades of which a cascade could doubt", settings=("prompt",))
            if one.provenance["grader"] == other.provenance["grader"]:
                raise InputError("both models are the same, with the same settings", settings=("then",))
            if (
                self.condition.sure is not None
                and first.settings.replicates == 1
                and one.style.showing.per_call is not None
            ):
                text = f"prompt {name} asks for a list of grades, which has no probabilities; draw replicates"
                raise InputError(text, settings=("when", "replicates"))
        held = str(first.runner.backend.options.get("structured", "auto"))
        no_scores = first.settings.explain or not (held == "auto" or held.endswith("+logprobs"))
        if self.condition.sure is not None and first.settings.replicates == 1 and no_scores:
            raise InputError(
                f"the first model's endpoint is asked for no probabilities of labels (structured={held}"
                f"{', with reasons' if first.settings.explain else ''}), so nothing says how sure a grade is; say "
                "structured=auto or …+logprobs, draw replicates, or name grades",
                settings=("model_option", "replicates", "when"),
            )

    def cascaded(
        self,
        first: Grader,
        bank: TestBank,
        records: GradedRecords,
        graded: Callable[[Grader], GradedRecords],
        output: str | os.PathLike[str] | None,
        progress: Progress,
    ) -> GradedRecords:
        """Asks the second model, by `graded`, about what the first one graded, and adds what both say together."""
        from rubric_measures.backends.base import llm_name
        from rubric_measures.grades.grade_sets import GradeFilter
        from rubric_measures.grades.panels import cascade_rule, gather, outcomes_of, said_of, with_grades
        from rubric_measures.records.models import GradeSetKey

        makers = first.makers(bank)

        def said(passage: GradedPassage, which: int) -> dict[str, Said]:
            maker = makers[which]
            entries: list[Any] = [maker.present(passage, kind) for kind in maker.style.item_kinds]  # type: ignore[arg-type]
            if maker.style.direct:
                entries = [maker.present_direct(passage)]
            return {item: one for entry in entries if entry is not None for item, one in said_of(entry).items()}

        def in_doubt(_: QueryPassages, passage: GradedPassage, which: int) -> Container[str]:
            return {item for item, one in said(passage, which).items() if self.condition.holds(one)}

        passages = [passage for group in records for passage in group.passages]
        for which in range(len(makers)):
            self.condition.check(one for passage in passages for one in said(passage, which).values())
        with self.asked.asking(progress) as runner:
            again = dataclasses.replace(first, runner=runner, only=in_doubt)
            records = graded(again)
            seconds = again.makers(bank)
        groups: list[QueryPassages] = list(records)
        lost: Counter[str] = Counter()
        asked = total = 0
        for pair in zip(makers, seconds, strict=True):
            for kind in ("direct",) if pair[0].style.direct else pair[0].style.item_kinds:
                keys = [
                    GradeSetKey(
                        llm_name(maker.model), maker.style.prompt.prompt_class, kind, str(maker.provenance["grader"])
                    )
                    for maker in pair
                ]
                chosen = [GradeFilter(key.llm, key.prompt_class, kind, grade_set=key.grader) for key in keys]
                items = None if kind == "direct" else bank
                gathered = gather(groups, "the cascade", chosen, items, keys)
                outcomes = outcomes_of(gathered, cascade_rule(self.condition))
                ones = [one for found in outcomes.values() for one in found.values()]
                total += len(ones)
                asked += sum(one.asked for one in ones)
                lost.update(one.status for one in ones if one.grade is None)
                settings = {"by": "cascade", "when": str(self.condition)}
                groups = list(with_grades(groups, gathered, outcomes, _NAME, settings))
        _LOG.info("the cascade (%s): %d of %d grades by the second model", self.condition, asked, total)
        if lost:
            told = ", ".join(f"{count} {status}" for status, count in sorted(lost.items()))
            _LOG.warning("the cascade has no grade of %d: %s", lost.total(), told)
        report = dataclasses.replace(records.report, ungraded=lost)
        return GradedRecords.kept(groups, output, report=report)
