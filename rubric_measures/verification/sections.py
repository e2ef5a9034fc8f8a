"""Report sections: what each report shows, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rubric_measures.base.tables import Cell, Column, Report, Table
from rubric_measures.verification.analyses import CheckedQuery, bad_items, grades_by_item, level_of, uncovered_passages

__all__ = [
    "Section",
    "bad_item_section",
    "grading_sections",
    "grid_section",
    "sections_report",
    "uncovered_section",
]


@dataclass(frozen=True)
class Section:
    """One table of a report.

    Attributes:
        kind: which analysis it is of (`grading`, `grid`, `uncovered`, `bad-items`, …).
        title: what an assessor reads above it.
        columns: the names of the columns.
        rows: the cells; None is an undefined value.
        figure: a drawing of the rows as an SVG element, for HTML only: our own markup, whose texts are escaped.
    """

    kind: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    figure: str = ""


def _name(item_id: str, text: str) -> str:
    return f"{text} ({item_id})" if text else item_id


def grading_sections(query: CheckedQuery) -> Iterator[Section]:
    """Verify grading: for each item the grade of every passage beside the answer, best grades first."""
    for item_id, rows in grades_by_item(query).items():
        yield Section(
            "grading",
            f"{query.query_id}: {_name(item_id, query.items[item_id])}",
            ["grade", "status", "judgment", "doc_id", "answer", "text"],
            [[row.grade, row.status, row.judgment, row.doc_id, row.answer, row.text] for row in rows],
        )


def grid_section(query: CheckedQuery) -> Section:
    """The grid: passages × items with `grade` (and the answer, where it is more than the grade), judgments beside."""
    rows: list[list[Cell]] = []
    for passage in query.passages:
        cells: list[Cell] = [passage.doc_id, passage.judgment, passage.best]
        for item_id in query.items:
            row = passage.grades.get(item_id)
            if row is None:
                cells.append(None)
            else:
                grade = row.status if row.grade is None else str(row.grade)
                cells.append(grade if row.answer.strip() in ("", grade) else f"{grade}: {row.answer}")
        rows.append(cells)
    title = f"{query.query_id}: {query.text}" if query.text else query.query_id
    names = [_name(item_id, text) for item_id, text in query.items.items()]
    return Section("grid", title, ["doc_id", "judgment", "best", *names], rows)


def uncovered_section(query: CheckedQuery, min_judgment: int, min_rating: int | None = None) -> Section:
    """Passages judged relevant that no item covers."""
    level = level_of(query, min_rating)
    rows = uncovered_passages(query, min_judgment, level)
    return Section(
        "uncovered",
        f"{query.query_id}: passages judged {min_judgment} or better, no item graded {level} or better",
        ["judgment", "best_grade", "doc_id", "text"],
        [[row.judgment, row.best_grade, row.doc_id, row.text] for row in rows],
    )


def bad_item_section(query: CheckedQuery, min_judgment: int, min_rating: int | None = None) -> Section:
    """Items covered by passages that assessors judged not relevant, most first."""
    level = level_of(query, min_rating)
    rows = bad_items(query, min_judgment, level)
    return Section(
        "bad-items",
        f"{query.query_id}: items graded {level} or better in passages judged below {min_judgment}",
        ["spurious", "relevant", "covering", "item_id", "item"],
        [[row.spurious, row.relevant, row.covering, row.item_id, row.item_text] for row in rows],
    )


def sections_report(sections: Iterable[Section]) -> Report:
    """The sections in all forms, as they come; for programs report and title are columns.

    Args:
        sections: the tables; consumed once.
    """
    return Report(map(_reading, sections), map(_data, sections))


def _reading(section: Section) -> Table:
    heads = [Column(name, is_left=True, width=60) for name in section.columns]
    return Table(heads, section.rows, section.title)


def _data(section: Section) -> Table:
    heads = [Column(name, is_left=True) for name in ("report", "title", *section.columns)]
    return Table(heads, [[section.kind, section.title, *row] for row in section.rows])
