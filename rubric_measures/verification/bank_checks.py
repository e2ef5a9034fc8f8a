"""Does the bank hold: items that say the same, or work against the rest; new queries and items."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rubric_measures.analysis.correlation import correlate
from rubric_measures.analysis.resampling import adjust, seeded
from rubric_measures.measures.loading import RecordQuery
from rubric_measures.verification.bank_stability import FloatArray, RunCoverage, mean_scores
from rubric_measures.verification.item_statistics import ItemStatistics

__all__ = [
    "Against",
    "BankStability",
    "RedundantPair",
    "bank_halves",
    "items_against",
    "redundant_pairs",
]

ALPHA = 0.05
# Two items cover the same passages from this κ on, over so many passages of which both cover so many.
REDUNDANT_KAPPA, _LEAST_PASSAGES, _LEAST_BOTH = 0.8, 5, 3


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
