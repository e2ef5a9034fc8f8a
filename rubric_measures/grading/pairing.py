"""Which games are played: all pairs of agents, or seeded random ones so that every pair meets equally often."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, groupby
from operator import attrgetter
from typing import NamedTuple

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.formats.reports import Answer
from rubric_measures.types.entities import Preference

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
    every agent has all answers, no pair meets more than once more often than another. An agent that is added to games
    that were played meets each other one as often as those met: on the same share of the queries that both answer.
    Its pairs come in addition to the N of the others, and are said.

    Args:
        answers: query -> agent -> text, as of `answers_by_query`.
        per_query: pairs a query, those played included; None takes all pairs.
        seed: of the draws.
        both_orders: play each pair twice, each answer being first once; else once, each agent of a pair being first
            every other time.
        played: games that there are already, by any grader: they are not played again and count for the balance.

    Raises:
        InputError: per_query is below 1.

    Source: Rackauckas, Câmara & Zavrel, LLM4Eval 2024 (random games, up to all pairs); balance and orders: ours.
    """
    if per_query is not None and per_query < 1:
        raise InputError(f"{per_query} games a query; ask for 1 or more")
    shown = {(game.query_id, game.agent_a, game.agent_b) for game in played}
    met = Counter(tuple(sorted(game[1:])) for game in shown)
    games: list[Game] = []
    for query_id, chosen in _chosen_pairs(answers, per_query, seed, {_Pair.of(*game) for game in shown}).items():
        for first, second in chosen:
            orders = [(first, second), (second, first)]
            if not both_orders:
                if any((query_id, *order) in shown for order in orders):
                    continue
                orders = [orders[met[first, second] % 2 == _first_side(seed, first, second)]]
                met[first, second] += 1
            games += [Game(query_id, *order) for order in orders if (query_id, *order) not in shown]
    return games


class _Pair(NamedTuple):
    """Two agents that meet about a query, in whichever order."""

    query_id: str
    first: str
    second: str

    @classmethod
    def of(cls, query_id: str, agent_a: str, agent_b: str) -> _Pair:
        return cls(query_id, *sorted((agent_a, agent_b)))


def _chosen_pairs(
    answers: Mapping[str, Mapping[str, str]], per_query: int | None, seed: int, played: set[_Pair]
) -> dict[str, list[tuple[str, str]]]:
    """Query -> the pairs that meet, in order: those that met already, and those that are to meet."""
    possible = [
        _Pair(query_id, *pair) for query_id in sorted(answers) for pair in combinations(sorted(answers[query_id]), 2)
    ]
    wanted = set(possible)
    if per_query is not None:
        agents = {agent for of_query in answers.values() for agent in of_query}
        known = {agent for pair in played for agent in pair[1:]} & agents
        new = agents - known if known else set()
        among = [pair for pair in possible if new.isdisjoint(pair[1:])]
        if not among:
            # Nobody is left who met another one: there is no rate to keep up with.
            new, among = set(), possible
        wanted = played.intersection(possible) | _least_met(among, per_query, seed, played)
        if new:
            wanted |= _of_new_agents(possible, new, seed, wanted)
    chosen: dict[str, list[tuple[str, str]]] = {}
    for pair in possible:
        if pair in wanted:
            chosen.setdefault(pair.query_id, []).append((pair.first, pair.second))
    return chosen


def _least_met(possible: Sequence[_Pair], per_query: int, seed: int, played: set[_Pair]) -> set[_Pair]:
    """For each query that has fewer, as many more pairs as it takes, those first that met least often."""
    counts = Counter(pair[1:] for pair in played)
    wanted: set[_Pair] = set()
    for query_id, group in groupby(possible, key=attrgetter("query_id")):
        pairs = list(group)
        open_pairs = [pair for pair in pairs if pair not in played]
        random.Random(f"{seed}/{query_id}").shuffle(open_pairs)
        open_pairs.sort(key=lambda pair: counts[pair[1:]])
        more = open_pairs[: max(0, per_query - (len(pairs) - len(open_pairs)))]
        counts.update(pair[1:] for pair in more)
        wanted.update(more)
    return wanted


def _of_new_agents(possible: Sequence[_Pair], new: set[str], seed: int, wanted: set[_Pair]) -> set[_Pair]:
    """The pairs of agents that never played: each on the share of its queries on which the others meet."""
    others = [pair for pair in possible if new.isdisjoint(pair[1:])]
    share = sum(pair in wanted for pair in others) / len(others)
    of_agents: dict[tuple[str, ...], list[_Pair]] = {}
    for pair in possible:
        if not new.isdisjoint(pair[1:]):
            of_agents.setdefault(pair[1:], []).append(pair)
    load: Counter[str] = Counter()
    drawn: set[_Pair] = set()
    for agents in sorted(of_agents):
        pairs = of_agents[agents]
        random.Random(f"{seed}/{'/'.join(agents)}").shuffle(pairs)
        # Queries with few new games come first, so that no query gets them all.
        pairs.sort(key=lambda pair: load[pair.query_id])
        taken = pairs[: round(share * len(pairs))]
        load.update(pair.query_id for pair in taken)
        drawn.update(taken)
    _LOG.info(
        "%d new agents (%s): %d pairs drawn, as often as the others met (on %.0f %% of their queries)",
        *(len(new), ", ".join(sorted(new)), len(drawn), 100 * share),
    )
    return drawn


def _first_side(seed: int, first: str, second: str) -> int:
    """Which of a pair begins, 0 or 1; the same whatever other agents there are."""
    return random.Random(f"{seed}/{first}/{second}").randrange(2)
