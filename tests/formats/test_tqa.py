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
from rubric_measures.formats.queries import read_tqa
from rubric_measures.types.entities import RubricItem


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
    bank = read_tqa(put(tmp_path, [lesson()]))
    assert dict(bank.items) == {
        "tqa2:L_0384": (
            RubricItem("NDQ_007535", "tqa2:L_0384", "Outer layer of the skin?", gold_answers=("epidermis",)),
        )
    }
    assert dict(bank.query_texts) == {"tqa2:L_0384": "the skin"}


def test_questions_without_choices_or_key(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    free = lesson(answerChoices={}, correctAnswer={"processedText": "epidermis"})
    assert [item.gold_answers for item in read_tqa(put(tmp_path, [free]))] == [("epidermis",)]
    with caplog.at_level(logging.WARNING, "rubric_measures"):
        bank = read_tqa(put(tmp_path, [lesson(correctAnswer={"processedText": "z"})]))
    assert [item.gold_answers for item in bank] == [()]
    assert len(caplog.messages) == 1 and "1 questions" in caplog.messages[0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "expected a JSON list of TQA lessons"),
        ({}, "Input should be a valid array"),
        ([lesson(), lesson()], "[1]: lesson 'tqa2:L_0384' comes twice"),
        ([lesson(beingAsked={})], "nonDiagramQuestions.NDQ_007535.beingAsked.processedText: required field is missing"),
        ([lesson(answerChoices=[1])], "NDQ_007535.answerChoices: Input should be an object"),
        ([{"globalID": 3}], "[0].globalID: Input should be a valid string"),
        (
            [{"globalID": "L", "lessonName": "x", "questions": {"nonDiagramQuestions": []}}],
            "nonDiagramQuestions: Input should be an object",
        ),
    ],
)
def test_wrong_files(tmp_path: Path, value: Any, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_tqa(put(tmp_path, value))
    assert message in str(caught.value)


VALID = json.dumps([lesson()]).encode()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(VALID) - 1), st.binary(max_size=3))
def test_mutated_files(tmp_path: Path, position: int, new: bytes) -> None:
    path = tmp_path / "tqa.json"
    path.write_bytes(VALID[:position] + new + VALID[position + 1 :])
    try:
        read_tqa(path)
    except InputError as error:
        assert len(str(error).splitlines()) == 1 and str(path) in str(error)
