"""The reports as an HTML page without network: three numbers, what to look at, tables, queries with all grades.

Every table of the page is a `Section`. The page shows texts and leads to them where sections have ids.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rubric_measures.base.errors import InputError, UnknownNameError, refuse_ignored, warn
from rubric_measures.base.tables import Cell, Report, Reported, Undefined, number
from rubric_measures.corpora.loading import Bank, File, PassageRecords, bank_of, file_path, listed
from rubric_measures.formats.judged import read_as_records
from rubric_measures.measures.checked import (
    CheckedGrade,
    CheckedQuery,
    bad_items,
    check_records,
    level_of,
    uncovered_passages,
)
from rubric_measures.measures.findings import Looked, say, without_items
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
from rubric_measures.verification import REPORTS, ReportName
from rubric_measures.verification.sections import (
    ALL,
    ANALYSES,
    LEVELLED,
    ItemReport,
    Section,
    item_report,
    item_section,
    query_sections,
    sections_report,
)

_PACKAGE = "rubric_measures.verification"
# How many of each kind the top of the page lists.
_LISTED = 20
_CORRELATIONS = ("r_judgment", "r_leaderboard")
_CELL = ("doc_id", "item_id")
# What the top of the page lists, in which columns.
_LISTS = {
    "spurious": ("item", "query_id", "spurious", "relevant", *_CELL),
    "never": ("item", "query_id", "passages_graded", *_CELL),
    "against": ("item", "query_id", *_CORRELATIONS, *_CELL),
    "uncovered": ("text", "query_id", "judgment", "best_grade", "doc_id"),
    "doubtful": ("item", "text", "query_id", "grade", "why", *_CELL),
}


class _Placed(NamedTuple):
    """Where a query stands, and what it calls its parts.

    Attributes:
        anchor: on the page.
        name: what it is called.
        items: item_id -> its name.
        docs: doc_id -> place among the passages.
        first: item_id -> a passage that was graded for it.
        asked: doc_id -> an item that was asked of it; None where none was.
    """

    anchor: str
    name: str
    items: Mapping[str, str]
    docs: Mapping[str, int]
    first: Mapping[str, str]
    asked: Mapping[str, str | None]

    def item_href(self, item_id: str) -> str:
        """A link to the grades of an item, or to the query."""
        return f"#{self.anchor}" + (f"i{[*self.items].index(item_id)}" if item_id in self.items else "")


class _Blocks:
    """Makes the blocks of the page, and gathers what stands at its top."""

    def __init__(self, least: int, review: ReviewAddress | None) -> None:
        self._least, self._review = least, review
        self._places: dict[str, _Placed] = {}
        self._blocks = environment(_PACKAGE).get_template("blocks.html").module
        # Of each kind what is worth a look, and of how many there are such things; rows are (key, cells).
        self._found: dict[str, list[tuple[tuple[float, ...], list[Cell]]]] = {kind: [] for kind in _LISTS}
        self._totals = dict.fromkeys(("never", "uncovered", "doubtful"), 0)
        self._counts: list[list[Cell]] = []

    def query(self, query: CheckedQuery) -> str:
        """The block of a query: its passages with all grades, the grades of each item, and what is wrong with items."""
        place = self._places[query.query_id] = _Placed(
            f"q{len(self._places)}",
            query.text or query.query_id,
            item_names(query.items),
            {passage.doc_id: number for number, passage in enumerate(query.passages)},
            {item_id: passage.doc_id for passage in reversed(query.passages) for item_id in passage.grades},
            {passage.doc_id: next(iter(passage.grades), None) for passage in query.passages},
        )
        tables = [self._table(self._passages(query, place), f"{place.anchor}p", "Passages")]
        # The table of passages takes the place of the grid.
        for count, section in enumerate(query_sections(query, self._least, ANALYSES - {"grid"})):
            if section.kind == "grading":
                name = place.items[section.about["item_id"]]
                tables.append(self._table(section, place.item_href(section.about["item_id"])[1:], name))
            else:
                tables.append(self._table(section, f"{place.anchor}s{count}"))
        self._look_at_query(query, place)
        return self._blocks.query(place.anchor, query.text, query.query_id, tables)  # type: ignore[no-any-return]

    def _passages(self, query: CheckedQuery, place: _Placed) -> Section:
        """A row a passage: its text, judgment, best grade, and its grade of every item."""
        names = dict(zip(map("item {}".format, range(len(place.items))), place.items.values(), strict=True))
        rows: list[list[Cell]] = []
        for passage in query.passages:
            grades = [passage.grades.get(item_id) for item_id in place.items]
            cells = [row and (row.status if row.grade is None else row.grade) for row in grades]
            rows.append([passage.text, passage.judgment, passage.best, *cells, passage.doc_id])
        columns = ["text", "judgment", "best_grade", *names, "doc_id"]
        about = {"query_id": query.query_id}
        return Section("passages", "", columns, rows, about=about, names=names, scale=query.scale)

    def _look_at_query(self, query: CheckedQuery, place: _Placed) -> None:
        least, level = self._least, level_of(query)

        def is_spurious(one: CheckedGrade) -> bool:
            is_other = one.judgment is not None and one.judgment < least
            return is_other and one.grade is not None and one.grade >= level

        for row in bad_items(query, least):
            given = [one for one in query.rows() if one.item_id == row.item_id]
            if row.spurious:
                key = (row.spurious - row.relevant, row.spurious)
                self._add("spurious", key, row._asdict(), doc_id=next(filter(is_spurious, given)).doc_id)
            elif not row.covering:
                first = place.first.get(row.item_id)
                self._add("never", (len(given),), row._asdict(), passages_graded=len(given), doc_id=first)
        missed = uncovered_passages(query, least)
        for one in missed:
            self._add("uncovered", (one.judgment,), one._asdict())
        for grade in query.rows():
            if grade.grade is None:
                why, doubt = grade.status, (2.0, 0.0)
            elif grade.confidence is not None and grade.confidence < 0.5:
                why, doubt = f"confidence {grade.confidence:.2f}", (1.0, -grade.confidence)
            elif is_spurious(grade):
                why, doubt = "covers, and the passage is judged not relevant", (0.0, grade.grade)
            else:
                continue
            self._add("doubtful", doubt, grade._asdict(), item=grade.item_text, why=why)
        judgments = [one.judgment for one in query.passages if one.judgment is not None]
        self._totals["never"] += len(query.items)
        self._totals["uncovered"] += sum(judgment >= least for judgment in judgments)
        self._totals["doubtful"] += len([*query.rows()])
        self._counts.append([query.query_id, len(query.passages), len(query.items), len(missed)])

    def _name(self, kind: str) -> str:
        """What the page calls an analysis."""
        found: str = self._blocks.names.get(kind) or readable(kind)
        return found

    def _add(self, kind: str, key: tuple[float, ...], row: Mapping[str, Any], **more: Any) -> None:
        said = {**row, **more}
        self._found[kind].append((key, [said[name] for name in _LISTS[kind]]))

    def _lists(self) -> Iterator[Section]:
        """What to look at, when all parts are known."""
        for kind, columns in _LISTS.items():
            rows = self._found[kind]
            worst = heapq.nlargest(_LISTED, enumerate(rows), key=lambda row: (row[1][0], -row[0]))
            says = f"{len(worst)} of {len(rows):,}, the worst first" if len(worst) < len(rows) else str(len(rows))
            yield Section(kind, says, columns, [cells for _, (_, cells) in worst])

    def _look_at_items(self, items: Section) -> None:
        """The items that correlate negatively with the judgments, or with the other items over the runs."""
        for row in items.rows:
            said: dict[str, Any] = dict(zip(items.columns, row, strict=True))
            pair = [r if isinstance(r := said[name], float) else None for name in _CORRELATIONS]
            worst = min((r for r in pair if r is not None), default=0.0)
            if worst < 0:
                first = self._places[said["query_id"]].first.get(said["item_id"])
                self._add("against", (-worst,), said, doc_id=first, **dict(zip(_CORRELATIONS, pair, strict=True)))

    def start(self, items: Section) -> Iterator[str]:
        """Three numbers, what to look at, where the tables are; the statistics of items; the list of all queries."""
        self._look_at_items(items)
        numbers = [
            (f"{len(self._found[one]):,}", f"{total:,}" if total else "", self._name(one), f"#{one}")
            for one, total in self._totals.items()
        ]
        lists = [self._table(one, one.kind) for one in self._lists()]
        statistics = self._table(items, "t0")
        yield self._blocks.start(numbers, lists, "" if self._review is None else self._review.note, [statistics])
        yield self._blocks.table(statistics)
        columns, names = ["query_id", "passages", "items", "uncovered"], {"uncovered": self._name("uncovered")}
        yield self._blocks.table(self._table(Section("queries", "", columns, self._counts, names=names), "queries"))

    def _table(self, section: Section, anchor: str, name: str = "") -> dict[str, Any]:
        """A section as the templates show it: texts for ids, links to what is meant, and the link to review."""
        columns, of_passages = list(section.columns), section.kind == "passages"
        hidden = {"item_id", "status", *([] if of_passages else ["doc_id"])}
        shown = [place for place, column in enumerate(columns) if column not in hidden]
        # What a reader looks for first.
        shown.sort(key=lambda place: ["item", "text", columns[place]].index(columns[place]))
        has_review = self._review is not None and "doc_id" in columns and not of_passages
        rows = []
        for number_of, row in enumerate(section.rows):
            said = {**section.about, **dict(zip(columns, row, strict=True))}
            cells = [self._cell(section, columns[place], row[place], said) for place in shown]
            if has_review:
                cells.append(self._link(said))
            rows.append((f"{anchor}{number_of}" if of_passages else "", cells))
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
        """The link to review; of a passage to the first item that was asked."""
        item_id = said.get("item_id") or self._places[said["query_id"]].asked.get(said["doc_id"])
        if self._review is None or None in (said["doc_id"], item_id):
            return PageCell("")
        return PageCell("review", href=self._review.link(said["query_id"], said["doc_id"], str(item_id)))

    def _cell(self, section: Section, column: str, value: Cell, said: Mapping[str, Any]) -> PageCell:
        place = self._places[said["query_id"]]
        if column == "query_id":
            return PageCell(place.name, "words", f"#{place.anchor}", name=str(value))
        if column == "item":
            item_id = said["item_id"]
            text = str(value or place.items.get(item_id) or item_id)
            return PageCell(text, "words", place.item_href(item_id), name=item_id)
        if column == "text":
            start = snippet(str(value))
            if section.kind == "passages":
                return PageCell(start, "words text", whole=str(value) if start.endswith("…") else "")
            return PageCell(start, "words", f"#{place.anchor}p{place.docs[said['doc_id']]}")
        if isinstance(value, Undefined):
            return PageCell(f"– ({value.reason})", "none")
        if isinstance(value, str):
            return PageCell(value, "id" if column == "doc_id" else "text" if len(value) > 60 or "\n" in value else "")
        if not isinstance(value, int | float):
            return PageCell(str(said.get("status", "–")) if column == "grade" else "–", "none number")
        if section.scale is not None and (column in section.names or column == "grade"):
            covers = column in section.names and value >= section.scale.covers
            return PageCell(plain_number(value), shade(value, section.scale) + (" covers" if covers else ""))
        if isinstance(value, int) or column in ("judgment", "best_grade", "grade", "relevant"):
            return PageCell(str(value) if isinstance(value, int) else plain_number(value), "number")
        return PageCell(number(value).replace("-", "−"), "number")


@dataclass(frozen=True, repr=False)
class Reports(Reported):
    """A report with which assessors check grades and banks; it is computed while it is written, once.

    Attributes:
        source: the records.
        bank: the test bank, where it is known.
        parts: what it consists of: analyses of queries, and statistics.
        wanted: the grades.
        queries: only these; None takes all.
        least: the least judgment that is relevant.
    """

    source: GradedFile
    bank: TestBank | None
    parts: frozenset[str]
    wanted: Grader
    queries: Sequence[str] | None
    least: int

    def report(self) -> Report:
        """The tables, as they come."""
        return sections_report(self.sections())

    def save(self, path: str, review: ReviewAddress | None = None) -> None:
        """Writes a page for a browser.

        Args:
            path: the page; `-` is standard output.
            review: where single grades can be reviewed.

        Raises:
            InputError: the file cannot be written, or the report is not all of them.
        """
        if self.parts != ALL:
            raise InputError("a page shows all reports; ask for all of them, or for another form")
        found, statistics = _Blocks(self.least, review), self._statistics()
        queries = [*map(found.query, self._analyses())]
        blocks = [*found.start(statistics), *queries]
        title = f"Verification of {Path(self.source.name).name}"
        write_page(path, page("verification.html", title, _PACKAGE, blocks=blocks))

    def chosen(self) -> Iterator[QueryPassages]:
        """The queries that are wanted, with all their passages.

        Raises:
            InputError: at the end, where a wanted query is not there.
        """
        wanted = set(self.queries or ())
        seen: set[str] = set()
        for group in self.source:
            seen.add(group.query_id)
            if not wanted or group.query_id in wanted:
                yield group
        if missing := sorted(wanted - seen):
            raise InputError(f"{self.source.name}: has no query {missing[0]!r}")

    def sections(self) -> Iterator[Section]:
        """The sections of the reports: first the statistics, then the analyses, query by query.

        Raises:
            InputError: the records lack the grades.
        """
        if "item-statistics" in self.parts:
            yield self._statistics()
        if ANALYSES & self.parts:
            for query in self._analyses():
                yield from query_sections(query, self.least, self.parts)

    def _refuse(self, selector: GradeSetSelector, is_done: bool = True) -> None:
        """Refuses records without grades, and what no passage covers where some grades were never asked."""
        if is_done and not selector.found:
            raise selector.nothing_found(" of items in the bank" * (self.bank is not None))
        if LEVELLED & self.parts and selector.asked_for:
            text = f"{self.source.name}: {PARTIAL}, and only all grades tell what covers nothing"
            raise InputError(f"{text}; grade all, or ask for another report")

    def _analyses(self) -> Iterator[CheckedQuery]:
        selector = GradeSetSelector(self.wanted, self.source.name)
        for query in check_records(self.chosen(), selector, self.bank):
            self._refuse(selector, is_done=False)
            yield query
        self._refuse(selector)
        # Statistics say it, too.
        if "item-statistics" not in self.parts:
            selector.note_counts()

    def _statistics(self) -> Section:
        """Statistics of items."""
        selector = GradeSetSelector(self.wanted, self.source.name)
        queries = [select_query(group, selector, self.bank) for group in self.chosen()]
        self._refuse(selector)
        report = item_report(queries, self.least)
        looked = Looked()
        for query in queries:
            looked.add(query.grades, {})
        say(looked.notes((), report.level))
        self._note(report, selector)
        return item_section(report, self.least)

    def _note(self, report: ItemReport, selector: GradeSetSelector) -> None:
        note_left_out(selector.left_out)
        text = "failed grades (%d): what is counted of passages leaves them out, and scores of runs count them as they "
        warn(text + "are expected to cover", sum(row.failed for row in report.statistics))
        selector.note_counts()
        # What queries that the user left out lack is nothing to say.
        in_bank = {} if self.bank is None or self.queries else self.bank.items
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
    if report not in REPORTS:
        raise UnknownNameError("report", report, REPORTS)
    parts = ALL if report == "all" else frozenset((report,))
    if min_judgment is not None and not LEVELLED & parts:
        refuse_ignored(["min_judgment"], f"in the report {report}")
    known = bank_of(bank)
    with file_path(graded) as path:
        source = read_as_records(path)
    if not isinstance(graded, str | os.PathLike):
        # The file was a copy.
        source.name = Path(source.name).name
    least = 1 if min_judgment is None else min_judgment
    return Reports(source, known, parts, Grader.parse(grader), None if queries is None else listed(queries), least)
