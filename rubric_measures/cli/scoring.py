"""Commands that score and keep: convert, evaluate, leaderboard, qrels.

`convert`: any format we read into any we write; merges files, adds runs and judgments to records.

`evaluate`: ir_measures' command, with the measures of this package beside its own.

`leaderboard`: many runs × measures in one process, with standard errors and coverage.

`qrels`: grades as judgments for trec_eval and its friends, per passage or per item.
"""

from __future__ import annotations

import logging
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from rubric_measures.base.errors import InputError, escaped, naming, refuse_ignored
from rubric_measures.base.files import atomic_writer, check_readable_twice
from rubric_measures.cli.declared import Call, Command
from rubric_measures.cli.inputs import (
    PrintedBoard,
    check_places,
    gated,
    gates_of,
    is_watched,
    progress,
    review_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rubric_measures.analysis.boards import Board
    from rubric_measures.corpora.loading import Bank, File


@Command(
    ["rubric_measures.corpora.converting:convert"], files={"inputs": "FILE…"}, spelled={"source": "--from"}
)  # fmt: skip
def convert(convert: Call) -> int:
    """any format to any other; merges files

    examples:
      rubric_measures convert flan-t5.jsonl.gz llama.jsonl.gz -o graded.jsonl.gz
      rubric_measures convert graded.jsonl.gz --to assignments --bank nuggets.jsonl -o assignments.jsonl
      rubric_measures convert tqa.json --to bank -o bank.jsonl.gz

    `rubric_measures list formats` says which formats there are, and which of them are read and written.
    """
    convert()
    return 0


@Command(
    ["rubric_measures.boards.single:evaluate"],
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
    from ir_measures.__main__ import OUTPUT_FORMATS
    from ir_measures.util import Metric

    check_places(places)
    values = evaluate()
    show = OUTPUT_FORMATS[output_format](SimpleNamespace(places=places, by_query=by_query))
    # So that a full disk names the output.
    with atomic_writer("-"):
        for metric in values.metrics if by_query else ():
            show(metric._replace(query_id=escaped(metric.query_id)) if output_format == "tsv" else metric)
        for measure, mean in () if no_summary else values.means.items():
            show(Metric("all", measure, mean))
    values.log_notes()
    return 1 if values.failed else 0


@Command(
    [
        "rubric_measures.corpora.loading:load",
        "rubric_measures.analysis.boards:score",
        "rubric_measures.analysis.boards:argue",
    ],
    files={"source": "GRADED", "runs": "[RUN…]"},
    without=("grades", "judgments"),
)
def leaderboard(
    load: partial[Any],
    score: partial[Any],
    argue: partial[Any],
    *,
    source: File,
    runs: Sequence[File] = (),
    bank: Bank | None = None,
    plot: str | None = None,
    report: str | None = None,
    fail_under: Mapping[str, float] = {},
    run: str | None = None,
    places: int = 4,
    printed: PrintedBoard = PrintedBoard(),
) -> int:
    """score many runs by many measures

    examples:
      rubric_measures leaderboard graded.jsonl.gz runs/*.run --bank questions.jsonl -m RubricCover@20 --format text
      rubric_measures leaderboard graded.jsonl.gz runs/*.run --checks -o board.json   (then `compare board.json`)
      rubric_measures leaderboard assignments.jsonl -m 'NuggetV(strict=True)' NuggetV NuggetA --length
      rubric_measures leaderboard graded.jsonl.gz runs/*.run --qrels official.qrels -m 'RubricCover(rel=4)@20' nDCG@10

    Ends with 1 where values are missing, and with 3 where a run has less than --fail-under.

    Args:
        source: graded records, a table of grades, nuggetizer's assignments, support labels, Auto-ARGUE's judgments, ….
        runs: TREC run files; without them the rankings in GRADED.
        measures: default: what fits GRADED (Rubric-Cover of passages; nugget scores where items have importance; …).
        overall: leave out the best possible score.
        compat: compute as this program does, to recompute its published leaderboards (nuggetizer: of assignments;
            ragdoll: of its graded answers).
        plot: also draw the runs with means, single queries and groups, as .pdf, .svg or .png.
        report: write a page (HTML): scores, what to look at, and why each item is covered or not.
        fail_under: the least mean, as MEASURE=N, of each run.
        run: the run that has to pass --fail-under (default: each).
        places: decimal places, -1 for all digits (default 4); JSON has all.
        weights: of nuggets by importance, where GRADED is Auto-ARGUE's (default: vital=2 okay=1).
        scores: write scores and counts there, in Auto-ARGUE's form, where GRADED is its file.
    """
    # Imported here, as help needs none of them.
    from rubric_measures.boards.board import board_report
    from rubric_measures.corpora.loading import content_of

    check_places(places)
    given = {**load.keywords, **score.keywords}
    is_argue = content_of(str(source)) == "argue judgments"
    ours = [*given, *(["runs"] if runs else []), *(["report"] if report else [])]
    what = "Auto-ARGUE's judgments of reports" if is_argue else "no judgments of Auto-ARGUE"
    if idle := ours if is_argue else [*argue.keywords]:
        refuse_ignored(idle, f"on {source}, which holds {what}")
    gates = gates_of(fail_under, run) if fail_under or run else None
    page = None if report is None else _page_of(source, bank, given)
    if is_argue:
        board: Board = argue(source, bank)
    else:
        grades, ranked = load(source, bank), list(runs) or None
        if "checks" in given or report:
            # The scores come first, and these look at the rankings again.
            for path in runs:
                check_readable_twice(str(path))
        with naming(str(source), beside=runs):
            board = score(grades, ranked, watch=progress if is_watched() else None, notes=False)
    if page is not None:
        from rubric_measures.pages.board_page import write_report

        write_report(str(report), board, grades, ranked, **page)
    if plot is not None:
        board.plot(plot)
    printed.write(board_report(board, places))
    board.log_notes()
    logging.getLogger("rubric_measures").info("signature %s: %s", board.signature.short, board.signature)
    status = 0 if board.is_complete else 1
    return status if gates is None else gated(gates, board, status)


def _page_of(source: File, bank: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """Refuses a page that cannot be made before anything is computed; where the grades of one can be reviewed."""
    if "compat" in given:
        raise InputError("--report shows scores of our own; leave --compat out")
    if source == "-":
        raise InputError("--report reads the records twice; name a file")
    review = review_of(str(source), bank, given.get("grader"))
    return {} if review is None else {"notes": [review.note], "review": review.address}


@Command(
    ["rubric_measures.corpora.loading:load", "rubric_measures.api.files:write_qrels"],
    files={"source": "GRADED"}, without=("grades", "path"),
)  # fmt: skip
def qrels(load: Call, write: Call, *, output: str = "-") -> int:
    """graded records to qrels

    example:
      rubric_measures qrels graded.jsonl.gz --label max --rel 4 -o rubric.qrels
      trec_eval -l 4 rubric.qrels bm25.run

    Args:
        source: graded records, item qrels, or an ir_datasets id.
        output: the file, gzipped where its name ends in .gz (default: standard output).
    """
    return 1 if write(load(), output).failed else 0
