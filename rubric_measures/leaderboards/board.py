"""What a leaderboard is: cells, values by query, the order of the runs; and its reports, JSON and trec_eval's lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from rubric_measures.base import tables
from rubric_measures.base.entities import Signature
from rubric_measures.base.errors import MeasureError
from rubric_measures.base.sorting import RankNotes
from rubric_measures.base.tables import Column, Report, Table, columns, number
from rubric_measures.formats.trec_ids import IdCleaner

__all__ = [
    "BELOW",
    "OVERALL",
    "BoardInputs",
    "Cell",
    "Leaderboard",
    "board_content",
    "board_data",
    "board_report",
    "board_table",
    "render",
]

# The row of the best score that any run could reach; the name that the Rubric workbench gives it.
OVERALL = "_overall_"
# Rows that stand below the runs: the greatest, median and least of their scores (see `with_summary`).
BELOW = ("_max_", "_median_", "_min_")


@dataclass(frozen=True)
class Cell:
    """One run's score by one measure.

    Attributes:
        mean: the mean over the scored queries, of counts (NumRet, NumRel, NumQ) their sum, as ir_measures and trec_eval
            have it; None where no query could be scored.
        standard_error: sample standard deviation (n - 1) over the square root of n; None for fewer than two queries,
            and of a sum.
        queries: the number of queries in the mean.
        coverage: the share of the grades the value needed (ranked passages in the cutoff × items) that exist, in
            [0, 1]; None where none was needed.
        failed: the number of needed grades that failed.
    """

    mean: float | None
    standard_error: float | None
    queries: int
    coverage: float | None
    failed: int


@dataclass(frozen=True)
class BoardInputs:
    """The digests of what a leaderboard was scored from.

    Attributes:
        grades: query_id -> digest of its items and grades.
        runs: run_id -> digest of its rankings of these queries, as deep as the measures look.
    """

    grades: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Leaderboard:
    """Scores of runs by measures.

    Attributes:
        measures: the measures, in the order asked for.
        values: run_id -> measure -> query_id -> value (None where the grades of all items failed).
        cells: run_id -> measure -> mean, standard error and coverage.
        signature: what produced the numbers.
        missing: run_id -> queries that the run does not rank (scored 0).
        unknown: run_id -> queries that the run ranks and nobody graded (left out).
        ranks: what is to be said of rankings inside records.
        without_items: queries without items, which have no score (left out).
        inputs: the content that was scored; its digests are part of the signature.
    """

    measures: Sequence[str]
    values: Mapping[str, Mapping[str, Mapping[str, float | None]]]
    cells: Mapping[str, Mapping[str, Cell]]
    signature: Signature
    missing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unknown: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ranks: RankNotes = field(default_factory=RankNotes)
    without_items: Sequence[str] = ()
    inputs: BoardInputs = field(default_factory=BoardInputs)

    def ranking(self, measure: str | None = None) -> list[str]:
        """The runs, best first by the first measure, and by name where they are equal. The best possible score stands
        on top; rows that sum up the runs stand at the end.
        """
        name = self.measures[0] if measure is None else measure
        if name not in self.measures:
            raise MeasureError(f"the leaderboard has no measure {name}; it has {', '.join(self.measures)}")

        def key(run_id: str) -> tuple[int, float, str]:
            mean = self.cells[run_id][name].mean
            place = 0 if run_id == OVERALL else 1 + (run_id in BELOW and BELOW.index(run_id) + 1)
            return (place, -mean if mean is not None else math.inf, run_id)

        return sorted(self.cells, key=key)

    @property
    def is_complete(self) -> bool:
        """Whether every value could be scored and no grade that was needed failed."""
        return all(
            cell.failed == 0 and (cell.mean is not None or run_id == OVERALL)
            for run_id, row in self.cells.items()
            for cell in row.values()
        ) and not any(
            value is None for row in self.values.values() for queries in row.values() for value in queries.values()
        )


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
    rows: list[list[tables.Cell]] = []
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
    rows: list[list[tables.Cell]] = []
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
