"""A board with its evidence as a page: which run has which item, and why."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rubric_measures.api._loading import Gradable, RecordGrades, loaded
from rubric_measures.api._runs import Runs, rankings_for, read_runs
from rubric_measures.api._scoring import Board
from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.measures.scoring import parse_measures
from rubric_measures.pages.board_page import QueryEvidence, evidence_of


def write_report(
    path: str | os.PathLike[str],
    board: Board,
    grades: Gradable,
    runs: Runs | None = None,
    *,
    title: str = "Leaderboard",
    baseline: str | None = None,
    level: float = 0.95,
    notes: Sequence[str] = (),
    review: str | None = None,
) -> None:
    """Writes a board with its evidence as one HTML file that needs no network.

    It shows the leaderboard with intervals, what to look at, and for every query the items × runs, each with the
    passage, the nearest sentence and the reason behind the grade.

    Args:
        path: the file.
        board: what `score` gave.
        grades: the grades that it was scored from: graded records, which have the texts.
        runs: the runs that were scored; None for the rankings inside the records.
        title: the heading.
        baseline: the run that others are compared with: queries on which one loses most come first.
        level: the nominal coverage of intervals, in (0, 1).
        notes: further lines below the heading.
        review: the address of the review page of these grades, as `http://127.0.0.1:8642`: each grade leads to its
            place there. None for no links.

    Raises:
        InputError: the grades have no texts beside them, scores are not of whole queries, or the file cannot be
            written.
        UnknownNameError: there is no such baseline.
    """
    from rubric_measures.pages.board_page import board_page

    shown = evidence(board, grades, runs)
    parts = board_page(board, shown, title=title, baseline=baseline, level=level, notes=notes, review=review)
    with atomic_writer(path) as stream:
        stream.writelines(parts)


def evidence(board: Board, grades: Gradable, runs: Runs | None = None) -> list[QueryEvidence]:
    """What stands behind a board, query by query; see `write_report`."""
    known = loaded(grades)
    if not isinstance(known, RecordGrades):
        text = "a report shows passages and answers; grades of this kind have no texts beside them: give graded records"
        raise InputError(text, settings=("report",))
    if board.signature.settings.get("unit"):
        raise InputError("a report shows items of whole queries; leave facets out", settings=("report", "facets"))
    from rubric_measures.boards.scoring import needed_depth
    from rubric_measures.measures.support import SupportMeasure
    from rubric_measures.records.details import cited_answers
    from rubric_measures.records.models import runs_of_records

    measures = parse_measures(list(board.measures))
    depth = needed_depth(measures, known.on_failed)
    # A level that a measure names counts; else that of the scale.
    named = measures[0].params.get("rel")
    records = known.records
    if records.source == "-":
        raise InputError("a report reads the records twice; name a file", settings=("report",))
    groups = list(records.groups)
    if runs is None:
        ranked = {
            run.run_id: {query: of.doc_ids for query, of in run.rankings.items()} for run in runs_of_records(groups)
        }
    else:
        ranked = {run.run_id: rankings_for(run, known) for run in read_runs(runs)}
    cut = {
        run: {query: list(doc_ids[:depth]) for query, doc_ids in ranked.get(run, {}).items()}
        for run in board.ranking()
        if run in board.values
    }
    level = named if isinstance(named, int) else None
    cited = (
        {group.query_id: cited_answers(group) for group in groups} if isinstance(measures[0], SupportMeasure) else {}
    )
    return list(evidence_of(groups, cut, records.bank, records.wanted, level=level, source=records.name, answers=cited))
