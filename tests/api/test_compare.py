"""Comparing runs from files of per-query scores, from boards and from numbers."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import rubric_measures
from rubric_measures import Tests
from rubric_measures.base.errors import InputError, UnknownNameError


def scores(path: Path, run: str, *values: float, measure: str = "map") -> str:
    """A file as `trec_eval -q` prints it."""
    lines = [f"{measure}\tq{number}\t{value}\n" for number, value in enumerate(values, 1)]
    path.write_text(f"runid\tall\t{run}\n" + "".join(lines) + f"{measure}\tall\t{sum(values) / len(values)}\n")
    return str(path)


def test_files_of_one_run_each_are_put_together(tmp_path: Path) -> None:
    files = [scores(tmp_path / "1", "one", 0.5, 0.25, 1), scores(tmp_path / "2", "two", 0.25, 0.25, 0)]
    found = rubric_measures.compare(*files, baseline="two", tests=Tests(99))
    assert list(found) == ["map"]
    # Differences 0.25, 0 and 1.
    assert found["map"].pairs[0].test.mean_difference == pytest.approx(1.25 / 3)
    # An open file, and run -> query -> score, are the same numbers.
    with open(files[0], "rb") as stream:
        again = rubric_measures.compare(
            stream, {"two": {"q1": 0.25, "q2": 0.25, "q3": 0}}, measures="map", baseline="two", tests=Tests(99)
        )
    assert again["map"].pairs == found["map"].pairs


def test_boards_of_two_banks_are_not_compared(tmp_path: Path) -> None:
    rows = [rubric_measures.Grade(query, "d1", 5, "a") for query in ("q1", "q2")]
    paths = []
    for run, items in (("one", "a"), ("two", "ab")):
        bank = {query: {item: f"What is {item}?" for item in items} for query in ("q1", "q2")}
        entries = [
            {"query_id": query, "item_id": item, "text": text} for query in bank for item, text in bank[query].items()
        ]
        board = rubric_measures.score(
            rubric_measures.load(rows, entries, grader="scale=0-5:4"),
            {run: {query: {"d1": 1.0} for query in bank}},
            "RubricCover",
        )
        paths.append(tmp_path / f"{run}.json")
        paths[-1].write_text(board.render("json"))
    for call in (rubric_measures.compare, rubric_measures.power):
        with pytest.raises(
            InputError, match=r"one.json and .*two.json: not comparable, as another bank made their scores"
        ):
            call(*paths)


def test_boards_of_one_bank_are_compared_whatever_the_order_of_its_rows() -> None:
    pool = rubric_measures.pool({"one": {"q1": {"d1": 1.0}}}, {"d1": "Tea grows in Assam."}, queries={"q1": "tea"})
    rows = [{"query_id": "q1", "item_id": text[:3], "text": text} for text in ("Tea grows.", "Assam has tea.")]
    boards = [
        rubric_measures.score(rubric_measures.load(graded, rows), {run: {"q1": {"d1": 1.0}}}, "RubricCover")
        for run, bank in (("one", rows), ("two", rows[::-1]))
        for graded in [rubric_measures.grade(pool, bank, model="lexical")]
    ]
    assert rubric_measures.compare(*boards)["RubricCover(rel=4)"].means.keys() == {"one", "two"}


def test_the_wanted_runs_alone(tmp_path: Path) -> None:
    file = {run: {"q1": value, "q2": 0.5} for run, value in (("a", 1.0), ("b", 0.5), ("c", 0.25))}
    assert list(rubric_measures.compare(file, runs=["a"], baseline="c", tests=Tests(9))["score"].means) == ["a", "c"]
    with pytest.raises(UnknownNameError, match="unknown run 'd'"):
        rubric_measures.compare(file, runs=["a", "d"])
    with pytest.raises(InputError, match="scores: run 'a' is in another file, too"):
        rubric_measures.compare(file, {"a": {"q1": 1.0}})
    with pytest.raises(InputError, match="name scores"):
        rubric_measures.compare()
    with pytest.raises(InputError, match="rounds is 1 or more"):
        rubric_measures.compare(file, tests=Tests(0))
    with pytest.raises(InputError, match=r"'holm' is no way to test; write Tests\(correction='holm'\)"):
        rubric_measures.compare(file, tests="holm")  # type: ignore[arg-type]


def test_what_is_missing_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One rule for all numbers: they are over the queries that all runs have."""
    drawn = np.random.default_rng(5).uniform(0.2, 0.9, (3, 40))
    scores = {
        run: {f"q{at:02}": float(one) for at, one in enumerate(row)} for run, row in zip("abc", drawn, strict=True)
    }
    scores["b"] = {query: value for query, value in scores["b"].items() if query > "q03"}
    found = rubric_measures.compare(scores, tests=Tests(500))
    assert not found.is_complete
    one = found["score"]
    whole = {run: {query: values[query] for query in one.queries} for run, values in scores.items()}
    assert rubric_measures.compare(whole, tests=Tests(500))["score"].pairs == one.pairs
    assert {pair.test.queries for pair in one.pairs} == {36} and "36 queries told" in str(found)
    with caplog.at_level(logging.INFO, "rubric_measures"):
        found.log_notes()
    said = "score: 4 queries that some run lacks left out (such as q00): everything is over the other 36; b has the "
    assert any(one.startswith(said) for one in caplog.messages)
