"""The reports with which assessors check grades and banks: those that are asked for, section by section.

Sections: what each report shows, as tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from rubric_measures.base.errors import counted
from rubric_measures.base.tables import Cell, Column, Report, Table
from rubric_measures.measures.checked import (
    CheckedQuery,
    bad_items,
    grades_by_item,
    level_of,
    uncovered_passages,
)
from rubric_measures.types.scales import Scale
from rubric_measures.verification.banks import ItemReport


@dataclass(frozen=True)
class Section:
    """One table of a report; text, data for programs and pages are made of it.

    Attributes:
        kind: which analysis it is of (`grading`, `grid`, `uncovered`, `bad-items`, …).
        title: what an assessor reads above it.
        columns: the names of the columns. Those that end in `id` are ids: pages show the texts that these have.
        rows: the cells; None is an undefined value.
        about: ids that all rows have, and no column: `query_id`, `item_id`.
        names: what heads of columns say on pages, where it is not their name in other words.
        scale: of the grades in its cells, for colours of pages.
    """

    kind: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    about: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    scale: Scale | None = None


def _of_fields(kind: str, title: str, columns: Sequence[str], rows: Iterable[object], **more: Any) -> Section:
    """A table of rows whose attributes are called as its columns are."""
    return Section(kind, title, columns, [[getattr(row, name) for name in columns] for row in rows], **more)


def _name(item_id: str, text: str) -> str:
    return f"{text} ({item_id})" if text else item_id


def grading_sections(query: CheckedQuery) -> Iterator[Section]:
    """Verify grading: for each item the grade of every passage beside the answer, best grades first.

    Where the records keep distributions over grades, the probability of the most probable one is the confidence. Where
    the model gave reasons, they have a column of their own.
    """
    sure = ["confidence"] * any(row.confidence is not None for row in query.rows())
    reason = ["reason"] * any(row.reason for row in query.rows())
    columns = ["grade", *sure, "status", "judgment", "doc_id", *reason, "answer", "text"]
    for item_id, rows in grades_by_item(query).items():
        title = f"{query.query_id}: {_name(item_id, query.items[item_id])}"
        about = {"query_id": query.query_id, "item_id": item_id}
        yield _of_fields("grading", title, columns, rows, about=about, scale=query.scale)


def grid_section(query: CheckedQuery) -> Section:
    """The grid: passages × items with `grade` and its reason (or the answer, where it says more), judgments beside."""
    rows: list[list[Cell]] = []
    for passage in query.passages:
        cells: list[Cell] = [passage.doc_id, passage.judgment, passage.best]
        for item_id in query.items:
            row = passage.grades.get(item_id)
            if row is None:
                cells.append(None)
            else:
                grade = row.status if row.grade is None else str(row.grade)
                said = row.reason or row.answer
                cells.append(grade if said.strip() in ("", grade) else f"{grade}: {said}")
        rows.append(cells)
    title = f"{query.query_id}: {query.text}" if query.text else query.query_id
    names = [_name(item_id, text) for item_id, text in query.items.items()]
    return Section("grid", title, ["doc_id", "judgment", "best", *names], rows)


def uncovered_section(query: CheckedQuery, min_judgment: int) -> Section:
    """Passages judged relevant that no item covers."""
    level = level_of(query)
    title = f"{query.query_id}: passages judged {min_judgment} or better, no item graded {level} or better"
    rows, about = uncovered_passages(query, min_judgment), {"query_id": query.query_id}
    columns = ["judgment", "best_grade", "doc_id", "text"]
    return _of_fields("uncovered", title, columns, rows, about=about, scale=query.scale)


def bad_item_section(query: CheckedQuery, min_judgment: int) -> Section:
    """Items covered by passages that assessors judged not relevant, most first."""
    level = level_of(query)
    title = f"{query.query_id}: items graded {level} or better in passages judged below {min_judgment}"
    columns, about = ["spurious", "relevant", "covering", "item_id", "item"], {"query_id": query.query_id}
    return _of_fields("bad-items", title, columns, bad_items(query, min_judgment), about=about)


def sections_report(sections: Iterable[Section]) -> Report:
    """The sections in all forms, as they come; for programs report and title are columns."""
    return Report(map(_reading, sections), map(_data, sections))


def _reading(section: Section) -> Table:
    heads = [Column(name, is_left=True, width=60) for name in section.columns]
    return Table(heads, section.rows, section.title)


def _data(section: Section) -> Table:
    heads = [Column(name, is_left=True) for name in ("report", "title", *section.columns)]
    return Table(heads, [[section.kind, section.title, *row] for row in section.rows])


def item_section(report: ItemReport, min_judgment: int) -> Section:
    """Item statistics."""
    covered = "" if report.level is None else f" from grade {report.level}"
    return _of_fields(
        "items",
        f"Items: covered{covered}, relevant from judgment {min_judgment}, {counted(report.runs, 'run')}",
        ["query_id", "graded", "failed", "covering", "by_relevant", "by_not_relevant", "r_judgment", "r_leaderboard",
         "covered", "flips", "item_id", "item"],
        report.statistics,
    )  # fmt: skip


ANALYSES = frozenset(("grading", "grid", "uncovered-passages", "bad-questions"))
ALL = ANALYSES | {"item-statistics"}
# Those that ask which grade covers an item, and look at judgments.
LEVELLED = frozenset(("uncovered-passages", "bad-questions", "item-statistics"))


def query_sections(query: CheckedQuery, least: int, parts: AbstractSet[str]) -> Iterator[Section]:
    """These analyses of a query."""
    if "grading" in parts:
        yield from grading_sections(query)
    if "grid" in parts:
        yield grid_section(query)
    if "uncovered-passages" in parts:
        yield uncovered_section(query, least)
    if "bad-questions" in parts:
        yield bad_item_section(query, least)
