"""What a measure is: its parameters, what it sees of a query, measures of plug-ins.

What a measure is (a name, parameters, how a query's grades make its value), and what it sees of a query.

What measures share of a query (labels, weights) is made once for all measures of a call. A passage's covered items are
a bit mask, so the best grades of k passages are k bitwise ors, however many items there are.

Measures of other packages: registered with all others when `rubric_measures` is imported.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from itertools import compress
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

import ir_measures
from ir_measures.measures.base import _NOT_PROVIDED, Agg, MeanAgg, Measure, ParamInfo

from rubric_measures.base.errors import MeasureError
from rubric_measures.base.plugins import PlugIn, plug_ins, usable
from rubric_measures.measures.grades import Label, OnFailed, QueryGrades, levels_with_failed
from rubric_measures.types.scales import Scale

T = TypeVar("T")
# A ranking without a cutoff; longer than any ranking.
_ALL = 1 << 60
_RANKS = range(1, _ALL)


class Coverage(NamedTuple):
    """How many of the grades that a value needed exist.

    Attributes:
        needed: passages in the cutoff × items of the query.
        graded: those with a valid grade.
        failed: those whose grade failed; the rest was never graded.
    """

    needed: int
    graded: int
    failed: int


class OfItems(NamedTuple):
    """The grades of some items in the first so many passages: those of the others say nothing.

    Attributes:
        cutoff: how many passages; None for all.
        which: `vital` items, or those that are `weighing` something.
    """

    cutoff: int | None
    which: Literal["vital", "weighing"]


# Which grades a measure needs, as `QueryContext.coverage` counts them.
Needed: TypeAlias = int | str | OfItems | None


class Top:
    """The graded passages among the first k, and the items that they reach.

    Attributes:
        doc_ids: the passages, best first.
        by_grade: grade -> mask of the items that have this grade in one of the passages.
    """

    __slots__ = ("_at_least", "_failed", "by_grade", "doc_ids")

    def __init__(self, doc_ids: Sequence[str], by_grade: Mapping[float, int]) -> None:
        self.doc_ids = doc_ids
        self.by_grade = by_grade
        self._failed: int | None = None
        # Several measures ask for the same few levels.
        self._at_least: dict[int, int] = {}

    def at_least(self, rel: int) -> int:
        """The mask of the items that are reached with a grade of `rel` or better."""
        union = self._at_least.get(rel)
        if union is None:
            union = 0
            for grade, mask in self.by_grade.items():
                if grade >= rel:
                    union |= mask
            self._at_least[rel] = union
        return union

    def failed(self, failed: Mapping[str, int]) -> int:
        """The mask of the items whose grade failed for one of the passages; `failed` is that of their query."""
        if self._failed is None:
            lost = 0
            for mask in map(failed.get, self.doc_ids):
                if mask:
                    lost |= mask
            self._failed = lost
        return self._failed

    def filled(self, failed: Mapping[str, int], grade: int) -> Top:
        """The same passages with a grade in the place of those that failed."""
        return Top(self.doc_ids, {**self.by_grade, grade: self.by_grade.get(grade, 0) | self.failed(failed)})


class RankedDocs:
    """A ranking of one query, as the measures look at it; made by `QueryContext.ranked`.

    Attributes:
        doc_ids: the ranking, best first.
        judged: the graded passages among them, best first.
        ranks: where those stand, from 1, parallel to `judged`.
    """

    __slots__ = ("_kept", "_query", "_seen", "_tops", "doc_ids", "judged", "ranks")

    def __init__(self, query: QueryContext, doc_ids: Sequence[str], depth: int | None = None) -> None:
        graded = query.docs
        self.doc_ids = doc_ids
        looked_at = doc_ids if depth is None else doc_ids[:depth]
        self.ranks = list(compress(_RANKS, map(graded.__contains__, looked_at)))
        self.judged = [doc_ids[rank - 1] for rank in self.ranks]
        self._query = query
        self._tops: dict[tuple[bool, int], Top] = {}
        self._kept: dict[Hashable, Any] = {}
        self._seen: RankedDocs | None = None

    def seen_by(self, query: QueryContext) -> RankedDocs:
        """The same ranking, as measures look at it where failed grades count as one (`QueryContext.filled`)."""
        seen = RankedDocs.__new__(RankedDocs)
        seen.doc_ids, seen.judged, seen.ranks, seen._kept = self.doc_ids, self.judged, self.ranks, self._kept
        seen._query, seen._tops, seen._seen = query, {}, self
        return seen

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` makes of `judged` and `ranks` alone, made once for all that give this key (`seen_by`, too)."""
        if key not in self._kept:
            self._kept[key] = make()
        found: T = self._kept[key]
        return found

    def within(self, cutoff: int | None) -> int:
        """How many graded passages stand at ranks up to the cutoff (None: anywhere)."""
        return len(self.ranks) if cutoff is None else bisect_right(self.ranks, cutoff)

    def ranks_of(self, chosen: Set[str], cutoff: int | None) -> list[int]:
        """The ranks, up to the cutoff, of the graded passages that are in `chosen`."""
        judged = self.judged if cutoff is None else self.judged[: self.within(cutoff)]
        return list(compress(self.ranks, map(chosen.__contains__, judged)))

    def top(self, kind: tuple[bool, int]) -> Top:
        """The graded passages in a cutoff and the items they reach.

        Args:
            kind: what `QueryContext.top` gave.
        """
        found = self._tops.get(kind)
        if found is None:
            if self._seen is None:
                self._tops = self._query.tops(self)
            else:
                self._tops[kind] = self._query.filled_top(self._seen.top(kind))
            found = self._tops[kind]
        return found


class QueryContext:
    """The grades of one query, and what the measures of one call make of them.

    Args:
        grades: the compiled grades.
        on_failed: how failed grades count; see `Grades`.

    Attributes:
        grades: the grades as they count: where failed ones count as a grade, none is failed here.
        on_failed: as given.
        items: the complete bank of the query.
        void: the passages of which all that is known is that grades failed.
        docs: the passages that have grades.
    """

    def __init__(self, grades: QueryGrades, on_failed: OnFailed = "expected") -> None:
        self.grades = grades.counting_failed(on_failed)
        self.on_failed: OnFailed = on_failed
        self.query_id = grades.query_id
        self.items = grades.items
        self._given = grades
        self.docs: Collection[str] = grades.levels
        # The passages of which all that is known is that grades failed.
        self.void = self.grades.void
        # Whether only judged passages count -> the cutoffs that measures asked for, ascending.
        self._cutoffs: dict[bool, list[int]] = {}
        self._shared: dict[Hashable, Any] = {}
        # Where failed grades count as one here: those, and as which.
        self._filled: tuple[Mapping[str, int], int] = {}, 0

    @cached_property
    def valid(self) -> Mapping[str, int]:
        """doc_id -> number of its valid grades."""
        levels = self._given.levels
        return {doc_id: sum(map(int.bit_count, of_doc.values())) for doc_id, of_doc in levels.items()}

    def shared(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` makes, made once for all measures that give this key."""
        if key not in self._shared:
            self._shared[key] = make()
        found: T = self._shared[key]
        return found

    def with_zeros(self) -> QueryContext:
        """The same grades, of which failed ones count as zero; rankings of the one can be scored by the other."""
        zeros = QueryContext(self.grades, "zero")
        zeros._cutoffs = self._cutoffs
        return zeros

    def filled(self, grade: int) -> QueryContext:
        """The same query with a grade in the place of all that failed."""
        failed = self.grades.failed
        levels = levels_with_failed(self.grades.levels, failed, grade)
        query = QueryContext(replace(self.grades, levels=levels, failed={}))
        query._filled, query._cutoffs = (failed, grade), self._cutoffs
        return query

    def filled_top(self, top: Top) -> Top:
        """The top k of a ranking with the grade in the place of those that failed; see `filled`."""
        return top.filled(*self._filled)

    def ranked(self, doc_ids: Sequence[str], depth: int | None = None) -> RankedDocs:
        """A ranking of the query.

        Args:
            doc_ids: best first, without repetition.
            depth: how many of them the measures look at; None when all.
        """
        return RankedDocs(self, doc_ids, depth)

    def top(self, cutoff: int | None = None, judged_only: bool = False) -> tuple[bool, int]:
        """Asks for the items that the top k reach: what it gives is for `RankedDocs.top`.

        All cutoffs that are asked for before the first ranking is scored are computed in one pass over it.
        """
        kind = judged_only, cutoff or _ALL
        cutoffs = self._cutoffs.setdefault(judged_only, [])
        if kind[1] not in cutoffs:
            insort(cutoffs, kind[1])
        return kind

    def tops(self, ranked: RankedDocs) -> dict[tuple[bool, int], Top]:
        """All that `top` was asked for, of one ranking."""
        levels, judged = self.grades.levels, ranked.judged
        found: dict[tuple[bool, int], Top] = {}
        for judged_only, cutoffs in self._cutoffs.items():
            union: dict[float, int] = {}
            start = 0
            for cutoff in cutoffs:
                length = cutoff if judged_only else ranked.within(cutoff)
                for doc_id in judged[start:length]:
                    if not union:
                        union = dict(levels[doc_id])
                        continue
                    for grade, mask in levels[doc_id].items():
                        union[grade] = union.get(grade, 0) | mask
                start = length
                found[judged_only, cutoff] = Top(judged[:length], union if cutoff == cutoffs[-1] else union.copy())
        return found

    @property
    def everything(self) -> Top:
        """All graded passages, in the order of their ids, and the items they reach."""
        return self.shared("everything", self._everything)

    def _everything(self) -> Top:
        union: dict[float, int] = {}
        for levels in self.grades.levels.values():
            for grade, mask in levels.items():
                union[grade] = union.get(grade, 0) | mask
        return Top(sorted(self.grades.levels), union)

    def coverage(self, needed: Needed) -> Callable[[RankedDocs], Coverage]:
        """Counts how many of the grades exist that somebody needs, ranking by ranking.

        Args:
            needed: those of the first so many passages × all items (None: of all passages), or × some of them
                (`OfItems`); or, of answers with citations, those of `first citations` or `all citations`. See
                `Computation.needs`.
        """
        if isinstance(needed, str):
            most = 1 if needed.startswith("first") else None
            return lambda ranked: self.cited_coverage(ranked.doc_ids, most)
        cutoff = needed.cutoff if isinstance(needed, OfItems) else needed
        size, valid = len(self.items), self.valid
        lost = {doc_id: mask.bit_count() for doc_id, mask in self._given.failed.items()}
        asked = self._asked(needed.which) if isinstance(needed, OfItems) else None
        if asked is not None and asked.bit_count() < size:
            size = asked.bit_count()
            valid = {doc_id: (mask & asked).bit_count() for doc_id, mask in self.valid_masks.items()}
            lost = {doc_id: (mask & asked).bit_count() for doc_id, mask in self.grades.failed.items()}

        if lost:
            lost = {doc_id: lost.get(doc_id, 0) for doc_id in valid}

        def count(ranked: RankedDocs) -> Coverage:
            top, judged = len(ranked.doc_ids), ranked.judged
            if cutoff is not None and cutoff < top:
                top, judged = cutoff, judged[: ranked.within(cutoff)]
            failed = sum(map(lost.__getitem__, judged)) if lost else 0
            # Answers are one document each.
            graded = valid[judged[0]] if len(judged) == 1 else sum(map(valid.__getitem__, judged))
            return Coverage(top * size, graded, failed)

        return count

    def _asked(self, which: Literal["vital", "weighing"]) -> int:
        found = (item.importance == "vital" if which == "vital" else bool(item.weight) for item in self.items)
        return sum(1 << place for place, is_asked in enumerate(found) if is_asked)

    @property
    def is_expecting(self) -> bool:
        """Whether grades failed, and count as what they are expected to earn."""
        return self.on_failed == "expected" and bool(self.grades.failed)

    @property
    def valid_masks(self) -> Mapping[str, int]:
        """doc_id -> mask of the items that have a valid grade."""
        return self.shared(
            "valid masks",
            lambda: {doc_id: sum(levels.values()) for doc_id, levels in self.grades.levels.items()},
        )

    def cited_coverage(self, doc_ids: Iterable[str], most: int | None) -> Coverage:
        """How many of the grades of the pairs (sentence, cited document) of answers exist.

        Args:
            doc_ids: the answers.
            most: how many citations of each sentence count; None for all.
        """
        places = self.shared("places", lambda: {item.item_id: place for place, item in enumerate(self.items)})
        needed = graded = failed = 0
        for doc_id in doc_ids:
            for sentence in self.grades.answers.get(doc_id, ()):
                place = places.get(sentence.item_id)
                for cited in sentence.citations[:most]:
                    needed += 1
                    if place is not None:
                        graded += self.valid_masks.get(cited, 0) >> place & 1
                        failed += self.grades.failed.get(cited, 0) >> place & 1
        return Coverage(needed, graded, failed)

    def covering(self, rel: int) -> Mapping[str, int]:
        """doc_id -> mask of the items graded `rel` or better; passages that cover none are left out."""
        return self.shared(("covering", rel), lambda: self.grades.at_least(rel))

    def labels(self, label: Label = "max", rel: int | None = None) -> Mapping[str, float]:
        """doc_id -> relevance label; see `QueryGrades.labels`."""
        return self.shared(("labels", label, rel), lambda: self.grades.labels(label, rel))

    def by_label(self, label: Label = "max", rel: int | None = None) -> RankedDocs:
        """The best ranking by labels: descending, passages of one label in the order of their ids."""
        return self.shared(("by label", label, rel), lambda: self._by_label(self.labels(label, rel)))

    def _by_label(self, labels: Mapping[str, float]) -> RankedDocs:
        # A stable sort.
        return self.ranked(sorted(sorted(labels), key=labels.__getitem__, reverse=True))

    def refuse_open(self, top: Top, covered: int) -> None:
        """Refuses an item that no ranked passage covers and whose grade failed for one, where that is an error.

        Args:
            top: the ranked passages.
            covered: the mask of the items that these cover.

        Raises:
            MeasureError: there is such an item, and on_failed is `error`.
        """
        if self.on_failed != "error":
            return
        lost = top.failed(self.grades.failed) & ~covered
        if lost:
            item = self.items[(lost & -lost).bit_length() - 1]
            raise MeasureError(
                f"query {self.query_id!r}: item {item.item_id!r} has a failed grade for a ranked passage; grade "
                "again, or choose how failures count (expected or zero)",
                settings=("on_failed",),
            )

    def refuse_failed(self, judged: Iterable[str]) -> None:
        """Refuses passages of which a grade failed, where that is an error.

        Raises:
            MeasureError: there is one, and on_failed is `error`.
        """
        if self.on_failed != "error":
            return
        lost = next((doc_id for doc_id in judged if doc_id in self.grades.failed), None)
        if lost is not None:
            raise MeasureError(
                f"query {self.query_id!r}: a grade of the ranked passage {lost!r} failed; grade again, or choose how "
                "failures count (expected or zero)",
                settings=("on_failed",),
            )


CUTOFF = ParamInfo(dtype=int, required=False, desc="ranking cutoff threshold; without it the whole ranking counts")
JUDGED_ONLY = ParamInfo(dtype=bool, default=False, desc="discard passages that nobody graded before the cutoff")

# The value of one ranking of a query; None where nothing can be said, because all grades that it needs failed.
RankingScorer = Callable[[RankedDocs], float | None]
# The least and the greatest value of a ranking; it is given twice, as the two completed queries see it.
BoundsScorer = Callable[[RankedDocs, RankedDocs], tuple[float, float] | None]


def min_grade(what: str) -> ParamInfo:
    """The parameter of a minimum grade; left out, the scale of the grades says it.

    Args:
        what: what passages of this grade are counted as.
    """
    return ParamInfo(
        dtype=int,
        required=False,
        desc=f"minimum grade (inclusive) that counts as {what}; the scale of the grades says it where it is left out",
    )


class Computation(ABC):
    """How a measure is computed, one query after the other."""

    # Whether `prepare` says itself what failed grades mean. Otherwise a query of which all that is known is that grades
    # failed has no value, and failed grades count as if nobody had graded.
    HANDLES_FAILED: ClassVar[bool] = False

    @property
    def depth(self) -> int | None:
        """How many passages of a ranking it looks at; None when all."""
        return None

    @property
    def needs(self) -> Needed:
        """The grades that it needs, as `QueryContext.coverage` counts them: those within its depth."""
        return self.depth

    @property
    def skips_unjudged(self) -> bool:
        """Whether `depth` counts graded passages alone, so that it looks deeper."""
        return False

    @property
    def reads_items(self) -> bool:
        """Whether it reads grades of items, and not one label a passage."""
        return False

    @abstractmethod
    def prepare(self, query: QueryContext) -> RankingScorer:
        """Prepares the scoring of any number of rankings of one query.

        Raises:
            MeasureError: the grades lack what the measure needs.
        """

    def best(self, query: QueryContext, score: RankingScorer) -> float | None:
        """The best value that any ranking of the graded passages could reach; None where it is not known.

        Args:
            query: the query.
            score: what `prepare` gave.
        """
        return None

    def bounds(self, lowest: QueryContext, highest: QueryContext) -> BoundsScorer | None:
        """What the value of a ranking lies between, whatever the failed grades were; None where that is not known.

        Args:
            lowest: the query with all failed grades as the lowest of the scale.
            highest: the query with all of them as the highest.

        Returns:
            a function from the ranking, as each of the two sees it, to the bounds.
        """
        return None

    def spread(self, query: QueryContext) -> RankingScorer | None:
        """How far failures at random move the value of a ranking (one standard error); None where nobody knows."""
        return None

    def lost_penalties(self, query: QueryContext, ranked: RankedDocs) -> int:
        """The mask of the items that cost nothing because their grade failed for a ranked passage."""
        return 0


class OfIrMeasures(Computation):
    """How one of ir_measures' own measures is computed here; its parameters are those of the measure."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure

    @property
    def depth(self) -> int | None:
        """The cutoff."""
        cutoff = self.measure.params.get("cutoff")
        return cutoff if isinstance(cutoff, int) else None

    @property
    def skips_unjudged(self) -> bool:
        """The parameter `judged_only`."""
        return bool(self.measure.params.get("judged_only"))


class ExactMean(MeanAgg):  # type: ignore[misc]
    """The mean, to the last digit whatever the order of the values."""

    def __init__(self) -> None:
        super().__init__()
        self._values: list[float] = []

    def add(self, value: float) -> None:
        """Takes the value of a query."""
        self._values.append(value)

    def result(self) -> float:
        """The mean; NaN of no value."""
        return self.of(self._values) if self._values else float(self.default)

    @staticmethod
    def of(values: Collection[float]) -> float:
        """The mean of some values; of one or more."""
        return math.fsum(values) / len(values)


class RubricMeasure(Measure, Computation):  # type: ignore[misc]
    """A measure over grades: a class says its name and parameters, and computes itself.

    A subclass has `SUPPORTED_PARAMS` and `prepare`, and is made known with `register`. `NAME` is the name of the class
    where it does not say another. Parameters called `cutoff` and `judged_only` mean what they mean everywhere.

    Two measures are equal exactly when their canonical text is: parameters in the order of `SUPPORTED_PARAMS`,
    defaults left out.

    Raises:
        MeasureError: a parameter is unknown or has a wrong value.
    """

    def __init_subclass__(cls) -> None:
        if "NAME" not in cls.__dict__:
            cls.NAME = cls.__qualname__.rpartition(".")[2].lstrip("_")

    NAME: str
    params: dict[str, Any]
    validated: bool

    def __init__(self, **params: Any) -> None:
        super().__init__(**{name: value for name, value in params.items() if value is not None})
        # Without parameters a measure that needs one is what the others are made of.
        if self.params or not self._needed():
            self.validate_params()

    def __call__(self, **params: Any) -> RubricMeasure:
        """The measure with these parameters."""
        measure = type(self)(**{**self.params, **params})
        measure.validate_params()
        return measure

    # ir_measures asks a measure for this.
    @property
    def __name__(self) -> str:
        return str(self.NAME)

    def aggregator(self) -> Agg:
        """How ir_measures, `evaluate` and boards put the values of queries together: by their exact mean."""
        return ExactMean()

    def _needed(self) -> list[str]:
        return [name for name, info in self.SUPPORTED_PARAMS.items() if info.required and name not in self.params]

    def validate_params(self) -> None:
        """Checks names, types and values of the parameters.

        Raises:
            MeasureError: naming the parameter and what was expected.
        """
        if self.validated:
            return
        for name, value in self.params.items():
            info = self.SUPPORTED_PARAMS.get(name)
            if info is None:
                known = ", ".join(self.SUPPORTED_PARAMS)
                raise MeasureError(f"{self.NAME} has no parameter {name!r}; it has: {known}")
            # bool is an int to Python, but rel=True is a slip.
            wrong_type = not isinstance(value, info.dtype) or (info.dtype is int and isinstance(value, bool))
            if wrong_type or (info.choices is not _NOT_PROVIDED and value not in info.choices):
                expected = (
                    info.dtype.__name__ if info.choices is _NOT_PROVIDED else " or ".join(map(repr, info.choices))
                )
                raise MeasureError(f"{self.NAME}: {name}={value!r}; expected {expected}")
        if self.params.get("cutoff", 1) < 1:
            raise MeasureError(f"{self.NAME}: cutoff={self.params['cutoff']}; expected 1 or more")
        for name in self._needed():
            raise MeasureError(f"{self.NAME} needs the parameter {name}: {self.SUPPORTED_PARAMS[name].desc}")
        self.check()
        self.validated = True

    def check(self) -> None:
        """What a measure demands beyond the types of its parameters."""

    def levels(self, scale: Scale | None) -> dict[str, int]:
        """The levels that are left out, by the names of their parameters, as the scale of the grades says them.

        Args:
            scale: the scale; None where it is not known.

        Raises:
            MeasureError: the scale is not known, and one is needed.
        """
        if "rel" not in self.SUPPORTED_PARAMS or "rel" in self.params:
            return {}
        if scale is None:
            raise self.unknown_scale("rel")
        return {"rel": scale.covers}

    def unknown_scale(self, name: str) -> MeasureError:
        """The error of a level that is left out where the scale of the grades is not known."""
        return MeasureError(
            f"{self}: the scale of the grades is not known; say which grade counts, as in {self.NAME}({name}=…), "
            "or their scale",
            settings=("scale",),
        )

    def said_levels(self) -> list[int]:
        """The levels that somebody wrote down, which grades are compared with."""
        return [level for name in ("rel", "partial_rel") if isinstance(level := self.params.get(name), int)]

    def on(self, scale: Scale | None) -> RubricMeasure:
        """The measure with all levels said: those that are left out are the scale's.

        Raises:
            MeasureError: the scale is not known, and a level is needed.
        """
        levels = self.levels(scale)
        return self(**levels) if levels else self

    def value(self, name: str) -> Any:
        """The parameter's value, its default, or None."""
        value = self[name]
        return None if value is _NOT_PROVIDED else value

    @property
    def depth(self) -> int | None:
        """The cutoff."""
        cutoff = self.params.get("cutoff")
        return cutoff if isinstance(cutoff, int) else None

    @property
    def skips_unjudged(self) -> bool:
        """The parameter `judged_only`."""
        return bool(self.params.get("judged_only"))

    def __repr__(self) -> str:
        shown = ",".join(
            f"{name}={self.params[name]!r}"
            for name, info in self.SUPPORTED_PARAMS.items()
            if name in self.params and name != self.AT_PARAM and self.params[name] != info.default
        )
        text = f"{self.NAME}({shown})" if shown else str(self.NAME)
        return f"{text}@{self.params[self.AT_PARAM]}" if self.AT_PARAM in self.params else text


class CoverageMeasure(RubricMeasure):
    """A measure of the items that the top k passages cover; has the parameters `cutoff` and `judged_only`.

    A subclass has `formula` in the place of `prepare`. The best that any ranking could reach is then that of all graded
    passages together, whatever the cutoff (the workbench's `_overall_`; finding the best k of them is NP-hard).
    """

    HANDLES_FAILED = True

    @property
    def reads_items(self) -> bool:
        """It does."""
        return True

    @abstractmethod
    def formula(self, query: QueryContext) -> Callable[[Top], float | None]:
        """The value of what the top k passages reach. Says itself what failed grades mean.

        `covered_share` does, for shares of items.
        """

    def prepare(self, query: QueryContext) -> RankingScorer:
        """See `Computation`."""
        kind = query.top(self.value("cutoff"), self.value("judged_only"))
        value = self._formula(query)
        return lambda ranked: value(ranked.top(kind))

    def _formula(self, query: QueryContext) -> Callable[[Top], float | None]:
        # Made once a query. The measure is kept with it, so that no other one gets its id.
        return query.shared(("formula", id(self)), lambda: (self, self.formula(query)))[1]

    def best(self, query: QueryContext, score: RankingScorer) -> float | None:
        """See `Computation`."""
        return self._formula(query)(query.everything)


M = TypeVar("M", bound=RubricMeasure)


def register(kind: type[M]) -> M:
    """Makes a class of measures known by its name, to `ir_measures.parse_measure` and so to every command.

    Registering it again, or a new version of it from the same module, replaces it.

    Returns:
        the measure with its default parameters, as `RubricCover` is one: `Depth = register(Depth)`.

    Raises:
        MeasureError: another measure has the name.
    """
    measure = kind()
    registry = ir_measures.measures.registry
    known = type(registry.get(measure.NAME, measure))
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise MeasureError(f"there is a measure {measure.NAME} already; give {kind.__module__}.{kind.__name__} another")
    registry.pop(measure.NAME, None)
    ir_measures.measures.register(measure, name=measure.NAME)
    return measure


_GROUP = "rubric_measures.measures"


def register_plug_ins() -> None:
    """Registers the measures of all packages that work; of each other one the reason is said in one line."""
    found = plug_ins(_GROUP, "measure")
    # A package that imports `rubric_measures` is not ready yet where it came first; it registers its measures itself.
    ready = {name: one for name, one in found.items() if not _is_being_imported(one.entry_point.module)}
    list(usable(ready, _registered))


def check_plug_in(name: str) -> None:
    """Says why a measure of another package is not known; nothing where no package has it.

    Raises:
        PlugInError: a package has it, and it cannot be used.
    """
    one = plug_ins(_GROUP, "measure").get(name)
    if one is not None:
        _registered(one, one.load())


def _registered(plug_in: PlugIn, found: Any) -> RubricMeasure:
    kind = found if isinstance(found, type) else type(found)
    if not issubclass(kind, RubricMeasure):
        raise plug_in.refused(f"it is no rubric_measures.RubricMeasure, but {found!r:.60}")
    try:
        return register(kind)
    except Exception as error:
        raise plug_in.refused(f"{type(error).__name__}: {error}") from error


def _is_being_imported(module: str) -> bool:
    return bool(getattr(getattr(sys.modules.get(module), "__spec__", None), "_initializing", False))
