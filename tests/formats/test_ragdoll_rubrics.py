"""Rubrics of RAGDoll and answers graded by them: scored in our way and in its own, converted, graded, wrong lines."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures.cli import main
from rubric_measures.formats import detect_format
from rubric_measures.formats.banks import load_bank
from rubric_measures.formats.leaderboards import read_leaderboard
from rubric_measures.formats.queries import read_queries
from tests.example_records import write_lines as write
from tests.shared_data import shared_data

# (text, type, tier, weight, source nugget)
CRITERIA = [
    ("Names the cause", "explicit", "mandatory", 5, "n0"),
    ("Weighs both sides", "synthesis", "optional", 2, None),
    ("Cites a source", "references", "optional", 2, None),
    ("Adds advertisements", "communication", "optional", -1, None),
]
FULL, PART, NOT, FAILED = "satisfied", "partially_satisfied", "not_satisfied", "failed"


def criteria(verdicts: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    names = ("text", "type", "tier", "weight", "source_nugget")
    made = [dict(zip(names, one, strict=True)) for one in CRITERIA]
    return [{**one, "verdict": verdict} for one, verdict in zip(made, verdicts, strict=True)] if verdicts else made


def graded(run_id: str, qid: str, *verdicts: str, **changes: Any) -> dict[str, Any]:
    return {
        "task_id": f"{run_id}:{qid}", "status": "completed", "qid": qid, "run_id": run_id, "query": f"What is {qid}?",
        "answer_text": f"{run_id} answers {qid}.", "response_length": 3.0,
        "criteria": criteria(verdicts) if verdicts else [], **changes,
    }  # fmt: skip


@pytest.fixture
def rubric(tmp_path: Path) -> Path:
    lines = [
        {"task_id": qid, "status": "completed", "qid": qid, "query": f"What is {qid}?", "criteria": criteria()}
        for qid in ("q1", "q2")
    ]
    return write(tmp_path / "rubric.jsonl", lines)


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    lines = [
        graded("x", "q1", PART, FULL, NOT, FULL), graded("x", "q2", FULL, FULL, FULL, NOT),
        graded("y", "q1", FULL, NOT, FAILED, NOT), graded("y", "q2"),
    ]  # fmt: skip
    return write(tmp_path / "graded.jsonl", lines)


def scores(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[dict[str, tuple[str, ...]], str]:
    measures = ["-m", "WeightedCover", "WeightedCover(strict=True)", "--no-overall", "--format", "json"]
    assert main(["leaderboard", *map(str, arguments), *measures]) in (0, 1)
    captured = capsys.readouterr()
    runs = json.loads(captured.out)["runs"]
    return {
        run["run_id"]: tuple(f"{cell['mean']:.6f}" for cell in run["measures"].values()) for run in runs
    }, captured.err


def test_ours_tells_what_failed_from_what_is_not_satisfied(answers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Weights 5 + 2 + 2 = 9. x: q1 (2.5 + 2 − 1) / 9 = 3.5/9, strict (2 − 1) / 9; q2 9/9. Means 12.5/18 and 10/18.
    found, _ = scores(capsys, answers, "--on-failed", "expected")
    assert found["x"] == ("0.694444", "0.555556")
    # y: nobody judged q2, and one criterion of q1; the other weights are 5 + 2, of which 5 are met.
    assert found["y"] == ("0.714286", "0.714286")
    # Without a word about failures they are too many for a number.
    assert main(["leaderboard", str(answers)]) == 2
    assert "of the grades that WeightedCover" in capsys.readouterr().err
    # A query of which no task was completed has no value, and is not in the mean.
    lines = [graded("x", "q1", PART, FULL, NOT, FULL), graded("x", "q2", FULL, FULL, FULL, NOT, status="failed")]
    write(answers, lines)
    assert scores(capsys, answers, "--on-failed", "expected")[0] == {"x": ("0.388889", "0.111111")}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-m", "NuggetA"], "RAGDoll knows WeightedCover, WeightedCover(strict=True), not NuggetA"),
        (["--bank", "rubric.jsonl"], "ragdoll knows neither a bank nor facets nor lengths"),
        (["--on-failed", "zero"], "the other program counts failures in its own way"),
        (["--grader", "x"], "grader"),
    ],
)
def test_what_its_rule_does_not_know(
    more: list[str], message: str, answers: Path, rubric: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(rubric.parent)
    assert main(["leaderboard", str(answers), "--compat", "ragdoll", *more]) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_a_rubric_is_a_bank_and_comes_back(rubric: Path, tmp_path: Path) -> None:
    assert detect_format(rubric) == "ragdoll:rubric"
    bank = rubric_measures.load_bank(rubric)
    assert [(item.weight, item.facet_id) for item in bank.for_query("q1")] == [
        (5, "explicit"), (2, "synthesis"), (2, "references"), (-1, "communication"),
    ]  # fmt: skip
    assert bank.query_texts == {"q1": "What is q1?", "q2": "What is q2?"}
    steps = [("bank", "b.jsonl"), ("ragdoll:rubric", "again.jsonl"), ("rubrics", "r.jsonl")]
    before = rubric
    for to, name in steps:
        assert main(["convert", str(before), "--to", to, "-o", str(tmp_path / name)]) == 0
        before = tmp_path / name
    assert (tmp_path / "again.jsonl").read_text() == rubric.read_text()
    assert load_bank(tmp_path / "b.jsonl") == bank
    assert json.loads((tmp_path / "r.jsonl").read_text().splitlines()[0])["rubrics"][0] == {
        "criterion": "Names the cause", "weight": 5.0, "axis": "explicit", "tier": "mandatory", "source_nugget": "n0",
    }  # fmt: skip


def test_graded_answers_are_records_and_come_back(
    answers: Path, rubric: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert detect_format(answers) == "ragdoll:graded"
    records, again = tmp_path / "records.jsonl.gz", tmp_path / "again.jsonl"
    assert main(["convert", str(answers), "--to", "records", "-o", str(records)]) == 0
    back = ["convert", str(records), "--to", "ragdoll:graded", "--bank", str(rubric), "-o", str(again)]
    assert main(back) == 0
    # One criterion of q1 and all four of q2.
    assert "5 criteria have no grade and were written as failed" in capsys.readouterr().err
    lines = {json.loads(line)["task_id"]: json.loads(line) for line in answers.read_text().splitlines()}
    found = {json.loads(line)["task_id"]: json.loads(line) for line in again.read_text().splitlines()}
    assert {name: found[name] for name in found if name != "y:q2"} == {
        name: line for name, line in lines.items() if name != "y:q2"
    }
    assert [one["verdict"] for one in found["y:q2"]["criteria"]] == [FAILED] * 4
    # What is scored of records is what is scored of the file.
    of_records, _ = scores(capsys, records, "--bank", rubric, "--on-failed", "expected")
    assert of_records == scores(capsys, answers, "--bank", rubric, "--on-failed", "expected")[0]


def test_a_model_gives_verdicts_ten_criteria_a_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = [{**criteria()[1], "text": f"Says {number}"} for number in range(12)]
    line = {"task_id": "q1", "status": "completed", "qid": "q1", "query": "What?", "criteria": many}
    rubric = write(tmp_path / "rubric.jsonl", [line])
    write(tmp_path / "a.jsonl", [{"query_id": "q1", "run_id": "x", "text": "One and two."}])
    ten = json.dumps([FULL, PART, *[NOT] * 8])
    replies = [{"contains": "against 10 criteria", "reply": ten}, {"reply": "[Satisfied, maybe]"}]
    write(tmp_path / "r.jsonl", replies)
    passages, out, files = (str(tmp_path / name) for name in ("p.jsonl.gz", "g.jsonl.gz", "graded.jsonl"))
    assert main(["pool", str(tmp_path / "a.jsonl"), "-o", passages]) == 0
    model = f"scripted:{tmp_path / 'r.jsonl'}"
    command = ["grade", passages, "--bank", str(rubric), "--prompt", "criteria.verdicts", "--model", model]
    assert main([*command, "--retries", "0", "-o", out]) == 1
    assert "2 calls" in capsys.readouterr().err
    assert main(["convert", out, "--to", "ragdoll:graded", "--bank", str(rubric), "-o", files]) == 0
    written = json.loads(Path(files).read_text())
    # A verdict that is none makes no grade of its list.
    assert [one["verdict"] for one in written["criteria"]] == [FULL, PART, *[NOT] * 8, FAILED, FAILED]


def test_a_criterion_of_two_weights_needs_a_bank(
    answers: Path, rubric: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers.write_text(answers.read_text().replace('"weight": 5', '"weight": 4', 1))
    assert main(["leaderboard", str(answers), "--on-failed", "expected"]) == 2
    assert (
        "has two weights (4.0 and 5.0) in two answers; keep one, or name the bank that counts (--bank)"
        in capsys.readouterr().err
    )
    assert scores(capsys, answers, "--on-failed", "expected", "--bank", rubric)[0]["x"] == ("0.694444", "0.555556")


def test_a_nugget_bank_is_no_rubric(rubric: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [{"qid": "q1", "rubrics": [{"criterion": "Is short", "weight": 5, "axis": "Brevity"}]}]
    path = write(tmp_path / "r.jsonl", lines)
    assert main(["convert", str(path), "--to", "ragdoll:rubric", "-o", str(tmp_path / "o.jsonl")]) == 2
    assert "'Is short' has the axis 'Brevity'; RAGDoll knows explicit, implicit" in capsys.readouterr().err
    # Not one of these files is taken for queries.
    assert main(["convert", str(rubric), "--to", "queries", "-o", str(tmp_path / "q.json")]) == 0
    assert read_queries(tmp_path / "q.json") == {"q1": "What is q1?", "q2": "What is q2?"}


def test_the_toolkits_own_scores(capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared_data("support")
    board = rubric_measures.score(
        folder / "graded.jsonl", measures=["WeightedCover", "WeightedCover(strict=True)"], compat="ragdoll"
    )
    names = {"ternary_score": "WeightedCover", "binary_score": "WeightedCover(strict=True)"}
    for row in csv.DictReader((folder / "expected.cell_scores.csv").read_text().splitlines()):
        for column, name in names.items():
            value = board.values[row["run_id"]][name][row["qid"]]
            assert (f"{value:.6f}" if value is not None else "") == (f"{float(row[column]):.6f}" if row[column] else "")
    for row in csv.DictReader((folder / "expected.run_scores.csv").read_text().splitlines()):
        for column, name in names.items():
            assert board.cells[row["run_id"]][name].mean == pytest.approx(float(row[column]), abs=5e-7)
    _, err = scores(capsys, folder / "graded.jsonl", "--compat", "ragdoll")
    for row in csv.DictReader((folder / "expected.category_failures.csv").read_text().splitlines()):
        assert f"{row['type']} {row['n_failed']} of {row['n_total']} ({float(row['failure_rate']):.6f})" in err


def test_assignments_that_failed_as_ragdoll_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nuggets = [
        {"text": str(n), "importance": "vital", "assignment": said} for n, said in enumerate(("support", "fail"))
    ]
    path = write(tmp_path / "a.jsonl", [{"qid": "q1", "run_id": "x", "answer_text": "1", "nuggets": nuggets}])
    board = tmp_path / "board.tsv"
    options = ["-m", "NuggetA", "--no-overall", "--output", str(board)]
    # In ours the label is a failure; in theirs it stays in the denominator.
    assert main(["leaderboard", str(path), "--on-failed", "expected", *options]) in (0, 1)
    assert read_leaderboard(board).column("NuggetA(rel=2,partial_rel=1)") == {"x": 1.0}
    assert main(["leaderboard", str(path), "--compat", "nuggetizer", *options]) == 0
    assert read_leaderboard(board).column("NuggetA") == {"x": 0.5}


def test_verdicts_outside_the_list_failed_and_are_0_in_its_own_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Its parser counts verdicts, whatever they say.
    path = write(tmp_path / "graded.jsonl", [graded("x", "q1", FULL, "mostly_satisfied", NOT, NOT)])
    assert main(["leaderboard", str(path), "--on-failed", "zero", "--no-overall"]) == 1
    note = "graded.jsonl: 1 label that nobody defined ('mostly_satisfied' 1) counts as failed"
    assert note in capsys.readouterr().err
    [query] = rubric_measures.load(path).queries.values()
    assert int(query.failed.sum()) == 1
    # 5 of 5 + 2 + 2, whatever the second verdict would be worth.
    found, err = scores(capsys, path, "--compat", "ragdoll")
    assert found == {"x": ("0.555556", "0.555556")}
    assert "1 verdict is none of RAGDoll's; it counts as not satisfied, as there" in err


def test_the_last_row_of_a_task_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [graded("x", "q1", status="failed", error="timeout"), graded("x", "q1", FULL, FULL, FULL, NOT)]
    path = write(tmp_path / "graded.jsonl", rows)
    for more in ((), ("--compat", "ragdoll")):
        found, err = scores(capsys, path, *more)
        assert found == {"x": ("1.000000", "1.000000")}
        assert "1 of the graded answers was replaced by a later one, which counts" in err
