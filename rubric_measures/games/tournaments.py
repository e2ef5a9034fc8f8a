"""Tournaments: games between agents to ratings with intervals, groups, pictures and tables.

Games as counts: checks, points by query, the win/tie/loss matrix, position bias.

Elo ratings, averaged over seeded replays of the games in shuffled order.

Bradley–Terry strengths by maximum likelihood, for many resamples at once; who can be compared with whom.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from rubric_measures.analysis.resampling import (
    FEWEST_QUERIES,
    ROUNDING,
    USUAL_DRAWS,
    Drawn,
    Draws,
    FloatArray,
    Resample,
    few_queries,
    groups_of_equals,
    pieces,
    ratio,
    seeded,
)
from rubric_measures.base import __version__
from rubric_measures.base.errors import InputError, counted, in_number, warn
from rubric_measures.base.tables import Cell, Report, Reported, Table, columns, letters, number, plain
from rubric_measures.boards.board import Leaderboard, board_content, board_report
from rubric_measures.boards.scoring import cell_of
from rubric_measures.types.entities import Cell as BoardCell
from rubric_measures.types.entities import Preference, Signature, content_hash

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
    both_bad = sum(row[3] == "both_bad" for row in played)
    by_assessors = sum(row[4].startswith("human:") for row in played)
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
        consistency_rate: their share, 0 to 1; a grader without bias and noise has 1. None without pairs.
        decided: games with a winner.
        first: of these, games that the answer shown first won.
        first_rate: their share, 0 to 1; ½ without bias. None without decided games. Only where every pair is judged in
            both orders does it tell the bias apart from the strength of the answers.
    """

    pairs: int
    consistent: int
    consistency_rate: float | None
    decided: int
    first: int
    first_rate: float | None


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
    for (query_id, one, second, grader), verdict in verdicts.items():
        other = verdicts.get((query_id, second, one, grader))
        if one < second and other is not None:
            pairs += 1
            consistent += other == turned[verdict]
    counts = Counter(verdicts.values())
    decided, first = counts["a"] + counts["b"], counts["a"]
    rates = [part / whole if whole else None for part, whole in ((consistent, pairs), (first, decided))]
    return PositionBias(pairs, consistent, rates[0], decided, first, rates[1])


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


def win_table(games: Games, order: Sequence[str]) -> WinTable:
    """The win/tie/loss matrix, with the agents in this order.

    Source: Rackauckas, Câmara & Zavrel, LLM4Eval 2024 (win-rate matrix: row beats column, ties apart).
    """
    places = [games.agents.index(name) for name in order]
    wins, ties = (one[np.ix_(places, places)] for one in games.outcomes())
    shares = ratio(wins, wins + wins.T + ties).tolist()
    rates = tuple(tuple(None if math.isnan(one) else one for one in row) for row in shares)
    met = [[one for one in row if one is not None] for row in rates]
    averages = tuple(sum(row) / len(row) if row else None for row in met)
    beaten, tied = (tuple(map(tuple, one.astype(int).tolist())) for one in (wins, ties))
    return WinTable(tuple(order), beaten, tied, rates, averages)


# Games times replays that are held at once: some 300 MB.
_CELLS = 8_000_000


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


# The programs that are reproduced. RAGElo plays 10 tournaments unless told otherwise; its own shuffles have no seed, so
# ours stand for any.
COMPATS: dict[str, EloSettings] = {
    "ragelo": EloSettings(replays=10, integers=True),
    "ragelo-0.4": EloSettings(replays=10, integers=True, reversed_expectation=True),
}


def elo_replays(games: Games, settings: EloSettings) -> FloatArray:
    """Final ratings of every replay: (replays, agents).

        E_a = 1 / (1 + 10^((R_b − R_a) / 400));   R_a ← R_a + K (S_a − E_a),   R_b ← R_b − K (S_a − E_a)

    S_a is 1, ½ or 0. What one agent gains the other loses; without `integers` the ratings of a replay sum to start ×
    agents. How they differ between replays is the order noise: how much they hang on the order of the games. It says
    nothing about how they would change with other queries, and falls to nothing in the mean of many replays: it is no
    uncertainty.

    Source: Elo, The Rating of Chessplayers (1978); replays: Rackauckas, Câmara & Zavrel, LLM4Eval 2024.
    """
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
    for a, b, points in zip(first, second, earned, strict=True):
        rating_a, rating_b = ratings.take(a), ratings.take(b)
        gain = points - settings.k / (np.exp((rating_b - rating_a) * factor) + 1.0)
        rating_a, rating_b = rating_a + gain, rating_b - gain
        if settings.integers:
            rating_a, rating_b = np.trunc(rating_a), np.trunc(rating_b)
        ratings[a], ratings[b] = rating_a, rating_b
    finals: FloatArray = ratings.reshape(replays, size)
    return finals


_ROUNDS = 200
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


def drawn_strengths(games: Games, strengths: FloatArray, prior: float, draws: Draws) -> Drawn:
    """Strengths of resampled queries: all games of a drawn query come together, as verdicts about one query hang
    together; a bootstrap over single games would be too sure of itself.

    NaN are samples in which, without a prior, wins do not connect all agents.

    Args:
        games: the games.
        strengths: those of all games.
        prior: see `fit_strengths`.
        draws: rounds and seed.
    """
    size = len(games.agents)
    points = games.points().reshape(-1, size * size)

    def fitted(weights: FloatArray) -> FloatArray:
        found = np.full((len(weights), size), np.nan)
        for piece in pieces(len(weights), size * size):
            some = (weights[piece] @ points).reshape(-1, size, size)
            known = np.array([prior > 0 or len(_strong_pieces(one > 0)) == 1 for one in some])
            if known.any():
                found[piece][known] = fit_strengths(some[known], prior, strengths)
        return found

    return Resample(len(points), draws).draw(fitted)


def _reached(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which places a path leads to from each."""
    from scipy.sparse.csgraph import shortest_path

    lengths: FloatArray = shortest_path(edges.astype(np.float64), unweighted=True)
    return np.isfinite(lengths)


def _strong_pieces(edges: NDArray[np.bool_]) -> list[list[int]]:
    """Strongly connected groups of places; a group that reaches another one stands before it."""
    reach = _reached(edges)
    both = reach & reach.T
    pieces = {tuple(int(place) for place in np.flatnonzero(row)) for row in both}
    # Who reaches more stands further up.
    return [list(piece) for piece in sorted(pieces, key=lambda piece: (-int(reach[piece[0]].sum()), piece))]


MEASURES = ("BradleyTerry", "Elo", "WinRate")
# Strengths are shown on the scale of Elo: 400 points are odds of ten to one.
_SCALE = 400.0 / math.log(10.0)
_MIDDLE = 1000.0


@dataclass(frozen=True)
class TournamentSettings:
    """How games become ratings.

    Attributes:
        prior: see `fit_strengths`, in games.
        draws: of the bootstrap.
        elo: the settings of Elo.
    """

    prior: float = 0.1
    draws: Draws = USUAL_DRAWS
    elo: EloSettings = field(default_factory=EloSettings)


@dataclass(frozen=True)
class Rating:
    """What the games say about one agent.

    Attributes:
        agent: the agent.
        rating: its Bradley–Terry strength as 1000 + 400 / ln 10 · θ; the mean over all agents is 1000.
        low: lower end of the interval for comparing agents: of two that do not overlap the agents are told apart; None
            where nothing bounds it from below (it, or the group it is connected with, took no point from some agents
            that took points from it), and without intervals: with fewer than six queries, too few rounds, or a rating
            that is the same in every round.
        high: upper end; None where nothing bounds it from above, or without intervals.
        standard_error: standard deviation of the bootstrap ratings; None without intervals.
        elo: its mean Elo rating over all replays.
        order_noise: the standard deviation of the final Elo ratings over the replays; no uncertainty.
        wins: games won.
        ties: games tied.
        losses: games lost.
        undecided: games without a verdict; they count for nobody.
        groups: places (from 0) in `Tournament.groups`.
    """

    agent: str
    rating: float
    low: float | None
    high: float | None
    standard_error: float | None
    elo: float
    order_noise: float
    wins: int
    ties: int
    losses: int
    undecided: int
    groups: tuple[int, ...] = ()

    @property
    def games(self) -> int:
        """Decided games."""
        return self.wins + self.ties + self.losses


@dataclass(frozen=True)
class RatingDifference:
    """What the games say about two agents.

    Attributes:
        first: the agent that is rated higher.
        second: the other.
        difference: how much higher.
        low: lower end of its interval; all intervals of a tournament hold the true differences at once. It is above 0
            exactly where the two share no letter. None where nothing bounds it, or without intervals.
        high: upper end; None likewise.
    """

    first: str
    second: str
    difference: float
    low: float | None
    high: float | None


@dataclass(frozen=True, repr=False)
class Tournament(Reported):
    """The result of a tournament.

    Attributes:
        ratings: one an agent, best first; equal ones by name. Agents that cannot be compared (`separate`) are ranked
            apart, one group after the other.
        groups: agents of which no two can be told apart, see `groups_of_equals`: 0 is in the interval of their
            difference, or the prior alone makes it. Groups overlap, but never hold agents that cannot be compared.
            Without rounds, and with one query, there are none, for nothing is tested.
        differences: one a pair of agents that can be compared.
        matrix: who beat whom, in the order of the ratings.
        position_bias: what the order of the answers did.
        notes: what must be known beside the numbers, one line each.
        separate: groups of agents that never met, not even through others; one group when all can be compared.
        games: the number of decided games.
        queries: the number of queries with decided games.
        undecided: status -> games without a verdict.
        both_bad: ties of two bad answers; they are ties like any other in the numbers.
        win_rates: agent -> query_id -> share of points in its games, a tie being half.
        signature: what produced the numbers.
    """

    ratings: tuple[Rating, ...]
    groups: tuple[tuple[str, ...], ...]
    differences: tuple[RatingDifference, ...]
    matrix: WinTable
    position_bias: PositionBias
    notes: tuple[str, ...]
    separate: tuple[tuple[str, ...], ...]
    games: int
    queries: int
    undecided: Mapping[str, int]
    both_bad: int
    win_rates: Mapping[str, Mapping[str, float]]
    signature: Signature

    @property
    def is_complete(self) -> bool:
        """Whether every game has a verdict and all agents can be compared."""
        return not self.undecided and len(self.separate) == 1

    def report(self) -> Report:
        """What `base.tables.render` shows in any form: ratings, win matrix and order of answers; for programs a
        leaderboard, and JSON has everything else about the tournament under the key `tournament`.
        """
        board = self.leaderboard()
        said = {name: value for name, value in vars(self).items() if name not in ("win_rates", "signature")}
        content = lambda: {**board_content(board), "tournament": plain(said)}  # noqa: E731
        return board_report(board, -1)._replace(tables=_tables(self), content=content)

    def log_notes(self) -> None:
        """Logs what must be known beside the numbers."""
        for note in self.notes:
            warn("%s", note)

    def leaderboard(self) -> Leaderboard:
        """The ratings as a leaderboard: `BradleyTerry` (with standard error), `Elo`, and `WinRate` with its queries.

        WinRate is the mean over the agent's queries of its share of points, in [0, 1]. Coverage is the share of an
        agent's games that have a verdict. Elo has no standard error: its order noise is none.
        """
        cells: dict[str, dict[str, BoardCell]] = {}
        for one in self.ratings:
            counts = (self.queries, one.games / (one.games + one.undecided or 1), one.undecided)
            cells[one.agent] = {
                "BradleyTerry": BoardCell(one.rating, one.standard_error, *counts, per_query={}),
                "Elo": BoardCell(one.elo, None, *counts, per_query={}),
                "WinRate": replace(cell_of(self.win_rates[one.agent]), coverage=counts[1], failed=counts[2]),
            }
        return Leaderboard(MEASURES, cells, self.signature)


def rate_games(preferences: Iterable[Preference], settings: TournamentSettings = TournamentSettings()) -> Tournament:
    """Rates agents by their games.

    Games without a verdict count for nobody. The result depends on the games and the settings, not on their order.

    Raises:
        InputError: the games are wrong (see `gather_games`), or, without a prior, ratings do not exist.

    Source: Rackauckas, Câmara & Zavrel, LLM4Eval 2024 (Elo, win rates); Bradley & Terry 1952 (strengths).
    """
    listed = list(preferences)
    games = gather_games(listed)
    total = games.points().sum(axis=0)
    # Agents that games connect, if through others; and those that took points from each other, if through others, best
    # first: between such groups one never took a point from the other, and only a prior holds them together.
    separate, pieces = _strong_pieces((total + total.T) > 0), _strong_pieces(total > 0)
    strengths = fit_strengths(total, settings.prior)
    spread = _spread(games, strengths, settings)
    finals = elo_replays(games, settings.elo)
    elo, noise = finals.mean(axis=0), finals.std(axis=0)
    ranked = [sorted(piece, key=lambda place: (-round(float(strengths[place]), 9), place)) for piece in separate]
    order = [place for piece in ranked for place in piece]
    groups: list[tuple[int, ...]] = []
    # Without rounds, and of one query, nothing is tested: no letter says so.
    for piece in ranked if settings.draws.rounds and len(games.query_ids) > 1 else ():
        found = groups_of_equals([-float(at) for at in range(len(piece))], spread.apart[np.ix_(piece, piece)])
        groups += [tuple(piece[at] for at in group) for group in found]
    wins, ties = games.outcomes()
    ratings = [
        Rating(
            games.agents[place],
            _MIDDLE + _SCALE * float(strengths[place]),
            _scaled(spread.low[place], _MIDDLE),
            _scaled(spread.high[place], _MIDDLE),
            _scaled(spread.error[place]),
            float(elo[place]),
            float(noise[place]),
            int(wins[place].sum()),
            int(ties[place].sum()),
            int(wins[:, place].sum()),
            games.lost.get(games.agents[place], 0),
            tuple(number for number, group in enumerate(groups) if place in group),
        )
        for place in order
    ]
    names = games.agents
    differences = tuple(
        RatingDifference(names[first], names[second], *(_scaled(one[first, second]) for one in spread.differences))  # type: ignore[arg-type]
        for piece in ranked
        for first, second in combinations(piece, 2)
    )
    return Tournament(
        tuple(ratings),
        tuple(tuple(names[place] for place in group) for group in groups),
        differences,
        win_table(games, [names[place] for place in order]),
        position_bias(listed),
        tuple(_notes(games, separate, pieces, settings, spread)),
        tuple(tuple(names[place] for place in piece) for piece in separate),
        len(games),
        len(games.query_ids),
        games.undecided,
        games.both_bad,
        _win_rates(games),
        _signature(games, listed, settings),
    )


def _scaled(value: float, middle: float = 0.0) -> float | None:
    return None if math.isnan(value) else middle + _SCALE * float(value)


class _Spread(NamedTuple):
    """What the bootstrap says, in the unit of strengths; NaN is what it does not.

    Attributes:
        low: lower ends of the agents' intervals for comparing.
        high: upper ends.
        error: standard errors.
        differences: of all pairs, with the lower and the upper ends of their intervals.
        apart: which pairs are told apart.
        left_out: samples; None without intervals.
    """

    low: FloatArray
    high: FloatArray
    error: FloatArray
    differences: tuple[FloatArray, FloatArray, FloatArray]
    apart: NDArray[np.bool_]
    left_out: int | None


def _spread(games: Games, strengths: FloatArray, settings: TournamentSettings) -> _Spread:
    """Half of an agent's interval is λ times its standard error, with the least λ that makes those of any two agents
    together as long as half the interval of their difference (`Drawn.reaches`) or longer. So two agents whose intervals
    do not overlap are told apart.

    Source: Hochberg, Weiss and Hart, On Graphical Procedures for Multiple Comparisons (JASA 1982).
    """
    found = drawn_strengths(games, strengths, settings.prior, settings.draws)
    total = games.points().sum(axis=0)
    # Who took points from whom, directly or through others.
    won = _reached(total > 0)
    gaps = strengths[:, None] - strengths
    reach, error, left_out = found.reaches(), np.full(len(total), np.nan), None
    if np.isfinite(reach).all():
        # Two agents that only tied differ by what the prior does to each: a distance that a prior twice as strong would
        # double is none that games have shown; nor is one of two that no points lead between.
        moved = fit_strengths(total, 2 * settings.prior, strengths) - strengths
        is_shown = (np.abs(gaps) > 2 * np.abs(moved[:, None] - moved) + 1e-9) & (won | won.T)
        reach = np.where(is_shown, reach, np.maximum(reach, np.abs(gaps)))
        drawn = found.replicates[~np.isnan(found.replicates).any(axis=1)]
        error, left_out = drawn.std(axis=0, ddof=1), settings.draws.rounds - len(drawn)
        # What is the same in every round says nothing of chance.
        error[error <= ROUNDING] = np.nan
    else:
        reach = np.full(reach.shape, np.nan)
    both = error[:, None] + error
    met = _reached((total + total.T) > 0) & ~np.isnan(both)
    half = error * (reach[met] / both[met]).max(initial=0.0)
    # An end is open where points flow one way only.
    low = np.where((won.T & ~won).any(axis=1), np.nan, strengths - half)
    high = np.where((won & ~won.T).any(axis=1), np.nan, strengths + half)
    ends = np.where(won, gaps - reach, np.nan), np.where(won.T, gaps + reach, np.nan)
    return _Spread(low, high, error, (gaps, *ends), np.abs(gaps) > reach, left_out)


def _win_rates(games: Games) -> dict[str, dict[str, float]]:
    points = games.points()
    taken, given = points.sum(axis=2), points.sum(axis=1)
    return {
        agent: {
            query_id: float(taken[query, place] / (taken[query, place] + given[query, place]))
            for query, query_id in enumerate(games.query_ids)
            if taken[query, place] + given[query, place] > 0
        }
        for place, agent in enumerate(games.agents)
    }


def _notes(
    games: Games,
    separate: list[list[int]],
    pieces: list[list[int]],
    settings: TournamentSettings,
    spread: _Spread,
) -> list[str]:
    def named(groups: list[list[int]]) -> str:
        return " | ".join(", ".join(games.agents[place] for place in group) for group in groups)

    notes = []
    if len(separate) > 1:
        notes.append(
            f"{len(separate)} groups of agents never met, not even through others; ratings of different groups cannot "
            f"be compared: {named(separate)}"
        )
    elif len(pieces) > 1:
        notes.append(
            f"the games do not fix every distance, the prior of {settings.prior:g} games does: of these groups, none "
            f"took a point from one further left: {named(pieces)}"
        )
    queries, rounds = len(games.query_ids), settings.draws.rounds
    said = few_queries(queries)
    if spread.left_out is None:
        few = f"nothing is told apart by {counted(rounds, 'round')}"
        said = f"no intervals: {said if queries < FEWEST_QUERIES else few}"
    elif (same := np.isnan(spread.error)).any():
        without = ", ".join(games.agents[place] for place in np.flatnonzero(same))
        reason = "the rating is the same in every round, which says nothing of chance"
        notes.append(f"{without} without an interval: {reason}")
    if said:
        notes.append(said)
    if spread.left_out:
        notes.append(
            f"{spread.left_out} of {settings.draws.rounds} bootstrap samples left out: without a prior they have no "
            "strengths"
        )
    if games.undecided:
        counts = ", ".join(f"{count} {status}" for status, count in games.undecided.items())
        notes.append(in_number(f"{sum(games.undecided.values())} games without a verdict count for nobody: {counts}"))
    if games.both_bad:
        notes.append(f"in {games.both_bad} of the ties both answers are bad; a tie is half a win for each of any kind")
    if games.by_assessors:
        notes.append(in_number(f"{games.by_assessors} of {len(games)} games were judged by assessors"))
    return notes


def _signature(games: Games, listed: Sequence[Preference], settings: TournamentSettings) -> Signature:
    outcomes = sorted([game.query_id, game.agent_a, game.agent_b, game.verdict or "", game.grader] for game in listed)
    return Signature(
        {
            "version": __version__,
            "games": content_hash(outcomes)[:12],
            "agents": len(games.agents),
            "model": "BradleyTerry",
            "ties": "half",
            "prior": settings.prior,
            "draws": dataclasses.asdict(settings.draws),
            "elo": dataclasses.asdict(settings.elo),
        }
    )


def _interval(rating: Rating) -> str | None:
    if rating.standard_error is None:
        return None
    low = "(…" if rating.low is None else "[" + number(rating.low, 1)
    high = "…)" if rating.high is None else number(rating.high, 1) + "]"
    return f"{low}, {high}"


def _tables(tournament: Tournament) -> Iterator[Table]:
    yield _ratings(tournament)
    table = tournament.matrix
    rows: list[list[Cell]] = [
        [agent, *rates, mean] for agent, rates, mean in zip(table.agents, table.rates, table.averages, strict=True)
    ]
    yield Table(columns(["row beats column", *table.agents, "mean"], 3), rows)
    yield replace(_outcomes(tournament), notes=_output_notes(tournament))


def _ratings(tournament: Tournament) -> Table:
    # Ratings of agents that never met are not on one scale: the table says which are.
    pools = {agent: pool for pool, group in enumerate(tournament.separate, 1) for agent in group}
    several = len(tournament.separate) > 1
    rows: list[list[Cell]] = [
        [one.agent, *[pools[one.agent]] * several, one.rating, _interval(one), letters(one.groups), one.elo,
         one.order_noise, one.wins, one.ties, one.losses]
        for one in tournament.ratings
    ]  # fmt: skip
    heads = ["BradleyTerry", "interval", "group", "Elo", "order noise", "win", "tie", "loss"]
    return Table(columns(["agent", *["pool"] * several, *heads], 1), rows)


def _outcomes(tournament: Tournament) -> Table:
    """Games won, tied and lost by the row against the column, and in all."""
    table = tournament.matrix
    rows: list[list[Cell]] = []
    for one, *counts in zip(tournament.ratings, table.wins, table.ties, zip(*table.wins, strict=True), strict=True):
        cells = ["/".join(map(str, three)) if any(three) else None for three in zip(*counts, strict=True)]
        rows.append([one.agent, *cells, f"{one.wins}/{one.ties}/{one.losses}"])
    return Table(columns(["win/tie/loss", *table.agents, "all"]), rows)


def _output_notes(tournament: Tournament) -> list[str]:
    bias = tournament.position_bias
    played = f"{counted(tournament.games, 'game')} about {counted(tournament.queries, 'query')}"
    both = f"{number(bias.consistency_rate, 3)} of {counted(bias.pairs, 'pair')} judged in both orders agree"
    first = f"the first answer won {number(bias.first_rate, 3)} of {counted(bias.decided, 'game')} with a winner"
    order = [text for text, count in ((both, bias.pairs), (first, bias.decided)) if count]
    has_intervals = any(one.standard_error is not None for one in tournament.ratings)
    is_tested = bool(tournament.groups) or any(one.low is not None for one in tournament.differences)
    return [
        played + "; agents that share a letter cannot be told apart" * is_tested,
        *(["intervals are for comparing agents: where two do not overlap, the agents are told apart"] * has_intervals),
        *(["order of answers: " + "; ".join(order)] if order else []),
    ]
