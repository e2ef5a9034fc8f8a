"""Tournaments from Python: games that were played, and games that a model plays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rubric_measures
from rubric_measures import Draws, Preference
from rubric_measures.base.errors import InputError
from rubric_measures.formats.answers import Answer

GAMES = [
    Preference("q1", "bm25", "dense", "b"),
    Preference("q1", "dense", "hybrid", "b"),
    Preference("q2", "hybrid", "bm25", "a"),
    Preference("q2", "dense", "bm25", None, "unparsed"),
]
ANSWERS = [
    Answer("q1", "long", "Salt lowers the freezing point of water, so ice melts."),
    Answer("q1", "short", "Salt."),
    Answer("q2", "long", "The moon pulls the sea, which makes tides."),
    Answer("q2", "short", "The moon."),
]
QUERIES = {"q1": "Why does salt melt ice?", "q2": "What makes the tides?"}


def test_a_model_plays_the_games_once(tmp_path: Path) -> None:
    replies = tmp_path / "replies.jsonl"
    replies.write_text(json.dumps({"reply": "The first is better. [[A]]"}) + "\n")
    save = tmp_path / "games.jsonl"

    result = rubric_measures.tournament(
        answers=ANSWERS, queries=QUERIES, model=f"scripted:{replies}", draws=Draws(20), save=save
    )
    # Each pair is judged in both orders, and the first answer always wins.
    assert (result.games, result.queries) == (4, 2)
    assert result.ratings[0].rating == pytest.approx(result.ratings[1].rating)
    kept = save.read_bytes()
    again = rubric_measures.tournament(
        answers=ANSWERS,
        queries=QUERIES,
        model=f"scripted:{replies}",
        draws=Draws(20),
        save=save,
        calls=rubric_measures.Calls(max_calls=0),
    )
    assert again == result and save.read_bytes() == kept
    assert rubric_measures.tournament(save, draws=Draws(20)).ratings == result.ratings


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name the games, or answers"):
        rubric_measures.tournament()
    with pytest.raises(InputError, match="games_per would have no effect without a model"):
        rubric_measures.tournament(GAMES, games_per="query=3")
    with pytest.raises(InputError, match="playing games needs queries"):
        rubric_measures.tournament(answers=ANSWERS, model="lexical")
