"""The commands of docs/tutorial-rag.md, run as they stand there in an empty folder."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from rubric_measures.cli import main

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tutorial-rag.md").read_text(encoding="utf-8")


def test_from_a_table_to_a_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    printed, said = [], []
    for line in re.findall(r"^(?:rubric_measures|cp) .*$", PAGE, re.MULTILINE):
        program, *arguments = shlex.split(line)
        if program == "cp":
            shutil.copytree(*arguments[1:]) if arguments[0] == "-r" else shutil.copy(*arguments)
            continue
        assert main(arguments) == 0, (line, capsys.readouterr().err)
        captured = capsys.readouterr()
        printed.append(captured.out)
        said.append(captured.err)
    # What the page shows, and says in words.
    [shown] = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert printed[1].startswith(shown)
    assert "44 items" in said[1]
    assert "122 calls, 0 replies" in said[1]
    assert "no calls, 122 replies" in said[2]
    assert "Leaderboard" in Path("report/index.html").read_text(encoding="utf-8")
