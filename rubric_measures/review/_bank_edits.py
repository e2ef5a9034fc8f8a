"""What an edit of the bank does to the items: added, reworded, retired, split, merged. Pure but for the snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rubric_measures.base.entities import RubricItem, make_item_id
from rubric_measures.base.errors import InputError
from rubric_measures.review._events import Event, ItemState, Snapshot, Version

__all__ = ["apply_edit", "item_of", "new_items", "state_of"]

_FIELDS = ("text", "importance", "weight", "gold_answers")


def item_of(payload: Mapping[str, Any], kind: str = "question") -> RubricItem:
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
        payload.get("kind", kind),
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
    return _next(
        state, event, what, made, regrade=_needs_grades(_known(snapshot, made, state.key, state.history), made)
    )


def _known(snapshot: Snapshot, item: RubricItem, key: str, history: Sequence[Version]) -> Sequence[Version]:
    """The history of an item, after that of the one that had its words before, whose grades it has again."""
    old = snapshot.items.get(item.item_id)
    return history if old is None or old.key == key else (*old.history, *history)


def _needs_grades(history: Sequence[Version], item: RubricItem) -> bool:
    """Whether the records have no grades of it: the bank's file had another id or gold answers, none, or waits."""
    return not any(
        one.version == 0
        and not one.waits
        and (one.item.item_id, one.item.gold_answers) == (item.item_id, item.gold_answers)
        for one in history
    )


def _refuse_twin(snapshot: Snapshot, item: RubricItem, key: str) -> None:
    for state in snapshot.items.values():
        if state.key != key and state.item.item_id == item.item_id and not state.retired:
            raise InputError(f"query {item.query_id!r} has an item with this text already: {item.text!r}")


def _insert(snapshot: Snapshot, event: Event, items: Sequence[RubricItem], behind: str | None, what: str) -> None:
    """Puts new items behind the one that they come from; an item that was retired with these words comes back."""
    made: dict[str, ItemState] = {}
    for item in items:
        _refuse_twin(snapshot, item, "")
        if item.item_id in {state.item.item_id for state in made.values()}:
            raise InputError(f"two items have the same text: {item.text!r}")
        version = Version(event.event_id, event.assessor, event.time, what, item)
        old = snapshot.items.get(item.item_id)
        # Grades of the words that the bank's file had are in the records, whatever became of the item since.
        regrade = _needs_grades((*(old.history if old else ()), version), item)
        if old is None or (old.retired and old.item.item_id == item.item_id):
            key, history = item.item_id, (*(old.history if old else ()), version)
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
