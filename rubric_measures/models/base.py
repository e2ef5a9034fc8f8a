"""What a model must do: requests, replies, settings of a kind of model.

What a backend is: requests in, replies out as they finish; and the key under which a reply is cached.

The settings of a kind of model: wrong ones are named, and none passes for a generation option of a request.

What a dry run counts.
"""

from __future__ import annotations

import difflib
import hashlib
import inspect
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from json.encoder import encode_basestring as _quoted
from pathlib import Path
from typing import Annotated, Literal, Protocol, runtime_checkable

import msgspec

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.types.entities import canonical_json
from rubric_measures.types.scales import Message

_LINE = 300  # characters of what others say in a message


def one_line(said: object) -> str:
    """A text, or what an exception says, as one line of bounded length."""
    line = " ".join(str(said).split()) or type(said).__name__
    return line if len(line) <= _LINE else f"{line[:_LINE]}…"


# Further draws of a replicate whose reply cannot be read are numbered apart, so that none reads that reply.
ATTEMPT_STEP = 1000

# Stands before the name of an endpoint, where one has weights of its own: `openai:m@endpoint:lab`.
ENDPOINT_MARK = "@endpoint:"

ReplyStatus = Literal["ok", "refused", "truncated", "failed"]


_labels_json: Callable[[tuple[str, ...]], str] = lru_cache(maxsize=256)(canonical_json)


class SharedOptions(dict[str, object]):
    """Generation options of many requests, whose canonical JSON is made once. They stay as they are."""

    @cached_property
    def as_json(self) -> str:
        """The canonical JSON."""
        return canonical_json(dict(self))


@dataclass(frozen=True)
class Request:
    """One call of a model, complete: nothing outside of it may change the reply.

    Attributes:
        model: the backend's canonical name of the model with all that selects it, such as
            `hf:google/flan-t5-large@main`, `openai:gpt-4o`, `lexical:1`. Where it is served is no part of it.
        messages: what the model is shown.
        options: generation options that change the reply (temperature, max_tokens, dtype, mode, seed, …), JSON-able.
        labels: the replies that the prompt allows, where it is a closed list; empty for free text. A backend may use
            them to score labels or to constrain the output.
        replicate: 0 for the first draw, 1 for the second, …; the same request of another replicate is another call.
            From `ATTEMPT_STEP` on, the grader asks again for a reply that it could not read.
        group: requests with the same group share a prefix (a passage) and are best run next to each other. Not in the
            key.
    """

    model: str
    messages: tuple[Message, ...]
    options: Mapping[str, object] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    replicate: int = 0
    group: str = ""

    @cached_property
    def key(self) -> str:
        """The sha256 hex digest of the canonical JSON of everything that may change the reply.

        It equals `content_hash` of an object with labels, messages (pairs of role and content), model, options and
        replicate; it is put together here piece by piece because that is three times faster.
        """
        try:
            messages = msgspec.json.encode(self.messages).decode()
        except UnicodeEncodeError:  # half a character
            messages = canonical_json(self.messages)
        shared = self.options if isinstance(self.options, SharedOptions) else SharedOptions(self.options)
        text = (
            f'{{"labels":{_labels_json(self.labels)},"messages":{messages},"model":{_quoted(self.model)},'
            f'"options":{shared.as_json},"replicate":{self.replicate}}}'
        )
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# A count beyond is damage; databases count no further than 2**63, and add counts up.
MOST_TOKENS = 2**50
Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


@dataclass(frozen=True)
class Reply:
    """What came back for one request.

    Attributes:
        text: the reply as the model gave it; None when there is none (never the text "None").
        status: `ok`; `refused` (the model or a filter declined); `truncated` (the reply or the prompt was cut);
            `failed` (no reply after all retries). What is cached: see `is_kept`.
        error: the reason of a status other than `ok`, in one line.
        prompt_tokens: tokens shown to the model; 0 when unknown.
        completion_tokens: tokens written by the model; 0 when unknown.
        raw: what else is worth keeping (finish_reason, returned model id, system_fingerprint, label scores), JSON-able.
    """

    text: str | None
    status: ReplyStatus = "ok"
    error: str = ""
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    raw: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_answer(self) -> bool:
        """Whether the model answered: a whole reply, or the text as far as the longest reply allowed.

        Calls without one have failed. A cut text is one, since the same request would be cut again: the longest reply
        is in its key. A prompt that the endpoint found too long has no text and is none.
        """
        return self.text is not None and self.status in ("ok", "truncated")

    @property
    def is_kept(self) -> bool:
        """Whether the same request would bring the same again, so that it is cached: an answer, or a refusal."""
        return self.is_answer or self.status == "refused"


@runtime_checkable
class Backend(Protocol):
    """A model behind one method. No request state lives on the object; calls may overlap."""

    @property
    def model(self) -> str:
        """The canonical name that goes into `Request.model`."""

    @property
    def options(self) -> Mapping[str, object]:
        """Settings of the backend itself that change replies (dtype, mode, revision); merged into `Request.options`."""

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Runs requests (pulled lazily, with bounded look-ahead) and yields each with its reply as soon as it is there.

        Every request is answered exactly once, in any order; a call that fails is a `Reply` with status `failed`,
        never an exception, unless nothing can work (`BackendError`).
        """
        ...

    def count_tokens(self, text: str) -> int:
        """The number of tokens of a text, by the model's own tokenizer or an estimate (characters / 4)."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """How many tokens prompt and reply may have together; None when unlimited or unknown."""
        ...


def llm_name(model: str) -> str:
    """The name of a model as the records have it: `google/flan-t5-large`, as the Rubric workbench writes it.

    Revision and endpoint are left out here; the record's provenance has them.

    >>> llm_name("hf:google/flan-t5-large@main"), llm_name("openai:gpt-4o@endpoint:lab"), llm_name("lexical:1")
    ('google/flan-t5-large', 'gpt-4o', 'lexical:1')
    """
    kind, _, name = model.partition(":")
    if kind in ("openai", "litellm"):
        return name.split(ENDPOINT_MARK)[0]
    if kind == "hf":
        return name.rpartition("@")[0] or name
    return model.split("#", maxsplit=1)[0]


# How endpoints say things, and the options that they take.
ENDPOINTS = tomllib.loads(Path(__file__).with_name("endpoints.toml").read_text(encoding="utf-8"))
_KNOWN = frozenset(ENDPOINTS["options"]["usual"])
_ALMOST = 0.87  # `seeds` is almost `seed` (0.89), `top_probs` is not `top_logprobs` (0.86)


def _settings_of(maker: type) -> set[str]:
    """The settings of a class of backends: those that it declares, and arguments with a default, of all its classes."""
    declared = getattr(maker, "settings_class", None)
    return set(declared.__dataclass_fields__ if declared else ()) | {
        name
        for one in maker.__mro__
        if "__init__" in vars(one)
        for name, parameter in inspect.signature(vars(one)["__init__"]).parameters.items()
        if parameter.default is not parameter.empty
    }


def check_options(model: str, maker: type, given: Iterable[str]) -> None:
    """Refuses settings that a class of backends does not have (see `_settings_of`).

    Raises:
        UnknownNameError: one of them is no setting.
    """
    for name in given:
        if name not in (known := _settings_of(maker)):
            option = "base_url" if name == "base_url" else "model_option"
            raise UnknownNameError("setting", name, known, hint=f"(of the model {model!r})", settings=(option,))


def refuse_settings(backend: Backend, given: Collection[str]) -> None:
    """Refuses generation options that are settings of the model's backend, that a request says by itself, or misspelt.

    A request's option of such a name would stand in its key and in the record, and change nothing: the backend computes
    as it was made, and endpoints ignore in silence what they do not know. Names like no known one are let through, but
    by a backend that says what it `takes`.

    Raises:
        InputError: one of them is a setting, or no name.
        UnknownNameError: one of them is almost the name of another one, or the backend takes others.
    """
    settings = _settings_of(type(backend)) | set(backend.options)
    if wrong := sorted(settings.intersection(given)):
        raise InputError(f"{wrong[0]} is a setting of the model, not of a reply", settings=("model_option",))
    takes: Collection[str] | None = getattr(backend, "takes", None)
    for name in given:
        if name in ENDPOINTS["options"]["said_elsewhere"]:
            raise InputError(f"{name} is no generation option: the request says it already")
        plain, known = name.lower().replace("-", "_"), takes or _KNOWN
        if name not in known and (takes or difflib.get_close_matches(plain, _KNOWN, 1, _ALMOST)):
            raise UnknownNameError("generation option", plain, known, hint=f"(given: {name})", settings=("option",))


@dataclass
class Tally:
    """The calls that a dry run would make: it asks nobody.

    Attributes:
        known: keys of requests that need no call of their own, as another prompt makes them, say; those that are
            counted come to them.
        calls: the others.
        repeated: requests with a known key.
        prompt_tokens: tokens that the calls would show.
        completion_tokens: the most that may be written; calls without a limit count none.
    """

    known: set[str] = field(default_factory=set)
    calls: int = 0
    repeated: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add(self, request: Request, backend: Backend) -> None:
        """Counts a request that no cache answers."""
        if request.key in self.known:
            self.repeated += 1
            return
        self.known.add(request.key)
        self.calls += 1
        self.prompt_tokens += sum(backend.count_tokens(message.content) for message in request.messages)
        limit = request.options.get("max_tokens", 0)
        self.completion_tokens += limit if isinstance(limit, int) else 0
