"""Two leaderboards joined on their runs and correlated, with intervals over queries or over runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rubric_measures.base.errors import InputError
from rubric_measures.boards.board import NO_RUNS, Leaderboard
from rubric_measures.formats.leaderboards import LeaderboardTable
from rubric_measures.meta_evaluation._bootstrap import USUAL_DRAWS, Draws, FloatArray, score_table
from rubric_measures.meta_evaluation._significance import ROUNDING, adjust, exact_shift_p
from rubric_measures.meta_evaluation.correlation import parse_coefficient, ranks, undefined_reason
from rubric_measures.meta_evaluation.intervals import (
    CoefficientInterval,
    QueryTau,
    correlate_over_queries,
    correlate_over_runs,
    pooled_tau,
    query_tau,
)
from rubric_measures.meta_evaluation.noise_free import NoiseFreeTau, noise_free_tau

__all__ = [
    "DEFAULT_COEFFICIENTS",
    "GridCell",
    "LeaderboardCorrelation",
    "PairAgreement",
    "RunScores",
    "best_cells",
    "correlate_leaderboards",
    "query_table",
    "scores_of_board",
    "scores_of_table",
    "scores_of_workbench",
    "significant_pair_agreement",
    "standard_errors",
]


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How two measures agree on which pairs of runs are different.

    Attributes:
        active_agreements: both significant, same direction.
        active_disagreements: both significant, opposite directions.
        mixed_agreements: one significant, same direction (or the other side tied).
        mixed_disagreements: one significant, opposite directions.
        passive_agreements: neither significant, same direction (or tied on a side).
        passive_disagreements: neither significant, opposite directions.
        reference_significant: pairs that are different under the reference.
        recovered: how many of those the other measure finds too, in the same direction.
    """

    active_agreements: int
    active_disagreements: int
    mixed_agreements: int
    mixed_disagreements: int
    passive_agreements: int
    passive_disagreements: int
    reference_significant: int
    recovered: int

    @property
    def active_share(self) -> float | None:
        """2 AA / (2 AA + MA + MD + 2 AD): agreement on the pairs that either side calls different; None without any."""
        total = (
            2 * self.active_agreements
            + self.mixed_agreements
            + self.mixed_disagreements
            + 2 * self.active_disagreements
        )
        return 2 * self.active_agreements / total if total else None


def significant_pair_agreement(official: ArrayLike, scores: ArrayLike) -> PairAgreement:
    """Agreement of two measures on the significantly different pairs of runs (paired t-tests over queries, at 0.05).

    Each side tests its pairs and corrects them by itself. A pair that is identical is not significant; of one that
    differs by the same on every query, the exact permutation test counts.

    Args:
        official: (queries, runs), complete.
        scores: (queries, runs), complete, same runs; the queries may be others.

    Source: Moffat, Scholer and Thomas (ADCS 2012) and Faggioli and Ferro (ECIR 2021) for the counts.
    """
    x, y = np.asarray(official, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    first, second = np.triu_indices(x.shape[1], 1)
    (x_way, x_real), (y_way, y_real) = (_directions(table, first, second) for table in (x, y))
    opposite = x_way * y_way < 0
    both, one, none = x_real & y_real, x_real ^ y_real, ~(x_real | y_real)
    return PairAgreement(
        int((both & ~opposite).sum()),
        int((both & opposite).sum()),
        int((one & ~opposite).sum()),
        int((one & opposite).sum()),
        int((none & ~opposite).sum()),
        int((none & opposite).sum()),
        int(x_real.sum()),
        int((both & ~opposite).sum()),
    )


def _directions(
    table: FloatArray, first: NDArray[np.intp], second: NDArray[np.intp]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    from scipy.special import stdtr

    differences = table[:, first] - table[:, second]
    queries = len(differences)
    mean, deviation = differences.mean(axis=0), differences.std(axis=0, ddof=1)
    varies = np.ptp(differences, axis=0) > ROUNDING * np.abs(differences).max(axis=0)
    p_values = [exact_shift_p(queries) if way else None for way in mean]
    t = np.abs(mean[varies]) / (deviation[varies] / np.sqrt(queries))
    for column, p in zip(np.flatnonzero(varies), 2.0 * stdtr(queries - 1, -t), strict=True):
        p_values[int(column)] = float(p)
    adjusted = adjust(p_values, "holm")
    real = np.array([value is not None and value < 0.05 for value in adjusted], dtype=np.bool_)
    return np.sign(mean), real


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
    """

    name: str
    means: Mapping[str, float]
    queries: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    ranks: bool = False


@dataclass(frozen=True)
class LeaderboardCorrelation:
    """An official leaderboard against another one.

    Attributes:
        official: name of the official column.
        name: name of the other column.
        runs: the runs that both have, sorted.
        missing: official runs that the other leaderboard lacks.
        extra: runs that only the other leaderboard has.
        coefficients: one result a coefficient, in the order asked for.
        worst_run: the run with the maximum rank drop; None where that is undefined (fewer than two runs, or all tied).
        worst_drop: the ranks it loses; None likewise.
        query_kendall: τ per query averaged; None unless both sides have per-query scores of the same queries.
        pooled_kendall: τ over all query/run pairs; None likewise.
        pairs: agreement on the significantly different pairs; None unless both have complete per-query scores.
        notes: how the numbers were computed, where that is not as usual.
        noise_free: τ without the noise of the queries; None as `pairs`.
    """

    official: str
    name: str
    runs: tuple[str, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    coefficients: tuple[CoefficientInterval, ...]
    worst_run: str | None
    worst_drop: float | None
    query_kendall: QueryTau | None = None
    pooled_kendall: QueryTau | None = None
    pairs: PairAgreement | None = None
    notes: tuple[str, ...] = ()
    noise_free: NoiseFreeTau | None = None

    def value(self, name: str) -> float | None:
        """The value of one coefficient by its name; None where it is undefined or was not asked for."""
        return next((one.coefficient.value for one in self.coefficients if one.coefficient.name == name), None)


def scores_of_table(table: LeaderboardTable, measure: str, *, ranks: bool | None = None) -> RunScores:
    """One column of a leaderboard that was read from a file.

    Args:
        table: the leaderboard.
        measure: the column.
        ranks: whether the numbers are ranks, 1 best; by default when the column is called `rank`.

    Returns:
        the file's aggregates, or the means over queries where it has none. The row of the best possible score
        (`_overall_`) is no run and is left out.

    Raises:
        UnknownNameError: there is no such column.
    """
    is_rank = measure == "rank" if ranks is None else ranks
    sign = -1.0 if is_rank else 1.0
    queries = {
        run: {query: sign * value for query, value in values.items()}
        for run, values in table.per_query(measure).items()
        if run not in NO_RUNS
    }
    means = {run: sign * value for run, value in table.column(measure).items() if run not in NO_RUNS}
    for run, values in queries.items():
        means.setdefault(run, sum(values.values()) / len(values))
    return RunScores(measure, means, queries, is_rank)


def scores_of_board(board: Leaderboard, measure: str) -> RunScores:
    """One column of a leaderboard of ours; runs without a mean (nothing could be scored) are left out."""
    means = {run: row[measure].mean for run, row in board.cells.items() if run not in NO_RUNS}
    return RunScores(
        measure,
        {run: mean for run, mean in means.items() if mean is not None},
        {
            run: {query: value for query, value in row[measure].items() if value is not None}
            for run, row in board.values.items()
            if means.get(run) is not None
        },
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
            if run not in NO_RUNS and (values := [value for value in row[measure].values() if value is not None])
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
    """Run -> standard error of its mean over queries, s / √n with n − 1 in s.

    Runs with fewer than two queries, and those whose score is not the mean of their queries, are left out.
    """
    errors = {}
    for run, values in scores.queries.items():
        numbers = list(values.values())
        if len(numbers) > 1 and run in scores.means and abs(statistics.fmean(numbers) - scores.means[run]) <= _PRINTED:
            errors[run] = statistics.stdev(numbers) / math.sqrt(len(numbers))
    return errors


def _worst_drop(x: FloatArray, y: FloatArray, runs: Sequence[str]) -> tuple[float | None, str | None]:
    if undefined_reason("max_rank_drop", x, y):
        return None, None
    drops = ranks(y) - ranks(x)
    worst = int(np.argmax(drops))
    return float(drops[worst]), runs[worst]


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

    Intervals are over queries where the other leaderboard has per-query scores whose means are its run scores, and over
    runs otherwise. The official side is resampled too where it has the same queries; else its scores are fixed.

    Args:
        official: the reference.
        other: the leaderboard to compare with it.
        coefficients: names, `@k` for the official top k.
        draws: rounds (0 for no intervals), seed and level.
        strict: a run of the official leaderboard that the other lacks is an error (the Rubric workbench's rule).
        details: also compute τ per query, τ over all pairs and the significantly different pairs.

    Raises:
        InputError: no run is in both, or `strict` and one is missing.
        UnknownNameError: no such coefficient.
    """
    runs = sorted(official.means.keys() & other.means.keys())
    missing = tuple(sorted(official.means.keys() - other.means.keys()))
    extra = tuple(sorted(other.means.keys() - official.means.keys()))
    if strict and missing:
        raise InputError(
            f"{other.name}: {len(missing)} runs of the official leaderboard are missing ({', '.join(missing[:5])}); "
            "the Rubric workbench's rules need all of them",
            settings=("compat",),
        )
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
        notes.append("run scores are not the means of the per-query scores (or some are missing): intervals over runs")
    both = scored is not None and reference is not None and scored[1] == reference[1]
    if scored is not None and reference is not None and not both:
        notes.append("the two leaderboards have different queries: the official scores are taken as given")
    x = np.array([official.means[run] for run in runs])
    y = np.array([other.means[run] for run in runs])
    results: list[CoefficientInterval] = []
    for name in coefficients:
        if scored is not None:
            given = reference[0] if both and reference is not None else x
            results += correlate_over_queries(given, scored[0], name, draws)
        else:
            results.append(correlate_over_runs(x, y, name, draws))
    drop, worst = _worst_drop(x, y, runs)
    by_query = pooled = pairs = noise_free = None
    if details and both and scored is not None and reference is not None:
        by_query = query_tau(reference[0], scored[0], draws)
        pooled = pooled_tau(reference[0], scored[0], draws)
        complete = np.isfinite(reference[0]).all() and np.isfinite(scored[0]).all()
        if complete and len(runs) > 1 and len(scored[1]) > 1:
            pairs = significant_pair_agreement(reference[0], scored[0])
            noise_free = noise_free_tau(reference[0], scored[0], draws)
    return LeaderboardCorrelation(
        official.name,
        other.name,
        tuple(runs),
        missing,
        extra,
        tuple(results),
        worst,
        drop,
        by_query,
        pooled,
        pairs,
        tuple(notes),
        noise_free,
    )


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
    """

    llm: str
    prompt_class: str
    kind: str
    measure: str
    result: LeaderboardCorrelation | None
    reason: str = ""
    scores: RunScores | None = field(default=None, repr=False)


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
