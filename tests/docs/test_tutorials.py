"""The tutorials run as they stand there, on the example collection."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PYTHON = re.compile(r"^```python\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    return (DOCS / f"tutorial-{name}.md").read_text(encoding="utf-8")


def test_a_paper_s_table_and_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for extra in ("pandas", "matplotlib", "pyterrier"):
        pytest.importorskip(extra)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in PYTHON.findall(page("paper")):
        exec(compile(block, "tutorial-paper", "exec"), names)
    # What the page says in words.
    pairs = names["board"].compare(baseline="bm25").to_dataframe()
    assert set(pairs[pairs.conclusion.isin(("better", "worse"))].run) == {"random"}
    found = names["rubric_measures"].correlate(names["official"], names["board"]).to_dataframe()
    assert [round(value, 2) for value in found.kendall] == [0.05, 0.24]
    assert Path("figure.pdf").stat().st_size > 1000


def test_a_measure_and_a_backend_of_one_s_own(tmp_path: Path) -> None:
    """In a process of its own: what is registered stays."""
    pytest.importorskip("pandas")
    code = "\n".join([*PYTHON.findall(page("measure")), CHECKED])
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-2:]) == (0, ["0.5", "dice:7"]), done.stderr


CHECKED = """
print(rubric_measures.score(rows, ranking, ["FirstCover(rel=4)@5"]).to_dataframe().iloc[-1, 0])
print(records[0].passages[0].exam_grades[0].llm)
"""
