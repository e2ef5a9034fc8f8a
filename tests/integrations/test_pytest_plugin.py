"""The plugin of pytest, run by a pytest of its own: it passes, fails with the missed facts, and asks nothing twice."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

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


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Where the package is installed pytest finds the plugin by itself.
    named = [] if entry_points(group="pytest11", name="rubric_measures") else ["-p", MODULE]
    command = [sys.executable, "-m", "pytest", "-q", *named, *arguments]
    paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    # pytest puts its cache into the folder of tox where there is one.
    environment.pop("TOX_ENV_DIR", None)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_a_failure_lists_the_missed_facts(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(TESTS, encoding="utf-8")
    assert "no model grades the answers: set rubric_model in pytest.ini" in run(tmp_path).stdout
    found = run(tmp_path, "--junitxml", "junit.xml", "--rubric-model", "lexical")
    assert "1 failed, 1 passed" in found.stdout, found.stdout + found.stderr
    assert "NuggetV(rel=4,partial_rel=3) of mine is 0.5000, 0.2000 under 0.7; lowest: q01 0.5" in found.stdout
    assert "mine misses of Why is the sky blue?" in found.stdout
    assert "- Our eyes see little violet. (vital, grade 0)" in found.stdout
    # The test's own line is shown, and none of the library's.
    assert "_answers.py" not in found.stdout
    assert "Our eyes see little violet." in (tmp_path / "junit.xml").read_text(encoding="utf-8")
    assert (tmp_path / ".pytest_cache" / "d" / "rubric_measures" / "replies.sqlite").exists()


def test_the_model_is_that_of_the_test_run(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "model.jsonl").write_text('{"reply": "5"}\n', encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nrubric_model = lexical\n", encoding="utf-8")
    model = ["--rubric-model", "scripted:model.jsonl"]
    text = (tmp_path / "test_mine.py").read_text(encoding="utf-8").replace("(ROWS)", '(ROWS, bank_from="sentences")')
    (tmp_path / "test_mine.py").write_text(text, encoding="utf-8")
    assert "2 passed" in run(tmp_path, *model).stdout


def test_it_loads_nothing_heavy() -> None:
    program = f"import sys, {MODULE}; print({{'numpy', 'pandas', 'pydantic', 'scipy', 'torch'}} & set(sys.modules))"
    paths = str(Path(__file__).parents[2])
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "set()"
