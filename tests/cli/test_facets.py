"""Facets on the command line: coverage facet by facet, facets as items; from records, run files and assignments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.formats.leaderboards import read_leaderboard
from tests.example_records import write_all

MEASURES = ["-m", "NuggetA", "NuggetA(strict=True)"]
LABELS = {0: "not_support", 1: "partial_support", 2: "support"}
# run -> the grades of its answer; nuggets 1 and 2 belong to the first facet, 3 to the second.
GRADES = {"a": [2, 1, 0], "b": [0, 0, 2]}
FACETS = ["Causes", "Causes", "Effects"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = []
    for run_id, grades in GRADES.items():
        nuggets = [
            {"text": f"n{number}", "importance": "vital", "mapped_sub_narrative": facet, "assignment": LABELS[grade]}
            for number, (facet, grade) in enumerate(zip(FACETS, grades, strict=True), 1)
        ]
        rows.append({"qid": "q", "run_id": run_id, "answer_text": "w", "nuggets": nuggets})
    Path("assigned.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for run_id in GRADES:
        Path(f"{run_id}.run").write_text(f"q Q0 {run_id} 1 1 {run_id}\n")
    assert main(["convert", "assigned.jsonl", "--to", "records", "-o", "records.jsonl.gz"]) == 0
    assert main(["convert", "assigned.jsonl", "--to", "bank", "-o", "bank.jsonl"]) == 0
    return tmp_path


# The three ways to score; records name the documents themselves.
WAYS = [["assigned.jsonl"], ["records.jsonl.gz", "--bank", "bank.jsonl"]]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("way", WAYS)
def test_coverage_facet_by_facet(way: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    command = ["leaderboard", *way, *MEASURES, "--format", "trec_eval", "--no-overall", "--per-facet"]
    assert main(command) == 0
    Path("board.txt").write_text(capsys.readouterr().out)
    table = read_leaderboard("board.txt")
    # a: causes (1 + 0.5) / 2, strict 1 / 2, effects 0. b: causes 0, effects 1.
    assert table.per_query("NuggetA(rel=2,partial_rel=1)") == {
        "a": {"q/causes": 0.75, "q/effects": 0.0},
        "b": {"q/causes": 0, "q/effects": 1},
    }
    assert table.per_query("NuggetA(rel=2,strict=True)")["a"] == {"q/causes": 0.5, "q/effects": 0.0}
    assert table.column("NuggetA(rel=2,partial_rel=1)") == {"a": 0.375, "b": 0.5}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("way", WAYS)
def test_facets_in_the_place_of_items(way: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    measures = ["-m", "NuggetA", "StRecall(rel=2)@5", "ERR_IA(rel=2)@5"]
    assert main(["leaderboard", *way, *measures, "--format", "trec_eval", "--no-overall", "--facets"]) == 0
    Path("board.txt").write_text(capsys.readouterr().out)
    table = read_leaderboard("board.txt")
    # Each answer reaches one of two facets in full.
    assert table.column("NuggetA(rel=2,partial_rel=1)") == {"a": 0.5, "b": 0.5}
    assert table.column("StRecall(rel=2)@5") == {"a": 0.5, "b": 0.5}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("more", [["--length"], ["--compat", "nuggetizer"]])
def test_what_does_not_go_together_is_refused(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leaderboard", "assigned.jsonl", *MEASURES, "--per-facet", *more]) == 2
    assert "--per-facet" in capsys.readouterr().err


@pytest.mark.parametrize("unit", ["--facets", "--per-facet"])
def test_whole_queries_are_not_called_facets(tmp_path: Path, unit: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_all(tmp_path)
    graded, run, bank = (str(folder / name) for name in ("graded.jsonl.gz", "alpha.run", "bank.jsonl"))
    commands = [["leaderboard", graded], ["leaderboard", graded, run], ["leaderboard", graded, run, "--bank", bank]]
    for command in commands:
        assert main([*command, unit]) == 2, command
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert "no item names a facet" in err


def test_queries_without_facets_are_counted_beside_those_with_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # q has the facet f, r and s have none.
    Path("items.qrels").write_text("q q/f/1 d 3\nr r/1 d 2\ns s/1 d 1\n")
    Path("a.run").write_text("q Q0 d 1 1 a\nr Q0 d 1 1 a\ns Q0 d 1 1 a\n")
    note = "rubric_measures: warning: without facets, and whole: 2 queries (such as r)\n"
    assert main(["qrels", "items.qrels", "--per", "facet"]) == 0
    assert capsys.readouterr() == ("q/f 0 d 3\nr 0 d 2\ns 0 d 1\n", note)
    for unit in ("--facets", "--per-facet"):
        assert main(["leaderboard", "items.qrels", "a.run", "-m", "RubricCover(rel=2)", unit]) == 0
        assert capsys.readouterr().err.count(note) == 1
