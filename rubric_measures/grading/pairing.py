"""Which games are played: all pairs of agents, or seeded random ones so that every pair meets equally often."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from rubric_measures.errors import InputError, UnknownNameError
from rubric_measures.formats.reports import Answer
from rubric_measures.records import Preference

__all__ = ["Game", "answers_by_query", "pair_games"]

_LOG = logging.getLogger("rubric_measures")


class Game(NamedTuple):
    """A game to play: the answers of two agents to one query, in the order shown."""

    query_id: str
    agent_a: str
    agent_b: str


def answers_by_query(answers: Iterable[Answer], agents: Sequence[str] | None = None) -> dict[str, dict[str, str]]:
    """Query -> agent -> text, both sorted; answers that are missing are counted and said once.

    Args:
        answers: the answers; their run is the agent.
        agents: the agents that play; None takes all.

    Raises:
        InputError: an agent answers a query twice, or there are fewer than two agents.
        UnknownNameError: an agent of the list has no answers.
    """
    texts: dict[str, dict[str, str]] = {}
    for answer in answers:
        of_query = texts.setdefault(answer.query_id, {})
        if answer.run_id in of_query:
            raise InputError(f"agent {answer.run_id!r} has two answers to query {answer.query_id!r}; keep one")
        of_query[answer.run_id] = answer.text
    known = {agent for of_query in texts.values() for agent in of_query}
    for agent in agents or ():
        if agent not in known:
            raise UnknownNameError("agent", agent, known, hint="(it has no answers)")
    playing = sorted(set(agents) if agents is not None else known)
    if len(playing) < 2:
        raise InputError(f"a tournament needs two agents or more; there is {', '.join(playing) or 'none'}")
    found = {
        query_id: {agent: texts[query_id][agent] for agent in playing if agent in texts[query_id]}
        for query_id in sorted(texts)
    }
    missing = [(agent, query_id) for query_id, of_query in found.items() for agent in playing if agent not in of_query]
    if missing:
        agent, query_id = min(missing)
        one = f"{agent} has none to {query_id}"
        _LOG.warning("%d answers are missing, their games are not played (%s)", len(missing), one)
    return found


def pair_games(
    answers: Mapping[str, Mapping[str, str]],
    per_query: int | None = None,
    *,
    seed: int = 42,
    both_orders: bool = True,
    played: Iterable[Preference | Game] = (),
) -> list[Game]:
    """The games that are still to be played.

    With `per_query`, each query gets the pairs that met least often so far, drawn by the seed among equal ones: where
    every agent has all answers, no pair meets more than once more often than another.

    Args:
        answers: query -> agent -> text, as of `answers_by_query`.
        per_query: pairs a query, those played included; None takes all pairs.
        seed: of the draws.
        both_orders: play each pair twice, each answer being first once; else once, each agent of a pair being first
            every other time.
        played: games that there are already, by any grader: they are not played again and count for the balance. So
            an agent that is added plays its own games only.

    Raises:
        InputError: per_query is below 1.

    Source: Rackauckas, Câmara & Zavrel, LLM4Eval 2024 (random games, up to all pairs); balance and orders: ours.
    """
    if per_query is not None and per_query < 1:
        raise InputError(f"{per_query} games a query; ask for 1 or more")
    shown = {(game.query_id, game.agent_a, game.agent_b) for game in played}
    met = Counter(tuple(sorted(game[1:])) for game in shown)
    pairs_of = {(query_id, *sorted(agents)) for query_id, *agents in shown}
    counts: Counter[tuple[str, ...]] = Counter((first, second) for _, first, second in pairs_of)
    games: list[Game] = []
    for query_id in sorted(answers):
        pairs = list(combinations(sorted(answers[query_id]), 2))
        chosen = _chosen(query_id, pairs, per_query, seed, pairs_of, counts)
        for first, second in chosen:
            orders = [(first, second), (second, first)]
            if not both_orders:
                if any((query_id, *order) in shown for order in orders):
                    continue
                orders = [orders[met[first, second] % 2 == _first_side(seed, first, second)]]
                met[first, second] += 1
            games += [Game(query_id, *order) for order in orders if (query_id, *order) not in shown]
    return games


def _chosen(
    query_id: str,
    pairs: Sequence[tuple[str, str]],
    per_query: int | None,
    seed: int,
    pairs_of: set[tuple[str, ...]],
    counts: Counter[tuple[str, ...]],
) -> list[tuple[str, str]]:
    """The pairs of one query: those that met already, and as many more as are wanted."""
    if per_query is None:
        return list(pairs)
    before = [pair for pair in pairs if (query_id, *pair) in pairs_of]
    open_pairs = [pair for pair in pairs if (query_id, *pair) not in pairs_of]
    random.Random(f"{seed}/{query_id}").shuffle(open_pairs)
    open_pairs.sort(key=lambda pair: counts[pair])
    new = open_pairs[: max(0, per_query - len(before))]
    counts.update(new)
    return sorted(before + new)


def _first_side(seed: int, first: str, second: str) -> int:
    """Which of a pair begins, 0 or 1; the same whatever other agents there are."""
    return random.Random(f"{seed}/{first}/{second}").randrange(2)
