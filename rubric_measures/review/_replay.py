"""Adding events up, from nothing or to what is known already, and what an assessor can take back. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from rubric_measures.review._bank_edits import apply_edit
from rubric_measures.review._events import (
    ADJUDICATE,
    EDITS,
    AssessorGrade,
    CellKey,
    Event,
    ItemState,
    Snapshot,
    Version,
    cell_of,
)
from rubric_measures.types.entities import TestBank


def fold(events: Iterable[Event], bank: TestBank, waiting: Collection[tuple[str, str]] = frozenset()) -> Snapshot:
    """Adds up events, oldest first; those that were undone count as never done.

    `waiting` are (query_id, item_id) of the items of the bank's file that wait for grades anew since an earlier review.

    Raises:
        InputError: an event speaks of an item that there is not, or makes an item that there is.
    """
    events = list(events)
    undone = frozenset(int(event.payload["event"]) for event in events if event.kind == "undo")
    snapshot = Snapshot(undone=undone, last_id=events[-1].event_id if events else 0)
    for item in bank:
        waits = (item.query_id, item.item_id) in waiting
        first = Version(0, "", "", "in the file", item, waits)
        key = snapshot.free_key(item)
        snapshot.items[key] = ItemState(key, item, False, waits, (first,))
    for event in events:
        if event.event_id in undone or event.kind == "undo":
            continue
        _apply(snapshot, event)
    return snapshot


def extend(
    snapshot: Snapshot,
    events: Sequence[Event],
    bank: TestBank,
    earlier: Sequence[Event] = (),
    waiting: Collection[tuple[str, str]] = frozenset(),
) -> Snapshot:
    """What a snapshot becomes by later events; equal to adding up all events, and the snapshot stays as it is.

    Only where something is taken back is everything added up again, from the `earlier` events that are in the snapshot.

    Raises:
        InputError: as `fold`.
    """
    if any(event.kind == "undo" for event in events):
        return fold([*earlier, *events], bank, waiting)
    last = events[-1].event_id if events else snapshot.last_id
    made = Snapshot(dict(snapshot.grades), dict(snapshot.items), snapshot.undone, snapshot.looked, last)
    for event in events:
        _apply(made, event)
    return made


def _apply(snapshot: Snapshot, event: Event) -> None:
    if event.kind in EDITS:
        apply_edit(snapshot, event)
    elif event.kind == "look":
        snapshot.looked |= {(event.assessor, CellKey(*cell)) for cell in event.payload["cells"]}
    else:
        _grade(snapshot, event)


def _grade(snapshot: Snapshot, event: Event) -> None:
    say = event.payload
    cell = cell_of(say)
    before = snapshot.grades.get(cell, {}).get(event.assessor)
    # A new one: other snapshots may hold the old one.
    of_cell = snapshot.grades[cell] = dict(snapshot.grades.get(cell, {}))
    grade = say.get("grade")
    if event.kind == "note":
        if before is not None:
            of_cell[event.assessor] = replace(before, reason=str(say["note"]), event_id=event.event_id)
        return
    if event.kind == "grade":
        is_blind = bool(say.get("blind", True)) and (event.assessor, cell) not in snapshot.looked
        first, blind = _first(before, grade, is_blind)
        agrees = grade is not None and grade == say.get("grader_grade")
        final = grade if agrees or say.get("grader_grade") is None else None
        decision = "agree" if agrees else ""
        # A note without a new one stays beside the grade that was changed.
        note = str(say.get("note", before.reason if before is not None else ""))
        began = "" if first is None else event.time
        if before is not None and before.first is not None:
            began = before.first_time
        made = AssessorGrade(grade, first, blind, final, decision, note, event.event_id, event.time, began)
    else:
        made = before or AssessorGrade(None, None, False, None, "", "", 0, "")
        made = replace(made, final=grade, decision=say["decision"], reason=say["reason"])
        made = replace(made, event_id=event.event_id, time=event.time)
    if before is not None and before.decision == ADJUDICATE != say.get("decision"):
        # What was decided for all stays, whatever the adjudicator says as an assessor.
        made = replace(made, final=before.final, decision=ADJUDICATE)
    of_cell[event.assessor] = made


def _first(before: AssessorGrade | None, grade: float | None, blind: bool) -> tuple[float | None, bool]:
    """The first grade and whether it was blind: a grade that is changed later was given knowing the grader's."""
    if before is None:
        return grade, blind
    if before.first is not None:
        return before.first, before.blind
    return grade, blind and before.blind and before.final is None


class Undone(NamedTuple):
    """The action that was taken back, and the event that takes it back."""

    event: Event
    undo: Event


def last_action(events: Sequence[Event], snapshot: Snapshot, assessor: str) -> tuple[Event, str] | None:
    """The newest thing that an assessor did and did not take back, and who holds it: the last one who changed the same
    item since; empty if nobody."""
    later: dict[str, str] = {}
    for event in reversed(events):
        if event.kind in ("undo", "look") or event.event_id in snapshot.undone:
            continue
        touched = _touched(event)
        if event.assessor == assessor:
            return event, next((later[one] for one in sorted(touched) if one in later), "")
        for one in touched:
            later.setdefault(one, event.assessor)
    return None


def _touched(event: Event) -> set[str]:
    """The items or the cell that an event is about, as texts that can be compared."""
    payload = event.payload
    if event.kind in EDITS:
        keys = {*payload.get("keys", ()), *([payload["key"]] if "key" in payload else ())}
        return {f"item {key}" for key in keys | set(payload.get("made", ()))}
    return {f"cell {event.assessor} {payload['query_id']} {payload['doc_id']} {payload['item_id']}"}
