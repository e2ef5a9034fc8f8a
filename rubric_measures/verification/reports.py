"""The reports with which assessors check grades and banks: those that are asked for, section by section."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from msgspec.structs import replace

from rubric_measures.base.errors import InputError, UnknownNameError, counted, warn
from rubric_measures.measures.checked import CheckedQuery, check_records, is_graded, level_of
from rubric_measures.measures.findings import say, without_items
from rubric_measures.measures.grade_sets import Grader, GradeSetSelector
from rubric_measures.measures.grades import PARTIAL, note_left_out
from rubric_measures.measures.loading import RecordQuery, select_query
from rubric_measures.records.models import GradedFile, QueryPassages, cited_answer
from rubric_measures.types.entities import TestBank
from rubric_measures.verification import REPORTS
from rubric_measures.verification.banks import ItemReport, bank_stability, item_report, ranked_by_files
from rubric_measures.verification.graders import grader_report
from rubric_measures.verification.sections import (
    Section,
    bad_item_section,
    bank_sections,
    calibration_bins,
    calibration_section,
    checked_pairs,
    grader_sections,
    grading_sections,
    grid_section,
    item_sections,
    stability_section,
    uncovered_section,
)

_ANALYSES = frozenset(("grading", "grid", "uncovered-passages", "bad-questions"))
# Reports that are no part of their own name.
_PARTS = {
    "uncertain": frozenset(("grading",)),
    "all": _ANALYSES | {"item-statistics", "graders"},
    "suggest": frozenset(("bank",)),
    "canary": frozenset[str](),
}
# Those that ask which grade covers an item.
_LEVELLED = frozenset(("uncovered-passages", "bad-questions", "item-statistics", "bank"))
# What some reports alone use -> these.
_USED = {
    "runs": frozenset(("item-statistics", "bank")),
    "min_judgment": frozenset(("uncovered-passages", "bad-questions", "item-statistics")),
}
# How many of the largest disagreements between graders are listed.
DISAGREEMENTS = 50


@dataclass(frozen=True)
class ReportSettings:
    """Which report, about which grades.

    Attributes:
        report: a name among `REPORTS`.
        wanted: the grades.
        queries: only these; None takes all.
        runs: runs that make the leaderboard of item statistics and bank report; none takes the rankings in the records.
        min_judgment: the least judgment that is relevant; None takes 1.

    Raises:
        UnknownNameError: there is no such report.
        InputError: something is given that the report does not use.
    """

    report: str = "all"
    wanted: Grader = field(default_factory=Grader)
    queries: Sequence[str] | None = None
    runs: Sequence[str | os.PathLike[str]] = ()
    min_judgment: int | None = None

    def __post_init__(self) -> None:
        if self.report not in REPORTS:
            raise UnknownNameError("report", self.report, REPORTS)
        for name, parts in _USED.items():
            if getattr(self, name) not in (None, (), []) and not parts & self.parts:
                using = ", ".join(one for one in REPORTS if parts & _PARTS.get(one, {one}))
                raise InputError(f"the report {self.report} does not use {name}; {using} do", settings=(name,))

    @property
    def parts(self) -> frozenset[str]:
        """What the report consists of: analyses of queries, and statistics."""
        return _PARTS.get(self.report, frozenset((self.report,)))

    @property
    def least(self) -> int:
        """The least judgment that is relevant."""
        return 1 if self.min_judgment is None else self.min_judgment


def chosen_queries(groups: Iterable[QueryPassages], settings: ReportSettings, source: str) -> Iterator[QueryPassages]:
    """The queries that are wanted, with all their passages.

    Raises:
        InputError: at the end, where a wanted query is not there.
    """
    wanted = set(settings.queries or ())
    seen: set[str] = set()
    for group in groups:
        seen.add(group.query_id)
        if not wanted or group.query_id in wanted:
            yield group
    missing = sorted(wanted - seen)
    if missing:
        raise InputError(f"{source}: has no query {missing[0]!r}")


def _refuse_partial(selector: GradeSetSelector, settings: ReportSettings) -> None:
    """Refuses reports of what no passage covers where some grades were never asked."""
    if _LEVELLED & settings.parts and selector.asked_for:
        text = f"{selector.source}: {PARTIAL}, and what covers nothing is known of all grades alone"
        raise InputError(f"{text}; grade all, or ask for another report")


def _no_grades(source: GradedFile) -> InputError:
    return InputError(f"{source.name}: holds no grades that pass the filter; are its passages graded?")


def report_sections(source: GradedFile, bank: TestBank | None, settings: ReportSettings) -> Iterator[Section]:
    """The sections of the reports: first the statistics, then the analyses, query by query; see `report_parts`."""
    for part in report_parts(source, bank, settings):
        if isinstance(part, Section):
            yield part
        else:
            yield from query_sections(part, settings, settings.parts)


def report_parts(
    source: GradedFile, bank: TestBank | None, settings: ReportSettings
) -> Iterator[Section | CheckedQuery]:
    """The sections of the statistics, then the queries that the analyses are about.

    Args:
        source: the records.
        bank: the test bank, where it is known.
        settings: which reports.

    Raises:
        InputError: the records lack the grades, or are of citations, and the bank report is asked for.
    """
    if "bank" in settings.parts:
        first = next(iter(source), None)
        if first is not None and any(cited_answer(first.query_id, one) for one in first.passages):
            text = "holds what citations support; sentences of answers are no bank to report on"
            raise InputError(f"{source.name}: {text}")
    if {"item-statistics", "graders", "bank"} & settings.parts:
        yield from _statistics(source, bank, settings)
    if "calibration" in settings.parts:
        yield _calibration(source, bank, settings)
    if _ANALYSES & settings.parts:
        yield from _analyses(source, bank, settings)


def _analyses(source: GradedFile, bank: TestBank | None, settings: ReportSettings) -> Iterator[CheckedQuery]:
    selector = GradeSetSelector(settings.wanted, source.name)
    # What stands before the first grade waits for it: only then it is known whether there is a scale.
    waiting: list[CheckedQuery] | None = [] if _LEVELLED & settings.parts else None
    lacks_order = settings.report == "uncertain"
    for query in check_records(chosen_queries(source, settings, source.name), selector, bank):
        _refuse_partial(selector, settings)
        lacks_order = lacks_order and all(row.confidence is None for row in query.rows())
        if waiting is not None and not is_graded(query):
            waiting.append(query)
            continue
        if waiting is not None:
            level_of(query)
            yield from waiting
            waiting = None
        yield query
    if not selector.found:
        raise _no_grades(source)
    yield from waiting or ()
    if lacks_order:
        text = "%s: no grade says how sure it is, so the best come first; label probabilities or replicates say it"
        logging.getLogger("rubric_measures").warning(text, source.name)


def query_sections(query: CheckedQuery, settings: ReportSettings, parts: AbstractSet[str]) -> Iterator[Section]:
    """These analyses of a query."""
    if "grading" in parts:
        yield from grading_sections(query, settings.report == "uncertain")
    if "grid" in parts:
        yield grid_section(query)
    if "uncovered-passages" in parts:
        yield uncovered_section(query, settings.least)
    if "bad-questions" in parts:
        yield bad_item_section(query, settings.least)


def _calibration(source: GradedFile, bank: TestBank | None, settings: ReportSettings) -> Section:

    # Assessors' grades are what the grader's are held against, so they cannot stand in their place.
    selector = GradeSetSelector(replace(settings.wanted, assessors=None), source.name)
    groups = chosen_queries(source, settings, source.name)
    return calibration_section(calibration_bins(checked_pairs(groups, selector, bank)))


def _statistics(source: GradedFile, bank: TestBank | None, settings: ReportSettings) -> Iterator[Section]:
    """Statistics of items, the bank report, and statistics of graders."""
    groups = list(chosen_queries(source, settings, source.name))
    if {"item-statistics", "bank"} & settings.parts:
        selector = GradeSetSelector(settings.wanted, source.name)
        queries = [select_query(group, selector, bank) for group in groups]
        _refuse_partial(selector, settings)
        if settings.runs:
            queries = ranked_by_files(queries, settings.runs)
        report = _item_report(source, queries, selector, bank, settings)
        if "item-statistics" in settings.parts:
            yield from item_sections(report, settings.least)
            yield stability_section(report.coverage, bank_stability(report.coverage))
        if "bank" in settings.parts:
            yield from bank_sections(report, queries, settings.report == "suggest")
    if "graders" in settings.parts:
        of_graders = grader_report(groups, settings.wanted, DISAGREEMENTS)
        if not of_graders.graders:
            raise _no_grades(source)
        yield from grader_sections(of_graders)


def _item_report(
    source: GradedFile,
    queries: Sequence[RecordQuery],
    selector: GradeSetSelector,
    bank: TestBank | None,
    settings: ReportSettings,
) -> ItemReport:
    report = item_report(queries, settings.least)
    if not selector.found:
        raise _no_grades(source)
    note_left_out(selector.left_out)
    failed = sum(row.failed for row in report.statistics)
    warn(
        "failed grades (%d): what is counted of passages leaves them out, and scores of runs count them as they are "
        "expected to cover",
        failed,
    )
    selector.note_counts()
    # What queries that the user left out lack is nothing to say.
    in_bank = {} if bank is None or settings.queries else bank.items
    silent = {query_id for query_id, items in in_bank.items() if items} - set(report.queries)
    if silent:
        warn(
            f"no passages in {source.name} for {counted(len(silent), 'query')} of the bank (such as {min(silent)}); "
            f"in no statistics: {counted(sum(len(in_bank[query_id]) for query_id in silent), 'item')}"
        )
    say(without_items({*report.without_items, *(query_id for query_id, items in in_bank.items() if not items)}))
    return report
