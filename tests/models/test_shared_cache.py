"""One cache for several runs: what was paid, who makes which call, where it is asked; real servers and processes."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.formats.banks import write_bank
from rubric_measures.models.base import Reply, Request
from rubric_measures.models.replies import ReplyCache, Spent
from rubric_measures.models.running import Job, LocalRunner
from rubric_measures.records.models import GradedPassage, QueryPassages, load_graded, write_graded
from rubric_measures.types.entities import RubricItem
from rubric_measures.types.scales import Message
from tests.example_records import bank_from_items
from tests.fault_server import running
from tests.function_backend import FunctionBackend

pytest.importorskip("openai")
pytest.importorskip("aiohttp")


def inputs(folder: Path, passages: int = 30) -> list[str]:
    """A grade command over two queries with two questions each; the server's model answers everything with 4."""
    groups = [
        QueryPassages(f"q{n}", [GradedPassage(doc_id=f"d{i}", text=f"text {i} of {n}.") for i in range(passages // 2)])
        for n in (1, 2)
    ]
    write_graded(folder / "passages.jsonl.gz", groups)
    items = [RubricItem(f"q{n}/{i}", f"q{n}", f"What is {i} of {n}?") for n in (1, 2) for i in (1, 2)]
    write_bank(folder / "bank.jsonl", bank_from_items(items))
    (folder / "replies.jsonl").write_text('{"contains": "What is", "reply": "4"}\n', encoding="utf-8")
    (folder / "prices.json").write_text('{"m": {"input": 1000000, "output": 0}}', encoding="utf-8")
    return ["grade", str(folder / "passages.jsonl.gz"), "--bank", str(folder / "bank.jsonl"), "--model", "openai:m"]


def process(command: list[str], *more: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "rubric_measures", *command, *more]
    return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env={**os.environ, "OPENAI_API_KEY": "k"})


def statuses(path: Path) -> set[str]:
    found = set()
    for group in load_graded(path):
        for passage in group.passages:
            for entry in passage.exam_grades or ():
                found |= {"graded"} if not entry.item_status else set(entry.item_status.values())
    return found


def test_a_cache_waits_for_a_program_that_begins_with_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    ReplyCache(path).__exit__()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        # As long as nobody asked for the log beside the file SQLite lets nobody wait for it.
        other.execute("pragma journal_mode=delete")
        other.execute("begin immediate")
        done = threading.Timer(0.3, other.execute, ["rollback"])
        done.start()
        with ReplyCache(path) as cache:
            assert cache.get("00") is None
        done.join()


def test_two_processes_pay_each_call_once(tmp_path: Path) -> None:
    command = [*inputs(tmp_path, 60), "--cache", str(tmp_path / "new" / "folder" / "c.sqlite")]
    with running(replies=tmp_path / "replies.jsonl", delay=0.02) as server:
        asked = [*command, "--base-url", server.url, "--model-option", "concurrency=4"]
        both = [process(asked, "-o", str(tmp_path / f"{name}.jsonl")) for name in "ab"]
        notes = [one.communicate(timeout=120)[1] for one in both]
        assert [one.returncode for one in both] == [0, 0], notes
        assert server.stats()["calls"] == 120
    assert statuses(tmp_path / "a.jsonl") == statuses(tmp_path / "b.jsonl") == {"graded"}
    with ReplyCache(tmp_path / "new" / "folder" / "c.sqlite") as cache:
        assert sum(row.calls for row in cache.ledger()) == 120
        assert [reply.text for *_, reply in cache.entries()] == ["4"] * 120


AHEAD = 16  # calls that are handed to an endpoint of eight at a time, at most


def test_a_limit_holds_through_kill_9(tmp_path: Path) -> None:
    """What a killed run paid is in no reply; the limit knows it all the same."""
    command = [*inputs(tmp_path, 120), "--cache", str(tmp_path / "c.sqlite"), "-o", str(tmp_path / "o.jsonl")]
    with running(replies=tmp_path / "replies.jsonl", delay=0.05) as server:
        command += ["--base-url", server.url, "--model-option", "concurrency=8"]
        for kill in (1, 2):
            victim = process([*command, "--max-calls", "160"])
            while server.stats()["calls"] < 35 * kill:
                time.sleep(0.01)
                assert victim.poll() is None
            victim.send_signal(signal.SIGKILL)
            victim.communicate()
        assert main([*command, "--max-calls", "160"]) == 1
        # Calls that were lost are paid: 8 at most in flight at each kill, and as many on their way to the server.
        with ReplyCache(tmp_path / "c.sqlite") as cache:
            kept = len(cache)
        assert 160 - 2 * AHEAD <= kept <= server.stats()["calls"] <= 160
        # A run without a limit says what it sent, so that a later limit counts it.
        victim = process(command)
        while server.stats()["calls"] < 180:
            time.sleep(0.01)
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
        sent = server.stats()["calls"]
        assert main([*command, "--max-calls", str(sent)]) == 1
        assert sent <= server.stats()["calls"] <= sent + AHEAD
        assert main(command) == 0
        with ReplyCache(tmp_path / "c.sqlite") as cache:
            assert len(cache) == 240
        made = json.loads((tmp_path / "o.jsonl.manifest.json").read_text())["paid"]["made"]
        assert abs(made - server.stats()["calls"]) <= 3 * AHEAD


def ask(text: str) -> Request:
    return Request("function:test", (Message("user", text),), {"mode": "test"}, group=f"{text[0]}\tp")


def once(text: str) -> Job[str | None]:
    [reply] = yield [ask(text)]
    return reply.text


def test_the_time_of_a_process_that_nobody_can_see_runs_out(tmp_path: Path) -> None:
    a, b = ask("a"), ask("b")
    with ReplyCache(tmp_path / "c.sqlite", lease_seconds=0.3) as one, ReplyCache(tmp_path / "c.sqlite") as two:
        one.owner, two.owner = "elsewhere:1:a", "here:1:b"
        assert one.ask([a]) == ({a.key}, set(), {})
        assert two.ask([a, b]) == ({b.key}, {a.key}, {})
        time.sleep(0.2)
        one.renew([a.key])
        time.sleep(0.2)
        assert two.ask([a]).elsewhere == {a.key}
        time.sleep(0.2)
        assert two.ask([a]).taken == {a.key}
        # What is given back is free at once, and not paid; a call that was taken over is.
        two.release([a.key, b.key])
        assert one.ask([a, b], may=iter([False, True]).__next__).taken == {b.key}
        assert [row.calls for row in two.ledger()] == [1]
        one.put(b, Reply("4"))
        assert two.ask([b]).answered == {b.key: Reply("4")}
        # A second run of a process never waits for its first.
        assert two.ask([a]).taken == {a.key}
        two.owner = "here:1:c"
        assert two.ask([a]).taken == {a.key}


LATE = """
import sys
from rubric_measures.models.base import Reply
from rubric_measures.models.replies import ReplyCache
from tests.models.test_shared_cache import ask
path, lease, text = sys.argv[1:]
with ReplyCache(path, lease_seconds=float(lease)) as cache:
    print(len(cache.ask([ask("a")]).taken), flush=True)
    for word in sys.stdin:
        print(cache.put(ask("a"), Reply(text)).text, cache.get(ask("a").key).text, flush=True)
"""


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_owners_of_a_call_the_first_reply_wins(tmp_path: Path, first: int) -> None:
    """One process slept longer than its lease, so another one took its call over; both are answered."""
    path = str(tmp_path / "c.sqlite")
    both = []
    for lease, text in (("0.01", "slept"), ("60", "took over")):
        argv = [sys.executable, "-c", LATE, path, lease, text]
        one = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert one.stdout and one.stdout.readline() == "1\n"
        both.append(one)
        time.sleep(0.05)
    said = [both[place].communicate("put\n", timeout=60)[0] for place in (first, 1 - first)]
    wins = ("slept", "took over")[first]
    assert said == [f"{wins} {wins}\n"] * 2
    with ReplyCache(path) as cache:
        assert [reply.text for *_, reply in cache.entries()] == [wins]
        assert sum(row.calls for row in cache.ledger()) == 2


def test_calls_that_a_living_process_makes_are_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    backend = FunctionBackend(lambda request: request.messages[0].content)
    with ReplyCache(path, lease_seconds=0.5) as other, ReplyCache(path) as mine:
        # One call gets its reply there; the other is given up, as its process stops saying that it is there.
        other.owner = "elsewhere:1:a"
        other.ask([ask("a"), ask("b")])
        results = LocalRunner(backend, mine).run((text, once(text)) for text in "abc")
        assert next(results) == ("c", "c")
        other.put(ask("a"), Reply("theirs"))
        assert dict(results) == {"a": "theirs", "b": "b"}
    assert [request.messages[0].content for request in backend.seen] == ["c", "b"]


def test_calls_of_a_run_that_broke_are_free_at_once(tmp_path: Path) -> None:
    """In a notebook the process lives on: others are not to wait until its time runs out."""

    def broken(request: Request) -> str:
        raise OSError("no route to host")

    path = tmp_path / "c.sqlite"
    with ReplyCache(path) as mine, ReplyCache(path) as other:
        other.owner = "elsewhere:1:a"
        with pytest.raises(OSError, match="no route"):
            list(LocalRunner(FunctionBackend(broken), mine).run((text, once(text)) for text in "ab"))
        assert other.ask([ask("a"), ask("b")]).taken == {ask("a").key, ask("b").key}
        assert [row.calls for row in mine.ledger()] == []


def test_limits_hold_over_all_runs_of_a_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*inputs(tmp_path), "--cache", str(tmp_path / "c.sqlite"), "-o", str(tmp_path / "o.jsonl")]
    with running(replies=tmp_path / "replies.jsonl") as server:
        command += ["--base-url", server.url, "--model-option", "concurrency=2"]
        for _ in range(2):
            assert main([*command, "--max-calls", "7"]) == 1
            assert server.stats()["calls"] == 7
        said = capsys.readouterr().err
        assert "the limit of 7 calls was reached" in said
        assert main([*command, "--max-calls", "9"]) == 1
        assert server.stats()["calls"] == 9
        # Every call takes 11 tokens, for 1 each; those that were made without a price cost what it says now.
        assert main([*command, "--max-cost", "121", "--prices", str(tmp_path / "prices.json")]) == 1
        assert (calls := server.stats()["calls"]) == 10
        assert main([*command, "--max-cost", "121", "--prices", str(tmp_path / "prices.json")]) == 1
        assert server.stats()["calls"] == calls
        capsys.readouterr()
    assert main(["cache", "size", str(tmp_path / "c.sqlite")]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    start = next(place for place, line in enumerate(lines) if line[0] == "day")
    paid = [line[1:4] + line[-1:] for line in lines[start + 1 :]]
    assert paid == [["openai:m", "9", "0", "-"], ["openai:m", "1", "0", "11.000000"]]
    assert sum(int(line[1]) for line in paid) == calls


def test_a_server_that_moved_is_asked_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [*inputs(tmp_path), "--cache", str(tmp_path / "c.sqlite"), "-o", str(tmp_path / "o.jsonl")]
    with running(replies=tmp_path / "replies.jsonl") as one:
        assert main([*command, "--base-url", one.url]) == 0
        assert one.stats()["calls"] == 60
    with running(replies=tmp_path / "replies.jsonl") as two:
        assert main([*command, "--base-url", two.url]) == 0
        assert two.stats()["calls"] == 0
        # Other weights under the same name are another model.
        assert main([*command, "--base-url", two.url, "--model-option", "endpoint_name=lab"]) == 0
        assert two.stats()["calls"] == 60
    # With a full cache nobody is asked, so an address that is none is none's business.
    monkeypatch.setenv("OPENAI_BASE_URL", "EMPTY")
    assert main(command) == 0
    assert main([*command, "--cache", str(tmp_path / "other.sqlite")]) == 2


def test_the_ledger_has_every_kind_of_call(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with ReplyCache(path) as cache:
        cache.ask([ask("a"), ask("b"), ask("c")])
        cache.put(ask("a"), Reply("x", prompt_tokens=10, completion_tokens=2), cost=0.5)
        cache.put(ask("b"), Reply(None, "failed"), cost=0.0)
        cache.put(ask("c"), Reply("x", prompt_tokens=30, completion_tokens=6))
        # Its process died over it: what it cost is unknown.
        cache.owner = "elsewhere:1:a"
        cache.ask([ask("d")])
        assert sum(row.calls for row in cache.ledger()) == 3
    with ReplyCache(path, lease_seconds=-1) as cache:
        cache.owner = "elsewhere:1:a"
        cache.renew([ask("d").key])
        # What was paid was paid.
        model = "function:test"
        assert [row[1:] for row in cache.ledger()] == [(model, 2, 1, 30, 6, None), (model, 2, 1, 10, 2, 0.5)]
        last, final, rest = cache.paid(0, model, (1e6, 1e6))
        assert (last, rest, final[:3]) == (4, Spent(), (4, 36.5, 1))
    with ReplyCache(tmp_path / "other.sqlite") as other:
        other.ask([ask("e")])
        other.put(ask("e"), Reply("y"), cost=0.5)
        assert other.merge([path]) == 2
        assert sum(row.calls for row in other.ledger()) == 1
