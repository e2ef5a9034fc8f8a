"""What the pending edits and corrections do to the leaderboard: scores and ranks before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ir_measures.measures.base import Measure

from rubric_measures.grades.compiled import Grades, QueryGrades, build_query
from rubric_measures.leaderboards.runs import score_runs
from rubric_measures.leaderboards.scoring import Tally, make_cell
from rubric_measures.measures.measure import RubricMeasure
from rubric_measures.review._events import CellKey, ItemState, Snapshot
from rubric_measures.review._stale_items import left_items
from rubric_measures.review.review_data import Material, QueryMaterial

Values = Mapping[str, Mapping[str, float | None]]
# Assessors' grades of a query by (doc_id, item_id), and its items that are in the bank.
_Stamp = tuple[Mapping[tuple[str, str], float], Sequence[ItemState]]


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


@dataclass(frozen=True)
class _Known:
    """What a touched query scored, and what assessors' grades and items were then."""

    stamp: _Stamp
    grades: QueryGrades
    values: Mapping[str, Mapping[str, float | None]]
    waiting: Sequence[str]
    changed: int
    changed_before: int


class After(NamedTuple):
    """What the records score with what assessors did.

    Attributes:
        values: measure -> run -> query -> value.
        waiting: the ids of items that wait for grades.
        changed: grades of which assessors say another thing than the grader.
        changed_before: of these, those of which the records say so.
    """

    values: Mapping[str, Values]
    waiting: Sequence[str]
    changed: int
    changed_before: int


class Scores:
    """Scores of the records as they were read, and of what assessors made of them; only queries
    that changed since they were last asked for are scored again.
    """

    def __init__(self, material: Material, measures: Sequence[Measure]) -> None:
        self.material = material
        # Levels that are left out are said: the page shows what its numbers are of.
        self.measures = [one.on(material.scale) if isinstance(one, RubricMeasure) else one for one in measures]
        self.names = [str(measure) for measure in self.measures]
        self.run_ids = sorted({run for query in material.queries.values() for run in query.record.rankings})
        original = {query_id: query.record.grades for query_id, query in material.queries.items()}
        for query_id, items in material.bank.items.items():
            original.setdefault(query_id, QueryGrades(query_id, items, {}))
        self.before = self._score(original)
        # What assessors said in earlier reviews: (doc_id, item_id) -> grade; in how many they differ from the grader.
        self._earlier = {query_id: query.earlier_grades for query_id, query in material.queries.items()}
        self._differ = {
            query_id: sum(_differs(material.queries[query_id], place, grade) for place, grade in finals.items())
            for query_id, finals in self._earlier.items()
        }
        self._known: dict[str, _Known] = {}

    def _score(self, queries: Mapping[str, QueryGrades]) -> dict[str, dict[str, dict[str, float | None]]]:
        """measure -> run -> query -> value."""
        result: dict[str, dict[str, dict[str, float | None]]] = {
            name: {run: {} for run in self.run_ids} for name in self.names
        }
        if not queries or not self.run_ids:
            return result
        rankings = {query_id: query.record.rankings for query_id, query in self.material.queries.items()}
        runs = (
            (run, {query_id: rankings[query_id].get(run, ()) for query_id in queries if query_id in rankings})
            for run in self.run_ids
        )
        board = score_runs(Grades(queries, "expected"), runs, self.measures, overall=False)
        for run, row in board.values.items():
            for name, values in row.items():
                result[name][run] = dict(values)
        return result

    def after(self, snapshot: Snapshot) -> After:
        """What the records score with what assessors did. Grades of items that do not count are no changed ones."""
        touched = self._touched(snapshot)
        stale = {
            query_id: self._query(query_id, *stamp)
            for query_id, stamp in sorted(touched.items())
            if query_id not in self._known or self._known[query_id].stamp != stamp
        }
        scored = self._score({query_id: grades for query_id, (grades, *_) in stale.items() if grades.items})
        for query_id, (grades, waits, *differ) in stale.items():
            values = {
                name: {run: scored[name][run][query_id] for run in self.run_ids} if grades.items else {}
                for name in self.names
            }
            self._known[query_id] = _Known(touched[query_id], grades, values, waits, *differ)
        self._known = {query_id: self._known[query_id] for query_id in sorted(touched)}
        known = self._known.values()
        untouched = sum(count for query_id, count in self._differ.items() if query_id not in self._known)
        return After(
            {name: {run: self._merged(name, run) for run in self.run_ids} for name in self.names},
            [item_id for one in known for item_id in one.waiting],
            untouched + sum(one.changed for one in known),
            untouched + sum(one.changed_before for one in known),
        )

    def _touched(self, snapshot: Snapshot) -> dict[str, _Stamp]:
        """query_id -> assessors' final grades, and the items in the bank, of the queries that assessors touched."""
        finals: dict[str, dict[tuple[str, str], float]] = {}
        for cell in snapshot.grades:
            final = snapshot.final(cell, self.material.earlier(cell), self.material.settled(cell))
            if final is not None and snapshot.final(cell) is not None:
                of_query = finals.setdefault(cell.query_id, dict(self._earlier.get(cell.query_id, {})))
                of_query[cell.doc_id, cell.item_id] = final
        edited = {state.item.query_id for state in snapshot.items.values() if state.version or state.regrade}
        live: dict[str, list[ItemState]] = {query_id: [] for query_id in finals.keys() | edited}
        for state in snapshot.items.values():
            if state.item.query_id in live and not state.retired:
                live[state.item.query_id].append(state)
        return {
            query_id: (finals.get(query_id, self._earlier.get(query_id, {})), states)
            for query_id, states in live.items()
        }

    def grades_after(self) -> dict[str, QueryGrades]:
        """The queries that assessors touched, with their grades and items as they were when `after` was last asked."""
        return {query_id: one.grades for query_id, one in self._known.items()}

    def _merged(self, name: str, run: str) -> dict[str, float | None]:
        """The values of one run: a query that was touched has its new value, and none where it has no items left."""
        values = {query: value for query, value in self.before[name][run].items() if query not in self._known}
        for query_id, one in self._known.items():
            if run in one.values[name]:
                values[query_id] = one.values[name][run]
        return values

    def _query(
        self, query_id: str, finals: Mapping[tuple[str, str], float], live: Sequence[ItemState]
    ) -> tuple[QueryGrades, list[str], int, int]:
        """The grades of one query with assessors' grades in the place of the grader's, over the bank as it is now.

        Beside them the items that wait, and how many grades assessors changed, and had changed in the records.
        """
        query = self.material.queries.get(query_id)
        rows: dict[tuple[str, str], float] = {}
        failed: set[tuple[str, str]] = set()
        for doc_id, passage in query.passages.items() if query else ():
            for item_id, row in passage.grades.items():
                if row.grade is None:
                    failed.add((doc_id, item_id))
                else:
                    rows[doc_id, item_id] = row.grade
        before = dict(rows)
        # A passage without a grade or failure of an item of the bank is one that the grader did not grade: assessors'
        # grades have no place there, and it is no judged passage.
        ids = {state.item.item_id for state in live}
        docs = {doc_id for doc_id, item_id in rows.keys() | failed if item_id in ids}
        rows.update((place, final) for place, final in finals.items() if place[0] in docs)
        failed -= finals.keys()
        waiting = [state.item.item_id for state in live if state.regrade]
        items = [state.item for state in live if state.item.item_id not in waiting]
        ids = {item.item_id for item in items}
        compiled, _ = build_query(
            query_id,
            [(doc_id, item_id, grade) for (doc_id, item_id), grade in rows.items() if item_id in ids],
            items,
            [place for place in failed if place[1] in ids],
            {doc_id: {} for doc_id in docs},
            self.material.scale,
        )
        if query is not None:
            compiled = replace(compiled, answers=query.record.grades.answers)
        earlier = self._earlier.get(query_id, {})
        changed, known = (
            sum(before.get(place) != final for place, final in given.items() if place[1] in ids)
            for given in (finals, earlier)
        )
        return compiled, waiting, changed, known


def impact_of(scores: Scores, snapshot: Snapshot) -> list[Impact]:
    """One comparison for each measure; empty where the records hold no rankings."""
    after = scores.after(snapshot)
    if not scores.run_ids:
        return []
    items_before = len(scores.material.bank)
    counted = [state.item for state in snapshot.items.values() if not (state.retired or state.waits)]
    queries = scores.material.bank.items.keys() | {state.item.query_id for state in snapshot.items.values()}
    without = len(queries - {item.query_id for item in counted})
    found = []
    for measure, name in zip(scores.measures, scores.names, strict=True):
        rows = _rows(measure, scores.before[name], after.values[name])
        found.append(
            Impact(
                name,
                rows,
                after.changed,
                items_before,
                len(counted),
                after.waiting,
                _tau(rows),
                after.changed_before,
                without,
            )
        )
    return found


def _differs(query: QueryMaterial, place: tuple[str, str], grade: float) -> bool:
    """Whether the grader gave another grade, or none."""
    row = query.passages[place[0]].grades.get(place[1])
    return row is None or row.grade != grade


def _tau(rows: Sequence[ImpactRow]) -> float | None:
    from rubric_measures.meta_evaluation.correlation import correlate

    # Sums that differ in the last bit only are ties here too.
    pairs = [
        (round(row.before, 12), round(row.after, 12))
        for row in rows
        if row.before is not None and row.after is not None
    ]
    if len(pairs) < 2:
        return None
    return correlate([before for before, _ in pairs], [after for _, after in pairs], "kendall", test=False).value


def _rows(measure: Measure, before: Values, after: Values) -> list[ImpactRow]:
    old, new = _totals(measure, before), _totals(measure, after)
    ranks_old, ranks_new = _ranks(old), _ranks(new)
    rows = [ImpactRow(run, old[run], new[run], ranks_old[run], ranks_new[run]) for run in old]
    return sorted(rows, key=lambda row: (row.rank_after or len(rows) + 1, row.run_id))


def _totals(measure: Measure, values: Values) -> dict[str, float | None]:
    """The mean of each run, of counts the sum, as the leaderboard has it."""
    return {run: make_cell(queries.values(), Tally(), measure).mean for run, queries in values.items()}


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
