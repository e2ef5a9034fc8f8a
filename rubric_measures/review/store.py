"""The state of a review in one SQLite file: events are only ever added, each committed before anything is answered."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import threading
import uuid
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import path_name
from rubric_measures.review._bank_edits import new_items
from rubric_measures.review._events import ADJUDICATE, EDITS, CellKey, Event, Snapshot
from rubric_measures.review._replay import Undone, extend, fold, last_action
from rubric_measures.types.entities import TestBank
from rubric_measures.types.scales import SELF_RATING, Scale

__all__ = ["ConflictError", "Edit", "ReviewStore", "StateError"]

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
            self._connection = sqlite3.connect(
                self.path, timeout=patience, check_same_thread=False, isolation_level=None
            )
        except sqlite3.Error as error:
            raise InputError(f"{self.path}: cannot be used as the state of a review ({error})") from None
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

    def secret(self) -> str:
        """A random text that stays the same for this file, so forms outlive a restart of the server."""
        with self._mine():
            made = secrets.token_hex(32)
            self._connection.execute("insert or ignore into settings values ('secret', ?)", (made,))
            row = self._connection.execute("select value from settings where name = 'secret'").fetchone()
            return str(row[0])

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
            payload = json.loads(text)
            datetime.fromisoformat(time)
        except (ValueError, TypeError, RecursionError):
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
            snapshot, number, made = self.snapshot(), self._last_id(), list[Event]()
            for kind, payload, expected in edits:
                _check_versions(snapshot, kind, expected)
                number += 1
                # So an undo knows what was built on.
                whole = {**payload, "made": [item.item_id for item in new_items(snapshot, kind, payload)]}
                event = Event(number, assessor, _now(), kind, whole, uuid.uuid4().hex)
                # Refuses what cannot be added up, before it is kept.
                snapshot = self._extended(snapshot, [event], ())
                made.append(event)
            return [self._insert(event) for event in made]

    def undo(self, assessor: str) -> Undone | None:
        """Takes back the newest thing that an assessor did; None where there is none.

        Raises:
            InputError: others built on it.
        """
        done: list[Event] = []

        def check(snapshot: Snapshot) -> Mapping[str, Any] | None:
            found = last_action(self._events, snapshot, assessor)
            if found is None:
                return None
            event, held_by = found
            payload = {"event": event.event_id}
            held = f"{held_by} changed the same item later" if held_by else ""
            if problem := held or self._problem(assessor, payload):
                raise InputError(f"it cannot be taken back: {problem}")
            done.append(event)
            return payload

        undo = self._write(assessor, "undo", check)
        return Undone(done[0], undo) if done else None

    def _problem(self, assessor: str, payload: Mapping[str, Any]) -> str:
        """Why later changes do not add up without an action; empty where they do."""
        event = Event(self._last_id() + 1, assessor, "", "undo", payload)
        try:
            self._extended(self.snapshot(), [event], self._events)
        except InputError as error:
            return f"later changes build on it ({error})"
        return ""

    def _insert(self, event: Event) -> Event:
        cursor = self._connection.execute(
            "insert into events (uid, person, time, kind, payload) values (?, ?, ?, ?, ?)",
            (event.uid, event.assessor, event.time, event.kind, json.dumps(event.payload)),
        )
        return replace(event, event_id=int(cursor.lastrowid or 0))

    def _write(self, assessor: str, kind: str, check: Callable[[Snapshot], Mapping[str, Any] | None]) -> Event:
        """Checks and adds an event in one transaction: no other writer comes between the check and the event."""
        with self._mine(writes=True):
            payload = check(self.snapshot())
            event = Event(self._last_id() + 1, assessor, _now(), kind, payload or {}, uuid.uuid4().hex)
            return event if payload is None else self._insert(event)

    def _checked(self, grade: float | None) -> float | None:
        if grade is not None and grade not in self.scale:
            raise InputError(f"a grade is {self.scale.lowest} to {self.scale.highest}, not {grade}")
        return grade


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


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
