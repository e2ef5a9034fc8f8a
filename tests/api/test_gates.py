"""Gates: what is under a limit is said with its size and its queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from ir_measures import Qrel

import rubric_measures
from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.boards.kept import Gates
from rubric_measures.corpora.collections import example_folder

QUERIES = tuple(f"q{number}" for number in range(10))


def board_of(queries: Sequence[str] = QUERIES, **covered: list[int]) -> rubric_measures.Board:
    """Runs by NuggetA over ten queries with four items each: how many the answer covers."""
    rows = [
        Qrel(query, run, 4 if item < counts[QUERIES.index(query)] else 0, f"{query}/{item}")
        for run, counts in covered.items()
        for query in queries
        for item in range(4)
    ]
    grades = rubric_measures.load(rows, grader="scale=0-5:4")
    runs = {run: {query: {run: 1.0} for query in queries} for run in covered}
    return rubric_measures.score(grades, runs, "NuggetA", overall=False)


GOOD = [3, 4, 3, 4, 3, 4, 3, 4, 3, 4]


def test_a_mean_under_its_limit_is_said_with_the_lowest_queries() -> None:
    board = board_of(good=GOOD, poor=[0, 1] + [4] * 8)
    # (0 + 1/4 + 8) / 10 = 0.825
    assert Gates({"NuggetA": 0.8}).failed(board) == []
    [line] = Gates({"NuggetA": 0.85}).failed(board)
    assert line == "NuggetA(rel=4,partial_rel=4) of poor is 0.8250, 0.0250 under 0.85; lowest: q0 0, q1 0.25"
    assert Gates({"NuggetA": 0.85}).failed(board, ["good"]) == []
    assert Gates({"NuggetA": 0.85}, "good").failed(board) == []
    assert len(Gates({"NuggetA": 0.85}, "poor").failed(board, ["good"])) == 1
    with pytest.raises(UnknownNameError):
        Gates({"NuggetV": 0.5}).failed(board)
    with pytest.raises(UnknownNameError):
        Gates({"NuggetA": 0.5}).failed(board, ["other"])


def test_a_limit_that_no_mean_reaches_is_refused() -> None:
    with pytest.raises(InputError, match=r"limit NuggetV=70: NuggetV is 1 at most; write 0.7 for 70 %"):
        Gates({"NuggetV": 70})
    # Counts of ir_measures have no such end.
    assert Gates({"NumRet": 70, "NuggetV": 1}).limits == {"NumRet": 70, "NuggetV": 1}


def test_numbers_of_numpy_and_measures_as_objects_are_taken() -> None:
    result = rubric_measures.evaluate_answers(example_folder() / "answers.csv", model="lexical")
    result.assert_at_least(rubric_measures.NuggetV, np.float32(0.1), "thorough")
    with pytest.raises(AssertionError):
        result.assert_at_least(rubric_measures.NuggetV(strict=True), np.float32(1))
    assert rubric_measures.Calls(max_calls=np.int64(5), max_cost=np.float32(0.5)) == rubric_measures.Calls(
        max_calls=5, max_cost=0.5
    )


def test_arguments_in_the_wrong_order_are_told() -> None:
    with pytest.raises(InputError, match=r"0\.9, 'NuggetV': expected the name of a measure, then the least mean"):
        Gates({0.9: "NuggetV"})  # type: ignore[dict-item]
