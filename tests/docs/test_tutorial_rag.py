"""The commands of docs/tutorial-rag.md, run as they stand there on the example's answers."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tutorial-rag.md").read_text(encoding="utf-8")


def test_from_a_table_to_a_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(example_folder() / "answers.csv", "results.csv")
    said = []
    for line in re.findall(r"^(?:rubric_measures|cp) .*$", PAGE, re.MULTILINE):
        program, *arguments = shlex.split(line)
        if program == "cp":
            shutil.copy(*arguments)
            continue
        assert main(arguments) == 0, (line, capsys.readouterr().err)
        said.append(capsys.readouterr().err)
    # What the page says in words.
    assert "44 items" in said[0]
    assert "122 calls, 0 replies" in said[0]
    assert "no calls, 122 replies" in said[1]
    assert "Leaderboard" in Path("report/index.html").read_text(encoding="utf-8")
