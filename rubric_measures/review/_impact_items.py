"""What the pending edits do to the items: how many passages cover each, how it discriminates, what is to grade anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from rubric_measures.grades.compiled import QueryGrades
from rubric_measures.grades.loading import RecordQuery
from rubric_measures.review._events import ItemState, Snapshot
from rubric_measures.review._impact import Scores
from rubric_measures.verification.bank_stability import (
    FloatArray,
    QueryCoverage,
    RunCoverage,
    joined_coverage,
    mean_scores,
    query_coverage,
)
from rubric_measures.verification.item_statistics import ItemStatistics, item_counts


class ItemImpact(NamedTuple):
    """One item before and after the pending edits and assessors' grades.

    Attributes:
        query_id: the query.
        text_before: as the bank's file has it; empty where the item is new.
        text_after: as it is now; empty where it left the bank.
        what: what was last done to it, or to its grades; empty where nothing was.
        before: its statistics with the grader's grades; None where it is new.
        after: those with assessors' grades; None where it left, or has no grades yet.
        redo: grades to make anew: one for each passage of the query that the grader graded; 0 where none is needed.
    """

    query_id: str
    text_before: str
    text_after: str
    what: str
    before: ItemStatistics | None
    after: ItemStatistics | None
    redo: int


@dataclass(frozen=True)
class ItemImpacts:
    """The items that changed, or all of one query.

    Attributes:
        rows: the items of one page.
        total: how many there are.
        redo: grades to make anew, of all items of the bank.
        waiting: items that need them.
    """

    rows: Sequence[ItemImpact]
    total: int
    redo: int
    waiting: int


@dataclass(frozen=True)
class _Side:
    """One leaderboard: what the runs cover, and their scores."""

    coverage: RunCoverage
    table: FloatArray
    full: FloatArray

    @classmethod
    def of(cls, queries: Mapping[str, QueryCoverage]) -> _Side:
        coverage = joined_coverage(queries.values())
        table = coverage.table()
        return cls(coverage, table, mean_scores(table))

    def with_influence(self, row: ItemStatistics | None) -> ItemStatistics | None:
        return row.with_influence(self.coverage, self.table, self.full) if row is not None else None


@dataclass
class _QueryCounts:
    """What is known of one query: its statistics without those against the leaderboard, and what the runs cover."""

    grades: QueryGrades
    counts: Mapping[str, ItemStatistics]
    covered: QueryCoverage


@dataclass
class ItemScores:
    """Statistics of items before and after; only queries that changed since they were last asked for are done again.

    Attributes:
        scores: the leaderboards' scores, whose `after` says what is asked about.
    """

    scores: Scores
    _after: dict[str, _QueryCounts] = field(default_factory=dict)

    def _query(self, record: RecordQuery) -> _QueryCounts:
        counts = {row.item_id: row for row in item_counts(record)}
        return _QueryCounts(record.grades, counts, query_coverage(record))

    def _record(self, query_id: str, grades: QueryGrades | None = None) -> RecordQuery:
        material = self.scores.material.queries.get(query_id)
        if material is not None:
            return material.record if grades is None else replace(material.record, grades=grades)
        items = self.scores.material.bank.items.get(query_id, ())
        return RecordQuery(grades or QueryGrades(query_id, items, {}), {}, {}, {}, [])

    @cached_property
    def _before(self) -> dict[str, _QueryCounts]:
        """What the records were before anybody did anything."""
        ids = self.scores.material.bank.items.keys() | self.scores.material.queries.keys()
        return {query_id: self._query(self._record(query_id)) for query_id in sorted(ids)}

    @cached_property
    def _side(self) -> _Side:
        return _Side.of({query_id: one.covered for query_id, one in self._before.items()})

    @cached_property
    def _graded(self) -> dict[str, int]:
        """query_id -> passages that the grader graded."""
        return {
            query_id: sum(bool(passage.grades) for passage in query.passages.values())
            for query_id, query in self.scores.material.queries.items()
        }

    def impacts(self, snapshot: Snapshot, query_id: str = "", start: int = 0, size: int = 50) -> ItemImpacts:
        """The items that changed, or all of one query, in bank order.

        Args:
            snapshot: the state that `scores.after` was last asked about.
            query_id: all items of this query; the changed ones of all queries where it is empty.
            start: the first row.
            size: how many rows.
        """
        now = self._update()
        wanted: list[ItemImpact] = []
        redo = waiting = 0
        for state in snapshot.items.values():
            name = state.item.query_id
            if name not in now and name != query_id:
                continue
            row = self._row(state)
            redo += row.redo
            waiting += state.waits
            if name == query_id or (not query_id and row.what):
                wanted.append(row)
        before, after = self._side, self._side_after()
        shown = [
            row._replace(before=before.with_influence(row.before), after=after.with_influence(row.after))
            for row in wanted[start : start + size]
        ]
        return ItemImpacts(shown, len(wanted), redo, waiting)

    def _update(self) -> Mapping[str, QueryGrades]:
        """Counts queries that changed since; returns the grades of those that assessors touched."""
        now = self.scores.grades_after()
        for name, grades in now.items():
            known = self._after.get(name)
            if known is None or known.grades is not grades:
                self._after[name] = self._query(self._record(name, grades))
        self._after = {name: self._after[name] for name in now}
        return now

    def _side_after(self) -> _Side:
        return _Side.of({name: (self._after.get(name) or one).covered for name, one in self._before.items()})

    def statistics(self, query_id: str, with_flips: bool) -> dict[str, ItemStatistics]:
        """item_id -> the statistics of a query's items as they stand when `scores.after` was last asked.

        Args:
            query_id: the query.
            with_flips: also `by_run` and `flips`, which take the longest.
        """
        self._update()
        counts = (self._after.get(query_id) or self._before[query_id]).counts
        if not with_flips:
            return dict(counts)
        side = self._side_after()
        return {name: side.with_influence(row) or row for name, row in counts.items()}

    def _row(self, state: ItemState) -> ItemImpact:
        original = state.original
        query_id = state.item.query_id
        before = self._before[query_id].counts.get(original.item_id) if original else None
        after = None
        if not state.retired:
            after = (self._after.get(query_id) or self._before[query_id]).counts.get(state.item.item_id)
        what = "assessors' grades" if before != after else ""
        if state.version or state.regrade:
            what = state.history[-1].what if state.version else "changed in an earlier review"
        return ItemImpact(
            query_id,
            original.text if original else "",
            "" if state.retired else state.item.text,
            what,
            before,
            after,
            self._graded.get(query_id, 0) if state.waits else 0,
        )
