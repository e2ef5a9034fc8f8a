"""`agreement`: two or more label sources on the same documents: judgments, graded records, item grades."""

from __future__ import annotations

import argparse
import logging

from rubric_measures import api
from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.tables import TABLE_FORMS, Report, render
from rubric_measures.cli.correlate import add_bootstrap_options
from rubric_measures.cli.inputs import (
    add_grade_options,
    add_places_option,
    grade_choices,
    keep_inputs_of,
)
from rubric_measures.meta_evaluation.label_sources import SourceAgreement, agreement_report
from rubric_measures.meta_evaluation.workbench_tables import tables_report

__all__ = ["HELP", "add_arguments", "run"]

HELP = "agreement of label sources: confusion, kappa, alpha, cutoffs"
_PASSED = (
    *("items", "label", "rel", "rounds", "seed", "level", "bank"),
    *("llm_b", "prompt_class_b", "grade_set_b"),
)
_LOG = logging.getLogger("rubric_measures")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "sources", metavar="SOURCE", nargs="+",
        help="qrels, graded records (their labels), or judgments:RECORDS; one records file alone: its labels against "
        "its judgments",
    )  # fmt: skip
    parser.add_argument("--items", action="store_true", help="compare item grades, not labels of passages")
    parser.add_argument("--label", choices=["max", "count"], default="max", help="how item grades become a label")
    parser.add_argument(
        "--rel", type=int, help="minimum grade that counts (default: all grades; for count, the scale's covering level)"
    )
    parser.add_argument(
        "--cutoff", metavar=("A", "B"), nargs=2, type=int, action="append", default=[],
        help="binarise: first source at least A, second at least B; may be repeated (default: every pair, in JSON)",
    )  # fmt: skip
    parser.add_argument("--llm-b", help="the second source's model, where both are records")
    parser.add_argument("--prompt-class-b", help="the second source's prompt")
    parser.add_argument("--grade-set-b", metavar="HASH", help="the second source's settings, see --grade-set")
    parser.add_argument("--tables", action="store_true", help="the Rubric workbench's tables of one records file")
    parser.add_argument("--min-answers", type=int, nargs="+", default=[1, 2, 5], help="of --tables (default 1 2 5)")
    parser.add_argument("--plot", metavar="FILE", help="Bland–Altman plot of the first two sources (png, svg, pdf)")
    add_bootstrap_options(parser)
    parser.add_argument("-o", "--output-format", choices=TABLE_FORMS, default="text", help="default: text")
    parser.add_argument("--output", metavar="FILE", default="-", help="write there (default: standard output)")
    add_places_option(parser)
    add_grade_options(parser, scores=False)
    parser.epilog = """examples:
  rubric_measures agreement assessors.qrels model.qrels --cutoff 2 2
  rubric_measures agreement graded.jsonl.gz --cutoff 4 2        (labels against the judgments inside)
  rubric_measures agreement graded.jsonl.gz --tables -o latex
  rubric_measures agreement graded.jsonl.gz graded.jsonl.gz --items --prompt-class A --prompt-class-b B"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    keep_inputs_of(options, options.bank, *(source.removeprefix("judgments:") for source in options.sources))
    if options.tables:
        if len(options.sources) != 1:
            raise InputError("--tables takes one graded-records file")
        tables = api.agreement_tables(
            options.sources[0], min_answers=options.min_answers, bank=options.bank, **grade_choices(options)
        )
        _write(tables_report(tables), options)
        return 0
    result = api.agreement(
        *options.sources,
        **{name: getattr(options, name) for name in _PASSED},
        cutoff=[(a, b) for a, b in options.cutoff],
        **grade_choices(options),
    )
    if options.plot is not None:
        from rubric_measures.meta_evaluation.plots import plot_bland_altman, save_figure

        x, y = result.aligned
        save_figure(plot_bland_altman(x, y, names=(result.names[0], result.names[1])), options.plot)
    _write(agreement_report(result, options.places), options)
    return _say(result)


def _write(report: Report, options: argparse.Namespace) -> None:
    with atomic_writer(options.output) as stream:
        stream.writelines(render(report, options.output_format))


def _say(result: SourceAgreement) -> int:
    for name, count in zip(result.names, result.only_in, strict=True):
        if count:
            _LOG.warning("%d documents are labelled by %s only and left out of the pairs", count, name)
    for name, histogram in zip(result.names, result.histograms, strict=True):
        if histogram.unused:
            labels = ", ".join(str(label) for label in histogram.unused)
            _LOG.info("%s never uses the label%s %s", name, "s" if len(histogram.unused) > 1 else "", labels)
    is_undefined = result.agreement.kappa is None
    if is_undefined:
        _LOG.warning("kappa and alpha are undefined: both sources give one and the same label throughout")
    if result.query_kappa.undefined:
        _LOG.info("kappa is undefined on %d queries (one label throughout)", result.query_kappa.undefined)
    return 1 if is_undefined else 0
