"""Tests of runs with the comments of ir_metadata at their top."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.formats.trec import read_run

LINES = "q1 Q0 d1 1 2.0 first\nq1 Q0 d2 2 1.0 first\n"
# As repro_eval writes it.
HEADER = """# ir_metadata.start
# tag: first
# platform:
#   software:
#     libraries:
#     - 'pyterrier'
# method:
#   automatic: true
#   generation:
#     llm: openai/gpt-4o
# ir_metadata.end
"""
QRELS = "q1 0 d1 1\nq1 0 d2 0\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("first.run").write_text(HEADER + LINES)
    Path("plain.run").write_text(LINES)
    Path("qrels.txt").write_text(QRELS)
    return tmp_path


def test_a_run_with_comments_is_the_run_without(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_run("first.run") == read_run("plain.run")
    for command in (["leaderboard", "qrels.txt", "RUN", "-m", "P@1"], ["evaluate", "qrels.txt", "RUN", "P@1"]):
        outputs = []
        for run in ("first.run", "plain.run"):
            assert main([run if word == "RUN" else word for word in command]) == 0
            outputs.append(capsys.readouterr())
        assert outputs[0] == outputs[1]
