"""A tournament: its ranking, its pictures and tables.

The tournament: ratings with intervals, groups that cannot be told apart, and the result as a leaderboard.

Tournaments as reports: for reading, or as a leaderboard in its forms.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from rubric_measures.analysis.resampling import (
    FEW_QUERIES,
    USUAL_DRAWS,
    Drawn,
    Draws,
    FloatArray,
    few_queries,
    groups_of_equals,
)
from rubric_measures.base import __version__, tables
from rubric_measures.base.errors import InputError, counted
from rubric_measures.base.plugins import require
from rubric_measures.base.tables import Cell, Column, Table, columns, letters, number
from rubric_measures.boards.board import Cell as BoardCell
from rubric_measures.boards.board import Leaderboard, board_content, board_report
from rubric_measures.boards.scoring import collect_cells
from rubric_measures.games.ratings import (
    EloSettings,
    Games,
    PositionBias,
    WinTable,
    components,
    elo_ratings,
    fit_strengths,
    gather_games,
    position_bias,
    resampled_points,
    win_table,
)
from rubric_measures.types.entities import Preference, Signature, content_hash

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


MEASURES = ("BradleyTerry", "Elo", "WinRate")
# Strengths are shown on the scale of Elo: 400 points are odds of ten to one.
_SCALE = 400.0 / math.log(10.0)
_MIDDLE = 1000.0
_PRIORS = (1e-9, 1e9)


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

    def __post_init__(self) -> None:
        # Beyond these numbers of games, doubles no longer tell strengths apart.
        if not (self.prior == 0 or _PRIORS[0] <= self.prior <= _PRIORS[1]):
            lowest, highest = _PRIORS
            raise InputError(
                f"the prior is {self.prior:g} games; give 0, or a number from {lowest:g} to {highest:g}",
                settings=("prior",),
            )


@dataclass(frozen=True)
class Rating:
    """What the games say about one agent.

    Attributes:
        agent: the agent.
        rating: its Bradley–Terry strength as 1000 + 400 / ln 10 · θ; the mean over all agents is 1000.
        low: lower end of the bootstrap interval; None where nothing bounds it from below (it, or the group it is
            connected with, took no point from some agents that took points from it), or with too few queries.
        high: upper end; None where nothing bounds it from above, or with too few queries.
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


@dataclass(frozen=True, repr=False)
class Tournament:
    """The result of a tournament.

    Attributes:
        ratings: one an agent, best first; equal ones by name. Agents that cannot be compared (`separate`) are ranked
            apart, one group after the other.
        groups: longest runs of neighbours in the ranking of which no two can be told apart, as judges are: by
            `Drawn.apart`, which corrects for the number of pairs, and by a difference that the prior alone makes.
            Groups overlap, but never hold agents that cannot be compared. Empty without intervals.
        table: who beat whom, in the order of the ratings.
        bias: what the order of the answers did.
        notes: what must be known beside the numbers, one line each.
        separate: groups of agents that never met, not even through others; one group when all can be compared.
        games: the number of decided games.
        queries: the number of queries with decided games.
        undecided: status -> games without a verdict.
        by_assessors: decided games judged by assessors.
        both_bad: ties of two bad answers; they are ties like any other in the numbers.
        win_rates: agent -> query_id -> share of points in its games, a tie being half.
        signature: what produced the numbers.
    """

    ratings: tuple[Rating, ...]
    groups: tuple[tuple[str, ...], ...]
    table: WinTable
    bias: PositionBias
    notes: tuple[str, ...]
    separate: tuple[tuple[str, ...], ...]
    games: int
    queries: int
    undecided: Mapping[str, int]
    by_assessors: int
    both_bad: int
    win_rates: Mapping[str, Mapping[str, float]]
    signature: Signature

    @property
    def is_complete(self) -> bool:
        """Whether every game has a verdict and all agents can be compared."""
        return not self.undecided and len(self.separate) == 1

    def __repr__(self) -> str:
        sizes = f"{len(self.ratings)} agents, {counted(self.games, 'game')} of {counted(self.queries, 'query')}"
        lacking = f", {sum(self.undecided.values())} without a verdict" if self.undecided else ""
        return f"Tournament({sizes}{lacking}; first {self.ratings[0].agent})"

    def __str__(self) -> str:
        return render(self)

    def _repr_html_(self) -> str:
        return tables.in_notebook(_tables(self, 1))

    def to_dataframe(self) -> pandas.DataFrame:
        """A row an agent, best first: `rating` with the ends of its interval `low` and `high`, games won and lost, ….

        Raises:
            MissingExtraError: pandas is not installed.
        """
        rows = [dataclasses.asdict(one) for one in self.ratings]
        frame: pandas.DataFrame = require("pandas", "pandas").DataFrame(rows).set_index("agent")
        return frame

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draws the ratings with their intervals and groups beside the win matrix.

        Args:
            path: the figure to write (none, where it is left out): .pdf, .svg or .png.

        Returns:
            the figure, which a notebook shows.

        Raises:
            InputError: another ending, or a folder that does not exist.
            MissingExtraError: matplotlib is not installed.
        """
        from rubric_measures.pages.plots import plot_tournament
        from rubric_measures.pages.style import save_figures

        note = f"{counted(self.games, 'game')} about {counted(self.queries, 'query')}"
        known = {one.agent: (one.low, one.high) for one in self.ratings if one.standard_error is not None}
        if len(self.separate) > 1:
            note += f"; {len(self.separate)} groups of agents never met: their ratings are not on one scale"
        ratings = {one.agent: one.rating for one in self.ratings}
        return save_figures([plot_tournament(ratings, known, self.groups, self.table.rates, note)], path)

    def leaderboard(self) -> Leaderboard:
        """The ratings as a leaderboard: `BradleyTerry` (with standard error), `Elo`, and `WinRate` with its queries.

        WinRate is the mean over the agent's queries of its share of points, in [0, 1]. Coverage is the share of an
        agent's games that have a verdict. Elo has no standard error: its order noise is none.
        """
        shares = collect_cells({agent: {"WinRate": dict(values)} for agent, values in self.win_rates.items()})
        cells: dict[str, dict[str, BoardCell]] = {}
        for one in self.ratings:
            counts = (self.queries, one.games / (one.games + one.undecided or 1), one.undecided)
            share = shares[one.agent]["WinRate"]
            cells[one.agent] = {
                "BradleyTerry": BoardCell(one.rating, one.standard_error, *counts),
                "Elo": BoardCell(one.elo, None, *counts),
                "WinRate": BoardCell(share.mean, share.standard_error, share.queries, *counts[1:]),
            }
        values = {
            one.agent: {"BradleyTerry": {}, "Elo": {}, "WinRate": dict(self.win_rates[one.agent])}
            for one in self.ratings
        }
        return Leaderboard(MEASURES, values, cells, self.signature)


def rate_games(preferences: Iterable[Preference], settings: TournamentSettings | None = None) -> Tournament:
    """Rates agents by their games.

    Games without a verdict count for nobody. The result depends on the games and the settings, not on their order.

    Raises:
        InputError: the games are wrong (see `gather_games`), or, without a prior, ratings do not exist.

    Source: Rackauckas, Câmara & Zavrel, LLM4Eval 2024 (Elo, win rates); Bradley & Terry 1952 (strengths).
    """
    settings = settings or TournamentSettings()
    listed = list(preferences)
    games = gather_games(listed)
    total = games.points().sum(axis=0)
    separate, pieces = components(total)
    strengths = fit_strengths(total, settings.prior)
    spread = _spread(games, strengths, settings)
    elo, noise = elo_ratings(games, settings.elo)
    ranked = [sorted(piece, key=lambda place: (-round(float(strengths[place]), 9), place)) for piece in separate]
    order = [place for piece in ranked for place in piece]
    groups: list[tuple[int, ...]] = []
    for piece in ranked:
        apart = np.ones((len(piece), len(piece))) if spread is None else spread.apart[np.ix_(piece, piece)]
        found = groups_of_equals([-float(at) for at in range(len(piece))], apart)
        groups += [tuple(piece[at] for at in group) for group in found]
    wins, ties = games.outcomes()
    open_below, open_above = _open_ends(total, pieces)
    ratings = [
        Rating(
            games.agents[place],
            _MIDDLE + _SCALE * float(strengths[place]),
            _MIDDLE + _SCALE * float(spread.low[place]) if spread and place not in open_below else None,
            _MIDDLE + _SCALE * float(spread.high[place]) if spread and place not in open_above else None,
            _SCALE * float(spread.error[place]) if spread else None,
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
    return Tournament(
        tuple(ratings),
        tuple(tuple(names[place] for place in group) for group in groups),
        win_table(games, [names[place] for place in order]),
        position_bias(listed),
        tuple(_notes(games, separate, pieces, settings, spread)),
        tuple(tuple(names[place] for place in piece) for piece in separate),
        len(games),
        len(games.query_ids),
        games.undecided,
        games.by_assessors,
        games.both_bad,
        _win_rates(games),
        _signature(games, listed, settings),
    )


class _Spread(NamedTuple):
    """What the bootstrap says: ends and standard error of each strength, which pairs differ, samples left out."""

    low: FloatArray
    high: FloatArray
    error: FloatArray
    apart: NDArray[np.bool_]
    left_out: int


def _spread(games: Games, strengths: FloatArray, settings: TournamentSettings) -> _Spread | None:
    """Percentile intervals; None where there are too few queries or samples."""
    if len(games.query_ids) < 2:
        return None
    blocks = []
    for points in resampled_points(games, settings.draws.rounds, settings.draws.seed):
        if settings.prior == 0:
            # Without a prior, samples in which wins do not connect all agents have no strengths.
            points = points[[len(components(one)[1]) == 1 for one in points]]
        if len(points):
            blocks.append(fit_strengths(points, settings.prior, strengths))
    if sum(map(len, blocks)) < 2:
        return None
    drawn = np.concatenate(blocks)
    level = settings.draws.level
    ends = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(drawn, ends, axis=0)
    p_values = Drawn(strengths, drawn, drawn[:0], len(games.query_ids), settings.draws).apart()
    # Two agents that only tied differ by what the prior does to each: a distance that a prior twice as strong would
    # double is none that games have shown.
    moved = fit_strengths(games.points().sum(axis=0), 2 * settings.prior, strengths) - strengths
    distance, by_prior = (np.abs(one[:, None] - one) for one in (strengths, moved))
    apart = (p_values < 1.0 - level) & (distance > 2 * by_prior + 1e-9)
    return _Spread(low, high, drawn.std(axis=0, ddof=1), apart, settings.draws.rounds - len(drawn))


def _open_ends(total: FloatArray, pieces: list[list[int]]) -> tuple[set[int], set[int]]:
    """The agents that nothing bounds from below, and from above: points flow between two pieces one way only."""
    below: set[int] = set()
    above: set[int] = set()
    for piece in pieces:
        others = [place for place in range(len(total)) if place not in piece]
        if total[others][:, piece].sum() > 0:
            below.update(piece)
        if total[piece][:, others].sum() > 0:
            above.update(piece)
    return below, above


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
    spread: _Spread | None,
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
    alone = [group for group in pieces if len(group) == 1]
    total = games.points().sum(axis=0)
    lost, won = total.sum(axis=0), total.sum(axis=1)
    for what, sums in (("won every game", lost), ("lost every game", won)):
        names = [games.agents[place] for (place,) in alone if sums[place] == 0 and won[place] + lost[place] > 0]
        if names:
            notes.append(f"{', '.join(names)} {what}: the rating is as far out as the prior lets it be")
    if len(games.query_ids) < 2:
        notes.append("no intervals: the games are about one query, and a bootstrap over queries needs two or more")
    elif len(games.query_ids) < FEW_QUERIES:
        notes.append(few_queries(len(games.query_ids)))
    if spread and spread.left_out:
        notes.append(
            f"{spread.left_out} of {settings.draws.rounds} bootstrap samples left out: without a prior they have no "
            "strengths"
        )
    if games.undecided:
        counts = ", ".join(f"{count} {status}" for status, count in games.undecided.items())
        lost = sum(games.undecided.values())
        notes.append(
            f"{counted(lost, 'game')} without a verdict {'counts' if lost == 1 else 'count'} for nobody: {counts}"
        )
    if games.both_bad:
        notes.append(f"in {games.both_bad} of the ties both answers are bad; a tie is half a win for each of any kind")
    if games.by_assessors:
        notes.append(f"{games.by_assessors} of {len(games)} games were judged by assessors")
    return notes


def _signature(games: Games, listed: Sequence[Preference], settings: TournamentSettings) -> Signature:
    draws = settings.draws
    outcomes = sorted([game.query_id, game.agent_a, game.agent_b, game.verdict or "", game.grader] for game in listed)
    return Signature(
        {
            "version": __version__,
            "games": content_hash(outcomes)[:12],
            "agents": len(games.agents),
            "model": "BradleyTerry",
            "ties": "half",
            "prior": settings.prior,
            "bootstrap": f"queries,{draws.rounds},seed {draws.seed},level {draws.level:g},percentile",
            "elo": dataclasses.asdict(settings.elo),
        }
    )


def render(tournament: Tournament, output_format: str = "text", places: int = 1) -> str:
    """The tournament as text.

    Args:
        tournament: the result.
        output_format: `text`: ratings, win matrix and position bias; any other form is that of a leaderboard, and
            `json` has everything else about the tournament under the key `tournament`.
        places: decimal places of ratings; rates have two more. Leaderboard forms use one number for all columns.
            -1 prints all digits.

    Raises:
        UnknownNameError: there is no such form.
    """
    board = tournament.leaderboard()
    report = board_report(board, places)
    if output_format == "text":
        report = report._replace(tables=_tables(tournament, places))
    content = lambda: {**board_content(board, places), "tournament": _content(tournament)}  # noqa: E731
    return "".join(tables.render(report._replace(content=content), output_format))


def _interval(rating: Rating, places: int) -> str | None:
    if rating.standard_error is None:
        return None
    low = "(…" if rating.low is None else "[" + number(rating.low, places)
    high = "…)" if rating.high is None else number(rating.high, places) + "]"
    return f"{low}, {high}"


def _tables(tournament: Tournament, places: int) -> Iterator[Table]:
    yield _ratings(tournament, places)
    more = places + 2 if places >= 0 else places
    table = tournament.table
    rows: list[list[Cell]] = [
        [agent, *rates, mean] for agent, rates, mean in zip(table.agents, table.rates, table.averages, strict=True)
    ]
    yield Table(columns(["row beats column", *table.agents, "mean"], more), rows)
    yield replace(_outcomes(tournament), notes=_output_notes(tournament, more))


def _ratings(tournament: Tournament, places: int) -> Table:
    rows: list[list[Cell]] = [
        [one.agent, one.rating, _interval(one, places), letters(one.groups), one.elo, one.order_noise, one.wins,
         one.ties, one.losses]
        for one in tournament.ratings
    ]  # fmt: skip
    heads = columns(["agent", "BradleyTerry", "interval", "group", "Elo", "order noise", "win", "tie", "loss"], places)
    if len(tournament.separate) > 1:
        # Ratings of agents that never met are not on one scale: the table says which are.
        pools = {agent: pool for pool, group in enumerate(tournament.separate, 1) for agent in group}
        heads.insert(1, Column("pool"))
        for row, one in zip(rows, tournament.ratings, strict=True):
            row.insert(1, pools[one.agent])
    return Table(heads, rows)


def _outcomes(tournament: Tournament) -> Table:
    """Games won, tied and lost by the row against the column, and in all."""
    table = tournament.table
    rows: list[list[Cell]] = []
    for row, one in enumerate(tournament.ratings):
        cells: list[Cell] = []
        for column in range(len(table.agents)):
            counts = (table.wins[row][column], table.ties[row][column], table.wins[column][row])
            cells.append("/".join(map(str, counts)) if any(counts) else None)
        rows.append([one.agent, *cells, f"{one.wins}/{one.ties}/{one.losses}"])
    return Table(columns(["win/tie/loss", *table.agents, "all"]), rows)


def _output_notes(tournament: Tournament, places: int) -> list[str]:
    bias = tournament.bias
    played = f"{counted(tournament.games, 'game')} about {counted(tournament.queries, 'query')}"
    both = f"{number(bias.consistency_rate, places)} of {counted(bias.pairs, 'pair')} judged in both orders agree"
    first = f"the first answer won {number(bias.first_rate, places)} of {counted(bias.decided, 'game')} with a winner"
    order = [text for text, count in ((both, bias.pairs), (first, bias.decided)) if count]
    return [
        f"{played}; agents that share a letter cannot be told apart",
        *(["order of answers: " + "; ".join(order)] if order else []),
    ]


def _content(tournament: Tournament) -> dict[str, object]:
    counts = ("standard_error", "elo", "order_noise", "wins", "ties", "losses", "undecided")
    rates = ("pairs", "consistent", "consistency_rate", "decided", "first", "first_rate")
    content = {
        "ratings": [
            {"agent": one.agent, "rating": one.rating, "interval": [one.low, one.high]}
            | {name: getattr(one, name) for name in counts}
            for one in tournament.ratings
        ],
        "groups": tournament.groups,
        "separate": tournament.separate,
        "matrix": tournament.table,
        "position_bias": {name: getattr(tournament.bias, name) for name in rates},
        "games": tournament.games,
        "queries": tournament.queries,
        "undecided": tournament.undecided,
        "by_assessors": tournament.by_assessors,
        "both_bad": tournament.both_bad,
        "notes": tournament.notes,
    }
    return {name: tables.plain(value) for name, value in content.items()}
