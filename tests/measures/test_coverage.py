"""Tests of the coverage kernel against brute force in exact fractions and against hand-worked values."""

from __future__ import annotations

import math
from fractions import Fraction

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_measures import NuggetA, NuggetV, NuggetW, RubricCover, RubricItem, RubricQrels, WeightedCover
from rubric_measures.base.errors import InputError, MeasureError
from rubric_measures.measures.measure import WeightedContradiction, nRubricCover
from rubric_measures.measures.scoring import Plan
from rubric_measures.types.scales import ASSIGNED, SELF_RATING, Scale, parse_scale
from tests import matrices
from tests.matrices import query_of
from tests.strategies import Case, cases


def best(case: Case, item_id: str, docs: list[str]) -> int | None:
    grades = [case.grades[doc_id, item_id] for doc_id in docs if (doc_id, item_id) in case.grades]
    return max(grades, default=None)


def credit(grade: int | None, rel: int, partial: int | None) -> Fraction:
    if grade is not None and grade >= rel:
        return Fraction(1)
    return Fraction(1, 2) if partial is not None and grade is not None and grade >= partial else Fraction(0)


@given(cases(), st.integers(1, 5), st.integers(1, 9), st.booleans())
def test_cover_is_the_definition(case: Case, rel: int, cutoff: int, judged_only: bool) -> None:
    judged = {doc_id for doc_id, _ in case.grades}
    ranking = [doc_id for doc_id in case.ranking if not judged_only or doc_id in judged][:cutoff]
    covered = sum((best(case, item.item_id, ranking) or 0) >= rel for item in case.items)
    reachable = sum((best(case, item.item_id, sorted(judged)) or 0) >= rel for item in case.items)
    params = {"rel": rel, "judged_only": judged_only, "cutoff": cutoff}
    measures = [RubricCover(**params), nRubricCover(**params)]
    cover, normalised = matrices.values(measures, case.compiled, case.ranking)
    assert cover == pytest.approx(float(Fraction(covered, len(case.items))), abs=1e-12)
    assert normalised == pytest.approx(float(Fraction(covered, reachable)) if reachable else 0.0, abs=1e-12)


@given(cases(), st.integers(1, 9), st.sampled_from([(2, 1), (4, 2), (3, 3)]))
def test_nugget_scores_are_the_definition(case: Case, cutoff: int, levels: tuple[int, int]) -> None:
    rel, partial = levels
    params = {"rel": rel, "partial_rel": partial, "cutoff": cutoff}
    four = (NuggetA, NuggetV, NuggetW, WeightedCover)
    measures = [measure(**params, strict=strict) for measure in four for strict in (False, True)]
    measures.append(WeightedCover(**params, clip=True))
    expected: list[Fraction] = []
    for weights in (
        [Fraction(1)] * len(case.items),
        [Fraction(item.importance == "vital") for item in case.items],
        [Fraction(1) if item.importance == "vital" else Fraction(1, 2) for item in case.items],
        [Fraction(item.weight or 0) for item in case.items],
    ):
        for strict in (False, True):
            credits = [
                credit(best(case, item.item_id, case.ranking[:cutoff]), rel, None if strict else partial)
                for item in case.items
            ]
            total = sum(weight for weight in weights if weight > 0)
            score = sum(w * c for w, c in zip(weights, credits, strict=True))
            expected.append(Fraction(score) / total if total else Fraction(0))
    expected.append(max(expected[6], Fraction(0)))
    values = matrices.values(measures, case.compiled, case.ranking)
    assert values == pytest.approx([float(value) for value in expected], abs=1e-12)


@given(cases(failures=True), st.integers(1, 5), st.integers(1, 9))
def test_failed_grades_count_as_zero(case: Case, rel: int, cutoff: int) -> None:
    top = case.ranking[:cutoff]
    covered = {item.item_id for item in case.items if (best(case, item.item_id, top) or 0) >= rel}
    measures = [RubricCover(rel=rel) @ cutoff]
    [zero] = matrices.values(measures, case.compiled, case.ranking, "zero")
    assert zero == pytest.approx(len(covered) / len(case.items))


def nuggets(importance: str, assignment: str) -> tuple[list[RubricItem], list[tuple[str, str, int]]]:
    items = [
        RubricItem(f"2024-35227/{index}", "2024-35227", "", "nugget", importance="vital" if label == "V" else "okay")
        for index, label in enumerate(importance)
    ]
    grades = {"S": 2, "P": 1, "N": 0}
    return items, [("answer", item.item_id, grades[label]) for item, label in zip(items, assignment, strict=True)]


@pytest.mark.parametrize(
    ("importance", "assignment", "expected"),
    [
        # Automatic nuggets: vital S N P S P P S S N = 4 S, 3 P of 9; okay S S P P P P = 2 S, 4 P of 6.
        # A = (6 + 3.5) / 15, V = (4 + 1.5) / 9, W = (5.5 + 0.5 * 4) / (9 + 3); strict: 6/15, 4/9, (4 + 1) / 12.
        ("VVVVVVVVVOOOOOO", "SNPSPPSSNSSPPPP", [9.5 / 15, 5.5 / 9, 7.5 / 12, 6 / 15, 4 / 9, 5 / 12]),
        # Edited nuggets: vital at 0, 4, 7, 8, 9, 10, of which one is supported; 12 okay, supported at 11, 12, 13, 16.
        # A = 5/18, V = 1/6, W = (1 + 0.5 * 4) / (6 + 6); there is no partial support, so strict is the same.
        ("VOOOVOOVVVVOOOOOOO", "SNNNNNNNNNNSSSNNSN", [5 / 18, 1 / 6, 3 / 12] * 2),
    ],
)
def test_topic_35227(importance: str, assignment: str, expected: list[float]) -> None:
    items, grades = nuggets(importance, assignment)
    query = query_of(grades, items, scale=ASSIGNED)
    measures = [NuggetA, NuggetV, NuggetW, NuggetA(strict=True), NuggetV(strict=True), NuggetW(strict=True)]
    assert matrices.values(measures, query, ["answer"]) == pytest.approx(expected, abs=1e-12)


def test_no_vital_nugget_is_zero_and_missing_importance_is_an_error() -> None:
    okay = RubricItem("q/1", "q", "", importance="okay")
    query = query_of([("d", "q/1", 2)], [okay], scale=ASSIGNED)
    assert matrices.values([NuggetV, NuggetW], query, ["d"]) == [0.0, 1.0]
    bare = query_of([("d", "q/1", 2)], [RubricItem("q/1", "q", "")], scale=ASSIGNED)
    with pytest.raises(MeasureError, match=r"importance.*'q/1'"):
        Plan([NuggetV]).for_query(bare)
    with pytest.raises(MeasureError, match="weight of every item"):
        Plan([WeightedCover]).for_query(bare)


def test_a_contradiction_weighs_what_its_item_weighs_and_of_a_penalty_nothing() -> None:
    items = [RubricItem(f"q/{place}", "q", "", weight=weight) for place, weight in enumerate((2, None, -3, 1))]
    grades = [("d", f"q/{place}", grade) for place, grade in enumerate((-2, -2, -2, 1))]
    # An item without a weight weighs 1: (2 + 1 + 0) / (2 + 1 + 0 + 1).
    assert matrices.values([WeightedContradiction], query_of(grades, items, scale=Scale(-2, 2, 2, 1)), ["d"]) == [0.75]


def test_standard_measures_read_labels_and_no_items() -> None:
    items = query_of([("d", "q/1", 2)])
    # Whole grades and fractions alike.
    for query in (items, query_of([("d", "q/1", 0.5)])):
        with pytest.raises(MeasureError, match="RubricQrels"):
            matrices.values([ir_measures.nDCG @ 10], query, ["d"])
    labels = query_of([("d", "0", 2)])
    assert matrices.values([ir_measures.nDCG @ 10], labels, ["x", "d"]) == [pytest.approx(1 / math.log2(3))]
    for measure in (RubricCover(rel=1), NuggetA(rel=1), ir_measures.alpha_nDCG @ 5):
        with pytest.raises(MeasureError, match=r"no item grades here, query 'q' has one label a passage"):
            Plan([measure]).for_query(labels)


def test_the_scale_says_the_levels_that_are_left_out() -> None:
    rows = [("d", "q/a", 5), ("d", "q/b", 4), ("d", "q/c", 3), ("d", "q/d", 0)]
    measures = [RubricCover @ 1, NuggetA, NuggetA(strict=True), NuggetA(rel=5), NuggetA(rel=2)]
    rated = query_of(rows, scale=SELF_RATING)
    # 5 and 4 cover, 3 is partial; at 5 both 4 and 3 are partial; at 2 nothing is partial.
    assert matrices.values(measures, rated, ["d"]) == [0.5, 2.5 / 4, 0.5, 2 / 4, 3 / 4]
    names = ["RubricCover(rel=4)@1", "NuggetA(rel=4,partial_rel=3)", "NuggetA(rel=4,strict=True)"]
    assert list(map(str, Plan(measures).on(SELF_RATING).measures))[:3] == names
    assert str(NuggetA.on(parse_scale("0-1"))) == "NuggetA(rel=1,partial_rel=1)"
    unknown = query_of(rows)
    for measure, name in ((RubricCover, "rel"), (NuggetA(rel=4), "partial_rel"), (RubricQrels(measure="P@5"), "rel")):
        with pytest.raises(MeasureError, match=rf"the scale of the grades is not known; .*\({name}=…\)"):
            Plan([measure]).for_query(unknown)
    # Graded gains need no level.
    known = [RubricQrels(measure="nDCG@5"), NuggetA(rel=4, strict=True)]
    assert matrices.values(known, unknown, ["d"]) == [1.0, 0.5]


def test_a_grade_outside_the_scale_is_refused() -> None:
    with pytest.raises(InputError, match=r"query 'q', document 'd', item 'i': the grade 3 is not on the scale 0 to 2"):
        query_of([("d", "i", 3)], scale=ASSIGNED)
