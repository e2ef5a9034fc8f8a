"""What an assessor can take back: the newest thing that they did, that counts, and that nobody built on since. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rubric_measures.review._events import EDITS, Event, Snapshot

__all__ = ["Undoable", "Undone", "candidates"]


class Undoable(NamedTuple):
    """An action, and who keeps it from being taken back: the last assessor who changed the same; empty if nobody."""

    event: Event
    held_by: str


class Undone(NamedTuple):
    """What an undo did.

    Attributes:
        event: the action that was taken back.
        undo: the event that takes it back.
        passed_over: newer actions of the same assessor that stay, because others built on them.
    """

    event: Event
    undo: Event
    passed_over: Sequence[Event]


def candidates(events: Sequence[Event], snapshot: Snapshot, assessor: str) -> Iterator[Undoable]:
    """What an assessor did and did not take back, newest first.

    Left out are grades that never counted, because they came in behind what the assessor did later on the same passage
    and item: taking them back would change nothing. An action is held by whoever last changed the same item later.

    Args:
        events: all events, oldest first.
        snapshot: what they add up to.
        assessor: who.
    """
    later: dict[str, str] = {}
    for event in reversed(events):
        if event.kind in ("undo", "look") or event.event_id in snapshot.undone or event.event_id in snapshot.late:
            continue
        touched = _touched(event)
        if event.assessor == assessor:
            yield Undoable(event, next((later[one] for one in sorted(touched) if one in later), ""))
        for one in touched:
            later.setdefault(one, event.assessor)


def _touched(event: Event) -> set[str]:
    """The items or the cell that an event is about, as texts that can be compared."""
    payload = event.payload
    if event.kind in EDITS:
        keys = {*payload.get("keys", ()), *([payload["key"]] if "key" in payload else ())}
        return {f"item {key}" for key in keys | set(payload.get("made", ()))}
    return {f"cell {event.assessor} {payload['query_id']} {payload['doc_id']} {payload['item_id']}"}
