"""Leaderboards as the Rubric workbench's program computes them, to recompute published ones.

It differs from the paper, and so from `leaderboard`: The denominator is the graded items of a query, not its bank. A
run is averaged only over the queries in which it ranks a passage at rank 20 or better. The cut is on the `rank` field
as it stands (tied ranks are all kept), whatever query a ranking names. Where several grade sets pass the filter, the
first of each passage counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ir_measures.measures.base import Measure

from rubric_measures.base.errors import InputError, MeasureError
from rubric_measures.leaderboards.board import OVERALL, Leaderboard
from rubric_measures.leaderboards.scoring import (
    InputsReader,
    collect_cells,
    inputs_settings,
    measure_names,
    ranking_digest,
)
from rubric_measures.measures.grade_sets import GradeFilter
from rubric_measures.measures.grades import QueryGrades
from rubric_measures.measures.loading import RankedPassage, RecordQuery
from rubric_measures.measures.scoring import Plan, SameScale
from rubric_measures.types.entities import Signature, made_by
from rubric_measures.types.scales import ANY_LEVEL

__all__ = ["DEFAULT_RANK", "score_workbench", "workbench_filter"]

DEFAULT_RANK = 20


def workbench_filter(wanted: GradeFilter) -> GradeFilter:
    """The filter with the workbench's rule for several grade sets: the first in file order, passage by passage."""
    return replace(wanted, first=True)


def _check(measures: Sequence[Measure]) -> None:
    for measure in measures:
        if measure.NAME not in ("RubricCover", "nRubricCover") or measure["judged_only"]:
            raise MeasureError(f"the Rubric workbench's program knows RubricCover and nRubricCover, not {measure}")
        if measure.params.get("cutoff") is None:
            raise MeasureError(f"the Rubric workbench's program cuts rankings by rank; write {measure}@{DEFAULT_RANK}")


def _union(covering: Mapping[str, int], doc_ids: Iterable[str]) -> int:
    mask = 0
    for doc_id in doc_ids:
        mask |= covering.get(doc_id, 0)
    return mask


class _QueryCover:
    """Cover of one query by the program's rules."""

    def __init__(self, grades: QueryGrades, measures: Sequence[Measure]) -> None:
        self._measures = measures
        self._covering = {rel: grades.at_least(rel) for rel in {measure["rel"] for measure in measures}}
        graded = 0
        for levels in grades.levels.values():
            for mask in levels.values():
                graded |= mask
        self._graded = graded.bit_count()
        self._reachable = {rel: _union(covering, covering).bit_count() for rel, covering in self._covering.items()}

    def value(self, measure: Measure, doc_ids: Iterable[str]) -> float:
        rel = measure["rel"]
        denominator = self._reachable[rel] if measure.NAME == "nRubricCover" else self._graded
        return _union(self._covering[rel], doc_ids).bit_count() / denominator if denominator else 0.0

    def overall(self, measure: Measure) -> float:
        return self.value(measure, self._covering[measure["rel"]])


def score_workbench(
    queries: Iterable[RecordQuery], measures: Sequence[Measure], settings: Mapping[str, object] | None = None
) -> Leaderboard:
    """Scores the rankings inside graded records by the rules of the workbench's program.

    Args:
        queries: the stream of `loading.read_records`, read with `workbench_filter` and with `keep_ranks`.
        measures: RubricCover and nRubricCover with a cutoff.
        settings: what else belongs into the signature.

    Returns:
        a leaderboard whose means are over the queries that each run ranks.

    Raises:
        MeasureError: another measure is asked for.
        InputError: the records hold no ranking.

    Source: facts of the program, published with Dietz (SIGIR 2024).
    """
    _check(measures)
    plan, scales = Plan(measures), SameScale()
    asked = [str(measure) for measure in measures]
    values: dict[str, dict[str, dict[str, float | None]]] = {}
    grade_sets: set[str] = set()
    made: set[str] = set()
    inputs = InputsReader()
    deepest = max(measure["cutoff"] for measure in measures)
    for query in queries:
        grade_sets.update(map(str, query.grade_sets))
        made |= query.made
        inputs.add_grades(query.query_id, query.grades)
        for run_id, places in query.ranks.items():
            looked_at = [f"{place.rank} {place.doc_id}" for place in sorted(places) if place.rank <= deepest]
            inputs.add_run(run_id, [(query.query_id, ranking_digest(looked_at))])
        levelled = plan.said(scales, query.grades)
        # Refuses measures that are one on this scale.
        measure_names(levelled.measures, plan.measures)
        plan = levelled
        # A query without grades covers nothing, at whatever level.
        measures = plan.on(ANY_LEVEL).measures
        cover = _QueryCover(query.grades, measures)
        for run_id, places in query.ranks.items():
            for measure, name in zip(measures, asked, strict=True):
                kept = _within(places, measure["cutoff"])
                if kept:
                    values.setdefault(run_id, {}).setdefault(name, {})[query.query_id] = cover.value(measure, kept)
        for measure, name in zip(measures, asked, strict=True):
            values.setdefault(OVERALL, {}).setdefault(name, {})[query.query_id] = cover.overall(measure)
    if not values.keys() - {OVERALL}:
        raise InputError(
            "the records hold no ranking; the Rubric workbench's program scores the rankings inside the records"
        )
    names = measure_names(plan.measures)
    ordered = {
        run_id: {
            name: dict(sorted(values[run_id].get(one, {}).items())) for name, one in zip(names, asked, strict=True)
        }
        for run_id in sorted(values)
    }
    said = {"measures": names, "compat": "workbench", "grades": sorted(grade_sets), **made_by(made), **(settings or {})}
    signature = Signature({**said, **inputs_settings(inputs.read())})
    return Leaderboard(names, ordered, collect_cells(ordered), signature, inputs=inputs.read())


def _within(places: Sequence[RankedPassage], cutoff: int) -> list[str]:
    return [place.doc_id for place in places if place.rank <= cutoff]
