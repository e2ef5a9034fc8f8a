"""`agreement`: two or more label sources on the same documents: judgments, graded records, item grades."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from dataclasses import replace

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.tables import TABLE_FORMS, render
from rubric_measures.cli.correlate import add_bootstrap_options
from rubric_measures.cli.inputs import (
    add_grade_options,
    add_places_option,
    bank_of,
    is_records,
    keep_inputs_of,
    refuse_filters,
    wanted_of,
)
from rubric_measures.grades.grade_sets import GradeFilter
from rubric_measures.meta_evaluation.agreement_tables import agreement_report
from rubric_measures.meta_evaluation.label_sources import (
    LabelSource,
    SourceAgreement,
    compare_sources,
    judgments_of_records,
    labels_of_qrels,
    labels_of_records,
    passages_of_records,
)
from rubric_measures.meta_evaluation.workbench_tables import tables_report, workbench_tables

__all__ = ["HELP", "add_arguments", "run"]

HELP = "agreement of label sources: confusion, kappa, alpha, cutoffs"
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
    parser.add_argument("--rel", type=int, default=1, help="minimum grade that counts for a label (default 1)")
    parser.add_argument(
        "--cutoff", metavar=("A", "B"), nargs=2, type=int, action="append", default=[],
        help="binarise: first source at least A, second at least B; may be repeated (default: every pair, in JSON)",
    )  # fmt: skip
    parser.add_argument("--scale", type=int, nargs=2, metavar=("MIN", "MAX"), help="grades a source may use")
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
  rubric_measures agreement people.qrels model.qrels --cutoff 2 2
  rubric_measures agreement graded.jsonl.gz --cutoff 4 2        (labels against the judgments inside)
  rubric_measures agreement graded.jsonl.gz --tables -o latex
  rubric_measures agreement graded.jsonl.gz graded.jsonl.gz --items --prompt-class A --prompt-class-b B"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    keep_inputs_of(options, options.bank, *(source.removeprefix("judgments:") for source in options.sources))
    if options.rounds < 0:
        raise InputError("--rounds is 0 or more")
    if options.tables:
        return _tables(options)
    if options.scale is not None and options.scale[0] >= options.scale[1]:
        raise InputError("--scale names the lowest grade, then the highest")
    sources = _sources(options)
    scale = None if options.scale is None else range(options.scale[0], options.scale[1] + 1)
    result = compare_sources(
        sources,
        [(a, b) for a, b in options.cutoff],
        scale=scale,
        rounds=options.rounds,
        seed=options.seed,
        level=options.level,
    )
    if options.plot is not None:
        from rubric_measures.meta_evaluation.plots import plot_bland_altman, save_figure

        x, y = result.aligned
        names = (sources[0].name, sources[1].name)
        save_figure(plot_bland_altman(x, y, names=names), options.plot)
    with atomic_writer(options.output) as stream:
        stream.writelines(render(agreement_report(result, options.places), options.output_format))
    return _say(result)


def _tables(options: argparse.Namespace) -> int:
    if len(options.sources) != 1 or not is_records(options.sources[0]):
        raise InputError("--tables takes one graded-records file")
    passages = passages_of_records(options.sources[0], bank_of(options), wanted_of(options))
    unjudged = sum(1 for passage in passages if not passage.judgments)
    ungraded = sum(1 for passage in passages if not passage.grades)
    report = tables_report(workbench_tables(passages, options.min_answers))
    with atomic_writer(options.output) as stream:
        stream.writelines(render(report, options.output_format))
    if unjudged or ungraded:
        _LOG.info("%d passages without a judgment and %d without a grade are left out", unjudged, ungraded)
    return 0


def _sources(options: argparse.Namespace) -> list[LabelSource]:
    paths = list(options.sources)
    if len(paths) == 1:
        if paths[0] == "-" or not is_records(paths[0]):
            raise InputError("agreement needs two sources, or one graded-records file with judgments")
        paths.append(f"judgments:{paths[0]}")
    graded = [not path.startswith("judgments:") and is_records(path) for path in paths]
    if not any(graded):
        refuse_filters(" and ".join(paths), options)
        if options.bank is not None:
            raise InputError("neither source is graded records, whose items a bank names; leave --bank out")
    if (options.llm_b or options.prompt_class_b or options.grade_set_b) and not graded[1]:
        raise InputError(
            f"{paths[1]}: is no file of graded records; leave --llm-b, --prompt-class-b, --grade-set-b out"
        )
    return [_source(path, index, options) for index, path in enumerate(paths)]


def _source(path: str, index: int, options: argparse.Namespace) -> LabelSource:
    if path.startswith("judgments:"):
        if options.items:
            raise InputError("judgments have no items; leave --items out")
        return judgments_of_records(path.removeprefix("judgments:"))
    if not is_records(path):
        return labels_of_qrels(path, items=options.items, label=options.label, rel=options.rel)
    wanted: GradeFilter = wanted_of(options)
    if index == 1 and (options.llm_b or options.prompt_class_b or options.grade_set_b):
        other_grader = options.llm_b or options.prompt_class_b
        wanted = replace(
            wanted,
            llm=options.llm_b or wanted.llm,
            prompt_class=options.prompt_class_b or wanted.prompt_class,
            # The hash of one grader is not that of another.
            grade_set=options.grade_set_b or (None if other_grader else wanted.grade_set),
        )
    return labels_of_records(path, bank_of(options), wanted, items=options.items, label=options.label, rel=options.rel)


def _say(result: SourceAgreement) -> int:
    for name, count in zip(result.names, result.only_in, strict=True):
        if count:
            _LOG.warning("%d documents are labelled by %s only and left out of the pairs", count, name)
    for name, histogram in zip(result.names, result.histograms, strict=True):
        if histogram.unused:
            labels = ", ".join(str(label) for label in histogram.unused)
            _LOG.info("%s never uses the label%s %s", name, "s" if len(histogram.unused) > 1 else "", labels)
    undefined = _undefined(result)
    for text in undefined:
        _LOG.warning("%s", text)
    if result.topic_kappa.undefined:
        _LOG.info("kappa is undefined on %d topics (one label throughout)", result.topic_kappa.undefined)
    return 1 if undefined else 0


def _undefined(result: SourceAgreement) -> Sequence[str]:
    if result.agreement.kappa is None:
        return ["kappa and alpha are undefined: both sources give one and the same label throughout"]
    return []
