"""What grades say of items: coverage, discrimination, and how the leaderboard hangs on each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rubric_measures.analysis.correlation import correlate
from rubric_measures.analysis.resampling import FloatArray, weighted_means
from rubric_measures.base.tables import Undefined
from rubric_measures.measures.loading import RecordQuery

BoolArray = NDArray[np.bool_]
CountArray = NDArray[np.int32]


@dataclass(frozen=True)
class RunCoverage:
    """Which items each run covers among its first passages: enough to score any part of the bank.

    Attributes:
        runs: the runs, sorted.
        items: query_id -> item ids, sorted; queries that no run ranks, or without items, are left out.
        covered: query_id -> (runs, items): the run covers the item.
        counts: query_id -> (3, runs, items): how many of a run's first passages cover the item, how many have a valid
            grade of it, and of how many it failed; only of queries where a grade of such a passage failed.
    """

    runs: tuple[str, ...]
    items: dict[str, tuple[str, ...]]
    covered: dict[str, BoolArray]
    counts: dict[str, CountArray]

    def known(self, query_id: str) -> BoolArray:
        """(runs, items): False where a run does not cover the item, and a grade of it failed."""
        covered = self.covered[query_id]
        return covered | (self.counts[query_id][2] == 0) if query_id in self.counts else np.ones_like(covered)

    def query_scores(self, query_id: str, kept: BoolArray | NDArray[np.int_] | None = None) -> FloatArray:
        """Rubric-Cover of every run for one query over the kept items; NaN where no item is kept, or nothing is known.

        Places of items may repeat, as in a bootstrap.

        Failed grades count as they are expected (README says the formula), read off the kept items alone.
        """
        covered = self.covered[query_id]
        covered = covered if kept is None else covered[:, kept]
        size = covered.shape[1]
        if not size:
            return np.full(len(self.runs), np.nan)
        earned = covered.sum(axis=1)
        if query_id not in self.counts:
            return np.asarray(earned / size)
        counts = self.counts[query_id]
        covering, valid, failed = counts if kept is None else counts[:, :, kept]
        once, misses = (covering == 1).sum(axis=1), np.where(covered, 0, valid).sum(axis=1)
        is_left = once + misses > 0
        covers = np.where(is_left, once, covering.sum(axis=1))
        asked = np.where(is_left, once + misses, valid.sum(axis=1))
        share = np.where(asked > 0, covers / np.maximum(asked, 1), np.nan)[:, None]
        gain = np.where(covered | (failed == 0), 0.0, 1 - (1 - share) ** failed)
        return np.asarray((earned + gain.sum(axis=1)) / size)

    def table(self) -> FloatArray:
        """(queries, runs): Rubric-Cover over the full bank."""
        return np.array([self.query_scores(query_id) for query_id in self.items]).reshape(
            len(self.items), len(self.runs)
        )


def mean_scores(table: FloatArray) -> FloatArray:
    """The mean of every column over its defined scores; NaN where a run has none. Equal means stay equal."""
    means: FloatArray = weighted_means(np.ones((1, len(table))), table)[0]
    return means


def run_coverage(queries: Iterable[RecordQuery], cutoff: int = 20) -> RunCoverage:
    """What each run covers with its first passages, as Rubric-Cover counts it.

    A run that does not rank a query covers none of its items.

    Args:
        queries: the selected grades.
        cutoff: how many passages of a ranking count.
    """
    ranked = sorted((one for one in queries if one.rankings and one.grades.items), key=lambda one: one.query_id)
    runs = tuple(sorted({run_id for query in ranked for run_id in query.rankings}))
    found = RunCoverage(runs, {}, {}, {})
    for query in ranked:
        grades = query.grades
        order = sorted(range(len(grades.items)), key=lambda place: grades.items[place].item_id)
        covers = grades.grades >= grades.level()
        failed = np.zeros_like(covers) if grades.failed is None else grades.failed
        states = np.stack([covers, grades.valid, failed])[:, :, order]
        counts = np.zeros((3, len(runs), len(order)), dtype=np.int32)
        for place, run_id in enumerate(runs):
            top = query.rankings.get(run_id, ())[:cutoff]
            counts[:, place] = states[:, [grades.docs[one] for one in top if one in grades.docs]].sum(axis=1)
        found.items[query.query_id] = tuple(grades.items[place].item_id for place in order)
        found.covered[query.query_id] = counts[0] > 0
        if counts[2].any():
            found.counts[query.query_id] = counts
    return found


_UNRANKED = Undefined("no run ranks the query")


class ItemStatistics(NamedTuple):
    """How one item behaves; one row an item of the bank.

    Attributes:
        query_id: the query.
        item_id: the item.
        item: the question or nugget; empty where no bank was given.
        graded: passages with a grade of the item.
        failed: passages where grading the item failed.
        covering: graded passages that cover it.
        relevant: graded passages that assessors judged relevant.
        relevant_covering: of these, those that cover it.
        other: graded passages that assessors judged not relevant.
        other_covering: of these, those that cover it.
        r_judgment: correlation of covering the item with the judgment, over judged and graded passages.
        r_leaderboard: correlation of a run covering the item with the run's score over all other items.
        covered: `never` or `always` covered, `not graded`, or None.
        flips: pairs of runs that change order when the item is left out.
    """

    query_id: str
    item_id: str
    item: str
    graded: int
    failed: int
    covering: int
    relevant: int
    relevant_covering: int
    other: int
    other_covering: int
    r_judgment: float | Undefined
    r_leaderboard: float | Undefined
    covered: str | None
    flips: int | Undefined

    @property
    def by_relevant(self) -> float | Undefined:
        """Coverage by relevant passages, 0 to 1."""
        return self.relevant_covering / self.relevant if self.relevant else Undefined("no relevant passage")

    @property
    def by_not_relevant(self) -> float | Undefined:
        """Coverage by passages judged not relevant, 0 to 1."""
        return self.other_covering / self.other if self.other else Undefined("no passage judged not relevant")


@dataclass(frozen=True)
class ItemReport:
    """All that is said about items.

    Attributes:
        statistics: one row an item, in bank order.
        coverage: what the runs cover.
        queries: the queries that they are about, in their order.
        without_items: those of them that have no items, and so no statistics.
        level: the least grade that covers an item; None where nothing is graded.
    """

    statistics: Sequence[ItemStatistics]
    coverage: RunCoverage
    queries: Sequence[str]
    without_items: Sequence[str] = ()
    level: int | None = None


def item_report(queries: Sequence[RecordQuery], min_judgment: int = 1) -> ItemReport:
    """Item statistics of queries.

    Args:
        queries: the selected grades.
        min_judgment: the least judgment that is relevant.
    """
    rows = [row for query in queries for row in _item_statistics_counts(query, min_judgment)]
    graded = [query for query in queries if query.grades.docs]
    coverage = run_coverage(queries)
    table = coverage.table()
    full = mean_scores(table)
    influences = [influence_of(row.query_id, row.item_id, coverage, table, full) for row in rows]
    return ItemReport(
        [row._replace(r_leaderboard=r, flips=flips) for row, (r, flips) in zip(rows, influences, strict=True)],
        coverage,
        [one.query_id for one in queries],
        [one.query_id for one in queries if not one.grades.items],
        graded[-1].grades.level() if graded else None,
    )


def _item_statistics_counts(query: RecordQuery, min_judgment: int) -> Iterator[ItemStatistics]:
    """The rows of one query, without `r_leaderboard` and `flips`, which need the whole leaderboard."""
    grades = query.grades
    hits, valid = grades.grades >= grades.level(), grades.valid
    failed = np.zeros_like(valid) if grades.failed is None else grades.failed
    judged = [doc_id for doc_id in sorted(grades.docs) if doc_id in query.judgments]
    rows = np.array([grades.docs[doc_id] for doc_id in judged], dtype=np.intp)
    judgments = np.array([query.judgments[doc_id] for doc_id in judged], dtype=np.float64)
    for place, item in enumerate(grades.items):
        known = valid[rows, place]
        hit, judgment = hits[rows[known], place], judgments[known]
        relevant = judgment >= min_judgment
        graded, covering = int(valid[:, place].sum()), int(hits[:, place].sum())
        yield ItemStatistics(
            query.query_id, item.item_id, item.text, graded, int(failed[:, place].sum()), covering,
            int(relevant.sum()), int(hit[relevant].sum()), int((~relevant).sum()), int(hit[~relevant].sum()),
            point_biserial(hit.tolist(), judgment, "judged passages"),
            _UNRANKED, "not graded" if not graded else {0: "never", graded: "always"}.get(covering), _UNRANKED,
        )  # fmt: skip


def point_biserial(hits: Sequence[bool], values: Sequence[float] | FloatArray, what: str) -> float | Undefined:
    """Pearson's r of a yes/no variable with a number: positive where those who hit have the higher values.

    Undefined, with the reason, for fewer than two cases, and where a side does not vary.

    Args:
        hits: who covers the item.
        values: judgments or scores, same order.
        what: what the cases are, for the reason.

    >>> point_biserial([True, True, False], [3, 1, 0], "passages").__round__(4)
    0.7559
    """
    if len(hits) < 2:
        return Undefined(f"{len(hits)} {what}")
    if all(hits) or not any(hits):
        return Undefined(f"{'all' if hits[0] else 'no'} {what} cover it")
    value = correlate([float(hit) for hit in hits], [float(value) for value in values], "pearson", test=False).value
    return Undefined(f"all {what} have the same value") if value is None else value


def influence_of(
    query_id: str, item_id: str, coverage: RunCoverage, table: FloatArray, full: FloatArray
) -> tuple[float | Undefined, int | Undefined]:
    """Discrimination of one item against the leaderboard without it, and the pairs of runs that it flips.

    Args:
        query_id: the query.
        item_id: the item.
        coverage: what the runs cover.
        table: `coverage.table()`.
        full: its `mean_scores`.
    """
    if item_id not in coverage.items.get(query_id, ()):
        return _UNRANKED, Undefined("fewer than two runs")
    column = coverage.items[query_id].index(item_id)
    kept = np.arange(len(coverage.items[query_id])) != column
    changed = table.copy()
    changed[list(coverage.items).index(query_id)] = coverage.query_scores(query_id, kept)
    scores = mean_scores(changed)
    both = ~np.isnan(full) & ~np.isnan(scores)
    usable = ~np.isnan(scores) & coverage.known(query_id)[:, column]
    hits = coverage.covered[query_id][usable, column].tolist()
    flips = _flips(full[both], scores[both]) if both.sum() > 1 else Undefined("fewer than two runs")
    return point_biserial(hits, scores[usable], "runs"), flips


def _flips(before: FloatArray, after: FloatArray) -> int:
    """Pairs that are in the opposite order after; a tie on a side is no flip."""
    first, second = np.triu_indices(len(before), 1)
    return int(((before[first] - before[second]) * (after[first] - after[second]) < 0).sum())
