"""Every benchmark runs, with the smallest input, as its command line does."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import generate_collection, notices
from rubric_measures.base.errors import MissingExtraError

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
# Benchmark -> its arguments (DIR is an empty folder), and the sizes of its input that no argument says.
SMALLEST: dict[str, tuple[str, Mapping[str, Any]]] = {
    "audits": ("looks stages --repeats 2", {}),
    "conclusions": ("--repeats 2", {}),
    "conformance": ("", {"CHECKS": {}, "LEFT": {}}),
    "failed_grades": ("--rounds 1", {"RUNS": 3, "QUERIES": 4, "PASSAGES": 25, "ITEMS": 3}),
    "gpu": ("llama --size tiny --folder DIR --passages 1 --words 5", {"ITEMS": 2}),
    "grading": ("DIR --repeats 1", {"QUERIES": 1, "PASSAGES": 2, "ITEMS": 2}),
    "http": ("--calls 4 --rounds 1 --limited-calls 4 --memory-calls 20", {}),
    "hugging_face": ("--only dtypes", {}),
    "items_per_call": ("", {"PASSAGES": 2}),
    "graders": ("--repeats 1", {"GRADERS": 2, "QUERIES": 8, "DEPTH": 5}),
    "lazy": ("", {}),
    "lost_facts": ("--repeats 1", {}),
    "make_example_runs": ("--check", {}),
    "measures": ("DIR --repeats 1 --only nuggets", {}),
    "meta_evaluation": ("--repeats 2", {"RUNS": 4, "QUERIES": 6, "MEASURES": 2}),
    "notices": ("--workers 1", {"CHANGES": notices.CHANGES[:2], "odd_files": list, "shared_files": list}),
    "pooling": ("DIR --passages 400 --repeats 1", {}),
    "racing": ("--repeats 2", {}),
    "ray_grading": ("overhead --blocks 2", {}),
    "review": ("", {"QUERIES": 6, "PASSAGES": 60, "ITEMS": 3, "RUNS": 2, "ROUNDS": 1, "GIVEN": 5, "IDLE": 0.02}),
    "scale": ("", {}),
    "tournament": ("--games 60 --rounds 5 --repeats 1", {}),
}
# Peers that stand beside ours in a benchmark.
PEERS = {"measures": "nuggetizer", "notices": "pyndeval"}
# What others are made of.
PARTS = {"generate_collection", "notices_changes", "notices_edits", "notices_files", "notices_odd"}


def test_every_benchmark_is_run() -> None:
    assert {path.stem for path in FOLDER.glob("[a-z]*.py")} == SMALLEST.keys() | PARTS


@pytest.mark.parametrize("name", SMALLEST)
def test_a_benchmark_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name in PEERS:
        pytest.importorskip(PEERS[name])
    try:
        module = importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        # Some measure what only an extra brings.
        assert error.name in ("torch", "transformers", "httpx", "openai", "ray"), error
        pytest.skip(f"{error.name} is not installed")
    arguments, sizes = SMALLEST[name]
    for size, value in sizes.items():
        monkeypatch.setattr(module, size, value)
    if name == "measures":
        for size, value in {"SIZE": (2, 22, 3, 2), "DEPTH": 200, "RUNS": 2, "TOPICS": 3}.items():
            monkeypatch.setattr(generate_collection, size, value)
        generate_collection.generate(tmp_path / "small", generate_collection.write_small)
    monkeypatch.setattr(sys, "argv", [name, *arguments.replace("DIR", str(tmp_path)).split()])
    monkeypatch.chdir(FOLDER.parent)
    try:
        assert module.main() in (None, 0)
    except MissingExtraError as error:
        pytest.skip(str(error))
    # Each row of a table has as many cells.
    for table in capsys.readouterr().out.split("\n\n"):
        assert len({line.count("|") for line in table.splitlines() if line.startswith("|")}) < 2
