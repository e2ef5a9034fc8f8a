"""What assessors did, in words, and what an undo took back."""

from __future__ import annotations

from rubric_measures.base.errors import counted
from rubric_measures.review._events import AssessorGrade, Event, cell_of
from rubric_measures.review._stale_items import words_of
from rubric_measures.review.session import Review


def is_done(said: AssessorGrade | None) -> bool:
    """Whether an assessor has given a grade, so that the grader's may be shown."""
    return said is not None and (said.grade is not None or said.final is not None)


def kind_of(review: Review, assessor: str, event: Event) -> str:
    """What kind of action it was, for an assessor; that somebody decided tells that they differ from the grader."""
    if event.kind == "look":
        return "saw others' grades"
    if event.kind not in ("grade", "decide", "note"):
        return event.kind.replace("_", " ")
    mine = review.store.snapshot().grades.get(cell_of(event.payload), {}).get(assessor)
    return event.kind if not review.blind or event.assessor == assessor or is_done(mine) else "worked on a grade"


def about(review: Review, event: Event) -> str:
    """What an action was about; never a grade, which others may still have to give blindly."""
    payload = event.payload
    if event.kind == "undo":
        return f"action {payload['event']}"
    if event.kind == "look":
        return f"{counted(len(payload['cells']), 'grade')} of others"
    if event.kind in ("grade", "decide", "note"):
        cell = cell_of(payload)
        item = review.material.items.get((cell.query_id, cell.item_id))
        words = words_of(review.store.snapshot(), cell, item.text if item else cell.item_id)
        return f"{cell.doc_id}: {words}"
    if "text" in payload:
        return str(payload["text"])
    states = review.store.snapshot().items
    keys = payload.get("keys") or [payload.get("key")]
    return "; ".join(states[key].item.text for key in keys if key in states)


def taken_back(review: Review, assessor: str, number: str) -> tuple[str, str] | None:
    """What an undo took back, as (kind, what it was about); None where there is no such undo of the assessor's."""
    by_id = {str(event.event_id): event for event in review.store.events()}
    undo = by_id.get(number)
    if undo is None or undo.kind != "undo" or undo.assessor != assessor:
        return None
    event = by_id[str(undo.payload["event"])]
    return kind_of(review, assessor, event), about(review, event)
