"""Pictures: what they show, worked out by hand; every kind as commands draw it, in every form; no words on words."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from ir_measures import Qrel

import rubric_measures
from rubric_measures import Tests, load, score
from rubric_measures.analysis import plots
from rubric_measures.analysis.plots import save_figures
from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder

pytest.importorskip("matplotlib")


def test_each_measure_of_a_comparison_is_a_picture(tmp_path: Path) -> None:
    grades = load([Qrel(f"q{number}", "d", number % 2, "a") for number in range(4)], grader="scale=0-1:1")
    runs = {name: {f"q{number}": {doc: 1.0} for number in range(4)} for name, doc in (("one", "d"), ("two", "x"))}
    board = score(grades, runs, ["RubricCover@1", "RubricCover@2"])
    compared = board.compare("two", tests=Tests(99))
    with pytest.raises(InputError, match=r"x\.svg: has several pages, and \.pdf alone holds them"):
        compared.plot(tmp_path / "x.svg")
    compared.plot(tmp_path / "x.pdf")
    assert b"/Count 2" in (tmp_path / "x.pdf").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["x.pdf"]


pytest.importorskip("matplotlib")


def test_dots_by_hand() -> None:
    runs = ["a", "b", "c"]
    panel = plots.DotPanel(
        "m", {"a": 30.0, "b": 20.0}, {"a": (25.0, 33.0)}, {"a": [29.0, 31.0, 31.0]}, [("a", "b"), ("b", "c")], 40.0
    )
    second = plots.DotPanel("n", {"a": 0.1, "b": 0.2, "c": 0.3})
    figure = plots.plot_dots(runs, [panel, second], "title")
    left, right = figure.axes
    artists = {one.get_gid(): one for axes in figure.axes for one in axes.findobj() if one.get_gid()}
    assert artists["means-1"].get_xydata().tolist() == [[30.0, 0.0], [20.0, 1.0]]
    assert artists["intervals-1"].get_segments()[0].tolist() == [[25.0, 0.0], [33.0, 0.0]]
    points = artists["queries-1"].get_offsets().tolist()
    assert [x for x, _ in points] == [29.0, 31.0, 31.0]
    assert {y for _, y in points} == {0}
    # The run `b` is in both groups, which stand in columns of their own.
    groups = [artists[name].get_ydata() for name in ("group-1-1", "group-2-1")]
    assert [list(rows) for rows in groups] == [[0, 1], [1, 2]]
    assert artists["line-1"].get_xdata()[0] == 40.0
    assert [text.get_text() for text in left.texts] == ["30.000", "20.000"]
    assert [text.get_text() for text in right.texts] == ["0.100", "0.200", "0.300"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        *("single query", "interval", "mean", "cannot be told apart", plots.BEST)
    ]
    assert [label.get_text() for label in left.get_yticklabels()] == runs


pytest.importorskip("matplotlib")

PANEL = plots.DotPanel("m", {"a": 1.0, "b": 0.5})


def test_all_forms_and_equal_bytes(tmp_path: Path) -> None:
    for suffix in ("png", "svg", "pdf"):
        paths = [tmp_path / f"{name}.{suffix}" for name in ("first", "second")]
        for path in paths:
            save_figures([plots.plot_dots(["a", "b"], [PANEL], "title")], path)
        assert paths[0].read_bytes() == paths[1].read_bytes()
        assert paths[0].stat().st_size > 1000
    assert len(list(tmp_path.iterdir())) == 6
    # Fonts are in the PDF as such, and text is text in SVG.
    assert b"/Type3" not in (tmp_path / "first.pdf").read_bytes()
    assert ">title</text>" in (tmp_path / "first.svg").read_text()


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_what_cannot_be_written_is_one_line_and_leaves_nothing(suffix: str, tmp_path: Path) -> None:
    figure = plots.plot_dots(["a", "b"], [PANEL], "title")
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
    figures = [
        plots.plot_scatter(runs, table, table, names),
        plots.plot_dots(runs, [plots.DotPanel(long, dict.fromkeys(runs, 0.5))], " ".join([long] * 4)),
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
    assert "".join(figures[0].axes[0].get_ylabel().split()) == names[1]


pytest.importorskip("matplotlib")

EXAMPLE = example_folder()
GRADED, BANK, QRELS = (str(EXAMPLE / name) for name in ("graded.jsonl.gz", "questions.jsonl", "qrels.txt"))
RUNS = sorted(map(str, (EXAMPLE / "runs").glob("*.run")))
MEASURES = ["RubricCover(rel=4)@20", "RubricQrels(measure='nDCG@10')"]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list:
    """The figures that are written."""
    found: list = []
    save = plots.save_figures

    def kept(figures, path):
        found.extend(pages := list(figures))
        save(pages, path)

    monkeypatch.setattr(plots, "save_figures", kept)
    return found


def check(figures: list) -> None:
    from matplotlib.text import Text

    assert figures
    for figure in figures:
        figure.draw_without_rendering()
        assert not figure.get_suptitle() and not any(axes.get_title() for axes in figure.axes)
        whole = figure.bbox.width * figure.bbox.height
        for legend in figure.legends:
            box = legend.get_window_extent()
            assert box.width * box.height <= whole / 10
        for axes in figure.axes:
            named = [*axes.texts, axes.xaxis.label, axes.yaxis.label]
            for axis in (axes.xaxis, axes.yaxis):
                low, high = sorted(axis.get_view_interval())
                named += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            # Turned words have boxes that are larger than they are; lines to points are none of the words.
            boxes = [
                (text.get_text(), Text.get_window_extent(text))
                for text in named
                if text.get_text() and text.get_visible() and text.get_rotation() in (0, 90)
            ]
            assert [
                (one[0], two[0]) for one, two in combinations(boxes, 2) if one[1].shrunk(0.95, 0.8).overlaps(two[1])
            ] == []
            for name, box in boxes:
                assert (
                    box.x0 >= -1 and box.y0 >= -1 and box.x1 <= figure.bbox.x1 + 1 and box.y1 <= figure.bbox.y1 + 1
                ), name


def test_groups(drawn: list, tmp_path: Path) -> None:
    board = rubric_measures.score(rubric_measures.load(GRADED, BANK), RUNS, MEASURES[0], overall=False)
    rubric_measures.compare(board, tests=Tests(99)).plot(tmp_path / "x.png")
    rubric_measures.compare(board, baseline="bm25", tests=Tests(99)).plot(tmp_path / "y.png")
    check(drawn)
    assert len(drawn) == 2


@pytest.mark.parametrize("boards", [1, 2])
def test_scores(boards: int, drawn: list, tmp_path: Path) -> None:
    ours, official = tmp_path / "ours.json", tmp_path / "official.json"
    form = ["--format", "json", "-o"]
    assert main(["leaderboard", GRADED, *RUNS, "--bank", BANK, "-m", MEASURES[0], *form, str(ours)]) == 0
    assert main(["leaderboard", QRELS, *RUNS, "-m", "nDCG@10", *form, str(official)]) == 0
    plot = ["--plot", str(tmp_path / "x.pdf")]
    assert main(["correlate", str(official), *[str(ours)] * boards, *plot, "--rounds", "0"]) == 0
    check(drawn)
