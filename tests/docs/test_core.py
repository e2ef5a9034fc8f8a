"""docs/core.md prints the normative core as it is, with all its measures; and the core stands alone."""

from __future__ import annotations

import html
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rubric_measures.measures import core

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "core.md").read_text(encoding="utf-8")
FILE = Path(core.__file__)


def test_the_page_prints_the_file() -> None:
    markdown = pytest.importorskip("markdown")
    pytest.importorskip("pymdownx")
    assert "pymdownx.snippets" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    options = {"pymdownx.snippets": {"base_path": [str(ROOT)], "check_paths": True}}
    extensions = ["pymdownx.superfences", "pymdownx.snippets"]
    shown = markdown.markdown(PAGE, extensions=extensions, extension_configs=options)
    block = html.unescape(re.sub(r"<[^>]+>", "", shown[shown.index("The file</h2>") :]))
    assert block.partition("The file")[2].strip() == FILE.read_text(encoding="utf-8").strip()


def test_the_page_explains_all_of_it() -> None:
    of_items, of_novelty = (
        set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", part.partition("\n## ")[0], re.MULTILINE))))
        for part in re.split(r"^## Measures of (?:items|novelty).*$", PAGE, flags=re.MULTILINE)[1:]
    )
    assert of_items == set(core.ITEM_MEASURES)
    assert of_novelty == set(core.NOVELTY)
    of_labels = PAGE.partition("## Measures of labels")[2].partition("\n## ")[0]
    assert all(re.search(rf"\b{name}\b", of_labels) for name in core.LABEL_MEASURES)
    for function in (core.View, core.covered, core.items, core.novelty, core.labels):
        assert re.search(rf"^## .*`{function.__name__}`$", PAGE, re.MULTILINE)
        assert inspect.getdoc(function)


def test_the_core_can_be_copied(tmp_path: Path) -> None:
    shutil.copy(FILE, tmp_path / "their_core.py")
    program = (
        "import sys, numpy as np, their_core as core\n"
        "one = np.array([1])\n"
        "view = core.View(np.array([[[5.0, 0.0]]]), None, one[None], one, np.ones(2), np.ones(2, bool))\n"
        "row = core.ITEM_MEASURES['RubricCover']\n"
        "print(core.items(view, lambda: view, row, {4: 1.0}).value.tolist())\n"
        "print([name for name in sys.modules if name.startswith(('rubric_measures', 'ir_measures'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("[0.5]\n[]\n", "")
