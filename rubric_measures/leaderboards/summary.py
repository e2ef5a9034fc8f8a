"""What TREC prints beside scores of answers: their length L, means over the queries that a run answers, and the least,
median and greatest score of the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from rubric_measures.base.errors import InputError, MeasureError
from rubric_measures.leaderboards.board import BELOW, OVERALL, Cell, Leaderboard
from rubric_measures.leaderboards.scoring import collect_cells
from rubric_measures.records.models import QueryPassages

__all__ = ["LENGTH", "PRESENT", "lengths_of_records", "with_lengths", "with_present", "with_summary"]

# The measure of length, as the TREC RAG track calls it.
LENGTH = "L"
# How the names of columns over the queries that a run answers begin.
PRESENT = "present:"
# How the rows of the summary are made of the values of the runs.
_KINDS: Mapping[str, Callable[[Sequence[float]], float]] = dict(zip(BELOW, (max, median, min), strict=True))


def lengths_of_records(groups: Iterable[QueryPassages], name: str) -> dict[str, dict[str, int]]:
    """Run -> query -> L: the whitespace words of all passages that the run ranks for the query (its whole answer).

    Raises:
        InputError: the records hold no rankings.
    """
    lengths: dict[str, dict[str, int]] = {}
    for group in groups:
        for passage in group.passages:
            words = len(passage.text.split())
            for run_id in {ranking.method for ranking in passage.rankings if ranking.query_id == group.query_id}:
                of_run = lengths.setdefault(run_id, {})
                of_run[group.query_id] = of_run.get(group.query_id, 0) + words
    if not lengths:
        raise InputError(f"{name}: holds no rankings, so nobody knows whose answers to measure")
    return lengths


def with_lengths(board: Leaderboard, lengths: Mapping[str, Mapping[str, int]]) -> Leaderboard:
    """The leaderboard with L as its last measure: whitespace words of the answer, 0 where there is none.

    The row of the best possible score has no length.

    Raises:
        MeasureError: the leaderboard has a measure of that name.
    """
    if LENGTH in board.measures:
        raise MeasureError(f"the leaderboard has a measure {LENGTH} already")
    values: dict[str, dict[str, Mapping[str, float | None]]] = {}
    for run_id, by_measure in board.values.items():
        values[run_id] = dict(by_measure)
        if run_id != OVERALL:
            queries = next(iter(by_measure.values()), {})
            found = lengths.get(run_id, {})
            values[run_id][LENGTH] = {query_id: float(found.get(query_id, 0)) for query_id in queries}
        else:
            values[run_id][LENGTH] = {}
    made = collect_cells({run_id: {LENGTH: by_measure[LENGTH]} for run_id, by_measure in values.items()})
    cells = {run_id: {**row, **made[run_id]} for run_id, row in board.cells.items()}
    return replace(board, measures=[*board.measures, LENGTH], values=values, cells=cells)


def with_present(board: Leaderboard) -> Leaderboard:
    """The leaderboard with each measure once more, as `present:NAME`: over the queries alone that the run answers.

    A mean over all queries counts an answer that is missing as 0; this one says how good the answers are that there
    are. The row of the best possible score has an answer to every query.
    """
    values: dict[str, dict[str, Mapping[str, float | None]]] = {}
    for run_id, by_measure in board.values.items():
        missing = set(board.missing.get(run_id, ()))
        values[run_id] = {
            PRESENT + name: {query_id: value for query_id, value in column.items() if query_id not in missing}
            for name, column in by_measure.items()
        }
    made = collect_cells(values)
    cells = {
        run_id: {
            **row,
            **{PRESENT + name: replace(made[run_id][PRESENT + name], coverage=row[name].coverage) for name in row},
        }
        for run_id, row in board.cells.items()
    }
    return replace(
        board,
        measures=[*board.measures, *(PRESENT + name for name in board.measures)],
        values={run_id: {**board.values[run_id], **by_measure} for run_id, by_measure in values.items()},
        cells=cells,
    )


def with_summary(board: Leaderboard) -> Leaderboard:
    """The leaderboard with the rows `_max_`, `_median_` and `_min_` over its runs.

    The mean of `_max_` is the greatest of the runs' means, and its value for a query the greatest of their values for
    it; so for the other two. The rows have no standard error and no coverage. The best possible score is no run.
    """
    runs = [run_id for run_id in board.cells if run_id != OVERALL]
    values = dict(board.values)
    cells = dict(board.cells)
    for row, combine in _KINDS.items():
        by_measure: dict[str, dict[str, float | None]] = {}
        summary: dict[str, Cell] = {}
        for name in board.measures:
            means = [mean for run_id in runs if (mean := board.cells[run_id][name].mean) is not None]
            queries = dict.fromkeys(query_id for run_id in runs for query_id in board.values[run_id][name])
            by_measure[name] = {}
            for query_id in queries:
                found = [board.values[run_id][name].get(query_id) for run_id in runs]
                known = [value for value in found if value is not None]
                by_measure[name][query_id] = float(combine(known)) if known else None
            summary[name] = Cell(float(combine(means)) if means else None, None, len(queries), None, 0)
        values[row], cells[row] = by_measure, summary
    return replace(board, values=values, cells=cells)
