"""Tests of pictures of compared runs: groups are bars between scores; differences are to a baseline."""

from __future__ import annotations

import pytest

from rubric_measures import Tests
from rubric_measures.analysis.comparison import compare_runs
from rubric_measures.analysis.plots import plot_differences

pytest.importorskip("matplotlib")

SCORES = {
    "low": {"q1": 0.1, "q2": 0.2, "q3": 0.1, "q4": 0.2},
    "high": {"q1": 0.8, "q2": 0.9, "q3": 0.8, "q4": 0.9},
    "near": {"q1": 0.9, "q2": 0.7, "q3": 0.8, "q4": 0.9},
}


def drawn(figure):
    return {one.get_gid(): one for axes in figure.axes for one in axes.findobj() if one.get_gid()}


def test_differences_are_to_the_baseline_best_first() -> None:
    comparison = compare_runs(SCORES, "m", baseline="near", tests=Tests(correction="holm"))
    figure = plot_differences(comparison, {"high": [-0.1, 0.2, 0.0, 0.0]})
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["high", "low"]
    found = drawn(figure)
    assert found["means"].get_xydata().tolist() == [[pytest.approx(0.025), 0], [pytest.approx(-0.675), 1]]
    assert [text.get_text() for text in axes.texts] == ["0.025", "−0.675"]
    assert found["queries"].get_offsets()[:, 0].tolist() == [-0.1, 0.2, 0.0, 0.0]
    # The run that cannot be told from the baseline has a hollow point.
    assert list(found["alike"].get_ydata()) == [0]
    (pair,) = (pair for pair in comparison.pairs if pair.first == "low")
    assert found["intervals"].get_segments()[1][:, 0].tolist() == [pair.test.low, pair.test.high]
    said = "m minus that of near: mean and 95 % interval (holm), 4 queries"
    assert " ".join(axes.get_xlabel().split()) == said
