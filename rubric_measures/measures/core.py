"""The normative core: every formula over the grades of one query, failed grades included. It needs numpy alone.

The grades of a query are a matrix: a row a passage, a column an item. A cell holds the grade, or -inf where there is
none; a second matrix says which grades failed. So a cell is graded, failed, or was never asked. Direct labels are a
matrix with one column. A `View` shows what some rankings of the query hold of it, all rankings at once.

Three functions compute everything: `items` (Rubric-Cover, nugget scores, weighted cover), `novelty` (α-nDCG and its
like, rubric items as subtopics) and `labels` (nDCG and its like, over one label a passage). Only `covered` knows what
failed grades mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
NONE = -np.inf


@dataclass(frozen=True, eq=False)
class View:
    """What R rankings of one query show, at most k graded passages of each and n items.

    Attributes:
        grades: R × k × n: the grade of each passage and item, best passage first; -inf where there is none. Rankings
            with fewer graded passages are filled up with passages that have no grade.
        failed: R × k × n: which grades failed; None where none of the query's did.
        ranks: R × k: the ranks of the passages, from 1; 0 where a ranking has no more.
        lengths: R: how many documents each ranking has.
        weights: n: the items' own weights; NaN where an item has none.
        vital: n: whether an item is vital.
        item_ids: the n items.
        query_id: the query.
        known: what several measures ask for, computed once.
    """

    grades: Array
    failed: Array | None
    ranks: Array
    lengths: Array
    weights: Array
    vital: Array
    item_ids: Sequence[str] = ()
    query_id: str = ""
    known: dict[Any, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def best(self) -> Array:
        """R × n: the best grade of each item; -inf where no passage has one."""
        found: Array = self.grades.max(axis=1, initial=NONE)
        return found

    def counts(self, level: float) -> Counts:
        """How many of the passages cover each item, and how many grades of it are valid or failed."""
        if level not in self.known:
            valid, none = (self.grades > NONE).sum(axis=1), np.zeros(self.best.shape, int)
            failed = none if self.failed is None else self.failed.sum(axis=1)
            self.known[level] = Counts((self.grades >= level).sum(axis=1), valid, failed)
        counts: Counts = self.known[level]
        return counts

    def covered(self, level: float, weights: Array | None = None) -> Array:
        """R × n: whether an item has a grade of `level` or better, 0 or 1; where only failed grades could tell, the
        probability of it. NaN where all grades that it needs failed.
        """
        expected: Array = (self.best >= level) + 0.0
        if self.failed is not None:
            found = covered(self, level, np.ones(self.grades.shape[2]) if weights is None else weights)
            expected[found.open] = found.expected
        return expected


class Counts(NamedTuple):
    """R × n each: the passages that cover an item; its valid grades; its failed ones."""

    times: Array
    valid: Array
    failed: Array


class Covered(NamedTuple):
    """Whether items are covered that no valid grade covers.

    Attributes:
        open: where only failed grades could tell: rankings, items.
        expected: of each of these (a row a weighting) the probability that one covers.
        spread: the standard deviation of that.
    """

    open: tuple[Array, Array]
    expected: Array
    spread: Array


def covered(view: View, level: float, weights: Array, others: Array | None = None) -> Covered:
    """What failed grades make of a level: leave-one-out expected coverage.

    For one ranking: a = Σ w_i over the items that exactly one passage covers; b = Σ w_i n_i over the items that none
    covers, n_i being their valid grades; p = a / (a + b): of the pairs (passage, item) that have a grade and whose item
    no other passage covers, the share that covers. An item that none covers, and of which m_i grades failed, is covered
    with probability π_i = 1 - (1 - p)^m_i. Where a + b = 0, p is the covering share of all valid grades (of the items
    in `others` where those in `weights` have none); without any valid grade it is not known: NaN.

    The deviation is √(π(1 - π)) with p smoothed by half an item of mean weight.

    Args:
        view: the rankings.
        level: the least grade that covers.
        weights: n, 0 or more; items of weight 0 are not asked about. Or m × n, for several weightings at once: then
            what is expected and its spread have a row each.
        others: n, see above.
    """
    times, valid, failed = view.counts(level)
    at, place = np.nonzero((times == 0) & (failed > 0) & (np.atleast_2d(weights).max(axis=0) > 0))
    once, misses = ((weights @ of.T)[..., at] for of in ((times == 1) + 0.0, np.where(times > 0, 0.0, valid)))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = once / (once + misses)
        for some in (weights, others) if np.isnan(share).any() else ():
            if some is not None:
                share = np.where(np.isnan(share), ((some @ times.T) / (some @ valid.T))[..., at], share)
        mean = weights.sum(axis=-1, keepdims=True) / np.count_nonzero(weights, axis=-1, keepdims=True)
        smoothed = (once + mean / 2) / (once + misses + mean)
    miss, smooth = ((1 - p) ** failed[at, place] for p in (share, smoothed))
    return Covered((at, place), 1 - miss, np.sqrt(smooth * (1 - smooth)))


class Scores(NamedTuple):
    """Values of R rankings; NaN is no value.

    Attributes:
        value: with failed grades as they are expected.
        certain: with failed grades as if they were not there.
        low: the least that it could be, whatever the failed grades were.
        high: the most that it could be.
        spread: how far failures at random move it (one standard error).
    """

    value: Array
    certain: Array
    low: Array
    high: Array
    spread: Array


class ItemRow(NamedTuple):
    """A measure of items: what an item weighs, and what the sum is divided by.

    An item weighs the same as `each` other, 1 where it is `vital` and 0 else, ½ in the place of this 0 (`half`), or its
    `own` weight, of which a negative one is a penalty. The sum is divided by the positive weight of all items of the
    `bank`, or by what all graded passages of the query `reach`.
    """

    weight: str
    over: str = "bank"


ITEM_MEASURES = {
    "RubricCover": ItemRow("each"),
    "nRubricCover": ItemRow("each", "reach"),
    "NuggetV": ItemRow("vital"),
    "NuggetW": ItemRow("half"),
    "NuggetA": ItemRow("each"),
    "WeightedCover": ItemRow("own"),
}


def contradicted(view: View) -> Array:
    """R: Σ of the weights of the items whose best grade is -2 / Σ of all weights, in [0, 1]; 0 where that is 0.

    An item without a weight weighs 1, a penalty nothing.

    Source: Zhang, Smucker and Clarke, TREC 2025 DRAGUN track, the contradictory score.
    """
    weights = np.where(np.isnan(view.weights), 1.0, np.maximum(view.weights, 0))
    return _over((view.best == -2) @ weights, weights.sum())


# What an item weighs that is not vital, where one that is weighs 1.
_NOT_VITAL = {"each": 1.0, "vital": 0.0, "half": 0.5}
# How penalties count in the order of `Scores`: they make the lowest value lower.
_PENALTY, _OTHER_END = np.array([-1, -1, -1, -1, 1])[:, None], [0, 1, 3, 2, 4]


def _of_level(view: View, level: float, weight: str) -> tuple[Array, Array]:
    """m × 5 × R, of m weightings: Σ over items of w_i c_i: expected, certain, lowest, highest; the spread. And the sums
    of the weights.

    At once of all weightings that importance makes, as they share most of the work; or of own weights and penalties.
    """
    if (level, weight == "own") not in view.known:
        own, by_importance = view.weights, np.array([*_NOT_VITAL.values()])[:, None]
        weights = np.maximum([own, -own], 0) if weight == "own" else np.where(view.vital, 1.0, by_importance)
        sums = np.zeros((len(weights), 5, len(view.grades)))
        sums[:, :4] = (weights @ (view.best >= level).T)[:, None]
        if view.failed is not None:
            (at, place), expected, spread = covered(view, level, weights, abs(own) if weight == "own" else None)
            # Of an item that weighs nothing it need not be known.
            for which, worth in enumerate(weights[:, place]):
                for row, more in ((0, worth * expected[which]), (3, worth), (4, worth * spread[which])):
                    sums[which, row] += np.bincount(at, np.where(worth > 0, more, 0.0), len(view.grades))
        view.known[level, weight == "own"] = sums, weights.sum(axis=1)
    found: tuple[Array, Array] = view.known[level, weight == "own"]
    return found


def _sums(view: View, levels: Mapping[int, float], weight: str) -> tuple[Array, float]:
    """5 × R: Σ over levels of the share × Σ over items of w_i c_i, as `_of_level`; the positive weight of all items."""
    found = [(share, *_of_level(view, level, weight)) for level, share in levels.items()]
    sums: Array = sum((share * of_level for share, of_level, _ in found), np.zeros(1))
    place = 0 if weight == "own" else [*_NOT_VITAL].index(weight)
    own = sums[place] + _PENALTY * sums[1, _OTHER_END] if weight == "own" else sums[place]
    return own, float(found[0][2][place])


def items(
    view: View, everything: Callable[[], View], row: ItemRow, levels: Mapping[int, float], clip: bool = False
) -> Scores:
    """Rubric-Cover, nugget scores and weighted cover: value = Σ_l share_l Σ_i w_i c_i(l) / denominator.

    Args:
        view: the top k of the rankings.
        everything: gives all graded passages of the query, as one ranking.
        row: the measure.
        levels: grade -> the share of the credit that it earns; together 1. Cover and strict scores have one level.
        clip: count values below 0 as 0.

    Returns:
        values in (-inf, 1], of measures without penalties in [0, 1]; 0 where the denominator is 0.
    """
    sums, size = _sums(view, levels, row.weight)
    if row.over == "reach":
        value, certain, low, high, spread = sums
        reach, known, least, most, wide = _sums(everything(), levels, row.weight)[0][:, 0]
        # What is open is expected from each ranking alone, so it may promise more than all passages do.
        value = np.minimum(_over(value, reach), 1)
        spread = np.hypot(_over(spread, reach), value * _over(wide, reach))
        high = np.minimum(high / max(least, 1), 1)
        sums = np.stack([value, _over(certain, known), _over(low, most), high, spread])
    else:
        sums = sums / size if size else np.zeros(sums.shape)
    if clip:
        sums[:4] = np.maximum(sums[:4], 0)
    return Scores(*sums)


def _over(sums: Array, size: Any) -> Array:
    """Sums over a size, and 0 where that is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        # What is not known, NaN, stays so where the size is not known either.
        return np.where(size == 0, np.where(np.isnan(sums), np.nan, 0.0), np.where(sums == 0, 0.0, sums / size))


DISCOUNTS: dict[str, Callable[[Array, float], Array]] = {
    "dcg": lambda ranks, beta: 1 / np.log2(ranks + 1),
    "err": lambda ranks, beta: 1 / ranks,
    "rbp": lambda ranks, beta: beta ** (ranks - 1),
}
# The discount of a rank, and the ranking whose gains are the divisor: every passage covers every item (`perfect`, or
# `endless`), or the greedy ideal one (`ideal`).
NOVELTY = {
    "alpha_DCG": ("dcg", "perfect"),
    "alpha_nDCG": ("dcg", "ideal"),
    "ERR_IA": ("err", "perfect"),
    "nERR_IA": ("err", "ideal"),
    "NRBP": ("rbp", "endless"),
    "nNRBP": ("rbp", "ideal"),
    "P_IA": ("", ""),
    "AP_IA": ("", ""),
    "StRecall": ("", ""),
}


def novelty(
    name: str, view: View, pool: Array, level: float, cutoff: int | None, alpha: float = 0.5, beta: float = 0.5
) -> Array:
    """Measures with rubric items as subtopics: the gain of a rank is Σ over the items that its passage covers of
    (1 - α)^(times that passages above cover them); gains are discounted by rank, summed and normalised.

    As NIST's ndeval defines them, without its limits. Items that no passage of the pool covers take no part.

    Args:
        name: one of `NOVELTY`.
        view: the top k of the rankings.
        pool: the graded passages × items, those with larger ids first (as in ndeval, ties go to them).
        level: the least grade that covers.
        cutoff: k; None for all.
        alpha: how much less an item counts each time, in [0, 1].
        beta: the persistence of NRBP.

    Returns:
        R values in [0, 1]; 0 where no passage of the pool covers an item.
    """
    pool, hits = pool >= level, view.grades >= level
    size = np.count_nonzero(pool.any(axis=0))
    if not size:
        return np.zeros(len(hits))
    # Where a ranking has no more, at rank 0, there is no gain.
    ranks = np.maximum(view.ranks, 1)
    found = hits.cumsum(axis=1)
    discount, by = NOVELTY[name]
    share: Array
    if name == "StRecall":
        share = hits.any(axis=1).sum(axis=1)
    elif name == "P_IA":
        share = hits.sum(axis=(1, 2)) / (cutoff or np.maximum(view.lengths, 1))
    elif name == "AP_IA":
        precisions = np.where(hits, found / ranks[:, :, None], 0).sum(axis=1)
        share = (precisions / np.maximum(pool.sum(axis=0), 1)).sum(axis=1)
    else:
        of_ranks = DISCOUNTS[discount]
        gains = np.where(hits, (1 - alpha) ** (found - hits), 0).sum(axis=2)
        total = (gains * of_ranks(ranks, beta)).sum(axis=1)
        share = (1 - (1 - alpha) * beta) * total
    if by in ("", "endless"):
        return share / size
    if by == "perfect":
        depths = np.full(len(hits), cutoff) if cutoff else view.lengths
        places = np.arange(1, max(depths, default=0) + 1)
        best = np.concatenate([[0], np.cumsum(size * (1 - alpha) ** (places - 1) * of_ranks(places, beta))])
        return _over(total, best[depths])
    ideal = greedy(pool, cutoff, alpha)[0]
    return _over(total, ideal @ of_ranks(np.arange(1, len(ideal) + 1), beta))


def greedy(pool: Array, cutoff: int | None, alpha: float) -> tuple[Array, list[int]]:
    """The gains of the ideal ranking, and its passages (rows of the pool), built greedily; the exact one is NP-hard.

    Each rank takes the passage with the greatest gain, of equal ones the first.
    """
    covers, size = pool + 0.0, min(len(pool), len(pool) if cutoff is None else cutoff)
    keep, gains, rows = np.ones(pool.shape[1]), np.zeros(size), list[int]()
    is_left: Array = np.asarray(pool.any(axis=1))
    while len(rows) < size and is_left.any():
        values = covers @ keep
        # Rounded, as sums in two orders may differ in the last digit.
        row = int(np.where(is_left, np.round(values, 12), -1).argmax())
        gains[len(rows)] = values[row]
        rows.append(row)
        is_left[row] = False
        keep[pool[row]] *= 1 - alpha
    return gains, rows


LABEL_MEASURES = ("nDCG", "ERR", "RBP", "AP", "RR", "P", "R", "Success")


def labels(
    name: str,
    view: View,
    pool: Array,
    cutoff: int | None = None,
    level: float | None = None,
    highest: float = 1,
    persistence: float = 0.8,
    exponential: bool = False,
) -> Array:
    """Measures over one label a passage, as trec_eval, gdeval and cwl_eval define them; labels below 0 count as 0.

    - nDCG: Σ gain / log2(rank + 1), over that of the labels in descending order; the gain is the label, or
      2^label - 1 (`exponential`).
    - ERR: Σ R / rank × Π (1 - R) above, R = (2^label - 1) / 2^highest.
    - RBP: (1 - p) Σ gain p^(rank - 1), the gain being label / highest, or 1 from the level on.
    - AP, RR, P, R, Success: labels of `level` or more are relevant; AP and R are divided by how many there are.

    Args:
        name: one of `LABEL_MEASURES`.
        view: the rankings, with one item.
        pool: the labels that values are normalised by: those of all graded passages.
        cutoff: only passages up to this rank count; needed by P, R and Success.
        level: the least relevant label.
        highest: the highest label of the scale.
        persistence: p.
        exponential: see above.

    Returns:
        R values in [0, 1]; where nothing is relevant 0.
    """
    inside = (view.ranks > 0) & (view.ranks <= (cutoff or np.inf))
    ranks, given = np.maximum(view.ranks, 1), np.where(inside, view.grades[:, :, 0], NONE)
    gains, best = np.maximum(given, 0), np.sort(pool[pool > 0])[::-1][:cutoff]
    if exponential or name == "ERR":
        gains, best = 2.0**gains - 1, 2.0**best - 1
    least = np.inf if level is None else level
    relevant = given >= least
    # What the value is divided by; where that is 0, any value is the best.
    value: Array = relevant.sum(axis=1)
    of: float = 1
    if name == "nDCG":
        value = (gains / np.log2(ranks + 1)).sum(axis=1)
        of = (best / np.log2(np.arange(2, len(best) + 2))).sum()
    elif name == "ERR":
        stops = gains / 2.0**highest
        goes_on = np.concatenate([np.ones((len(stops), 1)), np.cumprod(1 - stops, axis=1)[:, :-1]], axis=1)
        value = (goes_on * stops / ranks).sum(axis=1)
    elif name == "RBP":
        worth = gains / highest if level is None else relevant
        value = (1 - persistence) * (worth * persistence ** (ranks - 1.0)).sum(axis=1)
    elif name == "RR":
        value = (relevant / ranks).max(axis=1, initial=0)
    elif name == "P":
        of = cutoff or 1
    elif name == "Success":
        value = value > 0
    else:
        of = int(np.count_nonzero(pool >= least))
        if name == "AP":
            value = (relevant * relevant.cumsum(axis=1) / ranks).sum(axis=1)
    found: Array = value / of if of else (value > 0) + 0.0
    return found
