"""Tests of a measure that a user writes: one class, one call, and it works everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import ir_measures
import pytest

from rubric_measures import Grade, RubricCover, RubricItem, RubricMeasure, TestBank, register
from rubric_measures.base.errors import MeasureError
from rubric_measures.boards.scoring import score_runs
from rubric_measures.cli import main
from rubric_measures.measures import (
    CUTOFF,
    CoverageMeasure,
    QueryContext,
    RankedDocs,
    RankingScorer,
    covered_share,
    min_grade,
)
from rubric_measures.measures.grades import OnFailed, QueryGrades
from rubric_measures.measures.qrels import build_grades
from tests.example_records import write_all
from tests.measures.test_provider import BANK, ROWS, RUN


class FirstCover(RubricMeasure):
    """1 / the rank of the first passage that covers any item."""

    SUPPORTED_PARAMS: ClassVar = {"rel": min_grade("covering an item"), "cutoff": CUTOFF}

    def prepare(self, query: QueryContext) -> RankingScorer:
        covering = query.covering(self.value("rel")).keys()

        def score(ranked: RankedDocs) -> float:
            return 1 / min(ranked.ranks_of(covering, self.value("cutoff")), default=float("inf"))

        return score


@pytest.fixture
def registered() -> Iterator[FirstCover]:
    yield register(FirstCover)
    del ir_measures.measures.registry["FirstCover"]


def test_a_measure_of_a_user_works_everywhere(
    registered: FirstCover, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measure = registered(rel=4) @ 5
    assert (str(measure), ir_measures.parse_measure(str(measure))) == ("FirstCover(rel=4)@5", measure)
    grades = build_grades(ROWS, BANK)
    # At 4: q1 has d1 at rank 1, q2 and q3 nothing. At 3 also d1 of q2, at rank 2.
    frames = [grades.to_dataframe()] if find_spec("pandas") else []
    for qrels in (grades, grades.items, *frames):
        assert ir_measures.calc_aggregate([measure, RubricCover(rel=1)], qrels, RUN)[measure] == pytest.approx(1 / 3)
    runs = [("one", {"q1": ["d1", "d2"], "q2": ["d9", "d1"]})]
    board = score_runs(grades, runs, [registered(rel=3), RubricCover(rel=1)], overall=True)
    assert board.values["one"]["FirstCover(rel=3)"] == {"q1": 1.0, "q2": 0.5, "q3": 0.0}
    folder = write_all(tmp_path)
    graded, run = str(folder / "graded.jsonl.gz"), str(folder / "alpha.run")
    assert main(["leaderboard", graded, run, "-m", "FirstCover(rel=4)", "--format", "tsv"]) == 0
    assert "FirstCover(rel=4)" in capsys.readouterr().out
    assert main(["evaluate", graded, run, "FirstCover(rel=1)@1", "-q"]) == 0
    assert "q1\tFirstCover(rel=1)@1\t1.0000" in capsys.readouterr().out


def test_a_name_is_taken_once_and_a_new_version_replaces_the_old(registered: FirstCover) -> None:
    assert register(FirstCover) == registered

    class RubricCover(FirstCover):
        """Another measure of a known name."""

    with pytest.raises(MeasureError, match=r"there is a measure RubricCover already.*give tests\.measures"):
        register(RubricCover)
    assert ir_measures.parse_measure("RubricCover").PRETTY_NAME == "Rubric-Cover"


def test_a_measure_that_does_not_compute_itself_is_refused() -> None:
    class Nothing(RubricMeasure):
        """Has no way to be computed."""

    with pytest.raises(TypeError, match="prepare"):
        register(Nothing)  # type: ignore[type-abstract]


@pytest.mark.parametrize(("on_failed", "expected"), [("expected", None), ("zero", 0.0), (5, 1.0)])
def test_failed_grades_of_a_measure_that_does_not_handle_them(on_failed: OnFailed, expected: float | None) -> None:
    grades = build_grades([Grade("q", "d", None, "q/1", status="failed")], on_failed=on_failed)
    board = score_runs(grades, [("one", {"q": ["d"]})], [FirstCover(rel=1)], overall=False)
    assert board.values["one"]["FirstCover(rel=1)"] == {"q": expected}


class LengthCover(CoverageMeasure):
    """The plug-in of docs/plugins.md: long items count more."""

    SUPPORTED_PARAMS = type(RubricCover).SUPPORTED_PARAMS

    def formula(self, query: QueryContext):  # type: ignore[no-untyped-def]
        return covered_share(query, self.value("rel"), [len(item.text) for item in query.items])


@pytest.mark.parametrize(("on_failed", "expected"), [("expected", 0.96), ("zero", 0.8), (5, 1.0), ("error", None)])
def test_failed_grades_of_a_coverage_measure_count_as_the_user_chose(
    on_failed: OnFailed, expected: float | None
) -> None:
    # Of the weight that no other passage covers, 4 of 5 valid grades cover: so much a failed one is expected to earn.
    items = [RubricItem("q/1", "q", "long"), RubricItem("q/2", "q", "o"), RubricItem("q/3", "q", "")]
    rows = [Grade("q", "d", 4, "q/1"), Grade("q", "d", None, "q/2", status="failed"), Grade("q", "e", 0, "q/2")]
    grades = build_grades(rows, TestBank({"q": tuple(items)}), on_failed=on_failed)
    measure = LengthCover(rel=4)
    if expected is None:
        with pytest.raises(MeasureError, match="failed grade"):
            score_runs(grades, [("one", {"q": ["d", "e"]})], [measure], overall=False)
        return
    board = score_runs(grades, [("one", {"q": ["d", "e"]})], [measure], overall=False)
    assert board.values["one"][str(measure)]["q"] == pytest.approx(expected)


def test_a_share_takes_weights_that_are_none_of_penalties() -> None:
    query = QueryContext(QueryGrades("q", (RubricItem("q/1", "q", ""),), {}))
    for weights in ([-1.0], [1.0, 1.0], [float("nan")]):
        with pytest.raises(MeasureError, match="one weight an item, 0 or more"):
            covered_share(query, 4, weights)


def test_a_coverage_measure_has_a_best_value() -> None:
    class Covered(CoverageMeasure):
        """How many items are covered."""

        SUPPORTED_PARAMS = type(RubricCover).SUPPORTED_PARAMS

        def formula(self, query: QueryContext):  # type: ignore[no-untyped-def]
            return lambda top: float(top.at_least(self.value("rel")).bit_count())

    board = score_runs(build_grades(ROWS, BANK), [("one", {"q1": ["d2"]})], [Covered(rel=1)])
    assert board.values["one"]["Covered(rel=1)"]["q1"] == 1.0
    assert board.best["Covered(rel=1)"].per_query == {"q1": 2.0, "q2": 1.0, "q3": 0.0}
