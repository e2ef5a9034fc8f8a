"""Does the bank hold: items that say the same, work against the rest or for a group of runs; new queries and items."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rubric_measures.base.errors import InputError
from rubric_measures.base.seeds import seeded
from rubric_measures.grades.loading import RecordQuery
from rubric_measures.meta_evaluation.correlation import correlate
from rubric_measures.meta_evaluation.run_comparison import adjust
from rubric_measures.verification.bank_stability import BoolArray, FloatArray, RunCoverage, mean_scores
from rubric_measures.verification.item_statistics import ItemStatistics

__all__ = [
    "Against",
    "BankStability",
    "GroupEffect",
    "RedundantPair",
    "Settled",
    "bank_halves",
    "group_effects",
    "items_against",
    "mantel_haenszel",
    "redundant_pairs",
    "settled_pairs",
]

ALPHA = 0.05
# Two items cover the same passages from this κ on, over so many passages of which both cover so many.
REDUNDANT_KAPPA, _LEAST_PASSAGES, _LEAST_BOTH = 0.8, 5, 3
# An effect of a group is large from 1.5 on the delta scale of the Educational Testing Service.
LARGE_EFFECT = 1.5
_LEAST_IN_STRATUM, _MOST_STRATA, _LEAST_IN_GROUP = 6, 5, 3


class RedundantPair(NamedTuple):
    """Two items of one query that the same passages cover.

    Attributes:
        query_id: the query.
        first: item id.
        second: item id.
        passages: passages that have a grade of both.
        both: of these, those that cover both.
        either: those that cover one at least.
        kappa: Cohen's κ of covering the one and the other.
    """

    query_id: str
    first: str
    second: str
    passages: int
    both: int
    either: int
    kappa: float


def redundant_pairs(query: RecordQuery, min_rating: int | None = None) -> list[RedundantPair]:
    """The pairs of items of a query whose covering agrees with κ of 0.8 or more, over five passages or more.

    κ, because two items that nearly everything covers are covered together by chance. Three passages cover both at
    least.
    """
    items = query.grades.items
    graded, covers = _passage_tables(query, min_rating)
    if len(items) < 2 or len(graded) < _LEAST_PASSAGES:
        return []
    both = covers.T @ covers
    seen = graded.T @ graded
    # Of what both are graded on: covered by the first alone, by the second alone, by none.
    alone = covers.T @ graded - both
    none = seen - both - alone - alone.T
    found = []
    for i in range(len(items)):
        for j in range(i + 1, len(items)):
            a, b, c, d, n = (int(x) for x in (both[i, j], alone[i, j], alone[j, i], none[i, j], seen[i, j]))
            chance = (a + b) * (b + d) + (a + c) * (c + d)
            if n < _LEAST_PASSAGES or a < _LEAST_BOTH or not chance:
                continue
            kappa = 2.0 * (a * d - b * c) / chance
            if kappa >= REDUNDANT_KAPPA - 1e-12:
                found.append(RedundantPair(query.query_id, items[i].item_id, items[j].item_id, n, a, a + b + c, kappa))
    return found


def _passage_tables(query: RecordQuery, min_rating: int | None) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """(passages, items): whether there is a grade; whether it covers."""
    size = len(query.grades.items)
    covering = query.grades.at_least(query.grades.level(min_rating))
    rows = [(sum(levels.values()), covering.get(doc_id, 0)) for doc_id, levels in query.grades.levels.items() if levels]
    tables = [[[mask >> bit & 1 for bit in range(size)] for mask in masks] for masks in zip(*rows, strict=True)]
    graded, covers = (np.array(table, dtype=np.int_).reshape(len(rows), size) for table in (tables or [[], []]))
    return graded, covers


class Against(NamedTuple):
    """An item that ranks runs against the rest of the bank.

    Attributes:
        row: its statistics; `by_run` is negative.
        p: one-sided, corrected for the number of items (Benjamini and Hochberg).
    """

    row: ItemStatistics
    p: float


def items_against(rows: Sequence[ItemStatistics], runs: int) -> list[Against]:
    """Items that the worse runs cover and the better ones do not, beyond chance.

    r of covering the item with the score over all other items is tested by t = r √((n − 2) / (1 − r²)), one-sided.

    Args:
        rows: the statistics of all items.
        runs: n, how many runs there are.
    """
    from scipy.special import stdtr

    if runs < 3:
        return []
    known = [(row, row.by_run.value) for row in rows if row.by_run.value is not None]
    raw = [float(stdtr(runs - 2, r * math.sqrt((runs - 2) / max(1.0 - r * r, 1e-12)))) for _, r in known]
    return [
        Against(row, p) for (row, _), p in zip(known, adjust(raw, "bh"), strict=True) if p is not None and p < ALPHA
    ]


class GroupEffect(NamedTuple):
    """An item that behaves differently for a group of runs, among runs that are equally good otherwise (DIF).

    Attributes:
        query_id: the query.
        item_id: the item.
        group: the group.
        odds: the common odds ratio of covering, group against all others (Mantel and Haenszel); above 1 favours it.
        effect: 2.35 ln odds, on the delta scale; infinite where no other run, or none of the group, covers it.
        p: corrected for the number of items and groups (Benjamini and Hochberg).
    """

    query_id: str
    item_id: str
    group: str
    odds: float
    effect: float
    p: float


def mantel_haenszel(hits: BoolArray, group: BoolArray, strata: NDArray[np.int_]) -> tuple[float, float] | None:
    """The common odds ratio of hits, members of a group against all others, within strata, and its p-value.

    χ² = (|Σ A − Σ E| − ½)² / Σ V with one degree of freedom, E = n₁ m₁ / n, V = n₁ n₀ m₁ m₀ / (n² (n − 1)) a stratum;
    the ratio is Σ A D / n over Σ B C / n. None where nothing varies within strata.

    Args:
        hits: (cases,) who covers the item.
        group: (cases,) who is of the group.
        strata: (cases,) which cases are compared.

    Source: Mantel and Haenszel (1959); Holland and Thayer (1988) for items of tests.
    """
    from scipy.special import chdtrc

    top = below = seen = expected = variance = 0.0
    for stratum in np.unique(strata):
        inside = strata == stratum
        n = int(inside.sum())
        a = int((hits & group & inside).sum())
        n1, m1 = int((group & inside).sum()), int((hits & inside).sum())
        if n < 2:
            continue
        b, c = n1 - a, m1 - a
        d = n - n1 - c
        top, below = top + a * d / n, below + b * c / n
        seen, expected = seen + a, expected + n1 * m1 / n
        variance += n1 * (n - n1) * m1 * (n - m1) / (n * n * (n - 1))
    if variance <= 0:
        return None
    chi = max(abs(seen - expected) - 0.5, 0.0) ** 2 / variance
    return (top / below if below else math.inf), float(chdtrc(1, chi))


def group_effects(coverage: RunCoverage, groups: Mapping[str, str]) -> list[GroupEffect]:
    """Items on which a group of runs does better or worse than runs that are as good on all other items.

    Runs are cut by their score over all other items into up to five strata of six or more. Groups of fewer than three
    runs, or with fewer than three others, are left out. Only effects that are large (1.5 on the delta scale) and beyond
    chance are listed, the surest first.

    Args:
        coverage: which items each run covers.
        groups: run -> group; runs that it lacks are of no group.

    Raises:
        InputError: there are fewer than 12 runs, or no group is large enough.
    """
    runs = coverage.runs
    sizes = {group: sum(groups.get(run) == group for run in runs) for group in sorted(set(groups.values()))}
    large = [group for group, size in sizes.items() if _LEAST_IN_GROUP <= size <= len(runs) - _LEAST_IN_GROUP]
    if len(runs) < 2 * _LEAST_IN_STRATUM or not large:
        raise InputError(
            f"effects of groups need {2 * _LEAST_IN_STRATUM} runs and a group of {_LEAST_IN_GROUP} of them, with as "
            f"many others; there are {len(runs)} runs, in groups of {', '.join(map(str, sizes.values())) or '0'}"
        )
    members = {group: np.array([groups.get(run) == group for run in runs]) for group in large}
    table = coverage.table()
    tested: list[tuple[str, str, str, float, float]] = []
    for place, (query_id, item_ids) in enumerate(coverage.items.items()):
        known = coverage.known(query_id)
        for column, item_id in enumerate(item_ids):
            kept = np.arange(len(item_ids)) != column
            changed = table.copy()
            changed[place] = coverage.query_scores(query_id, kept)
            rest = mean_scores(changed)
            usable = ~np.isnan(rest) & known[:, column]
            strata = _strata(rest[usable])
            hits = coverage.covered[query_id][usable, column]
            for group, of_group in members.items():
                found = mantel_haenszel(hits, of_group[usable], strata)
                if found is not None:
                    tested.append((query_id, item_id, group, *found))
    p_values = adjust([one[4] for one in tested], "bh")
    effects = [
        GroupEffect(*one[:4], _delta(one[3]), p)
        for one, p in zip(tested, p_values, strict=True)
        if p is not None and p < ALPHA
    ]
    return sorted((one for one in effects if abs(one.effect) >= LARGE_EFFECT), key=lambda one: (one.p, one.item_id))


def _delta(odds: float) -> float:
    return 2.35 * math.log(odds) if 0 < odds < math.inf else math.copysign(math.inf, odds - 1.0)


def _strata(scores: FloatArray) -> NDArray[np.int_]:
    """Numbers of strata of about one size; runs of one score are in one stratum."""
    count = max(1, min(_MOST_STRATA, len(scores) // _LEAST_IN_STRATUM))
    if not len(scores):
        return np.empty(0, dtype=np.int_)
    cuts = np.quantile(scores, np.arange(1, count) / count)
    return np.searchsorted(cuts, scores, side="right")


@dataclass(frozen=True, slots=True)
class BankStability:
    """How far the leaderboard hangs on which items and queries there are.

    Attributes:
        rounds: how many halves, and how many banks, were drawn.
        half_tau: the mean τ between the leaderboards of two halves of every query's items; None where undefined.
        reliability: of the full bank: Pearson's r of the halves' scores, stepped up by Spearman and Brown; None
            likewise.
        tau: the mean τ between the leaderboard and one of as many queries and items, drawn with replacement.
        tau_low: the least of the middle 95 % of these.
        first: the share of these in which the best run stays best.
    """

    rounds: int
    half_tau: float | None
    reliability: float | None
    tau: float | None
    tau_low: float | None
    first: float | None


def bank_halves(coverage: RunCoverage, rounds: int = 200, seed: int = 0) -> BankStability:
    """Half banks against each other, and the leaderboard against those of new queries × new items.

    In each round the items of every query are cut in two random halves (a query of one item is in one of them). For the
    other figures queries are drawn with replacement, and of each drawn query its items.

    Args:
        coverage: which items each run covers.
        rounds: at least 1.
        seed: of the draws.

    Source: Spearman (1910) and Brown (1910); the bootstrap over both as in Owen and Eckles, Bootstrapping data arrays
    of arbitrary order (2012), items nested in queries.
    """
    generator = seeded(seed)
    full = mean_scores(coverage.table())
    names = list(coverage.items)
    sizes = {name: len(coverage.items[name]) for name in names}
    halves: list[float] = []
    alike: list[float] = []
    taus: list[float] = []
    stays: list[float] = []
    for _ in range(rounds):
        sides: list[list[FloatArray]] = [[], []]
        for name in names:
            order = generator.permutation(sizes[name])
            middle = (sizes[name] + int(generator.integers(2))) // 2
            for side, part in zip(sides, (order[:middle], order[middle:]), strict=True):
                side.append(coverage.query_scores(name, part))
        first, second = (mean_scores(np.array(side)) for side in sides)
        _append(halves, first, second, "kendall")
        _append(alike, first, second, "pearson")
        drawn = [
            coverage.query_scores(name, generator.integers(sizes[name], size=sizes[name]))
            for name in (names[place] for place in generator.integers(len(names), size=len(names)))
        ]
        again = mean_scores(np.array(drawn))
        _append(taus, full, again, "kendall")
        if not np.isnan(again).all():
            stays.append(float(np.nanargmax(full) in np.flatnonzero(again == np.nanmax(again))))
    r = float(np.mean(alike)) if alike else None
    return BankStability(
        rounds,
        float(np.mean(halves)) if halves else None,
        None if r is None or r <= -1 else 2.0 * r / (1.0 + r),
        float(np.mean(taus)) if taus else None,
        float(np.quantile(taus, 0.025)) if taus else None,
        float(np.mean(stays)) if stays and len(full) > 1 else None,
    )


def _append(values: list[float], x: FloatArray, y: FloatArray, name: str) -> None:
    """Adds the correlation of two columns of scores, where it is defined."""
    both = ~np.isnan(x) & ~np.isnan(y)
    value = correlate(x[both], y[both], name, test=False).value
    if value is not None:
        values.append(value)


class Settled(NamedTuple):
    """How many pairs of runs a bank of some size settles; one row a size.

    Attributes:
        items: the items a query, on average.
        factor: how many times the bank at hand that is.
        share: the share of pairs whose order more items of the same kind would hardly change: the difference is 1.96
            standard errors or more, the queries as they are.
    """

    items: float
    factor: float
    share: float


def settled_pairs(coverage: RunCoverage, factors: Sequence[float] = (0.5, 1, 2, 4, 8)) -> list[Settled]:
    """Saturation: the pairs of runs whose order hangs no more on which items were written.

    Items of a query are taken for a sample of those that could be asked. With s²_q the variance over the n_q items of a
    query of (one run covers it) − (the other does), the squared standard error of a difference is Σ s²_q / n_q / Q²; a
    bank f times as large has that over f. Queries of one item take the mean variance of the others. What failed covers
    nothing here.

    Args:
        coverage: which items each run covers.
        factors: the sizes, as multiples of the bank.

    Returns:
        none where there are fewer than two runs, or no query has two items.
    """
    runs = len(coverage.runs)
    several = [name for name, items in coverage.items.items() if len(items) > 1]
    if runs < 2 or not several:
        return []
    first, second = np.triu_indices(runs, 1)
    gaps = np.zeros(len(first))
    variances: dict[str, FloatArray] = {}
    for name in coverage.items:
        covered = coverage.covered[name].astype(np.float64)
        difference = covered[first] - covered[second]
        gaps += difference.mean(axis=1) / len(coverage.items)
        if name in several:
            variances[name] = difference.var(axis=1, ddof=1)
    usual: FloatArray = np.stack([*variances.values()]).mean(axis=0)
    parts = [variances.get(name, usual) / len(items) for name, items in coverage.items.items()]
    errors = np.sqrt(np.stack(parts).sum(axis=0)) / len(coverage.items)
    size = float(np.mean([len(items) for items in coverage.items.values()]))
    found = []
    for factor in factors:
        settled = (np.abs(gaps) >= 1.96 * errors / math.sqrt(factor)) & (np.abs(gaps) > 1e-12)
        found.append(Settled(size * factor, factor, float(settled.mean())))
    return found
