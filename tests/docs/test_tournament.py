"""The commands of docs/tournament.md, run as they stand there; the numbers that the page prints."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from rubric_measures.formats.leaderboards import read_leaderboard
from tests.docs.pages import ROOT, commands, run, text_of

PAGE = text_of("tournament")


def test_the_walkthrough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "resources" / "example", "example")
    shown = commands("tournament", "sh")
    assert [command[0] for command in shown] == [
        "tournament",
        "pool",
        "grade",
        "leaderboard",
        "tournament",
        "correlate",
    ]
    outputs = run(shown, capsys)
    printed = re.findall(r"```text\n(.*?)```", PAGE, re.S)
    assert outputs[0].out == printed[0]
    notes = outputs[0].err
    for said in ("concise has none to q06", "50 games (50 new)", "thorough won every game", "only 9 queries"):
        assert said in notes
    nuggets, games = (read_leaderboard(name) for name in ("nuggets.tsv", "tournament.tsv"))
    rating, share = (games.column(name) for name in ("BradleyTerry", "WinRate"))
    rows = [
        f"| {run_id} | {value:.4f} | {rating[run_id]:.1f} | {share[run_id]:.1f} |"
        for run_id, value in nuggets.column("NuggetV(rel=3,partial_rel=1)@20").items()
    ]
    assert [row for row in rows if row not in PAGE] == []
    scores = dict(line.split()[:3:2] for line in outputs[-1].out.splitlines())
    assert scores == {"measure": "kendall", "BradleyTerry": "1.0000", "WinRate": "1.0000"}
