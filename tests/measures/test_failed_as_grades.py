"""Tests of failed grades that count as a grade: all measures, commands and views give what that grade would give."""

from __future__ import annotations

import json
import math
from pathlib import Path

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubric_measures import NuggetA, RubricCover, RubricItem
from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.measures.grades import Grades, OnFailed, build_query, check_on_failed
from rubric_measures.measures.loading import load_records
from rubric_measures.measures.qrels import build_grades, qrels_of
from tests import matrices
from tests.example_records import grade_set, passage, write_lines
from tests.matrices import query_of
from tests.strategies import Case, cases, columns_of

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
MEASURES = [ir_measures.parse_measure(name) for name in NAMES]


@pytest.mark.parametrize("wrong", ["max", "5", 0, -1, 2.0, True])
def test_ways_to_count_failed_grades(wrong: object) -> None:
    assert [check_on_failed(way) for way in ("expected", "zero", "error", 1, 5)] == ["expected", "zero", "error", 1, 5]
    with pytest.raises(InputError, match="give expected, zero, error, or a grade of 1 or more"):
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
        *matrices.values(MEASURES, query, case.ranking, on_failed),
        *matrices.best(MEASURES, query, on_failed),
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
    assert f"3 grades of ranked passages failed; counted as {way}" in err


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
    assert main(["qrels", graded, "--on-failed", "error", "-o", "out.qrels"]) == 2
    assert "3 grades failed; grade again" in capsys.readouterr().err
    assert not Path("out.qrels").exists()
    assert main(["qrels", graded, "--per", "facet"]) == 2
    assert "no item names a facet" in capsys.readouterr().err


def test_every_view_of_the_grades_counts_them_alike(tmp_path: Path) -> None:
    grades = load_records(_records(tmp_path), on_failed=5)
    run = [ir_measures.ScoredDoc("q1", "d2", 2.0), ir_measures.ScoredDoc("q1", "d1", 1.0)]
    measures = [RubricCover(rel=5) @ 1, NuggetA(rel=5, partial_rel=4), ir_measures.parse_measure("P(rel=5)@2")]
    expected = {RubricCover(rel=5) @ 1: 1.0, NuggetA(rel=5, partial_rel=4): 1.0, measures[2]: 1.0}
    assert ir_measures.calc_aggregate(measures, grades, run) == expected
    # As rows they are grades like all others: 2 of d1, 2 of d2, 2 of d3; the first says their scale.
    rows = list(grades.items)
    assert (len(rows), rows[0]) == (7, ("q1", "*", 0, "scale=0-5:4:3"))
    assert ir_measures.calc_aggregate(measures, rows, run) == expected
    pytest.importorskip("pandas")
    frame = grades.to_dataframe()
    assert set(frame["status"]) == {"graded"}
    assert RubricCover(rel=5).calc_aggregate(build_grades(frame), run) == 1.0


def test_a_failed_penalty_costs_what_its_grade_costs() -> None:
    items = [RubricItem("q/a", "q", "", weight=2.0), RubricItem("q/b", "q", "", weight=-1.0)]
    query = query_of([("d1", "q/a", 5)], items, [("d1", "q/b")])
    measures = [ir_measures.parse_measure("WeightedCover(rel=5,partial_rel=1)")]
    # 2 / 2; then (2 - 1) / 2, and nothing is left to be said of it.
    ways: list[tuple[OnFailed, float, int]] = [("zero", 1.0, 1), (5, 0.5, 0)]
    for way, value, hidden in ways:
        scores = matrices.scored(measures, query, ["d1"], way)
        assert (scores.values.tolist(), scores.lost_penalties.tolist()) == ([[value]], [hidden])


def test_a_query_without_a_positive_weight_scores_zero_also_where_a_grade_failed() -> None:
    measures = [ir_measures.parse_measure("WeightedCover(rel=5,partial_rel=1)")]
    # All that counts is a penalty: the score is 0 by definition, whether it is deserved or not.
    penalty = query_of([("d1", "q/b", 1)], [RubricItem("q/a", "q", "", weight=-1.0)], [("d1", "q/a")])
    assert matrices.values(measures, penalty, ["d1"]) == [0.0]
    # The only criterion has no grade: nobody can know.
    unknown = query_of([], [RubricItem("q/a", "q", "", weight=1.0)], [("d1", "q/a")])
    assert matrices.values(measures, unknown, ["d1"]) == [None]
    assert matrices.values(measures, unknown, ["d1"], "zero") == [0.0]
