"""Gates: what is under a limit or worse than a kept board is said with its size and its queries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from ir_measures import Qrel

import rubric_measures
from rubric_measures.api.boards import parsed_limit, read_gates
from rubric_measures.base.errors import InputError, UnknownNameError

QUERIES = tuple(f"q{number}" for number in range(10))


def board_of(queries: Sequence[str] = QUERIES, **covered: list[int]) -> rubric_measures.Board:
    """Runs by NuggetA over ten queries with four items each: how many the answer covers."""
    rows = [
        Qrel(query, run, 4 if item < counts[QUERIES.index(query)] else 0, f"{query}/{item}")
        for run, counts in covered.items()
        for query in queries
        for item in range(4)
    ]
    grades = rubric_measures.load(rows, scale="0-5:4")
    runs = {run: {query: {run: 1.0} for query in queries} for run in covered}
    return rubric_measures.score(grades, runs, "NuggetA", overall=False)


GOOD = [3, 4, 3, 4, 3, 4, 3, 4, 3, 4]
# Lower by 0.25 on six queries.
WORSE = [2, 3, 2, 3, 2, 3, 3, 4, 3, 4]
# As much up as down, but for one.
OTHER = [4, 3, 4, 3, 4, 3, 3, 3, 3, 4]


def worse(
    now: rubric_measures.Board, before: rubric_measures.Board, folder: Path, run: str = "", by: float | None = None
) -> list[str]:
    """What fails beside a board that is kept in a file, or beside one run of it."""
    path = folder / "before.json"
    path.write_text(before.render("json", -1))
    return read_gates((), f"{path}:{run}" if run else path, by=by).failed(now)


def test_a_mean_under_its_limit_is_said_with_the_lowest_queries() -> None:
    board = board_of(good=GOOD, poor=[0, 1] + [4] * 8)
    # (0 + 1/4 + 8) / 10 = 0.825
    assert read_gates({"NuggetA": 0.8}).failed(board) == []
    [line] = read_gates({"NuggetA": 0.85}).failed(board)
    assert line == "NuggetA(rel=4,partial_rel=4) of poor is 0.8250, 0.0250 under 0.85; lowest: q0 0, q1 0.25"
    assert read_gates({"NuggetA": 0.85}).failed(board, ["good"]) == []
    with pytest.raises(UnknownNameError):
        read_gates({"NuggetV": 0.5}).failed(board)
    with pytest.raises(UnknownNameError):
        read_gates({"NuggetA": 0.5}).failed(board, ["other"])


def test_worse_is_lower_and_told_apart(tmp_path: Path) -> None:
    before = board_of(now=GOOD)
    [line] = worse(board_of(now=WORSE), before, tmp_path)
    assert line.startswith(
        "NuggetA(rel=4,partial_rel=4) of now is 0.1500 below now of before.json (p = 0.0051, 10 queries); lost: "
    )
    assert line.endswith("q0 -0.25, q1 -0.25, q2 -0.25, q3 -0.25, q4 -0.25 and 1 more")
    # Lower by 0.025, which chance explains.
    assert worse(board_of(now=OTHER), before, tmp_path) == []
    [line] = worse(board_of(now=OTHER), before, tmp_path, by=0.02)
    assert "0.0250 below" in line
    assert worse(board_of(now=OTHER), before, tmp_path, by=0.025) == []
    # Better is never worse.
    assert worse(board_of(now=GOOD), board_of(now=WORSE), tmp_path, by=0) == []
    with pytest.raises(InputError, match="lower by 0 or more, not by -1"):
        worse(board_of(now=GOOD), before, tmp_path, by=-1)


def test_the_baseline_is_named_the_same_or_the_only_one(tmp_path: Path) -> None:
    before = board_of(a=GOOD, b=WORSE)
    now = board_of(b=WORSE)
    assert worse(now, before, tmp_path) == []
    assert len(worse(now, before, tmp_path, "a")) == 1
    assert len(worse(board_of(c=WORSE), board_of(a=GOOD), tmp_path)) == 1
    with pytest.raises(InputError, match=r"before.json has no run c to compare with; name one of a, b"):
        worse(board_of(c=GOOD), before, tmp_path)
    with pytest.raises(UnknownNameError):
        worse(now, before, tmp_path, "d")
    # Queries that one of the two lacks take no part.
    assert worse(now, board_of(("q6", "q7"), b=GOOD), tmp_path, by=0) == []


def test_a_limit_is_a_measure_and_a_number() -> None:
    assert parsed_limit("NuggetV = 0.7") == ("NuggetV", 0.7)
    for wrong in ("NuggetV", "NuggetV(strict=True)", "=0.7", "NuggetV=nan", "0.7"):
        with pytest.raises(InputError, match="expected MEASURE=NUMBER"):
            parsed_limit(wrong)
