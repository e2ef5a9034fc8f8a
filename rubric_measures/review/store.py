"""The state of a review: tables in one SQLite file.

Each action of an assessor is a row of `log`. What it made of a grade or of an item stands whole in a row of `grade` or
of `version` that names it: the newest row that was not taken back is how things stand, so that an undo is one flag.

What an edit of the bank does to the items, and the edited bank as entries of its file. Pure but for the snapshot.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import threading
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import astuple, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, MsgspecError, convert, structs

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import is_locked, path_name, use_wal
from rubric_measures.base.json_text import Finite, damaged, parse_json, stored_rows
from rubric_measures.formats.banks import OF_ITEMS, BankEntry, bank_entries, bank_of_entries, former_items
from rubric_measures.records.models import Rating
from rubric_measures.types.entities import RubricItem, TestBank, make_item_id
from rubric_measures.types.scales import SELF_RATING, Scale

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


class Event(NamedTuple):
    """One thing that an assessor did, in the order of the fields of the audit trail.

    Attributes:
        event_id: ascending; also the version of the items that the event touched.
        time: when, ISO 8601 in UTC.
        assessor: who.
        kind: `grade`, `decide`, `note`, `undo`, `look` (at a report that shows grades that the assessor had still to
            give), or an edit of the bank (`item_add`, `item_edit`, `item_retire`, `item_split`, `item_merge`).
        uid: names the event wherever it goes.
        undone: whether it was taken back.
        payload: what, by kind.
    """

    event_id: int
    time: str
    assessor: str
    kind: str
    uid: str
    undone: bool
    payload: Mapping[str, Any]


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


_NOTHING = AssessorGrade(None, None, False, None, "", "", 0, "")


def adjudicated(said: Mapping[str, AssessorGrade]) -> tuple[str, float] | None:
    """Who decided a cell, and how: the latest decision of an adjudicator; None where there is none."""
    decided = [(one.event_id, name, one.final) for name, one in said.items() if one.decision == ADJUDICATE]
    _, name, grade = max(decided, default=(0, "", None))
    return None if grade is None else (name, grade)


class Version(NamedTuple):
    """One version of an item.

    Attributes:
        version: the id of the event that made it; 0 for that of the bank's file.
        assessor: who made it.
        time: when.
        what: by what.
        item: what it then was.
        retired: whether it left the bank by it.
        regrade: whether grades must be made anew: the text or the gold answers changed, in this review or an earlier
            one, or the item is new.
        position: where it stands among the items of the bank: behind those with a smaller one.
    """

    version: int
    assessor: str
    time: str
    what: str
    item: RubricItem
    retired: bool
    regrade: bool
    position: float


class ItemState(NamedTuple):
    """An item with its history.

    Attributes:
        key: the id under which the item first appeared; stays when the item's id changes with its text. Where an
            item of another query has that id, the query stands before it.
        item: as it stands now.
        retired: whether it left the bank.
        regrade: whether grades must be made anew, see `Version`.
        position: see `Version`.
        version: the id of the event that made the current version; 0 for the version of the bank file.
        history: all versions, oldest first.
    """

    key: str
    item: RubricItem
    retired: bool
    regrade: bool
    position: float
    version: int
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
    def gone(self) -> str:
        """What was done to an item of the file whose grades count no more, or wait; empty of others."""
        if self.retired:
            return f"was {self.history[-1].what} since"
        return "was changed, and its grades were not made anew since" if self.original and self.regrade else ""

    @property
    def waits(self) -> bool:
        """Whether the item is in the bank and needs grades."""
        return self.regrade and not self.retired


@dataclass(eq=False)
class Snapshot:
    """How things stand.

    Attributes:
        grades: cell -> assessor -> what the assessor says.
        items: key -> the item, in bank order; new items stand behind those that they come from.
        looked: (assessor, cell) of grades that the assessor saw in a report.
        last_id: the last event that is in the snapshot.
    """

    grades: dict[CellKey, dict[str, AssessorGrade]] = field(default_factory=dict)
    items: dict[str, ItemState] = field(default_factory=dict)
    looked: frozenset[tuple[str, CellKey]] = frozenset()
    last_id: int = 0

    def put(self, key: str, version: Version) -> None:
        """Adds a version of an item to a snapshot that is being made."""
        number, *_, item, retired, regrade, position = version
        history = (*(self.items[key].history if key in self.items else ()), version)
        self.items[key] = ItemState(key, item, retired, regrade, position, number, history)

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

    @cached_property
    def left(self) -> dict[tuple[str, str], str]:
        """(query_id, item_id) -> what was done to it, of the items of the file whose grades count no more, or wait.

        Those are items that left the bank (retired, split, merged), and those that wait for
        grades anew: reworded ones, whose words have another id by now, and those with other gold answers. An item
        whose words were only corrected counts as before. An item that was edited in an earlier review waits until its
        grades are made anew. Words that an item left behind, and that were added again, have their grades again.
        """
        states = self.items.values()
        again = {state.place for state in states if not (state.original or state.retired or state.regrade)}
        found = {(one.query_id, one.item_id): state.gone for state in states if (one := state.original) and state.gone}
        return {place: what for place, what in found.items() if place not in again}

    def live(self) -> dict[tuple[str, str], ItemState]:
        """(query_id, item_id) -> the items that are in the bank now."""
        return {state.place: state for state in self.items.values() if not state.retired}


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
        fields = structs.asdict(state_of(snapshot, payload["key"]).item)
        return [item_of({**fields, "gold_answers": (), "text": text}) for text in payload["texts"]]
    if kind == "item_merge":
        states = [state_of(snapshot, key) for key in payload["keys"]]
        return [item_of({**structs.asdict(states[0].item), **_joined(states), "text": payload["text"]})]
    return []


# What an edit did to the items that it takes out of the bank, and to those that it puts in.
_WORDS = {
    "item_add": ("", "added"),
    "item_retire": ("retired", ""),
    "item_split": ("split", "made by a split"),
    "item_merge": ("merged", "made by a merge"),
}


def apply_edit(snapshot: Snapshot, event: Event) -> list[tuple[str, Version]]:
    """The versions of items that an edit makes, each with the item's key; they are in the snapshot then, too.

    Raises:
        InputError: it speaks of an item that there is not, or makes one that there is.
    """
    payload = event.payload
    keys = payload.get("keys") or ([payload["key"]] if "key" in payload else [])
    states = [state_of(snapshot, key) for key in keys]
    made: list[tuple[str, Version]] = []

    def put(key: str, what: str, item: RubricItem, retired: bool, regrade: bool, position: float) -> None:
        version = Version(event.event_id, event.assessor, event.time, what, item, retired, regrade, position)
        snapshot.put(key, version)
        made.append((key, version))

    if event.kind == "item_edit":
        what, item = _edited(snapshot, states[0], payload)
        regrade = _needs_grades(snapshot, item, states[0].history)
        put(states[0].key, what, item, False, regrade, states[0].position)
        return made
    taken, given = _WORDS[event.kind]
    new = new_items(snapshot, event.kind, payload)
    for state in states:
        put(state.key, taken, state.item, True, state.regrade, state.position)
    for item, position in zip(new, _positions(snapshot, keys[-1] if keys else None, len(new)), strict=True):
        _refuse_twin(snapshot, item, "")
        old = snapshot.first_at(item.query_id, item.item_id)
        if old is None or (old.retired and old.item.item_id == item.item_id):
            # An item that was retired with these words comes back.
            key = old.key if old else snapshot.free_key(item)
        else:
            # The key belongs to an item that has other words by now.
            key = f"{item.item_id}#{event.event_id}"
        put(key, given, item, False, _needs_grades(snapshot, item), position)
    return made


def _positions(snapshot: Snapshot, behind: str | None, count: int) -> list[float]:
    """Where new items stand: behind the one that they come from, and before the next one; or at the end."""
    known = [state.position for state in snapshot.items.values()]
    start = max(known, default=0.0) if behind is None else snapshot.items[behind].position
    end = min((position for position in known if position > start), default=start + count + 1)
    return [start + (end - start) * number / (count + 1) for number in range(1, count + 1)]


def _joined(states: Sequence[ItemState]) -> dict[str, Any]:
    """All gold answers once; vital where one of the items is; the largest weight."""
    answers = dict.fromkeys(answer for state in states for answer in state.item.gold_answers)
    importances = {state.item.importance for state in states}
    weights = [state.item.weight for state in states if state.item.weight is not None]
    importance = next((name for name in ("vital", "okay") if name in importances), None)
    return {"gold_answers": tuple(answers), "importance": importance, "weight": max(weights, default=None)}


def _edited(snapshot: Snapshot, state: ItemState, payload: Mapping[str, Any]) -> tuple[str, RubricItem]:
    """What changed, and the item: a reworded one has a new id, because its grades were given to other words; a
    corrected one keeps its grades."""
    made = item_of({**structs.asdict(state.item), **{name: payload[name] for name in _FIELDS if name in payload}})
    if made.text != state.item.text and not payload.get("same_meaning", False):
        _refuse_twin(snapshot, made, state.key)
    else:
        made = structs.replace(made, item_id=state.item.item_id)
    names = [name for name in _FIELDS if getattr(made, name) != getattr(state.item, name)]
    return "changed " + ", ".join(name.replace("_", " ") for name in names) if names else "left as it was", made


def _needs_grades(snapshot: Snapshot, item: RubricItem, history: Sequence[Version] = ()) -> bool:
    """Whether the records have no grades of it: the bank's file had another id or gold answers, none, or waits.

    An item that has the words of another one again, whatever became of that, has its grades again.
    """
    old = snapshot.first_at(item.query_id, item.item_id)
    return not any(
        one.version == 0
        and not one.regrade
        and (one.item.item_id, one.item.gold_answers) == (item.item_id, item.gold_answers)
        for one in (*(old.history if old else ()), *history)
    )


def _refuse_twin(snapshot: Snapshot, item: RubricItem, key: str) -> None:
    for state in snapshot.items.values():
        if state.key != key and state.place == (item.query_id, item.item_id) and not state.retired:
            raise InputError(f"query {item.query_id!r} has an item with this text already: {item.text!r}")


def edited_entries(
    original: Sequence[BankEntry], bank: TestBank, snapshot: Snapshot, stale: Collection[tuple[str, str]] = frozenset()
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
    rows = [entry.row for entry in original]
    heads = {(row["query_id"], row.get("facet_id")): row for row in reversed(rows)}
    by_query = {row["query_id"]: row for row in reversed(rows)}
    items: dict[tuple[str, str], Mapping[str, Any]] = {}
    for entry, row in zip(original, rows, strict=True):
        for item, said in zip(entry.items, row["items"], strict=True):
            items.setdefault((entry.query_id, item.item_id), said)
    states = snapshot.live()
    made: list[BankEntry] = []
    now = snapshot.bank(bank)
    for entry in bank_entries(now):
        query_id, row = entry.query_id, dict(entry.row)
        head = heads.get((query_id, entry.facet_id)) or by_query.get(query_id, {})
        row |= {name: said for name, said in head.items() if name not in ("facet_id", "facet_text", "items")}
        of_items = [states[query_id, item.item_id] for item in entry.items]
        row["items"] = [
            _written(said, items.get((query_id, state.first_id)), state, stale)
            for said, state in zip(row["items"], of_items, strict=True)
        ]
        left = _left(query_id, bank, now, by_query.get(query_id, {}))
        if left and all(other.query_id != query_id for other in made):
            # Grades of these ids are stale, also where a query has none of its old items left.
            row["former_items"] = left
        made.append(structs.replace(entry, row=row))
    return made


def _written(
    said: dict[str, Any], old: Mapping[str, Any] | None, state: ItemState, stale: Collection[tuple[str, str]]
) -> Mapping[str, Any]:
    """An item as it stands now, with what the file said beside it, who edited it last, and a mark for new grades."""
    if state.version == 0 and old is not None:
        return old if (state.item.query_id, state.first_id) in stale else _unmarked(old)
    last, before = state.history[-1], old or {}
    earlier = before["info"] if isinstance(before.get("info"), dict) else {}
    # The mark of an earlier review stays while anybody's grades are older.
    info = {**earlier, "edited_by": last.assessor, "edited_at": last.time, "edit": last.what}
    info["regrade"] = state.regrade or state.place in stale
    return {**said, "info": info, **{name: one for name, one in before.items() if name not in OF_ITEMS}}


def _unmarked(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """An item that nobody edited, without the mark of an earlier review: all grades of it were made since."""
    said = item.get("info")
    if not isinstance(said, dict) or said.get("regrade") is not True:
        return item
    return {**item, "info": {**said, "regrade": False}}


def _left(query_id: str, before: TestBank, now: TestBank, head: Mapping[str, Any]) -> list[str]:
    """The ids of a query's items that are no longer in the bank, those of earlier reviews first."""
    there = {item.item_id for item in now.items[query_id]}
    ids = [*former_items(head), *(item.item_id for item in before.items.get(query_id, ()))]
    return [item_id for item_id in dict.fromkeys(ids) if item_id not in there]


# Of a file that this version can go on with; a file without it that has tables is something else.
_FORM = 2
_SCHEMA = f"""
pragma user_version = {_FORM};
create table if not exists setting (name text primary key, value text not null);
create table if not exists log (
    id integer primary key autoincrement, assessor text not null, time text not null, kind text not null,
    payload text not null, uid text not null unique, undone integer not null default 0
);
create table if not exists grade (
    assessor text not null, query_id text not null, doc_id text not null, item_id text not null,
    grade, first, blind integer not null, final, decision text not null, reason text not null,
    action integer primary key references log, time text not null, first_time text not null
);
create table if not exists version (
    key text not null, action integer not null references log, what text not null, item text not null,
    retired integer not null, regrade integer not null, position real not null
);
create table if not exists looked (
    assessor text not null, query_id text not null, doc_id text not null, item_id text not null,
    action integer not null references log
);
create index if not exists version_of_action on version (action);
create index if not exists version_of_key on version (key);
"""
# What is read of the tables since an action, oldest first.
_GRADES = """
select g.* from grade g join log on log.id = g.action where not log.undone and log.id > ? order by log.id
"""
_VERSIONS = """
select v.key, log.id, log.assessor, log.time, v.what, v.item, v.retired, v.regrade, v.position
from version v join log on log.id = v.action where not log.undone and log.id > ? order by v.rowid
"""
_Time = Annotated[str, Meta(pattern=r"^(\d{4}-\d\d-\d\dT\S+)?$")]
_EventRow = tuple[int, _Time, str, str, str, int, str]
_GradeRow = tuple[str, str, str, str, Rating | None, Rating | None, int, Rating | None, str, str, int, _Time, _Time]
_VersionRow = tuple[str, int, str, str, str, str, int, int, Finite]
_LookedRow = tuple[str, str, str, str]
_LOOKED = "select assessor, query_id, doc_id, item_id from looked where action > ?"
# Who changed an item of an action since, last.
_HOLDER = """
select log.assessor from version v join log on log.id = v.action
where log.id > ?1 and not log.undone and v.key in (select key from version where action = ?1)
order by log.id desc limit 1
"""


# An edit of the bank: its kind, what it says, and key -> version of the items that its editor saw.
Edit = tuple[str, Mapping[str, Any], Mapping[str, int]]


class ConflictError(InputError):
    """Somebody changed an item after the editor opened it; nothing was changed."""


class StateError(InputError):
    """The state file cannot be read or written now; nothing was kept."""


class ReviewStore:
    """What assessors did in one review.

    Several processes and threads may use one file at a time. A process that dies loses nothing that was answered.

    Args:
        path: the SQLite file; made when it is not there.
        bank: the bank as its file has it.
        patience: seconds to wait for another program that writes to the file.
        waiting: the items of the bank that wait for grades anew since an earlier review (`Material.waiting`).
        scale: the scale of the grades.

    Raises:
        InputError: the file cannot be opened, or is no state file of this version; it stays as it is.
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
        self.scale = scale
        self._lock = threading.RLock()
        self._is_new = False
        self._known: Snapshot | None = None
        self._original = Snapshot()
        for number, item in enumerate(bank):
            waits = (item.query_id, item.item_id) in waiting
            first = Version(0, "", "", "in the file", item, False, waits, number)
            self._original.put(self._original.free_key(item), first)
        with ExitStack() as opened:
            try:
                self._is_new = not Path(self.path).exists()
                # Whoever reads the secrets in it may grade under any name.
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
                self._connection = file = sqlite3.connect(
                    self.path, timeout=patience, check_same_thread=False, isolation_level=None
                )
                opened.callback(file.close)
                # At once: another server may make the tables between the two.
                file.execute("begin")
                (form,) = file.execute("pragma user_version").fetchone()
                is_other = form != _FORM and file.execute("select 1 from sqlite_master").fetchone()
                file.execute("commit")
                if is_other:
                    raise self._unusable("another version made it, or another program; name another state file")
                use_wal(file, patience)
                file.execute("pragma synchronous=full")
                file.executescript(_SCHEMA)
            except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
                # SQLite quotes the damaged bytes of a schema, which are no text then.
                why = "its schema is damaged" if isinstance(error, UnicodeDecodeError) else error
                raise self._unusable(getattr(error, "strerror", None) or why) from None
            opened.pop_all()

    def _unusable(self, why: object) -> InputError:
        return InputError(f"{self.path}: cannot be used as the state of a review ({why})", settings=("state",))

    def close(self, unused: bool = False) -> None:
        """Closes the file; an unused one is removed, where this made it, nobody has it open and nothing was done."""
        with self._lock, suppress(sqlite3.Error, StateError):
            if unused and self._is_new and not self.events():
                # Refused at once while others have it open.
                self._connection.execute("pragma busy_timeout=0")
                self._connection.execute("pragma journal_mode=delete")
                Path(self.path).unlink()
        self._connection.close()

    @contextmanager
    def _turn(self, writes: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction, alone among the threads; within another one it is a part of that."""
        with self._lock:
            if self._connection.in_transaction:
                yield self._connection
                return
            try:
                self._connection.execute("begin immediate" if writes else "begin")
                yield self._connection
                self._connection.execute("commit")
            except BaseException as error:
                # What was read of rows that are gone now.
                self._known = None
                if isinstance(error, sqlite3.OperationalError):
                    why = "another program keeps it locked" if is_locked(error) else f"cannot be used now ({error})"
                    error = StateError(f"{self.path}: {why}; try again in a moment")
                elif isinstance(error, sqlite3.Error | UnicodeDecodeError):
                    error = damaged(self.path)
                raise error from None
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("rollback")

    def _setting(self, name: str, value: str) -> str:
        """What the file has under a name; the value where it had nothing."""
        with self._turn(writes=True) as file:
            file.execute("insert or ignore into setting values (?, ?)", (name, value))
            return str(self._rows(tuple[str], "select value from setting where name = ?", name)[0][0])

    def secret(self, name: str) -> str:
        """A random text that stays the same for this file, so links, sessions and forms outlive the server."""
        return self._setting(f"secret {name}", secrets.token_urlsafe(24))

    @property
    def audit(self) -> list[Any] | None:
        """The plan of the audit, as `plan_audit` was told; None where it was told nothing."""
        with self._turn():
            found = self._rows(tuple[str], "select value from setting where name = 'of audit'")
            return self._parsed(found[0][0], Annotated[list[Any], Meta(min_length=4)]) if found else None

    def plan_audit(self, plan: list[Any]) -> None:
        """Remembers the plan of the audit, in the place of an earlier one."""
        with self._turn(writes=True) as file:
            file.execute("insert or replace into setting values ('of audit', ?)", (json.dumps(plan),))

    def belong_to(self, **made_of: str) -> None:
        """Remembers what the review is of, and refuses to go on with something else.

        Raises:
            InputError: the state was begun with another bank, or for another grader.
        """
        for name, value in made_of.items():
            known = self._setting(f"of {name}", value)
            if known != value:
                raise InputError(
                    f"{self.path}: belongs to a review of another {name} ({known}, not {value}); "
                    "give that one, or another state file",
                    settings=("state",),
                )

    def events(self, number: int | None = None) -> list[Event]:
        """All events, oldest first; or the one with this number, where there is one."""
        query = "select id, time, assessor, kind, uid, undone, payload from log where ?1 is null or id = ?1 order by id"
        with self._turn():
            return [
                Event(one, time, assessor, kind, uid, bool(undone), self._parsed(payload, dict[str, Any]))
                for one, time, assessor, kind, uid, undone, payload in self._rows(_EventRow, query, number)
            ]

    def _rows(self, kind: Any, query: str, *values: object) -> list[Any]:
        return stored_rows(kind, self._connection.execute(query, values), self.path)

    def _parsed(self, text: str, kind: Any) -> Any:
        try:
            return convert(parse_json(text, lenient=True), kind)
        except (ValueError, MsgspecError):
            raise damaged(self.path) from None

    def snapshot(self) -> Snapshot:
        """How things stand now."""
        with self._turn():
            known = self._known or self._original
            query = "select coalesce(max(id), 0), coalesce(max(kind = 'undo'), 0) from log where id > ?"
            ((last, undid),) = self._rows(tuple[int, int], query, known.last_id)
            if not last and self._known is not None:
                return self._known
            if undid:
                known = self._original
            made = Snapshot(dict(known.grades), dict(known.items), known.looked, max(last, known.last_id))
            since = known.last_id
            for assessor, query_id, doc_id, item_id, *said in self._rows(_GradeRow, _GRADES, since):
                cell = CellKey(query_id, doc_id, item_id)
                # A new one: other snapshots may hold the old one.
                made.grades[cell] = {**made.grades.get(cell, {}), assessor: AssessorGrade(*said)}
            for key, version, by, time, what, text, *ends, place in self._rows(_VersionRow, _VERSIONS, since):
                retired, regrade = map(bool, ends)
                made.put(key, Version(version, by, time, what, self._parsed(text, RubricItem), retired, regrade, place))
            made.items = dict(sorted(made.items.items(), key=lambda pair: pair[1].position))
            made.looked |= {(one, CellKey(*cell)) for one, *cell in self._rows(_LookedRow, _LOOKED, since)}
            self._known = made
            return made

    def _log(self, assessor: str, kind: str, payload: Mapping[str, Any]) -> Event:
        """Adds an action; within a turn."""
        time, uid = datetime.now(UTC).isoformat(timespec="seconds"), uuid.uuid4().hex
        query = "insert into log (assessor, time, kind, payload, uid) values (?, ?, ?, ?, ?)"
        number = self._connection.execute(query, (assessor, time, kind, json.dumps(payload), uid)).lastrowid
        return Event(int(number or 0), time, assessor, kind, uid, False, payload)

    def _said(self, assessor: str, cell: CellKey) -> AssessorGrade | None:
        return self.snapshot().grades.get(cell, {}).get(assessor)

    def _say(self, event: Event, before: AssessorGrade | None, **changes: Any) -> Event:
        """Adds what an assessor says of a cell now: what they said before, with changes; within a turn."""
        said = replace(before or _NOTHING, **{"time": event.time, **changes}, event_id=event.event_id)
        if before is not None and before.decision == ADJUDICATE != said.decision:
            # What was decided for all stays, whatever the adjudicator says as an assessor.
            said = replace(said, final=before.final, decision=ADJUDICATE)
        row = (event.assessor, *cell_of(event.payload), *astuple(said))
        self._connection.execute(f"insert into grade values ({', '.join('?' * len(row))})", row)
        return event

    def grade(
        self,
        assessor: str,
        cell: CellKey,
        grade: float | None,
        grader_grade: float | None,
        blind: bool = True,
        note: str = "",
        queue: str = "",
    ) -> Event:
        """Keeps the grade that an assessor gives a cell, with the grader's at that time; None is undecided.

        A note without a new one stays beside the grade that was changed. The log says in which queue it was given.
        """
        payload = {
            **cell._asdict(),
            "grade": self._checked(grade),
            "grader_grade": grader_grade,
            "queue": queue,
        }
        if note.strip():
            payload["note"] = note.strip()
        agrees = grade is not None and grade == grader_grade
        changes = {
            "grade": grade,
            "final": grade if agrees or grader_grade is None else None,
            "decision": "agree" if agrees else "",
            **({"reason": note.strip()} if note.strip() else {}),
        }
        # Whoever ever graded it saw the grader's grade; also where that was taken back.
        query = "select 1 from grade where (assessor, query_id, doc_id, item_id) = (?, ?, ?, ?) and grade is not null"
        with self._turn(writes=True) as file:
            blind &= file.execute(query, (assessor, *cell)).fetchone() is None
            # Before the action is in the log: a snapshot knows of nothing that follows its last action.
            looked, before = self.snapshot().looked, self._said(assessor, cell)
            event = self._log(assessor, "grade", payload | {"blind": blind})
            if before is None or before.first is None:
                # A grade that is changed later was given knowing the grader's.
                is_blind = blind and (assessor, cell) not in looked
                is_blind &= before is None or (before.blind and before.final is None)
                changes |= {"first": grade, "blind": is_blind, "first_time": "" if grade is None else event.time}
            return self._say(event, before, **changes)

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
        with self._turn(writes=True):
            before = self._said(assessor, cell)
            if decision != ADJUDICATE and (before is None or before.grade is None):
                raise InputError("give your own grade before you decide about the grader's")
            event = self._log(assessor, "decide", payload)
            return self._say(event, before, final=grade, decision=decision, reason=reason)

    def note(self, assessor: str, cell: CellKey, text: str) -> Event:
        """Keeps what an assessor writes beside a grade; it takes the place of what was written there.

        Raises:
            InputError: the assessor gave no grade there.
        """
        with self._turn(writes=True):
            before = self._said(assessor, cell)
            if before is None:
                raise InputError("give a grade before you write a note beside it")
            event = self._log(assessor, "note", {**cell._asdict(), "note": text.strip()})
            return self._say(event, before, reason=text.strip(), time=before.time)

    def look(self, assessor: str, cells: Sequence[CellKey]) -> Event:
        """Keeps that an assessor saw these grades: what they say of them later is not blind."""
        with self._turn(writes=True) as file:
            event = self._log(assessor, "look", {"cells": [list(cell) for cell in cells]})
            rows = [(assessor, *cell, event.event_id) for cell in cells]
            file.executemany("insert into looked values (?, ?, ?, ?, ?)", rows)
            return event

    def edit_all(self, assessor: str, edits: Sequence[Edit]) -> list[Event]:
        """Keeps edits of the bank, all or none: none where somebody changed one of the items after the editor saw it.

        Args:
            assessor: who.
            edits: (kind, payload, expected) each: `item_add`, `item_edit`, `item_retire`, `item_split` or `item_merge`;
                what, by kind, see `apply_edit`; key -> the version that the editor saw, of every item that it touches.

        Raises:
            ConflictError: an item has another version by now.
            InputError: one of the edits makes no sense (no text, a text twice, no such item).
        """
        with self._turn(writes=True) as file:
            snapshot, events = replace(self.snapshot()), list[Event]()
            snapshot.items = dict(snapshot.items)
            for kind, payload, expected in edits:
                _check_versions(snapshot, expected, "texts" if "texts" in payload else "text")
                event = self._log(assessor, kind, payload)
                for key, made in apply_edit(snapshot, event):
                    item = json.dumps(structs.asdict(structs.replace(made.item, info=None)))
                    row = (key, made.version, made.what, item, made.retired, made.regrade, made.position)
                    file.execute("insert into version values (?, ?, ?, ?, ?, ?, ?)", row)
                events.append(event)
            return events

    def undo(self, assessor: str) -> Event | None:
        """Takes back the newest thing that an assessor did: that; None where there is none.

        Raises:
            InputError: others built on it.
        """
        query = "select max(id) from log where assessor = ? and not undone and kind not in ('undo', 'look')"
        with self._turn(writes=True) as file:
            (number,) = file.execute(query, (assessor,)).fetchone()
            if number is None:
                return None
            holder = file.execute(_HOLDER, (number,)).fetchone()
            if holder is not None:
                raise InputError(f"it cannot be taken back: {holder[0]} changed the same item later")
            file.execute("update log set undone = 1 where id = ?", (number,))
            self._log(assessor, "undo", {"event": number})
            snapshot = self.snapshot()
            if len(snapshot.live()) < sum(not state.retired for state in snapshot.items.values()):
                raise InputError("it cannot be taken back: later changes build on it (two items would have one text)")
            return self.events(number)[0]

    def _checked(self, grade: float | None) -> float | None:
        if grade is not None and grade not in self.scale:
            raise InputError(f"a grade is {self.scale.lowest} to {self.scale.highest}, not {grade}")
        return grade


def _check_versions(snapshot: Snapshot, expected: Mapping[str, int], field: str) -> None:
    """Refuses an edit of an item that somebody changed after the editor saw it."""
    for key, version in expected.items():
        state = state_of(snapshot, key)
        if state.version != version or state.retired:
            last = state.history[-1]
            left = "it is no longer in the bank" if state.retired else "send yours again to put it over that"
            raise ConflictError(
                f"nothing of yours was saved: {last.assessor or 'somebody'} was faster "
                f"({last.what}: {state.item.text}); {left}",
                settings=(field,),
            )
