"""The commands of docs/verification.md, run as they stand there on the example collection."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from rubric_measures.cli import main
from tests.docs.pages import commands, run

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "verification.md").read_text(encoding="utf-8")


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "resources" / "example", "example")
    shown = commands("verification", "sh")
    assert [command[0] for command in shown] == ["verify"] * 9
    outputs = [printed.out for printed in run(shown, capsys)]
    _, grading, grid, uncovered, bad, _, graders, bank, canaries = outputs
    assert grading.startswith("q01: Which pigment makes leaves green in summer?")
    assert grid.startswith("### q01: why do leaves change colour in autumn")
    assert "passages judged 2 or better, no item graded 4 or better" in uncovered
    assert bad.startswith("report\ttitle\tspurious")
    assert "Would a new run be judged fairly?" in bank
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


def test_graders_are_calibrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    example = ROOT / "resources" / "example"
    shutil.copy(example / "nuggets.jsonl", "nuggets.jsonl")
    answers = sorted(map(str, (example / "answers").glob("*.jsonl")))
    asked = ["--bank", "nuggets.jsonl", "--model", "lexical", "-o", "by-words.jsonl"]
    assert main(["pool", *answers, "--whole", "--collection", str(example), "-o", "answers.jsonl"]) == 0
    assert main(["grade", "answers.jsonl", *asked]) == 0
    assert main(["qrels", "by-words.jsonl", "--per", "item", "-o", "words.qrels"]) == 0
    rows = [line.split() for line in Path("words.qrels").read_text(encoding="utf-8").splitlines()]
    scale = [" ".join(row) + "\n" for row in rows if row[2] == "*"]
    graded = [row for row in rows if row[2] != "*"]
    # Each grades what words say, but off by so much on some: an assessor by -1, a newer model by +1.
    for name, every, off, grader in (("human", 2, -1, "human:ada"), ("old", 1, 0, "gpt-4o"), ("new", 1, 1, "gpt-5")):
        moved = [[*row[:3], str(min(5, max(0, int(row[3]) + off * (place % 3 > 0))))] for place, row in
                 enumerate(graded) if place % every == 0]  # fmt: skip
        Path(f"{name}.qrels").write_text("".join(scale + [" ".join(row) + "\n" for row in moved]), encoding="utf-8")
        texts = ["--collection", "answers.jsonl", "--bank", "nuggets.jsonl", "--name", grader]
        assert main(["convert", f"{name}.qrels", "--to", "records", *texts, "-o", f"{name}.jsonl"]) == 0
    assert main(["convert", "by-words.jsonl", "human.jsonl", "--to", "records", "-o", "reviewed.jsonl.gz"]) == 0
    assert main(["convert", "old.jsonl", "-o", "graded.jsonl.gz"]) == 0
    assert main(["convert", "answers.jsonl", "new.jsonl", "--to", "records", "-o", "regraded.jsonl.gz"]) == 0
    capsys.readouterr()
    printed = []
    for line in re.findall(r"^    rubric_measures (calibrate .*)$", PAGE, re.MULTILINE):
        assert main(shlex.split(line)) == 0, capsys.readouterr().err
        printed.append(capsys.readouterr().out)
    assessors, older = printed
    for text, truth in ((assessors, "assessors"), (older, "gpt-4o")):
        assert f"bias: the mean of the grader's grade − that of {truth}" in text
        [row] = [line.split() for line in text.splitlines() if line.split()[:1] == ["all"]]
        assert row[-1] == "higher" and float(row[4]) > 0.3
        # What a grader that is too kind finds, the truth finds less of.
        [run] = [line.split() for line in text.splitlines() if line.startswith("thorough")]
        assert float(run[3]) < float(run[2]) < float(run[1])
