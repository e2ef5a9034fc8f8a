"""Tests of pictures of scores against other scores of the same runs."""

from __future__ import annotations

import pytest

from rubric_measures.analysis import plots as scores


def drawn(figure):
    return {one.get_gid(): one for axes in figure.axes for one in axes.findobj() if one.get_gid()}


def test_ranks_against_ranks_name_what_moves() -> None:
    pytest.importorskip("matplotlib")
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
