"""`evaluate`: ir_measures' command, with the measures of this package beside its own."""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import ir_measures
from ir_measures.measures.base import Measure
from ir_measures.util import Metric, ScoredDoc

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import open_binary, read_text
from rubric_measures.base.tables import escaped
from rubric_measures.cli.inputs import (
    add_grade_options,
    add_places_option,
    are_items,
    bank_of,
    grades_of,
    holds_records,
    is_assignments,
    judgments_of,
    refuse_filters,
    wanted_of,
)
from rubric_measures.formats.trec import Run, read_run
from rubric_measures.formats.trec_ids import as_known, spaced_ids
from rubric_measures.grades.compiled import BANK_DOC, Grades, QueryGrades, faceted
from rubric_measures.grades.notes import note_queries, note_without_items
from rubric_measures.leaderboards.evaluation import Evaluation, evaluate_run
from rubric_measures.measures import RubricMeasure, is_supported
from rubric_measures.measures.delegated import compute
from rubric_measures.measures.intent_aware import INTENT_AWARE
from rubric_measures.measures.parsing import note_labels, parse_measures, rubric_measures_of
from rubric_measures.measures.provider import RubricProvider

__all__ = ["HELP", "add_arguments", "run"]

HELP = "score one run, with ir_measures' syntax and output"


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
    parser.epilog = """example:
  rubric_measures evaluate graded.jsonl.gz bm25.run 'RubricCover(rel=4)@20' 'RubricQrels(measure="nDCG@10")'
  rubric_measures evaluate qrels.txt bm25.run nDCG@10 AP -q"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    if options.no_summary and not options.by_query:
        raise InputError("--no_summary (-n) only makes sense with --by_query (-q)")
    measures = parse_measures(options.measures)
    ours = any(is_supported(measure) for measure in measures)
    if options.qrels == "-" and options.run == "-":
        raise InputError("only one of QRELS and RUN can be standard input")
    if holds_records(options.qrels):
        if options.provider not in (None, RubricProvider.NAME):
            raise _no_judgments(options, measures)
        evaluation, scored = _from_records(options, rubric_measures_of(measures))
        note_labels(measures)
        return _print_evaluation(evaluation, scored, options)
    if options.provider in (None, RubricProvider.NAME):
        qrels = grades_of(options.qrels, options, ours)
    else:
        qrels = _rows_for_provider(options, measures)
    if isinstance(qrels, Grades):
        queries = (qrels.by_facet() if options.facets else qrels).queries
        scored = read_run(options.run)
        evaluation = evaluate_run(queries.values(), scored, rubric_measures_of(measures), options.on_failed)
        note_labels(measures)
        return _print_evaluation(evaluation, scored, options)
    if options.facets:
        raise InputError(f"{options.qrels}: holds judgments of documents, which have no facets; leave --facets out")
    run = _as_judged(_scored_docs(options.run), qrels)
    _print(compute(measures, qrels, run, options.provider), measures, options)
    return 0


def _rows_for_provider(options: argparse.Namespace, measures: Sequence[Measure]) -> list[Any]:
    """The judgments for a program that knows no test bank: as they stand in the file, items as subtopics.

    Raises:
        InputError: the file holds something else; or a measure reads one judgment a document, and there are several.
    """
    if is_assignments(options.qrels):
        raise _no_judgments(options, measures)
    refuse_filters(options.qrels, options)
    if options.bank is not None or options.facets:
        raise InputError(f"--provider {options.provider} knows neither --bank nor --facets; leave them or it out")
    rows = judgments_of(options.qrels)
    if are_items(rows) and not all(measure.NAME in INTENT_AWARE for measure in measures):
        raise _no_judgments(options, measures)
    return [row for row in rows if row.doc_id != BANK_DOC]


def _no_judgments(options: argparse.Namespace, measures: Sequence[Measure]) -> InputError:
    others = [measure.NAME in INTENT_AWARE for measure in measures if not isinstance(measure, RubricMeasure)]
    ways = ["rubric_measures qrels --per item (for measures over subtopics)"] if True in others else []
    ways += ["rubric_measures qrels (for measures over passages)"] if False in others else []
    first = f"make judgments of them first with {' and '.join(ways)}, or " if ways else ""
    return InputError(
        f"--provider {options.provider} reads judgments, and {options.qrels} holds grades of items; "
        f"{first}leave --provider out"
    )


def _from_records(options: argparse.Namespace, measures: Sequence[Measure]) -> tuple[Evaluation, Run]:
    """Scores the run against graded records as they are read."""
    from rubric_measures.grades.loading import RecordQuery, consume_records

    run = read_run(options.run)

    def evaluated(stream: Iterator[RecordQuery]) -> Evaluation:
        queries: Iterator[QueryGrades] = (query.grades for query in stream)
        if options.facets:
            queries = (grades.by_facet() for grades in faceted(queries, lambda grades: grades))
        return evaluate_run(queries, run, measures, options.on_failed)

    return consume_records(evaluated, options.qrels, bank_of(options), wanted_of(options)), run


def _print_evaluation(evaluation: Evaluation, run: Run, options: argparse.Namespace) -> int:
    _print(evaluation.metrics, evaluation.measures, options)
    return _say_coverage(evaluation, run, options.on_failed)


def _scored_docs(path: str) -> list[ScoredDoc]:
    """The run in file order, checked: some providers of ir_measures break ties by it."""
    if path == "-" or (Path(path).exists() and not Path(path).is_file()):
        # A pipe can be read only once.
        with tempfile.NamedTemporaryFile() as copy, open_binary(path) as stream:
            shutil.copyfileobj(stream, copy)
            copy.flush()
            return _scored_docs(copy.name)
    read_run(path)
    lines = (line.split() for line in read_text(path).split("\n"))
    return [ScoredDoc(columns[0], columns[2], float(columns[4])) for columns in lines if columns]


def _as_judged(run: list[ScoredDoc], qrels: Sequence[Any]) -> list[ScoredDoc]:
    """The run with the ids of the judgments where those hold spaces, which a run file cannot."""
    queries = spaced_ids({row.query_id for row in qrels})
    docs = spaced_ids({row.doc_id for row in qrels})
    if not queries and not docs:
        return run
    return [ScoredDoc(queries.get(row[0], row[0]), docs.get(row[1], row[1]), row[2]) for row in run]


def _print(metrics: Iterable[Metric], measures: Sequence[Measure], options: argparse.Namespace) -> None:
    """Prints as ir_measures prints, byte for byte."""
    if options.output_format == "jsonl" and options.places != 4:
        sys.stderr.write("--places is ignored when using --output jsonl\n")
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

    aggregators = {measure: measure.aggregator() for measure in measures}
    for metric in metrics:
        if options.by_query:
            print(line(metric))
        aggregators[metric.measure].add(metric.value)
    if not options.no_summary:
        for measure in measures:
            print(line(Metric("all", measure, aggregators[measure].result())))


def _say_coverage(evaluation: Evaluation, run: Run, on_failed: str) -> int:
    """Says how much of what was ranked is graded at all; 1 when a grade that was needed failed."""
    log = logging.getLogger("rubric_measures")
    asked = set(as_known(list(run.rankings), evaluation.queries | evaluation.without_items))
    unknown, unanswered = asked - evaluation.queries - evaluation.without_items, evaluation.queries - asked
    note_queries({run.run_id: unknown}, {run.run_id: unanswered})
    note_without_items(evaluation.without_items)
    if evaluation.failed:
        log.warning("%d grades of ranked passages failed; counted as --on-failed %s", evaluation.failed, on_failed)
    if evaluation.graded < evaluation.ranked:
        log.info("%d of %d ranked passages are graded", evaluation.graded, evaluation.ranked)
    return 1 if evaluation.failed else 0
