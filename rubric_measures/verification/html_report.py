"""The reports as HTML files without network: a first page that says what to look at, and pages of details behind it.

All of it is one file while that has room; else each further page is a file beside the first one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.tables import Cell, Marked, Undefined, number
from rubric_measures.measures.checked import CheckedQuery
from rubric_measures.pages.frame import (
    PAGE,
    SCRIPT,
    SEARCH,
    Link,
    ReviewAddress,
    page,
    page_text,
    readable,
    rows_in_blocks,
    table,
)
from rubric_measures.pages.frame import REPORT_STYLE as STYLE
from rubric_measures.verification._look_at import LookAt
from rubric_measures.verification._query_pages import query_blocks
from rubric_measures.verification.reports import ReportSettings
from rubric_measures.verification.sections import Section

__all__ = ["LARGEST_PAGE", "write_html"]

# In bytes; browsers open pages of this size at once.
LARGEST_PAGE = 2_000_000

_NAMES = {
    "items": "Item statistics",
    "duplicate-items": "Near-duplicate items",
    "bank-stability": "Size of the bank",
    "bank": "Does the bank hold",
    "bank-ends": "Items at floor and ceiling",
    "bank-against": "Items against the rest",
    "bank-pairs": "Items that the same passages cover",
    "bank-suggestions": "Suggestions",
    "reusability-run": "Reusability: runs left out",
    "graders": "Graders",
    "grader-agreement": "Agreement of graders",
    "disagreements": "Disagreements",
    "calibration": "Calibration",
    "canaries": "Canary suite",
    "fooled": "Canaries that fooled a grader",
}
_HEADS = {
    "query_id": "Query",
    "item_id": "Item id",
    "first_item_id": "Id of the first",
    "second_item_id": "Id of the second",
    "with_item_id": "Id of the other",
    "with": "With",
    "doc_id": "Passage id",
    "llm": "Model",
    "prompt_class": "Prompt",
    "by_relevant": "Relevant passages that cover it",
    "by_not_relevant": "Not relevant ones that cover it",
    "r_judgment": "Correlation with judgments",
    "r_leaderboard": "Correlation with the leaderboard",
    "covered": "Covered by runs",
    "flips": "Pairs of runs that flip without it",
    "tau_mean": "Mean τ",
    "tau_low": "Least τ",
    "tau_high": "Greatest τ",
    "rate": "Share fooled",
}
# What a reader looks for first, and what only programs need.
_FIRST = ("what", "item", "first", "second", "case", "run")
_LAST = ("item_id", "with_item_id", "first_item_id", "second_item_id", "doc_id")


def write_html(
    path: str,
    parts: Iterable[Section | CheckedQuery],
    settings: ReportSettings,
    title: str = "Verification report",
    review: ReviewAddress | None = None,
) -> list[str]:
    """Writes the report; where it takes several files, none of them is left when one cannot be written.

    Args:
        path: the first page; `-` is standard output.
        parts: tables, and queries with their grades; consumed once.
        settings: which of the analyses of queries are shown, and at which levels.
        title: of the pages.
        review: where single grades can be reviewed.

    Returns:
        the files, the first page first.

    Raises:
        InputError: a file cannot be written, or there is more than standard output can take: one page.
    """
    with _Pages(path, title) as pages:
        look = LookAt(settings, review)
        contents: list[tuple[str, Link, int]] = []
        for count, part in enumerate(parts):
            if isinstance(part, Section):
                look.add_section(part)
                place, *_ = [pages.add(block, f"t{count}") for block in _section_blocks(part, f"t{count}")]
                contents.append((_NAMES.get(part.kind, readable(part.kind)), place, len(part.rows)))
            else:
                pages.heading = f"<h2>{page_text(part.text or part.query_id)}, continued</h2>\n"
                look.add(part, query_blocks(part, count, settings, review, pages.add))
        first, *further = look.query_lists() or [""]
        for count, block in enumerate(further):
            # Thousands of queries have their list on pages of their own.
            contents.append(
                ("Queries, continued", pages.add(f'<p id="l{count}"></p>{block}', f"l{count}"), block.count("<tr>"))
            )
        return pages.finish(f"{look.html()}{_contents(contents)}{first}")


class _Pages:
    """Pages that are written as soon as they are full."""

    def __init__(self, path: str, title: str) -> None:
        self._path, self._title = path, title
        self._blocks: list[str] = []
        self._size = 0
        self._written: list[str] = []
        # What a page begins with that goes on with a query.
        self.heading = ""

    def __enter__(self) -> _Pages:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            for name in self._written:
                with contextlib.suppress(OSError):
                    Path(name).unlink()

    def add(self, block: str, anchor: str) -> Link:
        """Puts a block of markup on the page that has room for it; links in it lead to pages by `PAGE`."""
        # Links take room when pages have their names.
        size = len(block.encode("utf-8")) + block.count(PAGE) * len(self._name(1))
        if self._blocks and self._size + size > LARGEST_PAGE * 0.95:
            self._write()
            if self.heading and not block.startswith("<h2"):
                self._blocks.append(self.heading)
        self._blocks.append(block)
        self._size += size
        return Link(len(self._written) + 1, anchor)

    def finish(self, first: str) -> list[str]:
        """Writes what is left, and the first page, whose content is given."""
        size = self._size + len(first.encode("utf-8"))
        if not self._written and size <= LARGEST_PAGE * 0.95:
            self._put(self._path, [first, *self._blocks], one_page=True)
            return [self._path]
        self._write()
        self._put(self._path, [first])
        return [self._path, *self._written]

    def _write(self) -> None:
        if self._path == "-":
            raise InputError("the report takes several pages; name a file for the first one", settings=("output",))
        name = self._name(len(self._written) + 1)
        self._put(name, [f'<p><a href="{page_text(Path(self._path).name)}">What to look at</a></p>\n', *self._blocks])
        self._written.append(name)
        self._blocks.clear()
        self._size = 0

    def _name(self, page: int) -> str:
        path = Path(self._path)
        return os.fspath(path.with_name(f"{path.stem}-{page}{path.suffix}"))

    def _put(self, name: str, blocks: Sequence[str], one_page: bool = False) -> None:
        def linked(block: str) -> str:
            parts = block.split(PAGE)
            # Behind each mark stands the number of the page, and a #.
            return parts[0] + "".join(self._target(part, one_page) for part in parts[1:])

        with atomic_writer(name) as stream:
            body = [
                f"<header><h1>{page_text(self._title)}</h1></header>\n{SEARCH}<main>\n",
                *map(linked, blocks),
                "</main>\n",
            ]
            stream.writelines(page(self._title, body, style=STYLE, script=SCRIPT))

    def _target(self, part: str, one_page: bool) -> str:
        number_of, _, rest = part.partition("#")
        return f"#{rest}" if one_page else f"{page_text(Path(self._name(int(number_of))).name)}#{rest}"


def _contents(contents: Sequence[tuple[str, Link, int]]) -> str:
    if not contents:
        return ""
    links = "".join(
        f'<li><a href="{place.href}">{page_text(name)}</a> ({rows})</li>\n' for name, place, rows in contents
    )
    return f"<h2>Tables</h2>\n<ul>\n{links}</ul>\n"


def _section_blocks(section: Section, anchor: str) -> Iterator[str]:
    """A table, in as many blocks as it needs."""
    order = sorted(range(len(section.columns)), key=lambda place: _rank(section.columns[place]))
    heads = [_HEADS.get(section.columns[place], readable(section.columns[place])) for place in order]
    rows = (
        "<tr>" + "".join(_cell(row[place], section.columns[place]) for place in order) + "</tr>\n"
        for row in section.rows
    )
    name = page_text(_NAMES.get(section.kind, readable(section.kind)))
    for number_of, (body, _) in enumerate(rows_in_blocks(rows)):
        start = f'<h2 id="{anchor}">{name}</h2>\n<p class="note">{page_text(section.title)}</p>\n'
        figure = f"<figure>{section.figure}</figure>\n" if section.figure else ""
        yield (start + figure if number_of == 0 else f"<p>{name}, continued</p>\n") + table(heads, body)


def _rank(column: str) -> tuple[int, int]:
    if column in _FIRST:
        return 0, _FIRST.index(column)
    return (2, _LAST.index(column)) if column in _LAST else (1, 0)


def _cell(cell: Cell, column: str) -> str:
    if isinstance(cell, Undefined):
        return f'<td class="none">– ({page_text(cell.reason)})</td>'
    value = cell.value if isinstance(cell, Marked) else cell
    if value is None:
        return '<td class="none">–</td>'
    if isinstance(value, str):
        kind = ' class="id"' if column in _LAST else ""
        return f'<td dir="auto"{kind}>{page_text(value)}</td>'
    return f'<td class="number">{number(value) if isinstance(value, float) else value}</td>'
