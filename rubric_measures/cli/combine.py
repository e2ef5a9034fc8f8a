"""`combine`: the grades of several graders as those of a panel or a cascade, with what that gains."""

from __future__ import annotations

import argparse
import sys

from rubric_measures.base.tables import TABLE_FORMS, render
from rubric_measures.cli.inputs import (
    NamedNumber,
    add_grade_options,
    add_places_option,
    grade_choices,
    passed,
)

_PASSED = (
    *("by", "weight", "first", "then", "when", "name", "output", "bank", "official", "official_measure", "measure"),
    *("cost", "runs"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    add = parser.add_argument
    add("graded", metavar="GRADED", help="graded records")
    ways = ("majority", "median", "mean", "weights", "cascade")
    add("--by", choices=ways, default="majority", help="how grades become one (default majority)")
    add(
        "--weight", action=NamedNumber, default={}, metavar="LLM=NUMBER", help="by weights: what a member's vote counts"
    )
    add("--name", default="", metavar="NAME", help="what the new grader is called (default: panel:majority, …)")
    add("-o", "--output", metavar="OUT", help="the records with the new grades (default: only the report)")
    add("--first", metavar="LLM", help="cascade: the grader that is asked always")
    add("--then", metavar="LLM", help="cascade: the grader that is asked where --if holds")
    conditions = "between=LOW:HIGH (grades of the first), or uncertain=P (its most probable grade has less)"
    add("--if", dest="when", metavar="CONDITION", help=f"cascade: {conditions}")
    add("--cost", action=NamedNumber, default={}, metavar="LLM=NUMBER", help="cascade: what one grade by LLM costs")
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
  rubric_measures combine graded.jsonl.gz --by cascade --first small --then large --if between=1:3 \\
      --cost small=0.0001 --cost large=0.01

The report goes to standard output (with -o -, to standard error)."""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    from rubric_measures import api

    chosen = grade_choices(options)
    combined = api.combine(
        options.graded,
        chosen.pop("llm") or (),
        **passed(options, *_PASSED),
        cutoff=None if options.cutoff is None else tuple(options.cutoff),
        **chosen,
    )
    stream = sys.stderr if options.output == "-" else sys.stdout
    stream.writelines(render(combined.report.report(options.places), options.output_format))
    return 0
