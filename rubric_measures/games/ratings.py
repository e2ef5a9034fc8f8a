"""Games to ratings: tables of wins, Elo, Bradley-Terry.

Games between agents as counts: checks, points by query, the win/tie/loss matrix, position bias.

Elo ratings, averaged over seeded replays of the games in shuffled order.

Bradley–Terry strengths by maximum likelihood, for many resamples at once; who can be compared with whom.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from rubric_measures.analysis.resampling import FloatArray, seeded
from rubric_measures.base.errors import InputError, UnknownNameError
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


# Games times replays that are held at once: some 300 MB.
_CELLS = 8_000_000
# Of points and ratings: games are still told apart.
_GREATEST = 1e9


@dataclass(frozen=True)
class EloSettings:
    """How Elo ratings are computed.

    Attributes:
        k: the most points that a game can move.
        start: every agent's rating before its first game.
        replays: how often the games are replayed in another order; the paper has 500.
        seed: of the orders (numpy's PCG64 generator).
        integers: cut ratings to whole numbers after each game, as RAGElo's program does; points are lost.
        reversed_expectation: expect the weaker agent to win, as RAGElo's releases 0.1.9 to 0.4.0 do. The ratings are
            then pushed apart without limit.
    """

    k: float = 32.0
    start: float = 1000.0
    replays: int = 500
    seed: int = 42
    integers: bool = False
    reversed_expectation: bool = False

    def __post_init__(self) -> None:
        if not self.k > 0 or self.replays < 1:
            raise InputError(
                f"Elo with k={self.k:g} and {self.replays} replays: both must be positive", settings=("k", "replays")
            )
        for name, value in (("k", self.k), ("start", self.start)):
            if not abs(value) <= _GREATEST:
                raise InputError(f"Elo with {name}={value:g}: give a number of at most {_GREATEST:g}", settings=(name,))

    @classmethod
    def compat(cls, name: str, **changes: float) -> EloSettings:
        """The settings that reproduce a program; see `COMPATS`.

        Raises:
            UnknownNameError: there is no such program.
        """
        if name not in COMPATS:
            raise UnknownNameError("program", name, COMPATS)
        return cls(**{**asdict(cls()), **COMPATS[name], **changes})


# RAGElo plays 10 tournaments unless told otherwise; its own shuffles have no seed, so ours stand for any.
COMPATS: dict[str, dict[str, float]] = {
    "ragelo": {"replays": 10, "integers": True},
    "ragelo-0.4": {"replays": 10, "integers": True, "reversed_expectation": True},
}


def elo_ratings(games: Games, settings: EloSettings | None = None) -> tuple[FloatArray, FloatArray]:
    """The mean of the final ratings over all replays, and their standard deviation: the order noise.

    The order noise says how much the ratings hang on the order of the games. It says nothing about how they would
    change with other queries, and falls to nothing in the mean of many replays: it is no uncertainty.

    Returns:
        Two arrays in the order of `games.agents`; without `integers` the ratings sum to start × agents.

    Source: Elo, The Rating of Chessplayers (1978); replays: Rackauckas, Câmara & Zavrel, LLM4Eval 2024.
    """
    finals = elo_replays(games, settings)
    return finals.mean(axis=0), finals.std(axis=0)


def elo_replays(games: Games, settings: EloSettings | None = None) -> FloatArray:
    """Final ratings of every replay: (replays, agents).

        E_a = 1 / (1 + 10^((R_b − R_a) / 400));   R_a ← R_a + K (S_a − E_a),   R_b ← R_b − K (S_a − E_a)

    S_a is 1, ½ or 0. What one agent gains the other loses.
    """
    settings = settings or EloSettings()
    random = seeded(settings.seed)
    # As many replays at once as fit into memory; the shuffles are drawn one replay after the other all the same.
    block = max(1, _CELLS // len(games))
    finals = []
    for begin in range(0, settings.replays, block):
        count = min(block, settings.replays - begin)
        orders = random.permuted(np.tile(np.arange(len(games)), (count, 1)), axis=1)
        finals.append(_replay(games, orders, settings))
    return np.concatenate(finals)


def _replay(games: Games, orders: NDArray[np.int64], settings: EloSettings) -> FloatArray:
    """Final ratings of some replays: one step plays one game of each of them."""
    replays, size = len(orders), len(games.agents)
    # A step's games lie together.
    orders = np.ascontiguousarray(orders.T)
    ratings = np.full(replays * size, float(settings.start))
    offsets = np.arange(replays) * size
    first, second = games.rows[:, 1][orders] + offsets, games.rows[:, 2][orders] + offsets
    earned = (settings.k * games.rows[:, 3] / 2.0)[orders]
    factor = np.log(10.0) / 400.0 * (-1.0 if settings.reversed_expectation else 1.0)
    work = np.empty(replays)
    for a, b, points in zip(first, second, earned, strict=True):
        rating_a, rating_b = ratings.take(a), ratings.take(b)
        np.subtract(rating_b, rating_a, out=work)
        np.multiply(work, factor, out=work)
        np.exp(work, out=work)
        np.add(work, 1.0, out=work)
        np.divide(settings.k, work, out=work)
        np.subtract(points, work, out=work)
        rating_a += work
        rating_b -= work
        if settings.integers:
            np.trunc(rating_a, out=rating_a)
            np.trunc(rating_b, out=rating_b)
        ratings[a], ratings[b] = rating_a, rating_b
    finals: FloatArray = ratings.reshape(replays, size)
    return finals


_ROUNDS = 200
# Numbers that are held at once in one array of resamples: some 30 MB.
_STRENGTH_CELLS = 4_000_000
_TOLERANCE = 1e-10


def fit_strengths(points: FloatArray, prior: float = 0.1, start: FloatArray | None = None) -> FloatArray:
    """Maximum-likelihood strengths θ of the Bradley–Terry model, centred to mean 0.

        P(i beats j) = 1 / (1 + exp(θ_j − θ_i));   log L = Σ_ij w_ij log P(i beats j)

    w_ij are the points of i against j, a tie being half a point for both. The prior is a number of games that every
    agent is taken to have played against an opponent of strength 0, half of them won: it keeps the strength of an agent
    that only won finite, pulls all strengths a little towards each other, and hardly matters after some dozen games.

    Newton's method with steps cut to a spread of 1: log L is concave and its curvature changes by less than a factor e
    along such a step, so every step goes up, and there is one maximum.

    Args:
        points: (..., agents, agents); the diagonal is ignored. Leading axes are resamples.
        prior: games, at least 0. With 0, every agent must be connected with every other by wins in both directions.
        start: strengths to begin with, (agents,) or as the result.

    Returns:
        (..., agents), natural-log units; a difference of 1 is a chance of 73 %.

    Raises:
        InputError: the prior is 0 and the maximum does not exist.

    Source: Bradley & Terry, Biometrika 39 (1952); existence: Ford, American Mathematical Monthly 64 (1957).
    """
    size = points.shape[-1]
    won = points.reshape(-1, size, size) * (1 - np.eye(size))
    if prior == 0 and len(_strong_pieces(won.sum(axis=0) > 0)) > 1:
        raise InputError(
            "without a prior, as RAGDoll rates, strengths exist only where wins connect all agents in both directions; "
            "rate with our prior",
            settings=("compat",),
        )
    games = won + won.transpose(0, 2, 1)
    theta = np.zeros((len(won), size)) + (0.0 if start is None else start)
    active = np.arange(len(won))
    gauge = np.full((size, size), 1.0 if prior == 0 else 0.0)
    diagonal = np.arange(size)
    for _ in range(_ROUNDS):
        chance = _logistic(theta[active, :, None] - theta[active, None, :])
        against_prior = _logistic(theta[active])
        gradient = won[active].sum(axis=2) - (games[active] * chance).sum(axis=2) + prior * (0.5 - against_prior)
        information = games[active] * chance * (1 - chance)
        hessian = gauge - information
        hessian[:, diagonal, diagonal] += information.sum(axis=2) + prior * against_prior * (1 - against_prior)
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        # The opponent of the prior stands at 0 and takes part in the spread.
        spread = np.maximum(step.max(axis=1), 0.0) - np.minimum(step.min(axis=1), 0.0)
        theta[active] += step / np.maximum(spread, 1.0)[:, None]
        active = active[spread > _TOLERANCE]
        if not len(active):
            break
    else:
        raise InputError("the Bradley–Terry strengths do not converge; use a larger prior")
    theta -= theta.mean(axis=1, keepdims=True)
    shaped: FloatArray = theta.reshape(points.shape[:-1])
    return shaped


def _logistic(x: FloatArray) -> FloatArray:
    # tanh cannot overflow, unlike exp.
    value: FloatArray = 0.5 + 0.5 * np.tanh(0.5 * x)
    return value


def resampled_points(games: Games, rounds: int, seed: int) -> Iterator[FloatArray]:
    """Points of resampled queries, some samples at a time: (samples, agents, agents) each, `rounds` samples in all.

    All games of a drawn query come together, as verdicts about one query hang together: a bootstrap over single games
    would be too sure of itself. Samples do not depend on how many come at a time.

    Raises:
        InputError: rounds is below 1.
    """
    if rounds < 1:
        raise InputError(f"a bootstrap of {rounds} rounds; expected 1 or more", settings=("rounds",))
    random = seeded(seed)
    size = len(games.agents)
    points = games.points().reshape(-1, size * size)
    block = max(1, _STRENGTH_CELLS // max(size * size, len(points)))
    for begin in range(0, rounds, block):
        count = min(block, rounds - begin)
        drawn = random.multinomial(len(points), np.full(len(points), 1.0 / len(points)), size=count)
        yield (drawn.astype(np.float64) @ points).reshape(count, size, size)


def components(points: FloatArray) -> tuple[list[list[int]], list[list[int]]]:
    """The agents that can be compared at all, and those whose distance the games fix.

    First the groups that games connect, in whichever way: agents of different groups never met, not even through
    others. Second the groups in which each agent took points from each other one, directly or through others, best
    first: between such groups, one never took a point from the other, and only a prior holds them together.
    """
    met = (points + points.T) > 0
    return _strong_pieces(met), _strong_pieces(points > 0)


def _strong_pieces(edges: NDArray[np.bool_]) -> list[list[int]]:
    """Strongly connected groups of places; a group that reaches another one stands before it."""
    size = len(edges)
    reach = edges | np.eye(size, dtype=bool)
    for _ in range(max(1, size.bit_length())):
        reach = (reach.astype(np.float64) @ reach.astype(np.float64)) > 0
    both = reach & reach.T
    pieces = {tuple(int(place) for place in np.flatnonzero(row)) for row in both}
    # Who reaches more stands further up.
    return [list(piece) for piece in sorted(pieces, key=lambda piece: (-int(reach[piece[0]].sum()), piece))]
