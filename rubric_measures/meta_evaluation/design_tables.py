"""Designs of experiments as a report: queries that are needed, variance components, what the board could tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rubric_measures.base.tables import Cell, Column, Report, Table, columns, plain
from rubric_measures.meta_evaluation.design import Design

__all__ = ["design_report"]


def design_report(designs: Sequence[Design], places: int, settings: Mapping[str, object]) -> Report:
    """A row a measure in each table; for programs one row with everything.

    Args:
        designs: one a measure.
        places: decimal places; -1 prints all digits.
        settings: `delta`, `runs`, `alpha`, `power`, `correction`, `splits` and `seed`.
    """
    shown = [_needed(designs, places, settings), _variance(designs, places), _told(designs, places, settings)]
    content = {
        "format": "rubric_measures power 1",
        **settings,
        "measures": [
            {**plain(one), "components": {**plain(one.components), "reliability": one.components.reliability}}
            for one in designs
        ],
    }
    return Report(shown, [_joined([replace(one, notes=()) for one in shown])], lambda: plain(content))


def _needed(designs: Sequence[Design], places: int, settings: Mapping[str, object]) -> Table:
    rows: list[list[Cell]] = [[one.measure, one.deviation, one.one_pair, one.all_pairs] for one in designs]
    note = (
        f"queries that find a difference of {settings['delta']:g} with power {settings['power']:g} at "
        f"{settings['alpha']:g}: of one pair, of each pair of {settings['runs']} runs (Bonferroni)"
    )
    return Table(columns(["measure", "deviation", "one pair", "all pairs"], places), rows, notes=[note])


def _variance(designs: Sequence[Design], places: int) -> Table:
    rows: list[list[Cell]] = []
    for one in designs:
        parts = one.components
        shares = [part / parts.total if parts.total else None for part in (parts.runs, parts.queries, parts.rest)]
        rows.append([one.measure, parts.run_count, parts.query_count, *shares, parts.reliability, parts.f, parts.p])
    heads = ["measure", "of runs", "of queries", "runs", "queries", "rest", "reliability", "F", "p"]
    note = "shares of the variance of scores; reliability: the share of the variance of the means that is of the runs"
    return Table(columns(heads, places), rows, notes=[note])


def _told(designs: Sequence[Design], places: int, settings: Mapping[str, object]) -> Table:
    rows: list[list[Cell]] = []
    for one in designs:
        swaps = one.swaps
        found = [None] * 4 if swaps is None else [swaps.queries, swaps.all, swaps.beyond, swaps.sensitivity]
        rows.append([one.measure, one.separated, one.detectable, *found])
    heads = ["measure", "separated", "detectable", "half", "swaps", f"swaps >= {settings['delta']:g}", "sensitivity"]
    note = (
        f"separated: share of pairs that differ ({settings['correction']}); detectable: by these queries, of each "
        "pair; swaps: pairs that two halves of the queries order otherwise; sensitivity: the difference from which "
        "on at most 5 % do"
    )
    return Table(columns(heads, places), rows, notes=[note])


def _joined(tables: Sequence[Table]) -> Table:
    """Tables of the same measures side by side."""
    heads: list[Column] = list(tables[0].columns)
    rows = [list(row) for row in tables[0].rows]
    for table in tables[1:]:
        heads += table.columns[1:]
        for row, more in zip(rows, table.rows, strict=True):
            row += more[1:]
    return Table(heads, rows)
