"""Tests of tables of cells: grades of items by runs, scores of queries by runs; and what a board puts into them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from ir_measures import Qrel

from rubric_measures import Tests, load, score
from rubric_measures.analysis import plots as cells
from rubric_measures.base.errors import InputError

pytest.importorskip("matplotlib")


def values_of(figure):
    (mesh,) = (one for one in figure.axes[0].findobj() if one.get_gid() == "cells")
    return mesh.get_array()


def test_items_are_in_order_of_their_grades_and_bold_where_covered() -> None:
    best = {"one": [1, None, 5], "two": [2, None, 4]}
    figure = cells.plot_items(["rare", "never graded", "easy"], best, "q1", (0, 5), 4)
    axes = figure.axes[0]
    # Means 4.5, 1.5, and none.
    assert [label.get_text() for label in axes.get_yticklabels()] == ["easy", "rare", "never graded"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["one", "two"]
    assert values_of(figure).filled(-9).tolist() == [[5, 4], [1, 2], [-9, -9]]
    assert [(text.get_text(), text.get_weight()) for text in axes.texts] == [
        ("5", "bold"), ("4", "bold"), ("1", "normal"), ("2", "normal"),
    ]  # fmt: skip
    # The row of the first item is on top.
    assert axes.get_ylim() == (3, 0)
    long = cells.plot_items([("a word " * 30).strip()], {"one": [1]}, "q1")
    assert long.axes[0].get_yticklabels()[0].get_text().endswith(" …")
    with pytest.raises(InputError, match="no item"):
        cells.plot_items([], {}, "q1")


def test_queries_are_in_order_and_in_raw_scores() -> None:
    figure = cells.plot_queries(["hard", "easy"], ["one", "two"], [[0.1, 0.2], [0.5, math.nan]], "m")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["easy", "hard"]
    assert values_of(figure).filled(-9).tolist() == [[0.5, -9], [0.1, 0.2]]
    assert [text.get_text() for text in figure.axes[0].texts] == ["0.50", "0.10", "0.20"]
    assert figure.axes[1].get_ylabel() == "m"
    with pytest.raises(InputError, match="no score"):
        cells.plot_queries(["q"], ["r"], [[np.nan]], "m")


@pytest.mark.parametrize("in_files", [False, True])
def test_a_board_shows_the_best_grade_within_the_cutoff(in_files: bool, tmp_path: Path) -> None:
    rows = [Qrel("q 1", "d1", 2, "a"), Qrel("q 1", "d1", 5, "b"), Qrel("q 1", "d2", 3, "a"), Qrel("q 1", "d3", 5, "a")]
    grades = load(rows, grader="scale=0-5:4")
    # Within the top 2, `up` has 3 and 5, `down` 5 and nothing of b.
    order = {"up": ["d1", "d2", "d3"], "down": ["d3", "d2", "d1"]}
    runs = {run: {"q 1": {doc: 3.0 - rank for rank, doc in enumerate(docs)}} for run, docs in order.items()}
    given: object = runs
    if in_files:
        given = []
        for run, docs in order.items():
            lines = (f"q%201 Q0 {doc} {rank} {3 - rank} {run}\n" for rank, doc in enumerate(docs))
            (tmp_path / run).write_text("".join(lines))
            given.append(str(tmp_path / run))
    board = score(grades, given, "RubricCover@2", overall=False)
    board.plot(tmp_path / "heat.svg", "heat", grades=grades, runs=given)
    page = (tmp_path / "heat-2.svg").read_text()
    shown = [part.partition("</text>")[0].rpartition(">")[2] for part in page.split("<text")[1:]]
    said = " ".join(shown)
    assert "items of q 1" in said and "best grade in the top 2 bold: covers, 4 or more" in said
    # Names of runs, then items by their mean grade (b 5; a 4 of 3 and 5), then the cells, row by row.
    ranking = board.ranking()
    assert shown[:4] == [*ranking, "b", "a"]
    by_run = {"up": {"a": "3", "b": "5"}, "down": {"a": "5"}}
    cells_shown = [by_run[run][item] for item in ("b", "a") for run in ranking if item in by_run[run]]
    assert [text for text in shown[4:] if text in ("3", "5")][: len(cells_shown)] == cells_shown


def test_labels_of_passages_have_no_items(tmp_path: Path) -> None:
    grades = load([Qrel("q1", "d1", 1), Qrel("q2", "d1", 0)])
    runs = {"one": {"q1": {"d1": 1.0}, "q2": {"d1": 1.0}}}
    board = score(grades, runs, "P@1")
    board.plot(tmp_path / "heat.svg", "heat", grades=grades, runs=runs)
    assert [path.name for path in tmp_path.iterdir()] == ["heat.svg"]


def test_kinds_of_pictures_of_a_board(tmp_path: Path) -> None:
    grades = load([Qrel(f"q{number}", "d", number % 2, "a") for number in range(4)], grader="scale=0-1:1")
    runs = {name: {f"q{number}": {doc: 1.0} for number in range(4)} for name, doc in (("one", "d"), ("two", "x"))}
    board = score(grades, runs, ["RubricCover@1", "RubricCover@2"])
    with pytest.raises(InputError, match="unknown kind"):
        board.plot(tmp_path / "x.svg", "pie")
    assert list(tmp_path.iterdir()) == []
    board.compare("two", tests=Tests(99)).plot(tmp_path / "x.svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x-2.svg", "x.svg"]
