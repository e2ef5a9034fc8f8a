"""Putting a prompt to the model and reading the reply: requests, retries of unreadable replies, statuses."""

from __future__ import annotations

import functools
from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple

from rubric_measures.backends.base import ATTEMPT_STEP, Backend, Message, Reply, Request
from rubric_measures.backends.options import refuse_settings
from rubric_measures.base.entities import GradeStatus, canonical_json
from rubric_measures.grading._settings import GradingSettings
from rubric_measures.prompts import Prompt
from rubric_measures.prompts.parsers import Parsed, is_unanswerable

__all__ = ["Ask", "Asker", "ReadReply"]

_MOST_STOPS = 4  # that the official endpoint takes


class Ask(NamedTuple):
    """One question to the model: what is shown, for which replicate, and how many labels the reply must have."""

    messages: tuple[Message, ...]
    replicate: int = 0
    labels: int | None = None


class ReadReply(NamedTuple):
    """What the model said: the value read (None when there is none), its status, the raw text, and why not.

    `retries` counts further draws; `checks` has (gold answer, reply) where a model checked the text.
    """

    value: Any
    status: GradeStatus
    text: str
    note: str = ""
    retries: int = 0
    checks: tuple[tuple[str, str], ...] = ()


def _ends(backend: Backend, prompt: Prompt) -> Mapping[str, object]:
    """The option `stop` for models that continue the prompt as a text: behind the verdict they would invent examples.

    Where the prompt ends in the label of its answer (`Answer:`), the verdict ends with its line. Else the reply has a
    line of its own, perhaps not the first one, and ends where the prompt's first label would come again. Replies that
    reason first, and those of many lines, end by themselves.
    """
    if backend.options.get("api") != "completions" or not prompt.reply_labels:
        return {}
    if prompt.reply_tokens or prompt.format != "template":
        return {}
    if prompt.text.rstrip().endswith(":"):
        return {"stop": ["\n"]}
    labels = [f"\n{label}" for label in prompt.delimiters.lines]
    return {"stop": labels[:_MOST_STOPS]} if labels else {}


class Asker:
    """One prompt put to one model with one set of options; holds no state but the memory of replies read before.

    Args:
        backend: the model.
        prompt: the prompt.
        settings: the settings.

    Raises:
        InputError: a generation option is a setting of the backend.
    """

    def __init__(self, backend: Backend, prompt: Prompt, settings: GradingSettings) -> None:
        self.prompt = prompt
        self.settings = settings
        self.model = backend.model
        embedded = getattr(backend, "embedded", False)
        refuse_settings(backend, settings.options)
        self.options: Mapping[str, object] = (
            dict(backend.options)
            if embedded
            else {"temperature": settings.temperature, **_ends(backend, prompt), **backend.options, **settings.options}
        )
        self._labels = prompt.reply_labels
        # Another draw of a reply that is always the same would only cost.
        fixed = embedded or (getattr(backend, "deterministic", False) and settings.temperature == 0)
        self._retries = 0 if fixed else settings.retries

        self._answer = functools.lru_cache(maxsize=4096)(self._make_answer)

        @functools.lru_cache(maxsize=256)
        def request_options(count: int | None) -> tuple[Mapping[str, object], str]:
            limit = {} if embedded else {"max_tokens": self.max_tokens(count)}
            options = {**self.options, **limit}
            return options, canonical_json(options)

        self._request_options = request_options

    @property
    def draws(self) -> int:
        """How often one question is put to the model at most, as long as its replies cannot be read."""
        return 1 + self._retries

    def max_tokens(self, count: int | None = None) -> int:
        """The longest reply that is asked for."""
        if self.settings.max_tokens is not None:
            return self.settings.max_tokens
        if count is not None:
            return 64 + 16 * count
        if self.prompt.reply_tokens:
            return self.prompt.reply_tokens
        return 256 if self.prompt.parser == "text" else 64

    def request(self, ask: Ask, group: str, attempt: int = 0) -> Request:
        """The request of one question; another attempt is another request."""
        options, text = self._request_options(ask.labels)
        replicate = ask.replicate + ATTEMPT_STEP * attempt
        return Request.of_parts(text, self.model, ask.messages, options, self._labels, replicate, group)

    def ask(self, asks: Sequence[Ask], group: str) -> Generator[Sequence[Request], Sequence[Reply], list[ReadReply]]:
        """Asks some questions at once, and again those whose replies cannot be read; answers in the same order."""
        replies = yield [self.request(ask, group) for ask in asks]
        answers = [self._read(reply, ask.labels) for reply, ask in zip(replies, asks, strict=True)]
        for attempt in range(1, self._retries + 1):
            places = [place for place, answer in enumerate(answers) if answer.status == "unparsed"]
            if not places:
                break
            replies = yield [self.request(asks[place], group, attempt) for place in places]
            for place, reply in zip(places, replies, strict=True):
                answers[place] = self._read(reply, asks[place].labels)._replace(retries=attempt)
        return answers

    def _read(self, reply: Reply, count: int | None) -> ReadReply:
        text = reply.text
        if reply.status in ("failed", "refused") or text is None:
            status: GradeStatus = "failed" if reply.status == "ok" else reply.status
            return ReadReply(None, status, text or "", reply.error or "the model gave no reply")
        answer = self._answer(text, count)
        if reply.status == "truncated":
            # A verdict in front of the cut is kept, and marked.
            return answer._replace(status="truncated", note=reply.error or "the reply or the prompt was cut")
        return answer

    def _make_answer(self, text: str, count: int | None) -> ReadReply:
        """What a complete reply says."""
        settings, prompt = self.settings, self.prompt
        unparsed = "exampp" if settings.unparsed == "exampp" else ""
        parsed = prompt.parse(text, unparsed=unparsed, compat=settings.compat, count=count)
        if parsed.value is None and settings.unparsed == "workbench" and prompt.parser == "rating":
            parsed = Parsed(int(is_unanswerable(text) or not text.strip()))
        return ReadReply(parsed.value, "unparsed" if parsed.value is None else "graded", text, parsed.reason)
