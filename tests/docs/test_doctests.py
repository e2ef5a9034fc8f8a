"""The examples in docstrings run, and give what they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import rubric_measures

ROOT = Path(rubric_measures.__file__).parent
WITH_EXAMPLES = sorted(path for path in ROOT.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_give_what_they_show(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = ".".join(("rubric_measures", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    if "to_dataframe()." in path.read_text(encoding="utf-8"):
        pytest.importorskip("pandas")
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0, capsys.readouterr().out
