"""Grades from rows and qrels, and grades as qrels.

Item-level judgments of any kind (named tuples, frames, compiled grades), compiled into `Grades`.

Grades as judgments for any evaluation program: labels per passage, or the item grades themselves.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from ir_measures.util import Qrel

from rubric_measures.base.errors import InputError, MeasureError, UnknownNameError, naming
from rubric_measures.base.files import path_name
from rubric_measures.formats.judged import GradeRow, grader_of, grades_of_rows
from rubric_measures.formats.trec import QueryQrels, map_qrels
from rubric_measures.measures.findings import Note, say
from rubric_measures.measures.grades import (
    BANK_DOC,
    Grades,
    Label,
    OnFailed,
    QueryGrades,
    Rows,
    build_query,
    item_rows,
    note_left_out,
    scale_of_item,
)
from rubric_measures.types.entities import RubricItem, TestBank
from rubric_measures.types.scales import Scale


class _Columns(NamedTuple):
    """Item-level judgments by column, whatever they came from; a column that was not given is None."""

    query_ids: Sequence[str]
    doc_ids: Sequence[str]
    relevances: Sequence[Any]
    item_ids: Sequence[str]
    statuses: Sequence[str | None] | None = None
    importances: Sequence[Any] | None = None
    weights: Sequence[Any] | None = None

    def take(self, places: Iterable[int]) -> _Columns:
        """The rows at some places, in their order."""
        kept = sorted(places)
        return self._replace(**{name: [*map(of.__getitem__, kept)] for name, of in self._asdict().items() if of})


# What rows and frames call their parts: those that all have, and the item; then those that some have.
_NEEDED, _ITEM = ("query_id", "doc_id", "relevance"), ("iteration", "item_id", "subtopic_id")
_MORE = ("status", "importance", "weight")


def _columns_of(qrels: Any) -> _Columns:
    """The columns of anything that ir_measures takes as item-level qrels."""
    if isinstance(qrels, dict):
        raise MeasureError(
            "a nested dict of judgments carries no rubric items; give rows with an `iteration` (the item id)"
        )
    names = (*_NEEDED, *_ITEM, *_MORE)
    if hasattr(qrels, "itertuples"):
        # Columns, not row objects: seven times faster, and no column of ours is lost.
        found = {name: qrels[name].tolist() for name in names if name in qrels.columns}
        other = None if found.keys() >= set(_NEEDED) else list(qrels.columns)
    else:
        rows = list(qrels)
        if not rows:
            return _Columns((), (), (), ())
        kinds = {type(row): row for row in rows}.values()
        other = next((row for row in kinds if not all(hasattr(row, name) for name in _NEEDED)), None)
        given = [name for name in names if any(hasattr(row, name) for row in kinds)]
        found = {name: [getattr(row, name, None) for row in rows] for name in given}
    if other is not None:
        raise InputError(f"a grade is a row with query_id, doc_id, relevance and iteration; found {other!r:.60}")
    item_ids = next((found[name] for name in _ITEM if name in found), [None])
    if None in item_ids:
        raise MeasureError(
            "judgments without an `iteration` with the item ids, which rubric measures need (of a collection of this "
            "package, name the id with /items)"
        )
    query_ids, doc_ids, relevances = (found[name] for name in _NEEDED)
    return _Columns(_texts(query_ids), _texts(doc_ids), relevances, _texts(item_ids), *map(found.get, _MORE))


def _texts(values: Sequence[Any]) -> Sequence[str]:
    """Ids as texts; those of a column with gaps are 1.0, …."""
    whole = (int(one) if isinstance(one, float) and one.is_integer() else one for one in values)
    return values if set(map(type, values)) == {str} else list(map(str, whole))


# How cells of a frame say that there is nothing, as texts.
_NOTHING = ("None", "nan", "<NA>", "")


def _declared_items(query_id: str, columns: _Columns) -> Sequence[RubricItem]:
    """The items that rows of a query speak of, sorted, with importance and weight where a column gives them.

    Raises:
        InputError: an importance is neither vital nor okay, or a weight is no finite number.
    """
    given: Any = ("importance", columns.importances, str), ("weight", columns.weights, float)
    first = dict.fromkeys(columns.item_ids, 0)
    if columns.importances or columns.weights:
        first = dict(reversed([*zip(columns.item_ids, range(len(columns.item_ids)), strict=True)]))
    items = []
    for item_id, place in sorted(first.items()):
        said = {name: kind(of[place]) for name, of, kind in given if of and str(of[place]) not in _NOTHING}
        items.append(RubricItem(item_id, query_id, "", **said))
    # A bank refuses what no item can say.
    return TestBank({query_id: tuple(items)}).items[query_id]


def build_grades(
    qrels: Any,
    bank: TestBank | None = None,
    *,
    on_failed: OnFailed | None = None,
    source: Mapping[str, object] | None = None,
    scale: Scale | None = None,
) -> Grades:
    """Compiles item-level judgments (and the bank they refer to) into `Grades`.

    Args:
        qrels: an iterable of named tuples (`Qrel`, `Grade`, ir_datasets' rows with `iteration` or `subtopic_id`), a
            pandas frame with the same columns, or `Grades` (returned as they are when no bank is given).
        bank: the complete test bank. Without it the items that occur are all there are, so items that nobody graded
            are unknown. With it, every query of the bank is scored, also those without a grade.
        on_failed: see `Grades`.
        source: see `Grades`.
        scale: the scale of the grades; None takes the one that rows for the document `*` say.

    Raises:
        InputError: a grade is no number, or not on the scale; a pair has two grades; the bank lacks a query; rows with
            one label a passage are to be grades of the bank's items.
        MeasureError: the rows carry no items.
    """
    if isinstance(qrels, Grades):
        if bank is None and scale is None:
            return qrels
        on_failed, source = qrels.on_failed_given, qrels.source
        qrels = [row for one in qrels.queries.values() for row in item_rows(one)]
    columns = _columns_of(qrels)
    places: dict[str, list[int]] = {}
    for place, query_id in enumerate(columns.query_ids):
        places.setdefault(query_id, []).append(place)
    columns = columns._replace(query_ids=())
    found = {query_id: _compiled(query_id, columns.take(of), bank, scale) for query_id, of in places.items()}
    return _together(found, bank, on_failed, source, scale)


_Compiled: TypeAlias = tuple[QueryGrades, Counter[str]] | None
"""The grades of a query, and item_id -> grades left out; None where nothing is graded and the bank lacks the query."""


def _compiled(query_id: str, rows: _Columns, bank: TestBank | None, scale: Scale | None, where: str = "") -> _Compiled:
    """Compiles the rows of one query.

    Args:
        query_id: the query.
        rows: its rows.
        bank: the test bank; without it the items are those that occur.
        scale: the scale; None takes the one that rows say.
        where: the file that has them, for the error.

    Raises:
        InputError: rows say two scales, or a grade is no number, see `build_grades`.
        UnknownNameError: grades are there, and the bank lacks the query.
    """
    declared = graded = rows
    if BANK_DOC in rows.doc_ids:
        of_bank = {place: rows.item_ids[place] for place, doc_id in enumerate(rows.doc_ids) if doc_id == BANK_DOC}
        said = {place: found for place, item_id in of_bank.items() if (found := scale_of_item(item_id)) is not None}
        scales = list(dict.fromkeys(said.values()))
        if len(scales) > 1:
            raise InputError(f"query {query_id!r} has two scales, {scales[0]} and {scales[1]}; its grades are on one")
        scale = scale or next(iter(scales), None)
        declared, graded = (rows.take(set(range(len(rows.doc_ids))).difference(out)) for out in (said, of_bank))
    items = _declared_items(query_id, declared) if bank is None else bank.items.get(query_id)
    if items is None and not graded.doc_ids:
        return None
    if bank is not None and items is None:
        hint = "(graded, but the test bank has no such query)"
        raise UnknownNameError("query", query_id, bank.items, hint=hint, where=where)
    valid, failed = _valid(graded)
    return build_query(query_id, items, valid, failed, scale=scale)


# The statuses beside which a grade is one; rows of judgments say none.
_VALID = frozenset({None, "graded", "truncated"})


def _valid(rows: _Columns) -> tuple[Rows, list[tuple[str, str]]]:
    """The grades that rows give, and the pairs whose grade failed."""
    pairs, statuses = (rows.doc_ids, rows.item_ids), rows.statuses or itertools.repeat(None)
    if rows.statuses is None and None not in rows.relevances:
        return (*pairs, rows.relevances), []
    failed = [one is None or status not in _VALID for one, status in zip(rows.relevances, statuses, strict=False)]
    valid = [not one for one in failed]
    kept: Any = [list(itertools.compress(of, valid)) for of in (*pairs, rows.relevances)]
    return tuple(kept), list(itertools.compress(zip(*pairs, strict=True), failed))


def _together(
    found: Mapping[str, _Compiled],
    bank: TestBank | None,
    on_failed: OnFailed | None,
    source: Mapping[str, object] | None,
    scale: Scale | None,
) -> Grades:
    """The queries that were compiled, with a bank all of its queries."""
    left_out: Counter[str] = Counter()
    queries: dict[str, QueryGrades] = {}
    for query_id in sorted(found) if bank is None else bank.items:
        done = found.get(query_id)
        items = bank.items[query_id] if bank is not None else ()
        queries[query_id], unknown = done or (QueryGrades.empty(query_id, items, scale), {})
        left_out.update(unknown)
    # Every score would be 0.
    if left_out and not any(one.valid.any() or one.failed is not None for one in queries.values()):
        text = f"grades none of the items of the test bank; it grades {min(left_out)!r}"
        raise InputError(f"{text}; name the bank of these grades, or none for labels of passages", settings=("bank",))
    note_left_out(left_out)
    return Grades(queries, on_failed, source)


def read_grades(
    path: str | os.PathLike[str],
    bank: TestBank | None = None,
    *,
    on_failed: OnFailed | None = None,
    source: Mapping[str, object] | None = None,
    scale: Scale | None = None,
) -> Grades:
    """Compiles a file of item-level judgments (diversity qrels, the item id in column 2) as `build_grades` does.

    The file is compiled a query at a time, so its rows are never in memory together.

    Raises:
        FormatError: the file is no qrels file.
        InputError: a pair has two grades, or the bank lacks a query.
    """

    def compiled(rows: QueryQrels) -> _Compiled:
        columns = _Columns((), rows.doc_ids, rows.relevances, rows.iterations)
        return _compiled(rows.query_id, columns, bank, scale, path_name(path))

    with naming(path):
        return _together(map_qrels(path, compiled), bank, on_failed, source, scale)


def grades_of_table(
    rows: Sequence[GradeRow],
    bank: TestBank | None = None,
    *,
    on_failed: OnFailed | None = None,
    source: Mapping[str, object] | None = None,
    scale: Scale | None = None,
) -> Grades:
    """The grades of one grader of a table; their scale is that of its prompt, where nobody says another.

    Args: as for `build_grades`.

    Raises: likewise.
    """
    if scale is None and rows[0].prompt_class is not None:
        from rubric_measures.prompts.library import scale_of_prompt

        # Behind the name may stand what tells it from others.
        scale = scale_of_prompt(rows[0].prompt_class.partition(" ")[0])
    about = {**(source or {}), "grades": list(filter(None, [grader_of(rows[0])]))}
    return build_grades(grades_of_rows(rows), bank, on_failed=on_failed, source=about, scale=scale)


Unit = Literal["passage", "item"]


def qrels_of(
    grades: Grades,
    unit: Unit = "passage",
    label: Label = "max",
    rel: int | None = None,
    said: list[Note] | None = None,
) -> list[Qrel]:
    """Judgments from grades, sorted by query, document and item.

    Args:
        grades: the grades; failed ones have no row, unless they count as a grade (`Grades.on_failed`).
        unit: `passage`: one label a graded passage; `item`: one row a (passage, item), the item id in `iteration`, and
            for each item of the bank a row of grade 0 for the document `*`, so that the file still says what the
            denominator is.
        label: see `QueryGrades.labels`; not for items.
        rel: see `QueryGrades.labels`; not for items.
        said: takes what is logged.

    Raises:
        InputError: no passage has a grade, or some grades were never asked.
    """
    queries = grades.queries.values()
    rows = [row for query in queries for row in _rows(query.counting_failed(grades.on_failed), unit, label, rel)]
    failed = sum(int(query.failed.sum()) for query in queries if query.failed is not None)
    if all(row.doc_id == BANK_DOC for row in rows):
        raise InputError("no passage has a grade, so there are no qrels to write")
    if failed:
        is_grade = isinstance(grades.on_failed, int)
        done = f"count as grade {grades.on_failed}" if is_grade else "are not in the qrels"
        say([Note(f"{failed} grades failed and {done}")], said)
    scales = {query.scale[:3] for query in queries if query.scale is not None and label == "count" and rel is None}
    for low, high, covers in sorted(scales):
        # Nobody chose that grade.
        text = f"labels count the items graded {covers} or better (the scale is {low} to {high})"
        say([Note(text, is_warning=False)], said)
    if real := sum(bool(row.relevance % 1) for row in rows):
        say([Note(f"{real} labels have fractions, which trec_eval and others do not read; they need whole ones")], said)
    return sorted(rows, key=lambda row: (row.query_id, row.doc_id, row.iteration))


def _rows(query: QueryGrades, unit: Unit, label: Label, rel: int | None) -> Iterator[Qrel]:
    if unit != "item":
        yield from (Qrel(query.query_id, doc_id, value) for doc_id, value in query.labels(label, rel).items())
        return
    yield from (Qrel(*row[:2], row.relevance, row.iteration) for row in item_rows(query) if row.relevance is not None)
