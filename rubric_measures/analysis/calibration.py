"""A grader corrected by some grades of assessors.

A few grades that assessors gave, too: how far a grader is off, and what its scores are worth, with intervals.

Prediction-powered inference: a mean from few assessors' labels and many of a model, with a valid interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rubric_measures.analysis.resampling import (
    USUAL_DRAWS,
    Draws,
    FloatArray,
    Interval,
    Resample,
    check_level,
)
from rubric_measures.base.errors import InputError
from rubric_measures.base.tables import Cell, Column, Report, Table, columns, plain


class Anchor(NamedTuple):
    """One grade of the grader that the truth grades, too.

    Attributes:
        query_id: the query.
        kind: what is graded: `question`, or the importance of a nugget.
        grade: the grader's.
        truth: the assessors', or that of the grader that it is held to.
    """

    query_id: str
    kind: str
    grade: float
    truth: float


class Bias(NamedTuple):
    """How far the grader is off; one row for all, and one a kind of item.

    Attributes:
        kind: of the items; empty for all.
        anchors: how many grades these are.
        queries: of how many queries.
        same: the share of them that is the truth's.
        mean: the mean of grade − truth.
        low: lower end of its interval; None with one query.
        high: upper end.
    """

    kind: str
    anchors: int
    queries: int
    same: float
    mean: float
    low: float | None
    high: float | None


def bias_rows(anchors: Sequence[Anchor], level: float = 0.95) -> list[Bias]:
    """The bias over all, and by kind where there are several.

    There is none by grade: two graders who err alike differ at each but the middle one (regression to the mean).

    Grades of one query are not independent: the standard error is robust to that, √(G / (G − 1) Σ_q (Σ_{i in q}
    (d_i − d̄))²) / n, with Student's t of G − 1 degrees of freedom, G the number of queries.

    Source: Liang and Zeger (1986); Cameron and Miller, A practitioner's guide to cluster-robust inference (2015).
    """
    kinds = sorted({one.kind for one in anchors})
    rows = [_bias(kind, [one for one in anchors if one.kind == kind], level) for kind in kinds]
    return [_bias("", anchors, level), *(rows if len(rows) > 1 else [])]


def _bias(kind: str, anchors: Sequence[Anchor], level: float) -> Bias:
    from scipy.special import stdtrit

    gaps = np.array([one.grade - one.truth for one in anchors])
    mean = float(gaps.mean())
    sums: dict[str, float] = {}
    for one, gap in zip(anchors, gaps, strict=True):
        sums[one.query_id] = sums.get(one.query_id, 0.0) + float(gap) - mean
    groups = len(sums)
    low = high = None
    if groups > 1:
        squares = sum(value * value for value in sums.values())
        error = float(np.sqrt(groups / (groups - 1) * squares)) / len(gaps)
        reach = float(stdtrit(groups - 1, (1.0 + level) / 2.0)) * error
        low, high = mean - reach, mean + reach
    return Bias(kind, len(gaps), groups, float((gaps == 0).mean()), mean, low, high)


def isotonic(values: ArrayLike, weights: ArrayLike) -> FloatArray:
    """The values made non-decreasing with the least weighted squares (pool adjacent violators).

    Places of weight 0 have no value: they get that of the nearest place before them, or else of the first after.

    Source: Ayer et al. (1955); Barlow et al., Statistical Inference under Order Restrictions (1972).

    >>> isotonic([0.0, 0.5, 0.25, 1.0], [1, 1, 1, 1]).tolist()
    [0.0, 0.375, 0.375, 1.0]
    """
    from scipy.optimize import isotonic_regression

    given, mass = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    known = np.flatnonzero(mass > 0)
    if not len(known):
        return np.full(len(given), np.nan)
    fitted: FloatArray = isotonic_regression(given[known], weights=mass[known]).x
    return fitted[np.maximum(np.searchsorted(known, np.arange(len(given)), side="right") - 1, 0)]


class GradeValue(NamedTuple):
    """What a grade of the grader is worth.

    Attributes:
        grade: the grade.
        anchors: how many grades of the truth there are for it.
        covers: how probable it is that the truth covers; an interval over queries.
    """

    grade: float
    anchors: int
    covers: Interval


class RunGrades(NamedTuple):
    """One run's answer to one query.

    Attributes:
        run_id: the run.
        query_id: the query.
        grades: the grader's grades of its items; failed ones are left out.
    """

    run_id: str
    query_id: str
    grades: Sequence[float]


class Calibrated(NamedTuple):
    """A run's score, as the grader sees it and as the truth would.

    Attributes:
        run_id: the run.
        raw: the mean share of items that the grader's grades cover.
        interval: the mean share that the truth's would; it contains the uncertainty of the queries and of the anchors.
    """

    run_id: str
    raw: float
    interval: Interval


@dataclass
class _Tables:
    """Counts by query: of anchors and of answers.

    Attributes:
        grades: the grades, ascending.
        anchors: (queries, grades): anchors of the grade.
        covered: (queries, grades): of these, those that the truth covers.
        shares: (queries, runs, grades): the share of a run's items that have the grade; 0 where it has no answer.
        rel: the least grade that covers.
    """

    grades: FloatArray
    anchors: FloatArray
    covered: FloatArray
    shares: FloatArray
    rel: float

    def values(self, counts: FloatArray) -> FloatArray:
        """(rounds, grades): how probable it is that the truth covers, by grade, when queries count so often."""
        weights, hits = counts @ self.anchors, counts @ self.covered
        shares = np.divide(hits, weights, out=np.zeros_like(hits), where=weights > 0)
        return np.stack([isotonic(share, weight) for share, weight in zip(shares, weights, strict=True)])

    def scores(self, counts: FloatArray, queries: FloatArray) -> FloatArray:
        """(rounds, runs): the means over the answered queries, without the grader's errors."""
        weights, hits = counts @ self.anchors, counts @ self.covered
        says = self.grades >= self.rel
        positive, negative = hits.sum(axis=1), (weights - hits).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            true_rate = hits[:, says].sum(axis=1) / positive
            false_rate = (weights - hits)[:, says].sum(axis=1) / negative
            gain = true_rate - false_rate
            # Linear in what the grader says: 0 where it says no as often as it does of what is not covered.
            worth = (says[None, :] - false_rate[:, None]) / np.where(gain > 0, gain, np.nan)[:, None]
        mass = np.einsum("bq,qrg->brg", counts, self.shares, optimize=True)
        total = counts @ queries
        means: FloatArray = np.einsum("brg,bg->br", mass, worth) / np.where(total > 0, total, np.nan)[:, None]
        return means


def _tables(anchors: Sequence[Anchor], answers: Sequence[RunGrades], rel: float, runs: Sequence[str]) -> _Tables:
    grades = sorted({one.grade for one in anchors} | {grade for answer in answers for grade in answer.grades})
    queries = sorted({one.query_id for one in anchors} | {one.query_id for one in answers})
    at = {query: place for place, query in enumerate(queries)}
    of = {grade: place for place, grade in enumerate(grades)}
    seen, covered = np.zeros((2, len(queries), len(grades)))
    for one in anchors:
        seen[at[one.query_id], of[one.grade]] += 1
        covered[at[one.query_id], of[one.grade]] += one.truth >= rel
    shares = np.zeros((len(queries), len(runs), len(grades)))
    place_of = {run: place for place, run in enumerate(runs)}
    for answer in answers:
        for grade in answer.grades:
            shares[at[answer.query_id], place_of[answer.run_id], of[grade]] += 1.0 / len(answer.grades)
    return _Tables(np.array(grades), seen, covered, shares, rel)


def _refuse_outside(anchors: Sequence[Anchor], answers: Sequence[RunGrades], rel: float) -> None:
    """Refuses what the anchors say nothing about."""
    if len({one.query_id for one in anchors}) < 2:
        raise InputError("calibration needs grades of the truth on two queries or more")
    known = {one.grade for one in anchors}
    low, high = min(known), max(known)
    outside = sorted({grade for answer in answers for grade in answer.grades if not low <= grade <= high})
    if outside:
        raise InputError(
            f"the grader gives {', '.join(f'{grade:g}' for grade in outside)}, and of what the truth grades it gave "
            f"nothing below {low:g} or above {high:g}; let assessors grade some of these"
        )
    hits = sum(one.truth >= rel for one in anchors)
    if not 0 < hits < len(anchors):
        raise InputError(
            f"the truth covers {hits} of {len(anchors)} items; calibration by confusion needs some that it covers "
            "and some that it does not"
        )


def grade_values(anchors: Sequence[Anchor], rel: float, draws: Draws = USUAL_DRAWS) -> list[GradeValue]:
    """How probable it is that the truth covers, by the grader's grade, non-decreasing; intervals over queries.

    Args:
        anchors: the grades that both gave.
        rel: the least grade that covers.
        draws: rounds (0 for no intervals), seed and level.
    """
    tables = _tables(anchors, [], rel, [])
    counts = tables.anchors.sum(axis=0)
    intervals = Resample(len(tables.anchors), draws).draw(tables.values).intervals()
    return [
        GradeValue(float(grade), int(count), interval)
        for grade, count, interval in zip(tables.grades, counts, intervals, strict=True)
    ]


def calibrated_runs(
    anchors: Sequence[Anchor],
    answers: Sequence[RunGrades],
    rel: float,
    draws: Draws = USUAL_DRAWS,
) -> list[Calibrated]:
    """The share of items that the truth would cover, a run at a time, from the grader's grades and the anchors.

    The grader's errors are inverted: (p − FPR) / (TPR − FPR), p the share that the grader covers. That is right for
    runs of any quality as long as the grader errs alike on all. The anchors are taken for a random sample of what is
    graded, and errors for independent of who wrote the answer.

    Intervals are BCa over queries; a query is drawn with its answers and its anchors, so they contain the uncertainty
    of the calibration. Coverage by simulation is in benchmarks/README.md.

    Args:
        anchors: the grades that both gave.
        answers: every run's answers; a run without an answer to a query that others answer scores 0 there.
        rel: the least grade that covers, of the grader and of the truth.
        draws: rounds (0 for no intervals), seed and level.

    Returns:
        the runs, the best calibrated score first.

    Raises:
        InputError: the grader gives grades outside of those that the truth graded, there is no answer, or the grader
            covers what is covered no more often than what is not.

    Source: Rogan and Gladen, Estimating prevalence from the results of a screening test (1978).
    """
    answers = [one for one in answers if one.grades]
    if not answers:
        raise InputError("there is no answer with grades to calibrate")
    _refuse_outside(anchors, answers, rel)
    runs = sorted({one.run_id for one in answers})
    tables = _tables(anchors, answers, rel, runs)
    answered = (tables.shares.sum(axis=(1, 2)) > 0).astype(np.float64)
    drawn = Resample(len(answered), draws).draw(lambda counts: tables.scores(counts, answered))
    if np.isnan(drawn.estimates).any():
        raise InputError(
            "the grader covers what the truth does not cover as often as what it does; nothing calibrates it"
        )
    says = tables.grades >= rel
    raw = tables.shares[:, :, says].sum(axis=(0, 2)) / answered.sum()
    found = [
        Calibrated(run, share, _within(one))
        for run, share, one in zip(runs, raw.tolist(), drawn.intervals(), strict=True)
    ]
    return sorted(found, key=lambda one: (-(one.interval.estimate or 0.0), one.run_id))


def _within(one: Interval) -> Interval:
    """The interval inside [0, 1], where shares are."""

    def inside(end: float | None) -> float | None:
        return None if end is None else min(max(end, 0.0), 1.0)

    return replace(one, estimate=inside(one.estimate), low=inside(one.low), high=inside(one.high))


def anchor_report(
    bias: Sequence[Bias],
    values: Sequence[GradeValue],
    runs: Sequence[Calibrated],
    places: int,
    settings: Mapping[str, object],
) -> Report:
    """Bias, values of grades, and runs; for programs one after the other.

    Args:
        bias: see `bias_rows`.
        values: see `grade_values`.
        runs: see `calibrated_runs`; empty where there are no answers.
        places: decimal places; -1 prints all digits.
        settings: what it was computed with: `against`, `assessors`, `rel`, `draws`, `smallest`, and
            `reason` where there are no runs.
    """
    tables = [_bias_table(bias, places, settings), _value_table(values, places, settings)]
    tables += [_run_table(runs, places, settings)] if runs else []
    content = {
        "format": "rubric_measures calibrate 1",
        **settings,
        "bias": [{**one._asdict(), "drift": said_of(one, settings)} for one in bias],
        "grades": [one._asdict() for one in values],
        "runs": [one._asdict() for one in runs],
    }
    return Report(tables, content=lambda: plain(content))


def said_of(one: Bias, settings: Mapping[str, object]) -> str:
    """Whether the interval shows a difference, shows that it is too small to matter, or neither."""
    smallest = settings["smallest"]
    if one.low is None or one.high is None:
        return "unknown"
    if isinstance(smallest, float) and -smallest < one.low and one.high < smallest:
        return "none that matters"
    return "unknown" if one.low <= 0.0 <= one.high else "higher" if one.mean > 0 else "lower"


def _bias_table(rows: Sequence[Bias], places: int, settings: Mapping[str, object]) -> Table:
    heads = columns(["kind", "anchors", "queries", "same", "bias", "low", "high", "said"], places)
    cells: list[list[Cell]] = [[one.kind or "all", *one[1:], said_of(one, settings)] for one in rows]
    return Table(heads, cells, notes=[f"bias: the mean of the grader's grade − that of {settings['against']}"])


def _value_table(values: Sequence[GradeValue], places: int, settings: Mapping[str, object]) -> Table:
    cells: list[list[Cell]] = [
        [f"{one.grade:g}", one.anchors, one.covers.estimate, one.covers.low, one.covers.high] for one in values
    ]
    note = f"covers: how probable a grade of {settings['rel']} or more of {settings['against']} is (isotonic)"
    return Table([Column("grade", is_left=True), *columns(["anchors", "covers", "low", "high"], places, 0)], cells,
                 notes=[note])  # fmt: skip


def _run_table(runs: Sequence[Calibrated], places: int, settings: Mapping[str, object]) -> Table:
    cells: list[list[Cell]] = [
        [one.run_id, one.raw, one.interval.estimate, one.interval.low, one.interval.high] for one in runs
    ]
    note = f"calibrated: the share of items that {settings['against']} would cover, by confusion"
    return Table(columns(["run", "raw", "calibrated", "low", "high"], places), cells, notes=[note])


@dataclass(frozen=True, slots=True)
class PredictionPowered:
    """A mean by prediction-powered inference, beside the two simpler ones.

    Attributes:
        mean: the estimate.
        low: lower end of its interval.
        high: upper end.
        power: λ, how far the model's labels are used: 0 not at all, 1 fully.
        assessor_mean: from the assessors' labels alone.
        assessor_low: lower end of the interval from assessors' labels alone.
        assessor_high: upper end.
        naive_mean: from all model labels, taken as if they were the truth.
        naive_low: lower end of its interval, which does not hold where the model is biased.
        naive_high: upper end.
        labelled: number of units with an assessor's label.
        unlabelled: number of units with a model label only.
        level: the nominal coverage.
    """

    mean: float
    low: float
    high: float
    power: float
    assessor_mean: float
    assessor_low: float
    assessor_high: float
    naive_mean: float
    naive_low: float
    naive_high: float
    labelled: int
    unlabelled: int
    level: float


def _influence(values: FloatArray) -> FloatArray:
    """(v − mean)/n, scaled so that the sum of squares is the variance of the mean with n − 1."""
    size = len(values)
    result: FloatArray = (values - values.mean()) / size * np.sqrt(size / (size - 1))
    return result


def prediction_powered_mean(
    assessed: ArrayLike, model: ArrayLike, model_unlabelled: ArrayLike, *, level: float = 0.95
) -> PredictionPowered:
    """The mean assessor's label of a population from a few assessed units and many that only a model graded (PPI++).

    θ = mean(Y) + λ (mean(f̃) − mean(f)), Y assessors' labels and f model labels of the same n units, f̃ model labels of N
    other units of the same population. λ minimises the variance: λ = Cov(Y, f) / ((1 + n/N) Var(f, f̃)), cut to [0, 1];
    so a useless model costs nothing. Interval: θ ± t √(Var(Y − λf)/n + λ² Var(f̃)/N), variances with n − 1. The paper's
    t is the normal quantile; ours is Student's with n − 1 degrees of freedom, because the samples are small: coverage
    by simulation is in benchmarks/README.md.
    The assessed units must be a random sample.

    A unit is a query (a run's score on it). Units must be independent; passages of one query are not.

    Args:
        assessed: (n,) assessors' labels or scores.
        model: (n,) the model's for the same units.
        model_unlabelled: (N,) the model's for the others.
        level: the nominal coverage.

    Raises:
        InputError: fewer than two units on a side, a value is not finite.

    Source: Angelopoulos, Duchi and Zrnic, PPI++: Efficient Prediction-Powered Inference (2023), sections 2 and 6;
    Angelopoulos et al., Prediction-Powered Inference (Science 2023).

    >>> result = prediction_powered_mean([1, 0, 1, 1], [1, 0, 1, 1], [1, 0, 0, 1, 0, 0, 1, 0])
    >>> round(result.power, 4), round(result.mean, 4)
    (0.6111, 0.5208)
    """
    from scipy.special import stdtrit

    truth, guess, others = (np.asarray(values, dtype=np.float64) for values in (assessed, model, model_unlabelled))
    if len(truth) < 2 or len(others) < 2:
        raise InputError(f"prediction-powered inference needs two units a side, not {len(truth)} and {len(others)}")
    if not all(np.isfinite(values).all() for values in (truth, guess, others)):
        raise InputError("a label is not finite; leave units out where a grade is missing (and say so)")
    check_level(level)
    power = _tuned_power(truth, guess, others)
    t = float(stdtrit(len(truth) - 1, (1.0 + level) / 2.0))

    def interval(mean: float, parts: FloatArray) -> tuple[float, float, float]:
        """The t quantile by the standard error of a sum of influences."""
        reach = t * float(np.sqrt((parts**2).sum()))
        return mean, mean - reach, mean + reach

    everything = np.concatenate([guess, others])
    corrected = float(truth.mean() + power * (others.mean() - guess.mean()))
    parts = np.concatenate([_influence(truth - power * guess), power * _influence(others)])
    return PredictionPowered(
        *interval(corrected, parts),
        power,
        *interval(float(truth.mean()), _influence(truth)),
        *interval(float(everything.mean()), _influence(everything)),
        len(truth),
        len(others),
        level,
    )


def _tuned_power(truth: FloatArray, guess: FloatArray, others: FloatArray) -> float:
    everything = np.concatenate([guess, others])
    if np.ptp(everything) == 0.0:
        # A model that always says the same carries no information.
        return 0.0
    spread = float(everything.var(ddof=1))
    shared = float(((truth - truth.mean()) * (guess - guess.mean())).sum()) / (len(truth) - 1)
    return min(1.0, max(0.0, shared / ((1.0 + len(truth) / len(others)) * spread)))
