"""Which items of the bank's file count as they were graded, and which wait for grades anew. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from rubric_measures.records.models import ItemGradeSet, QueryPassages, items_of_set, stale_in
from rubric_measures.review._events import CellKey, ItemState, Snapshot
from rubric_measures.types.entities import RubricItem, TestBank, bank_content


def left_items(snapshot: Snapshot) -> Mapping[tuple[str, str], str]:
    """(query_id, item_id) -> what was done to it, of the items of the file whose grades count no more, or wait.

    Those are items that left the bank (retired, split, merged), and those that the impact screen lets wait for grades
    anew: reworded ones, whose words have another id by now, and those with other gold answers. An item whose words were
    only corrected counts as before. An item that was edited in an earlier review waits until its grades are made anew.
    Words that an item left behind, and that were added again, have their grades again.
    """
    again = {state.place for state in snapshot.items.values() if not (state.original or state.retired or state.regrade)}
    return {
        (first.query_id, first.item_id): _what(state, first)
        for state in snapshot.items.values()
        if (first := state.original)
        and (state.retired or state.regrade)
        and (first.query_id, first.item_id) not in again
    }


def left_note(snapshot: Snapshot, earlier: Mapping[str, Collection[CellKey]]) -> str:
    """How many of the grades by assessors that an export holds are of such items; empty where none is.

    Args:
        snapshot: what assessors did.
        earlier: assessor -> the grades that the records have of them, from earlier reviews.
    """
    given = {
        (name, cell)
        for cell, assessors in snapshot.grades.items()
        for name, said in assessors.items()
        if said.final is not None
    }
    given |= {(name, cell) for name, cells in earlier.items() for cell in cells}
    left = left_items(snapshot)
    count = sum((cell.query_id, cell.item_id) in left for _, cell in given)
    if not count:
        return ""
    return (
        f"{count} grades of the export are of items that left the bank, or wait for grades anew (reworded, other gold "
        "answers): kept, and they do not count"
    )


def _what(state: ItemState, first: RubricItem) -> str:
    if state.retired:
        return f"was {state.history[-1].what} since"
    if state.item.item_id != first.item_id:
        return "was reworded since"
    if state.item.gold_answers != first.gold_answers:
        return "has other gold answers since"
    return "was changed in an earlier review, and its grades were not made anew since"


def words_of(snapshot: Snapshot, cell: CellKey, otherwise: str) -> str:
    """The words of a cell's item as the bank has them now; `otherwise` where no item of the bank has its id."""
    state = snapshot.first_at(cell.query_id, cell.item_id)
    if state is None or state.retired or state.place != (cell.query_id, cell.item_id):
        return otherwise
    return state.item.text or otherwise


def stale_items(
    groups: Iterable[QueryPassages],
    bank: TestBank,
    is_reviewed: Callable[[ItemGradeSet], bool],
) -> tuple[frozenset[tuple[str, str]], frozenset[tuple[str, str]]]:
    """(items that wait for grades of the reviewed grader; these and those of which another's grades are stale).

    A bank marks the items that reviews edited. Grades of a marked item hold where their set says that they were made
    anew since (`provenance.regraded`), or that all of it was made against this bank. An item waits where any of the
    grader's grades of it does not hold, and where there is none.

    Args:
        groups: the records, without assessors' grades.
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
            grades, statuses = items_of_set(entry)
            found = edited.keys() & (grades.keys() | statuses.keys())
            stale = {(query_id, item_id) for item_id in stale_in(entry, found, edited, name)}
            if is_reviewed(entry):
                there |= {(query_id, item_id) for item_id in found}
                old |= stale
            else:
                old_elsewhere |= stale
    waiting = frozenset(old | (marked - there))
    return waiting, waiting | old_elsewhere
