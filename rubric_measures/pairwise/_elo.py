"""Elo ratings, averaged over seeded replays of the games in shuffled order."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from rubric_measures.analysis.resampling import seeded
from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.pairwise._games import Games

FloatArray = NDArray[np.float64]
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
