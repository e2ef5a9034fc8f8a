"""Bradley–Terry strengths by maximum likelihood, for many resamples at once; who can be compared with whom."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rubric_measures.analysis.resampling import seeded
from rubric_measures.base.errors import InputError
from rubric_measures.pairwise._games import Games

FloatArray = NDArray[np.float64]
_ROUNDS = 200
# Numbers that are held at once in one array of resamples: some 30 MB.
_CELLS = 4_000_000
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
        raise InputError("without a prior, strengths exist only where wins connect all agents in both directions")
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


def resampled_points(games: Games, rounds: int, seed: int, unit: str = "queries") -> Iterator[FloatArray]:
    """Points of resampled games, some samples at a time: (samples, agents, agents) each, `rounds` samples in all.

    With the unit `queries` all games of a drawn query come together, as verdicts about one query hang together; with
    `games` each game is drawn alone, which is too sure of itself when queries differ. Samples do not depend on how many
    come at a time.

    Raises:
        InputError: rounds is below 1, or the unit is unknown.
    """
    if rounds < 1 or unit not in ("queries", "games"):
        raise InputError(f"a bootstrap of {rounds} rounds over {unit!r}: expected 1 or more, over queries or games")
    random = seeded(seed)
    size = len(games.agents)
    # Games with the same pair and outcome are alike, so drawing games is drawing how many there are of each kind.
    wins, ties = games.outcomes()
    kinds = np.concatenate([wins.ravel(), np.triu(ties).ravel()])
    points = games.points().reshape(-1, size * size)
    block = max(1, _CELLS // max(size * size, len(points)))
    for begin in range(0, rounds, block):
        count = min(block, rounds - begin)
        if unit == "queries":
            drawn = random.multinomial(len(points), np.full(len(points), 1.0 / len(points)), size=count)
            yield (drawn.astype(np.float64) @ points).reshape(count, size, size)
        else:
            drawn = random.multinomial(len(games), kinds / kinds.sum(), size=count)
            won, tied = drawn.reshape(count, 2, size, size).transpose(1, 0, 2, 3)
            yield won + 0.5 * (tied + tied.transpose(0, 2, 1))


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
