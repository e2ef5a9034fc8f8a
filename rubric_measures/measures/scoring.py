"""All measures of a call over the rankings of a query: values, what these needed, what failed grades leave open."""

from __future__ import annotations

import math
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import ir_measures
import numpy as np
from ir_measures.measures.base import Measure
from ir_measures.util import ScoredDoc

from rubric_measures.base.errors import InputError, MeasureError
from rubric_measures.measures import core
from rubric_measures.measures.core import NONE, Array
from rubric_measures.measures.grades import OnFailed, QueryGrades, texts_digest
from rubric_measures.measures.labels import RubricQrels, checked_measure, delegated, other_providers, refuse_real
from rubric_measures.measures.measure import FunctionMeasure, ItemMeasure, RubricMeasure, is_supported
from rubric_measures.measures.support import SupportMeasure
from rubric_measures.types.entities import RubricItem, ScoredIds
from rubric_measures.types.scales import ANY_LEVEL, Scale, refuse_unreachable

# Cells of rankings × passages × items that are looked at together; more would not fit into a processor's cache.
_TOGETHER = 1 << 21


class Needed(NamedTuple):
    """The grades that a measure needs: of which items, or of which citations of answers, in the first so many passages.

    Attributes:
        cutoff: how many passages; None for all.
        which: all items, `vital` ones, those that are `weighing` something; the `first` citation of each sentence or
            each of its `citations`.
    """

    cutoff: int | None
    which: Literal["items", "vital", "weighing", "first", "citations"] = "items"


Coverage: TypeAlias = Array
"""R × 3: how many grades a value needed (passages in the cutoff × items), how many of these are valid, and failed."""


Rows: TypeAlias = "Sequence[int] | Array"
"""Rows of a matrix of grades; -1 stands for a document that has none."""


class RankedRows(NamedTuple):
    """One ranking of a query, as measures look at it.

    Attributes:
        rows: for each document that is looked at, best first, its row among the grades; -1 where it has none.
        length: how many documents are ranked.
        digest: of the documents that are looked at; empty where there are none.
        doc_ids: these documents, where `Plan.reads_ids`; else empty.
    """

    rows: Rows
    length: int
    digest: str = ""
    doc_ids: Sequence[str] = ()


class QueryScores(NamedTuple):
    """What R rankings of a query score.

    Attributes:
        values: measures × R; NaN where nothing can be said, because all grades that a value needs failed.
        left_open: for each measure what failed grades leave open; None where none failed.
        needed: which grades measures need -> R × 3.
        lost_penalties: R: items of negative weight that cost nothing because their grade failed for a ranked passage.
        dropped: R: passages without any valid grade that left the rankings of measures over labels and subtopics.
    """

    values: Array
    left_open: Sequence[core.Scores] | None
    needed: Mapping[Needed, Coverage]
    lost_penalties: Array
    dropped: Array


def ranking_digest(doc_ids: Sequence[str]) -> str:
    """Twelve hex digits of a ranking's documents in their order; the id of a single one, which says as much."""
    if len(doc_ids) == 1:
        return doc_ids[0]
    return texts_digest(doc_ids)


class _Placed(NamedTuple):
    """The graded passages of R rankings, best first, and where they stand.

    Attributes:
        rows: R × m: their rows; -1 where a ranking has no more.
        ranks: R × m: their ranks from 1; 0 where a ranking has no more.
        lengths: R: documents ranked.
    """

    rows: Array
    ranks: Array
    lengths: Array

    @classmethod
    def of(cls, rankings: Sequence[Rows], lengths: Sequence[int]) -> _Placed:
        """The graded ones of the rows of rankings."""
        size = len(rankings)
        looked = np.array([len(rows) for rows in rankings], int)
        flat = np.concatenate([*rankings, np.zeros(0, int)]).astype(int)
        graded = np.flatnonzero(flat >= 0)
        numbers = np.repeat(np.arange(size), looked)[graded]
        counts = np.bincount(numbers, minlength=size)
        columns = np.arange(len(graded)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows, ranks = np.full((size, counts.max(initial=0)), -1), np.zeros((size, counts.max(initial=0)), int)
        rows[numbers, columns] = flat[graded]
        ranks[numbers, columns] = graded - (np.cumsum(looked) - looked)[numbers] + 1
        return cls(rows, ranks, np.array(lengths, int))

    def cut(self, cutoff: int | None, judged_only: bool = False) -> _Placed:
        """Those up to a rank, or the first so many; then these are all that rankings hold."""
        if judged_only:
            kept = self._replace(rows=self.rows[:, :cutoff], ranks=self.ranks[:, :cutoff])
            places = np.arange(1, kept.rows.shape[1] + 1)
            counts = np.count_nonzero(kept.rows >= 0, axis=1)
            return kept._replace(ranks=np.where(kept.rows >= 0, places, 0), lengths=counts)
        if cutoff is None:
            return self
        inside = (self.ranks > 0) & (self.ranks <= cutoff)
        width = int(inside.sum(axis=1).max(initial=0))
        rows, ranks = (np.where(inside, of, empty)[:, :width] for of, empty in ((self.rows, -1), (self.ranks, 0)))
        return _Placed(rows, ranks, np.minimum(self.lengths, cutoff))

    def without(self, gone: Array) -> _Placed:
        """The rankings without some passages; those below move up.

        Args:
            gone: a passage each: whether it goes.
        """
        out = (self.rows >= 0) & np.append(gone, False)[self.rows]
        order = np.argsort(out, axis=1, kind="stable")
        ranks = np.where(out, 0, self.ranks - np.where(self.ranks > 0, out.cumsum(axis=1), 0))
        rows = np.where(out, -1, self.rows)
        rows, ranks = (np.take_along_axis(of, order, axis=1) for of in (rows, ranks))
        return _Placed(rows, ranks, self.lengths - out.sum(axis=1))


class _Seen:
    """Rankings of a query, by one reading of its failed grades."""

    def __init__(self, grades: QueryGrades, placed: _Placed, ids: Sequence[Sequence[str]] = ()) -> None:
        self.grades, self.placed, self.ids = grades, placed, ids
        self._views: dict[tuple[int | None, bool], core.View] = {}

    def view(self, cutoff: int | None = None, judged_only: bool = False) -> core.View:
        """The grades of the top k."""
        key = cutoff, judged_only
        if key not in self._views:
            of, cut = self.grades, self.placed.cut(cutoff, judged_only)
            # The last row stands for passages that nobody graded.
            grades = _with_row(of.grades, NONE)[cut.rows]
            failed = None if of.failed is None else _with_row(of.failed, False)[cut.rows]
            # All measures of the query share it.
            grades.flags.writeable = False
            self._views[key] = core.View(
                grades, failed, cut.ranks, cut.lengths, of.weights, of.vital, _item_ids(of), of.query_id
            )
        return self._views[key]

    def of_labels(self, column: Array, cutoff: int | None = None) -> core.View:
        """The labels of the passages, as grades of one item."""
        cut = self.placed.cut(cutoff)
        return core.View(np.append(column, NONE)[cut.rows][:, :, None], None, cut.ranks, cut.lengths, *(_NO_ITEM,) * 2)


_NO_ITEM = np.zeros(1)


def _with_row(matrix: Array, value: float) -> Array:
    return np.concatenate([matrix, np.full((1, matrix.shape[1]), value, matrix.dtype)])


def _item_ids(grades: QueryGrades) -> tuple[str, ...]:
    return tuple(item.item_id for item in grades.items)


class _Query:
    """The grades of one query and some rankings of it, as computations look at them."""

    def __init__(self, given: QueryGrades, on_failed: OnFailed, rankings: Sequence[RankedRows]) -> None:
        self.on_failed = on_failed
        self.is_expecting = on_failed == "expected"
        counted = given.counting_failed(on_failed)
        placed = _Placed.of([one.rows for one in rankings], [one.length for one in rankings])
        self._ids = [one.doc_ids for one in rankings]
        self.given = given
        self.plain = _Seen(counted, placed, self._ids)
        self.query_id, self.failed, self.void = given.query_id, counted.failed, counted.void

    @cached_property
    def zeros(self) -> _Seen:
        """As if failed grades were not there."""
        grades = self.plain.grades
        return self.plain if self.failed is None else self._as(replace(grades, failed=None))

    @cached_property
    def condensed(self) -> _Seen:
        """Without the passages of which all that is known is that grades failed, where these are expected something."""
        if not (self.is_expecting and self.void.any()):
            return self.plain
        void = {doc_id for doc_id, row in self.plain.grades.docs.items() if self.void[row]}
        return _Seen(self.plain.grades, self.plain.placed.without(self.void), [_kept(ids, void) for ids in self._ids])

    @cached_property
    def ends(self) -> tuple[_Seen, _Seen]:
        """With all failed grades as the lowest, and as the highest of the scale."""
        grades = self.plain.grades
        # Where the scale is not known, any grade that covers will do: measures that need to know it have no bounds.
        ends = (0, 1 << 30) if grades.scale is None else grades.scale[:2]
        lowest, highest = (self._as(grades.filled(end)) for end in ends)
        return lowest, highest

    @cached_property
    def everything(self) -> _Seen:
        """All graded passages, as one ranking."""
        return self.ranked(np.arange(len(self.plain.grades.docs)))

    def ranked(self, rows: Rows) -> _Seen:
        """Some passages, as one ranking."""
        return _Seen(self.plain.grades, _Placed.of([rows], [len(rows)]))

    def _as(self, grades: QueryGrades) -> _Seen:
        return _Seen(grades, self.plain.placed, self._ids)


def _kept(ids: Sequence[str], void: set[str]) -> Sequence[str]:
    kept = [doc_id for doc_id in ids if doc_id not in void]
    return ScoredIds(kept, [pair for pair in ids.given if pair[0] not in void]) if isinstance(ids, ScoredIds) else kept


class Computation(ABC):
    """How a measure is computed.

    Attributes:
        measure: the measure.
        cutoff: how many passages of a ranking it looks at; None for all.
        judged_only: whether these are graded ones, so that it looks deeper.
        needed: the grades that it needs.
        reads_items: whether it reads grades of items, and not one label a passage.
        reads_ids: whether it has to know the ids of the documents that are ranked.
        condenses: whether passages whose grades all failed leave the rankings that it sees.
    """

    condenses = True
    reads_ids = False

    def __init__(self, measure: Measure, reads_items: bool = True) -> None:
        self.measure = measure
        self.reads_items = reads_items
        cutoff = measure.params.get("cutoff")
        self.cutoff = cutoff if isinstance(cutoff, int) else None
        self.judged_only = bool(measure.params.get("judged_only"))
        self.needed = Needed(self.cutoff)

    @abstractmethod
    def scores(self, query: _Query) -> core.Scores:
        """The values of the rankings; NaN is not known."""

    @abstractmethod
    def best(self, query: _Query) -> float:
        """The best value that any ranking of the graded passages could reach; NaN where it is not known."""

    def lost_penalties(self, query: _Query) -> Array | None:
        """Rankings × items: what costs nothing, as its grade failed for a ranked passage; None where nothing can."""
        return None


class _OfItems(Computation):
    """A measure of `core.ITEM_MEASURES`."""

    condenses = False

    def __init__(self, measure: ItemMeasure) -> None:
        super().__init__(measure)
        self._row = core.ITEM_MEASURES[measure.NAME]
        self._levels = measure.shares() if "rel" in measure.params else {}
        which: Mapping[str, Literal["vital", "weighing"]] = {"vital": "vital", "own": "weighing"}
        self.needed = Needed(self.cutoff, which.get(self._row.weight, "items"))

    def check(self, items: Sequence[RubricItem]) -> None:
        """Refuses items that do not say what they weigh."""
        what = {"own": "weight", "each": ""}.get(self._row.weight, "importance")
        lacking = next((item for item in items if what and getattr(item, what) is None), None)
        if lacking is not None:
            raise MeasureError(
                f"{self.measure} needs the {what + ' (vital or okay)' * (what != 'weight')} of every item, and item "
                f"{lacking.item_id!r} of query {lacking.query_id!r} has none; score with a test bank that gives it, or "
                "assignments by the rules of nuggetizer's program",
                settings=("bank", "compat"),
            )

    def _scores(self, query: _Query, view: core.View) -> core.Scores:
        self.check(query.given.items)
        clip = bool(self.measure.params.get("clip"))
        found = core.items(view, query.everything.view, self._row, self._levels, clip)
        if query.is_expecting:
            return found
        if query.on_failed == "error" and view.failed is not None:
            lost = np.argwhere(view.failed.any(axis=1) & ~(view.best >= min(self._levels)))
            for _, place in lost[:1]:
                raise MeasureError(
                    f"query {query.query_id!r}: item {view.item_ids[place]!r} has a failed grade for a ranked passage; "
                    "grade again, or choose how failures count (expected or zero)",
                    settings=("on_failed",),
                )
        return found._replace(value=found.certain, spread=np.full(len(found.value), np.nan))

    def scores(self, query: _Query) -> core.Scores:
        """The values, and all that failed grades leave open of them."""
        return self._scores(query, query.plain.view(self.cutoff, self.judged_only))

    def best(self, query: _Query) -> float:
        """The value of all graded passages together, whatever the cutoff (the workbench's `_overall_`; finding the best
        k of them is NP-hard). Not known where there are penalties: a ranking may avoid them.
        """
        has_penalties = self._row.weight == "own" and (query.given.weights < 0).any()
        return math.nan if has_penalties else float(self._scores(query, query.everything.view()).value[0])

    def lost_penalties(self, query: _Query) -> Array | None:
        """Penalties that failed grades may have hidden, where these count as nothing: the score may be too high."""
        if self._row.weight != "own" or query.is_expecting:
            return None
        view = query.plain.view(self.cutoff, self.judged_only)
        if view.failed is None:
            return None
        lost: Array = view.failed.any(axis=1) & (view.weights < 0) & ~(view.best >= min(self._levels))
        return lost


class _OfFunction(Computation):
    """A measure of one's own."""

    condenses = False

    def scores(self, query: _Query) -> core.Scores:
        """What the function gives; it says itself what failed grades mean, if it asks `View.covered`."""
        certain = self._call(query.zeros)
        if query.on_failed == "error":
            _refuse_failed(query, query.plain, self.cutoff)
        value = self._call(query.plain) if query.is_expecting and query.failed is not None else certain
        unknown = np.full(len(value), np.nan)
        return core.Scores(value, certain, unknown, unknown, unknown)

    def _call(self, seen: _Seen) -> Array:
        view = seen.view(self.cutoff, self.judged_only)
        given = self.measure.SUPPORTED_PARAMS.keys() - {"cutoff", "judged_only"}
        function = self.measure.function
        try:
            value = np.asarray(function(view, **{name: self.measure[name] for name in given}), float)
        except Exception as error:
            code = function.__code__
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == code.co_filename]
            where = f"{code.co_filename}:{lines[-1] if lines else code.co_firstlineno}"
            said = " ".join(str(error).split())
            raise MeasureError(
                f"{self.measure}: query {view.query_id!r}: {type(error).__name__}: {said} ({where})"
            ) from None
        if value.shape != (len(view.grades),):
            raise MeasureError(
                f"{self.measure}: gives {value.shape} values for {len(view.grades)} rankings; give one number a ranking"
            )
        if np.isinf(value).any() or (np.isnan(value).any() and seen.grades.failed is None):
            raise MeasureError(f"{self.measure}: query {view.query_id!r}: a value is no finite number")
        return value

    def best(self, query: _Query) -> float:
        """Nobody knows."""
        return math.nan


def _refuse_failed(query: _Query, seen: _Seen, cutoff: int | None) -> None:
    """Refuses ranked passages of which a grade failed, where that is an error."""
    grades, rows = query.plain.grades, seen.placed.cut(cutoff).rows
    if grades.failed is None:
        return
    lost = np.append(grades.failed.any(axis=1), False)[rows]
    for number, place in np.argwhere(lost)[:1]:
        doc_id = list(grades.docs)[rows[number, place]]
        raise MeasureError(
            f"query {query.query_id!r}: a grade of the ranked passage {doc_id!r} failed; grade again, or choose how "
            "failures count (expected or zero)",
            settings=("on_failed",),
        )


class _OfRankings(Computation):
    """A measure that takes failed grades for none; a subclass has `value`, and says what it is normalised by."""

    @abstractmethod
    def value(self, seen: _Seen, ideal: QueryGrades) -> Array:
        """The values of rankings, normalised by the best ranking of `ideal`."""

    def has_bounds(self, grades: QueryGrades) -> bool:
        """Whether the value lies between those with failed grades as the lowest and as the highest."""
        return True

    def scores(self, query: _Query) -> core.Scores:
        """The values; those of which all that is known is that grades failed are none."""
        seen, grades = query.condensed if query.is_expecting else query.zeros, query.plain.grades
        value = self.value(seen, grades)
        nothing = np.full(len(value), np.nan)
        if query.failed is None:
            return core.Scores(value, value, value, value, nothing)
        cutoff = None if query.is_expecting and self.judged_only else self.cutoff
        if query.on_failed == "error":
            _refuse_failed(query, query.plain, cutoff)
        certain = self.value(query.zeros, grades) if query.void.any() else value
        if query.is_expecting and query.void.any():
            is_void, has_grade = np.append(query.void, False), np.append(grades.best > NONE, False)
            lost = is_void[query.plain.placed.cut(cutoff).rows].any(axis=1)
            value = np.where(lost & ~has_grade[seen.placed.cut(cutoff).rows].any(axis=1), np.nan, value)
        if not self.has_bounds(grades):
            return core.Scores(value, certain, nothing, nothing, nothing)
        lowest, highest = query.ends
        return core.Scores(value, certain, *self.bounds(lowest, highest), nothing)

    def bounds(self, lowest: _Seen, highest: _Seen) -> tuple[Array, Array]:
        """The values of the lowest grades, normalised by the highest, and the other way round."""
        return self.value(lowest, highest.grades), np.minimum(self.value(highest, lowest.grades), 1)

    def best(self, query: _Query) -> float:
        """The value of the best ranking."""
        grades = query.plain.grades
        if query.on_failed == "error":
            _refuse_failed(query, query.everything, None)
        if query.is_expecting and query.void.any() and not grades.valid.any():
            return math.nan
        rows = self.best_rows(grades)
        return math.nan if rows is None else float(self.value(query.ranked(rows), grades)[0])

    @abstractmethod
    def best_rows(self, grades: QueryGrades) -> list[int] | None:
        """The best ranking; None where it is not known."""


class _OfSubtopics(_OfRankings):
    """One of ir_measures' measures over subtopics, with rubric items as subtopics."""

    def value(self, seen: _Seen, ideal: QueryGrades) -> Array:
        """By `core.novelty`."""
        of = self.measure
        alpha, beta = (of[name] if name in of.SUPPORTED_PARAMS else 0.5 for name in ("alpha", "beta"))
        view = seen.view(self.cutoff, self.judged_only)
        return core.novelty(of.NAME, view, _pool(ideal)[0], of["rel"], self.cutoff, alpha, beta)

    def bounds(self, lowest: _Seen, highest: _Seen) -> tuple[Array, Array]:
        """Without a known subtopic, whatever is covered may be all there is.

        A greedy ideal may be a little less where more is covered, so where that normalises bounds are off by as much.
        """
        least, most = super().bounds(lowest, highest)
        rel = self.measure["rel"]
        if not (lowest.grades.grades >= rel).any():
            most = (highest.view(self.cutoff, self.judged_only).grades >= rel).any(axis=(1, 2)) + 0.0
        return least, most

    def best_rows(self, grades: QueryGrades) -> list[int]:
        """The greedy ideal ranking."""
        pool, rows = _pool(grades)
        covering = pool >= self.measure["rel"]
        useful = np.flatnonzero(covering.any(axis=1))
        return [rows[useful[place]] for place in core.greedy(covering[useful], None, 0.5)[1]] if len(useful) else []


def _pool(grades: QueryGrades) -> tuple[Array, list[int]]:
    """The passages × items, larger ids first, and their rows."""
    rows = [grades.docs[doc_id] for doc_id in sorted(grades.docs, reverse=True)]
    return grades.grades[rows], rows


class _OfLabels(_OfRankings):
    """A standard measure over one label a passage: by a formula of `core`, else by a program behind ir_measures."""

    def __init__(self, measure: Measure) -> None:
        is_ours = isinstance(measure, type(RubricQrels))
        super().__init__(measure, is_ours and measure.reads_items)
        self._inner = measure.inner() if is_ours else checked_measure(measure)
        self._label: Any = measure.value("label") if is_ours else "max"
        self._rel: int | None = measure.value("rel") if is_ours else None
        cutoff = self._inner.params.get("cutoff")
        self._cut = self.cutoff = cutoff if isinstance(cutoff, int) else None
        self.judged_only = bool(self._inner.params.get("judged_only"))
        self.needed = Needed(self.cutoff)
        # Programs sort in several ways, so they see the scores of labels that stand for themselves.
        self.reads_ids = self._is_program = not is_ours
        if self._label == "item":
            # Failed grades of an item may be anywhere.
            self.cutoff = None

    def _column(self, grades: QueryGrades) -> Array:
        return grades.label_column(self._label, self._rel)

    def _formula(self, grades: QueryGrades) -> Callable[[core.View, Array], Array] | None:
        """The value of labels and of all labels of the query; None where a program has to compute it."""
        of, scale = self._inner, grades.scale
        highest = scale.highest if scale is not None and self._label != "count" else None
        given = {name for name, value in of.params.items() if value != of.SUPPORTED_PARAMS[name].default}
        graded = {"nDCG": {"cutoff", "dcg"}, "ERR": {"cutoff"}, "RBP": {"cutoff", "p", "rel"}}
        allowed = graded.get(of.NAME, {"cutoff", "rel"})
        is_known = highest is not None or of.NAME not in ("ERR", "RBP") or "rel" in given
        lacks_cutoff = of.NAME in ("P", "R", "Success") and self._cut is None
        if of.NAME not in core.LABEL_MEASURES or not given <= allowed or not is_known or lacks_cutoff:
            return None
        level = of["rel"] if of.NAME not in graded or "rel" in given else None
        more = {"highest": highest or 1, "exponential": of.params.get("dcg") == "exp-log2"}
        if of.NAME == "RBP":
            more["persistence"] = of["p"]
        return lambda view, pool: core.labels(of.NAME, view, pool, self._cut, level, **more)

    def value(self, seen: _Seen, ideal: QueryGrades) -> Array:
        """By `core.labels`, where it has the measure.

        Raises:
            MeasureError: there are grades of items, which a program would silently collapse.
        """
        if self._is_program and not seen.grades.is_of_labels:
            inner = self._inner
            raise MeasureError(f"{inner} is no measure over rubric items; write RubricQrels(measure={str(inner)!r})")
        if self._label == "item":
            return self._over_items(seen)
        column = self._column(seen.grades)
        formula = None
        if not self._is_program or (column[column > NONE] % 1).any():
            formula = self._formula(seen.grades)
        if formula is not None:
            return formula(seen.of_labels(column, self._cut), self._column(ideal))
        if self._inner.NAME == "NumRel" and not self._is_program:
            # The program behind ir_measures' own counts from label 1 only. As there, 0 for what a run does not rank.
            return np.where(seen.placed.lengths > 0, np.count_nonzero(column >= self._inner["rel"]), 0.0)
        return self._by_program(seen)

    def _over_items(self, seen: _Seen) -> Array:
        """The mean over the items of the values by the grades of one item.

        For an item the passages leave the ranking whose grade of it failed, where failures count as expected.
        """
        grades, values = seen.grades, []
        level = self._inner.params.get("rel")
        formula = self._formula(grades)
        best = grades.grades.max(axis=0, initial=NONE)
        for place in np.flatnonzero(best > 0 if level is None else best >= level):
            if formula is None:
                raise MeasureError(
                    f"{self.measure}: nDCG, AP, RR, P, R and Success are averaged over items, and where the scale is "
                    "known ERR and RBP; name one of these"
                )
            column, one = grades.grades[:, place], seen
            if grades.failed is not None and grades.failed[:, place].any():
                one = _Seen(grades, seen.placed.without(grades.failed[:, place]))
            values.append(formula(one.of_labels(column, self._cut), column))
        return np.mean(values, axis=0) if values else np.zeros(len(seen.placed.rows))

    def _by_program(self, seen: _Seen) -> Array:
        """The values by the program that ir_measures has for the measure.

        Raises:
            MeasureError: it cannot compute them.
        """
        inner, shown = self._inner, self.measure
        query_id = seen.grades.query_id
        labels = seen.grades.labels(self._label, self._rel)
        qrels = [ir_measures.Qrel(query_id, doc_id, label) for doc_id, label in labels.items()]
        if not qrels:
            return np.full(len(seen.placed.rows), float(inner.DEFAULT))
        refuse_real(qrels, shown)
        with delegated([inner], shown):
            evaluator = other_providers().evaluator([inner], qrels)
        values = []
        for scored in self._scored(seen):
            value = float(inner.DEFAULT)
            if scored:
                run = [ScoredDoc(query_id, doc_id, score) for doc_id, score in scored]
                with delegated([inner], shown):
                    value = float(evaluator.calc_aggregate(run)[inner])
            if math.isnan(value):
                raise MeasureError(f"{shown} has no value for query {query_id!r}; leave the measure or the query out")
            values.append(value)
        return np.array(values)

    def _scored(self, seen: _Seen) -> Sequence[Sequence[tuple[str, float]]]:
        """The documents of each ranking with scores; those that say the rank, where none are known."""
        if any(isinstance(ids, ScoredIds) for ids in seen.ids):
            return [ids.given if isinstance(ids, ScoredIds) else () for ids in seen.ids]
        if any(seen.ids):
            return [[(doc_id, float(len(ids) - place)) for place, doc_id in enumerate(ids)] for ids in seen.ids]
        doc_ids = list(seen.grades.docs)
        start = "unjudged-"
        while any(doc_id.startswith(start) for doc_id in doc_ids):
            start = f"not-{start}"
        found = []
        placed = seen.placed
        for rows, ranks, length in zip(
            placed.rows.tolist(), placed.ranks.tolist(), placed.lengths.tolist(), strict=True
        ):
            ids = [f"{start}{rank}" for rank in range(1, length + 1)]
            for row, rank in zip(rows, ranks, strict=True):
                if rank:
                    ids[rank - 1] = doc_ids[row]
            # All above 0, which is what Compat takes documents for that are not ranked.
            found.append([(doc_id, float(length - place)) for place, doc_id in enumerate(ids)])
        return found

    def has_bounds(self, grades: QueryGrades) -> bool:
        """Of formulas here over labels whose ends are known: all of them rise with every label of the ranking, and only
        what they are normalised by stands against it.
        """
        known = self._label == "count" or (self._label == "max" and grades.scale is not None)
        return known and self._formula(grades) is not None

    def bounds(self, lowest: _Seen, highest: _Seen) -> tuple[Array, Array]:
        """By the formula, also where a program computes the value."""
        low, high = self._column(lowest.grades), self._column(highest.grades)
        formula = self._formula(lowest.grades)
        assert formula is not None
        least, most = formula(lowest.of_labels(low, self._cut), high), formula(highest.of_labels(high, self._cut), low)
        return least, np.minimum(most, 1)

    def best_rows(self, grades: QueryGrades) -> list[int] | None:
        """The passages by descending label; over items the best ranking is not known."""
        if self._label == "item":
            return None
        labels = grades.labels(self._label, self._rel)
        # A stable sort.
        order = sorted(sorted(labels), key=labels.__getitem__, reverse=True)
        return [grades.docs[doc_id] for doc_id in order]


class _OfCited(Computation):
    """A measure of what the citations of answers support."""

    condenses = False
    reads_ids = True

    def __init__(self, measure: SupportMeasure) -> None:
        super().__init__(measure)
        self.needed = Needed(None, measure.citations)

    def scores(self, query: _Query) -> core.Scores:
        """The values of the answers that are ranked."""

        def values(seen: _Seen, on_failed: OnFailed) -> Array:
            of = self.measure.of_query(seen.grades, on_failed)
            found = [of.value(ids) if ids else 0.0 for ids in seen.ids]
            return np.array([math.nan if value is None else value for value in found])

        value = values(query.plain, query.on_failed)
        nothing = np.full(len(value), np.nan)
        if query.failed is None:
            return core.Scores(value, value, value, value, nothing)
        certain = values(query.plain, "zero")
        ends = np.stack([values(seen, query.on_failed) for seen in query.ends])
        return core.Scores(value, certain, ends.min(axis=0), ends.max(axis=0), nothing)

    def best(self, query: _Query) -> float:
        """The value of the best answer of any run."""
        of = self.measure.of_query(query.plain.grades, query.on_failed)
        values = [of.value([doc_id]) for doc_id in sorted(query.given.answers)]
        known = [value for value in values if value is not None]
        return self.measure.best_of(known, default=0.0) if len(known) == len(values) else math.nan


def _computation_of(measure: Measure) -> Computation:
    if not is_supported(measure):
        return _OfLabels(measure)
    measure.validate_params()
    for kind, computation in (
        (ItemMeasure, _OfItems),
        (FunctionMeasure, _OfFunction),
        (SupportMeasure, _OfCited),
        (RubricMeasure, _OfLabels),
    ):
        if isinstance(measure, kind):
            return computation(measure)
    return _OfSubtopics(measure)


class SameScale:
    """The one scale of all grades of a call."""

    def __init__(self) -> None:
        # The scale, which may be unknown; None before the first query that has grades.
        self._found: tuple[Scale | None] | None = None

    def add(self, grades: QueryGrades) -> Scale | None:
        """Takes a query with grades, and gives its scale.

        Raises:
            InputError: others are on another scale.
        """
        if self._found is None:
            self._found = (grades.scale,)
        elif grades.scale != self._found[0]:
            raise InputError(
                f"query {grades.query_id!r}: its grades are on the scale {grades.scale or 'unknown'}, those of others "
                f"on {self._found[0] or 'unknown'}; score them apart",
                settings=("scale",),
            )
        return grades.scale


class Plan:
    """All measures of one call.

    Args:
        measures: measures of this package, or of ir_measures; order is kept.
        on_failed: how failed grades count, see `Grades`.

    Attributes:
        measures: as given.
        on_failed: as given.
        computations: how each of them is computed.
        depth: how many documents of a ranking they look at together; None when all.
        reads_ids: whether one has to know the ids of the documents that are ranked.

    Raises:
        MeasureError: a measure is not supported here.
    """

    def __init__(self, measures: Sequence[Measure], on_failed: OnFailed = "expected") -> None:
        self.measures, self.on_failed = list(measures), on_failed
        self.computations = list(map(_computation_of, self.measures))
        # Measures over judged passages alone look for them as deep as it takes.
        depths = [one.cutoff for one in self.computations if one.cutoff is not None and not one.judged_only]
        self.depth = max(depths, default=0) if len(depths) == len(self.computations) else None
        self.reads_ids = any(one.reads_ids for one in self.computations)
        self._condenses = on_failed == "expected" and any(one.condenses for one in self.computations)
        self._on: dict[Scale | None, Plan] = {}

    def on(self, scale: Scale | None) -> Plan:
        """The plan with all levels said: those that are left out are the scale's.

        Raises:
            MeasureError: the scale is not known, and a level is needed; or one that somebody wrote down is above it, or
                is reached by every grade.
        """
        if scale not in self._on:
            if scale is not None:
                self.refuse_above(scale)
            self._refuse_lowest(scale)
            said = [_said(one, scale) for one in self.measures]
            self._on[scale] = self if said == self.measures else Plan(said, self.on_failed)
        return self._on[scale]

    def refuse_above(self, scale: Scale) -> None:
        """Refuses a measure with a level that no grade of the scale reaches.

        Raises:
            MeasureError: naming measure, level and scale.
        """
        for measure in self.measures:
            for level in _said_levels(measure):
                refuse_unreachable(scale, level, str(measure))

    def _refuse_lowest(self, scale: Scale | None) -> None:
        """Refuses measures of items with a level that every grade reaches: every item would be covered."""
        lowest = 0 if scale is None else scale.lowest
        for measure, computation in zip(self.measures, self.computations, strict=True):
            level = min(_said_levels(measure), default=lowest + 1)
            if level <= lowest and isinstance(computation, _OfItems | _OfSubtopics):
                of = "" if scale is None else f" of the scale {lowest} to {scale.highest}"
                raise MeasureError(
                    f"{measure}: every grade{of} is {level} or more, so all that is graded would be covered; give a "
                    f"level above {lowest}",
                    settings=("measures", "rel"),
                )

    def said(self, scales: SameScale, grades: QueryGrades) -> Plan:
        """The plan with the levels of the scale that all grades of the call are on.

        Args:
            scales: what the queries before this one are on.
            grades: the next query.

        Raises:
            InputError: the query is on another scale.
            MeasureError: the scale is not known, and a level is needed.
        """
        self._refuse_labels(grades)
        return self.on(scales.add(grades)) if grades.docs else self

    def _refuse_labels(self, grades: QueryGrades) -> None:
        """Refuses measures over items where there is one label a passage."""
        if not grades.is_of_labels:
            return
        for measure, computation in zip(self.measures, self.computations, strict=True):
            if computation.reads_items:
                raise MeasureError(
                    f"{measure}: there are no item grades here, query {grades.query_id!r} has one label a passage; "
                    "name a standard measure, such as nDCG@10",
                    settings=("measures",),
                )

    def refuse_lacking(self, bank: Mapping[str, tuple[RubricItem, ...]], scale: Scale | None = None) -> None:
        """Refuses what the items cannot serve, before there is any grade.

        Args:
            bank: query -> its items.
            scale: that of the grades that will be; None where it is not known yet.

        Raises:
            MeasureError: a measure needs what an item lacks, such as importance or a weight, or a level that no grade
                of the scale reaches.
        """
        plan = self if scale is None else self.on(scale)
        for query_id, items in bank.items():
            plan.for_query(QueryGrades.empty(query_id, items, scale))

    def for_query(self, grades: QueryGrades) -> QueryScorer:
        """Prepares the scoring of any number of rankings of one query.

        Raises:
            MeasureError: the grades lack what a measure needs.
        """
        self._refuse_labels(grades)
        plan = self.on(grades.scale if grades.docs or grades.scale else ANY_LEVEL)
        return QueryScorer(plan, grades, plan._condenses)


def _said(measure: Measure, scale: Scale | None) -> Measure:
    if isinstance(measure, RubricMeasure):
        return measure.on(scale)
    # Of plain judgments over subtopics nobody says the scale, and the level is ir_measures' own, 1.
    if is_supported(measure) and "rel" not in measure.params and scale not in (None, ANY_LEVEL):
        level = scale.covers if scale is not None else 1
        return measure if level == measure["rel"] else measure(rel=level)
    return measure


def _said_levels(measure: Measure) -> list[int]:
    """The levels that a measure says, which grades are compared with."""
    if isinstance(measure, RubricMeasure):
        return measure.said_levels()
    return [measure.params["rel"]] if is_supported(measure) and "rel" in measure.params else []


class QueryScorer:
    """Scores rankings of one query for all measures of a plan; made by `Plan.for_query`."""

    def __init__(self, plan: Plan, grades: QueryGrades, condenses: bool) -> None:
        self._plan, self.grades = plan, grades
        for one in plan.computations:
            if isinstance(one, _OfItems):
                one.check(grades.items)
        counted = grades.counting_failed(plan.on_failed)
        # Passages of which all that is known is that grades failed leave some rankings, which are looked at deeper.
        self._void = counted.void if condenses and counted.void.any() else None
        self.depth = plan.depth if self._void is None else None

    def looked_at(self, rows: Rows) -> int:
        """How many documents of a ranking the measures look at."""
        depth = self._plan.depth
        if depth is None or len(rows) <= depth:
            return len(rows)
        if self._void is None:
            return depth
        kept = np.cumsum(~np.append(self._void, False)[rows])
        return int(np.searchsorted(kept, depth)) + 1 if kept[-1] >= depth else len(rows)

    def ranked(self, doc_ids: Sequence[str]) -> RankedRows:
        """A ranking of the query: documents best first, without repetition."""
        looked = doc_ids if self.depth is None else doc_ids[: self.depth]
        get = self.grades.docs.get
        rows = [get(doc_id, -1) for doc_id in looked]
        digest = ranking_digest(doc_ids[: self.looked_at(rows)])
        return RankedRows(rows, len(doc_ids), digest, doc_ids if self._plan.reads_ids else ())

    def score(self, rankings: Sequence[RankedRows]) -> QueryScores:
        """The values of all measures for all rankings, and how much of what they needed is there.

        Raises:
            MeasureError: on_failed is `error` and a grade that is needed failed.
        """
        width = max((len(one.rows) for one in rankings), default=0)
        step = max(1, _TOGETHER // max(width * len(self.grades.items), 1))
        if len(rankings) <= step:
            return self._score(rankings)
        parts = [self._score(rankings[start : start + step]) for start in range(0, len(rankings), step)]
        opened = [part.left_open or () for part in parts]
        return QueryScores(
            np.concatenate([part.values for part in parts], axis=1),
            [core.Scores(*map(np.concatenate, zip(*one, strict=True))) for one in zip(*opened, strict=True)] or None,
            {which: np.concatenate([part.needed[which] for part in parts]) for which in parts[0].needed},
            np.concatenate([part.lost_penalties for part in parts]),
            np.concatenate([part.dropped for part in parts]),
        )

    def _score(self, rankings: Sequence[RankedRows]) -> QueryScores:
        query, computations = _Query(self.grades, self._plan.on_failed, rankings), self._plan.computations
        with np.errstate(invalid="ignore", divide="ignore"):
            found = [one.scores(query) for one in computations]
        size = len(rankings)
        values = np.stack([one.value for one in found]) if found else np.zeros((0, size))
        needed = {which: self._coverage(query, rankings, which) for which in {one.needed: 0 for one in computations}}
        lost = [one for one in (computation.lost_penalties(query) for computation in computations) if one is not None]
        dropped = np.zeros(size, int)
        if self._void is not None:
            gone = np.append(self._void, False)
            tops = [np.array(one.rows[: self.looked_at(one.rows)], int) for one in rankings]
            dropped = np.array([gone[top].sum() for top in tops], int)
        return QueryScores(
            values,
            found if query.failed is not None else None,
            needed,
            np.any(lost, axis=0).sum(axis=1) if lost else np.zeros(size, int),
            dropped,
        )

    def _coverage(self, query: _Query, rankings: Sequence[RankedRows], which: Needed) -> Coverage:
        grades = self.grades
        if which.which in ("first", "citations"):
            return np.array([cited_coverage(grades, one.doc_ids, which.which == "first") for one in rankings]).reshape(
                -1, 3
            )
        asked = {"vital": grades.vital, "weighing": (grades.weights != 0) & ~np.isnan(grades.weights)}.get(which.which)
        columns = np.ones(len(grades.items), bool) if asked is None else asked
        size = int(columns.sum())
        counts = np.zeros((len(grades.docs) + 1, 2), int)
        counts[:-1, 0] = grades.valid[:, columns].sum(axis=1)
        if grades.failed is not None:
            counts[:-1, 1] = grades.failed[:, columns].sum(axis=1)
        placed = query.plain.placed.cut(which.cutoff)
        return np.concatenate([placed.lengths[:, None] * size, counts[placed.rows].sum(axis=1)], axis=1)

    def best_possible(self) -> list[float | None]:
        """The best value that any ranking of the graded passages could reach; None where it is not known."""
        query = _Query(self.grades, self._plan.on_failed, ())
        with np.errstate(invalid="ignore", divide="ignore"):
            found = [one.best(query) for one in self._plan.computations]
        return [None if math.isnan(value) else value for value in found]


def cited_coverage(grades: QueryGrades, doc_ids: Sequence[str], first: bool) -> tuple[int, int, int]:
    """How many of the grades of the pairs (sentence, cited document) of answers are needed, exist, and failed.

    Args:
        grades: the grades.
        doc_ids: the answers.
        first: whether the first citation of each sentence counts alone.
    """
    places = {item.item_id: place for place, item in enumerate(grades.items)}
    needed, pairs = 0, []
    for doc_id in doc_ids:
        for sentence in grades.answers.get(doc_id, ()):
            cited = sentence.citations[: 1 if first else None]
            needed += len(cited)
            pairs += [(grades.docs.get(one), places.get(sentence.item_id)) for one in cited]
    known = [pair for pair in pairs if None not in pair]
    if not known:
        return needed, 0, 0
    at = tuple(zip(*known, strict=True))
    failed = 0 if grades.failed is None else int(grades.failed[at].sum())
    return needed, int(grades.valid[at].sum()), failed
