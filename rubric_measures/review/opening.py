"""Opening a review: records, bank and the state file of what assessors did, checked to belong together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import check_readable_twice, read_text
from rubric_measures.measures.grade_sets import GradeFilter
from rubric_measures.measures.scoring import note_labels, parse_measures, rubric_measures_of
from rubric_measures.review._pages import render_markdown
from rubric_measures.review.requests import checked_assessor
from rubric_measures.review.review_data import load_material
from rubric_measures.review.session import Review
from rubric_measures.review.store import ReviewStore
from rubric_measures.types.entities import bank_hash

__all__ = ["DEFAULT_MEASURES", "open_review", "parse_assignments"]

DEFAULT_MEASURES = ("RubricCover@20", "RubricQrels(measure='nDCG@10')")
# Of answers whose citations were judged.
_OF_CITATIONS = ("SupportPrecision", "SupportRecall")


def open_review(
    graded: str,
    bank: str | os.PathLike[str],
    *,
    state: str | None = None,
    measures: Sequence[str] | None = None,
    wanted: GradeFilter | None = None,
    assessor: str = "",
    blind: bool = True,
    audit: int = 100,
    guidelines: str | os.PathLike[str] | None = None,
    assign: Sequence[str] = (),
    adjudicator: str = "",
) -> Review:
    """Opens a review; its store is to be closed.

    Args:
        graded: the file of graded records.
        bank: the file of the test bank.
        state: the file of what assessors did; None takes one beside the records.
        measures: of the impact screen; None takes `DEFAULT_MEASURES`, or measures of citations where these were judged.
            Levels that are left out are the scale's.
        wanted: the grades that are reviewed; the first grader of the file if None.
        assessor: who works here when the browser does not say.
        blind: the grader's grade is hidden until the assessor has given theirs.
        audit: how many grades the random audit sample has.
        guidelines: a file of instructions for assessors, in Markdown; None for none.
        assign: `NAME=QUERIES` of each assessor who works on some queries only, see `parse_assignments`.
        adjudicator: who decides what assessors differ on.

    Raises:
        InputError: a file cannot be read, or the state belongs to other records or another bank.
    """
    if graded == "-":
        raise InputError("review reads a file, because its state lies beside it; give a file")
    asked = parse_measures(measures or DEFAULT_MEASURES)
    # An export reads the bank once more, for what no item holds.
    check_readable_twice(os.fspath(bank))
    material = load_material(graded, os.fspath(bank), wanted or GradeFilter())
    if not measures and any(query.record.grades.answers for query in material.queries.values()):
        asked = parse_measures(_OF_CITATIONS)
    instructions = render_markdown(read_text(guidelines)) if guidelines is not None else ""
    assignments = parse_assignments(assign, list(material.bank.items))
    path = state or f"{graded}.review.sqlite"
    name = checked_assessor(assessor) if assessor else ""
    store = ReviewStore(path, material.bank, waiting=material.waiting, scale=material.scale)
    try:
        store.belong_to(bank=bank_hash(material.bank), grader=material.grader)
        lost = sum(cell not in material.numbers for cell in store.snapshot().grades)
        if lost:
            raise InputError(
                f"{path}: has grades of {lost} passages and items that {graded} lacks; "
                "give the records that were reviewed, or another state file",
                settings=("state",),
            )
    except BaseException:
        store.close()
        raise
    note_labels(asked)
    project = Path(graded).resolve().parent
    return Review(
        material,
        store,
        rubric_measures_of(asked),
        os.fspath(bank),
        project,
        name,
        blind,
        audit,
        instructions,
        assignments,
        checked_assessor(adjudicator) if adjudicator else "",
    )


def parse_assignments(texts: Sequence[str], queries: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """assessor -> the queries that they were given, in the order of the bank.

    Args:
        texts: `NAME=QUERIES` each; queries are ids, or `FIRST-LAST` in the order of the bank, with commas between. A
            name may come again.
        queries: the ids of the bank's queries, in its order.

    Raises:
        InputError: no name or no such query.

    >>> parse_assignments(["ada=q1-q2", "bob=q2,q3"], ["q1", "q2", "q3"])
    {'ada': ('q1', 'q2'), 'bob': ('q2', 'q3')}
    """
    given: dict[str, set[str]] = {}
    for text in texts:
        name, sign, ids = text.partition("=")
        if not sign or not ids.strip():
            raise InputError(f"{text!r} assigns nothing; expected NAME=QUERIES, as ada=q1-q10", settings=("assign",))
        given.setdefault(checked_assessor(name), set()).update(
            *(_span(part.strip(), queries) for part in ids.split(",") if part.strip())
        )
    return {name: tuple(one for one in queries if one in ids) for name, ids in given.items()}


def _span(part: str, queries: Sequence[str]) -> Sequence[str]:
    """The queries that a part of an assignment names: one, or those from a first to a last one."""
    if part in queries:
        return [part]
    # Ids may have hyphens of their own.
    for at in (place for place, char in enumerate(part) if char == "-"):
        first, last = part[:at], part[at + 1 :]
        if first in queries and last in queries:
            start, end = queries.index(first), queries.index(last)
            if start > end:
                raise InputError(f"{part!r}: {last} stands before {first} in the bank", settings=("assign",))
            return queries[start : end + 1]
    raise InputError(f"the bank has no query {part!r}, nor queries from and to of that name", settings=("assign",))
