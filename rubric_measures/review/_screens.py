"""The screens: what each shows, and what each form does; pure but for the review's state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlencode

import snowballstemmer

from rubric_measures.base.errors import InputError
from rubric_measures.review._actions import about, is_done, kind_of
from rubric_measures.review._agreement import agreement_rows, progress_rows
from rubric_measures.review._bank_formats import bank_formats
from rubric_measures.review._bank_screen import bank, impact, post_bank, post_impact
from rubric_measures.review._events import AssessorGrade, CellKey
from rubric_measures.review._stale_items import words_of
from rubric_measures.review.export import Exported, export_review, inside, static_page
from rubric_measures.review.queues import ORDERS, CellQueue, Order, QueueChoice, QueueEntry
from rubric_measures.review.requests import Asked, ScreenAnswer, checked_assessor, local_path, page
from rubric_measures.review.session import Review

__all__ = [
    "Asked",
    "ScreenAnswer",
    "assessor",
    "bank",
    "check",
    "error_page",
    "export",
    "impact",
    "post_assessor",
    "post_bank",
    "post_decide",
    "post_export",
    "post_grade",
    "post_impact",
    "post_undo",
    "progress",
    "queue",
    "queue_file",
]

_WORD = re.compile(r"\w+")
_STEMMER = snowballstemmer.stemmer("english")
# Words of questions that say nothing about a topic and would mark half of a passage.
_COMMON_TEXT = """
    a an and are as at be been by can could did do does for from had has have how if in into is it its many may more
    most much of on or some such than that the their there these they this to was were what when where which who
    whose why will with would
    """
_COMMON = frozenset(_COMMON_TEXT.split())


class Piece(NamedTuple):
    """A stretch of a text, and whether it is marked."""

    text: str
    marked: bool


@lru_cache(maxsize=1 << 14)
def _stem(word: str) -> str:
    return str(_STEMMER.stemWord(word))


def _stems(text: str) -> set[str]:
    return {_stem(word) for word in _WORD.findall(text.casefold()) if word not in _COMMON}


def mark_words(passage: str, *sources: str) -> list[Piece]:
    """Cuts a passage into pieces; words with the stem of a content word of the sources are marked.

    The pieces' texts together are the passage, unchanged.

    >>> [piece.text for piece in mark_words("Leaves hold a pigment.", "Which pigment is in a leaf?") if piece.marked]
    ['pigment']
    """
    wanted = set().union(*(_stems(source) for source in sources))
    pieces: list[Piece] = []
    end = 0
    for match in _WORD.finditer(passage):
        if _stem(match.group().casefold()) not in wanted:
            continue
        if match.start() > end:
            pieces.append(Piece(passage[end : match.start()], False))
        pieces.append(Piece(match.group(), True))
        end = match.end()
    if end < len(passage):
        pieces.append(Piece(passage[end:], False))
    return pieces


_PAGE = 50
_ORDER_NAMES: dict[Order, str] = {
    "disagreement": "Graders disagree",
    "influence": "Most influential on the leaderboard",
    "uncertainty": "Grader least certain",
    "audit": "Random audit sample",
    "query": "All grades, query by query",
}


def error_page(review: Review, asked: Asked, text: str, status: int) -> ScreenAnswer:
    """A page that says what is wrong."""
    return page("error.html", review, asked, status=status, title="This did not work", text=text)


def _choice(review: Review, asked: Asked) -> QueueChoice:
    name = asked.get("order", "disagreement")
    order = next((order for order in ORDERS if order == name), None)
    if order is None:
        raise InputError(f"there is no order {name!r}; there are {', '.join(ORDERS)}")
    query_id = asked.get("query")
    if query_id and query_id not in review.material.queries:
        raise InputError(f"the records have no query {query_id!r}")
    return QueueChoice(order, query_id, asked.number("seed", 0), min(max(asked.number("size", 100), 1), 100_000))


def _choice_fields(choice: QueueChoice) -> dict[str, str]:
    return {"order": choice.order, "query": choice.query_id, "seed": str(choice.seed), "size": str(choice.size)}


def _check_url(choice: QueueChoice, cell: CellKey) -> str:
    fields = {**_choice_fields(choice), "q": cell.query_id, "d": cell.doc_id, "i": cell.item_id}
    return "/check?" + urlencode(fields)


def _next_open(review: Review, asked: Asked, queue: CellQueue, after: int) -> CellKey | None:
    """The next grade that the assessor has not given, from the place `after` on and then from the start."""
    grades = review.store.snapshot().grades
    before = review.material.graded_by.get(asked.assessor, frozenset())
    for step in range(len(queue)):
        cell = queue[(after + step) % len(queue)].cell
        if asked.assessor not in grades.get(cell, {}) and cell not in before:
            return cell
    return None


def _after(queue: CellQueue, cell: CellKey) -> int:
    """The place behind a grade; the first one where the grade is not in the queue."""
    place = queue.place(cell)
    return 0 if place is None else place + 1


def queue(review: Review, asked: Asked) -> ScreenAnswer:
    """The queue screen."""
    choice = _choice(review, asked)
    snapshot = review.store.snapshot()
    found = review.queue(choice, snapshot)
    before = review.material.graded_by.get(asked.assessor, frozenset())
    number = max(asked.number("page", 1), 1)
    shown = found[(number - 1) * _PAGE : number * _PAGE]
    rows = []
    for entry in shown:
        row = review.material.grade(entry.cell)
        said = snapshot.grades.get(entry.cell, {})
        rows.append(
            {
                "url": _check_url(choice, entry.cell),
                "cell": entry.cell,
                "item": words_of(snapshot, entry.cell, row.item_text),
                "why": _why(review, choice, entry),
                "state": _state(said.get(asked.assessor), entry.cell in before),
                "assessors": len(said.keys() | review.material.earlier(entry.cell).keys()),
            }
        )
    first = _next_open(review, asked, found, 0)
    return page(
        "queue.html",
        review,
        asked,
        title="Queue",
        rows=rows,
        total=len(found),
        done=sum(
            found.place(cell) is not None
            for cell in before.union(cell for cell, said in snapshot.grades.items() if asked.assessor in said)
        ),
        number=number,
        pages=max(1, -(-len(found) // _PAGE)),
        choice=choice,
        orders=_ORDER_NAMES,
        blind=review.blind,
        queries={name: query.text for name, query in review.material.queries.items()},
        start=_check_url(choice, first) if first else "",
        page_url="/?" + urlencode(_choice_fields(choice)),
        file_url="/queue.html?" + urlencode(_choice_fields(choice)),
    )


def _why(review: Review, choice: QueueChoice, entry: QueueEntry) -> str:
    """Why a grade stands in the queue.

    How far graders lie apart would tell their grades (5 apart: 0 and 5), and of graded rows those of the rows between.
    """
    return "graders disagree" if choice.order == "disagreement" and review.blind else entry.why


def _state(said: AssessorGrade | None, graded_before: bool) -> str:
    if said is None:
        return "graded before" if graded_before else "open"
    if said.final is not None:
        return {"override": "overridden", "accept": "accepted"}.get(said.decision, "done")
    return "to decide" if said.grade is not None else "undecided"


def _cell(asked: Asked) -> CellKey:
    return CellKey(asked.get("q"), asked.get("d"), asked.get("i"))


def check(review: Review, asked: Asked) -> ScreenAnswer:
    """The screen that checks one grade; the grader's grade is not in the page before the assessor has given theirs."""
    choice, cell = _choice(review, asked), _cell(asked)
    row = review.material.grade(cell)
    query = review.material.queries[cell.query_id]
    snapshot = review.store.snapshot()
    found = review.queue(choice, snapshot)
    place = found.place(cell)
    said = snapshot.grades.get(cell, {}).get(asked.assessor)
    done = is_done(said)
    shown = done or not review.blind
    answer = row.answer if shown else query.extracted.get((cell.doc_id, cell.item_id), "")
    item = review.material.items.get((cell.query_id, cell.item_id))
    gold = item.gold_answers if item else ()
    words = words_of(snapshot, cell, row.item_text)
    following = _next_open(review, asked, found, _after(found, cell))
    neighbours: list[CellKey | None] = [None, None]
    if place is not None:
        neighbours = [found[at].cell if 0 <= at < len(found) else None for at in (place - 1, place + 1)]
    others = query.others(cell.doc_id, cell.item_id) if shown else {}
    assessors = snapshot.grades.get(cell, {}) if shown else {}
    return page(
        "check.html",
        review,
        asked,
        title="Check a grade",
        cell=cell,
        row=row if shown else None,
        done=done,
        grades=review.material.grade_names,
        item=words,
        standing=review.left(snapshot).get((cell.query_id, cell.item_id), ""),
        query_text=query.text,
        pieces=mark_words(row.text, words, *gold, answer),
        answer=answer,
        gold=gold,
        said=said,
        others={name: grade for name, grade in others.items() if name != review.material.grader},
        assessors={name: one for name, one in assessors.items() if name != asked.assessor},
        place=place,
        total=len(found),
        fields={**_choice_fields(choice), "q": cell.query_id, "d": cell.doc_id, "i": cell.item_id},
        previous_url=_check_url(choice, neighbours[0]) if neighbours[0] else "",
        next_url=_check_url(choice, neighbours[1]) if neighbours[1] else "",
        open_url=_check_url(choice, following) if following and following != cell else "",
        queue_url="/?" + urlencode(_choice_fields(choice)),
    )


def post_grade(review: Review, asked: Asked) -> ScreenAnswer:
    """Keeps an assessor's own grade; an undecided assessor goes on to the next one and has seen nothing."""
    choice, cell = _choice(review, asked), _cell(asked)
    row = review.material.grade(cell)
    text = asked.get("grade")
    grades = {str(grade): grade for grade in review.material.grade_names}
    if text != "u" and text not in grades:
        raise InputError(f"a grade is {min(grades)} to {max(grades)} or undecided, not {text!r}")
    grade = grades.get(text)
    seen = review.material.was_shown(asked.assessor, cell) or any(
        event.kind == "grade"
        and event.assessor == asked.assessor
        and event.payload["grade"] is not None
        and _is_about(event.payload, cell)
        for event in review.store.events()
    )
    review.store.grade(asked.assessor, cell, grade, row.grade, blind=review.blind and not seen)
    if grade is None:
        found = review.queue(choice, review.store.snapshot())
        following = _next_open(review, asked, found, _after(found, cell))
        return ScreenAnswer(redirect=_check_url(choice, following or cell))
    return ScreenAnswer(redirect=_check_url(choice, cell))


def _is_about(payload: object, cell: CellKey) -> bool:
    return isinstance(payload, dict) and CellKey(payload["query_id"], payload["doc_id"], payload["item_id"]) == cell


def post_decide(review: Review, asked: Asked) -> ScreenAnswer:
    """Accepts the grader's grade or overrides it with the assessor's."""
    choice, cell = _choice(review, asked), _cell(asked)
    row = review.material.grade(cell)
    said = review.store.snapshot().grades.get(cell, {}).get(asked.assessor)
    decision = asked.get("decision")
    grade = row.grade if decision == "accept" else (said.grade if said else None)
    if grade is None:
        raise InputError("there is no grade to decide about; give your own grade first")
    if decision == "override" and grade == row.grade:
        raise InputError(f"there is nothing to override: you and the grader both say {grade}")
    review.store.decide(asked.assessor, cell, decision, grade, asked.get("reason"))
    found = review.queue(choice, review.store.snapshot())
    following = _next_open(review, asked, found, _after(found, cell))
    return ScreenAnswer(redirect=_check_url(choice, following or cell))


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


def queue_file(review: Review, asked: Asked) -> ScreenAnswer:
    """A queue as one file that works without this server."""
    choice = _choice(review, asked)
    snapshot = review.store.snapshot()
    entries = review.queue(choice, snapshot)[: choice.size]
    title = f"{_ORDER_NAMES[choice.order]}{': ' + choice.query_id if choice.query_id else ''}"
    cells = [entry.cell for entry in entries]
    content = static_page(review.material, snapshot, cells, title, by_influence=choice.order == "influence")
    return ScreenAnswer(content, file_name="review-queue.html")


def assessor(review: Review, asked: Asked) -> ScreenAnswer:
    """The form that asks who works here."""
    return page("assessor.html", review, asked, title="Who are you?", then=local_path(asked.get("then", "/")))


def post_assessor(review: Review, asked: Asked) -> ScreenAnswer:
    """Remembers who works here, in this browser."""
    return ScreenAnswer(redirect=local_path(asked.get("then", "/")), assessor=checked_assessor(asked.get("person")))


def post_undo(review: Review, asked: Asked) -> ScreenAnswer:
    """Takes back the assessor's last action, and shows what it was about."""
    done = review.store.undo(asked.assessor)
    if done is None:
        return error_page(review, asked, "You have done nothing that could be taken back.", 400)
    payload, undone = done.event.payload, {"undone": str(done.undo.event_id)}
    if done.event.kind in ("grade", "decide"):
        cell = CellKey(payload["query_id"], payload["doc_id"], payload["item_id"])
        return ScreenAnswer(redirect=f"{_check_url(_choice(review, asked), cell)}&{urlencode(undone)}")
    key = str(payload.get("key") or next(iter(payload.get("keys", [])), ""))
    states = review.store.snapshot().items
    query_id = states[key].item.query_id if key in states else str(payload.get("query_id", ""))
    return ScreenAnswer(redirect="/bank?" + urlencode({"query": query_id, **undone}))
