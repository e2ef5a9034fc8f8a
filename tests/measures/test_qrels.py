"""Tests of judgments from grades."""

from __future__ import annotations

import logging

import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.measures.grades import Grades
from rubric_measures.measures.qrels import qrels_of
from tests.matrices import query_of


def test_failed_grades_are_counted_once(caplog: pytest.LogCaptureFixture) -> None:
    query = query_of([("d1", "a", 3)], failed=[("d1", "b"), ("d2", "a")])
    with caplog.at_level(logging.WARNING, "rubric_measures"):
        assert [(row.doc_id, row.relevance) for row in qrels_of(Grades({"q": query}))] == [("d1", 3)]
    assert caplog.messages == ["2 grades failed and are not in the qrels"]


def test_queries_without_facets_are_none() -> None:
    query = query_of([("d1", "a", 3)])
    with pytest.raises(InputError, match="no item names a facet"):
        qrels_of(Grades({"q": query}), "facet")
