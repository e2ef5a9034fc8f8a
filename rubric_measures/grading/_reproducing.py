"""What a model was shown for a grade, made again from the record and the bank alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rubric_measures.backends.base import Message
from rubric_measures.base.entities import RubricItem, TestBank, bank_content, item_content
from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.grades.compiled import DIRECT_ITEM
from rubric_measures.grades.grade_set_names import choices_of
from rubric_measures.grades.grade_sets import GradeFilter
from rubric_measures.grading._combining import Unit
from rubric_measures.grading._messages import Showing
from rubric_measures.grading._recording import shown_together
from rubric_measures.grading._settings import GradingSettings
from rubric_measures.prompts import Prompt
from rubric_measures.prompts.parsers import is_unanswerable
from rubric_measures.records.models import (
    DirectGrade,
    GradedPassage,
    GradeSetKey,
    ItemGradeSet,
    QueryPassages,
    grade_set_key,
    made_by_set,
    provenance_of,
)


class Shown(NamedTuple):
    """What a model was shown for one grade.

    Attributes:
        asked: the messages of each call: draw by draw, and of each draw chunk by chunk. Several draws of the same
            messages are several calls. Empty where nobody was asked.
        checks: of answers that a model checks, the messages of each check, in the order of the answers and of the key.
    """

    asked: tuple[tuple[Message, ...], ...]
    checks: tuple[tuple[Message, ...], ...] = ()


def definition_of(group: QueryPassages, entry: ItemGradeSet | DirectGrade) -> Mapping[str, Any]:
    """What the records say about the grader of a grade set; see `GradeSetMaker.definition`.

    Raises:
        InputError: they say nothing, as those of other programs and of older versions.
    """
    grader = provenance_of(entry).get("grader")
    for passage in group.passages if grader else ():
        for one in (*(passage.exam_grades or ()), *(passage.grades or ())):
            made = provenance_of(one)
            if made.get("grader") == grader and isinstance(made.get("definition"), Mapping):
                found: Mapping[str, Any] = made["definition"]
                return found
    raise InputError(f"query {group.query_id!r}: the records do not say how {grade_set_key(entry)} was asked")


def shown_for_grade(
    group: QueryPassages, doc_id: str, item_id: str, bank: TestBank, wanted: GradeFilter | None = None
) -> Shown:
    """The exact messages that led to a grade.

    Prompts and settings come from the records, the passage and what of it was shown too, the item and its answer key
    from the bank. Retries show the same messages once more. What a chat template makes of them is the model's matter.

    Args:
        group: a query of graded records.
        doc_id: the passage.
        item_id: the item; "0" for a label of the whole passage.
        bank: the test bank that was graded against.
        wanted: which grade set, where the passage has several.

    Raises:
        UnknownNameError: there is no such passage or item.
        InputError: no grade set of the item passes, or several; the bank is another one, or the records do not say how
            the grade was made.
    """
    passages = {passage.doc_id: passage for passage in group.passages}
    if doc_id not in passages:
        raise UnknownNameError("passage", doc_id, passages)
    passage = passages[doc_id]
    entry = _entry(group.query_id, passage, item_id, bank, wanted or GradeFilter())
    definition = definition_of(group, entry)
    prompt, settings = _graded_with(group.query_id, definition, str(provenance_of(entry).get("prompt")))
    said: Any = (entry.model_extra or {}).get("details")
    details: Mapping[str, Any] = (said or {}).get(item_id, {})
    if settings.empty_texts == "lowest" and not passage.text.strip() and prompt.task != "extract":
        return Shown(())
    showing = Showing(prompt, settings)
    items = _items(entry, item_id, bank.items.get(group.query_id, ()), showing)
    unit = Unit(group.query_id, str(definition.get("query", "")), doc_id, passage.text, items)
    spans = details.get("shown")
    pieces = [passage.text] if spans is None else [passage.text[start:end] for start, end in spans]
    orders = [showing.order(unit, replicate) for replicate in range(settings.replicates)]
    calls = [showing.messages(unit, piece, order) for order in orders for piece in pieces]
    for place in details.get("asked_singly", ()):
        [item] = [item for item in items if item.item_id == item_id]
        calls[place] = showing.messages(unit, pieces[place % len(pieces)], (item,))
    asked = tuple(calls)
    if not prompt.verify:
        return Shown(asked)
    verify = Prompt.from_json(definition["prompts"][prompt.verify])
    return Shown(asked, tuple(_checks(verify, prompt, items[0], _replies(entry, item_id, details), settings)))


def _graded_with(query_id: str, definition: Mapping[str, Any], prompt_hash: str) -> tuple[Prompt, GradingSettings]:
    """Prompt and settings as the records describe them."""
    values = dict(definition["settings"])
    prompt = Prompt.from_json(definition["prompts"][values["prompt"]])
    if not prompt.hash.startswith(prompt_hash):
        raise InputError(f"query {query_id!r}: the text of prompt {prompt.prompt_class} is not that of its hash")
    names = GradingSettings.__dataclass_fields__.keys() & values.keys()
    documents = {query_id: str(definition.get("documents", ""))}
    # A request's options, settings of their own and those of the model included, show nothing to anyone.
    apart = {"documents": documents, "options": {}}
    return prompt, GradingSettings(**{**{name: values[name] for name in names}, **apart})


def _entry(
    query_id: str, passage: GradedPassage, item_id: str, bank: TestBank, wanted: GradeFilter
) -> ItemGradeSet | DirectGrade:
    """The one grade set that says something about the item."""
    direct = item_id == DIRECT_ITEM
    entries: Sequence[ItemGradeSet | DirectGrade] = (passage.grades if direct else passage.exam_grades) or ()
    found: dict[GradeSetKey, list[ItemGradeSet | DirectGrade]] = {}
    for entry in entries:
        key = grade_set_key(entry)
        about = isinstance(entry, DirectGrade) or item_id in dict(entry.answers)
        if about and wanted.passes(key, lambda: [item_id]):
            found.setdefault(key, []).append(entry)
    if len(found) > 1:
        made = {key: made_by_set(members[0]) for key, members in found.items()}
        raise InputError(f"several grade sets are left, choose one of: {choices_of(made, made)}")
    members = next(iter(found.values()), [])
    if not members:
        raise InputError(f"query {query_id!r}, passage {passage.doc_id!r}: has no grade of {item_id!r} that passes")
    if direct:
        return members[-1]
    known = {item.item_id: item for item in bank.items.get(query_id, ())}
    if item_id not in known:
        raise UnknownNameError("item", item_id, known)
    mine = bank_content(bank)[:16]
    for entry in reversed(members):
        if isinstance(entry, ItemGradeSet) and _is_of(entry, item_id, known, mine):
            return entry
    raise InputError(
        f"query {query_id!r}, passage {passage.doc_id!r}: {item_id!r} was graded against another state of the test "
        f"bank (hash {_bank_of(members[-1])}, not {mine})"
    )


def _bank_of(entry: ItemGradeSet | DirectGrade) -> object:
    """The hash of the bank that a grade set's first grades were made with."""
    made = provenance_of(entry)
    return made.get("kept_from", made.get("bank"))


def _is_of(entry: ItemGradeSet, item_id: str, known: Mapping[str, RubricItem], bank: str) -> bool:
    """Whether the bank says of an item, and of those shown with it, what it said when the grade set's grade was made.

    Items that were graded after an edit say what they said then; the others are those of the bank before.
    """
    made = provenance_of(entry)
    if not made:
        # It says nothing about its making, which is the better reason to refuse it.
        return True
    regraded = made.get("regraded", {})
    batches = shown_together(entry, 1) if "shown_together" in (entry.model_extra or {}) else [[item_id]]
    places = [place for place, batch in enumerate(batches) if item_id in batch]
    for one in batches[places[-1]]:
        later = any(one in batch for batch in batches[places[-1] + 1 :])
        if one in regraded and not later:
            if one not in known or item_content(known[one]) != regraded[one]:
                return False
        elif made.get("mixed") or one not in known or _bank_of(entry) != bank:
            return False
    return True


def _items(
    entry: ItemGradeSet | DirectGrade,
    item_id: str,
    items: Sequence[RubricItem],
    showing: Showing,
) -> tuple[RubricItem, ...]:
    """The items that were shown together with one; none for a label."""
    if isinstance(entry, DirectGrade):
        return ()
    known = {item.item_id: item for item in items}
    if (size := showing.per_call) is None:
        return (known[item_id],)
    batches = [batch for batch in shown_together(entry, size) if item_id in batch]
    return tuple(known[one] for one in batches[-1])


def _replies(entry: ItemGradeSet | DirectGrade, item_id: str, details: Mapping[str, Any]) -> list[str]:
    """The extracted answers: of each draw, of each chunk."""
    if "chunks" in details:
        return [text for of_draw in details["chunks"] for text in of_draw]
    if "replicates" in details:
        return [text for _, text in details["replicates"]]
    return [] if isinstance(entry, DirectGrade) else [dict(entry.answers)[item_id]]


def _checks(
    verify: Prompt, prompt: Prompt, item: RubricItem, replies: Sequence[str], settings: GradingSettings
) -> list[tuple[Message, ...]]:
    """The messages that check extracted answers against the key."""
    found = []
    for reply in replies:
        answer = prompt.parse(reply, compat=settings.compat).value
        if answer is not None and not is_unanswerable(answer):
            for gold in dict.fromkeys(item.gold_answers):
                found.append(verify.render(question=item.text, correct_answer=gold, answer=answer))
    return found
