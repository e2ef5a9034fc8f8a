"""What goes over the wire: bodies written, replies read, what a model is known to refuse.

What an endpoint shows about its model while it is asked: fields that it does not take, and whether it thinks.

What goes over the wire to an OpenAI-compatible endpoint and what comes back: bodies, replies, kinds of trouble.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from rubric_measures.base.errors import warn
from rubric_measures.base.json_text import parse_json
from rubric_measures.models.base import ENDPOINTS, MOST_TOKENS, Reply, Request, one_line

_RENAMED_FIELD = "max_completion_tokens"


def _any_of(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_SAYS: Mapping[str, re.Pattern[str]] = {name: _any_of(patterns) for name, patterns in ENDPOINTS["says"].items()}
_LEFT_OUT: Mapping[str, tuple[tuple[str, ...], re.Pattern[str], str]] = {
    name: (tuple(row["fields"]), _any_of(row["says"]), row["follows"]) for name, row in ENDPOINTS["left_out"].items()
}
# Tokens to think in, beside those of the reply: as a rule 64 times the reply's, within these bounds.
_ROOM_A_TOKEN, _LEAST_ROOM, _MOST_ROOM = 64, 4_096, 16_384
_THOUGHT_TAGS = re.compile(r"\A\s*<think|</think", re.IGNORECASE)


STRUCTURED_MODES = ("off", "choice", "json_schema")
# Options of the backend itself; all others are fields of the body.
_OWN_OPTIONS = ("api", "explain", "structured")
_TOP_LOGPROBS = 20
_SCHEMA_FIELD = "reply"
_ENDS: Mapping[str, Sequence[str]] = ENDPOINTS["ends"]
_KEY_LIKE = re.compile(r"\b(sk|rk|pk|hf|gsk)[-_][\w*.\-]{6,}|Bearer\s+[^\s'\"]+|//[^/\s@]+@")


class Trouble(NamedTuple):
    """Why a call has no reply yet, and what follows from it.

    Attributes:
        kind: `busy` (try again when the endpoint has time), `failure` (try again, a few times), `final` (this call
            will never succeed), `hopeless` (no call will).
        error: the reason, in one line, without keys.
        wait: seconds that the endpoint asked to wait, or None.
        status: what the reply's status is when it is not tried again.
        congestion: whether it may come from too many calls at once.
        unreachable: whether no connection could be made at all.
        paid: the tokens shown and written all the same.
    """

    kind: Literal["busy", "failure", "final", "hopeless"]
    error: str
    wait: float | None = None
    status: Literal["failed", "refused", "truncated"] = "failed"
    congestion: bool = False
    unreachable: bool = False
    paid: tuple[int, int] = (0, 0)


def _constraint(mode: str, labels: tuple[str, ...], explain: bool) -> dict[str, Any]:
    """The constraint to one of the labels, or to a reason and then one of them."""
    label = {"type": "string", "enum": list(labels)}
    fields = {"reason": {"type": "string"}, "grade": label} if explain else {_SCHEMA_FIELD: label}
    schema = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    if mode == "choice":
        return {"structured_outputs": {"json": schema} if explain else {"choice": list(labels)}}
    if mode == "json_schema":
        named = {"name": "reply", "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    return {}


def _at(value: Any, *path: Any) -> Any:
    """What stands at a path of what an endpoint says; None where something else is on the way."""
    for step in path:
        if not isinstance(value, dict if isinstance(step, str) else list):
            return None
        value = value.get(step) if isinstance(value, dict) else next(iter(value[step:]), None)
    return value


def _reply_of_choice(choice: Mapping[str, Any], body: Mapping[str, Any], request: Request) -> Reply | Trouble:
    text, refusal = (_text_of(_at(choice, "message", name)) for name in ("content", "refusal"))
    finish = choice.get("finish_reason")
    is_label = not request.options.get("explain")
    if text is not None and is_label and str(request.options.get("structured", "off")).startswith("json_schema"):
        text = _unwrapped(text, request.labels)
    shown, written, of_these = _tokens(body.get("usage"))
    paid = shown, written, {**_kept(choice, body, request), **of_these}
    if refusal:
        return Reply(text or refusal, "refused", one_line(f"the model refused: {refusal}"), *paid)
    end = finish.lower() if isinstance(finish, str) else ""
    if end in _ENDS["broken"]:
        return Trouble("failure", f"the endpoint broke the reply off (finish_reason {finish!r})", paid=(shown, written))
    if end in _ENDS["filter"]:
        return Reply(text, "refused", "a content filter stopped the reply", *paid)
    if end in _ENDS["cut"]:
        reason = f"the reply was cut at the longest length allowed{'' if text else ' before its text began'}"
        return Reply(text or "", "truncated", reason, *paid)
    if text is None:
        return Trouble("failure", f"the reply has no text (finish_reason {finish!r})", paid=(shown, written))
    return Reply(text, "ok", "", *paid)


def _kept(choice: Mapping[str, Any], body: Mapping[str, Any], request: Request) -> dict[str, object]:
    """What else of an answer is worth keeping: also what a model thought, where the endpoint says it apart."""
    said = {"model": body.get("model"), "system_fingerprint": body.get("system_fingerprint")}
    said["finish_reason"] = choice.get("finish_reason")
    raw: dict[str, object] = {field: value for field, value in said.items() if isinstance(value, str)}
    if request.labels and (scores := _first_token_scores(choice)):
        raw["first_token_logprobs"] = scores
    message = choice.get("message")
    if thoughts := _text_of(_at(message, "reasoning_content")) or _text_of(_at(message, "reasoning")):
        raw["thinking"] = thoughts
    return raw


def _tokens(usage: object) -> tuple[int, int, dict[str, object]]:
    """The tokens shown and written; and how many of these were thoughts, or came from the endpoint's own cache.

    Some endpoints leave thoughts out of what was written, and only the total has them.
    """
    shown, written, total = (_count(_at(usage, f"{name}_tokens")) for name in ("prompt", "completion", "total"))
    unsaid = max(0, total - shown - written) if shown else 0
    thought = _count(_at(usage, "completion_tokens_details", "reasoning_tokens") or _at(usage, "reasoning_tokens"))
    cached = _at(usage, "prompt_tokens_details", "cached_tokens") or _at(usage, "cached_tokens")
    stored = _count(cached or _at(usage, "prompt_cache_hit_tokens"))
    of_these = {"reasoning_tokens": thought or unsaid, "cached_tokens": min(stored, shown)}
    return shown, written + unsaid, {name: count for name, count in of_these.items() if count}


def _text_of(content: object) -> str | None:
    """The text of a content field, which some endpoints give as a list of parts."""
    if isinstance(content, str):
        # Half a surrogate pair can be said in JSON but not in UTF-8, that is in no cache and no file.
        return content if content.isascii() else content.encode("utf-8", "replace").decode("utf-8")
    if isinstance(content, list):
        texts = [text for part in content if isinstance(text := _at(part, "text"), str)]
        return "".join(texts) if texts else None
    return None


def _unwrapped(text: str, labels: tuple[str, ...]) -> str:
    """The label inside the JSON object that the schema asked for; any other text stays as it is."""
    try:
        label = _at(parse_json(text, lenient=True), _SCHEMA_FIELD)
    except ValueError:
        return text
    return label if label in labels else text


def _first_token_scores(choice: object) -> list[list[object]]:
    """(token, log probability) of the candidates for the first token, best first; empty when there are none."""
    given = _at(choice, "logprobs", "content", 0, "top_logprobs")
    candidates = given if isinstance(given, list) else []
    scored = [one for one in candidates if isinstance(_at(one, "logprob"), int | float)]
    pairs = [(str(one.get("token")), float(one["logprob"])) for one in scored]
    # Infinity and NaN have no JSON.
    return [[token, score] for token, score in sorted(pairs, key=lambda pair: (-pair[1], pair[0])) if abs(score) < 1e30]


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else 0


def _fits(row: Mapping[str, Any], status: int, code: str, text: str) -> bool:
    """Whether a row of the table says what an answer means."""
    if status not in row.get("status", (status,)) or status < row.get("from", 0):
        return False
    looked_for = [(pattern, text) for pattern in row.get("says", ())]
    looked_for += [(row["code"], code)] if "code" in row else []
    return all((_SAYS.get(pattern.strip("{}")) or _any_of([pattern])).search(where) for pattern, where in looked_for)


def _said(body: object) -> tuple[str, str]:
    """Code and message of the body of an error."""
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(inner, Mapping):
        return "", str(inner or "").strip()
    message = inner.get("message") or inner.get("detail") or inner
    return f"{inner.get('code') or ''} {inner.get('type') or ''}", str(message or "").strip()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that an answer asks to wait (`Retry-After`, `retry-after-ms`), or None; dates are not read.

    >>> retry_after({"retry-after": "2.5"})
    2.5
    >>> retry_after({"retry-after": "soon"}) is None
    True
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with contextlib.suppress(KeyError, ValueError):
            if 0 <= (seconds := float(headers[name]) * scale) < float("inf"):
                return seconds
    return None


@dataclass
class Endpoint:
    """A model at an endpoint: what is sent to it, what its answers mean, and what is learned from them.

    It is kept as long as the backend, and what it knows of the model grows.

    Attributes:
        name: the model as the endpoint knows it.
        url: the endpoint as messages show it.
        secrets: what no message shows.
        room: the tokens that a model which thinks gets for it, beside those of the reply; None goes by the longest
            reply.
        token_field: what the endpoint calls the longest reply.
        left_out: fields that it does not take, although the request has them.
        thinks: whether a reply showed that the model thinks before it replies.
        answered: whether it ever gave a reply.
        held: whether it ever gave one to a call with a schema.
    """

    name: str
    url: str
    secrets: tuple[str, ...] = ()
    room: int | None = None
    token_field: str = "max_tokens"
    left_out: set[str] = field(default_factory=set)
    thinks: bool = False
    answered: bool = False
    held: bool = False

    def body(self, request: Request, *, whole: bool = False) -> dict[str, Any]:
        """The JSON body of a request, or the whole one, with what the endpoint does not take.

        Options become fields, except `api`, `explain` and `structured`. One that is None is no field.
        """
        options = request.options
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        body: dict[str, Any] = {"model": self.name, "messages": messages}
        for option, value in options.items():
            if option in _OWN_OPTIONS or value is None:
                continue
            if option == "max_tokens":
                body[self.token_field] = self.longest(value) if isinstance(value, int) else value
            else:
                body[option] = value
        if request.replicate and isinstance(seed := body.get("seed"), int):
            # The same seed would draw the same reply again.
            body["seed"] = seed + request.replicate
        mode, _, extra = str(options.get("structured", "off")).partition("+")
        if request.labels:
            explain = bool(options.get("explain"))
            body.update(_constraint(mode, request.labels, explain))
            if extra == "logprobs" and not explain:
                body.update(logprobs=True, top_logprobs=_TOP_LOGPROBS)
        left_out = () if whole else self.left_out
        return {name: value for name, value in body.items() if name not in left_out} if left_out else body

    def longest(self, reply_tokens: int) -> int:
        """The tokens that are asked for where the reply may have so many: a model that thinks needs room for it.

        >>> Endpoint("m", "u").longest(64), Endpoint("m", "u", thinks=True).longest(64)
        (64, 4160)
        """
        if not self.thinks:
            return reply_tokens
        usual = max(_LEAST_ROOM, min(_MOST_ROOM, _ROOM_A_TOKEN * reply_tokens))
        return reply_tokens + (usual if self.room is None else self.room)

    def learn_from(self, reply: Reply) -> bool:
        """Learns from a reply whether the model thinks; whether that is news."""
        known = self.thinks
        # Nothing visible in all the tokens of a reply that was cut: they went into thoughts, shown or not.
        self.thinks = (
            known
            or bool(reply.raw.get("thinking") or reply.raw.get("reasoning_tokens"))
            or (reply.status == "truncated" and not reply.text)
            or bool(_THOUGHT_TAGS.search(reply.text or ""))
        )
        return self.thinks and not known

    def reply_of(self, content: bytes | str, request: Request) -> Reply | Trouble:
        """Reads the body of a successful answer.

        A refusal and a content filter give `refused`; a reply that was cut gives `truncated` with the text so far
        (empty where a model still thought and had written nothing: it was paid for). What is no reply at all (garbage,
        an error with status 200, no choices, no text) is trouble, and so is one that the endpoint broke off.
        """
        try:
            body = parse_json(content, lenient=True)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            return Trouble("failure", "the endpoint's answer is no JSON object")
        if isinstance(choice := _at(body, "choices", 0), dict):
            return _reply_of_choice(choice, body, request)
        if error := body.get("error"):
            code = _at(error, "code")
            return self.trouble_of(code if isinstance(code, int) and 400 <= code < 600 else 500, body)
        return Trouble("failure", "the endpoint's answer has no choices")

    def trouble_of(self, status: int, body: object, wait: float | None = None) -> Trouble:
        """What an answer with an error status means; its body was parsed when it was JSON, `wait` is what it asked."""
        code, text = _said(body)
        error = self.shown(f"HTTP {status}: {text}" if text else f"HTTP {status}")
        row = next(row for row in ENDPOINTS["trouble"] if _fits(row, status, code, text))
        return Trouble(row["kind"], error, wait, row.get("reply", "failed"), row.get("congestion", False))

    def learn(self, status: int, said: str, body: Mapping[str, Any]) -> bool:
        """Learns from an answer with an error status what the same call can be sent with; whether it can be.

        It goes by this call's own body, as another call may have learned the same meanwhile. What is new is said once.
        """
        if status not in (400, 422):
            return False
        if "max_tokens" in body and _SAYS["renamed"].search(said):
            self.token_field = _RENAMED_FIELD
            return True
        for name, (fields, says, _) in _LEFT_OUT.items():
            if fields[0] in body and says.search(said):
                self.leave_out(name, said)
                return True
        return False

    def leave_out(self, name: str, said: str) -> None:
        """Sends calls without some fields from now on, and says why once."""
        fields, _, follows = _LEFT_OUT[name]
        if name not in self.left_out:
            text = "%s: the model %s takes no %s of ours: it is left out, and %s (%s)"
            warn(text, self.url, self.name, name, follows, self.shown(said))
        self.left_out.update(fields)

    def shown(self, text: str) -> str:
        """A message in one line, cut, without keys, and without what looks like one.

        >>> Endpoint("m", "http://host/v1").shown("Incorrect API key provided: sk-abc***wxyz.")
        'Incorrect API key provided: ***'
        """
        for secret in filter(None, self.secrets):
            # Servers without keys are given ones such as `x`, which words hold.
            text = re.sub((r"(?<!\w)%s(?!\w)" if len(secret) < 8 else "%s") % re.escape(secret), "***", text)
        return one_line(_KEY_LIKE.sub(lambda found: "//***@" if found[0].startswith("//") else "***", text))
