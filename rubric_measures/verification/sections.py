"""The reports with which assessors check grades and banks: those that are asked for, section by section.

Sections: what each report shows, as tables.

Statistics of items: coverage, discrimination, and how the leaderboard hangs on each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rubric_measures.analysis.coefficients import correlate
from rubric_measures.analysis.resampling import FloatArray, weighted_means
from rubric_measures.base.errors import counted
from rubric_measures.base.tables import Cell, Column, Report, Table, Undefined
from rubric_measures.measures.checked import (
    CheckedQuery,
    bad_items,
    grades_by_item,
    level_of,
    uncovered_passages,
)
from rubric_measures.measures.core import covered
from rubric_measures.measures.loading import RecordQuery
from rubric_measures.measures.scoring import HEAD, RankedRows, Shown
from rubric_measures.types.scales import Scale

BoolArray = NDArray[np.bool_]


class _Covering(NamedTuple):
    """What each run covers with its first 20 passages of a query.

    Attributes:
        covered: (runs, items): the run covers the item.
        known: (runs, items): False where it does not, and a grade of it failed.
        scores: Rubric-Cover of every run; NaN where nothing is known.
        without: (items, runs): the same over all other items.
    """

    covered: BoolArray
    known: BoolArray
    scores: FloatArray
    without: FloatArray


def _covering(query: RecordQuery, runs: Sequence[str]) -> _Covering:
    """A run that does not rank the query covers none of its items; failed grades count as `core.covered` expects."""
    grades, level, size = query.grades, query.grades.level(), len(query.grades.items)
    ranked = [query.rankings.get(run_id, ()) for run_id in runs]
    rows = [RankedRows([grades.docs.get(one, -1) for one in top], len(top)) for top in ranked]
    view = Shown.of(grades, rows).view(HEAD)
    hits = view.best >= level
    weights = np.vstack([np.ones(size), 1 - np.eye(size)])
    found = covered(view, level, weights)
    known = np.ones_like(hits)
    known[found.open] = False
    means = []
    for weight, expected in zip(weights, found.expected, strict=True):
        covers = hits + 0.0
        covers[found.open] = expected
        kept = covers[:, weight > 0]
        means.append(kept.sum(axis=1) / kept.shape[1] if kept.size else np.full(len(runs), np.nan))
    return _Covering(hits, known, means[0], np.array(means[1:]))


_UNRANKED = Undefined("no run ranks the query")


class ItemStatistics(NamedTuple):
    """How one item behaves; one row an item of the bank.

    Attributes:
        query_id: the query.
        item_id: the item.
        item: the question or nugget; empty where no bank was given.
        graded: passages with a grade of the item.
        failed: passages where grading the item failed.
        covering: graded passages that cover it.
        by_relevant: the share of the graded passages judged relevant that covers it, 0 to 1.
        by_not_relevant: the same of those judged not relevant.
        r_judgment: correlation of covering the item with the judgment, over judged and graded passages.
        r_leaderboard: correlation of a run covering the item with the run's score over all other items.
        covered: `never` or `always` covered, `not graded`, or None.
    """

    query_id: str
    item_id: str
    item: str
    graded: int
    failed: int
    covering: int
    by_relevant: float | Undefined
    by_not_relevant: float | Undefined
    r_judgment: float | Undefined
    r_leaderboard: float | Undefined
    covered: str | None


@dataclass(frozen=True)
class ItemReport:
    """All that is said about items.

    Attributes:
        statistics: one row an item, in bank order.
        runs: how many runs rank a query that has items.
        queries: the queries that they are about, in their order.
        without_items: those of them that have no items, and so no statistics.
        level: the least grade that covers an item; None where nothing is graded.
    """

    statistics: Sequence[ItemStatistics]
    runs: int
    queries: Sequence[str]
    without_items: Sequence[str] = ()
    level: int | None = None


def item_report(queries: Sequence[RecordQuery], min_judgment: int = 1) -> ItemReport:
    """Item statistics of queries.

    Args:
        queries: the selected grades.
        min_judgment: the least judgment that is relevant.
    """
    ranked = {query.query_id: query for query in queries if query.rankings and query.grades.items}
    runs = sorted({run_id for query in ranked.values() for run_id in query.rankings})
    found = {query_id: _covering(query, runs) for query_id, query in ranked.items()}
    table = np.array([one.scores for one in found.values()]).reshape(len(found), len(runs))
    rows, places = [], {query_id: place for place, query_id in enumerate(found)}
    for query in queries:
        for column, row in enumerate(_item_statistics_counts(query, min_judgment)):
            if query.query_id in found:
                r = _discrimination(found[query.query_id], column, table, places[query.query_id])
                row = row._replace(r_leaderboard=r)
            rows.append(row)
    graded = [query for query in queries if query.grades.docs]
    return ItemReport(
        rows,
        len(runs),
        [one.query_id for one in queries],
        [one.query_id for one in queries if not one.grades.items],
        graded[-1].grades.level() if graded else None,
    )


def _item_statistics_counts(query: RecordQuery, min_judgment: int) -> Iterator[ItemStatistics]:
    """The rows of one query, without `r_leaderboard`, which needs the whole leaderboard."""
    grades = query.grades
    hits, valid = grades.grades >= grades.level(), grades.valid
    failed = np.zeros_like(valid) if grades.failed is None else grades.failed
    judged = [doc_id for doc_id in sorted(grades.docs) if doc_id in query.judgments]
    rows = np.array([grades.docs[doc_id] for doc_id in judged], dtype=np.intp)
    judgments = np.array([query.judgments[doc_id] for doc_id in judged], dtype=np.float64)
    for place, item in enumerate(grades.items):
        known = valid[rows, place]
        hit, judgment = hits[rows[known], place], judgments[known]
        relevant = judgment >= min_judgment
        graded, covering = int(valid[:, place].sum()), int(hits[:, place].sum())
        yield ItemStatistics(
            query.query_id, item.item_id, item.text, graded, int(failed[:, place].sum()), covering,
            float(hit[relevant].mean()) if relevant.any() else Undefined("no relevant passage"),
            Undefined("no passage judged not relevant") if relevant.all() else float(hit[~relevant].mean()),
            point_biserial(hit.tolist(), judgment, "judged passages"),
            _UNRANKED, "not graded" if not graded else {0: "never", graded: "always"}.get(covering),
        )  # fmt: skip


def point_biserial(hits: Sequence[bool], values: Sequence[float] | FloatArray, what: str) -> float | Undefined:
    """Pearson's r of a yes/no variable with a number: positive where those who hit have the higher values.

    Undefined, with the reason, for fewer than two cases, and where a side does not vary.

    Args:
        hits: who covers the item.
        values: judgments or scores, same order.
        what: what the cases are, for the reason.

    >>> point_biserial([True, True, False], [3, 1, 0], "passages").__round__(4)
    0.7559
    """
    if len(hits) < 2:
        return Undefined(f"{len(hits)} {what}")
    if all(hits) or not any(hits):
        return Undefined(f"{'all' if hits[0] else 'no'} {what} cover it")
    value = correlate([float(hit) for hit in hits], [float(value) for value in values], "pearson", test=False).value
    return Undefined(f"all {what} have the same value") if value is None else value


def _discrimination(found: _Covering, column: int, table: FloatArray, place: int) -> float | Undefined:
    """Discrimination of one item against the leaderboard without it.

    Args:
        found: what the runs cover of the item's query.
        column: the item's place there.
        table: (queries, runs): Rubric-Cover over the full bank.
        place: the query's row.
    """
    changed = table.copy()
    changed[place] = found.without[column]
    # The mean of every run over its defined scores.
    scores: FloatArray = weighted_means(np.ones((1, len(table))), changed)[0]
    usable = ~np.isnan(scores) & found.known[:, column]
    return point_biserial(found.covered[usable, column].tolist(), scores[usable], "runs")


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
         "covered", "item_id", "item"],
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
