"""Tests of dot plots: what they draw is what the board says, in its own unit."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ir_measures import Qrel

from rubric_measures import Tests, load, score
from rubric_measures.base.errors import InputError
from rubric_measures.pages import plots as dots

pytest.importorskip("matplotlib")

SVG = "{http://www.w3.org/2000/svg}"


def drawn_points(path: Path, name: str) -> list[tuple[float, str]]:
    """(value, run) of the points of a series in an SVG, by the numbers and names on its axes."""
    root = ElementTree.parse(path).getroot()
    (axes,) = (group for group in root.iter(f"{SVG}g") if group.get("id") == "axes_1")

    def ticks(axis: str) -> list[ElementTree.Element]:
        return [group for group in axes.iter(f"{SVG}g") if group.get("id", "").startswith(f"{axis}tick_")]

    marked = ((next(one.iter(f"{SVG}use")), next(one.iter(f"{SVG}text"))) for one in ticks("x"))
    marks = [(float(use.get("x")), float(text.text)) for use, text in marked]
    (x0, low), *_, (x1, high) = marks
    texts = [next(one.iter(f"{SVG}text")) for one in ticks("y")]
    rows = [(float(re.findall(r"[-\d.]+", text.get("transform"))[-1]), text.text) for text in texts]
    (series,) = (group for group in axes.iter(f"{SVG}g") if group.get("id") == name)
    return [
        (
            low + (float(use.get("x")) - x0) / (x1 - x0) * (high - low),
            min(rows, key=lambda row: abs(row[0] - float(use.get("y"))))[1],
        )
        for use in series.iter(f"{SVG}use")
    ]


def test_a_board_is_drawn_in_raw_scores(tmp_path: Path) -> None:
    """0.5222 was drawn as 1.0, without its interval."""
    # `good` covers both items of three queries and none of the fourth; `bad` one item of two queries.
    covered = {"good": (1.0, 1.0, 1.0, 0.0), "bad": (0.5, 0.5, 0.0, 0.0)}
    rows = [Qrel(f"q{query}", "both", 5, item) for query in range(4) for item in ("a", "b")]
    rows += [Qrel(f"q{query}", "one", 5, "a") for query in range(4)]
    texts = {1.0: "both", 0.5: "one", 0.0: "none"}
    runs = {
        run: {f"q{query}": {texts[value]: 1.0} for query, value in enumerate(values)} for run, values in covered.items()
    }
    board = score(load(rows, grader="scale=0-5:4"), runs, "RubricCover(rel=4)@1")
    board.plot(tmp_path / "board.svg", tests=Tests(200))
    means = drawn_points(tmp_path / "board.svg", "means-1")
    assert [(run, pytest.approx(value, abs=1e-3)) for value, run in means] == [("good", 0.75), ("bad", 0.25)]
    queries = drawn_points(tmp_path / "board.svg", "queries-1")
    assert sorted((run, round(value, 3)) for value, run in queries) == sorted(
        (run, value) for run, values in covered.items() for value in values
    )
    drawing = (tmp_path / "board.svg").read_text()
    for text in (">0.750<", ">0.250<", ">RubricCover(rel=4)@1<", ">mean, 95 % interval over 4 queries; groups by"):
        assert text in drawing
    # Three differences in four say nothing of who is better.
    assert 'id="group-1-1"' in drawing and 'id="intervals-1"' in drawing


def test_dots_by_hand() -> None:
    runs = ["a", "b", "c"]
    panel = dots.DotPanel(
        "m", {"a": 30.0, "b": 20.0}, {"a": (25.0, 33.0)}, {"a": [29.0, 31.0, 31.0]}, [("a", "b"), ("b", "c")], 40.0
    )
    second = dots.DotPanel("n", {"a": 0.1, "b": 0.2, "c": 0.3})
    figure = dots.plot_dots(runs, [panel, second], "title")
    left, right = figure.axes
    artists = {one.get_gid(): one for axes in figure.axes for one in axes.findobj() if one.get_gid()}
    assert artists["means-1"].get_xydata().tolist() == [[30.0, 0.0], [20.0, 1.0]]
    assert artists["intervals-1"].get_segments()[0].tolist() == [[25.0, 0.0], [33.0, 0.0]]
    points = artists["queries-1"].get_offsets().tolist()
    assert [x for x, _ in points] == [29.0, 31.0, 31.0]
    # Equal scores stand above each other, in their row.
    assert points[0][1] == 0 and points[1][1] == -points[2][1] != 0
    # The run `b` is in both groups, which stand in columns of their own.
    groups = [artists[name].get_ydata() for name in ("group-1-1", "group-2-1")]
    assert [list(rows) for rows in groups] == [[0, 1], [1, 2]]
    assert artists["best-1"].get_xdata()[0] == 40.0
    assert [text.get_text() for text in left.texts] == ["30.000", "20.000"]
    assert [text.get_text() for text in right.texts] == ["0.100", "0.200", "0.300"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        *("single query", "interval", "mean", "cannot be told apart", dots.BEST)
    ]
    assert [label.get_text() for label in left.get_yticklabels()] == runs
    with pytest.raises(InputError, match="no run"):
        dots.plot_dots([], [panel], "")
