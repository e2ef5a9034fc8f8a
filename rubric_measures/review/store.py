"""The state of a review: events, edits of the bank, their replay, the file they are kept in.

What assessors did, as events, and what events add up to: grades of assessors and versions of items.

What an edit of the bank does to the items, and the edited bank as entries of its file. Pure but for the snapshot.

Adding events up, from nothing or to what is known already, and what an assessor can take back. Pure.

The state of a review in one SQLite file: events are only ever added, each committed before anything is answered.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import threading
import uuid
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec import structs

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import path_name
from rubric_measures.base.json_text import parse_json
from rubric_measures.formats.banks import (
    BankEntry,
    BankItem,
    bank_entries,
    bank_of_entries,
    former_items,
    item_id_of,
)
from rubric_measures.measures.grade_sets import grade_of_assessors
from rubric_measures.types.entities import RubricItem, TestBank, item_content, make_item_id
from rubric_measures.types.scales import SELF_RATING, Scale

EDITS = ("item_add", "item_edit", "item_retire", "item_split", "item_merge")
# The decision of an adjudicator, which binds.
ADJUDICATE = "adjudicate"


class CellKey(NamedTuple):
    """One grade that can be checked: a passage and an item of a query."""

    query_id: str
    doc_id: str
    item_id: str


def cell_of(payload: Mapping[str, Any]) -> CellKey:
    """The cell that an event's payload is about."""
    return CellKey(payload["query_id"], payload["doc_id"], payload["item_id"])


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that an assessor did.

    Attributes:
        event_id: ascending; also the version of the items that the event touched.
        assessor: who.
        time: when, ISO 8601 in UTC.
        kind: `grade`, `decide`, `note`, `undo`, `look` (at scores that tell something of grades that the assessor had
            still to give), or an edit of the bank (`item_add`, `item_edit`, `item_retire`, `item_split`, `item_merge`).
        payload: what, by kind.
        uid: names the event wherever it goes.
    """

    event_id: int
    assessor: str
    time: str
    kind: str
    payload: Mapping[str, Any]
    uid: str = ""


@dataclass(frozen=True, slots=True)
class AssessorGrade:
    """What one assessor says about one cell.

    Attributes:
        grade: the assessor's own grade, as changed last; None is undecided.
        first: the first grade that the assessor gave; stays when it is changed. None while there was none.
        blind: whether the first grade was given before the grader's grade was shown.
        final: the grade after the decision; None while undecided.
        decision: `agree`, `accept` (the grader's grade), `override` (the assessor's), `adjudicate` (what assessors
            differ on was decided), or empty while open.
        reason: what the assessor wrote beside it.
        event_id: the last event about it.
        time: of that event.
        first_time: when the first grade was given; empty while there was none.
    """

    grade: float | None
    first: float | None
    blind: bool
    final: float | None
    decision: str
    reason: str
    event_id: int
    time: str
    first_time: str = ""

    @property
    def stands(self) -> float | None:
        """The grade that counts: the final one, and until a decision the assessor's own; None while undecided."""
        return self.grade if self.final is None else self.final


def adjudicated(said: Mapping[str, AssessorGrade]) -> tuple[str, float] | None:
    """Who decided a cell, and how: the latest decision of an adjudicator; None where there is none."""
    decided = [
        (one.event_id, name, one.final)
        for name, one in said.items()
        if one.decision == ADJUDICATE and one.final is not None
    ]
    return max(decided)[1:] if decided else None


class Version(NamedTuple):
    """One version of an item.

    Attributes:
        version: the id of the event that made it; 0 for that of the bank's file.
        assessor: who made it.
        time: when.
        what: by what.
        item: what it then was.
        waits: of the file's version: whether an earlier review edited it, and no grades were made anew since.
    """

    version: int
    assessor: str
    time: str
    what: str
    item: RubricItem
    waits: bool = False


@dataclass(frozen=True)
class ItemState:
    """An item with its history.

    Attributes:
        key: the id under which the item first appeared; stays when the item's id changes with its text. Where an
            item of another query has that id, the query stands before it.
        item: as it stands now.
        retired: whether it left the bank.
        regrade: whether grades must be made anew: the text or the gold answers changed, in this review or an earlier
            one, or the item is new.
        history: all versions, oldest first.
    """

    key: str
    item: RubricItem
    retired: bool
    regrade: bool
    history: tuple[Version, ...]

    @property
    def place(self) -> tuple[str, str]:
        """The item's query and its id as it stands now."""
        return self.item.query_id, self.item.item_id

    @property
    def original(self) -> RubricItem | None:
        """The item as the bank's file has it; None where assessors made it."""
        first = self.history[0]
        return first.item if first.version == 0 else None

    @property
    def first_id(self) -> str:
        """The id that the item has in the bank's file; its key where assessors made it."""
        return self.key if self.original is None else self.original.item_id

    @property
    def waits(self) -> bool:
        """Whether the item is in the bank and needs grades."""
        return self.regrade and not self.retired

    @property
    def version(self) -> int:
        """The id of the event that made the current version; 0 for the version of the bank file."""
        return self.history[-1].version


@dataclass
class Snapshot:
    """What all events add up to.

    Attributes:
        grades: cell -> assessor -> what the assessor says.
        items: key -> the item, in bank order; new items stand behind those that they come from.
        undone: ids of events that were taken back.
        looked: (assessor, cell) of grades of which the assessor saw on the impact screen which way they went.
        last_id: the last event that is in the snapshot.
    """

    grades: dict[CellKey, dict[str, AssessorGrade]] = field(default_factory=dict)
    items: dict[str, ItemState] = field(default_factory=dict)
    undone: frozenset[int] = frozenset()
    looked: frozenset[tuple[str, CellKey]] = frozenset()
    last_id: int = 0

    def bank(self, original: TestBank) -> TestBank:
        """The bank as it stands now."""
        members: dict[str, list[RubricItem]] = {query_id: [] for query_id in original.items}
        for state in self.items.values():
            if not state.retired:
                members.setdefault(state.item.query_id, []).append(state.item)
        texts = {query_id: tuple(items) for query_id, items in members.items()}
        return TestBank(texts, original.query_texts, original.facet_texts)

    def first_at(self, query_id: str, item_id: str) -> ItemState | None:
        """The item that first appeared under this id of this query; None where there is none."""
        for key in (item_id, f"{query_id} {item_id}"):
            state = self.items.get(key)
            if state is not None and state.item.query_id == query_id:
                return state
        return None

    def free_key(self, item: RubricItem) -> str:
        """The key of an item that first appears: ids need only be unique in their query."""
        return item.item_id if item.item_id not in self.items else f"{item.query_id} {item.item_id}"

    def live(self) -> dict[tuple[str, str], ItemState]:
        """(query_id, item_id) -> the items that are in the bank now."""
        return {state.place: state for state in self.items.values() if not state.retired}

    def adjudicated(self, cell: CellKey) -> tuple[str, float] | None:
        """Who decided a cell that assessors differ on, and how; None where nobody did."""
        return adjudicated(self.grades.get(cell, {}))

    def final(
        self, cell: CellKey, earlier: Mapping[str, float] | None = None, settled: tuple[str, float] | None = None
    ) -> float | None:
        """The grade of a cell by assessors, as `grade_of_assessors`; None where nobody gave one.

        Args:
            cell: the cell.
            earlier: assessor -> grade in the records; counts until the assessor has one in this review.
            settled: who decided as an adjudicator in the records, and how; binds until one decides in this review.
        """
        decided = self.adjudicated(cell) or settled
        if decided is not None:
            return decided[1]
        said = dict(earlier or {})
        said.update(
            (assessor, one.stands) for assessor, one in self.grades.get(cell, {}).items() if one.stands is not None
        )
        return grade_of_assessors(said.values()) if said else None


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
        made = structs.replace(made, item_id=state.item.item_id)
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
    there = list(snapshot.items.items())
    at = next((place for place, (key, _) in enumerate(there, 1) if key == behind), len(there))
    snapshot.items = dict([*there[:at], *made.items(), *there[at:]])


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
    if any(entry.form != "bank" for entry in original):
        original = bank_entries(bank_of_entries(original, says=False))
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
        head = heads.get((query_id, entry.facet_id)) or by_query.get(query_id)
        if head is not None:
            asked = head.query_text if head.query_text is not None else entry.query_text
            entry = structs.replace(entry, query_text=asked, further={**entry.further, **head.further})
        members = [(item, states[query_id, str(item.item_id)]) for item in entry.items]
        listed = [_written(item, items.get((query_id, state.first_id)), state, stale) for item, state in members]
        left = _left(query_id, bank, now, by_query.get(query_id))
        if left and all(other.query_id != query_id for other in made):
            # Grades of these ids are stale, also where a query has none of its old items left.
            entry = structs.replace(entry, further={**entry.further, "former_items": left})
        made.append(structs.replace(entry, items=listed, form="bank"))
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
    return structs.replace(item, info=info, further=old.further if old is not None else {})


def _unmarked(item: BankItem) -> BankItem:
    """An item that nobody edited, without the mark of an earlier review: all grades of it were made since."""
    if not isinstance(item.info, dict) or item.info.get("regrade") is not True:
        return item
    info = {name: said for name, said in item.info.items() if name != "same_as"}
    return structs.replace(item, info={**info, "regrade": False})


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
    ids = [*(former_items(head.further) if head else ()), *(item.item_id for item in before.items.get(query_id, ()))]
    return [item_id for item_id in dict.fromkeys(ids) if item_id not in there]


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
        first, blind, began = _first(before, grade, is_blind, event.time)
        agrees = grade is not None and grade == say.get("grader_grade")
        final = grade if agrees or say.get("grader_grade") is None else None
        decision = "agree" if agrees else ""
        # A note without a new one stays beside the grade that was changed.
        note = str(say.get("note", before.reason if before is not None else ""))
        made = AssessorGrade(grade, first, blind, final, decision, note, event.event_id, event.time, began)
    else:
        made = before or AssessorGrade(None, None, False, None, "", "", 0, "")
        made = replace(made, final=grade, decision=say["decision"], reason=say["reason"])
        made = replace(made, event_id=event.event_id, time=event.time)
    if before is not None and before.decision == ADJUDICATE != say.get("decision"):
        # What was decided for all stays, whatever the adjudicator says as an assessor.
        made = replace(made, final=before.final, decision=ADJUDICATE)
    of_cell[event.assessor] = made


def _first(before: AssessorGrade | None, grade: float | None, blind: bool, time: str) -> tuple[float | None, bool, str]:
    """The first grade, whether it was blind, and when: a grade that is changed later was given knowing the grader's."""
    if before is not None and before.first is not None:
        return before.first, before.blind, before.first_time
    is_blind = blind and (before is None or (before.blind and before.final is None))
    return grade, is_blind, "" if grade is None else time


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


_SCHEMA = """
create table if not exists events (
    event_id integer primary key autoincrement,
    uid text not null unique,
    person text not null,
    time text not null,
    kind text not null,
    payload text not null
);
create table if not exists settings (name text primary key, value text not null);
"""


# An edit of the bank: its kind, what it says, and key -> version of the items that its editor saw.
Edit = tuple[str, Mapping[str, Any], Mapping[str, int]]


class ConflictError(InputError):
    """Somebody changed an item after the editor opened it; nothing was changed.

    Attributes:
        keys: the items that changed.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)
        super().__init__(f"{len(keys)} items were changed by somebody else meanwhile: {', '.join(keys)}")


class StateError(InputError):
    """The state file cannot be read or written now; nothing was kept."""


class ReviewStore:
    """The events of one review.

    Several processes and threads may use one file at a time. A process that dies loses nothing that was answered.

    Args:
        path: the SQLite file; made when it is not there.
        bank: the bank as its file has it.
        patience: seconds to wait for another program that writes to the file.
        waiting: the items of the bank that wait for grades anew since an earlier review (`Material.waiting`).
        scale: the scale of the grades.

    Raises:
        InputError: the file cannot be opened or is no state file.
        StateError: (of every method) it cannot be read or written now.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        bank: TestBank,
        patience: float = 20,
        waiting: Collection[tuple[str, str]] = frozenset(),
        scale: Scale = SELF_RATING,
    ) -> None:
        self.path = path_name(path)
        self.bank = bank
        self.waiting = waiting
        self.scale = scale
        self._lock = threading.RLock()
        self._events: list[Event] = []
        self._snapshot: Snapshot | None = None
        try:
            if self.path != ":memory:":
                # Whoever reads the secrets in it may grade under any name.
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            self._connection = sqlite3.connect(
                self.path, timeout=patience, check_same_thread=False, isolation_level=None
            )
        except (sqlite3.Error, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise InputError(f"{self.path}: cannot be used as the state of a review ({why})") from None
        try:
            self._connection.execute("pragma journal_mode=wal")
            self._connection.execute("pragma synchronous=full")
            self._connection.executescript(_SCHEMA)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self._connection.close()
            # SQLite quotes the damaged bytes of a schema, which are no text then.
            why = "its schema is damaged" if isinstance(error, UnicodeDecodeError) else error
            raise InputError(f"{self.path}: cannot be used as the state of a review ({why})") from None

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _mine(self, writes: bool = False) -> Iterator[None]:
        """Hold the lock; with `writes`, in one transaction."""
        with self._lock:
            try:
                if writes:
                    self._connection.execute("begin immediate")
                yield
                if writes:
                    self._connection.execute("commit")
            except BaseException as error:
                if writes and self._connection.in_transaction:
                    self._connection.execute("rollback")
                if not isinstance(error, sqlite3.Error):
                    raise
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                is_locked = code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                why = "another program keeps it locked" if is_locked else f"cannot be used now ({error})"
                raise StateError(f"{self.path}: {why}; try again in a moment") from None

    def secret(self, name: str) -> str:
        """A random text that stays the same for this file, so links, sessions and forms outlive the server."""
        with self._mine():
            made = secrets.token_urlsafe(24)
            self._connection.execute("insert or ignore into settings values (?, ?)", (f"secret {name}", made))
            query = "select value from settings where name = ?"
            return str(self._connection.execute(query, (f"secret {name}",)).fetchone()[0])

    def belong_to(self, **made_of: str) -> None:
        """Remembers what the review is of, and refuses to go on with something else.

        Raises:
            InputError: the state was begun with another bank, or for another grader.
        """
        with self._mine():
            for name, value in made_of.items():
                self._connection.execute("insert or ignore into settings values (?, ?)", (f"of {name}", value))
                query = "select value from settings where name = ?"
                (known,) = self._connection.execute(query, (f"of {name}",)).fetchone()
                if known != value:
                    raise InputError(
                        f"{self.path}: belongs to a review of another {name} ({known}, not {value}); "
                        "give that one, or another state file",
                        settings=("state",),
                    )

    def events(self) -> list[Event]:
        """All events, oldest first."""
        with self._mine():
            self._load()
            return list(self._events)

    def snapshot(self) -> Snapshot:
        """What the events add up to now."""
        with self._mine():
            self._load()
            if self._snapshot is None:
                try:
                    self._snapshot = fold(self._events, self.bank, self.waiting)
                except (LookupError, TypeError, AttributeError):
                    # Each event is checked before it is kept.
                    raise self._damaged("one of the events") from None
            elif self._snapshot.last_id != self._last_id():
                known = bisect_right(self._events, self._snapshot.last_id, key=lambda event: event.event_id)
                self._snapshot = self._extended(self._snapshot, self._events[known:], self._events[:known])
            return self._snapshot

    def _extended(self, snapshot: Snapshot, events: Sequence[Event], earlier: Sequence[Event]) -> Snapshot:
        return extend(snapshot, events, self.bank, earlier, self.waiting)

    def _last_id(self) -> int:
        return self._events[-1].event_id if self._events else 0

    def _load(self) -> None:
        rows = self._connection.execute(
            "select event_id, person, time, kind, payload, uid from events where event_id > ? order by event_id",
            (self._last_id(),),
        ).fetchall()
        self._events += [self._event(*row) for row in rows]

    def _event(self, number: int, assessor: str, time: str, kind: str, text: str, uid: str) -> Event:
        try:
            payload = parse_json(text, lenient=True)
            datetime.fromisoformat(time)
        except (ValueError, TypeError):
            payload = None
        # SQLite keeps what it is given, whatever the column.
        whole = all(isinstance(one, str) for one in (assessor, time, kind, uid)) and isinstance(payload, dict)
        if not whole or not isinstance(payload.get("grade"), int | float | None):
            raise self._damaged(f"event {number}")
        return Event(number, assessor, time, kind, payload, uid)

    def _damaged(self, what: str) -> InputError:
        return InputError(f"{self.path}: {what} is damaged; go on with a copy of the file that is whole")

    def grade(
        self,
        assessor: str,
        cell: CellKey,
        grade: float | None,
        grader_grade: float | None,
        blind: bool = True,
        note: str = "",
    ) -> Event:
        """Keeps the grade that an assessor gives a cell, with the grader's at that time; None is undecided."""
        payload = {**cell._asdict(), "grade": self._checked(grade), "grader_grade": grader_grade, "blind": blind}
        if note.strip():
            payload["note"] = note.strip()
        return self._write(assessor, "grade", lambda _: payload)

    def decide(self, assessor: str, cell: CellKey, decision: str, grade: float, reason: str) -> Event:
        """Keeps what an assessor does after seeing the grader's grade.

        Args:
            assessor: who.
            cell: the grade in question.
            decision: `accept` the grader's grade, or `override` it; `adjudicate` what assessors differ on.
            grade: the final grade.
            reason: why; may be empty.

        Raises:
            InputError: by somebody who gave no grade first.
        """
        reason = reason.strip()
        if decision not in ("accept", "override", ADJUDICATE):
            raise InputError(f"a decision is accept, override or {ADJUDICATE}, not {decision!r}")
        payload = {**cell._asdict(), "decision": decision, "grade": self._checked(grade), "reason": reason}

        def check(snapshot: Snapshot) -> Mapping[str, Any]:
            said = snapshot.grades.get(cell, {}).get(assessor)
            if decision != ADJUDICATE and (said is None or said.grade is None):
                raise InputError("give your own grade before you decide about the grader's")
            return payload

        return self._write(assessor, "decide", check)

    def note(self, assessor: str, cell: CellKey, text: str) -> Event:
        """Keeps what an assessor writes beside a grade; it takes the place of what was written there.

        Raises:
            InputError: the assessor gave no grade there.
        """

        def check(snapshot: Snapshot) -> Mapping[str, Any]:
            if assessor not in snapshot.grades.get(cell, {}):
                raise InputError("give a grade before you write a note beside it")
            return {**cell._asdict(), "note": text.strip()}

        return self._write(assessor, "note", check)

    def look(self, assessor: str, cells: Sequence[CellKey]) -> Event:
        """Keeps that an assessor saw which way others' grades went: what they say of these later is not blind."""
        return self._write(assessor, "look", lambda _: {"cells": [list(cell) for cell in cells]})

    def edit_all(self, assessor: str, edits: Sequence[Edit]) -> list[Event]:
        """Keeps edits of the bank, all or none: none where somebody changed one of the items after the editor saw it.

        Args:
            assessor: who.
            edits: (kind, payload, expected) each: `item_add`, `item_edit`, `item_retire`, `item_split` or `item_merge`;
                what, by kind, see `_bank_edits`; key -> the version that the editor saw, of every item that it touches.

        Raises:
            ConflictError: an item has another version by now.
            InputError: one of the edits makes no sense (no text, a text twice, no such item).
        """
        with self._mine(writes=True):
            snapshot, made = self.snapshot(), list[Event]()
            for kind, payload, expected in edits:
                _check_versions(snapshot, kind, expected)
                # So an undo knows what was built on.
                whole = {**payload, "made": [item.item_id for item in new_items(snapshot, kind, payload)]}
                made.append(self._event_of(assessor, kind, whole, len(made)))
                # Refuses what cannot be added up, before it is kept.
                snapshot = self._extended(snapshot, made[-1:], ())
            return [self._insert(event) for event in made]

    def undo(self, assessor: str) -> Undone | None:
        """Takes back the newest thing that an assessor did; None where there is none.

        Raises:
            InputError: others built on it.
        """
        with self._mine(writes=True):
            snapshot = self.snapshot()
            found = last_action(self._events, snapshot, assessor)
            if found is None:
                return None
            event, held_by = found
            if held_by:
                raise InputError(f"it cannot be taken back: {held_by} changed the same item later")
            undo = self._event_of(assessor, "undo", {"event": event.event_id})
            try:
                self._extended(snapshot, [undo], self._events)
            except InputError as error:
                raise InputError(f"it cannot be taken back: later changes build on it ({error})") from None
            return Undone(event, self._insert(undo))

    def _event_of(self, assessor: str, kind: str, payload: Mapping[str, Any], after: int = 0) -> Event:
        """The next event, or the one so many behind it."""
        time = datetime.now(UTC).isoformat(timespec="seconds")
        return Event(self._last_id() + 1 + after, assessor, time, kind, payload, uuid.uuid4().hex)

    def _insert(self, event: Event) -> Event:
        cursor = self._connection.execute(
            "insert into events (uid, person, time, kind, payload) values (?, ?, ?, ?, ?)",
            (event.uid, event.assessor, event.time, event.kind, json.dumps(event.payload)),
        )
        return replace(event, event_id=int(cursor.lastrowid or 0))

    def _write(self, assessor: str, kind: str, check: Callable[[Snapshot], Mapping[str, Any]]) -> Event:
        """Checks and adds an event in one transaction: no other writer comes between the check and the event."""
        with self._mine(writes=True):
            return self._insert(self._event_of(assessor, kind, check(self.snapshot())))

    def _checked(self, grade: float | None) -> float | None:
        if grade is not None and grade not in self.scale:
            raise InputError(f"a grade is {self.scale.lowest} to {self.scale.highest}, not {grade}")
        return grade


def _check_versions(snapshot: Snapshot, kind: str, expected: Mapping[str, int]) -> None:
    """Refuses an edit that there is not, and one of an item that somebody changed after the editor saw it."""
    if kind not in EDITS:
        raise InputError(f"no such edit: {kind!r}")
    stale = [
        key
        for key, version in expected.items()
        if key not in snapshot.items
        or snapshot.items[key].version != version
        or (snapshot.items[key].retired and kind != "item_add")
    ]
    if stale:
        raise ConflictError(stale)
