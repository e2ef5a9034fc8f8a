"""What the measures of one call share about a query: items, labels and weights are made once for all of them.

A passage's covered items are a bit mask, so the best grades of k passages are k bitwise ors, however many items there
are.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from rubric_measures.base.entities import RubricItem
from rubric_measures.base.errors import MeasureError
from rubric_measures.grades.compiled import Label, OnFailed, QueryGrades

__all__ = ["Coverage", "ItemWeights", "QueryContext", "RankedDocs", "Top"]

T = TypeVar("T")
# A ranking without a cutoff; longer than any ranking.
_ALL = 1 << 60


@dataclass(frozen=True)
class Coverage:
    """How many of the grades that a value needed exist.

    Attributes:
        needed: passages in the cutoff × items of the query.
        graded: those with a valid grade.
        failed: those whose grade failed; the rest was never graded.
    """

    needed: int
    graded: int
    failed: int


class Top(NamedTuple):
    """The graded passages among the first k, and the items that they reach."""

    doc_ids: Sequence[str]
    by_grade: Mapping[int, int]
    """grade -> mask of the items that have this grade in one of the passages."""

    def at_least(self, rel: int) -> int:
        """The mask of the items that are reached with a grade of `rel` or better."""
        union = 0
        for grade, mask in self.by_grade.items():
            if grade >= rel:
                union |= mask
        return union


class ItemWeights:
    """The weights of a query's items, grouped by value, so that a mask is summed with one popcount a group."""

    __slots__ = ("groups", "penalties", "positive")

    def __init__(self, weights: Iterable[float]) -> None:
        groups: dict[float, int] = {}
        for index, weight in enumerate(weights):
            if weight:
                groups[weight] = groups.get(weight, 0) | 1 << index
        # Sorted, so that floating-point sums do not depend on the order of the items.
        self.groups = sorted(groups.items())
        self.positive = sum(weight * mask.bit_count() for weight, mask in self.groups if weight > 0)
        self.penalties = sum(mask for weight, mask in self.groups if weight < 0)

    def sum(self, mask: int) -> float:
        """The sum of the weights of the items in the mask."""
        total = 0.0
        for weight, members in self.groups:
            total += weight * (mask & members).bit_count()
        return total

    def positive_without(self, mask: int) -> float:
        """The sum of the positive weights of the items that are not in the mask."""
        if not mask:
            return self.positive
        return self.positive - sum(
            weight * (mask & members).bit_count() for weight, members in self.groups if weight > 0
        )


class RankedDocs:
    """A ranking of one query, as the measures look at it; made by `QueryContext.ranked`.

    Attributes:
        doc_ids: the ranking, best first.
        judged: the graded passages among them, best first.
        ranks: where those stand, from 1, parallel to `judged`.
    """

    __slots__ = ("_query", "_tops", "doc_ids", "judged", "ranks")

    def __init__(self, query: QueryContext, doc_ids: Sequence[str], depth: int | None = None) -> None:
        graded = query.valid
        self.doc_ids = doc_ids
        looked_at = doc_ids if depth is None else doc_ids[:depth]
        self.ranks = [rank for rank, doc_id in enumerate(looked_at, 1) if doc_id in graded]
        self.judged = [doc_ids[rank - 1] for rank in self.ranks]
        self._query = query
        self._tops: dict[tuple[bool, int], Top] | None = None

    def within(self, cutoff: int | None) -> int:
        """How many graded passages stand at ranks up to the cutoff (None: anywhere)."""
        return len(self.ranks) if cutoff is None else bisect_right(self.ranks, cutoff)

    def ranks_of(self, chosen: Set[str], cutoff: int | None) -> list[int]:
        """The ranks, up to the cutoff, of the graded passages that are in `chosen`."""
        last = math.inf if cutoff is None else cutoff
        return [rank for rank, doc_id in zip(self.ranks, self.judged, strict=True) if doc_id in chosen and rank <= last]

    def top(self, kind: tuple[bool, int]) -> Top:
        """The graded passages in a cutoff and the items they reach.

        Args:
            kind: what `QueryContext.top` gave.
        """
        if self._tops is None:
            self._tops = self._query.tops(self)
        return self._tops[kind]

    def coverage(self, cutoff: int | None) -> Coverage:
        """How many grades of the first `cutoff` passages × all items exist."""
        query = self._query
        length = len(self.doc_ids)
        top = length if cutoff is None else min(length, cutoff)
        judged = self.judged[: self.within(top)]
        graded = sum(map(query.valid.__getitem__, judged))
        failed = sum(query.lost.get(doc_id, 0) for doc_id in judged) if query.lost else 0
        return Coverage(top * len(query.items), graded, failed)


class QueryContext:
    """The grades of one query, and what the measures of one call make of them.

    Args:
        grades: the compiled grades.
        on_failed: how failed grades count; see `Grades`.

    Attributes:
        grades: the grades as they count: where failed ones count as a grade, none is failed here.
        on_failed: as given.
        items: the complete bank of the query.
        valid: doc_id -> number of its valid grades.
        lost: doc_id -> number of its failed grades.
    """

    def __init__(self, grades: QueryGrades, on_failed: OnFailed = "exclude") -> None:
        self.grades = grades.counting_failed(on_failed)
        self.on_failed: OnFailed = on_failed
        self.query_id = grades.query_id
        self.items = grades.items
        self.valid = {doc_id: sum(map(int.bit_count, levels.values())) for doc_id, levels in grades.levels.items()}
        self.lost = {doc_id: mask.bit_count() for doc_id, mask in grades.failed.items()}
        # Whether only judged passages count -> the cutoffs that measures asked for.
        self._cutoffs: dict[bool, set[int]] = {}
        self._shared: dict[Hashable, Any] = {}

    def shared(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` makes, made once for all measures that give this key."""
        if key not in self._shared:
            self._shared[key] = make()
        found: T = self._shared[key]
        return found

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
        self._cutoffs.setdefault(judged_only, set()).add(kind[1])
        return kind

    def tops(self, ranked: RankedDocs) -> dict[tuple[bool, int], Top]:
        """All that `top` was asked for, of one ranking."""
        levels = self.grades.levels
        found: dict[tuple[bool, int], Top] = {}
        for judged_only, cutoffs in self._cutoffs.items():
            union: dict[int, int] = {}
            start = 0
            for cutoff in sorted(cutoffs):
                length = cutoff if judged_only else ranked.within(cutoff)
                for doc_id in ranked.judged[start:length]:
                    for grade, mask in levels[doc_id].items():
                        union[grade] = union.get(grade, 0) | mask
                start = length
                found[judged_only, cutoff] = Top(ranked.judged[:length], union.copy())
        return found

    @property
    def everything(self) -> Top:
        """All graded passages, in the order of their ids, and the items they reach."""
        return self.shared("everything", self._everything)

    def _everything(self) -> Top:
        union: dict[int, int] = {}
        for levels in self.grades.levels.values():
            for grade, mask in levels.items():
                union[grade] = union.get(grade, 0) | mask
        return Top(sorted(self.grades.levels), union)

    def covering(self, rel: int) -> Mapping[str, int]:
        """doc_id -> mask of the items graded `rel` or better; passages that cover none are left out."""
        return self.shared(("covering", rel), lambda: self.grades.at_least(rel))

    def labels(self, label: Label = "max", rel: int = 1) -> Mapping[str, int]:
        """doc_id -> relevance label; see `QueryGrades.labels`."""
        return self.shared(("labels", label, rel), lambda: self.grades.labels(label, rel))

    def by_label(self, label: Label = "max", rel: int = 1) -> RankedDocs:
        """The best ranking by labels: descending, passages of one label in the order of their ids."""
        return self.shared(("by label", label, rel), lambda: self._by_label(self.labels(label, rel)))

    def _by_label(self, labels: Mapping[str, int]) -> RankedDocs:
        # A stable sort.
        return self.ranked(sorted(sorted(labels), key=labels.__getitem__, reverse=True))

    def weights(self, kind: Hashable, weight_of: Callable[[RubricItem], float]) -> ItemWeights:
        """The weights of the items, by a function of each.

        Args:
            kind: names the function; asked again with the same kind, the weights are those made first.
            weight_of: the function.
        """
        return self.shared(("weights", kind), lambda: ItemWeights(map(weight_of, self.items)))

    def failed_for(self, doc_ids: Iterable[str]) -> int:
        """The mask of the items whose grade failed for one of these passages."""
        lost = 0
        for doc_id in doc_ids:
            lost |= self.grades.failed.get(doc_id, 0)
        return lost

    def undetermined(self, top: Top, covered: int) -> int:
        """The items that no ranked passage covers and whose grade failed for one: they may be covered or not.

        They leave the denominator; none where failed grades count as zero or as a grade.

        Args:
            top: the ranked passages.
            covered: the mask of the items that these cover.

        Raises:
            MeasureError: there are such items, and on_failed is `error`.
        """
        if not self.grades.failed:
            return 0
        lost = self.failed_for(top.doc_ids) & ~covered
        if lost and self.on_failed == "error":
            item = self.items[(lost & -lost).bit_length() - 1]
            raise MeasureError(
                f"query {self.query_id!r}: item {item.item_id!r} has a failed grade for a ranked passage; grade "
                "again, or choose how failures count (exclude or zero)",
                settings=("on_failed",),
            )
        return lost if self.on_failed == "exclude" else 0

    def is_unknown(self, judged: Iterable[str]) -> bool:
        """Whether all that is known of the query is that grades failed, of these passages too: then nothing is scored.

        As with the items of coverage measures, a ranking without such passages is known to score 0.

        Raises:
            MeasureError: a grade of the passages failed, and on_failed is `error`.
        """
        failed = self.grades.failed
        lost = next((doc_id for doc_id in judged if doc_id in failed), None)
        if lost is None or self.on_failed == "zero":
            return False
        if self.on_failed == "error":
            raise MeasureError(
                f"query {self.query_id!r}: a grade of the ranked passage {lost!r} failed; grade again, or choose how "
                "failures count (exclude or zero)",
                settings=("on_failed",),
            )
        return not any(self.grades.levels.values())
