"""Tests of the figures: they are written in every format, bytes repeat, and hold what they should."""

import numpy as np
import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.meta_evaluation import plots

pytest.importorskip("matplotlib")

RUNS = ["a", "b", "c"]


def test_all_formats_and_equal_bytes(tmp_path) -> None:
    for suffix in ("png", "svg", "pdf"):
        paths = [tmp_path / f"{name}.{suffix}" for name in ("first", "second")]
        for path in paths:
            plots.save_figure(plots.plot_leaderboards(RUNS, {"m": {"a": 1.0, "b": 0.5, "c": 0.0}}), path)
        assert paths[0].read_bytes() == paths[1].read_bytes()
        assert paths[0].stat().st_size > 1000
    assert len(list(tmp_path.iterdir())) == 6
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        plots.save_figure(plots.plot_leaderboards(RUNS, {"m": {"a": 1.0}}), tmp_path / "x.jpg")
    with pytest.raises(InputError, match="does not exist"):
        plots.save_figure(plots.plot_leaderboards(RUNS, {"m": {"a": 1.0}}), tmp_path / "no" / "x.png")


def test_leaderboards_are_min_max_normalised_with_scaled_errors() -> None:
    figure = plots.plot_leaderboards(
        RUNS, {"m": {"a": 30.0, "b": 20.0, "c": 10.0}, "gap": {"a": 1.0, "c": 3.0}}, {"m": {"a": 2.0}}
    )
    first, second = figure.axes[0].containers
    assert first.lines[0].get_ydata().tolist() == [1.0, 0.5, 0.0]
    # A standard error of 2 on a span of 20 is 0.1.
    assert first.lines[2][0].get_segments()[0][:, 1] == pytest.approx([0.9, 1.1])
    assert second.lines[0].get_ydata()[0] == 0.0
    assert np.isnan(second.lines[0].get_ydata()[1])
    # A leaderboard without any error has no bars, in the legend neither.
    assert not plots.plot_leaderboards(RUNS, {"m": {"a": 1.0, "b": 0.5}}, {"m": {}}).axes[0].containers[0].has_yerr
    tied = plots.plot_leaderboards(RUNS, {"m": {"a": 1.0, "b": 1.0, "c": 1.0}})
    assert tied.axes[0].containers[0].lines[0].get_ydata().tolist() == [0.5, 0.5, 0.5]
    with pytest.raises(InputError, match="no leaderboard"):
        plots.plot_leaderboards(RUNS, {})
    with pytest.raises(InputError, match="none of the runs"):
        plots.plot_leaderboards(RUNS, {"m": {"z": 1.0}})


def test_manual_automatic_shows_three_taus() -> None:
    manual = np.array([[0.1, 0.5, 0.9], [0.2, 0.4, 0.6]])
    figure = plots.plot_manual_automatic(manual, manual)
    assert figure.axes[0].texts[0].get_text().count("1.000") == 3
    tied = plots.plot_manual_automatic(np.zeros((2, 3)), manual)
    assert tied.axes[0].texts[0].get_text().count("undefined") == 3
    with pytest.raises(InputError, match="no query in common"):
        plots.plot_manual_automatic(np.array([[0.1], [np.nan]]), np.array([[np.nan], [0.1]]))
    with pytest.raises(InputError, match="one shape"):
        plots.plot_manual_automatic(manual, manual[:, :2])


def test_pareto_front_by_hand() -> None:
    # (1, .2) shortest; (2, .5) better; (2, .4) beaten by it; (3, .5) as good but longer; (4, .9) best.
    assert plots.pareto_front([1, 2, 2, 3, 4], [0.2, 0.5, 0.4, 0.5, 0.9]) == [0, 1, 4]
    # Two equal points beat neither each other.
    assert plots.pareto_front([1, 1], [0.5, 0.5]) == [0, 1]
    figure = plots.plot_length(RUNS, [10, 20, 30], [0.1, 0.2, 0.1])
    assert [text.get_text() for text in figure.axes[0].texts] == ["a", "b"]
    with pytest.raises(InputError, match="one length"):
        plots.plot_length(RUNS, [1], [1])


def test_bland_altman_lines() -> None:
    figure = plots.plot_bland_altman([2, 1, 1, 3], [1, 2, 1, 1])
    assert [text.get_text() for text in figure.axes[0].texts] == ["bias 0.50", "+1.96 SD 3.03", "−1.96 SD −2.03"]
    assert len(plots.plot_bland_altman([1], [0]).axes[0].texts) == 1


def test_long_names_stay_inside_the_figure() -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    names = (
        "assessors-of-the-track-2024-judgments.qrels",
        "model-labels-by-some-model-with-a-very-long-name-0613.qrels",
    )
    long = "RubricQrels(judged_only=True,label='count',measure='nDCG(judged_only=True)@100',rel=4)"
    runs = [f"a-team-with-a-long-name-run-{index}-of-three" for index in range(3)]
    table = np.array([[0.1, 0.5, 0.9], [0.2, 0.4, 0.6]])
    figures = [
        plots.plot_bland_altman([2, 1, 1, 3], [1, 2, 1, 1], names),
        plots.plot_manual_automatic(table, table, names),
        plots.plot_length(runs, [1, 2, 3], [0.1, 0.2, 0.3], names),
        plots.plot_critical_difference({run: float(index) for index, run in enumerate(runs)}, [], long),
        plots.plot_leaderboards(runs, {long: {run: float(index) for index, run in enumerate(runs)}}, label=long),
    ]
    for figure in figures:
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        axes = figure.axes[0]
        for text in (axes.xaxis.label, axes.yaxis.label):
            if not text.get_text():
                continue
            box = text.get_window_extent(canvas.get_renderer())
            assert box.x0 >= 0 and box.y0 >= 0, text.get_text()
            assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, text.get_text()
    # Nothing of a name is lost to the line breaks.
    assert "".join(figures[0].axes[0].get_ylabel().split()) == f"{names[0]}−{names[1]}"


def test_critical_difference_names_runs_best_first_and_bars_groups() -> None:
    figure = plots.plot_critical_difference({"a": 0.1, "b": 0.9, "c": 0.5}, [("b", "c")])
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["b", "c", "a"]
    assert max(axes.get_xticks()) <= 0.95
    cut = plots.plot_critical_difference({"a": 0.1, "b": 0.9, "c": 0.5}, [], shown=2)
    assert "best 2 of 3" in " ".join(cut.axes[0].get_xlabel().split())
    with pytest.raises(InputError, match="no run"):
        plots.plot_critical_difference({}, [])
