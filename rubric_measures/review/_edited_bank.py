"""The bank as assessors edited it, as entries of its file: with marks for what is to be graded anew, and what left."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rubric_measures.base.entities import TestBank, item_content
from rubric_measures.formats.bank import BankEntry, BankItem, bank_entries, former_items, item_id_of
from rubric_measures.review._events import ItemState, Snapshot

__all__ = ["edited_entries"]


def edited_entries(
    original: Sequence[BankEntry],
    bank: TestBank,
    snapshot: Snapshot,
    stale: Collection[tuple[str, str]] = frozenset(),
) -> list[BankEntry]:
    """The bank as it stands now, with all that its file said beside the items (collection, notes, unknown fields).

    Args:
        original: the entries of the bank's file.
        bank: the bank that they make.
        snapshot: what assessors did.
        stale: (query_id, item_id) of marked items of the file of which somebody's grades are older than their mark.
    """
    heads = {(entry.query_id, entry.facet_id): entry for entry in reversed(original)}
    by_query = {entry.query_id: entry for entry in reversed(original)}
    items: dict[tuple[str, str], BankItem] = {}
    for entry in original:
        for item in entry.items:
            items.setdefault((entry.query_id, item_id_of(entry, item)), item)
    states = snapshot.live()
    made: list[BankEntry] = []
    now = snapshot.bank(bank)
    for entry in bank_entries(now):
        query_id = entry.query_id
        members = [(item, states[query_id, str(item.given_id)]) for item in entry.items]
        fields = entry.model_dump(exclude_unset=True, exclude={"items"})
        head = heads.get((query_id, entry.facet_id)) or by_query.get(query_id)
        if head is not None:
            fields |= head.model_dump(exclude_unset=True, exclude={"items", "query_id", "facet_id", "facet_text"})
        fields["items"] = [_edited(item, items.get((query_id, state.key)), state, stale) for item, state in members]
        left = _left(query_id, bank, now, by_query.get(query_id))
        if left and all(other.query_id != query_id for other in made):
            # Grades of these ids are stale, also where a query has none of its old items left.
            fields["former_items"] = left
        made.append(BankEntry(**fields))
    return made


def _edited(item: BankItem, old: BankItem | None, state: ItemState, stale: Collection[tuple[str, str]]) -> BankItem:
    """An item as it stands now, with what the file said beside it, who edited it last, and a mark for new grades."""
    if state.version == 0 and old is not None:
        return old if (state.item.query_id, state.key) in stale else _unmarked(old)
    last = state.history[-1]
    earlier = old.info if old is not None and isinstance(old.info, dict) else {}
    info = {name: said for name, said in earlier.items() if name != "same_as"}
    info |= {
        "edited_by": last.assessor,
        "edited_at": last.time,
        "edit": last.what,
        **_regrade_mark(state, earlier, stale),
    }
    known = (old.model_extra if old is not None else None) or {}
    return BankItem(**{**known, **item.model_dump(exclude_unset=True), "info": info})


def _unmarked(item: BankItem) -> BankItem:
    """An item that nobody edited, without the mark of an earlier review: all grades of it were made since."""
    if not isinstance(item.info, dict) or item.info.get("regrade") is not True:
        return item
    info = {name: said for name, said in item.info.items() if name != "same_as"}
    return item.model_copy(update={"info": {**info, "regrade": False}})


def _regrade_mark(state: ItemState, earlier: Mapping[str, Any], stale: Collection[tuple[str, str]]) -> dict[str, Any]:
    """What grading again reads of an edited item: whether it needs new grades, and of which words they hold.

    The mark of an earlier review stays while anybody's grades are older: an edit that needs no new grades makes none.
    """
    first, item = state.original, state.item
    is_stale = state.place in stale
    if not is_stale or first is None or (first.item_id, first.gold_answers) != (item.item_id, item.gold_answers):
        return {"regrade": state.regrade or is_stale}
    known = earlier.get("same_as")
    contents = [*(known if isinstance(known, list) else ()), item_content(first)]
    same = [one for one in dict.fromkeys(contents) if one != item_content(item)]
    return {"regrade": True, "same_as": same} if same else {"regrade": True}


def _left(query_id: str, before: TestBank, now: TestBank, head: BankEntry | None) -> list[str]:
    """The ids of a query's items that are no longer in the bank, those of earlier reviews first."""
    there = {item.item_id for item in now.items[query_id]}
    ids = [*(former_items(head) if head else ()), *(item.item_id for item in before.items.get(query_id, ()))]
    return [item_id for item_id in dict.fromkeys(ids) if item_id not in there]
