"""The pictures in the docs are what the commands draw; `python -m tests.docs.test_pictures` draws them again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rubric_measures.cli import main

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
EXAMPLE = ROOT / "resources" / "example"
KINDS = {
    "leaderboard.svg": ["RubricCover(rel=4)@20", "RubricQrels(measure='nDCG@10')"],
}


def draw(folder: Path) -> None:
    """Draws the pictures into a folder."""
    runs = sorted(map(str, (EXAMPLE / "runs").glob("*.run")))
    start = ["leaderboard", str(EXAMPLE / "graded.jsonl.gz"), *runs, "--bank", str(EXAMPLE / "questions.jsonl"), "-m"]
    for name, options in KINDS.items():
        assert main([*start, *options, "--output", str(folder / "board.tsv"), "--plot", str(folder / name)]) == 0
    assert main([*start, "RubricCover(rel=4)@20", "--output", str(folder / "board.json")]) == 0
    compared = ["compare", str(folder / "board.json"), "--baseline", "bm25", "--output", str(folder / "board.tsv")]
    assert main([*compared, "--plot", str(folder / "differences.svg")]) == 1
    for path in (folder / "board.tsv", folder / "board.json"):
        path.unlink()


def texts(path: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)<", path.read_text(encoding="utf-8"))


def test_the_pictures_in_the_docs_say_what_the_commands_draw(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(tmp_path)
    for name in (*KINDS, "differences.svg"):
        assert texts(tmp_path / name) == texts(IMAGES / name) != [], f"draw {name} again"


if __name__ == "__main__":
    draw(IMAGES)
