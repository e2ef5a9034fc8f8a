"""The command `tournament` as a user runs it: rating games, playing them, going on, adding an agent, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.formats.plain import GAMES, RAGELO_GAMES
from rubric_measures.types.entities import Preference

EXAMPLE = Path(__file__).parents[2] / "resources" / "example"
CYCLE = [
    Preference(f"q{number:02}", first, second, verdict, grader="g")  # type: ignore[arg-type]
    for number in range(12)
    for first, second, verdict in [
        ("x", "y", "a"), ("y", "x", "a"), ("y", "z", "a"), ("z", "y", "tie"), ("z", "x", "a"), ("x", "z", "a"),
    ]
]  # fmt: skip


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main(["tournament", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def games(tmp_path: Path) -> Path:
    GAMES.write(tmp_path / "games.jsonl", CYCLE)
    return tmp_path / "games.jsonl"


def test_games_to_ratings(games: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, games, "--rounds", 50)
    assert (status, err.count("\n")) == (0, 2)
    assert "only 12 queries: what is equal may be told apart too often (by κ, " in err
    # Points of 48: y 12 of 24 against x and 12 + 6 of 24 against z; x 12 and 12; z 6 and 12.
    assert [line.split()[0] for line in out.splitlines()[1:4]] == ["y", "x", "z"]
    assert "the first answer won 1.000 of 60 games with a winner" in out
    assert "0.000 of 36 pairs judged in both orders agree" in out
    # A rating that every query gives alike has no interval, rather than one of no width.
    assert "intervals are" not in out and "…" not in out
    assert "x, y, z without an interval: the rating is the same in every round" in err
    GAMES.write(games, CYCLE[:-1])
    assert "intervals are for comparing agents" in (out := run(capsys, games, "--rounds", 50)[1]) and "[" in out
    assert "[" not in run(capsys, games, "--rounds", 0)[1]
    # Of one game nothing was judged in both orders.
    GAMES.write(games, CYCLE[:1])
    out = run(capsys, games)[1]
    assert "\norder of answers: the first answer won 1.000 of 1 game with a winner\n" in out


def test_json_is_as_documented(games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    folder = Path(__file__).parents[2] / "docs" / "schemas"
    schemas = {path.stem: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    apart = [Preference("q1", "v", "w", "a"), Preference("q1", "w", "v", None, "failed")]
    GAMES.write(tmp_path / "apart.jsonl", [*CYCLE, *apart])
    for path in (games, tmp_path / "apart.jsonl"):
        content = json.loads(run(capsys, path, "--format", "json", "--rounds", 20)[1])
        for name in ("leaderboard", "tournament"):
            jsonschema.Draft202012Validator(json.loads(schemas[name])).validate(content)


def test_csv_games_and_assessors(games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RAGELO_GAMES.write(tmp_path / "g.csv", [game._replace(grader="") for game in CYCLE])
    GAMES.write(games, [game._replace(grader="human:ada") for game in CYCLE])
    status, out, err = run(capsys, tmp_path / "g.csv", games, "--rounds", 20)
    assert status == 0
    assert "144 games" in out
    assert "72 of 144 games were judged by assessors" in err


def play(tmp_path: Path, *answers: str, more: tuple[object, ...] = ()) -> list[object]:
    paths = [EXAMPLE / "answers" / f"{name}.jsonl" for name in answers]
    small = ["--rounds", 20, "--seed", 1]
    base = ["--answers", *paths, "--query-file", EXAMPLE / "queries.tsv", "--save", tmp_path / "games.jsonl", *small]
    return [*base, *(more or ("--model", "lexical"))]


def test_an_added_agent_plays_its_new_games_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, *play(tmp_path, "concise", "thorough"))
    # concise has no answer to q06: eight queries, one pair, both orders.
    assert "1 answer missing (such as that of concise to q06): no games are played there" in err
    assert "16 games (16 new): 16 calls, 0 replies from the cache" in err
    status, out, err = run(capsys, *play(tmp_path, "concise", "thorough", "fluent-but-empty"))
    # Two more pairs: eight and nine queries.
    assert "50 games (34 new): 34 calls, 16 replies from the cache" in err
    assert status == 0
    assert out.splitlines()[1].startswith("thorough")
    assert len(GAMES.read(tmp_path / "games.jsonl")) == 50


def test_games_of_others_stay_in_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verdict = Preference("q01", "concise", "thorough", "a", grader="human:ada")
    GAMES.write(tmp_path / "games.jsonl", [verdict])
    _, _, err = run(capsys, *play(tmp_path, "concise", "thorough"))
    assert "as before: 1 game of other graders" in err and "1 of 17 games was judged by assessors" in err
    assert GAMES.read(tmp_path / "games.jsonl")[0] == verdict


def test_failed_games_are_said_and_played_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replies = tmp_path / "replies.jsonl"
    replies.write_text('{"contains": "why do leaves change colour", "reply": "[[A]]"}\n{"reply": "no idea"}\n')
    more = ("--model", f"scripted:{replies}", "--retries", 0, "--documents", EXAMPLE, "--games-per", "query=1")
    status, out, err = run(capsys, *play(tmp_path, "concise", "thorough", more=more))
    assert status == 1
    assert "14 games without a verdict count for nobody: 14 unparsed" in err
    assert "no intervals: only 1 query: so few tell nothing apart" in err
    assert "thorough" in out
    replies.write_text('{"contains": "why do leaves change colour", "reply": "[[A]]"}\n{"reply": "[[C]]"}\n')
    status, _, err = run(capsys, *play(tmp_path, "concise", "thorough", more=more))
    # The other table is another model: its games come beside those of the first.
    assert status == 1 and "as before: 16 games of other graders" in err


def test_an_interrupted_run_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--model", "lexical", "--max-calls", 5)
    status, _, err = run(capsys, *play(tmp_path, "concise", "thorough", more=more))
    assert status == 1 and "limit of 5 calls" in err
    assert "11 games without a verdict count for nobody: 11 failed" in err
    # The games that were not asked are in the file, and are played now.
    assert len((tmp_path / "games.jsonl").read_text().splitlines()) == 16
    status, _, err = run(capsys, *play(tmp_path, "concise", "thorough"))
    assert "11 calls, 5 replies from the cache" in err and "without a verdict" not in err


BAD = {
    "nothing": ([], "name the games"),
    "not all": (
        ["--model", "lexical", "--answers", "a.jsonl"],
        "games that are played are kept; name their file (--save)",
    ),
    "without effect": (["{games}", "--games-per", "query=1", "--save", "x"], "games_per, save would have no effect"),
    "no file": (["none.jsonl"], "none.jsonl: cannot be read"),
    "itself": (["{itself}"], "itself.jsonl:1: query 'q': agent 'x' plays against itself"),
    "twice": (["{games}", "{games}"], "comes twice"),
    "seed": (["{games}", "--seed", "-1"], "a seed is 0 or more"),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_input_is_one_line(name: str, games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    itself = tmp_path / "itself.jsonl"
    itself.write_text('{"query_id": "q", "agent_a": "x", "agent_b": "x", "verdict": "a"}\n')
    arguments, message = BAD[name]
    status, out, err = run(capsys, *(one.format(games=games, itself=itself) for one in arguments))
    assert (status, out) == (2, "")
    assert message in err and len(err.splitlines()) == 1
