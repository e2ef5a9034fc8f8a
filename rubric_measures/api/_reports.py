"""What stands beside the means of a board: intervals, comparisons, checks, prediction-powered means."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import ir_measures

from rubric_measures.api._loading import File, Gradable, RecordGrades, file_path, loaded
from rubric_measures.api._runs import Runs, read_runs, run_list
from rubric_measures.api._scoring import Board, Compat, in_units, units
from rubric_measures.base.errors import InputError
from rubric_measures.boards.scoring import is_summed
from rubric_measures.measures.scoring import Measures, is_supported, parse_measures, rubric_measures_of
from rubric_measures.types.entities import Run

if TYPE_CHECKING:
    from rubric_measures.analysis.board_reports import LeaderboardChecks, LeaderboardReport
    from rubric_measures.analysis.comparison import Test
    from rubric_measures.analysis.resampling import Correction
    from rubric_measures.formats.leaderboards import Form, LeaderboardTable


def report(
    board: Board,
    *,
    intervals: bool = False,
    level: float = 0.95,
    baseline: str | None = None,
    groups: bool = False,
    checks: LeaderboardChecks | None = None,
    assessor_scores: File | None = None,
    assessor_form: Form | None = None,
    correction: Correction = "holm",
    test: Test = "t",
    alpha: float = 0.05,
    rounds: int = 10_000,
    seed: int = 42,
    smallest: float | None = None,
) -> LeaderboardReport:
    """A board with what one needs to trust it: intervals, tests and checks.

    Args:
        board: the board.
        intervals: bootstrap intervals (BCa) of the means over queries.
        level: nominal coverage of intervals, in (0, 1).
        baseline: test every run against this one.
        groups: mark runs that cannot be told apart.
        checks: see `check`.
        assessor_scores: a file of per-query scores by assessors' grades on some queries, for prediction-powered means.
        assessor_form: its form, where the content does not show it.
        correction: see `Board.compare`.
        test: see `Board.compare`.
        alpha: see `Board.compare`.
        rounds: bootstrap samples and permutations, 1 or more.
        seed: of both.
        smallest: the smallest difference that matters, for verdicts on all pairs, or on those with the baseline.

    Raises:
        InputError: arguments exclude each other, or the file holds no scores by query.
        UnknownNameError: there is no such baseline.
    """
    from rubric_measures.analysis.board_reports import LeaderboardReport, mean_intervals, powered_means
    from rubric_measures.analysis.resampling import Draws
    from rubric_measures.boards.programs import LENGTH

    if rounds < 1:
        raise InputError("the number of rounds is 1 or more", settings=("rounds",))
    if assessor_form and assessor_scores is None:
        raise InputError("a form is given and no file of scores; name its file, too", settings=("assessor_scores",))
    if baseline and groups:
        raise InputError(
            "comparing is with one run, or of all pairs for groups; choose one", settings=("baseline", "groups")
        )
    refuse_sums(name for name in board.measures if name != LENGTH)
    compared = (
        board.compare(
            baseline, correction=correction, test=test, alpha=alpha, rounds=rounds, seed=seed, smallest=smallest
        )
        if baseline or groups or smallest is not None
        else {}
    )
    return LeaderboardReport(
        board,
        mean_intervals(board, Draws(rounds, seed, level)) if intervals else {},
        dict(compared),
        checks,
        {}
        if assessor_scores is None
        else powered_means(board, _assessor_table(board, assessor_scores, assessor_form), level=level),
        {"rounds": rounds, "seed": seed, "level": level},
    )


def refuse_sums(measures: Measures) -> None:
    """Refuses measures that are sums over queries, because these reports are about means.

    Raises:
        InputError: one is.
    """
    for measure in rubric_measures_of(parse_measures(measures)):
        if is_summed(measure):
            raise InputError(f"{measure} is a sum over queries, and this is about means; leave it out")


def _assessor_table(board: Board, assessor_scores: File, form: Form | None) -> LeaderboardTable:
    """Assessors' scores; the names of the leaderboard tell the columns of a file that does not."""
    from rubric_measures.formats.leaderboards import read_leaderboard

    queries = {query_id for row in board.values.values() for column in row.values() for query_id in column}
    with file_path(assessor_scores) as path:
        table = read_leaderboard(path, form=form, queries=queries, runs=board.values, measures=board.measures)
        if not table.query_ids:
            raise InputError(f"{path}: holds no per-query scores; assessors and model are compared query by query")
    return table


def check(
    board: Board,
    grades: Gradable,
    runs: Runs | None = None,
    *,
    facets: bool = False,
    per_facet: bool = False,
    compat: Compat | None = None,
) -> LeaderboardChecks:
    """What can be wrong beneath a board: unjudged passages, missing queries, ties that decide the winner.

    Grades and runs are read a second time, because checks need scores and grades at once.

    Args:
        board: what `score` gave; official measures, which read qrels, are not checked.
        grades: as for `score`.
        runs: as for `score`; files.
        facets: as for `score`.
        per_facet: as for `score`.
        compat: as for `score`; other programs' rules are not checked.

    Raises:
        InputError: the grades are standard input, which can be read only once; the runs are in memory, where ties are
            already broken; or `compat` is set.
    """
    from rubric_measures.analysis.board_reports import check_leaderboard
    from rubric_measures.measures.loading import RecordQuery

    known = loaded(grades)
    is_stdin = isinstance(known, RecordGrades) and known.records.name == "-"
    if compat is not None or is_stdin:
        raise InputError(
            "checks read the grades twice, and by our own rules: give a file, and no other program",
            settings=("checks", "compat"),
        )
    if board.inputs.qrels:
        # The grades say nothing of official measures.
        ours = [name for name in board.measures if is_supported(ir_measures.parse_measure(name))]
        board = replace(board, measures=ours)
    measures = [ir_measures.parse_measure(name) for name in board.measures]

    if runs is None:
        if not isinstance(known, RecordGrades):
            raise InputError("checks of rankings inside records need records", settings=("checks",))
        queries = units(known.records.queries(keep_ranks=True), facets, per_facet)
        return check_leaderboard(board, queries, measures, None, known.on_failed)
    if any(isinstance(run, Run) for run in run_list(runs)):
        raise InputError("ties are looked for in run files; runs in memory are in order already", settings=("checks",))
    whole = in_units(known, facets, per_facet).queries.items()
    queries = (RecordQuery(query, {}, {}, {}, [], part=name) for name, query in whole)
    return check_leaderboard(board, queries, measures, read_runs(runs), known.on_failed)
