"""The measures of a call: read as users write them, and computed together for a ranking, with what they needed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import ir_measures
from ir_measures.measures.base import Measure

from rubric_measures.base.errors import MeasureError, UnknownNameError
from rubric_measures.grades.compiled import OnFailed, QueryGrades
from rubric_measures.measures._plugged import check_plug_in
from rubric_measures.measures.delegated import checked_measure
from rubric_measures.measures.intent_aware import INTENT_AWARE, IntentAwareMeasure
from rubric_measures.measures.labels import RubricQrels
from rubric_measures.measures.measure import Computation, Coverage, QueryContext, RankedDocs, RubricMeasure

__all__ = [
    "Measures",
    "Plan",
    "QueryScorer",
    "Scored",
    "column_named",
    "is_supported",
    "note_labels",
    "parse_measures",
    "rubric_measures_of",
]


def is_supported(measure: Measure) -> bool:
    """Whether this package computes the measure: its own ones, and ir_measures' over subtopics."""
    return isinstance(measure, RubricMeasure) or measure.NAME in INTENT_AWARE


def _computation_of(measure: Measure) -> Computation:
    if not is_supported(measure):
        raise MeasureError(f"{measure} is no measure over rubric items; write RubricQrels(measure={str(measure)!r})")
    measure.validate_params()
    return measure if isinstance(measure, RubricMeasure) else IntentAwareMeasure(measure)


class Scored(NamedTuple):
    """What one ranking scores.

    Attributes:
        values: a value a measure; None where nothing can be said, because the grades of all items (or passages) failed.
        needed: cutoff -> how many of the grades that measures with this cutoff needed exist.
        lost_penalties: items of negative weight that cost nothing because their grade failed for a ranked passage.
        doc_ids: the documents that the measures looked at, best first.
    """

    values: Sequence[float | None]
    needed: Mapping[int | None, Coverage]
    lost_penalties: int
    doc_ids: Sequence[str]


class Plan:
    """All measures of one call, so that many levels and cutoffs cost about what one costs.

    Args:
        measures: measures that `is_supported`; order is kept.

    Attributes:
        measures: as given.
        computations: how each of them is computed.
        cutoffs: how many passages each of them looks at; None when all.
        depth: how many documents of a ranking they look at together; None when all.

    Raises:
        MeasureError: a measure is not supported here.
    """

    def __init__(self, measures: Sequence[Measure]) -> None:
        self.measures = list(measures)
        self.computations = list(map(_computation_of, self.measures))
        self.cutoffs = [one.depth for one in self.computations]
        # Measures over judged passages alone look for them as deep as it takes.
        depths = [one.depth for one in self.computations if one.depth is not None and not one.skips_unjudged]
        self.depth = max(depths, default=0) if len(depths) == len(self.computations) else None

    def for_query(self, grades: QueryGrades, on_failed: OnFailed = "exclude") -> QueryScorer:
        """Prepares the scoring of any number of rankings of one query.

        Raises:
            MeasureError: the grades lack what a measure needs.
        """
        return QueryScorer(self, QueryContext(grades, on_failed))


class QueryScorer:
    """Scores rankings of one query for all measures of a plan; made by `Plan.for_query`."""

    def __init__(self, plan: Plan, query: QueryContext) -> None:
        self._plan = plan
        self._query = query
        self._scorers = [one.prepare(query) for one in plan.computations]
        self._cutoffs = frozenset(plan.cutoffs)
        # Of these a failed grade may mean that there is no value.
        self._may_be_unknown = bool(query.grades.failed)

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
        return self._values(self._query.ranked(ranking, self._plan.depth))

    def score(self, ranking: Sequence[str]) -> Scored:
        """The value of each measure, and how much of what they needed is there; see `__call__`."""
        ranked = self._query.ranked(ranking, self._plan.depth)
        needed = {cutoff: ranked.coverage(cutoff) for cutoff in self._cutoffs}
        return Scored(self._values(ranked), needed, self._lost_penalties(ranked), ranking[: self._plan.depth])

    def _values(self, ranked: RankedDocs) -> list[float | None]:
        if not self._may_be_unknown:
            return [score(ranked) for score in self._scorers]
        return [
            None if self._is_unknown(computation, ranked.judged[: ranked.within(computation.depth)]) else score(ranked)
            for computation, score in zip(self._plan.computations, self._scorers, strict=True)
        ]

    def _is_unknown(self, computation: Computation, judged: Sequence[str]) -> bool:
        return not computation.HANDLES_FAILED and self._query.is_unknown(judged)

    def _lost_penalties(self, ranked: RankedDocs) -> int:
        if not self._may_be_unknown:
            return 0
        lost = 0
        for computation in self._plan.computations:
            lost |= computation.lost_penalties(self._query, ranked)
        return lost.bit_count()

    def without_passages(self) -> QueryScorer:
        """A scorer of the same query that knows no passage: it scores the empty ranking alike, and is small."""
        nothing = QueryGrades(self.query_id, self._query.items, {})
        return QueryScorer(self._plan, QueryContext(nothing, self._query.on_failed))

    def best_possible(self) -> list[float | None]:
        """The best value that any ranking of the graded passages could reach; None where it is not known."""
        everything = sorted(self._query.grades.levels)
        values: list[float | None] = []
        for computation, score in zip(self._plan.computations, self._scorers, strict=True):
            is_unknown = self._may_be_unknown and self._is_unknown(computation, everything[: computation.depth])
            values.append(None if is_unknown else computation.best(self._query, score))
        return values


Measures: TypeAlias = str | Measure | Iterable[str | Measure]
"""One measure or several: objects of ir_measures, or text (`RubricCover(rel=4)@20`; several with blanks between)."""


def parse_measures(measures: Measures) -> list[Measure]:
    """The measures, each once, in the order given.

    >>> parse_measures("NuggetV(rel=4, strict=True) nDCG@10")
    [NuggetV(rel=4,strict=True), nDCG@10]

    Raises:
        MeasureError: a measure cannot be read, or there is none.
        UnknownNameError: a measure is not known; names near ones.
        PlugInError: it is a measure of another package that cannot be used.
    """
    given = [measures] if isinstance(measures, str | Measure) else measures
    found: dict[Measure, None] = {}
    for one in given:
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
        name = str(measure).split("(")[0].split("@")[0]
        check_plug_in(name)
        raise UnknownNameError("measure", name, ir_measures.measures.registry) from None
    except (ValueError, AssertionError) as error:
        raise MeasureError(f"{measure}: {error}") from None


def _split(text: str) -> list[str]:
    """Splits at blanks, but not inside parentheses: `NuggetV(rel=4, strict=True) nDCG@10` is two measures."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char == "(") - (char == ")")
        if char.isspace() and depth <= 0:
            parts.append(current)
            current = ""
        elif not char.isspace():
            current += char
    return [part for part in [*parts, current] if part]


def column_named(name: str, columns: Sequence[str], hint: str = "") -> str:
    """The column of a leaderboard that a name means: itself, or the same measure in other quotes or spaces.

    `nDCG@10` means the column of `RubricQrels(measure='nDCG@10')`, too, as this is what scoring makes of it.

    Raises:
        UnknownNameError: there is none; names near ones.
    """
    if name in columns:
        return name
    try:
        measure = ir_measures.parse_measure(name)
        meant = [str(measure), str(_rubric_measure(measure))]
    except (NameError, ValueError, AssertionError):
        meant = [name]
    for canonical in meant:
        for column in columns:
            try:
                if canonical in (column, str(ir_measures.parse_measure(column))):
                    return column
            except (NameError, ValueError, AssertionError):
                continue
    raise UnknownNameError("measure", name, columns, hint=hint)


def rubric_measures_of(measures: Iterable[Measure]) -> list[Measure]:
    """The measures with standard ones wrapped, `nDCG@10` as `RubricQrels(measure='nDCG@10')`; see `note_labels`."""
    return list(dict.fromkeys(map(_rubric_measure, measures)))


def _rubric_measure(measure: Measure) -> Measure:
    return measure if is_supported(measure) else RubricQrels(measure=str(measure))


def note_labels(measures: Iterable[Measure]) -> None:
    """Says which of the measures asked for were wrapped; when there are scores, so that an error comes alone."""
    wrapped = [str(_rubric_measure(measure)) for measure in measures if not is_supported(measure)]
    if wrapped:
        logging.getLogger("rubric_measures").info(
            "%d standard measures read the labels that the grades imply (maximum grade): %s",
            len(wrapped),
            " ".join(wrapped),
        )
