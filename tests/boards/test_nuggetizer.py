"""Tests of `--compat nuggetizer`: hand-worked cases where the program differs, and the program itself."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import ir_measures
import pytest

from rubric_measures.base.errors import FormatError, MeasureError
from rubric_measures.boards.programs import score_nuggetizer

FIELDS = {
    "strict_vital_score": "NuggetV(strict=True)",
    "strict_all_score": "NuggetA(strict=True)",
    "vital_score": "NuggetV",
    "all_score": "NuggetA",
}


def _line(qid: str, nuggets: list[tuple[str, str, str]], run_id: str = "a") -> dict[str, Any]:
    made = [{"text": text, "importance": level, "assignment": label} for text, level, label in nuggets]
    return {"qid": qid, "run_id": run_id, "answer_text": "w", "nuggets": made}


def _write(folder: Path, rows: list[Any]) -> Path:
    path = folder / "assigned.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _measures(*names: str) -> list[Any]:
    return [ir_measures.parse_measure(name) for name in names]


def test_failed_labels_and_importances_stay_in_the_denominator(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [
        _line(
            "q1",
            [
                ("x", "vital", "support"),
                ("y", "vital", "failed"),
                ("z", "failed", "partial_support"),
                ("z", "okay", "maybe"),
            ],
        ),
        _line("q1", [("x", "vital", "partial_support")]),
        _line("q2", [("x", "okay", "support")]),
    ]
    board = score_nuggetizer(_write(tmp_path, rows), _measures(*FIELDS.values()))
    # V: lines 1/2, 0.5/1, 0 (no vital nugget); A: 1.5/4, 0.5, 1. The mean is over the three lines.
    assert board.cells["a"]["NuggetV"].mean == pytest.approx((0.5 + 0.5 + 0) / 3)
    assert board.cells["a"]["NuggetA"].mean == pytest.approx((0.375 + 0.5 + 1) / 3)
    assert board.cells["a"]["NuggetA(strict=True)"].mean == pytest.approx((0.25 + 0 + 1) / 3)
    assert board.values["a"]["NuggetA"] == {"q1": pytest.approx(0.4375), "q2": 1.0}
    assert board.cells["a"]["NuggetA"].queries == 3
    notes = "\n".join(record.message for record in caplog.records)
    assert all(text in notes for text in ("1 line repeats", "1 label is failed", "1 label is unknown"))


@pytest.mark.parametrize("seed", range(3))
def test_the_program_computes_the_same(tmp_path: Path, seed: int) -> None:
    metrics = pytest.importorskip("nuggetizer.core.metrics")
    draw = random.Random(seed)
    labels = ["support", "partial_support", "not_support", "failed", "Support", "maybe"]
    rows = [
        _line(
            f"q{draw.randint(1, 9)}",
            [
                (f"n{draw.randint(1, 9)}", draw.choice(["vital", "okay", "failed"]), draw.choice(labels))
                for _ in range(draw.randint(0, 12))
            ],
            draw.choice("ab"),
        )
        for _ in range(40)
    ]
    board = score_nuggetizer(_write(tmp_path, rows), _measures(*FIELDS.values()))
    assert sorted(board.cells) == ["a", "b"]
    for run_id in "ab":
        theirs = metrics.calculate_global_metrics([row for row in rows if row["run_id"] == run_id])
        mine = {field: board.cells[run_id][name].mean for field, name in FIELDS.items()}
        assert mine == pytest.approx({field: theirs[field] for field in FIELDS}, abs=1e-12)


def test_what_the_program_does_not_know_is_refused(tmp_path: Path) -> None:
    path = _write(tmp_path, [_line("q", [])])
    for name in ("NuggetW", "NuggetV(rel=3)", "NuggetA@5"):
        with pytest.raises(MeasureError, match="knows NuggetV, "):
            score_nuggetizer(path, _measures(name))
    for row, message in (({"qid": "q"}, "nuggets: required"), ({**_line("q", []), "run_id": ""}, "names no run")):
        with pytest.raises(FormatError, match=rf":1: .*{message}"):
            score_nuggetizer(_write(tmp_path, [row]), _measures("NuggetV"))
