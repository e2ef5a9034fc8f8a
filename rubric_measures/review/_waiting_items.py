"""Which items of a bank wait for new grades since an earlier review, as bank and records say. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rubric_measures.base.entities import TestBank
from rubric_measures.base.signature import bank_content
from rubric_measures.records.files import ItemGradeSet, QueryPassages, items_of_entry
from rubric_measures.records.stale_grades import stale_in

__all__ = ["stale_items"]

_Places = frozenset[tuple[str, str]]


def stale_items(
    groups: Iterable[QueryPassages],
    bank: TestBank,
    is_reviewed: Callable[[ItemGradeSet], bool],
) -> tuple[_Places, _Places]:
    """(items that wait for grades of the reviewed grader; these and those of which another's grades are stale).

    A bank marks the items that reviews edited. Grades of a marked item hold where their set says that they were made
    anew since (`provenance.regraded`), or that all of it was made against this bank. An item waits where any of the
    grader's grades of it does not hold, and where there is none.

    Args:
        groups: the records, without people's grades.
        bank: the bank.
        is_reviewed: whether a grade set is the reviewed grader's.
    """
    if not bank.edited:
        return frozenset(), frozenset()
    marked = {(query_id, item_id) for query_id, edited in bank.edited.items() for item_id in edited}
    name = bank_content(bank)[:16]
    there: set[tuple[str, str]] = set()
    old: set[tuple[str, str]] = set()
    old_elsewhere: set[tuple[str, str]] = set()
    for group in groups:
        query_id, edited = group.query_id, bank.edited.get(group.query_id, {})
        for entry in (entry for passage in group.passages for entry in passage.exam_grades or () if edited):
            grades, statuses = items_of_entry(entry)
            found = edited.keys() & (grades.keys() | statuses.keys())
            stale = {(query_id, item_id) for item_id in stale_in(entry, found, edited, name)}
            if is_reviewed(entry):
                there |= {(query_id, item_id) for item_id in found}
                old |= stale
            else:
                old_elsewhere |= stale
    waiting = frozenset(old | (marked - there))
    return waiting, waiting | old_elsewhere
