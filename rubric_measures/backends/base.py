"""What a backend is: requests in, replies out as they finish; and the key under which a reply is cached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from rubric_measures.signature import content_hash

__all__ = ["Backend", "Message", "Reply", "ReplyStatus", "Request"]

ReplyStatus = Literal["ok", "refused", "truncated", "failed"]


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message; `role` is `system`, `user` or `assistant`."""

    role: str
    content: str


@dataclass(frozen=True)
class Request:
    """One call of a model, complete: nothing outside of it may change the reply.

    Attributes:
        model: the backend's canonical name of the model with all that selects it, such as
            `hf:google/flan-t5-large@main`, `openai:gpt-4o@https://host/v1`, `lexical:1`.
        messages: what the model is shown.
        options: generation options that change the reply (temperature, max_tokens, dtype, mode, seed, …), JSON-able.
        labels: the replies that the prompt allows, where it is a closed list; empty for free text. A backend may use
            them to score labels or to constrain the output.
        replicate: 0 for the first draw, 1 for the second, …; the same request of another replicate is another call.
        group: requests with the same group share a prefix (a passage) and are best run next to each other. Not in the
            key.
    """

    model: str
    messages: tuple[Message, ...]
    options: Mapping[str, object] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    replicate: int = 0
    group: str = ""

    @property
    def key(self) -> str:
        """The sha256 hex digest of the canonical JSON of everything that may change the reply."""
        return content_hash(
            {
                "labels": list(self.labels),
                "messages": [[message.role, message.content] for message in self.messages],
                "model": self.model,
                "options": dict(self.options),
                "replicate": self.replicate,
            }
        )


@dataclass(frozen=True)
class Reply:
    """What came back for one request.

    Attributes:
        text: the reply as the model gave it; None when there is none (never the text "None").
        status: `ok`; `refused` (the model or a filter declined); `truncated` (the reply or the prompt was cut);
            `failed` (no reply after all retries). Only `ok` replies are cached.
        error: the reason of a status other than `ok`, in one line.
        prompt_tokens: tokens shown to the model; 0 when unknown.
        completion_tokens: tokens written by the model; 0 when unknown.
        raw: what else is worth keeping (finish_reason, returned model id, system_fingerprint, label scores), JSON-able.
    """

    text: str | None
    status: ReplyStatus = "ok"
    error: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    raw: Mapping[str, object] = field(default_factory=dict)


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
