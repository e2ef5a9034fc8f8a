"""The commands of docs/verification.md, run as they stand there on the example collection."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from rubric_measures.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "verification.md").read_text(encoding="utf-8")


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "resources" / "example", "example")
    commands = [
        shlex.split(line) for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S) for line in block.splitlines()
    ]
    assert len(commands) == 9
    outputs = []
    for command in commands:
        assert command[:2] == ["rubric_measures", "verify"]
        assert main(command[1:]) == 0, command
        outputs.append(capsys.readouterr().out)
    grading, grid, uncovered, bad, _, bank, graders, canaries, _ = outputs
    assert grading.startswith("q01: Which pigment makes leaves green in summer?")
    assert grid.startswith("### q01: why do leaves change colour in autumn")
    assert "passages judged 2 or better, no item graded 4 or better" in uncovered
    assert bad.startswith("report\ttitle\tspurious")
    assert "Would a new system be judged fairly?" in bank
    assert "lexical:1  LexicalCoverage  nugget    339" in graders
    # Three questions a query, each as its own passage: 21 of 27 fool a grader that counts words.
    (row,) = [line.split() for line in canaries.splitlines() if line.split()[3:4] == ["item-text"]]
    assert row[3:] == ["item-text", "27", "21", "27", "21", "0", "0.7778"]
    assert "21 of 27" in PAGE
    rows = [json.loads(line) for line in Path("items.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sum(row["report"] == "items" for row in rows) == 90
    sizes = [row for row in rows if row["report"] == "bank-stability"]
    assert [row["items_a_query"] for row in sizes] == list(range(1, 11))
    assert sizes[-1]["tau_mean"] == 1.0
    assert "</html>" in Path("report.html").read_text(encoding="utf-8")


def test_the_page_names_every_flag() -> None:
    flags = "--verify-grading --grid-display --uncovered-passages --bad-question --item-statistics --grader-statistics"
    assert [flag for flag in [*flags.split(), "--canary", "--plot", "--cases", "--seed"] if flag not in PAGE] == []
