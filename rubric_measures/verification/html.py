"""The reports as an HTML page without network: three numbers, what to look at, tables, queries with all grades.

Every table of the page is a `Section`. The page shows texts and leads to them where sections have ids.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rubric_measures.base.errors import InputError, tell, warn
from rubric_measures.base.tables import Cell, Marked, Report, Reported, Undefined, number
from rubric_measures.corpora.loading import Bank, File, PassageRecords, bank_of, file_path, listed
from rubric_measures.formats.judged import read_as_records
from rubric_measures.measures.checked import CheckedQuery, bad_items, check_records, level_of, uncovered_passages
from rubric_measures.measures.findings import say, without_items
from rubric_measures.measures.grade_sets import Grader, GradeSetSelector
from rubric_measures.measures.grades import PARTIAL, note_left_out
from rubric_measures.measures.loading import select_query
from rubric_measures.pages.frame import (
    PageCell,
    ReviewAddress,
    environment,
    item_names,
    page,
    plain_number,
    readable,
    shade,
    snippet,
    write_page,
)
from rubric_measures.records.models import GradedFile, QueryPassages
from rubric_measures.types.entities import TestBank
from rubric_measures.verification import ReportName
from rubric_measures.verification.banks import ItemReport, item_report
from rubric_measures.verification.sections import (
    ANALYSES,
    LEVELLED,
    ReportSettings,
    Section,
    item_section,
    query_sections,
    sections_report,
)

_PACKAGE = "rubric_measures.verification"
# In characters; larger ones take browsers seconds to open.
_LARGE = 20_000_000
# How many of each kind the first page lists.
_LISTED = 20
# Columns with texts of items, and those with their ids.
_ITEMS = {"item": "item_id"}
# What a reader looks for first.
_FIRST = ("what", "item", "item_id", "text")
_CORRELATIONS = ("r_judgment", "r_leaderboard")
_CELL = ("doc_id", "item_id")
# What the first page lists, of which analysis, in which columns.
_LISTS = {
    "spurious": ("bad-questions", ("item", "query_id", "spurious", "relevant", *_CELL)),
    "never": ("bad-questions", ("item", "query_id", "passages_graded", *_CELL)),
    "against": ("", ("item", "query_id", *_CORRELATIONS, *_CELL)),
    "uncovered": ("uncovered-passages", ("text", "query_id", "judgment", "best_grade", "doc_id")),
    "doubtful": ("grading", ("item", "text", "query_id", "grade", "why", *_CELL)),
}


@dataclass
class _Placed:
    """Where a query stands, and what it calls its parts.

    Attributes:
        anchor: on the page.
        name: what it is called.
        items: item_id -> its name.
        docs: doc_id -> place among the passages.
        first: item_id -> a passage that was graded for it.
        shown: letters of the parts with an anchor of their own: `p`assages, `i`tems.
    """

    anchor: str = ""
    name: str = ""
    items: Mapping[str, str] = field(default_factory=dict)
    docs: Mapping[str, int] = field(default_factory=dict)
    first: Mapping[str, str] = field(default_factory=dict)
    shown: str = ""

    def href(self, part: str = "", place: int | None = None) -> str:
        """A link to the query, or to one of its parts."""
        if not self.anchor or (part and (place is None or part not in self.shown)):
            return ""
        return f"#{self.anchor}{part}{'' if place is None else place}"

    def item_href(self, item_id: str) -> str:
        """A link to the grades of an item, or to the query."""
        return (item_id in self.items and self.href("i", [*self.items].index(item_id))) or self.href()


_NOWHERE = _Placed()


class _Blocks:
    """Makes the blocks of the page, and gathers what stands at its top."""

    def __init__(self, settings: ReportSettings, review: ReviewAddress | None, bank: TestBank | None) -> None:
        self._settings, self._review = settings, review
        # The table of passages takes the place of the grid.
        self._asked = settings.parts - {"grid"}
        self._places: dict[str, _Placed] = {}
        self._queries = {} if bank is None else bank.query_texts
        self._blocks = environment(_PACKAGE).get_template("blocks.html").module
        # Of each kind what is worth a look, and of how many there are such things; rows are (key, cells).
        self._found: dict[str, list[tuple[tuple[float, ...], list[Cell]]]] = {}
        self._totals = dict.fromkeys(("never", "uncovered", "doubtful"), 0)
        self._counts: list[list[Cell]] = []

    def query(self, query: CheckedQuery) -> str:
        """The block of a query: its passages with all grades, the grades of each item, and what is wrong with items."""
        parts = self._settings.parts
        has_passages = {"grading", "grid", "uncovered-passages"} & parts
        place = self._places[query.query_id] = _Placed(
            f"q{len(self._places)}",
            query.text or query.query_id,
            item_names(query.items),
            {passage.doc_id: number for number, passage in enumerate(query.passages)},
            {item_id: passage.doc_id for passage in reversed(query.passages) for item_id in passage.grades},
            ("p" if has_passages else "") + ("i" if "grading" in parts else ""),
        )
        tables = [self._table(self._passages(query, place), f"{place.anchor}p", "Passages")] if has_passages else []
        for count, section in enumerate(query_sections(query, self._settings, self._asked)):
            if section.kind == "grading":
                name = place.items[section.about["item_id"]]
                tables.append(self._table(section, place.item_href(section.about["item_id"])[1:], name))
            else:
                tables.append(self._table(section, f"{place.anchor}s{count}"))
        self._look_at_query(query)
        return self._blocks.query(place.anchor, query.text, query.query_id, tables)  # type: ignore[no-any-return]

    def _passages(self, query: CheckedQuery, place: _Placed) -> Section:
        """A row a passage: its text, judgment, best grade, and its grade of every item."""
        names = dict(zip(map("item {}".format, range(len(place.items))), place.items.values(), strict=True))
        if "grid" not in self._settings.parts:
            names = {}
        covers = None if query.scale is None else query.scale.covers
        rows: list[list[Cell]] = []
        for passage in query.passages:
            cells: list[Cell] = []
            for item_id in place.items if names else ():
                row = passage.grades.get(item_id)
                if row is None or row.grade is None:
                    cells.append(row and row.status)
                else:
                    cells.append(Marked(row.grade, "", bold=covers is not None and row.grade >= covers))
            rows.append([passage.text, passage.judgment, passage.best, *cells, passage.doc_id])
        columns = ["text", "judgment", "best_grade", *names, "doc_id"]
        about = {"query_id": query.query_id}
        return Section("passages", "", columns, rows, about=about, names=names, scale=query.scale)

    def _look_at_query(self, query: CheckedQuery) -> None:
        least, parts, query_id = self._settings.least, self._settings.parts, query.query_id
        place = self._places[query_id]
        if "bad-questions" in parts:
            level = level_of(query)
            self._totals["never"] += len(query.items)
            for row in bad_items(query, least):
                given = [one for one in query.rows() if one.item_id == row.item_id]
                if row.spurious:
                    doc_id = next(
                        one.doc_id
                        for one in given
                        if one.judgment is not None and one.judgment < least
                        and one.grade is not None and one.grade >= level
                    )  # fmt: skip
                    key = (row.spurious - row.relevant, row.spurious)
                    self._add("spurious", key, row._asdict(), doc_id=doc_id)
                elif not row.covering:
                    first = place.first.get(row.item_id)
                    self._add("never", (len(given),), row._asdict(), passages_graded=len(given), doc_id=first)
        missed = uncovered_passages(query, least) if "uncovered-passages" in parts else []
        for one in missed:
            self._add("uncovered", (one.judgment,), one._asdict())
        judgments = [one.judgment for one in query.passages if one.judgment is not None]
        self._totals["uncovered"] += sum(judgment >= least for judgment in judgments)
        covers = None if query.scale is None else query.scale.covers
        for grade in query.rows() if "grading" in parts else ():
            self._totals["doubtful"] += 1
            if grade.grade is None:
                why, doubt = grade.status, 3.0
            elif grade.confidence is not None and grade.confidence < 0.5:
                why, doubt = f"confidence {grade.confidence:.2f}", 2.0 - grade.confidence
            elif covers is None or query.scale is None or grade.grade < covers:
                continue
            elif grade.judgment is not None and grade.judgment < least:
                why, doubt = "covers, and the passage is judged not relevant", grade.grade / (query.scale.highest or 1)
            else:
                continue
            self._add("doubtful", (doubt,), grade._asdict(), item=grade.item_text, why=why)
        missing: list[Cell] = [len(missed)] if "uncovered-passages" in parts else []
        self._counts.append([query_id, len(query.passages), len(query.items), *missing])

    def _name(self, kind: str) -> str:
        """What the pages call an analysis."""
        found: str = self._blocks.names.get(kind) or readable(kind)
        return found

    def _add(self, kind: str, key: tuple[float, ...], row: Mapping[str, Any], **more: Any) -> None:
        said = {**row, **more}
        self._found.setdefault(kind, []).append((key, [said[name] for name in _LISTS[kind][1]]))

    def _lists(self, sections: Sequence[Section]) -> Iterator[Section]:
        """What to look at, when all parts are known."""
        for section in sections:
            self._look_at_items(section)
        for kind, (part, columns) in _LISTS.items():
            rows = self._found.get(kind, [])
            if part in self._settings.parts or kind in self._found:
                worst = heapq.nlargest(_LISTED, enumerate(rows), key=lambda row: (row[1][0], -row[0]))
                says = f"{len(worst)} of {len(rows):,}, the worst first" if len(worst) < len(rows) else str(len(rows))
                yield Section(kind, says, columns, [cells for _, (_, cells) in worst])

    def _look_at_items(self, section: Section) -> None:
        """The items that correlate negatively with the judgments, or with the other items over the runs."""
        for row in section.rows:
            said: dict[str, Any] = dict(zip(section.columns, row, strict=True))
            pair = [r if isinstance(r := said[name], float) else None for name in _CORRELATIONS]
            worst = min((r for r in pair if r is not None), default=0.0)
            if worst < 0:
                first = self._places.get(said["query_id"], _NOWHERE).first.get(said["item_id"])
                self._add("against", (-worst,), said, doc_id=first, **dict(zip(_CORRELATIONS, pair, strict=True)))

    def start(self, sections: Sequence[Section]) -> Iterator[str]:
        """Three numbers, what to look at, where the tables are; the tables of statistics; the list of all queries."""
        found = [*self._lists(sections)]
        totals = {one: f"{total:,}" for one, total in self._totals.items() if total}
        listed = sorted((one.kind for one in found), key=totals.__contains__, reverse=True)
        counts = {one: f"{len(self._found.get(one, ())):,}" for one in listed}
        numbers = [(count, totals.get(one, ""), self._name(one), f"#{one}") for one, count in counts.items()]
        lists = [self._table(one, one.kind) for one in found]
        note = self._review.note if self._review is not None and self._places else ""
        tables = [self._table(one, f"t{number}") for number, one in enumerate(sections)]
        yield self._blocks.start(numbers[:3], lists, note, tables)
        missed = ["uncovered"] * ("uncovered-passages" in self._settings.parts)
        names = {"uncovered": self._name("uncovered")}
        queries = Section("queries", "", ["query_id", "passages", "items", *missed], self._counts, names=names)
        for table in [*tables, *([self._table(queries, "queries")] if self._counts else [])]:
            yield self._blocks.table(table)

    def _table(self, section: Section, anchor: str, name: str = "") -> dict[str, Any]:
        """A section as the templates show it: texts for ids, links to what is meant, and the link to review."""
        columns = list(section.columns)
        ids = {*_ITEMS.values()} - {"item_id"} | ({"item_id"} & ({*columns} if "item" in columns else set()))
        if {"text", "item"} & {*columns} and section.kind != "passages":
            ids.add("doc_id")
        if "grade" in columns:
            ids.add("status")
        shown = [place for place, column in enumerate(columns) if column not in ids]
        shown.sort(key=lambda place: _FIRST.index(columns[place]) if columns[place] in _FIRST else len(_FIRST))
        has_review = self._review is not None and "doc_id" in columns and section.kind != "passages"
        has_review = has_review and bool(self._places)
        rows = []
        for number_of, row in enumerate(section.rows):
            said = {**section.about, **dict(zip(columns, row, strict=True))}
            cells = [self._cell(section, columns[place], row[place], said) for place in shown]
            if has_review:
                cells.append(self._link(said))
            rows.append((f"{anchor}{number_of}" if section.kind == "passages" else "", cells))
        names = {**self._blocks.heads, **section.names}
        heads = [names.get(columns[place]) or readable(columns[place]) for place in shown]
        kinds = ["number" if any(cells[at].kind == "number" for _, cells in rows) else "" for at in range(len(shown))]
        return {
            "anchor": anchor,
            "name": name or self._name(section.kind),
            # That of the grades of an item is its name.
            "says": "" if section.kind == "grading" else section.title,
            "count": len(rows),
            "heads": [*zip(heads, kinds, strict=True), *([("Review", "")] if has_review else [])],
            "rows": rows,
        }

    def _link(self, said: Mapping[str, Any]) -> PageCell:
        """The link to review; of a passage to its first item."""
        query_id, doc_id = said.get("query_id"), said["doc_id"]
        item_id = said.get("item_id") or next(iter(self._places.get(str(query_id), _NOWHERE).items), None)
        if self._review is None or None in (query_id, doc_id, item_id):
            return PageCell("")
        return PageCell("review", href=self._review.link(str(query_id), doc_id, str(item_id)))

    def _cell(self, section: Section, column: str, cell: Cell, said: Mapping[str, Any]) -> PageCell:
        place = self._places.get(str(said.get("query_id")), _NOWHERE)
        value = cell.value if isinstance(cell, Marked) else cell
        if column == "query_id":
            query = place.name or self._queries.get(str(value)) or str(value)
            return PageCell(query, "words", place.href(), name=str(value))
        if (id_of := _ITEMS.get(column, column)) in said and id_of.endswith("item_id"):
            item_id = str(said[id_of])
            text = (value if column in _ITEMS else None) or place.items.get(item_id) or said[id_of] or "–"
            return PageCell(str(text), "words", place.item_href(item_id), name=item_id)
        if isinstance(value, Undefined):
            return PageCell(f"– ({value.reason})", "none")
        if isinstance(value, str):
            return self._text(section, column, value, place, said)
        if not isinstance(value, int | float):
            return PageCell(str(said.get("status", "–")) if column == "grade" else "–", "none number")
        if section.scale is not None and (isinstance(cell, Marked) or column == "grade"):
            covers = isinstance(cell, Marked) and cell.bold
            return PageCell(plain_number(value), shade(value, section.scale) + (" covers" if covers else ""))
        if isinstance(value, int) or column in ("judgment", "best_grade", "grade", "relevant"):
            return PageCell(str(value) if isinstance(value, int) else plain_number(value), "number")
        return PageCell(number(value).replace("-", "−"), "number")

    def _text(self, section: Section, column: str, value: str, place: _Placed, said: Mapping[str, Any]) -> PageCell:
        """A text; one of a passage leads to all of it, or opens to it."""
        href = place.href("p", place.docs.get(str(said.get("doc_id"))))
        if column == "doc_id":
            return PageCell(value, "id", "" if section.kind == "passages" else href)
        if column != "text":
            return PageCell(value, "text" if len(value) > 60 or "\n" in value else "")
        start = snippet(value)
        if href and section.kind != "passages":
            return PageCell(start, "words", href)
        return PageCell(start, "words text", whole=value if start.endswith("…") else "")


@dataclass(frozen=True, repr=False)
class Reports(Reported):
    """A report with which assessors check grades and banks; it is computed while it is written, once.

    Attributes:
        source: the records.
        bank: the test bank, where it is known.
        settings: which report, about which grades.
    """

    source: GradedFile
    bank: TestBank | None
    settings: ReportSettings

    def report(self) -> Report:
        """The tables, as they come."""
        return sections_report(self.sections())

    def save(self, path: str, review: ReviewAddress | None = None) -> None:
        """Writes a page for a browser.

        Args:
            path: the page; `-` is standard output.
            review: where single grades can be reviewed.

        Raises:
            InputError: the file cannot be written.
        """
        found, sections, queries = _Blocks(self.settings, review, self.bank), list[Section](), list[str]()
        for part in self.parts():
            if isinstance(part, Section):
                sections.append(part)
            else:
                queries.append(found.query(part))
        blocks = [*found.start(sections), *queries]
        if (size := sum(map(len, blocks))) > _LARGE:
            tell("the page has %d MB, and browsers open it slowly; choose some queries for smaller ones", size / 1e6)
        title = f"Verification of {Path(self.source.name).name}"
        write_page(path, page("verification.html", title, _PACKAGE, blocks=blocks))

    def chosen(self) -> Iterator[QueryPassages]:
        """The queries that are wanted, with all their passages.

        Raises:
            InputError: at the end, where a wanted query is not there.
        """
        wanted = set(self.settings.queries or ())
        seen: set[str] = set()
        for group in self.source:
            seen.add(group.query_id)
            if not wanted or group.query_id in wanted:
                yield group
        if missing := sorted(wanted - seen):
            raise InputError(f"{self.source.name}: has no query {missing[0]!r}")

    def sections(self) -> Iterator[Section]:
        """The sections of the reports: first the statistics, then the analyses, query by query; see `parts`."""
        for part in self.parts():
            if isinstance(part, Section):
                yield part
            else:
                yield from query_sections(part, self.settings, self.settings.parts)

    def parts(self) -> Iterator[Section | CheckedQuery]:
        """The sections of the statistics, then the queries that the analyses are about.

        Raises:
            InputError: the records lack the grades.
        """
        if "item-statistics" in self.settings.parts:
            yield self._statistics()
        if ANALYSES & self.settings.parts:
            yield from self._analyses()

    def _refuse(self, found: object, asked_for: object = None) -> None:
        """Refuses records without grades, and what no passage covers where some grades were never asked."""
        if not found:
            raise InputError(f"{self.source.name}: holds no grades that pass the filter; are its passages graded?")
        if LEVELLED & self.settings.parts and asked_for:
            text = f"{self.source.name}: {PARTIAL}, and what covers nothing is known of all grades alone"
            raise InputError(f"{text}; grade all, or ask for another report")

    def _analyses(self) -> Iterator[CheckedQuery]:
        selector = GradeSetSelector(self.settings.wanted, self.source.name)
        for query in check_records(self.chosen(), selector, self.bank):
            self._refuse(True, selector.asked_for)
            yield query
        self._refuse(selector.found)

    def _statistics(self) -> Section:
        """Statistics of items."""
        settings, selector = self.settings, GradeSetSelector(self.settings.wanted, self.source.name)
        queries = [select_query(group, selector, self.bank) for group in self.chosen()]
        self._refuse(True, selector.asked_for)
        report = item_report(queries, settings.least)
        self._refuse(selector.found)
        self._note(report, selector)
        return item_section(report, settings.least)

    def _note(self, report: ItemReport, selector: GradeSetSelector) -> None:
        note_left_out(selector.left_out)
        text = "failed grades (%d): what is counted of passages leaves them out, and scores of runs count them as they "
        warn(text + "are expected to cover", sum(row.failed for row in report.statistics))
        selector.note_counts()
        # What queries that the user left out lack is nothing to say.
        in_bank = {} if self.bank is None or self.settings.queries else self.bank.items
        silent = {query_id for query_id, items in in_bank.items() if items} - set(report.queries)
        text = "no passages in %s for %d queries of the bank (such as %s); in no statistics: %d items"
        lost = sum(len(in_bank[query_id]) for query_id in silent)
        warn(text, self.source.name, len(silent), min(silent, default=""), lost)
        say(without_items({*report.without_items, *(query_id for query_id, items in in_bank.items() if not items)}))


def verify(
    report: ReportName,
    graded: File | PassageRecords,
    *,
    bank: Bank | None = None,
    grader: str | Grader | None = None,
    min_judgment: int | None = None,
    queries: str | Sequence[str] | None = None,
) -> Reports:
    """A report with which assessors check grades and banks.

    Args:
        report: one of `REPORTS`.
        graded: graded records, or a table of grades. In Python also what `grade` returns.
        bank: the test bank.
        grader: whose grades are looked at; see `load`.
        min_judgment: the least judgment that is relevant (default 1).
        queries: only these queries.

    Raises:
        InputError: a setting is wrong or would have no effect.
        UnknownNameError: there is no such report.
    """
    wanted = None if queries is None else listed(queries)
    settings = ReportSettings(report, Grader.parse(grader), wanted, min_judgment)
    known = bank_of(bank)
    with file_path(graded) as path:
        source = read_as_records(path)
    if not isinstance(graded, str | os.PathLike):
        # The file was a copy.
        source.name = Path(source.name).name
    return Reports(source, known, settings)
