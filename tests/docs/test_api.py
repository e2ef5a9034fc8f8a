"""The examples of docs/api.md and of the README run on the example collection."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures.cli import main

ROOT = Path(__file__).parents[2]
FUNCTIONS = {
    *(
        "agreement",
        "combine",
        "compare",
        "convert",
        "correlate",
        "evaluate_answers",
        "generate",
        "grade",
        "load",
        "load_bank",
    ),
    *("measure_of", "pool", "score", "tournament", "write_report"),
}


def snippets(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder in which the pages' code runs, as the README says."""
    main(["example", "--copy", str(tmp_path / "example")])
    monkeypatch.chdir(tmp_path / "example")


@pytest.mark.usefixtures("notebook")
@pytest.mark.parametrize("page", ["README.md", "docs/api.md"])
def test_the_examples_run(page: str) -> None:
    for extra in ("pandas", "matplotlib"):
        pytest.importorskip(extra)
    names: dict[str, Any] = {}
    blocks = snippets(page)
    assert len(blocks) > 1
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    assert names["board"].ranking() == ["bm25", "fusion"]


def test_names_are_functions_after_all_modules_were_imported() -> None:
    for module in pkgutil.walk_packages(rubric_measures.__path__, "rubric_measures."):
        # PyTerrier finds its door by an entry point; nobody else opens it.
        if not module.name.endswith(("__main__", "integrations.pyterrier")):
            importlib.import_module(module.name)
    for name in FUNCTIONS:
        assert callable(getattr(rubric_measures, name)), name
    assert set(rubric_measures.__all__) > FUNCTIONS
