"""The screen that checks a passage with all its items, and what its forms do: grade, decide, note, take back.

Every form answers with the address of what is to do next, so that the page needs no logic of its own, and works
without its script too.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from rubric_measures.base.errors import InputError
from rubric_measures.review._actions import is_done
from rubric_measures.review._events import ADJUDICATE, CellKey, Snapshot, cell_of
from rubric_measures.review._highlights import mark_words
from rubric_measures.review._queue_screen import (
    check_url,
    choice_fields,
    choice_of,
    next_open,
    progress_of,
    queue_choice,
)
from rubric_measures.review._stale_items import words_of
from rubric_measures.review.queues import CellQueue, QueueChoice, waits_for
from rubric_measures.review.requests import Asked, ScreenAnswer, error_page, page
from rubric_measures.review.session import Review


def _cell(review: Review, asked: Asked) -> CellKey:
    """The cell that a request names; of a passage alone, its first one."""
    cell = CellKey(asked.get("q"), asked.get("d"), asked.get("i"))
    query = review.material.queries.get(cell.query_id)
    if not cell.item_id and query is not None and cell.doc_id in query.passages:
        return cell._replace(item_id=next(iter(query.passages[cell.doc_id].grades), ""))
    return cell


def _siblings(review: Review, cell: CellKey) -> list[CellKey]:
    grades = review.material.queries[cell.query_id].passages[cell.doc_id].grades
    return [cell._replace(item_id=item_id) for item_id in grades]


def check(review: Review, asked: Asked) -> ScreenAnswer:
    """A passage and its items; of each, the grader's grade is in the page only once the assessor has given theirs.

    Whoever comes from a page that shows the passage's grades has seen them: what they say of it is not blind.
    """
    choice, cell = choice_of(review, asked), _cell(review, asked)
    row = review.material.grade(cell)
    snapshot = review.store.snapshot()
    if asked.get("seen"):
        new = [
            one
            for one in _siblings(review, cell)
            if asked.assessor not in snapshot.grades.get(one, {}) and (asked.assessor, one) not in snapshot.looked
        ]
        if new:
            review.store.look(asked.assessor, new)
        return ScreenAnswer(redirect=check_url(review, choice, cell))
    found = review.queue(choice, snapshot)
    cells = _siblings(review, cell)
    deciding = _deciding(snapshot, asked.assessor, cells, cell)
    rows = [_row(review, asked, snapshot, choice, one) for one in cells]
    current = next(one for one in rows if one["cell"] == cell)
    # Where the page went to a graded item by itself, a digit typed ahead must not change that grade.
    current["takes_keys"] = not (asked.get("auto") and current["said"] is not None)
    places = [place for one in cells if (place := found.place(one)) is not None]
    following = next_open(review, snapshot, choice, asked.assessor, min(places) + 1 if places else 0, cell)
    previous = None
    if places:
        following = following or _beside(found, cell, range(min(places) + 1, len(found)))
        previous = _beside(found, cell, range(min(places) - 1, -1, -1))
    at = cells.index(cell)
    return page(
        "check.html",
        review,
        asked,
        title="Check grades",
        cell=cell,
        rows=rows,
        current=current,
        deciding=deciding,
        query_text=review.material.queries[cell.query_id].text,
        pieces=mark_words(row.text, current["item"], *current["gold"], current["answer"]),
        grades=review.material.grade_names,
        own_names=bool(review.material.scale.names) or review.material.scale.highest - review.material.scale.lowest < 3,
        # The key that gives a grade: its digit, and - for the one below 0.
        keys={grade: str(grade) if grade >= 0 else "-" for grade in review.material.grade_names},
        covers=review.material.scale.covers,
        place=min(places) if places else None,
        total=len(found),
        fields=choice_fields(review, choice),
        up_url=check_url(review, choice, cells[at - 1]) if at else "",
        down_url=check_url(review, choice, cells[at + 1]) if at + 1 < len(cells) else "",
        next_url=check_url(review, choice, following) if following else "",
        previous_url=check_url(review, choice, previous) if previous else "",
        queue_url="/?" + urlencode(choice_fields(review, choice)),
        guidelines=review.guidelines,
        progress=progress_of(review, snapshot, choice, asked.assessor),
    )


def _row(review: Review, asked: Asked, snapshot: Snapshot, choice: QueueChoice, cell: CellKey) -> dict[str, Any]:
    """One item of the screen, as its assessor may see it."""
    query = review.material.queries[cell.query_id]
    row = review.material.grade(cell)
    said = snapshot.grades.get(cell, {}).get(asked.assessor)
    is_in = review.queue(choice, snapshot).place(cell) is not None
    done = is_done(said)
    # Who decides for all has to see what all say.
    judges = choice.judges and is_in
    shown = done or judges or not review.blind
    item = review.material.items.get((cell.query_id, cell.item_id))
    others = query.others(cell.doc_id, cell.item_id) if shown else {}
    assessors = snapshot.grades.get(cell, {}) if shown else {}
    return {
        "cell": cell,
        "fields": {"q": cell.query_id, "d": cell.doc_id, "i": cell.item_id},
        "is_in": is_in,
        "item": words_of(snapshot, cell, row.item_text) or cell.item_id,
        "gold": item.gold_answers if item else (),
        "standing": review.left(snapshot).get((cell.query_id, cell.item_id), ""),
        "before": asked.assessor in review.material.earlier(cell),
        "said": said,
        "done": done,
        "judges": judges,
        "adjudicated": snapshot.adjudicated(cell) if shown else None,
        "waits": not judges and waits_for(snapshot.grades.get(cell, {}), asked.assessor),
        "row": row if shown else None,
        "answer": row.answer if shown else "",
        "others": {name: grade for name, grade in others.items() if name != review.material.grader},
        "assessors": {name: one for name, one in assessors.items() if name != asked.assessor},
        "takes_keys": False,
    }


def _deciding(snapshot: Snapshot, assessor: str, cells: list[CellKey], cell: CellKey) -> CellKey | None:
    """What Enter and `a` decide about: this item, or the nearest one above that waits, or the first below."""
    waiting = [one for one in cells if waits_for(snapshot.grades.get(one, {}), assessor)]
    at = cells.index(cell)
    above = [one for one in waiting if cells.index(one) <= at]
    return above[-1] if above else next(iter(waiting), None)


def _beside(queue: CellQueue, cell: CellKey, places: range) -> CellKey | None:
    """The first of these places of the queue that is of another passage."""
    return next((one for place in places if (one := queue[place].cell)[:2] != cell[:2]), None)


def _onward(review: Review, asked: Asked, choice: QueueChoice, cell: CellKey) -> str:
    """Where to go from a grade: the next open item of the passage, then what is to decide there, then on."""
    snapshot = review.store.snapshot()
    found = review.queue(choice, snapshot)
    cells = _siblings(review, cell)
    at = cells.index(cell) + 1
    cells = cells[at:] + cells[:at]
    before = review.material.graded_by.get(asked.assessor, frozenset())
    for one in cells:
        is_open = asked.assessor not in snapshot.grades.get(one, {}) and one not in before
        if found.place(one) is not None and (choice.judges or is_open):
            return check_url(review, choice, one)
    for one in cells:
        if waits_for(snapshot.grades.get(one, {}), asked.assessor):
            return check_url(review, choice, one, auto="1")
    places = [place for one in cells if (place := found.place(one)) is not None]
    after = min(places) + 1 if places else 0
    following = next_open(review, snapshot, choice, asked.assessor, after, cell)
    return check_url(review, choice, following) if following else "/?" + urlencode({"finished": choice.order})


def post_grade(review: Review, asked: Asked) -> ScreenAnswer:
    """Keeps an assessor's own grade; an undecided assessor has seen nothing."""
    choice, cell = choice_of(review, asked), _cell(review, asked)
    row = review.material.grade(cell)
    grade = _asked_grade(review, asked)
    differ = queue_choice(review, "differ", asked.assessor)
    seen = review.material.was_shown(asked.assessor, cell) or any(
        event.kind == "grade"
        and event.assessor == asked.assessor
        and event.payload["grade"] is not None
        and cell_of(event.payload) == cell
        for event in review.store.events()
    )
    # The adjudicator may have looked at what assessors say.
    seen |= differ.judges and review.queue(differ, review.store.snapshot()).place(cell) is not None
    blind = review.blind and not seen
    review.store.grade(asked.assessor, cell, grade, row.grade, blind=blind, note=asked.get("note"))
    return ScreenAnswer(redirect=_onward(review, asked, choice, cell))


def _asked_grade(review: Review, asked: Asked) -> int | None:
    text = asked.get("grade")
    grades = {str(grade): grade for grade in review.material.grade_names}
    if text != "u" and text not in grades:
        raise InputError(f"a grade is one of {', '.join(grades)}, or u for undecided, not {text!r}")
    return grades.get(text)


def post_decide(review: Review, asked: Asked) -> ScreenAnswer:
    """Accepts the grader's grade, or keeps the assessor's; of the adjudicator, decides for all."""
    choice, cell = choice_of(review, asked), _cell(review, asked)
    row = review.material.grade(cell)
    if asked.get("decision") == ADJUDICATE:
        return _adjudicate(review, asked, choice, cell)
    said = review.store.snapshot().grades.get(cell, {}).get(asked.assessor)
    decision = asked.get("decision")
    grade = row.grade if decision == "accept" else (said.grade if said else None)
    if grade is None:
        raise InputError("there is no grade to decide about; give your own grade first")
    if decision == "override" and grade == row.grade:
        raise InputError(f"there is nothing to keep: you and the grader both say {grade}")
    reason = asked.get("reason") or (said.reason if said else "")
    review.store.decide(asked.assessor, cell, decision, grade, reason)
    return ScreenAnswer(redirect=_onward(review, asked, choice, cell))


def _adjudicate(review: Review, asked: Asked, choice: QueueChoice, cell: CellKey) -> ScreenAnswer:
    grade = _asked_grade(review, asked)
    if not choice.judges:
        raise InputError("only the adjudicator decides what assessors differ on")
    if grade is None or review.queue(choice, review.store.snapshot()).place(cell) is None:
        raise InputError("assessors do not differ there, or it was decided already; the undo takes a decision back")
    review.store.decide(asked.assessor, cell, ADJUDICATE, grade, asked.get("note"))
    return ScreenAnswer(redirect=_onward(review, asked, choice, cell))


def post_note(review: Review, asked: Asked) -> ScreenAnswer:
    """Keeps what an assessor writes beside a grade that they have given."""
    choice, cell = choice_of(review, asked), _cell(review, asked)
    review.material.grade(cell)
    review.store.note(asked.assessor, cell, asked.get("note"))
    return ScreenAnswer(redirect=check_url(review, choice, cell))


def post_undo(review: Review, asked: Asked) -> ScreenAnswer:
    """Takes back the assessor's last action, and shows what it was about."""
    done = review.store.undo(asked.assessor)
    if done is None:
        return error_page(review, asked, "You have done nothing that could be taken back.", 400)
    payload, undone = done.event.payload, {"undone": str(done.undo.event_id)}
    if "doc_id" in payload:
        cell = cell_of(payload)
        # What was decided for all is open again in the adjudicator's queue alone.
        was_decided = payload.get("decision") == ADJUDICATE
        choice = queue_choice(review, "differ", asked.assessor) if was_decided else choice_of(review, asked)
        return ScreenAnswer(redirect=check_url(review, choice, cell, **undone))
    key = str(payload.get("key") or next(iter(payload.get("keys", [])), ""))
    states = review.store.snapshot().items
    query_id = states[key].item.query_id if key in states else str(payload.get("query_id", ""))
    return ScreenAnswer(redirect="/bank?" + urlencode({"query": query_id, **undone}))
