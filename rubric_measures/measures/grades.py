"""The grades of a query as measures read them, what failed ones count, and notes about them.

What scoring says once, with a count: queries, grades and penalties that are left out of the numbers.

Grades as the measures read them: per query all items, and for each passage which items it covers how well.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from ir_measures.util import Qrel

from rubric_measures.base.errors import InputError, MeasureError, counted
from rubric_measures.types.entities import CitedSentence, Grade, RubricItem
from rubric_measures.types.scales import ANY_LEVEL, Scale, as_number, covering_level, parse_scale, refuse_unreachable

if TYPE_CHECKING:
    import pandas


_LOG = logging.getLogger("rubric_measures")


def note_lost_penalties(count: int, run_id: str = "") -> None:
    """Says once how many penalties cost nothing because their grades failed (see `Scored.lost_penalties`)."""
    if count:
        _LOG.warning(
            "%d items of negative weight have a failed grade and count as no penalty%s: scores may be too high",
            count,
            f" (most in run {run_id})" if run_id else "",
        )


# From this share of failed grades on nobody gets scores who did not ask for them.
TOO_MANY = 0.2


def refuse_share(share: float, needed: str) -> None:
    """Refuses scores of grades of which so many failed that nobody should get them without asking for them.

    Args:
        share: the share of the needed grades that failed.
        needed: what needs them.

    Raises:
        MeasureError: there are that many.
    """
    if share >= TOO_MANY:
        raise MeasureError(
            f"{100 * share:.0f} % of the grades that {needed} failed, too many for a default; grade again, or say how "
            "they count (expected, zero or a grade)",
            settings=("on_failed",),
        )


def note_unscored(count: int) -> None:
    """Says once how many values there are none of, because of all grades that they need it is known only that they
    failed.
    """
    if count:
        _LOG.warning("%d values are not scored, because all grades that they need failed", count)


def note_dropped(count: int) -> None:
    """Says once how many passages left rankings because all their grades failed (see `Scored.dropped`)."""
    if count:
        _LOG.warning(
            "%d passages whose grades all failed left the rankings of measures over labels and subtopics; "
            "programs that read exported qrels keep them, as not judged",
            count,
        )


def note_queries(unknown: Mapping[str, Collection[str]], missing: Mapping[str, Collection[str]]) -> None:
    """Says which queries of runs nobody graded, and which queries runs lack.

    Args:
        unknown: run_id -> queries that it ranks, and that neither grades nor bank have.
        missing: run_id -> queries to score that it does not rank.
    """
    strangers = {run_id: min(queries) for run_id, queries in unknown.items() if queries}
    if strangers:
        count = len(set().union(*unknown.values()))
        run_id = min(strangers, key=lambda run_id: (strangers[run_id], run_id))
        of, such = f"run {run_id}", strangers[run_id]
        if len(strangers) > 1:
            of, such = f"{len(strangers)} runs", f"{such} of run {run_id}"
        left = "is not graded and was" if count == 1 else "are not graded and were"
        _LOG.warning("%s of %s %s left out (such as %s)", counted(count, "query"), of, left, such)
    for run_id, queries in sorted(missing.items()):
        if queries:
            _LOG.warning(
                "run %s does not rank %s (such as %s), and scores 0 there",
                *(run_id, counted(len(queries), "query"), min(queries)),
            )


def note_without_items(queries: Collection[str]) -> None:
    """Says once how many queries have no items: there is no denominator, so they have no score."""
    if queries:
        _LOG.warning(
            "%d queries have no items, so they have no score and are in no mean (such as %s)",
            len(queries),
            min(queries),
        )


def note_whole(queries: Collection[str]) -> None:
    """Says once how many queries have no facets where facets are scored or written."""
    if queries:
        _LOG.warning("%d queries have no facets and stay whole (such as %s)", len(queries), min(queries))


def note_left_out(left_out: Counter[str]) -> None:
    """Says once how many grades were left out because the bank does not have their items."""
    if left_out:
        example = min(left_out)
        _LOG.warning(
            "%d grades left out: their %d items are not in the test bank (such as %s)",
            left_out.total(),
            len(left_out),
            example,
        )


OnFailed = Literal["expected", "zero", "error"] | int
_NAMES = ("expected", "zero", "error")


def check_on_failed(value: object) -> OnFailed:
    """How failed grades count, when it is one of the ways: `expected`, `zero`, `error`, or a grade.

    For the upper bound of a score, give the scale's highest grade: 5 for ratings, 2 for nugget assignments, 1 for yes
    and no. Records do not say how high their scale goes.

    Raises:
        InputError: it is none of them.
    """
    if value in _NAMES or (type(value) is int and value >= 1):
        return cast(OnFailed, value)
    raise InputError(f"on_failed is {value!r}; give expected, zero, error, or a grade of 1 or more")


def checked_choice(value: object) -> OnFailed | None:
    """The choice of how failed grades count, or None where nobody chose; see `check_on_failed`."""
    return None if value is None else check_on_failed(value)


def resolved(on_failed: OnFailed | None) -> OnFailed:
    """How failed grades count; as they are expected, where nobody chose."""
    return "expected" if on_failed is None else on_failed


def levels_with_failed(
    levels: Mapping[str, Mapping[float, int]], failed: Mapping[str, int], grade: int
) -> dict[str, Mapping[float, int]]:
    """The grades of passages (see `QueryGrades`) in which failed ones have a grade.

    Args:
        levels: doc_id -> {grade: mask of the items}.
        failed: doc_id -> mask of the items whose grade failed. A facet may have a grade beside a failed one; the better
            of the two counts.
        grade: what they count as.
    """
    filled = dict(levels)
    for doc_id, lost in failed.items():
        known = levels.get(doc_id, {})
        for level, mask in known.items():
            if level >= grade:
                lost &= ~mask
        of_doc = {level: kept for level, mask in known.items() if (kept := mask & ~lost)}
        if lost:
            of_doc[grade] = of_doc.get(grade, 0) | lost
        filled[doc_id] = of_doc
    return filled


T = TypeVar("T")
G = TypeVar("G", float, str)
Label = Literal["max", "count"]

# A direct relevance label is a grade for this item.
DIRECT_ITEM = "0"
# What qrels of passages have in the place of an item.
LABEL_ITEMS = frozenset({DIRECT_ITEM, "Q0"})

# A row of grade 0 for this document says only that the item is in the test bank. So item rows keep their denominator
# through files, frames and programs that know nothing of banks, and mean nothing to measures over documents.
BANK_DOC = "*"
# A row for the same document whose item begins so says the scale of the query's grades: `scale=0-5:4:3`.
_SCALE_ITEM = "scale="


@dataclass(frozen=True)
class QueryGrades:
    """All grades of one query, compiled: sets of items are bit masks, bit i stands for `items[i]`.

    Attributes:
        query_id: the query.
        items: the complete bank of the query, also items that nobody graded: the denominator of coverage.
        levels: doc_id -> {grade: mask of the items with exactly that grade}, a grade with a fraction being a `float`
            and any other an `int`; a passage that was graded but has no
            valid grade is present with an empty mapping.
        failed: doc_id -> mask of the items whose grade failed (unparsed, refused, truncated without a grade, failed).
        scale: the scale of the grades; None where it is not known.
        answers: doc_id -> the sentences of the answer that it is, with what they cite; empty where the grades are of
            something else.
    """

    query_id: str
    items: tuple[RubricItem, ...]
    levels: Mapping[str, Mapping[float, int]]
    failed: Mapping[str, int] = field(default_factory=dict)
    scale: Scale | None = None
    answers: Mapping[str, tuple[CitedSentence, ...]] = field(default_factory=dict)

    @property
    def is_of_labels(self) -> bool:
        """Whether passages have one label each, and no grades of items."""
        return len(self.items) == 1 and self.items[0].item_id in LABEL_ITEMS

    def level(self, said: int | None = None) -> int:
        """The least grade that covers an item: what somebody said, else what the scale says.

        Raises:
            InputError: neither is known.
        """
        # Where nothing is graded, nothing is covered at any level.
        return covering_level(self.scale if self.levels or self.scale else ANY_LEVEL, said)

    @property
    def void(self) -> frozenset[str]:
        """The passages of which all that is known is that grades failed."""
        return frozenset(
            doc_id for doc_id, mask in self.failed.items() if mask and not any(self.levels.get(doc_id, {}).values())
        )

    def at_least(self, rel: int) -> dict[str, int]:
        """doc_id -> mask of the items graded `rel` or better; passages that cover none are left out."""
        covering: dict[str, int] = {}
        for doc_id, levels in self.levels.items():
            mask = 0
            for grade, items in levels.items():
                if grade >= rel:
                    mask |= items
            if mask:
                covering[doc_id] = mask
        return covering

    def labels(self, label: Label = "max", rel: int | None = None) -> dict[str, float]:
        """Rubric-Qrels: one relevance label a passage; passages without any valid grade have none.

        Args:
            label: `max`, label(p) = max over the items of grade(p, r), where that is at least `rel`, else 0; or
                `count`, label(p) = the number of items with grade ≥ rel.
            rel: the inclusive minimum grade. Left out, `max` keeps every grade as it is, and `count` counts from the
                level that covers on the scale.

        Raises:
            InputError: items are to be counted, and neither a level nor the scale is known; or no grade of the scale
                reaches the level.

        Source: Farzi and Dietz, EXAM++ (LLM4Eval 2024), and Dietz (SIGIR 2024).
        """
        graded = {doc_id: levels for doc_id, levels in self.levels.items() if levels}
        if label == "count":
            if rel is None and self.scale is None and graded:
                raise InputError(
                    "labels count items from a grade on, and the scale of the grades is not known; say that grade",
                    settings=("rel",),
                )
            least = self.level(rel)
            return {
                doc_id: sum(mask.bit_count() for grade, mask in levels.items() if grade >= least)
                for doc_id, levels in graded.items()
            }
        if rel is not None and self.scale is not None:
            refuse_unreachable(self.scale, rel, "labels")
        best = {doc_id: max(levels) for doc_id, levels in graded.items()}
        # Negative labels (junk pages) stay what they are.
        return best if rel is None else {doc_id: top if top >= rel or top < 0 else 0 for doc_id, top in best.items()}

    def counting_failed(self, on_failed: OnFailed) -> QueryGrades:
        """The grades as they count in scores: where failed ones count as a grade, with that grade in their place.

        Raises:
            InputError: that grade is not on the scale.
        """
        if not isinstance(on_failed, int):
            return self
        if self.scale is not None and on_failed not in self.scale:
            raise InputError(
                f"query {self.query_id!r}: failed grades are to count as {on_failed}, which is not on the scale "
                f"{self.scale.lowest} to {self.scale.highest}",
                settings=("on_failed",),
            )
        if not self.failed:
            return self
        return replace(self, levels=levels_with_failed(self.levels, self.failed, on_failed), failed={})

    def rows(self) -> Iterator[Qrel]:
        """The valid grades as item-level judgments, `iteration` being the item id."""
        for doc_id, levels in self.levels.items():
            for grade, mask in levels.items():
                for index, item in enumerate(self.items):
                    if mask >> index & 1:
                        yield Qrel(self.query_id, doc_id, grade, item.item_id)

    @property
    def has_facets(self) -> bool:
        """Whether an item names a facet."""
        return any(item.facet is not None for item in self.items)

    def by_facet(self) -> QueryGrades:
        """The same passages graded by facet: grade(p, facet) is the highest grade of the facet's items.

        Items without a facet stay as they are. A facet has the importance and weight of its items where they agree,
        else none.
        """
        groups: dict[str, list[int]] = {}
        for index, item in enumerate(self.items):
            groups.setdefault(item.item_id if item.facet is None else item.part, []).append(index)
        facets: list[RubricItem] = []
        for facet, members in groups.items():
            first = self.items[members[0]]
            importances = {self.items[i].importance for i in members}
            weights = {self.items[i].weight for i in members}
            facets.append(
                RubricItem(
                    facet,
                    self.query_id,
                    first.facet or first.text,
                    first.kind,
                    first.facet,
                    importance=first.importance if len(importances) == 1 else None,
                    weight=first.weight if len(weights) == 1 else None,
                )
            )
        masks = [sum(1 << i for i in members) for members in groups.values()]
        levels: dict[str, dict[float, int]] = {}
        for doc_id, old in self.levels.items():
            new: dict[float, int] = {}
            done = 0
            for grade in sorted(old, reverse=True):
                reached = sum(1 << f for f, mask in enumerate(masks) if mask & old[grade]) & ~done
                if reached:
                    new[grade] = reached
                    done |= reached
            levels[doc_id] = new
        failed = {
            doc_id: sum(1 << f for f, mask in enumerate(masks) if mask & lost) for doc_id, lost in self.failed.items()
        }
        return QueryGrades(self.query_id, tuple(facets), levels, failed, self.scale)

    def per_facet(self) -> dict[str, QueryGrades]:
        """Each facet by itself, as if the query had only its items: `query_id/facet_id` -> their grades.

        Items without a facet are under the query id itself. The grades keep the id of the query, whose rankings they
        score.
        """
        groups: dict[str, list[int]] = {}
        for index, item in enumerate(self.items):
            groups.setdefault(item.part, []).append(index)
        return {name: self._only(members) for name, members in groups.items()} or {self.query_id: self}

    def _only(self, members: Sequence[int]) -> QueryGrades:
        def moved(mask: int) -> int:
            return sum(1 << place for place, index in enumerate(members) if mask >> index & 1)

        levels = {
            doc_id: {grade: kept for grade, mask in of_doc.items() if (kept := moved(mask))}
            for doc_id, of_doc in self.levels.items()
        }
        failed = {doc_id: kept for doc_id, mask in self.failed.items() if (kept := moved(mask))}
        return QueryGrades(self.query_id, tuple(self.items[index] for index in members), levels, failed, self.scale)


class ItemRows:
    """The item-level view: iterates over `Qrel(query_id, doc_id, grade, iteration=item_id)`, and knows the bank.

    Where the scale of a query's grades is known its first row says it, see `scale_rows`.

    Standard measures of ir_measures read one row a passage: of these rows they would silently keep the last one. So
    this view answers only measures that read items, and refuses the others.
    """

    columns = ("query_id", "doc_id", "relevance", "iteration")

    def __init__(self, grades: Grades) -> None:
        self.grades = grades

    def __iter__(self) -> Iterator[Qrel]:
        for query in self.grades.queries.values():
            yield from scale_rows(query)
            yield from query.counting_failed(self.grades.on_failed).rows()

    def itertuples(self) -> Iterator[Qrel]:
        """Refuses: only a provider that does not know items asks for this."""
        raise MeasureError(
            "item grades hold several rows a passage, which this measure would silently collapse to the last one; "
            'score the graded records themselves, or write RubricQrels(measure="nDCG@10")'
        )


class Grades:
    """The grades of a collection, to be given to ir_measures as qrels.

    Rubric measures read the items and the bank; every other measure of ir_measures reads one label a passage (the
    maximum grade). So `ir_measures.calc_aggregate([RubricCover(rel=4)@20, nDCG@10], grades, run)` is right for both.

    Attributes:
        queries: query_id -> its grades.
        on_failed_given: how a failed grade counts, as it was given: `expected` (as much as it is expected to cover, by
            the valid grades of the ranking: leave-one-out expected coverage), `zero` (it counts as not covered),
            `error` (refuse to score), or the grade that it counts as: with the scale's highest, every score is what it
            would be had all of them been that. None where nobody chose: then it is `expected`, and boards with many
            failures are refused.
        source: what the grades are, for the signature (grader, prompt, filters, bank).
    """

    # What makes ir_measures hand this object to a provider as it is (it passes data frames on untouched).
    columns = ("query_id", "doc_id", "relevance")

    def __init__(
        self,
        queries: Mapping[str, QueryGrades],
        on_failed: OnFailed | None = None,
        source: Mapping[str, object] | None = None,
    ) -> None:
        self.queries = dict(queries)
        self.on_failed_given = checked_choice(on_failed)
        self.source = dict(source or {})

    def __repr__(self) -> str:
        items = sum(len(query.items) for query in self.queries.values())
        passages = sum(len(query.levels) for query in self.queries.values())
        queries = counted(len(self.queries), "query")
        return f"<Grades of {queries}: {counted(items, 'item')}, {counted(passages, 'passage')}>"

    @property
    def on_failed(self) -> OnFailed:
        """How a failed grade counts; `expected` where nobody chose."""
        return resolved(self.on_failed_given)

    @property
    def qrels(self) -> list[Qrel]:
        """The label view: one row a graded passage, its maximum grade."""
        return [
            Qrel(query_id, doc_id, label)
            for query_id, query in self.queries.items()
            for doc_id, label in query.counting_failed(self.on_failed).labels().items()
        ]

    @property
    def items(self) -> ItemRows:
        """The item view: one row a (passage, item)."""
        return ItemRows(self)

    @property
    def scale(self) -> Scale | None:
        """The scale of the grades; None where it is not known, or is not the same for all queries."""
        scales = {query.scale for query in self.queries.values() if query.levels}
        return scales.pop() if len(scales) == 1 else None

    def itertuples(self) -> Iterator[Qrel]:
        """The label view, as ir_measures' providers ask for it."""
        return iter(self.qrels)

    def by_facet(self) -> Grades:
        """The same grades with facets (subtopics) in the place of items; see `QueryGrades.by_facet`.

        Raises:
            InputError: no item names a facet.
        """
        return Grades(
            {query.query_id: query.by_facet() for query in faceted(self.queries.values(), lambda query: query)},
            self.on_failed_given,
            {**self.source, "unit": "facet"},
        )

    def per_facet(self) -> Grades:
        """The same grades with each facet of a query in the place of a query; see `QueryGrades.per_facet`.

        Raises:
            InputError: no item names a facet.
        """
        parts: dict[str, QueryGrades] = {}
        for query in faceted(self.queries.values(), lambda query: query):
            parts |= query.per_facet()
        return Grades(parts, self.on_failed_given, {**self.source, "unit": "per facet"})

    def to_dataframe(self) -> pandas.DataFrame:
        """The item rows as a pandas frame: query_id, doc_id, relevance, iteration, importance, weight, status.

        Every item of the bank also has a row for the document `*` with grade 0, so the frame keeps the denominators
        through filters and joins; such a row with the item `scale=0-5:4:3` says the scale of a query's grades. Failed
        grades are rows of status `failed`. They are left out when they count as zero; when they count as a grade, they
        are rows like all others.

        Raises:
            MissingExtraError: pandas is not installed.
            MeasureError: on_failed is `error` and a grade failed.
        """
        from rubric_measures.base.plugins import require

        if self.on_failed == "error" and any(query.failed for query in self.queries.values()):
            raise MeasureError("some grades failed; grade again, or choose how failures count (on_failed)")
        rows = []
        for query in self.queries.values():
            items = {item.item_id: item for item in query.items}
            rows += [(*row[:2], 0, row.iteration, None, None, "graded") for row in scale_rows(query)]
            declared = (Grade(query.query_id, BANK_DOC, 0, item_id) for item_id in items)
            for row in itertools.chain(declared, all_rows(query.counting_failed(self.on_failed))):
                if row.status == "failed" and self.on_failed == "zero":
                    continue
                item = items[row.iteration]
                rows.append((*row[:2], row.relevance or 0, row.iteration, item.importance, item.weight, row.status))
        names = ["query_id", "doc_id", "relevance", "iteration", "importance", "weight", "status"]
        frame: pandas.DataFrame = require("pandas", "pandas").DataFrame(rows, columns=names)
        return frame


def faceted(queries: Iterable[T], grades_of: Callable[[T], QueryGrades]) -> Iterator[T]:
    """Passes on queries whose facets are to be scored or written; queries without any stay whole, and are counted.

    Args:
        queries: the queries, whatever they are; consumed once.
        grades_of: gives the grades of one.

    Raises:
        InputError: at the end, when no item of any query named a facet: whole queries would be called facets.
    """
    found = False
    whole: list[str] = []
    for query in queries:
        grades = grades_of(query)
        if grades.has_facets:
            found = True
        elif grades.items:
            whole.append(grades.query_id)
        yield query
    if found:
        note_whole(whole)
    else:
        raise InputError(
            "no item names a facet, by facet_id in the test bank or by an id query_id/facet_id/…: give the bank that "
            "has the facets, or score whole queries",
            settings=("bank",),
        )


def masks_of(grades: Iterable[G], bits: Iterable[int]) -> dict[G, int]:
    """The items of one passage as masks: grade (or label) -> mask of the items that have it.

    Args:
        grades: the grades of the items, each item once.
        bits: the bits of the items, parallel to `grades`.
    """
    masks: dict[G, int] = {}
    for grade, bit in zip(grades, bits, strict=True):
        masks[grade] = masks.get(grade, 0) | bit
    return masks


def build_query(
    query_id: str,
    grades: Iterable[tuple[str, str, float]],
    items: Sequence[RubricItem] | None = None,
    failed: Iterable[tuple[str, str]] = (),
    graded: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
    scale: Scale | None = None,
) -> tuple[QueryGrades, Counter[str]]:
    """Compiles the grades of one query.

    Args:
        query_id: the query.
        grades: (doc_id, item_id, grade); of a pair that occurs twice with the same grade one is kept.
        items: the complete bank of the query; None takes the items that occur, in order of their ids.
        failed: (doc_id, item_id) of grades that failed.
        graded: further grades, doc_id -> item_id -> grade; names also passages that were graded without a valid one.
        scale: the scale of the grades, where it is known.

    Returns:
        the compiled grades, and item_id -> number of grades left out because the bank has no such item.

    Raises:
        InputError: a (passage, item) has two different grades, or a grade is no finite number, or not on the scale.
    """
    if items is None:
        grades, failed = list(grades), list(failed)
        found = {item_id for _, item_id, _ in grades}.union((item_id for _, item_id in failed), *graded.values())
        items = [RubricItem(item_id, query_id, "") for item_id in sorted(found)]
    bit = {item.item_id: 1 << index for index, item in enumerate(items)}
    levels: dict[str, dict[float, int]] = {}
    left_out: Counter[str] = Counter()
    for doc_id, of_items in graded.items():
        if not of_items.keys() <= bit.keys():
            left_out.update(of_items.keys() - bit.keys())
            of_items = {item_id: grade for item_id, grade in of_items.items() if item_id in bit}
        levels[doc_id] = masks_of(of_items.values(), map(bit.__getitem__, of_items))
    for doc_id, item_id, grade in grades:
        if item_id not in bit:
            left_out[item_id] += 1
        elif doc_id not in levels:
            levels[doc_id] = {grade: bit[item_id]}
        else:
            of_doc = levels[doc_id]
            if grade in of_doc:
                of_doc[grade] |= bit[item_id]
            else:
                of_doc[grade] = bit[item_id]
    # Of `graded` alone an item has one grade.
    for doc_id, of_doc in levels.items() if grades else ():
        # Masks of different grades must be disjoint: each item that two of them have is a carry in their sum, which
        # then has a bit less than they have together.
        if sum(of_doc.values()).bit_count() != sum(map(int.bit_count, of_doc.values())):
            raise InputError(
                f"query {query_id!r}, document {doc_id!r}: an item has two different grades; keep one of them"
            )
    # All at once, since it is right but for slips.
    given = list(itertools.chain.from_iterable(levels.values()))
    real = bool(set(map(type, given)) - {int})
    if real or (scale and given and not scale[0] <= min(given) <= max(given) <= scale[1]):
        _check_grades(query_id, items, levels, scale)
    if real:
        levels = {doc_id: {as_number(grade): mask for grade, mask in one.items()} for doc_id, one in levels.items()}
    lost: dict[str, int] = {}
    for doc_id, item_id in failed:
        mask = bit.get(item_id)
        if mask is None:
            left_out[item_id] += 1
            continue
        levels.setdefault(doc_id, {})
        lost[doc_id] = lost.get(doc_id, 0) | mask
    return QueryGrades(query_id, tuple(items), levels, lost, scale), left_out


def _check_grades(
    query_id: str, items: Sequence[RubricItem], levels: Mapping[str, Mapping[float, int]], scale: Scale | None
) -> None:
    """Refuses grades that are no numbers, or not on the scale."""
    for doc_id, of_doc in levels.items():
        for grade, mask in of_doc.items():
            if isinstance(grade, bool) or not isinstance(grade, int | float) or not isfinite(grade):
                raise InputError(f"query {query_id!r}, document {doc_id!r}: the grade {grade!r} is not a number")
            if scale is not None and not scale[0] <= grade <= scale[1]:
                item = items[(mask & -mask).bit_length() - 1]
                raise InputError(
                    f"query {query_id!r}, document {doc_id!r}, item {item.item_id!r}: the grade {grade} is not on the "
                    f"scale {scale[0]} to {scale[1]}",
                    settings=("scale",),
                )


def scale_rows(query: QueryGrades) -> Iterator[Qrel]:
    """The row that says the scale of a query's grades, where it is known; see `scale_of_item`."""
    if query.scale is not None:
        yield Qrel(query.query_id, BANK_DOC, 0, f"{_SCALE_ITEM}{query.scale}")


def scale_of_item(item_id: str) -> Scale | None:
    """The scale that the item of a row for the document `*` says; None where it names an item.

    Raises:
        InputError: it says something else.
    """
    return parse_scale(item_id.removeprefix(_SCALE_ITEM)) if item_id.startswith(_SCALE_ITEM) else None


def all_rows(query: QueryGrades) -> Iterator[Grade]:
    """All grades of a query as records, those that failed too."""
    for row in query.rows():
        yield Grade(row.query_id, row.doc_id, row.relevance, row.iteration)
    for doc_id, mask in query.failed.items():
        for index, item in enumerate(query.items):
            if mask >> index & 1:
                yield Grade(query.query_id, doc_id, None, item.item_id, status="failed")
