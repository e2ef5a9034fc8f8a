"""Tests of measures over labels that grades imply, whole and real: against pytrec_eval and gdeval, and by hand."""

from __future__ import annotations

import math
import random
import shutil
from pathlib import Path

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import Qrel, ScoredDoc, nDCG

from rubric_measures import NuggetA, RubricCover, RubricQrels, load
from rubric_measures.base.errors import MeasureError
from rubric_measures.cli import main
from rubric_measures.formats.trec import read_qrels, write_qrels
from rubric_measures.measures.grades import Grades
from rubric_measures.measures.qrels import build_grades
from tests import matrices
from tests.strategies import Case, cases

STANDARD = ["nDCG", "nDCG@3", "AP", "AP@2", "RR", "RR@2", "P@3", "R@3", "Success@2", "Rprec", "Bpref", "Judged@3"]
# All the others that a program computes which is installed with ir_measures.
STANDARD += ["Compat(p=0.8)", "Compat(p=0.95,normalize=False)", "infAP", "SetAP", "SetF", "SetP", "SetR", "IPrec@0.5"]
STANDARD += ["NumRet", "NumQ", "nDCG(gains={1:3})", "AP(judged_only=True)", "P(judged_only=True)@3"]


def expected_labels(case: Case, label: str, rel: int) -> dict[str, int]:
    labels: dict[str, int] = {}
    for doc_id in {doc_id for doc_id, _ in case.grades}:
        grades = [grade for (other, _), grade in case.grades.items() if other == doc_id]
        if label == "count":
            labels[doc_id] = sum(grade >= rel for grade in grades)
        else:
            labels[doc_id] = max(grades) if max(grades) >= rel else 0
    return labels


@given(cases(), st.sampled_from(["max", "count"]), st.integers(1, 5))
def test_equals_pytrec_eval_on_the_exported_labels(case: Case, label: str, rel: int) -> None:
    labels = expected_labels(case, label, rel)
    assert case.compiled.labels(label, rel) == labels  # type: ignore[arg-type]
    if not labels or not case.ranking:
        return
    qrels = [ir_measures.Qrel("q", doc_id, value) for doc_id, value in labels.items()]
    # Scores above 0, which Compat takes unranked documents for.
    run = [ir_measures.ScoredDoc("q", doc_id, 1 / rank) for rank, doc_id in enumerate(case.ranking, 1)]
    names = [f"NumRet(rel={rel})" if (name, label) == ("NumRet", "max") else name for name in STANDARD]
    measures = [RubricQrels(measure=name, label=label, rel=rel) for name in names]
    ours = matrices.values(measures, case.compiled, case.ranking)
    inner = {name: ir_measures.parse_measure(name) for name in STANDARD}
    if label == "max":
        inner |= {name: one(rel=rel) for name, one in inner.items() if "rel" in one.SUPPORTED_PARAMS}
    # Alone, as in one call some programs mix up levels.
    theirs = {name: ir_measures.calc_aggregate([one], qrels, run)[one] for name, one in inner.items()}
    assert dict(zip(STANDARD, ours, strict=True)) == pytest.approx(theirs, abs=1e-9)


def test_ties_are_broken_by_document_id_descending_for_every_measure() -> None:
    grades = build_grades([ir_measures.Qrel("q", "a", 3, "1"), ir_measures.Qrel("q", "b", 0, "1")])
    run = [ir_measures.ScoredDoc("q", "a", 1.0), ir_measures.ScoredDoc("q", "b", 1.0)]
    measures = [ir_measures.parse_measure(m) for m in ("RubricQrels(measure='RR',rel=1)", "RR", "RubricCover(rel=3)@1")]
    # b stands before a, so the relevant passage is at rank 2.
    assert [ir_measures.calc_aggregate([m], grades, run)[m] for m in measures] == [0.5, 0.5, 0.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RubricQrels", "needs the parameter measure"),
        ("RubricQrels(measure='nDCGG@10')", "measure not found"),
        ("RubricQrels(measure='RubricCover@20')", "reads items"),
        ("RubricQrels(measure='alpha_nDCG@20')", "reads items"),
        ("RubricQrels(measure='nDCG@10')@20", "two cutoffs"),
        ("RubricQrels(measure='AP(rel=2)',rel=3)", "two levels"),
        ("RubricQrels(measure='nDCG@10',label='sum')", "expected 'max' or 'count'"),
        ("RubricQrels(measure='NumQ')@10", "NumQ has no parameter 'cutoff'"),
        ("RubricQrels(measure='P')", "measure='P': P needs the parameter cutoff, as in P@10"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        ir_measures.parse_measure(text).validate_params()


def test_compat_puts_ranked_passages_before_unranked_ones_of_the_same_label() -> None:
    # Labels: a and c 3, b 1; the run ranks a, b. The ideal is a, c, b, as c is not ranked; p = 1/2.
    # Overlap over depth: 1/1, 1/2, 2/3, with weights 1, 1/2, 1/4: (1 + 1/4 + 1/6) / (7/4) = 17/21; the ideal reaches 1.
    rows = [ir_measures.Qrel("q", doc_id, grade, "i") for doc_id, grade in (("c", 3), ("b", 1), ("a", 3))]
    run = [ir_measures.ScoredDoc("q", "a", -1.0), ir_measures.ScoredDoc("q", "b", -2.0)]
    measure = RubricQrels(measure="Compat(p=0.5)")
    for order in (rows, rows[::-1]):
        assert ir_measures.calc_aggregate([measure], build_grades(order), run)[measure] == pytest.approx(17 / 21)


# Labels of q1: 5, 2, 1; of q2: 4; of q3: 3. The run ranks two judged passages of q1, one other of q1 and one of q2.
COUNTED = [("q1", "a", 5), ("q1", "b", 2), ("q1", "c", 1), ("q2", "a", 4), ("q3", "a", 3)]
COUNTED_RUN = [("q1", "a", 3.0), ("q1", "x", 2.0), ("q1", "b", 1.0), ("q2", "a", 1.0)]
COUNTS = {
    "NumRet": 4.0,
    "NumRet(rel=2)": 3.0,
    "NumRel(rel=1)": 4.0,  # q3 is not ranked, and counts nothing, as in ir_measures
    "NumRel(rel=4)": 2.0,
    "NumQ": 2.0,
}


def test_counts_are_summed_over_the_queries_as_ir_measures_sums_them() -> None:
    run = [ir_measures.ScoredDoc(*row) for row in COUNTED_RUN]
    grades = build_grades([ir_measures.Qrel(query_id, doc_id, grade, "i") for query_id, doc_id, grade in COUNTED])
    measures = {name: RubricQrels(measure=name) for name in COUNTS}
    values = ir_measures.calc_aggregate(list(measures.values()), grades, run)
    assert {name: values[measure] for name, measure in measures.items()} == COUNTS
    labels = [ir_measures.Qrel(query_id, doc_id, label) for query_id, doc_id, label in COUNTED]
    theirs = [ir_measures.parse_measure(name) for name in COUNTS if name != "NumRel(rel=4)"]
    assert sorted(ir_measures.calc_aggregate(theirs, labels, run).values()) == [2.0, 3.0, 4.0, 4.0]


def test_the_level_of_a_count_of_ranked_passages() -> None:
    # Without a level all ranked passages count, with one those that reach it, be it 1.
    assert str(RubricQrels(measure="NumRet").inner()) == "NumRet"
    assert str(RubricQrels(measure="NumRet(rel=1)").inner()) == "NumRet(rel=1)"
    assert str(RubricQrels(measure="NumRet", rel=3).inner()) == "NumRet(rel=3)"


def _graded(labels: dict[str, int], scale: str | None) -> Grades:
    rows = [Qrel("1", doc_id, label, "item") for doc_id, label in labels.items()]
    return load(rows, grader=None if scale is None else f"scale={scale}")


def _value(name: str, labels: dict[str, int], ranking: str, scale: str | None) -> float:
    run = [ScoredDoc("1", doc_id, -float(rank)) for rank, doc_id in enumerate(ranking.split())]
    measure = RubricQrels(measure=name)
    return float(ir_measures.calc_aggregate([measure], _graded(labels, scale), run)[measure])


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval needs perl")
@pytest.mark.parametrize("name", ["ERR@1", "ERR@5", "ERR@20", "nDCG(dcg='exp-log2')@5", "nDCG(dcg='exp-log2')@20"])
def test_equals_gdeval_up_to_its_highest_label(name: str) -> None:
    dice = random.Random(name)
    measure = ir_measures.parse_measure(name)
    for _ in range(5):
        docs = [f"d{number}" for number in range(12)]
        # Some are judged and not ranked, some ranked and not judged.
        labels = {doc_id: dice.randint(0, 4) for doc_id in docs[:9]} | {"d0": 4}
        ranking = dice.sample(docs, 9)
        run = [ScoredDoc("1", doc_id, -float(rank)) for rank, doc_id in enumerate(ranking)]
        qrels = [Qrel("1", doc_id, label) for doc_id, label in labels.items()]
        theirs = ir_measures.gdeval.calc_aggregate([measure], qrels, run)[measure]
        # It prints five digits.
        assert _value(name, labels, " ".join(ranking), "0-4:3") == pytest.approx(theirs, abs=5.01e-6)


# Labels 5, 0, 3 and 4 on a scale of 0 to 5.
LABELS = {"a": 5, "b": 0, "c": 3, "d": 4}
# R of the labels: (2^5 - 1) / 2^5 = 31/32, 0, (2^3 - 1) / 32 = 7/32, (2^4 - 1) / 32 = 15/32.
A, C, D = 31 / 32, 7 / 32, 15 / 32


@pytest.mark.parametrize(
    ("name", "ranking", "expected"),
    [
        ("ERR@1", "a b c", A),
        ("ERR@3", "a b c", A + (1 / 32) * C / 3),
        ("ERR@2", "b c", C / 2),
        # A passage that nobody graded holds its rank.
        ("ERR@3", "x d c", D / 2 + (17 / 32) * C / 3),
        ("ERR@20", "x y", 0.0),
        # Gains 31, 7, 15; log2 of 2, 3, 4 is 1, 1.584962500721156, 2.
        ("nDCG(dcg='exp-log2')@1", "d a", 15 / 31),
        (
            "nDCG(dcg='exp-log2')@3",
            "d c a",
            (15 + 7 / 1.584962500721156 + 31 / 2) / (31 + 15 / 1.584962500721156 + 7 / 2),
        ),
        # Gains 5/5, 3/5, 4/5; weights (1 - p) p^(rank - 1).
        ("RBP(p=0.5)", "a b c", 0.5 * (1 + 0.25 * 0.6)),
        ("RBP(p=0.5)@2", "a b c", 0.5),
        ("RBP(p=0.5,rel=4)", "a c d", 0.5 * (1 + 0.25)),
    ],
)
def test_labels_up_to_five_by_hand(name: str, ranking: str, expected: float) -> None:
    assert _value(name, LABELS, ranking, "0-5:4:3") == pytest.approx(expected, abs=1e-12)


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval needs perl")
def test_without_a_scale_err_is_gdevals() -> None:
    assert _value("ERR@1", {"a": 3, "b": 1}, "a b", None) == 0.4375
    with pytest.raises(MeasureError, match="where the scale is said"):
        _value("ERR@1", LABELS, "a b", None)


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
