"""Grades written into records: anew, or only those of changed items.

From outcomes to records: a grade set a passage and grader, added to what is there, never instead of it.

Regrading only what edits of a bank touched: grade sets lose the grades that became stale, and get the new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rubric_measures.base import __version__
from rubric_measures.formats.banks import former_items, regrade_mark
from rubric_measures.grading.asking import Outcome, Unit
from rubric_measures.grading.styles import Style
from rubric_measures.measures.grades import DIRECT_ITEM
from rubric_measures.models.base import llm_name
from rubric_measures.prompts.library import load_prompt
from rubric_measures.records.models import (
    ASKED_FOR,
    ITEM_LISTS,
    DirectGrade,
    GradedPassage,
    ItemGradeSet,
    PromptInfo,
    QueryPassages,
    exam_ratio,
    grade_of_items,
    kind_of_set,
    of_items,
    provenance_of,
    regraded_of,
    stale_in,
)
from rubric_measures.types.entities import RubricItem, TestBank, content_hash, item_content


@dataclass(frozen=True)
class BankChange:
    """What edits did to a bank, as far as grades are concerned.

    Items that were added, reworded, split or merged have ids that no grade has, so they need no mention here.

    Attributes:
        edited: query_id -> item_id -> contents, as `TestBank.edited`, of the items that keep their id and need new
            grades.
        former: query_id -> ids of items that were in the bank before.
    """

    edited: Mapping[str, Mapping[str, str]]
    former: Mapping[str, set[str]]

    @classmethod
    def of(cls, bank: TestBank, before: TestBank | None = None) -> BankChange:
        """Reads what a bank says about its edits, and compares it with an older bank where there is one.

        A review marks the items that it edited: `info.regrade` says whether they need new grades, and `former_items` of
        the query lists ids that left. Items without such a mark need new grades where their text, kind or gold answers
        differ from the older bank's.

        Args:
            bank: the bank.
            before: the bank that the records were graded with.
        """
        left = {(query_id, item_id) for query_id, said in bank.further.items() for item_id in former_items(said)}
        old = {(item.query_id, item.item_id): item_content(item) for item in before or ()}
        edited: dict[str, dict[str, str]] = {}
        for item in bank:
            content, mark = item_content(item), regrade_mark(item)
            is_other = old.get((item.query_id, item.item_id), content) != content
            if is_other if mark is None else mark:
                edited.setdefault(item.query_id, {})[item.item_id] = content
        former: dict[str, set[str]] = {}
        for query_id, item_id in left | old.keys():
            former.setdefault(query_id, set()).add(item_id)
        return cls(edited, former)


@dataclass(frozen=True)
class GradeSetMaker:
    """Makes the grade sets of one style: `exam_grades` of items, `grades` of direct labels.

    Attributes:
        style: prompt, model and settings.
        model: the backend's canonical name.
        bank: the hash of the bank; empty for direct labels, and for sentences: those of further answers are no other
            bank.
        change: what edits did to the bank; then the set goes on from what the same style said of an earlier state of
            it, without the grades that became stale. None completes what was made against this very bank.
    """

    style: Style
    model: str
    bank: str = ""
    change: BankChange | None = None

    @cached_property
    def settings(self) -> dict[str, object]:
        """Everything that may change a grade of this style but the bank: the grader, whatever it grades against."""
        return {
            **self.style.settings.as_json(self.style.prompt),
            "model": self.model,
            "options": dict(self.style.asker.options),
            "prompt": self.style.prompt.prompt_class,
            "prompt_hash": self.style.prompt.hash,
        }

    @cached_property
    def provenance(self) -> dict[str, object]:
        """What every grade set says about its making; the manifest beside the records spells the settings out."""
        found: dict[str, object] = {
            "made_by": f"rubric_measures {__version__}",
            "model": self.model,
            "prompt": self.style.prompt.hash[:16],
            "signature": content_hash({**self.settings, "bank": self.bank})[:12],
            "grader": content_hash(self.settings)[:12],
        }
        if self.style.together is not None:
            found["items_per_call"] = self.style.settings.items_per_call
        if self.bank:
            found["bank"] = self.bank[:16]
        return found

    @cached_property
    def _llm(self) -> dict[str, Any]:
        """What grade sets say of prompt and model, by the names of the Rubric workbench's files."""
        prompt = self.style.prompt
        info: dict[str, Any] = {
            "prompt_class": prompt.prompt_class,
            "prompt_style": prompt.style or prompt.prompt_class,
            "context_first": False,
            "check_unanswerable": prompt.target in ("question", "nugget"),
            "check_answer_key": prompt.task == "verify",
            "is_self_rated": prompt.task == "grade" and prompt.target in ("question", "nugget", "support"),
            **(prompt.grade_scale.as_json() if prompt.grade_scale else {}),
        }
        return {
            "llm": llm_name(self.model),
            "llm_options": dict(self.style.asker.options),
            "prompt_info": PromptInfo(**info),
            "provenance": self.provenance,
        }

    def present(self, passage: GradedPassage, of: Unit) -> dict[str, ItemGradeSet]:
        """Kind of items -> the grade set that the passage has already and that is completed; `of` is its query."""
        # Of a bank that was edited, what this style made goes on, whatever the state of the bank then was.
        by = "signature" if self.change is None else "grader"
        mine = (entry for entry in passage.exam_grades or () if provenance_of(entry).get(by) == self.provenance[by])
        found = {kind_of_set(entry): entry for entry in mine}
        if self.change is not None:
            # A set that has no item of the bank may be about another one.
            about = {item.item_id for item in of.items} | self.change.former.get(of.query_id, set())
            found = {kind: entry for kind, entry in found.items() if not about.isdisjoint(_ids(entry))}
        return {kind: found[kind] for kind in self.style.item_kinds if kind in found}

    def holding(self, entry: ItemGradeSet, of: Unit) -> set[str]:
        """The items of which a grade set of this style says something that still holds."""
        ids = _ids(entry)
        if self.change is None:
            return ids
        edited = self.change.edited.get(of.query_id, {})
        stale = stale_in(entry, ids & edited.keys(), edited, str(self.provenance["bank"]))
        return (ids & {item.item_id for item in of.items}) - stale

    def present_direct(self, passage: GradedPassage) -> DirectGrade | None:
        """The direct label of this style that the passage has already."""
        made = self.provenance["signature"]
        return next((entry for entry in passage.grades or () if provenance_of(entry).get("signature") == made), None)

    def missing(self, passage: GradedPassage, wanted: Sequence[RubricItem], of: Unit) -> tuple[RubricItem, ...]:
        """The items of those wanted that still need a grade (or, for extraction, an answer) by this style.

        `of` is the query with all its items. A grade that was read in a cut reply, or given to a cut passage, is one:
        asking the same again changes nothing.
        """
        if self.style.direct:
            old = self.present_direct(passage)
            return () if old is not None and old.label is not None else tuple(wanted)
        done: set[str] = set()
        for entry in self.present(passage, of).values():
            done |= self.holding(entry, of) - ((entry.item_status or {}).keys() - grade_of_items(entry).keys())
        return tuple(item for item in wanted if item.item_id not in done)

    def stale(self, passage: GradedPassage, of: Unit) -> int:
        """How many grades of the passage by this style are of items that changed or left the bank."""
        return sum(
            len(grade_of_items(one).keys() - self.holding(one, of)) for one in self.present(passage, of).values()
        )

    def told(self, passage: GradedPassage, of: Unit) -> list[str]:
        """The items of which the passage says something by this style."""
        return [item_id for entry in self.present(passage, of).values() for item_id, _ in entry.answers]

    def with_outcomes(
        self,
        passage: GradedPassage,
        of: Unit,
        outcomes: Mapping[str, Outcome],
        asked_for: Mapping[str, Sequence[str]] | None = None,
    ) -> GradedPassage:
        """The passage with what came of its items, in the place of what this style said before or behind all else.

        It is the very same one where nothing came and nothing became stale.

        Args:
            passage: as it was.
            of: its query, with all items.
            outcomes: item_id -> what came of it.
            asked_for: measures and runs, where not all items were asked about.
        """
        if self.style.direct:
            label = self.direct_label(outcomes[DIRECT_ITEM])
            known, labels = self.present_direct(passage), passage.grades or []
            put = [*labels, label] if known is None else [label if one is known else one for one in labels]
            return passage.replacing(grades=put)
        before = entries = list(passage.exam_grades or ())
        wanted, present = self.style.items_of(of.items), self.present(passage, of)
        for kind in self.style.item_kinds:
            members = [item for item in wanted if item.kind == kind]
            mine = {item.item_id: outcomes[item.item_id] for item in members if item.item_id in outcomes}
            old = present.get(kind)
            told = set() if old is None else self.holding(old, of)
            is_stale = old is not None and told != _ids(old)
            if not mine and not is_stale and not (asked_for and members):
                continue
            if is_stale and not told and not mine:
                entries = [one for one in entries if one is not old]
                continue
            said = [
                *(provenance_of(old).get(ASKED_FOR, ()) if old is not None else ()),
                *([asked_for] if asked_for else ()),
            ]
            more = {}
            if said and len(told | mine.keys()) < len(members):
                # A set that lacks items says what it was asked for, now and before.
                distinct = [one for place, one in enumerate(said) if one not in said[:place]]
                more["provenance"] = {**self.provenance, ASKED_FOR: distinct}
            made = self.item_grade_set(kind, members, mine, **more)
            if old is not None:
                made = joined(old, told - mine.keys(), made, members)
            if self.change is not None:
                contents = {item.item_id: item_content(item) for item in members if item.item_id in mine}
                made = self._going_on(made, old, contents)
            entries = [*entries, made] if old is None else [made if one is old else one for one in entries]
        return passage if entries is before else passage.replacing(exam_grades=entries)

    def grades_of(self, passage: GradedPassage, of: Unit) -> dict[str, float]:
        """The grades of items that the passage has already by this style."""
        return {
            name: one for entry in self.present(passage, of).values() for name, one in grade_of_items(entry).items()
        }

    def _going_on(self, entry: ItemGradeSet, before: ItemGradeSet | None, said: Mapping[str, str]) -> ItemGradeSet:
        """The grade set with what it was made by, and which of its items were graded after the bank changed.

        `said` is what the new items said.
        """
        there, old = _ids(entry), provenance_of(before) if before is not None else {}
        known = regraded_of(before) if before is not None else {}
        regraded = {item_id: content for item_id, content in known.items() if item_id in there}
        return entry.replacing(provenance={**old, **self.provenance, "regraded": {**regraded, **said}})

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
        if outcome.details:
            fields["details"] = {outcome.item_id: dict(outcome.details)}
        return DirectGrade(**fields)

    def item_grade_set(
        self, kind: str, items: Sequence[RubricItem], outcomes: Mapping[str, Outcome], **more: Any
    ) -> ItemGradeSet:
        """The grade set of what came of items of one kind, in the order of the items; with further fields."""
        # Some graders are asked about some items only, and of pairs a passage has those that cite it.
        told = [outcomes[item.item_id] for item in items if item.item_id in outcomes]
        failed = [outcome for outcome in told if outcome.status != "graded"]
        return ItemGradeSet.build(
            {outcome.item_id: outcome.grade for outcome in told if outcome.grade is not None},
            answers=[(outcome.item_id, outcome.answer) for outcome in told],
            kind=kind,  # type: ignore[arg-type]
            self_rated=self.style.prompt.task == "grade",
            item_status={outcome.item_id: outcome.status for outcome in failed},
            errors={outcome.item_id: outcome.note for outcome in failed},
            **{
                **self._llm,
                "details": {outcome.item_id: dict(outcome.details) for outcome in told if outcome.details} or None,
                "pairs": self.style.of_pairs or None,
                **more,
            },
        )


def _ids(entry: ItemGradeSet) -> set[str]:
    """The items that a grade set speaks of."""
    return {*grade_of_items(entry), *(item_id for item_id, _ in entry.answers), *(entry.item_status or ())}


def joined(old: ItemGradeSet, kept: Set[str], new: ItemGradeSet, items: Sequence[RubricItem]) -> ItemGradeSet:
    """What a grade set says of the items that it keeps, and a new one of its own; all else as the old one has it.

    Args:
        old: the set that goes on.
        kept: items of it, none of which is in the new one.
        new: what came of further items, and how that was made.
        items: those of the query, in whose order the set is.
    """
    place = {item.item_id: number for number, item in enumerate(items)}
    said, more = of_items(old, kept).as_json(), new.as_json()
    for name, item_of in ITEM_LISTS.items():
        if said.get(name) is not None or name in more:
            both = [*(said.get(name) or ()), *more.get(name, ())]
            said[name] = sorted(both, key=lambda one: place.get(item_of(one), -1))
    said["exam_ratio"] = exam_ratio(said["correctAnswered"], said["wrongAnswered"])
    for name in ("item_status", "llm_response_errors", "details"):
        if found := {**(said.pop(name, None) or {}), **more.get(name, {})}:
            said[name] = found
    said["provenance"] = more["provenance"]
    return ItemGradeSet(**said)


def described(group: QueryPassages, makers: Sequence[GradeSetMaker], query_text: str) -> QueryPassages:
    """The query with what makes the messages of each maker's calls about it reproducible, beside passages and bank.

    It is settings (their hash is the provenance's `grader`), the texts of the prompts, and what of the query is shown;
    in the provenance of the first grade set that the maker has there. Once a query is enough to make its line complete
    in itself, and costs nothing to read; a definition that is there stays.
    """
    passages = list(group.passages)
    for maker in makers:
        name, grader = "grades" if maker.style.direct else "exam_grades", maker.provenance["grader"]
        made = (
            (number, which, said)
            for number, passage in enumerate(passages)
            for which, entry in enumerate(getattr(passage, name) or ())
            if (said := provenance_of(entry)).get("grader") == grader
        )
        first = next(made, None)
        if first is None or any("definition" in said for *_, said in (first, *made)):
            continue
        number, which, said = first
        style = maker.style
        prompts = [style.prompt, *([load_prompt(style.prompt.verify)] if style.prompt.verify else ())]
        definition: dict[str, object] = {
            "settings": maker.settings,
            "prompts": {prompt.prompt_class: prompt.as_json() for prompt in prompts},
        }
        if style.shows_query:
            definition["query"] = query_text
        if style.shows_documents:
            definition["documents"] = (style.settings.document_texts or {}).get(group.query_id, "")
        entries = list(getattr(passages[number], name))
        entries[which] = entries[which].replacing(provenance={**said, "definition": definition})
        passages[number] = passages[number].replacing(**{name: entries})
    return group._replace(passages=passages)
