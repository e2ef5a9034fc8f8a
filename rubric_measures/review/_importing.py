"""Grades that were given elsewhere: which are new, which are later versions of others, and which change their name."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from rubric_measures.base.entities import content_hash
from rubric_measures.review._events import CellKey, Event, Snapshot, cell_of
from rubric_measures.review._replay import is_earlier


class PageGrade(NamedTuple):
    """One grade that was given elsewhere.

    Attributes:
        uid: names the grade; the same in every file that holds it, also where the grade or the name was corrected.
        assessor: who.
        time: when, ISO 8601.
        payload: that of a `grade` event.
    """

    uid: str
    assessor: str
    time: str
    payload: Mapping[str, Any]


class TakenIn(NamedTuple):
    """What came of grades that were given elsewhere.

    Attributes:
        new: how many were added.
        older: of these, those that replace nothing, because their assessor did something later on the same cell.
        versions: of these, other versions of grades that were there: another grade, note, time or assessor.
        renamed: of these, those that took a grade over from another name.
    """

    new: int = 0
    older: int = 0
    versions: int = 0
    renamed: int = 0


def take_in(
    rows: Iterable[PageGrade], events: Sequence[Event], snapshot: Snapshot, add: Callable[[Event], Event]
) -> TakenIn:
    """Adds grades that were given elsewhere; those that are there already, content and all, are passed over.

    A uid that is there with other content is a later version: both stay as events, and the later one counts. Where it
    has another assessor, the name was corrected: the grade of the other name is taken back. A grade is not blind where
    its assessor was shown the grader's before.

    Args:
        rows: the grades, in the order of the file.
        events: all events so far.
        snapshot: what they add up to.
        add: keeps an event, and returns it with its id.
    """
    known: dict[str, list[Event]] = {}
    for event in events:
        if event.kind == "grade":
            known.setdefault(event.payload.get("version_of", event.uid), []).append(event)
    seen, undone = _seen(events), set(snapshot.undone)
    found: Counter[str] = Counter()
    for row in rows:
        versions = known.setdefault(row.uid, [])
        if any(_content(event) == _content(row) for event in versions):
            continue
        others = [event for event in versions if event.assessor != row.assessor and event.event_id not in undone]
        for event in others:
            add(_rename(event, row.assessor))
        undone |= {event.event_id for event in others}
        cell = cell_of(row.payload)
        blind = all(one.get("blind", True) for one in (row.payload, *(event.payload for event in others)))
        shown = (row.assessor, cell) in seen
        payload = {**row.payload, "blind": blind and not shown, **({"version_of": row.uid} if versions else {})}
        said = snapshot.grades.get(cell, {}).get(row.assessor)
        is_older = said is not None and is_earlier(row.time, said.time)
        found.update(new=1, older=is_older, versions=bool(versions), renamed=bool(others))
        uid = f"{row.uid}-{content_hash(_content(row))[:16]}" if versions else row.uid
        versions.append(add(Event(0, row.assessor, row.time, "grade", payload, uid)))
    return TakenIn(**found)


def _rename(event: Event, assessor: str) -> Event:
    """What takes a grade back because it is another assessor's."""
    payload = {"event": event.event_id, "attributed_to": assessor}
    return Event(0, assessor, datetime.now(UTC).isoformat(timespec="seconds"), "undo", payload, uuid.uuid4().hex)


def _content(one: Event | PageGrade) -> list[Any]:
    """What an assessor says by a grade: all but what follows from the records."""
    return [one.assessor, one.time, *cell_of(one.payload), one.payload["grade"], one.payload.get("note", "")]


def _seen(events: Iterable[Event]) -> set[tuple[str, CellKey]]:
    """Who was shown the grader's grade of what: by a grade of their own (also one that was taken back), a decision, or
    at once."""
    return {
        (event.assessor, cell_of(event.payload))
        for event in events
        if event.kind == "decide"
        or (event.kind == "grade" and (event.payload["grade"] is not None or not event.payload.get("blind", True)))
    }
