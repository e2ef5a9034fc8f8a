"""Where the real public data lie that some tests use: never in the repository, beside it where somebody has them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def shared_data(name: str) -> Path:
    """The folder or file `name` of the shared data; skips the test where it is absent."""
    folders = [Path(__file__).parents[2] / "shared"]
    if "RUBRIC_MEASURES_SHARED" in os.environ:
        folders.insert(0, Path(os.environ["RUBRIC_MEASURES_SHARED"]))
    for folder in folders:
        path = folder / "data" / name
        if path.exists():
            return path
    pytest.skip(f"the shared data {name} are not here")
