"""The games that RAGDoll draws: how many there are, that each draw stands alone, and the toolkit's own draws."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations

import pytest

from rubric_measures.formats.answers import read_answers
from rubric_measures.grading.pairwise import answers_by_query, ragdoll_games
from tests.shared_data import shared_data

ANSWERS = {f"q{number:02}": {f"s{agent}": "…" for agent in range(5)} for number in range(20)}


def test_without_a_number_each_pair_meets_once_a_query_in_either_order() -> None:
    games = ragdoll_games(ANSWERS)
    assert len(games) == len({(game.query_id, frozenset(game[1:])) for game in games}) == 20 * 10
    # One bit of a hash for each game: of 200, the middle 99.9 % is 77 to 123.
    assert 77 <= sum(game.agent_a < game.agent_b for game in games) <= 123
    assert ragdoll_games(ANSWERS, seed=14) != games


@pytest.mark.parametrize(("number", "least"), [(5, {2: 5}), (3, {1: 4, 2: 1})])
def test_rings_and_matchings_let_everybody_play(number: int, least: dict[int, int]) -> None:
    # Five games of five agents are a ring: two games each. Three are a matching: the odd last one meets the first.
    for query_id in ANSWERS:
        games = [game for game in ragdoll_games(ANSWERS, per_query=number) if game.query_id == query_id]
        assert Counter(Counter(agent for game in games for agent in game[1:]).values()) == least


def test_a_draw_does_not_hang_on_other_queries_or_pairs() -> None:
    alone = {"q07": ANSWERS["q07"]}
    of_all = [game for game in ragdoll_games(ANSWERS, per_agent=2) if game.query_id == "q07"]
    assert ragdoll_games(alone, per_agent=2) == of_all == ragdoll_games(alone, per_query=5)
    two = {query_id: dict.fromkeys(("s1", "s3"), "…") for query_id in ANSWERS}
    games = [game for game in ragdoll_games(ANSWERS, per_pair=3) if {*game[1:]} == {"s1", "s3"}]
    assert len(games) == 3 and ragdoll_games(two, per_pair=3) == games
    # A pair that shares fewer queries meets in all of them, and six games of four pairs are all pairs.
    assert len(ragdoll_games(two, per_pair=21)) == 20
    assert len(ragdoll_games(alone, per_query=11)) == len(list(combinations(range(5), 2)))


def test_the_toolkits_own_draws() -> None:
    folder = shared_data("support")
    answers = answers_by_query(read_answers(folder / "answers.jsonl.gz"))
    expected: dict[str, set[str]] = {}
    for line in (folder / "expected.sampling.tsv").read_text().splitlines()[1:]:
        rule, task = line.split("\t")
        expected.setdefault(rule, set()).add(task)
    for rule, numbers in (
        ("two topics a pair, sampling seed 13", {"per_pair": 2}),
        ("two battles a system and topic, sampling seed 13", {"per_agent": 2}),
        ("four battles a topic, sampling seed 7", {"per_query": 4, "seed": 7}),
    ):
        games = ragdoll_games(answers, **numbers)
        assert {":".join(("arena", *sorted(game[1:]), game.query_id)) for game in games} == expected[rule]
    shown = dict.fromkeys(ragdoll_games(answers, seed=13))
    for line in (folder / "judgments.jsonl").read_text().splitlines():
        battle = json.loads(line)
        assert (battle["qid"], battle["assistant_a_run_id"], battle["assistant_b_run_id"]) in shown
