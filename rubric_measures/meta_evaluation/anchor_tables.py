"""What anchors say of a grader, as a report: bias, what its grades are worth, calibrated scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rubric_measures.base.tables import Cell, Column, Report, Table, columns, plain
from rubric_measures.meta_evaluation.anchors import Bias, Calibrated, GradeValue

__all__ = ["anchor_report"]


def anchor_report(
    bias: Sequence[Bias],
    values: Sequence[GradeValue],
    runs: Sequence[Calibrated],
    places: int,
    settings: Mapping[str, object],
) -> Report:
    """Bias, values of grades, and runs; for programs one after the other.

    Args:
        bias: see `bias_rows`.
        values: see `grade_values`.
        runs: see `calibrated_runs`; empty where there are no answers.
        places: decimal places; -1 prints all digits.
        settings: what it was computed with: `against`, `rel`, `method`, `rounds`, `seed`, `level`, `smallest`, and
            `reason` where there are no runs.
    """
    tables = [_bias(bias, places, settings), _values(values, places, settings)]
    tables += [_runs(runs, places, settings)] if runs else []
    content = {
        "format": "rubric_measures calibrate 1",
        **settings,
        "bias": [{**one._asdict(), "drift": said_of(one, settings)} for one in bias],
        "grades": [one._asdict() for one in values],
        "runs": [one._asdict() for one in runs],
    }
    return Report(tables, None, lambda: plain(content))


def said_of(one: Bias, settings: Mapping[str, object]) -> str:
    """Whether the interval shows a difference, shows that it is too small to matter, or neither."""
    smallest = settings["smallest"]
    if one.low is None or one.high is None:
        return "unknown"
    if isinstance(smallest, float) and -smallest < one.low and one.high < smallest:
        return "none that matters"
    return "unknown" if one.low <= 0.0 <= one.high else "higher" if one.mean > 0 else "lower"


def _bias(rows: Sequence[Bias], places: int, settings: Mapping[str, object]) -> Table:
    heads = columns(["kind", "grade", "anchors", "queries", "same", "bias", "low", "high", "said"], places)
    cells: list[list[Cell]] = [
        [one.kind or "all", "all" if one.grade is None else f"{one.grade:g}", one.anchors, one.queries, one.same,
         one.mean, one.low, one.high, said_of(one, settings)]
        for one in rows
    ]  # fmt: skip
    return Table(heads, cells, notes=[f"bias: the mean of the grader's grade − that of {settings['against']}"])


def _values(values: Sequence[GradeValue], places: int, settings: Mapping[str, object]) -> Table:
    cells: list[list[Cell]] = [
        [f"{one.grade:g}", one.anchors, one.covers.estimate, one.covers.low, one.covers.high] for one in values
    ]
    note = f"covers: how probable a grade of {settings['rel']} or more of {settings['against']} is (isotonic)"
    return Table([Column("grade", is_left=True), *columns(["anchors", "covers", "low", "high"], places, 0)], cells,
                 notes=[note])  # fmt: skip


def _runs(runs: Sequence[Calibrated], places: int, settings: Mapping[str, object]) -> Table:
    cells: list[list[Cell]] = [
        [one.run_id, one.raw, one.interval.estimate, one.interval.low, one.interval.high] for one in runs
    ]
    note = f"calibrated: the share of items that {settings['against']} would cover, by {settings['method']}"
    return Table(columns(["run", "raw", "calibrated", "low", "high"], places), cells, notes=[note])
