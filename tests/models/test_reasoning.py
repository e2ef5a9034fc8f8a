"""Models that think before they reply, as an endpoint has them: no temperature, room to think, thoughts kept apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.cli import main
from rubric_measures.records.models import ItemGradeSet
from tests.models.test_end_to_end_http import endpoint, grades, model, says, sets, write_items, write_passages

pytest.importorskip("openai")
pytest.importorskip("aiohttp")

RULES = [says("4", "How long?"), says("1", "Who rules?")]
EXPECTED = {f"p{number}": {"How long?": 4, "Who rules?": 1} for number in range(10)}


def inputs(folder: Path) -> list[str]:
    passages = write_passages(folder, **{f"p{number}": f"passage {number}." for number in range(10)})
    return ["grade", passages, "--bank", write_items(folder, "How long?", "Who rules?")]


def details(entry: ItemGradeSet) -> dict[str, Any]:
    return entry.details or {}


@pytest.mark.parametrize("shows", ["reasoning_content", "think", ""])
def test_a_model_that_thinks_is_graded_with_the_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shows: str
) -> None:
    """It takes no temperature, calls the longest reply by its newer name, and thinks for 900 tokens."""
    out, prices = tmp_path / "out.jsonl", tmp_path / "prices.json"
    # 1 for a token shown, 10 for one written, 0.5 for one that the endpoint had in its cache.
    prices.write_text('{"warm": {"input": 1e6, "output": 1e7, "cached_input": 5e5}}')
    with model(tmp_path, *RULES, renamed=1, thoughts=900, shows_thoughts=shows) as server:
        command = [*inputs(tmp_path), *endpoint(server, "warm"), "-o", str(out), "--prices", str(prices)]
        assert main(command) == 0
        # Two refusals and a cut reply are how it becomes known; then each grade is one call.
        assert server.stats()["calls"] == 3 + 20
        said = capsys.readouterr().err
        assert said.count("takes no temperature of ours") == 1 and "truncated" not in said
        first = out.read_bytes()
        assert main(command) == 0
        assert server.stats()["calls"] == 3 + 20
    assert grades(out) == EXPECTED
    assert out.read_bytes() == first
    entry = sets(out)["p3"]
    assert dict(entry.answers) == {"q1/How long?": "4", "q1/Who rules?": "1"}
    kept = {item_id: str(found.get("thinking", "")) for item_id, found in details(entry).items()}
    assert all(thoughts.startswith("Maybe 2.") for thoughts in kept.values()) and len(kept) == (2 if shows else 0)
    calls = json.loads((tmp_path / "out.jsonl.manifest.json").read_text())["earlier_runs"][0]["calls"]
    # The reply that was cut was paid for as well: 11 tokens shown, 64 written.
    assert (calls["made"], calls["prompt_tokens"], calls["completion_tokens"]) == (20, 20 * 11 + 11, 20 * 903 + 64)
    assert (calls["reasoning_tokens"], calls["prefix_tokens"]) == (20 * 900, 20 * 8)
    assert calls["left_out"] == {"temperature": 20}
    # 231 shown, 160 of them at half the price; 18,124 written.
    assert calls["cost"] == pytest.approx(231 - 160 / 2 + 18_124 * 10)


def test_a_limit_on_the_cost_holds_for_a_model_that_thinks(tmp_path: Path) -> None:
    """By its longest reply a call costs some 1,400 at most, so all 20 would fit; with its thoughts it costs 9,041."""
    out, prices = tmp_path / "out.jsonl", tmp_path / "prices.json"
    prices.write_text('{"warm": {"input": 1e6, "output": 1e7}}')
    with model(tmp_path, *RULES, renamed=1, thoughts=900) as server:
        command = [*inputs(tmp_path), *endpoint(server, "warm"), "-o", str(out), "--prices", str(prices)]
        assert main([*command, "--max-cost", "30000"]) == 1
    paid = json.loads((tmp_path / "out.jsonl.manifest.json").read_text())["paid"]
    # The first call was cut once, for 651.
    assert (paid["made"], paid["cost"]) == (3, pytest.approx(3 * 9_041 + 651))


def test_a_reply_that_is_cut_is_asked_for_once_more_with_four_times_the_tokens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    with model(tmp_path, *RULES, thoughts=150) as server:
        # Without room to think it is the longest reply that has to do: 64, then 256.
        options = endpoint(server, thinking_tokens=0)
        command = [*inputs(tmp_path), *options, "-o", str(out)]
        assert main(command) == 0
        assert server.stats()["calls"] == 2 * 20
        assert main([*command, "--max-calls", "0"]) == 0
        assert grades(out) == EXPECTED
        assert {found["max_tokens"] for found in details(sets(out)["p0"]).values()} == {256}
        capsys.readouterr()
        # Four times 20 is not enough either: truncated, after two calls each, which are in the cache.
        short = [*inputs(tmp_path), *options, "--max-tokens", "20", "-o", str(tmp_path / "short.jsonl")]
        for calls in (40, 0):
            before = server.stats()["calls"]
            assert main(short) == 1
            assert server.stats()["calls"] == before + calls
            assert "20 of 20 are not graded: 20 truncated; replies that were cut need" in capsys.readouterr().err
        # Without retries it is asked once.
        before = server.stats()["calls"]
        assert main([*short[:-1], str(tmp_path / "once.jsonl"), "--retries", "0"]) == 1
        assert server.stats()["calls"] == before + 20


def test_a_reply_that_is_cut_in_a_batch_is_asked_for_once_more(tmp_path: Path) -> None:
    out, state = tmp_path / "out.jsonl", tmp_path / "batches.json"
    with model(tmp_path, *RULES, thoughts=150, batch_polls=0) as server:
        command = [*inputs(tmp_path), *endpoint(server, batch=state, poll=0.01), "-o", str(out)]
        assert main(command) == 0
        # 64 tokens were too few; the second batch has 256.
        assert set(server.stats()["answers"].values()) == {2}
    assert grades(out) == EXPECTED
    assert {found["max_tokens"] for found in details(sets(out)["p0"]).values()} == {256}
    assert not state.exists()


def test_room_to_think_fits_what_the_endpoint_takes(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with model(tmp_path, *RULES, thoughts=500, context=1500) as server:
        assert main([*inputs(tmp_path), *endpoint(server), "-o", str(out)]) == 0
        # A cut reply, and 4,160 and 2,112 tokens that were too many; 1,088 fit.
        assert server.stats()["calls"] == 3 + 20
    assert grades(out) == EXPECTED


def test_an_option_that_is_null_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    with model(tmp_path, *RULES) as server:
        bare = ["--option", "temperature=null", "--option", "max_tokens=null"]
        command = [*inputs(tmp_path), *endpoint(server, "warm"), *bare, "-o", str(out)]
        assert main(command) == 0
        assert server.stats()["calls"] == 20
        assert "temperature" not in capsys.readouterr().err
        # Replies at a model's own temperature may differ, so drawing several of them makes sense.
        assert main([*command[:-1], str(tmp_path / "drawn.jsonl"), "--replicates", "2"]) == 0
        assert main([*command[:-1], str(tmp_path / "no.jsonl"), "--option", "temperature=0.5"]) == 2
    assert grades(out) == EXPECTED
    assert sets(out)["p0"].llm_options["temperature"] is None
