"""The Rubric workbench's tables of how assessors agree: counts of label against judgment sets, with κ of each cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rubric_measures.analysis.agreement import binary_kappa
from rubric_measures.base.errors import InputError
from rubric_measures.base.tables import Cell, Marked, Report, Table, columns, plain
from rubric_measures.measures.labels import JudgedPassage


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Which labels and judgments a table puts together.

    Attributes:
        name: GRADED, MERGE, LENIENT or STRICT.
        labels: the lines: sets of labels.
        judgments: the columns: sets of judgments.
        diagonal: for each line the column that means the same; its κ is the line's.
    """

    name: str
    labels: tuple[tuple[int, ...], ...]
    judgments: tuple[tuple[int, ...], ...]
    diagonal: tuple[int, ...]


def table_layouts(min_judgment: int = 1) -> tuple[TableLayout, ...]:
    """The program's four layouts.

    Args:
        min_judgment: the least judgment that is relevant: 1, the program's default, or 2, which it takes for the
            collections of TREC DL, and the paper does.

    Raises:
        InputError: it is neither.
    """
    if min_judgment not in (1, 2):
        raise InputError(
            f"the workbench's tables know relevant judgments from 1 or from 2, not from {min_judgment}",
            settings=("min_judgment",),
        )
    relevant, not_relevant = ((1, 2, 3), (-2, -1, 0)) if min_judgment == 1 else ((2, 3), (-2, -1, 0, 1))
    diagonal = (1, 1, 2, 2, 2, 3) if min_judgment == 1 else (0, 0, 1, 1, 1, 3)
    merged = ((2, 3), (1,)) if min_judgment == 1 else ((3,), (2,))
    return (
        TableLayout("GRADED", ((5,), (4,), (3,), (2,), (1,), (0,)), ((3,), (2,), (1,), (0,)), diagonal),
        TableLayout("MERGE", ((4, 5), (1, 2, 3), (0,)), (*merged, not_relevant), (0, 1, 2)),
        TableLayout("LENIENT", ((1, 2, 3, 4, 5), (0,)), (relevant, not_relevant), (0, 1)),
        TableLayout("STRICT", ((4, 5), (0, 1, 2, 3)), (relevant, not_relevant), (0, 1)),
    )


@dataclass(frozen=True, slots=True)
class AgreementCell:
    """One cell: "the label is in L" against "a judgment is in J", over all passages.

    Attributes:
        label: L.
        judgment: J.
        both: passages with label and judgment: the count that is printed.
        label_only: with the label only.
        judgment_only: with the judgment only.
        neither: with none.
        kappa: Cohen's κ of the two-by-two table; None where it is undefined.
    """

    label: tuple[int, ...]
    judgment: tuple[int, ...]
    both: int
    label_only: int
    judgment_only: int
    neither: int
    kappa: float | None


@dataclass(frozen=True, slots=True)
class AgreementTable:
    """One table.

    Attributes:
        layout: what is compared.
        min_answers: n: the label of a passage is its n-th highest grade.
        cells: one row a label set, one column a judgment set.
        totals: passages of each line.
    """

    layout: TableLayout
    min_answers: int
    cells: tuple[tuple[AgreementCell, ...], ...]
    totals: tuple[int, ...]

    @property
    def kappas(self) -> tuple[float | None, ...]:
        """κ of each line: that of the cell whose judgments mean the same."""
        return tuple(row[column].kappa for row, column in zip(self.cells, self.layout.diagonal, strict=True))


def nth_highest(grades: Sequence[float], n: int) -> float:
    """The n-th highest grade; the lowest one with fewer than n grades, as in the program.

    Raises:
        InputError: n is below 1.

    >>> nth_highest([0, 4, 5], 2), nth_highest([3], 2)
    (4, 3)
    """
    if n < 1:
        raise InputError(f"the number of answers is at least 1, not {n}")
    return sorted(grades, reverse=True)[:n][-1]


def agreement_table(passages: Iterable[JudgedPassage], layout: TableLayout, min_answers: int = 1) -> AgreementTable:
    """One table over all passages that have a grade and a judgment.

    Args:
        passages: passages; those without a grade or without a judgment are not counted.
        layout: what is compared.
        min_answers: the label is the n-th highest grade: 1 the maximum grade, 2 and 5 ask that so many items reach it;
            of a passage with fewer grades the lowest one.

    Source: the Rubric workbench's inter-annotator export (Dietz, SIGIR 2024).
    """
    labelled = [
        (nth_highest(passage.grades, min_answers), frozenset(passage.judgments))
        for passage in passages
        if passage.grades and passage.judgments
    ]
    rows = []
    for label in layout.labels:
        chosen = frozenset(label)
        row = []
        for judgment in layout.judgments:
            wanted = frozenset(judgment)
            pairs = [(value in chosen, not wanted.isdisjoint(judged)) for value, judged in labelled]
            both = sum(1 for left, right in pairs if left and right)
            left_only = sum(1 for left, right in pairs if left and not right)
            right_only = sum(1 for left, right in pairs if right and not left)
            neither = len(pairs) - both - left_only - right_only
            kappa = binary_kappa(both, left_only, right_only, neither)
            row.append(AgreementCell(label, judgment, both, left_only, right_only, neither, kappa))
        rows.append(tuple(row))
    totals = tuple(sum(1 for value, _ in labelled if value in label) for label in layout.labels)
    return AgreementTable(layout, min_answers, tuple(rows), totals)


def workbench_tables(
    passages: Iterable[JudgedPassage], min_answers: Sequence[int] = (1, 2, 5), min_judgment: int = 1
) -> list[AgreementTable]:
    """All tables, for each number of answers every layout; see `table_layouts`."""
    kept, layouts = list(passages), table_layouts(min_judgment)
    return [agreement_table(kept, layout, n) for n in min_answers for layout in layouts]


def _set_name(labels: tuple[int, ...]) -> str:
    return "+".join(str(label) for label in sorted(labels))


def tables_report(tables: Sequence[AgreementTable]) -> Report:
    """The tables for reading: the highest count of each column bold, the cell of the line's κ boxed.

    For programs every cell is a row: table, min_answers, label, judgment, counts, and κ with all digits.
    """
    return Report(map(_reading, tables), [_data(tables)], lambda: plain(_content(tables)))


def _reading(table: AgreementTable) -> Table:
    judgments = table.layout.judgments
    highest = [max(row[column].both for row in table.cells) for column in range(len(judgments))]
    rows: list[list[Cell]] = []
    for row, diagonal, total, kappa in zip(table.cells, table.layout.diagonal, table.totals, table.kappas, strict=True):
        counts = [
            Marked(cell.both, "", bold=cell.both == highest[column], boxed=column == diagonal)
            for column, cell in enumerate(row)
        ]
        rows.append([_set_name(row[0].label), *counts, total, None if kappa is None else f"{kappa:.2g}"])
    heads = columns([table.layout.name, *map(_set_name, judgments), "total", "kappa"])
    return Table(heads, rows, f"min answers {table.min_answers}: label (lines) against judgment (columns)")


def _data(tables: Sequence[AgreementTable]) -> Table:
    names = ["table", "min_answers", "label", "judgment", "both", "label_only", "judgment_only", "neither", "kappa"]
    rows: list[list[Cell]] = []
    for table in tables:
        for row in table.cells:
            for cell in row:
                sets = (_set_name(cell.label), _set_name(cell.judgment))
                counts = (cell.both, cell.label_only, cell.judgment_only, cell.neither)
                rows.append([table.layout.name, table.min_answers, *sets, *counts, cell.kappa])
    return Table(columns(names, places=-1), rows)


def _content(tables: Sequence[AgreementTable]) -> dict[str, object]:
    cells = [
        {
            "table": table.layout.name,
            "min_answers": table.min_answers,
            "totals": table.totals,
            "cells": [cell for row in table.cells for cell in row],
        }
        for table in tables
    ]
    return {"format": "rubric_measures agreement-tables 1", "tables": cells}
