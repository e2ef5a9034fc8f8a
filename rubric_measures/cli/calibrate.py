"""`calibrate`: a grader held to a few grades of assessors, or of another grader."""

from __future__ import annotations

import argparse

from rubric_measures import api
from rubric_measures.cli.correlate import add_bootstrap_options
from rubric_measures.cli.inputs import add_grade_options, add_output_options, add_places_option, passed, write_output
from rubric_measures.corpora.overwriting import keep_inputs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("graded", metavar="GRADED", help="graded records")
    parser.add_argument(
        "--anchors",
        metavar="FILE",
        help="graded records with the truth's grades of some items (default: GRADED)",
    )
    parser.add_argument(
        "--against", metavar="MODEL", default="assessors",
        help="whose grades are the truth: assessors (default), an older grader, or the same one at an earlier time",
    )  # fmt: skip
    parser.add_argument("--rel", type=int, help="the least grade that covers an item (default: the scale's)")
    parser.add_argument(
        "--smallest", metavar="D", type=float, default=0.1, help="the smallest bias that matters (default 0.1 grades)"
    )
    add_bootstrap_options(parser)
    add_output_options(parser)
    add_places_option(parser)
    add_grade_options(parser, scores=False)
    parser.epilog = """examples:
  rubric_measures calibrate reviewed.jsonl.gz --bank nuggets.jsonl
  rubric_measures calibrate regraded.jsonl.gz --anchors graded.jsonl.gz --against gpt-4o --llm gpt-5"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    keep_inputs(options.output, options.graded, options.anchors, options.bank)
    found = api.calibrate(options.graded, **passed(options, api.calibrate))
    write_output(options, found.report(options.places))
    return 0
