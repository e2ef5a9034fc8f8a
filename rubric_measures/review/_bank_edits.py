"""What an edit of the bank does to the items, and the edited bank as entries of its file. Pure but for the snapshot."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rubric_measures.base.errors import InputError
from rubric_measures.formats.banks import BankEntry, BankItem, bank_entries, former_items, item_id_of
from rubric_measures.review._events import Event, ItemState, Snapshot, Version
from rubric_measures.types.entities import RubricItem, TestBank, item_content, make_item_id

_FIELDS = ("text", "importance", "weight", "gold_answers")


def item_of(payload: Mapping[str, Any]) -> RubricItem:
    """The item that an event's payload describes; its id is made from its text.

    Raises:
        InputError: the text is empty.
    """
    text = str(payload["text"]).strip()
    if not text:
        raise InputError("an item needs a text")
    query_id, facet_id = str(payload["query_id"]), payload.get("facet_id")
    return RubricItem(
        make_item_id(query_id, text, facet_id),
        query_id,
        text,
        payload.get("kind", "question"),
        facet_id,
        tuple(payload.get("gold_answers") or ()),
        payload.get("importance"),
        payload.get("weight"),
    )


def _next(state: ItemState, event: Event, what: str, item: RubricItem, **changes: Any) -> ItemState:
    version = Version(event.event_id, event.assessor, event.time, what, item)
    return replace(state, item=item, history=(*state.history, version), **changes)


def state_of(snapshot: Snapshot, key: str) -> ItemState:
    """The item with this key.

    Raises:
        InputError: there is none.
    """
    if key not in snapshot.items:
        raise InputError(f"the bank has no item {key!r}")
    return snapshot.items[key]


def new_items(snapshot: Snapshot, kind: str, payload: Mapping[str, Any]) -> list[RubricItem]:
    """The items that an edit puts into the bank: the added one, the parts of a split, what items were merged to.

    Raises:
        InputError: one has no text, or there is no item to split or merge.
    """
    if kind == "item_add":
        return [item_of(payload)]
    if kind == "item_split":
        fields = _fields(state_of(snapshot, payload["key"]).item)
        return [item_of({**fields, "gold_answers": (), "text": text}) for text in payload["texts"]]
    if kind == "item_merge":
        states = [state_of(snapshot, key) for key in payload["keys"]]
        return [item_of({**_fields(states[0].item), **_joined(states), "text": payload["text"]})]
    return []


# What an edit did to the items that it takes out of the bank, and to those that it puts in.
_WORDS = {
    "item_add": ("", "added"),
    "item_retire": ("retired", ""),
    "item_split": ("split", "made by a split"),
    "item_merge": ("merged", "made by a merge"),
}


def apply_edit(snapshot: Snapshot, event: Event) -> None:
    """Changes the items of a snapshot that is being made as an edit says; see `Event` for the kinds.

    Raises:
        InputError: it speaks of an item that there is not, or makes one that there is.
    """
    payload = event.payload
    keys = payload.get("keys") or ([payload["key"]] if "key" in payload else [])
    states = [state_of(snapshot, key) for key in keys]
    if event.kind == "item_edit":
        snapshot.items[keys[0]] = _edited(snapshot, states[0], event)
        return
    made = new_items(snapshot, event.kind, payload)
    taken, put = _WORDS[event.kind]
    for state in states:
        snapshot.items[state.key] = _next(state, event, taken, state.item, retired=True)
    if made:
        _insert(snapshot, event, made, keys[-1] if keys else None, put)


def _joined(states: Sequence[ItemState]) -> dict[str, Any]:
    """All gold answers once; vital where one of the items is; the largest weight."""
    answers = dict.fromkeys(answer for state in states for answer in state.item.gold_answers)
    importances = {state.item.importance for state in states}
    weights = [state.item.weight for state in states if state.item.weight is not None]
    importance = next((name for name in ("vital", "okay") if name in importances), None)
    return {"gold_answers": tuple(answers), "importance": importance, "weight": max(weights, default=None)}


def _fields(item: RubricItem) -> dict[str, Any]:
    return {
        "query_id": item.query_id,
        "facet_id": item.facet_id,
        "kind": item.kind,
        **{name: getattr(item, name) for name in _FIELDS},
    }


def _edited(snapshot: Snapshot, state: ItemState, event: Event) -> ItemState:
    """A reworded item has a new id, because its grades were given to other words; a corrected one keeps its grades."""
    payload = event.payload
    made = item_of({**_fields(state.item), **{name: payload[name] for name in _FIELDS if name in payload}})
    reworded = made.text != state.item.text and not payload.get("same_meaning", False)
    if not reworded:
        made = replace(made, item_id=state.item.item_id)
    else:
        _refuse_twin(snapshot, made, state.key)
    names = [name for name in _FIELDS if getattr(made, name) != getattr(state.item, name)]
    what = "changed " + ", ".join(name.replace("_", " ") for name in names) if names else "left as it was"
    return _next(state, event, what, made, regrade=_needs_grades(snapshot, made, state.history))


def _needs_grades(snapshot: Snapshot, item: RubricItem, history: Sequence[Version] = ()) -> bool:
    """Whether the records have no grades of it: the bank's file had another id or gold answers, none, or waits.

    An item that has the words of another one again, whatever became of that, has its grades again.
    """
    old = snapshot.first_at(item.query_id, item.item_id)
    return not any(
        one.version == 0
        and not one.waits
        and (one.item.item_id, one.item.gold_answers) == (item.item_id, item.gold_answers)
        for one in (*(old.history if old else ()), *history)
    )


def _refuse_twin(snapshot: Snapshot, item: RubricItem, key: str) -> None:
    for state in snapshot.items.values():
        if state.key != key and state.place == (item.query_id, item.item_id) and not state.retired:
            raise InputError(f"query {item.query_id!r} has an item with this text already: {item.text!r}")


def _insert(snapshot: Snapshot, event: Event, items: Sequence[RubricItem], behind: str | None, what: str) -> None:
    """Puts new items behind the one that they come from; an item that was retired with these words comes back."""
    made: dict[str, ItemState] = {}
    for item in items:
        _refuse_twin(snapshot, item, "")
        if item.item_id in {state.item.item_id for state in made.values()}:
            raise InputError(f"two items have the same text: {item.text!r}")
        version = Version(event.event_id, event.assessor, event.time, what, item)
        old = snapshot.first_at(item.query_id, item.item_id)
        regrade = _needs_grades(snapshot, item)
        if old is None or (old.retired and old.item.item_id == item.item_id):
            key, history = old.key if old else snapshot.free_key(item), (*(old.history if old else ()), version)
            snapshot.items.pop(key, None)
        else:
            # The key belongs to an item that has other words by now.
            key, history = f"{item.item_id}#{event.event_id}", (version,)
        made[key] = ItemState(key, item, False, regrade, history)
    if behind is None or behind not in snapshot.items:
        snapshot.items.update(made)
        return
    ordered: dict[str, ItemState] = {}
    for key, state in snapshot.items.items():
        ordered[key] = state
        if key == behind:
            ordered.update(made)
    snapshot.items = ordered


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
        fields["items"] = [
            _written(item, items.get((query_id, state.first_id)), state, stale) for item, state in members
        ]
        left = _left(query_id, bank, now, by_query.get(query_id))
        if left and all(other.query_id != query_id for other in made):
            # Grades of these ids are stale, also where a query has none of its old items left.
            fields["former_items"] = left
        made.append(BankEntry(**fields))
    return made


def _written(item: BankItem, old: BankItem | None, state: ItemState, stale: Collection[tuple[str, str]]) -> BankItem:
    """An item as it stands now, with what the file said beside it, who edited it last, and a mark for new grades."""
    if state.version == 0 and old is not None:
        return old if (state.item.query_id, state.first_id) in stale else _unmarked(old)
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
