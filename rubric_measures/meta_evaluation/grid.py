"""Every measure × relevance level × prompt × model of a graded file against the official leaderboard, in one call."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from ir_measures.measures.base import Measure

from rubric_measures.base.entities import TestBank
from rubric_measures.base.errors import InputError, MeasureError
from rubric_measures.grades.compiled import OnFailed
from rubric_measures.grades.grade_set_names import UNKNOWN_GRADER, choices_of, prompt_cells
from rubric_measures.grades.grade_sets import GradeFilter, grade_sets
from rubric_measures.grades.loading import RecordQuery, consume_records
from rubric_measures.leaderboards.board import Leaderboard
from rubric_measures.leaderboards.scoring import score_records
from rubric_measures.leaderboards.workbench import score_workbench, workbench_filter
from rubric_measures.meta_evaluation._bootstrap import USUAL_DRAWS, Draws
from rubric_measures.meta_evaluation.leaderboard_correlation import (
    DEFAULT_COEFFICIENTS,
    GridCell,
    RunScores,
    correlate_leaderboards,
    scores_of_board,
    scores_of_workbench,
)
from rubric_measures.records.models import GradeSetKey
from rubric_measures.records.streaming import GradedFile

__all__ = ["DEFAULT_RELS", "correlate_grid", "expand_measures"]

_LOG = logging.getLogger("rubric_measures")
DEFAULT_RELS = (1, 2, 3, 4, 5)
Kind = Literal["question", "nugget", "direct"]


def expand_measures(measures: Iterable[Measure], rels: Sequence[int] = DEFAULT_RELS) -> list[Measure]:
    """Every measure at every relevance level; a measure that names its `rel`, or has none, stands for itself.

    >>> from rubric_measures import RubricCover
    >>> [str(measure) for measure in expand_measures([RubricCover @ 20, RubricCover(rel=4) @ 10], (1, 5))]
    ['RubricCover(rel=1)@20', 'RubricCover(rel=5)@20', 'RubricCover(rel=4)@10']
    """
    expanded: dict[str, Measure] = {}
    for measure in measures:
        free = "rel" in measure.SUPPORTED_PARAMS and "rel" not in measure.params
        for one in [measure(rel=rel) for rel in rels] if free else [measure]:
            expanded.setdefault(str(one), one)
    return list(expanded.values())


def _sets_of(path: str | os.PathLike[str], wanted: GradeFilter, bank: TestBank | None) -> list[GradeSetKey]:
    """The grade sets to score: those that pass the filter and, with a bank, grade an item of it (or no item at all)."""
    name = os.fspath(path)
    with GradedFile(path) as source:
        found = source.consume(lambda groups: grade_sets(groups, wanted, bank))
        every = found or source.consume(grade_sets)
    keys = [key for key, count in found.items() if count]
    outside = [key for key, count in found.items() if not count]
    if not found:
        raise InputError(f"{name}: no grade set passes the filter; it has: {choices_of(every)}")
    if not keys:
        raise InputError(f"{name}: no grade set has grades of items in the bank: {choices_of(outside)}")
    if outside:
        _LOG.warning(
            "%s: %d grade sets have no grade of an item in the bank and were left out: %s",
            *(name, len(outside), choices_of(outside)),
        )
    return keys


def correlate_grid(
    path: str | os.PathLike[str],
    official: RunScores,
    measures: Sequence[Measure],
    *,
    bank: TestBank | None = None,
    wanted: GradeFilter | None = None,
    coefficients: Sequence[str] = DEFAULT_COEFFICIENTS,
    on_failed: OnFailed | None = None,
    draws: Draws = USUAL_DRAWS,
    compat: Literal["workbench"] | None = None,
) -> list[GridCell]:
    """Scores the rankings inside graded records with every measure and grade set, and correlates each leaderboard.

    Args:
        path: graded records; read once for the list of grade sets and once for each of them, so not a stream.
        official: the official leaderboard.
        measures: this package's measures; see `expand_measures`.
        bank: the test bank; without it the denominators are the items that occur in the records. Grade sets without an
            item of the bank are left out, and counted; labels of whole passages are scored without the bank.
        wanted: restricts the grade sets.
        coefficients: see `correlate_leaderboards`.
        on_failed: see `Grades`.
        draws: rounds (0 for no intervals), seed and level.
        compat: `workbench` scores and joins as that program does.

    Returns:
        one cell a grade set and measure, grade sets in order of model, prompt and kind. A grade set that a measure
        cannot be computed from has a cell without result and the reason.

    Raises:
        InputError: no grade set passes the filter, or no run is in both.

    Source: Farzi and Dietz, EXAM++ (LLM4Eval 2024), Table 3.
    """
    if os.fspath(path) == "-":
        raise InputError("a grid reads its records several times; give a file, not standard input")
    restriction = wanted or GradeFilter()
    cells: list[GridCell] = []
    keys = _sets_of(path, restriction, bank)
    prompts = prompt_cells(keys)
    for key in keys:
        kind: Kind | None = key.kind if key.kind in ("question", "nugget", "direct") else None  # type: ignore[assignment]
        exact = (key.llm, key.prompt_class, kind, restriction.question_set, key.grader or UNKNOWN_GRADER)
        chosen = GradeFilter(*exact, assessors=restriction.assessors)
        if compat == "workbench":
            chosen = workbench_filter(chosen)
        # Labels of whole passages grade no item, so the bank has nothing to say about them.
        items = None if key.kind == "direct" else bank
        for measure, board, reason in _boards(path, items, chosen, measures, on_failed, compat):
            result = None
            if board is not None:
                column = scores_of_workbench if compat == "workbench" else scores_of_board
                result = correlate_leaderboards(
                    official,
                    column(board, str(measure)),
                    coefficients,
                    draws,
                    strict=compat is not None,
                    details=False,
                )
            cells.append(GridCell(key.llm, prompts[key], key.kind, str(measure), result, reason))
    return cells


def _boards(
    path: str | os.PathLike[str],
    bank: TestBank | None,
    chosen: GradeFilter,
    measures: Sequence[Measure],
    on_failed: OnFailed | None,
    compat: str | None,
) -> list[tuple[Measure, Leaderboard | None, str]]:
    """A leaderboard for each measure; all in one pass, or one by one where some measure cannot be computed."""

    def scored(some: Sequence[Measure]) -> Callable[[Iterator[RecordQuery]], Leaderboard]:
        if compat == "workbench":
            return lambda stream: score_workbench(stream, some)
        return lambda stream: score_records(stream, some, on_failed=on_failed, overall=False)

    def board_of(some: Sequence[Measure]) -> Leaderboard:
        return consume_records(scored(some), path, bank, chosen, keep_ranks=compat is not None)

    try:
        board = board_of(measures)
    except MeasureError:
        boards: list[tuple[Measure, Leaderboard | None, str]] = []
        for measure in measures:
            try:
                boards.append((measure, board_of([measure]), ""))
            except MeasureError as error:
                boards.append((measure, None, str(error)))
        return boards
    return [(measure, board, "") for measure in measures]
