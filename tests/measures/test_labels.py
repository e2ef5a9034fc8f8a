"""Tests of Rubric-Qrels against pytrec_eval and of the labels themselves."""

from __future__ import annotations

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_measures import RubricQrels
from rubric_measures.base.errors import MeasureError
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
    theirs = []
    for name in STANDARD:
        inner = ir_measures.parse_measure(name)
        if label == "max" and "rel" in inner.SUPPORTED_PARAMS:
            inner = inner(rel=rel)
        theirs.append(ir_measures.calc_aggregate([inner], qrels, run)[inner])
    assert dict(zip(STANDARD, ours, strict=True)) == pytest.approx(dict(zip(STANDARD, theirs, strict=True)), abs=1e-9)


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
    # Names leave the usual level out, so two measures would have one name.
    for rel in (1, 3):
        with pytest.raises(MeasureError, match=rf"for those of a level say \"NumRet\(rel={rel}\)\""):
            RubricQrels(measure="NumRet", rel=rel).validate_params()
