"""Nugget banks of TREC Auto-Judge: version 3 dicts and RAGTIME 2026 lists."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from rubric_measures.base.errors import InputError, warn
from rubric_measures.base.files import path_name
from rubric_measures.base.json_files import JsonLines, Record, TextId, validate_line
from rubric_measures.formats.base import Format
from rubric_measures.formats.nuggets import bank_of_items
from rubric_measures.types.entities import RubricItem, TestBank
from rubric_measures.types.scales import LARGEST_SCORE

Text = Annotated[str, Field(pattern=r"\S")]


def _weight_or_word(value: object) -> object:
    if isinstance(value, int | float) and abs(value) > LARGEST_SCORE:
        raise ValueError(f"is too large for a weight (at most {LARGEST_SCORE:g})")
    return value


_Importance = Annotated[int | float | str | None, BeforeValidator(_weight_or_word)]


class BankAnswer(Record):
    """One answer that a question accepts; `references` are document ids, or objects with a `doc_id`."""

    answer: Text
    references: list[Any] | None = None


class BankQuestion(Record):
    """One question.

    Attributes:
        question: the question.
        question_id: its id; the md5 hex of the question where it is left out.
        query_id: the topic; that of the bank where it is left out.
        answers: answer text -> answer (version 3), or a list of answers.
        importance: `vital`, `okay`, a number, or anything.
        aggregator_type: whether a passage needs all answers (AND) or any (OR).
        references: documents that the question comes from.
        sub_nuggets: parts of the question.
    """

    question: Text
    question_id: TextId | None = None
    query_id: TextId | None = None
    answers: dict[str, BankAnswer] | list[BankAnswer] | None = None
    importance: _Importance = None
    aggregator_type: str | None = None
    references: list[Any] | None = None
    sub_nuggets: list[Any] | None = None

    @property
    def answer_texts(self) -> tuple[str, ...]:
        """The answers, in order."""
        answers = self.answers or []
        return tuple(answer.answer for answer in (answers.values() if isinstance(answers, dict) else answers))


class BankClaim(Record):
    """One claim (key fact); fields as those of a question."""

    claim: Text
    claim_id: TextId | None = None
    query_id: TextId | None = None
    importance: _Importance = None


class NuggetBank(Record):
    """The nuggets of one topic, version 3: dicts by text."""

    query_id: TextId
    title_query: str | None = None
    format_version: str | None = None
    nugget_bank: dict[str, BankQuestion] | None = None
    claim_bank: dict[str, BankClaim] | None = None

    @property
    def nuggets(self) -> list[BankQuestion | BankClaim]:
        """The questions, then the claims."""
        nuggets: list[BankQuestion | BankClaim] = list((self.nugget_bank or {}).values())
        return [*nuggets, *(self.claim_bank or {}).values()]

    @model_validator(mode="after")
    def _one_topic(self) -> Self:
        for nugget in self.nuggets:
            if nugget.query_id is not None and nugget.query_id != self.query_id:
                raise ValueError(f"a nugget belongs to topic {nugget.query_id!r}, its bank to {self.query_id!r}")
        return self


class BankMetadata(Record):
    """Who made a bank for which topic."""

    topic_id: TextId
    team_id: str | None = None
    run_id: str | None = None


class ListBank(Record):
    """The nuggets of one topic, as RAGTIME 2026 has them: a list of questions with lists of answers."""

    metadata: BankMetadata
    nugget_bank: list[BankQuestion]

    @property
    def query_id(self) -> str:
        """The topic."""
        return self.metadata.topic_id

    @property
    def nuggets(self) -> list[BankQuestion | BankClaim]:
        """The questions."""
        return list(self.nugget_bank)


_Form = TypeVar("_Form", NuggetBank, ListBank)
_BANKS: JsonLines[NuggetBank | ListBank] = JsonLines(
    TypeAdapter(NuggetBank | ListBank), "nugget banks", lambda bank: (bank.query_id,)
)
_OBJECTS = JsonLines(TypeAdapter(dict[str, Any]), "nugget banks", by_hand=True)
_DICT_BANK: TypeAdapter[NuggetBank | ListBank] = TypeAdapter(NuggetBank)
_LIST_BANK: TypeAdapter[NuggetBank | ListBank] = TypeAdapter(ListBank)
write_nugget_banks = _BANKS.write


def read_nugget_banks(path: str | os.PathLike[str]) -> list[NuggetBank | ListBank]:
    """The nugget banks of a file of JSON lines, one topic a line; both forms, told apart by their fields.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when a topic comes twice.
    """
    rows = []
    for line, content in _OBJECTS.numbered(path):
        # A union's own errors name the fields of both.
        adapter = _DICT_BANK if "query_id" in content else _LIST_BANK
        rows.append((line, validate_line(adapter, content, path=path_name(path), line=line)))
    return _BANKS.once(rows, path)


def bank_of_nugget_banks(banks: Iterable[NuggetBank | ListBank]) -> TestBank:
    """The bank that nugget banks make: questions with their answers as gold answers, claims as nuggets.

    The ids are those of the files. An importance `vital` or `okay` is kept, a number is the weight, another text is
    left out and counted. A question that needs all of its answers (AND) is one item; counted. What the form says
    beside these (documents of answers, how answers are joined, sub-nuggets, …) is the `info` of the item, from which
    both forms are written again; who made the bank is there, too, of lists.

    Raises:
        InputError: an id has two texts.
    """
    items: dict[str, list[RubricItem]] = {}
    texts: dict[str, str] = {}
    notes = {"importance": 0, "AND": 0}
    for bank in banks:
        members = items.setdefault(bank.query_id, [])
        if isinstance(bank, NuggetBank) and bank.title_query is not None:
            texts[bank.query_id] = bank.title_query
        said = bank.metadata.model_dump(exclude_none=True, exclude={"topic_id"}) if isinstance(bank, ListBank) else {}
        for nugget in bank.nuggets:
            members.append(_item(bank.query_id, nugget, said))
            notes["importance"] += isinstance(nugget.importance, str) and members[-1].importance is None
            if isinstance(nugget, BankQuestion):
                notes["AND"] += nugget.aggregator_type == "AND" and len(nugget.answer_texts) > 1
    for what, text in (
        ("importance", "%d nuggets have an importance other than vital and okay; it was left out"),
        ("AND", "%d questions need all of their answers (AND): any is gold to a grader; judged reports need all"),
    ):
        warn(text, notes[what])
    return bank_of_items(items, texts)


def _item(query_id: str, nugget: BankQuestion | BankClaim, made: Mapping[str, Any]) -> RubricItem:
    importance, weight = _importance(nugget.importance)
    if isinstance(nugget, BankQuestion):
        item_id = nugget.question_id or hashlib.md5(nugget.question.encode(), usedforsecurity=False).hexdigest()
        text, gold = nugget.question, nugget.answer_texts
        return RubricItem(item_id, query_id, text, "question", None, gold, importance, weight, _beside(nugget, made))
    item_id = nugget.claim_id or hashlib.md5(nugget.claim.encode(), usedforsecurity=False).hexdigest()
    return RubricItem(item_id, query_id, nugget.claim, "nugget", None, (), importance, weight, _beside(nugget, made))


# What items say themselves.
_OF_ITEMS = {"question", "question_id", "query_id", "claim", "claim_id", "importance"}
# Where the rest stands in the info of an item.
_INFO, _MADE = "nugget_bank", "nugget_bank_metadata"


def _beside(nugget: BankQuestion | BankClaim, made: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a nugget says that an item has no field for, and who made it; None where that is nothing."""
    said = nugget.model_dump(mode="json", exclude_unset=True, exclude=_OF_ITEMS)
    if isinstance(nugget, BankQuestion):
        answers = nugget.answers or []
        listed = answers.values() if isinstance(answers, dict) else answers
        said["answers"] = [answer.model_dump(mode="json", exclude_unset=True) for answer in listed]
        if all(set(answer) == {"answer"} for answer in said["answers"]):
            # The gold answers say as much.
            del said["answers"]
    return {**({_INFO: said} if said else {}), **({_MADE: dict(made)} if made else {})} or None


def _importance(value: float | str | None) -> tuple[Literal["vital", "okay"] | None, float | None]:
    if isinstance(value, str):
        label = value.strip().lower()
        return ("vital" if label == "vital" else "okay" if label in {"okay", "okey"} else None), None
    return None, None if value is None else float(value)


def answer_documents(item: RubricItem) -> dict[str, frozenset[str]]:
    """Gold answer -> the documents that a nugget bank lists for it; empty sets where it lists none."""
    found: dict[str, frozenset[str]] = dict.fromkeys(item.gold_answers, frozenset())
    for answer in _kept(item).get("answers", ()):
        if answer["answer"] in found:
            references = answer.get("references")
            given = references if isinstance(references, list) else []
            listed = (one.get("doc_id") if isinstance(one, dict) else one for one in given)
            found[answer["answer"]] = frozenset(str(doc_id) for doc_id in listed if doc_id is not None)
    return found


def needs_all_answers(item: RubricItem) -> bool:
    """Whether a nugget bank wants all answers of a question (AND), and not any of them."""
    return _kept(item).get("aggregator_type") == "AND"


def nugget_banks(bank: TestBank) -> list[NuggetBank]:
    """The version 3 banks that write a test bank: questions and claims by their text.

    Raises:
        InputError: two items of a query have the same text (the form has one place for it).
    """
    banks = []
    for query_id, items in bank.items.items():
        if len({(item.kind, item.text) for item in items}) < len(items):
            raise InputError(f"query {query_id!r}: two items have the same text, which a nugget bank cannot hold")
        fields: dict[str, Any] = {"query_id": query_id, "format_version": "v3"}
        if query_id in bank.query_texts:
            fields["title_query"] = bank.query_texts[query_id]
        fields["nugget_bank"] = {item.text: _question(item, True) for item in items if item.kind == "question"}
        claims = {item.text: _claim(item) for item in items if item.kind == "nugget"}
        if claims:
            fields["claim_bank"] = claims
        banks.append(_valid(NuggetBank, fields, query_id))
    return banks


def list_banks(bank: TestBank) -> list[ListBank]:
    """The lists (RAGTIME 2026) that write the questions of a test bank.

    Raises:
        InputError: an item is a nugget: the form has questions only.
    """
    for item in bank:
        if item.kind != "question":
            raise InputError(f"item {item.item_id!r} is a nugget, and this form has questions only")
    return [
        _valid(
            ListBank,
            {
                "metadata": {**_maker(items), "topic_id": query_id},
                "nugget_bank": [_question(item, False) for item in items],
            },
            query_id,
        )
        for query_id, items in bank.items.items()
    ]


def _valid(form: type[_Form], fields: Mapping[str, Any], query_id: str) -> _Form:
    """A bank with these fields; what people wrote into the info of items may fit none."""
    try:
        return form.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        problem = f"the info of its items fits no nugget bank ({where}: {first['msg']}); repair it, or take it out"
        raise InputError(f"query {query_id!r}: {problem}") from None


def _maker(items: Sequence[RubricItem]) -> dict[str, Any]:
    """Who made the nuggets of a topic, where items say it."""
    said = (item.info.get(_MADE) for item in items if isinstance(item.info, dict))
    return next((dict(one) for one in said if isinstance(one, dict)), {})


def _question(item: RubricItem, keyed: bool) -> dict[str, Any]:
    said = _kept(item)
    known = {answer["answer"]: answer for answer in said.pop("answers", ())}
    # Assessors edit gold answers: those that stay keep what was said of them.
    answers = {text: known.get(text, {"answer": text}) for text in item.gold_answers}
    fields: dict[str, Any] = {"question": item.text, "question_id": item.item_id}
    if keyed:
        fields |= {"query_id": item.query_id, "answers": answers}
    else:
        fields |= {"aggregator_type": "OR", "answers": list(answers.values())}
    importance = item.importance if item.importance is not None else item.weight
    return fields | said | ({} if importance is None else {"importance": importance})


def _kept(item: RubricItem) -> dict[str, Any]:
    """What a nugget bank said of an item beside what items say."""
    said = item.info.get(_INFO) if isinstance(item.info, dict) else None
    if not isinstance(said, dict):
        return {}
    answers = said.get("answers")
    if answers is None:
        return dict(said)
    # People edit banks, and the info of an item may be anything.
    whole = isinstance(answers, list) and all(isinstance(one, dict) and "answer" in one for one in answers)
    if not whole:
        raise InputError(
            f"query {item.query_id!r}, item {item.item_id!r}: info.{_INFO}.answers is no list of "
            "{answer, references}; repair it, or take it out"
        )
    return dict(said)


def _claim(item: RubricItem) -> dict[str, Any]:
    fields: dict[str, Any] = {"claim": item.text, "claim_id": item.item_id, "query_id": item.query_id, **_kept(item)}
    importance = item.importance if item.importance is not None else item.weight
    return fields | ({} if importance is None else {"importance": importance})


NUGGET_BANK = Format(
    "nugget bank",
    "nugget bank of TREC Auto-Judge",
    read_nugget_banks,
    write_nugget_banks,
    lambda head: "nugget_bank" in head.object or "claim_bank" in head.object,
)
NUGGET_LISTS = Format(
    "nugget bank lists",
    "lists of nuggets, TREC RAGTIME 2026 (read as nugget-bank)",
    write=write_nugget_banks,
)
