"""Gates: what is under a limit or worse than a kept board is said with its size and its queries."""

from __future__ import annotations

import pytest
from ir_measures import Qrel

import rubric_measures
from rubric_measures.api.boards import parsed_limit, runs_under, runs_worse
from rubric_measures.base.errors import InputError, UnknownNameError


def board_of(**covered: list[int]) -> rubric_measures.Board:
    """Runs by NuggetA over ten queries with four items each: how many the answer covers."""
    queries = [f"q{number}" for number in range(10)]
    rows = [
        Qrel(query, run, 4 if item < counts[place] else 0, f"{query}/{item}")
        for run, counts in covered.items()
        for place, query in enumerate(queries)
        for item in range(4)
    ]
    grades = rubric_measures.load(rows, scale="0-5:4")
    runs = {run: {query: {run: 1.0} for query in queries} for run in covered}
    return rubric_measures.score(grades, runs, "NuggetA", overall=False)


NAME = "NuggetA(rel=4,partial_rel=4)"
GOOD = [3, 4, 3, 4, 3, 4, 3, 4, 3, 4]
# Lower by 0.25 on six queries.
WORSE = [2, 3, 2, 3, 2, 3, 3, 4, 3, 4]
# As much up as down, but for one.
OTHER = [4, 3, 4, 3, 4, 3, 3, 3, 3, 4]


def kept(board: rubric_measures.Board) -> dict[str, dict[str, float]]:
    name = board.measures[0]
    return {run: {query: value or 0.0 for query, value in row[name].items()} for run, row in board.values.items()}


def test_a_mean_under_its_limit_is_said_with_the_lowest_queries() -> None:
    board = board_of(good=GOOD, poor=[0, 1] + [4] * 8)
    # (0 + 1/4 + 8) / 10 = 0.825
    assert runs_under(board, {"NuggetA": 0.8}) == []
    [line] = runs_under(board, {"NuggetA": 0.85})
    assert line == "NuggetA(rel=4,partial_rel=4) of poor is 0.8250, 0.0250 under 0.85; lowest: q0 0, q1 0.25"
    assert runs_under(board, {"NuggetA": 0.85}, ["good"]) == []
    with pytest.raises(UnknownNameError):
        runs_under(board, {"NuggetV": 0.5})
    with pytest.raises(UnknownNameError):
        runs_under(board, {"NuggetA": 0.5}, ["other"])


def test_worse_is_lower_and_told_apart() -> None:
    before = kept(board_of(now=GOOD))
    [line] = runs_worse(board_of(now=WORSE), before, NAME)
    assert line.startswith(
        "NuggetA(rel=4,partial_rel=4) of now is 0.1500 below now of the kept board (p = 0.0051, 10 queries); lost: "
    )
    assert line.endswith("q0 -0.25, q1 -0.25, q2 -0.25, q3 -0.25, q4 -0.25 and 1 more")
    # Lower by 0.025, which chance explains.
    assert runs_worse(board_of(now=OTHER), before, NAME) == []
    [line] = runs_worse(board_of(now=OTHER), before, NAME, by=0.02)
    assert "0.0250 below" in line
    assert runs_worse(board_of(now=OTHER), before, NAME, by=0.025) == []
    # Better is never worse.
    assert runs_worse(board_of(now=GOOD), kept(board_of(now=WORSE)), NAME, by=0) == []


def test_the_baseline_is_named_the_same_or_the_only_one() -> None:
    before = kept(board_of(a=GOOD, b=WORSE))
    now = board_of(b=WORSE)
    assert runs_worse(now, before, NAME) == []
    assert len(runs_worse(now, before, NAME, baseline="a")) == 1
    assert len(runs_worse(board_of(c=WORSE), {"a": before["a"]}, NAME)) == 1
    with pytest.raises(InputError, match="has no run c to compare with; name one of a, b"):
        runs_worse(board_of(c=GOOD), before, NAME)
    with pytest.raises(UnknownNameError):
        runs_worse(now, before, NAME, baseline="d")
    # Queries that one of the two lacks take no part.
    part = {"b": {query: value for query, value in before["a"].items() if query in ("q6", "q7")}}
    assert runs_worse(now, part, NAME, by=0) == []


def test_a_limit_is_a_measure_and_a_number() -> None:
    assert parsed_limit("NuggetV = 0.7") == ("NuggetV", 0.7)
    for wrong in ("NuggetV", "NuggetV(strict=True)", "=0.7", "NuggetV=nan", "0.7"):
        with pytest.raises(InputError, match="expected MEASURE=NUMBER"):
            parsed_limit(wrong)
