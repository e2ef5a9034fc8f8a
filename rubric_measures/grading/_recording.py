"""From outcomes to records: a grade set a passage and grader, added to what is there, never instead of it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rubric_measures.grading._combining import Outcome
from rubric_measures.grading._styles import Style
from rubric_measures.models.base import Backend, llm_name
from rubric_measures.prompts import load_prompt
from rubric_measures.records.models import (
    DirectGrade,
    GradedPassage,
    ItemGradeSet,
    PromptInfo,
    QueryPassages,
    SelfRating,
    grade_of_items,
    provenance_of,
)
from rubric_measures.types.entities import ItemKind, RubricItem, Signature


@functools.lru_cache(maxsize=4096)
def _rating(field: str, item_id: str, grade: int) -> SelfRating:
    """A rating; frozen, so that the passages of a query share the few that there are."""
    return SelfRating(**{field: item_id}, self_rating=grade)


@dataclass(frozen=True)
class GradeSetMaker:
    """Makes the grade sets of one style: `exam_grades` of items, `grades` of direct labels.

    Attributes:
        style: prompt, model and settings.
        model: the backend's canonical name.
        bank: the hash of the bank; empty for direct labels.
    """

    style: Style
    model: str
    bank: str = ""

    @classmethod
    def of(cls, style: Style, backend: Backend, bank: str) -> GradeSetMaker:
        """The maker of a style and a backend."""
        # The sentences of further answers are no other bank.
        return cls(style, backend.model, "" if style.direct or style.of_pairs else bank)

    @cached_property
    def signature(self) -> Signature:
        """Everything that may change a grade of this style."""
        settings = dict(self.style.settings.as_json())
        settings.pop("options")
        return Signature(
            {
                **settings,
                "bank": self.bank,
                "model": self.model,
                "options": dict(self.style.asker.options),
                "prompt": self.style.prompt.prompt_class,
                "prompt_hash": self.style.prompt.hash,
            }
        )

    @cached_property
    def _without_bank(self) -> Signature:
        """The signature without the bank: the same grader, whatever it grades against."""
        return Signature({name: value for name, value in self.signature.settings.items() if name != "bank"})

    @cached_property
    def provenance(self) -> dict[str, object]:
        """What every grade set says about its making; the manifest beside the records spells the signature out."""
        from rubric_measures.base import __version__

        found: dict[str, object] = {
            "made_by": f"rubric_measures {__version__}",
            "model": self.model,
            "prompt": self.style.prompt.hash[:16],
            "signature": self.signature.short,
            "grader": self._without_bank.short,
        }
        if self.style.settings.items_per_call != 1:
            found["items_per_call"] = self.style.settings.items_per_call
        if self.bank:
            found["bank"] = self.bank[:16]
        return found

    def definition(self, query_id: str, query_text: str) -> dict[str, object]:
        """What makes the messages of every call about a query reproducible, beside passages and bank.

        Settings (their hash is the provenance's `grader`), the texts of the prompts, and what of the query is shown.
        """
        showing = self.style.showing
        prompts = [showing.prompt, *([load_prompt(showing.prompt.verify)] if showing.prompt.verify else ())]
        found: dict[str, object] = {
            "settings": dict(self._without_bank.settings),
            "prompts": {prompt.prompt_class: prompt.as_json() for prompt in prompts},
        }
        if showing.shows_query:
            found["query"] = query_text
        if showing.shows_documents:
            found["documents"] = self.style.settings.documents.get(query_id, "")
        return found

    @cached_property
    def _prompt_info(self) -> PromptInfo:
        info: dict[str, Any] = self.style.prompt.prompt_info()
        return PromptInfo(**info)

    @cached_property
    def _llm(self) -> dict[str, Any]:
        return {
            "llm": llm_name(self.model),
            "llm_options": dict(self.style.asker.options),
            "prompt_info": self._prompt_info,
            "provenance": self.provenance,
        }

    def is_mine(self, entry: ItemGradeSet | DirectGrade) -> bool:
        """Whether a grade set was made by exactly this style, model and bank."""
        made = provenance_of(entry)
        # A set of another program that was amended is nobody's.
        return made.get("signature") == self.signature.short and not made.get("mixed")

    def present(self, passage: GradedPassage, kind: ItemKind) -> ItemGradeSet | None:
        """The grade set of this style that the passage has already, for one kind of items."""
        for entry in passage.exam_grades or ():
            if entry.prompt_type == kind and self.is_mine(entry):
                return entry
        return None

    def present_direct(self, passage: GradedPassage) -> DirectGrade | None:
        """The direct label of this style that the passage has already."""
        return next((entry for entry in passage.grades or () if self.is_mine(entry)), None)

    def missing(self, passage: GradedPassage, items: Sequence[RubricItem]) -> tuple[RubricItem, ...]:
        """The items that still need a grade (or, for extraction, an answer) by this style.

        A grade that was read in a cut reply, or given to a cut passage, is one: asking the same again changes nothing.
        """
        done: set[str] = set()
        for kind in self.style.item_kinds:
            if (entry := self.present(passage, kind)) is not None:  # type: ignore[arg-type]
                failed = (entry.item_status or {}).keys() - grade_of_items(entry).keys()
                done |= {item_id for item_id, _ in entry.answers if item_id not in failed}
        return tuple(item for item in items if item.item_id not in done)

    def direct_label(self, outcome: Outcome) -> DirectGrade:
        """The direct label as records keep it."""
        fields: dict[str, Any] = {
            "correct_answered": bool(outcome.grade),
            "answer": outcome.answer,
            "self_rating": outcome.grade,
            "prompt_type": "direct_grading",
            **self._llm,
        }
        if outcome.status != "graded":
            fields |= {"status": outcome.status, "llm_response_error": outcome.note}
        return DirectGrade(**fields, **self._details({"0": outcome}))

    def item_grade_set(
        self, items: Sequence[RubricItem], outcomes: Mapping[str, Outcome], old: ItemGradeSet | None
    ) -> ItemGradeSet:
        """The grade set of the items of one kind: new outcomes, and the old set's for the others."""
        kind = items[0].kind
        known = {**(_outcomes_of(old) if old is not None else {}), **outcomes}
        # Some graders are asked about some items only, and of pairs a passage has those that cite it.
        told = [(item.item_id, known[item.item_id]) for item in items if item.item_id in known]
        grades = {item_id: outcome.grade for item_id, outcome in told if outcome.grade is not None}
        failed = {item_id: outcome for item_id, outcome in told if outcome.status != "graded"}
        correct = [item_id for item_id, grade in grades.items() if grade > 0]
        fields: dict[str, Any] = {
            "correct_answered": correct,
            "wrong_answered": [item_id for item_id, grade in grades.items() if grade <= 0],
            "answers": [(item_id, outcome.answer) for item_id, outcome in told],
            "exam_ratio": len(correct) / len(grades) if grades else 0.0,
            "prompt_type": kind,
            **self._llm,
            **({"pairs": True} if self.style.of_pairs else {}),
        }
        if self.style.prompt.task == "grade":
            fields["self_ratings"] = [_rating(f"{kind}_id", item_id, grade) for item_id, grade in grades.items()]
        if failed:
            fields["item_status"] = {item_id: outcome.status for item_id, outcome in failed.items()}
            fields["llm_response_errors"] = {item_id: outcome.note for item_id, outcome in failed.items()}
        details = self._details(outcomes)
        if old is not None and (size := self.style.showing.per_call) is not None:
            fields["shown_together"] = shown_together(old, size) + [
                [item.item_id for item in batch]
                for batch in self.style.showing.batches([item for item in items if item.item_id in outcomes])
            ]
        if old is not None and (kept := (old.model_extra or {}).get("details")):
            details = {"details": {**kept, **details.get("details", {})}}
        return ItemGradeSet(**fields, **details)

    @staticmethod
    def _details(outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
        found = {item_id: dict(outcome.details) for item_id, outcome in outcomes.items() if outcome.details}
        return {"details": found} if found else {}


def _outcomes_of(entry: ItemGradeSet) -> dict[str, Outcome]:
    """What came of each item of a grade set, without the details."""
    grades, status, errors = grade_of_items(entry), entry.item_status or {}, entry.llm_response_errors or {}
    return {
        item_id: Outcome(item_id, grades.get(item_id), status.get(item_id, "graded"), answer, errors.get(item_id, ""))
        for item_id, answer in entry.answers
    }


def shown_together(entry: ItemGradeSet, size: int) -> list[list[str]]:
    """The items that each call of a list showed, in the order of the calls; of an item the last one counts.

    A set that was graded in one go was shown in its order, so it does not say it.
    """
    told: Any = (entry.model_extra or {}).get("shown_together")
    if isinstance(told, list):
        return [list(batch) for batch in told]
    ids = [item_id for item_id, _ in entry.answers]
    return [ids[start : start + size] for start in range(0, len(ids), size)]


def described(group: QueryPassages, makers: Sequence[GradeSetMaker], query_text: str) -> QueryPassages:
    """The query with each maker's definition, in the provenance of the first grade set that the maker has there.

    Once a query is enough to make its line complete in itself, and costs nothing to read; a definition that is there
    stays.
    """
    passages = list(group.passages)
    for maker in makers:
        place = _first_grade_set(passages, maker)
        if place is None:
            continue
        number, name, which = place
        entries = list(getattr(passages[number], name))
        definition = maker.definition(group.query_id, query_text)
        made = {**provenance_of(entries[which]), "definition": definition}
        entries[which] = entries[which].model_copy(update={"provenance": made})
        passages[number] = passages[number].model_copy(update={name: entries})
    return group._replace(passages=passages)


def _first_grade_set(passages: Sequence[GradedPassage], maker: GradeSetMaker) -> tuple[int, str, int] | None:
    """Where a maker's first grade set stands; None where it has none, or one that is described."""
    name = "grades" if maker.style.direct else "exam_grades"
    grader = maker.provenance["grader"]
    first = None
    for number, passage in enumerate(passages):
        for which, entry in enumerate(getattr(passage, name) or ()):
            made = provenance_of(entry)
            if made.get("grader") == grader:
                if "definition" in made:
                    return None
                first = first or (number, name, which)
    return first
