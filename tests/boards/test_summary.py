"""Tests of lengths, and of what stands beside the runs of a leaderboard."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.base.tables import FORMS
from rubric_measures.cli import main
from rubric_measures.corpora.answers import Answer
from rubric_measures.corpora.pooling import pool
from rubric_measures.formats.leaderboards import read_leaderboard
from rubric_measures.measures.loading import lengths_of_records
from rubric_measures.records.models import load_graded, write_graded
from tests.example_records import write_all


def test_lengths_of_records_are_those_of_whole_answers(tmp_path: Path) -> None:
    answers = [Answer("q", "a", "One two. Three four five."), Answer("q", "b", "One two.")]
    write_graded(tmp_path / "records.jsonl", pool(answers, max_words=3))
    # b's answer is a's first passage, stored once.
    assert lengths_of_records(load_graded(tmp_path / "records.jsonl"), "") == {"a": {"q": 5}, "b": {"q": 2}}
    (tmp_path / "bare.jsonl").write_text('["q", [{"paragraph_id": "d", "text": "x"}]]\n')
    with pytest.raises(InputError, match="holds no rankings"):
        lengths_of_records(load_graded(tmp_path / "bare.jsonl"), "bare.jsonl")


def test_the_best_score_is_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line below says what it is where people read it, and it is not there where programs would rank it."""
    monkeypatch.chdir(write_all(tmp_path))
    score = ("leaderboard", "graded.jsonl.gz", "alpha.run", "beta.run", "--bank", "bank.jsonl", "-m")
    measures = ("RubricCover(rel=4)@2", "RubricQrels(measure='nDCG@10')")
    line = (
        "best possible: RubricCover(rel=4)@2 0.5000 (all graded passages together); "
        "RubricQrels(measure='nDCG@10') 0.6667 (the best ranking)"
    )
    for form in FORMS:
        assert main([*score, *measures, "--format", form]) == 0
        out = capsys.readouterr().out
        assert "_overall_" not in out.replace("\\", "")
        assert (line in out) == (form in ("text", "markdown", "latex"))
        assert ('"best"' in out) == (form == "json")
    assert main([*score, measures[0], "--format", "json", "--output", "board.json"]) == 0
    assert main(["convert", "board.json", "--to", "leaderboard", "-o", "here.txt"]) == 0
    best = [(row.query_id, row.value) for row in read_leaderboard("board.json").best]
    assert best == [("q1", 0.5), ("q2", 1.0), ("q3", 0.0), ("all", 0.5)]
    assert read_leaderboard("board.json").run_ids == ("alpha", "beta")
