"""Games as JSON lines: read, written, read again; verdicts of assessors; wrong lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.formats.ragelo import read_preferences, write_preferences
from rubric_measures.types.entities import Preference

GAMES = [
    Preference("q1", "x", "y", "a", answer="… [[A]]", grader="openai:judge"),
    Preference("q1", "y", "x", "tie"),
    Preference("q2", "x", "y", None, "failed", grader="openai:judge", note="no reply"),
    Preference("q2", "x", "y", "b", grader="human:ada"),
]


@pytest.mark.parametrize("name", ["g.jsonl", "g.jsonl.gz"])
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    write_preferences(tmp_path / name, GAMES)
    assert read_preferences(tmp_path / name) == GAMES


def test_verdicts_of_assessors_are_marked(tmp_path: Path) -> None:
    write_preferences(tmp_path / "g.jsonl", GAMES)
    marked = [game.grader for game in read_preferences(tmp_path / "g.jsonl", assessors=True)]
    assert marked == ["human:openai:judge", "human:anonymous", "human:openai:judge", "human:ada"]


def test_missing_fields_have_defaults_and_unknown_ones_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text('{"query_id": 1, "agent_a": "x", "agent_b": "y", "verdict": null, "seconds": 3}\n')
    assert read_preferences(path) == [Preference("1", "x", "y", None, "unparsed")]
    assert caplog.messages == [f"{path}: unknown fields left out: seconds (1 lines)"]


GOOD = '{"query_id": "q", "agent_a": "x", "agent_b": "y", "verdict": "a"}\n'
WRONG = {
    "no object": ("[1]\n", "g.jsonl:1: Input should be an object"),
    "no json": ("{\n", "g.jsonl:1: "),
    "verdict": (
        GOOD.replace('"a"}', '"c"}'),
        "g.jsonl:1: verdict: Input should be 'a', 'b', 'tie' or 'both_bad'; f",
    ),
    "no verdict": ('{"query_id": "q", "agent_a": "x", "agent_b": "y"}\n', "g.jsonl:1: verdict"),
    "agent": (GOOD.replace('"y"', "7"), "g.jsonl:1: agent_b: Input should be a valid string; found 7"),
    "status": (GOOD.replace('"a"}', '"a", "status": "done"}'), "g.jsonl:1: status: Input should be 'graded'"),
    "both": (GOOD.replace('"a"}', '"a", "status": "failed"}'), "exactly when the status is graded"),
    "itself": (GOOD.replace('"y"', '"x"'), "g.jsonl:1: query 'q': agent 'x' plays against itself"),
    "twice": (GOOD + "\n" + GOOD, "g.jsonl:3: .*stands in line 1 already"),
    "empty": ("\n", "g.jsonl: is empty; expected games"),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_wrong_files_are_one_line(name: str, tmp_path: Path) -> None:
    text, message = WRONG[name]
    (tmp_path / "g.jsonl").write_text(text)
    with pytest.raises(FormatError, match=message) as caught:
        read_preferences(tmp_path / "g.jsonl")
    assert "\n" not in str(caught.value)


def test_nothing_to_write(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no games"):
        write_preferences(tmp_path / "g.jsonl", [])
    assert list(tmp_path.iterdir()) == []
