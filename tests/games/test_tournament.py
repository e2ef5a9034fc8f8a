"""Tournaments: hand-worked games, known strengths found again, what the games cannot say, bad input."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubric_measures import Draws, tournament
from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.games.tournaments import (
    COMPATS,
    EloSettings,
    TournamentSettings,
    elo_replays,
    fit_strengths,
    gather_games,
    position_bias,
    rate_games,
    win_table,
)
from rubric_measures.types.entities import Preference


def games_of(*rows: tuple[str, str, str, str]) -> list[Preference]:
    """(query, first, second, verdict); repeated rows get another grader, as one grader judges a game once."""
    counts: dict[tuple[str, str, str], int] = {}
    made = []
    for query_id, first, second, verdict in rows:
        number = counts[query_id, first, second] = counts.get((query_id, first, second), -1) + 1
        made.append(Preference(query_id, first, second, verdict, grader=f"g{number}"))  # type: ignore[arg-type]
    return made


def simulated(strengths: dict[str, float], queries: int, seed: int, spread: float = 0.0) -> list[Preference]:
    """All pairs in both orders for each query; `spread` is how much strengths differ from query to query."""
    random = np.random.default_rng(seed)
    made = []
    for query in range(queries):
        here = {agent: value + spread * random.standard_normal() for agent, value in strengths.items()}
        for first, second in itertools.permutations(sorted(strengths), 2):
            wins = random.random() < 1 / (1 + math.exp(here[second] - here[first]))
            made.append(Preference(f"q{query:03}", first, second, "a" if wins else "b", grader="sim"))
    return made


# A chain: A beat B three times of four, B beat C twice of three (one of them by two ties and a win). No other games.
CHAIN = games_of(
    *[("q1", "A", "B", "a")] * 3,
    ("q1", "A", "B", "b"),
    ("q2", "B", "C", "a"),
    ("q2", "B", "C", "tie"),
    ("q2", "C", "B", "tie"),
)


def test_strengths_of_a_chain_are_the_logarithms_of_its_odds() -> None:
    # B against C: 1 + ½ + ½ = 2 points of 3, odds 2. θ_A − θ_B = ln 3, θ_B − θ_C = ln 2, sum 0:
    # θ_B = (ln 2 − ln 3) / 3.
    points = gather_games(CHAIN).points().sum(axis=0)
    assert points.tolist() == [[0, 3, 0], [1, 0, 2], [0, 1, 0]]
    b = (math.log(2) - math.log(3)) / 3
    assert fit_strengths(points, prior=0) == pytest.approx([b + math.log(3), b, b - math.log(2)], abs=1e-9)


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_strengths_solve_the_likelihood_equations(seed: int) -> None:
    random = np.random.default_rng(seed)
    points = random.integers(0, 6, size=(2, 5, 5)) / 2 * (1 - np.eye(5))
    points[0] *= 100
    for won, theta in zip(points, fit_strengths(points, prior=0.1), strict=True):
        # The result is centred; the equations hold for the strengths before centring, so for one common shift.
        chance = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
        rest = (won - (won + won.T) * chance).sum(axis=1)
        assert abs(rest.sum()) < 1e-8
        shift = _shift(theta)
        assert rest + 0.1 * (0.5 - 1 / (1 + np.exp(-theta - shift))) == pytest.approx(np.zeros(5), abs=1e-6)


def _shift(theta: np.ndarray) -> float:  # type: ignore[type-arg]
    """Σ σ(θ_i + shift) = n / 2, by bisection: the sum of the likelihood equations."""
    low, high = -50.0, 50.0
    for _ in range(200):
        middle = (low + high) / 2
        if (1 / (1 + np.exp(-theta - middle))).mean() < 0.5:
            low = middle
        else:
            high = middle
    return low


def test_elo_of_two_games_by_hand() -> None:
    # A wins, then B: 1000 ± 16 = 1016 and 984; B expects 1 / (1 + 10^(32/400)) = 0.454078 and gains
    # 32 · 0.545922 = 17.4695: A 998.5305, B 1001.4695. The other way round the names change places.
    games = gather_games(games_of(("q1", "A", "B", "a"), ("q2", "A", "B", "b")))
    finals = elo_replays(games, EloSettings(replays=50))
    assert {tuple(np.round(row, 4).tolist()) for row in finals} == {(998.5305, 1001.4695), (1001.4695, 998.5305)}
    assert finals.mean(axis=0).sum() == pytest.approx(2000, abs=1e-9)
    assert 1.2 < finals.std(axis=0)[0] <= 1.4695


def test_compat_ragelo_loses_points_and_old_releases_reverse_the_expectation() -> None:
    games = gather_games(simulated({"a": 1.0, "b": 0.0, "c": -1.0}, 20, seed=5))
    truncated = elo_replays(games, COMPATS["ragelo"])
    assert truncated.shape == (10, 3)
    assert (truncated == np.trunc(truncated)).all()
    # 120 games, each loses a point unless both new ratings are whole.
    assert (truncated.sum(axis=1) < 2900).all()
    # Reversed, the stronger expects to lose: in one direction ratings run away, by 32 · E > 16 a win.
    run = gather_games(games_of(*[("q1", "A", "B", "a")] * 20))
    plain = elo_replays(run, EloSettings(replays=1))[0]
    reversed_ = elo_replays(run, replace(COMPATS["ragelo-0.4"], replays=1))[0]
    assert plain[0] - plain[1] < 400
    assert reversed_[0] - reversed_[1] > 600
    with pytest.raises(UnknownNameError, match="unknown program 'raglo': did you mean ragelo"):
        tournament(CHAIN, compat="raglo")  # type: ignore[arg-type]


def test_ratings_agree_with_evalica() -> None:
    evalica = pytest.importorskip("evalica")
    games = gather_games(simulated({"a": 1.0, "b": 0.3, "c": -0.2, "d": -1.1}, 40, seed=11))
    winner = {2: evalica.Winner.X, 1: evalica.Winner.Draw, 0: evalica.Winner.Y}
    first = [games.agents[place] for place in games.rows[:, 1]]
    second = [games.agents[place] for place in games.rows[:, 2]]
    won = [winner[int(half)] for half in games.rows[:, 3]]
    theirs = evalica.bradley_terry(first, second, won, tolerance=1e-12, limit=10_000).scores
    logs = np.log(np.array([theirs[agent] for agent in games.agents]))
    assert fit_strengths(games.points().sum(axis=0), prior=0) == pytest.approx(logs - logs.mean(), abs=1e-6)
    # One replay in our first shuffled order.
    order = np.random.default_rng(42).permuted(np.arange(len(games))[None, :], axis=1)[0]
    args = ([first[i] for i in order], [second[i] for i in order], [won[i] for i in order])
    elo = evalica.elo(*args, initial=1000.0, k=32.0).scores
    assert elo_replays(games, EloSettings(replays=1))[0] == pytest.approx(
        [elo[agent] for agent in games.agents], abs=1e-6
    )


def test_the_matrix_counts_wins_ties_and_losses() -> None:
    table = win_table(gather_games(CHAIN), ["C", "B", "A"])
    assert table.wins == ((0, 0, 0), (1, 0, 1), (0, 3, 0))
    assert table.ties == ((0, 2, 0), (2, 0, 0), (0, 0, 0))
    # B won 1 of 3 against C and 1 of 4 against A; A never met C.
    assert table.rates == ((None, 0.0, None), (1 / 3, None, 0.25), (None, 0.75, None))
    assert table.averages == (0.0, pytest.approx((1 / 3 + 0.25) / 2), 0.75)


def test_position_bias_counts_pairs_in_both_orders() -> None:
    games = games_of(
        ("q1", "A", "B", "a"), ("q1", "B", "A", "b"),  # A both times: consistent
        ("q1", "A", "C", "a"), ("q1", "C", "A", "a"),  # whoever is first
        ("q1", "B", "C", "tie"), ("q1", "C", "B", "tie"),  # consistent
        ("q2", "A", "B", "b"),  # one order only
    )  # fmt: skip
    games.append(Preference("q2", "B", "A", None, "unparsed", grader="g0"))
    bias = position_bias(games)
    assert (bias.pairs, bias.consistent, bias.decided, bias.first) == (3, 2, 5, 3)
    assert bias.consistency_rate == pytest.approx(2 / 3)
    assert bias.first_rate == pytest.approx(0.6)
    assert position_bias([]).consistency_rate is None


def test_agents_that_never_met_are_said_and_never_told_apart() -> None:
    games = games_of(*[(f"q{n}", "A", "B", v) for n, v in enumerate("aaab")], *[(f"q{n}", "C", "D", v) for n, v in
                     enumerate("aaab")])  # fmt: skip
    result = rate_games(games)
    assert result.separate == (("A", "B"), ("C", "D"))
    assert not result.is_complete
    assert "never met" in result.notes[0] and "A, B | C, D" in result.notes[0]
    # Each pool has its own ranking and its own letters: A and C never met, so no letter may join them.
    assert [one.agent for one in result.ratings] == ["A", "B", "C", "D"]
    assert all(set(group) <= {"A", "B"} or set(group) <= {"C", "D"} for group in result.groups)
    assert {agent for group in result.groups for agent in group} == set("ABCD")
    lines = str(result).splitlines()
    assert lines[0].split()[:3] == ["agent", "pool", "BradleyTerry"]
    assert [line.split()[:2] for line in lines[1:5]] == [["A", "1"], ["B", "1"], ["C", "2"], ["D", "2"]]


def test_an_agent_that_only_won_has_no_upper_end() -> None:
    games = games_of(*[(f"q{n}", "A", other, "a") for n in range(8) for other in "BC"],
                     *[(f"q{n}", "B", "C", v) for n, v in enumerate("aababaab")])  # fmt: skip
    result = rate_games(games)
    best = result.ratings[0]
    assert best.agent == "A" and best.high is None and best.low is not None
    assert "A | B, C" in result.notes[0]
    # B and C took no point from A: nothing bounds how far below they are.
    assert all(one.low is None and one.high is not None for one in result.ratings[1:])
    assert "[" in str(result) and ", …)" in str(result)
    with pytest.raises(InputError, match="without a prior"):
        rate_games(games, TournamentSettings(prior=0))


def test_without_a_prior_samples_that_connect_nothing_are_left_out_and_said() -> None:
    # Two queries: about half of the samples draw one of them twice, and then A, B or C plays no game.
    games = [game._replace(query_id=f"{game.query_id}-{copy}") for game in CHAIN for copy in range(3)]
    result = rate_games(games, TournamentSettings(prior=0, draws=Draws(500)))
    (said,) = [note for note in result.notes if "bootstrap samples left out" in note]
    # All six draws of one kind: 2 · 2^-6 of the samples.
    assert 5 <= int(said.split()[0]) <= 30


BAD = {
    "itself": ([Preference("q1", "A", "A", "tie")], "agent 'A' plays against itself"),
    "twice": ([Preference("q1", "A", "B", "a", grader="g")] * 2, "comes twice"),
    "no verdict": ([Preference("q1", "A", "B", None)], "cannot have the verdict None"),
    "verdict of a failure": ([Preference("q1", "A", "B", "a", "failed")], "cannot have the verdict 'a'"),
    "nothing": ([], "no games"),
    "only failures": ([Preference("q1", "A", "B", None, "failed")], "no game has a verdict"),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_wrong_games_are_one_line(name: str) -> None:
    games, message = BAD[name]
    with pytest.raises(InputError, match=message) as caught:
        rate_games(games)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("queries", [2, 3, 5])
def test_a_few_queries_tell_no_agents_apart(queries: int) -> None:
    """Every sample of two queries of one order has that order: that is no proof, and no interval."""
    games = [Preference(f"q{number}", "a", "b", verdict) for number, verdict in enumerate("aabaa"[:queries])]
    result = rate_games(games)
    assert [set(group) for group in result.groups] == [{"a", "b"}]
    assert {(one.low, one.high, one.standard_error) for one in result.ratings} == {(None, None, None)}
    assert f"no intervals: only {queries} queries: so few tell nothing apart" in "\n".join(result.notes)


def test_a_rating_without_an_interval_says_why() -> None:
    """Of two agents one won all; without rounds, or of one query, nothing is tested, and no letter says so."""
    games = games_of(*[(f"q{n}", *order) for n in range(8) for order in (("a", "b", "a"), ("b", "a", "b"))])
    result = rate_games(games)
    assert (result.groups, {one.standard_error for one in result.ratings}) == ((), {None})
    assert "a, b without an interval: the rating is the same in every round" in "\n".join(result.notes)
    assert "share a letter" in str(result)
    for some, rounds, reason in ((games, 0, "told apart by 0 rounds"), (games[:2], 100, "only 1 query")):
        result = rate_games(some, TournamentSettings(draws=Draws(rounds)))
        assert result.groups == () and "share a letter" not in str(result) and reason in "\n".join(result.notes)
    one = rate_games(games, TournamentSettings(draws=Draws(1)))
    assert "no intervals: nothing is told apart by 1 round" in one.notes


def test_no_interval_contradicts_a_letter() -> None:
    strengths = {f"agent{place:02}": value for place, value in enumerate(np.linspace(-1, 1, 18))}
    content = json.loads(rate_games(simulated(strengths, 12, seed=3, spread=0.8)).render("json"))["tournament"]
    letters = [set(group) for group in content["groups"]]
    shared = {pair: any(set(pair) <= group for group in letters) for pair in itertools.combinations(strengths, 2)}
    ends = {one["agent"]: (one["low"], one["high"]) for one in content["ratings"]}
    disjoint = [pair for pair in shared if ends[pair[0]][1] < ends[pair[1]][0] or ends[pair[1]][1] < ends[pair[0]][0]]
    assert disjoint and not any(shared[pair] for pair in disjoint)
    for one in content["differences"]:
        assert one["low"] < one["difference"] < one["high"] and one["difference"] > -1e-9
        assert (one["low"] <= 0) is shared[tuple(sorted((one["first"], one["second"])))]


def test_what_two_agents_lost_to_a_third_tells_nothing_of_them() -> None:
    """Only the prior rates C above B: both lost every game to A, and B played more of them."""
    games = games_of(*[(f"q{n:02}", *order) for n in range(30) for order in
                       (("A", "B", "a"), ("B", "A", "b"), ("A", "C", "a"))])  # fmt: skip
    result = rate_games(games)
    assert {"B", "C"} in [set(group) for group in result.groups]
    assert {(one.low, one.high) for one in result.differences if one.first == "C"} == {(None, None)}
