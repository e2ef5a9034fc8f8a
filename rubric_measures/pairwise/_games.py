"""Games between agents as counts: checks, points by query, the win/tie/loss matrix, position bias."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rubric_measures.base.errors import InputError
from rubric_measures.types.entities import Preference

HUMAN = "human:"
_POINTS = {"a": 2, "tie": 1, "both_bad": 1, "b": 0}


@dataclass(frozen=True)
class Games:
    """The games that have a verdict, in one order whatever the order of the input.

    Attributes:
        agents: all agents, sorted; also those without a decided game.
        query_ids: the queries with decided games, sorted.
        rows: one row a game: the places of query, first agent and second agent, and the first agent's half points
            (2 won, 1 tied, 0 lost).
        undecided: status -> games without a verdict; they count for nobody.
        lost: agent -> its games without a verdict.
        by_assessors: decided games whose grader is an assessor (`human:…`).
        both_bad: ties of two bad answers; points are those of any tie.
    """

    agents: tuple[str, ...]
    query_ids: tuple[str, ...]
    rows: NDArray[np.int64]
    undecided: Mapping[str, int]
    lost: Mapping[str, int]
    by_assessors: int = 0
    both_bad: int = 0

    def __len__(self) -> int:
        """The number of decided games."""
        return len(self.rows)

    def points(self) -> NDArray[np.float64]:
        """Points of the agent of the row against that of the column, by query: (queries, agents, agents).

        A win is 1, a tie ½ for both; so points + transposed points are the numbers of games.
        """
        size = len(self.agents)
        found = np.zeros(len(self.query_ids) * size * size)
        query, first, second, half = self.rows.T
        np.add.at(found, (query * size + first) * size + second, half / 2)
        np.add.at(found, (query * size + second) * size + first, 1 - half / 2)
        shaped: NDArray[np.float64] = found.reshape(len(self.query_ids), size, size)
        return shaped

    def outcomes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How often the row beat the column, and how often they tied: two (agents, agents) matrices."""
        size = len(self.agents)
        wins, ties = np.zeros((size, size)), np.zeros((size, size))
        _, first, second, half = self.rows.T
        np.add.at(wins, (first[half == 2], second[half == 2]), 1)
        np.add.at(wins, (second[half == 0], first[half == 0]), 1)
        np.add.at(ties, (first[half == 1], second[half == 1]), 1)
        return wins, ties + ties.T


def gather_games(preferences: Iterable[Preference]) -> Games:
    """Checks games and counts those that have a verdict.

    Both answer orders of a pair are two games; so are verdicts of several graders.

    Raises:
        InputError: an agent plays against itself; a game comes twice (same query, order and grader); verdict and
            status contradict each other; no game has a verdict.
    """
    played: list[tuple[str, str, str, str, str]] = []
    undecided: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    seen: set[tuple[str, str, str, str]] = set()
    found: set[str] = set()
    for game in preferences:
        _check(game, seen)
        found |= {game.agent_a, game.agent_b}
        if game.verdict is None:
            undecided[game.status] += 1
            lost.update((game.agent_a, game.agent_b))
        else:
            played.append((game.query_id, game.agent_a, game.agent_b, game.verdict, game.grader))
    if not played:
        raise InputError(f"no game has a verdict ({undecided.total()} games without)" if undecided else "no games")
    played.sort()
    names = tuple(sorted(found))
    query_ids = tuple(sorted({row[0] for row in played}))
    agent_of = {name: place for place, name in enumerate(names)}
    query_of = {query_id: place for place, query_id in enumerate(query_ids)}
    rows = np.array(
        [(query_of[query], agent_of[a], agent_of[b], _POINTS[verdict]) for query, a, b, verdict, _ in played],
        dtype=np.int64,
    )
    by_assessors = sum(row[4].startswith(HUMAN) for row in played)
    both_bad = sum(row[3] == "both_bad" for row in played)
    return Games(names, query_ids, rows, dict(sorted(undecided.items())), dict(lost), by_assessors, both_bad)


def _check(game: Preference, seen: set[tuple[str, str, str, str]]) -> None:
    where = f"query {game.query_id!r}"
    if game.agent_a == game.agent_b:
        raise InputError(f"{where}: agent {game.agent_a!r} plays against itself; remove the game")
    if (game.verdict is None) == (game.status == "graded") or (game.verdict or "tie") not in _POINTS:
        raise InputError(f"{where}: a game of status {game.status!r} cannot have the verdict {game.verdict!r}")
    key = (game.query_id, game.agent_a, game.agent_b, game.grader)
    if key in seen:
        raise InputError(
            f"{where}: the game of {game.agent_a!r} and {game.agent_b!r}, judged by {game.grader!r}, comes twice; "
            "keep one"
        )
    seen.add(key)


@dataclass(frozen=True)
class PositionBias:
    """How much the order in which answers are shown decides.

    Attributes:
        pairs: pairs of answers that one grader judged in both orders.
        consistent: of these, pairs with the same verdict in both orders (the same winner, or two ties of any kind).
        decided: games with a winner.
        first: of these, games that the answer shown first won.
    """

    pairs: int
    consistent: int
    decided: int
    first: int

    @property
    def consistency_rate(self) -> float | None:
        """Share of consistent pairs, 0 to 1; a grader without bias and noise has 1. None without pairs."""
        return self.consistent / self.pairs if self.pairs else None

    @property
    def first_rate(self) -> float | None:
        """Share of decided games won by the answer shown first, 0 to 1; ½ without bias. None without decided games.

        Only where every pair is judged in both orders does it tell the bias apart from the strength of the answers.
        """
        return self.first / self.decided if self.decided else None


def position_bias(preferences: Iterable[Preference]) -> PositionBias:
    """Counts how often verdicts agree across the two orders, and how often the first answer wins.

    Games without a verdict take no part.
    """
    verdicts: dict[tuple[str, str, str, str], str] = {}
    for game in preferences:
        if game.verdict is not None:
            kind = "tie" if game.verdict == "both_bad" else game.verdict
            verdicts[game.query_id, game.agent_a, game.agent_b, game.grader] = kind
    turned = {"a": "b", "b": "a", "tie": "tie"}
    pairs = consistent = 0
    for (query_id, first, second, grader), verdict in verdicts.items():
        other = verdicts.get((query_id, second, first, grader))
        if first < second and other is not None:
            pairs += 1
            consistent += other == turned[verdict]
    counts = Counter(verdicts.values())
    return PositionBias(pairs, consistent, counts["a"] + counts["b"], counts["a"])


@dataclass(frozen=True)
class WinTable:
    """Who beat whom how often: one row an agent, in the order of `agents`.

    Attributes:
        agents: the agents.
        wins: row beat column.
        ties: row and column tied (symmetric); losses of the row are `wins` of the column.
        rates: share of the games that the row won against the column, ties apart, 0 to 1; None where they never met.
        averages: the mean of the row's rates over the opponents that it met; None where it met nobody.
    """

    agents: tuple[str, ...]
    wins: tuple[tuple[int, ...], ...]
    ties: tuple[tuple[int, ...], ...]
    rates: tuple[tuple[float | None, ...], ...]
    averages: tuple[float | None, ...]


def win_table(games: Games, order: Sequence[str] | None = None) -> WinTable:
    """The win/tie/loss matrix.

    Args:
        games: the games.
        order: the agents in the order wanted; sorted by default.

    Source: Rackauckas, Câmara & Zavrel, LLM4Eval 2024 (win-rate matrix: row beats column, ties apart).
    """
    names = tuple(order) if order is not None else games.agents
    places = [games.agents.index(name) for name in names]
    wins, ties = games.outcomes()
    beaten = [[int(wins[row, column]) for column in places] for row in places]
    tied = [[int(ties[row, column]) for column in places] for row in places]

    def rate(row: int, column: int) -> float | None:
        met = beaten[row][column] + beaten[column][row] + tied[row][column]
        return beaten[row][column] / met if met else None

    rates = [tuple(rate(row, column) for column in range(len(names))) for row in range(len(names))]
    met = [[one for one in line if one is not None] for line in rates]
    averages = tuple(sum(line) / len(line) if line else None for line in met)
    return WinTable(names, tuple(map(tuple, beaten)), tuple(map(tuple, tied)), tuple(rates), averages)
