"""The reports with which assessors check grades and banks: those that are asked for, section by section."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from rubric_measures.base.errors import InputError, counted, warn
from rubric_measures.measures.checked import CheckedQuery, check_records, is_graded, level_of
from rubric_measures.measures.findings import say, without_items
from rubric_measures.measures.grade_sets import GradeFilter, GradeSetSelector, grade_sets, grades_of_set
from rubric_measures.measures.grades import PARTIAL, note_left_out
from rubric_measures.measures.loading import RecordQuery, select_query
from rubric_measures.records.models import GradedFile, QueryPassages, cited_answer
from rubric_measures.types.entities import TestBank
from rubric_measures.types.scales import covering_level
from rubric_measures.verification.banks import ItemReport, bank_stability, drawn_points, item_report, ranked_by_files
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

ANALYSES = ("verify_grading", "grid_display", "uncovered_passages", "bad_question")
STATISTICS = ("item_statistics", "grader_statistics")
# Those that ask which grade covers an item.
BANK = "bank_report"
_LEVELLED = frozenset(("uncovered_passages", "bad_question", "item_statistics", BANK))
CALIBRATION = "calibration"
# How many of the largest disagreements between graders are listed.
DISAGREEMENTS = 50


@dataclass(frozen=True)
class ReportSettings:
    """Which reports, about which grades.

    Attributes:
        reports: names among `ANALYSES` and `STATISTICS`, or `BANK`, or `CALIBRATION`.
        wanted: the grades.
        queries: only these; None takes all.
        run: runs that make the leaderboard of item statistics and bank report; none takes the rankings in the records.
        plot: the file of a figure: of the item statistics, bank size against stability.
        seed: of random samples and shuffles.
        min_judgment: the least judgment that is relevant.
        min_rating: the least grade that covers an item; None takes the scale's.
        by_uncertainty: of the grades of an item, the least certain come first.
        suggest: of the bank report, what to do about the items.

    Raises:
        InputError: runs or a figure of item statistics that are not asked for.
    """

    reports: Sequence[str] = ANALYSES
    wanted: GradeFilter = field(default_factory=GradeFilter)
    queries: Sequence[str] | None = None
    run: Sequence[str | os.PathLike[str]] = ()
    plot: str | os.PathLike[str] | None = None
    seed: int = 0
    min_judgment: int = 1
    min_rating: int | None = None
    by_uncertainty: bool = False
    suggest: bool = False

    def __post_init__(self) -> None:
        if self.plot and "item_statistics" not in self.reports:
            text = "the figure is of the item statistics; ask for them"
            raise InputError(text, settings=("plot", "item_statistics"))
        if BANK not in self.reports and self.suggest:
            raise InputError("suggestions are of the bank report; ask for it", settings=(BANK,))
        if self.run and not {"item_statistics", BANK} & set(self.reports):
            text = "runs are for the item statistics and the bank report; ask for one of them"
            raise InputError(text, settings=("runs", "item_statistics", BANK))


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


def check_reports(source: GradedFile, bank: TestBank | None, settings: ReportSettings) -> None:
    """Finds what would stop the reports: records without the wanted grades, several grade sets where one is needed, or
    a scale that is not known, or that lacks the level.

    Raises:
        InputError: saying so.
    """
    found = True
    if {*ANALYSES, "item_statistics", BANK} & set(settings.reports):
        selector = GradeSetSelector(settings.wanted, source.name)
        for group in chosen_queries(source, settings, source.name):
            where = group.at(source.name)
            items = None if bank is None else {item.item_id: item for item in bank.for_query(group.query_id, where)}
            has_grade = False
            for passage in group.passages:
                entry = selector.choose(passage, items)
                has_grade = has_grade or (entry is not None and bool(grades_of_set(entry)[0]))
            _refuse_partial(selector, settings)
            if has_grade and _LEVELLED & set(settings.reports):
                covering_level(selector.scale, settings.min_rating)
        found = bool(selector.found)
    elif settings.reports:
        found = bool(grade_sets(chosen_queries(source, settings, source.name), settings.wanted))
    if not found:
        raise _no_grades(source)


def _refuse_partial(selector: GradeSetSelector, settings: ReportSettings) -> None:
    """Refuses reports of what no passage covers where some grades were never asked."""
    asked = [name for name in settings.reports if name in _LEVELLED]
    if asked and selector.asked_for:
        text = f"{selector.source}: {PARTIAL}, and what covers nothing is known of all grades alone"
        raise InputError(f"{text}; grade all, or ask for other reports", settings=tuple(asked))


def _no_grades(source: GradedFile) -> InputError:
    return InputError(f"{source.name}: holds no grades that pass the filter; are its passages graded?")


def report_sections(source: GradedFile, bank: TestBank | None, settings: ReportSettings) -> Iterator[Section]:
    """The sections of the reports: first the statistics, then the analyses, query by query; see `report_parts`."""
    for part in report_parts(source, bank, settings):
        if isinstance(part, Section):
            yield part
        else:
            yield from query_sections(part, settings)


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
    if BANK in settings.reports:
        first = next(iter(source), None)
        if first is not None and any(cited_answer(first.query_id, one) for one in first.passages):
            text = "holds what citations support; sentences of answers are no bank to report on"
            raise InputError(f"{source.name}: {text}", settings=(BANK,))
    if {*STATISTICS, BANK} & set(settings.reports):
        if not {"item_statistics", BANK} & set(settings.reports) and _LEVELLED & set(settings.reports):
            # Nothing is said before it is known that all can be said; item statistics find it out themselves.
            check_reports(source, bank, settings)
        yield from _statistics(source, bank, settings)
    if CALIBRATION in settings.reports:
        yield _calibration(source, bank, settings)
    if set(ANALYSES) & set(settings.reports):
        yield from _analyses(source, bank, settings)


def _analyses(source: GradedFile, bank: TestBank | None, settings: ReportSettings) -> Iterator[CheckedQuery]:
    selector = GradeSetSelector(settings.wanted, source.name)
    # What stands before the first grade waits for it: only then it is known whether there is a scale.
    waiting: list[CheckedQuery] | None = [] if _LEVELLED & set(settings.reports) else None
    lacks_order = settings.by_uncertainty
    for query in check_records(chosen_queries(source, settings, source.name), selector, bank):
        _refuse_partial(selector, settings)
        lacks_order = lacks_order and all(row.confidence is None for row in query.rows())
        if waiting is not None and not is_graded(query):
            waiting.append(query)
            continue
        if waiting is not None:
            level_of(query, settings.min_rating)
            yield from waiting
            waiting = None
        yield query
    if not selector.found:
        raise _no_grades(source)
    yield from waiting or ()
    if lacks_order:
        text = "%s: no grade says how sure it is, so the best come first; label probabilities or replicates say it"
        logging.getLogger("rubric_measures").warning(text, source.name)


def query_sections(query: CheckedQuery, settings: ReportSettings) -> Iterator[Section]:
    """The analyses of a query that are asked for."""
    if "verify_grading" in settings.reports:
        yield from grading_sections(query, settings.by_uncertainty)
    if "grid_display" in settings.reports:
        yield grid_section(query)
    if "uncovered_passages" in settings.reports:
        yield uncovered_section(query, settings.min_judgment, settings.min_rating)
    if "bad_question" in settings.reports:
        yield bad_item_section(query, settings.min_judgment, settings.min_rating)


def _calibration(source: GradedFile, bank: TestBank | None, settings: ReportSettings) -> Section:

    # Assessors' grades are what the grader's are held against, so they cannot stand in their place.
    selector = GradeSetSelector(replace(settings.wanted, assessors=None), source.name)
    groups = chosen_queries(source, settings, source.name)
    return calibration_section(calibration_bins(checked_pairs(groups, selector, bank)))


def _statistics(source: GradedFile, bank: TestBank | None, settings: ReportSettings) -> Iterator[Section]:
    """Statistics of items, the bank report, and statistics of graders."""
    groups = list(chosen_queries(source, settings, source.name))
    if {"item_statistics", BANK} & set(settings.reports):
        selector = GradeSetSelector(settings.wanted, source.name)
        queries = [select_query(group, selector, bank) for group in groups]
        _refuse_partial(selector, settings)
        if settings.run:
            queries = ranked_by_files(queries, settings.run)
        report = _item_report(source, queries, selector, bank, settings)
        if "item_statistics" in settings.reports:
            yield from _item_sections(report, settings)
        if BANK in settings.reports:
            yield from bank_sections(report, queries, settings.min_rating, settings.seed, settings.suggest)
    if "grader_statistics" in settings.reports:
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
    report = item_report(queries, settings.min_judgment, settings.min_rating)
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


def _item_sections(report: ItemReport, settings: ReportSettings) -> Iterator[Section]:
    yield from item_sections(report, settings.min_judgment)
    points = bank_stability(report.coverage, seed=settings.seed)
    yield stability_section(report.coverage, points)
    if settings.plot:
        from rubric_measures.pages.plots import plot_stability
        from rubric_measures.pages.style import save_figures

        drawn = drawn_points(points)
        of = f"{counted(len(report.coverage.runs), 'run')} over {counted(len(report.coverage.items), 'query')}"
        save_figures([plot_stability(list(drawn), list(drawn.values()), of)], settings.plot)
