"""TQA lessons: a manual test bank with an answer key, from the Textbook Question Answering collection's JSON.

Source: Kembhavi et al., "Are You Smarter Than A Sixth Grader?", CVPR 2017; used as a test bank by EXAM++, section 5.
"""

from __future__ import annotations

import logging
import os

from pydantic import Field, TypeAdapter

from rubric_measures.base.errors import FormatError, naming
from rubric_measures.base.files import path_name, read_text
from rubric_measures.base.json_files import Record, check_keys, validate_line
from rubric_measures.formats.bank import bank_entries
from rubric_measures.formats.base import Format, Head
from rubric_measures.types.entities import RubricItem, TestBank

__all__ = ["TQA", "read_tqa"]

_LOG = logging.getLogger("rubric_measures")


class _Words(Record):
    text: str = Field(alias="processedText")


class _Question(Record):
    asked: _Words = Field(alias="beingAsked")
    answer: _Words = Field(alias="correctAnswer")
    choices: dict[str, _Words] | None = Field(default=None, alias="answerChoices")

    @property
    def gold_answer(self) -> str | None:
        """The right choice, or what the key says where there are no choices; None for a key that names no choice."""
        key = self.answer.text
        if not self.choices:
            return key
        return self.choices[key].text if key in self.choices else None


class _Questions(Record):
    without_diagrams: dict[str, _Question] = Field(alias="nonDiagramQuestions")


class _Lesson(Record):
    lesson_id: str = Field(alias="globalID")
    name: str = Field(alias="lessonName")
    questions: _Questions


_LESSONS = TypeAdapter(list[_Lesson])


def read_tqa(path: str | os.PathLike[str]) -> TestBank:
    """The multiple-choice questions (without diagrams) of TQA lessons, with the right choice as the gold answer.

    The query is the lesson (`tqa2:` + globalID, text lessonName), the item id the question's own (NDQ_…). A question
    without choices has its correctAnswer as gold answer; one whose correctAnswer names no choice has none (counted).

    Raises:
        InputError: the file cannot be opened.
        FormatError: it is not a list of lessons, or a field is missing; names the lesson and the question.
    """
    name = path_name(path)
    content = read_text(path)
    lessons = validate_line(_LESSONS, content, path=name, line=0)
    check_keys(content, path=name)
    if not lessons:
        raise FormatError("expected a JSON list of TQA lessons", path=name)
    items: dict[str, tuple[RubricItem, ...]] = {}
    texts: dict[str, str] = {}
    keyless = 0
    for index, lesson in enumerate(lessons):
        query_id = f"tqa2:{lesson.lesson_id}"
        if query_id in items:
            raise FormatError(f"lesson {query_id!r} comes twice", path=name, field=f"[{index}]")
        texts[query_id] = lesson.name
        made = []
        for item_id, question in lesson.questions.without_diagrams.items():
            gold = question.gold_answer
            keyless += gold is None
            text = question.asked.text
            if not text.strip():
                where = f"[{index}].questions.nonDiagramQuestions.{item_id}.beingAsked.processedText"
                raise FormatError("is blank; expected a question", path=name, field=where)
            made.append(RubricItem(item_id, query_id, text, gold_answers=() if gold is None else (gold,)))
        items[query_id] = tuple(made)
    if keyless:
        _LOG.warning(
            "%s: %d questions have a correct answer that is none of their choices; no gold answer", name, keyless
        )
    with naming(path):
        return TestBank(items, texts)


def _is_tqa(head: Head) -> bool:
    if head.goes_on:
        return '"globalID"' in head.line + head.rest
    lessons = head.value if isinstance(head.value, list) else []
    return bool(lessons) and isinstance(lessons[0], dict) and "globalID" in lessons[0]


TQA = Format(
    "bank",
    "TQA lessons with answer keys",
    lambda path: bank_entries(read_tqa(path), test_collection="tqa2"),
    recognise=_is_tqa,
)
