"""The backend `scripted:FILE`: a table of replies, for tests, teaching, and replays of exported replies."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rubric_measures.backends.base import Reply, ReplyStatus, Request
from rubric_measures.backends.replies.cache import messages_hash
from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import iter_lines, path_name
from rubric_measures.base.signature import content_hash

__all__ = ["ScriptedBackend", "ScriptedRule"]

_STATUSES = ("ok", "refused", "truncated", "failed")
_FIELDS = {
    "key", "messages_hash", "contains", "matches", "replicate", "reply", "status", "error", "prompt_tokens",
    "completion_tokens", "raw", "model",
}  # fmt: skip
_DISPUTED = (
    "the table has different replies to these messages, of several models or options: export one model (--model), from "
    "a cache of one run"
)


@dataclass(frozen=True)
class ScriptedRule:
    """One line of the table: which requests it answers, and the reply.

    A request must meet all conditions that are given; a rule without any answers everything that no other rule does.

    Attributes:
        reply: the answer.
        key: the request's key.
        messages_hash: the hash of its messages (as `cache export` writes it).
        contains: texts that must all occur in the messages.
        matches: a regular expression that must be found in the messages.
        replicate: the replicate.
    """

    reply: Reply
    key: str = ""
    messages_hash: str = ""
    contains: tuple[str, ...] = ()
    matches: re.Pattern[str] | None = None
    replicate: int | None = None

    def answers(self, request: Request, shown: str) -> bool:
        """Whether the rule answers the request; `shown` is the text of its messages."""
        return (
            (self.replicate is None or self.replicate == request.replicate)
            and all(text in shown for text in self.contains)
            and (self.matches is None or self.matches.search(shown) is not None)
        )


class ScriptedBackend:
    """Answers from a table. Requests that no rule answers fail, with a message that says so.

    Rules are tried by key, then by the hash of the messages, then in the order of the table (`contains`, `matches`).
    Messages for which the table has different replies (of several models, or options) fail: none is the right one.

    Args:
        rules: the table.
        name: what the grader is called in the records; the hash of the table is added, so that the cache never
            answers for another table.
        context: how many tokens prompt and reply may have together; None for no limit. Tokens are words.
    """

    deterministic = True

    def __init__(self, rules: Sequence[ScriptedRule], name: str = "table", context: int | None = None) -> None:
        self._by_key = {rule.key: rule for rule in rules if rule.key}
        # A line of `cache export` carries both: by its key it answers the same model, by its messages any.
        self._by_messages: dict[tuple[str, int | None], ScriptedRule] = {}
        self._disputed: set[tuple[str, int | None]] = set()
        for rule in rules:
            if rule.messages_hash:
                place = (rule.messages_hash, rule.replicate)
                if self._by_messages.setdefault(place, rule).reply.text != rule.reply.text:
                    self._disputed.add(place)
        self._others = tuple(rule for rule in rules if not rule.key and not rule.messages_hash)
        self._context = context
        digest = content_hash([_identity(rule) for rule in rules])[:12]
        self._model = f"scripted:{name}#{digest}"

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], **options: Any) -> ScriptedBackend:
        """Reads a table: JSON lines with `reply` (text or null) and conditions.

        `{"contains": "leap year", "reply": "4"}`; `contains` may be a list. Further fields: `key`, `messages_hash`,
        `matches` (a regular expression), `replicate`, `status`, `error`, `prompt_tokens`, `completion_tokens`, `raw`.
        The lines of `cache export` are such a table.

        Raises:
            InputError: the file cannot be opened.
            FormatError: a line is no such object.
        """
        name = path_name(path)
        rules = [_read_rule(line, name, number) for number, line in iter_lines(name)]
        if not rules:
            raise FormatError("holds no replies", path=name)
        options.setdefault("name", Path(name).name)
        return cls(rules, **options)

    @property
    def model(self) -> str:
        """`scripted:NAME#HASH`, the hash being that of the table."""
        return self._model

    @property
    def options(self) -> Mapping[str, object]:
        """None."""
        return {}

    @property
    def context_tokens(self) -> int | None:
        """As the table was given it."""
        return self._context

    def count_tokens(self, text: str) -> int:
        """Whitespace-separated words."""
        return len(text.split())

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Looks each request up."""
        for request in requests:
            yield request, self._reply(request)

    def _reply(self, request: Request) -> Reply:
        if rule := self._by_key.get(request.key):
            return rule.reply
        if self._by_messages:
            digest = messages_hash(request)
            for replicate in (request.replicate, None):
                if (digest, replicate) in self._disputed:
                    return Reply(None, "failed", _DISPUTED)
                if rule := self._by_messages.get((digest, replicate)):
                    return rule.reply
        shown = "\n".join(message.content for message in request.messages)
        for rule in self._others:
            if rule.answers(request, shown):
                return rule.reply
        return Reply(None, "failed", "the table of replies has no line for this request")


def _identity(rule: ScriptedRule) -> list[object]:
    reply = rule.reply
    return [
        rule.key,
        rule.messages_hash,
        list(rule.contains),
        rule.matches.pattern if rule.matches else None,
        rule.replicate,
        [reply.text, reply.status, reply.error],
    ]


def _read_rule(line: bytes, path: str, number: int) -> ScriptedRule:
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise FormatError(f"is no JSON ({error})", path=path, line=number) from None
    if not isinstance(fields, dict) or "reply" not in fields:
        raise FormatError('expected an object with "reply"', path=path, line=number)

    def wrong(field: str, expected: str) -> FormatError:
        return FormatError(f"expected {expected}", path=path, line=number, field=field)

    if unknown := sorted(set(fields) - _FIELDS):
        raise FormatError(f"unknown fields {', '.join(unknown)}", path=path, line=number)
    text, contains = fields["reply"], fields.get("contains", [])
    contains = [contains] if isinstance(contains, str) else contains
    if text is not None and not isinstance(text, str):
        raise wrong("reply", "a text or null")
    # Half a surrogate pair can be said in JSON but not in UTF-8, that is in no cache and no file.
    text = text and text.encode("utf-8", "replace").decode("utf-8")
    if not isinstance(contains, list) or not all(isinstance(part, str) for part in contains):
        raise wrong("contains", "a text or a list of texts")
    for name in ("key", "messages_hash", "matches", "error"):
        if not isinstance(fields.get(name, ""), str):
            raise wrong(name, "a text")
    for name in ("replicate", "prompt_tokens", "completion_tokens"):
        if type(fields.get(name, 0)) is not int:
            raise wrong(name, "a whole number")
    status: ReplyStatus = fields.get("status", "ok" if text is not None else "failed")
    if status not in _STATUSES:
        raise wrong("status", f"one of {', '.join(_STATUSES)}")
    try:
        pattern = re.compile(fields["matches"]) if "matches" in fields else None
    except re.error as error:
        raise wrong("matches", f"a regular expression ({error})") from None
    reply = Reply(
        text,
        status,
        fields.get("error", "" if status == "ok" else "as the table says"),
        fields.get("prompt_tokens", 0),
        fields.get("completion_tokens", 0),
        fields.get("raw", {}),
    )
    return ScriptedRule(
        reply,
        fields.get("key", ""),
        fields.get("messages_hash", ""),
        tuple(contains),
        pattern,
        fields.get("replicate"),
    )
