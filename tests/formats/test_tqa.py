"""Tests of TQA lessons as a test bank."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.formats.banks import TQA, bank_of_entries
from rubric_measures.types.entities import RubricItem, TestBank


def load_bank(path: Path) -> TestBank:
    return bank_of_entries(TQA.read(path), str(path))


def lesson(**question: Any) -> dict[str, Any]:
    """A lesson with one question."""
    base = {
        "beingAsked": {"processedText": "Outer layer of the skin?"},
        "answerChoices": {"a": {"processedText": "dermis"}, "b": {"processedText": "epidermis"}},
        "correctAnswer": {"processedText": "b"},
    }
    questions = {"nonDiagramQuestions": {"NDQ_007535": {**base, **question}}}
    return {"globalID": "L_0384", "lessonName": "the skin", "questions": questions}


def put(tmp_path: Path, value: Any) -> Path:
    path = tmp_path / "tqa.json"
    path.write_text(json.dumps(value))
    return path


def test_the_right_choice_is_the_gold_answer(tmp_path: Path) -> None:
    bank = load_bank(put(tmp_path, [lesson()]))
    assert dict(bank.items) == {
        "tqa2:L_0384": (
            RubricItem("NDQ_007535", "tqa2:L_0384", "Outer layer of the skin?", gold_answers=("epidermis",)),
        )
    }
    assert dict(bank.query_texts) == {"tqa2:L_0384": "the skin"}


def test_questions_without_choices_or_key(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    free = lesson(answerChoices={}, correctAnswer={"processedText": "epidermis"})
    assert [item.gold_answers for item in load_bank(put(tmp_path, [free]))] == [("epidermis",)]
    with caplog.at_level(logging.WARNING, "rubric_measures"):
        bank = load_bank(put(tmp_path, [lesson(correctAnswer={"processedText": "z"})]))
    assert [item.gold_answers for item in bank] == [()]
    assert len(caplog.messages) == 1 and "1 question" in caplog.messages[0]
