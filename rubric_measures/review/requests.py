"""What a screen is asked and what it answers, without anything of the web server in it."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from rubric_measures.base.errors import InputError
from rubric_measures.measures.grade_sets import HUMAN
from rubric_measures.review._actions import taken_back
from rubric_measures.review._pages import render
from rubric_measures.review.queues import QueueChoice
from rubric_measures.review.session import Review

__all__ = ["Asked", "ScreenAnswer", "assessor_link", "checked_assessor", "error_page", "local_path", "page"]


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


def assessor_link(name: str, token: str | None) -> str:
    """The path under which a browser becomes an assessor's; with the token, where one is needed."""
    return "/as?" + urlencode({"name": name, **({"token": token} if token else {})}, quote_via=quote)


def local_path(target: str) -> str:
    """The target, where it is a page of this server; else the first page."""
    is_local = target.startswith("/") and not target.startswith("//") and "\\" not in target
    # A header holds printable ASCII; addresses of this server's pages are made of it.
    return target if is_local and target.isascii() and target.isprintable() else "/"
