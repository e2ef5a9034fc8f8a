"""Screens: what they are asked, what they answer, and what their forms do, without anything of the web server in it.

Every form answers with the address of what is to do next, so that the page needs no logic of its own, and works
without its script too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.base.words import content_stems
from rubric_measures.formats.specs import number
from rubric_measures.measures.checked import CheckedGrade
from rubric_measures.measures.grade_sets import HUMAN
from rubric_measures.pages.frame import environment
from rubric_measures.review.queues import ORDERS, QueueChoice, waits_for, words_of
from rubric_measures.review.session import (
    FEW,
    Exported,
    Review,
    agreement_rows,
    export_review,
    found_table,
    note_of,
    progress_rows,
    queue_of,
)
from rubric_measures.review.store import (
    ADJUDICATE,
    AssessorGrade,
    CellKey,
    ConflictError,
    Edit,
    ItemState,
    StateError,
    adjudicated,
    cell_of,
    state_of,
)


def render(template: str, **values: Any) -> str:
    """A template with values; whatever is in the values appears as text, never as markup, and as it is."""
    return str(_environment().get_template(template).render(**values))


@cache
def _environment() -> Any:
    return environment("rubric_measures.review").overlay(finalize=None)


# What an assessor did, by kind of action.
DONE = {
    "grade": "graded",
    "decide": "decided",
    "note": "noted",
    "item_add": "added",
    "item_edit": "changed",
    "item_retire": "retired",
    "item_split": "split",
    "item_merge": "merged",
}


@dataclass(frozen=True)
class Asked:
    """One request.

    Attributes:
        path: the path.
        query: the fields of the address.
        form: the fields of the form, each with all its values.
        assessor: who asks.
        form_token: what forms of the answer carry.
    """

    path: str
    query: Mapping[str, str]
    form: Mapping[str, Sequence[str]]
    assessor: str
    form_token: str

    def get(self, name: str, default: str = "") -> str:
        """A field of the form, or else of the address."""
        values = self.form.get(name)
        return values[0] if values else self.query.get(name, default)


@dataclass(frozen=True)
class ScreenAnswer:
    """What a screen answers.

    Attributes:
        content: the page.
        status: the HTTP status.
        redirect: where to go instead.
        assessor: set where the browser shall remember who works there.
    """

    content: str = ""
    status: int = 200
    redirect: str = ""
    assessor: str = ""


def page(template: str, review: Review, asked: Asked, *, status: int = 200, **values: Any) -> ScreenAnswer:
    """A page of the review, with what all of them have."""
    deciding = QueueChoice("decide", assessor=asked.assessor)
    to_decide = len(queue_of(review, deciding, review.store.snapshot())) if asked.assessor else 0
    taken_back = DONE.get(asked.get("undone"))
    content = render(template, review=review, asked=asked, to_decide=to_decide, taken_back=taken_back, **values)
    return ScreenAnswer(content, status)


def error_page(review: Review, asked: Asked, text: str, status: int) -> ScreenAnswer:
    """A page that says what is wrong."""
    return page("error.html", review, asked, status=status, title="This did not work", text=text)


def checked_assessor(name: str) -> str:
    """A name that can stand in `human:NAME`: one line, at most 60 characters; without the `human:`, where it is said.

    Raises:
        InputError: it is empty, too long, or has characters that cannot be seen.
    """
    name = unicodedata.normalize("NFC", name.strip()).removeprefix(HUMAN).strip()
    if not name or len(name) > 60 or any(unicodedata.category(char).startswith("C") for char in name):
        raise InputError("a name has 1 to 60 visible characters")
    return name


def assessor_link(name: str, token: str) -> str:
    """The path under which a browser becomes an assessor's."""
    return "/as?" + urlencode({"name": name, "token": token}, quote_via=quote)


def local_path(target: str) -> str:
    """The target, where it is a page of this server; else the first page."""
    is_local = target.startswith("/") and not target.startswith("//") and "\\" not in target
    # A header holds printable ASCII; addresses of this server's pages are made of it.
    return target if is_local and target.isascii() and target.isprintable() else "/"


_TOKEN = re.compile(r"\w+(?:['’]\w+)*|\W+")


class Piece(NamedTuple):
    """A stretch of a text, and whether it is marked."""

    text: str
    marked: bool


def mark_words(passage: str, *sources: str) -> list[Piece]:
    """Cuts a passage into pieces; words with the stem of a content word of the sources are marked.

    The pieces' texts together are the passage, unchanged.

    >>> [piece.text for piece in mark_words("Leaves hold a pigment.", "Which pigment is in a leaf?") if piece.marked]
    ['pigment']
    """
    wanted = {one for source in sources for one in content_stems(source)}
    runs = groupby(_TOKEN.findall(passage), key=lambda token: not wanted.isdisjoint(content_stems(token)))
    return [Piece("".join(run), marked) for marked, run in runs]


_MOST_BUTTONS = 21


def choice_of(review: Review, asked: Asked) -> QueueChoice:
    """The queue that a request names; of an assessor who was given queries, these alone.

    Raises:
        InputError: there is no such order.
    """
    order = asked.get("order", "query")
    if order not in ORDERS:
        raise InputError(f"there is no order {order!r}; there are {', '.join(ORDERS)}")
    return queue_choice(review, order, asked.assessor)


def queue_choice(review: Review, order: str, assessor: str) -> QueueChoice:
    """The queue of an order, for an assessor."""
    mine = assessor if order in ("decide", "differ") else ""
    adjudicates = order == "differ" and bool(assessor) and assessor == review.adjudicator
    return QueueChoice(order, mine, review.assignments.get(assessor, ()), adjudicates)


def check_url(choice: QueueChoice, cell: CellKey, **more: str) -> str:
    """The address of a cell, in a queue."""
    return "/check?" + urlencode({"order": choice.order, **dict(zip("qdi", cell, strict=True)), **more})


class Seat:
    """A queue as an assessor works through it.

    Args:
        review: the review.
        choice: which queue.
        assessor: who works.
    """

    def __init__(self, review: Review, choice: QueueChoice, assessor: str) -> None:
        self.review, self.choice, self.assessor = review, choice, assessor
        self.snapshot = review.store.snapshot()
        self.queue = queue_of(review, choice, self.snapshot)

    def said(self, cell: CellKey) -> AssessorGrade | None:
        """What the assessor says of a cell."""
        return self.snapshot.grades.get(cell, {}).get(self.assessor)

    def is_new(self, cell: CellKey) -> bool:
        """Whether the assessor has no grade of a cell, in this review or an earlier one."""
        return self.said(cell) is None and self.assessor not in self.review.material.earlier(cell)

    def waits(self, cell: CellKey) -> bool:
        """Whether the assessor has still to decide a cell."""
        return waits_for(self.snapshot.grades.get(cell, {}), self.assessor)

    def start(self, cells: Sequence[CellKey] = ()) -> str:
        """The address of the next grade to check behind those of a passage, from the first on; empty where there is
        none. It is of another passage."""
        after = 0 if (place := self.place(cells)) is None else place + 1
        for step in range(len(self.queue)):
            cell = self.queue[(after + step) % len(self.queue)]
            if cell not in cells and (self.choice.order in ("decide", "differ") or self.is_new(cell)):
                return check_url(self.choice, cell)
        return ""

    def place(self, cells: Sequence[CellKey]) -> int | None:
        """Where the first of a passage's grades stands; None where none is in the queue."""
        return min((place for one in cells if (place := self.queue.place(one)) is not None), default=None)

    def beside(self, cells: Sequence[CellKey], places: range) -> str:
        """The address of the first of these places of the queue that is of another passage."""
        found = (one for place in places if (one := self.queue[place]) not in cells)
        return next((check_url(self.choice, one) for one in found), "")

    def progress(self) -> dict[str, int]:
        """How far the assessor is: done, of how many, and how much is left."""
        done = 0
        if self.choice.order not in ("decide", "differ"):
            before = self.review.material.graded_by.get(self.assessor, frozenset())
            seen = before | {cell for cell, said in self.snapshot.grades.items() if self.assessor in said}
            done = sum(self.queue.place(cell) is not None for cell in seen)
        return {"done": done, "total": len(self.queue), "left": len(self.queue) - done}

    def onward(self, cell: CellKey) -> ScreenAnswer:
        """From a grade to the next open item of the passage, then to what is to decide there, then on."""
        cells = _siblings(self.review, cell)
        at = cells.index(cell) + 1
        around = cells[at:] + cells[:at]
        for one in around:
            if self.queue.place(one) is not None and (self.choice.adjudicates or self.is_new(one)):
                return ScreenAnswer(redirect=check_url(self.choice, one))
        for one in filter(self.waits, around):
            return ScreenAnswer(redirect=check_url(self.choice, one, auto="1"))
        return ScreenAnswer(redirect=self.start(cells) or "/?" + urlencode({"finished": self.choice.order}))


def queue(review: Review, asked: Asked) -> ScreenAnswer:
    """The first screen: the queues. With an order, the next grade of that queue, where there is one."""
    choice = choice_of(review, asked)
    if asked.get("order") and (start := Seat(review, choice, asked.assessor).start()):
        return ScreenAnswer(redirect=start)
    cards: list[dict[str, Any]] = []
    for order, (name, purpose) in ORDERS.items():
        seat = Seat(review, queue_choice(review, order, asked.assessor), asked.assessor)
        cards.append({"order": order, "name": name, "purpose": purpose, **seat.progress(), "start": seat.start()})
    snapshot = review.store.snapshot()
    # What there is nothing to do in stands last, and what only the adjudicator can do is their first.
    adjudicates = bool(asked.assessor) and asked.assessor == review.adjudicator
    cards.sort(key=lambda card: (not card["start"], adjudicates and card["order"] != "differ"))
    return page(
        "cards.html",
        review,
        asked,
        title="Check grades",
        cards=cards,
        note=note_of(review, snapshot) if review.blind and not review.material.is_draft else None,
        finished=next((card for card in cards if card["order"] == asked.get("finished")), None),
    )


def _asked_cell(review: Review, asked: Asked) -> tuple[CellKey, CheckedGrade]:
    """The cell that a request names, and the grader's grade of it."""
    cell = CellKey(asked.get("q"), asked.get("d"), asked.get("i"))
    return cell, review.material.grade(cell)


def _siblings(review: Review, cell: CellKey) -> list[CellKey]:
    grades = review.material.queries[cell.query_id][cell.doc_id].grades
    return [cell._replace(item_id=item_id) for item_id in grades]


def check(review: Review, asked: Asked) -> ScreenAnswer:
    """A passage and its items; of each, the grader's grade is in the page only once the assessor has given theirs.

    Whoever comes from a page that shows the passage's grades has seen them: what they say of it is not blind.
    """
    cell, row = _asked_cell(review, asked)
    seat, cells = Seat(review, choice_of(review, asked), asked.assessor), _siblings(review, cell)
    if asked.get("seen"):
        new = [one for one in cells if seat.said(one) is None and (asked.assessor, one) not in seat.snapshot.looked]
        if new:
            review.store.look(asked.assessor, new)
        return ScreenAnswer(redirect=check_url(seat.choice, cell))
    rows = [_row(seat, one) for one in cells]
    at, place = cells.index(cell), seat.place(cells)
    # Where the page went to a graded item by itself, a digit typed ahead must not change that grade.
    rows[at]["takes_keys"] = not (asked.get("auto") and rows[at]["said"] is not None)
    # What Enter and `a` decide about: this item, or the nearest one above that waits, or the first below.
    waiting = [one for one in range(len(cells)) if seat.waits(cells[one])]
    deciding = max((one for one in waiting if one <= at), default=min(waiting, default=-1))
    following = seat.start(cells)
    if place is not None:
        following = following or seat.beside(cells, range(place + 1, len(seat.queue)))
    scale, grades = review.material.scale, review.material.grade_names
    return page(
        "check.html",
        review,
        asked,
        title="Check grades",
        seat=seat,
        cell=cell,
        rows=rows,
        current=rows[at],
        deciding=cells[deciding] if waiting else None,
        pieces=mark_words(row.text, rows[at]["item"], *rows[at]["gold"], rows[at]["answer"]),
        grades=grades,
        own_names=bool(scale.names) or scale.highest - scale.lowest < 3,
        # More buttons than these nobody finds their way in.
        is_typed=len(grades) > _MOST_BUTTONS,
        # The key that gives a grade: its digits, and - for the one below 0.
        keys={grade: str(grade) if grade >= 0 else "-" for grade in grades},
        place=place,
        fields={"order": seat.choice.order},
        up_url=rows[at - 1]["url"] if at else "",
        down_url=rows[at + 1]["url"] if at + 1 < len(rows) else "",
        next_url=following,
        previous_url="" if place is None else seat.beside(cells, range(place - 1, -1, -1)),
        progress=seat.progress(),
    )


def _row(seat: Seat, cell: CellKey) -> dict[str, Any]:
    """One item of the screen, as its assessor may see it."""
    material, snapshot = seat.review.material, seat.snapshot
    row, said, place = material.grade(cell), seat.said(cell), (cell.query_id, cell.item_id)
    is_in = seat.queue.place(cell) is not None
    # Only then may the grader's grade be shown.
    done = said is not None and (said.grade is not None or said.final is not None)
    # Who decides for all has to see what all say.
    adjudicates = seat.choice.adjudicates and is_in
    shown = done or adjudicates or not seat.review.blind
    assessors = snapshot.grades.get(cell, {}) if shown else {}
    return {
        "cell": cell,
        "is_in": is_in,
        "url": check_url(seat.choice, cell),
        "item": words_of(snapshot, cell, row.item_text) or cell.item_id,
        "gold": material.items[place].gold_answers if place in material.items else (),
        "standing": snapshot.left.get(place, ""),
        "before": seat.assessor in material.earlier(cell),
        "said": said,
        "done": done,
        "adjudicates": adjudicates,
        "adjudicated": adjudicated(snapshot.grades.get(cell, {})) if shown else None,
        "waits": not adjudicates and seat.waits(cell),
        "row": row if shown else None,
        "answer": row.answer if shown else "",
        # Who graded it in an earlier review, too, has one grade: the later.
        "earlier": {name: grade for name, grade in material.earlier(cell).items() if shown and name not in assessors},
        "assessors": {name: one for name, one in assessors.items() if name != seat.assessor},
        "takes_keys": False,
    }


def post_grade(review: Review, asked: Asked) -> ScreenAnswer:
    """Keeps an assessor's own grade; an undecided assessor has seen nothing."""
    (cell, row), choice = _asked_cell(review, asked), choice_of(review, asked)
    grade = _asked_grade(review, asked)
    differ = Seat(review, queue_choice(review, "differ", asked.assessor), asked.assessor)
    seen = asked.assessor in review.material.said.shown.get(cell, ())
    # The adjudicator may have looked at what assessors say.
    seen |= differ.choice.adjudicates and differ.queue.place(cell) is not None
    blind = review.blind and not seen
    review.store.grade(asked.assessor, cell, grade, row.grade, blind=blind, note=asked.get("note"), queue=choice.order)
    return Seat(review, choice, asked.assessor).onward(cell)


def _asked_grade(review: Review, asked: Asked) -> int | None:
    # Beside a field for the grade the button that was pressed comes last.
    text = asked.form.get("grade", [""])[-1]
    grades = {str(grade): grade for grade in review.material.grade_names}
    if text != "u" and text not in grades:
        raise InputError(f"a grade is one of {', '.join(grades)}, or u for undecided, not {text!r}")
    return grades.get(text)


def post_decide(review: Review, asked: Asked) -> ScreenAnswer:
    """Accepts the grader's grade, or keeps the assessor's; of the adjudicator, decides for all."""
    (cell, row), seat = _asked_cell(review, asked), Seat(review, choice_of(review, asked), asked.assessor)
    decision, said, grade = asked.get("decision"), seat.said(cell), row.grade
    reason = asked.get("reason") or (said.reason if said else "")
    if decision == ADJUDICATE:
        grade, reason = _asked_grade(review, asked), asked.get("note")
        if not seat.choice.adjudicates:
            raise InputError("only the adjudicator decides what assessors differ on")
        if grade is None or seat.queue.place(cell) is None:
            raise InputError("assessors do not differ there, or it was decided already; undo takes a decision back")
    elif decision == "override":
        grade = said.grade if said else None
    if grade is None:
        raise InputError("there is no grade to decide about; give your own grade first")
    review.store.decide(asked.assessor, cell, decision, grade, reason)
    return Seat(review, seat.choice, asked.assessor).onward(cell)


def post_note(review: Review, asked: Asked) -> ScreenAnswer:
    """Keeps what an assessor writes beside a grade that they have given."""
    cell, _ = _asked_cell(review, asked)
    review.store.note(asked.assessor, cell, asked.get("note"))
    return ScreenAnswer(redirect=check_url(choice_of(review, asked), cell))


def post_undo(review: Review, asked: Asked) -> ScreenAnswer:
    """Takes back the assessor's last action, and shows what it was about."""
    done = review.store.undo(asked.assessor)
    if done is None:
        return error_page(review, asked, "You have done nothing that could be taken back.", 400)
    payload, undone = done.payload, {"undone": done.kind}
    if "doc_id" in payload:
        cell = cell_of(payload)
        # What was decided for all is open again in the adjudicator's queue alone.
        was_decided = payload.get("decision") == ADJUDICATE
        choice = queue_choice(review, "differ", asked.assessor) if was_decided else choice_of(review, asked)
        return ScreenAnswer(redirect=check_url(choice, cell, **undone))
    key = str(payload.get("key") or next(iter(payload.get("keys", [])), ""))
    states = review.store.snapshot().items
    query_id = states[key].item.query_id if key in states else str(payload.get("query_id", ""))
    return ScreenAnswer(redirect="/bank?" + urlencode({"query": query_id, **undone}))


def progress(review: Review, asked: Asked) -> ScreenAnswer:
    """What everybody did, and how well they agree; who has a link of their own stands there from the beginning."""
    snapshot, material, events = review.store.snapshot(), review.material, review.store.events()
    return page(
        "progress.html",
        review,
        asked,
        title="Progress",
        assessors=progress_rows(snapshot, material.graded_by, review.link_names),
        last={event.assessor: event.time for event in events},
        is_sampled=any(event.payload.get("queue") == "audit" for event in events),
        link=assessor_link,
        agreements=agreement_rows(material, snapshot),
        few=FEW,
        board=found_table(review, snapshot) if review.blind and not material.is_draft else None,
    )


def work_as(review: Review, asked: Asked) -> ScreenAnswer:
    """The link of an assessor who was given queries, or of the adjudicator: this browser is theirs from now on.

    Raises:
        UnknownNameError: nobody of that name has a link.
    """
    name = checked_assessor(asked.get("name"))
    if name not in review.link_names:
        raise UnknownNameError("assessor with a link of their own", name, review.link_names)
    return ScreenAnswer(redirect="/", assessor=name)


def export(review: Review, asked: Asked, made: Exported | None = None) -> ScreenAnswer:
    """The button that writes files, and where it does."""
    return page("export.html", review, asked, title="Export", made=made)


def post_export(review: Review, asked: Asked) -> ScreenAnswer:
    """Writes the records with corrections, the bank and the audit trail into a folder beside the records."""
    return export(review, asked, export_review(review, f"{review.material.path}.review-export"))


def assessor(review: Review, asked: Asked) -> ScreenAnswer:
    """The form that asks who works here."""
    return page("assessor.html", review, asked, title="Who are you?", then=local_path(asked.get("then", "/")))


def post_assessor(review: Review, asked: Asked) -> ScreenAnswer:
    """Remembers who works here, in this browser."""
    return ScreenAnswer(redirect=local_path(asked.get("then", "/")), assessor=checked_assessor(asked.get("person")))


def guidelines(review: Review, asked: Asked) -> ScreenAnswer:
    """The instructions for assessors, on a page of their own."""
    return page("guidelines.html", review, asked, title="Guidelines")


# What is listed of a queue, or of the passages of an item.
_LISTED = 200


def bank(
    review: Review,
    asked: Asked,
    *,
    status: int = 200,
    problem: Mapping[str, str] | None = None,
) -> ScreenAnswer:
    """The items of one query as a table; with an item, that one with its passages and versions.

    What is wrong with a field, or what another editor did, is shown with what was typed.
    """
    snapshot = review.store.snapshot()
    key = asked.get("item") or (asked.get("key") if problem else "")
    query_id = asked.get("query") or next(iter(review.material.bank.items), "")
    if key:
        query_id = state_of(snapshot, key).item.query_id
    if query_id not in review.material.bank.items:
        raise InputError(f"the bank has no query {query_id!r}")
    shared: dict[str, Any] = {
        "status": status,
        "query_id": query_id,
        "fields": {"query": query_id},
        "problem": problem,
        # An item as it was typed is shown again where it was not taken.
        "typed": {name: asked.get(name) for name in ("text", "importance", "weight")}
        | {"gold_answers": asked.get("gold_answers").splitlines()},
    }
    if key:
        return _item_page(review, asked, state_of(snapshot, key), shared)
    states = [state for state in snapshot.items.values() if state.item.query_id == query_id]
    live = [state for state in states if not state.retired]
    return page(
        "bank.html",
        review,
        asked,
        title="Edit the bank",
        live=live,
        retired=[state for state in states if state.retired],
        facets=sorted({state.item.facet_id for state in live if state.item.facet_id}),
        waiting=sum(state.waits for state in snapshot.items.values()),
        chosen=dict.fromkeys(value.rpartition("@")[0] for value in asked.form.get("merge", ())) if problem else {},
        saved=DONE.get(asked.get("saved")),
        **shared,
    )


def _item_page(review: Review, asked: Asked, state: ItemState, shared: dict[str, Any]) -> ScreenAnswer:
    """One item: its forms, its versions, and its passages, each with the way to its grade."""
    query_id, item_id = state.place
    passages = []
    for doc_id, passage in review.material.queries.get(query_id, {}).items():
        cell = CellKey(query_id, doc_id, item_id)
        is_graded = cell in review.material.numbers
        passages.append((doc_id, passage.text, check_url(QueueChoice("query"), cell) if is_graded else ""))
    if review.material.is_draft:
        passages.sort(key=lambda row: -sum(piece.marked for piece in mark_words(row[1], state.item.text)))
    shared |= {"state": state, "passages": passages[:_LISTED], "more": max(len(passages) - _LISTED, 0)}
    return page("bank_item.html", review, asked, title="Edit an item", **shared)


def post_bank(review: Review, asked: Asked) -> ScreenAnswer:
    """One edit, or the same of several items.

    What is wrong with a field, and that somebody was faster, is said at the field, and what was typed stays.
    """
    try:
        made = review.store.edit_all(asked.assessor, _edits_of(review, asked, asked.get("edit")))
    except StateError:
        raise
    except InputError as error:
        status = 409 if isinstance(error, ConflictError) else 400
        return bank(review, asked, status=status, problem={next(iter(error.settings), "text"): str(error)})
    fields = {"query": asked.get("query"), "saved": made[-1].kind}
    return ScreenAnswer(redirect="/bank?" + urlencode(fields) + "#items")


def _edits_of(review: Review, asked: Asked, kind: str) -> list[Edit]:
    """The edits that a form asks for, each with the versions that the editor saw."""
    if kind == "item_add":
        fields = _fields(asked)
        facet = asked.get("facet").strip()
        # New items are of the same kind as those of the query.
        items = review.material.bank.items.get(asked.get("query")) or tuple(review.material.bank)
        kind_of = items[0].kind if items else "question"
        added = {"query_id": asked.get("query"), "facet_id": facet or None, "kind": kind_of, **fields}
        if added["query_id"] not in review.material.bank.items:
            raise InputError(f"the bank has no query {added['query_id']!r}")
        return [(kind, added, {})]
    chosen = _chosen(asked)
    if kind == "item_merge":
        if len(chosen) < 2:
            raise InputError("choose at least two items to merge")
        return [(kind, {"keys": list(chosen), "text": asked.get("text")}, chosen)]
    if kind == "item_retire":
        if not chosen:
            raise InputError("choose the items to retire")
        return [(kind, {"key": key}, {key: version}) for key, version in chosen.items()]
    if len(chosen) != 1:
        raise InputError("choose one item to split or edit")
    key = next(iter(chosen))
    if kind == "item_split":
        parts = [line.strip() for line in (asked.get("texts") or asked.get("text")).splitlines() if line.strip()]
        if len(parts) < 2:
            raise InputError("a split needs at least two texts, one a line", settings=("texts",))
        return [(kind, {"key": key, "texts": parts}, chosen)]
    if kind == "item_edit":
        return [(kind, {"key": key, **_fields(asked), "same_meaning": asked.get("same_meaning") == "yes"}, chosen)]
    raise InputError(f"unknown edit {kind!r}")


def _chosen(asked: Asked) -> dict[str, int]:
    """The items that a form is about, each with the version that the editor saw."""
    values = asked.form.get("merge") or ([f"{asked.get('key')}@{asked.get('version')}"] if asked.get("key") else [])
    parted = [value.rpartition("@") for value in values]
    return {key: int(number) if number.isdecimal() else -1 for key, _, number in parted}


def _fields(asked: Asked) -> dict[str, Any]:
    """The fields of an item that the form has; those that it lacks stay as they are."""
    fields: dict[str, Any] = {"text": asked.get("text").strip()}
    if "importance" in asked.form:
        fields["importance"] = asked.get("importance") or None
        if fields["importance"] not in (None, "vital", "okay"):
            problem = f"importance is vital, okay or nothing, not {asked.get('importance')!r}"
            raise InputError(problem, settings=("importance",))
    if "weight" in asked.form:
        typed = asked.get("weight").strip()
        try:
            fields["weight"] = float(number(typed)) if typed else None
        except ValueError as error:
            raise InputError(f"weight: {error}; found {typed!r}", settings=("weight",)) from None
    if "gold_answers" in asked.form:
        answers = [line.strip() for line in asked.get("gold_answers").splitlines()]
        fields["gold_answers"] = [answer for answer in answers if answer]
    return fields
