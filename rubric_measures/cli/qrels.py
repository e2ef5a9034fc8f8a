"""`qrels`: grades as judgments for trec_eval and its friends, per passage, per facet or per item."""

from __future__ import annotations

import argparse

from rubric_measures.base.errors import InputError
from rubric_measures.cli.inputs import add_grade_options, bank_of, grades_of, holds_records, keep_inputs, wanted_of
from rubric_measures.grades.compiled import Grades
from rubric_measures.grades.qrels import UNITS, QrelsSpool, qrels_of

__all__ = ["HELP", "add_arguments", "run"]

HELP = "graded records to qrels"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("graded", metavar="GRADED", help="graded records, item qrels, or an ir_datasets id")
    parser.add_argument("--output", "-o", metavar="FILE", default="-", help="write there (default: standard output)")
    parser.add_argument("--label", choices=["max", "count"], default="max", help="how item grades become a label")
    parser.add_argument("--rel", type=int, default=1, help="minimum grade that counts (default 1)")
    parser.add_argument(
        "--per",
        choices=UNITS,
        default="passage",
        help="one label a passage (default); per facet, as query_id/facet_id; or one line an item (diversity qrels)",
    )
    add_grade_options(parser)
    parser.epilog = """example:
  rubric_measures qrels graded.jsonl.gz --label max --rel 4 -o rubric.qrels
  trec_eval -l 4 rubric.qrels bm25.run"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    from rubric_measures.formats.trec import write_qrels

    keep_inputs(options.output, options.graded, options.bank)
    if options.per == "item" and (options.label, options.rel) != ("max", 1):
        raise InputError("--per item writes the grades themselves; leave --label and --rel out")
    if not holds_records(options.graded):
        grades = grades_of(options.graded, options)
        if not isinstance(grades, Grades):
            raise InputError(f"{options.graded}: holds no item grades")
        write_qrels(options.output, qrels_of(grades, options.per, options.label, options.rel))
        return 1 if any(query.failed for query in grades.queries.values()) else 0
    from rubric_measures.grades.loading import consume_records

    with QrelsSpool(options.per, options.label, options.rel, options.on_failed) as spool:
        consume_records(
            lambda stream: spool.fill(query.grades for query in stream),
            options.graded,
            bank_of(options),
            wanted_of(options),
        )
        write_qrels(options.output, spool.rows())
        return 1 if spool.failed else 0
