"""Reading test banks of any format through the public API."""

from __future__ import annotations

import json
from io import BytesIO, StringIO
from pathlib import Path

import pytest

import rubric_measures
from rubric_measures.base.errors import FormatError, InputError
from tests.example_records import write_all

NUGGETS = {"qid": "q1", "query": "Why?", "nuggets": [{"text": "It is blue.", "importance": "vital"}, {"text": "Sky."}]}


def test_the_workbench_s_bank(tmp_path: Path) -> None:
    write_all(tmp_path)
    bank = rubric_measures.load_bank(tmp_path / "bank.jsonl")
    assert repr(bank) == "TestBank(6 items of 3 queries)"
    with open(tmp_path / "bank.jsonl", "rb") as stream:
        assert rubric_measures.load_bank(stream) == bank


def test_nuggets_as_a_bank(tmp_path: Path) -> None:
    path = tmp_path / "nuggets.jsonl"
    path.write_text(json.dumps(NUGGETS) + "\n")
    bank = rubric_measures.load_bank(path)
    assert [(item.text, item.importance) for item in bank] == [("It is blue.", "vital"), ("Sky.", None)]
    assert rubric_measures.load_bank(BytesIO(path.read_bytes())) == bank


def test_errors_name_what_was_given(tmp_path: Path) -> None:
    write_all(tmp_path)
    with pytest.raises(FormatError, match=r"^/.*graded.jsonl.gz:1: expected a test bank entry"):
        rubric_measures.load_bank(tmp_path / "graded.jsonl.gz")
    with pytest.raises(FormatError, match=r"^open file:1: "):
        rubric_measures.load_bank(StringIO("no bank\n"))
    with pytest.raises(InputError, match=r"^nowhere.jsonl: cannot be read"):
        rubric_measures.load_bank("nowhere.jsonl")
