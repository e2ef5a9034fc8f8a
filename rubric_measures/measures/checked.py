"""The four analyses of grades and banks: grades per item, the grid, uncovered passages, bad items.

Source: Dietz, "A Workbench for Autograding Retrieve/Generate Systems" (SIGIR 2024), phase 3; Farzi and Dietz, EXAM++.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rubric_measures.measures.grade_sets import GradeSetSelector
from rubric_measures.records.models import (
    DirectGrade,
    GradedPassage,
    ItemGradeSet,
    QueryPassages,
    confidences_of,
    reasons_of,
)
from rubric_measures.types.entities import RubricItem, TestBank
from rubric_measures.types.scales import ANY_LEVEL, Scale, covering_level, refuse_off_scale


class CheckedGrade(NamedTuple):
    """One grade with what led to it; one row a (passage, item).

    Attributes:
        query_id: the query.
        item_id: the item.
        item_text: the question or nugget; empty where no bank was given.
        doc_id: the passage.
        grade: the grade; None where `status` is a failure.
        status: `graded`, or why there is no grade.
        answer: the answer that an extraction prompt found in the passage, else the raw reply of the grader.
        judgment: what assessors said about the passage; None where nobody did.
        text: the passage.
        confidence: the probability of the most probable grade, where the records keep a distribution; else None.
        reason: why the model gave the grade, where it was asked for that; else empty.
    """

    query_id: str
    item_id: str
    item_text: str
    doc_id: str
    grade: float | None
    status: str
    answer: str
    judgment: float | None
    text: str
    confidence: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class CheckedPassage:
    """One passage with its grades, item_id -> grade, in the order of the items."""

    doc_id: str
    text: str
    judgment: float | None
    grades: Mapping[str, CheckedGrade]

    @property
    def best(self) -> float | None:
        """The highest grade; None where nothing is graded."""
        return max((row.grade for row in self.grades.values() if row.grade is not None), default=None)


@dataclass(frozen=True)
class CheckedQuery:
    """One query of graded records, as assessors look at it: the grid of passages × items.

    Attributes:
        query_id: the query.
        text: its text, where a bank gives it.
        items: item_id -> text (empty without a bank): all items of the bank, else all graded ones, sorted.
        passages: the passages in file order.
        scale: the scale of the grades; None where it is not known.
    """

    query_id: str
    text: str
    items: Mapping[str, str]
    passages: Sequence[CheckedPassage]
    scale: Scale | None = None

    def rows(self) -> Iterator[CheckedGrade]:
        """The grades, passage by passage."""
        for passage in self.passages:
            yield from passage.grades.values()


class UncoveredPassage(NamedTuple):
    """A passage that assessors judged relevant and no item covers: something is missing in the bank."""

    query_id: str
    doc_id: str
    judgment: float
    best_grade: float | None
    text: str


class BadItem(NamedTuple):
    """An item that passages cover although assessors judged them not relevant. Often such an item does not tell
    relevant from not.

    Attributes:
        query_id: the query.
        item_id: the item.
        item: the question or nugget; empty where no bank was given.
        spurious: passages judged not relevant that cover the item.
        relevant: passages judged relevant that cover it.
        covering: all passages that cover it, unjudged ones too.
    """

    query_id: str
    item_id: str
    item: str
    spurious: int
    relevant: int
    covering: int


def check_records(
    groups: Iterable[QueryPassages], selector: GradeSetSelector, bank: TestBank | None = None
) -> Iterator[CheckedQuery]:
    """Puts the grades of one grade set beside answers and judgments, query by query.

    Args:
        groups: graded records; consumed once.
        selector: chooses the grade set.
        bank: the texts of the items, and which items there are.

    Raises:
        InputError: several grade sets pass the selector's filter, or a grade is not on the scale.
        UnknownNameError: the bank lacks a query.
    """
    for group in groups:
        items = selector.items_of(group, bank)
        passages = [
            _passage(group.query_id, passage, selector.choose(passage, items), items, selector)
            for passage in group.passages
        ]
        if items is None:
            texts = dict.fromkeys(sorted({item_id for one in passages for item_id in one.grades}), "")
        else:
            texts = {item_id: item.text for item_id, item in items.items()}
        text = bank.query_texts.get(group.query_id, "") if bank is not None else ""
        yield CheckedQuery(group.query_id, text, texts, passages, selector.scale)


def _passage(
    query_id: str,
    passage: GradedPassage,
    entry: ItemGradeSet | DirectGrade | None,
    items: Mapping[str, RubricItem] | None,
    selector: GradeSetSelector,
) -> CheckedPassage:
    label = passage.judged(query_id)
    grades, statuses = selector.grades_of(entry) if entry is not None else ({}, {})
    refuse_off_scale(selector.scale, grades, f"{selector.source}: query {query_id!r}, document {passage.doc_id!r}")
    sure = confidences_of(entry) if entry is not None else {}
    reasons = reasons_of(entry) if entry is not None else {}
    answers = _answers(passage, entry)
    graded = grades.keys() | statuses.keys()
    rows = {
        item_id: CheckedGrade(
            query_id,
            item_id,
            items[item_id].text if items is not None else "",
            passage.doc_id,
            grades.get(item_id),
            statuses.get(item_id, "graded"),
            answers.get(item_id, ""),
            label,
            passage.text,
            sure.get(item_id),
            reasons.get(item_id, ""),
        )
        for item_id in (sorted(graded) if items is None else items)
        if item_id in graded
    }
    return CheckedPassage(passage.doc_id, passage.text, label, rows)


def _answers(passage: GradedPassage, entry: ItemGradeSet | DirectGrade | None) -> dict[str, str]:
    """item_id -> answer: an extracted one (of a grade set without ratings), else the raw reply of the grader."""
    if isinstance(entry, DirectGrade):
        return {"0": entry.answer}
    answers = dict(entry.answers) if entry is not None else {}
    for other in passage.exam_grades or ():
        if other is not entry and not other.self_ratings:
            answers.update(other.answers)
    return answers


def grades_by_item(query: CheckedQuery) -> dict[str, list[CheckedGrade]]:
    """item_id -> the grades of all passages, best first; failures last, ties by document id."""
    rows: dict[str, list[CheckedGrade]] = {item_id: [] for item_id in query.items}
    for row in query.rows():
        rows[row.item_id].append(row)
    for members in rows.values():
        members.sort(key=lambda row: (row.grade is None, -(row.grade or 0), row.doc_id))
    return rows


def level_of(query: CheckedQuery) -> int:
    """The least grade that covers an item of a query, as the scale says.

    Raises:
        InputError: the scale is not known.
    """
    # Where nothing is graded, nothing is covered at any level.
    is_graded = any(passage.best is not None for passage in query.passages)
    return covering_level(query.scale if is_graded or query.scale else ANY_LEVEL)


def uncovered_passages(query: CheckedQuery, min_judgment: int = 1) -> list[UncoveredPassage]:
    """Passages judged at least `min_judgment` that no item covers; highest judgment first.

    A passage without any grade counts as uncovered.

    Args:
        query: the query.
        min_judgment: the least judgment that is relevant.
    """
    level = level_of(query)
    found = [
        UncoveredPassage(query.query_id, passage.doc_id, passage.judgment, passage.best, passage.text)
        for passage in query.passages
        if passage.judgment is not None
        and passage.judgment >= min_judgment
        and (passage.best is None or passage.best < level)
    ]
    return sorted(found, key=lambda row: (-row.judgment, row.doc_id))


def bad_items(query: CheckedQuery, min_judgment: int = 1) -> list[BadItem]:
    """All items, by how many of the passages that cover them were judged below `min_judgment`; most first.

    Args:
        query: the query.
        min_judgment: the least judgment that is relevant.
    """
    level = level_of(query)
    counts = {item_id: [0, 0, 0] for item_id in query.items}
    for passage in query.passages:
        for item_id, row in passage.grades.items():
            if row.grade is None or row.grade < level:
                continue
            counts[item_id][2] += 1
            if passage.judgment is not None:
                counts[item_id][passage.judgment >= min_judgment] += 1
    rows = [BadItem(query.query_id, item_id, query.items[item_id], *numbers) for item_id, numbers in counts.items()]
    return sorted(rows, key=lambda row: (-row.spurious, row.relevant, row.item_id))
