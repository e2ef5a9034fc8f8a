"""Tests of TQA lessons as a test bank."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubric_measures.base.errors import FormatError, InputError
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
    assert len(caplog.messages) == 1 and "1 questions" in caplog.messages[0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "holds no TQA lessons"),
        ({}, "globalID: expected globalID"),
        ([lesson(), {**lesson(), "lessonName": "hair"}], "L_0384 stands in line 1 already; keep one"),
        ([lesson(beingAsked={})], "nonDiagramQuestions.NDQ_007535.beingAsked.processedText: is empty"),
        ([lesson(answerChoices=[1])], "NDQ_007535.answerChoices: expected an object of choices"),
        ([{**lesson(), "globalID": [3]}], "globalID: expected a text"),
        (
            [{"globalID": "L", "lessonName": "x", "questions": {"nonDiagramQuestions": 5}}],
            "nonDiagramQuestions: expected an object or a list",
        ),
    ],
)
def test_wrong_files(tmp_path: Path, value: Any, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        load_bank(put(tmp_path, value))
    assert message in str(caught.value)


VALID = json.dumps([lesson()]).encode()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(VALID) - 1), st.binary(max_size=3))
def test_mutated_files(tmp_path: Path, position: int, new: bytes) -> None:
    path = tmp_path / "tqa.json"
    path.write_bytes(VALID[:position] + new + VALID[position + 1 :])
    try:
        load_bank(path)
    except InputError as error:
        assert len(str(error).splitlines()) == 1 and str(path) in str(error)
