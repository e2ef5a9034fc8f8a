"""What the pending edits and corrections do to the leaderboard: scores and ranks before and after."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ir_measures.measures.base import Measure

from rubric_measures.boards.scoring import score_runs
from rubric_measures.measures.grades import Grades, QueryGrades, build_query
from rubric_measures.measures.measure import RubricMeasure
from rubric_measures.review._events import CellKey, ItemState, Snapshot
from rubric_measures.review._stale_items import left_items
from rubric_measures.review.review_data import Material, QueryMaterial
from rubric_measures.types.entities import RubricItem

# (doc_id, item_id) -> the one grade of assessors.
_Places = Mapping[tuple[str, str], float]


class ImpactRow(NamedTuple):
    """One run before and after; ranks count from 1, equal scores share the better rank, and no score has none."""

    run_id: str
    before: float | None
    after: float | None
    rank_before: int | None
    rank_after: int | None

    @property
    def change(self) -> int:
        """Places won (positive) or lost; 0 where the run has no score on a side."""
        if self.rank_before is None or self.rank_after is None:
            return 0
        return self.rank_before - self.rank_after


@dataclass(frozen=True)
class Impact:
    """The leaderboard of one measure before and after.

    Attributes:
        measure: the measure.
        rows: the runs, best first as it would be after.
        grades_changed: grades of which assessors say another thing than the grader, of items that count after.
        changed_before: of these, those of which the records say so already: they count on both sides.
        items_before: items in the bank's file.
        items_after: items that the new leaderboard counts.
        waiting: item ids that wait for grades, and are not counted until they have some.
        without_items: queries of which no item counts after, so that they have no score.
        tau: Kendall's τ-b between the leaderboards; None where a side has fewer than two runs, or all tied.
    """

    measure: str
    rows: Sequence[ImpactRow]
    grades_changed: int
    items_before: int
    items_after: int
    waiting: Sequence[str] = field(default=())
    tau: float | None = None
    changed_before: int = 0
    without_items: int = 0

    @property
    def moved(self) -> int:
        """Runs whose rank changes."""
        return sum(row.change != 0 for row in self.rows)


def impact_of(material: Material, measures: Sequence[Measure], snapshot: Snapshot) -> list[Impact]:
    """One comparison for each measure; empty where the records hold no rankings."""
    run_ids = sorted({run for query in material.queries.values() for run in query.record.rankings})
    if not run_ids:
        return []
    # Levels that are left out are said: the page shows what its numbers are of.
    measures = [one.on(material.scale) if isinstance(one, RubricMeasure) else one for one in measures]
    before = {query_id: query.record.grades for query_id, query in material.queries.items()}
    for query_id, items in material.bank.items.items():
        before.setdefault(query_id, QueryGrades(query_id, items, {}))
    after = dict(before)
    finals = _finals(material, snapshot)
    live: dict[str, list[ItemState]] = {query_id: [] for query_id in sorted(before)}
    edited = set()
    for state in snapshot.items.values():
        if state.version or state.regrade:
            edited.add(state.item.query_id)
        if not state.retired:
            live[state.item.query_id].append(state)
    changed = known = items_after = without = 0
    for query_id, states in live.items():
        query = material.queries.get(query_id)
        counted = _counted(states)
        earlier = query.earlier_grades if query is not None else {}
        given = finals.get(query_id, earlier)
        changed += _differing(query, given, counted)
        known += _differing(query, earlier, counted)
        items_after += len(counted)
        without += not counted
        if not counted:
            del after[query_id]
        elif query_id in finals or query_id in edited:
            after[query_id] = _regraded(material, query_id, given, states)
    old, new = (_means(material, run_ids, queries, measures) for queries in (before, after))
    waiting = [state.item.item_id for states in live.values() for state in states if state.regrade]
    boards = {name: _rows(old[name], new[name]) for name in map(str, measures)}
    return [
        Impact(name, rows, changed, len(material.bank), items_after, waiting, _tau(rows), known, without)
        for name, rows in boards.items()
    ]


def _counted(states: Sequence[ItemState]) -> list[RubricItem]:
    """The items that count: those that wait for grades do not."""
    return [state.item for state in states if not state.regrade]


def _finals(material: Material, snapshot: Snapshot) -> dict[str, dict[tuple[str, str], float]]:
    """query_id -> assessors' grades, those of earlier reviews too, of the queries that were graded in this review."""
    finals: dict[str, dict[tuple[str, str], float]] = {}
    for cell in snapshot.grades:
        final = snapshot.final(cell, material.earlier(cell), material.settled(cell))
        if final is not None and snapshot.final(cell) is not None:
            of_query = finals.setdefault(cell.query_id, dict(material.queries[cell.query_id].earlier_grades))
            of_query[cell.doc_id, cell.item_id] = final
    return finals


def _differing(query: QueryMaterial | None, given: _Places, items: Collection[RubricItem]) -> int:
    """How many of assessors' grades of some items are not the grader's."""
    ids = {item.item_id for item in items}
    rows = {} if query is None else {doc_id: passage.grades for doc_id, passage in query.passages.items()}
    return sum(
        (row := rows[doc_id].get(item_id)) is None or row.grade != grade
        for (doc_id, item_id), grade in given.items()
        if item_id in ids
    )


def _regraded(material: Material, query_id: str, given: _Places, states: Sequence[ItemState]) -> QueryGrades:
    """The grades of one query with assessors' grades in the place of the grader's, over the bank as it is now."""
    query = material.queries.get(query_id)
    rows: dict[tuple[str, str], float] = {}
    failed: set[tuple[str, str]] = set()
    for doc_id, passage in query.passages.items() if query else ():
        for item_id, row in passage.grades.items():
            if row.grade is None:
                failed.add((doc_id, item_id))
            else:
                rows[doc_id, item_id] = row.grade
    # A passage without a grade or failure of an item of the bank is one that the grader did not grade: assessors'
    # grades have no place there, and it is no judged passage.
    ids = {state.item.item_id for state in states}
    docs = {doc_id for doc_id, item_id in rows.keys() | failed if item_id in ids}
    rows.update((place, final) for place, final in given.items() if place[0] in docs)
    failed -= given.keys()
    items = _counted(states)
    ids = {item.item_id for item in items}
    compiled, _ = build_query(
        query_id,
        [(doc_id, item_id, grade) for (doc_id, item_id), grade in rows.items() if item_id in ids],
        items,
        [place for place in failed if place[1] in ids],
        {doc_id: {} for doc_id in docs},
        material.scale,
    )
    return compiled if query is None else replace(compiled, answers=query.record.grades.answers)


def _means(
    material: Material, run_ids: Sequence[str], queries: Mapping[str, QueryGrades], measures: Sequence[Measure]
) -> dict[str, dict[str, float | None]]:
    """measure -> run -> its score; None where there is no query."""
    if not queries:
        return {str(measure): dict.fromkeys(run_ids) for measure in measures}
    rankings = {query_id: query.record.rankings for query_id, query in material.queries.items() if query_id in queries}
    runs = ((run, {query_id: of_query.get(run, ()) for query_id, of_query in rankings.items()}) for run in run_ids)
    cells = score_runs(Grades(queries, "expected"), runs, measures, overall=False).cells
    return {str(measure): {run: cells[run][str(measure)].mean for run in run_ids} for measure in measures}


def _tau(rows: Sequence[ImpactRow]) -> float | None:
    from rubric_measures.analysis.correlation import correlate

    # Sums that differ in the last bit only are ties here too.
    pairs = [
        (round(row.before, 12), round(row.after, 12))
        for row in rows
        if row.before is not None and row.after is not None
    ]
    if len(pairs) < 2:
        return None
    return correlate([before for before, _ in pairs], [after for _, after in pairs], "kendall", test=False).value


def _rows(before: Mapping[str, float | None], after: Mapping[str, float | None]) -> list[ImpactRow]:
    ranks_before, ranks_after = _ranks(before), _ranks(after)
    rows = [ImpactRow(run, before[run], after[run], ranks_before[run], ranks_after[run]) for run in before]
    return sorted(rows, key=lambda row: (row.rank_after or len(rows) + 1, row.run_id))


def _ranks(means: Mapping[str, float | None]) -> dict[str, int | None]:
    # Sums that differ in the last bit only are ties, as in τ and in the statistics of items.
    rounded = {run: round(value, 12) for run, value in means.items() if value is not None}
    return {
        run: 1 + sum(other > rounded[run] for other in rounded.values()) if run in rounded else None for run in means
    }


def changed_cells(material: Material, snapshot: Snapshot) -> list[tuple[CellKey, float | None, float]]:
    """(cell, the grade before, assessors') wherever they differ; before is that of assessors in the records, if any.

    Grades of items that left the bank, or wait, are not among them: they change nothing.
    """
    rows, left = [], left_items(snapshot)
    for cell in snapshot.grades:
        if snapshot.final(cell) is None or (cell.query_id, cell.item_id) in left:
            continue
        before = material.queries[cell.query_id].earlier_grades
        grade = before.get((cell.doc_id, cell.item_id), material.grade(cell).grade)
        final = snapshot.final(cell, material.earlier(cell), material.settled(cell))
        if final is not None and final != grade:
            rows.append((cell, grade, final))
    return sorted(rows)
