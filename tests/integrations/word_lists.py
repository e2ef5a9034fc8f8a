"""Auto-Judge's package where there is no network.

On import it downloads word lists for a text splitter that no judge of ours uses; empty ones take their place here.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest


def write_word_lists(folder: Path) -> None:
    """Word lists where NLTK looks for them, below `folder`."""
    (folder / "corpora" / "stopwords").mkdir(parents=True)
    (folder / "corpora" / "stopwords" / "english").write_text("the\n")
    (folder / "tokenizers" / "punkt").mkdir(parents=True)


def import_base() -> Any:
    """The real package."""
    data = pytest.importorskip("nltk").data
    folder = Path(tempfile.mkdtemp(prefix="word-lists-"))
    write_word_lists(folder)
    data.path.append(str(folder))
    try:
        return pytest.importorskip("autojudge_base")
    finally:
        data.path.remove(str(folder))
        shutil.rmtree(folder)
