"""`evaluate`: ir_measures' command, with the measures of this package beside its own."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping

import ir_measures
from ir_measures.measures.base import Measure
from ir_measures.util import Metric

from rubric_measures import api
from rubric_measures.base.errors import InputError, escaped, naming
from rubric_measures.base.files import atomic_writer
from rubric_measures.cli.inputs import add_grade_options, add_label_option, add_places_option, passed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds ir_measures' own arguments, and those that choose grades."""
    parser.add_argument("qrels", metavar="QRELS", help="graded records, qrels, item qrels, or an ir_datasets id")
    parser.add_argument("run", metavar="RUN", help="a TREC run file (gzip or plain, - for standard input)")
    parser.add_argument("measures", metavar="MEASURE", nargs="+", help="such as RubricCover(rel=4)@20 or nDCG@10")
    add_places_option(parser)
    parser.add_argument("-q", "--by_query", "--by-query", action="store_true", help="print a line a query")
    parser.add_argument("-n", "--no_summary", "--no-summary", action="store_true", help="with -q: leave out the mean")
    parser.add_argument(
        "-o", "--output_format", "--output-format", choices=["tsv", "jsonl"], default="tsv", help="default: tsv"
    )
    parser.add_argument("--provider", choices=sorted(ir_measures.providers.registry), help="compute with this provider")
    parser.add_argument("--facets", action="store_true", help="score facets (subtopics) in the place of items")
    add_grade_options(parser)
    add_label_option(parser)
    parser.epilog = """example:
  rubric_measures evaluate graded.jsonl.gz bm25.run 'RubricCover(rel=4)@20' 'RubricQrels(measure="nDCG@10")'
  rubric_measures evaluate qrels.txt bm25.run nDCG@10 AP -q"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    if options.no_summary and not options.by_query:
        raise InputError("--no_summary (-n) only makes sense with --by_query (-q)")
    with naming(options.qrels, options.run):
        given = (options.qrels, options.run, options.measures, options.bank)
        values = api.evaluate(*given, **passed(options, api.evaluate))
    # So that a full disk names the output.
    with atomic_writer("-"):
        _print(values.metrics, values.means, options)
    values.log_notes()
    return 1 if values.failed else 0


def _print(metrics: Iterable[Metric], means: Mapping[Measure, float], options: argparse.Namespace) -> None:
    """Prints as ir_measures prints, byte for byte."""
    if options.output_format == "jsonl" and options.places != 4:
        sys.stderr.write("--places is ignored when using -o jsonl\n")
    number = "" if options.places == -1 else f".{options.places}f"

    def line(metric: Metric) -> str:
        name = str(metric.measure)
        if options.output_format == "jsonl":
            content = {"query_id": metric.query_id, "measure": name, "value": metric.value}
            if not options.by_query:
                del content["query_id"]
            return json.dumps(content)
        start = f"{escaped(metric.query_id)}\t" if options.by_query else ""
        return f"{start}{name}\t{metric.value:{number}}"

    if options.by_query:
        for metric in metrics:
            print(line(metric))
    if not options.no_summary:
        for measure, mean in means.items():
            print(line(Metric("all", measure, mean)))
