"""Grades that were given elsewhere: which are new, which are later versions of others, and which change their name."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, count
from typing import Any, NamedTuple

from rubric_measures.base.entities import content_hash
from rubric_measures.review._events import CellKey, Event, Snapshot
from rubric_measures.review._replay import is_earlier

__all__ = ["PageGrade", "TakenIn", "take_in"]


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
        both: of these, those whose grade also stays with the other name, because more was done under it.
        behind: grades that were there already, of which a later version counts.
        taken_back: grades that were there already, were taken back since, and stay so.
    """

    new: int = 0
    older: int = 0
    versions: int = 0
    renamed: int = 0
    both: int = 0
    behind: int = 0
    taken_back: int = 0

    def plus(self, **more: bool) -> TakenIn:
        """The same with one more of what is true."""
        return self._replace(**{name: getattr(self, name) + is_so for name, is_so in more.items()})


def take_in(
    rows: Iterable[PageGrade], events: Sequence[Event], snapshot: Snapshot, add: Callable[[Event], Event]
) -> TakenIn:
    """Adds grades that were given elsewhere; those that are there already, content and all, are passed over.

    A uid that is there with other content is a later version: both stay as events, and the later one counts. Where it
    has another assessor, the name was corrected: the grade of the other name is taken back. Where the name is corrected
    back, the grade that was taken back by that comes again; one that its assessor took back does not. A grade is not
    blind where its assessor was shown the grader's before.

    Args:
        rows: the grades, in the order of the file.
        events: all events so far.
        snapshot: what they add up to.
        add: keeps an event, and returns it with its id.
    """
    rows = list(rows)
    last = {row.uid: number for number, row in enumerate(rows)}
    known: dict[str, list[Event]] = {}
    for event in events:
        if event.kind == "grade":
            known.setdefault(event.payload.get("version_of", event.uid), []).append(event)
    seen, undone, renamed = _seen(events), set(snapshot.undone), _renamed(events)
    found = TakenIn()
    for number, row in enumerate(rows):
        versions = known.setdefault(row.uid, [])
        others = [event for event in versions if event.assessor != row.assessor and event.event_id not in undone]
        free = [event for event in others if not _went_on(event, versions, events, undone)]
        mine = next((event for event in reversed(versions) if _content(event) == _content(row)), None)
        # Of two names that one file gives a grade, the later line's is the one that was taken in last.
        is_back = mine is not None and mine.event_id in renamed and bool(free) and number == last[row.uid]
        if mine is not None and not is_back:
            counts = [event for event in versions if event.event_id not in undone]
            is_taken_back = not counts or mine.event_id in undone - renamed
            found = found.plus(taken_back=is_taken_back, behind=not is_taken_back and mine is not counts[-1])
            continue
        for event in free:
            add(_rename(event, row.assessor))
        undone |= {event.event_id for event in free}
        renamed |= {event.event_id for event in free}
        cell = _cell(row.payload)
        blind = all(one.get("blind", True) for one in (row.payload, *(event.payload for event in others)))
        shown = seen.get((row.assessor, cell), set()) - ({event.event_id for event in versions} if is_back else set())
        payload = {**row.payload, "blind": blind and not shown, **({"version_of": row.uid} if versions else {})}
        said = snapshot.grades.get(cell, {}).get(row.assessor)
        found = found.plus(
            new=True,
            older=said is not None and is_earlier(row.time, said.time),
            versions=bool(versions),
            renamed=bool(free),
            both=len(free) < len(others),
        )
        versions.append(add(Event(0, row.assessor, row.time, "grade", payload, _uid(row, versions))))
    return found


def _rename(event: Event, assessor: str) -> Event:
    """What takes a grade back because it is another assessor's."""
    payload = {"event": event.event_id, "passed_over": [], "attributed_to": assessor}
    return Event(0, assessor, datetime.now(UTC).isoformat(timespec="seconds"), "undo", payload, uuid.uuid4().hex)


def _renamed(events: Iterable[Event]) -> set[int]:
    """The ids of the grades that were taken back because their name was corrected."""
    return {event.payload["event"] for event in events if event.kind == "undo" and "attributed_to" in event.payload}


def _uid(row: PageGrade, versions: Sequence[Event]) -> str:
    """The uid of a grade: the page's; of a later version one of its own, with a number where a name goes to and fro."""
    if not versions:
        return row.uid
    made, taken = f"{row.uid}-{content_hash(_content(row))[:16]}", {event.uid for event in versions}
    return next(uid for uid in chain([made], (f"{made}-{number}" for number in count(2))) if uid not in taken)


def _cell(payload: Mapping[str, Any]) -> CellKey:
    return CellKey(payload["query_id"], payload["doc_id"], payload["item_id"])


def _content(one: Event | PageGrade) -> list[Any]:
    """What an assessor says by a grade: all but what follows from the records."""
    return [one.assessor, one.time, *_cell(one.payload), one.payload["grade"], one.payload.get("note", "")]


def _went_on(event: Event, versions: Sequence[Event], events: Sequence[Event], undone: set[int]) -> bool:
    """Whether the assessor of a grade did more on its cell since, other than by versions of the same grade."""
    own = {version.event_id for version in versions}
    return any(
        later.event_id > event.event_id
        and later.assessor == event.assessor
        and later.kind in ("grade", "decide")
        and later.event_id not in own | undone
        and _cell(later.payload) == _cell(event.payload)
        for later in events
    )


def _seen(events: Iterable[Event]) -> dict[tuple[str, CellKey], set[int]]:
    """Who was shown the grader's grade of what, and by which events: a grade of their own (also one that was taken
    back), a decision, or at once."""
    found: dict[tuple[str, CellKey], set[int]] = {}
    for event in events:
        if event.kind == "decide" or (
            event.kind == "grade" and (event.payload["grade"] is not None or not event.payload.get("blind", True))
        ):
            found.setdefault((event.assessor, _cell(event.payload)), set()).add(event.event_id)
    return found
