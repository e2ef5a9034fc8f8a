"""Tests of how the arguments of commands are read: mistyped options, and where lists of measures end."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rubric_measures.cli import main

EXAMPLE = Path(__file__).resolve().parents[2] / "resources" / "example"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("graded.jsonl.gz", "questions.jsonl"):
        shutil.copy(EXAMPLE / name, name)
    shutil.copy(EXAMPLE / "runs" / "bm25.run", "bm25.run")


@pytest.mark.parametrize(
    ("mistyped", "meant"),
    [
        ("leaderboard graded.jsonl.gz --measurs NuggetV", "--measurs': did you mean --measures"),
        ("leaderboard --measurs=NuggetV graded.jsonl.gz", "--measurs': did you mean --measures"),
        ("generate q.tsv --target nuggets --modle m -o o", "--modle': did you mean --model"),
        ("verify grading --bnak b graded.jsonl.gz", "--bnak': did you mean --bank?; --help"),
        ("pool bm25.run --topics t -o p", "--topics'; --help lists the options"),
    ],
)
def test_a_mistyped_option_names_its_neighbour(mistyped: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(mistyped.split())
    said = capsys.readouterr().err
    assert f"unknown option '{meant}" in said and said.count("\n") == 1


BOTH = ("RubricCover(rel=4)@5", "RubricCover(rel=4)@20")
CHOSEN = ["--bank", "questions.jsonl"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["-m", *BOTH, "graded.jsonl.gz", *CHOSEN],
        ["-m", *BOTH, "graded.jsonl.gz", "bm25.run", *CHOSEN],
        ["--measures", *BOTH, *CHOSEN, "graded.jsonl.gz"],
        [*CHOSEN, "--meas", *BOTH, "--", "graded.jsonl.gz"],
        ["graded.jsonl.gz", *CHOSEN, "-m", *BOTH],
        ["graded.jsonl.gz", "-m", BOTH[0], *CHOSEN, "-m", BOTH[1], "bm25.run"],
        [*CHOSEN, f"--measures={BOTH[0]}", "graded.jsonl.gz", f"-m{BOTH[1]}"],
    ],
)
def test_a_list_of_measures_ends_where_a_file_begins(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leaderboard", "--no-overall", *arguments]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert [name for name in head.split("\t") if name in BOTH] == [*BOTH]
    assert len(rows) == 1 or "bm25.run" not in arguments


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("agreement graded.jsonl.gz --tables 1 --cutoff 4 2", "--cutoff"),
        ("agreement graded.jsonl.gz --tables 1 --rounds 5", "--rounds"),
        ("pool bm25.run --whole --max-words 9 -c docs.jsonl -o pooled.jsonl", "--max-words"),
    ],
)
def test_what_would_be_ignored_is_refused(command: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == 2
    said = capsys.readouterr().err
    assert said.endswith(f"leave it out ({named})\n") or said.endswith(f"leave one out ({named})\n")
    assert not Path("a.svg").exists() and said.count("\n") == 1
