"""`qrels`: grades as judgments for trec_eval and its friends, per passage, per facet or per item."""

from __future__ import annotations

import argparse

from rubric_measures import api
from rubric_measures.cli.inputs import add_grade_options, add_label_option, loaded_grades, passed
from rubric_measures.corpora.overwriting import keep_inputs
from rubric_measures.measures.qrels import UNITS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("graded", metavar="GRADED", help="graded records, item qrels, or an ir_datasets id")
    parser.add_argument("--output", "-o", metavar="FILE", default="-", help="write there (default: standard output)")
    parser.add_argument("--label", choices=["max", "count"], default="max", help="how item grades become a label")
    parser.add_argument(
        "--rel", type=int, help="minimum grade that counts (default: all grades; for count, the scale's covering level)"
    )
    parser.add_argument(
        "--per",
        choices=UNITS,
        default="passage",
        help="one label a passage (default); per facet, as query_id/facet_id; or one line an item (diversity qrels)",
    )
    add_grade_options(parser, times=True)
    add_label_option(parser)
    parser.epilog = """example:
  rubric_measures qrels graded.jsonl.gz --label max --rel 4 -o rubric.qrels
  trec_eval -l 4 rubric.qrels bm25.run
  rubric_measures qrels graded.jsonl.gz --grade expected --scale 100 -o expected.qrels
  trec_eval -l 400 expected.qrels bm25.run"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    keep_inputs(options.output, options.graded, options.bank)
    times = None
    if options.scale is not None and options.scale.isdecimal():
        times, options.scale = int(options.scale), None
    grades = loaded_grades(options.graded, options)
    failed = api.write_qrels(grades, options.output, times=times, **passed(options, api.write_qrels))
    return 1 if failed else 0
