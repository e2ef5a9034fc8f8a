"""Ratings of 6 agents × 3,000 games: Bradley–Terry with query bootstrap, Elo with replays; beside peers."""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time
from collections.abc import Callable
from itertools import combinations
from unittest import mock

import numpy as np

from rubric_measures import Draws
from rubric_measures.games.tournaments import (
    COMPATS,
    EloSettings,
    TournamentSettings,
    drawn_strengths,
    elo_replays,
    fit_strengths,
    gather_games,
    rate_games,
)
from rubric_measures.types.entities import Preference

AGENTS = {"a": 0.8, "b": 0.5, "c": 0.1, "d": -0.1, "e": -0.5, "f": -0.8}


def simulate(games: int, seed: int = 7) -> list[Preference]:
    """Games of all pairs in both orders, query after query, a tenth of them ties."""
    drawn = np.random.default_rng(seed)
    pairs = [pair for first, second in combinations(AGENTS, 2) for pair in ((first, second), (second, first))]
    made = []
    for number in range(games):
        first, second = pairs[number % len(pairs)]
        chance = 1 / (1 + np.exp(AGENTS[second] - AGENTS[first]))
        verdict = "tie" if drawn.random() < 0.1 else "a" if drawn.random() < chance else "b"
        made.append(Preference(f"q{number // len(pairs):04}", first, second, verdict, grader="sim"))  # type: ignore[arg-type]
    return made


def seconds(call: Callable[[], object], repeats: int) -> tuple[float, float]:
    """The shortest wall seconds of a call and the median CPU seconds; the first call warms up."""
    call()
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return min(walls), statistics.median(cpus)


Rows = list[tuple[str, str, str, str]]


def ragelo_elo(tournaments: int) -> tuple[Callable[[Rows], object], Callable[[Rows], dict[str, float]]]:
    """RAGElo's own ranker: a call that plays all tournaments, and one that plays the games once, in the order given."""
    from ragelo.agent_rankers.elo_ranker import EloRanker
    from ragelo.types.configurations import EloAgentRankerConfig

    ranker = EloRanker(EloAgentRankerConfig(tournaments=tournaments, verbose=False, show_results=False))

    def play(rows: Rows) -> object:
        ranker.evaluations = rows
        return [ranker.run_tournament() for _ in range(tournaments)]

    def play_in_order(rows: Rows) -> dict[str, float]:
        ranker.evaluations = rows
        with mock.patch("random.shuffle"):
            return {agent: float(rating) for agent, rating in ranker.run_tournament().items()}

    return play, play_in_order


def main() -> None:
    """Prints one line a task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    preferences = simulate(options.games)
    games = gather_games(preferences)
    points = games.points().sum(axis=0)

    def bootstrap() -> object:
        return drawn_strengths(games, fit_strengths(points), 0.1, Draws(options.rounds))

    elo = EloSettings(replays=options.rounds)
    tasks: list[tuple[str, Callable[[], object]]] = [
        ("ours: check and count the games", lambda: gather_games(preferences)),
        (f"ours: Bradley-Terry and {options.rounds} query bootstraps", bootstrap),
        (f"ours: Elo, {options.rounds} replays", lambda: elo_replays(games, elo)),
        (
            "ours: everything (rate_games)",
            lambda: rate_games(preferences, TournamentSettings(draws=Draws(options.rounds))),
        ),
    ]
    names = [(game.agent_a, game.agent_b) for game in preferences]
    try:
        import evalica

        winner = {"a": evalica.Winner.X, "b": evalica.Winner.Y, "tie": evalica.Winner.Draw}
        won = [winner[str(game.verdict)] for game in preferences]
        first, second = [pair[0] for pair in names], [pair[1] for pair in names]
        tasks.append(("evalica: Bradley-Terry, no bootstrap", lambda: evalica.bradley_terry(first, second, won)))
        tasks.append(("evalica: Elo, one replay", lambda: evalica.elo(first, second, won, k=32.0)))
    except ImportError:
        print("evalica: not installed")
    in_order: Callable[[Rows], dict[str, float]] | None = None
    letters = {2: "A", 0: "B", 1: "C"}
    rows = [
        (games.query_ids[query], games.agents[first_], games.agents[second_], letters[half])
        for query, first_, second_, half in games.rows.tolist()
    ]
    try:
        play, in_order = ragelo_elo(options.rounds)
        tasks.append((f"ragelo: Elo, {options.rounds} tournaments", lambda: play(rows)))
    except ImportError:
        print("ragelo: not installed")
    for name, call in tasks:
        slow = name.startswith("ragelo")
        wall, cpu = seconds(call, 1 if slow else options.repeats)
        print(f"{name:50} {1000 * wall:9.1f} ms wall {1000 * cpu:9.1f} ms CPU")
    if in_order is not None:
        one = dataclasses.replace(COMPATS["ragelo"], replays=1)
        order = np.random.default_rng(one.seed).permuted(np.arange(len(games))[None, :], axis=1)[0]
        theirs = in_order([rows[place] for place in order])
        ours = dict(zip(games.agents, elo_replays(games, one)[0].tolist(), strict=True))
        gap = max(abs(theirs[agent] - rating) for agent, rating in ours.items())
        print(f"largest difference of one tournament in one order, ragelo against --compat ragelo: {gap:g}")


if __name__ == "__main__":
    main()
