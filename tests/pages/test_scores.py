"""Tests of pictures of scores against other scores of the same runs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rubric_measures.analysis import plots as scores

Text = pytest.importorskip("matplotlib.text").Text

RUNS = ["a", "b", "c"]


def drawn(figure):
    return {one.get_gid(): one for axes in figure.axes for one in axes.findobj() if one.get_gid()}


def test_ranks_against_ranks_name_what_moves() -> None:
    official = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6}
    # Official ranks 1 to 4; the other leaderboard has b and c tied at 2.5, d first and a last.
    figure = scores.plot_ranks(official, {"x": {"d": 30, "b": 20, "c": 20, "a": 10}, "y": {"a": 2, "b": 1}}, "nDCG", 9)
    found = drawn(figure)
    assert found["runs-1"].get_xydata().tolist() == [[2, 2.5], [3, 2.5]]
    assert found["outliers-1"].get_xydata().tolist() == [[1, 4], [4, 1]]
    assert [text.get_text() for text in figure.axes[0].texts] == ["d", "a"]
    # Pairs: none of ab ac ad bd cd agree, bc is tied: τ_b = −5 / sqrt(6 · 5).
    assert [axes.get_ylabel() for axes in figure.axes] == ["rank by x", "rank by y"]
    assert figure.axes[0].get_xlabel() == "rank by nDCG over 9 queries\nτ = −0.913, 4 runs"
    assert figure.axes[1].get_xlabel() == "rank by nDCG over 9 queries\nτ = 1.000, 2 runs"
    assert "outliers-2" not in found
    # Rank 1 stands at the upper left.
    assert figure.axes[0].get_ylim() == (4.6, 0.4) and figure.axes[0].get_xlim() == (0.4, 4.6)


def test_scatter_has_runs_queries_and_three_taus() -> None:
    manual = np.array([[0.1, 0.5, 0.9], [0.2, 0.4, 0.6]])
    figure = scores.plot_scatter(RUNS, manual, manual, errors=({"a": 0.05}, {}))
    found = drawn(figure)
    assert found["queries"].get_xdata().tolist() == [0.1, 0.5, 0.9, 0.2, 0.4, 0.6]
    assert found["runs"].get_xydata().tolist() == [[0.15, 0.15], [0.45, 0.45], [0.75, 0.75]]
    assert [text.get_text() for text in figure.axes[0].texts] == RUNS[::-1]
    said = "3 runs over 2 queries: τ of runs 1.000, mean of those of queries 1.000, of all pairs 1.000"
    assert " ".join(figure.axes[0].get_xlabel().split()) == f"official {said}"
    bars = figure.axes[0].containers[0].lines[2]
    assert bars[0].get_segments()[0][:, 0] == pytest.approx([0.1, 0.2])
    tied = scores.plot_scatter(RUNS, np.zeros((2, 3)), manual)
    assert tied.axes[0].get_xlabel().count("undefined") == 3


@pytest.mark.parametrize("apart", [0, 0.02])
def test_long_names_stand_in_the_figure_and_not_on_each_other(apart: float) -> None:
    names = [f"organisation-{place:02}_reranker-large_top100_v2" for place in range(30)]
    values = [0.2 + apart * place for place in range(30)]
    for figure in (
        scores.plot_scatter(names, values, values),
        scores.plot_ranks(
            dict(zip(names, values, strict=True)), {"other": dict(zip(names, values[::-1], strict=True))}, "x"
        ),
    ):
        figure.draw_without_rendering()
        boxes = sorted((Text.get_window_extent(text) for text in figure.axes[0].texts), key=lambda box: box.y0)
        assert len(boxes) in (8, 30) or not apart
        assert all(low.y1 <= high.y0 for low, high in itertools.pairwise(boxes))
        assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width and box.y1 <= figure.bbox.height for box in boxes)
