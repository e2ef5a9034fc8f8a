"""Putting a prompt to the model and reading the reply: requests, retries of unreadable replies, statuses."""

from __future__ import annotations

import functools
from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from rubric_measures.base.errors import InputError
from rubric_measures.grading._distributions import distribution_of_reply
from rubric_measures.grading._settings import GradingSettings
from rubric_measures.grading._several import read_reasons, read_several
from rubric_measures.models.base import ATTEMPT_STEP, Backend, Reply, Request, refuse_settings
from rubric_measures.prompts import Prompt
from rubric_measures.prompts.parsers import is_unanswerable
from rubric_measures.prompts.verdicts import Parsed, clean_reply, objects_of, without_thoughts
from rubric_measures.types.entities import GradeStatus, canonical_json
from rubric_measures.types.scales import Message

_MOST_STOPS = 4  # that the official endpoint takes
_LONGER = 4  # times as many tokens for a reply that was cut
_PER_MESSAGE = 8  # what a chat template or special tokens add to a message, at most


class Ask(NamedTuple):
    """One question to the model: what is shown, for which replicate, and of how many items the reply is a list."""

    messages: tuple[Message, ...]
    replicate: int = 0
    labels: int | None = None


class ReadReply(NamedTuple):
    """What the model said: the value read (None when there is none), its status, the raw text, and why not.

    `retries` counts further draws; `checks` has (gold answer, reply) where a model checked the text; `thinking` is what
    the model thought before the text, and `max_tokens` how long it might be where it was asked for once more;
    `distribution` is grade -> probability, where the reply came with those of its labels; `reason` is why the model
    gave the grade, where it was asked for that, and `reasons` place -> reason of a reply about several items; `alone`
    says that the item was asked about by itself, as a reply about several did not grade it.
    """

    value: Any
    status: GradeStatus
    text: str
    note: str = ""
    retries: int = 0
    checks: tuple[tuple[str, str], ...] = ()
    thinking: str = ""
    max_tokens: int = 0
    distribution: Mapping[int, float] | None = None
    reason: str = ""
    alone: bool = False
    reasons: Mapping[int, str] | None = None


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


def _explained(text: str) -> tuple[set[str], str]:
    """The grades of a reply as its JSON says them, and the reason before the first; none without such JSON."""
    found = [one for one in objects_of(clean_reply(text)) if isinstance(one.get("grade"), str | int | float)]
    grades = {str(one["grade"]) for one in found}
    reasons = [reason for one in found if isinstance(reason := one.get("reason"), str) and reason.strip()]
    return grades, reasons[0].strip() if reasons else ""


class Asker:
    """One prompt put to one model with one set of options; holds no state but the memory of replies read before.

    Raises:
        InputError: a generation option is a setting of the backend.
    """

    def __init__(self, backend: Backend, prompt: Prompt, settings: GradingSettings) -> None:
        self.prompt = prompt
        self.settings = settings
        self.model = backend.model
        embedded = getattr(backend, "embedded", False)
        ends = _ends(backend, prompt)
        refuse_settings(backend, settings.options)
        self.options: Mapping[str, object] = (
            dict(backend.options)
            if embedded
            else {"temperature": settings.temperature, **ends, **backend.options, **settings.options}
        )
        if settings.explain:
            self._refuse_to_explain(embedded)
            if "structured" in backend.options:
                held = backend.options["structured"]
                self.options = {**self.options, "explain": True, "structured": "auto" if held == "off" else held}
        self._embedded = embedded
        self._backend = backend
        self._labels = prompt.reply_labels
        # Another draw of a reply that is always the same would only cost.
        fixed = embedded or (getattr(backend, "deterministic", False) and not self.options.get("temperature"))
        self._retries = 0 if fixed else settings.retries

        self._answer = functools.lru_cache(maxsize=4096)(self._make_answer)
        self._parted = functools.lru_cache(maxsize=256)(without_thoughts)

        @functools.lru_cache(maxsize=256)
        def request_options(count: int | None, longest: int = 0) -> tuple[Mapping[str, object], str]:
            # A list has lines of its own.
            unended = {name for name in ends if count is not None and self.options[name] is ends[name]}
            options = {name: value for name, value in self.options.items() if name not in unended}
            if not embedded:
                options.setdefault("max_tokens", longest or self.max_tokens(count))
            return options, canonical_json(options)

        self._request_options = request_options

    def _refuse_to_explain(self, embedded: bool) -> None:
        """Refuses reasons where no model is asked for one grade by a prompt of its own words."""
        prompt, settings = self.prompt, self.settings
        if embedded or prompt.format != "template" or prompt.parser not in ("rating", "yes_no", "label"):
            raise InputError(
                f"prompt {prompt.prompt_class} asks for no single grade, so no reason can be asked for",
                settings=("explain",),
            )
        if settings.compat or settings.unparsed or prompt.pattern or prompt.json_field:
            text = "replies with reasons are JSON, and another way of reading replies is said; leave one of them out"
            raise InputError(text, settings=("explain", "compat", "unparsed"))

    @property
    def draws(self) -> int:
        """How often one question is put to the model at most, as long as its replies cannot be read."""
        return 1 + self._retries

    def max_tokens(self, count: int | None = None) -> int:
        """The longest reply that is asked for."""
        if self.settings.max_tokens is not None:
            return self.settings.max_tokens
        if count is not None:
            return 64 + (128 if self.settings.explain else 16) * count
        if self.prompt.reply_tokens:
            return self.prompt.reply_tokens
        return 256 if self.prompt.parser == "text" or self.settings.explain else 64

    def at_most(self, shown: int, written: int) -> tuple[int, int]:
        """The tokens of questions with all that may follow: replies that are cut, then unreadable as often as drawn.

        Args:
            shown: tokens shown when each is asked once.
            written: the most that are written then.
        """
        if self._embedded or not self.settings.retries:
            return shown * self.draws, written * self.draws
        return shown * (1 + self.draws), written * (1 + _LONGER * self.draws)

    def request(self, ask: Ask, group: str, attempt: int = 0, longest: int = 0) -> Request:
        """The request of one question; another attempt, or another longest reply, is another request."""
        options, text = self._request_options(ask.labels, longest)
        replicate = ask.replicate + ATTEMPT_STEP * attempt
        labels = self._labels if ask.labels is None else ()
        return Request.of_parts(text, self.model, ask.messages, options, labels, replicate, group)

    def ask(self, asks: Sequence[Ask], group: str) -> Generator[Sequence[Request], Sequence[Reply], list[ReadReply]]:
        """Asks some questions at once; answers in the same order.

        Replies that were cut are asked for once more with four times the tokens, and those that cannot be read are
        drawn again.
        """
        answers: list[ReadReply | None] = [None] * len(asks)
        longest: dict[int, int] = {}
        draws: dict[int, int] = {}
        open_ = list(range(len(asks)))
        while open_:
            replies = yield [
                self.request(asks[place], group, draws.get(place, 0), longest.get(place, 0)) for place in open_
            ]
            again = []
            for place, reply in zip(open_, replies, strict=True):
                answer = self._read(reply, asks[place].labels)
                if answer.status == "graded" and not longest and not draws:
                    # As nearly all are.
                    answers[place] = answer
                    continue
                if answer.status == "truncated" and reply.is_answer and place not in longest:
                    if more := self._more_tokens(asks[place]):
                        longest[place] = more
                        answers[place] = answer
                        again.append(place)
                        continue
                elif place in longest:
                    if answer.status in ("failed", "refused"):
                        # What was read of the reply that was cut is all that there is.
                        answers[place] = answers[place] or answer
                        continue
                    answer = answer._replace(max_tokens=longest[place])
                drawn = draws.get(place, 0)
                answers[place] = answer._replace(retries=drawn) if drawn else answer
                if answer.status == "unparsed" and drawn < self._retries:
                    draws[place] = drawn + 1
                    again.append(place)
            open_ = again
        return cast(list[ReadReply], answers)

    def _more_tokens(self, ask: Ask) -> int:
        """How long the reply may be when it is asked for once more because it was cut; 0: it is not."""
        if self._embedded or not self.settings.retries or "max_tokens" in self.options:
            return 0
        longest = self.max_tokens(ask.labels)
        backend = self._backend
        if backend.context_tokens is None or not getattr(backend, "reply_shares_context", True):
            return _LONGER * longest
        shown = sum(backend.count_tokens(message.content) + _PER_MESSAGE for message in ask.messages)
        more = min(_LONGER * longest, backend.context_tokens - shown)
        return more if more > longest else 0

    def _read(self, reply: Reply, count: int | None) -> ReadReply:
        text = reply.text
        if reply.status in ("failed", "refused") or text is None:
            status: GradeStatus = "failed" if reply.status == "ok" else reply.status
            return ReadReply(None, status, text or "", reply.error or "the model gave no reply")
        thoughts, text = self._parted(text)
        answer = self._answer(text, count)
        given = str(reply.raw.get("thinking") or "") if reply.raw else ""
        if thoughts := "\n".join(filter(None, (given, thoughts))) if given else thoughts:
            answer = answer._replace(thinking=thoughts)
        if reply.raw and self._labels and count is None and answer.value is not None:
            found = distribution_of_reply(reply.raw, self._labels, lambda label: self._answer(label, count).value)
            # A reply that says a grade which the labels hold impossible is none of them.
            if found is not None and found.get(answer.value):
                answer = answer._replace(distribution=found)
        if reply.status == "truncated":
            # A verdict in front of the cut is kept, and marked.
            return answer._replace(status="truncated", note=reply.error or "the reply or the prompt was cut")
        return answer

    def _make_answer(self, text: str, count: int | None) -> ReadReply:
        """What a complete reply says."""
        settings, prompt = self.settings, self.prompt
        if count is not None and prompt.parser != "label_list":
            several = read_several(text, prompt, count)
            reasons = read_reasons(text) if settings.explain else None
            status: GradeStatus = "unparsed" if several.value is None else "graded"
            return ReadReply(several.value, status, text, several.reason, reasons=reasons)
        grades, reason = _explained(text) if settings.explain else (set(), "")
        if grades:
            parsed = prompt.parse(*grades) if len(grades) == 1 else Parsed(None, "the reply has several grades")
            status = "unparsed" if parsed.value is None else "graded"
            return ReadReply(parsed.value, status, text, parsed.reason, reason=reason)
        unparsed = "exampp" if settings.unparsed == "exampp" else ""
        parsed = prompt.parse(text, unparsed=unparsed, compat=settings.compat, count=count)
        if parsed.value is None and settings.unparsed == "workbench" and prompt.parser == "rating":
            parsed = Parsed(int(is_unanswerable(text) or not text.strip()))
        return ReadReply(parsed.value, "unparsed" if parsed.value is None else "graded", text, parsed.reason)
