"""The measures of a call: read as users write them, and computed together for a ranking, with what they needed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import ir_measures
from ir_measures.measures.base import Measure

from rubric_measures.base.errors import InputError, MeasureError, UnknownNameError
from rubric_measures.measures.grades import OnFailed, QueryGrades
from rubric_measures.measures.intent_aware import INTENT_AWARE, IntentAwareMeasure
from rubric_measures.measures.labels import RubricQrels, StandardMeasure, checked_measure
from rubric_measures.measures.measure import (
    Computation,
    Coverage,
    Needed,
    QueryContext,
    RankedDocs,
    RubricMeasure,
    check_plug_in,
)
from rubric_measures.types.entities import RubricItem, ScoredIds
from rubric_measures.types.scales import ANY_LEVEL, Scale, refuse_unreachable

# A grade above every level.
_HIGHEST = 1 << 30


def is_supported(measure: Measure) -> bool:
    """Whether this package computes the measure: its own ones, and ir_measures' over subtopics."""
    return isinstance(measure, RubricMeasure) or measure.NAME in INTENT_AWARE


def _said_levels(measure: Measure) -> list[int]:
    """The levels that a measure says, which grades are compared with."""
    if isinstance(measure, RubricMeasure):
        return measure.said_levels()
    return [measure["rel"]] if measure.NAME in INTENT_AWARE else []


def _computation_of(measure: Measure) -> Computation:
    if not is_supported(measure):
        return StandardMeasure(measure)
    measure.validate_params()
    return measure if isinstance(measure, RubricMeasure) else IntentAwareMeasure(measure)


class Scored(NamedTuple):
    """What one ranking scores.

    Attributes:
        values: a value a measure; None where nothing can be said, because the grades of all items (or passages) failed.
        needed: which grades measures need (`Computation.needs`) -> how many of them exist.
        lost_penalties: items of negative weight that cost nothing because their grade failed for a ranked passage.
        doc_ids: the documents that the measures looked at, best first.
        dropped: passages without any valid grade that left the ranking of measures over labels and subtopics.
        failures: for each measure what failed grades leave open of its value; empty where none failed.
    """

    values: Sequence[float | None]
    needed: Mapping[Needed, Coverage]
    lost_penalties: int
    doc_ids: Sequence[str]
    dropped: int = 0
    failures: Sequence[LeftOpen] = ()


class LeftOpen(NamedTuple):
    """What failed grades leave open of one value.

    Attributes:
        zero: the value with all of them as zero; None where it is not known.
        bounds: what the value lies between, whatever they were; None where it is not known.
        spread: how far failures at random move it (one standard error); None where it is not known.
    """

    zero: float | None
    bounds: tuple[float, float] | None
    spread: float | None


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
    """All measures of one call, so that many levels and cutoffs cost about what one costs.

    Args:
        measures: measures that `is_supported`; order is kept.

    Attributes:
        measures: as given.
        computations: how each of them is computed.
        needs: the grades that each of them needs, see `Computation.needs`.
        depth: how many documents of a ranking they look at together; None when all.
        reads_scores: whether one is computed by a program that sorts a run itself; see `ScoredIds`.

    Raises:
        MeasureError: a measure is not supported here.
    """

    def __init__(self, measures: Sequence[Measure]) -> None:
        self.measures = list(measures)
        self.computations = list(map(_computation_of, self.measures))
        self.needs = [one.needs for one in self.computations]
        # Measures over judged passages alone look for them as deep as it takes.
        depths = [one.depth for one in self.computations if one.depth is not None and not one.skips_unjudged]
        self.depth = max(depths, default=0) if len(depths) == len(self.computations) else None
        self.reads_scores = any(isinstance(one, StandardMeasure) for one in self.computations)
        self._on: dict[Scale | None, Plan] = {}

    @property
    def condenses(self) -> bool:
        """Whether a measure is over rankings without the passages whose grades all failed."""
        return not all(one.HANDLES_FAILED for one in self.computations)

    def on(self, scale: Scale | None) -> Plan:
        """The plan with all levels said: those that are left out are the scale's.

        Raises:
            MeasureError: the scale is not known, and a level is needed; or one that somebody wrote down is above it.
        """
        if scale not in self._on:
            if scale is not None:
                self.refuse_above(scale)
            said = [one.on(scale) if isinstance(one, RubricMeasure) else one for one in self.measures]
            self._on[scale] = self if said == self.measures else Plan(said)
        return self._on[scale]

    def refuse_above(self, scale: Scale) -> None:
        """Refuses a measure with a level that no grade of the scale reaches.

        Raises:
            MeasureError: naming measure, level and scale.
        """
        for measure in self.measures:
            for level in _said_levels(measure):
                refuse_unreachable(scale, level, str(measure))

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
        if not grades.levels:
            return self
        return self.on(scales.add(grades))

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
            plan.for_query(QueryGrades(query_id, items, {}, scale=scale))([])

    def for_query(self, grades: QueryGrades, on_failed: OnFailed = "expected") -> QueryScorer:
        """Prepares the scoring of any number of rankings of one query.

        Raises:
            MeasureError: the grades lack what a measure needs.
        """
        self._refuse_labels(grades)
        plan = self.on(grades.scale if grades.levels or grades.scale else ANY_LEVEL)
        return QueryScorer(plan, QueryContext(grades, on_failed))


class QueryScorer:
    """Scores rankings of one query for all measures of a plan; made by `Plan.for_query`."""

    def __init__(self, plan: Plan, query: QueryContext) -> None:
        self._plan = plan
        self._query = query
        self._scorers = [one.prepare(query) for one in plan.computations]
        self._needed = {which: query.coverage(which) for which in dict.fromkeys(plan.needs)}
        # Of these a failed grade may mean that there is no value.
        self._may_be_unknown = bool(query.grades.failed)
        self._condenses = query.on_failed == "expected" and bool(query.void) and plan.condenses
        is_expecting = query.on_failed == "expected"
        # Whether a computation knows of failures itself, and how far it looks, which is the same for all rankings.
        self._reaches = (
            [
                (one.HANDLES_FAILED, None if is_expecting and one.skips_unjudged else one.depth)
                for one in plan.computations
            ]
            if self._may_be_unknown
            else []
        )

    @property
    def query_id(self) -> str:
        """The query whose rankings are scored."""
        return self._query.query_id

    def __call__(self, ranking: Sequence[str]) -> list[float | None]:
        """The value of each measure, in the order of the plan; see `Scored.values`.

        Args:
            ranking: doc_ids, best first, without repetition.

        Raises:
            MeasureError: on_failed is `error` and a grade that is needed failed.
        """
        ranked = self._query.ranked(ranking, self._plan.depth)
        return self._values(ranked, self._condensed(ranking) if self._condenses else ranked)

    def score(self, ranking: Sequence[str], *, failures: bool = False) -> Scored:
        """The value of each measure, and how much of what they needed is there; see `__call__`.

        Args:
            ranking: as for `__call__`.
            failures: find out what failed grades leave open, too.
        """
        depth = self._plan.depth
        ranked = self._query.ranked(ranking, depth)
        needed = {which: count(ranked) for which, count in self._needed.items()}
        if not self._may_be_unknown:
            return Scored(self._values(ranked, ranked), needed, 0, ranking[:depth])
        condensed, dropped = ranked, 0
        if self._condenses:
            condensed = self._condensed(ranking)
            looked_at = len(ranking) if depth is None else _depth_without(ranking, self._query.void, depth)
            dropped = sum(doc_id in self._query.void for doc_id in ranking[:looked_at])
            depth = looked_at
        values = self._values(ranked, condensed)
        return Scored(
            values,
            needed,
            self._lost_penalties(ranked),
            ranking[:depth],
            dropped,
            self._completed.failures(ranking, ranked, values) if failures and ranking else (),
        )

    def _condensed(self, ranking: Sequence[str]) -> RankedDocs:
        """The ranking without the passages of which all that is known is that grades failed."""
        void = self._query.void
        kept: Sequence[str] = [doc_id for doc_id in ranking if doc_id not in void]
        if isinstance(ranking, ScoredIds):
            kept = ScoredIds(kept, [pair for pair in ranking.given if pair[0] not in void])
        return self._query.ranked(kept, self._plan.depth)

    def _values(self, ranked: RankedDocs, condensed: RankedDocs) -> list[float | None]:
        if not self._may_be_unknown:
            return [score(ranked) for score in self._scorers]
        values: list[float | None] = []
        unknown: dict[int | None, bool] = {}
        for (handles, cutoff), score in zip(self._reaches, self._scorers, strict=True):
            if handles:
                values.append(score(ranked))
                continue
            if cutoff not in unknown:
                unknown[cutoff] = self._is_unknown(cutoff, ranked, condensed)
            values.append(None if unknown[cutoff] else score(condensed))
        return values

    def _is_unknown(self, cutoff: int | None, ranked: RankedDocs, condensed: RankedDocs) -> bool:
        query = self._query
        if query.on_failed != "expected":
            query.refuse_failed(ranked.judged[: ranked.within(cutoff)])
            return False
        return not query.void.isdisjoint(ranked.judged[: ranked.within(cutoff)]) and not any(
            query.valid[doc_id] for doc_id in condensed.judged[: condensed.within(cutoff)]
        )

    @cached_property
    def _completed(self) -> _Completed:
        return _Completed(self._plan, self._query)

    def prepare_failures(self) -> None:
        """Prepares what `score` finds out of failures; processes that are forked later then share it."""
        if self._may_be_unknown:
            _ = self._completed

    def _lost_penalties(self, ranked: RankedDocs) -> int:
        if not self._may_be_unknown:
            return 0
        lost = 0
        for computation in self._plan.computations:
            lost |= computation.lost_penalties(self._query, ranked)
        return lost.bit_count()

    def best_possible(self) -> list[float | None]:
        """The best value that any ranking of the graded passages could reach; None where it is not known."""
        everything = sorted(self._query.grades.levels)
        values: list[float | None] = []
        for computation, score in zip(self._plan.computations, self._scorers, strict=True):
            is_unknown = self._may_be_unknown and not computation.HANDLES_FAILED and self._has_no_valid(everything)
            values.append(None if is_unknown else computation.best(self._query, score))
        return values

    def _has_no_valid(self, everything: Sequence[str]) -> bool:
        """Whether all that is known of the query is that grades failed."""
        query = self._query
        if query.on_failed != "expected":
            query.refuse_failed(everything)
            return False
        return bool(query.void) and not any(query.valid.values())


def _depth_without(ranking: Sequence[str], void: Set[str], depth: int) -> int:
    """How deep a ranking is looked at, for `depth` documents that are not void."""
    kept = 0
    for place, doc_id in enumerate(ranking, 1):
        kept += doc_id not in void
        if kept == depth:
            return place
    return len(ranking)


class _Completed:
    """A query with its failed grades as zero, as the lowest and as the highest of the scale: what they leave open."""

    def __init__(self, plan: Plan, query: QueryContext) -> None:
        self._depth = plan.depth
        grades = query.grades
        # Where the scale is not known, any grade that covers will do: measures that need to know it have no bounds.
        lowest, highest = (0, _HIGHEST) if grades.scale is None else grades.scale[:2]
        zeros = query.with_zeros()
        # Measures that take failed grades for none have their value, unless a passage has no other grade.
        self._zero_scorers = [
            one.prepare(zeros) if one.HANDLES_FAILED or query.void else None for one in plan.computations
        ]
        self._lowest, self._highest = query.filled(lowest), query.filled(highest)
        # Then the passages that are graded stand at the same ranks.
        self._is_alike = grades.failed.keys() <= grades.levels.keys()
        self._bounds = [one.bounds(self._lowest, self._highest) for one in plan.computations]
        self._spreads = [one.spread(query) if query.on_failed == "expected" else None for one in plan.computations]

    def failures(
        self, ranking: Sequence[str], ranked: RankedDocs, values: Sequence[float | None]
    ) -> Sequence[LeftOpen]:
        """What failed grades leave open of the value of a ranking by each measure.

        Args:
            ranking: doc_ids, best first.
            ranked: the ranking as the measures look at it.
            values: the values.
        """
        of_lowest, of_highest = (
            ranked.seen_by(query) if self._is_alike else query.ranked(ranking, self._depth)
            for query in (self._lowest, self._highest)
        )
        return [
            LeftOpen(
                value if zero is None else zero(ranked),
                None if bounds is None else bounds(of_lowest, of_highest),
                0.0 if value is None else None if spread is None else spread(ranked),
            )
            for zero, bounds, spread, value in zip(self._zero_scorers, self._bounds, self._spreads, values, strict=True)
        ]


Measures: TypeAlias = str | Measure | Iterable[str | Measure]
"""One measure or several: objects of ir_measures, or text (`RubricCover(rel=4)@20`; several with blanks between)."""


def parse_measures(measures: Measures) -> list[Measure]:
    """The measures, each once, in the order given.

    >>> parse_measures("NuggetV(rel=4, strict=True) nDCG@10")
    [NuggetV(rel=4,strict=True), nDCG@10]

    Raises:
        InputError: one is neither text nor a measure.
        MeasureError: a measure cannot be read, or there is none.
        UnknownNameError: a measure is not known; names near ones.
        PlugInError: it is a measure of another package that cannot be used.
    """
    given = [measures] if isinstance(measures, str | Measure) or not isinstance(measures, Iterable) else measures
    found: dict[Measure, None] = {}
    for one in given:
        if not isinstance(one, str | Measure):
            problem = f"measures: {one!r:.60} is no measure; give names, as 'RubricCover@20', or objects of ir_measures"
            raise InputError(problem, settings=("measures",))
        for part in _split(one) if isinstance(one, str) else [one]:
            found[_parsed(part)] = None
    if not found:
        raise MeasureError("name at least one measure")
    return list(found)


def _parsed(measure: str | Measure) -> Measure:
    try:
        found = ir_measures.parse_measure(measure) if isinstance(measure, str) else measure
        if not isinstance(found, RubricMeasure):
            return checked_measure(found)
        # Ours say themselves what is wrong.
        found.validate_params()
        return found
    except NameError:
        _refuse_other_spelling(str(measure))
        name = str(measure).split("(")[0].split("@")[0]
        check_plug_in(name)
        raise UnknownNameError("measure", name, ir_measures.measures.registry) from None
    except (ValueError, AssertionError) as error:
        _refuse_other_spelling(str(measure))
        raise MeasureError(f"{measure}: {error}") from None


# The measures of trec_eval by their names there; those with a cutoff end in `_10`.
_OF_TREC_EVAL = {
    "map": "AP",
    "map_cut": "AP",
    "ndcg": "nDCG",
    "ndcg_cut": "nDCG",
    "recip_rank": "RR",
    "P": "P",
    "recall": "R",
    "success": "Success",
    "bpref": "Bpref",
    "num_ret": "NumRet",
    "num_rel": "NumRel",
    "num_q": "NumQ",
}


def _refuse_other_spelling(text: str) -> None:
    """Says how measures are written that come as trec_eval calls them, or with commas between them; and files.

    Raises:
        MeasureError: they do.
    """
    if not text.isidentifier() and Path(text).is_file():
        raise MeasureError(f"{text} is a file, and no measure; name runs before the measures")
    parts = _split(text, ",")
    if len(parts) > 1:
        raise MeasureError(f"{text}: part measures with blanks, not with commas: {' '.join(parts)}")
    name, _, cutoff = text.rpartition("_")
    is_cut = cutoff.isascii() and cutoff.isdecimal()
    known = _OF_TREC_EVAL.get(name if is_cut else text)
    if known is not None:
        raise MeasureError(f"{text} is trec_eval's name; here it is {known}{f'@{cutoff}' if is_cut else ''}")


def _split(text: str, also: str = " ") -> list[str]:
    """Splits at blanks (and at `also`), but not inside parentheses: `NuggetV(rel=4, strict=True) nDCG@10` is two."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char == "(") - (char == ")")
        if (char.isspace() or char == also) and depth <= 0:
            parts.append(current)
            current = ""
        elif not char.isspace():
            current += char
    return [part for part in [*parts, current] if part]


def column_named(name: str, columns: Sequence[str], hint: str = "") -> str:
    """The column of a leaderboard that a name means.

    That is the column itself, or the same measure in other quotes or spaces, or the same one with the levels that the
    scale said: `NuggetA` means `NuggetA(rel=2,partial_rel=1)`.

    `nDCG@10` means the column of `RubricQrels(measure='nDCG@10')`, too, as this is what scoring makes of it, and the
    other way round: over labels of assessors the column is `nDCG@10`.

    Raises:
        UnknownNameError: there is none; names near ones.
    """
    found = columns_named(name, columns)
    if len(found) == 1:
        return found[0]
    raise UnknownNameError("measure", name, found or columns, hint=hint)


def columns_named(name: str, columns: Sequence[str]) -> list[str]:
    """The columns that a name may mean, see `column_named`: one, several that differ in their levels, or none."""
    if name in columns:
        return [name]
    asked = _measure_named(name)
    found = [(column, _measure_named(column)) for column in columns] if asked is not None else []
    for meant in dict.fromkeys((asked, _rubric_measure(asked), _standard_measure(asked))) if asked is not None else ():
        same = [column for column, measure in found if str(meant) in (column, str(measure))]
        # Of standard measures a level that is left out is level 1, and not the scale's.
        levelled = [(column, measure) for column, measure in found if isinstance(measure, RubricMeasure)]
        more = [
            column
            for column, measure in levelled
            if measure.NAME == meant.NAME and _without_levels(measure, meant) == meant.params
        ]
        if same or more:
            return same[:1] or more
    return []


def _without_levels(measure: Measure, asked: Measure) -> dict[str, Any]:
    """The parameters of a measure without the levels that another one does not say."""
    return {
        name: value
        for name, value in measure.params.items()
        if name in asked.params or name not in ("rel", "partial_rel")
    }


def _measure_named(name: str) -> Measure | None:
    try:
        return ir_measures.parse_measure(name)
    except (NameError, ValueError, AssertionError):
        return None


def is_standard(name: str) -> bool:
    """Whether a column of a leaderboard is of a measure that reads judgments, as `nDCG@10` does, and no grades."""
    measure = _measure_named(name)
    return measure is not None and not is_supported(measure)


def inner_names(name: str) -> list[str]:
    """The measure inside a `RubricQrels`, whatever it makes of grades; none of other columns."""
    measure = _measure_named(name)
    return [str(measure.value("measure"))] if isinstance(measure, type(RubricQrels)) else []


def rubric_measures_of(measures: Iterable[Measure]) -> list[Measure]:
    """The measures with standard ones wrapped, `nDCG@10` as `RubricQrels(measure='nDCG@10')`; see `note_labels`."""
    return list(dict.fromkeys(map(_rubric_measure, measures)))


def _rubric_measure(measure: Measure) -> Measure:
    return measure if is_supported(measure) else RubricQrels(measure=str(measure))


def _standard_measure(measure: Measure) -> Measure:
    """The measure of ir_measures that a `RubricQrels` is over labels which stand for themselves; else the measure."""
    if not isinstance(measure, type(RubricQrels)) or measure.value("label") != "max":
        return measure
    inner = measure.inner()
    return inner if measure.value("rel") is None or "rel" in inner.params else measure


def note_labels(measures: Iterable[Measure]) -> None:
    """Says which of the measures asked for were wrapped; when there are scores, so that an error comes alone."""
    wrapped = [str(_rubric_measure(measure)) for measure in measures if not is_supported(measure)]
    if wrapped:
        logging.getLogger("rubric_measures").info(
            "%d standard measures read the labels that the grades imply (maximum grade): %s",
            len(wrapped),
            " ".join(wrapped),
        )
