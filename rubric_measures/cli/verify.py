"""`verify`: reports with which assessors check the grader and the test bank."""

from __future__ import annotations

import argparse
import itertools
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.tables import TABLE_FORMS, render
from rubric_measures.cli.inputs import (
    add_endpoint_options,
    add_grade_options,
    add_output_options,
    add_plot_option,
    add_review_option,
    ids,
    is_watched,
    keep_inputs_of,
    passed,
    review_of,
    wanted_of,
)
from rubric_measures.corpora.overwriting import keep_cache

if TYPE_CHECKING:
    from rubric_measures.verification.reports import ReportSettings
    from rubric_measures.verification.sections import Section

_LOG = logging.getLogger("rubric_measures")


def _canary_settings(options: argparse.Namespace) -> dict[str, Any]:
    """What only the canary suite uses.

    Raises:
        InputError: some of it is given, and the suite is not asked for.
    """
    names = "model prompt base_url endpoint_name model_option cache dry_run prices max_calls max_cost"
    given = {name: getattr(options, name) for name in names.split()}
    ignored = [name for name, value in given.items() if value not in (None, [], {}, False)]
    if ignored and not options.canary:
        text = f"{', '.join(ignored)}: only the canary suite asks a grader; add it, or leave that out"
        raise InputError(text, settings=(*ignored, "canary"))
    return given


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("graded", metavar="GRADED", help="graded records")
    group = parser.add_argument_group("reports (where none is named: the first four, in HTML all)")
    add = group.add_argument
    add("--verify-grading", action="store_true", help="per item, every passage's grade beside its answer, best first")
    add(
        "--order",
        choices=("grade", "uncertainty"),
        default="grade",
        help="verify grading: best grades first (default), or the least certain, where the records keep distributions",
    )
    add("--grid-display", action="store_true", help="per query, passages × items, with judgments")
    add("--uncovered-passages", action="store_true", help="passages judged relevant that no item covers")
    add("--bad-question", action="store_true", help="items that passages judged not relevant cover, most first")
    add("--item-statistics", action="store_true", help="how items discriminate, duplicate ones, size of the bank")
    add("--bank-report", action="store_true", help="does the bank hold: items, stability, reusability; never in all")
    add("--grader-statistics", action="store_true", help="grades given, failures, disagreement of graders and prompts")
    add("--calibration", action="store_true", help="confidence against agreement with assessors' grades; never in all")
    parser.add_argument(
        "--runs",
        metavar="RUN",
        nargs="+",
        action="extend",
        default=[],
        help="item statistics, bank report: these TREC runs make the leaderboard (default: the rankings in GRADED)",
    )
    parser.add_argument(
        "--suggest", action="store_true", help="bank report: also list what to split, merge, reword and retire"
    )
    add_plot_option(parser, "bank size against stability (--item-statistics)")
    parser.add_argument("--seed", type=int, default=0, help="of random samples and shuffles (default 0)")
    parser.add_argument("--min-judgment", type=int, default=1, help="the least judgment that is relevant (default 1)")
    parser.add_argument("--min-rating", type=int, help="the least grade that covers an item (default: the scale's)")
    parser.add_argument("--queries", type=ids, metavar="ID,ID,…", help="only these queries")
    add_output_options(parser, [*TABLE_FORMS, "html"])
    add_review_option(parser)
    add = parser.add_argument_group("canary suite").add_argument
    add("--canary", action="store_true", help="let a grader grade known cases, and say how often it was fooled")
    add("--model", help="the grader: lexical, scripted:FILE, hf:NAME, openai:NAME or litellm:PROVIDER/NAME")
    add("--prompt", action="append", default=[], metavar="NAME", help="its prompt; may be repeated")
    add_endpoint_options(add)
    add("--cache", metavar="FILE", help="the reply cache (default: replies are not kept)")
    add("--cases", type=int, default=3, metavar="N", help="cases of each kind a query, where several can be made")
    add("--dry-run", action="store_true", help="say what would be called and what it would cost; report nothing")
    add("--prices", metavar="FILE", help="price table, for --dry-run and --max-cost")
    add("--max-calls", type=int, metavar="N", help="make so many calls at most")
    add("--max-cost", type=float, metavar="COST", help="make no call that costs more in all; needs --prices")
    add_grade_options(parser, scores=False)
    parser.epilog = """example:
  rubric_measures verify graded.jsonl.gz --bank questions.jsonl --uncovered-passages --min-judgment 2
  rubric_measures verify graded.jsonl.gz --bank questions.jsonl --verify-grading --order uncertainty
  rubric_measures verify graded.jsonl.gz --bank questions.jsonl --item-statistics --plot bank-size.svg
  rubric_measures verify graded.jsonl.gz --bank questions.jsonl --item-statistics --runs runs/*.run
  rubric_measures verify graded.jsonl.gz --bank questions.jsonl --bank-report --suggest
  rubric_measures verify passages.jsonl.gz --bank questions.jsonl --canary --model lexical
  rubric_measures verify passages.jsonl.gz --bank questions.jsonl --canary --model openai:gpt-4o --dry-run
  rubric_measures verify graded.jsonl.gz --bank questions.jsonl -o report.html"""


def run(options: argparse.Namespace) -> int:
    """Runs the command; 1 where a case of the canary suite has no grade."""
    from rubric_measures.api import load_bank, run_canaries
    from rubric_measures.records.files import load_graded
    from rubric_measures.verification.html import write_html
    from rubric_measures.verification.reports import check_reports, chosen_queries, report_parts, report_sections
    from rubric_measures.verification.sections import sections_report

    bank = None if options.bank is None else load_bank(options.bank)
    of_canaries = _canary_settings(options)
    read = (options.graded, options.bank, *options.runs, options.prices)
    keep_inputs_of(options, *read)
    keep_cache(options.cache, options.output, options.plot, *read)
    settings = _settings(options)
    review = review_of(options)
    canaries: tuple[Section, ...] = ()
    is_complete = True
    source = load_graded(options.graded)
    if options.canary:
        # What the reports would stop at is found before a call is made.
        check_reports(source, bank, settings)
        if options.model is None or bank is None:
            raise InputError("the canary suite needs the grader and the items", settings=("model", "bank"))
        groups = list(chosen_queries(source, settings, options.graded))
        asking = {**of_canaries, **passed(options, run_canaries), "source": options.graded}
        found = run_canaries(groups, bank, **asking, progress=is_watched())
        if found.plan is not None:
            print(found.plan)
            return 0
        canaries, is_complete = found.sections, found.is_complete
    if options.output_format == "html":
        parts = itertools.chain(canaries, report_parts(source, bank, settings))
        title = f"Verification of {Path(options.graded).name}"
        files = write_html(options.output, parts, settings, title, review)
        if len(files) > 1:
            _LOG.info("%s and %d pages of details beside it", files[0], len(files) - 1)
    else:
        sections = itertools.chain(canaries, report_sections(source, bank, settings))
        with atomic_writer(options.output) as stream:
            stream.writelines(render(sections_report(sections), options.output_format))
    return 0 if is_complete else 1


def _settings(options: argparse.Namespace) -> ReportSettings:
    """The reports that are named; where none is, the first four, and all in HTML."""
    from rubric_measures.verification.reports import ANALYSES, BANK, CALIBRATION, STATISTICS, ReportSettings

    reports = [name for name in (*ANALYSES, *STATISTICS, BANK, CALIBRATION) if getattr(options, name)]
    if not reports and not options.canary:
        reports = [*ANALYSES, *(STATISTICS if options.output_format == "html" else ())]
    return ReportSettings(
        reports,
        wanted_of(options),
        options.queries,
        options.runs,
        options.plot,
        options.seed,
        options.min_judgment,
        options.min_rating,
        options.order == "uncertainty",
        options.suggest,
    )
