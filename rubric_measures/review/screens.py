"""Screens: what they are asked, what they answer, and what their forms do, without anything of the web server in it.

Every form answers with the address of what is to do next, so that the page needs no logic of its own, and works
without its script too. Here are the queues, the passage with its items, progress, export, and who works here.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import snowballstemmer

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.base.plugins import require
from rubric_measures.measures.grade_sets import HUMAN
from rubric_measures.pages.frame import environment
from rubric_measures.review.queues import CellQueue, Order, QueueChoice, QueueEntry, waits_for, words_of
from rubric_measures.review.session import (
    FEW,
    AssessorRow,
    Exported,
    Review,
    agreement_rows,
    audit_estimate,
    export_review,
    inside,
    progress_rows,
    sample_precision,
)
from rubric_measures.review.store import ADJUDICATE, AssessorGrade, CellKey, Event, Snapshot, cell_of


def render(template: str, **values: Any) -> str:
    """A template with values; whatever is in the values appears as text, never as markup, and as it is."""
    return str(_environment().get_template(template).render(**values))


@cache
def _environment() -> Any:
    return environment("rubric_measures.review").overlay(finalize=None)


def render_markdown(text: str) -> str:
    """Markdown (CommonMark with tables) as HTML; markup in the text stays text.

    Raises:
        MissingExtraError: the extra `review` is not installed.
    """
    markdown = require("markdown_it", "review")
    # Pictures would come from elsewhere, which the page loads nothing from.
    parser = markdown.MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    return str(parser.render(text))


def is_done(said: AssessorGrade | None) -> bool:
    """Whether an assessor has given a grade, so that the grader's may be shown."""
    return said is not None and (said.grade is not None or said.final is not None)


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


def about(review: Review, event: Event) -> str:
    """What an action of `DONE` was about."""
    payload = event.payload
    if "doc_id" in payload:
        cell = cell_of(payload)
        item = review.material.items.get((cell.query_id, cell.item_id))
        return f"{cell.doc_id}: {words_of(review.store.snapshot(), cell, item.text if item else cell.item_id)}"
    if "text" in payload:
        return str(payload["text"])
    states = review.store.snapshot().items
    keys = payload.get("keys") or [payload.get("key")]
    return "; ".join(states[key].item.text for key in keys if key in states)


def taken_back(review: Review, assessor: str, number: str) -> tuple[str, str] | None:
    """What an undo took back, as (what was done, to what); None where there is no such undo of the assessor's."""
    for undo in review.store.events(number):
        if undo.kind == "undo" and undo.assessor == assessor:
            (event,) = review.store.events(undo.payload["event"])
            return DONE[event.kind], about(review, event)
    return None


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

    def all(self, name: str) -> list[str]:
        """All values of a field of the form."""
        return list(self.form.get(name, ()))

    def number(self, name: str, default: int) -> int:
        """A whole number.

        Raises:
            InputError: the field is none.
        """
        text = self.get(name) or str(default)
        if not re.fullmatch("-?[0-9]{1,18}", text):
            raise InputError(f"{name} must be a whole number, not {text!r}")
        return int(text)


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
    to_decide = len(review.queue(deciding, review.store.snapshot())) if asked.assessor else 0
    content = render(
        template,
        path=asked.path,
        to_decide=to_decide,
        assessor_name=asked.assessor,
        form_token=asked.form_token,
        grader=review.material.grader,
        is_draft=review.material.is_draft,
        taken_back=taken_back(review, asked.assessor, asked.get("undone")),
        **values,
    )
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


_WORD = re.compile(r"\w+")
# Scripts that put no spaces between words: two characters that stand together count as a word.
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
# Scripts of one stemmer each; the others are Latin.
_SCRIPTS = {
    "russian": re.compile("[\u0400-\u04ff]"),
    "arabic": re.compile("[\u0600-\u06ff]"),
    "greek": re.compile("[\u0370-\u03ff]"),
    "hindi": re.compile("[\u0900-\u097f]"),
}


@cache
def _common() -> dict[str, frozenset[str]]:
    """language -> words of questions that say nothing about a topic, and by which a language is known."""
    text = resources.files(__package__).joinpath("common_words.toml").read_text(encoding="utf-8")
    return {language: frozenset(words.split()) for language, words in tomllib.loads(text).items()}


class Piece(NamedTuple):
    """A stretch of a text, and whether it is marked."""

    text: str
    marked: bool


def _language(text: str) -> str:
    """The language of an item: by its script, or by its common words; English where nothing tells."""
    for language, script in _SCRIPTS.items():
        if script.search(text):
            return language
    words = set(_WORD.findall(text.casefold()))
    # Of as many common words in two languages the first one counts.
    return max(_common(), key=lambda language: len(words & _common()[language]))


@lru_cache(maxsize=16)
def _stemmer(language: str) -> snowballstemmer.stemmer:
    return snowballstemmer.stemmer(language)


@lru_cache(maxsize=1 << 14)
def _stem(word: str, language: str) -> str:
    return str(_stemmer(language).stemWord(word))


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]


def mark_words(passage: str, *sources: str) -> list[Piece]:
    """Cuts a passage into pieces; words with the stem of a content word of the sources are marked.

    The pieces' texts together are the passage, unchanged.

    >>> [piece.text for piece in mark_words("Leaves hold a pigment.", "Which pigment is in a leaf?") if piece.marked]
    ['pigment']
    """
    language = _language(" ".join(sources))
    common = _common().get(language, frozenset())
    words = {word for source in sources for word in _WORD.findall(source.casefold()) if word not in common}
    wanted = {_stem(word, language) for word in words}
    pairs = {pair for source in sources for run in _UNSPACED.findall(source) for pair in _pairs(run)}
    spans = [match.span() for match in _WORD.finditer(passage) if _stem(match.group().casefold(), language) in wanted]
    for match in _UNSPACED.finditer(passage) if pairs else ():
        start = match.start()
        spans += [(start + at, start + at + 2) for at, pair in enumerate(_pairs(match.group())) if pair in pairs]
    return _cut(passage, sorted(spans))


def _cut(passage: str, spans: list[tuple[int, int]]) -> list[Piece]:
    """The passage in pieces; spans, by their start, may overlap."""
    pieces: list[Piece] = []
    last = 0
    for start, end in spans:
        if start < last:
            pieces[-1] = Piece(pieces[-1].text + passage[last:end], True)
        else:
            pieces += [Piece(passage[last:start], False), Piece(passage[start:end], True)]
        last = max(last, end)
    return [piece for piece in (*pieces, Piece(passage[last:], False)) if piece.text]


_PAGE = 50
_MOST_BUTTONS = 21
# What each queue is called and what it is for, in the order of the first screen.
_ORDERS: dict[Order, tuple[str, str]] = {
    "decide": (
        "To decide",
        "Grades of yours that differ from the grader's. Keep yours, or accept the grader's.",
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
    return queue_choice(review, order, asked.assessor, query_id)


def queue_choice(review: Review, order: Order, assessor: str, query_id: str = "") -> QueueChoice:
    """The queue of an order, for an assessor."""
    mine = assessor if order in ("decide", "differ") else ""
    judges = order == "differ" and bool(assessor) and assessor == review.adjudicator
    return QueueChoice(order, query_id, review.audit, mine, review.assignments.get(assessor, ()), judges)


def choice_fields(choice: QueueChoice) -> dict[str, str]:
    """A choice as the fields of an address."""
    return {"order": choice.order, **({"query": choice.query_id} if choice.query_id else {})}


def check_url(choice: QueueChoice, cell: CellKey, **more: str) -> str:
    """The address of a cell: `/check/QUERY/PASSAGE/ITEM`, in a queue."""
    fields = {**choice_fields(choice), **more}
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
        is_open = assessor not in snapshot.grades.get(cell, {}) and cell not in before
        is_left = leave is not None and cell[:2] == leave[:2]
        if not is_left and (is_open or choice.order in ("decide", "differ")):
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
                "start": check_url(choice, first) if first else "",
                "url": "/?" + urlencode(choice_fields(choice)),
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
        assigned_spans=review.spans(asked.assessor),
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
                "url": check_url(choice, entry.cell),
                "cell": entry.cell,
                "item": words_of(snapshot, entry.cell, row.item_text),
                "why": _why(review, choice, entry),
                "state": state_of_grade(said.get(asked.assessor), entry.cell in before),
                "assessors": len(said.keys() | review.material.earlier(entry.cell).keys()),
            }
        )
    first = next_open(review, snapshot, choice, asked.assessor, 0)
    fields = urlencode(choice_fields(choice))
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
        start=check_url(choice, first) if first else "",
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
        return ScreenAnswer(redirect=check_url(choice, cell))
    found = review.queue(choice, snapshot)
    cells = _siblings(review, cell)
    deciding = _deciding(snapshot, asked.assessor, cells, cell)
    rows = [_row(review, asked, snapshot, choice, one) for one in cells]
    current = next(one for one in rows if one["cell"] == cell)
    # Where the page went to a graded item by itself, a digit typed ahead must not change that grade.
    current["takes_keys"] = not (asked.get("auto") and current["said"] is not None)
    place = _place(found, cells)
    following = next_open(review, snapshot, choice, asked.assessor, 0 if place is None else place + 1, cell)
    previous = None
    if place is not None:
        following = following or _beside(found, cell, range(place + 1, len(found)))
        previous = _beside(found, cell, range(place - 1, -1, -1))
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
        # More buttons than these nobody finds their way in.
        is_typed=len(review.material.grade_names) > _MOST_BUTTONS,
        # The key that gives a grade: its digits, and - for the one below 0.
        keys={grade: str(grade) if grade >= 0 else "-" for grade in review.material.grade_names},
        covers=review.material.scale.covers,
        place=place,
        total=len(found),
        fields=choice_fields(choice),
        up_url=check_url(choice, cells[at - 1]) if at else "",
        down_url=check_url(choice, cells[at + 1]) if at + 1 < len(cells) else "",
        next_url=check_url(choice, following) if following else "",
        previous_url=check_url(choice, previous) if previous else "",
        queue_url="/?" + urlencode(choice_fields(choice)),
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
        "url": check_url(choice, cell),
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


def _place(queue: CellQueue, cells: list[CellKey]) -> int | None:
    """Where the first of a passage's grades stands; None where none is in the queue."""
    return min((place for one in cells if (place := queue.place(one)) is not None), default=None)


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
            return check_url(choice, one)
    for one in cells:
        if waits_for(snapshot.grades.get(one, {}), asked.assessor):
            return check_url(choice, one, auto="1")
    place = _place(found, cells)
    following = next_open(review, snapshot, choice, asked.assessor, 0 if place is None else place + 1, cell)
    return check_url(choice, following) if following else "/?" + urlencode({"finished": choice.order})


def post_grade(review: Review, asked: Asked) -> ScreenAnswer:
    """Keeps an assessor's own grade; an undecided assessor has seen nothing."""
    choice, cell = choice_of(review, asked), _cell(review, asked)
    row = review.material.grade(cell)
    grade = _asked_grade(review, asked)
    differ = queue_choice(review, "differ", asked.assessor)
    seen = review.material.was_shown(asked.assessor, cell) or review.store.has_graded(asked.assessor, cell)
    # The adjudicator may have looked at what assessors say.
    seen |= differ.judges and review.queue(differ, review.store.snapshot()).place(cell) is not None
    blind = review.blind and not seen
    review.store.grade(asked.assessor, cell, grade, row.grade, blind=blind, note=asked.get("note"))
    return ScreenAnswer(redirect=_onward(review, asked, choice, cell))


def _asked_grade(review: Review, asked: Asked) -> int | None:
    # Beside a field for the grade the button that was pressed comes last.
    text = (asked.all("grade") or [""])[-1]
    grades = {str(grade): grade for grade in review.material.grade_names}
    if text != "u" and text not in grades:
        known = ", ".join(grades) if len(grades) <= _MOST_BUTTONS else "{} to {}".format(*review.material.scale[:2])
        raise InputError(f"a grade is one of {known}, or u for undecided, not {text!r}")
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
    return ScreenAnswer(redirect=check_url(choice, cell))


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
        return ScreenAnswer(redirect=check_url(choice, cell, **undone))
    key = str(payload.get("key") or next(iter(payload.get("keys", [])), ""))
    states = review.store.snapshot().items
    query_id = states[key].item.query_id if key in states else str(payload.get("query_id", ""))
    return ScreenAnswer(redirect="/bank?" + urlencode({"query": query_id, **undone}))


def progress(review: Review, asked: Asked) -> ScreenAnswer:
    """What everybody did, and how well they agree."""
    snapshot = review.store.snapshot()
    last = {event.assessor: event.time for event in review.store.events()}
    return page(
        "progress.html",
        review,
        asked,
        title="Progress",
        assessors=[
            (row, {**_given(review, row.assessor), "last": last.get(row.assessor)}) for row in _rows(review, snapshot)
        ],
        agreements=agreement_rows(review.material, snapshot),
        few=FEW,
        adjudicator=review.adjudicator,
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
    return {"total": total, "queries": review.spans(assessor), "link": link}


def work_as(review: Review, asked: Asked) -> ScreenAnswer:
    """The link of an assessor who was given queries, or of the adjudicator: this browser is theirs from now on.

    Raises:
        UnknownNameError: nobody of that name has a link.
    """
    name = checked_assessor(asked.get("name"))
    if name not in review.link_names:
        raise UnknownNameError("assessor with a link of their own", name, review.link_names)
    return ScreenAnswer(redirect="/", assessor=name)


def export(
    review: Review, asked: Asked, folder: str = "review-export", made: Exported | None = None, problem: str = ""
) -> ScreenAnswer:
    """The form that writes files."""
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
        return export(review, asked, name, problem=str(error))
    return export(review, asked, name, made)


def assessor(review: Review, asked: Asked) -> ScreenAnswer:
    """The form that asks who works here."""
    return page("assessor.html", review, asked, title="Who are you?", then=local_path(asked.get("then", "/")))


def post_assessor(review: Review, asked: Asked) -> ScreenAnswer:
    """Remembers who works here, in this browser."""
    return ScreenAnswer(redirect=local_path(asked.get("then", "/")), assessor=checked_assessor(asked.get("person")))


def guidelines(review: Review, asked: Asked) -> ScreenAnswer:
    """The instructions for assessors, on a page of their own."""
    return page("guidelines.html", review, asked, title="Guidelines", guidelines=review.guidelines)
