"""The reports with which assessors check grades and banks: those that are asked for, section by section.

Sections: what each report shows, as tables.

The bank as sections: items, pairs, stability; and what to do about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from rubric_measures.base.errors import InputError, UnknownNameError, counted
from rubric_measures.base.tables import Cell, Column, Report, Table, Undefined
from rubric_measures.measures.checked import (
    CheckedQuery,
    bad_items,
    grades_by_item,
    level_of,
    uncovered_passages,
)
from rubric_measures.measures.grade_sets import (
    Grader,
)
from rubric_measures.measures.loading import RecordQuery
from rubric_measures.types.scales import Scale
from rubric_measures.verification import REPORTS
from rubric_measures.verification.banks import (
    ItemReport,
    ItemStatistics,
    RedundantPair,
    bank_halves,
    items_against,
    redundant_pairs,
)


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


_FEW_RUNS = "fewer than two runs, or all of them tied"


def _said(value: float | None, reason: str) -> Cell:
    return Undefined(reason) if value is None else value


def item_section(report: ItemReport, min_judgment: int) -> Section:
    """Item statistics."""
    runs = len(report.coverage.runs)
    covered = "" if report.level is None else f" from grade {report.level}"
    return _of_fields(
        "items",
        f"Items: covered{covered}, relevant from judgment {min_judgment}, {counted(runs, 'run')}",
        ["query_id", "graded", "failed", "covering", "by_relevant", "by_not_relevant", "r_judgment", "r_leaderboard",
         "covered", "flips", "item_id", "item"],
        report.statistics,
    )  # fmt: skip


def bank_sections(report: ItemReport, queries: Sequence[RecordQuery]) -> Iterator[Section]:
    """Does the bank hold, and what to split, merge, reword and retire.

    Args:
        report: the item statistics.
        queries: the grades that they are of.
    """
    runs = len(report.coverage.runs)
    ends = _at_ends(report)
    against = items_against(report.statistics, runs)
    pairs = [pair for query in queries for pair in redundant_pairs(query)]
    pairs.sort(key=lambda one: (-one.kappa, one.query_id, one.first))
    yield _overview(report, ends, against, pairs)
    text = {(row.query_id, row.item_id): row.item for row in report.statistics}
    yield Section(
        "bank-ends",
        "Items that separate no runs: none covers them (floor), or all do (ceiling)",
        ["query_id", "end", "graded", "covering", "item_id", "item"],
        [[row.query_id, end, row.graded, row.covering, row.item_id, row.item] for row, end in ends],
    )
    yield _suggestions(report, ends, against, pairs, text)


def _at_ends(report: ItemReport) -> list[tuple[ItemStatistics, str]]:
    """Items that no run covers, or all of those of which it is known."""
    ends = {}
    for query_id, items in report.coverage.items.items():
        known, covered = report.coverage.known(query_id), report.coverage.covered[query_id]
        for column, item_id in enumerate(items):
            hits = covered[known[:, column], column]
            if len(hits) and (hits.all() or not hits.any()):
                ends[query_id, item_id] = "ceiling" if hits.all() else "floor"
    return [(row, end) for row in report.statistics if (end := ends.get((row.query_id, row.item_id)))]


def _overview(
    report: ItemReport,
    ends: Sequence[tuple[ItemStatistics, str]],
    against: Sequence[tuple[ItemStatistics, float]],
    pairs: Sequence[RedundantPair],
) -> Section:
    coverage = report.coverage
    rows: list[list[Cell]] = [
        ["queries", len(coverage.items)],
        ["runs", len(coverage.runs)],
        ["items of queries that runs rank", sum(map(len, coverage.items.values()))],
        ["items at the floor", sum(end == "floor" for _, end in ends)],
        ["items at the ceiling", sum(end == "ceiling" for _, end in ends)],
        ["items against the rest", len(against)],
        ["pairs that the same passages cover", len(pairs)],
    ]
    if coverage.items:
        found = bank_halves(coverage)
        rows += [
            ["tau of two half banks", _said(found.half_tau, _FEW_RUNS)],
            ["reliability of the full bank (Spearman and Brown)", _said(found.reliability, _FEW_RUNS)],
            ["tau under new queries and items (bootstrap over both)", _said(found.tau, _FEW_RUNS)],
            ["the same, least of the middle 95 %", _said(found.tau_low, _FEW_RUNS)],
            ["share of these in which the best run stays best", _said(found.first, _FEW_RUNS)],
        ]
    return Section("bank", "Does the bank hold", ["what", "value"], rows)


def _suggestions(
    report: ItemReport,
    ends: Sequence[tuple[ItemStatistics, str]],
    against: Sequence[tuple[ItemStatistics, float]],
    pairs: Sequence[RedundantPair],
    text: Mapping[tuple[str, str], str],
) -> Section:
    """What to do, in the order of what is surest."""
    # What to do, in which query, with which item and which other one, and why.
    advice: list[tuple[str, str, str, str, str]] = []
    for one in pairs:
        why = f"the same passages cover both (kappa {one.kappa:.2f}, {one.both} of {one.passages} cover both)"
        advice.append(("merge", one.query_id, one.first, one.second, why))
    for row, p in against:
        why = f"worse runs cover it, better ones do not (r {row.r_leaderboard:.2f}, p {p:.2g} for all items)"
        advice.append(("reword or retire", row.query_id, row.item_id, "", why))
    for row, end in ends:
        if end == "ceiling":
            advice.append(("split", row.query_id, row.item_id, "", "all runs cover it: ask for more"))
        elif row.graded and not row.covering:
            why = "no passage covers it: retire it, unless a passage could"
            advice.append(("check", row.query_id, row.item_id, "", why))
    return Section(
        "bank-suggestions",
        "What to split, merge, reword and retire",
        ["query_id", "action", "why", "item", "with", "item_id", "with_item_id"],
        [
            [query_id, action, why, text.get((query_id, one), ""), text.get((query_id, two)) or None, one, two or None]
            for action, query_id, one, two, why in advice
        ],
    )


ANALYSES = frozenset(("grading", "grid", "uncovered-passages", "bad-questions"))
# Reports that are no part of their own name.
_PARTS = {
    "all": ANALYSES | {"item-statistics"},
}
# Those that ask which grade covers an item.
LEVELLED = frozenset(("uncovered-passages", "bad-questions", "item-statistics", "suggest"))
# Those that look at judgments.
_JUDGED = frozenset(("uncovered-passages", "bad-questions", "item-statistics"))


@dataclass(frozen=True)
class ReportSettings:
    """Which report, about which grades.

    Attributes:
        report: a name among `REPORTS`.
        wanted: the grades.
        queries: only these; None takes all.
        min_judgment: the least judgment that is relevant; None takes 1.

    Raises:
        UnknownNameError: there is no such report.
        InputError: something is given that the report does not use.
    """

    report: str = "all"
    wanted: Grader = field(default_factory=Grader)
    queries: Sequence[str] | None = None
    min_judgment: int | None = None

    def __post_init__(self) -> None:
        if self.report not in REPORTS:
            raise UnknownNameError("report", self.report, REPORTS)
        if self.min_judgment is not None and not _JUDGED & self.parts:
            using = ", ".join(one for one in REPORTS if _JUDGED & _PARTS.get(one, {one}))
            text = f"the report {self.report} does not use min_judgment; {using} do"
            raise InputError(text, settings=("min_judgment",))

    @property
    def parts(self) -> frozenset[str]:
        """What the report consists of: analyses of queries, and statistics."""
        return _PARTS.get(self.report, frozenset((self.report,)))

    @property
    def least(self) -> int:
        """The least judgment that is relevant."""
        return 1 if self.min_judgment is None else self.min_judgment


def query_sections(query: CheckedQuery, settings: ReportSettings, parts: AbstractSet[str]) -> Iterator[Section]:
    """These analyses of a query."""
    if "grading" in parts:
        yield from grading_sections(query)
    if "grid" in parts:
        yield grid_section(query)
    if "uncovered-passages" in parts:
        yield uncovered_section(query, settings.least)
    if "bad-questions" in parts:
        yield bad_item_section(query, settings.least)
