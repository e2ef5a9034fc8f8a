"""The store of calls: one SQLite file, one row a call, which several processes may share.

A row is inserted when a call is about to be made, and says who makes it; it is filled when the call is answered. So the
rows are the reply cache, they say which calls are under way, and what was spent is a sum over them, whatever became of
the process that paid. The table and what is asked of it stand in `calls.sql`.
"""

from __future__ import annotations

import contextlib
import json
import operator
import os
import platform
import re
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from rubric_measures.base.errors import InputError, tell
from rubric_measures.base.files import is_gone, path_name, use_wal
from rubric_measures.base.json_text import Finite, damaged, parse_json, stored_rows
from rubric_measures.models.base import Reply, Request


class Spent(NamedTuple):
    """What some calls took.

    Attributes:
        calls: how many, those under way included.
        cost: what they cost, as far as it is known; those of the model that were made without a price cost what it says
            now.
        unknown: those of which nobody knows what they cost: they are under way, or their process died.
        known: of the calls to the model, the others.
        known_cost: what these cost.
        silent: of these, answers that neither cost anything nor say how many tokens they took.
        foreign: calls to other models without a price, whose cost is counted as 0.
    """

    calls: int = 0
    cost: Finite = 0.0
    unknown: int = 0
    known: int = 0
    known_cost: Finite = 0.0
    silent: int = 0
    foreign: int = 0

    def plus(self, other: Spent) -> Spent:
        """The sum of both."""
        return Spent(*map(operator.add, self, other))


class LedgerRow(NamedTuple):
    """What the calls of a day (UTC) to a model took; `cost` is None where there was no price.

    Calls of processes that died over them count as failed ones without a price.
    """

    day: str
    model: str
    calls: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    cost: Finite | None


class Taken(NamedTuple):
    """What became of calls that a run would make: they are its own now, or others make them, or have their reply.

    What is in none of the three is not allowed.
    """

    taken: set[str]
    elsewhere: set[str]
    answered: dict[str, Reply]


_HOST = platform.node().replace(":", "_")


def _is_alive(owner: str, until: float, now: float) -> bool:
    """Whether a run still makes the calls that it took: its time is not over, its process not known to be gone."""
    host, pid, _ = owner.split(":")
    return until >= now and (host != _HOST or os.name != "posix" or not is_gone(int(pid)))


class ModelCount(NamedTuple):
    """How much of a cache belongs to one model; `truncated` replies were cut, `characters` is the size of all."""

    model: str
    replies: int
    truncated: int
    prompt_tokens: int
    completion_tokens: int
    characters: int


@lru_cache(maxsize=4096)
def decoded(text: str) -> Reply:
    """A stored reply; equal ones, and of grades there are few, are one object.

    Raises:
        ValueError: the text is none.
    """
    reply = msgspec.convert(parse_json(text, lenient=True), Reply)
    if not reply.is_kept:
        raise ValueError
    return reply


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def encoded(reply: Reply) -> str:
    """A reply as it is stored: without what says nothing, and half a character as JSON says it."""
    said = {
        "completion_tokens": reply.completion_tokens,
        "prompt_tokens": reply.prompt_tokens,
        "raw": dict(reply.raw),
        **({} if reply.status == "ok" else {"error": reply.error, "status": reply.status}),
    }
    return _ENCODER.encode({"text": reply.text, **{name: value for name, value in said.items() if value}})


_APPLICATION_ID = 0x52_4D_43_31  # "RMC1": tells our files from other SQLite files
_SCHEMA_VERSION = 2
# A row of a call that is answered or under way: its number, key, owner, until when, and the reply.
_OwnedRow = tuple[int, bytes, Annotated[str, msgspec.Meta(pattern=r"^[^:]*:\d{1,9}:\w+$")] | None, float, str | None]
# Whether a sum is final, and the fields of what it makes.
_PaidRow = tuple[int, int, Finite, int, int, Finite, int, int]
# The statements of the store by name.
_SQL: Mapping[str, str] = dict(
    re.findall(
        r"^-- name: (\w+)\n(?:--[^\n]*\n)*(.*?)\s*(?=^-- name:|\Z)",
        Path(__file__).with_name("calls.sql").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)
_LOOKUP_BLOCK = 400
_BUSY_SECONDS = 60.0


class ReplyCache(contextlib.AbstractContextManager["ReplyCache"]):
    """Replies by request key, and the calls that are made for them. Only what is kept is stored (`Reply.is_kept`), raw.

    Every `put` is a transaction of its own, so a reply that was put survives the death of the process at any moment
    (write-ahead log, synchronous=NORMAL: a power cut may cost the last ones, never the file). Threads may share an
    object, processes a file on a local disk. Network file systems do not carry the log: give each worker a file of its
    own there and `merge` them.

    Args:
        path: the file; made with its folder where there is none. `:memory:` keeps nothing.
        read_only: open an existing file, and only read it.
        lease_seconds: how long a call that a process is making is left to it, since it last said that it is there.

    Attributes:
        path: the name of the file.
        is_shared: whether other processes may write to it.
        owner: who makes the calls that are taken here: the machine, the process, and a number of its own.

    Raises:
        InputError: the file cannot be opened, is no SQLite file, or belongs to something else.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False, lease_seconds: float = 60.0) -> None:
        self.path = path_name(path)
        self.is_shared = self.path != ":memory:" and not read_only
        self.owner = f"{_HOST}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._lease_seconds = lease_seconds
        self._leased: set[str] = set()  # calls that are ours to make
        self._lock = threading.RLock()
        if read_only and not (Path(self.path).is_file() and Path(self.path).stat().st_size):
            raise InputError(f"{self.path}: there is no such cache")
        with self._using(), contextlib.ExitStack() as stack:
            place = Path(self.path).resolve()
            if self.is_shared:
                place.parent.mkdir(parents=True, exist_ok=True)
            # Even a reader makes a log beside the file. Where it cannot, nobody else writes there.
            is_fixed = read_only and not (Path(f"{self.path}-wal").exists() or os.access(place.parent, os.W_OK))
            where = f"{place.as_uri()}?mode=ro&immutable=1" if is_fixed else self.path
            self._connection = sqlite3.connect(
                where, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=is_fixed
            )
            stack.callback(self._connection.close)
            self._open(read_only)
            stack.pop_all()

    @contextlib.contextmanager
    def _using(self) -> Iterator[None]:
        """Holds the lock of the cache; what SQLite cannot do is one error that names the file.

        The lock may be taken twice: what may still be paid is found in the transaction in which a call is taken.
        """
        with self._lock:
            try:
                yield
            except (UnicodeDecodeError, sqlite3.DatabaseError, OSError) as error:
                text = f"the reply cache cannot be used ({' '.join(str(error).split())})"
                raise InputError(f"{self.path}: {text}; mend that, move it away or name another file") from None

    def _open(self, read_only: bool) -> None:
        execute = self._connection.execute
        if execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            with self._connection:
                # A second process that opens the new file at the same moment waits here.
                execute("BEGIN IMMEDIATE")
                if execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
                    if execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                        what = "is an SQLite file of something else, not a reply cache"
                        raise InputError(f"{self.path}: {what}; name another file")
                    execute(_SQL["schema"])
                    execute(_SQL["index"])
                    execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                    execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        version = execute("PRAGMA user_version").fetchone()[0]
        if version != _SCHEMA_VERSION:
            raise InputError(
                f"{self.path}: cache of version {version}, this program reads {_SCHEMA_VERSION}; use another file"
            )
        if read_only:
            execute("PRAGMA query_only = ON")
        else:
            use_wal(self._connection, _BUSY_SECONDS)
            execute("PRAGMA synchronous = NORMAL")

    def __exit__(self, *_: object) -> None:
        with self._using():
            self._connection.close()

    def __del__(self) -> None:
        # Of a cache in memory that a runner made for itself.
        with contextlib.suppress(AttributeError):
            self._connection.close()

    def get_many(self, keys: Sequence[str]) -> dict[str, Reply]:
        """The stored replies of those keys (hex) that have one."""
        with self._using():
            found = self._of_keys(tuple[bytes, str], _SQL["replies"], keys)
            return {key.hex(): self._decode(reply) for key, reply in found}

    def _rows(self, kind: Any, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        with self._using():
            return stored_rows(kind, self._connection.execute(statement, values), self.path)

    def get(self, key: str) -> Reply | None:
        """The stored reply of one key, or None."""
        return self.get_many([key]).get(key)

    def put(self, request: Request, reply: Reply, *, cost: float | None = None) -> Reply:
        """Notes a call that was made, and stores its reply where it is kept. What `ask` did not take was not paid here.

        Args:
            request: what was asked.
            reply: what came back.
            cost: what the call cost; None where that is unknown.

        Returns:
            the stored reply: of two processes that asked the same, the first wins. A reply that is not kept comes back
            as it is.
        """
        key, text = bytes.fromhex(request.key), encoded(reply) if reply.is_kept else None
        values = not reply.is_answer, reply.prompt_tokens, reply.completion_tokens, cost, text
        self._leased.discard(request.key)
        with self._using():
            # While the call is the owner's, nobody else makes it.
            if self._connection.execute(_SQL["fill"], (*values, key, self.owner)).rowcount or text is None:
                return reply
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                if (stored := self.get(request.key)) is not None:
                    return stored
                self._connection.execute(_SQL["overtake"], (key,))
                self._add(request.key, request.model, request.replicate, reply)
        return reply

    def _add(self, key: str, model: str, replicate: int, reply: Reply) -> None:
        """Stores a reply that was not paid here."""
        numbers = not reply.is_answer, reply.prompt_tokens, reply.completion_tokens
        row = bytes.fromhex(key), model, *numbers, replicate, encoded(reply)
        self._connection.execute(_SQL["add"], row)

    def _decode(self, text: str) -> Reply:
        try:
            return decoded(text)
        except ValueError:
            raise damaged(self.path) from None

    def __len__(self) -> int:
        return sum(count for (count,) in self._rows(tuple[int], "SELECT count(*) FROM calls WHERE reply IS NOT NULL"))

    def entries(self) -> Iterator[tuple[str, str, int, Reply]]:
        """All stored replies, in the order in which they were asked for: key (hex), model, replicate, reply."""
        last = 0
        while rows := self._rows(tuple[int, bytes, str, int, str], _SQL["entries"], (last,)):
            for _, key, model, replicate, text in rows:
                yield key.hex(), model, replicate, self._decode(text)
            last = rows[-1][0]

    def ledger(self) -> list[LedgerRow]:
        """What was paid by all runs over this cache, by day and model.

        Calls with a price and without are rows of their own. Calls that a living process is making are not in it yet.
        """
        return self._rows(LedgerRow, _SQL["ledger"], (time.time(),))

    def paid(self, after: int, model: str, prices: tuple[float, float]) -> tuple[int, Spent, Spent]:
        """What was paid, from a row on.

        Args:
            after: the number of the row before, 0 for all.
            model: the model whose calls are told from those of others.
            prices: what a million tokens shown, and a million written, of it cost.

        Returns:
            the number of the last row before all that are under way; what the rows up to it took, which is final; what
            those after it took, as far as that is known.
        """
        with self._using():
            ((last,),) = self._rows(tuple[int], _SQL["last_final"], {"after": after, "now": time.time()})
            named = {"after": after, "last": last, "model": model, "shown": prices[0], "written": prices[1]}
            found = {row[0]: Spent(*row[1:]) for row in self._rows(_PaidRow, _SQL["paid"], named)}
            return last, found.get(True, Spent()), found.get(False, Spent())

    def ask(self, wanted: Sequence[Request], may: Callable[[], bool] | None = None) -> Taken:
        """Takes calls that are about to be made, so that no other process makes them; from now on they count as paid.

        Args:
            wanted: what it would ask next.
            may: is asked for each that nobody else makes or has made, whether it may be taken; None takes all.
        """
        found = Taken(set(), set(), {})
        with self._using(), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            # Which were made, or are being made, by others; a process never waits for itself.
            now, process, keys = time.time(), self.owner.rpartition(":")[0] + ":", [one.key for one in wanted]
            for row, key, other, until, reply in self._of_keys(_OwnedRow, _SQL["replies_and_owners"], keys):
                if reply is not None:
                    found.answered[key.hex()] = self._decode(reply)
                elif not other.startswith(process) and _is_alive(other, until, now):
                    found.elsewhere.add(key.hex())
                else:
                    self._connection.execute(_SQL["give_up"], (row,))
            until, day = time.time() + self._lease_seconds, datetime.now(UTC).date().isoformat()
            new = [
                (bytes.fromhex(key), one.model, self.owner, until, day, one.replicate)
                for one in wanted
                if (key := one.key) not in found.answered and key not in found.elsewhere and (may is None or may())
            ]
            self._connection.executemany(_SQL["ask"], new)
        found.taken.update([row[0].hex() for row in new])
        self._leased |= found.taken
        return found

    def _of_keys(self, kind: Any, text: str, keys: Sequence[str]) -> Iterator[Any]:
        """The rows that a statement finds for some keys (hex)."""
        for start in range(0, len(keys), _LOOKUP_BLOCK):
            block = [bytes.fromhex(key) for key in keys[start : start + _LOOKUP_BLOCK]]
            yield from self._rows(kind, text % ",".join("?" * len(block)), block)

    @contextlib.contextmanager
    def leasing(self) -> Iterator[None]:
        """Says now and then that calls which are taken inside are still made, as one may take an hour.

        At the end those without a reply are given back.
        """
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(self._lease_seconds / 4):
                with contextlib.suppress(Exception):
                    self.renew(list(self._leased))

        beats = threading.Thread(target=beat, name="rubric_measures-lease", daemon=True)
        if self.is_shared:
            beats.start()
        try:
            yield
        finally:
            ended.set()
            if self.is_shared:
                beats.join()
            self.release(list(self._leased))
            self._leased.clear()

    def renew(self, keys: Iterable[str]) -> None:
        """Says that some calls are still made."""
        self.release(keys, "renew", time.time() + self._lease_seconds)

    def release(self, keys: Iterable[str], statement: str = "release", *values: object) -> None:
        """Gives calls back, as they are not made here; or does something else with them."""
        if found := [(*values, bytes.fromhex(key), self.owner) for key in keys]:
            with self._using(), self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany(_SQL[statement], found)

    def forget(self, keys: Iterable[str]) -> None:
        """Drops replies, so that a further run asks for them anew; what they cost stays."""
        if self.is_shared:
            self.release(keys, "forget")

    def counts(self) -> list[ModelCount]:
        """How many replies and tokens each model has, in order of the models' names."""
        return self._rows(ModelCount, _SQL["counts"])

    def file_bytes(self) -> int:
        """The size of the file and its log on disk."""
        paths = [Path(self.path + suffix) for suffix in ("", "-wal")]
        return sum(path.stat().st_size for path in paths if path.is_file())

    def described(self) -> str:
        """What it holds, and what was paid for it by day and model: lines of cells with tabs between them."""
        from rubric_measures.base.tables import Column, Report, Table, columns, render

        held = Table(columns(ModelCount._fields), self.counts())
        lines = [*render(Report([held]), "tsv"), f"file bytes\t{self.file_bytes()}\n"]
        if rows := self.ledger():
            paid = Table([*columns(LedgerRow._fields[:-1]), Column("cost", places=6)], rows)
            lines += ["\n", *render(Report([paid]), "tsv")]
        return "".join(lines)

    def merge(self, others: Iterable[str | os.PathLike[str]]) -> int:
        """Takes over the replies of other caches whose keys are new; returns how many. The others stay as they are.

        Raises:
            InputError: one of the others is damaged; nothing of it was taken over.
        """
        added = 0
        for other in others:
            with ReplyCache(other, read_only=True) as source, self._using(), self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                for entry in source.entries():
                    if self.get(entry[0]) is None:
                        self._add(*entry)
                        added += 1
        tell(f"{added} replies added, {len(self)} in {self.path}")
        return added
