"""Tests of pictures of labels: their points and lines are the labels'."""

import pytest

from rubric_measures.plots import labels

pytest.importorskip("matplotlib")


def test_bland_altman_lines() -> None:
    figure = labels.plot_bland_altman([2, 1, 1, 3], [1, 2, 1, 1])
    assert [text.get_text() for text in figure.axes[0].texts] == ["bias 0.50", "+1.96 SD 3.03", "−1.96 SD −2.03"]
    assert len(labels.plot_bland_altman([1], [0]).axes[0].texts) == 1
