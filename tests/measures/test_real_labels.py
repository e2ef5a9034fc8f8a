"""Tests of labels and grades with fractions: what is computed from them here, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import ir_measures
import pytest
from ir_measures import Qrel, ScoredDoc, nDCG

from rubric_measures import NuggetA, RubricCover, RubricQrels, load
from rubric_measures.base.errors import MeasureError
from rubric_measures.cli import main
from rubric_measures.formats.trec import read_qrels, write_qrels

# Expected grades of items, on the scale 0 to 5; 4 covers, 3 is partial.
ROWS = [
    Qrel("q", "a", 4.5, "i"), Qrel("q", "a", 1.25, "j"), Qrel("q", "b", 3.5, "i"), Qrel("q", "b", 4.0, "j"),
    Qrel("q", "c", 0.0, "i"),
]  # fmt: skip
RUN = [ScoredDoc("q", "c", 3.0), ScoredDoc("q", "b", 2.0), ScoredDoc("q", "a", 1.0)]


def _values(*measures: ir_measures.measures.Measure) -> list[float]:
    grades = load(ROWS, grader="scale=0-5:4:3")
    found = ir_measures.calc_aggregate(measures, grades, RUN)
    return [float(found[measure]) for measure in measures]


def test_a_threshold_takes_real_grades() -> None:
    # The first two are c and b: b covers j (4), and not i (3.5).
    assert _values(RubricCover @ 2, RubricCover(rel=3) @ 2, RubricCover @ 3) == [0.5, 1.0, 1.0]


def test_real_gains_by_hand() -> None:
    # The labels are 4.5, 4 and 0, ranked 0, 4, 4.5.
    log3 = math.log2(3)
    best = 4.5 + 4 / log3
    assert _values(RubricQrels(measure="nDCG@10"))[0] == pytest.approx((4 / log3 + 4.5 / 2) / best, abs=1e-12)
    # R = (2^label - 1) / 2^5.
    b, a = 15 / 32, (2**4.5 - 1) / 32
    assert _values(RubricQrels(measure="ERR@10"))[0] == pytest.approx(b / 2 + (1 - b) * a / 3, abs=1e-12)
    assert _values(RubricQrels(measure="RBP(p=0.5)"))[0] == pytest.approx(0.5 * (0.5 * 0.8 + 0.25 * 0.9), abs=1e-12)
    assert _values(RubricQrels(measure="AP"))[0] == pytest.approx((1 / 2 + 2 / 3) / 2, abs=1e-12)


def test_what_a_program_computes_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MeasureError, match=r"^nDCG@10: .* document 'a' of query 'q' has 4.5; write qrels"):
        ir_measures.calc_aggregate([nDCG @ 10], load(ROWS, grader="scale=0-5:4"), RUN)
    with pytest.raises(MeasureError, match="Bpref"):
        _values(RubricQrels(measure="Bpref"))
    write_qrels(tmp_path / "real.qrels", [Qrel("q", "a", 2.5), Qrel("q", "b", 1), Qrel("q", "c", 0)])
    (tmp_path / "a.run").write_text("".join(f"q Q0 {row.doc_id} 1 {row.score} x\n" for row in RUN))
    assert main(["evaluate", str(tmp_path / "real.qrels"), str(tmp_path / "a.run"), "Bpref"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "document 'a' of query 'q' has 2.5" in err
    for provider in ("pytrec_eval", "pyndeval"):
        argv = ["evaluate", str(tmp_path / "real.qrels"), str(tmp_path / "a.run"), "P@1", "--provider", provider]
        assert main(argv) == 2, provider


@pytest.mark.parametrize("command", ["evaluate", "leaderboard"])
def test_qrels_with_fractions_are_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    write_qrels(tmp_path / "real.qrels", [Qrel("q", "a", 2.5), Qrel("q", "b", 1.0), Qrel("q", "c", 0)])
    assert (tmp_path / "real.qrels").read_text() == "q 0 a 2.5\nq 0 b 1\nq 0 c 0\n"
    assert read_qrels(tmp_path / "real.qrels") == [("q", "a", 2.5, "0"), ("q", "b", 1, "0"), ("q", "c", 0, "0")]
    (tmp_path / "a.run").write_text("".join(f"q Q0 {row.doc_id} 1 {row.score} x\n" for row in RUN))
    log3 = math.log2(3)
    expected = (1 / log3 + 2.5 / 2) / (2.5 + 1 / log3)
    asked = ["nDCG@10"] if command == "evaluate" else ["-m", "nDCG@10"]
    assert main([command, str(tmp_path / "real.qrels"), str(tmp_path / "a.run"), *asked]) == 0
    assert f"{expected:.4f}" in capsys.readouterr().out


def test_half_credit_by_levels() -> None:
    # Partial support from 1 on: i earns a half, j the whole, k nothing.
    rows = [Qrel("q", "a", 1.9, "i"), Qrel("q", "a", 2, "j"), Qrel("q", "a", 0.9, "k")]
    grades = load(rows, grader="scale=0-2:2:1")
    found = ir_measures.calc_aggregate([NuggetA], grades, [ScoredDoc("q", "a", 1.0)])
    assert found[NuggetA] == pytest.approx((0.5 + 1 + 0) / 3)
