"""Report sections: a title, a table, and the same table as text, Markdown, TSV and JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rubric_measures.leaderboards.output import escaped_markdown
from rubric_measures.verification.analyses import CheckedQuery, bad_items, grades_by_item, uncovered_passages

__all__ = [
    "FORMATS",
    "Section",
    "bad_item_section",
    "grading_sections",
    "grid_section",
    "render_sections",
    "uncovered_section",
    "visible",
]

Cell = str | int | float | None

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Section:
    """One table of a report.

    Attributes:
        kind: which analysis it is of (`grading`, `grid`, `uncovered`, `bad-items`, …).
        title: what a person reads above it.
        columns: the names of the columns.
        rows: the cells; None is an empty cell.
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


def uncovered_section(query: CheckedQuery, min_judgment: int, min_rating: int) -> Section:
    """Passages judged relevant that no item covers."""
    rows = uncovered_passages(query, min_judgment, min_rating)
    return Section(
        "uncovered",
        f"{query.query_id}: passages judged {min_judgment} or better, no item graded {min_rating} or better",
        ["judgment", "best_grade", "doc_id", "text"],
        [[row.judgment, row.best_grade, row.doc_id, row.text] for row in rows],
    )


def bad_item_section(query: CheckedQuery, min_judgment: int, min_rating: int) -> Section:
    """Items covered by passages that people judged not relevant, most first."""
    rows = bad_items(query, min_judgment, min_rating)
    return Section(
        "bad-items",
        f"{query.query_id}: items graded {min_rating} or better in passages judged below {min_judgment}",
        ["spurious", "relevant", "covering", "item_id", "item"],
        [[row.spurious, row.relevant, row.covering, row.item_id, row.item_text] for row in rows],
    )


def visible(text: str) -> str:
    """The text with a mark in the place of every control character: a terminal would obey what a passage says.

    Line breaks and tabs are for the caller to deal with, and stay.
    """
    return _CONTROLS.sub("\ufffd", text)


def _plain(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:.4f}"
    return visible(" ".join(str(cell).split()))


def _shortened(text: str, width: int = 60) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _text(sections: Iterable[Section]) -> Iterator[str]:
    for section in sections:
        yield f"{_plain(section.title)}\n"
        table = [
            list(map(_plain, section.columns)),
            *([_shortened(_plain(cell)) for cell in row] for row in section.rows),
        ]
        widths = [max(len(row[column]) for row in table) for column in range(len(section.columns))]
        for row in table:
            yield "  " + "  ".join(field.ljust(width) for field, width in zip(row, widths, strict=True)).rstrip() + "\n"
        if not section.rows:
            yield "  (none)\n"
        yield "\n"


def _markdown(sections: Iterable[Section]) -> Iterator[str]:
    for section in sections:
        yield f"### {escaped_markdown(_plain(section.title))}\n\n"
        yield f"| {' | '.join(escaped_markdown(_plain(name)) for name in section.columns)} |\n"
        yield f"|{'---|' * len(section.columns)}\n"
        for row in section.rows:
            yield f"| {' | '.join(escaped_markdown(_plain(cell)) for cell in row)} |\n"
        yield "\n"


def _tsv(sections: Iterable[Section]) -> Iterator[str]:
    header: Sequence[str] = ()
    for section in sections:
        columns = ["report", "title", *map(_plain, section.columns)]
        if columns != header:
            header = columns
            yield "\t".join(columns) + "\n"
        for row in section.rows:
            cells = ["" if cell is None else _plain(cell) for cell in row]
            yield "\t".join([section.kind, _plain(section.title), *cells]) + "\n"


def _json_lines(sections: Iterable[Section]) -> Iterator[str]:
    for section in sections:
        for row in section.rows:
            content = {"report": section.kind, "title": section.title, **dict(zip(section.columns, row, strict=True))}
            line = json.dumps(content, ensure_ascii=False, allow_nan=False)
            # The same text: JSON escapes most control characters by itself.
            yield _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", line) + "\n"


FORMATS: dict[str, Callable[[Iterable[Section]], Iterator[str]]] = {
    "text": _text,
    "markdown": _markdown,
    "tsv": _tsv,
    "jsonl": _json_lines,
}


def render_sections(sections: Iterable[Section], output_format: str = "text") -> Iterator[str]:
    """The sections as pieces of text, as they come.

    Args:
        sections: the tables; consumed once.
        output_format: `text` (aligned, long cells shortened), `markdown`, `tsv` (a header wherever the columns
            change), `jsonl` (one object a row, nothing shortened or rounded). The others write numbers with four
            digits, and a mark in the place of each control character.
    """
    return FORMATS[output_format](sections)
