"""The plugin of pytest, run by a pytest inside the test: it passes, and fails with the missed facts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

TESTS = """
ROWS = [
    {"question": "Why is the sky blue?", "answer": "Air scatters blue light most.", "system": "mine",
     "reference": "Air scatters blue light most. Our eyes see little violet."},
]

def test_passes(evaluate_answers):
    evaluate_answers(ROWS).assert_at_least("NuggetV", 0.5)

def test_fails(evaluate_answers):
    evaluate_answers(ROWS).assert_at_least("NuggetV", 0.7)
"""
MODULE = "rubric_measures.integrations.pytest_plugin"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What pytest prints over the tests of a folder."""
    monkeypatch.chdir(tmp_path)
    # pytest puts its cache into the folder of tox where there is one.
    monkeypatch.delenv("TOX_ENV_DIR", raising=False)
    monkeypatch.delitem(sys.modules, "test_mine", raising=False)
    # Where the package is installed pytest finds the plugin by itself.
    named = [] if entry_points(group="pytest11", name="rubric_measures") else ["-p", MODULE]

    def called(*arguments: str) -> str:
        common = ["-q", "-s", "--rootdir", str(tmp_path), "--import-mode=importlib", "-p", "no:xdist", *named]
        pytest.main([*common, *arguments])
        return capsys.readouterr().out

    (tmp_path / "test_mine.py").write_text(TESTS, encoding="utf-8")
    return called


def test_a_failure_lists_the_missed_facts(tmp_path: Path, run: Callable[..., str]) -> None:
    assert "no model grades the answers: set rubric_model in pytest.ini" in run()
    said = run("--junitxml", "junit.xml", "--rubric-model", "lexical")
    assert "1 failed, 1 passed" in said
    assert "NuggetV(rel=4,partial_rel=3) of mine is 0.5000, 0.2000 under 0.7; lowest: q01 0.5" in said
    assert "mine misses of Why is the sky blue?" in said
    assert "- Our eyes see little violet. (vital, grade 0)" in said
    # The test's own line is shown, and none of the library's.
    assert "_answers.py" not in said
    assert "Our eyes see little violet." in (tmp_path / "junit.xml").read_text(encoding="utf-8")
    assert (tmp_path / ".pytest_cache" / "d" / "rubric_measures" / "replies.sqlite").exists()


def test_the_model_is_that_of_the_test_run(tmp_path: Path, run: Callable[..., str]) -> None:
    (tmp_path / "model.jsonl").write_text('{"reply": "5"}\n', encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nrubric_model = lexical\n", encoding="utf-8")
    text = TESTS.replace("(ROWS)", '(ROWS, bank_from="sentences")')
    (tmp_path / "test_mine.py").write_text(text, encoding="utf-8")
    assert "2 passed" in run("--rubric-model", "scripted:model.jsonl")
