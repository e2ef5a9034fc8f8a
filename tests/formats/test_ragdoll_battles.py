"""Battles of RAGDoll: read as games, written, rated without a prior, played with its verdicts; contradictions."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest

import rubric_measures
from rubric_measures import Draws
from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.formats.leaderboards import read_leaderboard
from rubric_measures.formats.plain import BATTLES, GAMES, RAGELO_GAMES
from rubric_measures.types.entities import Preference
from tests.shared_data import shared_data

VERDICTS = ("A", "A", "B", "Tie", "Tie (Both Bad)", None)


def battle(qid: str, verdict: str | None, first: str = "y", second: str = "x", **changes: Any) -> dict[str, Any]:
    """A battle in which `first` was shown first; the pair is in the order of the alphabet."""
    low, high = sorted((first, second))
    return {
        "task_id": f"arena:{low}:{high}:{qid}", "qid": qid, "query": f"What is {qid}?", "pair": [low, high],
        "assistant_a_run_id": first, "assistant_b_run_id": second, "judge_verdict": verdict,
        "preferred_run_id": {"A": first, "B": second}.get(verdict or ""), "provider": "openai", "model": "judge",
        "thinking": "none", "status": "completed" if verdict else "failed", "error": None if verdict else "no verdict",
        "raw_output": f"[[{verdict}]]" if verdict else "A is longer, so [[A]].", "elapsed_seconds": 1.5, "usage": None,
        **changes,
    }  # fmt: skip


@pytest.fixture
def battles(tmp_path: Path) -> Path:
    path = tmp_path / "judgments.jsonl"
    lines = [battle(f"q{number}", verdict) for number, verdict in enumerate(VERDICTS)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_convert_keeps_both_ties_and_says_what_it_loses(
    battles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    games, back, table = (tmp_path / name for name in ("g.jsonl", "b.jsonl", "g.csv"))
    assert main(["convert", str(battles), "--to", "games", "-o", str(games)]) == 0
    assert "judgments.jsonl: 3 further columns left out: elapsed_seconds, query, thinking" in capsys.readouterr().err
    assert GAMES.read(games) == BATTLES.read(battles)
    assert main(["convert", str(games), "--to", "ragdoll:battles", "-o", str(back)]) == 0
    assert BATTLES.read(back) == BATTLES.read(battles)
    empty = {"query": "", "thinking": None, "elapsed_seconds": None}
    lines = [json.loads(line) for line in back.read_text().splitlines()]
    assert lines[:5] == [json.loads(line) | empty for line in battles.read_text().splitlines()[:5]]
    assert main(["convert", str(games), "--to", "ragelo:games", "-o", str(table)]) == 0
    assert "both_bad of 1 row" in capsys.readouterr().err
    assert [game.verdict for game in RAGELO_GAMES.read(table)] == ["a", "a", "b", "tie", "tie", None]


def test_ratings_without_a_prior(battles: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # y has 2 wins and two ties, x one win and two ties: 3 to 2 points, so 400 · log10(1.5) points lie between them.
    apart = 400 * math.log10(1.5)
    assert main(["tournament", str(battles), "--compat", "ragdoll", "--rounds", "5", "--format", "json"]) == 1
    captured = capsys.readouterr()
    content = json.loads(captured.out)["tournament"]
    assert [one["rating"] for one in content["ratings"]] == pytest.approx([1000 + apart / 2, 1000 - apart / 2])
    counts = [(one["agent"], one["wins"], one["ties"], one["losses"], one["undecided"]) for one in content["ratings"]]
    assert counts == [("y", 2, 2, 1, 1), ("x", 1, 2, 2, 1)]
    assert (content["both_bad"], content["undecided"]) == (1, {"unparsed": 1})
    assert "in 1 of the ties both answers are bad" in captured.err


def test_files_for_programs_have_all_digits(battles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("tsv", "json", "trec_eval"):
        path = tmp_path / f"board.{form}"
        assert main(["tournament", str(battles), "--rounds", "5", "--format", form, "--output", str(path)]) == 1
        # Five games, all of other queries: 1, 1, 0, ½, ½ points for y.
        assert read_leaderboard(path).column("WinRate")["y"] == pytest.approx(0.6, abs=1e-15)
    capsys.readouterr()
    assert main(["tournament", str(battles), "--rounds", "5", "--compat", "ragdoll"]) == 1
    assert capsys.readouterr().out.splitlines()[1].split()[1] == "1035.2"


def test_a_model_plays_battles_with_bare_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = [{"query_id": f"q{n}", "run_id": run, "text": f"{run} on {n}"} for n in range(4) for run in "xyz"]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in answers))
    (tmp_path / "q.tsv").write_text("".join(f"q{n}\tWhat is {n}?\n" for n in range(4)))
    replies = ["What is 0?\", \"reply\": \" [[Tie (Both Bad)]]\\n", "What is 1?\", \"reply\": \"[[Tie]]",
               "What is 2?\", \"reply\": \"It is close: [[A]]", "What is 3?\", \"reply\": \"[[B]]"]  # fmt: skip
    (tmp_path / "r.jsonl").write_text("".join(f'{{"contains": "{reply}"}}\n' for reply in replies))
    command = [
        "tournament", "--answers", str(tmp_path / "a.jsonl"), "--query-file", str(tmp_path / "q.tsv"),
        "--model", f"scripted:{tmp_path / 'r.jsonl'}", "--prompt", "AnswerBattle", "--save", str(tmp_path / "g.jsonl"),
        "--compat", "ragdoll", "--seed", "13", "--rounds", "5", "--retries", "0",
    ]  # fmt: skip
    assert main([*command, "--games-per", "agent=1"]) == 1
    # Three systems, one game each: two games a query (3 · 1 / 2, rounded up).
    games = GAMES.read(tmp_path / "g.jsonl")
    said = {game.query_id: (game.verdict, game.status) for game in games}
    assert len(games) == 8
    assert said == {"q0": ("both_bad", "graded"), "q1": ("tie", "graded"), "q2": (None, "unparsed"),
                    "q3": ("b", "graded")}  # fmt: skip
    # All games: those that were played are not played again.
    assert main(command) == 1
    assert "12 games (4 new)" in capsys.readouterr().err
    assert set(games) <= set(GAMES.read(tmp_path / "g.jsonl"))


def test_what_battles_cannot_hold_and_what_would_be_lost(
    battles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = [Preference("q1", "x", "y", "a"), Preference("q1", "y", "x", "a")]
    with pytest.raises(InputError, match="'y' and 'x' meet twice"):
        BATTLES.write(tmp_path / "b.jsonl", both)
    assert not (tmp_path / "b.jsonl").exists()
    answers = tmp_path / "a.jsonl"
    answers.write_text("".join(f'{{"query_id": "q1", "run_id": "{run}", "text": "{run}"}}\n' for run in "xy"))
    (tmp_path / "q.tsv").write_text("q1\tWhy?\n")
    before = battles.read_bytes()
    play = ["tournament", "--answers", str(answers), "--query-file", str(tmp_path / "q.tsv"), "--model", "lexical"]
    assert main([*play, "--save", str(battles)]) == 2
    assert "holds battles of RAGDoll, which would be lost" in capsys.readouterr().err
    assert battles.read_bytes() == before
    for more, message in (
        (["--games-per", "agent=2"], "only RAGDoll draws so"),
        (["--games-per", "2"], "expected query=N, pair=N or agent=N"),
        (["--compat", "ragdoll", "--games-per", "pair=0"], "expected query=N, pair=N or agent=N"),
    ):
        assert main([*play, "--save", str(tmp_path / "g.jsonl"), *more]) == 2
        assert message in capsys.readouterr().err


def test_the_toolkits_own_leaderboard_and_pairs() -> None:
    folder = shared_data("support")
    from rubric_measures import tournament

    result = tournament(folder / "judgments.jsonl", compat="ragdoll", draws=Draws(5))
    rows = list(csv.DictReader((folder / "expected.leaderboard.csv").read_text().splitlines()))
    assert [(one.agent, one.games, one.wins, one.losses, one.ties) for one in result.ratings] == [
        (row["run_id"], *(int(row[name]) for name in ("n_judgments", "wins", "losses", "ties"))) for row in rows
    ]
    # Its own iteration stops 5e-4 from the maximum.
    assert [one.rating for one in result.ratings] == pytest.approx(
        [float(row["arena_score"]) for row in rows], abs=6e-4
    )
    table = result.matrix
    for row in csv.DictReader((folder / "expected.pairwise.csv").read_text().splitlines()):
        a, b = (table.agents.index(row[name]) for name in ("run_a", "run_b"))
        wins, ties, losses = table.wins[a][b], table.ties[a][b], table.wins[b][a]
        assert [wins, losses, ties] == [int(row[name]) for name in ("run_a_wins", "run_b_wins", "ties")]
        assert (wins + ties / 2) / (wins + ties + losses) == pytest.approx(
            float(row["run_a_preference_rate"]), abs=5e-7
        )


def test_the_leaderboard_of_battles_after_resuming() -> None:
    folder = shared_data("conformance")
    found = rubric_measures.tournament(folder / "ragdoll-battles.resumed.jsonl", compat="ragdoll", draws=Draws(10))
    ratings = {one.agent: one.rating for one in found.ratings}
    rows = list(csv.DictReader((folder / "ragdoll-battles.leaderboard.csv").read_text().splitlines()))
    assert ratings == pytest.approx({row["run_id"]: float(row["arena_score"]) for row in rows}, abs=1e-4)
