"""Grades as judgments for any evaluation program: labels per passage or per facet, or the item grades themselves."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Literal

from ir_measures.util import Qrel

from rubric_measures.errors import InputError
from rubric_measures.graded import BANK_DOC, Grades, Label, QueryGrades
from rubric_measures.records import facet_of

__all__ = ["UNITS", "Unit", "qrels_of"]

Unit = Literal["passage", "facet", "item"]
UNITS: tuple[Unit, ...] = ("passage", "facet", "item")


def qrels_of(grades: Grades, unit: Unit = "passage", label: Label = "max", rel: int = 1) -> list[Qrel]:
    """Judgments from grades, sorted by query, document and item.

    Args:
        grades: the grades.
        unit: `passage`: one label a graded passage; `facet`: the same for the items of each facet, the query being
            `query_id/facet_id` (as TREC CAR is evaluated); `item`: one row a (passage, item), the item id in
            `iteration`, and for each item of the bank a row of grade 0 for the document `*`, so that the file still
            says what the denominator is.
        label: see `QueryGrades.labels`; not for items.
        rel: see `QueryGrades.labels`; not for items.

    Raises:
        InputError: no passage has a grade.
    """
    rows = sorted(
        (row for query in grades.queries.values() for row in _rows(query, unit, label, rel)),
        key=lambda row: (row.query_id, row.doc_id, row.iteration),
    )
    if not any(row.doc_id != BANK_DOC for row in rows):
        raise InputError("no passage has a grade, so there are no qrels to write")
    failed = sum(mask.bit_count() for query in grades.queries.values() for mask in query.failed.values())
    if failed:
        logging.getLogger("rubric_measures").warning("%d grades failed and are not in the qrels", failed)
    return rows


def _rows(query: QueryGrades, unit: Unit, label: Label, rel: int) -> Iterator[Qrel]:
    if unit == "item":
        yield from query.rows()
        yield from (Qrel(query.query_id, BANK_DOC, 0, item.item_id) for item in query.items)
    elif unit == "passage":
        yield from (Qrel(query.query_id, doc_id, value) for doc_id, value in query.labels(label, rel).items())
    else:
        for facet, members in _facets(query).items():
            part = QueryGrades(query.query_id, query.items, _restricted(query, members))
            yield from (Qrel(facet, doc_id, value) for doc_id, value in part.labels(label, rel).items())


def _facets(query: QueryGrades) -> dict[str, int]:
    """Facet -> mask of its items; the facet is in the item's record, or in its id."""
    facets: dict[str, int] = {}
    for index, item in enumerate(query.items):
        facet = facet_of(item.item_id) if item.facet_id is None else f"{query.query_id}/{item.facet_id}"
        facets[facet] = facets.get(facet, 0) | 1 << index
    return facets


def _restricted(query: QueryGrades, members: int) -> dict[str, dict[int, int]]:
    return {
        doc_id: {grade: mask & members for grade, mask in levels.items() if mask & members}
        for doc_id, levels in query.levels.items()
    }
