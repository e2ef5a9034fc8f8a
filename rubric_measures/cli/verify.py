"""`verify`: reports with which people check the grader and the test bank."""

from __future__ import annotations

import argparse
import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.tables import TABLE_FORMS, render
from rubric_measures.cli.canary_support import add_canary_options, refuse_without_canary, run_canaries
from rubric_measures.cli.inputs import add_grade_options, bank_of, keep_cache, keep_inputs_of, wanted_of

if TYPE_CHECKING:
    from rubric_measures.base.entities import TestBank
    from rubric_measures.records.streaming import GradedFile, PassageGroup
    from rubric_measures.verification.analyses import CheckedQuery
    from rubric_measures.verification.grader_statistics import GraderReport
    from rubric_measures.verification.item_statistics import ItemReport
    from rubric_measures.verification.sections import Section

__all__ = ["HELP", "add_arguments", "run"]

HELP = "reports for people who check grades and banks"
# How many of the largest disagreements between graders are listed.
DISAGREEMENTS = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("graded", metavar="GRADED", help="graded records")
    group = parser.add_argument_group("reports (where none is named: the first four, in HTML all)")
    add = group.add_argument
    add("--verify-grading", action="store_true", help="per item, every passage's grade beside its answer, best first")
    add("--grid-display", action="store_true", help="per query, passages × items, with judgments")
    add("--uncovered-passages", action="store_true", help="passages judged relevant that no item covers")
    add("--bad-question", action="store_true", help="items that passages judged not relevant cover, most first")
    add("--item-statistics", action="store_true", help="how items discriminate, duplicate ones, size of the bank")
    add("--grader-statistics", action="store_true", help="grades given, failures, disagreement of graders and prompts")
    parser.add_argument(
        "--run",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=[],
        help="item statistics: these TREC runs make the leaderboard (default: the rankings in GRADED)",
    )
    parser.add_argument("--plot", metavar="FILE", help="item statistics: bank size against stability as a figure")
    parser.add_argument("--seed", type=int, default=0, help="of random samples and shuffles (default 0)")
    parser.add_argument("--min-judgment", type=int, default=1, help="the least judgment that is relevant (default 1)")
    parser.add_argument("--min-rating", type=int, default=4, help="the least grade that covers an item (default 4)")
    parser.add_argument("--queries", metavar="ID,ID,…", help="only these queries")
    parser.add_argument(
        "-o",
        "--output-format",
        choices=[*TABLE_FORMS, "html"],
        default="text",
        help="default: text",
    )
    parser.add_argument("--output", metavar="FILE", default="-", help="write there (default: standard output)")
    add_canary_options(parser)
    add_grade_options(parser, scores=False)
    parser.epilog = """example:
  rubric_measures verify graded.jsonl.gz --bank questions.jsonl --uncovered-passages --min-judgment 2
  rubric_measures verify graded.jsonl.gz --bank questions.jsonl --item-statistics --plot bank-size.svg
  rubric_measures verify graded.jsonl.gz --bank questions.jsonl --item-statistics --run runs/*.run
  rubric_measures verify passages.jsonl.gz --bank questions.jsonl --canary --model lexical
  rubric_measures verify passages.jsonl.gz --bank questions.jsonl --canary --model openai:gpt-4o --dry-run
  rubric_measures verify graded.jsonl.gz --bank questions.jsonl -o html --output report.html"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    from rubric_measures.records.streaming import GradedFile
    from rubric_measures.verification.html_report import render_html
    from rubric_measures.verification.sections import sections_report

    canaries: list[Section] = []
    complete = True
    bank = bank_of(options)
    if not options.canary:
        refuse_without_canary(options)
    read = (options.graded, options.bank, *(options.run or ()))
    keep_inputs_of(options, *read, options.prices)
    keep_cache(options.cache, options.output, options.plot, *read, options.prices)
    analyses, statistics = _asked_for(options)
    with GradedFile(options.graded) as source:
        if options.canary:
            # What the reports would stop at is found before a call is made.
            _refuse_ungraded(options, source, bank, any(analyses) or statistics[0], statistics[1])
            canaries, complete = run_canaries(options, _Chosen(source, options), bank)
            if options.dry_run:
                return 0
        sections = itertools.chain(canaries, _sections(options, source, bank, analyses, statistics))
        with atomic_writer(options.output) as stream:
            if options.output_format == "html":
                stream.writelines(render_html(sections, f"Verification of {Path(options.graded).name}"))
            else:
                stream.writelines(render(sections_report(sections), options.output_format))
    return 0 if complete else 1


class _Chosen:
    """The queries that --queries names, with all their passages, as often as asked."""

    def __init__(self, source: GradedFile, options: argparse.Namespace) -> None:
        self._source, self._options = source, options

    def __iter__(self) -> Iterator[PassageGroup]:
        yield from _chosen(iter(self._source), self._options)


def _chosen(groups: Iterator[PassageGroup], options: argparse.Namespace) -> Iterator[PassageGroup]:
    wanted = {part for part in (options.queries or "").split(",") if part}
    seen: set[str] = set()
    for group in groups:
        seen.add(group.query_id)
        if not wanted or group.query_id in wanted:
            yield group
        del group
    missing = sorted(wanted - seen)
    if missing:
        raise InputError(f"{options.graded}: has no query {missing[0]!r}")


def _queries(
    options: argparse.Namespace, groups: Iterable[PassageGroup], bank: TestBank | None
) -> Iterator[CheckedQuery]:
    from rubric_measures.grades.grade_sets import GradeSetSelector
    from rubric_measures.verification.analyses import check_records

    selector = GradeSetSelector(wanted_of(options), options.graded)
    yield from check_records(groups, selector, bank)
    if not selector.found:
        raise InputError(f"{options.graded}: holds no grades that pass the filter")


def _statistics(
    options: argparse.Namespace, source: GradedFile, bank: TestBank | None, items: bool, graders: bool
) -> Iterator[Section]:
    """Statistics of items and of graders, from one reading of the records."""
    from rubric_measures.verification.statistics_sections import grader_sections

    def gathered(groups: Iterator[PassageGroup]) -> tuple[ItemReport | None, GraderReport | None]:
        from rubric_measures.verification.grader_statistics import GraderCounter

        counter = GraderCounter(wanted_of(options), DISAGREEMENTS) if graders else None
        passing = _chosen(groups, options)
        if counter is not None:
            passing = counter.watch(passing)
        report = _item_report(options, passing, bank) if items else None
        for group in passing:
            for _ in group.passages:
                pass
        return report, counter.report() if counter is not None else None

    of_items, of_graders = source.consume(gathered)
    if of_items is not None:
        yield from _item_sections(options, of_items)
    if of_graders is not None:
        if not of_graders.graders:
            raise InputError(f"{options.graded}: holds no grades that pass the filter")
        yield from grader_sections(of_graders)


def _item_report(options: argparse.Namespace, groups: Iterator[PassageGroup], bank: TestBank | None) -> ItemReport:
    from rubric_measures.grades.grade_sets import GradeSetSelector
    from rubric_measures.grades.loading import RecordQuery, select_query
    from rubric_measures.grades.notes import note_left_out, note_without_items
    from rubric_measures.verification.bank_stability import ranked_by_files
    from rubric_measures.verification.item_statistics import item_report

    selector = GradeSetSelector(wanted_of(options), options.graded)
    queries: Iterator[RecordQuery] = (select_query(group, selector, bank) for group in groups)
    if options.run:
        queries = ranked_by_files(queries, options.run)
    report = item_report(queries, options.min_judgment, options.min_rating)
    if not selector.found:
        raise InputError(f"{options.graded}: holds no grades that pass the filter")
    note_left_out(selector.left_out)
    selector.note_counts()
    _note_without_passages(options, bank, report.queries)
    in_bank = {} if bank is None or options.queries else bank.items
    note_without_items({*report.without_items, *(query_id for query_id, items in in_bank.items() if not items)})
    return report


def _note_without_passages(options: argparse.Namespace, bank: TestBank | None, queries: Iterable[str]) -> None:
    """Says which part of the bank the statistics say nothing about, unless the user chose queries."""
    if bank is None or options.queries:
        return
    silent = {query_id for query_id, items in bank.items.items() if items} - set(queries)
    if silent:
        logging.getLogger("rubric_measures").warning(
            "%d queries of the bank have no passages in %s, so their %d items are in no statistics (such as %s)",
            len(silent),
            options.graded,
            sum(len(bank.items[query_id]) for query_id in silent),
            min(silent),
        )


def _item_sections(options: argparse.Namespace, report: ItemReport) -> Iterator[Section]:
    from rubric_measures.verification.bank_stability import bank_stability, plot_stability
    from rubric_measures.verification.statistics_sections import item_sections, stability_section

    yield from item_sections(report, options.min_judgment, options.min_rating)
    points = bank_stability(report.coverage, seed=options.seed)
    yield stability_section(report.coverage, points)
    if options.plot:
        from rubric_measures.meta_evaluation.plots import save_figure

        save_figure(plot_stability(points), options.plot)


def _asked_for(options: argparse.Namespace) -> tuple[list[bool], list[bool]]:
    """Which of the four analyses, and which of the two statistics (items, graders).

    Raises:
        InputError: options of item statistics that are not asked for.
    """
    analyses = [options.verify_grading, options.grid_display, options.uncovered_passages, options.bad_question]
    statistics = [options.item_statistics, options.grader_statistics]
    if not any([*analyses, *statistics, options.canary]):
        analyses = [True] * 4
        statistics = [options.output_format == "html"] * 2
    if options.plot and not statistics[0]:
        raise InputError("--plot draws a figure of the item statistics; add --item-statistics")
    if options.run and not statistics[0]:
        raise InputError("--run names the runs of the item statistics; add --item-statistics")
    return analyses, statistics


def _refuse_ungraded(
    options: argparse.Namespace, source: GradedFile, bank: TestBank | None, one_set: bool, graders: bool
) -> None:
    """Refuses records that hold none of the grades that reports are asked about, or several sets where one is needed.

    Raises:
        InputError: saying so.
    """
    from rubric_measures.grades.grade_sets import GradeSetSelector, grade_sets

    wanted = wanted_of(options)
    found = True
    if one_set:
        selector = GradeSetSelector(wanted, options.graded)
        for group in _Chosen(source, options):
            where = f"{options.graded}:{group.line}"
            items = None if bank is None else {item.item_id: item for item in bank.for_query(group.query_id, where)}
            for passage in group.passages:
                selector.choose(passage, items)
        found = bool(selector.found)
    elif graders:
        found = bool(grade_sets(_Chosen(source, options), wanted))
    if not found:
        raise InputError(f"{options.graded}: holds no grades that pass the filter")


def _sections(
    options: argparse.Namespace,
    source: GradedFile,
    bank: TestBank | None,
    analyses: Sequence[bool],
    statistics: Sequence[bool],
) -> Iterator[Section]:
    if any(statistics):
        yield from _statistics(options, source, bank, statistics[0], statistics[1])
    if any(analyses):
        yield from _analyses(options, analyses, _queries(options, _Chosen(source, options), bank))


def _analyses(
    options: argparse.Namespace, chosen: Sequence[bool], queries: Iterable[CheckedQuery]
) -> Iterator[Section]:
    from rubric_measures.verification.sections import (
        bad_item_section,
        grading_sections,
        grid_section,
        uncovered_section,
    )

    grading, grid, uncovered, bad = chosen
    for query in queries:
        if grading:
            yield from grading_sections(query)
        if grid:
            yield grid_section(query)
        if uncovered:
            yield uncovered_section(query, options.min_judgment, options.min_rating)
        if bad:
            yield bad_item_section(query, options.min_judgment, options.min_rating)
        # Not while the next query is read.
        del query
