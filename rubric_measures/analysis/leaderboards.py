"""Boards against an official one: joined on their runs, over every measure and grade set.

Two leaderboards joined on their runs and correlated, with intervals over queries.

Every measure × relevance level × prompt × model of a graded file against the official leaderboard, in one call.

Correlations of leaderboards, and grids of them, as a report.
"""

from __future__ import annotations

import dataclasses
import math
import os
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import Any, Literal, TypeAlias

import numpy as np
from ir_measures.measures.base import Measure
from msgspec.structs import replace

from rubric_measures.analysis.coefficients import (
    Coefficient,
    correlate,
    correlate_over_queries,
    noise_free_tau,
    parse_coefficient,
    pooled_tau,
    query_tau,
)
from rubric_measures.analysis.resampling import USUAL_DRAWS, Draws, FloatArray, Interval, score_table
from rubric_measures.base.errors import InputError, MeasureError, counted, warn
from rubric_measures.base.files import path_name
from rubric_measures.boards.board import Leaderboard
from rubric_measures.boards.programs import score_workbench
from rubric_measures.boards.scoring import score_records
from rubric_measures.corpora.loading import File, RecordGrades, Rows, are_rows, file_path
from rubric_measures.formats.base import plain_name
from rubric_measures.formats.leaderboards import RANKS, LeaderboardTable, read_leaderboard
from rubric_measures.measures.findings import Note, of_queries
from rubric_measures.measures.grade_sets import (
    Grader,
    choices_of,
    grade_sets,
    prompt_cells,
    scale_of_set,
)
from rubric_measures.measures.loading import select_queries
from rubric_measures.measures.measure import column_named, columns_named
from rubric_measures.records.models import DirectGrade, GradeSetKey, ItemGradeSet
from rubric_measures.types.entities import TestBank
from rubric_measures.types.scales import Scale

DEFAULT_COEFFICIENTS = ("kendall", "spearman", "pearson", "tau_ap_b", "rbo", "max_rank_drop")

# A file's means, printed with four decimals, may differ from the means of its per-query scores by rounding alone.
_PRINTED = 2e-4


@dataclass(frozen=True)
class RunScores:
    """One column of a leaderboard.

    Attributes:
        name: the measure, or what else tells the column from others.
        means: run -> score, higher is better (ranks are negated).
        queries: run -> query -> score; empty where the leaderboard has no per-query scores.
        ranks: whether the scores are negated ranks.
        given: run -> the standard error that the file gives.
    """

    name: str
    means: Mapping[str, float]
    queries: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    ranks: bool = False
    given: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LeaderboardCorrelation:
    """An official leaderboard against another one.

    Attributes:
        official: name of the official column.
        measure: name of the other column.
        runs: the runs that both have, sorted.
        missing: official runs that the other leaderboard lacks.
        extra: runs that only the other leaderboard has.
        coefficients: one result a coefficient, in the order asked for.
        query_kendall: τ per query averaged; None unless both sides have per-query scores of the same queries.
        pooled_kendall: τ over all query/run pairs; None likewise.
        notes: how the numbers were computed, where that is not as usual.
        noise_free: τ without the noise of the queries; None unless both have complete per-query scores.
    """

    official: str
    measure: str
    runs: tuple[str, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    coefficients: tuple[Coefficient, ...]
    query_kendall: Interval | None = None
    pooled_kendall: Interval | None = None
    notes: tuple[str, ...] = ()
    noise_free: Interval | None = None

    def value(self, name: str) -> float | None:
        """The value of one coefficient by its name; None where it is undefined or was not asked for."""
        return next((one.value for one in self.coefficients if one.name == name), None)


def scores_of_table(table: LeaderboardTable, measure: str, *, ranks: bool | None = None) -> RunScores:
    """One column of a leaderboard that was read from a file.

    Args:
        table: the leaderboard.
        measure: the column.
        ranks: whether the numbers are ranks, 1 best; by default when the column is called `rank`, `place`, `position`.

    Returns:
        the file's aggregates, or the means over queries where it has none. Rows that sum up the runs are left out.

    Raises:
        UnknownNameError: there is no such column.
    """
    is_rank = plain_name(measure) in RANKS if ranks is None else ranks
    sign = -1.0 if is_rank else 1.0
    queries = {
        run: {query: sign * value for query, value in values.items()}
        for run, values in table.per_query(measure).items()
    }
    means = {run: sign * value for run, value in table.column(measure).items()}
    for run, values in queries.items():
        means.setdefault(run, sum(values.values()) / len(values))
    return RunScores(measure, means, queries, is_rank, table.errors(measure))


def scores_of_board(board: Leaderboard, measure: str) -> RunScores:
    """One column of a leaderboard of ours; runs without a mean (nothing could be scored) are left out."""
    means = {run: row[measure].mean for run, row in board.cells.items()}
    return RunScores(
        measure,
        {run: mean for run, mean in means.items() if mean is not None},
        {run: board.scored(run, measure) for run in board.values if means.get(run) is not None},
    )


def scores_of_workbench(board: Leaderboard, measure: str) -> RunScores:
    """One column as the Rubric workbench correlates it: its exact means, and no per-query scores.

    The program does not round means: two runs with equal means may differ in the sixteenth digit, and are then no tie.
    Everywhere else such runs are tied (12 decimals count).
    """
    return RunScores(
        measure,
        {
            run: statistics.mean(values)
            for run, row in board.values.items()
            if (values := [value for value in row[measure].values() if value is not None])
        },
    )


def query_table(scores: RunScores, runs: Sequence[str]) -> tuple[FloatArray, list[str]] | None:
    """(queries, runs) scores, NaN where missing; None where a run has none or the means are not those of queries."""
    if not runs or not all(scores.queries.get(run) for run in runs):
        return None
    table, queries = score_table([scores.queries[run] for run in runs])
    means = np.array([scores.means[run] for run in runs])
    if np.abs(np.nanmean(table, axis=0) - means).max() > _PRINTED:
        return None
    return table, queries


def standard_errors(scores: RunScores) -> dict[str, float]:
    """Run -> standard error of its mean: that of the file, or over queries s / √n with n − 1 in s.

    Runs with fewer than two queries, and those whose score is not the mean of their queries, are left out.
    """
    errors = {}
    for run, values in scores.queries.items():
        numbers = list(values.values())
        if len(numbers) > 1 and run in scores.means and abs(statistics.fmean(numbers) - scores.means[run]) <= _PRINTED:
            errors[run] = statistics.stdev(numbers) / math.sqrt(len(numbers))
    return {**errors, **scores.given}


def _of_means(one: Coefficient, draws: Draws) -> Coefficient:
    """The coefficient of means alone, which has no interval, and says why."""
    reason = one.reason or "an interval is over queries; give a leaderboard with scores by query"
    interval = Interval(one.value, None, None, draws.level, reason=reason) if draws.rounds else None
    return dataclasses.replace(one, interval=interval)


def correlate_leaderboards(
    official: RunScores,
    other: RunScores,
    coefficients: Sequence[str] = DEFAULT_COEFFICIENTS,
    draws: Draws = USUAL_DRAWS,
    *,
    strict: bool = False,
    details: bool = True,
) -> LeaderboardCorrelation:
    """Joins two leaderboards on their runs and correlates them.

    Intervals are over queries; there are none where the other leaderboard has no per-query scores whose means are its
    run scores. The official side is resampled too where it has the same queries; else its scores are fixed.

    Args:
        official: the reference.
        other: the leaderboard to compare with it.
        coefficients: names, `@k` for the official top k.
        draws: rounds (0 for no intervals), seed and level.
        strict: a run of the official leaderboard that the other lacks is an error (the Rubric workbench's rule).
        details: also compute τ per query, τ over all pairs, and τ without noise.

    Raises:
        InputError: no run is in both, or `strict` and one is missing.
        UnknownNameError: no such coefficient.
    """
    runs = sorted(official.means.keys() & other.means.keys())
    missing = tuple(sorted(official.means.keys() - other.means.keys()))
    extra = tuple(sorted(other.means.keys() - official.means.keys()))
    if strict and missing:
        raise InputError(
            f"{other.name}: of the official leaderboard {counted(len(missing), 'run')} missing "
            f"({', '.join(missing[:5])}); the Rubric workbench's rules need all of them",
            settings=("compat",),
        )
    if not other.means:
        raise InputError(f"{other.name}: no run has a score; a leaderboard of it says why")
    if not runs:
        raise InputError(
            f"no run of the official leaderboard is in {other.name}: it has {', '.join(sorted(other.means)[:3])}, …; "
            f"the official one {', '.join(sorted(official.means)[:3])}, …"
        )
    for name in coefficients:
        # A wrong name is found before anything is drawn.
        parse_coefficient(name)
    notes: list[str] = []
    scored, reference = query_table(other, runs), query_table(official, runs)
    if other.queries and scored is None:
        notes.append("run scores are not the means of the per-query scores (or some are missing): no intervals")
    both = scored is not None and reference is not None and scored[1] == reference[1]
    if scored is not None and reference is not None and not both:
        such = min({*scored[1]} ^ {*reference[1]})
        notes.append(
            f"the two leaderboards have different queries (such as {such}): the official scores are taken as given"
        )
    x = np.array([official.means[run] for run in runs])
    y = np.array([other.means[run] for run in runs])
    given = reference[0] if both and reference is not None else x
    results = [
        _of_means(correlate(x, y, name), draws)
        if scored is None
        else correlate_over_queries(given, scored[0], name, draws)
        for name in coefficients
    ]
    by_query = pooled = noise_free = None
    if details and both and scored is not None and reference is not None:
        by_query = query_tau(reference[0], scored[0], draws)
        pooled = pooled_tau(reference[0], scored[0], draws)
        complete = np.isfinite(reference[0]).all() and np.isfinite(scored[0]).all()
        if complete and len(runs) > 1 and len(scored[1]) > 1:
            noise_free = noise_free_tau(reference[0], scored[0], draws)
    joined = (official.name, other.name, tuple(runs), missing, extra, tuple(results))
    return LeaderboardCorrelation(*joined, by_query, pooled, tuple(notes), noise_free)


@dataclass(frozen=True)
class GridCell:
    """One cell of a grid of leaderboards against the official one.

    Attributes:
        llm: the model whose grades were used.
        prompt_class: its prompt; with the beginning of the hash where grade sets of other settings are called alike.
        kind: `question`, `nugget` or `direct`.
        measure: the measure, parameters included.
        result: the correlation; None where the measure cannot be computed from these grades.
        reason: why there is no result.
        scores: what was correlated; None where there is no result.
        notes: what may be wrong with the grades, and queries that runs lack.
    """

    llm: str
    prompt_class: str
    kind: str
    measure: str
    result: LeaderboardCorrelation | None
    reason: str = ""
    scores: RunScores | None = field(default=None, repr=False)
    notes: Sequence[Note] = field(default=(), repr=False)


def best_cells(cells: Sequence[GridCell], coefficient: str) -> frozenset[int]:
    """The indices of the cells with the best value of a coefficient; none where it is undefined in all.

    The highest value is best, but for `max_rank_drop`, where it is the lowest.
    """
    values = [cell.result.value(coefficient) if cell.result is not None else None for cell in cells]
    known = [value for value in values if value is not None]
    if not known:
        return frozenset()
    best = min(known) if coefficient.startswith("max_rank_drop") else max(known)
    return frozenset(index for index, value in enumerate(values) if value == best)


def expand_measures(measures: Iterable[Measure], rels: Sequence[int]) -> list[Measure]:
    """Every measure at every relevance level; a measure that names its `rel`, or has none, stands for itself.

    >>> from rubric_measures import RubricCover
    >>> [str(measure) for measure in expand_measures([RubricCover @ 20, RubricCover(rel=4) @ 10], (1, 5))]
    ['RubricCover(rel=1)@20', 'RubricCover(rel=5)@20', 'RubricCover(rel=4)@10']
    """
    expanded: dict[str, Measure] = {}
    for measure in measures:
        free = "rel" in measure.SUPPORTED_PARAMS and "rel" not in measure.params
        for one in [measure(rel=rel) for rel in rels] if free and rels else [measure]:
            expanded.setdefault(str(one), one)
    return list(expanded.values())


def _sets_of(known: RecordGrades) -> dict[GradeSetKey, Scale | None]:
    """The grade sets to score, with their scales: those that pass the filter and, with a bank, grade an item of it (or
    no item at all).
    """
    name, groups = known.name, known.groups
    scales: dict[GradeSetKey, Scale | None] = {}

    def look_at(key: GradeSetKey, entry: ItemGradeSet | DirectGrade) -> None:
        scales[key] = scales.get(key) or known.wanted.scale or scale_of_set(entry)

    found = grade_sets(groups, known.wanted, known.bank, look_at)
    every = found or grade_sets(groups)
    outside = [key for key, count in found.items() if not count]
    if not found:
        raise InputError(f"{name}: no grade set passes the filter; it has: {choices_of(every)}")
    if len(outside) == len(found):
        raise InputError(f"{name}: no grade set has grades of items in the bank: {choices_of(outside)}")
    text = "%s: %d grade sets have no grade of an item in the bank and were left out: %s"
    warn(text, name, len(outside), choices_of(outside))
    return {key: scales.get(key) for key, count in found.items() if count}


def correlate_grid(
    known: RecordGrades,
    official: RunScores,
    measures: Sequence[Measure],
    coefficients: Sequence[str] = DEFAULT_COEFFICIENTS,
    draws: Draws = USUAL_DRAWS,
    compat: Literal["workbench"] | None = None,
) -> list[GridCell]:
    """Scores the rankings inside graded records with every measure and grade set, and correlates each leaderboard.

    Args:
        known: graded records, with the choice of grade sets. Without a bank the denominators are the items that occur.
            Grade sets without an item of the bank are left out, and counted; labels of whole passages are scored
            without the bank.
        official: the official leaderboard.
        measures: this package's measures; those that name no level are at all levels of a grade set's scale.
        coefficients: see `correlate_leaderboards`.
        draws: rounds (0 for no intervals), seed and level.
        compat: `workbench` scores and joins as that program does.

    Returns:
        one cell a grade set and measure, grade sets in order of model, prompt and kind. A grade set that a measure
        cannot be computed from has a cell without result and the reason.

    Raises:
        InputError: no grade set passes the filter, or no run is in both.

    Source: Farzi and Dietz, EXAM++ (LLM4Eval 2024), Table 3.
    """
    if known.held == "-":
        raise InputError("a grid reads its records several times; give a file, not standard input")
    cells: list[GridCell] = []
    scales = _sets_of(known)
    prompts = prompt_cells(scales)

    def board_of(chosen: Grader, items: TestBank | None, some: Sequence[Measure]) -> Leaderboard:
        queries = select_queries(known.groups, known.name, items, chosen, keep_ranks=compat is not None)
        if compat == "workbench":
            return score_workbench(queries, some)
        return score_records(queries, some, on_failed=known.on_failed_given, overall=False)

    for key, scale in scales.items():
        chosen = replace(known.wanted.only(key), first=compat == "workbench")
        # Labels of whole passages grade no item, so the bank has nothing to say about them.
        items = None if key.kind == "direct" else known.bank
        # All of the scale but the lowest grade, which everything has that is graded.
        levels = () if scale is None else range(scale.lowest + 1, scale.highest + 1)
        if scale is None:
            text = "%s: the scale of the grades by %s is not known; name it, or a level in each measure"
            warn(text, known.name, key, settings=("scale",))
        every = expand_measures(measures, levels)
        for measure, board, reason in _grid_boards(partial(board_of, chosen, items), every):
            result, scores, notes = None, None, list[Note]()
            if board is not None:
                found = [*of_queries(board.values, board.unknown, board.missing), *board.findings]
                named = f"{key.llm} {prompts[key]}: "
                notes = [replace(one, text=named + one.text) for one in found if one.is_warning]
                column = scores_of_workbench if compat == "workbench" else scores_of_board
                scores = column(board, str(measure))
                result = correlate_leaderboards(
                    official, scores, coefficients, draws, strict=compat is not None, details=False
                )
            cells.append(GridCell(key.llm, prompts[key], key.kind, str(measure), result, reason, scores, notes))
    return cells


def _grid_boards(
    board_of: Callable[[Sequence[Measure]], Leaderboard], measures: Sequence[Measure]
) -> list[tuple[Measure, Leaderboard | None, str]]:
    """A leaderboard for each measure; all in one pass, or one by one where some measure cannot be computed."""
    try:
        board = board_of(measures)
    except MeasureError as error:
        if len(measures) == 1:
            return [(measures[0], None, str(error))]
        return [one for measure in measures for one in _grid_boards(board_of, [measure])]
    return [(measure, board, "") for measure in measures]


# Numbers that name no measure are by whatever measure is compared.
UNNAMED = ""


Values = Mapping[str, Mapping[str, float]]


QueryScores: TypeAlias = "File | Rows | Leaderboard | Values"
"""Per-query scores: a leaderboard of any form that has them (a file, a frame), a board, or run -> query -> score."""


Scores: TypeAlias = "File | Rows | Leaderboard | RecordGrades | Mapping[str, float]"
"""Scores of runs: a leaderboard (a file, a frame), a board, or run -> score; graded records (every grade set and
measure)."""


def name_of_scores(scores: Scores | QueryScores) -> str:
    """What messages call scores."""
    if isinstance(scores, str | os.PathLike):
        return path_name(scores)
    name = getattr(scores, "name", None)
    kind = "the board" if isinstance(scores, Leaderboard) else "the table" if are_rows(scores) else "scores"
    return name if isinstance(name, str) else kind


@dataclass(frozen=True)
class AnyScores:
    """Scores of any form.

    Attributes:
        name: what messages call them.
        columns: the columns.
        take: name of a column -> its scores.
        runs: all runs, also those without a score by some measure.
        is_unnamed: whether the numbers name no measure.
        settings: how a board of ours was scored.
    """

    name: str
    columns: Sequence[str]
    take: Callable[[str], RunScores]
    runs: Iterable[str] = ()
    is_unnamed: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def by_query(self) -> dict[str, Values]:
        """Column -> run -> query -> score, of the columns that have such; `UNNAMED` is one without a name."""
        found = {UNNAMED if self.is_unnamed else name: self.take(name).queries for name in self.columns}
        return {name: {**{run: {} for run in self.runs}, **of} for name, of in found.items() if of}

    def named(self, name: str) -> str:
        """The column that a name means."""
        return column_named(name, self.columns, f"(columns of {self.name})")

    def fitting(self, name: str | None, wanted: Sequence[str] | None) -> Sequence[str]:
        """The column that is named, or the only one that is asked for; all where there are several."""
        if name is not None:
            return [self.named(name)]
        asked = list(dict.fromkeys(found for one in wanted or () for found in columns_named(one, self.columns)))
        return asked if len(asked) == 1 else self.columns

    def only(self, fitting: Sequence[str], why: str = "") -> RunScores:
        """The scores of the one column that fits."""
        if len(fitting) != 1:
            text = f"{self.name}: several columns{why}, choose one: {'|'.join(self.columns)}"
            raise InputError(text, settings=("official_measure",))
        return self.take(fitting[0])


def read_scores(
    scores: Scores | QueryScores, kind: str = "", ranks: bool | None = None, queries: Collection[str] = ()
) -> AnyScores:
    """Scores of any form.

    Args:
        scores: the scores.
        kind: `official` or empty.
        ranks: whether the numbers are ranks, 1 best; None where the name of the column tells.
        queries: tell the columns of a file that does not.
    """
    called = f"the {kind} " if kind else "the "
    if isinstance(scores, Mapping) and not are_rows(scores):
        given = _given_scores(kind or "scores", scores)
        return AnyScores(f"{called}scores", [given.name], lambda _: given, is_unnamed=True)
    if isinstance(scores, RecordGrades):
        raise InputError("the official scores are a leaderboard, not grades; score them first")
    if isinstance(scores, Leaderboard):
        take = partial(scores_of_board, scores)
        return AnyScores(f"{called}board", scores.measures, take, scores.values, settings=scores.signature.settings)
    with file_path(scores) as path:
        table = read_leaderboard(path, queries=queries)
    # A run with scores by another measure alone has none by this one, which is said.
    return AnyScores(
        name_of_scores(scores),
        table.measures,
        partial(scores_of_table, table, ranks=ranks),
        (*table.run_ids, *table.unscored),
        settings=table.settings,
    )


def _given_scores(name: str, scores: Any) -> RunScores:
    """The scores of run -> score, or of run -> query -> score."""

    try:
        if all(isinstance(one, Mapping) for one in scores.values()):
            means = {run: fmean(of_query.values()) for run, of_query in scores.items() if of_query}
            return RunScores(name, means, scores)
        return RunScores(name, {str(run): float(score) for run, score in scores.items()})
    except (TypeError, ValueError):
        problem = f"expected run -> score, or run -> query -> score; found {scores!r:.60}"
        raise InputError(f"the {name}: {problem}") from None
