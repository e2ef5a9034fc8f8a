"""Games as JSON lines: read, written, read again; verdicts of assessors; wrong lines."""

from __future__ import annotations

from pathlib import Path

from rubric_measures.api.judging import _games
from rubric_measures.formats import plain
from rubric_measures.types.entities import Preference

GAMES = [
    Preference("q1", "x", "y", "a", answer="… [[A]]", grader="openai:judge"),
    Preference("q1", "y", "x", "tie"),
    Preference("q2", "x", "y", None, "failed", grader="openai:judge", note="no reply"),
    Preference("q2", "x", "y", "b", grader="human:ada"),
]


def test_verdicts_of_assessors_are_marked(tmp_path: Path) -> None:
    plain.GAMES.write(tmp_path / "g.jsonl", GAMES)
    marked = [game.grader for game in _games([tmp_path / "g.jsonl"], assessors=True)[str(tmp_path / "g.jsonl")]]
    assert marked == ["human:openai:judge", "human:anonymous", "human:openai:judge", "human:ada"]
