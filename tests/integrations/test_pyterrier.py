"""PyTerrier finds collections by the entry point of the package."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
import pyterrier as pt
from pyterrier.datasets import _core
if not pt.utils.entry_points("pyterrier.dataset_provider") or sys.argv[1] not in [
    one.name for one in pt.utils.entry_points("pyterrier.dataset_provider")
]:
    # The package is on the path and not installed: what the entry point would load.
    from importlib.metadata import EntryPoint
    _core._loaded_providers[sys.argv[1]] = EntryPoint(sys.argv[1], sys.argv[2], "pyterrier.dataset_provider").load()()
example = pt.get_dataset("rubric_measures:example")
topics, qrels = example.get_topics(), example.get_qrels()
first, _ = example.get_corpus_iter(verbose=False, count=2)
print(len(topics), sorted(topics.columns), sorted(qrels.columns), first["docno"])
print(len(pt.get_dataset(f"rubric_measures:{sys.argv[3]}").get_topics()))
try:
    pt.get_dataset("rubric_measures:no-such-folder")
except KeyError as error:
    print(error)
"""


def test_collections_are_datasets(tmp_path: Path) -> None:
    pytest.importorskip("pyterrier")
    points = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    ((name, value),) = points["pyterrier.dataset_provider"].items()
    (tmp_path / "queries.tsv").write_text("q1\tfirst\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name, value, str(tmp_path)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    found, own, missing = done.stdout.splitlines()
    assert found.startswith("9 ['qid', 'query'") and "'docno', 'label', 'qid'" in found and found.endswith(" d0101")
    assert own == "1"
    assert "not found in provider 'rubric_measures'" in missing
