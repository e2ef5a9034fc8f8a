"""`agreement`: two or more label sources on the same documents: judgments, graded records, item grades."""

from __future__ import annotations

import argparse
import logging

from rubric_measures import api
from rubric_measures.analysis.label_sources import SourceAgreement, agreement_report
from rubric_measures.analysis.workbench import tables_report
from rubric_measures.base.errors import InputError
from rubric_measures.cli.correlate import add_bootstrap_options
from rubric_measures.cli.inputs import (
    add_grade_options,
    add_output_options,
    add_places_option,
    add_plot_option,
    keep_inputs_of,
    passed,
    write_output,
)

_LOG = logging.getLogger("rubric_measures")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "sources", metavar="SOURCE", nargs="+",
        help="qrels, graded records (their labels), or judgments:RECORDS; the first is the truth, the others are "
        "judges; one records file alone: its labels against its judgments",
    )  # fmt: skip
    parser.add_argument("--items", action="store_true", help="compare item grades, not labels of passages")
    parser.add_argument("--label", choices=["max", "count"], default="max", help="how item grades become a label")
    parser.add_argument(
        "--rel", type=int, help="minimum grade that counts (default: all grades; for count, the scale's covering level)"
    )
    parser.add_argument(
        "--cutoff", metavar=("A", "B"), nargs=2, type=int, action="append", default=[],
        help="binarise: first source at least A, the others at least B; may be repeated (default: at each label)",
    )  # fmt: skip
    parser.add_argument(
        "--clamp", action="store_true",
        help="bring labels outside the truth's scale to its nearest end; each judge and how many is said",
    )  # fmt: skip
    parser.add_argument(
        "--runs", metavar="RUN", nargs="+",
        help="TREC runs: also correlate the leaderboard that each judge's labels make with the truth's",
    )  # fmt: skip
    parser.add_argument(
        "-m", "--measures", dest="measure", metavar="MEASURE", default="nDCG@10", help="of --runs (default: nDCG@10)"
    )
    parser.add_argument("--llm-b", help="the second source's model, where both are records")
    parser.add_argument("--prompt-class-b", help="the second source's prompt")
    parser.add_argument("--grade-set-b", metavar="HASH", help="the second source's settings, see --grade-set")
    parser.add_argument("--tables", action="store_true", help="the Rubric workbench's tables of one records file")
    parser.add_argument(
        "--min-answers", metavar="N", type=int, nargs="+", default=[1, 2, 5],
        help="of --tables: the label is the N-th highest grade, or the lowest of fewer (default 1 2 5)",
    )  # fmt: skip
    parser.add_argument(
        "--min-judgment", type=int, choices=[1, 2], default=1,
        help="of --tables: the least judgment that is relevant; 1 as in the workbench, 2 as in its paper (default 1)",
    )  # fmt: skip
    add_plot_option(parser, "the labels of the first two sources", ("bland-altman", "confusion"))
    add_bootstrap_options(parser)
    add_output_options(parser)
    add_places_option(parser)
    add_grade_options(parser, scores=False)
    parser.epilog = """examples:
  rubric_measures agreement assessors.qrels model.qrels --cutoff 2 2
  rubric_measures agreement assessors.qrels judges/*.qrels --runs runs/*.run --clamp
  rubric_measures agreement graded.jsonl.gz --cutoff 4 2        (labels against the judgments inside)
  rubric_measures agreement graded.jsonl.gz --tables --format latex
  rubric_measures agreement graded.jsonl.gz graded.jsonl.gz --items --prompt-class A --prompt-class-b B"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    keep_inputs_of(options, options.bank, *(source.removeprefix("judgments:") for source in options.sources))
    if options.tables:
        if len(options.sources) != 1:
            raise InputError("--tables takes one graded-records file")
        tables = api.agreement_tables(options.sources[0], **passed(options, api.agreement_tables))
        write_output(options, tables_report(tables))
        return 0
    options.cutoff = [(a, b) for a, b in options.cutoff]
    result = api.agreement(*options.sources, **passed(options, api.agreement))
    if options.plot is not None:
        result.plot(options.plot, options.plot_kind)
    write_output(options, agreement_report(result, options.places))
    return _say(result)


def _say(result: SourceAgreement) -> int:
    for name, count in zip(result.names, result.only_in, strict=True):
        if count:
            _LOG.warning("%d documents are labelled by %s only and left out of the pairs", count, name)
    board = result.judges
    ends = f"{board.scale[0]} to {board.scale[1]}"
    for row in board.rows:
        if row.outside and board.is_clamped:
            text = "%s: %d labels outside the truth's scale (%s) are brought to its nearest end"
            _LOG.warning(text, row.name, row.outside, ends)
        elif row.outside:
            text = "%s: %d labels are outside the truth's scale (%s) and count as they are; --clamp brings them into it"
            _LOG.warning(text, row.name, row.outside, ends)
    for name, histogram in zip(result.names, result.histograms, strict=True):
        if histogram.unused:
            count = len(histogram.unused)
            labels = ", ".join(map(str, histogram.unused[:12])) + (f" and {count - 12} more" if count > 12 else "")
            _LOG.info("%s never uses the label%s %s", name, "s" if count > 1 else "", labels)
    is_undefined = result.agreement.kappa is None
    if is_undefined:
        _LOG.warning("kappa and alpha are undefined: both sources give one and the same label throughout")
    if result.query_kappa.undefined:
        _LOG.info("kappa is undefined on %d queries (one label throughout)", result.query_kappa.undefined)
    return 1 if is_undefined else 0
