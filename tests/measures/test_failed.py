"""Tests of what failed grades count in measures and commands: as they are expected, or as a grade."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import nDCG
from msgspec.structs import replace

from rubric_measures import NuggetA, NuggetV, RubricCover, RubricItem, RubricQrels, WeightedCover
from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.measures.grades import Grades, OnFailed, QueryGrades, build_query, check_on_failed
from rubric_measures.measures.loading import load_records
from rubric_measures.measures.measure import nRubricCover
from rubric_measures.measures.qrels import build_grades, qrels_of
from rubric_measures.measures.scoring import Plan
from rubric_measures.types.scales import ASSIGNED, SELF_RATING
from tests import matrices
from tests.example_records import grade_set, passage, write_lines
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
    said = zip(weights or [None] * size, importances or [None] * size, strict=True)
    items = [RubricItem(f"i{n}", "q", "", weight=weight, importance=one) for n, (weight, one) in enumerate(said)]
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
    # Of it what left the ranking.
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


NAMES = [
    "RubricCover(rel=4)@2",
    "nRubricCover(rel=2)",
    "NuggetV(rel=4,partial_rel=1)@3",
    "NuggetW(rel=5,partial_rel=2)",
    "WeightedCover(rel=3,partial_rel=1)@3",
    "RubricQrels(measure='nDCG@3')",
    "RubricQrels(label='count',measure='P(rel=2)@3',rel=3)",
    "RubricQrels(measure='AP(rel=4)')",
    "alpha_nDCG(rel=3)@5",
    "StRecall(rel=4)@2",
]
EVERY = [ir_measures.parse_measure(name) for name in NAMES]


@pytest.mark.parametrize("wrong", ["max", "error", "5", 0, -1, 2.0, True])
def test_ways_to_count_failed_grades(wrong: object) -> None:
    assert [check_on_failed(way) for way in ("expected", "zero", 1, 5)] == ["expected", "zero", 1, 5]
    with pytest.raises(InputError, match="give expected, zero, or a grade of 1 or more"):
        check_on_failed(wrong)
    with pytest.raises(InputError, match="on_failed is"):
        Grades({}, wrong)  # type: ignore[arg-type]
    # Nobody chose.
    assert (Grades({}).on_failed_given, Grades({}).on_failed) == (None, "expected")


def _values(case: Case, on_failed: OnFailed, failed: int | None = None) -> list[float | None]:
    """The values of a case; its failed grades are that grade where one is given."""
    query = case.compiled
    if failed is not None:
        grades = {**case.grades, **dict.fromkeys(case.failed, failed)}
        query, _ = build_query("q", case.items, columns_of(grades))
    return [
        *matrices.values(EVERY, query, case.ranking, on_failed),
        *matrices.best(EVERY, query, on_failed),
    ]


@settings(deadline=None, max_examples=60)
@given(cases(failures=True), st.integers(1, 5))
def test_failed_grades_count_as_the_grade_itself_would(case: Case, grade: int) -> None:
    assert _values(case, grade) == _values(case, "expected", failed=grade)


def _records(folder: Path) -> Path:
    """Run s ranks d2, d1; of d1 item b failed, of d2 both; d3 is graded and not ranked."""
    lost = {"q1/a": "unparsed", "q1/b": "refused"}
    lines = [
        [
            "q1",
            [
                passage("q1", "d1", [grade_set({"q1/a": 3}, status={"q1/b": "failed"})], {"s": 2}),
                passage("q1", "d2", [grade_set({}, status=lost)], {"s": 1}),
                passage("q1", "d3", [grade_set({"q1/a": 1, "q1/b": 1})]),
            ],
        ]
    ]
    return write_lines(folder / "graded.jsonl", lines)


# Cover@1: d2 alone. A@1 with partial credit from 3. P@2: how many of two labels are at least 4. nDCG@2: see below.
ASKED = ["RubricCover(rel=4)@1", "NuggetA(rel=4,partial_rel=3)@2", "RubricQrels(measure='P(rel=4)@2')"]
ASKED += ["RubricQrels(measure='nDCG@2')"]
EXPECTED = {
    # d2 covers nothing; a has 3, half of one of two items; labels: d1 3, d3 1, d2 none, so (3 / log2 3) / ideal.
    "zero": [0.0, 0.25, 0.0, 3 / math.log2(3) / (3 + 1 / math.log2(3))],
    # Nothing is known of d2, which leaves the ranking of labels; a has 3, so b is expected to have it, too.
    "expected": [None, 0.5, 0.0, 3 / (3 + 1 / math.log2(3))],
    # d2 covers both items at 5; labels: d1 and d2 5.
    "5": [1.0, 1.0, 1.0, 1.0],
    # At 4 the labels of d1 and d2 are 4: what is ranked is what is best.
    "4": [1.0, 1.0, 1.0, 1.0],
    # At 3 everything has 3, and d2 covers nothing at 4.
    "3": [0.0, 0.5, 0.0, 1.0],
}


@pytest.mark.parametrize("way", EXPECTED)
def test_one_way_to_count_in_every_command(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    graded = _records(tmp_path).name
    Path("s.run").write_text("q1 Q0 d2 1 2 s\nq1 Q0 d1 2 1 s\n")
    for runs in ([], ["s.run"]):
        # A grade that was needed failed, however it counts.
        assert main(["leaderboard", graded, *runs, "-m", *ASKED, "--format", "json", "--on-failed", way]) == 1
        board = json.loads(capsys.readouterr().out)
        row = next(run for run in board["runs"] if run["run_id"] == "s")
        assert [row["measures"][name]["mean"] for name in ASKED] == pytest.approx(EXPECTED[way])
        assert row["measures"][ASKED[0]]["failed"] == 2
        assert row["measures"][ASKED[0]]["coverage"] == 0
        assert f"|on_failed:{way}|" in board["signature"]
    known = [name for name, value in zip(ASKED, EXPECTED[way], strict=True) if value is not None]
    assert main(["evaluate", graded, "s.run", *known, "--on-failed", way, "-p", "-1"]) == 1
    out, err = capsys.readouterr()
    found = dict(line.split("\t") for line in out.splitlines())
    assert [float(found[name]) for name in known] == pytest.approx([one for one in EXPECTED[way] if one is not None])
    assert "up to 3 grades that a score needed failed" in err


def test_qrels_of_failed_grades(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    graded = _records(tmp_path).name
    for more, expected, said in (
        ([], "q1 0 d1 3\nq1 0 d3 1\n", "3 grades failed and are not in the qrels"),
        (["--on-failed", "zero"], "q1 0 d1 3\nq1 0 d3 1\n", "3 grades failed and are not in the qrels"),
        (["--on-failed", "5"], "q1 0 d1 5\nq1 0 d2 5\nq1 0 d3 1\n", "3 grades failed and count as grade 5"),
        (
            ["--on-failed", "2", "--label", "count", "--rel", "2"],
            "q1 0 d1 2\nq1 0 d2 2\nq1 0 d3 0\n",
            "3 grades failed and count as grade 2",
        ),
    ):
        assert main(["qrels", graded, *more]) == 1
        assert capsys.readouterr() == (expected, f"rubric_measures: warning: {said}\n")
        # The same from grades in memory.
        way = more[1] if more else "expected"
        grades = load_records(graded, on_failed=check_on_failed(int(way) if way.isdecimal() else way))
        rows = qrels_of(grades, "passage", "count" if "count" in more else "max", 2 if "count" in more else 1)
        assert "".join(f"{row.query_id} 0 {row.doc_id} {row.relevance}\n" for row in rows) == expected
    assert main(["qrels", graded, "--per", "item", "--on-failed", "5"]) == 1
    assert "q1 q1/b d1 5\n" in capsys.readouterr().out


def test_every_view_of_the_grades_counts_them_alike(tmp_path: Path) -> None:
    grades = load_records(_records(tmp_path), on_failed=5)
    run = [ir_measures.ScoredDoc("q1", "d2", 2.0), ir_measures.ScoredDoc("q1", "d1", 1.0)]
    measures = [RubricCover(rel=5) @ 1, NuggetA(rel=5, partial_rel=4), ir_measures.parse_measure("P(rel=5)@2")]
    expected = {RubricCover(rel=5) @ 1: 1.0, NuggetA(rel=5, partial_rel=4): 1.0, measures[2]: 1.0}
    assert ir_measures.calc_aggregate(measures, grades, run) == expected
    # As rows they are grades like all others: 2 of d1, 2 of d2, 2 of d3.
    rows = [row for row in qrels_of(grades, "item") if row.doc_id != "*"]
    assert len(rows) == 6
    assert ir_measures.calc_aggregate(measures, rows, run) == expected
    pytest.importorskip("pandas")
    frame = grades.to_dataframe()
    assert set(frame["status"]) == {"graded"}
    assert RubricCover(rel=5).calc_aggregate(build_grades(frame), run) == 1.0
    # Where they count as they are expected to, a frame has them too; where they count as zero, it has none.
    frames = {way: load_records(_records(tmp_path), on_failed=way).to_dataframe() for way in ("expected", "zero")}
    assert [set(frame["status"]) for frame in frames.values()] == [{"graded", "failed"}, {"graded"}]


def test_a_grade_stands_where_another_row_says_that_it_failed() -> None:
    items = [RubricItem("q/1", "q", ""), RubricItem("q/2", "q", "")]
    found = query_of([("d", "q/1", 5)], items, [("d", "q/1"), ("d", "q/2")], SELF_RATING)
    assert matrices.cells(found.counting_failed(1)) == {"d": {"q/1": 5, "q/2": 1}}
    assert found.failed is not None and found.failed.tolist() == [[False, True]]
    # Where none is left, none failed.
    assert query_of([("d", "q/1", 5)], items, [("d", "q/1")], SELF_RATING).failed is None


def test_a_failed_penalty_costs_what_its_grade_costs() -> None:
    items = [RubricItem("q/a", "q", "", weight=2.0), RubricItem("q/b", "q", "", weight=-1.0)]
    query = query_of([("d1", "q/a", 5)], items, [("d1", "q/b")])
    measures = [ir_measures.parse_measure("WeightedCover(rel=5,partial_rel=1)")]
    # 2 / 2; then (2 - 1) / 2.
    assert [matrices.values(measures, query, ["d1"], way) for way in ("zero", 5)] == [[1.0], [0.5]]


def test_a_query_without_a_positive_weight_scores_zero_also_where_a_grade_failed() -> None:
    measures = [ir_measures.parse_measure("WeightedCover(rel=5,partial_rel=1)")]
    # All that counts is a penalty: the score is 0 by definition, whether it is deserved or not.
    penalty = query_of([("d1", "q/b", 1)], [RubricItem("q/a", "q", "", weight=-1.0)], [("d1", "q/a")])
    assert matrices.values(measures, penalty, ["d1"]) == [0.0]
    # The only criterion has no grade: nobody can know.
    unknown = query_of([], [RubricItem("q/a", "q", "", weight=1.0)], [("d1", "q/a")])
    assert matrices.values(measures, unknown, ["d1"]) == [None]
    assert matrices.values(measures, unknown, ["d1"], "zero") == [0.0]
