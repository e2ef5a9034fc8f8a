"""Assessments of DRAGUN's reports: grades of short answers, and with the rubrics the scores of the track."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures.cli import main
from rubric_measures.formats import detect_format
from tests import matrices
from tests.shared_data import shared_data

ASSESSMENTS = """topic_id,run_tag,answer_id,auto_assessment,auto_rationale
t1,one,na-1,supports,It says so.
t1,one,na-2,partial,"It says a part, no more."
t1,one,na-3,contradicts,It says the opposite.
t1,one,na-4,none,none
t1,two,na-1,none,none
t1,two,na-2,none,none
t1,two,na-3,supports,It says so.
t1,two,na-4,contradicts,It says the opposite.
"""
QUESTIONS = [("A: Have to Know", ("na-1", "na-2", "na-3")), ("C: Nice to Know", ("na-4",))]


def rubric(topic: str, questions: list[tuple[str, tuple[str, ...]]]) -> dict[str, Any]:
    asked = [
        {
            "question_id": f"{topic}-{number}", "question_text": f"Question {number}?", "importance": importance,
            "short_answers": [{"answer_id": one, "answer_text": f"Answer {one}", "references": []} for one in answers],
        }
        for number, (importance, answers) in enumerate(questions, 1)
    ]  # fmt: skip
    return {"topic_id": topic, "rubrics": asked}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("assessed.csv").write_text(ASSESSMENTS)
    # The files of the track hold a topic each; joined they are one file.
    Path("rubrics.json").write_text(json.dumps(rubric("t1", QUESTIONS), indent=2))
    return tmp_path


def test_the_scores_of_the_track_need_no_script(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert detect_format("rubrics.json") == "dragun:rubrics"
    assert main(["leaderboard", "assessed.csv", "--bank", "rubrics.json", "--no-overall", "--format", "json"]) == 0
    runs = {run["run_id"]: run["measures"] for run in json.loads(capsys.readouterr().out)["runs"]}
    found = {run: [cell["mean"] for cell in of.values()] for run, of in runs.items()}
    # one: supportive (4 · (1 + ½ + 0) / 3 + 1 · 0) / 5, contradictory 4 · ⅓ / 5; two: 4 · ⅓ / 5, and 1 · 1 / 5.
    assert found == {"one": pytest.approx([0.4, 4 / 15]), "two": pytest.approx([4 / 15, 0.2])}
    # Without the rubrics nobody knows the question of an answer, and what it weighs.
    assert main(["leaderboard", "assessed.csv", "-m", "WeightedCover"]) == 2
    assert "needs the weight of every item" in capsys.readouterr().err
    assert main(["leaderboard", "assessed.csv", "--no-overall", "--format", "tsv"]) == 0
    assert "one\t0.3750" in capsys.readouterr().out
    # As people wrote them for the track.
    rows = [row.split(",") for row in ASSESSMENTS.splitlines()[1:]]
    human = "".join(f"{row[0]},{row[1]},t1-1,{row[2]},{row[3]}\n" for row in rows)
    Path("human.csv").write_text(f"topic_id,run_tag,question_id,answer_id,annotation\n{human}")
    people, grades = (rubric_measures.load(name, "rubrics.json").queries for name in ("human.csv", "assessed.csv"))
    assert [one.digest for one in people.values()] == [one.digest for one in grades.values()]


def test_a_label_that_nobody_defined_failed(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    Path("assessed.csv").write_text(ASSESSMENTS.replace("partial,", "partly,"))
    [query] = rubric_measures.load("assessed.csv").queries.values()
    assert matrices.lost(query) == {"one": {"t1/na-2"}}
    assert "1 label that nobody defined ('partly' 1) counts as failed" in caplog.text


def test_what_the_organisers_published() -> None:
    path = shared_data("conformance") / "dragun.report-assessments.csv"
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    grades = rubric_measures.load(path)
    of = {"supports": 2, "partial": 1, "contradicts": -2, "none": 0}
    for query_id, query in grades.queries.items():
        assert matrices.cells(query) == {
            run: {
                f"{query_id}/{row['answer_id']}": of[row["auto_assessment"]]
                for row in rows
                if (row["topic_id"], row["run_tag"]) == (query_id, run)
            }
            for run in query.docs
        }
    assert sum(len(query.items) for query in grades.queries.values()) == 39


# As the track writes them: two questions a row, by their places in the rubric and in the run.
COMPARED = """topic_id,rubric_question_rank,run_tag,run_question_rank,assessment,rationale
t1,1,a,1,very-similar,The same.
t1,2,a,1,different,"No, another."
t1,1,a,2,similar,Near.
t1,2,a,2,similar,Near.
t1,1,b,1,very-different,No.
t1,2,b,1,different,No.
"""


def test_the_questions_of_a_rubric_are_a_bank_for_runs_of_questions(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", "rubrics.json", "--from", "dragun:questions", "--to", "bank", "-o", "asked.jsonl"]) == 0
    bank = rubric_measures.load_bank("asked.jsonl")
    assert [(item.item_id, item.kind, item.text, item.weight, len(item.gold_answers)) for item in bank] == [
        ("t1/1", "question", "Question 1?", 4, 3), ("t1/2", "question", "Question 2?", 1, 1),
    ]  # fmt: skip
    Path("run.tsv").write_text("t1\torg\ta\t1\tQuestion 2, please?\n")
    Path("replies.jsonl").write_text('{"contains": "Question 2?", "reply": "Same"}\n{"reply": "Different"}\n')
    assert main(["pool", "run.tsv", "-o", "p.jsonl"]) == 0
    Path("topics.json").write_text('{"t1": "An article."}')
    asked = ["--bank", "asked.jsonl", "--query-texts", "topics.json"]
    grade = ["grade", "p.jsonl", *asked, "--prompt", "SameQuestion", "--model"]
    assert main([*grade, "scripted:replies.jsonl", "-o", "g.jsonl"]) == 0
    board = rubric_measures.score(rubric_measures.load("g.jsonl", "asked.jsonl"), measures=["WeightedCover@10"])
    assert [cell.mean for cell in board.cells["a"].values()] == [pytest.approx(1 / 5)]


def test_assessments_of_questions_are_grades(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("compared.csv").write_text(COMPARED)
    assert detect_format("compared.csv") == "dragun:question-assessments"
    assert main(["leaderboard", "compared.csv"]) == 2
    assert "its format is dragun:question-assessments, which `convert` may turn into another" in capsys.readouterr().err
    assert main(["convert", "compared.csv", "--to", "csv", "-o", "grades.csv"]) == 0
    assert main(["convert", "rubrics.json", "--from", "dragun:questions", "--to", "bank", "-o", "asked.jsonl"]) == 0
    asked = [
        "leaderboard",
        "grades.csv",
        "--bank",
        "asked.jsonl",
        "--grader",
        "scale=0-2:2:1",
        "-m",
        "WeightedCover@10",
    ]
    assert main([*asked, "--no-overall", "--format", "json"]) == 0
    runs = {run["run_id"]: run["measures"] for run in json.loads(capsys.readouterr().out)["runs"]}
    # The best of a run's questions counts for each of the rubric: (4 · 1 + 1 · ½) / 5.
    assert {run: [cell["mean"] for cell in of.values()] for run, of in runs.items()} == {"a": [0.9], "b": [0.0]}
    Path("compared.csv").write_text(COMPARED.replace(",similar", ",alike", 1))
    assert main(["convert", "compared.csv", "--to", "csv", "-o", "grades.csv"]) == 2
    assert "compared.csv:4: assessment: expected very-similar, similar" in capsys.readouterr().err
