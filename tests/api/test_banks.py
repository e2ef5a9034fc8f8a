"""Reading test banks of any format through the public API."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

import rubric_measures
from rubric_measures.base.errors import FormatError, InputError
from tests.example_records import write_all


def test_errors_name_what_was_given(tmp_path: Path) -> None:
    write_all(tmp_path)
    with pytest.raises(InputError, match=r"^/.*graded.jsonl.gz: is no test bank: these graded records name"):
        rubric_measures.load_bank(tmp_path / "graded.jsonl.gz")
    with pytest.raises(FormatError, match=r"^open file:1: "):
        rubric_measures.load_bank(StringIO("no bank\n"))
    with pytest.raises(InputError, match=r"^nowhere.jsonl: cannot be read"):
        rubric_measures.load_bank("nowhere.jsonl")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no bank\n", "lacks query_id or qid or question_id or topic_id"),
        ("\x00\x01", "is no text in UTF-8; expected items"),
        ('{"a": 1}\n', "expected a text; found '1'"),
        ("q1 0 d1 1\n", "its format is qrels"),
    ],
)
def test_what_is_no_bank_is_told_what_is(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        rubric_measures.load_bank(path)
    assert str(caught.value).startswith(f"{path}:")
    assert f"is no test bank ({problem}" in str(caught.value)


def test_a_slip_in_a_bank_is_still_named(tmp_path: Path) -> None:
    path = tmp_path / "bank.jsonl"
    path.write_text('{"query_id": "q1", "items": 5}\n')
    with pytest.raises(FormatError, match=r"bank.jsonl:1: items: expected a list; found '5'$"):
        rubric_measures.load_bank(path)
    path.write_text('{"query_id": "q1", "items": []}\n{"query_id": \n')
    with pytest.raises(FormatError, match=r"bank.jsonl:2: is not JSON: EOF while parsing a value at column \d+$"):
        rubric_measures.load_bank(path)


@pytest.mark.parametrize("text", ["no grades\n", '{"a": 1}\n', '{"query_id": "q1", "items": []}\n', "\x00\x01\n"])
def test_what_cannot_be_scored_is_told_what_can(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        rubric_measures.load(path)
    assert str(caught.value).startswith(f"{path}:1: holds no grades: ")
    assert str(caught.value).endswith(
        "; accepted: records, assignments, ragdoll:graded, dragun:assessments, support-labels, qrels, item-qrels, csv"
    )
    path.write_text("q1 0 d1 1\nq1 0 d2\n")
    with pytest.raises(FormatError, match=r"file:2: has 3 columns; expected 4: query_id iteration doc_id relevance"):
        rubric_measures.load(path)
