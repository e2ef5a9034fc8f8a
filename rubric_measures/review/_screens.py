"""The other screens: progress, export, who works here; and all screens under one name."""

from __future__ import annotations

from collections.abc import Sequence

from rubric_measures.base.errors import InputError
from rubric_measures.review._actions import about, kind_of
from rubric_measures.review._agreement import agreement_rows, progress_rows
from rubric_measures.review._bank_formats import bank_formats
from rubric_measures.review._bank_screen import bank, impact, post_bank, post_impact
from rubric_measures.review._check_screen import check, post_decide, post_grade, post_note, post_undo
from rubric_measures.review._queue_screen import queue, queue_file
from rubric_measures.review.export import Exported, export_review, inside
from rubric_measures.review.requests import Asked, ScreenAnswer, checked_assessor, error_page, local_path, page
from rubric_measures.review.session import Review

__all__ = [
    "Asked",
    "ScreenAnswer",
    "assessor",
    "bank",
    "check",
    "error_page",
    "export",
    "guidelines",
    "impact",
    "post_assessor",
    "post_bank",
    "post_decide",
    "post_export",
    "post_grade",
    "post_impact",
    "post_note",
    "post_undo",
    "progress",
    "queue",
    "queue_file",
]


def progress(review: Review, asked: Asked) -> ScreenAnswer:
    """What everybody did, and how well they agree."""
    snapshot = review.store.snapshot()
    events = list(reversed(review.store.events()[-30:]))
    return page(
        "progress.html",
        review,
        asked,
        title="Progress",
        assessors=progress_rows(snapshot, review.material.graded_by),
        agreements=agreement_rows(review.material, snapshot),
        total=len(review.material.cells),
        events=events,
        kinds={event.event_id: kind_of(review, asked.assessor, event) for event in events},
        about={event.event_id: about(review, event) for event in events},
        undone=snapshot.undone,
    )


def export(review: Review, asked: Asked) -> ScreenAnswer:
    """The form that writes files."""
    return _export_page(review, asked, "review-export")


def _export_page(
    review: Review,
    asked: Asked,
    folder: str,
    made: Exported | None = None,
    problem: str = "",
    chosen: Sequence[str] = (),
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
        formats=bank_formats(),
        chosen=chosen,
        command=_next_command(review, made) if made else "",
    )


def _next_command(review: Review, made: Exported) -> str:
    """What to type next, where items wait for grades."""
    if not made.waiting or review.next_command is None:
        return ""
    return review.next_command(made.paths[0], made.paths[1])


def post_export(review: Review, asked: Asked) -> ScreenAnswer:
    """Writes the records with corrections, the bank and the audit trail into a folder of the project."""
    name, formats = asked.get("folder").strip(), asked.all("format")
    try:
        target = inside(review.project, name)
        made = export_review(review.store, review.material, review.bank_path, target, formats)
    except InputError as error:
        return _export_page(review, asked, name, problem=str(error), chosen=formats)
    return _export_page(review, asked, name, made, chosen=formats)


def assessor(review: Review, asked: Asked) -> ScreenAnswer:
    """The form that asks who works here."""
    return page("assessor.html", review, asked, title="Who are you?", then=local_path(asked.get("then", "/")))


def post_assessor(review: Review, asked: Asked) -> ScreenAnswer:
    """Remembers who works here, in this browser."""
    return ScreenAnswer(redirect=local_path(asked.get("then", "/")), assessor=checked_assessor(asked.get("person")))


def guidelines(review: Review, asked: Asked) -> ScreenAnswer:
    """The instructions for assessors, on a page of their own."""
    return page("guidelines.html", review, asked, title="Guidelines", guidelines=review.guidelines)
