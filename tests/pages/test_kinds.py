"""Every kind of picture, of the example: no title, a small legend, and no words that lie on each other."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

import rubric_measures
from rubric_measures import Draws, Preference, Tests, tournament
from rubric_measures.analysis import plots
from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder

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
        found.extend(figures)
        save(found, path)

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
    plot = ["--plot", str(tmp_path / "x.png")]
    assert main(["correlate", str(official), *[str(ours)] * boards, *plot, "--rounds", "0"]) == 0
    check(drawn)


def test_labels(drawn: list, tmp_path: Path) -> None:
    plot = ["--plot", str(tmp_path / "x.png")]
    assert main(["agreement", QRELS, GRADED, "--bank", BANK, *plot, "--rounds", "0"]) == 0
    check(drawn)


def test_tournaments(drawn: list, tmp_path: Path) -> None:
    agents = ["thorough", "concise", "bm25-stem", "fluent-but-empty"]
    games = [
        Preference(f"q{number}", one, other, "ab"[(number + place) % 3 > 1])
        for number in range(30)
        for place, (one, other) in enumerate(combinations(agents, 2))
    ]
    tournament(games, draws=Draws(50)).plot(tmp_path / "x.png")
    check(drawn)
