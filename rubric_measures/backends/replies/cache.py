"""The reply cache: one SQLite file that several processes may share; finished calls survive kill -9."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from rubric_measures.backends.base import Reply, Request
from rubric_measures.backends.replies._stored_replies import CacheEntry, Row, decoded, encoded, messages_hash, row_of
from rubric_measures.base.entities import canonical_json
from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import atomic_writer, path_name

__all__ = ["CacheEntry", "ModelCount", "ReplyCache", "messages_hash"]

_APPLICATION_ID = 0x52_4D_43_31  # "RMC1": tells our files from other SQLite files
_SCHEMA_VERSION = 1
# A plain rowid table: WITHOUT ROWID halves the write rate. The replicate and the hash of the messages make exported
# replies usable for another model; the request itself is not stored, it would be hundred times the reply.
_SCHEMA = """
CREATE TABLE replies (
    key BLOB NOT NULL UNIQUE,
    model TEXT NOT NULL,
    messages BLOB NOT NULL,
    replicate INTEGER NOT NULL,
    reply TEXT NOT NULL
)
"""
# A damaged reply is named when it is asked for; it is counted without its fields, and can be pruned.
_READABLE = (
    "(SELECT rowid AS row, model, length(reply) AS size, iif(json_valid(reply), reply, '{}') AS reply FROM replies)"
)
# What key, model, hash of the messages, replicate and reply of a row are.
_TYPES = (bytes, str, bytes, int, str)
_LOOKUP_BLOCK = 400
_BUSY_SECONDS = 60.0


class ModelCount(NamedTuple):
    """How much of a cache belongs to one model; `truncated` replies were cut, `characters` is the size of all."""

    model: str
    replies: int
    truncated: int
    prompt_tokens: int
    completion_tokens: int
    characters: int


class ReplyCache:
    """Replies by request key. Only answers are stored (`Reply.is_answer`), raw: neither grades nor failed calls.

    Every `put` is a transaction of its own, so a reply that was put survives the death of the process at any moment
    (write-ahead log, synchronous=NORMAL: a power cut may cost the last ones, never the file). Threads may share an
    object, processes a file on a local disk. Network file systems do not carry the log: give each worker a file of its
    own there and `merge` them.

    Args:
        path: the file; made with the first reply where there is none. `:memory:` keeps nothing.
        read_only: open an existing file, and only read it; neither it nor its folder need be writable then.

    Raises:
        InputError: the file cannot be opened, is no SQLite file, or belongs to something else.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = path_name(path)
        self._lock = threading.Lock()
        if read_only and not Path(self.path).is_file():
            raise InputError(f"{self.path}: there is no such cache")
        self._read_only = read_only
        self._opened: sqlite3.Connection | None = None
        folder = Path(self.path).resolve().parent
        if self.path != ":memory:" and not folder.is_dir():
            raise InputError(f"{self.path}: the folder does not exist")
        if self._is_there():
            with self._explained():
                self._connection  # noqa: B018 - opens the file, so that a wrong one is refused now
        elif not os.access(folder, os.W_OK):
            raise InputError(f"{self.path}: the folder cannot be written")

    def _is_there(self) -> bool:
        return self._opened is not None or self.path == ":memory:" or Path(self.path).exists()

    @property
    def _connection(self) -> sqlite3.Connection:
        """The connection, opened when it is first asked for: what comes to nothing leaves no file."""
        if self._opened is None:
            connection = self._connected()
            try:
                self._open(connection, self._read_only)
            except BaseException:
                connection.close()
                raise
            self._opened = connection
        return self._opened

    def _connected(self) -> sqlite3.Connection:
        path, is_uri = self.path, False
        if self._read_only and not os.access(Path(path).resolve().parent, os.W_OK):
            # Even a reader makes a log beside the file. Where it cannot, nobody else writes there, or there is a log.
            log = Path(f"{path}-wal")
            if not log.is_file() or not log.stat().st_size:
                path, is_uri = f"{Path(path).resolve().as_uri()}?mode=ro&immutable=1", True
        return sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=is_uri)

    def _open(self, connection: sqlite3.Connection, read_only: bool) -> None:
        execute = connection.execute
        if execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            with _transaction(connection):
                self._create_or_refuse(connection)
        version = execute("PRAGMA user_version").fetchone()[0]
        if version != _SCHEMA_VERSION:
            raise InputError(
                f"{self.path}: cache of version {version}, this program reads {_SCHEMA_VERSION}; use another file"
            )
        if read_only:
            execute("PRAGMA query_only = ON")
        else:
            execute("PRAGMA journal_mode = WAL")
            execute("PRAGMA synchronous = NORMAL")

    def _create_or_refuse(self, connection: sqlite3.Connection) -> None:
        # Inside a write transaction: a second process that opens the new file at the same moment waits here.
        execute = connection.execute
        if execute("PRAGMA application_id").fetchone()[0] == _APPLICATION_ID:
            return
        if execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise InputError(f"{self.path}: is an SQLite file of something else, not a reply cache; name another file")
        execute(_SCHEMA)
        execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError:
            raise InputError(f"{self.path}: is no usable reply cache; move it away or name another file") from None
        except sqlite3.DatabaseError as error:
            if self.path != ":memory:" and Path(self.path).is_dir():
                raise InputError(f"{self.path}: is a folder; name a file") from None
            text = " ".join(str(error).split())
            if "not a database" in text or "malformed" in text:
                raise InputError(
                    f"{self.path}: is no usable reply cache ({text}); move it away or name another file"
                ) from None
            raise InputError(f"{self.path}: the reply cache cannot be used ({text})") from None

    def close(self) -> None:
        """Closes the file; what was put is in it."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get_many(self, keys: Sequence[str]) -> dict[str, Reply]:
        """The stored replies of those keys (hex) that have one."""
        found: dict[str, Reply] = {}
        with self._lock, self._explained():
            if not self._is_there():
                return found
            for start in range(0, len(keys), _LOOKUP_BLOCK):
                block = [bytes.fromhex(key) for key in keys[start : start + _LOOKUP_BLOCK]]
                marks = ",".join("?" * len(block))
                rows = self._connection.execute(f"SELECT key, reply FROM replies WHERE key IN ({marks})", block)
                found.update([(key.hex(), self._decode(key, text)) for key, text in rows])
        return found

    def absent(self, keys: Iterable[str]) -> list[str]:
        """Those of the keys (hex) that have no reply."""
        with self._lock, self._explained():
            if not self._is_there():
                return list(keys)
            found = "SELECT EXISTS (SELECT 1 FROM replies WHERE key = ?)"
            return [key for key in keys if not self._connection.execute(found, (bytes.fromhex(key),)).fetchone()[0]]

    def get(self, key: str) -> Reply | None:
        """The stored reply of one key, or None."""
        return self.get_many([key]).get(key)

    def put(self, request: Request, reply: Reply) -> Reply:
        """Stores an answer and returns the stored one: of two processes that asked the same, the first wins.

        Other replies (`Reply.is_answer`) are returned as they are and not stored.
        """
        if not reply.is_answer:
            return reply
        row = row_of(request, reply)
        with self._lock, self._explained():
            return self._insert(reply, row)

    def put_many(self, answered: Sequence[tuple[Request, Reply]]) -> list[Reply]:
        """Stores the answers of a block in one transaction: all or none of them; see `put`.

        Returns:
            the stored replies in the same order (those that are no answers as they are).
        """
        rows = [row_of(request, reply) if reply.is_answer else None for request, reply in answered]
        if not any(rows):
            return [reply for _, reply in answered]
        with self._lock, self._explained(), _transaction(self._connection):
            return [
                reply if row is None else self._insert(reply, row)
                for (_, reply), row in zip(answered, rows, strict=True)
            ]

    def _insert(self, reply: Reply, row: Row) -> Reply:
        cursor = self._connection.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?)", row)
        if cursor.rowcount:
            return reply
        stored = self._connection.execute("SELECT reply FROM replies WHERE key = ?", row[:1]).fetchone()
        return self._decode(row[0], stored[0]) if stored else reply

    def _decode(self, key: bytes, text: str) -> Reply:
        try:
            return decoded(text)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise self._damaged(key) from None

    def _damaged(self, key: bytes) -> FormatError:
        return FormatError(f"the reply of key {key.hex()} is damaged; prune it or name another file", path=self.path)

    def __len__(self) -> int:
        if not self._is_there():
            return 0
        with self._lock, self._explained():
            count: int = self._connection.execute("SELECT count(*) FROM replies").fetchone()[0]
            return count

    def entries(self, model: str | None = None) -> Iterator[CacheEntry]:
        """All stored replies (of one model), in the order in which they were stored."""
        last = 0
        while self._is_there():
            with self._lock, self._explained():
                rows = self._connection.execute(
                    "SELECT rowid, key, model, messages, replicate, reply FROM replies "
                    "WHERE rowid > ? AND (? IS NULL OR model = ?) ORDER BY rowid LIMIT 1000",
                    (last, model, model),
                ).fetchall()
            if not rows:
                return
            for row in rows:
                last = row[0]
                if tuple(map(type, row[1:])) != _TYPES:
                    # SQLite keeps what it is given, whatever the column.
                    raise FormatError(f"row {last} is no reply; move the file away or name another", path=self.path)
                key, name, messages, replicate, text = row[1:]
                yield CacheEntry(key.hex(), name, messages.hex(), replicate, self._decode(key, text))

    def counts(self) -> list[ModelCount]:
        """How many replies and tokens each model has, in order of the models' names."""
        if not self._is_there():
            return []
        with self._lock, self._explained():
            rows = self._connection.execute(
                "SELECT model, count(*), sum(json_extract(reply, '$.status') IS 'truncated'), "
                "sum(coalesce(json_extract(reply, '$.prompt_tokens'), 0)), "
                "sum(coalesce(json_extract(reply, '$.completion_tokens'), 0)), sum(size) "
                f"FROM {_READABLE} GROUP BY model ORDER BY model"
            ).fetchall()
        return [ModelCount(*row) for row in rows]

    def file_bytes(self) -> int:
        """The size of the file and its log on disk."""
        paths = [Path(self.path + suffix) for suffix in ("", "-wal")]
        return sum(path.stat().st_size for path in paths if path.is_file())

    def export(self, path: str | os.PathLike[str], model: str | None = None) -> int:
        """Writes the replies as JSON lines that the `scripted` backend replays; returns how many."""
        written = 0
        with atomic_writer(path) as stream:
            for entry in self.entries(model):
                try:
                    line = canonical_json(entry.as_json())
                    line.encode("utf-8")
                except ValueError:
                    # A number that JSON has not, or half a character.
                    raise self._damaged(bytes.fromhex(entry.key)) from None
                stream.write(line + "\n")
                written += 1
        return written

    def merge(self, others: Iterable[str | os.PathLike[str]]) -> int:
        """Takes over the replies of other caches whose keys are new; returns how many. The others stay as they are.

        Raises:
            InputError: one of the others is damaged; nothing of it was taken over.
        """
        added = 0
        for other in others:
            with (
                ReplyCache(other, read_only=True) as source,
                self._lock,
                self._explained(),
                _transaction(self._connection),
            ):
                for entry in source.entries():
                    row = (*map(bytes.fromhex, (entry.key, entry.messages)), entry.model, entry.replicate)
                    cursor = self._connection.execute(
                        "INSERT OR IGNORE INTO replies (key, messages, model, replicate, reply) VALUES (?, ?, ?, ?, ?)",
                        (*row, encoded(entry.reply)),
                    )
                    added += cursor.rowcount
        return added

    def prune(
        self,
        *,
        model: str | None = None,
        keys: Iterable[str] = (),
        everything: bool = False,
        truncated: bool = False,
    ) -> int:
        """Deletes the replies of a model, of some keys, or all, and gives the space back; returns how many.

        With `truncated`, of the model's (of all, where none is named) only those that were cut.
        """
        with self._lock, self._explained():
            with _transaction(self._connection):
                removed = 0
                if everything:
                    removed += self._connection.execute("DELETE FROM replies").rowcount
                if model is not None or truncated:
                    removed += self._connection.execute(
                        f"DELETE FROM replies WHERE rowid IN (SELECT row FROM {_READABLE} "
                        "WHERE (?1 IS NULL OR model = ?1) "
                        "AND (NOT ?2 OR json_extract(reply, '$.status') IS 'truncated'))",
                        (model, truncated),
                    ).rowcount
                for key in keys:
                    removed += self._connection.execute(
                        "DELETE FROM replies WHERE key = ?", (bytes.fromhex(key),)
                    ).rowcount
            self._connection.execute("VACUUM")
        return removed


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
