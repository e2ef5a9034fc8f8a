"""Tests of leave-one-out expected coverage: what failed grades count where nobody chooses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import nDCG
from msgspec.structs import replace

from rubric_measures import NuggetA, NuggetV, RubricCover, RubricQrels, WeightedCover
from rubric_measures.measures.grades import Grades, OnFailed, QueryGrades, build_query
from rubric_measures.measures.measure import nRubricCover
from rubric_measures.measures.scoring import Plan, ranking_digest
from rubric_measures.types.entities import RubricItem
from rubric_measures.types.scales import ASSIGNED, SELF_RATING
from tests import matrices
from tests.matrices import query_of
from tests.strategies import Case, cases, columns_of

FAILED = None


def graded(
    passages: dict[str, Sequence[int | None]],
    weights: Sequence[float] | None = None,
    importances: Sequence[Any] | None = None,
    scale: Any = SELF_RATING,
) -> QueryGrades:
    """A query with a grade an item of each passage; None failed."""
    size = len(next(iter(passages.values())))
    items = [
        RubricItem(
            f"i{place}",
            "q",
            "",
            weight=None if weights is None else weights[place],
            importance=None if importances is None else importances[place],
        )
        for place in range(size)
    ]
    cells = [(doc, f"i{place}", grade) for doc, row in passages.items() for place, grade in enumerate(row)]
    valid = [(doc, item, grade) for doc, item, grade in cells if grade is not None]
    failed = [(doc, item) for doc, item, grade in cells if grade is None]
    return query_of(valid, items, failed, scale=scale)


def value(query: QueryGrades, measure: Any, ranking: Sequence[str], on_failed: OnFailed = "expected") -> float | None:
    (found,) = matrices.values([measure], query, ranking, on_failed)
    return found


P1, P2, P3 = (5, 0, 0, 0, 1), (4, 0, FAILED, FAILED, 0), (0, 5, 0, 0, FAILED)


def test_the_worked_example() -> None:
    query = graded({"p1": P1, "p2": P2, "p3": P3})
    ranking = ["p1", "p2", "p3"]
    # A is covered by two, B by one (a = 1); C, D, E by none with two valid grades each (b = 6): p = 1/7.
    assert value(query, RubricCover @ 3, ranking) == pytest.approx(float(Fraction(17, 35)), abs=1e-15)
    assert value(query, RubricCover @ 1, ranking) == float(Fraction(1, 5))
    assert value(query, RubricCover @ 3, ranking, "zero") == 0.4
    assert value(query, RubricCover @ 3, ranking, 5) == 1.0
    # p3's C failed as well: b = 5, p = 1/6; C has two failed grades: (2 + 1 - (5/6)^1 ... of C, D, E one each)/5.
    more = graded({"p1": P1, "p2": P2, "p3": (0, 5, FAILED, 0, FAILED)})
    p = Fraction(1, 6)
    assert value(more, RubricCover @ 3, ranking) == pytest.approx(
        float((2 + (1 - (1 - p) ** 2) + 2 * p) / 5), abs=1e-15
    )
    assert (2 + (1 - (1 - p) ** 2) + 2 * p) / 5 == Fraction(19, 36)


def test_nothing_is_known_of_a_passage_whose_grades_all_failed() -> None:
    query = graded({"p": (FAILED,) * 5, "other": (5,) * 5})
    assert value(query, RubricCover @ 1, ["p", "other"]) is None
    assert value(query, RubricCover, []) == 0.0
    assert value(query, RubricCover, ["unjudged"]) == 0.0
    # With another passage: that covers everything.
    assert value(query, RubricCover @ 2, ["p", "other"]) == 1.0


F = FAILED
# Passages in their ranking, the items' weights, what is scored, and the value.
BY_HAND: dict[str, tuple[dict[str, Sequence[int | None]], Any, Any, Fraction]] = {
    # A is covered twice, by two of three valid grades (a = 0); nobody graded B but who failed (b = 0): p = 2/3.
    "all covered twice": (
        {"p": (5, F), "q": (4, F), "r": (0, F)},
        None,
        RubricCover,
        (2 - (1 - Fraction(2, 3)) ** 3) / 2,
    ),
    "one answer": ({"p": (5, F, 0, 4, 0)}, (2, 2, 1, 1, 1), RubricCover, Fraction(1, 2)),
    "one answer, weighted": ({"p": (5, F, 0, 4, 0)}, (2, 2, 1, 1, 1), WeightedCover, Fraction(3, 5)),
    # Support: p = 1/4, (1 + 1/4)/5 = 1/4. Partial: p = 2/4, (2 + 1/2)/5 = 1/2. Half of both: 3/8.
    "partial credit": ({"p": (4, 3, F, 0, 0)}, None, NuggetA, Fraction(3, 8)),
    "strict": ({"p": (4, 3, F, 0, 0)}, None, NuggetA(strict=True), Fraction(1, 4)),
    # Items: 5 of 2 credits; penalties of 1 and 3. Positive: a = 2, b = 1, p = 2/3; penalties: a = 1, b = 0, p = 1.
    "penalties": (
        {"p": (5, 0, F, 5, F)},
        (2, 1, 1, -1, -3),
        WeightedCover(strict=True),
        (2 + Fraction(2, 3) - 1 - 3) / 4,
    ),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_values_by_hand(name: str) -> None:
    passages, weights, measure, expected = BY_HAND[name]
    assert value(graded(passages, weights), measure, list(passages)) == pytest.approx(float(expected), abs=1e-15)


def test_what_weighs_nothing_says_nothing() -> None:
    # All vital nuggets failed: what is known of the okay one is not asked.
    query = graded({"p": (FAILED, 2)}, importances=("vital", "okay"), scale=ASSIGNED)
    assert (value(query, NuggetV, ["p"]), value(query, NuggetA, ["p"])) == (None, 1.0)


def test_the_normalised_cover_expects_of_its_denominator_too() -> None:
    # Top 1: one item of two covered; of the other one grade failed: a = 1, b = 0, p = 1: two items.
    # All passages: a = 1, b = 2: p = 1/3: 4/3 items. What is expected exceeds that, and counts 1.
    query = graded({"p": (5, FAILED), "q": (0, 0), "r": (0, 0)})
    assert value(query, nRubricCover @ 1, ["p"]) == 1.0
    assert value(query, nRubricCover @ 3, ["p", "q", "r"]) == 1.0
    assert value(query, nRubricCover @ 1, ["q"]) == 0.0


def test_a_ranking_without_failures_has_the_error_of_its_denominator() -> None:
    # All passages: a = 1, b = 2: 1 + 1/3 items. p~ = (1 + 1/2) / (3 + 1); the spread is the root of 3/8 times 5/8.
    query = graded({"p": (5, 0), "q": (0, FAILED), "r": (0, 0)})
    (failure,) = matrices.left_open([nRubricCover @ 1], query, ["p"])
    assert failure.spread == pytest.approx(3 / 4 * math.sqrt(15 / 64) / (4 / 3), abs=1e-15)
    (failure,) = matrices.left_open([RubricCover @ 1], query, ["p"])
    assert failure.spread == 0.0


def test_labels_are_of_valid_grades_and_passages_without_any_leave_the_ranking() -> None:
    query = graded({"bad": (FAILED, FAILED), "half": (FAILED, 3), "good": (5, 0)})
    ranking = ["bad", "half", "none", "good"]
    without = ["half", "none", "good"]
    known = graded({"half": (0, 3), "good": (5, 0)})
    for measure in (
        RubricQrels(measure="nDCG@2"),
        RubricQrels(measure="P(rel=3)@1"),
        RubricQrels(measure="AP"),
        RubricQrels(measure="Bpref(rel=3)"),
        ir_measures.alpha_nDCG @ 2,
        ir_measures.parse_measure("StRecall(rel=3)@1"),
    ):
        assert value(query, measure, ranking) == value(known, measure, without), measure
        assert value(query, measure, ["bad"]) is None
        assert value(query, measure, []) == 0.0
    scorer = Plan([RubricQrels(measure="nDCG@2")]).for_query(query)
    ranked = scorer.ranked(ranking)
    # What was looked at, and of it what left the ranking.
    assert ranked.digest == ranking_digest(["bad", "half", "none"])
    assert scorer.score([ranked]).dropped.tolist() == [1]


def test_ir_measures_own_measures_read_the_same_ranking() -> None:
    query = graded({"bad": (FAILED, FAILED), "half": (FAILED, 3), "good": (5, 0)})
    run = {"q": {"bad": 4.0, "half": 3.0, "none": 2.0, "good": 1.0}}
    ours = RubricQrels(measure="nDCG@2")
    found = ir_measures.calc_aggregate([nDCG @ 2, ours], Grades({"q": query}, "expected"), run)
    assert found[nDCG @ 2] == pytest.approx(found[ours], abs=1e-9)
    zero = ir_measures.calc_aggregate([nDCG @ 2, ours], Grades({"q": query}, "zero"), run)
    assert zero[nDCG @ 2] == pytest.approx(zero[ours], abs=1e-9)
    assert zero[ours] < found[ours]


MEASURES = [RubricCover(rel=4) @ 2, RubricCover(rel=3), NuggetA(rel=4, partial_rel=2)]


def plain(case: Case, rel: int, cutoff: int) -> Fraction | None:
    """The formula in fractions, as one would write it down."""
    top = [doc for doc in case.ranking[:cutoff] if doc in case.compiled.docs]
    items = [item.item_id for item in case.items]
    covers = {item: sum(case.grades.get((doc, item), -1) >= rel for doc in top) for item in items}
    valid = {item: sum((doc, item) in case.grades for doc in top) for item in items}
    failed = {item: sum((doc, item) in case.failed for doc in top) for item in items}
    open_items = [item for item in items if not covers[item]]
    found = Fraction(sum(covers[item] > 0 for item in items))
    if any(failed[item] for item in open_items):
        a = sum(covers[item] == 1 for item in items)
        b = sum(valid[item] for item in open_items)
        if a + b:
            p = Fraction(a, a + b)
        elif sum(valid.values()):
            p = Fraction(sum(covers.values()), sum(valid.values()))
        else:
            return None
        found += sum((1 - (1 - p) ** failed[item] for item in open_items), Fraction(0))
    return found / len(items)


@given(cases(failures=True), st.integers(1, 5), st.integers(1, 6))
def test_the_matrix_gives_what_the_formula_gives(case: Case, rel: int, cutoff: int) -> None:
    found, expected = value(case.compiled, RubricCover(rel=rel) @ cutoff, case.ranking), plain(case, rel, cutoff)
    assert (found is None) == (expected is None)
    assert expected is None or found == pytest.approx(float(expected), abs=1e-12)


BOUNDED = [
    *MEASURES,
    nRubricCover(rel=4) @ 2,
    WeightedCover(rel=4, partial_rel=2),
    WeightedCover(rel=4, strict=True, clip=True) @ 3,
    *(RubricQrels(measure=name, rel=3) for name in ("AP", "P@2", "R@2", "RR", "Success@1", "RBP")),
    RubricQrels(measure="nDCG@3"),
    RubricQrels(measure="nDCG(dcg='exp-log2')@3"),
    RubricQrels(measure="nDCG@3", label="count", rel=3),
    RubricQrels(measure="ERR@3"),
    *(ir_measures.parse_measure(name) for name in ("alpha_nDCG(rel=3)@3", "alpha_DCG(rel=3)@3", "AP_IA", "NRBP")),
    *(ir_measures.parse_measure(name) for name in ("StRecall(rel=3)@2", "P_IA@2", "ERR_IA@3", "nERR_IA@3", "nNRBP")),
]


@given(cases(failures=True), st.data())
def test_the_bounds_contain_the_truth(case: Case, data: st.DataObject) -> None:
    """Whatever the failed grades would have been."""
    weights = data.draw(st.lists(st.sampled_from([2.0, 1.0, -1.0]), min_size=len(case.items), max_size=len(case.items)))
    items = [replace(item, weight=weight) for item, weight in zip(case.items, weights, strict=True)]
    failed = sorted(case.failed)
    truth = {pair: data.draw(st.integers(0, 5)) for pair in failed}
    known = build_query("q", items, columns_of(case.grades), failed, scale=SELF_RATING)[0]
    complete = build_query("q", items, columns_of({**case.grades, **truth}), scale=SELF_RATING)[0]
    values = matrices.values(BOUNDED, complete, case.ranking)
    opened = matrices.left_open(BOUNDED, known, case.ranking)
    assert len(opened) == (len(BOUNDED) if failed else 0)
    for measure, scores, truly in zip(BOUNDED, opened, values, strict=bool(failed)):
        # A greedy ideal may be a little less where more is covered.
        slack = 0.05 if measure.NAME in ("alpha_nDCG", "nERR_IA", "nNRBP") else 1e-9
        assert truly is not None and scores.low - slack <= truly <= scores.high + slack, measure
