"""The backend for OpenAI-compatible endpoints against a real server process that misbehaves."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.base.errors import BackendError, InputError
from rubric_measures.grading.grader import GradingEngine, GradingReport
from rubric_measures.models import make_backend
from rubric_measures.models.base import Backend, Reply, Request
from rubric_measures.models.openai import OpenAICompatible
from rubric_measures.models.replies import ReplyCache
from rubric_measures.models.running import LocalRunner
from rubric_measures.types.scales import Message
from tests.fault_server import Running, running
from tests.grading_data import make_bank, make_groups

openai = pytest.importorskip("openai")
pytest.importorskip("aiohttp")


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as started:
        yield started


def backend(url: str, model: str = "m", **options: Any) -> OpenAICompatible:
    return OpenAICompatible(model, url, **{"backoff": 0.02, "timeout": 20, **options})


def request(text: str, made_by: Backend, group: str = "", labels: tuple[str, ...] = (), **options: Any) -> Request:
    return Request(made_by.model, (Message("user", text),), {**made_by.options, **options}, labels, group=group)


def ask(made_by: Backend, *texts: str, **options: Any) -> dict[str, Reply]:
    """Text -> reply; asserts that every request is answered exactly once."""
    asked = [request(text, made_by, **options) for text in texts]
    answered = list(made_by.complete(iter(asked)))
    assert Counter(one.key for one in asked) == Counter(one.key for one, _ in answered)
    return {one.messages[0].content: reply for one, reply in answered}


def test_a_reply_carries_text_tokens_and_origin(server: Running) -> None:
    assert ask(backend(server.url), "id=1")["id=1"] == Reply(
        "echo 1", "ok", "", 11, 3, {"finish_reason": "stop", "model": "m-2026", "system_fingerprint": "fp_1"}
    )


def test_named_as_on_the_command_line(server: Running) -> None:
    made = make_backend("openai:m", base_url=server.url + "/", concurrency=3)
    assert isinstance(made, Backend)
    assert made.model == "openai:m"
    assert make_backend("openai:m", endpoint_name="lab").model == "openai:m@endpoint:lab"
    assert (made.count_tokens("a" * 9), made.context_tokens) == (3, None)
    assert [made.count_tokens(text) for text in ("月" * 9, "ж" * 8, "ab月", "")] == [7, 4, 2, 0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base_url": "localhost:8000"}, "expected http://HOST"),
        ({"base_url": "http://127.0.0.1:9,http://127.0.0.1:8"}, "expected http://HOST"),
        ({"base_url": "http://127.0.0.1:99999"}, "expected http://HOST"),
        ({"base_url": "http://[::1"}, "expected http://HOST"),
        ({"base_url": "http://ada:secret@127.0.0.1:9/v1"}, "127.0.0.1:9/v1': it has a user name or a password in fr"),
        ({"structured": "maybe"}, "expected one of off"),
        ({"concurrency": 0}, "more than 0"),
        ({"timeout": 9, "colour": 1}, r"unknown setting 'colour': known: attempts, .* \(of the model"),
        ({"concurency": 1}, "did you mean concurrency"),
    ],
)
def test_settings_that_make_no_sense(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make_backend("openai:m", **options)


def test_a_client_that_is_too_old_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "__version__", "2.54.0")
    with pytest.raises(BackendError, match=r"^openai 2.54.0 is too old; pip install -U 'openai\[aiohttp\]>=3'$"):
        make_backend("openai:m", base_url="http://127.0.0.1:9/v1")


def test_the_official_endpoint_needs_a_key() -> None:
    official = OpenAICompatible("gpt-4o")
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        list(official.complete([request("x", official)]))


# ---- faults of single calls
@pytest.mark.parametrize(
    ("faults", "status", "text", "error"),
    [
        ("429,429,500", "ok", "echo 1", ""),
        ("reset,cut,garbage,list,empty", "ok", "echo 1", ""),
        ("503,502,inner:500,inner:429", "ok", "echo 1", ""),
        ("hang:2,hang:2", "ok", "echo 1", ""),
        ("reset,always", "failed", None, "no answer"),
        ("cut,always", "failed", None, "no answer"),
        ("garbage,always", "failed", None, "no JSON object"),
        ("empty,always", "failed", None, "no choices"),
        ("500,always", "failed", None, "HTTP 500: something broke"),
        ("hang:2,always", "failed", None, "no answer within 1 s"),
        ("400:context", "truncated", None, "maximum context length"),
        ("400:room,always", "truncated", None, "4050 input tokens"),
        ("400:filter", "refused", None, "content filter"),
        ("403:filter", "refused", None, "content filter"),
        ("403,always", "failed", None, "HTTP 403"),
        ("400,always", "failed", None, "HTTP 400"),
        ("refusal", "refused", "I cannot help with that.", "the model refused"),
        ("filtered", "refused", None, "content filter"),
        ("length", "truncated", "4 because of", "cut"),
        ("null,always", "failed", None, "no text"),
        ("null", "ok", "echo 1", ""),
        ("parts", "ok", "in parts", ""),
        ("400:tokens,always", "ok", "echo renamed", ""),
    ],
)
def test_one_fault(server: Running, faults: str, status: str, text: str | None, error: str) -> None:
    asked = f"faults={faults} id=1 {time.time_ns()}"
    # Only where the server hangs is the time to wait short: a busy machine may be slow to give any other answer.
    seconds = 1.0 if "hang" in faults else 60.0
    reply = ask(backend(server.url, timeout=seconds, attempts=6), asked, "id=other", max_tokens=5)[asked]
    assert (reply.status, reply.text) == (status, text)
    assert error in reply.error and "\n" not in reply.error
    assert reply.error or status == "ok"
    final = faults.startswith(("400", "403", "refusal", "filtered", "length"))
    attempts = 2 if "tokens" in faults else 1 if final else 6 if "always" in faults else None
    assert attempts in (None, server.stats()["attempts"][asked])


def test_the_first_call_finds_out_what_the_longest_reply_is_called() -> None:
    with running(renamed=1) as newer:
        texts = [f"id={number}" for number in range(40)]
        made = backend(newer.url, concurrency=8)
        found = ask(made, *texts, max_tokens=5)
        assert [found[text].text for text in texts] == [f"echo {number}" for number in range(40)]
        assert newer.stats()["calls"] == 1 + 40
        # Once a backend: what it knows outlives a run of calls.
        ask(made, "id=41", max_tokens=5)
        assert newer.stats()["calls"] == 1 + 41


def test_retry_after_is_honoured(server: Running) -> None:
    asked = f"faults=429:1 id=5 {time.time_ns()}"
    assert ask(backend(server.url), asked)[asked].text == "echo 5"
    stats = server.stats()
    first, second = [when for when, text in zip(stats["times"], stats["order"], strict=True) if text == asked]
    assert second - first >= 1.0


def test_a_storm_of_faults_loses_and_doubles_nothing(server: Running) -> None:
    # Without those that say that there are too many calls: on a busy machine the pace would be cut again and again.
    kinds = ("500", "reset", "cut", "garbage", "empty")
    faults = [",".join(kinds[(number + step) % 5] for step in range(number % 4)) for number in range(150)]
    texts = [f"faults={kind} id={number} storm" if kind else f"id={number} storm" for number, kind in enumerate(faults)]
    replies = ask(backend(server.url, attempts=12), *texts)
    assert {text: reply.text for text, reply in replies.items()} == {
        text: f"echo {number}" for number, text in enumerate(texts)
    }
    answers = server.stats()["answers"]
    assert [answers[text] for text in texts] == [1] * 150


# ---- what ends a run
def test_a_wrong_key_ends_the_run_at_once_and_is_not_repeated(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "wrong-key")
    before = server.stats()["calls"]
    with pytest.raises(BackendError, match="HTTP 401") as caught:
        ask(backend(server.url, concurrency=4), *(f"id={number}" for number in range(500)))
    assert "wrong-key" not in str(caught.value) and "\n" not in str(caught.value)
    assert server.stats()["calls"] - before <= 8


def test_no_server() -> None:
    with pytest.raises(BackendError, match="is the server running"):
        ask(backend("http://127.0.0.1:9/v1", attempts=2), "id=1")


def test_an_option_that_an_endpoint_does_not_take_ends_the_run() -> None:
    with running(most_tokens=100) as short:
        made = backend(short.url, concurrency=4)
        with pytest.raises(BackendError, match=r"100 calls in a row failed: HTTP 400: max_tokens is too large: 101"):
            ask(made, *(f"id={number}" for number in range(500)), max_tokens=101)
        assert ask(made, "id=1", max_tokens=100)["id=1"].status == "ok"


def test_a_wait_beyond_patience_ends_the_run(server: Running) -> None:
    with pytest.raises(BackendError, match="asks to wait"):
        ask(backend(server.url), "faults=429:86400 quota")


def test_an_outage_ends_the_run_and_keeps_what_was_answered() -> None:
    with running() as failing:
        made = backend(failing.url, concurrency=4, attempts=2)
        answered = 0
        with pytest.raises(BackendError, match="100 calls in a row failed"):
            for _, reply in made.complete(request(f"id={number}", made) for number in range(1000)):
                answered += reply.status == "ok"
                if answered == 50:
                    failing.get("/down/1")
        assert 50 <= answered <= 70


# ---- how requests are pulled and started


def test_grading_asks_a_server_passage_by_passage(tmp_path: Path) -> None:
    """All items and all prompts of a passage one after the other, in the order of the file: prefixes stay cached."""
    replies = tmp_path / "replies.jsonl"
    replies.write_text('{"contains": "", "reply": "1"}\n')
    bank, groups = make_bank(queries=2, items=5), make_groups(queries=2, passages=6)
    with running(replies=replies) as started, ReplyCache(":memory:") as cache:
        # One call at a time: with more, those in flight may overtake each other on their way.
        runner = LocalRunner(backend(started.url, concurrency=1), cache)
        grader = GradingEngine(runner.backend, bank, ("QuestionSelfRatedUnanswerablePromptWithChoices", "Thomas"))
        graded = list(grader.grade_records(groups, runner, GradingReport()))
        order = started.stats()["order"]
    assert [group.query_id for group in graded] == ["q0", "q1"]
    passages = [passage.text for group in groups for passage in group.passages]
    found = [next(number for number, text in enumerate(passages) if text in shown) for shown in order]
    # 12 passages, with 5 items and one label each.
    assert found == [number for number in range(12) for _ in range(6)]


# ---- constraints
@pytest.mark.parametrize("status", [400, 500])
def test_a_schema_may_be_refused_after_other_calls_were_answered(status: int, caplog: pytest.LogCaptureFixture) -> None:
    with running(no_schema=status) as server:
        made = backend(server.url)
        assert ask(made, "id=1")["id=1"].text == "echo 1"
        replies = ask(made, *(f"id={n}" for n in range(100)), labels=("4", "5"), structured="json_schema")
        assert {text: reply.text for text, reply in replies.items()} == {f"id={n}": f"echo {n}" for n in range(100)}
        # Whoever was refused meanwhile asks once more.
        assert server.stats()["calls"] <= 1 + 100 * (1 + status // 250)
    assert caplog.text.count("takes no response_format of ours") == 1


def test_scores_that_an_endpoint_refuses_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with running(no_logprobs=1) as server:
        made = backend(server.url, model="obedient", structured="choice+logprobs")
        replies = ask(made, *(f"rate {number}" for number in range(5)), labels=("4", "5"))
        # The first call finds out; it is sent again, and all others without.
        assert server.stats()["calls"] == 1 + 5
    assert {reply.text for reply in replies.values()} == {"4"}
    assert all(reply.raw["left_out"] == ["logprobs", "top_logprobs"] for reply in replies.values())
    assert "takes no logprobs of ours: it is left out, and grades come without shares (" in caplog.text
