"""Tests of levels: those that cover everything, those that the scale says, those of plain judgments; and of names."""

from __future__ import annotations

import math
from pathlib import Path

import ir_measures
import pytest

import rubric_measures
from rubric_measures.base.errors import MeasureError
from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder
from tests.boards.test_failures import graded
from tests.example_records import write_all


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(write_all(tmp_path))
    return tmp_path


@pytest.mark.parametrize("command", ["leaderboard", "evaluate"])
@pytest.mark.parametrize(
    "measure",
    ["RubricCover(rel=0)@5", "nRubricCover(rel=0)", "NuggetA(rel=2,partial_rel=0)", "StRecall(rel=0)@5"],
)
def test_a_level_that_every_grade_reaches_is_refused(
    folder: Path, command: str, measure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["-m", measure] if command == "leaderboard" else [measure]
    assert main([command, "graded.jsonl.gz", "alpha.run", *asked]) == 2
    out, err = capsys.readouterr()
    assert f"{measure}: every grade of the scale 0 to 5 is 0 or more" in err
    assert (out, err.count("\n"), "give a level above 0" in err) == ("", 1, True)


def test_measures_over_subtopics_take_the_level_of_the_scale(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grades = rubric_measures.load(example_folder() / "graded.jsonl.gz", bank=example_folder() / "questions.jsonl")
    runs = sorted((example_folder() / "runs").glob("*.run"))
    bare, said = ("alpha_nDCG@10", "StRecall@20"), ("alpha_nDCG(rel=4)@10", "StRecall(rel=4)@20")
    board, other = (rubric_measures.score(grades, runs, names, notes=False) for names in (bare, said))
    assert board.measures == list(said)
    assert board.values == other.values
    # Both levels have one name to ir_measures, so that one of them would be lost.
    with pytest.raises(MeasureError, match="StRecall@20 is asked for twice"):
        rubric_measures.score(grades, runs, ["StRecall(rel=1)@20", "StRecall@20"], notes=False)
    # Not everything that has a grade of 1 has one of 4.
    lenient = rubric_measures.score(grades, runs, "StRecall(rel=1)@20", notes=False)
    assert board.values["bm25"][said[1]] != lenient.values["bm25"]["StRecall@20"]
    run = list(ir_measures.read_trec_run(str(runs[0])))
    measures = [ir_measures.parse_measure(name) for name in bare]
    found = ir_measures.calc_aggregate(measures, grades, run)
    assert [found[one] for one in measures] == [board.cells[runs[0].stem][name].mean for name in said]
    assert main(["evaluate", "graded.jsonl.gz", "alpha.run", "StRecall@20"]) == 0
    assert capsys.readouterr().out.startswith("StRecall(rel=4)@20\t")


def test_the_level_that_was_written_counts_also_where_it_is_that_of_ir_measures(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Grades 5 0 2 1 of a scale on which 4 covers: AP is 1/1 from 4 on, and (1 + 2/3 + 3/4) / 3 from 1 on."""
    Path("own.csv").write_text(
        "query_id,doc_id,item_id,grade\n" + "".join(f"q1,d{n},a,{grade}\n" for n, grade in enumerate((5, 0, 2, 1)))
    )
    Path("a.run").write_text("".join(f"q1 Q0 d{n} 1 {9 - n} a\n" for n in range(4)))
    common = ["--grader", "scale=0-5:4"]
    assert main(["evaluate", "own.csv", "a.run", "AP(rel=1)", "AP", "P(rel=1)@4", *common]) == 0
    assert capsys.readouterr().out == (
        "RubricQrels(measure='AP(rel=1)')\t0.8056\nRubricQrels(measure='AP',rel=4)\t1.0000\n"
        "RubricQrels(measure='P(rel=1)@4')\t0.7500\n"
    )
    # In Python, by one name; and a board that is made again from its names says the same.
    grades = rubric_measures.load("own.csv", grader="scale=0-5:4")
    board = rubric_measures.score(grades, "a.run", [ir_measures.AP(rel=1), ir_measures.AP], notes=False)
    means = {name: cell.mean for name, cell in board.cells["a"].items()}
    assert means == {"RubricQrels(measure='AP(rel=1)')": pytest.approx(29 / 36), "RubricQrels(measure='AP',rel=4)": 1}
    assert rubric_measures.score(grades, "a.run", board.measures, notes=False).cells == board.cells
    # Over judgments both are one measure, as in ir_measures.
    Path("own.qrels").write_text("q1 0 d0 1\n")
    assert main(["evaluate", "own.qrels", "a.run", "AP(rel=1)", "AP"]) == 0
    assert set(capsys.readouterr().out.splitlines()) == {"AP\t1.0000"}
    names = ["AP(rel=1)", "AP", "RubricCover"]
    assert rubric_measures.score("own.qrels", "a.run", names[:2], notes=False).measures == ["AP"]
    board = rubric_measures.score(grades, "a.run", names, qrels="own.qrels", notes=False)
    assert board.measures == ["AP", "RubricCover(rel=4)"]


def test_plain_judgments_over_subtopics_keep_the_level_of_ir_measures(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # At 1 both subtopics are found, at 2 one of one.
    Path("div.qrels").write_text("q1 s1 d1 1\nq1 s2 d2 2\n")
    Path("a.run").write_text("q1 Q0 d1 1 2 a\nq1 Q0 d2 2 1 a\n")
    assert main(["evaluate", "div.qrels", "a.run", "StRecall@1", "StRecall(rel=2)@1"]) == 0
    assert capsys.readouterr().out == "StRecall@1\t0.5000\nStRecall(rel=2)@1\t0.0000\n"


def test_a_query_where_nothing_is_covered_adds_no_error_to_the_normalised_cover() -> None:
    rows: dict[str, dict[str, list[int | None]]] = {
        "q1": {"d1": [0, None], "d2": [0, 0]},
        "q2": {"d1": [5, None], "d2": [0, 0], "d3": [0, 0]},
    }
    runs = {"one": {query: {"d1": 2.0, "d2": 1.0} for query in rows}}
    name = "nRubricCover(rel=4)@2"
    both = rubric_measures.score(graded(rows, "expected"), runs, name, notes=False)
    failures = both.cells["one"][name].failures
    alone = rubric_measures.score(graded({"q2": rows["q2"]}, "expected"), runs, name, notes=False)
    of_q2 = alone.cells["one"][name].failures
    assert failures is not None and of_q2 is not None and of_q2.standard_error is not None
    assert both.values["one"][name]["q1"] == 0.0
    assert of_q2.standard_error > 0
    spread = failures.standard_error
    assert spread is not None and not math.isnan(spread)
    assert spread == pytest.approx(of_q2.standard_error / 2, abs=1e-12)
