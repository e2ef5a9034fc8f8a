"""How replies lie in the cache: a row each, and how they are named when they are listed and exported."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from functools import lru_cache
from json.encoder import encode_basestring_ascii as _quoted
from types import MappingProxyType
from typing import NamedTuple

from rubric_measures.backends.base import MOST_TOKENS, Reply, Request

__all__ = [
    "CacheEntry",
    "ModelCount",
    "Row",
    "decoded",
    "delete_of",
    "encoded",
    "messages_hash",
    "model_counts",
    "row_of",
]

# The key, the model, the hash of the messages, the replicate, the reply as JSON.
Row = tuple[bytes, str, bytes, int, str]


# A damaged reply is named when it is asked for; it is counted without its fields, and can be pruned.
_READABLE = (
    "(SELECT rowid AS row, model, length(reply) AS size, iif(json_valid(reply), reply, '{}') AS reply FROM replies)"
)


class ModelCount(NamedTuple):
    """How much of a cache belongs to one model; `truncated` replies were cut, `characters` is the size of all."""

    model: str
    replies: int
    truncated: int
    prompt_tokens: int
    completion_tokens: int
    characters: int


class CacheEntry(NamedTuple):
    """One stored reply: its key (hex), the model, the hash of the messages (hex), the replicate, the reply."""

    key: str
    model: str
    messages: str
    replicate: int
    reply: Reply

    def as_json(self) -> dict[str, object]:
        """The entry as a line of `cache export`, which the `scripted` backend replays."""
        reply = self.reply
        return {
            "key": self.key,
            "model": self.model,
            "messages_hash": self.messages,
            "replicate": self.replicate,
            "reply": reply.text,
            **_cut_fields(reply),
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "raw": dict(reply.raw),
        }


def messages_hash(request: Request) -> str:
    """The sha256 of what a model is shown, whatever the model: by it a reply can be replayed under another name."""
    text = ",".join([message.as_json() for message in request.messages])
    return hashlib.sha256(f"[{text}]".encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=4096)
def decoded(text: str) -> Reply:
    """A stored reply; equal ones, and of grades there are few, are one object.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: the text is none.
    """
    try:
        fields = json.loads(text)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    status = fields.get("status", "ok")
    tokens = [fields.get(name, 0) for name in ("prompt_tokens", "completion_tokens")]
    if not isinstance(fields["text"], str) or status not in ("ok", "truncated"):
        raise TypeError
    if not all(type(count) is int and 0 <= count <= MOST_TOKENS for count in tokens):
        raise TypeError
    return Reply(
        fields["text"],
        status,
        fields.get("error", ""),
        prompt_tokens=fields.get("prompt_tokens", 0),
        completion_tokens=fields.get("completion_tokens", 0),
        raw=MappingProxyType(fields.get("raw", {})),
    )


def row_of(request: Request, reply: Reply) -> Row:
    """An answer as it is stored."""
    digest = bytes.fromhex(messages_hash(request))
    return bytes.fromhex(request.key), request.model, digest, request.replicate, encoded(reply)


def _cut_fields(reply: Reply) -> dict[str, object]:
    """What says that a reply was cut."""
    return {} if reply.status == "ok" else {"status": reply.status, "error": reply.error}


def encoded(reply: Reply) -> str:
    """A reply as it is stored."""
    # Put together in the order of the names, which takes a fifth of the time of an encoder.
    fields = [f'"completion_tokens":{reply.completion_tokens}'] if reply.completion_tokens else []
    if reply.status != "ok":
        fields.append(f'"error":{_quoted(reply.error)}')
    if reply.prompt_tokens:
        fields.append(f'"prompt_tokens":{reply.prompt_tokens}')
    if reply.raw:
        fields.append(f'"raw":{json.dumps(dict(reply.raw), sort_keys=True, separators=(",", ":"))}')
    if reply.status != "ok":
        fields.append(f'"status":"{reply.status}"')
    fields.append(f'"text":{_quoted(reply.text or "")}')
    return f"{{{','.join(fields)}}}"


def model_counts(connection: sqlite3.Connection) -> list[ModelCount]:
    """How many replies and tokens each model has, in order of the models' names."""
    rows = connection.execute(
        "SELECT model, count(*), sum(json_extract(reply, '$.status') IS 'truncated'), "
        "sum(coalesce(json_extract(reply, '$.prompt_tokens'), 0)), "
        "sum(coalesce(json_extract(reply, '$.completion_tokens'), 0)), sum(size) "
        f"FROM {_READABLE} GROUP BY model ORDER BY model"
    )
    return [ModelCount(*row) for row in rows]


def delete_of(connection: sqlite3.Connection, model: str | None, truncated: bool) -> int:
    """Deletes the replies of a model (of all), or those of them that were cut; returns how many."""
    return connection.execute(
        f"DELETE FROM replies WHERE rowid IN (SELECT row FROM {_READABLE} WHERE (?1 IS NULL OR model = ?1) "
        "AND (NOT ?2 OR json_extract(reply, '$.status') IS 'truncated'))",
        (model, truncated),
    ).rowcount
