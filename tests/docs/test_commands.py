"""Every command that README and guides show is one that the program takes; those of the README run on the example."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rubric_measures.cli import COMMANDS, _command_parser, main

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))]
# A line of a code block, fenced or indented, with or without prompt; a comment or another program may follow.
COMMAND = re.compile(r"^(?: {4})?(?:\$ )?rubric_measures (?P<line>[a-z].*?)(?:\s+#\s.*|\s+&&.*)?$", re.MULTILINE)


def commands(page: str) -> list[list[str]]:
    # A backslash at the end of a line goes on with the next one.
    text = re.sub(r"\\\n\s*", " ", (ROOT / page).read_text(encoding="utf-8"))
    return [shlex.split(match["line"]) for match in COMMAND.finditer(text)]


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_taken(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name, *arguments in commands(page):
        parser, _ = _command_parser(name)
        try:
            parser.parse_intermixed_args(arguments)
        except SystemExit:
            pytest.fail(f"{page}: {name} {' '.join(arguments)}: {capsys.readouterr().err}")


def test_pages_with_commands_are_run_by_a_test() -> None:
    """A page that shows commands has its test; what needs a real model or a browser is left to the tests of those."""
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "docs").glob("test_*.py"))
    tested = {f"docs/{name.replace('_', '-')}.md" for name in re.findall(r"def test_(\w+)\(", tests)}
    tested |= {f"docs/{path.stem.removeprefix('test_').replace('_', '-')}.md" for path in
               (ROOT / "tests" / "docs").glob("test_*.py")}  # fmt: skip
    shown = {page for page in PAGES for command in commands(page) if not {"hf", "openai"} & _models(command)}
    assert shown - {"README.md"} <= tested


def _models(command: list[str]) -> set[str]:
    return {part.partition(":")[0] for part in command}


def test_the_readme_s_main_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["example", "--copy", str(tmp_path / "example")])
    capsys.readouterr()
    monkeypatch.chdir(tmp_path / "example")
    shown = [command for command in commands("README.md") if command[0] != "review"]
    assert [command[0] for command in shown] == ["pool", "grade", "leaderboard", "evaluate", "qrels"]
    outputs = []
    for command in shown:
        assert main(command) == 0, (command, capsys.readouterr().err)
        outputs.append(capsys.readouterr().out)
    assert [line.split()[0] for line in outputs[2].splitlines()[:3]] == ["run", "bm25", "fusion"]
    assert outputs[3].splitlines()[0].startswith("q01\tRubricCover(rel=4)@20\t")
    assert Path("rubric.qrels").read_text(encoding="utf-8").startswith("q01 ")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_makefile_makes_what_changed(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    [makefile] = re.findall(r"^```make\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    folder, programs = tmp_path / "example", tmp_path / "bin"
    main(["example", "--copy", str(folder)])
    (folder / "Makefile").write_text(makefile, encoding="utf-8")
    programs.mkdir()
    program = programs / "rubric_measures"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m rubric_measures "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    python = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])

    def made() -> list[str]:
        environment = {**os.environ, "PATH": path, "PYTHONPATH": python}
        done = subprocess.run(["make"], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return [line.split()[1] for line in done.stdout.splitlines() if line.startswith("rubric_measures ")]

    assert made() == ["pool", "grade", "leaderboard"]
    assert (folder / "board.json").stat().st_size > 1000
    assert made() == []
    (folder / "board.json").unlink()
    assert made() == ["leaderboard"]
    newer = (folder / "board.json").stat().st_mtime + 10
    os.utime(folder / "questions.jsonl", (newer, newer))
    assert made() == ["grade", "leaderboard"]


def test_the_readme_s_first_command_names_the_missed_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    [line] = re.findall(r"^    .*bin/rubric_measures (answers .*)$", text, re.MULTILINE)
    assert text.index(line) < text.index("##")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "resources" / "example", "resources/example")
    assert main(shlex.split(line)) == 0
    page = Path("report/index.html").read_text(encoding="utf-8")
    assert "Words that are not there: " in page
    assert "Facts that separate runs" in page


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/scores.md", "docs/formats.md", "docs/review.md"])
def test_options_in_sentences_are_there(page: str) -> None:
    """Of pages that name options of no other program but ir_measures."""
    known = {one for name in COMMANDS for one in _command_parser(name)[0]._option_string_actions}
    text = (ROOT / page).read_text(encoding="utf-8").replace("`ir_measures --provider", "")
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - known == set()
