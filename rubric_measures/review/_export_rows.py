"""The rows of an export: who graded what, as a table, and every event, as the audit trail."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rubric_measures.base.tables import inert
from rubric_measures.review._events import Event, Snapshot
from rubric_measures.review.queues import waits_for
from rubric_measures.review.review_data import Material

GRADE_COLUMNS = (
    *("assessor", "query_id", "doc_id", "item_id", "grader_grade", "first_grade", "first_time", "blind"),
    *("grade", "decision", "final_grade", "time", "note", "adjudicated_grade", "adjudicator"),
)


def grade_rows(material: Material, snapshot: Snapshot) -> Iterator[tuple[object, ...]]:
    """Who graded what, when, blind or not, and what came of it: a row a grade of this review, as `GRADE_COLUMNS` says.

    `decision` is `agree`, `override` (theirs stands), `accept` (the grader's), `adjudicate` (what others differ on was
    decided), `to decide`, or empty while undecided. What was decided, and by whom, stands in each row of the cell, also
    where the records have it from an earlier review.
    """
    for cell, assessors in snapshot.grades.items():
        adjudicator, adjudicated = snapshot.adjudicated(cell) or material.settled(cell) or (None, None)
        grader = material.grade(cell).grade
        for name, said in sorted(assessors.items()):
            decision = said.decision or ("to decide" if waits_for(assessors, name) else "")
            first = (grader, said.first, said.first_time, "yes" if said.blind else "no")
            row = (
                name,
                *cell,
                *first,
                said.grade,
                decision,
                said.final,
                said.time,
                said.reason,
                adjudicated,
                adjudicator,
            )
            yield tuple(inert(value) if isinstance(value, str) else value for value in row)


def audit_lines(events: Sequence[Event], snapshot: Snapshot) -> Iterator[str]:
    """One JSON line an event, oldest first; `undone` says whether it was taken back."""
    for event in events:
        line = {
            "event": event.event_id,
            "time": event.time,
            "person": event.assessor,
            "kind": event.kind,
            "uid": event.uid,
            "undone": event.event_id in snapshot.undone,
            **{"payload": dict(event.payload)},
        }
        yield json.dumps(line, ensure_ascii=False) + "\n"
