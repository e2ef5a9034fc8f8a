"""`leaderboard`: many runs × measures in one process, with standard errors and coverage."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import ir_measures
from ir_measures.measures.base import Measure

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.garbage_collector import paused_collector
from rubric_measures.base.signature import bank_hash
from rubric_measures.base.tables import FORMS, render
from rubric_measures.cli.inputs import (
    add_grade_options,
    add_places_option,
    assigned_answers,
    bank_of,
    chosen_places,
    grades_of,
    is_assignments,
    is_records,
    keep_inputs_of,
    progress,
    refuse_filters,
    wanted_of,
)
from rubric_measures.cli.report_options import add_report_options, is_asked_for
from rubric_measures.grades.compiled import Grades, faceted
from rubric_measures.grades.notes import note_queries, note_without_items
from rubric_measures.leaderboards.board import is_summed
from rubric_measures.leaderboards.output import board_report
from rubric_measures.leaderboards.scoring import (
    OVERALL,
    Leaderboard,
    needed_depth,
    score_records,
    score_run_files,
    score_runs,
)
from rubric_measures.measures.parsing import note_labels, parse_measures, rubric_measures_of

if TYPE_CHECKING:
    from rubric_measures.grades.assignments import AssignedAnswers
    from rubric_measures.grades.loading import RecordQuery
    from rubric_measures.leaderboards.run_spool import RunSpool
    from rubric_measures.meta_evaluation.leaderboard_checks import LeaderboardChecks

__all__ = ["HELP", "add_arguments", "run"]

HELP = "score many runs by many measures"
# Bytes of a graded-records file (compressed or not) from which it is streamed.
LARGE = 32 << 20
DEFAULT_MEASURES = ["RubricCover(rel=4)@20", "nRubricCover(rel=4)@20", "RubricQrels(measure='nDCG@10')"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("graded", metavar="GRADED", help="graded records, nuggetizer's assignments, item qrels, …")
    parser.add_argument("runs", metavar="RUN", nargs="*", help="TREC run files; without them the rankings in GRADED")
    parser.add_argument(
        "-m", "--measures", metavar="MEASURE", nargs="+", action="extend", help=f"default: {' '.join(DEFAULT_MEASURES)}"
    )
    parser.add_argument("-o", "--output-format", choices=list(FORMS), default="tsv", help="default: tsv")
    parser.add_argument("--output", metavar="FILE", default="-", help="write there (default: standard output)")
    add_places_option(parser, None)
    parser.add_argument("--no-overall", action="store_true", help="leave out the best score that any run could reach")
    parser.add_argument("--length", action="store_true", help="add L, the length of answers in whitespace words")
    parser.add_argument("--summary", action="store_true", help="add the greatest, median and least score of the runs")
    units = parser.add_mutually_exclusive_group()
    units.add_argument("--facets", action="store_true", help="score facets (subtopics) in the place of items")
    units.add_argument(
        "--per-facet",
        action="store_true",
        help="score the items of each facet apart (rows query/facet with -o trec_eval or json); means are over facets",
    )
    parser.add_argument(
        "--compat",
        choices=["workbench", "nuggetizer"],
        help="compute as this program does, to recompute its published leaderboards (nuggetizer: of assignments)",
    )
    add_report_options(parser)
    add_grade_options(parser)
    parser.epilog = """examples:
  rubric_measures leaderboard graded.jsonl.gz runs/*.run --bank questions.jsonl -m 'RubricCover(rel=4)@20' -o text
  rubric_measures leaderboard graded.jsonl.gz runs/*.run --intervals --checks --baseline bm25 -o text
  rubric_measures leaderboard assignments.jsonl -m 'NuggetV(strict=True)' NuggetV NuggetA --length --summary"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    keep_inputs_of(options, options.graded, options.bank, options.human, *options.runs)
    beside = options.length or options.summary
    if beside and is_asked_for(options):
        raise InputError("--length and --summary stand beside plain scores; leave the options of the report out")
    if options.per_facet and (options.length or options.compat or is_asked_for(options)):
        raise InputError("--per-facet shows plain scores; leave --length, --compat and the options of the report out")
    sums = [str(measure) for measure in rubric_measures_of(_asked(options)) if is_summed(measure)]
    if sums and is_asked_for(options):
        raise InputError(
            f"{sums[0]} is a sum over queries, and the options of the report are about means; leave it out"
        )
    if options.length and options.runs:
        raise InputError("--length measures the answers in GRADED; leave the run files out")
    assigned = _assigned(options)
    with paused_collector():
        # Rows and rankings by the hundred thousand, and no cycles among them.
        scored = board = _board(options, assigned)
    if beside:
        board = _summed_up(board, options, assigned)
    if options.plot is not None:
        _plot(board, options.plot)
    if is_asked_for(options):
        # Means alone need neither numpy nor scipy.
        from rubric_measures.cli.leaderboard_report import build_report, say_report
        from rubric_measures.meta_evaluation.comparison_tables import report_of

        asked = build_report(board, options, lambda: _checks(board, options))
        say_report(asked)
        report = report_of(asked, chosen_places(options))
    else:
        report = board_report(board, chosen_places(options))
    with atomic_writer(options.output) as stream:
        stream.writelines(render(report, options.output_format))
    note_labels(_asked(options))
    return _say(scored)


def _asked(options: argparse.Namespace) -> list[Measure]:
    return parse_measures(options.measures or DEFAULT_MEASURES)


def _assigned(options: argparse.Namespace) -> AssignedAnswers | None:
    """What a file of assignments says, unless the program's own rules are to read it."""
    if options.runs or not is_assignments(options.graded):
        if options.compat == "nuggetizer":
            raise InputError("--compat nuggetizer scores a file of assignments, without run files")
        return None
    return None if options.compat == "nuggetizer" else assigned_answers(options.graded, options)


def _summed_up(board: Leaderboard, options: argparse.Namespace, assigned: AssignedAnswers | None) -> Leaderboard:
    from rubric_measures.leaderboards.summary import lengths_of_records, with_lengths, with_summary

    if options.length:
        board = with_lengths(board, assigned.lengths if assigned else lengths_of_records(options.graded))
    return with_summary(board) if options.summary else board


def _plot(board: Leaderboard, path: str) -> None:
    from rubric_measures.meta_evaluation.plots import plot_leaderboards, save_figure

    order = [run_id for run_id in board.ranking() if run_id != OVERALL]
    means = {
        name: {run: cell for run in order if (cell := board.cells[run][name].mean) is not None}
        for name in board.measures
    }
    errors = {name: {run: board.cells[run][name].standard_error or 0.0 for run in order} for name in board.measures}
    save_figure(plot_leaderboards(order, means, errors, f"runs in order of {board.measures[0]}"), path)


def _checks(board: Leaderboard, options: argparse.Namespace) -> LeaderboardChecks:
    """Reads grades and runs once more: checks need scores and grades at the same time."""
    from rubric_measures.grades.loading import consume_records
    from rubric_measures.leaderboards.run_spool import spool_rows
    from rubric_measures.meta_evaluation.leaderboard_checks import (
        check_leaderboard,
        check_records,
        check_spooled,
        raw_runs,
    )

    if options.compat is not None or options.graded == "-":
        raise InputError("--checks reads GRADED twice, and by our own rules: give a file, and leave --compat out")
    measures = [ir_measures.parse_measure(name) for name in board.measures]
    if options.runs and _is_large(options.graded):
        with spool_rows((run.run_id, run.rankings) for run in raw_runs(options.runs)) as runs:
            return consume_records(
                lambda stream: check_spooled(board, _units(stream, options), runs, measures, options.on_failed),
                options.graded,
                bank_of(options),
                wanted_of(options),
            )
    if options.runs:
        grades = grades_of(options.graded, options)
        if not isinstance(grades, Grades):
            raise InputError(f"{options.graded}: holds no item grades")
        return check_leaderboard(board, _in_units(grades, options), raw_runs(options.runs), measures)
    return consume_records(
        lambda stream: check_records(board, _units(stream, options), measures, options.on_failed),
        options.graded,
        bank_of(options),
        wanted_of(options),
        keep_ranks=True,
    )


def _units(stream: Iterator[RecordQuery], options: argparse.Namespace) -> Iterator[RecordQuery]:
    """The queries as they are scored: whole, by facet, or each facet apart."""
    from dataclasses import replace

    if not (options.facets or options.per_facet):
        yield from stream
        return
    for query in faceted(stream, lambda query: query.grades):
        if options.per_facet:
            for name, grades in query.grades.per_facet().items():
                yield replace(query, grades=grades, part=name)
        else:
            yield replace(query, grades=query.grades.by_facet())
        del query


def _in_units(grades: Grades, options: argparse.Namespace) -> Grades:
    if options.per_facet:
        return grades.per_facet()
    return grades.by_facet() if options.facets else grades


def _board(options: argparse.Namespace, assigned: AssignedAnswers | None) -> Leaderboard:
    measures = rubric_measures_of(_asked(options))
    if options.compat == "nuggetizer":
        return _as_nuggetizer(options, measures)
    if assigned is not None:
        return _from_assignments(options, measures, assigned)
    from_records = not options.runs
    if from_records and (options.graded != "-" and not _looks_like_records(options.graded)):
        if not Path(options.graded).exists():
            raise InputError(f"{options.graded}: no such file")
        raise InputError(f"{options.graded}: is no file of graded records with rankings; name run files to score")
    if options.compat == "workbench" and not from_records:
        raise InputError("--compat workbench scores the rankings inside the records; leave the run files out")
    if from_records:
        return _from_records(options, measures, None)
    if _is_large(options.graded):
        from rubric_measures.leaderboards.run_spool import spool_runs

        with spool_runs(options.runs, needed_depth(measures), watch=_bar(options)) as runs:
            return _from_records(options, measures, runs)
    grades = grades_of(options.graded, options)
    if not isinstance(grades, Grades):
        raise InputError(f"{options.graded}: holds no item grades")
    return score_run_files(
        _in_units(grades, options),
        options.runs,
        measures,
        overall=not options.no_overall,
        watch=_bar(options),
    )


def _as_nuggetizer(options: argparse.Namespace, measures: Sequence[Measure]) -> Leaderboard:
    from rubric_measures.leaderboards.nuggetizer import score_nuggetizer

    if options.bank is not None or options.facets or options.length:
        raise InputError("--compat nuggetizer knows neither --bank nor --facets nor --length; leave them out")
    refuse_filters(options.graded, options, "assigned nuggets")
    _refuse_on_failed(options)
    return score_nuggetizer(options.graded, measures)


def _refuse_on_failed(options: argparse.Namespace) -> None:
    if options.on_failed != "exclude":
        raise InputError(f"--compat {options.compat} counts failures as that program does; leave --on-failed out")


def _from_assignments(
    options: argparse.Namespace, measures: Sequence[Measure], assigned: AssignedAnswers
) -> Leaderboard:
    """The runs whose answers a file of assignments is about."""
    if options.compat == "workbench":
        raise InputError("--compat workbench scores the rankings inside graded records; this file holds assignments")
    grades = _in_units(assigned.grades, options)
    return score_runs(grades, sorted(assigned.rankings.items()), measures, overall=not options.no_overall)


def _bar(options: argparse.Namespace) -> Callable[[Iterable[str]], Iterable[str]]:
    return lambda paths: progress(paths, len(options.runs), "runs")


def _is_large(path: str) -> bool:
    """Whether graded records are streamed beside runs on disk instead of held in memory: same numbers, more steps."""
    return Path(path).is_file() and Path(path).stat().st_size > LARGE and is_records(path)


def _looks_like_records(path: str) -> bool:
    return Path(path).exists() and is_records(path)


def _from_records(options: argparse.Namespace, measures: Sequence[Measure], runs: RunSpool | None) -> Leaderboard:
    from dataclasses import replace

    from rubric_measures.grades.loading import consume_records

    wanted, bank = wanted_of(options), bank_of(options)
    settings: dict[str, object] = {"bank": None if bank is None else bank_hash(bank)}
    if options.facets:
        settings["unit"] = "facet"
    if options.per_facet:
        settings["unit"] = "per facet"
    if options.compat == "workbench":
        from rubric_measures.leaderboards.workbench import score_workbench, workbench_filter

        if options.facets:
            raise InputError("--compat workbench knows no --facets; leave it out")
        _refuse_on_failed(options)
        board = consume_records(
            lambda stream: score_workbench(stream, measures, settings),
            options.graded,
            bank,
            workbench_filter(wanted),
            keep_ranks=True,
        )
        if not options.no_overall:
            return board
        cells = {run: row for run, row in board.cells.items() if run != OVERALL}
        return replace(board, cells=cells, values={run: board.values[run] for run in cells})

    return consume_records(
        lambda stream: score_records(
            _units(progress(stream, None, "queries"), options),
            measures,
            runs=runs,
            on_failed=options.on_failed,
            overall=not options.no_overall,
            settings=settings,
        ),
        options.graded,
        bank,
        wanted,
    )


def _say(board: Leaderboard) -> int:
    """Says on standard error what a table of means hides; 1 when something needed could not be scored."""
    log = logging.getLogger("rubric_measures")
    board.ranks.say()
    note_queries(board.unknown, board.missing)
    note_without_items(board.without_items)
    unscored = sum(
        value is None for row in board.values.values() for queries in row.values() for value in queries.values()
    )
    failed = max((cell.failed for row in board.cells.values() for cell in row.values()), default=0)
    if failed:
        log.warning("up to %d grades that a score needed failed; see the coverage columns", failed)
    if unscored:
        log.warning("%d values are not scored, because the grades of all their items failed", unscored)
    low = [
        (cell.coverage, run_id)
        for run_id, row in board.cells.items()
        for cell in row.values()
        if cell.coverage is not None and run_id != OVERALL
    ]
    if low and min(low)[0] < 1:
        log.info("grades exist for %.1f %% of what the least covered run (%s) needs", 100 * min(low)[0], min(low)[1])
    log.info("signature %s: %s", board.signature.short, board.signature)
    return 0 if board.is_complete else 1
