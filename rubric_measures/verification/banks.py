"""What grades say of items: coverage, discrimination, and how the leaderboard hangs on each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rubric_measures.analysis.correlation import correlate
from rubric_measures.analysis.resampling import FloatArray, weighted_means
from rubric_measures.base.tables import Undefined
from rubric_measures.measures.core import covered
from rubric_measures.measures.loading import RecordQuery
from rubric_measures.measures.scoring import HEAD, RankedRows, Shown

BoolArray = NDArray[np.bool_]


class _Covering(NamedTuple):
    """What each run covers with its first 20 passages of a query.

    Attributes:
        covered: (runs, items): the run covers the item.
        known: (runs, items): False where it does not, and a grade of it failed.
        scores: Rubric-Cover of every run; NaN where nothing is known.
        without: (items, runs): the same over all other items.
    """

    covered: BoolArray
    known: BoolArray
    scores: FloatArray
    without: FloatArray


def _covering(query: RecordQuery, runs: Sequence[str]) -> _Covering:
    """A run that does not rank the query covers none of its items; failed grades count as `core.covered` expects."""
    grades, level, size = query.grades, query.grades.level(), len(query.grades.items)
    ranked = [query.rankings.get(run_id, ()) for run_id in runs]
    rows = [RankedRows([grades.docs.get(one, -1) for one in top], len(top)) for top in ranked]
    view = Shown.of(grades, rows).view(HEAD)
    hits = view.best >= level
    weights = np.vstack([np.ones(size), 1 - np.eye(size)])
    found = covered(view, level, weights)
    known = np.ones_like(hits)
    known[found.open] = False
    means = []
    for weight, expected in zip(weights, found.expected, strict=True):
        covers = hits + 0.0
        covers[found.open] = expected
        kept = covers[:, weight > 0]
        means.append(kept.sum(axis=1) / kept.shape[1] if kept.size else np.full(len(runs), np.nan))
    return _Covering(hits, known, means[0], np.array(means[1:]))


def _means(table: FloatArray) -> FloatArray:
    """The mean of every column over its defined scores; NaN where a run has none. Equal means stay equal."""
    means: FloatArray = weighted_means(np.ones((1, len(table))), table)[0]
    return means


_UNRANKED, _FEW = Undefined("no run ranks the query"), Undefined("fewer than two runs")


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
        runs: how many runs rank a query that has items.
        queries: the queries that they are about, in their order.
        without_items: those of them that have no items, and so no statistics.
        level: the least grade that covers an item; None where nothing is graded.
    """

    statistics: Sequence[ItemStatistics]
    runs: int
    queries: Sequence[str]
    without_items: Sequence[str] = ()
    level: int | None = None


def item_report(queries: Sequence[RecordQuery], min_judgment: int = 1) -> ItemReport:
    """Item statistics of queries.

    Args:
        queries: the selected grades.
        min_judgment: the least judgment that is relevant.
    """
    ranked = {query.query_id: query for query in queries if query.rankings and query.grades.items}
    runs = sorted({run_id for query in ranked.values() for run_id in query.rankings})
    found = {query_id: _covering(query, runs) for query_id, query in ranked.items()}
    table = np.array([one.scores for one in found.values()]).reshape(len(found), len(runs))
    full, rows = _means(table), []
    for query in queries:
        for column, row in enumerate(_item_statistics_counts(query, min_judgment)):
            if query.query_id in found:
                place = [*found].index(query.query_id)
                r, flips = _influence(found[query.query_id], column, table, place, full)
                row = row._replace(r_leaderboard=r, flips=flips)
            rows.append(row)
    graded = [query for query in queries if query.grades.docs]
    return ItemReport(
        rows,
        len(runs),
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
            _UNRANKED, "not graded" if not graded else {0: "never", graded: "always"}.get(covering), _FEW,
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


def _influence(
    found: _Covering, column: int, table: FloatArray, place: int, full: FloatArray
) -> tuple[float | Undefined, int | Undefined]:
    """Discrimination of one item against the leaderboard without it, and the pairs of runs that it flips.

    Args:
        found: what the runs cover of the item's query.
        column: the item's place there.
        table: (queries, runs): Rubric-Cover over the full bank.
        place: the query's row.
        full: the means of its columns.
    """
    changed = table.copy()
    changed[place] = found.without[column]
    scores = _means(changed)
    both = ~np.isnan(full) & ~np.isnan(scores)
    usable = ~np.isnan(scores) & found.known[:, column]
    hits = found.covered[usable, column].tolist()
    flips = _flips(full[both], scores[both]) if both.sum() > 1 else _FEW
    return point_biserial(hits, scores[usable], "runs"), flips


def _flips(before: FloatArray, after: FloatArray) -> int:
    """Pairs that are in the opposite order after; a tie on a side is no flip."""
    first, second = np.triu_indices(len(before), 1)
    return int(((before[first] - before[second]) * (after[first] - after[second]) < 0).sum())
