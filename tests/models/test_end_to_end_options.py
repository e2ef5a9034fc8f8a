"""Grading as users do it, behind HTTP: replicates, batches, constraints, published rules, long passages, caches."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rubric_measures.cli import main
from tests.models.test_end_to_end_http import (
    RATING,
    endpoint,
    grades,
    model,
    prompts_of,
    says,
    sets,
    write_items,
    write_passages,
)

pytest.importorskip("openai")
pytest.importorskip("aiohttp")


def test_batches_and_single_calls_make_the_same_grades(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    passages = write_passages(tmp_path, sun="about the sun", pope="about a pope")
    bank, out = write_items(tmp_path, "How long?", "Who rules?"), tmp_path / "graded.jsonl"
    state = tmp_path / "batches.json"
    rules = [says("5", "How long?", "sun"), says("2", "Who rules?", "pope"), says("0", "Question:")]
    with model(tmp_path, *rules, batch_polls=2) as server:
        # As with the official endpoint: its URL comes from the environment, and it wants a key.
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key")
        command = ["grade", passages, "--bank", bank, "--model", "openai:m", "-o", str(out)]
        batch = ["--model-option", f"batch={state}", "--model-option", "poll=0.01"]
        assert main([*command, *batch]) == 0
        assert "4 grades of 2 passages: 4 calls" in capsys.readouterr().err
        assert server.stats()["calls"] == 0
        first = out.read_bytes()
        assert main(command) == 0
        assert server.stats()["calls"] == 0
        assert main([*command, "--cache", str(tmp_path / "other")]) == 0
        assert server.stats()["calls"] == 4
    assert out.read_bytes() == first
    assert grades(out) == {"sun": {"How long?": 5, "Who rules?": 0}, "pope": {"How long?": 0, "Who rules?": 2}}
    assert not state.exists()
    assert all(b"sk-secret" not in path.read_bytes() for path in tmp_path.iterdir())


QUESTION = "Where in this very long passage is the needle that everybody looks for?"


def test_long_passages_are_chunked_cut_or_refused_and_the_question_is_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hay = " ".join(f"straw{number}" for number in range(400))
    passages = write_passages(tmp_path, long=f"{hay} NEEDLE {hay}", short="a NEEDLE")
    bank = write_items(tmp_path, QUESTION)
    with model(tmp_path, says("5", "NEEDLE"), says("0", "straw")) as server:
        # A token is four characters here; the prompt's own text and the reply leave room for about 200 of 500.
        command = ["grade", passages, "--bank", bank, *endpoint(server, context_tokens=500), "--prompt", RATING]
        assert main([*command, "-o", str(tmp_path / "chunk.jsonl")]) == 0
        chunks = [text for text in prompts_of(server) if "straw" in text]
        assert main([*command, "--long-passages", "truncate", "-o", str(tmp_path / "truncate.jsonl")]) == 0
        assert "1 grade is of passages or replies that were cut" in capsys.readouterr().err
        assert main([*command, "--long-passages", "refuse", "-o", str(tmp_path / "refuse.jsonl")]) == 1
        said = capsys.readouterr().err
        shown = prompts_of(server)
    assert "1 of 2 is not graded: 1 refused; passages that are too long are graded where long_passages is" in said
    assert "run again" not in said
    assert re.search(r"refused: the passage is too long: \d+ tokens, room for \d+ \(1\)", said)
    # Whatever became of the passage, the question was whole, and nothing was longer than the model takes.
    assert all(QUESTION in text and len(text) <= 4 * (500 - 64) for text in shown)
    assert {word for text in chunks for word in text.split() if word.startswith("straw")} == set(hay.split())
    assert len(chunks) > 3
    assert {name: grades(tmp_path / f"{name}.jsonl") for name in ("chunk", "truncate", "refuse")} == {
        "chunk": {"long": {QUESTION: 5}, "short": {QUESTION: 5}},
        "truncate": {"long": {QUESTION: 0}, "short": {QUESTION: 5}},
        "refuse": {"long": {}, "short": {QUESTION: 5}},
    }
    assert sets(tmp_path / "truncate.jsonl")["long"].item_status == {f"q1/{QUESTION}": "truncated"}


def test_costs_are_known_before_and_unknown_ones_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages, bank = write_passages(tmp_path, sun="the sun", moon="a moon"), write_items(tmp_path, "How long?")
    prices = tmp_path / "prices.json"
    with model(tmp_path, says("5", "the sun"), says("2", "a moon")) as server:
        command = ["grade", passages, "--bank", bank, *endpoint(server), "-o", str(tmp_path / "o.jsonl")]

        def planned(*more: str) -> dict[str, str]:
            assert main([*command, "--dry-run", *more]) == 0
            header, row = capsys.readouterr().out.splitlines()
            return dict(zip(header.split("\t"), row.split("\t"), strict=True))

        assert planned()["cost_at_most"] == "-"
        prices.write_text('{"another-model": {"input": 1, "output": 1}}')
        assert planned("--prices", str(prices))["cost_at_most"] == "-"
        prices.write_text('{"m": {"input": 1000, "output": 10000}}')
        found = planned("--prices", str(prices))
        # Two calls of at most 64 tokens each: 2 * 64 / 100; the tokens shown are a thousandth each.
        assert float(found["cost_of_calls"]) == pytest.approx(1.28 + int(found["prompt_tokens"]) / 1000)
        # Each reply may be cut, unreadable with four times the tokens, and is then drawn again once: thrice what
        # is shown, and 64 + 256 + 256 tokens written.
        most = 3 * int(found["prompt_tokens"]) / 1000 + 2 * (64 + 256 + 256) / 100
        assert float(found["cost_at_most"]) == pytest.approx(most, abs=1e-3)
        assert server.stats()["calls"] == 0
        assert main([*command, "--passages-per-query", "1"]) == 0
        capsys.readouterr()
        assert (planned()["calls"], planned()["cached"]) == ("1", "1")
        assert main([*command, "--max-cost", "1"]) == 2
        assert "a limit on the cost needs a price" in capsys.readouterr().err
        # One call costs 11 / 1000 + 3 / 100 = 0.041.
        more = ["--prices", str(prices), "--cache", str(tmp_path / "other")]
        assert main([*command, *more, "--max-cost", "0.05"]) == 1
        assert "the limit of 0.05 on the cost was reached" in capsys.readouterr().err
    manifest = json.loads((tmp_path / "o.jsonl.manifest.json").read_text())
    assert manifest["calls"]["cost"] == pytest.approx(0.041)
    assert manifest["statuses"] == {"failed": 1, "graded": 1}


def test_nothing_costs_more_than_a_dry_run_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each extracted answer is checked against forty gold answers: the checks cost far more than the calls."""
    verified = "QuestionCompleteConcisePromptWithT5VerifiedAnswerKey2"
    passages = write_passages(tmp_path, sun="about the sun", moon="about the moon")
    bank = write_items(tmp_path, "How long?", "Who?", gold=tuple(f"answer number {number}" for number in range(40)))
    prices = tmp_path / "prices.json"
    prices.write_text('{"m": {"input": 1000, "output": 1000}}')
    with model(tmp_path, says("no idea", "correct"), says("some thing", "")) as server:
        command = ["grade", passages, "--bank", bank, *endpoint(server), "--prompt", verified, "--retries", "2"]
        command += ["--prices", str(prices), "-o", str(tmp_path / "o.jsonl")]
        assert main([*command, "--dry-run"]) == 0
        header, row = (line.split("\t") for line in capsys.readouterr().out.splitlines())
        found = dict(zip(header, row, strict=True))
        assert (found["calls"], found["checks_at_most"]) == ("4", "160")
        assert server.stats()["calls"] == 0
        main(command)
    paid = json.loads((tmp_path / "o.jsonl.manifest.json").read_text())["calls"]
    # Four answers, equal in both passages, and for each gold answer a check that is unreadable and drawn twice again.
    assert paid["made"] == 4 + 2 * 40 * 3
    assert float(found["cost_of_calls"]) < paid["cost"] <= float(found["cost_at_most"])


def test_passages_that_an_endpoint_always_forbids_cost_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A firewall dislikes the first 21 passages: the others are graded, in the first run and every later one."""
    good = {f"a{number}": f"text {number}" for number in range(60)}
    bad = {f"b{number}": f"faults=403,always {number}" for number in range(21)}
    passages, bank = write_passages(tmp_path, **bad, **good), write_items(tmp_path, *(f"Item {n}?" for n in range(3)))
    with model(tmp_path, says("4", "")) as server:
        for _ in range(2):
            assert main(["grade", passages, "--bank", bank, *endpoint(server), "-o", str(tmp_path / "o.jsonl")]) == 1
            assert "63 of 243 are not graded: 63 failed" in capsys.readouterr().err
            found = grades(tmp_path / "o.jsonl")
            assert {doc_id for doc_id, of_items in found.items() if of_items} == good.keys()


def test_an_endpoint_that_accepts_no_call_ends_a_run_unless_the_cache_has_replies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The replies are of passages that come last: what is cached is looked up before the end."""
    (tmp_path / "late").mkdir()
    late = {f"b{number}": f"late text {number}" for number in range(5)}
    first = write_passages(tmp_path / "late", **late)
    every = write_passages(tmp_path, **{f"a{number}": f"text {number}" for number in range(300)}, **late)
    bank, out = write_items(tmp_path, "Item?"), tmp_path / "o.jsonl"
    with model(tmp_path, says("4", ""), accepts_for=5) as server:
        command = ["--bank", bank, *endpoint(server), "--cache", str(tmp_path / "c.sqlite"), "-o", str(out)]
        assert main(["grade", first, *command]) == 0
        capsys.readouterr()
        assert main(["grade", every, *command]) == 1
        said = capsys.readouterr().err
        assert "no call is accepted at all: HTTP 403: Forbidden" in said and "300 of 305 are not graded" in said
        assert {doc_id for doc_id, of_items in grades(out).items() if of_items} == late.keys()
        # With nothing in the cache that it ever accepted, the run ends in one line, with no file.
        out.unlink()
        calls = server.stats()["calls"]
        for cache in ([], ["--replicates", "2", "--temperature", "1"]):
            own = cache or ["--cache", str(tmp_path / "empty.sqlite")]
            assert main(["grade", every, *command, *own]) == 2
            said = capsys.readouterr().err
            assert said.count("\n") == 1 and "no call is accepted at all: HTTP 403" in said
            assert not out.exists()
        assert server.stats()["calls"] - calls < 2 * 200
