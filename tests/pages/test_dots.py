"""Tests of dot plots: what they draw is what the board says, in its own unit."""

from __future__ import annotations

import pytest

from rubric_measures.analysis import plots as dots
from rubric_measures.base.errors import InputError

pytest.importorskip("matplotlib")


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
