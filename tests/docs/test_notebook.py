"""The notebook runs as it stands there, and gives the outputs that it ships with.

`python -m tests.docs.test_notebook` writes its outputs anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "notebooks" / "example.ipynb"


def run(target: str) -> None:
    """Writes the notebook with the outputs of a kernel that works here; the one that ships has no notes and bars."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"]}
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code" and target == str(NOTEBOOK):
            cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
    nbformat.write(notebook, target)


def outputs(path: Path) -> list[list[dict[str, Any]]]:
    """What each cell of code shows; of pictures that they are there."""
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    return [
        [one.get("text") or {kind: kind.startswith("image/") or shown for kind, shown in one["data"].items()}
         for one in cell["outputs"] if one.get("name") != "stderr" and one["output_type"] != "display_data"]
        for cell in cells
    ]  # fmt: skip


def test_the_notebook_shows_what_it_ships_with(tmp_path: Path) -> None:
    for extra in ("nbclient", "ipykernel", "matplotlib"):
        pytest.importorskip(extra)
    command = [sys.executable, "-m", "tests.docs.test_notebook", str(tmp_path / "run.ipynb")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # Who asks for a bar sees how far it is.
    text = (tmp_path / "run.ipynb").read_text(encoding="utf-8")
    assert " requests/s" in text
    shown = outputs(tmp_path / "run.ipynb")
    assert len(shown) >= 10 and all(shown)
    assert shown == outputs(NOTEBOOK)


if __name__ == "__main__":
    wanted = str(Path(sys.argv[1]).resolve()) if len(sys.argv) > 1 else str(NOTEBOOK)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run(wanted)
