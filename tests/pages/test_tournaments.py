"""Tests of the picture of a tournament: ratings, open intervals, groups, and who beat whom."""

from __future__ import annotations

import pytest

from rubric_measures.analysis.plots import plot_tournament

pytest.importorskip("matplotlib")


def test_ratings_and_win_matrix_by_hand() -> None:
    ratings = {"a": 1200.0, "b": 1000.0, "c": 800.0}
    intervals = {"a": (1100.0, None), "b": (950.0, 1050.0)}
    rates = [[None, 0.75, 1.0], [0.25, None, None], [0.0, None, None]]
    figure = plot_tournament(ratings, intervals, [("b", "c")], rates, "title")
    left, right = figure.axes[:2]
    found = {one.get_gid(): one for axes in (left, right) for one in axes.findobj() if one.get_gid()}
    assert found["means"].get_xydata().tolist() == [[1200, 0], [1000, 1], [800, 2]]
    # Nothing bounds a from above: 8 % of the span of 400 beyond the greatest number, with a triangle.
    assert found["intervals"].get_segments()[0][:, 0].tolist() == [1100, 1232]
    assert found["open-1"].get_xydata().tolist() == [[1232, 0]] and "open-0" not in found
    assert list(found["group-1"].get_ydata()) == [1, 2]
    assert found["cells"].get_array().filled(-9).tolist() == [[-9, 0.75, 1.0], [0.25, -9, -9], [0.0, -9, -9]]
    assert [text.get_text() for text in right.texts] == ["0.75", "1.00", "0.25", "0.00"]
