"""Random grades, banks and rankings for property tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from rubric_measures.measures.grades import QueryGrades, build_query
from rubric_measures.types.entities import RubricItem
from rubric_measures.types.scales import SELF_RATING


@dataclass(frozen=True)
class Case:
    """One query: its bank, its grades as a plain dict, the failed pairs, and a ranking."""

    items: list[RubricItem]
    grades: dict[tuple[str, str], int]
    failed: set[tuple[str, str]]
    ranking: list[str]

    @property
    def compiled(self) -> QueryGrades:
        return build_query("q", self.items, columns_of(self.grades), sorted(self.failed), scale=SELF_RATING)[0]


def columns_of(grades: Mapping[tuple[str, str], float]) -> tuple[list[str], list[str], list[float]]:
    """Grades by passage and item as columns."""
    return [doc_id for doc_id, _ in grades], [item_id for _, item_id in grades], list(grades.values())


@st.composite
def cases(draw: st.DrawFn, failures: bool = False) -> Case:
    count = draw(st.integers(1, 7))
    importance = st.sampled_from(["vital", "okay"])
    items = [
        RubricItem(
            f"q/{index}",
            "q",
            f"item {index}",
            importance=draw(importance),
            weight=draw(st.sampled_from([-2.0, -0.5, 0.0, 1.0, 2.5])),
        )
        for index in range(count)
    ]
    docs = [f"d{index}" for index in range(draw(st.integers(1, 8)))]
    grades: dict[tuple[str, str], int] = {}
    failed: set[tuple[str, str]] = set()
    for doc_id in docs:
        for item in items:
            grade = draw(st.sampled_from([None, None, 0, 1, 2, 3, 4, 5, "failed"]))
            if grade == "failed":
                if failures:
                    failed.add((doc_id, item.item_id))
            elif grade is not None:
                grades[doc_id, item.item_id] = grade
    pool = [*docs, "unjudged1", "unjudged2"]
    ranking = draw(st.permutations(pool))[: draw(st.integers(0, len(pool)))]
    return Case(items, grades, failed, list(ranking))
