"""Leaderboards over parts of a bank, without one item or with fewer items, against that of the full bank."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rubric_measures.analysis.correlation import correlate
from rubric_measures.base.errors import InputError
from rubric_measures.formats.trec import as_known, distinct_run_names, read_run, written_id
from rubric_measures.measures.grades import QueryGrades, note_queries
from rubric_measures.measures.loading import RecordQuery

__all__ = [
    "QueryCoverage",
    "RunCoverage",
    "StabilityPoint",
    "bank_stability",
    "joined_coverage",
    "mean_scores",
    "query_coverage",
    "ranked_by_files",
]

FloatArray = NDArray[np.float64]
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
            grade of it, and of how many it failed; only of queries where a grade of such a passage failed, and 0 for
            runs without.
    """

    runs: tuple[str, ...]
    items: Mapping[str, tuple[str, ...]]
    covered: Mapping[str, BoolArray]
    counts: Mapping[str, CountArray]

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
    defined = ~np.isnan(table)
    counts = defined.sum(axis=0)
    sums = np.where(defined, table, 0.0).sum(axis=0)
    return np.where(counts > 0, np.round(sums / np.maximum(counts, 1), 12), np.nan)


class QueryCoverage(NamedTuple):
    """Which items of one query each run covers among its first passages; item ids in the order of their bits.

    Attributes:
        query_id: the query.
        item_ids: its items.
        runs: run -> the mask of the items it covers.
        counts: run -> (3, items), see `RunCoverage.counts`; only of runs where a grade of such a passage failed.
    """

    query_id: str
    item_ids: tuple[str, ...]
    runs: Mapping[str, int]
    counts: Mapping[str, CountArray]


def query_coverage(query: RecordQuery, min_rating: int | None = None, cutoff: int = 20) -> QueryCoverage:
    """What each run covers of one query with its first passages, as Rubric-Cover counts it.

    Args:
        query: the selected grades.
        min_rating: the least grade that covers an item; None takes the scale's.
        cutoff: how many passages of a ranking count.
    """
    grades = query.grades
    covering = grades.at_least(grades.level(min_rating))
    runs: dict[str, int] = {}
    counts: dict[str, CountArray] = {}
    for run_id, ranking in query.rankings.items():
        seen = failed = 0
        for doc_id in ranking[:cutoff]:
            seen |= covering.get(doc_id, 0)
            failed |= grades.failed.get(doc_id, 0)
        runs[run_id] = seen
        if failed:
            counts[run_id] = _counts(grades, covering, ranking[:cutoff])
    return QueryCoverage(query.query_id, tuple(item.item_id for item in grades.items), runs, counts)


def _counts(grades: QueryGrades, covering: Mapping[str, int], doc_ids: Sequence[str]) -> CountArray:
    """(3, items): how many of the passages cover each item, have a valid grade of it, a failed one."""
    covers = [covering.get(doc_id, 0) for doc_id in doc_ids]
    failed = [grades.failed.get(doc_id, 0) for doc_id in doc_ids]
    # A facet may have a grade beside a failed one: below the level nobody knows whether it is covered.
    valid = [
        covered | (sum(grades.levels.get(doc_id, {}).values()) & ~lost)
        for doc_id, covered, lost in zip(doc_ids, covers, failed, strict=True)
    ]
    return np.array([_bits(masks, len(grades.items)).sum(axis=0) for masks in (covers, valid, failed)], dtype=np.int32)


def joined_coverage(queries: Iterable[QueryCoverage]) -> RunCoverage:
    """The coverage of all queries together.

    A run that does not rank a query covers none of its items.
    """
    ranked = sorted((query for query in queries if query.runs and query.item_ids), key=lambda one: one.query_id)
    runs = tuple(sorted({run_id for query in ranked for run_id in query.runs}))
    items: dict[str, tuple[str, ...]] = {}
    covered: dict[str, BoolArray] = {}
    counts: dict[str, CountArray] = {}
    for query in ranked:
        ids, size = query.item_ids, len(query.item_ids)
        order = np.array(sorted(range(size), key=lambda bit: ids[bit]))
        items[query.query_id] = tuple(ids[bit] for bit in order.tolist())
        covered[query.query_id] = _bits([query.runs.get(run_id, 0) for run_id in runs], size)[:, order]
        if query.counts:
            counts[query.query_id] = np.zeros((3, len(runs), size), dtype=np.int32)
            for place, run_id in enumerate(runs):
                if run_id in query.counts:
                    counts[query.query_id][:, place] = query.counts[run_id][:, order]
    return RunCoverage(runs, items, covered, counts)


def _bits(masks: Sequence[int], size: int) -> BoolArray:
    """(masks, bits): the first `size` bits of each mask, the lowest first."""
    width = -(-size // 8)
    data = np.frombuffer(b"".join(mask.to_bytes(width, "little") for mask in masks), dtype=np.uint8)
    return np.unpackbits(data.reshape(len(masks), width), axis=1, count=size, bitorder="little").astype(np.bool_)


def ranked_by_files(queries: Iterable[RecordQuery], paths: Sequence[str | os.PathLike[str]]) -> list[RecordQuery]:
    """The same grades with the first 20 places of TREC run files in the place of the rankings inside the records.

    Passages that the records do not grade cover nothing. Counted in notes, at the end: queries of the runs that the
    records lack, runs that rank none of the records' queries, and how many of the passages have no grades.

    Args:
        queries: the selected grades.
        paths: the run files; runs that share a tag are called after their files.

    Raises:
        InputError: two runs have one name, or no run ranks any of the queries.
        FormatError: a file is no run.
    """
    tags: list[str] = []
    places: list[dict[str, Sequence[str]]] = []
    for path in paths:
        run = read_run(path)
        tags.append(run.run_id)
        places.append({query_id: ranking.doc_ids[:20] for query_id, ranking in run.rankings.items()})
    names = distinct_run_names(tags, paths)
    known: set[str] = set()
    shown = ungraded = 0
    found: list[RecordQuery] = []
    for query in queries:
        known.add(written_id(query.query_id))
        query_id = written_id(query.query_id)
        rankings = {
            name: as_known(of_run[query_id], query.grades.levels)
            for name, of_run in zip(names, places, strict=True)
            if query_id in of_run
        }
        for doc_ids in rankings.values():
            shown += len(doc_ids)
            ungraded += sum(
                doc_id not in query.grades.levels and doc_id not in query.grades.failed for doc_id in doc_ids
            )
        found.append(replace(query, rankings=rankings))
    idle = [name for name, of_run in zip(names, places, strict=True) if known.isdisjoint(of_run)]
    if len(idle) == len(names):
        raise InputError(f"none of the {len(names)} runs ranks a query of the records")
    log = logging.getLogger("rubric_measures")
    if idle:
        log.warning("%d runs rank none of the queries and are left out: %s", len(idle), ", ".join(idle[:3]))
    note_queries({name: of_run.keys() - known for name, of_run in zip(names, places, strict=True)}, {})
    if ungraded:
        log.warning("%d of %d passages in the first 20 places have no grades: they cover nothing", ungraded, shown)
    return found


class StabilityPoint(NamedTuple):
    """How far leaderboards of small banks agree with that of the full bank; one row a bank size.

    Attributes:
        size: items a query that are kept (all, where a query has fewer).
        rounds: how many samples were drawn.
        undefined: in how many of them τ is undefined (all runs tied).
        mean: the mean of the defined τ; None where there is none.
        low: the least of them.
        high: the highest of them.
    """

    size: int
    rounds: int
    undefined: int
    mean: float | None
    low: float | None
    high: float | None


def bank_stability(coverage: RunCoverage, rounds: int = 50, seed: int = 0) -> list[StabilityPoint]:
    """Kendall's τ-b between the leaderboard of the full bank and those of random parts of it, by size of the part.

    A sample keeps n random items of every query; samples of one round are nested. The last point is the full bank. At
    most twenty sizes, evenly spread. Same seed, same samples, whatever the order of queries and items.

    Args:
        coverage: what the runs cover.
        rounds: samples a size, at least 1.
        seed: of the samples.
    """
    full = mean_scores(coverage.table())
    largest = max((len(items) for items in coverage.items.values()), default=0)
    sizes = sorted({max(1, round(largest * step / 20)) for step in range(1, 21)}) if largest else []
    orders = [
        {query_id: _shuffled(len(items), f"{seed}/{number}/{query_id}") for query_id, items in coverage.items.items()}
        for number in range(rounds)
    ]
    points = []
    for size in sizes:
        values = []
        for order in orders:
            rows = [coverage.query_scores(query_id, order[query_id] < size) for query_id in coverage.items]
            scores = mean_scores(np.array(rows))
            both = ~np.isnan(full) & ~np.isnan(scores)
            values.append(correlate(full[both], scores[both], "kendall", test=False).value)
        defined = [value for value in values if value is not None]
        mean = sum(defined) / len(defined) if defined else None
        points.append(
            StabilityPoint(
                size, rounds, rounds - len(defined), mean, min(defined, default=None), max(defined, default=None)
            )
        )
    return points


def _shuffled(size: int, seed: str) -> NDArray[np.int_]:
    places = list(range(size))
    random.Random(seed).shuffle(places)
    return np.array(places, dtype=np.int_)
