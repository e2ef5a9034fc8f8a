"""The first screen (a card a queue, what it is for, how much is left), and a queue as a list."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from rubric_measures.base.errors import InputError
from rubric_measures.review._agreement import audit_estimate, sample_precision
from rubric_measures.review._events import ADJUDICATE, AssessorGrade, CellKey, Snapshot
from rubric_measures.review._stale_items import words_of
from rubric_measures.review.queues import CellQueue, Order, QueueChoice, QueueEntry
from rubric_measures.review.requests import Asked, ScreenAnswer, page
from rubric_measures.review.session import Review

_PAGE = 50
# What each queue is called and what it is for, in the order of the first screen.
_ORDERS: dict[Order, tuple[str, str]] = {
    "decide": (
        "To decide",
        "Grades of yours that differ from the grader's. Keep yours or accept the grader's: until then none counts.",
    ),
    "audit": (
        "Random audit sample",
        "For an unbiased estimate of how often the grader is right: every grade has the same chance to be in it.",
    ),
    "influence": (
        "Most influential on the leaderboard",
        "Grades that most pairs of runs turn on: a wrong one here moves ranks.",
    ),
    "disagreement": ("Graders disagree", "Where graders or assessors say different things, so that one is wrong."),
    "differ": (
        "Assessors differ",
        "To settle: change your grade, or let the median stand. What the adjudicator decides here counts for all.",
    ),
    "uncertainty": ("Grader least certain", "Where the grader gave its own grade the least probability."),
    "query": ("All grades, query by query", "To check whole queries, passage by passage."),
}
_NAMES = {order: name for order, (name, _) in _ORDERS.items()}


def choice_of(review: Review, asked: Asked) -> QueueChoice:
    """The queue that a request names; of an assessor who was given queries, these alone.

    Raises:
        InputError: there is no such order or query.
    """
    name = asked.get("order", "query")
    order = next((order for order in _ORDERS if order == name), None)
    if order is None:
        raise InputError(f"there is no order {name!r}; there are {', '.join(_ORDERS)}")
    query_id = asked.get("query")
    if query_id and query_id not in review.material.queries:
        raise InputError(f"the records have no query {query_id!r}")
    size = min(max(asked.number("size", review.audit), 1), 100_000)
    return queue_choice(review, order, asked.assessor, query_id, asked.number("seed", 0), size)


def queue_choice(
    review: Review, order: Order, assessor: str, query_id: str = "", seed: int = 0, size: int | None = None
) -> QueueChoice:
    """The queue of an order, for an assessor."""
    given = review.assignments.get(assessor, ())
    mine = assessor if order in ("decide", "differ") else ""
    judges = order == "differ" and bool(assessor) and assessor == review.adjudicator
    return QueueChoice(order, query_id, seed, review.audit if size is None else size, mine, given, judges)


def choice_fields(review: Review, choice: QueueChoice) -> dict[str, str]:
    """A choice as the fields of an address; what is as usual is left out."""
    fields = {"order": str(choice.order)}
    if choice.query_id:
        fields["query"] = choice.query_id
    if choice.seed:
        fields["seed"] = str(choice.seed)
    if choice.size != review.audit:
        fields["size"] = str(choice.size)
    return fields


def check_url(review: Review, choice: QueueChoice, cell: CellKey, **more: str) -> str:
    """The address of a cell: `/check/QUERY/PASSAGE/ITEM`, in a queue."""
    fields = {**choice_fields(review, choice), **more}
    # Browsers resolve these two as folders.
    if {".", ".."} & set(cell):
        return "/check?" + urlencode({**fields, "q": cell.query_id, "d": cell.doc_id, "i": cell.item_id})
    return "/check/" + "/".join(quote(part, safe="") for part in cell) + "?" + urlencode(fields)


def next_open(
    review: Review, snapshot: Snapshot, choice: QueueChoice, assessor: str, after: int, leave: CellKey | None = None
) -> CellKey | None:
    """The next grade to check, from the place `after` on and then from the start; not of the passage that is left."""
    queue = review.queue(choice, snapshot)
    before = review.material.graded_by.get(assessor, frozenset())
    for step in range(len(queue)):
        cell = queue[(after + step) % len(queue)].cell
        if leave is not None and cell[:2] == leave[:2]:
            continue
        if choice.order in ("decide", "differ") or (
            assessor not in snapshot.grades.get(cell, {}) and cell not in before
        ):
            return cell
    return None


def progress_of(review: Review, snapshot: Snapshot, choice: QueueChoice, assessor: str) -> dict[str, Any]:
    """How far an assessor is in a queue: done, of how many, and how much is left."""
    queue = review.queue(choice, snapshot)
    done = 0
    if choice.order not in ("decide", "differ"):
        # In this review or an earlier one.
        before = review.material.graded_by.get(assessor, frozenset())
        seen = before | {cell for cell, said in snapshot.grades.items() if assessor in said}
        done = sum(queue.place(cell) is not None for cell in seen)
    return {"done": done, "total": len(queue), "left": len(queue) - done}


def queue(review: Review, asked: Asked) -> ScreenAnswer:
    """The first screen: cards; with an order, that queue as a list."""
    return _listed(review, asked) if asked.get("order") or asked.get("page") else _cards(review, asked)


def _cards(review: Review, asked: Asked) -> ScreenAnswer:
    snapshot = review.store.snapshot()
    query_id = choice_of(review, asked).query_id
    cards = []
    for order, (name, purpose) in _ORDERS.items():
        choice = queue_choice(review, order, asked.assessor, query_id)
        found = review.queue(choice, snapshot)
        first = next_open(review, snapshot, choice, asked.assessor, 0)
        cards.append(
            {
                "order": order,
                "name": name,
                "purpose": purpose,
                "note": _note(review, snapshot, choice, found, asked.assessor) if order == "audit" else "",
                **progress_of(review, snapshot, choice, asked.assessor),
                "start": check_url(review, choice, first) if first else "",
                "url": "/?" + urlencode(choice_fields(review, choice)),
            }
        )
    # What there is nothing to do in stands last, and what only the adjudicator can do is their first.
    judges = bool(asked.assessor) and asked.assessor == review.adjudicator
    cards.sort(key=lambda card: (not card["start"], judges and card["order"] != "differ"))
    finished = next((card for card in cards if card["order"] == asked.get("finished")), None)
    return page(
        "cards.html",
        review,
        asked,
        title="Check grades",
        cards=cards,
        finished=finished,
        assigned=review.assignments.get(asked.assessor, ()),
        query_id=query_id,
        queries=_query_texts(review),
    )


def _note(review: Review, snapshot: Snapshot, choice: QueueChoice, found: CellQueue, assessor: str) -> str:
    """What the audit sample says: the estimate where it is graded, and how precise it is or will be."""
    cells = [entry.cell for entry in found]
    everything = review.queue(QueueChoice("query", choice.query_id, queries=choice.queries), snapshot)
    estimate = audit_estimate(review.material, snapshot, cells, assessor)
    return estimate or sample_precision(len(cells), len(everything))


def _query_texts(review: Review) -> dict[str, str]:
    return {name: query.text for name, query in review.material.queries.items()}


def _listed(review: Review, asked: Asked) -> ScreenAnswer:
    choice = choice_of(review, asked)
    snapshot = review.store.snapshot()
    found = review.queue(choice, snapshot)
    before = review.material.graded_by.get(asked.assessor, frozenset())
    number = max(asked.number("page", 1), 1)
    rows = []
    for entry in found[(number - 1) * _PAGE : number * _PAGE]:
        row = review.material.grade(entry.cell)
        said = snapshot.grades.get(entry.cell, {})
        rows.append(
            {
                "url": check_url(review, choice, entry.cell),
                "cell": entry.cell,
                "item": words_of(snapshot, entry.cell, row.item_text),
                "why": _why(review, choice, entry),
                "state": state_of_grade(said.get(asked.assessor), entry.cell in before),
                "assessors": len(said.keys() | review.material.earlier(entry.cell).keys()),
            }
        )
    first = next_open(review, snapshot, choice, asked.assessor, 0)
    fields = urlencode(choice_fields(review, choice))
    return page(
        "queue.html",
        review,
        asked,
        title=_NAMES[choice.order],
        purpose=_ORDERS[choice.order][1],
        rows=rows,
        **progress_of(review, snapshot, choice, asked.assessor),
        number=number,
        pages=max(1, -(-len(found) // _PAGE)),
        choice=choice,
        orders=_NAMES,
        blind=review.blind,
        queries=_query_texts(review),
        start=check_url(review, choice, first) if first else "",
        page_url=f"/?{fields}",
    )


def _why(review: Review, choice: QueueChoice, entry: QueueEntry) -> str:
    """Why a grade stands in the queue.

    How far graders lie apart would tell their grades (5 apart: 0 and 5), and of graded rows those of the rows between.
    """
    return "graders disagree" if choice.order == "disagreement" and review.blind else entry.why


def state_of_grade(said: AssessorGrade | None, graded_before: bool) -> str:
    """How far an assessor is with a grade, in a word or two."""
    if said is None:
        return "graded before" if graded_before else "open"
    if said.final is not None:
        return {"override": "kept yours", "accept": "accepted", ADJUDICATE: "decided"}.get(said.decision, "done")
    return "to decide" if said.grade is not None else "undecided"
