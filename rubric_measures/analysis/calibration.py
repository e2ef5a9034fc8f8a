"""A grader corrected by some grades of assessors.

A few grades that assessors gave, too: how far a grader is off, and what its scores are worth, with intervals.

Audits: which grades assessors check, in two stages, and when what they found settles a difference between runs.

An audit draws passages, a query at a time in turn, and some items of each, as many that the grader covers as not. What
assessors say of these corrects the grader's difference of two runs without bias. The interval of the difference holds
however often one looks at it, until the audit has the size that was planned.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections import Counter
from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rubric_measures.analysis.resampling import (
    ROUNDING,
    USUAL_DRAWS,
    Draws,
    FloatArray,
    Interval,
    Resample,
    check_level,
    seeded,
    within,
)
from rubric_measures.base.errors import InputError, counted, refuse_ignored
from rubric_measures.base.tables import Cell, Report, Reported, Table, Undefined, columns, plain


class Anchor(NamedTuple):
    """One grade of the grader that the truth grades, too.

    Attributes:
        query_id: the query.
        kind: what is graded: `question`, or the importance of a nugget.
        grade: the grader's.
        truth: the assessors', or that of the grader that it is held to.
        stands: for how many grades it stands: more than 1 where an audit asked it.
    """

    query_id: str
    kind: str
    grade: float
    truth: float
    stands: float = 1.0


# Why there is no interval where what is said follows from the mean all the same.
_ALIKE = "all grades are off by the same; the verdict follows from that bias"


class Bias(NamedTuple):
    """How far the grader is off; one row for all, and one a kind of item.

    Attributes:
        kind: of the items; empty for all.
        anchors: how many grades these are.
        queries: of how many queries.
        same: the share of them that is the truth's.
        mean: the mean of grade − truth.
        low: lower end of its interval; None where there is none.
        high: upper end.
        reason: why there is no interval; empty otherwise.
    """

    kind: str
    anchors: int
    queries: int
    same: float
    mean: float
    low: float | None
    high: float | None
    reason: str


def bias_rows(anchors: Sequence[Anchor], level: float = 0.95) -> list[Bias]:
    """The bias over all, and by kind where there are several.

    There is none by grade: two graders who err alike differ at each but the middle one (regression to the mean).

    Grades of one query are not independent: the standard error is robust to that, √(G / (G − 1) Σ_q (Σ_{i in q}
    w_i (d_i − d̄))²) / Σ w, with Student's t of G − 1 degrees of freedom, G the number of queries, w how many grades one
    stands for, and d̄ and the share of the same grades weighted by it.

    Source: Liang and Zeger (1986); Cameron and Miller, A practitioner's guide to cluster-robust inference (2015).
    """
    kinds = sorted({one.kind for one in anchors})
    rows = [_bias(kind, [one for one in anchors if one.kind == kind], level) for kind in kinds]
    return [_bias("", anchors, level), *(rows if len(rows) > 1 else [])]


def _bias(kind: str, anchors: Sequence[Anchor], level: float) -> Bias:
    from scipy.special import stdtrit

    gaps = np.array([one.grade - one.truth for one in anchors])
    stands = np.array([one.stands for one in anchors])
    mean = float(np.average(gaps, weights=stands))
    queries, at = np.unique([one.query_id for one in anchors], return_inverse=True)
    groups, sums = len(queries), np.bincount(at, stands * (gaps - mean))
    freedom = max(groups - 1, 1)
    error = float(np.sqrt(groups / freedom * (sums**2).sum()) / stands.sum())
    reach = float(stdtrit(freedom, (1.0 + level) / 2.0)) * error
    reason = ""
    if groups < 2:
        reason = "one query only; an interval needs two"
    elif np.ptp(gaps) <= ROUNDING:
        reason = _ALIKE
    elif error <= ROUNDING:
        reason = "on average the grades of every query are off by the same, which says nothing of chance"
    low, high = (None, None) if reason else (mean - reach, mean + reach)
    return Bias(kind, len(gaps), groups, float(np.average(gaps == 0, weights=stands)), mean, low, high, reason)


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


def calibrated_runs(
    anchors: Sequence[Anchor], answers: Sequence[RunGrades], rel: float, draws: Draws = USUAL_DRAWS
) -> list[Calibrated]:
    """The share of items that the truth would cover, a run at a time, from the grader's grades and the anchors.

    The grader's errors are inverted: (p − FPR) / (TPR − FPR), p the share that the grader covers. That is right for
    runs of any quality as long as the grader errs alike on all. The anchors are taken for a random sample of what is
    graded, and errors for independent of who wrote the answer.

    Intervals are over queries, see `Drawn.intervals`; a query is drawn with its answers and its anchors, so they
    contain the uncertainty of the calibration. Coverage by simulation is in benchmarks/README.md.

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
        raise InputError("no answer has grades to calibrate")
    _refuse_outside(anchors, answers, rel)
    runs = sorted({one.run_id for one in answers})
    queries = sorted({one.query_id for one in anchors} | {one.query_id for one in answers})
    at, column = ({name: place for place, name in enumerate(names)} for names in (queries, runs))
    # Of each query: the anchors by whether the grader covers and the truth does, with what they stand for.
    said = np.zeros((len(queries), 2, 2))
    for one in anchors:
        said[at[one.query_id], int(one.grade >= rel), int(one.truth >= rel)] += one.stands
    # And the share of each run's items that the grader covers; whether it has an answer, and whether any has.
    shares, has = np.zeros((2, len(queries), len(runs)))
    for answer in answers:
        place = at[answer.query_id], column[answer.run_id]
        shares[place], has[place] = sum(grade >= rel for grade in answer.grades) / len(answer.grades), 1.0
    answered = has.max(axis=1)

    def scores(counts: FloatArray) -> FloatArray:
        drawn = np.einsum("bq,qgt->bgt", counts, said)
        with np.errstate(divide="ignore", invalid="ignore"):
            false_rate, true_rate = (drawn[:, 1] / drawn.sum(axis=1)).T
        gain, total = true_rate - false_rate, counts @ answered
        # Linear in what the grader says: 0 where it says no as often as it does of what is not covered.
        worth = counts @ shares - false_rate[:, None] * (counts @ has)
        usable = (gain > 0) & (total > 0)
        means: FloatArray = worth / np.where(usable, gain * total, np.nan)[:, None]
        return means

    drawn = Resample(len(queries), draws).draw(scores)
    if np.isnan(drawn.estimates).any():
        raise InputError(
            "the grader covers what the truth does not cover as often as what it does; nothing calibrates it"
        )
    raw = shares.sum(axis=0) / answered.sum()
    found = [
        Calibrated(run, share, within(one, 0.0))
        for run, share, one in zip(runs, raw.tolist(), drawn.intervals(), strict=True)
    ]
    return sorted(found, key=lambda one: (-(one.interval.estimate or 0.0), one.run_id))


@dataclass(frozen=True, repr=False)
class Calibration(Reported):
    """What anchors say of a grader; `print` shows it.

    Attributes:
        bias: over all, and by kind.
        runs: calibrated scores of answers, best first; empty where the runs rank passages.
        settings: what it was computed with; `assessors` counts grades that were no blind ones, and `reason` says why
            there are no runs.
    """

    bias: Sequence[Bias]
    runs: Sequence[Calibrated]
    settings: Mapping[str, object]

    def report(self) -> Report:
        """Bias and runs; for programs one after the other."""
        settings, against = self.settings, self.settings["against"]
        shown: list[tuple[str, list[list[Cell]], str]] = [
            ("kind anchors queries same bias low high said",
             [[one.kind or "all", *one[1:5], *_ends(one), said_of(one, settings)] for one in self.bias],
             f"bias: the mean of the grader's grade − that of {against}"),
            ("run raw calibrated low high",
             [[one.run_id, one.raw, one.interval.estimate, *_ends(one.interval)] for one in self.runs],
             f"calibrated: the share of items that {against} would cover, by confusion"),
        ]  # fmt: skip
        tables = [Table(columns(heads.split()), rows, notes=[note]) for heads, rows, note in shown if rows]
        content = {
            "format": "rubric_measures calibrate 1",
            **settings,
            "bias": [{**one._asdict(), "drift": said_of(one, settings)} for one in self.bias],
            "runs": [one._asdict() for one in self.runs],
        }
        return Report(tables, content=lambda: plain(content))


def said_of(one: Bias, settings: Mapping[str, object]) -> str:
    """Whether the interval shows a difference, shows that it is too small to matter, or neither."""
    smallest = settings["smallest"]
    low, high = (one.mean, one.mean) if one.reason == _ALIKE else (one.low, one.high)
    if low is None or high is None:
        return "unknown"
    if isinstance(smallest, float) and -smallest < low and high < smallest:
        return "none that matters"
    return "unknown" if low <= 0.0 <= high else "higher" if one.mean > 0 else "lower"


def _ends(one: Bias | Interval) -> list[Cell]:
    return [Undefined(one.reason) if one.low is None else one.low, one.high]


# The normal approximation needs so many queries.
FIRST_LOOK = 10
# Before anybody checked: with which probability assessors say of an item what the grader says. So many audits are
# simulated with it.
GUESSED_AGREEMENT = 0.85
_SIMULATED = 20
# What an audit settles differences of. It is no measure of a board: there an item counts once, however many passages
# cover it, so no sample of passages estimates that without bias.
SETTLED_MEASURE = "the mean share of items that a passage covers"

Place = tuple[str, str]
"""A passage of a query: (query_id, doc_id)."""
Labels = Mapping[Place, Mapping[str, bool]]
"""passage -> item_id -> whether the grader's grade covers the item."""
Rankings = Mapping[str, Mapping[str, Sequence[str]]]
"""run_id -> query_id -> doc_ids, the best first."""
Runs = tuple[str, ...]
"""A pair of runs, whose difference is asked for; or one run, whose mean is."""
Truth = Mapping[tuple[str, str, str], bool]
"""(query_id, doc_id, item_id) -> what assessors found."""


class DrawnPassage(NamedTuple):
    """A passage that an audit draws.

    Attributes:
        query_id: the query.
        doc_id: the passage.
        items: item_id -> how many of the passage's items it stands for, in the order in which they are asked.
    """

    query_id: str
    doc_id: str
    items: Mapping[str, float]

    @property
    def place(self) -> Place:
        """The passage."""
        return self.query_id, self.doc_id


def _number(seed: int, *ids: str) -> bytes:
    """What the order of draws goes by: the same for the same ids, whatever else there is and in which order."""
    return hashlib.sha256("\0".join((str(seed), *ids)).encode("utf-8", "surrogatepass")).digest()


def draw_audit(labels: Labels, seed: int, items: int = 5, size: int | None = None) -> list[DrawnPassage]:
    """The passages that an audit draws, in their order; a smaller audit is the beginning of a larger one.

    First stage: a passage of every query in turn, at random within the query. Second stage: items at random, those that
    the grader covers and those that it does not in turn, until there are enough or none is left.

    Args:
        labels: the grader's labels. Passages without items are left out.
        seed: another seed draws others.
        items: how many items of a passage, 1 or more.
        size: how many passages; None draws all.

    Source: Särndal, Swensson and Wretman, Model Assisted Survey Sampling (1992), section 4.3 (two stages) and 3.7
    (strata).

    >>> [one.doc_id for one in draw_audit({("q", "a"): {"i": True}, ("q", "b"): {"i": False}}, seed=1)]
    ['b', 'a']
    """
    of_query: dict[str, list[Place]] = {}
    for place in sorted(labels, key=lambda place: _number(seed, *place)):
        if labels[place]:
            of_query.setdefault(place[0], []).append(place)
    turns = [(turn, place) for places in of_query.values() for turn, place in enumerate(places)]
    turns.sort(key=lambda one: (one[0], _number(seed, *one[1])))
    return [DrawnPassage(*place, _drawn_items(place, labels[place], seed, items)) for _, place in turns[:size]]


def _drawn_items(place: Place, labels: Mapping[str, bool], seed: int, items: int) -> dict[str, float]:
    at_random = sorted(labels, key=lambda item_id: _number(seed, *place, item_id))
    # One item cannot stand for two strata.
    strata = [[item for item in at_random if labels[item] is said or items == 1] for said in (True, False)][:items]
    strata.sort(key=len)
    # The smaller stratum has the odd item.
    few = min(len(strata[0]), max(items - items // 2, items - len(strata[-1])))
    stands = {
        item: len(stratum) / size
        for stratum, size in zip(strata, (few, min(items - few, len(strata[-1]))), strict=False)
        for item in stratum[:size]
    }
    return {item: stands[item] for item in labels if item in stands}


Unit = TypeVar("Unit", bound=Hashable)


def stands_for(strata: Mapping[Unit, Hashable], asked: Container[Unit]) -> dict[Unit, float]:
    """For how many units each one that was asked stands: as many as its stratum has, by those of it that were asked.

    Args:
        strata: unit -> its stratum.
        asked: those that were asked.
    """
    sizes = Counter(strata.values())
    sampled = Counter(stratum for unit, stratum in strata.items() if unit in asked)
    return {unit: sizes[stratum] / sampled[stratum] for unit, stratum in strata.items() if unit in asked}


@functools.cache
def flat_bound(level: float) -> float:
    """c with P(|B(t)| < c for all t in [0, 1]) = level, B Brownian motion: 2.2414 for .95.

    A difference that is looked at all the time, with z_t √t < c at the share t of the planned information, has an
    interval that holds at all looks together: O'Brien and Fleming's bound in its limit of many looks.

    Source: O'Brien and Fleming, A multiple testing procedure for clinical trials, Biometrics 1979; the probability is
    Feller, An Introduction to Probability Theory II (1971), X.5: 4/π Σ_k (−1)^k / (2k + 1) exp(−(2k + 1)² π² / 8c²).

    >>> round(flat_bound(0.95), 4)
    2.2414
    """
    from scipy.optimize import brentq

    check_level(level)
    odd = np.arange(1, 200, 2)
    signs = np.where(odd % 4 == 1, 4 / math.pi, -4 / math.pi)
    return float(brentq(lambda c: (signs / odd * np.exp(-((odd * math.pi / c) ** 2) / 8)).sum() - level, 0.1, 20.0))


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What is said before an audit begins, and stays.

    Attributes:
        pairs: those runs whose differences are to be settled.
        passages: the planned size: how many passages are checked at most.
        level: with what probability all intervals of all pairs hold, at all looks.
        smallest: a difference below it does not matter; None where every one does.
        cutoff: how many passages of a ranking count.
        items: how many items of a passage are checked.
        seed: another one draws other passages.

    Raises:
        InputError: a pair names one run twice, there are fewer than 1 passages or ranks, or a level or a smallest
            difference that is none.
    """

    pairs: Sequence[tuple[str, str]]
    passages: int
    level: float = 0.95
    smallest: float | None = None
    cutoff: int = 20
    items: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        for one, other in self.pairs:
            if one == other:
                raise InputError(f"{one}: a pair is two runs")
        for number, of in ((self.passages, "passage"), (self.cutoff, "rank")):
            if number < 1:
                raise InputError(f"an audit has 1 {of} or more, not {number}")
        if not self.pairs and self.smallest is not None:
            refuse_ignored(["smallest"], "where no runs are to be settled", "settle")
        check_level(self.level)
        if self.smallest is not None and not 0.0 < self.smallest < 1.0:
            raise InputError(f"a smallest difference of shares is between 0 and 1, not {self.smallest:g}")


def share_weights(rankings: Rankings, runs: Runs, labels: Labels, cutoff: int) -> dict[str, dict[str, float]]:
    """query_id -> doc_id -> what the passage's share of covered items adds to a run, or to the difference of two.

    A run's score on a query is the mean, over its graded passages down to the cutoff, of the share of items that a
    passage covers. For runs of one answer a query that is Rubric-Cover. A run without a graded passage there scores 0.

    Args:
        rankings: all runs.
        runs: one of them, or two.
        labels: the grader's labels.
        cutoff: how many passages of a ranking count.

    Returns:
        the weights of all queries of the labels; passages that add nothing are left out.

    Raises:
        InputError: there is no such run.
    """
    found: dict[str, dict[str, float]] = {query_id: {} for query_id, _ in labels}
    for run_id, sign in zip(runs, (1.0, -1.0), strict=False):
        if run_id not in rankings:
            raise InputError(f"no run {run_id} has passages here; there are {', '.join(sorted(rankings))}")
        for query_id, weights in found.items():
            top = rankings[run_id].get(query_id, ())[:cutoff]
            graded = [doc_id for doc_id in top if labels.get((query_id, doc_id))]
            for doc_id in graded:
                weights[doc_id] = weights.get(doc_id, 0.0) + sign / len(graded)
    # What both show alike is 0 but for rounding.
    return {
        query_id: {doc_id: weight for doc_id, weight in weights.items() if abs(weight) > ROUNDING}
        for query_id, weights in found.items()
    }


class Settled(NamedTuple):
    """What an audit says of the difference of two runs, or of the mean of one.

    Attributes:
        runs: the pair, or the one run.
        checked: how many passages were checked, of those drawn so far without a gap.
        grader: the difference or mean as the grader has it.
        estimate: what assessors would find; None before the first look.
        low: lower end of its interval, which holds at all looks; None before the first look.
        high: upper end.
        verdict: `better`, `worse`, `same` (closer than the smallest difference) or `open`; of one run `open`.
        more: how many passages more will probably settle it; 0 where it is settled, None where the planned ones will
            not.
        needs: what could settle it then, from half of the planned passages on: `passages`, or `queries` where the
            audit's own error is too small to matter; empty else.
    """

    runs: Runs
    checked: int
    grader: float
    estimate: float | None
    low: float | None
    high: float | None
    verdict: str
    more: int | None
    needs: str = ""


def _powered(model: FloatArray, found: FloatArray, seen: NDArray[np.bool_]) -> tuple[float, float]:
    """The mean over all queries of what assessors would find, from the queries seen so far and the grader's of all.

    θ = λ mean(f) + mean(Y − λf), the second over the n queries seen. Its variance is Var(Y)/n − (1/n − 1/Q)
    (2λ Cov(Y, f) − λ² Var(f)), which λ = Cov(Y, f) / Var(f) makes least; cut to [0, 1]. With all seen it is mean(Y).
    """
    f, y = model[seen], found[seen]
    (spread, shared), (_, of_found) = np.cov(f, y)
    power = min(1.0, max(0.0, shared / spread)) if spread > 0 else 0.0
    squared = of_found / len(f) - (1 / len(f) - 1 / len(model)) * (2 * power * shared - power**2 * spread)
    return float(power * model.mean() + (y - power * f).mean()), math.sqrt(max(squared, 0.0))


@dataclass(frozen=True, eq=False)
class PairAudit:
    """The audit of the difference of two runs, or of the mean of one.

    Attributes:
        plan: what was planned.
        runs: the pair, or the one run.
        model: (queries,) the difference or mean as the grader has it.
        sizes: (queries,) how many passages can be drawn.
    """

    plan: AuditPlan
    runs: Runs
    model: FloatArray
    sizes: FloatArray

    @property
    def planned(self) -> int:
        """How many passages are checked at most."""
        return min(self.plan.passages, int(self.sizes.sum()))

    def settled(self, checked: Sequence[tuple[int, float]]) -> Settled:
        """Whether what was checked settles the difference.

        A query's difference is the grader's, plus the mean correction of its checked passages times the number of its
        passages. The mean over queries is prediction-powered. Its interval reaches c / √t standard errors: t is the
        share of the planned passages that are checked, c that of `flat_bound`, stretched as Student's t is with so few
        queries. As information grows no slower than the passages do, that errs to the safe side.

        Args:
            checked: (place of the query, correction) of each checked passage, in the order of draws; what comes after
                the planned ones does not count.

        Source: Angelopoulos, Duchi and Zrnic, PPI++ (2023), section 2 and 6; Jennison and Turnbull, Group Sequential
        Methods (2000), chapter 3; the bound see `flat_bound`.
        """
        checked = checked[: self.planned]
        places = np.array([place for place, _ in checked], dtype=np.int64)
        values = np.array([value for _, value in checked])
        counts = np.bincount(places, minlength=len(self.model))
        # Where nothing differs there is nothing to check: such a query is known.
        seen = (counts > 0) | (self.sizes == 0)
        grader = float(self.model.mean())
        if not checked or seen.sum() < FIRST_LOOK:
            return Settled(self.runs, len(checked), grader, None, None, None, "open", None)
        scaled = values * self.sizes[places]
        corrections = np.bincount(places, scaled, minlength=len(self.model)) / np.maximum(counts, 1)
        estimate, error = _powered(self.model, self.model + corrections, seen)
        left = 1 / np.maximum(counts, 1) - 1 / np.maximum(self.sizes, 1)
        audit = float(scaled.var() * left[seen].mean() / seen.sum())
        reach = self._reach(int(seen.sum())) * error / math.sqrt(len(checked) / self.planned)
        if len(self.runs) == 1:
            # A share; and nothing is to be settled.
            share, low, high = np.clip([estimate, estimate - reach, estimate + reach], 0.0, 1.0).tolist()
            return Settled(self.runs, len(checked), grader, share, low, high, "open", None)
        verdict = self._verdict(estimate, reach)
        more, needs = (0, "") if verdict != "open" else self._outlook(estimate, error, audit, len(checked))
        ends = estimate - reach, estimate + reach
        return Settled(self.runs, len(checked), grader, estimate, *ends, verdict, more, needs)

    def _reach(self, queries: int) -> float:
        """How many standard errors an interval reaches at the planned end; the pairs share what may go wrong."""
        from scipy.special import ndtr, stdtrit

        bound = flat_bound(1.0 - (1.0 - self.plan.level) / max(1, len(self.plan.pairs)))
        return float(stdtrit(queries - 1, ndtr(bound)))

    def _verdict(self, estimate: float, reach: float) -> str:
        if abs(estimate) > reach:
            return "better" if estimate > 0.0 else "worse"
        return "same" if self.plan.smallest is not None and abs(estimate) + reach < self.plan.smallest else "open"

    def _outlook(self, estimate: float, error: float, audit: float, checked: int) -> tuple[int | None, str]:
        """How many more passages settle it if the estimate stays, or what else could."""
        reach, rest = self._reach(len(self.model)), max(error**2 - audit, 0.0)
        for there in range(checked + 1, self.planned + 1):
            wide = math.sqrt((rest + audit * checked / there) * self.planned / there)
            if self._verdict(estimate, reach * wide) != "open":
                return there - checked, ""
        if 2 * checked < self.planned:
            return None, ""
        return None, "queries" if self._verdict(estimate, reach * math.sqrt(rest)) == "open" else "passages"


@dataclass(frozen=True)
class Audit:
    """What assessors are asked, and what they find.

    Attributes:
        plan: what was planned.
        labels: the grader's labels of the passages that are drawn from.
        drawn: the passages that are checked, in their order.
        weights: the pairs of the plan, or else every run, with their `share_weights`.
    """

    plan: AuditPlan
    labels: Labels
    drawn: Sequence[DrawnPassage]
    weights: Mapping[Runs, Mapping[str, Mapping[str, float]]]
    # Number of a pair -> what was checked at the last look at it, and the first look that settled it.
    _looks: dict[int, tuple[Sequence[tuple[int, float]], Settled | None]] = field(default_factory=dict, repr=False)

    @functools.cached_property
    def pairs(self) -> list[PairAudit]:
        """The audits of the pairs or runs, before anything is checked."""
        counts = Counter(query_id for query_id, _ in self.labels)
        shares = {place: sum(said.values()) / len(said) for place, said in self.labels.items()}
        found = []
        for runs, weights in self.weights.items():
            model = [
                math.fsum(weight * shares[query_id, doc_id] for doc_id, weight in docs.items())
                for query_id, docs in sorted(weights.items())
            ]
            sizes = np.array([float(counts[query_id]) for query_id in sorted(weights)])
            found.append(PairAudit(self.plan, runs, np.array(model), sizes))
        return found

    def checked(self, truth: Container[tuple[str, str, str]]) -> list[DrawnPassage]:
        """The passages that count: all before the first that is not wholly checked.

        Whoever skips the hard ones would else choose what counts.
        """
        return list(takewhile(lambda one: all((*one.place, item_id) in truth for item_id in one.items), self.drawn))

    def corrections(self, number: int, truth: Truth) -> list[tuple[int, float]]:
        """(place of the query, correction) of the checked passages for a pair, or for a run.

        A passage's correction is its weight times Σ N_h/n_h (truth − label) over its drawn items, by all its items: the
        Horvitz–Thompson estimate.
        """
        weights = self.weights[self.pairs[number].runs]
        at = {query_id: place for place, query_id in enumerate(sorted(weights))}
        found: list[tuple[int, float]] = []
        for one in self.checked(truth):
            said = self.labels[one.place]
            wrong = [stands * (truth[(*one.place, item)] - said[item]) for item, stands in one.items.items()]
            found.append((at[one.query_id], weights[one.query_id].get(one.doc_id, 0.0) * math.fsum(wrong) / len(said)))
        return found

    def settled(self, truth: Truth) -> list[Settled]:
        """What the checks say of each pair of the plan; what the first so many passages settled stays settled.

        Args:
            truth: (query_id, doc_id, item_id) -> whether the assessors' first, blind grade covers.
        """
        found = []
        for number, pair in enumerate(self.pairs[: len(self.plan.pairs)]):
            checked = self.corrections(number, truth)
            before, first = self._looks.get(number, ((), None))
            # How many corrections are the same as at the last look: up to there nothing is looked at again.
            same = len(list(takewhile(lambda two: two[0] == two[1], zip(before, checked, strict=False))))
            if first is None or first.checked > same:
                sizes = range(max(same + 1, FIRST_LOOK), len(checked) + 1)
                looks = (pair.settled(checked[:size]) for size in sizes)
                first = next((one for one in looks if one.verdict != "open"), None)
            self._looks[number] = checked, first
            found.append(first or pair.settled(checked))
        return found

    def board(self, truth: Truth) -> list[Settled]:
        """What the checks say of each pair, or where none is planned of each run, the best first; nothing too early."""
        found = self.settled(truth) or [
            run.settled(self.corrections(number, truth)) for number, run in enumerate(self.pairs)
        ]
        known = [one for one in found if one.estimate is not None]
        return known if self.plan.pairs else sorted(known, key=lambda one: -(one.estimate or 0.0))

    def share(self, holds: Truth) -> tuple[float, float] | None:
        """The share of all items of which something holds, and how many independent ones would say as much.

        A ratio over passages, whose items are not independent; each item counts for those that it stands for.

        Args:
            holds: (query_id, doc_id, item_id) -> whether it holds, of checked items.

        Returns:
            None before two passages are checked.

        Source: Särndal, Swensson and Wretman (1992), section 5.6 (ratios); Korn and Graubard, Confidence intervals for
        proportions with small expected number of positive counts estimated from survey data, Survey Methodology 1998
        (the effective size).
        """
        checked = self.checked(holds)
        if len(checked) < 2:
            return None
        sums = np.array([
            [sum(stands * holds[(*one.place, item)] for item, stands in one.items.items()), len(self.labels[one.place])]
            for one in checked
        ])  # fmt: skip
        hits, items = sums.sum(axis=0)
        share = float(hits / items)
        squares = float(((sums[:, 0] - share * sums[:, 1]) ** 2).sum())
        if squares < ROUNDING:
            return share, float(len(checked))
        variance = len(checked) / (len(checked) - 1) * squares / float(items) ** 2
        return share, max(1.0, share * (1 - share) / variance)

    @functools.cached_property
    def expected_reaches(self) -> list[float | None]:
        """Half the interval of each pair at the planned end, the mean of some simulated audits: what can be settled.

        None where there are too few queries for an interval.
        """
        found: list[float | None] = []
        for number, pair in enumerate(self.pairs[: len(self.plan.pairs)]):
            generator, ends = seeded(1), list[Settled]()
            for _ in range(_SIMULATED):
                truth = {
                    (*one.place, item_id): self.labels[one.place][item_id]
                    is bool(generator.random() < GUESSED_AGREEMENT)
                    for one in self.drawn
                    for item_id in one.items
                }
                ends.append(pair.settled(self.corrections(number, truth)))
            reaches = [(one.high - one.low) / 2 for one in ends if one.low is not None and one.high is not None]
            found.append(float(np.mean(reaches)) if len(reaches) == _SIMULATED else None)
        return found


def make_audit(plan: AuditPlan, labels: Labels, rankings: Rankings) -> Audit:
    """Draws an audit: of the passages in which the runs of a pair differ, or of all where there is no pair.

    Args:
        plan: what is planned.
        labels: the grader's labels.
        rankings: the runs; those of the pairs are used, or all where there are none.

    Raises:
        InputError: a run of a pair is not there, or no passage tells the runs of the pairs apart.
    """
    if plan.pairs and not rankings:
        raise InputError("the records hold no rankings, so there are no runs to settle", settings=("settle",))
    parts: Sequence[Runs] = plan.pairs or [(run_id,) for run_id in sorted(rankings)]
    weights = {runs: share_weights(rankings, runs, labels, plan.cutoff) for runs in parts}
    matter = {(query_id, doc_id) for one in weights.values() for query_id, docs in one.items() for doc_id in docs}
    frame = {place: said for place, said in labels.items() if said and (place in matter or not plan.pairs)}
    if plan.pairs and not frame:
        raise InputError("the runs show the same passages: there is no difference to settle")
    return Audit(plan, frame, draw_audit(frame, plan.seed, plan.items, plan.passages), weights)


# What stands once below what is settled: two runs may stand the other way round on a board.
OTHERWISE = "This mean share is not Rubric-Cover, which counts an item once: the order on a board may be another."


def sentence(one: Settled, minutes: float | None = None) -> str:
    """What an audit says of a pair, as a sentence.

    Args:
        one: what was found.
        minutes: how long a passage takes; None where nobody knows yet.

    >>> found = Settled(("a", "b"), 60, 0.1, 0.12, 0.05, 0.19, "better", 0)
    >>> sentence(found)
    'a beats b by .05 to .19 in the mean share of items that a passage covers: settled'
    """
    first, second = one.runs
    if one.estimate is None or one.low is None or one.high is None:
        return f"{first} against {second}: not yet known, {counted(one.checked, 'passage')} checked"
    # An end that is no 0 is not shown as one.
    digits = 2 if min(abs(one.low), abs(one.high)) >= 0.005 else 3
    low, high = (f"{abs(end):.{digits}f}".removeprefix("0") for end in (one.low, one.high))
    if one.verdict in ("better", "worse"):
        ahead, behind = (first, second) if one.verdict == "better" else (second, first)
        by = f"{ahead} beats {behind} by {min(low, high)} to {max(low, high)}"
        return f"{by} in {SETTLED_MEASURE}: settled"
    if one.verdict == "same":
        by = f"{first} and {second} differ by at most {max(low, high)}"
        return f"{by} in {SETTLED_MEASURE}: settled"
    if one.more is not None:
        work = counted(one.more, "passage") if minutes is None else counted(max(1, round(one.more * minutes)), "minute")
        return f"{work} more will probably settle {first} against {second}"
    signs = ["−" if end < 0 else "+" for end in (one.low, one.high)]
    between = (
        f"{first} against {second}: between {signs[0]}{low} and {signs[1]}{high} in {SETTLED_MEASURE}, not settled"
    )
    instead = {"queries": "; more checks will not settle it: ask more queries", "passages": "; plan a larger audit"}
    return between + instead.get(one.needs, "")
