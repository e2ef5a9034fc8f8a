"""Tests of which judgments a number reads, by its name, and of one value for one standard measure in every command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import ir_measures
import pytest
from ir_measures import Qrel

from rubric_measures import RubricCover, load, load_board, score
from rubric_measures.base.errors import MeasureError
from rubric_measures.boards.board import checked
from rubric_measures.cli import main

QRELS = "1 0 a 3\n1 0 b 0\n1 0 c 1\n2 0 a 0\n2 0 b 2\n"
# a and b differ beyond single precision only, c and z are tied.
RUN = "".join(
    f"{query} Q0 a 1 1.0000000000001 near\n{query} Q0 b 2 1.0 near\n{query} Q0 c 3 0.5 near\n{query} Q0 z 4 0.5 near\n"
    for query in (1, 2)
)
OTHER = "1 Q0 c 1 2 other\n2 Q0 a 1 2 other\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("q.txt", QRELS), ("near.run", RUN), ("other.run", OTHER)):
        Path(name).write_text(text)
    return tmp_path


def test_standard_measures_over_qrels_keep_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["nDCG@10", "RR", "P(rel=2)@1"]
    board = ["leaderboard", "q.txt", "near.run", "other.run", "-m", *asked]
    assert main([*board, "--format", "json", "--output", "board.json"]) == 0
    assert json.loads(Path("board.json").read_text())["measures"] == asked
    assert "labels that the grades imply" not in capsys.readouterr().err
    for name in ("nDCG@10", "RubricQrels(measure='nDCG@10')"):
        assert main(["compare", "board.json", "-m", name]) == 0
        assert "nDCG@10" in capsys.readouterr().out
    assert main(["compare", "board.json", "-m", "RubricQrels(measure='nDCG@10',rel=2)"]) == 2
    assert "unknown measure" in capsys.readouterr().err
    assert main(["correlate", "board.json", "board.json", "--official-measure", "nDCG@10", "-m", "RR"]) == 0
    assert "RR" in capsys.readouterr().out
    assert main(["check", "board.json", "q.txt", "near.run", "other.run"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "q.txt", "near.run", *asked]) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == asked


@pytest.mark.parametrize("measure", ["RubricCover@5", "RubricCover(rel=1)@5", "NuggetA", "alpha_nDCG@5", "StRecall@5"])
@pytest.mark.parametrize("command", [["leaderboard", "q.txt", "near.run", "-m"], ["evaluate", "q.txt", "near.run"]])
def test_item_measures_over_labels_are_refused(
    command: list[str], measure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for more in ([], ["nDCG@10"]):
        assert main([*command, measure, *more]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert f"{measure}: there are no item grades here" in err


def test_item_qrels_are_not_written_of_labels(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["qrels", "q.txt", "--per", "item"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "no item grades" in err


def test_ir_measures_itself_refuses_them_in_every_form() -> None:
    pandas = pytest.importorskip("pandas")
    rows = [Qrel(query, doc, int(label)) for query, _, doc, label in map(str.split, QRELS.splitlines())]
    judged: dict[str, dict[str, int]] = {}
    for row in rows:
        judged.setdefault(row.query_id, {})[row.doc_id] = row.relevance
    run = list(ir_measures.read_trec_run("near.run"))
    frame = pandas.DataFrame(rows)
    for qrels in (rows, frame, frame[["query_id", "doc_id", "relevance"]], judged, load("q.txt")):
        for measure in (RubricCover @ 5, RubricCover(rel=1) @ 5):
            with pytest.raises(MeasureError, match=r"no item grades|with the item ids|no rubric items"):
                ir_measures.calc_aggregate([measure], qrels, run)


MEASURES = ["nDCG@10", "RR", "AP", "P@1", "Judged@3", "Bpref", "Compat(p=0.9)", "infAP", "Accuracy"]
WITH_PERL = ["ERR@1", "nDCG(dcg='exp-log2')@1"] if shutil.which("perl") else []


def test_one_measure_gives_one_value_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    names = [*MEASURES, *WITH_PERL]
    assert main(["leaderboard", "q.txt", "near.run", "-m", *names, "-o", "board.json", "--no-overall"]) == 0
    values = load_board("board.json").values["near"]
    board = {(name, query): value for name, of_query in values.items() for query, value in of_query.items()}
    capsys.readouterr()
    assert main(["evaluate", "q.txt", "near.run", *names, "-q", "-n", "-p-1"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert {(name, query): float(value) for query, name, value in lines} == board
    measures = [ir_measures.parse_measure(name) for name in names]
    qrels, run = list(ir_measures.read_trec_qrels("q.txt")), list(ir_measures.read_trec_run("near.run"))
    found = ir_measures.iter_calc(measures, qrels, run)
    assert {(str(metric.measure), metric.query_id): metric.value for metric in found} == board


def test_an_order_that_precision_decides_is_said_by_checks(capsys: pytest.CaptureFixture[str]) -> None:
    # In single precision a and b are tied, and ties go to the larger id.
    assert main(["leaderboard", "q.txt", "near.run", "other.run", "-m", "nDCG@4", "--checks"]) == 0
    said = "1 run with an order inside the cutoff that precision decides: near"
    assert said in capsys.readouterr().err
    # c and z are tied, two of four.
    board = score("q.txt", ["near.run", "other.run"], "nDCG@4", checks=True)
    assert board.checks is not None
    tied = "1 of 2 runs has tied scores inside the cutoff; most has near (50.0 %)"
    assert tied in [note.text for note in checked(board.checks)]


def test_rubric_cover_looks_at_the_passage_that_trec_eval_puts_first(capsys: pytest.CaptureFixture[str]) -> None:
    # Passage a covers one of two items, b none.
    Path("items.txt").write_text("1 i a 4\n1 j a 0\n1 i b 0\n1 j b 0\n")
    Path("one.txt").write_text("1 0 a 1\n1 0 b 0\n")
    assert main(["evaluate", "one.txt", "near.run", "P@1"]) == 0
    first_is_a = capsys.readouterr().out == "P@1\t1.0000\n"
    for command in (["leaderboard", "-m"], ["evaluate"]):
        assert main([command[0], "items.txt", "near.run", *command[1:], "RubricCover(rel=4)@1"]) == 0
        value = "0.5000" if first_is_a else "0.0000"
        assert f"\t{value}" in capsys.readouterr().out
