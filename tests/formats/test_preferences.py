"""Games as JSON lines: read, written, read again; verdicts of assessors; wrong lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric_measures.api.tournaments import _games
from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.formats import plain
from rubric_measures.types.entities import Preference

GAMES = [
    Preference("q1", "x", "y", "a", answer="… [[A]]", grader="openai:judge"),
    Preference("q1", "y", "x", "tie"),
    Preference("q2", "x", "y", None, "failed", grader="openai:judge", note="no reply"),
    Preference("q2", "x", "y", "b", grader="human:ada"),
]


@pytest.mark.parametrize("name", ["g.jsonl", "g.jsonl.gz"])
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    plain.GAMES.write(tmp_path / name, GAMES)
    assert plain.GAMES.read(tmp_path / name) == GAMES


def test_verdicts_of_assessors_are_marked(tmp_path: Path) -> None:
    plain.GAMES.write(tmp_path / "g.jsonl", GAMES)
    marked = [game.grader for game in _games([tmp_path / "g.jsonl"], assessors=True)[str(tmp_path / "g.jsonl")]]
    assert marked == ["human:openai:judge", "human:anonymous", "human:openai:judge", "human:ada"]


def test_missing_fields_have_defaults_and_unknown_ones_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text('{"query_id": 1, "agent_a": "x", "agent_b": "y", "verdict": null, "seconds": 3}\n')
    assert plain.GAMES.read(path) == [Preference("1", "x", "y", None, "unparsed")]
    assert caplog.messages == [f"{path}: 1 further columns left out: seconds"]


GOOD = '{"query_id": "q", "agent_a": "x", "agent_b": "y", "verdict": "a"}\n'
WRONG = {
    "no object": ("[1]\n", "g.jsonl:1: expected an object, found 1"),
    "no json": ("{\n", "g.jsonl:1: "),
    "verdict": (
        GOOD.replace('"a"}', '"c"}'),
        "g.jsonl:1: verdict: expected a, b, tie or both_bad; found 'c'",
    ),
    "no verdict": ('{"query_id": "q", "agent_a": "x", "agent_b": "y"}\n', "g.jsonl:1: verdict"),
    "agent": (GOOD.replace('"y"', "[7]"), r"g.jsonl:1: agent_b: expected a text; found '\[7\]'"),
    "status": (GOOD.replace('"a"}', '"a", "status": "done"}'), "g.jsonl:1: status: expected graded, unparsed"),
    "both": (GOOD.replace('"a"}', '"a", "status": "failed"}'), "exactly when the status is graded"),
    "itself": (GOOD.replace('"y"', '"x"'), "g.jsonl:1: query 'q': agent 'x' plays against itself"),
    "twice": (GOOD + "\n" + GOOD.replace('"a"}', '"b"}'), "g.jsonl:3: .*stands in line 1 already"),
    "empty": ("\n", "g.jsonl: is empty; expected games"),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_wrong_files_are_one_line(name: str, tmp_path: Path) -> None:
    text, message = WRONG[name]
    (tmp_path / "g.jsonl").write_text(text)
    with pytest.raises(FormatError, match=message) as caught:
        plain.GAMES.read(tmp_path / "g.jsonl")
    assert "\n" not in str(caught.value)


def test_nothing_to_write(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no games"):
        plain.GAMES.write(tmp_path / "g.jsonl", [])
    assert list(tmp_path.iterdir()) == []
