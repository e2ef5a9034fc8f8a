"""Tests of the command line as a whole: every command is documented, and light to ask for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import rubric_measures
from rubric_measures.cli import COMMANDS, _command_parser, main

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_with_an_example_and_stands_in_the_readme(name: str) -> None:
    parser = _command_parser(name)[0]
    assert parser.epilog is not None
    assert f"rubric_measures {name}" in parser.epilog
    assert f"`{name}`" in README.read_text(encoding="utf-8")
    undocumented = [action.dest for action in parser._actions if not action.help]
    assert undocumented == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_is_for_people_at_a_terminal(name: str) -> None:
    """Docstrings are help, too: what only Python has, and other functions, are no help."""
    said = {action.dest: str(action.help) for action in _command_parser(name)[0]._actions}
    assert {
        dest: text for dest, text in said.items() if re.search(r"\bNone\b|\bsee [a-zA-Z.]+|In Python|`", text)
    } == {}


def test_the_package_and_help_of_every_command_load_nothing_heavy() -> None:
    program = f"""
import contextlib, io, sys
import rubric_measures
early = [name for name in ("msgspec", "numpy") if name in sys.modules]
from rubric_measures.cli import main
for name in {sorted(COMMANDS)}:
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        main([name, "--help"])
heavy = ("pydantic", "numpy", "scipy", "pandas", "torch", "rubric_measures.api")
print(early + [name for name in sys.modules if name in heavy or name.startswith("rubric_measures.api.")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_surface_grows_no_further() -> None:
    """For a new option, command or name another one goes."""
    options = [one for name in COMMANDS for one in _command_parser(name)[0]._actions if one.option_strings]
    common = {"help", "max_size", "quiet", "verbose"}
    assert len([one for one in options if one.dest not in common]) <= 246
    assert len(COMMANDS) <= 21 and len(rubric_measures.__all__) <= 40


def test_ids_cannot_break_or_forge_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leaderboard", str(tmp_path / "a\x1b[31m\n\u202eb · ü")]) == 2
    assert "a\\x1b[31m\\n\\u202eb · ü" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--places", "x"], ["--output"], ["a", "--format", "no\nformat"]])
def test_wrong_arguments_are_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["leaderboard", *arguments])
    said = capsys.readouterr().err
    assert stopped.value.code == 2
    assert said.startswith("rubric_measures leaderboard: ") and said.count("\n") == 1 and "--help" in said
