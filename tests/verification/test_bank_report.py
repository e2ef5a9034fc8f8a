"""Tests of the bank report: pairs, halves, suggestions; by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rubric_measures.base.tables import Undefined
from rubric_measures.cli import main
from rubric_measures.measures.loading import RecordQuery, read_records
from rubric_measures.verification.banks import (
    ItemStatistics,
    RunCoverage,
    bank_halves,
    items_against,
    redundant_pairs,
)
from tests.example_records import grade_set, passage, write_lines


def coverage_of(tables: dict[str, list[list[int]]]) -> RunCoverage:
    """Query -> rows of runs, columns of items."""
    covered = {query: np.array(table, dtype=np.bool_) for query, table in tables.items()}
    runs = len(next(iter(covered.values())))
    items = {query: tuple(f"{query}/{i}" for i in range(table.shape[1])) for query, table in covered.items()}
    return RunCoverage(tuple(f"r{i:02}" for i in range(runs)), items, covered, {})


def queries_of(tmp_path: Path, lines: list[object]) -> list[RecordQuery]:
    return list(read_records(write_lines(tmp_path / "graded.jsonl", lines)))


def test_pairs_that_the_same_passages_cover(tmp_path: Path) -> None:
    # a and b: 4 passages cover both, 1 covers b alone, 5 neither: agreement .9, by chance .4 · .5 + .6 · .5 = .5,
    # κ = .4 / .5 = .8. c is covered by all but one passage: it agrees with nothing beyond chance.
    grades = [(5, 5)] * 4 + [(0, 5)] + [(0, 0)] * 5
    passages = [
        passage("q1", f"d{i}", [grade_set({"q1/a": a, "q1/b": b, "q1/c": 0 if i == 9 else 5})], {"x": i + 1})
        for i, (a, b) in enumerate(grades)
    ]
    (query,) = queries_of(tmp_path, [["q1", passages]])
    (pair,) = redundant_pairs(query)
    assert (pair.first, pair.second, pair.passages, pair.both) == ("q1/a", "q1/b", 10, 4)
    assert pair.kappa == pytest.approx(0.8)


def row(item_id: str, r: float | None) -> ItemStatistics:
    nothing = Undefined("")
    return ItemStatistics("q", item_id, "", 1, 0, 1, 0, 0, 0, 0, nothing, nothing if r is None else r, None, 0)


def test_items_against_the_rest() -> None:
    # r = -.8 of 12 runs: t = -.8 √(10 / .36) = -4.216, 10 degrees of freedom: one-sided p = .00089, three tests.
    found = items_against([row("bad", -0.8), row("good", 0.8), row("odd", -0.3), row("none", None)], 12)
    assert [row.item_id for row, _ in found] == ["bad"]
    assert found[0][1] == pytest.approx(3 * 0.00089, abs=1e-4)
    assert items_against([row("bad", -1.0)], 2) == []


def test_halves_and_both_bootstraps() -> None:
    # Each run covers all items or none: halves agree fully, and no draw changes anything.
    clear = bank_halves(coverage_of({"q1": [[1] * 4, [0] * 4], "q2": [[1] * 4, [0] * 4]}), rounds=20)
    assert (clear.half_tau, clear.reliability, clear.tau, clear.first) == (1.0, pytest.approx(1.0), 1.0, 1.0)
    generator = np.random.default_rng(2)
    noise = {f"q{q}": (generator.random((12, 6)) < 0.5).astype(int).tolist() for q in range(10)}
    found = bank_halves(coverage_of(noise), rounds=50)
    assert abs(found.half_tau) < 0.35 and found.first < 0.8 and found.tau_low < found.tau
    assert bank_halves(coverage_of(noise), rounds=50) == found
    alone = bank_halves(coverage_of({"q": [[1, 0]]}), rounds=5)
    assert (alone.half_tau, alone.tau, alone.first) == (None, None, None)


# x alone brings d3, the only passage that covers q1/c; nothing covers q1/d.
POOL: list[object] = [
    ["q1", [
        passage("q1", "d1", [grade_set({"q1/a": 5, "q1/b": 0, "q1/c": 0, "q1/d": 0})], {"x": 1, "y": 1}),
        passage("q1", "d2", [grade_set({"q1/a": 0, "q1/b": 5, "q1/c": 0, "q1/d": 0})], {"y": 2, "z": 1}),
        passage("q1", "d3", [grade_set({"q1/a": 0, "q1/b": 0, "q1/c": 5, "q1/d": 0})], {"x": 2}),
    ]],
]  # fmt: skip


def test_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = write_lines(tmp_path / "graded.jsonl", POOL)
    start = ["verify", "suggest", str(records)]
    assert main(start) == 0
    assert "What to split, merge, reword and retire" in capsys.readouterr().out
    assert main([*start, "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = {row["what"]: row["value"] for row in rows if row["report"] == "bank"}
    assert (found["runs"], found["items at the floor"], found["items at the ceiling"]) == (3, 1, 0)
    (advice,) = (row for row in rows if row["report"] == "bank-suggestions")
    assert (advice["action"], advice["item_id"]) == ("check", "q1/d")
    assert main([*start, "--format", "html", "--output", str(tmp_path / "report.html")]) == 0
    assert "Items at floor and ceiling" in (tmp_path / "report.html").read_text()
