"""The commands of docs/analysis.md, run as they stand there on the example collection."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, commands, run


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy")
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "resources" / "example", "example")
    shown = commands("analysis", "sh")
    names = ["leaderboard"] * 2 + ["compare"] * 2 + ["correlate"] * 2 + ["leaderboard", "correlate", "qrels"]
    names += ["agreement"] * 4 + ["power", "check", "check", "check", "leaderboard"]
    assert [command[0] for command in shown] == names
    # The example has nine queries, and ten tell how many are needed.
    outputs = [run([command], capsys, (command[0] == "power",))[0] for command in shown]
    grid = outputs[5]
    # Four measures at five levels for the one grade set of questions; the nuggets are not of this bank.
    assert len(grid.out.splitlines()) == 1 + 20 + 2
    assert "picked as the best of 20 on 4 queries" in grid.out
    assert "1 grade set has no grade of an item in the bank and was left out" in grid.err
    assert "kind=nugget" in grid.err
    for name in ("bland-altman.pdf", "ranking.pdf"):
        assert Path(name).read_bytes().startswith(b"%PDF")
