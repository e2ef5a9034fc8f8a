"""Tests of judgments from grades that come query by query: the rows are those of all grades at once."""

from __future__ import annotations

import logging
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubric_measures.base.entities import RubricItem
from rubric_measures.base.errors import InputError
from rubric_measures.grades.compiled import Grades, QueryGrades, build_query
from rubric_measures.grades.qrels import UNITS, QrelsSpool, Unit, qrels_of
from tests.strategies import Case, cases


@settings(deadline=None, max_examples=40)
@given(st.lists(cases(failures=True), max_size=4), st.sampled_from(UNITS), st.integers(0, 3))
def test_a_spool_gives_the_rows_of_all_grades(found: list[Case], unit: Unit, rel: int) -> None:
    queries = {}
    for number, case in enumerate(found):
        # Facets of "q" have the names of other queries: "q/0" is one.
        query_id = "q" if number == 2 else f"q/{number}"
        items = [RubricItem(one.item_id, query_id, "", facet_id=str(place % 2)) for place, one in enumerate(case.items)]
        queries[query_id] = QueryGrades(query_id, tuple(items), case.compiled.levels, case.compiled.failed)
    grades = Grades(queries)
    try:
        expected = qrels_of(grades, unit, "count", rel)
    except InputError as error:
        with QrelsSpool(unit, "count", rel) as spool, pytest.raises(InputError, match=re.escape(str(error))):
            spool.fill(queries.values())
            list(spool.rows())
        return
    with QrelsSpool(unit, "count", rel) as spool:
        for order in (queries.values(), reversed(queries.values())):
            # Filling again is how a consumer of a stream starts over.
            spool.fill(order)
            assert list(spool.rows()) == expected
            assert spool.failed == sum(mask.bit_count() for one in queries.values() for mask in one.failed.values())


def test_failed_grades_are_counted_once(caplog: pytest.LogCaptureFixture) -> None:
    query = build_query("q", [("d1", "a", 3)], failed=[("d1", "b"), ("d2", "a")])[0]
    with QrelsSpool() as spool, caplog.at_level(logging.WARNING, "rubric_measures"):
        spool.fill([query])
        assert [(row.doc_id, row.relevance) for row in spool.rows()] == [("d1", 3)]
    assert caplog.messages == ["2 grades failed and are not in the qrels"]


def test_queries_without_facets_are_none() -> None:
    query = build_query("q", [("d1", "a", 3)])[0]
    with pytest.raises(InputError, match="no item names a facet"):
        qrels_of(Grades({"q": query}), "facet")
    with QrelsSpool("facet") as spool, pytest.raises(InputError, match="no item names a facet"):
        spool.fill([query])
