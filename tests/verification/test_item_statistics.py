"""Tests of the item statistics: hand-worked coverage, discrimination."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rubric_measures.base.tables import Undefined
from rubric_measures.measures.loading import RecordQuery, read_records
from rubric_measures.verification.sections import item_report
from tests.example_records import RECORDS, grade_set, passage, write_lines


def queries_of(tmp_path: Path, lines: list[object]) -> list[RecordQuery]:
    return list(read_records(write_lines(tmp_path / "graded.jsonl", lines)))


def test_coverage_and_discrimination_by_hand(tmp_path: Path) -> None:
    # From grade 4: d1 (judged 2) covers q1/a, d2 (judged 0) covers q1/b, nothing covers q1/c, d3 covers q2/a.
    queries = queries_of(tmp_path, list(RECORDS))
    rows = {row.item_id: row for row in item_report(queries).statistics}
    assert list(rows) == ["q1/a", "q1/b", "q1/c", "q2/a"]
    a, b, c, single = rows.values()
    assert (a.graded, a.covering, a.by_relevant, a.by_not_relevant) == (2, 1, 1.0, 0.0)
    assert (b.by_relevant, b.by_not_relevant) == (0.0, 1.0)
    assert (single.by_relevant, single.by_not_relevant) == (1.0, Undefined("no passage judged not relevant"))
    # Two passages, (covers, judgment): a (1, 2) and (0, 0); b the reverse.
    assert (a.r_judgment, b.r_judgment) == (pytest.approx(1.0), pytest.approx(-1.0))
    assert c.r_judgment == Undefined("no judged passages cover it")
    assert single.r_judgment == Undefined("1 judged passages")
    # Without a: one has (1/2 + 1) / 2, two has (1/2 + 0) / 2; one covers a, two does not.
    assert a.r_leaderboard == pytest.approx(1.0)
    assert b.r_leaderboard == Undefined("all runs cover it")
    assert c.r_leaderboard == Undefined("no runs cover it")
    assert [row.covered for row in rows.values()] == [None, None, "never", "always"]


def test_failed_grades_count_in_the_scores_of_runs_as_they_are_expected(tmp_path: Path) -> None:
    status = {"q1/c": "refused", "q1/d": "failed"}
    first = grade_set({"q1/a": 5, "q1/b": 0, "q1/c": 0, "q1/d": 0, "q1/e": 1})
    second = grade_set({"q1/a": 4, "q1/b": 0, "q1/e": 0}, status=status)
    third = grade_set({"q1/a": 0, "q1/b": 5, "q1/c": 0, "q1/d": 0}, status={"q1/e": "truncated"})
    lines: list[object] = [
        [
            "q1",
            [
                passage("q1", "d1", [first], {"all": 1, "one": 1}),
                passage("q1", "d2", [second], {"all": 2}),
                passage("q1", "d3", [third], {"all": 3, "lost": 1}),
                passage("q1", "d4", [grade_set({}, status=dict.fromkeys(("q1/a", "q1/b"), "failed"))], {"void": 1}),
            ],
        ]
    ]
    rows = {row.item_id: row for row in item_report(queries_of(tmp_path, lines)).statistics}
    assert [row.failed for row in rows.values()] == [1, 1, 1, 1, 1]
    # Without a: all has (1 + 3/7) / 4, as b is covered once and c, d, e have six valid grades; one has 0; lost has
    # (1 + 1/3) / 4. Nothing is known of void, whose grades all failed. r of (1, 1, 0) and (5/14, 0, 1/3) is
    # (5/42 - 2/9) / √(2/3 · 422/5292).
    assert rows["q1/a"].r_leaderboard == pytest.approx((5 / 42 - 2 / 9) / math.sqrt(2 / 3 * 422 / 5292))
