"""Tests of pictures of labels: their cells, points and lines are the labels'."""

from __future__ import annotations

import pytest

from rubric_measures.pages import plots as labels

pytest.importorskip("matplotlib")


def legend(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_bland_altman_says_its_lines_and_sizes_in_a_legend() -> None:
    # Differences 1, -1, 0, 2: bias 0.5, deviation 1.29; means 1.5, 1.5, 1, 2.
    figure = labels.plot_bland_altman([2, 1, 1, 3, 1], [1, 2, 1, 1, 1])
    found = {one.get_gid(): one for one in figure.axes[0].findobj() if one.get_gid()}
    # (1, 0) comes twice, so that its point is the largest.
    assert found["pairs"].get_offsets().tolist() == [[1.0, 0.0], [1.5, -1.0], [1.5, 1.0], [2.0, 2.0]]
    assert found["pairs"].get_sizes().tolist() == [272.0, 142.0, 142.0, 142.0]
    # Differences 1, -1, 0, 2, 0: bias 0.4; deviation sqrt(5.2 / 4) = 1.140; 1.96 of them 2.235.
    assert found["bias"].get_ydata()[0] == pytest.approx(0.4)
    assert (found["low"].get_ydata()[0], found["high"].get_ydata()[0]) == pytest.approx((-1.8347, 2.6347), abs=1e-4)
    assert legend(figure) == [*("1 document", "2 documents", "bias", "limits of agreement")]
    said = "5 documents: bias 0.40, limits of agreement (bias ± 1.96 SD) −1.83 and 2.63"
    assert " ".join(figure.axes[0].get_xlabel().split()) == f"mean of first and second {said}"
    assert legend(labels.plot_bland_altman([1], [0])) == ["1 document", "bias"]
