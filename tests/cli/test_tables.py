"""Tests of what commands print as tables: every form beside every option, and names that hold tabs and controls."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rubric_measures.base.tables import FORMS
from rubric_measures.cli import main
from tests.example_records import grade_set, passage, write_lines

CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
RUNS = ("a\tb\x1b[1m", "x|y", "100%_a&b")
REPORTS = (
    [],
    ["--length"],
    ["--present"],
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five queries, two facets of one item each, a passage a run; the first run is best, the last is worst."""
    monkeypatch.chdir(tmp_path)
    lines, scores = [], []
    for number in range(5):
        query_id = f"q{number}"
        passages = []
        for place, run in enumerate(RUNS):
            grades = {f"{query_id}/f1/1": 5 - place, f"{query_id}/f2/2": (number + 2 * place) % 6}
            passages.append(passage(query_id, f"d\t{place}", [grade_set(grades)], {run: 1}, judgment=number % 3))
        lines.append([query_id, passages])
        if number < 2:
            scores += [f'{{"run_id": {json.dumps(run)}, "topic_id": "{query_id}", "measure": "RubricCover(rel=4)@1", '
                       f'"value": {0.5 + number / 4}}}\n' for run in RUNS]  # fmt: skip
    write_lines(tmp_path / "graded.jsonl", lines)
    (tmp_path / "assessors.txt").write_text("".join(scores))
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    shown = capsys.readouterr()
    return status, shown.out, shown.err


BOARD = ["leaderboard", "graded.jsonl", "-m", "RubricCover(rel=4)@1", "RubricQrels(measure='P@1')"]
FEWER = ["leaderboard", "graded.jsonl", "-m", "RubricCover(rel=4)@1"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("report", REPORTS, ids=" ".join)
def test_every_form_works_beside_every_report(form: str, report: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(capsys, *BOARD, *report, "--format", form)
    assert status == 0, err
    # Tabs part the cells of one form, and there is no other control anywhere.
    assert not CONTROLS.search(out.replace("\t", "") if form == "tsv" else out)
    if form == "tsv":
        cells = [line.split("\t") for line in out.splitlines()]
        assert {len(row) for row in cells} == {len(cells[0])}
        assert "" not in {cell for row in cells for cell in row}
    elif form == "json":
        assert RUNS[0] in {run["run_id"] for run in json.loads(out)["runs"]}
    elif form == "jsonl":
        rows = [json.loads(line) for line in out.splitlines()]
        assert set(RUNS) <= {row["run_id"] for row in rows}
        assert len({tuple(row) for row in rows}) == 1
    elif form == "markdown":
        for table in out.split("\n\n"):
            borders = {re.sub(r"\\.", "", line).count("|") for line in table.splitlines() if line[:1] == "|"}
            assert len(borders) <= 1


@pytest.mark.usefixtures("folder")
def test_names_never_make_a_cell(capsys: pytest.CaptureFixture[str]) -> None:
    """A tab in a run's name, a document's or an item's gave its row one cell more than its header."""
    assert main([*FEWER, "--format", "json", "--output", "scores.json"]) == 0
    capsys.readouterr()
    for arguments in (
        ["compare", "scores.json", "--rounds", "20"],
        ["correlate", "scores.json", "scores.json", "--rounds", "20"],
        ["agreement", "graded.jsonl", "--rounds", "0"],
        ["agreement", "graded.jsonl", "--tables", "1"],
        ["verify", "grid", "graded.jsonl"],
        ["verify", "all", "graded.jsonl", "--grader", "scale=0-5:1"],
    ):
        for form in FORMS:
            status, out, err = call(capsys, *arguments, "--format", form)
            assert status in (0, 1) and out, (arguments, form, err)
            if form == "tsv":
                for block in out.split("\n\n"):
                    assert len({line.count("\t") for line in block.splitlines()}) == 1, (arguments, block)
