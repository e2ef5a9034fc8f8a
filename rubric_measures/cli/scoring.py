"""Commands that score and keep: check, convert, evaluate, leaderboard, qrels.

`check`: was a board made from these grades, this bank and these runs; packed for others to check; bundles, conclusions,
runs as they are submitted, runs that were not pooled.

`convert`: any format we read into any we write; merges files, adds runs and judgments to records.

`evaluate`: ir_measures' command, with the measures of this package beside its own.

`leaderboard`: many runs × measures in one process, with standard errors and coverage.

`qrels`: grades as judgments for trec_eval and its friends, per passage, per facet or per item.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import json
import logging
import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rubric_measures import api
from rubric_measures.base.errors import InputError, escaped, naming
from rubric_measures.base.files import atomic_writer, check_readable_twice, peek_head
from rubric_measures.base.tables import FORMS
from rubric_measures.cli.declared import Call, command
from rubric_measures.cli.inputs import (
    NamedNumber,
    Printed,
    add_gate_options,
    add_grade_options,
    add_output_options,
    add_places_option,
    add_plot_option,
    add_review_option,
    check_places,
    chosen_places,
    gated,
    gates_of,
    is_watched,
    keep_inputs_of,
    passed,
    progress,
    review_of,
    write_output,
)
from rubric_measures.corpora.overwriting import keep_apart, keep_inputs

if TYPE_CHECKING:
    from rubric_measures.pages.frame import ReviewAddress


@command(
    check_board="rubric_measures.api.boards:check_board",
    check_bundle="rubric_measures.api.boards:check_bundle",
    check_conclusions="rubric_measures.api.boards:check_conclusions",
    check_run="rubric_measures.api.evaluating:check_run",
    reusability="rubric_measures.api.scoring:reusability",
    files={"files": "FILE…"},
    without=("board", "grades", "runs", "folder", "later", "path", "scores", "others"),
)
def check(
    check_board: partial[Any],
    check_bundle: partial[Any],
    check_conclusions: partial[Any],
    check_run: partial[Any],
    reusability: partial[Any],
    *,
    files: list[str],
    track: str | None = None,
    pool_depth: int | None = None,
    printed: Printed = Printed(),
) -> int:
    """boards and bundles made again, and packed; runs by a track's rules

    examples:
      a board: is it what these grades, runs, bank and settings give? If so, --pack makes a bundle:
        rubric_measures check board.json graded.jsonl.gz bm25.run --bank questions.jsonl --pack evaluation
      a bundle, on any machine; and what changed to a later one:
        rubric_measures check evaluation
        rubric_measures check evaluation later
      what `compare` or `correlate` wrote as JSON, with the boards that it was made of:
        rubric_measures check compared.json board.json
      runs as they are submitted: what would the track refuse, or score otherwise?
        rubric_measures check my-run.jsonl --track rag26 --topics trec_rag_2026_queries.tsv
      judgments and runs: would a run that was not pooled be judged fairly?
        rubric_measures check qrels.txt runs/*.run --pool-depth 10 -m nDCG@10

    What differs or is wrong is a line each, and the exit code is then 1. Of boards and bundles it is said what is
    proved (computed again), claimed (who graded, what texts say) and not looked at; as JSON value by value.

    Args:
        files: what is checked, and the files that it is held to.
        track: say what it would refuse of runs, or score otherwise: rag26, rag25, rag24, ragtime, dragun, biogen, ….
        pool_depth: leave each run in turn out of a pool of the first so many passages of each run.
    """
    first, *rest = files
    given: list[Any] = files
    if track is not None:
        called, usage, given = check_run, "a run of a track is checked as `check RUN… --track TRACK`", [files, track]
    elif pool_depth is not None:
        usage, given = "a pool is checked as `check GRADED RUN… --pool-depth K`", [first, *([rest] if rest else [])]
        called = partial(reusability, pool_depth=pool_depth)
    elif Path(first).is_dir():
        called, usage = check_bundle, "a bundle is checked as `check FOLDER [LATER]`"
    elif re.search(rb'"rubric_measures (compare|correlate) ', peek_head(first)):
        called, usage = check_conclusions, "a conclusion is checked as `check COMPARED.json BOARD…`"
    else:
        called, usage = check_board, "a board is checked as `check BOARD.json GRADED RUN…`"
        given = [*files[:2], *([files[2:]] if files[2:] else [])]
    every = (check_board, check_bundle, check_conclusions, check_run, reusability)
    asked = {name for one in every for name in one.keywords} | ({"pool_depth"} if pool_depth is not None else set())
    if strange := asked - called.keywords.keys():
        raise InputError(f"{first}: {usage}; leave the rest out", settings=sorted(strange))
    try:
        inspect.signature(called).bind(*given)
    except TypeError:
        raise InputError(f"{first}: {usage}") from None
    found = called(*given)
    printed.write(found.report(printed.places))
    return 0 if found.holds else 1


@command(
    convert="rubric_measures.api.evaluating:convert", files={"inputs": "FILE…"}, spelled={"source": "--from"}
)  # fmt: skip
def convert(convert: Call) -> int:
    """any format to any other; merges files

    examples:
      rubric_measures convert flan-t5.jsonl.gz llama.jsonl.gz --add-run new.run -o graded.jsonl.gz
      rubric_measures convert graded.jsonl.gz --to item-qrels --bank questions.jsonl -o items.qrels
      rubric_measures convert tqa.json --to bank -o bank.jsonl.gz

    `rubric_measures list formats` says which formats there are, and which of them are read and written.
    """
    convert()
    return 0


@command(
    evaluate="rubric_measures.api.evaluating:evaluate",
    files={"source": "QRELS", "run": "RUN", "measures": "MEASURE…"},
    spelled={
        "by_query": "-q --by_query --by-query", "no_summary": "-n --no_summary --no-summary",
        "output_format": "-o --output_format --output-format",
    },
)  # fmt: skip
def evaluate(
    evaluate: Call,
    *,
    places: int = 4,
    by_query: bool = False,
    no_summary: bool = False,
    output_format: Literal["tsv", "jsonl"] = "tsv",
) -> int:
    """score one run, with ir_measures' syntax and output

    example:
      rubric_measures evaluate graded.jsonl.gz bm25.run 'RubricCover(rel=4)@20' 'RubricQrels(measure="nDCG@10")'
      rubric_measures evaluate qrels.txt bm25.run nDCG@10 AP -q

    Args:
        source: graded records, a table of grades, qrels, item qrels, or an ir_datasets id.
        run: a TREC run file (gzip or plain, - for standard input).
        measures: such as RubricCover(rel=4)@20 or nDCG@10.
        places: decimal places, -1 for all digits.
        by_query: print a line a query.
        no_summary: with -q: leave out the mean.
        output_format: of the lines.
    """
    if no_summary and not by_query:
        raise InputError("--no_summary (-n) only makes sense with --by_query (-q)")
    from ir_measures.util import Metric

    check_places(places)
    values = evaluate()
    if output_format == "jsonl" and places != 4:
        sys.stderr.write("--places is ignored when using -o jsonl\n")
    number = "" if places == -1 else f".{places}f"

    def line(metric: Metric) -> str:
        """As ir_measures prints, byte for byte."""
        name = str(metric.measure)
        if output_format == "jsonl":
            said = {"query_id": metric.query_id} if by_query else {}
            return json.dumps({**said, "measure": name, "value": metric.value})
        start = f"{escaped(metric.query_id)}\t" if by_query else ""
        return f"{start}{name}\t{metric.value:{number}}"

    # So that a full disk names the output.
    with atomic_writer("-"):
        for metric in values.metrics if by_query else ():
            print(line(metric))
        for measure, mean in () if no_summary else values.means.items():
            print(line(Metric("all", measure, mean)))
    values.log_notes()
    return 1 if values.failed else 0


def add_leaderboard_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "graded",
        metavar="GRADED",
        help="graded records, a table of grades, nuggetizer's assignments, support labels, …",
    )
    parser.add_argument("runs", metavar="RUN", nargs="*", help="TREC run files; without them the rankings in GRADED")
    parser.add_argument(
        "-m",
        "--measures",
        metavar="MEASURE",
        nargs="+",
        action="extend",
        help="default: what fits GRADED (Rubric-Cover of passages; nugget scores where items have importance; …)",
    )
    parser.add_argument(
        "--qrels",
        metavar="QRELS",
        help="official judgments, for official measures beside ours: nDCG@10 reads them, and "
        "RubricQrels(measure='nDCG@10') the grades",
    )
    add_output_options(parser, list(FORMS), "tsv")
    parser.add_argument(
        "--report",
        metavar="FILE.html",
        help="write a page: scores, what to look at, and why each item is covered or not",
    )
    add_review_option(parser)
    add_places_option(parser, None)
    parser.add_argument("--no-overall", action="store_true", help="leave out the best possible score")
    parser.add_argument("--length", action="store_true", help="add L, the length of answers in whitespace words")
    parser.add_argument("--present", action="store_true", help="add means over the queries alone that a run answers")
    parser.add_argument("--summary", action="store_true", help="add the greatest, median and least score of the runs")
    units = parser.add_mutually_exclusive_group()
    units.add_argument("--facets", action="store_true", help="score facets (subtopics) in the place of items")
    units.add_argument(
        "--per-facet",
        action="store_true",
        help="score the items of each facet apart (rows query/facet in trec_eval and json); means are over facets",
    )
    parser.add_argument(
        "--compat",
        choices=["workbench", "nuggetizer", "ragdoll"],
        help="compute as this program does, to recompute its published leaderboards (nuggetizer: of assignments; "
        "ragdoll: of its graded answers)",
    )
    what = "where GRADED is Auto-ARGUE's file of judgments (--bank has the nuggets with their answers)"
    argue = parser.add_argument_group(what)
    argue.add_argument(
        "--weights",
        metavar="NAME=WEIGHT",
        action=NamedNumber,
        default={},
        nargs="+",
        help="weights of nuggets by importance (default: vital=2 okay=1)",
    )
    argue.add_argument("--scores", metavar="FILE", help="write scores and counts there, in its own form")
    parser.add_argument(
        "--checks",
        action="store_true",
        help="Judged@k, missing queries, ties, and whether a tie rule decides the winner",
    )
    add_plot_option(parser, "the runs (means and groups, or items by runs)", ("dots", "heat"))
    add_gate_options(parser)
    add_grade_options(parser)
    parser.epilog = """examples:
  rubric_measures leaderboard graded.jsonl.gz runs/*.run --bank questions.jsonl -m 'RubricCover(rel=4)@20' --format text
  rubric_measures leaderboard graded.jsonl.gz runs/*.run --checks -o board.json   (then `compare board.json`)
  rubric_measures leaderboard assignments.jsonl -m 'NuggetV(strict=True)' NuggetV NuggetA --length --summary
  rubric_measures leaderboard graded.jsonl.gz runs/*.run --qrels official.qrels -m 'RubricCover(rel=4)@20' nDCG@10"""


def run_leaderboard(options: argparse.Namespace) -> int:
    """Runs the command."""
    # Imported here, as help needs none of them.
    from rubric_measures.api.loading import content_of, load
    from rubric_measures.api.scoring import score
    from rubric_measures.boards.board import board_report

    if content_of(options.graded) == "argue judgments":
        return _argue(options)
    if options.weights or options.scores:
        text = f"--weights and --scores are of Auto-ARGUE's judgments, and {options.graded} holds others"
        raise InputError(f"{text}; leave them out")
    gates = gates_of(options) if options.fail_under or options.run else None
    review = None if options.report is None else _check_report(options)
    if options.output != "-" or options.plot is not None:
        keep_inputs_of(options, options.graded, options.bank, options.qrels, *options.runs)
    grades = load(options.graded, options.bank, **passed(options, load))
    runs = options.runs or None
    if options.checks or options.report or (options.plot and options.plot_kind == "heat"):
        # The scores come first, and these look at the rankings again.
        for path in runs or ():
            check_readable_twice(path)
    given = {**passed(options, score), "overall": not options.no_overall, "watch": progress if is_watched() else None}
    with contextlib.nullcontext() if runs else naming(options.graded):
        board = score(grades, runs, options.measures, **given, notes=False)
    if options.report is not None:
        notes = [] if review is None else [review.note]
        address = None if review is None else review.address
        about = passed(options, api.write_report)
        api.write_report(options.report, board, grades, runs, **about, notes=notes, review=address)
    if options.plot is not None:
        _plot(options, board, grades=grades, runs=runs)
    write_output(options, board_report(board, chosen_places(options)))
    board.log_notes()
    logging.getLogger("rubric_measures").info("signature %s: %s", board.signature.short, board.signature)
    status = 0 if board.is_complete else 1
    return status if gates is None else gated(gates, board, status)


def _check_report(options: argparse.Namespace) -> ReviewAddress | None:
    """Refuses a page that cannot be made, or would replace something, before anything is computed; see `review_of`."""
    if options.facets or options.per_facet or options.compat:
        raise InputError("--report shows the items of whole queries; leave --facets, --per-facet and --compat out")
    if options.graded == "-":
        raise InputError("--report reads the records twice; name a file")
    keep_inputs(options.report, options.graded, options.bank, options.qrels, *options.runs)
    keep_apart(output=options.output, plot=options.plot, report=options.report)
    return review_of(options)


def _plot(options: argparse.Namespace, board: api.Board, **of: Any) -> None:
    """Draws the board."""
    board.plot(options.plot, options.plot_kind, **{**passed(options, board.plot), **of})


# What scores of grades can be told, and scores of judged reports cannot.
_OF_GRADES = ("runs", "measures", "qrels", "length", "present", "summary", "facets", "per_facet", "compat", "checks",
            "fail_under", "run", "report")  # fmt: skip


def _argue(options: argparse.Namespace) -> int:
    """Scores judged reports."""
    given = [name for name in _OF_GRADES if getattr(options, name)]
    if given:
        what = "which are Auto-ARGUE's judgments of reports"
        raise InputError(f"{', '.join(given)} would have no effect on {options.graded}, {what}; leave that out")
    keep_inputs_of(options, options.graded, options.bank)
    board = api.argue(options.graded, options.bank, weights=options.weights or None, scores=options.scores)
    if options.plot is not None:
        _plot(options, board, runs=None)
    from rubric_measures.boards.board import board_report

    write_output(options, board_report(board, chosen_places(options)))
    logging.getLogger("rubric_measures").info("signature %s: %s", board.signature.short, board.signature)
    return 0 if board.is_complete else 1


@command(
    load="rubric_measures.api.loading:load", write="rubric_measures.api.evaluating:write_qrels",
    files={"source": "GRADED"}, without=("grades",),
)  # fmt: skip
def qrels(load: Call, write: Call, *, output: str = "-") -> int:
    """graded records to qrels

    example:
      rubric_measures qrels graded.jsonl.gz --label max --rel 4 -o rubric.qrels
      trec_eval -l 4 rubric.qrels bm25.run
      rubric_measures qrels graded.jsonl.gz --grader grade=expected --times 100 -o expected.qrels
      trec_eval -l 400 expected.qrels bm25.run

    Args:
        source: graded records, item qrels, or an ir_datasets id.
    """
    return 1 if write(load(), output=output).failed else 0
