"""The commands of docs/analysis.md, run as they stand there on the example collection."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from rubric_measures.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "analysis.md").read_text(encoding="utf-8")


def expanded(part: str) -> list[str]:
    """A part of a command line as the shell hands it over: file patterns as the files."""
    return sorted(map(str, Path().glob(part))) if re.fullmatch(r"[\w./-]*\*[\w./-]*", part) else [part]


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy")
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "resources" / "example", "example")
    commands = [
        shlex.split(line) for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S) for line in block.splitlines()
    ]
    names = ["leaderboard"] * 2 + ["compare"] * 2 + ["correlate"] * 2 + ["leaderboard", "correlate", "qrels"]
    names += ["agreement"] * 4 + ["power", "check", "check", "check", "leaderboard"]
    assert [command[:2] for command in commands] == [["rubric_measures", name] for name in names]
    outputs = []
    for command in commands:
        arguments = [argument for part in command[1:] for argument in expanded(part)]
        # The example has nine queries, and ten tell how many are needed.
        assert main(arguments) == (command[1] == "power"), command
        outputs.append(capsys.readouterr())
    grid = outputs[5]
    # Four measures at five levels for the one grade set of questions; the nuggets are not of this bank.
    assert len(grid.out.splitlines()) == 1 + 20 + 2
    assert "picked as the best of 20 on 4 queries" in grid.out
    assert "1 grade sets have no grade of an item in the bank and were left out" in grid.err
    assert "kind=nugget" in grid.err
    for name in ("bland-altman.pdf", "ranking.pdf"):
        assert Path(name).read_bytes().startswith(b"%PDF")
