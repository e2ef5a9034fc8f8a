"""Tests of cutting answers into passages, and of reading them from reports."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubric_measures.answers import Answer, Segment, answer_segments, read_answers, split_answer
from rubric_measures.errors import FormatError, InputError

SHARED = Path(os.environ.get("RUBRIC_MEASURES_SHARED", Path(__file__).parents[2] / "shared")) / "data"


@pytest.mark.parametrize(
    ("text", "max_words", "passages"),
    [
        ("One two. Three four five. Six.", 5, ["One two. Three four five.", "Six."]),
        ("One two. Three four five. Six.", 4, ["One two.", "Three four five. Six."]),
        ("One two. Three four five. Six.", 400, ["One two. Three four five. Six."]),
        ("One two? Three!\n\nFour five", 3, ["One two? Three!", "Four five"]),
        # Neither abbreviations nor a stop before a small letter end a sentence.
        ("Ask Dr. Who now. Not J. Smith.", 4, ["Ask Dr. Who now.", "Not J. Smith."]),
        ("See e.g. this one. Then stop.", 4, ["See e.g. this one.", "Then stop."]),
        ('He said "stop." Then he left.', 3, ['He said "stop."', "Then he left."]),
        ("a heading\n\nand text below", 3, ["a heading", "and text below"]),
        # A sentence that is too long is cut at words, and the rest of it stays with what follows.
        ("a b c d e f g. H i.", 3, ["a b c", "d e f", "g. H i."]),
        ("Go. a b c d. E.", 3, ["Go. a b", "c d. E."]),
        ("  \n ", 3, []),
        ("", 3, []),
    ],
)
def test_split(text: str, max_words: int, passages: list[str]) -> None:
    assert split_answer(text, max_words) == passages


@given(st.text("ab .!?\n。\"'", max_size=80), st.integers(1, 6))
def test_no_word_is_lost_and_none_is_too_long(text: str, max_words: int) -> None:
    passages = split_answer(text, max_words)
    assert "".join("".join(passages).split()) == "".join(text.split())
    assert all(0 < len(passage.split()) <= max_words for passage in passages)


def test_no_passages_of_no_words() -> None:
    with pytest.raises(InputError, match="passages of 0 words"):
        split_answer("a", 0)


def test_segments_keep_the_order() -> None:
    answers = [Answer("q1", "r", "A b. C d."), Answer("q2", "r", "")]
    assert list(answer_segments(answers, 2)) == [Segment("q1", "r", 1, "A b."), Segment("q1", "r", 2, "C d.")]


def put(tmp_path: Path, *reports: Any) -> Path:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(report) + "\n" for report in reports))
    return path


def test_forms_of_reports(tmp_path: Path) -> None:
    path = put(
        tmp_path,
        {"metadata": {"run_id": "r", "topic_id": 7}, "answer": [{"text": "A."}, {"text": "B."}]},
        {"metadata": {"run_id": "r", "narrative_id": "8"}, "responses": [{"text": "C.", "citations": []}]},
        {"run_id": "r", "topic_id": "9", "answer": []},
    )
    assert read_answers(path) == [Answer("7", "r", "A. B."), Answer("8", "r", "C."), Answer("9", "r", "")]


GOOD = {"metadata": {"run_id": "r", "topic_id": "1"}, "answer": [{"text": "A."}]}


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        ([], "holds no answers"),
        ([GOOD, GOOD], "answers.jsonl:2: run 'r' has answered query '1' in line 1"),
        ([{**GOOD, "metadata": {"topic_id": "1"}}], "answers.jsonl:1: metadata.run_id: expected text in run_id"),
        ([{**GOOD, "metadata": {"run_id": "r"}}], "answers.jsonl:1: metadata.topic_id: expected text in topic_id"),
        ([{**GOOD, "answer": "A."}], "answers.jsonl:1: answer: expected a list"),
        ([{**GOOD, "answer": ["A."]}], "answers.jsonl:1: answer[0].text: expected text"),
        ([3], "answers.jsonl:1: expected an object"),
    ],
)
def test_wrong_reports(tmp_path: Path, reports: list[Any], message: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_answers(put(tmp_path, *reports))
    assert message in str(caught.value)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(json.dumps(GOOD)) - 1), st.binary(max_size=3))
def test_mutated_reports(tmp_path: Path, position: int, new: bytes) -> None:
    data = json.dumps(GOOD).encode()
    path = tmp_path / "answers.jsonl"
    path.write_bytes(data[:position] + new + data[position + 1 :])
    try:
        read_answers(path)
    except InputError as error:
        assert len(str(error).splitlines()) == 1 and str(path) in str(error)


def test_real_reports() -> None:
    path = SHARED / "kiddie" / "kiddie.run1.jsonl"
    if not path.exists():
        pytest.skip("the shared data folder is absent")
    first = read_answers(path)[0]
    assert (first.query_id, first.run_id) == ("leaf", "run1")
    assert first.text.startswith("Leaves change color in fall because of a green pigment called chlorophyll. When days")
