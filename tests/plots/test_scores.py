"""Tests of pictures of scores against other scores of the same runs."""

import numpy as np
import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.plots import scores

pytest.importorskip("matplotlib")

RUNS = ["a", "b", "c"]


def test_leaderboards_are_min_max_normalised_with_scaled_errors() -> None:
    figure = scores.plot_leaderboards(
        RUNS, {"m": {"a": 30.0, "b": 20.0, "c": 10.0}, "gap": {"a": 1.0, "c": 3.0}}, {"m": {"a": 2.0}}
    )
    first, second = figure.axes[0].containers
    assert first.lines[0].get_ydata().tolist() == [1.0, 0.5, 0.0]
    # A standard error of 2 on a span of 20 is 0.1.
    assert first.lines[2][0].get_segments()[0][:, 1] == pytest.approx([0.9, 1.1])
    assert second.lines[0].get_ydata()[0] == 0.0
    assert np.isnan(second.lines[0].get_ydata()[1])
    # A leaderboard without any error has no bars, in the legend neither.
    assert not scores.plot_leaderboards(RUNS, {"m": {"a": 1.0, "b": 0.5}}, {"m": {}}).axes[0].containers[0].has_yerr
    tied = scores.plot_leaderboards(RUNS, {"m": {"a": 1.0, "b": 1.0, "c": 1.0}})
    assert tied.axes[0].containers[0].lines[0].get_ydata().tolist() == [0.5, 0.5, 0.5]
    with pytest.raises(InputError, match="no leaderboard"):
        scores.plot_leaderboards(RUNS, {})
    with pytest.raises(InputError, match="none of the runs"):
        scores.plot_leaderboards(RUNS, {"m": {"z": 1.0}})


def test_manual_automatic_shows_three_taus() -> None:
    manual = np.array([[0.1, 0.5, 0.9], [0.2, 0.4, 0.6]])
    figure = scores.plot_manual_automatic(manual, manual)
    assert figure.axes[0].texts[0].get_text().count("1.000") == 3
    tied = scores.plot_manual_automatic(np.zeros((2, 3)), manual)
    assert tied.axes[0].texts[0].get_text().count("undefined") == 3
    with pytest.raises(InputError, match="no query in common"):
        scores.plot_manual_automatic(np.array([[0.1], [np.nan]]), np.array([[np.nan], [0.1]]))
    with pytest.raises(InputError, match="one shape"):
        scores.plot_manual_automatic(manual, manual[:, :2])


def test_pareto_front_by_hand() -> None:
    # (1, .2) shortest; (2, .5) better; (2, .4) beaten by it; (3, .5) as good but longer; (4, .9) best.
    assert scores.pareto_front([1, 2, 2, 3, 4], [0.2, 0.5, 0.4, 0.5, 0.9]) == [0, 1, 4]
    # Two equal points beat neither each other.
    assert scores.pareto_front([1, 1], [0.5, 0.5]) == [0, 1]
    figure = scores.plot_length(RUNS, [10, 20, 30], [0.1, 0.2, 0.1])
    assert [text.get_text() for text in figure.axes[0].texts] == ["a", "b"]
    with pytest.raises(InputError, match="one length"):
        scores.plot_length(RUNS, [1], [1])
