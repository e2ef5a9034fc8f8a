"""The other screens: progress, export, who works here; and the addresses of all screens."""

from __future__ import annotations

from collections.abc import Callable

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.review._actions import about, kind_of
from rubric_measures.review._agreement import FEW, AssessorRow, agreement_rows, progress_rows
from rubric_measures.review._bank_screen import bank, impact, post_bank, post_impact
from rubric_measures.review._check_screen import check, post_decide, post_grade, post_note, post_undo
from rubric_measures.review._events import Snapshot
from rubric_measures.review._queue_screen import queue
from rubric_measures.review.export import Exported, export_review, inside
from rubric_measures.review.requests import Asked, ScreenAnswer, assessor_link, checked_assessor, local_path, page
from rubric_measures.review.session import Review


def progress(review: Review, asked: Asked) -> ScreenAnswer:
    """What everybody did, and how well they agree."""
    snapshot = review.store.snapshot()
    events = list(reversed(review.store.events()[-30:]))
    return page(
        "progress.html",
        review,
        asked,
        title="Progress",
        assessors=[(row, _given(review, row.assessor)) for row in _rows(review, snapshot)],
        agreements=agreement_rows(review.material, snapshot),
        few=FEW,
        adjudicator=review.adjudicator,
        events=events,
        kinds={event.event_id: kind_of(review, asked.assessor, event) for event in events},
        about={event.event_id: about(review, event) for event in events},
        undone=snapshot.undone,
    )


def _rows(review: Review, snapshot: Snapshot) -> list[AssessorRow]:
    """What everybody did; who has a link of their own stands there from the beginning."""
    rows = {name: AssessorRow(name, 0, 0, 0, 0, 0) for name in review.link_names}
    rows |= {row.assessor: row for row in progress_rows(snapshot, review.material.graded_by)}
    return [rows[name] for name in sorted(rows)]


def _given(review: Review, assessor: str) -> dict[str, object]:
    """How many grades an assessor was given, in which queries, and the link that they work under."""
    queries = review.assignments.get(assessor, ())
    ranges = review.material.ranges
    total = sum(len(ranges[one]) for one in queries if one in ranges) if queries else len(review.material.cells)
    link = assessor_link(assessor, review.token) if assessor in review.link_names else ""
    return {"total": total, "queries": queries, "link": link}


def work_as(review: Review, asked: Asked) -> ScreenAnswer:
    """The link of an assessor who was given queries, or of the adjudicator: this browser is theirs from now on.

    Raises:
        UnknownNameError: nobody of that name has a link.
    """
    name = checked_assessor(asked.get("name"))
    if name not in review.link_names:
        raise UnknownNameError("assessor with a link of their own", name, review.link_names)
    return ScreenAnswer(redirect="/", assessor=name)


def export(review: Review, asked: Asked) -> ScreenAnswer:
    """The form that writes files."""
    return _export_page(review, asked, "review-export")


def _export_page(
    review: Review, asked: Asked, folder: str, made: Exported | None = None, problem: str = ""
) -> ScreenAnswer:
    return page(
        "export.html",
        review,
        asked,
        status=400 if problem else 200,
        title="Export",
        folder=folder,
        made=made,
        problem=problem,
        command=_next_command(review, made) if made else "",
    )


def _next_command(review: Review, made: Exported) -> str:
    """What to type next, where items wait for grades, or nothing is graded yet."""
    if review.next_command is None or not (made.waiting or review.material.is_draft):
        return ""
    bank = next(path for path in made.paths if path.endswith("bank.jsonl"))
    return review.next_command(review.material.path if review.material.is_draft else made.paths[0], bank)


def post_export(review: Review, asked: Asked) -> ScreenAnswer:
    """Writes the records with corrections, the bank and the audit trail into a folder of the project."""
    name = asked.get("folder").strip()
    try:
        made = export_review(review.store, review.material, review.bank_path, inside(review.project, name))
    except InputError as error:
        return _export_page(review, asked, name, problem=str(error))
    return _export_page(review, asked, name, made)


def assessor(review: Review, asked: Asked) -> ScreenAnswer:
    """The form that asks who works here."""
    return page("assessor.html", review, asked, title="Who are you?", then=local_path(asked.get("then", "/")))


def post_assessor(review: Review, asked: Asked) -> ScreenAnswer:
    """Remembers who works here, in this browser."""
    return ScreenAnswer(redirect=local_path(asked.get("then", "/")), assessor=checked_assessor(asked.get("person")))


def guidelines(review: Review, asked: Asked) -> ScreenAnswer:
    """The instructions for assessors, on a page of their own."""
    return page("guidelines.html", review, asked, title="Guidelines", guidelines=review.guidelines)


Screen = Callable[[Review, Asked], ScreenAnswer]
GETS: dict[str, Screen] = {
    "/": queue,
    "/check": check,
    "/guidelines": guidelines,
    "/as": work_as,
    "/bank": bank,
    "/impact": impact,
    "/progress": progress,
    "/export": export,
    "/person": assessor,
}
POSTS: dict[str, Screen] = {
    "/grade": post_grade,
    "/decide": post_decide,
    "/note": post_note,
    "/impact": post_impact,
    "/bank": post_bank,
    "/undo": post_undo,
    "/export": post_export,
    "/person": post_assessor,
}
