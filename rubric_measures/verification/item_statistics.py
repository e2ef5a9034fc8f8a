"""What the grades say about the items: coverage, discrimination, duplicates, and how the leaderboard hangs on each."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rubric_measures.analysis.correlation import correlate
from rubric_measures.measures.loading import RecordQuery
from rubric_measures.types.entities import RubricItem
from rubric_measures.verification.bank_stability import (
    FloatArray,
    RunCoverage,
    joined_coverage,
    mean_scores,
    query_coverage,
)

__all__ = [
    "Discrimination",
    "DuplicateItems",
    "ItemReport",
    "ItemStatistics",
    "duplicate_items",
    "influence_of",
    "item_report",
]


class Discrimination(NamedTuple):
    """A point-biserial correlation, or why there is none.

    Attributes:
        value: in [−1, 1]; None where it is undefined.
        reason: why value is None; empty otherwise.
    """

    value: float | None
    reason: str = ""


class ItemStatistics(NamedTuple):
    """How one item behaves; one row an item of the bank.

    Attributes:
        query_id: the query.
        item_id: the item.
        item_text: the question or nugget; empty where no bank was given.
        graded: passages with a grade of the item.
        failed: passages where grading the item failed.
        covering: graded passages that cover it.
        relevant: graded passages that assessors judged relevant.
        relevant_covering: of these, those that cover it.
        other: graded passages that assessors judged not relevant.
        other_covering: of these, those that cover it.
        by_judgment: correlation of covering the item with the judgment, over judged and graded passages.
        by_run: correlation of a run covering the item with the run's score over all other items.
        always: `never` or `always` covered, `not graded`, or empty.
        flips: pairs of runs that change order when the item is left out; None where there is no leaderboard.
    """

    query_id: str
    item_id: str
    item_text: str
    graded: int
    failed: int
    covering: int
    relevant: int
    relevant_covering: int
    other: int
    other_covering: int
    by_judgment: Discrimination
    by_run: Discrimination
    always: str
    flips: int | None

    @property
    def relevant_share(self) -> float | None:
        """Coverage by relevant passages, 0 to 1; None where no relevant passage is graded."""
        return self.relevant_covering / self.relevant if self.relevant else None

    @property
    def other_share(self) -> float | None:
        """Coverage by passages judged not relevant, 0 to 1; None where none is graded."""
        return self.other_covering / self.other if self.other else None


class DuplicateItems(NamedTuple):
    """Two items of one query that say nearly the same.

    Attributes:
        query_id: the query.
        first: the item that comes first in the bank.
        second: the other one.
        overlap: Jaccard overlap of their tokens, 0 to 1.
        same_text: their normalised texts are equal.
    """

    query_id: str
    first: RubricItem
    second: RubricItem
    overlap: float
    same_text: bool


@dataclass(frozen=True)
class ItemReport:
    """All that is said about items.

    Attributes:
        statistics: one row an item, in bank order.
        duplicates: pairs of items that say nearly the same.
        coverage: what the runs cover.
        queries: the queries that they are about, in their order.
        without_items: those of them that have no items, and so no statistics.
        min_rating: the least grade that covers an item; None where nothing is graded.
    """

    statistics: Sequence[ItemStatistics]
    duplicates: Sequence[DuplicateItems]
    coverage: RunCoverage
    queries: Sequence[str]
    without_items: Sequence[str] = ()
    min_rating: int | None = None


def item_report(queries: Sequence[RecordQuery], min_judgment: int = 1, min_rating: int | None = None) -> ItemReport:
    """Item statistics and near-duplicates of queries.

    Args:
        queries: the selected grades.
        min_judgment: the least judgment that is relevant.
        min_rating: the least grade that covers an item; None takes the scale's.
    """
    rows = [row for query in queries for row in _counts(query, min_judgment, min_rating)]
    covered = [query_coverage(query, min_rating) for query in queries]
    graded = [query for query in queries if query.grades.levels]
    coverage = joined_coverage(covered)
    table = coverage.table()
    full = mean_scores(table)
    influences = [influence_of(row.query_id, row.item_id, coverage, table, full) for row in rows]
    return ItemReport(
        [row._replace(by_run=r, flips=flips) for row, (r, flips) in zip(rows, influences, strict=True)],
        duplicate_items([query.grades.items for query in queries]),
        coverage,
        [one.query_id for one in covered],
        [one.query_id for one in covered if not one.item_ids],
        graded[-1].grades.level(min_rating) if graded else min_rating,
    )


def _counts(query: RecordQuery, min_judgment: int, min_rating: int | None) -> Iterator[ItemStatistics]:
    """The rows of one query, without `by_run` and `flips`, which need the whole leaderboard."""
    level = query.grades.level(min_rating)
    grades = _grades(query)
    for bit, item in enumerate(query.grades.items):
        failed = sum(mask >> bit & 1 for mask in query.grades.failed.values())
        covers = {doc_id: grade >= level for doc_id, grade in grades[item.item_id].items()}
        judged = [(query.judgments[doc_id], hit) for doc_id, hit in sorted(covers.items()) if doc_id in query.judgments]
        relevant = [hit for judgment, hit in judged if judgment >= min_judgment]
        other = [hit for judgment, hit in judged if judgment < min_judgment]
        covering = sum(covers.values())
        always = "not graded" if not covers else {0: "never", len(covers): "always"}.get(covering, "")
        hits, judgments = [hit for _, hit in judged], [judgment for judgment, _ in judged]
        yield ItemStatistics(
            query.query_id, item.item_id, item.text, len(covers), failed, covering, len(relevant), sum(relevant),
            len(other), sum(other), point_biserial(hits, judgments, "judged passages"),
            Discrimination(None, "no run ranks the query"), always, None,
        )  # fmt: skip


def _grades(query: RecordQuery) -> dict[str, dict[str, float]]:
    """item_id -> doc_id -> grade."""
    grades: dict[str, dict[str, float]] = {item.item_id: {} for item in query.grades.items}
    for doc_id, levels in query.grades.levels.items():
        for grade, mask in levels.items():
            for bit, item in enumerate(query.grades.items):
                if mask >> bit & 1:
                    grades[item.item_id][doc_id] = grade
    return grades


def point_biserial(hits: Sequence[bool], values: Sequence[float] | FloatArray, what: str) -> Discrimination:
    """Pearson's r of a yes/no variable with a number: positive where those who hit have the higher values.

    Undefined, with the reason, for fewer than two cases, and where a side does not vary.

    Args:
        hits: who covers the item.
        values: judgments or scores, same order.
        what: what the cases are, for the reason.

    >>> point_biserial([True, True, False], [3, 1, 0], "passages").value.__round__(4)
    0.7559
    """
    if len(hits) < 2:
        return Discrimination(None, f"{len(hits)} {what}")
    if all(hits) or not any(hits):
        return Discrimination(None, f"{'all' if hits[0] else 'no'} {what} cover it")
    value = correlate([float(hit) for hit in hits], [float(value) for value in values], "pearson", test=False).value
    return Discrimination(value, "" if value is not None else f"all {what} have the same value")


def influence_of(
    query_id: str, item_id: str, coverage: RunCoverage, table: FloatArray, full: FloatArray
) -> tuple[Discrimination, int | None]:
    """Discrimination of one item against the leaderboard without it, and the pairs of runs that it flips.

    Args:
        query_id: the query.
        item_id: the item.
        coverage: what the runs cover.
        table: `coverage.table()`.
        full: its `mean_scores`.
    """
    if item_id not in coverage.items.get(query_id, ()):
        return Discrimination(None, "no run ranks the query"), None
    column = coverage.items[query_id].index(item_id)
    kept = np.arange(len(coverage.items[query_id])) != column
    changed = table.copy()
    changed[list(coverage.items).index(query_id)] = coverage.query_scores(query_id, kept)
    scores = mean_scores(changed)
    both = ~np.isnan(full) & ~np.isnan(scores)
    usable = ~np.isnan(scores) & coverage.known(query_id)[:, column]
    hits = coverage.covered[query_id][usable, column].tolist()
    flips = _flips(full[both], scores[both]) if both.sum() > 1 else None
    return point_biserial(hits, scores[usable], "runs"), flips


def _flips(before: FloatArray, after: FloatArray) -> int:
    """Pairs that are in the opposite order after; a tie on a side is no flip."""
    first, second = np.triu_indices(len(before), 1)
    return int(((before[first] - before[second]) * (after[first] - after[second]) < 0).sum())


_WORD = re.compile(r"\w+")
_LEAST_OVERLAP = 0.7


def duplicate_items(banks: Iterable[Sequence[RubricItem]]) -> list[DuplicateItems]:
    """Pairs of items of one query that are the same after normalisation, or share most tokens; most alike first.

    Normalised is NFKC, case-folded, words only. overlap = |A ∩ B| / |A ∪ B| over the sets of words, 0.7 or more. Items
    without text (no bank was given) cannot be compared: they are left out, and counted in a note.

    Args:
        banks: the items of each query.
    """
    found: list[DuplicateItems] = []
    silent = 0
    for items in banks:
        words = [(item, _WORD.findall(unicodedata.normalize("NFKC", item.text).casefold())) for item in items]
        silent += sum(not of_item for _, of_item in words)
        spoken = [(item, of_item, frozenset(of_item)) for item, of_item in words if of_item]
        for place, (first, first_words, first_set) in enumerate(spoken):
            for second, second_words, second_set in spoken[place + 1 :]:
                overlap = len(first_set & second_set) / len(first_set | second_set)
                if overlap >= _LEAST_OVERLAP:
                    found.append(DuplicateItems(first.query_id, first, second, overlap, first_words == second_words))
    if silent:
        logging.getLogger("rubric_measures").warning(
            "%d items have no text and were not compared for duplicates; give the test bank",
            silent,
            extra={"settings": ("bank",)},
        )
    return sorted(found, key=lambda row: (not row.same_text, -row.overlap, row.query_id, row.first.item_id))
