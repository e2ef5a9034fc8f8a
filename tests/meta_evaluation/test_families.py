"""Families of models, and the runs that relatives of the grader made."""

from __future__ import annotations

from pathlib import Path

import pytest

import rubric_measures
from rubric_measures.base.errors import UnknownNameError
from rubric_measures.cli import main
from rubric_measures.meta_evaluation.families import family_of, relatives
from tests.example_records import grade_set, passage, write_lines


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("openai:gpt-4.1-mini", "gpt"),
        ("o3-mini", "gpt"),
        ("litellm:anthropic/claude-sonnet-4", "claude"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama"),
        ("llama3:70b", "llama"),
        ("hf:google/flan-t5-large", "flan-t5"),
        ("Qwen/QwQ-32B", "qwen"),
        ("bm25", None),
        ("oracle", None),
        ("phix", None),
    ],
)
def test_families(model: str, family: str | None) -> None:
    assert family_of(model) == family


def test_unknown_names_claim_nothing() -> None:
    assert relatives({"a": "mine", "b": "gpt-4o", "c": "gpt-5"}, ["mine", "openai/gpt-4o-mini"]) == {"gpt": ["b", "c"]}


def test_a_board_names_relatives_of_its_grader(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graded = grade_set({"q1/a": 3}, llm="gpt-4o")
    write_lines(tmp_path / "g.jsonl", [["q1", [passage("q1", "d1", [graded], {"one": 1, "two": 1})]]])
    board = rubric_measures.score(tmp_path / "g.jsonl", measures="RubricCover(rel=3)@5")
    assert board.relatives({"one": "gpt-4.1", "two": "bm25"}) == {"gpt": ["one"]}
    assert board.relatives({"two": "bm25"}) == {}
    with pytest.raises(UnknownNameError, match="unknown run 'three'"):
        board.relatives({"three": "gpt-4.1"})
    (tmp_path / "models.txt").write_text("one gpt-4.1\ntwo bm25\n", encoding="utf-8")
    command = ["leaderboard", str(tmp_path / "g.jsonl"), "-m", "RubricCover(rel=3)@5"]
    assert main([*command, "--made-by", str(tmp_path / "models.txt")]) == 0
    assert "1 of 2 runs (such as one) are made by models of the grader's family, gpt" in capsys.readouterr().err
