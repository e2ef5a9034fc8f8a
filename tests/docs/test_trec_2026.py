"""The commands of docs/trec-2026.md, run as they stand there on the example and on a small file of each form."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pytest

from rubric_measures.formats.leaderboards import read_leaderboard
from tests.boards.test_argue import BANKS, REPORTS
from tests.docs.pages import ROOT, commands, run
from tests.formats.test_dragun import COMPARED, QUESTIONS, rubric
from tests.formats.test_ragdoll import FULL, NOT, PART, battle, graded
from tests.formats.test_ragdoll import write as write_lines
from tests.support_data import line, write


def test_every_track_goes_from_its_files_to_its_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "resources" / "example", "example")
    shutil.copytree("example/answers", "answers")
    write(Path("labels.jsonl"), line("one", "t1"), line("two", "t1", (["1"],)))
    # Verdicts by weight 5, 2, 2, -1: x 2.5 + 2 of 9; y 5 - 1 of 9.
    verdicts = {"x": (PART, FULL, NOT, NOT), "y": (FULL, NOT, NOT, FULL)}
    write_lines(Path("graded.jsonl"), [graded(run, "q1", *said) for run, said in verdicts.items()])
    write_lines(Path("judgments.jsonl"), [battle("q1", "A"), battle("q2", "B"), battle("q3", "A")])
    write_lines(Path("run.judgments.jsonl"), REPORTS)
    write_lines(Path("banks.jsonl"), BANKS)
    Path("questions.tsv").write_text("q01\tt\tasker\t1\tWhich pigment makes leaves green?\n")
    write_lines(Path("rubrics.json"), [rubric("t1", QUESTIONS)])
    Path("question_assessments.csv").write_text(COMPARED)
    Path("truth.tsv").write_text("run_id\trequest_id\tmetric\tvalue\na\tall\tf1_macro\t.7\nb\tall\tf1_macro\t.4\n")
    Path("judged.eval.txt").write_text("a all NuggetA 0.5\nb all NuggetA 0.1\n")
    asked = commands("trec-2026")
    outputs = {" ".join(command): printed.out for command, printed in zip(asked, run(asked, capsys), strict=True)}
    shown = {command: text for command, text in outputs.items() if text}
    rows = {row["run_id"]: row for row in csv.DictReader(io.StringIO(_of(shown, "graded.jsonl")), delimiter="\t")}
    assert {run: row["WeightedCover"] for run, row in rows.items()} == {"x": "0.500000", "y": "0.444444"}
    assert len(next(csv.reader(io.StringIO(_of(shown, "SupportPrecision(strict=True)")), delimiter="\t"))) > 6
    assert "NuggetV(rel=3,strict=True)" in _of(shown, "nuggets.jsonl.gz")
    assert _of(shown, "tournament").splitlines()[1].split("\t")[0] == "y"
    # b: 2 / 3 of the one topic that it answers, 0 of the other.
    assert read_leaderboard("run.scores.tsv").column("f1_macro") == pytest.approx({"a": 0.75, "b": 1 / 3})
    assert "CitationCoverage" in _of(shown, "CitationCoverage")
    assert "1.0" in _of(shown, "truth.tsv")
    assert "asker" in _of(shown, "same.jsonl.gz")


def _of(shown: dict[str, str], part: str) -> str:
    """What the first command with this part printed."""
    return next(text for command, text in shown.items() if part in command)
