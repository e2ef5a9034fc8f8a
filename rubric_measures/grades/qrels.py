"""Grades as judgments for any evaluation program: labels per passage or per facet, or the item grades themselves."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from ir_measures.util import Qrel

from rubric_measures.base.errors import InputError, MeasureError
from rubric_measures.grades.compiled import (
    BANK_DOC,
    Grades,
    Label,
    OnFailed,
    QueryGrades,
    faceted,
    scale_of_item,
    scale_rows,
)
from rubric_measures.types.scales import Scale

__all__ = ["UNITS", "Unit", "note_counted", "qrels_of", "times_rows"]

Unit = Literal["passage", "facet", "item"]
UNITS: tuple[Unit, ...] = ("passage", "facet", "item")


def qrels_of(grades: Grades, unit: Unit = "passage", label: Label = "max", rel: int | None = None) -> list[Qrel]:
    """Judgments from grades, sorted by query, document and item.

    Args:
        grades: the grades; failed ones have no row, unless they count as a grade (`Grades.on_failed`).
        unit: `passage`: one label a graded passage; `facet`: the same for the items of each facet, the query being
            `query_id/facet_id` (as TREC CAR is evaluated); `item`: one row a (passage, item), the item id in
            `iteration`, and for each item of the bank a row of grade 0 for the document `*`, so that the file still
            says what the denominator is.
        label: see `QueryGrades.labels`; not for items.
        rel: see `QueryGrades.labels`; not for items.

    Raises:
        InputError: no passage has a grade, or no item names a facet.
        MeasureError: a grade failed, and that is an error (`Grades.on_failed`).
    """
    rows = sorted(
        (
            row
            for query in _asked(grades.queries.values(), unit)
            for row in _rows(query.counting_failed(grades.on_failed), unit, label, rel)
        ),
        key=lambda row: (row.query_id, row.doc_id, row.iteration),
    )
    failed = sum(mask.bit_count() for query in grades.queries.values() for mask in query.failed.values())
    _say(any(row.doc_id != BANK_DOC for row in rows), failed, grades.on_failed)
    if label == "count" and rel is None:
        note_counted(grades.queries.values())
    return rows


def times_rows(rows: Iterable[Qrel], times: int | None) -> Iterator[Qrel]:
    """The judgments with larger, whole labels, for programs that read no fractions; the scale that rows say, too.

    Args:
        rows: the judgments; consumed as they are asked for.
        times: every label is multiplied by this, and rounded to the nearest integer; None leaves labels as they are,
            and a note says how many have fractions.

    Raises:
        InputError: `times` is less than 1.
    """
    if times is not None and times < 1:
        raise InputError(f"labels are multiplied by 1 or more, not by {times}", settings=("scale",))
    real = 0
    for row in rows:
        scale = scale_of_item(row.iteration) if row.doc_id == BANK_DOC else None
        if times is None:
            real += bool(row.relevance % 1)
            yield row
        elif scale is not None:
            partial = None if scale.partial is None else scale.partial * times
            larger = Scale(scale.lowest * times, scale.highest * times, scale.covers * times, partial)
            yield row._replace(iteration=row.iteration.replace(str(scale), str(larger)))
        else:
            yield row._replace(relevance=round(row.relevance * times))
    if real:
        logging.getLogger("rubric_measures").warning(
            "%d labels have fractions, which trec_eval and others do not read; they need larger, whole ones",
            real,
            extra={"settings": ("scale",)},
        )


def note_counted(queries: Iterable[QueryGrades], source: str = "") -> None:
    """Says from which grade on labels count items, where nobody chose it: the level that covers on the scale."""
    for scale in sorted({query.scale[:3] for query in queries if query.scale is not None}):
        logging.getLogger("rubric_measures").info(
            "%slabels count the items graded %d or better (the scale is %d to %d)",
            f"{source}: " if source else "",
            scale[2],
            *scale[:2],
        )


def _asked(queries: Iterable[QueryGrades], unit: Unit) -> Iterable[QueryGrades]:
    """The queries; where facets are asked for, with a look at whether there are any."""
    return faceted(queries, lambda query: query) if unit == "facet" else queries


def _say(is_graded: bool, failed: int, on_failed: OnFailed) -> None:
    if failed and on_failed == "error":
        raise MeasureError(
            f"{failed} grades failed; grade again, or choose how failures count", settings=("on_failed",)
        )
    if not is_graded:
        raise InputError("no passage has a grade, so there are no qrels to write")
    if failed:
        done = f"count as grade {on_failed}" if isinstance(on_failed, int) else "are not in the qrels"
        logging.getLogger("rubric_measures").warning("%d grades failed and %s", failed, done)


def _rows(query: QueryGrades, unit: Unit, label: Label, rel: int | None) -> Iterator[Qrel]:
    if unit == "item":
        yield from query.rows()
        yield from (Qrel(query.query_id, BANK_DOC, 0, item.item_id) for item in query.items)
        yield from scale_rows(query)
    elif unit == "passage":
        yield from (Qrel(query.query_id, doc_id, value) for doc_id, value in query.labels(label, rel).items())
    else:
        for facet, members in _facets(query).items():
            part = replace(query, levels=_restricted(query, members), failed={})
            yield from (Qrel(facet, doc_id, value) for doc_id, value in part.labels(label, rel).items())


def _facets(query: QueryGrades) -> dict[str, int]:
    """Facet -> mask of its items; the facet is in the item's record, or in its id."""
    facets: dict[str, int] = {}
    for index, item in enumerate(query.items):
        facets[item.part] = facets.get(item.part, 0) | 1 << index
    return facets


def _restricted(query: QueryGrades, members: int) -> dict[str, dict[float, int]]:
    return {
        doc_id: {grade: mask & members for grade, mask in levels.items() if mask & members}
        for doc_id, levels in query.levels.items()
    }
