"""`leaderboard`: many runs × measures in one process, with standard errors and coverage."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rubric_measures import api
from rubric_measures.base.errors import InputError, naming
from rubric_measures.base.files import check_readable_twice
from rubric_measures.base.tables import FORMS
from rubric_measures.cli.inputs import (
    NamedNumber,
    add_gate_options,
    add_grade_options,
    add_label_option,
    add_output_options,
    add_places_option,
    add_report_options,
    add_review_option,
    chosen_places,
    chosen_smallest,
    gated,
    gates_of,
    is_asked_for,
    keep_inputs_of,
    loaded_grades,
    passed,
    progress,
    review_of,
    write_output,
)
from rubric_measures.corpora.overwriting import keep_apart, keep_inputs
from rubric_measures.measures.scoring import note_labels, parse_measures

if TYPE_CHECKING:
    from rubric_measures.analysis.board_reports import LeaderboardReport
    from rubric_measures.api import Board
    from rubric_measures.base.tables import Report
    from rubric_measures.boards.board import Leaderboard
    from rubric_measures.measures.grades import Grades
    from rubric_measures.pages.frame import ReviewAddress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "graded", metavar="GRADED", help="graded records, nuggetizer's assignments, support labels, item qrels, …"
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
    parser.add_argument("--no-overall", action="store_true", help="leave out the row of the best score")
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
    argue = parser.add_argument_group("reports judged as Auto-ARGUE does")
    argue.add_argument(
        "--argue",
        action="store_true",
        help="GRADED is its file of judgments; --bank has the nuggets with their answers",
    )
    argue.add_argument(
        "--weights",
        metavar="NAME=WEIGHT",
        action=NamedNumber,
        default={},
        nargs="+",
        help="weights of nuggets by importance (default: vital=2 okay=1)",
    )
    argue.add_argument("--scores", metavar="FILE", help="write scores and counts there, in its own form")
    add_report_options(parser)
    add_gate_options(parser, with_alpha=False)
    add_grade_options(parser)
    add_label_option(parser)
    parser.epilog = """examples:
  rubric_measures leaderboard graded.jsonl.gz runs/*.run --bank questions.jsonl -m 'RubricCover(rel=4)@20' --format text
  rubric_measures leaderboard graded.jsonl.gz runs/*.run --intervals --checks --baseline bm25 --format text
  rubric_measures leaderboard assignments.jsonl -m 'NuggetV(strict=True)' NuggetV NuggetA --length --summary
  rubric_measures leaderboard graded.jsonl.gz runs/*.run --qrels official.qrels -m 'RubricCover(rel=4)@20' nDCG@10"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    if options.argue:
        return _argue(options)
    if options.weights or options.scores:
        raise InputError("--weights and --scores are of judged reports; add --argue, or leave them out")
    gates = gates_of(options)
    review = None if options.report is None else _check_report(options)
    keep_inputs_of(options, options.graded, options.bank, options.assessor_scores, options.qrels, *options.runs)
    grades = loaded_grades(options.graded, options)
    measures = options.measures or [
        *api.default_measures(grades, options.compat),
        *(["nDCG@10"] if options.qrels else []),
    ]
    if is_asked_for(options):
        if options.present or options.per_facet:
            raise InputError("--present and --per-facet stand beside plain scores; leave the options of the report out")
        api.refuse_sums(measures)
    runs = options.runs or None
    if options.checks or options.report or (options.plot and options.plot_kind == "heat"):
        # The scores come first, and these look at the rankings again.
        for path in runs or ():
            check_readable_twice(path)
    with naming(*([] if runs else [options.graded])):
        board = api.score(
            grades,
            runs,
            measures,
            overall=not options.no_overall,
            watch=progress,
            notes=False,
            **passed(options, api.score),
        )
    if options.report is not None:
        notes = [] if review is None else [review.note]
        address = None if review is None else review.address
        about = passed(options, api.write_report)
        api.write_report(options.report, board, grades, runs, **about, notes=notes, review=address)
    _plot(options, board, grades=grades, runs=runs)
    report = _report(board, options) if not is_asked_for(options) else _full_report(board, grades, options)
    write_output(options, report)
    board.log_notes()
    note_labels(one for one in parse_measures(measures) if str(one) not in board.measures)
    logging.getLogger("rubric_measures").info("signature %s: %s", board.signature.short, board.signature)
    return gated(gates, board, 0 if board.is_complete else 1)


def _full_report(board: Board, grades: Grades, options: argparse.Namespace) -> Report:
    """The board with intervals, tests and checks; means alone need neither numpy nor scipy."""
    from rubric_measures.analysis.board_reports import report_of

    given = (board, grades, options.runs or None)
    options.checks = api.check(*given, **passed(options, api.check)) if options.checks else None
    options.smallest = chosen_smallest(options)
    more = api.report(board, **passed(options, api.report))
    _say_report(more)
    return report_of(more, chosen_places(options))


def _check_report(options: argparse.Namespace) -> ReviewAddress | None:
    """Refuses a page that cannot be made, or would replace something, before anything is computed; see `review_of`."""
    if options.facets or options.per_facet or options.compat:
        raise InputError("--report shows the items of whole queries; leave --facets, --per-facet and --compat out")
    if options.graded == "-":
        raise InputError("--report reads the records twice; name a file")
    keep_inputs(options.report, options.graded, options.bank, options.assessor_scores, options.qrels, *options.runs)
    keep_apart(output=options.output, plot=options.plot, report=options.report)
    return review_of(options)


def _plot(options: argparse.Namespace, board: api.Board, **of: Any) -> None:
    """Draws the board, where that is asked for."""
    if options.plot is not None:
        board.plot(options.plot, options.plot_kind, **{**passed(options, board.plot), **of})


# What scores of grades can be told, and scores of judged reports cannot.
_OF_GRADES = ("runs", "measures", "qrels", "length", "present", "summary", "facets", "per_facet", "compat",
            "fail_under", "fail_if_worse_than", "report")  # fmt: skip


def _argue(options: argparse.Namespace) -> int:
    """Scores judged reports."""
    given = [name for name in _OF_GRADES if getattr(options, name)]
    # A picture of differences needs the baseline, too.
    is_drawn = options.plot is not None and options.plot_kind == "differences"
    beside = argparse.Namespace(**{**vars(options), "baseline": None}) if is_drawn else options
    if given or is_asked_for(beside):
        named = ", ".join(given) or "options of the report"
        raise InputError(f"{named} would have no effect on judged reports (--argue); leave that out")
    keep_inputs_of(options, options.graded, options.bank)
    board = api.argue(options.graded, options.bank, weights=options.weights or None, scores=options.scores)
    _plot(options, board, runs=None)
    write_output(options, _report(board, options))
    logging.getLogger("rubric_measures").info("signature %s: %s", board.signature.short, board.signature)
    return 0 if board.is_complete else 1


def _report(board: Leaderboard, options: argparse.Namespace) -> Report:
    # Imported here, as help needs no boards.
    from rubric_measures.boards.board import board_report

    return board_report(board, chosen_places(options))


def _say_report(report: LeaderboardReport) -> None:
    """Notes what ties and missing grades do to the order."""
    log = logging.getLogger("rubric_measures")
    if report.checks is None:
        return
    for top in report.checks.top:
        if top.changed:
            log.warning(
                "%s: ties decide the winner: %s by document id, %s in file order",
                top.measure,
                _names(top.by_doc_id),
                _names(top.by_file_order),
            )
    for what, found in (
        ("ties decide", [check.run_id for check in report.checks.runs if check.order_by_ties]),
        (
            "single or double precision decides",
            [check.run_id for check in report.checks.runs if check.order_by_precision],
        ),
    ):
        if found:
            log.warning("%d runs have an order inside the cutoff that %s: %s", len(found), what, _names(found))
    tied = [check for check in report.checks.runs if check.tied]
    if tied:
        worst = max(tied, key=lambda check: check.tied or 0.0)
        log.info(
            "%d of %d runs have tied scores inside the cutoff; most has %s (%.1f %%)",
            len(tied),
            len(report.checks.runs),
            worst.run_id,
            100 * (worst.tied or 0.0),
        )


def _names(runs: Sequence[str]) -> str:
    return " and ".join(runs[:3]) + (f" and {len(runs) - 3} more" if len(runs) > 3 else "")
