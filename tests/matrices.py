"""What tests read off the matrix of a query: values of one ranking, what failed grades leave open, grades by name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ir_measures.measures.base import Measure

from rubric_measures.measures.core import Scores
from rubric_measures.measures.grades import OnFailed, QueryGrades, all_rows, build_query
from rubric_measures.measures.scoring import Plan, QueryScores
from rubric_measures.types.entities import RubricItem
from rubric_measures.types.scales import Scale


def scored(
    measures: Sequence[Measure], query: QueryGrades, ranking: Sequence[str], on_failed: OnFailed = "expected"
) -> QueryScores:
    """What one ranking of a query scores."""
    scorer = Plan(measures, on_failed).for_query(query)
    return scorer.score([scorer.ranked(ranking)])


def values(
    measures: Sequence[Measure], query: QueryGrades, ranking: Sequence[str], on_failed: OnFailed = "expected"
) -> list[float | None]:
    """The value of each measure for one ranking of a query; None where there is none."""
    found = scored(measures, query, ranking, on_failed).values[:, 0].tolist()
    return [None if math.isnan(value) else value for value in found]


def best(measures: Sequence[Measure], query: QueryGrades, on_failed: OnFailed = "expected") -> list[float | None]:
    """The best possible value of each measure; None where it is not known."""
    return Plan(measures, on_failed).for_query(query).best_possible()


def left_open(
    measures: Sequence[Measure], query: QueryGrades, ranking: Sequence[str], on_failed: OnFailed = "expected"
) -> list[Scores]:
    """What failed grades leave open of each measure, as numbers; none where no grade of the query failed."""
    found = scored(measures, query, ranking, on_failed).left_open
    return [] if found is None else [Scores(*one) for one in found[:, :, 0].tolist()]


def cells(query: QueryGrades) -> dict[str, dict[str, Any]]:
    """doc_id -> item_id -> the valid grade, of all passages that were graded."""
    found: dict[str, dict[str, Any]] = {doc_id: {} for doc_id in query.docs}
    for row in query.rows():
        found[row.doc_id][row.iteration] = row.relevance
    return found


def lost(query: QueryGrades) -> dict[str, set[str]]:
    """doc_id -> the items whose grade failed."""
    found: dict[str, set[str]] = {}
    for row in all_rows(query):
        if row.status == "failed":
            found.setdefault(row.doc_id, set()).add(row.iteration)
    return found


def query_of(
    rows: Iterable[tuple[str, str, float]],
    items: Iterable[RubricItem] | None = None,
    failed: Iterable[tuple[str, str]] = (),
    scale: Scale | None = None,
) -> QueryGrades:
    """The query `q` with grades: (doc_id, item_id, grade) each."""
    columns = zip(*rows, strict=True)
    return build_query("q", items, tuple(map(list, columns)) or ((), (), ()), failed, scale=scale)[0]  # type: ignore[arg-type]
