"""All measures of a call over the rankings of a query: values, what these needed, what failed grades leave open."""

from __future__ import annotations

import math
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

import ir_measures
import numpy as np
from ir_measures.measures.base import Measure
from ir_measures.util import ScoredDoc
from msgspec import Struct
from msgspec.structs import replace

from rubric_measures.base.errors import InputError, MeasureError
from rubric_measures.measures import core
from rubric_measures.measures.core import NONE, Array
from rubric_measures.measures.grades import OnFailed, QueryGrades, refuse_unreachable, texts_digest
from rubric_measures.measures.measure import (
    FunctionMeasure,
    ItemMeasure,
    RubricMeasure,
    RubricQrels,
    SupportMeasure,
    checked_measure,
    delegated,
    is_supported,
    other_providers,
    refuse_real,
)
from rubric_measures.types.entities import RubricItem, ScoredIds
from rubric_measures.types.scales import ANY_LEVEL, Scale

# So many first documents of a ranking are its head.
HEAD = 20


class Needed(NamedTuple):
    """The grades that a measure needs: of which items, or of which citations of answers, in the first so many passages.

    Attributes:
        cutoff: how many passages; None for all.
        which: all items, `vital` ones, those that are `weighing` something; the `first` citation of each sentence or
            each of its `citations`.
    """

    cutoff: int | None
    which: Literal["items", "vital", "weighing", "first", "citations"] = "items"


Rows: TypeAlias = "Sequence[int] | Array"
"""Rows of a matrix of grades; -1 stands for a document that has none."""


class RankedRows(NamedTuple):
    """One ranking of a query, as measures look at it.

    Attributes:
        rows: for each document that is looked at, best first, its row among the grades; -1 where it has none.
        length: how many documents are ranked.
        digest: of the documents that are looked at; empty where there are none.
        doc_ids: these documents, where `Plan.reads_ids`; else empty.
        heads: the first documents, for who asks why they have no grade; empty where nobody does.
        is_tied: whether nearly all documents have one score.
    """

    rows: Rows
    length: int
    digest: str = ""
    doc_ids: Sequence[str] = ()
    heads: Sequence[str] = ()
    is_tied: bool = False


def tied(scores: Array) -> bool:
    """Whether nearly all scores, in order, are the one before them."""
    return bool(np.count_nonzero(scores[1:] == scores[:-1]) >= 0.9 * (len(scores) - 1) > 1)


class QueryScores(NamedTuple):
    """What R rankings of a query score.

    Attributes:
        values: measures × R; NaN where nothing can be said, because all grades that a value needs failed.
        left_open: measures × what failed grades leave open (see `core.Scores`) × R; None where none failed.
        needed: which grades measures need -> R × 3: how many (passages in the cutoff × items), of these valid, failed.
        dropped: R: passages without any valid grade that left the rankings of measures over labels and subtopics.
        is_partial: whether grades were asked only as far as some measures need them; then NaN is what others could be.
    """

    values: Array
    left_open: Array | None
    needed: Mapping[Needed, Array]
    dropped: Array
    is_partial: bool = False


class Shown(Struct, eq=False, dict=True):
    """The graded passages of R rankings of a query, best first, where they stand, and one reading of failed grades.

    Attributes:
        grades: the reading.
        rows: R × m: rows of the grades; -1 where a ranking has no more.
        ranks: R × m: ranks from 1; 0 where a ranking has no more.
        lengths: R: documents ranked.
        ids: of each ranking the documents, where `Plan.reads_ids`.
    """

    grades: QueryGrades
    rows: Array
    ranks: Array
    lengths: Array
    ids: Sequence[Sequence[str]] = ()
    _tops: dict[tuple[int | None, bool], tuple[Array, Array, Array]] = {}
    _views: dict[tuple[int | None, bool], core.View] = {}

    @classmethod
    def of(cls, grades: QueryGrades, rankings: Sequence[RankedRows]) -> Shown:
        """The graded passages of rankings."""
        size = len(rankings)
        looked = np.array([len(one.rows) for one in rankings], int)
        listed = [one.rows for one in rankings]
        # Many short lists are joined faster as such.
        flat = np.array([*chain(*listed)] if set(map(type, listed)) <= {list} else np.concatenate(listed), int)
        graded = np.flatnonzero(flat >= 0)
        numbers = np.repeat(np.arange(size), looked)[graded]
        counts = np.bincount(numbers, minlength=size)
        columns = np.arange(len(graded)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows, ranks = np.full((size, counts.max(initial=0)), -1), np.zeros((size, counts.max(initial=0)), int)
        rows[numbers, columns] = flat[graded]
        ranks[numbers, columns] = graded - (np.cumsum(looked) - looked)[numbers] + 1
        lengths = np.array([one.length for one in rankings], int)
        return cls(grades, rows, ranks, lengths, [one.doc_ids for one in rankings])

    def read(self, grades: QueryGrades) -> Shown:
        """The same passages, by another reading of their grades."""
        return Shown(grades, self.rows, self.ranks, self.lengths, self.ids)

    def without(self, gone: Array) -> Shown:
        """The rankings without some passages; those below move up.

        Args:
            gone: a passage each: whether it goes.
        """
        out = (self.rows >= 0) & np.append(gone, False)[self.rows]
        order = np.argsort(out, axis=1, kind="stable")
        ranks = np.where(out, 0, self.ranks - np.where(self.ranks > 0, out.cumsum(axis=1), 0))
        rows = np.where(out, -1, self.rows)
        rows, ranks = (np.take_along_axis(of, order, axis=1) for of in (rows, ranks))
        left_out = {doc_id for doc_id, row in self.grades.docs.items() if gone[row]} if any(self.ids) else set()
        ids = [_kept(of, left_out) for of in self.ids]
        return Shown(self.grades, rows, ranks, self.lengths - out.sum(axis=1), ids)

    @cached_property
    def zeros(self) -> Shown:
        """As if failed grades were not there."""
        return self if self.grades.failed is None else self.read(replace(self.grades, failed=None))

    @cached_property
    def ends(self) -> tuple[Shown, Shown]:
        """With all failed grades as the lowest, and as the highest of the scale."""
        scale = self.grades.scale
        # Where the scale is not known, any grade that covers will do: measures that need to know it have no bounds.
        lowest, highest = (self.read(self.grades.filled(end)) for end in ((0, 1 << 30) if scale is None else scale[:2]))
        return lowest, highest

    def top(self, cutoff: int | None, judged_only: bool = False) -> tuple[Array, Array, Array]:
        """Rows, ranks and lengths up to a rank; or of the first so many graded ones, which are then all there is."""
        key = cutoff, judged_only
        if key not in self._tops:
            rows, ranks, lengths = self.rows, self.ranks, self.lengths
            if judged_only:
                rows = rows[:, :cutoff]
                ranks = np.where(rows >= 0, np.arange(1, rows.shape[1] + 1), 0)
                lengths = np.count_nonzero(rows >= 0, axis=1)
            elif cutoff is not None:
                inside = (ranks > 0) & (ranks <= cutoff)
                width = int(inside.sum(axis=1).max(initial=0))
                rows, ranks = (np.where(inside, of, out)[:, :width] for of, out in ((rows, -1), (ranks, 0)))
                lengths = np.minimum(lengths, cutoff)
            self._tops[key] = rows, ranks, lengths
        return self._tops[key]

    def view(self, cutoff: int | None = None, judged_only: bool = False, column: Array | None = None) -> core.View:
        """The grades of the top k; or of a column of labels, as grades of one item."""
        rows, ranks, lengths = self.top(cutoff, judged_only)
        if column is not None:
            return core.View(np.append(column, NONE)[rows][:, :, None], None, ranks, lengths, *np.zeros((2, 1)))
        key = cutoff, judged_only
        if key not in self._views:
            of = self.grades
            # The last row stands for passages that nobody graded.
            none = np.full((1, len(of.items)), NONE)
            grades = np.concatenate([of.grades, none])[rows]
            failed = None if of.failed is None else np.concatenate([of.failed, none > 0])[rows]
            # All measures of the query share it.
            grades.flags.writeable = False
            item_ids = tuple(item.item_id for item in of.items)
            self._views[key] = core.View(grades, failed, ranks, lengths, of.weights, of.vital, item_ids, of.query_id)
        return self._views[key]


def _kept(ids: Sequence[str], out: set[str]) -> Sequence[str]:
    kept = [doc_id for doc_id in ids if doc_id not in out]
    return ScoredIds(kept, [pair for pair in ids.given if pair[0] not in out]) if isinstance(ids, ScoredIds) else kept


class Computation(ABC):
    """How a measure is computed.

    Attributes:
        measure: the measure.
        cutoff: how many passages of a ranking it looks at; None for all.
        judged_only: whether these are graded ones, so that it looks deeper.
        needed: the grades that it needs.
        levels: the levels that somebody wrote down, which grades are compared with.
        over_items: whether items are covered from a level on.
        reads_items: whether it reads grades of items, and not one label a passage.
        reads_ids: whether it has to know the ids of the documents that are ranked.
        condenses: whether passages whose grades all failed leave the rankings that it sees.
        settled_by: a grade of this level among the top k settles an item: no other one of it changes the value; None
            where others do, or grades of passages that are not ranked.
        asks: what it has to know of every item; empty where nothing.
    """

    condenses = True
    over_items = False
    reads_items = True
    reads_ids = False
    asks = ""
    settled_by: int | None = None

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        cutoff = measure.params.get("cutoff")
        self.cutoff = cutoff if isinstance(cutoff, int) else None
        self.judged_only = bool(measure.params.get("judged_only"))
        self.needed = Needed(self.cutoff)
        levels = [measure.params.get(name) for name in ("rel", "partial_rel")]
        self.levels = [level for level in levels if isinstance(level, int)]

    @abstractmethod
    def scores(self, query: QueryScorer, shown: Shown) -> core.Scores:
        """The values of rankings of the query; NaN is not known."""

    def best(self, query: QueryScorer) -> float:
        """The best value that any ranking of the graded passages could reach; NaN where it is not known."""
        return math.nan


class _OfItems(Computation):
    """A measure of `core.ITEM_MEASURES`."""

    condenses = False
    over_items = True

    def __init__(self, measure: ItemMeasure) -> None:
        super().__init__(measure)
        self._row = core.ITEM_MEASURES[measure.NAME]
        rel, partial = measure.params.get("rel"), measure.params.get("partial_rel")
        if measure.params.get("strict") or partial is None:
            partial = rel
        # Level -> the share of the credit that it earns.
        self._shares = {} if rel is None else {rel: 1.0} if partial == rel else {rel: 0.5, partial: 0.5}
        which: Mapping[str, Literal["vital", "weighing"]] = {"vital": "vital", "own": "weighing"}
        self.needed = Needed(self.cutoff, which.get(self._row.weight, "items"))
        self.asks = {"own": "weight", "each": ""}.get(self._row.weight, "importance")
        if self._shares and self._row.over == "bank" and not self.judged_only:
            self.settled_by = max(self._shares)

    def scores(self, query: QueryScorer, shown: Shown) -> core.Scores:
        """The values, and all that failed grades leave open of them. All graded passages count together whatever the
        cutoff: finding the best k of them is NP-hard.
        """
        view = shown.view() if shown is query.everything else shown.view(self.cutoff, self.judged_only)
        clip = bool(self.measure.params.get("clip"))
        found = core.items(view, query.everything.view, self._row, self._shares, clip)
        if query.is_expecting or view.failed is None:
            return found
        return found._replace(value=found.certain, spread=np.full(len(found.value), np.nan))

    def best(self, query: QueryScorer) -> float:
        """The value of all graded passages together (the workbench's `_overall_`). Not known where there are penalties:
        a ranking may avoid them.
        """
        if self._row.weight == "own" and (query.grades.weights < 0).any():
            return math.nan
        found = self.scores(query, query.everything)
        return float(found.value[0]) if not query.is_partial or found.low[0] >= found.high[0] else math.nan


class _OfFunction(Computation):
    """A measure of one's own."""

    condenses = False
    over_items = True

    def scores(self, query: QueryScorer, shown: Shown) -> core.Scores:
        """What the function gives; it says itself what failed grades mean, if it asks `View.covered`."""
        certain = self._call(shown.zeros)
        value = self._call(shown) if query.is_expecting and shown.grades.failed is not None else certain
        # Nobody knows what lies between; where no grade of the ranking failed, nothing does.
        failed, unknown = shown.view(self.cutoff, self.judged_only).failed, np.full(len(value), np.nan)
        end = value if failed is None else np.where(failed.any(axis=(1, 2)), np.nan, value)
        return core.Scores(value, certain, end, end, unknown)

    def _call(self, shown: Shown) -> Array:
        view = shown.view(self.cutoff, self.judged_only)
        given = self.measure.SUPPORTED_PARAMS.keys() - {"cutoff", "judged_only"}
        function = self.measure.function
        try:
            with warnings.catch_warnings():
                # Of what is no number the error below speaks.
                warnings.simplefilter("ignore", RuntimeWarning)
                value = np.asarray(function(view, **{name: self.measure[name] for name in given}), float)
        except (Exception, SystemExit) as error:
            code = function.__code__
            frames = traceback.extract_tb(error.__traceback__)
            lines = [code.co_firstlineno, *(one.lineno for one in frames if one.filename == code.co_filename)]
            said = f"{type(error).__name__}: {' '.join(str(error).split())} ({code.co_filename}:{lines[-1]})"
            raise MeasureError(f"{self.measure}: query {view.query_id!r}: {said}") from None
        if value.shape != (len(view.grades),):
            raise MeasureError(
                f"{self.measure}: gives {value.shape} values for {len(view.grades)} rankings; give one number a ranking"
            )
        if np.isinf(value).any() or (np.isnan(value).any() and shown.grades.failed is None):
            raise MeasureError(f"{self.measure}: query {view.query_id!r}: a value is no finite number")
        return value


class _OfRankings(Computation):
    """A measure that takes failed grades for none; a subclass has `value`, and says what it is normalised by."""

    @abstractmethod
    def value(self, query: QueryScorer, shown: Shown, ideal: QueryGrades) -> Array:
        """The values of rankings, normalised by the best ranking of `ideal`."""

    def scores(self, query: QueryScorer, shown: Shown) -> core.Scores:
        """The values; those of which all that is known is that grades failed are none."""
        grades = shown.grades
        if grades.failed is None:
            value = self.value(query, shown, grades)
            return core.Scores(value, value, value, value, np.full(len(value), np.nan))
        is_void, seen = grades.void.any(), shown
        # Without the passages of which all that is known is that grades failed.
        if is_void or not query.is_expecting:
            seen = shown.without(grades.void) if query.is_expecting else shown.zeros
        value = self.value(query, seen, grades)
        certain = self.value(query, shown.zeros, grades) if is_void else value
        if query.is_expecting and is_void:
            cutoff = None if self.judged_only else self.cutoff
            void, has_grade = np.append(grades.void, False), np.append(grades.best > NONE, False)
            lost = void[shown.top(cutoff)[0]].any(axis=1)
            value = np.where(lost & ~has_grade[seen.top(cutoff)[0]].any(axis=1), np.nan, value)
        return core.Scores(value, certain, *self.bounds(query, *shown.ends), np.full(len(value), np.nan))

    def bounds(self, query: QueryScorer, lowest: Shown, highest: Shown) -> tuple[Array, Array]:
        """The values of the lowest grades, normalised by the highest, and the other way round; NaN where values do not
        lie between these.
        """
        most = self.value(query, highest, lowest.grades)
        return self.value(query, lowest, highest.grades), np.minimum(most, 1)

    def best(self, query: QueryScorer) -> float:
        """The value of the best ranking."""
        grades = query.counted
        if query.is_expecting and grades.failed is not None and grades.void.any() and not grades.valid.any():
            return math.nan
        found = self.best_rows(query)
        doc_ids = list(grades.docs)
        ranked = Shown.of(grades, [RankedRows(found, len(found), "", [doc_ids[row] for row in found])])
        return float(self.value(query, ranked, grades)[0])

    @abstractmethod
    def best_rows(self, query: QueryScorer) -> Array:
        """The best ranking, or the part of it that counts."""


class _OfSubtopics(_OfRankings):
    """One of ir_measures' measures over subtopics, with rubric items as subtopics."""

    over_items = True

    def value(self, query: QueryScorer, shown: Shown, ideal: QueryGrades) -> Array:
        """By `core.novelty`."""
        of = self.measure
        alpha, beta = (of[name] if name in of.SUPPORTED_PARAMS else 0.5 for name in ("alpha", "beta"))
        view, pool = shown.view(self.cutoff, self.judged_only), ideal.grades[query.by_id]
        return core.novelty(of.NAME, view, pool, of["rel"], self.cutoff, alpha, beta)

    def bounds(self, query: QueryScorer, lowest: Shown, highest: Shown) -> tuple[Array, Array]:
        """Without a known subtopic, whatever is covered may be all there is.

        A greedy ideal may be a little less where more is covered, so where that normalises bounds are off by as much.
        """
        least, most = super().bounds(query, lowest, highest)
        rel = self.measure["rel"]
        if not (lowest.grades.grades >= rel).any():
            most = (highest.view(self.cutoff, self.judged_only).grades >= rel).any(axis=(1, 2)) + 0.0
        return least, most

    def best_rows(self, query: QueryScorer) -> Array:
        """The greedy ideal ranking."""
        covering = query.counted.grades[query.by_id] >= self.measure["rel"]
        chosen: Array = query.by_id[core.greedy(covering, self.cutoff, 0.5)[1]]
        return chosen


class _OfLabels(_OfRankings):
    """A standard measure over one label a passage: by a formula of `core`, else by a program behind ir_measures."""

    reads_items = False

    def __init__(self, measure: Measure) -> None:
        super().__init__(measure)
        is_ours = isinstance(measure, type(RubricQrels))
        self._inner = measure.inner if is_ours else checked_measure(measure)
        self._label: Any = measure.params.get("label", "max") if is_ours else "max"
        self._rel: int | None = measure.params.get("rel") if is_ours else None
        cutoff, level = self._inner.params.get("cutoff"), self._inner.params.get("rel")
        self.cutoff = cutoff if isinstance(cutoff, int) else None
        self.judged_only = bool(self._inner.params.get("judged_only"))
        self.needed = Needed(self.cutoff)
        # Programs sort in several ways, so they see the scores of labels that stand for themselves.
        self._is_program = not is_ours
        self.reads_ids = not is_ours or self._formula(None) is None
        if not is_ours:
            self.levels = []
        elif self._label != "count" and isinstance(level, int):
            self.levels.append(level)

    def _formula(self, scale: Scale | None) -> Mapping[str, Any] | None:
        """What `core.labels` is told of the measure; None where a program has to compute it."""
        of = self._inner
        highest = scale.highest if scale is not None and self._label != "count" else None
        given = {name for name, value in of.params.items() if value != of.SUPPORTED_PARAMS[name].default}
        graded = {"nDCG": {"cutoff", "dcg"}, "ERR": {"cutoff"}, "RBP": {"cutoff", "p", "rel"}}
        is_known = highest is not None or of.NAME not in ("ERR", "RBP") or "rel" in given
        lacks_cutoff = of.NAME in ("P", "R", "Success") and self.cutoff is None
        is_ours = of.NAME in core.LABEL_MEASURES and given <= graded.get(of.NAME, {"cutoff", "rel"})
        if not (is_ours and is_known) or lacks_cutoff:
            return None
        return {
            "name": of.NAME,
            "cutoff": self.cutoff,
            "level": of["rel"] if of.NAME not in graded or "rel" in given else None,
            "highest": highest or 1,
            "persistence": of["p"] if of.NAME == "RBP" else 0.8,
            "exponential": of.params.get("dcg") == "exp-log2",
        }

    def value(self, query: QueryScorer, shown: Shown, ideal: QueryGrades) -> Array:
        """By `core.labels`, where it has the measure.

        Raises:
            MeasureError: there are grades of items, which a program would silently collapse.
        """
        grades, inner = shown.grades, self._inner
        if self._is_program and not grades.is_of_labels:
            raise MeasureError(f"{inner} is no measure over rubric items; write RubricQrels(measure={str(inner)!r})")
        column = grades.label_column(self._label, self._rel)
        formula = None
        if not self._is_program or (column[column > NONE] % 1).any():
            formula = self._formula(grades.scale)
        if formula is not None:
            pool = column if ideal is grades else ideal.label_column(self._label, self._rel)
            return core.labels(view=shown.view(self.cutoff, column=column), pool=pool, **formula)
        if inner.NAME == "NumRel" and not self._is_program:
            # The program behind ir_measures' own counts from label 1 only. As there, 0 for what a run does not rank.
            return np.where(shown.lengths > 0, np.count_nonzero(column >= inner["rel"]), 0.0)
        return self._by_program(shown)

    def _by_program(self, shown: Shown) -> Array:
        """The values by the program that ir_measures has for the measure.

        Raises:
            MeasureError: it cannot compute them.
        """
        inner, name = self._inner, self.measure
        query_id = shown.grades.query_id
        labels = shown.grades.labels(self._label, self._rel)
        qrels = [ir_measures.Qrel(query_id, doc_id, label) for doc_id, label in labels.items()]
        if not qrels:
            return np.full(len(shown.rows), float(inner.DEFAULT))
        refuse_real(qrels, name)
        with delegated([inner], name):
            evaluator = other_providers().evaluator([inner], qrels)
        values = []
        for ids in shown.ids:
            value = float(inner.DEFAULT)
            if ids:
                # Ranks as scores are all above 0, which is what Compat takes documents for that are not ranked.
                ranks = ((doc_id, float(len(ids) - place)) for place, doc_id in enumerate(ids))
                scored = ids.given if isinstance(ids, ScoredIds) and self._is_program else ranks
                run = [ScoredDoc(query_id, doc_id, score) for doc_id, score in scored]
                with delegated([inner], name):
                    value = float(evaluator.calc_aggregate(run)[inner])
            if math.isnan(value):
                raise MeasureError(f"{name} has no value for query {query_id!r}; leave the measure or the query out")
            values.append(value)
        return np.array(values)

    def bounds(self, query: QueryScorer, lowest: Shown, highest: Shown) -> tuple[Array, Array]:
        """By the formula, also where a program computes the value: of formulas here over labels whose ends are known.
        All of them rise with every label of the ranking, and only what they are normalised by stands against it.
        """
        formula, unknown = self._formula(lowest.grades.scale), np.full(len(lowest.rows), np.nan)
        if formula is None or (self._label == "max" and lowest.grades.scale is None):
            return unknown, unknown
        low, high = (one.grades.label_column(self._label, self._rel) for one in (lowest, highest))
        least = core.labels(view=lowest.view(self.cutoff, column=low), pool=high, **formula)
        most = core.labels(view=highest.view(self.cutoff, column=high), pool=low, **formula)
        return least, np.minimum(most, 1)

    def best_rows(self, query: QueryScorer) -> Array:
        """The passages by descending label."""
        grades = query.counted
        column = grades.label_column(self._label, self._rel)
        order: Array = np.argsort(-column, kind="stable")
        return order[column[order] > NONE]


class _OfCited(Computation):
    """A measure of what the citations of answers support."""

    condenses = False
    reads_ids = True

    def __init__(self, measure: SupportMeasure) -> None:
        super().__init__(measure)
        self.needed = Needed(None, measure.citations)

    def scores(self, query: QueryScorer, shown: Shown) -> core.Scores:
        """The values of the answers that are ranked."""

        def values(shown: Shown, on_failed: OnFailed) -> Array:
            of = self.measure.of_query(shown.grades, on_failed)
            found = [of(ids) if ids else 0.0 for ids in shown.ids]
            return np.array([math.nan if value is None else value for value in found])

        value = values(shown, query.on_failed)
        nothing = np.full(len(value), np.nan)
        if shown.grades.failed is None:
            return core.Scores(value, value, value, value, nothing)
        certain = values(shown, "zero")
        ends = np.stack([values(end, query.on_failed) for end in shown.ends])
        return core.Scores(value, certain, ends.min(axis=0), ends.max(axis=0), nothing)

    def best(self, query: QueryScorer) -> float:
        """The value of the best answer of any run."""
        of = self.measure.of_query(query.counted, query.on_failed)
        values = [of([doc_id]) for doc_id in sorted(query.grades.answers)]
        known = [value for value in values if value is not None]
        return self.measure.best_of(known, default=0.0) if len(known) == len(values) else math.nan


_KINDS: Sequence[tuple[type[Measure], type[Computation]]] = (
    (ItemMeasure, _OfItems),
    (FunctionMeasure, _OfFunction),
    (SupportMeasure, _OfCited),
    (RubricMeasure, _OfLabels),
)


class Plan:
    """All measures of one call.

    Args:
        measures: measures of this package, or of ir_measures; order is kept.
        on_failed: how failed grades count, see `Grades`.

    Attributes:
        measures: as given.
        on_failed: as given.
        said: the plan with the levels of the scale that all queries so far are on.
        computations: how each measure is computed.
        depth: how many documents of a ranking they look at together; None when all.
        reads_ids: whether one has to know the ids of the documents that are ranked.
        condenses: whether passages whose grades all failed leave some of the rankings.

    Raises:
        MeasureError: a measure is not supported here.
    """

    def __init__(self, measures: Sequence[Measure], on_failed: OnFailed = "expected") -> None:
        self.measures, self.on_failed, self.said = list(measures), on_failed, self
        self.computations: list[Computation] = []
        for measure in self.measures:
            if is_supported(measure):
                measure.validate_params()
            other = _OfSubtopics if is_supported(measure) else _OfLabels
            kind = next((computation for kind, computation in _KINDS if isinstance(measure, kind)), other)
            self.computations.append(kind(measure))
        # Measures over judged passages alone look for them as deep as it takes.
        depths = [one.cutoff for one in self.computations if one.cutoff is not None and not one.judged_only]
        self.depth = max(depths, default=0) if len(depths) == len(self.computations) else None
        self.reads_ids = any(one.reads_ids for one in self.computations)
        self.condenses = on_failed == "expected" and any(one.condenses for one in self.computations)
        # The scale, which may be unknown; None before the first query that has grades.
        self._scale: tuple[Scale | None] | None = None
        self._on: dict[Scale | None, Plan] = {}

    def on(self, scale: Scale | None) -> Plan:
        """The plan with all levels said: those that are left out are the scale's.

        Raises:
            MeasureError: the scale is not known, and a level is needed; or one that somebody wrote down is above it, or
                is reached by every grade, so that every item would be covered.
        """
        if scale in self._on:
            return self._on[scale]
        lowest, said = 0 if scale is None else scale.lowest, list[Measure]()
        for one in self.computations:
            for level in (level for level in one.levels if scale is not None and level > scale.highest):
                refuse_unreachable(scale, level, str(one.measure))
            measure, level = one.measure, min(one.levels, default=lowest + 1)
            if one.over_items and level <= lowest:
                of = "" if scale is None else f" of the scale {lowest} to {scale.highest}"
                raise MeasureError(
                    f"{measure}: every grade{of} is {level} or more, so all that is graded would be covered; give a "
                    f"level above {lowest}",
                    settings=("measures", "rel"),
                )
            if isinstance(measure, RubricMeasure):
                measure = measure.on(scale)
            elif one.over_items and not one.levels and scale is not None and scale != ANY_LEVEL:
                # Of plain judgments over subtopics nobody says the scale, and the level is ir_measures' own, 1.
                measure = measure if scale.covers == measure["rel"] else measure(rel=scale.covers)
            said.append(measure)
        self._on[scale] = self if said == self.measures else Plan(said, self.on_failed)
        return self._on[scale]

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
            InputError: the query is on another scale than those before it.
            MeasureError: the grades lack what a measure needs.
        """
        for one in self.computations if grades.is_of_labels else ():
            if one.reads_items:
                raise MeasureError(
                    f"{one.measure}: there are no item grades here, query {grades.query_id!r} has one label a passage; "
                    "name a standard measure, such as nDCG@10",
                    settings=("measures",),
                )
        plan = self.on(grades.scale if grades.docs or grades.scale else ANY_LEVEL)
        scorer = QueryScorer(plan, grades)
        if grades.docs:
            if self._scale is not None and grades.scale != self._scale[0]:
                raise InputError(
                    f"query {grades.query_id!r}: its grades are on the scale {grades.scale or 'unknown'}, those of "
                    f"others on {self._scale[0] or 'unknown'}; score them apart",
                    settings=("scale",),
                )
            self._scale, self.said = (grades.scale,), plan
        return scorer


class QueryScorer:
    """Scores rankings of one query for all measures of a plan; made by `Plan.for_query`.

    Attributes:
        measures: the measures, with all levels said.
        grades: the grades.
        counted: the grades as failed ones count.
        everything: all graded passages, as one ranking.
        on_failed: how these count.
        is_expecting: whether they count as they are expected.
        depth: how many documents of a ranking have to be known; None for all.
        is_partial: whether values may hang on grades that were never asked.
        void: which passages leave some rankings, as all that is known of them is that grades failed; None where none.
    """

    def __init__(self, plan: Plan, grades: QueryGrades) -> None:
        self._plan, self.measures, self.grades, self.on_failed = plan, plan.measures, grades, plan.on_failed
        self.is_expecting = plan.on_failed == "expected"
        for one in (of for of in plan.computations if of.asks):
            lacking = next((item for item in grades.items if getattr(item, one.asks) is None), None)
            if lacking is not None:
                raise MeasureError(
                    f"{one.measure} needs the {one.asks + ' (vital or okay)' * (one.asks != 'weight')} of every item, "
                    f"and item {lacking.item_id!r} of query {lacking.query_id!r} has none; score with a test bank that "
                    "gives it, or assignments by the rules of nuggetizer's program",
                    settings=("bank", "compat"),
                )
        self.counted = grades.counting_failed(plan.on_failed) if isinstance(plan.on_failed, int) else grades
        self.is_partial = False
        if grades.is_partial:
            # What was never asked could be any grade, as one that failed: values that hang on it are not known.
            lost = np.zeros(grades.grades.shape, bool) if self.counted.failed is None else self.counted.failed
            is_open = ~self.counted.valid & ~lost if plan.on_failed == "zero" else ~self.counted.valid | lost
            self.is_partial = bool(is_open.any())
            self.counted = replace(self.counted, failed=is_open if self.is_partial else None)
            self.is_expecting, self.on_failed = False, "zero"
        size = len(grades.docs)
        self.everything = Shown(self.counted, np.arange(size)[None], np.arange(1, size + 1)[None], np.array([size]))
        # Rankings that passages leave are looked at deeper.
        may_leave = plan.condenses and not grades.is_partial and self.counted.failed is not None
        self.void = self.counted.void if may_leave and self.counted.void.any() else None
        self.depth = plan.depth if self.void is None else None

    @cached_property
    def by_id(self) -> Array:
        """The rows of all graded passages, those with larger ids first."""
        return np.array([self.grades.docs[doc_id] for doc_id in sorted(self.grades.docs, reverse=True)], int)

    def ranked(self, doc_ids: Sequence[str]) -> RankedRows:
        """A ranking of the query: documents best first, without repetition."""
        looked = doc_ids if self.depth is None else doc_ids[: self.depth]
        get = self.grades.docs.get
        rows = [get(doc_id, -1) for doc_id in looked]
        ids = doc_ids if self._plan.reads_ids else ()
        is_tied = isinstance(doc_ids, ScoredIds) and tied(np.sort([score for _, score in doc_ids.given]))
        # The id of a single document says as much.
        digest = looked[0] if len(looked) == 1 else texts_digest(looked)
        return RankedRows(rows, len(doc_ids), digest, ids, doc_ids[:HEAD], is_tied)

    def score(self, rankings: Sequence[RankedRows]) -> QueryScores:
        """The values of all measures for all rankings, and how much of what they needed is there."""
        shown, computations = Shown.of(self.counted, rankings), self._plan.computations
        with np.errstate(invalid="ignore", divide="ignore"):
            found = [one.scores(self, shown) for one in computations]
            scores: Array = np.array(found).reshape(len(found), 5, len(rankings))
            if self.is_partial:
                # Known, although grades were never asked, where both ends are the same.
                scores[:, 0] = np.where(scores[:, 2] >= scores[:, 3], scores[:, 1], np.nan)
        gone = np.zeros(len(self.grades.docs), bool) if self.void is None else self.void
        dropped = np.append(gone, False)[shown.rows].sum(axis=1)
        grades, needed = self.grades, dict[Needed, Array]()
        for cutoff, of in {one.needed: 0 for one in computations}:
            if of in ("first", "citations"):
                cited = [cited_coverage(grades, one.doc_ids, of == "first") for one in rankings]
                needed[Needed(cutoff, of)] = np.array(cited).reshape(-1, 3)
                continue
            (rows, _, lengths), columns = shown.top(cutoff), grades.asked[of] + 0
            needed[Needed(cutoff, of)] = counts = np.zeros((len(rankings), 3), int)
            counts[:, 0] = lengths * columns.sum()
            # Of how many items a passage has a valid grade, and a failed one; last come passages without grades.
            for place, cells in enumerate((grades.valid, grades.failed), 1):
                if cells is not None:
                    counts[:, place] = np.append(cells @ columns, 0)[rows].sum(axis=1)
        left_open = None if self.counted.failed is None else scores
        return QueryScores(scores[:, 0], left_open, needed, dropped, self.grades.is_partial)

    def best_possible(self) -> list[float | None]:
        """The best value that any ranking of the graded passages could reach; None where it is not known."""
        with np.errstate(invalid="ignore", divide="ignore"):
            # Of measures that need all grades another ranking may be the best, if those never asked are others.
            needs = [self.is_partial and one.settled_by is None for one in self._plan.computations]
            found = [
                math.nan if all_ else one.best(self) for one, all_ in zip(self._plan.computations, needs, strict=True)
            ]
        return [None if math.isnan(value) else value for value in found]


def cited_coverage(grades: QueryGrades, doc_ids: Sequence[str], first: bool) -> tuple[int, int, int]:
    """How many of the grades of the pairs (sentence, cited document) of answers are needed, exist, and failed.

    Args:
        grades: the grades.
        doc_ids: the answers.
        first: whether the first citation of each sentence counts alone.
    """
    places = {item.item_id: place for place, item in enumerate(grades.items)}
    sentences = [one for doc_id in doc_ids for one in grades.answers.get(doc_id, ())]
    cited = [(doc_id, one.item_id) for one in sentences for doc_id in one.citations[: 1 if first else None]]
    pairs = [(grades.docs.get(doc_id), places.get(item_id)) for doc_id, item_id in cited]
    at: Any = tuple(zip(*(pair for pair in pairs if None not in pair), strict=True)) or ([], [])
    failed = 0 if grades.failed is None else int(grades.failed[at].sum())
    return len(pairs), int(grades.valid[at].sum()), failed
