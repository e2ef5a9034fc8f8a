"""Every measure × relevance level × prompt × model of a graded file against the official leaderboard, in one call."""

from __future__ import annotations

import logging
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ir_measures.measures.base import Measure

from rubric_measures.base.errors import InputError, MeasureError
from rubric_measures.boards.board import Leaderboard
from rubric_measures.boards.programs import score_workbench, workbench_filter
from rubric_measures.boards.scoring import score_records
from rubric_measures.measures.grade_sets import (
    UNKNOWN_GRADER,
    GradeFilter,
    choices_of,
    grade_sets,
    grades_of_set,
    prompt_cells,
    scale_of_set,
)
from rubric_measures.measures.grades import OnFailed
from rubric_measures.measures.loading import select_queries
from rubric_measures.measures.scoring import Plan
from rubric_measures.meta_evaluation._bootstrap import USUAL_DRAWS, Draws
from rubric_measures.meta_evaluation.leaderboard_correlation import (
    DEFAULT_COEFFICIENTS,
    GridCell,
    RunScores,
    correlate_leaderboards,
    scores_of_board,
    scores_of_workbench,
)
from rubric_measures.records.files import GradedFile, load_graded
from rubric_measures.records.models import DirectGrade, GradeSetKey, ItemGradeSet
from rubric_measures.types.entities import TestBank
from rubric_measures.types.scales import Scale

__all__ = ["correlate_grid", "expand_measures"]

_LOG = logging.getLogger("rubric_measures")
Kind = Literal["question", "nugget", "direct"]


def expand_measures(measures: Iterable[Measure], rels: Sequence[int]) -> list[Measure]:
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


@dataclass
class _Levels:
    """The levels of one grade set: those of its scale, or the grades that occur where it is not known."""

    scale: Scale | None = None
    grades: set[float] = field(default_factory=set)

    def look_at(self, entry: ItemGradeSet | DirectGrade) -> None:
        self.scale = self.scale or scale_of_set(entry)
        if self.scale is None:
            self.grades.update(grades_of_set(entry)[0].values())

    def all(self) -> list[int]:
        """All levels but the lowest grade, which everything has that is graded."""
        if self.scale is not None:
            return list(range(self.scale.lowest + 1, self.scale.highest + 1))
        return sorted({math.ceil(grade) for grade in self.grades if grade > 0}) or [1]


def _sets_of(
    groups: GradedFile, wanted: GradeFilter, bank: TestBank | None
) -> tuple[list[GradeSetKey], Mapping[GradeSetKey, _Levels]]:
    """The grade sets to score: those that pass the filter and, with a bank, grade an item of it (or no item at all)."""
    name = groups.name
    levels: defaultdict[GradeSetKey, _Levels] = defaultdict(lambda: _Levels(wanted.scale))
    found = grade_sets(groups, wanted, bank, lambda key, entry: levels[key].look_at(entry))
    every = found or grade_sets(groups)
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
    return keys, levels


def _refuse_above_all(measures: Sequence[Measure], levels: Iterable[_Levels]) -> None:
    """Refuses a measure whose level no grade of any grade set reaches; one of a few sets has a reason in its cell."""
    scales = [one.scale for one in levels]
    if None not in scales:
        highest = max((scale for scale in scales if scale is not None), key=lambda scale: scale.highest)
        Plan(measures).refuse_above(highest)


def correlate_grid(
    path: str | os.PathLike[str],
    official: RunScores,
    measures: Sequence[Measure],
    *,
    rels: Sequence[int] | None = None,
    bank: TestBank | None = None,
    wanted: GradeFilter | None = None,
    coefficients: Sequence[str] = DEFAULT_COEFFICIENTS,
    on_failed: OnFailed | None = None,
    draws: Draws = USUAL_DRAWS,
    compat: Literal["workbench"] | None = None,
) -> list[GridCell]:
    """Scores the rankings inside graded records with every measure and grade set, and correlates each leaderboard.

    Args:
        path: graded records.
        official: the official leaderboard.
        measures: this package's measures.
        rels: the levels of those that name none, see `expand_measures`; None takes all levels of a grade set's scale,
            and the grades that occur where that is not known.
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
        InputError: no grade set passes the filter, no run is in both, or a level is above the scales of all.

    Source: Farzi and Dietz, EXAM++ (LLM4Eval 2024), Table 3.
    """
    if os.fspath(path) == "-":
        raise InputError("a grid reads its records several times; give a file, not standard input")
    restriction = wanted or GradeFilter()
    cells: list[GridCell] = []
    groups = load_graded(path)
    keys, levels = _sets_of(groups, restriction, bank)
    _refuse_above_all(expand_measures(measures, rels or [1]), [levels[key] for key in keys])
    prompts = prompt_cells(keys)
    for key in keys:
        kind: Kind | None = key.kind if key.kind in ("question", "nugget", "direct") else None  # type: ignore[assignment]
        exact = (key.llm, key.prompt_class, kind, restriction.question_set, key.grader or UNKNOWN_GRADER)
        chosen = GradeFilter(*exact, assessors=restriction.assessors)
        if compat == "workbench":
            chosen = workbench_filter(chosen)
        # Labels of whole passages grade no item, so the bank has nothing to say about them.
        items = None if key.kind == "direct" else bank
        if rels is None and levels[key].scale is None:
            _LOG.warning(
                "%s: the scale of the grades by %s is not known: the levels are the grades that occur (%s)",
                *(os.fspath(path), key, " ".join(map(str, levels[key].all()))),
                extra={"settings": ("scale", "rel")},
            )
        every = expand_measures(measures, levels[key].all() if rels is None else rels)
        for measure, board, reason in _boards(groups, items, chosen, every, on_failed, compat):
            result = scores = None
            if board is not None:
                column = scores_of_workbench if compat == "workbench" else scores_of_board
                scores = column(board, str(measure))
                result = correlate_leaderboards(
                    official,
                    scores,
                    coefficients,
                    draws,
                    strict=compat is not None,
                    details=False,
                )
            cells.append(GridCell(key.llm, prompts[key], key.kind, str(measure), result, reason, scores))
    return cells


def _boards(
    groups: GradedFile,
    bank: TestBank | None,
    chosen: GradeFilter,
    measures: Sequence[Measure],
    on_failed: OnFailed | None,
    compat: str | None,
) -> list[tuple[Measure, Leaderboard | None, str]]:
    """A leaderboard for each measure; all in one pass, or one by one where some measure cannot be computed."""

    def board_of(some: Sequence[Measure]) -> Leaderboard:
        queries = select_queries(groups, groups.name, bank, chosen, keep_ranks=compat is not None)
        if compat == "workbench":
            return score_workbench(queries, some)
        return score_records(queries, some, on_failed=on_failed, overall=False)

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
