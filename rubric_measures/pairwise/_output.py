"""Tournaments as reports: for reading, or as a leaderboard in its forms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rubric_measures.base import tables
from rubric_measures.base.errors import counted
from rubric_measures.base.tables import Cell, Column, Table, columns, letters, number
from rubric_measures.boards.board import board_content, board_report
from rubric_measures.pairwise._ranking import Rating, Tournament


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
    yield replace(_outcomes(tournament), notes=_notes(tournament, more))


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


def _notes(tournament: Tournament, places: int) -> list[str]:
    bias = tournament.bias
    played = f"{counted(tournament.games, 'game')} about {counted(tournament.queries, 'query')}"
    return [
        f"{played}; agents that share a letter cannot be told apart",
        f"order of answers: {number(bias.consistency_rate, places)} of {bias.pairs} pairs judged in both orders agree; "
        f"the first answer won {number(bias.first_rate, places)} of {bias.decided} games with a winner",
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
