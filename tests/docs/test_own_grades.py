"""The commands of docs/own-grades.md, run as they stand there on the tables of the page; scores worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import blocks, commands, run


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in zip(("judges.csv", "bank.csv"), blocks("own-grades", "csv"), strict=True):
        Path(name).write_text(text, encoding="utf-8")
    outputs = [printed.out.splitlines() for printed in run(commands("own-grades"), capsys)]
    # gpt: both boil the water (vital); prod has 1 of 2 items, candidate both.
    rows = [row.split()[:3] for row in outputs[0][1:3]]
    assert rows == [["candidate", "1.0000", "1.0000"], ["prod", "1.0000", "0.5000"]]
    # ada is the truth of gpt and llama.
    assert [row.split()[1] for row in outputs[1][1:3]] == ["gpt", "llama"]
    # The median of 2, 0 and 1 is 1.
    assert [row.split()[:2] for row in outputs[3][1:3]] == [["candidate", "1.0000"], ["prod", "0.5000"]]
