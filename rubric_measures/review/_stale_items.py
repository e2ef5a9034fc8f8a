"""What became of the items of the bank's file: which still count as they were graded, and in which words. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rubric_measures.review._events import CellKey, ItemState, Snapshot

__all__ = ["left_grades", "left_items", "left_note", "words_of"]


def left_items(snapshot: Snapshot) -> Mapping[tuple[str, str], str]:
    """(query_id, item_id) -> what was done to it, of the items of the file whose grades count no more, or wait.

    Those are items that left the bank (retired, split, merged), and those that the impact screen lets wait for grades
    anew: reworded ones, whose words have another id by now, and those with other gold answers. An item whose words were
    only corrected counts as before. An item that was edited in an earlier review waits until its grades are made anew.
    Words that an item left behind, and that were added again, have their grades again.
    """
    again = {
        (state.item.query_id, state.item.item_id)
        for state in snapshot.items.values()
        if state.history[0].version and not state.retired and not state.regrade
    }
    return {
        (state.history[0].item.query_id, state.history[0].item.item_id): _what(state)
        for state in snapshot.items.values()
        if state.history[0].version == 0
        and (state.retired or state.regrade)
        and (state.history[0].item.query_id, state.history[0].item.item_id) not in again
    }


def left_grades(snapshot: Snapshot, earlier: Mapping[str, Collection[CellKey]]) -> int:
    """How many of the grades by people that an export holds are of such items.

    Args:
        snapshot: what people did.
        earlier: person -> the grades that the records have of them, from earlier reviews.
    """
    given = {
        (name, cell)
        for cell, people in snapshot.grades.items()
        for name, said in people.items()
        if said.final is not None
    }
    given |= {(name, cell) for name, cells in earlier.items() for cell in cells}
    left = left_items(snapshot)
    return sum((cell.query_id, cell.item_id) in left for _, cell in given)


def left_note(count: int, of: str) -> str:
    """What is to say of grades of such items, by `of` (the export, a file); empty where there are none."""
    if not count:
        return ""
    return (
        f"{count} grades of {of} are of items that left the bank, or wait for grades anew (reworded, other gold "
        "answers): kept, and they do not count"
    )


def _what(state: ItemState) -> str:
    if state.retired:
        return f"was {state.history[-1].what} since"
    first = state.history[0].item
    if state.item.item_id != first.item_id:
        return "was reworded since"
    if state.item.gold_answers != first.gold_answers:
        return "has other gold answers since"
    return "was changed in an earlier review, and its grades were not made anew since"


def words_of(snapshot: Snapshot, cell: CellKey, otherwise: str) -> str:
    """The words of a cell's item as the bank has them now; `otherwise` where no item of the bank has its id."""
    state = snapshot.items.get(cell.item_id)
    if state is None or state.retired or (state.item.query_id, state.item.item_id) != (cell.query_id, cell.item_id):
        return otherwise
    return state.item.text or otherwise
