"""Tests of how pictures are written and look: every form, equal bytes, nothing left of a failure, names in full."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rubric_measures import Tests
from rubric_measures.analysis import plots as cells
from rubric_measures.analysis import plots as comparisons
from rubric_measures.analysis import plots as dots
from rubric_measures.analysis import plots as labels
from rubric_measures.analysis import plots as scores
from rubric_measures.analysis.comparison import compare_runs
from rubric_measures.analysis.plots import save_figures
from rubric_measures.base.errors import InputError

pytest.importorskip("matplotlib")

PANEL = dots.DotPanel("m", {"a": 1.0, "b": 0.5})


def test_all_forms_and_equal_bytes(tmp_path: Path) -> None:
    for suffix in ("png", "svg", "pdf"):
        paths = [tmp_path / f"{name}.{suffix}" for name in ("first", "second")]
        for path in paths:
            save_figures([dots.plot_dots(["a", "b"], [PANEL], "title")], path)
        assert paths[0].read_bytes() == paths[1].read_bytes()
        assert paths[0].stat().st_size > 1000
    assert len(list(tmp_path.iterdir())) == 6
    # Fonts are in the PDF as such, and text is text in SVG.
    assert b"/Type3" not in (tmp_path / "first.pdf").read_bytes()
    assert ">title</text>" in (tmp_path / "first.svg").read_text()


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_further_pages_are_files_beside_the_first(
    suffix: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    pages = [dots.plot_dots(["a", "b"], [PANEL], f"page {number}") for number in (1, 2, 3)]
    path = tmp_path / f"all.{suffix}"
    save_figures(pages, path)
    names = sorted(one.name for one in tmp_path.iterdir())
    assert names == [f"all-2.{suffix}", f"all-3.{suffix}", f"all.{suffix}"]
    assert caplog.messages == [f"3 pages: {path} to all-3.{suffix}; .pdf holds all in one file"]
    if suffix == "svg":
        assert [f"page {number}" in (tmp_path / name).read_text() for number, name in ((2, names[0]), (1, names[2]))]
    # Where one of them cannot be written, none is.
    for one in tmp_path.iterdir():
        one.unlink()
    (tmp_path / f"all-3.{suffix}").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        save_figures(pages, path)
    assert [one.name for one in tmp_path.iterdir()] == [f"all-3.{suffix}"]
    monkeypatch.setattr("rubric_measures.analysis.plots._MOST_FILES", 2)
    with pytest.raises(InputError, match=r"more than 2 pages, and as many files; give \.pdf"):
        save_figures(iter(pages), tmp_path / f"more.{suffix}")


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_what_cannot_be_written_is_one_line_and_leaves_nothing(suffix: str, tmp_path: Path) -> None:
    figure = dots.plot_dots(["a", "b"], [PANEL], "title")
    full = tmp_path / f"full.{suffix}"
    full.symlink_to("/dev/full")
    if Path("/dev/full").exists():
        with pytest.raises(InputError, match=r"full\.\w+: cannot be written \(No space left on device\)"):
            save_figures([figure], full)
        assert Path("/dev/full").is_char_device()
    folder = tmp_path / f"folder.{suffix}"
    folder.mkdir()
    with pytest.raises(InputError, match="is a folder"):
        save_figures([figure], folder)
    with pytest.raises(InputError, match="cannot be written"):
        save_figures([figure], f"/proc/new.{suffix}")
    assert sorted(path.name for path in tmp_path.iterdir()) == [folder.name, full.name]


def test_long_names_stay_inside_the_figure() -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    names = (
        "assessors-of-the-track-2024-judgments.qrels",
        "model-labels-by-some-model-with-a-very-long-name-0613.qrels",
    )
    long = "RubricQrels(judged_only=True,label='count',measure='nDCG(judged_only=True)@100',rel=4)"
    runs = [f"a-team-with-a-long-name-run-{index}-of-three" for index in range(3)]
    table = np.array([[0.1, 0.5, 0.9], [0.2, 0.4, 0.6]])
    means = {run: float(index) for index, run in enumerate(runs)}
    compared = {run: {"q1": mean, "q2": mean + index * 0.3} for index, (run, mean) in enumerate(means.items())}
    figures = [
        labels.plot_bland_altman([2, 1, 1, 3], [1, 2, 1, 1], names),
        scores.plot_scatter(runs, table, table, names),
        scores.plot_ranks(means, {long: means}, long),
        comparisons.plot_critical_difference(compare_runs(compared, long, tests=Tests(rounds=9))),
        dots.plot_dots(runs, [dots.DotPanel(long, dict.fromkeys(runs, 0.5))], " ".join([long] * 4)),
        cells.plot_queries(runs, runs, np.zeros((3, 3)), long),
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
