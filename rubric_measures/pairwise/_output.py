"""Tournaments as text: for reading, or as a leaderboard in its formats."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rubric_measures.base.errors import UnknownNameError
from rubric_measures.leaderboards import output as leaderboard_output
from rubric_measures.pairwise._ranking import Rating, Tournament

__all__ = ["FORMATS", "render"]

FORMATS = ("text", *(name for name in leaderboard_output.FORMATS if name != "text"))


def render(tournament: Tournament, output_format: str = "text", places: int = 1) -> str:
    """The tournament as text.

    Args:
        tournament: the result.
        output_format: `text`: ratings, win matrix and position bias, for people; or a format of leaderboards: `tsv`,
            `json` (with everything else about the tournament under the key `tournament`), `latex`, `markdown`,
            `trec_eval`.
        places: decimal places of ratings; rates have two more. Leaderboard formats use one number for all columns.
            -1 prints all digits.

    Raises:
        UnknownNameError: there is no such format.
    """
    if output_format not in FORMATS:
        raise UnknownNameError("output format", output_format, FORMATS)
    if output_format == "text":
        return _text(tournament, places)
    rendered = leaderboard_output.render(tournament.leaderboard(), output_format, places)
    if output_format != "json":
        return rendered
    content = {**json.loads(rendered), "tournament": _content(tournament)}
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _number(value: float | None, places: int, missing: str = "-") -> str:
    if value is None:
        return missing
    return repr(value) if places < 0 else f"{value:.{places}f}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        ).rstrip()
        for row in rows
    ]


def _letters(groups: Sequence[int]) -> str:
    return "".join(chr(ord("a") + group) if group < 26 else f"({group + 1})" for group in groups)


def _interval(rating: Rating, places: int) -> str:
    if rating.standard_error is None:
        return "-"
    low = "(…" if rating.low is None else "[" + _number(rating.low, places)
    high = "…)" if rating.high is None else _number(rating.high, places) + "]"
    return f"{low}, {high}"


def _pools(tournament: Tournament) -> list[str]:
    """The number of the group of agents that can be compared, for each rating."""
    pool_of = {agent: number for number, group in enumerate(tournament.separate, 1) for agent in group}
    return [str(pool_of[one.agent]) for one in tournament.ratings]


def _outcomes(tournament: Tournament) -> list[list[str]]:
    """Games won, tied and lost by the row against the column, and in all."""
    table = tournament.table
    lines = [["win/tie/loss", *table.agents, "all"]]
    for row, one in enumerate(tournament.ratings):
        cells = []
        for column in range(len(table.agents)):
            counts = (table.wins[row][column], table.ties[row][column], table.wins[column][row])
            cells.append("/".join(map(str, counts)) if any(counts) else "-")
        lines.append([one.agent, *cells, f"{one.wins}/{one.ties}/{one.losses}"])
    return lines


def _text(tournament: Tournament, places: int) -> str:
    more = places + 2 if places >= 0 else places
    rows = [["agent", "BradleyTerry", "interval", "group", "Elo", "order noise", "win", "tie", "loss"]]
    for one in tournament.ratings:
        rows.append(
            [
                one.agent,
                _number(one.rating, places),
                _interval(one, places),
                _letters(one.groups) or "-",
                _number(one.elo, places),
                _number(one.order_noise, places),
                str(one.wins),
                str(one.ties),
                str(one.losses),
            ]
        )
    if len(tournament.separate) > 1:
        # Ratings of agents that never met are not on one scale: the table says which are.
        rows = [[row[0], pool, *row[1:]] for row, pool in zip(rows, ["pool", *_pools(tournament)], strict=True)]
    table = tournament.table
    matrix = [["row beats column", *table.agents, "mean"]]
    for agent, rates, mean in zip(table.agents, table.rates, table.averages, strict=True):
        matrix.append([agent, *(_number(rate, more) for rate in rates), _number(mean, more)])
    bias = tournament.bias
    lines = [
        *_aligned(rows),
        "",
        *_aligned(matrix),
        "",
        *_aligned(_outcomes(tournament)),
        "",
        f"{tournament.games} games about {tournament.queries} queries; agents that share a letter cannot be told apart",
        f"order of answers: {_number(bias.consistency_rate, more)} of {bias.pairs} pairs judged in both orders agree; "
        f"the first answer won {_number(bias.first_rate, more)} of {bias.decided} games with a winner",
    ]
    return "\n".join(lines) + "\n"


def _content(tournament: Tournament) -> dict[str, object]:
    bias, table = tournament.bias, tournament.table
    return {
        "ratings": [
            {
                "agent": one.agent,
                "rating": one.rating,
                "interval": [one.low, one.high],
                "standard_error": one.standard_error,
                "elo": one.elo,
                "order_noise": one.order_noise,
                "wins": one.wins,
                "ties": one.ties,
                "losses": one.losses,
                "undecided": one.undecided,
            }
            for one in tournament.ratings
        ],
        "groups": [list(group) for group in tournament.groups],
        "separate": [list(group) for group in tournament.separate],
        "matrix": {
            "agents": list(table.agents),
            "wins": [list(row) for row in table.wins],
            "ties": [list(row) for row in table.ties],
            "rates": [list(row) for row in table.rates],
            "averages": list(table.averages),
        },
        "position_bias": {
            "pairs": bias.pairs,
            "consistent": bias.consistent,
            "consistency_rate": bias.consistency_rate,
            "decided": bias.decided,
            "first": bias.first,
            "first_rate": bias.first_rate,
        },
        "games": tournament.games,
        "queries": tournament.queries,
        "undecided": dict(tournament.undecided),
        "by_people": tournament.by_people,
        "notes": list(tournament.notes),
    }
