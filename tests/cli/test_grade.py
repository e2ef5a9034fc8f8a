"""The commands `grade` and `cache`: real processes, killed and interrupted; exit codes; what is printed where."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.models.replies import ReplyCache
from rubric_measures.records.models import grade_of_items, load_graded, provenance_of
from tests.fault_server import running
from tests.grading_data import write_inputs

RATING = "QuestionSelfRatedUnanswerablePromptWithChoices"


def arguments(passages: Path, bank: Path, out: Path | str, *more: str, model: str = "lexical") -> list[str]:
    return ["grade", str(passages), "--bank", str(bank), "--model", model, "-o", str(out), *more]


def start(arguments: list[str], **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "rubric_measures", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def stored(cache: Path) -> int:
    with contextlib.suppress(InputError), ReplyCache(cache, read_only=True) as opened:
        return len(opened)
    return 0


def wait_for(process: subprocess.Popen[str], cache: Path, replies: int) -> None:
    """Until the cache holds so many replies, or the process is at its end."""
    while process.poll() is None and stored(cache) < replies:
        time.sleep(0.01)


def table(path: Path, *lines: object) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return f"scripted:{path}"


def test_a_second_run_makes_no_call_and_writes_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    passages, bank = write_inputs(tmp_path)
    before = passages.read_bytes(), bank.read_bytes()
    assert main(arguments(passages, bank, tmp_path / "1.jsonl.gz", "--cache", str(tmp_path / "c"))) == 0
    assert "24 grades of 8 passages: 24 calls, 0 replies from the cache" in capsys.readouterr().err
    assert main(arguments(passages, bank, tmp_path / "2.jsonl.gz", "--cache", str(tmp_path / "c"))) == 0
    captured = capsys.readouterr()
    assert "24 grades of 8 passages: no calls, 24 replies from the cache" in captured.err
    assert captured.out == ""
    assert "was there" not in captured.err
    assert (tmp_path / "1.jsonl.gz").read_bytes() == (tmp_path / "2.jsonl.gz").read_bytes()
    assert main(arguments(passages, bank, tmp_path / "2.jsonl.gz", "--cache", str(tmp_path / "c"))) == 0
    assert "2.jsonl.gz: was there, and is replaced; to add grades to a file, name it as the" in capsys.readouterr().err
    assert (passages.read_bytes(), bank.read_bytes()) == before
    groups = load_graded(tmp_path / "1.jsonl.gz")
    assert [(group.query_id, len(group.passages)) for group in groups] == [("q0", 4), ("q1", 4)]
    assert all(
        len(grade_of_items(entry)) == 3 for group in groups for p in group.passages for entry in p.exam_grades or ()
    )


def test_killed_at_random_moments_it_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    passages, bank = write_inputs(tmp_path, queries=3, passages=100, items=10)
    whole, out = tmp_path / "whole.jsonl.gz", tmp_path / "out.jsonl.gz"
    assert main(arguments(passages, bank, whole)) == 0
    cache = Path(f"{out}.cache.sqlite")
    draw = random.Random(5)
    kept = 0
    for _ in range(3):
        with start(arguments(passages, bank, out)) as process:
            wait_for(process, cache, kept + draw.randrange(1, 600))
            process.send_signal(signal.SIGKILL)
        assert stored(cache) >= kept
        kept = stored(cache)
    with start(arguments(passages, bank, out)) as process:
        _, errors = process.communicate()
    assert process.returncode == 0
    assert f"{3000 - kept} calls, {kept} replies from the cache" in errors.replace("no calls", "0 calls")
    assert out.read_bytes() == whole.read_bytes()
    leftovers = [path.name for path in tmp_path.iterdir() if path.suffix == ".part"]
    assert len(leftovers) <= 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_its_like_keep_what_is_done_and_say_how_to_go_on(number: signal.Signals, tmp_path: Path) -> None:
    passages, bank = write_inputs(tmp_path, queries=3, passages=400, items=10)
    out = tmp_path / "out.jsonl.gz"
    cache = Path(f"{out}.cache.sqlite")
    before = signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    try:
        with start(arguments(passages, bank, out)) as process:
            wait_for(process, cache, 50)
            process.send_signal(number)
            _, errors = process.communicate()
    finally:
        signal.signal(number, before)
    assert process.returncode == 130
    assert f"{stored(cache)} calls of this run are in the cache: run again to continue" in errors
    assert "Traceback" not in errors
    assert not out.exists()
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".part"]


def test_ctrl_c_does_not_wait_for_calls_that_are_turned_away(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    pytest.importorskip("aiohttp")
    passages, bank = write_inputs(tmp_path, queries=1, passages=3, items=2)
    out = tmp_path / "out.jsonl.gz"
    with running(random_429=1.0) as server:
        command = arguments(
            passages, bank, out, "--base-url", server.url, "--model-option", "backoff=20", model="openai:m"
        )
        with start(command) as process:
            lines = iter(process.stderr.readline, "")
            waited = next(line for line in lines if "no reply for 10 s" in line)
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=5)
    assert "6 calls wait for another attempt: HTTP 429" in waited
    assert process.returncode == 130
    assert "run again to continue" in errors


def test_the_output_does_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    passages, bank = write_inputs(tmp_path)
    outputs = []
    for seed in ("1", "2"):
        out = tmp_path / f"{seed}.jsonl"
        with start(arguments(passages, bank, out), PYTHONHASHSEED=seed) as process:
            process.communicate()
        outputs.append(out.read_bytes())
    assert len(set(outputs)) == 1


def test_missing_grades_are_counted_by_status_and_the_code_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    passages, bank = write_inputs(tmp_path, queries=1, passages=3, items=1)
    model = table(
        tmp_path / "t.jsonl", {"contains": " 0.", "reply": "3"}, {"contains": " 1.", "reply": "hm"}, {"reply": None}
    )
    assert main(arguments(passages, bank, tmp_path / "o.jsonl", model=model)) == 1
    assert "2 of 3 are not graded: 1 failed, 1 unparsed" in capsys.readouterr().err
    manifest = json.loads((tmp_path / "o.jsonl.manifest.json").read_text())
    assert manifest["statuses"] == {"failed": 1, "graded": 1, "unparsed": 1}
    assert manifest["prompts"][RATING]["statuses"] == manifest["statuses"]
    assert manifest["calls"]["made"] == 3
    [passage, *_] = load_graded(tmp_path / "o.jsonl")[0].passages
    [entry] = passage.exam_grades or []
    assert provenance_of(entry)["signature"] == manifest["prompts"][RATING]["signature"]


def test_the_manifest_says_what_all_runs_over_the_cache_paid(tmp_path: Path) -> None:
    passages, bank = write_inputs(tmp_path)
    model = table(tmp_path / "t.jsonl", {"reply": "4", "prompt_tokens": 100, "completion_tokens": 2})
    (tmp_path / "p.json").write_text('{"scripted:t.jsonl": {"input": 1000, "output": 10000}}')
    out = tmp_path / "o.jsonl"
    command = arguments(passages, bank, out, "--prompt", RATING, "--prices", str(tmp_path / "p.json"), model=model)

    def manifest() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(Path(f"{out}.manifest.json").read_text())
        return found

    assert main([*command, "--max-calls", "10"]) == 1
    assert manifest()["calls"]["limit"] == "the limit of 10 calls was reached"
    assert main(command) == 0
    assert main(command) == 0
    found = manifest()
    # A call costs 100 / 1000 + 2 / 100 = 0.12; 10 and then 14 of them were made, the last run was answered from the
    # cache.
    assert found["calls"]["made"] == 0
    assert found["paid"] == {
        "made": 24,
        "failed": 0,
        "prompt_tokens": 2400,
        "completion_tokens": 48,
        "cost": pytest.approx(24 * 0.12),
    }
    # Another model with the same cache: its price is unknown.
    assert main(arguments(passages, bank, out)) == 0
    assert manifest()["paid"]["made"] == 48 and manifest()["paid"]["cost"] is None


def test_standard_output_keeps_only_the_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages, bank = write_inputs(tmp_path)
    lost = "the records go to standard output; nothing keeps what made the grades"
    assert main(arguments(passages, bank, "-")) == 0
    printed = capsys.readouterr()
    assert f"{lost}, nor the replies" in printed.err
    assert main(arguments(passages, bank, "-", "--cache", str(tmp_path / "c"))) == 0
    again = capsys.readouterr()
    assert again.out == printed.out and f"{lost}\n" in again.err
    assert main(arguments(passages, bank, tmp_path / "o.jsonl")) == 0
    assert (tmp_path / "o.jsonl").read_text() == printed.out


def test_dry_run_counts_and_prices_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages, bank = write_inputs(tmp_path)
    model = table(tmp_path / "t.jsonl", {"reply": "4", "prompt_tokens": 100, "completion_tokens": 1})
    cache = str(tmp_path / "c")
    more = ["--cache", cache, "--prompt", RATING]
    assert main(arguments(passages, bank, tmp_path / "o.jsonl", *more, "--passages-per-query", "1", model=model)) == 0
    before = sorted(path.name for path in tmp_path.iterdir())
    capsys.readouterr()
    (tmp_path / "p.json").write_text('{"scripted:t.jsonl": {"input": 1000000, "output": 0}}')
    assert main(arguments(passages, bank, tmp_path / "x.jsonl", *more, "--dry-run", model=model)) == 0
    header, row = capsys.readouterr().out.splitlines()
    cells = dict(zip(header.split("\t"), row.split("\t"), strict=True))
    assert (cells["calls"], cells["cached"], cells["cached_share"]) == ("18", "6", "0.250")
    assert cells["cost_at_most"] == "-"
    prices = ["--prices", str(tmp_path / "p.json")]
    assert main(arguments(passages, bank, tmp_path / "x.jsonl", *more, "--dry-run", *prices, model=model)) == 0
    cells = dict(zip(header.split("\t"), capsys.readouterr().out.splitlines()[1].split("\t"), strict=True))
    # The replies of a table are always the same: none is drawn again. One that is cut is asked for once more.
    assert float(cells["cost_of_calls"]) == float(cells["prompt_tokens"]) > 0
    assert float(cells["cost_at_most"]) == 2 * float(cells["cost_of_calls"])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, "p.json"])


def test_a_dry_run_counts_what_prompts_share_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two styles that extract by the same prompt and check the answer in different ways ask once for it."""
    passages, bank = write_inputs(tmp_path)
    classes = ["QuestionCompleteConcisePromptWithAnswerKey2", "QuestionCompleteConcisePromptWithT5VerifiedAnswerKey2"]
    entries = [json.loads(line) for line in bank.read_text().splitlines()]
    for entry in entries:
        for item in entry["items"]:
            item["gold_answers"] = ["the skin"]
    bank.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    model = table(tmp_path / "t.jsonl", {"reply": "unanswerable"})
    prompts = [part for name in classes for part in ("--prompt", name)]
    command = arguments(passages, bank, tmp_path / "o.jsonl", *prompts, model=model)
    assert main([*command, "--dry-run"]) == 0
    rows = [line.split("\t")[:4] for line in capsys.readouterr().out.splitlines()]
    assert rows == [
        ["prompt", "calls", "cached", "shared"],
        [classes[0], "24", "0", "0"],
        [classes[1], "0", "0", "24"],
    ]
    assert main(command) == 0
    assert "48 grades of 8 passages: 24 calls, " in capsys.readouterr().err


def test_cut_replies_are_paid_for_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages, bank = write_inputs(tmp_path)
    model = table(tmp_path / "t.jsonl", {"reply": "4 because", "status": "truncated", "error": "cut after 2 tokens"})
    cache = tmp_path / "c"
    more = ["--prompt", RATING, "--cache", str(cache)]
    assert main(arguments(passages, bank, tmp_path / "1.jsonl", *more, model=model)) == 0
    # Each is asked for once more with four times the tokens.
    captured = capsys.readouterr().err
    assert "24 grades of 8 passages: 48 calls (48 truncated), 0 replies from the cache" in captured
    assert "24 grades are of replies that were cut" in captured
    calls = json.loads((tmp_path / "1.jsonl.manifest.json").read_text())["calls"]
    assert (calls["made"], calls["failed"], calls["truncated"]) == (48, 0, 48)
    for name, extra in (("2.jsonl", []), ("3.jsonl", ["--max-calls", "0"])):
        assert main(arguments(passages, bank, tmp_path / name, *more, *extra, model=model)) == 0
        assert "no calls, 48 replies from the cache" in capsys.readouterr().err
        assert (tmp_path / name).read_bytes() == (tmp_path / "1.jsonl").read_bytes()
    # Another longest reply is another request.
    assert main(arguments(passages, bank, tmp_path / "4.jsonl", *more, "--max-tokens", "9", model=model)) == 0
    assert "48 calls (48 truncated)" in capsys.readouterr().err
    assert main(["cache", "size", str(cache)]) == 0
    header, row, *_ = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert dict(zip(header, row, strict=True))["truncated"] == "96"


def test_limits_stop_with_code_1_and_running_again_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    passages, bank = write_inputs(tmp_path)
    out = tmp_path / "o.jsonl"
    # The limit holds over all runs with this cache.
    for made in (10, 20):
        assert main(arguments(passages, bank, out, "--max-calls", str(made))) == 1
        errors = capsys.readouterr().err
        assert f"the limit of {made} calls was reached" in errors
        assert f"{24 - made} requests were not made" in errors
        assert f"{24 - made} of 24 are not graded: {24 - made} failed" in errors
        assert f"failed: not asked: the limit of {made} calls was reached" in errors
        # All passages are there; what was not asked is a record without a grade.
        entries = [entry for group in load_graded(out) for p in group.passages for entry in p.exam_grades or ()]
        assert len(entries) == 8
        assert sum(len(grade_of_items(entry)) for entry in entries) == made
        assert sum(len(entry.item_status or {}) for entry in entries) == 24 - made
    assert main(arguments(passages, bank, out, "--max-calls", "24")) == 0
    assert "4 calls, 20 replies from the cache" in capsys.readouterr().err
    whole = tmp_path / "whole.jsonl"
    assert main(arguments(passages, bank, whole)) == 0
    assert out.read_bytes() == whole.read_bytes()
    (tmp_path / "p.json").write_text('{"scripted:t.jsonl": {"input": 1000000, "output": 0}}')
    model = table(tmp_path / "t.jsonl", {"reply": "4", "prompt_tokens": 1})
    more = ["--prices", str(tmp_path / "p.json"), "--max-cost", "5"]
    assert main(arguments(passages, bank, tmp_path / "p.jsonl", *more, model=model)) == 1
    assert "limit of 5 on the cost" in capsys.readouterr().err
    assert stored(tmp_path / "p.jsonl.cache.sqlite") == 4


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (["--queries", "q7"], "unknown query 'q7'"),
        (["--queries", ","], "name at least one query, and a limit of at least 1 (--queries, --passages-per-query)"),
        (["--passages-per-query", "0"], "--passages-per-query"),
        (["--replicates", "3"], "--temperature"),
        (["--max-cost", "3"], "a limit on the cost needs a price"),
        (["--prices", "nosuch.json"], "rubric_measures: nosuch.json: cannot be read (No such file or directory)\n"),
        (["--option", "x"], "NAME=VALUE"),
        (["--option", "max_tokens=200"], "--max-tokens"),
        (["--model-option", "dtype=bf16"], "dtype"),
        (["--prompt", "Thoma"], "did you mean Thomas"),
        (["--prompt", "Thomas"], "LexicalCoverage"),
        (["--cache", "/dev/null/x"], "the reply cache cannot be used"),
        (["--actors", "2"], "actors would have no effect without the runner ray; leave it out (--actors, --runner)"),
        (["--ray-address", "auto"], "ray_address would have no effect without the runner ray"),
    ],
)
def test_wrong_options_are_one_line_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], expected: str
) -> None:
    passages, bank = write_inputs(tmp_path)
    out = tmp_path / "o.jsonl"
    assert main(arguments(passages, bank, out, *more)) == 2
    errors = capsys.readouterr().err
    assert expected in errors
    assert errors.count("\n") == 1
    assert not out.exists()


def test_without_ray_its_runner_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    passages, bank = write_inputs(tmp_path)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ray" else find(name))
    assert main(arguments(passages, bank, tmp_path / "o.jsonl", "--runner", "ray")) == 2
    assert capsys.readouterr().err == ("rubric_measures: ray is not installed; in the checkout: pip install '.[ray]'\n")


def test_what_is_wrong_in_the_last_line_is_found_before_the_first_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The night is not lost, and neither is what it cost: nothing was asked."""
    passages, bank = write_inputs(tmp_path, queries=3)
    lines = gzip.decompress(passages.read_bytes()) if passages.suffix == ".gz" else passages.read_bytes()
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(lines + b'["q2", [{"paragraph_id": 5, "text": "x"}]]\n')
    unknown = tmp_path / "unknown.jsonl"
    unknown.write_bytes(lines + b'["nobody", [{"paragraph_id": "a", "text": "x"}]]\n')
    # So is the text that a prompt shows of the last query.
    without = tmp_path / "without.jsonl"
    *entries, last = [json.loads(line) for line in bank.read_text().splitlines()]
    without.write_text("".join(json.dumps(entry) + "\n" for entry in [*entries, {**last, "query_text": ""}]))
    model = table(tmp_path / "replies.jsonl", {"reply": "4"})
    for path, of, said in (
        (bad, bank, "bad.jsonl:4"), (unknown, bank, "unknown.jsonl:4"), (passages, without, "'q2' has no text"),
    ):  # fmt: skip
        assert main(arguments(path, of, tmp_path / "o.jsonl", "--prompt", "FagB", model=model)) == 2
        assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("o.jsonl*"))


def test_the_cache_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages, bank = write_inputs(tmp_path)
    one, two = str(tmp_path / "1.sqlite"), str(tmp_path / "2.sqlite")
    assert main(arguments(passages, bank, tmp_path / "1.jsonl", "--cache", one, "--queries", "q0")) == 0
    assert main(arguments(passages, bank, tmp_path / "2.jsonl", "--cache", two)) == 0
    capsys.readouterr()
    assert main(["cache", "merge", one, two]) == 0
    assert "12 replies added, 24 in" in capsys.readouterr().err
    assert main(["cache", "size", one]) == 0
    assert capsys.readouterr().out.splitlines()[1].split("\t")[:2] == ["lexical:1", "24"]


@pytest.mark.parametrize("more", [["size", "no.sqlite"], ["merge", "c"], ["size", "c", "d"]])
def test_the_cache_command_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with ReplyCache("c"):
        pass
    assert main(["cache", *more]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_progress_is_shown_on_a_terminal_and_nowhere_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages, bank = write_inputs(tmp_path)
    terminal, end = os.openpty()
    termios.tcsetwinsize(end, (24, 200))
    command = [sys.executable, "-m", "rubric_measures", *arguments(passages, bank, tmp_path / "o.jsonl")]
    shown = b""
    with subprocess.Popen(command, stderr=end) as process:
        os.close(end)
        with contextlib.suppress(OSError):  # the terminal is gone when the process is
            while part := os.read(terminal, 65536):
                shown += part
    os.close(terminal)
    assert process.returncode == 0
    assert b"24/24" in shown
    assert b"calls=24" in shown
    assert main(arguments(passages, bank, tmp_path / "again.jsonl")) == 0
    assert capsys.readouterr().err.count("\n") == 1
