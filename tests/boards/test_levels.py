"""Tests of levels: those that cover everything, those that the scale says, those of plain judgments; and of names."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import ir_measures
import pytest

import rubric_measures
from rubric_measures.base.errors import MeasureError
from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder
from tests.boards.test_failures import graded
from tests.example_records import write_all

ROOT = Path(__file__).resolve().parents[2]


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


def test_in_python_too_and_where_the_scale_is_not_known() -> None:
    grades = graded({"q": {"d": [5, 0]}})
    with pytest.raises(MeasureError, match=r"RubricCover\(rel=0\): every grade of the scale 0 to 5 is 0 or more"):
        rubric_measures.score(grades, {"a": {"q": {"d": 1.0}}}, "RubricCover(rel=0)")
    rows = [ir_measures.Qrel("q", "d", 0, "a")]
    with pytest.raises(MeasureError, match=r"RubricCover\(rel=0\): every grade is 0 or more"):
        ir_measures.calc_aggregate([rubric_measures.RubricCover(rel=0)], rows, {"q": {"d": 1.0}})


def test_measures_over_subtopics_take_the_level_of_the_scale(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grades = rubric_measures.load(example_folder() / "graded.jsonl.gz", bank=example_folder() / "questions.jsonl")
    runs = sorted((example_folder() / "runs").glob("*.run"))
    bare, said = ("alpha_nDCG@10", "StRecall@20"), ("alpha_nDCG(rel=4)@10", "StRecall(rel=4)@20")
    board, other = (rubric_measures.score(grades, runs, names, notes=False) for names in (bare, said))
    assert board.measures == list(said)
    assert board.values == other.values
    # Not everything that has a grade of 1 has one of 4.
    lenient = rubric_measures.score(grades, runs, "StRecall(rel=1)@20", notes=False)
    assert board.values["bm25"][said[1]] != lenient.values["bm25"]["StRecall@20"]
    run = list(ir_measures.read_trec_run(str(runs[0])))
    measures = [ir_measures.parse_measure(name) for name in bare]
    found = ir_measures.calc_aggregate(measures, grades, run)
    assert [found[one] for one in measures] == [board.cells[runs[0].stem][name].mean for name in said]
    assert main(["evaluate", "graded.jsonl.gz", "alpha.run", "StRecall@20"]) == 0
    assert capsys.readouterr().out.startswith("StRecall(rel=4)@20\t")


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


PROGRAM = """
import json, random, sys
if sys.argv[1] == "with":
    import rubric_measures
import ir_measures
draw = random.Random(7)
qrels = [ir_measures.Qrel(f"q{q}", f"d{d}", draw.randint(0, 2), f"{s}") for q in range(5) for d in range(12)
         for s in range(3) if draw.random() < 0.4]
# A few scores, so that most passages tie.
run = [ir_measures.ScoredDoc(f"q{q}", f"d{d}", float(draw.randint(0, 2))) for q in range(5) for d in range(15)]
names = ["alpha_nDCG@10", "alpha_nDCG(rel=2)@10", "alpha_DCG@5", "ERR_IA@10", "nERR_IA@20", "StRecall@10", "P_IA@5"]
names += ["AP_IA", "NRBP", "nNRBP"]
found = {}
for name in names:
    measure = ir_measures.parse_measure(name)
    values = [[one.query_id, one.value] for one in ir_measures.iter_calc([measure], qrels, run)]
    found[name] = [sorted(values), ir_measures.calc_aggregate([measure], qrels, run)[measure]]
labels = [ir_measures.Qrel(query, doc, grade) for (query, doc), grade in
          {(row.query_id, row.doc_id): row.relevance for row in qrels}.items()]
for name in ("nDCG@10", "AP", "RR", "P@5", "Judged@10"):
    measure = ir_measures.parse_measure(name)
    found[name] = ir_measures.calc_aggregate([measure], labels, run)[measure]
print(json.dumps(found))
"""


def test_importing_changes_no_number_over_plain_judgments() -> None:
    pytest.importorskip("pyndeval")
    found = []
    for how in ("with", "without"):
        done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]
    assert 0 < found[0]["alpha_nDCG@10"][1] < 1
