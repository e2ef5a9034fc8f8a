"""The store of replies: SQLite, one row a reply, and a ledger of what was spent.

The ledger of a cache: what calls took, by day, model and query, whoever made them; and who is making which now.

How replies lie in the cache: a row each, and how they are named when they are listed and exported.

The reply cache: one SQLite file that several processes may share; finished calls survive kill -9.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import platform
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from json.encoder import encode_basestring_ascii as _quoted
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Self

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import atomic_writer, path_name
from rubric_measures.base.json_text import parse_json
from rubric_measures.models.base import MOST_TOKENS, Reply, Request
from rubric_measures.types.entities import canonical_json

_KEY_BYTES = 32
# `priced` tells calls whose cost is known from those made without a price: their tokens can still be priced.
TABLES = (
    """CREATE TABLE ledger (
    day TEXT NOT NULL, model TEXT NOT NULL, query TEXT NOT NULL, priced INTEGER NOT NULL,
    calls INTEGER NOT NULL, failed INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cost REAL NOT NULL,
    PRIMARY KEY (day, model, query, priced)
) WITHOUT ROWID""",
    "CREATE TABLE leases (owner TEXT PRIMARY KEY, until REAL NOT NULL, keys BLOB NOT NULL)",
)


class Spent(NamedTuple):
    """What some calls to a model about a query took; `cost` only where they are `priced`."""

    model: str
    query: str
    priced: bool
    calls: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    cost: float


class LedgerRow(NamedTuple):
    """What the calls of a day (UTC), or about a query, to a model took; `cost` is None where there was no price."""

    day: str
    query: str
    model: str
    calls: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


def add_spent(connection: sqlite3.Connection, spent: Iterable[Spent]) -> None:
    """Adds what calls took to the ledger, inside of a transaction."""
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    connection.executemany(
        "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "calls = calls + excluded.calls, failed = failed + excluded.failed, "
        "prompt_tokens = prompt_tokens + excluded.prompt_tokens, "
        "completion_tokens = completion_tokens + excluded.completion_tokens, cost = cost + excluded.cost",
        [(day, *one) for one in spent],
    )


def ledger_rows(connection: sqlite3.Connection, by_query: bool = False) -> list[LedgerRow]:
    """The ledger by day (or query) and model; calls with a price and without are rows of their own."""
    columns, by = ("'', query", "query") if by_query else ("day, ''", "day")
    rows = connection.execute(
        f"SELECT {columns}, model, sum(calls), sum(failed), sum(prompt_tokens), sum(completion_tokens), "
        f"iif(priced, sum(cost), NULL) FROM ledger GROUP BY {by}, model, priced ORDER BY {by}, model, priced"
    )
    found = [LedgerRow(*row) for row in rows]
    # Limits are held against these sums, so a file that was damaged must not have them at any value.
    try:
        days = [date.fromisoformat(row.day) for row in found if not by_query]
    except (TypeError, ValueError):
        days = None
    if days is None or not all(isinstance(number, int) for row in found for number in row[3:7]):
        raise sqlite3.DatabaseError("the ledger is damaged")
    return found


@cache
def _host() -> str:
    return platform.node().replace(":", "_")


def new_owner() -> str:
    """A name for a run that takes leases: its machine, its process, and a number of its own."""
    return f"{_host()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def _is_alive(owner: str, until: float, now: float) -> bool:
    """Whether a run still makes the calls that it took: its time is not over, its process not known to be gone."""
    if until < now:
        return False
    host, pid, _ = owner.split(":")
    if host != _host() or os.name != "posix":
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def live_leases(connection: sqlite3.Connection, owner: str) -> set[bytes]:
    """The keys of the calls that other processes are making; drops the rows of those that are gone."""
    found: set[bytes] = set()
    now, process = time.time(), owner.rpartition(":")[0] + ":"
    for other, until, keys in connection.execute("SELECT owner, until, keys FROM leases").fetchall():
        # A process never waits for itself.
        if other.startswith(process):
            continue
        if _is_alive(other, until, now):
            found.update([keys[start : start + _KEY_BYTES] for start in range(0, len(keys), _KEY_BYTES)])
        else:
            connection.execute("DELETE FROM leases WHERE owner = ?", (other,))
    return found


def take_leases(
    connection: sqlite3.Connection,
    owner: str,
    held: Iterable[str],
    wanted: Sequence[str],
    room: Callable[[int], int],
    seconds: float,
) -> tuple[list[str], set[str]]:
    """Takes calls inside of a transaction; see `ReplyCache.lease`. A run's calls are one row: that is quick."""
    others = live_leases(connection, owner)
    elsewhere = {key for key in wanted if bytes.fromhex(key) in others} if others else set()
    # A run says what it is done with when it takes more; until then the replies, and the ledger, have it already.
    done = sum(connection.execute("SELECT EXISTS (SELECT 1 FROM replies WHERE key = ?)", (key,)).fetchone()[0]
               for key in others)  # fmt: skip
    taken = [key for key in wanted if key not in elsewhere][: max(0, room(len(others) - done))]
    keys = bytes.fromhex("".join([*held, *taken]))
    connection.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", (owner, time.time() + seconds, keys))
    return taken, elsewhere


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
            # What says that a reply was cut.
            **({} if reply.status == "ok" else {"status": reply.status, "error": reply.error}),
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
    fields = parse_json(text, lenient=True)
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


_LOG = logging.getLogger("rubric_measures")

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
# What key, model, hash of the messages, replicate and reply of a row are.
_TYPES = (bytes, str, bytes, int, str)
_LOOKUP_BLOCK = 400
_BUSY_SECONDS = 60.0


class _Using:
    """Holds the lock of a cache; what SQLite cannot do is one error that names the file. As a class it is entered fast.

    The lock may be taken twice: the room for leases is found with the ledger, in the same transaction.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._lock.release()
        if isinstance(error, UnicodeDecodeError | sqlite3.DatabaseError):
            raise InputError(f"{self._path}: {self._problem(error)}") from None

    def _problem(self, error: Exception) -> str:
        if isinstance(error, UnicodeDecodeError):
            return "is no usable reply cache; move it away or name another file"
        if self._path != ":memory:" and Path(self._path).is_dir():
            return "is a folder; name a file"
        text = " ".join(str(error).split())
        if "not a database" in text or "malformed" in text:
            return f"is no usable reply cache ({text}); move it away or name another file"
        return f"the reply cache cannot be used ({text})"


class ReplyCache:
    """Replies by request key. Only answers are stored (`Reply.is_answer`), raw: neither grades nor failed calls.

    Every `put` is a transaction of its own, so a reply that was put survives the death of the process at any moment
    (write-ahead log, synchronous=NORMAL: a power cut may cost the last ones, never the file). Threads may share an
    object, processes a file on a local disk. Network file systems do not carry the log: give each worker a file of its
    own there and `merge` them.

    Args:
        path: the file; made with its folder and the first reply where there is none. `:memory:` keeps nothing.
        read_only: open an existing file, and only read it; neither it nor its folder need be writable then.
        lease_seconds: how long a call that a process is making is left to it, since it last said that it is there.

    Raises:
        InputError: the file cannot be opened, is no SQLite file, or belongs to something else.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False, lease_seconds: float = 60.0) -> None:
        self.path = path_name(path)
        self._lease_seconds = lease_seconds
        self._inode: tuple[int, int] | None = None
        self._told_gone = False
        self._using = _Using(self.path)
        if read_only and not Path(self.path).is_file():
            raise InputError(f"{self.path}: there is no such cache")
        self._read_only = read_only
        self._opened: sqlite3.Connection | None = None
        if self._is_there():
            with self._using:
                self._connection  # noqa: B018 - opens the file, so that a wrong one is refused now
            return
        folder = next(one for one in Path(self.path).resolve().parents if one.exists())
        if not folder.is_dir():
            raise InputError(f"{self.path}: {folder} is no folder")
        if not os.access(folder, os.W_OK):
            raise InputError(f"{self.path}: the folder {folder} cannot be written")

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
            self._inode = self._inode_now()
        return self._opened

    def _inode_now(self) -> tuple[int, int] | None:
        try:
            found = Path(self.path).stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _say_gone(self) -> None:
        """Says once that the file was deleted or replaced while it was in use: what is put then goes nowhere."""
        if self._told_gone or self._opened is None or self._inode is None or self._inode_now() == self._inode:
            return
        self._told_gone = True
        text = "%s was deleted or replaced while it was in use: the replies of this run are in no cache when it ends"
        _LOG.warning(text, self.path)

    def _connected(self) -> sqlite3.Connection:
        path, is_uri = self.path, False
        if not self._read_only and path != ":memory:":
            try:
                Path(path).resolve().parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"{path}: its folder cannot be made ({error.strerror})") from None
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
        for table in (_SCHEMA, *TABLES):
            execute(table)
        execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    def close(self) -> None:
        """Closes the file; what was put is in it."""
        with self._using:
            if self._opened is not None:
                self._say_gone()
                self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get_many(self, keys: Sequence[str]) -> dict[str, Reply]:
        """The stored replies of those keys (hex) that have one."""
        found: dict[str, Reply] = {}
        with self._using:
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
        with self._using:
            if not self._is_there():
                return list(keys)
            found = "SELECT EXISTS (SELECT 1 FROM replies WHERE key = ?)"
            return [key for key in keys if not self._connection.execute(found, (bytes.fromhex(key),)).fetchone()[0]]

    def get(self, key: str) -> Reply | None:
        """The stored reply of one key, or None."""
        return self.get_many([key]).get(key)

    def put(self, request: Request, reply: Reply, spent: Sequence[Spent] = ()) -> Reply:
        """Stores an answer and returns the stored one: of two processes that asked the same, the first wins.

        Other replies (`Reply.is_answer`) are returned as they are and not stored. What calls took goes into the ledger
        in the same transaction.
        """
        if spent:
            return self.put_many([(request, reply)], spent)[0]
        if not reply.is_answer:
            return reply
        row = row_of(request, reply)
        with self._using:
            return self._insert(reply, row)

    def put_many(self, answered: Sequence[tuple[Request, Reply]], spent: Sequence[Spent] = ()) -> list[Reply]:
        """Stores the answers of a block in one transaction: all or none of them; see `put`.

        Returns:
            the stored replies in the same order (those that are no answers as they are).
        """
        rows = [row_of(request, reply) if reply.is_answer else None for request, reply in answered]
        if not any(rows) and not spent:
            return [reply for _, reply in answered]
        with self._using, _transaction(self._connection):
            if spent:
                add_spent(self._connection, spent)
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
        with self._using:
            count: int = self._connection.execute("SELECT count(*) FROM replies").fetchone()[0]
            return count

    def entries(self, model: str | None = None) -> Iterator[CacheEntry]:
        """All stored replies (of one model), in the order in which they were stored."""
        last = 0
        while self._is_there():
            with self._using:
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

    def ledger(self, by_query: bool = False) -> list[LedgerRow]:
        """What was paid by all runs over this cache, by day (or query) and model; what was pruned was paid, too."""
        with self._using:
            return ledger_rows(self._connection, by_query) if self._is_there() else []

    @property
    def is_written(self) -> bool:
        """Whether replies can be put into it."""
        return not self._read_only

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write to it at the same time."""
        return self.path != ":memory:" and not self._read_only

    def lease(
        self, owner: str, held: Iterable[str], wanted: Sequence[str], room: Callable[[int], int]
    ) -> tuple[list[str], set[str]]:
        """Takes calls that are about to be made, so that no other process makes them too.

        Args:
            owner: who takes them; see `new_owner`. From now on the run makes the `held` ones and those returned.
            held: the keys of the calls that it is making already, and still.
            wanted: the keys of those that it would make next.
            room: is told how many calls others are making, and says how many of the wanted ones may be taken.

        Returns:
            those of the wanted keys that are taken, and those whose calls others are making.
        """
        self._say_gone()
        with self._using, _transaction(self._connection):
            return take_leases(self._connection, owner, held, wanted, room, self._lease_seconds)

    def version(self) -> int:
        """A number that is another one as soon as another connection has written to the file."""
        with self._using:
            found: int = self._connection.execute("PRAGMA data_version").fetchone()[0] if self._is_there() else -1
            return found

    def made_elsewhere(self, owner: str, keys: Iterable[str]) -> set[str]:
        """Those of the keys whose calls other processes are making now."""
        with self._using, _transaction(self._connection):
            others = live_leases(self._connection, owner)
        return {key for key in keys if bytes.fromhex(key) in others}

    def renew(self, owner: str) -> float:
        """Says that a run is still there, and returns the seconds until it should say so again."""
        with self._using:
            until = time.time() + self._lease_seconds
            self._connection.execute("UPDATE leases SET until = ? WHERE owner = ?", (until, owner))
        return self._lease_seconds / 4

    def release(self, owner: str) -> None:
        """Gives all calls of a run back."""
        with self._using:
            self._connection.execute("DELETE FROM leases WHERE owner = ?", (owner,))

    def counts(self) -> list[ModelCount]:
        """How many replies and tokens each model has, in order of the models' names."""
        if not self._is_there():
            return []
        with self._using:
            return model_counts(self._connection)

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
                self._using,
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
        with self._using:
            with _transaction(self._connection):
                removed = 0
                if everything:
                    removed += self._connection.execute("DELETE FROM replies").rowcount
                if model is not None or truncated:
                    removed += delete_of(self._connection, model, truncated)
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
