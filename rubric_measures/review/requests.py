"""What a request asks, and the pages and actions that answer it.

Templates of the page: everything is escaped.

What an assessor did, in words, and what an undo took back.

What a screen is asked and what it answers, without anything of the web server in it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

from rubric_measures.base.errors import InputError, counted
from rubric_measures.base.plugins import require
from rubric_measures.measures.grade_sets import HUMAN
from rubric_measures.review.queues import QueueChoice, words_of
from rubric_measures.review.session import Review
from rubric_measures.review.store import AssessorGrade, Event, cell_of


@lru_cache(maxsize=1)
def _environment() -> Any:
    jinja2 = require("jinja2", "review")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rubric_measures.review"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["counted"] = counted
    return environment


def render(template: str, **values: Any) -> str:
    """A template with values; whatever is in the values appears as text, never as markup."""
    environment = _environment()
    return str(environment.get_template(template).render(**values))


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
    by_id = {str(event.event_id): event for event in review.store.events()}
    undo = by_id.get(number)
    if undo is None or undo.kind != "undo" or undo.assessor != assessor:
        return None
    event = by_id[str(undo.payload["event"])]
    return DONE[event.kind], about(review, event)


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
        text = self.get(name)
        if not text:
            return default
        try:
            return int(text)
        except ValueError:
            raise InputError(f"{name} must be a whole number, not {text!r}") from None


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
    to_decide = 0
    if asked.assessor:
        to_decide = len(review.queue(QueueChoice("decide", assessor=asked.assessor), review.store.snapshot()))
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
