"""Nugget banks of TREC Auto-Judge: version 3 dicts and RAGTIME 2026 lists."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from rubric_measures.base.entities import RubricItem, TestBank
from rubric_measures.base.errors import InputError
from rubric_measures.base.files import path_name
from rubric_measures.base.json_files import JsonLines, TextId, validate_line
from rubric_measures.formats.base import Format
from rubric_measures.formats.nugget_sets import bank_of_items
from rubric_measures.records.models import Record

__all__ = [
    "NUGGET_BANK",
    "NUGGET_LISTS",
    "BankAnswer",
    "BankClaim",
    "BankMetadata",
    "BankQuestion",
    "ListBank",
    "NuggetBank",
    "bank_of_nugget_banks",
    "list_banks",
    "nugget_banks",
    "read_nugget_banks",
    "write_nugget_banks",
]

_LOG = logging.getLogger("rubric_measures")
Text = Annotated[str, Field(pattern=r"\S")]


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
    importance: int | float | str | None = None
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
    importance: int | float | str | None = None


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
    left out and counted, and so are sub-nuggets. A question that needs all of its answers (AND) is one item; counted.

    Raises:
        InputError: an id has two texts.
    """
    items: dict[str, list[RubricItem]] = {}
    texts: dict[str, str] = {}
    notes = {"importance": 0, "sub_nuggets": 0, "AND": 0}
    for bank in banks:
        members = items.setdefault(bank.query_id, [])
        if isinstance(bank, NuggetBank) and bank.title_query is not None:
            texts[bank.query_id] = bank.title_query
        for nugget in bank.nuggets:
            members.append(_item(bank.query_id, nugget))
            notes["importance"] += isinstance(nugget.importance, str) and members[-1].importance is None
            if isinstance(nugget, BankQuestion):
                notes["sub_nuggets"] += len(nugget.sub_nuggets or [])
                notes["AND"] += nugget.aggregator_type == "AND" and len(nugget.answer_texts) > 1
    for what, text in (
        ("importance", "%d nuggets have an importance other than vital and okay; it was left out"),
        ("sub_nuggets", "%d sub-nuggets were left out; the test bank has no parts of items"),
        ("AND", "%d questions need all of their answers (AND); each is one item, with any of its answers as gold"),
    ):
        if notes[what]:
            _LOG.warning(text, notes[what])
    return bank_of_items(items, texts)


def _item(query_id: str, nugget: BankQuestion | BankClaim) -> RubricItem:
    importance, weight = _importance(nugget.importance)
    if isinstance(nugget, BankQuestion):
        item_id = nugget.question_id or hashlib.md5(nugget.question.encode(), usedforsecurity=False).hexdigest()
        text, gold = nugget.question, nugget.answer_texts
        return RubricItem(item_id, query_id, text, "question", None, gold, importance, weight)
    item_id = nugget.claim_id or hashlib.md5(nugget.claim.encode(), usedforsecurity=False).hexdigest()
    return RubricItem(item_id, query_id, nugget.claim, "nugget", None, (), importance, weight)


def _importance(value: float | str | None) -> tuple[Literal["vital", "okay"] | None, float | None]:
    if isinstance(value, str):
        label = value.strip().lower()
        return ("vital" if label == "vital" else "okay" if label in {"okay", "okey"} else None), None
    return None, None if value is None else float(value)


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
        banks.append(NuggetBank.model_validate(fields))
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
        ListBank(
            metadata=BankMetadata(topic_id=query_id),
            nugget_bank=[BankQuestion.model_validate(_question(item, False)) for item in items],
        )
        for query_id, items in bank.items.items()
    ]


def _question(item: RubricItem, keyed: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"question": item.text, "question_id": item.item_id}
    if keyed:
        fields |= {"query_id": item.query_id, "answers": {text: {"answer": text} for text in item.gold_answers}}
    else:
        fields |= {"aggregator_type": "OR", "answers": [{"answer": text} for text in item.gold_answers]}
    importance = item.importance if item.importance is not None else item.weight
    return fields | ({} if importance is None else {"importance": importance})


def _claim(item: RubricItem) -> dict[str, Any]:
    fields: dict[str, Any] = {"claim": item.text, "claim_id": item.item_id, "query_id": item.query_id}
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
