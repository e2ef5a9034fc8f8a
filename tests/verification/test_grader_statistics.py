"""Tests of the grader statistics: histogram, statuses, cut passages, replicates, agreement by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubric_measures.base.tables import Undefined
from rubric_measures.cli import main
from rubric_measures.measures.grade_sets import Grader
from rubric_measures.records.models import GradeSetKey, load_graded
from rubric_measures.verification.graders import GraderPair, grader_report
from tests.example_records import grade_set, passage, write_lines

PROMPT = "QuestionSelfRatedUnanswerablePromptWithChoices"
MODEL, OTHER = GradeSetKey("model", PROMPT, "question"), GradeSetKey("other", PROMPT, "question")
DRAWN = {
    **grade_set({"q1/a": 5, "q1/b": 4}),
    "details": {"q1/a": {"replicates": [[5, "5"], [5, "5"], [4, "4"], [0, "0"]]}, "q1/b": {"chunks": []}},
}
LINES = [
    [
        "q1",
        [
            passage("q1", "d1", [DRAWN, grade_set({"q1/a": 5, "q1/b": 1}, llm="other")]),
            passage(
                "q1",
                "d2",
                [
                    grade_set({"q1/a": 0, "q1/b": 5}, status={"q1/b": "truncated", "q1/c": "refused"}),
                    grade_set({"q1/a": 1, "q1/b": 5}, llm="other"),
                ],
            ),
        ],
    ]
]


def test_counts_and_agreement_by_hand(tmp_path: Path) -> None:
    report = grader_report(load_graded(write_lines(tmp_path / "graded.jsonl", LINES)))
    assert list(report.graders) == [MODEL, OTHER]
    model = report.graders[MODEL]
    assert model.grades == {5: 2, 4: 1, 0: 1}
    # d1: a, b; d2: a graded, b graded on a cut text, c refused.
    assert model.statuses == {"graded": 3, "truncated": 1, "refused": 1}
    assert (model.passages, model.truncated, model.replicated) == (2, 1, 1)
    # Of four draws of q1/a two are not 5.
    assert model.flip_rate == 0.5
    assert report.graders[OTHER].flip_rate is None
    # Both graded (5, 5), (4, 1), (0, 1), (5, 5): 2 of 4 equal, mean distance (3 + 1) / 4; expected agreement
    # 5: 2/4 · 2/4, nothing else on both sides, so κ = (1/2 − 1/4) / (1 − 1/4) = 1/3.
    (pair,) = report.pairs
    assert pair[:5] == GraderPair(MODEL, OTHER, 4, 2, 1.0, None)[:5]
    assert pair.kappa == pytest.approx(1 / 3)
    assert [(row.doc_id, row.item_id, row.spread) for row in report.disagreements] == [
        ("d1", "q1/b", 3),
        ("d2", "q1/a", 1),
    ]
    assert list(grader_report(load_graded(tmp_path / "graded.jsonl"), Grader(model="other")).graders) == [OTHER]


def test_ratings_and_verdicts_are_not_compared(tmp_path: Path) -> None:
    verdicts = {**grade_set({"q1/a": 1}, prompt="Verified"), "self_ratings": None}
    lines = [["q1", [passage("q1", "d1", [grade_set({"q1/a": 5}), verdicts])]]]
    report = grader_report(load_graded(write_lines(tmp_path / "graded.jsonl", lines)))
    assert [pair[2:] for pair in report.pairs] == [(1, 0, *[Undefined("scales 0 to 5 and 0 to 1")] * 2)]
    assert report.disagreements == ()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graded = write_lines(tmp_path / "graded.jsonl", LINES)
    assert main(["verify", "graders", str(graded), "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["report"] for row in rows] == ["graders"] * 2 + ["grader-agreement"] + ["disagreements"] * 2
    assert (rows[0]["grade_5"], rows[0]["refused"], rows[0]["flip_rate"]) == (2, 1, 0.5)
    assert (rows[1]["flip_rate"], rows[1]["reasons"]) == (None, {"flip_rate": "no replicates"})
    assert main(["verify", "graders", str(graded), "--grader", "nobody"]) == 2
