"""What grading knows before it becomes a record: units of work, and what came of each item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rubric_measures.base.entities import GradeStatus, RubricItem

__all__ = ["Outcome", "Unit"]


class Unit(NamedTuple):
    """What one job grades: a passage and some items of its query (none for a direct relevance label)."""

    query_id: str
    query_text: str
    doc_id: str
    text: str
    items: tuple[RubricItem, ...] = ()


class Outcome(NamedTuple):
    """What came of one item of a passage.

    Attributes:
        item_id: the item; `"0"` for a direct relevance label.
        grade: the grade; None where there is none.
        status: as in `Grade`.
        answer: the raw reply that the grade comes from.
        note: the reason of a status other than `graded`.
        details: what else is worth keeping: the replies of the other chunks and replicates, the answer that was
            matched, the number of retries.
    """

    item_id: str
    grade: int | None
    status: GradeStatus = "graded"
    answer: str = ""
    note: str = ""
    details: Mapping[str, object] | None = None
