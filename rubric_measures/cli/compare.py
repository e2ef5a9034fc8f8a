"""`compare`: runs against runs from per-query scores, with corrected tests and groups of equals."""

from __future__ import annotations

import argparse

from rubric_measures import api
from rubric_measures.analysis.board_reports import comparison_report
from rubric_measures.cli.inputs import (
    add_output_options,
    add_places_option,
    add_plot_option,
    add_test_options,
    chosen_smallest,
    keep_inputs_of,
    passed,
    write_output,
)
from rubric_measures.formats.leaderboards import FORMS as BOARD_FORMS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "scores", metavar="SCORES", nargs="+",
        help="leaderboards with per-query scores: our JSON, trec_eval -q lines, …; several files are put together",
    )  # fmt: skip
    parser.add_argument(
        "-m", "--measures", dest="measures", metavar="MEASURE", help="the measure, where there are several"
    )
    parser.add_argument("--runs", metavar="RUN", nargs="+", help="compare these runs only (default: all)")
    parser.add_argument("--baseline", metavar="RUN", help="compare every run with this one (default: all pairs)")
    add_test_options(parser)
    add_plot_option(parser, "the ranking with its groups")
    parser.add_argument(
        "--board-form", dest="form", choices=BOARD_FORMS, help="the form of SCORES, where it cannot be seen"
    )
    add_output_options(parser)
    add_places_option(parser)
    parser.epilog = """example:
  rubric_measures leaderboard graded.jsonl.gz runs/*.run --format json > scores.json
  rubric_measures compare scores.json -m 'RubricCover(rel=4)@20' --baseline bm25 --correction holm
  rubric_measures compare scores.json -m 'RubricCover(rel=4)@20' --verdicts --smallest 0.03"""


def run(options: argparse.Namespace) -> int:
    """Runs the command; 1 when queries or tests are missing."""
    keep_inputs_of(options, *options.scores)
    options.smallest = chosen_smallest(options)
    compared = api.compare(*options.scores, **passed(options, api.compare))
    if options.plot is not None:
        compared.plot(options.plot)
    (comparison,) = compared.values()
    report = comparison_report(comparison, options.places, {"rounds": options.rounds, "seed": options.seed})
    write_output(options, report)
    compared.log_notes()
    return 0 if compared.is_complete else 1
