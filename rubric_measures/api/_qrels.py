"""Grades written as qrels, for every program that reads those."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rubric_measures.api._loading import Gradable, RecordGrades, loaded
from rubric_measures.api._scoring import are_labels
from rubric_measures.base.errors import InputError

if TYPE_CHECKING:
    import os

    from rubric_measures.grades.compiled import Label
    from rubric_measures.grades.qrels import Unit

__all__ = ["write_qrels"]


def write_qrels(
    grades: Gradable,
    output: str | os.PathLike[str],
    *,
    per: Unit = "passage",
    label: Label = "max",
    rel: int | None = None,
) -> int:
    """Writes grades as a TREC qrels file; graded records are read as a stream.

    Args:
        grades: `Grades`, or what `load` takes.
        output: the file, gzipped where its name ends in `.gz`; `-` is standard output.
        per: one label a `passage`; a `facet`, as the query `query/facet`; or one line an `item` (diversity qrels).
        label: `max` or `count`, see `QueryGrades.labels`; not for items.
        rel: the inclusive minimum grade that counts; left out, `max` keeps all grades, and `count` takes the level that
            covers on the scale. Not for items.

    Returns:
        the number of grades that failed.

    Raises:
        InputError: no passage has a grade, no item names a facet, a label of items is asked for, lines of items of what
            has one label a passage, or items are to be counted and neither a level nor the scale is known.
    """
    from rubric_measures.formats import trec
    from rubric_measures.grades.qrels import QrelsSpool, qrels_of

    if per == "item" and (label, rel) != ("max", None):
        raise InputError(
            "lines of items hold the grades themselves; leave out how they become labels", settings=("label", "rel")
        )
    known = loaded(grades)
    if per == "item" and are_labels(known):
        raise InputError(
            "there are no item grades here, only one label a passage; write qrels of passages", settings=("per",)
        )
    if not isinstance(known, RecordGrades):
        trec.write_qrels(output, qrels_of(known, per, label, rel))
        return sum(mask.bit_count() for query in known.queries.values() for mask in query.failed.values())
    with QrelsSpool(per, label, rel, known.on_failed) as spool:
        known.records.consume(lambda stream: spool.fill(query.grades for query in stream))
        trec.write_qrels(output, spool.rows())
        return spool.failed
