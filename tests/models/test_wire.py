"""Bodies, replies and kinds of trouble of OpenAI-compatible endpoints, without a server; options that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_measures.cli import main
from rubric_measures.models import make_backend
from rubric_measures.models.base import Reply, Request, refuse_settings
from rubric_measures.models.wire import Endpoint, Trouble, retry_after
from rubric_measures.types.entities import canonical_json
from rubric_measures.types.scales import Message

MESSAGES = (Message("system", "You grade."), Message("user", "Rate it."))


reply_of, trouble_of = Endpoint("m", "u").reply_of, Endpoint("m", "u").trouble_of


def request(labels: tuple[str, ...] = (), replicate: int = 0, **options: object) -> Request:
    return Request("openai:m@u", MESSAGES, options, labels, replicate)


def test_a_schema_that_is_not_taken_is_left_out() -> None:
    endpoint = Endpoint("m", "u")
    assert endpoint.learn(400, "This response_format type is unavailable now", {"response_format": {}})
    for said in ("Structured output is not supported by this model", "no grammar engine", "bad JSON schema"):
        assert Endpoint("m", "u").learn(400, said, {"response_format": {}})
    held = Request("openai:m", MESSAGES, {"structured": "json_schema"}, ("0", "1"))
    assert "response_format" in Endpoint("m", "u").body(held) and "response_format" not in endpoint.body(held)


def test_another_replicate_draws_with_another_seed() -> None:
    assert Endpoint("m", "u").body(request(seed=40, replicate=2))["seed"] == 42
    assert "seed" not in Endpoint("m", "u").body(request(replicate=2))


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        *((finish, "ok") for finish in ("stop", None)),
        *((finish, "truncated") for finish in ("length", "MAX_TOKENS")),
        *((finish, "refused") for finish in ("content_filter", "SAFETY")),
        *((finish, "failure") for finish in ("abort", "error")),
    ],
)
def test_only_a_reply_that_ended_by_itself_is_ok(finish: str | None, expected: str) -> None:
    """Servers that stop, run out of time or break off say so in this field; half a reply must not be cached."""
    body = {"choices": [{"message": {"content": "4 of"}, "finish_reason": finish}]}
    found = reply_of(json.dumps(body), request())
    assert (found.status if isinstance(found, Reply) else found.kind) == expected
    if isinstance(found, Trouble):
        assert found.error == f"the endpoint broke the reply off (finish_reason {finish!r})"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        # The official endpoint counts thoughts among the tokens written, and says both parts.
        (
            {
                "prompt_tokens": 50, "completion_tokens": 90, "total_tokens": 140,
                "completion_tokens_details": {"reasoning_tokens": 80}, "prompt_tokens_details": {"cached_tokens": 40},
            },
            (50, 90, 80, 40),
        ),
        ({"prompt_tokens": 50, "completion_tokens": 90, "prompt_cache_hit_tokens": 20}, (50, 90, 0, 20)),
        # Elsewhere only the total has the thoughts, whether they are said or not.
        ({"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 140}, (50, 90, 85, 0)),
        (
            {
                "prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 140,
                "completion_tokens_details": {"reasoning_tokens": 85},
            },
            (50, 90, 85, 0),
        ),
        ({"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 7}}, (5, 1, 0, 5)),
        ({"total_tokens": 70}, (0, 0, 0, 0)),
    ],
)  # fmt: skip
def test_tokens_of_thoughts_and_of_the_endpoints_cache_are_counted(usage: Any, expected: tuple[int, ...]) -> None:
    found = reply_of(json.dumps({"choices": [{"message": {"content": "4"}}], "usage": usage}), request())
    assert isinstance(found, Reply)
    parts = (found.raw.get("reasoning_tokens", 0), found.raw.get("cached_tokens", 0))
    assert (found.prompt_tokens, found.completion_tokens, *parts) == expected


@pytest.mark.parametrize(
    ("message", "learned"),
    [
        ("Unsupported parameter: 'temperature' is not supported with this model.", True),
        ("Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is", True),
        ("`temperature` may only be set to 1 when thinking is enabled.", True),
        ("invalid temperature: only 1 is allowed for this model", True),
        ("temperature must be between 0 and 2", False),
        ("`temperature` has to be a strictly positive float", False),
    ],
)
def test_a_temperature_that_is_not_taken_is_left_out(message: str, learned: bool) -> None:
    endpoint, sent = Endpoint("m", "u"), {"temperature": 0.0, "max_tokens": 64}
    assert endpoint.learn(400, message, sent) == learned
    assert endpoint.left_out == ({"temperature"} if learned else set())
    # By its own body, each call learns once; other statuses are about something else.
    assert not endpoint.learn(400, message, {}) and not endpoint.learn(500, message, sent)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "message", "content", "text", "refusal", "finish_reason", "usage", "prompt_tokens", "error",
             "code", "logprobs", "top_logprobs", "token", "logprob", "type", "model"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(json_values, json_values, json_values)
def test_no_choice_breaks_the_reader_or_the_cache(message: Any, logprobs: Any, usage: Any) -> None:
    body = {"choices": [{"message": message, "logprobs": logprobs, "finish_reason": "stop"}], "usage": usage}
    found = reply_of(json.dumps(body), request(("1",)))
    if isinstance(found, Trouble):
        assert found.kind == "failure" and min(found.paid) >= 0
        return
    assert found.text != "None" or (isinstance(message, dict) and message.get("content") == "None")
    assert min(found.prompt_tokens, found.completion_tokens) >= 0
    canonical_json([found.text, dict(found.raw)]).encode()


@pytest.mark.parametrize(
    ("status", "error", "kind", "of_reply"),
    [
        (429, {"message": "slow down", "code": "rate_limit_exceeded"}, "busy", "failed"),
        (429, {"message": "no money", "code": "insufficient_quota"}, "hopeless", "failed"),
        (429, {"message": "Request too large for m"}, "final", "truncated"),
        (503, {}, "busy", "failed"),
        (500, {"message": "oh"}, "failure", "failed"),
        (401, {"message": "who?"}, "hopeless", "failed"),
        (404, {"message": "no such model"}, "hopeless", "failed"),
        (422, {"message": "`inputs` must have less than 1024 tokens. Given: 1100"}, "final", "truncated"),
        (400, {"message": "Invalid prompt: your prompt was flagged", "code": "invalid_prompt"}, "final", "refused"),
        (403, {"message": "Your chosen model requires moderation and your input was flagged"}, "final", "refused"),
        (403, {"message": "request blocked"}, "final", "failed"),
        (403, {"message": "m", "code": "content_filter"}, "final", "refused"),
        (400, {"message": "This model's maximum context length is 4096 tokens"}, "final", "truncated"),
        # The endpoint worked the length of the reply out: what the prompt leaves, which is less than nothing.
        (400, {"message": "max_tokens must be at least 1, got -200."}, "final", "truncated"),
        (400, {"message": "Range of input length should be [1, 30720]"}, "final", "truncated"),
        (400, {"message": "temperature must be 1"}, "final", "failed"),
    ],
)
def test_kinds_of_trouble(status: int, error: dict[str, str], kind: str, of_reply: str) -> None:
    found = trouble_of(status, {"error": error})
    assert (found.kind, found.status) == (kind, of_reply)
    # Some servers leave the outer object out, or send text.
    assert trouble_of(status, error) == found
    assert trouble_of(500, "<html>").error == "HTTP 500: <html>"


OVERFLOW = "This model's maximum context length is 4096 tokens. However, you requested "


@pytest.mark.parametrize(
    ("message", "status"),
    [
        # Prompt and reply together, or the prompt.
        (OVERFLOW + "5064 tokens (5000 in the messages, 64 in the completion).", "truncated"),
        (OVERFLOW + "100 output tokens and your prompt contains at least 3997 input tokens.", "truncated"),
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", "truncated"),
        (
            "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 64 `max_new_tokens`",
            "truncated",
        ),
        ("prompt is too long: 210000 tokens > 200000 maximum", "truncated"),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "truncated"),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 64. This model's maximum context length is 4096 "
            "tokens and your request has 4050 input tokens (64 > 4096 - 4050).",
            "truncated",
        ),
        # An option, which is wrong for all.
        ("max_tokens is too large: 50000. This model supports at most 16384 completion tokens.", "failed"),
        ("max_tokens: 50000 > 8192, which is the maximum allowed number of output tokens", "failed"),
        ("it has a maxOutputTokens value of 50000 but the supported range is from 1 to 8193", "failed"),
        ("temperature exceeds the maximum of 2", "failed"),
        ("Invalid 'top_p': decimal above maximum value.", "failed"),
        ("Unsupported parameter: 'max_tokens' is not supported with this model.", "failed"),
        ("Unsupported value: 'temperature' does not support 0 with this model.", "failed"),
    ],
)
def test_too_long_is_a_prompt_and_no_option(message: str, status: str) -> None:
    """A prompt that is too long is one passage's matter; an option that is wrong is everybody's."""
    found = trouble_of(400, {"error": {"message": message, "code": "context_length_exceeded"}})
    assert (found.kind, found.status, found.error) == ("final", status, f"HTTP 400: {message}")


def test_keys_are_left_out_of_messages() -> None:
    endpoint = Endpoint("m", "u", ("topsecret", ""))
    found = endpoint.trouble_of(401, {"error": {"message": "key topsecret is wrong\nBearer abc123def"}})
    assert found.error == "HTTP 401: key *** is wrong ***"
    assert Endpoint("m", "u", ("x",)).shown("max_tokens of key x in xml") == "max_tokens of key *** in xml"
    assert endpoint.shown("GET https://ada:pw@host/v1") == "GET https://***@host/v1"
    assert len(endpoint.shown("x" * 1000)) == 301


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Sat, 21 Nov 2026 12:00:30 GMT"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("concurrency=2", "concurrency is a setting of the model, not of a reply (--model-option)"),
        # Sent along, it would take the place of the model or the prompt that the records name.
        *((f"{name}=1", f"{name} is no generation option") for name in ("model", "n", "max_completion_tokens")),
        ("extra_body={}", "extra_body is no generation option"),
        ("temperature =1", "did you mean temperature"),
        # Endpoints ignore them in silence, and the records would name them all the same.
        *(
            (f"{wrong}=1", f"did you mean {right}")
            for wrong, right in (("temprature", "temperature"), ("top-p", "top_p"))
        ),
    ],
)
def test_what_is_no_option_is_said_before_any_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, said: str
) -> None:
    pytest.importorskip("openai")
    (tmp_path / "bank.jsonl").write_text(
        '{"query_id": "q", "items": [{"question_id": "1", "question_text": "Which?"}]}'
    )
    (tmp_path / "passages.jsonl").write_text('["q", [{"paragraph_id": "d", "text": "x"}]]\n')
    files = [str(tmp_path / "passages.jsonl"), "--bank", str(tmp_path / "bank.jsonl"), "-o", str(tmp_path / "o.jsonl")]
    model = ["--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--option", option]
    for extra in ([], ["--dry-run"]):
        assert main(["grade", *files, *model, *extra]) == 2
        err = capsys.readouterr().err
        assert said in err and err.count("\n") == 1
    assert not list(tmp_path.glob("o.jsonl*"))


def test_options_that_only_some_endpoint_knows_are_let_through() -> None:
    """Also such that only begin like a known one."""
    names = ["top_k", "min_tokens", "chat_template_kwargs", "dry_multiplier", "cfg_scale", "num_predict"]
    names += ["repetition_penalty_range", "typ_p", "min_length", "temp", "top_probs", "step"]
    refuse_settings(make_backend("lexical"), names)
