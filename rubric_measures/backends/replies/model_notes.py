"""What a reply cache knows of models (name, options, tokenizer), so that replies are found without the models."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from rubric_measures.base.signature import canonical_json

__all__ = ["ModelNote", "copy_notes", "prune_notes", "read_notes", "write_note"]

# Beside the replies, made when a first model is noted: caches without it stay caches.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS models (
    model TEXT NOT NULL,
    options TEXT NOT NULL,
    facts TEXT NOT NULL,
    tokenizer BLOB,
    UNIQUE (model, options)
)
"""


@dataclass(frozen=True)
class ModelNote:
    """What requests to a model are made of.

    Attributes:
        model: its canonical name.
        options: the settings that its requests carry (device, dtype, revision, mode, …).
        facts: what else its backend says of itself, JSON-able.
        tokenizer: its tokenizer as JSON text; empty where it cannot be written so.
    """

    model: str
    options: Mapping[str, object]
    facts: Mapping[str, object] = field(default_factory=dict)
    tokenizer: str = ""


def _is_there(connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'models'").fetchone()
    return bool(found[0])


def write_note(connection: sqlite3.Connection, note: ModelNote) -> None:
    """Notes a model; one that is noted stays as it is."""
    connection.execute(_SCHEMA)
    blob = zlib.compress(note.tokenizer.encode("utf-8")) if note.tokenizer else None
    # Records list the options in the order in which the backend gave them.
    facts = canonical_json({**note.facts, "order": list(note.options)})
    row = (note.model, canonical_json(dict(note.options)), facts, blob)
    connection.execute("INSERT OR IGNORE INTO models VALUES (?, ?, ?, ?)", row)


def read_notes(connection: sqlite3.Connection) -> list[ModelNote]:
    """All noted models, in the order of names and options."""
    if not _is_there(connection):
        return []
    rows = connection.execute("SELECT model, options, facts, tokenizer FROM models ORDER BY model, options")
    return [_note(*row) for row in rows]


def _note(model: str, options: str, facts: str, blob: bytes | None) -> ModelNote:
    found, said = json.loads(options), json.loads(facts)
    ordered = {name: found[name] for name in said.pop("order")}
    return ModelNote(model, ordered, said, zlib.decompress(blob).decode("utf-8") if blob else "")


def copy_notes(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Takes over the models of another cache."""
    if _is_there(source):
        target.execute(_SCHEMA)
        rows = source.execute("SELECT model, options, facts, tokenizer FROM models").fetchall()
        target.executemany("INSERT OR IGNORE INTO models VALUES (?, ?, ?, ?)", rows)


def prune_notes(connection: sqlite3.Connection) -> None:
    """Forgets the models that have no replies any more."""
    if _is_there(connection):
        connection.execute("DELETE FROM models WHERE model NOT IN (SELECT model FROM replies)")
