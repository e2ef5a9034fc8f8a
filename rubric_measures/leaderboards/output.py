"""Leaderboards as reports: a table for reading, one for programs, the JSON, and trec_eval's lines."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

from rubric_measures.base import tables
from rubric_measures.base.tables import Cell, Column, Report, Table, columns, number
from rubric_measures.formats.trec_ids import IdCleaner
from rubric_measures.leaderboards.board import Leaderboard

__all__ = ["board_content", "board_data", "board_report", "board_table", "render"]


def _nothing(run_id: str, measure: str) -> str:
    return ""


def board_table(board: Leaderboard, places: int = 4, more: Callable[[str, str], str] = _nothing) -> Table:
    """A row a run, best first: mean ± standard error by each measure, and the least coverage.

    Args:
        board: the leaderboard.
        places: decimal places; -1 prints all digits.
        more: run, measure -> what stands behind mean and standard error.
    """
    rows = []
    for run_id in board.ranking():
        cells = board.cells[run_id]
        shares = [cell.coverage for cell in cells.values() if cell.coverage is not None]
        row = [run_id]
        for name in board.measures:
            error = cells[name].standard_error
            spread = "" if error is None else f" ± {number(error, places)}"
            row.append(f"{number(cells[name].mean, places)}{spread}{more(run_id, name)}")
        rows.append([*row, f"{min(shares):.1%}" if shares else None])
    return Table(columns(["run", *board.measures, "grades"]), rows)


def board_data(board: Leaderboard, places: int = 4) -> Table:
    """A row a run, best first, with one column each for mean, standard error and coverage by a measure."""
    heads = [Column("run_id", is_left=True)]
    for name in board.measures:
        heads += [Column(name, places), Column(f"stderr:{name}", places), Column(f"coverage:{name}")]
    rows: list[list[Cell]] = []
    for run_id in board.ranking():
        cells = (board.cells[run_id][name] for name in board.measures)
        rows.append([run_id, *chain(*((cell.mean, cell.standard_error, cell.coverage) for cell in cells))])
    return Table(heads, rows)


def board_content(board: Leaderboard, places: int = -1) -> dict[str, Any]:
    """The JSON of a leaderboard (docs/json.md), with the values of all queries and the signature."""

    def rounded(value: float | None) -> float | None:
        return value if value is None or places < 0 else round(value, places)

    runs = []
    for run_id in board.ranking():
        measures = {}
        for name in board.measures:
            cell = board.cells[run_id][name]
            measures[name] = {
                "mean": rounded(cell.mean),
                "standard_error": rounded(cell.standard_error),
                "queries": cell.queries,
                "coverage": cell.coverage,
                "failed": cell.failed,
                "per_query": {query_id: rounded(value) for query_id, value in board.values[run_id][name].items()},
            }
        runs.append({"run_id": run_id, "missing_queries": list(board.missing.get(run_id, ())), "measures": measures})
    return {
        "format": "rubric_measures leaderboard 1",
        "measures": list(board.measures),
        "runs": runs,
        "signature": str(board.signature),
        "signature_hash": board.signature.short,
        "settings": dict(board.signature.settings),
        # A tournament has the digest of its games among the settings.
        **(
            {"inputs": {"grades": dict(board.inputs.grades), "runs": dict(board.inputs.runs)}}
            if board.inputs.runs
            else {}
        ),
    }


def _scores(board: Leaderboard, places: int) -> Table:
    """Every value that exists, and the means as those of the query `all`; spaces of names are percent-encoded."""
    rows: list[list[Cell]] = []
    clean = IdCleaner()
    for run_id in board.ranking():
        for name in board.measures:
            start = [clean(run_id), clean(name)]
            values = board.values[run_id][name]
            rows += [[*start, clean(query_id), float(one)] for query_id, one in values.items() if one is not None]
            mean = board.cells[run_id][name].mean
            rows += [] if mean is None else [[*start, "all", mean]]
    clean.say("trec_eval lines")
    return Table(columns(["run", "measure", "query", "value"], places), rows)


def board_report(board: Leaderboard, places: int = 4) -> Report:
    """The leaderboard in all forms."""
    return Report(
        [board_table(board, places)],
        [board_data(board, places)],
        lambda: board_content(board, places),
        lambda: _scores(board, places),
    )


def render(board: Leaderboard, output_format: str = "tsv", places: int = 4) -> str:
    """The leaderboard as text, best run first.

    Args:
        board: the leaderboard.
        output_format: one of `rubric_measures.base.tables.FORMS`.
        places: decimal places; -1 prints all digits.
    """
    return "".join(tables.render(board_report(board, places), output_format))
