"""The cells that a condition on their grades chooses, so that a model is asked about these alone."""

from __future__ import annotations

import logging
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rubric_measures.base.errors import InputError
from rubric_measures.measures.grade_sets import GradeFilter, GradeSetSelector
from rubric_measures.records.models import GradeSetKey, QueryPassages
from rubric_measures.types.entities import TestBank

__all__ = ["Cells", "Condition", "cells_where", "parse_condition"]

_LOG = logging.getLogger("rubric_measures")
_FORMS = "grade between 2 and 3, grade < 3, grade <= 3, grade > 3, grade >= 3, grade = 3, or grade failed"
_NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?)"
_BETWEEN = re.compile(rf"grade\s+between\s+{_NUMBER}\s+and\s+{_NUMBER}")
_COMPARED = re.compile(rf"grade\s*(<=?|>=?|=)\s*{_NUMBER}")
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq,
}  # fmt: skip

Condition = Callable[[float | None], bool]
"""Whether a cell is chosen, by its grade; None where grading it failed."""


@dataclass(frozen=True)
class Cells:
    """The cells (an item of a passage) that a condition chooses.

    Attributes:
        where: the condition.
        key: the grade set whose grades it is about.
        ids: (query_id, doc_id) -> the ids of the items (`"0"` for a label of the passage).
        total: how many cells the grade set has.
    """

    where: str
    key: GradeSetKey
    ids: Mapping[tuple[str, str], frozenset[str]]
    total: int

    def __len__(self) -> int:
        return sum(map(len, self.ids.values()))

    def of(self, query_id: str, doc_id: str) -> frozenset[str]:
        """The items of a passage that are chosen."""
        return self.ids.get((query_id, doc_id), frozenset())

    def note(self) -> None:
        """Says how many there are."""
        if self.ids:
            _LOG.info("%s: %d of %d cells (graded by %s)", self.where, len(self), self.total, self.key.llm)
        else:
            _LOG.info("%s: none of %d cells, so nothing is asked (graded by %s)", self.where, self.total, self.key.llm)

    def as_json(self) -> dict[str, Any]:
        """For the manifest."""
        return {"cells": len(self), "condition": self.where, "grade_set": self.key._asdict(), "of": self.total}


def parse_condition(text: str) -> Condition:
    """The condition that a person wrote.

    >>> holds = parse_condition("grade between 2 and 3")
    >>> holds(2), holds(4), holds(None)
    (True, False, False)

    Raises:
        InputError: it is none.
    """
    words = text.strip() if isinstance(text, str) else ""
    if " ".join(words.split()) == "grade failed":
        return lambda grade: grade is None
    if found := _BETWEEN.fullmatch(words):
        low, high = float(found[1]), float(found[2])
        if low <= high:
            return lambda grade: grade is not None and low <= grade <= high
    if found := _COMPARED.fullmatch(words):
        holds, least = _SIGNS[found[1]], float(found[2])
        return lambda grade: grade is not None and holds(grade, least)
    raise InputError(f"{text!r}: expected {_FORMS}", settings=("where",))


def cells_where(
    where: str, groups: Iterable[QueryPassages], source: str, wanted: GradeFilter, bank: TestBank | None
) -> Cells:
    """The cells whose grades in one grade set fulfil a condition.

    Args:
        where: the condition.
        groups: the records.
        source: what they are, for messages.
        wanted: chooses the grade set.
        bank: only items of it; None for labels of passages.

    Raises:
        InputError: the condition is none; no grade set fits, or several do.
        UnknownNameError: the bank does not have a query.
    """
    holds = parse_condition(where)
    selector = GradeSetSelector(wanted, source)
    ids: dict[tuple[str, str], frozenset[str]] = {}
    total = 0
    for group in groups:
        items = None if bank is None else {item.item_id: item for item in bank.for_query(group.query_id)}
        for passage in group.passages:
            entry = selector.choose(passage, items)
            if entry is None:
                continue
            grades, statuses = selector.grades_of(entry)
            asked = [item_id for item_id in {**grades, **statuses} if items is None or item_id in items]
            total += len(asked)
            if chosen := frozenset(item_id for item_id in asked if holds(grades.get(item_id))):
                ids[group.query_id, passage.doc_id] = chosen
    if not selector.found:
        raise selector.nothing_found(settings=("where", "llm"))
    selector.note_counts()
    (key,) = selector.found
    return Cells(where, key, ids, total)
