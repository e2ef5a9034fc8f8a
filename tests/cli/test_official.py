"""Official measures beside ours: `leaderboard --qrels`, `check --qrels`, and `correlate` of such a board alone."""

from __future__ import annotations

import json
from pathlib import Path

import ir_measures
import pytest

import rubric_measures
from rubric_measures import Draws
from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder
from tests.cli.test_analysis import call, checked

EXAMPLE = example_folder()
RUNS = sorted((EXAMPLE / "runs").glob("*.run"))
INPUTS = (EXAMPLE / "graded.jsonl.gz", *RUNS, "--bank", EXAMPLE / "questions.jsonl")
OURS, LABELS = "RubricCover(rel=4)@20", "RubricQrels(measure='nDCG@10')"


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("board") / "board.json"
    asked = ("--qrels", EXAMPLE / "qrels.txt", "-m", OURS, "nDCG@10", 'RubricQrels(measure="nDCG@10")')
    assert main(list(map(str, ("leaderboard", *INPUTS, *asked, "--format", "json", "--output", path)))) == 0
    return path


def test_each_measure_reads_what_its_name_says(board: Path) -> None:
    content = checked("leaderboard", board.read_text(encoding="utf-8"))
    assert content["measures"] == [OURS, "nDCG@10", LABELS]
    alone = rubric_measures.score(
        rubric_measures.load(INPUTS[0], bank=EXAMPLE / "questions.jsonl"), RUNS, [OURS, LABELS], notes=False
    )
    qrels = list(ir_measures.read_trec_qrels(str(EXAMPLE / "qrels.txt")))
    for path in RUNS:
        run = next(one for one in content["runs"] if one["run_id"] == path.stem)
        official = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], qrels, ir_measures.read_trec_run(str(path)))
        assert run["measures"]["nDCG@10"]["mean"] == official[ir_measures.nDCG @ 10]
        for name in (OURS, LABELS):
            assert run["measures"][name]["mean"] == alone.cells[path.stem][name].mean


def test_check_covers_the_qrels(board: Path, tmp_path: Path, capsys) -> None:
    assert call(capsys, "check", board, *INPUTS, "--qrels", EXAMPLE / "qrels.txt")[0] == 0
    text = (EXAMPLE / "qrels.txt").read_text(encoding="utf-8")
    other = tmp_path / "other.txt"
    other.write_text(text.replace("q01 0 d0101 3", "q01 0 d0101 2"), encoding="utf-8")
    status, out, _ = call(capsys, "check", board, *INPUTS, "--qrels", other)
    assert status == 1 and out.splitlines()[0].startswith("inputs, qrels, q01: ")
    status, _, err = call(capsys, "check", board, *INPUTS)
    assert status == 2 and "has official measures; give their qrels, too (--qrels)" in err
    # A mean of which the third digit is another one.
    content = json.loads(board.read_text(encoding="utf-8"))
    content["runs"][0]["measures"][OURS]["mean"] *= 1.004
    (tmp_path / "board.json").write_text(json.dumps(content), encoding="utf-8")
    status, out, _ = call(capsys, "check", tmp_path / "board.json", *INPUTS, "--qrels", EXAMPLE / "qrels.txt")
    assert status == 1 and out.splitlines()[0].endswith(" now")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*INPUTS, "--qrels", RUNS[0]), "holds no grades"),
        (
            (*INPUTS, "--qrels", EXAMPLE / "qrels.txt", "-m", OURS),
            "name a measure that reads the qrels, such as nDCG@10",
        ),
        ((*INPUTS, "--qrels", EXAMPLE / "qrels.txt", "-m", "nDCG@10"), "and one that reads the grades"),
        ((EXAMPLE / "qrels.txt", RUNS[0], "--qrels", EXAMPLE / "qrels.txt"), "score each by itself"),
        ((INPUTS[0], "--qrels", EXAMPLE / "qrels.txt", *INPUTS[-2:]), "name run files"),
    ],
)
def test_refusals(arguments: tuple[object, ...], said: str, capsys) -> None:
    status, out, err = call(capsys, "leaderboard", *arguments)
    assert (status, out, len(err.splitlines())) == (2, "", 1) and said in err


def test_correlate_takes_such_a_board_alone(board: Path, capsys) -> None:
    status, out, _ = call(capsys, "correlate", board, "--rounds", 0, "--format", "json")
    content = checked("correlate", out)
    assert status == 0
    assert [(one["official"], one["measure"]) for one in content["leaderboards"]] == [
        ("nDCG@10", OURS),
        ("nDCG@10", LABELS),
    ]
    table = rubric_measures.correlate(board, board, official_measure="nDCG@10", measures=OURS, draws=Draws(0))
    assert content["leaderboards"][0]["coefficients"][0]["value"] == table.found[0].value("kendall")
    status, _, err = call(capsys, "correlate", board, "-m", "nDCG@10")
    assert (status, f"name one of ours: {OURS}|{LABELS} (--measures)" in err) == (2, True)


def test_the_share_of_grades_is_not_that_of_judgments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # All that is ranked is graded, and a third of it is judged.
    Path("items.qrels").write_text("q1 a d1 1\nq1 a d2 0\nq1 a d3 1\n")
    Path("qrels.txt").write_text("q1 0 d1 1\n")
    Path("a.run").write_text("q1 Q0 d1 1 3 a\nq1 Q0 d2 2 2 a\nq1 Q0 d3 3 1 a\n")
    command = [
        "leaderboard",
        "items.qrels",
        "a.run",
        "--grader",
        "scale=0-1",
        "--qrels",
        "qrels.txt",
        "-m",
        "RubricCover@20",
    ]
    assert main([*command, "nDCG@10", "--format", "text"]) == 0
    out, err = capsys.readouterr()
    assert "100.0%" in out and "33.3%" not in out
    assert "grades exist for" not in err
    grades = rubric_measures.load("items.qrels", grader="scale=0-1")
    board = rubric_measures.score(grades, "a.run", ["RubricCover@20", "nDCG@10"], qrels="qrels.txt")
    assert "100.0%" in str(board) and "33.3%" not in str(board)
    # Alone, judgments are all that there is.
    assert main(["leaderboard", "qrels.txt", "a.run", "-m", "nDCG@10", "--format", "text"]) == 0
    assert "33.3%" in capsys.readouterr().out
