"""TQA lessons: a manual test bank with an answer key, from the Textbook Question Answering collection's JSON.

Source: Kembhavi et al., "Are You Smarter Than A Sixth Grader?", CVPR 2017; used as a test bank by EXAM++, section 5.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from rubric_measures.base.entities import RubricItem, TestBank
from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import path_name, read_text
from rubric_measures.base.json_models import parse_json
from rubric_measures.formats.bank import BankEntry, bank_entries
from rubric_measures.formats.base import Format, Head, PathName

__all__ = ["TQA", "read_tqa"]

_LOG = logging.getLogger("rubric_measures")


def read_tqa(path: str | os.PathLike[str]) -> TestBank:
    """The multiple-choice questions (without diagrams) of TQA lessons, with the right choice as the gold answer.

    The query is the lesson (`tqa2:` + globalID, text lessonName), the item id the question's own (NDQ_…). A question
    without choices has its correctAnswer as gold answer; one whose correctAnswer names no choice has none (counted).

    Raises:
        InputError: the file cannot be opened.
        FormatError: it is not a list of lessons, or a field is missing; names the lesson and the question.
    """
    name = path_name(path)
    lessons = parse_json(read_text(path), path=name)
    if not isinstance(lessons, list) or not lessons:
        raise FormatError("expected a JSON list of TQA lessons", path=name)
    items: dict[str, tuple[RubricItem, ...]] = {}
    texts: dict[str, str] = {}
    keyless = 0
    for index, lesson in enumerate(lessons):
        where = f"[{index}]"
        query_id = "tqa2:" + _text(lesson, ("globalID",), name, where)
        if query_id in items:
            raise FormatError(f"lesson {query_id!r} comes twice", path=name, field=where)
        texts[query_id] = _text(lesson, ("lessonName",), name, where)
        questions = _get(lesson, ("questions", "nonDiagramQuestions"), name, where)
        if not isinstance(questions, dict):
            raise FormatError(
                "expected an object of questions", path=name, field=f"{where}.questions.nonDiagramQuestions"
            )
        made = []
        for item_id, question in questions.items():
            place = f"{where}.questions.nonDiagramQuestions.{item_id}"
            gold = _gold_answer(question, name, place)
            keyless += gold is None
            text = _text(question, ("beingAsked", "processedText"), name, place)
            made.append(RubricItem(item_id, query_id, text, gold_answers=() if gold is None else (gold,)))
        items[query_id] = tuple(made)
    if keyless:
        _LOG.warning(
            "%s: %d questions have a correct answer that is none of their choices; no gold answer", name, keyless
        )
    return TestBank(items, texts)


def _gold_answer(question: Any, name: str, where: str) -> str | None:
    key = _text(question, ("correctAnswer", "processedText"), name, where)
    choices = question.get("answerChoices")
    if not choices:
        return key
    if not isinstance(choices, dict):
        raise FormatError("expected an object of choices", path=name, field=f"{where}.answerChoices")
    if key not in choices:
        return None
    return _text(choices[key], ("processedText",), name, f"{where}.answerChoices.{key}")


def _get(value: Any, keys: tuple[str, ...], name: str, where: str) -> Any:
    for key in keys:
        where = f"{where}.{key}"
        if not isinstance(value, dict) or key not in value:
            raise FormatError("required field is missing", path=name, field=where)
        value = value[key]
    return value


def _text(value: Any, keys: tuple[str, ...], name: str, where: str) -> str:
    found = _get(value, keys, name, where)
    if not isinstance(found, str):
        raise FormatError("expected text", path=name, field=".".join((where, *keys)))
    return found


def _read_entries(path: PathName) -> list[BankEntry]:
    return bank_entries(read_tqa(path), test_collection="tqa2")


def _is_tqa(head: Head) -> bool:
    if head.goes_on:
        return '"globalID"' in head.line + head.rest
    lessons = head.value if isinstance(head.value, list) else []
    return bool(lessons) and isinstance(lessons[0], dict) and "globalID" in lessons[0]


TQA = Format("bank", "TQA lessons with answer keys", _read_entries, recognise=_is_tqa)
