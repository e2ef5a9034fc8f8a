"""The reply cache: real files, real processes, kill -9."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.models.base import Reply, Request
from rubric_measures.models.replies import ReplyCache
from rubric_measures.types.scales import Message


def request(text: str, **changes: object) -> Request:
    return Request(**{"model": "m", "messages": (Message("user", text),), **changes})  # type: ignore[arg-type]


def test_everything_that_may_change_the_reply_changes_the_key() -> None:
    asked = request("a")
    others = [
        request("b"),
        request("a", model="n"),
        request("a", options={"temperature": 1}),
        request("a", labels=("0",)),
        request("a", replicate=1),
        request("a", messages=(Message("system", "a"),)),
    ]
    assert len({asked.key, *(other.key for other in others)}) == 7
    assert asked.key == request("a", group="passage 7").key


@pytest.mark.parametrize("reply", [Reply(None), Reply(None, "truncated", "too long"), Reply(None, "failed", "timeout")])
def test_what_failed_is_not_kept(reply: Reply) -> None:
    assert not reply.is_answer
    with ReplyCache(":memory:") as cache:
        cache.ask([request("a")])
        assert cache.put(request("a"), reply) is reply
        assert (len(cache), cache.get(request("a").key)) == (0, None)
        # It was paid all the same.
        assert [row[1:4] for row in cache.ledger()] == [("m", 1, 1)]


@pytest.mark.parametrize("text", [None, "no"])
def test_a_refusal_is_kept(tmp_path: Path, text: str | None) -> None:
    refusal = Reply(text, "refused", "the model refused", 20, 3)
    with ReplyCache(tmp_path / "c.sqlite") as cache:
        cache.put(request("a"), refusal)
    with ReplyCache(tmp_path / "c.sqlite") as cache, ReplyCache(tmp_path / "d.sqlite") as other:
        assert cache.get(request("a").key) == refusal
        assert other.merge([cache.path]) == 1
        assert other.get(request("a").key) == refusal


def test_a_cut_reply_is_an_answer_and_comes_back_cut(tmp_path: Path) -> None:
    """The same request would be cut, and paid, again: the longest reply is in its key."""
    cut = Reply("5 because the", "truncated", "the reply was cut after 64 tokens", 30, 64, {"finish_reason": "length"})
    nothing_yet = Reply("", "truncated", "cut", 30, 64)
    with ReplyCache(tmp_path / "c.sqlite") as cache:
        assert cache.put(request("a"), cut) is cut
        assert cache.put(request("b"), nothing_yet) is nothing_yet
        cache.put(request("c"), Reply("4"))
    with ReplyCache(tmp_path / "c.sqlite") as cache:
        assert [cache.get(request(text).key) for text in "abc"] == [cut, nothing_yet, Reply("4")]
        # Of another process that asked the same, the first reply wins, whatever became of it.
        assert cache.put(request("a"), Reply("3")) == cut
        assert [(count.replies, count.truncated) for count in cache.counts()] == [(3, 2)]


def of_something_else() -> bytes:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE notes (text)")
        return connection.serialize()


DAMAGED = [b"not a database at all" * 100, b"SQLite format 3\x00" + b"\x07" * 4000, of_something_else()]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_is_one_line_and_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c.sqlite"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        ReplyCache(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


def test_folders_and_missing_files_are_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder"):
        ReplyCache(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="the reply cache cannot be used"):
        ReplyCache(tmp_path / "file" / "c.sqlite")
    with pytest.raises(InputError, match="no such cache"):
        ReplyCache(tmp_path / "c.sqlite", read_only=True)


def test_a_cache_that_is_only_looked_at_stays_as_it_is(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "c.sqlite") as cache:
        cache.put(request("a"), Reply("4"))
    with ReplyCache(tmp_path / "c.sqlite", read_only=True) as cache:
        with pytest.raises((InputError, sqlite3.OperationalError), match="readonly"):
            cache.put(request("b"), Reply("4"))
        assert cache.get(request("a").key) == Reply("4")


def test_a_cache_is_read_where_nothing_may_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ReplyCache(tmp_path / "c #1.sqlite") as cache:
        cache.put(request("a"), Reply("4"))
    # For a test that runs as root every folder is writable: then a log beside the file would show.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with ReplyCache(tmp_path / "c #1.sqlite", read_only=True) as cache:
        assert cache.get(request("a").key) == Reply("4")
        assert [path.name for path in tmp_path.iterdir()] == ["c #1.sqlite"]


@pytest.mark.parametrize("version", [1, 99])
def test_another_version_is_refused(tmp_path: Path, version: int) -> None:
    path = tmp_path / "c.sqlite"
    with ReplyCache(path) as cache:
        cache.put(request("a"), Reply("4"))
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with pytest.raises(InputError, match=f"version {version}, this program reads 2"):
        ReplyCache(path)


def test_a_damaged_reply_is_counted_and_named(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with ReplyCache(path) as cache:
        cache.put(request("a"), Reply("4"))
        cache.put(request("b"), Reply("4 be", "truncated", "cut", 7, 2))
        cache.put(request("c", model="n"), Reply("5", "truncated", "cut"))
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE calls SET reply = '{' WHERE key = ?", (bytes.fromhex(request("a").key),))
            connection.commit()
        assert [count[:4] for count in cache.counts()] == [("m", 2, 1, 7), ("n", 1, 1, 0)]
        with pytest.raises(FormatError, match="is damaged; go on with a copy"):
            cache.get(request("a").key)
