"""`combine`: the grades of several graders as those of a panel, with what that gains."""

from __future__ import annotations

import argparse
import sys

from rubric_measures.base.errors import InputError
from rubric_measures.base.tables import TABLE_FORMS, render
from rubric_measures.cli.inputs import NamedNumber, add_grade_options, add_places_option, passed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    add = parser.add_argument
    add("graded", metavar="GRADED", help="graded records")
    ways = ("majority", "median", "mean", "weights")
    add("--by", choices=ways, help="how grades become one (default majority)")
    add(
        "--prefer",
        metavar="LLM",
        nargs="+",
        default=[],
        help="no vote: of each item the grade of the first of these graders that has one; a grader that failed, or was "
        "not asked, leaves it to the next",
    )
    add(
        "--weight", action=NamedNumber, default={}, metavar="LLM=NUMBER", help="by weights: what a member's vote counts"
    )
    add("--name", default="", metavar="NAME", help="what the new grader is called (default: panel:majority, …)")
    add("-o", "--output", metavar="OUT", help="the records with the new grades (default: only the report)")
    add = parser.add_argument_group("the report").add_argument
    cutoff = "kappa with judgments: labels from A, judgments from B on are relevant (default: covering level, 1)"
    add("--cutoff", metavar=("A", "B"), nargs=2, type=int, help=cutoff)
    add("--official", metavar="BOARD", help="the official leaderboard, for tau")
    add("--official-measure", metavar="MEASURE", help="its column, where it has several")
    add("--runs", metavar="RUN", nargs="+", help="the runs of leaderboards (default: the rankings in the records)")
    add(
        "-m",
        "--measures",
        dest="measure",
        metavar="MEASURE",
        help="of leaderboards (default RubricCover@20; of labels nDCG@10)",
    )
    add("--format", dest="output_format", choices=TABLE_FORMS, default="text", help="of the report (default text)")
    add_places_option(parser)
    add_grade_options(parser, scores=False, several=True)
    parser.epilog = """examples:
  rubric_measures combine graded.jsonl.gz --llm A --llm B --llm C --by majority -o panel.jsonl.gz
  rubric_measures leaderboard panel.jsonl.gz --llm panel:majority --bank bank.jsonl.gz
  rubric_measures combine graded.jsonl.gz --prefer large small -o best.jsonl.gz

The report goes to standard output (with -o -, to standard error)."""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    from rubric_measures import api

    members = options.llm or ()
    if options.prefer and (members or options.by or options.weight):
        raise InputError("--prefer names the graders, and there is no vote; leave --llm, --by and --weight out")
    options.llm = options.prefer or members
    options.by = "prefer" if options.prefer else options.by or "majority"
    options.cutoff = None if options.cutoff is None else tuple(options.cutoff)
    combined = api.combine(options.graded, **passed(options, api.combine))
    stream = sys.stderr if options.output == "-" else sys.stdout
    stream.writelines(render(combined.report.report(options.places), options.output_format))
    return 0
