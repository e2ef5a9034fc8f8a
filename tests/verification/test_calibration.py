"""Tests of what verify and reviews make of distributions: calibration by hand, orders by uncertainty."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.cli import main
from rubric_measures.verification.sections import calibration_bins
from tests.example_records import grade_set, passage, write_lines

# doc -> the distribution of item q1/a, and the grade by an assessor (None: nobody checked it).
CASES: dict[str, tuple[dict[str, float], int | None]] = {
    "d1": ({"0": 0.05, "4": 0.95}, 4),
    "d2": ({"0": 0.95, "5": 0.05}, 3),
    "d3": ({"1": 0.45, "2": 0.55}, 2),
    "d4": ({"1": 0.6, "5": 0.4}, None),
}


def _set(shares: dict[str, float]) -> dict[str, Any]:
    most = max(shares, key=lambda grade: shares[grade])
    return {**grade_set({"q1/a": int(most)}), "details": {"q1/a": {"distribution": shares}}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    passages = []
    for doc_id, (shares, checked) in CASES.items():
        sets = [_set(shares)]
        if checked is not None:
            sets.append(grade_set({"q1/a": checked}, llm="human:ada"))
        passages.append(passage("q1", doc_id, sets))
    return write_lines(tmp_path / "graded.jsonl.gz", [["q1", passages]])


def test_ranges_by_hand() -> None:
    found = calibration_bins([(0.95, True), (0.91, False), (1.0, True), (0.9, True), (0.55, False)])
    assert [one[:3] for one in found] == [(0.5, 0.6, 1), (0.8, 0.9, 1), (0.9, 1.0, 3)]
    last = found[-1]
    assert (last.confidence, last.agreement) == pytest.approx((2.86 / 3, 2 / 3))
    # Wilson of 2 of 3 with z = 1.96: (2/3 + z²/6 ± z √(2/27 + z²/36)) / (1 + z²/3).
    assert (last.least, last.most) == pytest.approx((0.20766, 0.93851), abs=1e-5)


def test_confidence_against_assessors(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["verify", "calibration", str(path), "--format", "jsonl"]
    assert main(argv) == 0
    low, high = map(json.loads, capsys.readouterr().out.splitlines())
    # d3 in the first range, d1 (right) and d2 (wrong) in the second; nobody checked d4.
    assert (low["grades"], low["confidence"], low["agreement"]) == (1, 0.55, 1.0)
    assert (high["grades"], high["confidence"], high["agreement"]) == (2, 0.95, 0.5)
    # (|1 − .55| + 2 |.5 − .95|) / 3 = .45
    assert "3 grades with assessors', agreement 0.667, expected calibration error 0.450" in low["title"]


def test_calibration_of_grades_without_distributions_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = [grade_set({"q1/a": 3}), grade_set({"q1/a": 3}, llm="human:ada")]
    plain = write_lines(tmp_path / "plain.jsonl", [["q1", [passage("q1", "d1", sets)]]])
    assert main(["verify", "calibration", str(plain)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "no grade has both a distribution and a grade by assessors" in err


def test_an_order_by_what_nobody_knows_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_lines(tmp_path / "graded.jsonl", [["q1", [passage("q1", "d1", [grade_set({"q1/a": 4})])]]])
    assert main(["verify", "uncertain", str(path)]) == 0
    assert "no grade says how sure it is, so the best come first" in capsys.readouterr().err
