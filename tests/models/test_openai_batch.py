"""The Batch API against a server that imitates files and batches; killed runs find their batches again."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rubric_measures.base.errors import FormatError
from rubric_measures.models.base import Reply, Request
from rubric_measures.models.openai import OpenAICompatible
from rubric_measures.models.running import Job, LocalRunner, Price, RunStats
from rubric_measures.types.scales import Message
from tests.fault_server import Running, running

openai = pytest.importorskip("openai")
pytest.importorskip("aiohttp")


@pytest.fixture
def server() -> Iterator[Running]:
    with running(batch_polls=2) as started:
        yield started


def batching(server: Running, state: Path, model: str = "m") -> OpenAICompatible:
    return OpenAICompatible(model, server.url, batch=state, poll=0.01)


def requests(texts: list[str], model: str = "openai:m") -> list[Request]:
    return [Request(model, (Message("user", text),), {"temperature": 0}) for text in texts]


def texts_of(answered: Iterator[tuple[Request, Reply]]) -> dict[str, str | None]:
    return {request.messages[0].content: reply.text for request, reply in answered}


def test_failures_are_records(server: Running, tmp_path: Path) -> None:
    asked = requests(["id=1", "faults=400 id=2", "faults=lost id=3", "faults=length id=4"])
    replies = {one.messages[0].content: reply for one, reply in batching(server, tmp_path / "b").complete(asked)}
    assert replies["id=1"].text == "echo 1"
    assert (replies["faults=400 id=2"].status, replies["faults=400 id=2"].text) == ("truncated", None)
    assert replies["faults=lost id=3"].status == "failed" and "run the same" in replies["faults=lost id=3"].error
    assert (replies["faults=length id=4"].status, replies["faults=length id=4"].text) == ("truncated", "echo 4")


def test_a_batch_learns_what_the_model_does_not_take(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    texts = [f"id={number}" for number in range(5)]
    asked = [Request("openai:warm", (Message("user", text),), {"temperature": 0, "max_tokens": 9}) for text in texts]
    with running(batch_polls=1, renamed=1) as server:
        backend = batching(server, tmp_path / "b", "warm")
        replies = [reply for _, reply in backend.complete(asked)]
        assert sorted(reply.text or "" for reply in replies) == [f"echo {number}" for number in range(5)]
        assert all(reply.raw["left_out"] == ["temperature"] for reply in replies)
        assert caplog.text.count("takes no temperature of ours") == 1
        with openai.OpenAI(api_key="k", base_url=server.url) as client:
            # Refused for one field, then for the other; what is known then is known to the next call.
            assert len(list(client.batches.list())) == 3
            assert (
                len(list(backend.complete([Request("openai:warm", (Message("user", "id=9"),), asked[0].options)]))) == 1
            )
            assert len(list(client.batches.list())) == 4
    assert not (tmp_path / "b").exists()


def test_a_killed_run_goes_on_with_its_batch(server: Running, tmp_path: Path) -> None:
    state = tmp_path / "batches.json"
    names = [f"id={number}" for number in range(20)]
    stream = batching(server, state).complete(requests(names))
    taken = texts_of(itertools.islice(stream, 5))
    stream.close()  # type: ignore[attr-defined]
    assert [entry["model"] for entry in json.loads(state.read_text())["batches"]] == ["m"]
    # The five are in the cache now; the others, and a new one, are asked again.
    left = [name for name in names if name not in taken]
    again = texts_of(batching(server, state).complete(requests([*left, "id=new"])))
    assert again == {f"id={n}": f"echo {n}" for n in [name[3:] for name in [*left, "id=new"]]}
    assert set(server.stats()["answers"].values()) == {1}


def test_a_batch_whose_id_was_not_noted_is_found_by_its_file(server: Running, tmp_path: Path) -> None:
    state = tmp_path / "batches.json"
    stream = batching(server, state).complete(requests(["id=1", "id=2"]))
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    noted = json.loads(state.read_text())
    noted["batches"][0]["batch"] = None
    state.write_text(json.dumps(noted))
    assert texts_of(batching(server, state).complete(requests(["id=1", "id=2"]))) == {
        "id=1": "echo 1",
        "id=2": "echo 2",
    }
    assert set(server.stats()["answers"].values()) == {1}
    assert not state.exists()


def test_batches_of_other_models_stay(server: Running, tmp_path: Path) -> None:
    state = tmp_path / "batches.json"
    other = {"file": "f", "batch": "b", "url": server.url, "model": "other"}
    state.write_text(json.dumps({"batches": [other]}))
    assert texts_of(batching(server, state).complete(requests(["id=1"]))) == {"id=1": "echo 1"}
    assert json.loads(state.read_text()) == {"batches": [other]}


def test_a_limit_on_the_cost_sizes_the_first_batch(server: Running, tmp_path: Path) -> None:
    """A batch takes hours, so the first one is no single request that finds out what a call costs."""

    def once(number: int) -> Job[str | None]:
        asked = Request("openai:m", (Message("user", f"id={number}"),), {"max_tokens": 4})
        [reply] = yield [asked]
        return reply.text

    stats = RunStats()
    price = Price(1e6, 1e6)  # 1 for each token
    runner = LocalRunner(batching(server, tmp_path / "b"), max_cost=300, price=price)
    results = dict(runner.run(((number, once(number)) for number in range(10, 100)), stats))
    # 5 bytes, a frame of 16 and 4 tokens written are 25 at most: 12 requests surely fit. Each costs 11 + 3 = 14; after
    # these 168, 9 more may be made (168 + 9 * 14 = 294).
    assert [number for number in results if results[number] is not None] == list(range(10, 31))
    assert (stats.calls, stats.cost, stats.missing) == (21, 294, 69)
    with openai.OpenAI(api_key="k", base_url=server.url) as client:
        assert len(list(client.batches.list())) == 2


def test_a_damaged_state_file_is_said_to_be(server: Running, tmp_path: Path) -> None:
    (tmp_path / "b").write_text("{}")
    with pytest.raises(FormatError, match="batches: required field is missing"):
        list(batching(server, tmp_path / "b").complete(requests(["id=1"])))
