"""What people did, as events, and what the events add up to: grades of persons and versions of items. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from rubric_measures.errors import InputError
from rubric_measures.records import RubricItem, TestBank, make_item_id

__all__ = [
    "PAGE",
    "Cell",
    "Event",
    "ItemState",
    "PersonGrade",
    "Snapshot",
    "Version",
    "extend",
    "fold",
    "is_earlier",
    "item_of",
    "last_undoable",
]

EDITS = ("item_add", "item_edit", "item_retire", "item_split", "item_merge")
# The source of grades that come from a page without a server; their times are the page's.
PAGE = "static page"
_FIELDS = ("text", "importance", "weight", "gold_answers")


class Cell(NamedTuple):
    """One grade that can be checked: a passage and an item of a query."""

    query_id: str
    doc_id: str
    item_id: str


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a person did.

    Attributes:
        event_id: ascending; also the version of the items that the event touched.
        person: who.
        time: when, ISO 8601 in UTC.
        kind: `grade`, `decide`, `undo`, or an edit of the bank (`item_add`, `item_edit`, `item_retire`, `item_split`,
            `item_merge`).
        payload: what, by kind.
    """

    event_id: int
    person: str
    time: str
    kind: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PersonGrade:
    """What one person says about one cell.

    Attributes:
        grade: the person's own grade, as changed last; None is undecided.
        first: the first grade that the person gave; stays when it is changed. None while there was none.
        blind: whether the first grade was given before the grader's grade was shown.
        final: the grade after the decision; None while undecided.
        decision: `agree`, `accept` (the grader's grade), `override` (the person's), or empty while open.
        reason: why the grader was overridden.
        event_id: the last event about it.
        time: of that event.
    """

    grade: int | None
    first: int | None
    blind: bool
    final: int | None
    decision: str
    reason: str
    event_id: int
    time: str


class Version(NamedTuple):
    """One version of an item: who made it, when, by what, and what it then was."""

    version: int
    person: str
    time: str
    what: str
    item: RubricItem


@dataclass(frozen=True)
class ItemState:
    """An item with its history.

    Attributes:
        key: the id under which the item first appeared; stays when the item's id changes with its text.
        item: as it stands now.
        retired: whether it left the bank.
        regrade: whether grades must be made anew: the text or the gold answers changed, or the item is new.
        history: all versions, oldest first.
    """

    key: str
    item: RubricItem
    retired: bool
    regrade: bool
    history: tuple[Version, ...]

    @property
    def version(self) -> int:
        """The id of the event that made the current version; 0 for the version of the bank file."""
        return self.history[-1].version


@dataclass
class Snapshot:
    """What all events add up to.

    Attributes:
        grades: cell -> person -> what the person says.
        items: key -> the item, in bank order; new items stand behind those that they come from.
        undone: ids of events that were taken back.
        last_id: the last event that is in the snapshot.
    """

    grades: dict[Cell, dict[str, PersonGrade]] = field(default_factory=dict)
    items: dict[str, ItemState] = field(default_factory=dict)
    undone: frozenset[int] = frozenset()
    last_id: int = 0

    def bank(self, original: TestBank) -> TestBank:
        """The bank as it stands now."""
        members: dict[str, list[RubricItem]] = {query_id: [] for query_id in original.items}
        for state in self.items.values():
            if not state.retired:
                members.setdefault(state.item.query_id, []).append(state.item)
        texts = {query_id: tuple(items) for query_id, items in members.items()}
        return TestBank(texts, original.query_texts, original.facet_texts)

    def live(self, query_id: str) -> list[ItemState]:
        """The items of a query that are in the bank now."""
        return [state for state in self.items.values() if state.item.query_id == query_id and not state.retired]

    def final(self, cell: Cell) -> int | None:
        """The last final grade that a person gave a cell; None where there is none."""
        said = [said for said in self.grades.get(cell, {}).values() if said.final is not None]
        return max(said, key=lambda one: one.event_id).final if said else None

    @property
    def edited(self) -> bool:
        """Whether the bank differs from the file."""
        return any(state.version or state.retired for state in self.items.values())


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


def _undone(events: Sequence[Event]) -> frozenset[int]:
    return frozenset(int(event.payload["event"]) for event in events if event.kind == "undo")


def fold(events: Iterable[Event], bank: TestBank) -> Snapshot:
    """Adds up events, oldest first; those that were undone count as never done.

    Raises:
        InputError: an event speaks of an item that there is not, or makes an item that there is.
    """
    events = list(events)
    undone = _undone(events)
    snapshot = Snapshot(undone=undone, last_id=events[-1].event_id if events else 0)
    for item in bank:
        first = Version(0, "", "", "in the file", item)
        snapshot.items[item.item_id] = ItemState(item.item_id, item, False, False, (first,))
    for event in events:
        if event.event_id in undone or event.kind == "undo":
            continue
        _apply(snapshot, event)
    return snapshot


def extend(snapshot: Snapshot, events: Sequence[Event], bank: TestBank, earlier: Sequence[Event] = ()) -> Snapshot:
    """What a snapshot becomes by later events; equal to adding up all events, and the snapshot stays as it is.

    Only where something is taken back is everything added up again.

    Args:
        snapshot: what `earlier` adds up to.
        events: the later events, oldest first.
        bank: the bank as its file has it.
        earlier: the events that are in the snapshot.

    Raises:
        InputError: as `fold`.
    """
    if any(event.kind == "undo" for event in events):
        return fold([*earlier, *events], bank)
    last = events[-1].event_id if events else snapshot.last_id
    made = Snapshot(dict(snapshot.grades), dict(snapshot.items), snapshot.undone, last)
    for event in events:
        _apply(made, event)
    return made


def _apply(snapshot: Snapshot, event: Event) -> None:
    if event.kind in EDITS:
        _edit(snapshot, event)
    else:
        _grade(snapshot, event)


def _grade(snapshot: Snapshot, event: Event) -> None:
    say = event.payload
    cell = Cell(say["query_id"], say["doc_id"], say["item_id"])
    before = snapshot.grades.get(cell, {}).get(event.person)
    if say.get("source") == PAGE and before is not None and is_earlier(event.time, before.time):
        # It came in late: what the person did since stands.
        return
    # A new one: other snapshots may hold the old one.
    of_cell = snapshot.grades[cell] = dict(snapshot.grades.get(cell, {}))
    grade = say.get("grade")
    if event.kind == "grade":
        first, blind = _first(before, grade, bool(say.get("blind", True)))
        agrees = grade is not None and grade == say.get("grader_grade")
        final = grade if agrees or say.get("grader_grade") is None else None
        decision = "agree" if agrees else ""
        if say.get("decision") == "override" and not agrees:
            final, decision = grade, "override"
        note = str(say.get("note", ""))
        made = PersonGrade(grade, first, blind, final, decision, note, event.event_id, event.time)
    else:
        mine, first, blind = (before.grade, before.first, before.blind) if before else (None, None, False)
        made = PersonGrade(mine, first, blind, grade, say["decision"], say["reason"], event.event_id, event.time)
    of_cell[event.person] = made


def is_earlier(time: str, other: str) -> bool:
    """Whether a time lies before another; both ISO 8601, in UTC where they name no zone."""
    one, two = (datetime.fromisoformat(text) for text in (time, other))
    one, two = (made if made.tzinfo else made.replace(tzinfo=UTC) for made in (one, two))
    return one < two


def _first(before: PersonGrade | None, grade: int | None, blind: bool) -> tuple[int | None, bool]:
    """The first grade and whether it was blind: a grade that is changed later was given knowing the grader's."""
    if before is None:
        return grade, blind
    if before.first is not None:
        return before.first, before.blind
    return grade, blind and before.blind and before.final is None


def _next(state: ItemState, event: Event, what: str, item: RubricItem, **changes: Any) -> ItemState:
    version = Version(event.event_id, event.person, event.time, what, item)
    return replace(state, item=item, history=(*state.history, version), **changes)


def _state(snapshot: Snapshot, key: str) -> ItemState:
    if key not in snapshot.items:
        raise InputError(f"the bank has no item {key!r}")
    return snapshot.items[key]


def _edit(snapshot: Snapshot, event: Event) -> None:
    payload = event.payload
    if event.kind == "item_add":
        _insert(snapshot, event, [item_of(payload)], None, "added")
    elif event.kind == "item_edit":
        state = _state(snapshot, payload["key"])
        snapshot.items[state.key] = _edited(snapshot, state, event)
    elif event.kind == "item_retire":
        state = _state(snapshot, payload["key"])
        snapshot.items[state.key] = _next(state, event, "retired", state.item, retired=True)
    elif event.kind == "item_split":
        state = _state(snapshot, payload["key"])
        parts = [item_of({**_fields(state.item), "gold_answers": (), "text": text}) for text in payload["texts"]]
        snapshot.items[state.key] = _next(state, event, "split", state.item, retired=True)
        _insert(snapshot, event, parts, state.key, "made by a split")
    else:
        states = [_state(snapshot, key) for key in payload["keys"]]
        joined = item_of({**_fields(states[0].item), **_joined(states), "text": payload["text"]})
        for state in states:
            snapshot.items[state.key] = _next(state, event, "merged", state.item, retired=True)
        _insert(snapshot, event, [joined], states[-1].key, "made by a merge")


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
    return _next(state, event, what, made, regrade=_needs_grades(state.history, made))


def _needs_grades(history: Sequence[Version], item: RubricItem) -> bool:
    """Whether the bank's file, and so the records, had another item: another id or other gold answers, or none."""
    return not any(
        one.version == 0 and (one.item.item_id, one.item.gold_answers) == (item.item_id, item.gold_answers)
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
        version = Version(event.event_id, event.person, event.time, what, item)
        old = snapshot.items.get(item.item_id)
        if old is None or (old.retired and old.item.item_id == item.item_id):
            key, history = item.item_id, (*(old.history if old else ()), version)
            snapshot.items.pop(key, None)
        else:
            # The key belongs to an item that has other words by now.
            key, history, old = f"{item.item_id}#{event.event_id}", (version,), None
        made[key] = ItemState(key, item, False, _needs_grades(history, item), history)
    if behind is None or behind not in snapshot.items:
        snapshot.items.update(made)
        return
    ordered: dict[str, ItemState] = {}
    for key, state in snapshot.items.items():
        ordered[key] = state
        if key == behind:
            ordered.update(made)
    snapshot.items = ordered


def _touched(event: Event) -> set[str]:
    """The items or the cell that an event is about, as texts that can be compared."""
    payload = event.payload
    if event.kind in EDITS:
        keys = {*payload.get("keys", ()), *([payload["key"]] if "key" in payload else ())}
        return {f"item {key}" for key in keys | set(payload.get("made", ()))}
    return {f"cell {event.person} {payload['query_id']} {payload['doc_id']} {payload['item_id']}"}


def last_undoable(events: Sequence[Event], person: str) -> Event | None:
    """The last thing that a person did and did not take back, unless somebody built on it since.

    Raises:
        InputError: somebody else changed the same item later; it says who.
    """
    undone = _undone(events)
    live = [event for event in events if event.kind != "undo" and event.event_id not in undone]
    mine = next((event for event in reversed(live) if event.person == person), None)
    if mine is None:
        return None
    touched = _touched(mine)
    for event in live:
        if event.event_id > mine.event_id and touched & _touched(event):
            raise InputError(f"{event.person} changed the same item later; it cannot be taken back")
    return mine
