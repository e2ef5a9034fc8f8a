"""`verify`: reports with which people check the grader and the test bank."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rubric_measures.cli.inputs import add_grade_options, bank_of, wanted_of
from rubric_measures.errors import InputError
from rubric_measures.files import atomic_writer

if TYPE_CHECKING:
    from rubric_measures.formats.workbench import QueryPassages
    from rubric_measures.verification.analyses import CheckedQuery
    from rubric_measures.verification.sections import Section

__all__ = ["HELP", "add_arguments", "run"]

HELP = "reports for people who check grades and banks"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("graded", metavar="GRADED", help="graded records")
    group = parser.add_argument_group("reports (all of them where none is named)")
    add = group.add_argument
    add("--verify-grading", action="store_true", help="per item, every passage's grade beside its answer, best first")
    add("--grid-display", action="store_true", help="per query, passages × items, with judgments")
    add("--uncovered-passages", action="store_true", help="passages judged relevant that no item covers")
    add("--bad-question", action="store_true", help="items that passages judged not relevant cover, most first")
    parser.add_argument("--min-judgment", type=int, default=1, help="the least judgment that is relevant (default 1)")
    parser.add_argument("--min-rating", type=int, default=4, help="the least grade that covers an item (default 4)")
    parser.add_argument("--queries", metavar="ID,ID,…", help="only these queries")
    parser.add_argument(
        "-o", "--output-format", choices=["text", "markdown", "tsv", "jsonl"], default="text", help="default: text"
    )
    parser.add_argument("--output", metavar="FILE", default="-", help="write there (default: standard output)")
    add_grade_options(parser)
    parser.epilog = """example:
  rubric_measures verify graded.jsonl.gz --bank questions.jsonl --uncovered-passages --min-judgment 2"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    from rubric_measures.verification.sections import render_sections

    with atomic_writer(options.output) as stream:
        for piece in render_sections(_sections(options), options.output_format):
            stream.write(piece)
    return 0


def _queries(options: argparse.Namespace) -> Iterator[CheckedQuery]:
    from rubric_measures.formats.workbench import load_graded, read_graded
    from rubric_measures.selection import GradeSetSelector
    from rubric_measures.verification.analyses import check_records

    wanted = {part for part in (options.queries or "").split(",") if part}
    groups = load_graded(options.graded) if options.graded == "-" else read_graded(options.graded)
    seen: set[str] = set()

    def kept() -> Iterator[QueryPassages]:
        for group in groups:
            seen.add(group.query_id)
            if not wanted or group.query_id in wanted:
                yield group

    selector = GradeSetSelector(wanted_of(options), options.graded)
    yield from check_records(kept(), selector, bank_of(options))
    missing = sorted(wanted - seen)
    if missing:
        raise InputError(f"{options.graded}: has no query {missing[0]!r}")
    if not selector.found:
        raise InputError(f"{options.graded}: holds no grades that pass the filter")


def _sections(options: argparse.Namespace) -> Iterator[Section]:
    from rubric_measures.verification.sections import (
        bad_item_section,
        grading_sections,
        grid_section,
        uncovered_section,
    )

    named = options.verify_grading, options.grid_display, options.uncovered_passages, options.bad_question
    grading, grid, uncovered, bad = named if any(named) else (True,) * 4
    for query in _queries(options):
        if grading:
            yield from grading_sections(query)
        if grid:
            yield grid_section(query)
        if uncovered:
            yield uncovered_section(query, options.min_judgment, options.min_rating)
        if bad:
            yield bad_item_section(query, options.min_judgment, options.min_rating)
