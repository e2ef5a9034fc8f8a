"""The ledger of a cache: what calls took, by day, model and query, whoever made them; and who is making which now."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from functools import cache
from typing import NamedTuple

__all__ = ["TABLES", "LedgerRow", "Spent", "add_spent", "ledger_rows", "live_leases", "new_owner", "take_leases"]

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
