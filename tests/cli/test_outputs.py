"""`-o FILE` names the file and `--format` its form in every command; without it the ending of FILE says it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubric_measures.cli import COMMANDS, _command_parser, main
from rubric_measures.corpora.collections import example_folder

BOARD = [
    "leaderboard",
    str(example_folder() / "graded.jsonl.gz"),
    "-m",
    "RubricCover(rel=4)@5",
    "--grader",
    "kind=question",
]


# ir_measures' own options; and what writes nothing, or to places of its own.
@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"evaluate"}))
def test_one_meaning(name: str) -> None:
    options = {one: action for action in _command_parser(name)[0]._actions for one in action.option_strings}
    assert "--output-format" not in options
    if "-o" in options:
        assert options["-o"].dest == "output" and options["-o"].choices is None
    if "--format" in options:
        assert options["--format"].choices


def test_the_ending_says_the_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*BOARD, "-o", "board.json"]) == 0
    assert json.loads(Path("board.json").read_text(encoding="utf-8"))["measures"]
    assert main([*BOARD, "-o", "board.md"]) == 0
    assert Path("board.md").read_text(encoding="utf-8").startswith("| ")
    # What is written out counts, wherever it stands.
    assert main([*BOARD, "-o", "board.txt", "--format", "json"]) == 0
    assert Path("board.txt").read_bytes() == Path("board.json").read_bytes()
    assert main([*BOARD, "--format", "tsv", "-o", "tab.csv"]) == 0
    assert main([*BOARD, "-o", "board.dat"]) == 0
    assert Path("board.dat").read_bytes() == Path("tab.csv").read_bytes()


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("tsv", "-o tsv: -o names the file to write; the form is chosen by --format tsv"),
        ("board.csv", "-o board.csv: CSV is not written here, but text, tsv, json, jsonl, latex"),
        ("board.html", "-o board.html: html is not written here"),
    ],
)
def test_what_is_no_output_file(
    file: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`-o tsv` chose the form in earlier versions; a file that is called tsv is not what is meant."""
    monkeypatch.chdir(tmp_path)
    assert main([*BOARD, "-o", file]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


# Answers and tables of answers go into a folder.
_TWO_MEANINGS = {"-o", "--output"}


def test_an_option_means_one_thing() -> None:
    """What takes a value in one command is no switch in another, and a short name has one long one."""
    met: dict[str, dict[tuple[bool, str], str]] = {}
    for name in COMMANDS:
        for action in _command_parser(name)[0]._actions:
            for option in set(action.option_strings) - _TWO_MEANINGS:
                long = max(action.option_strings, key=len) if len(option) == 2 else ""
                met.setdefault(option, {})[action.nargs == 0, long] = name
    assert {option: uses for option, uses in met.items() if len(uses) > 1} == {}
