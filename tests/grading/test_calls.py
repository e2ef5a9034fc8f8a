"""Calls of the bank makers: retries as further draws, order independent of the replies, dry runs."""

from __future__ import annotations

from rubric_measures.grading.nuggetization import BankCall, Caller, ask_all, run_jobs, without_duplicates
from rubric_measures.models.base import CountingBackend, Reply, Request
from rubric_measures.models.running import LocalRunner
from rubric_measures.prompts.parsers import parse_rating
from rubric_measures.prompts.verdicts import Parsed
from rubric_measures.types.scales import Message
from tests.function_backend import FunctionBackend, caller_of


def ask(text: str) -> BankCall[int]:
    return BankCall((Message("user", text),), parse_rating)


def test_retries_are_further_draws() -> None:
    def answer(request: Request) -> str | Reply:
        text = request.messages[0].content
        if text == "down":
            return Reply(None, "failed", "connection lost")
        if text == "long":
            return Reply("4 because", "truncated", "cut after 2 tokens")
        return "4" if request.replicate == 1 or text == "good" else "hm"

    caller = caller_of(answer, retries=2)
    found = run_jobs(
        caller, [("all", ask_all(caller, [ask("good"), ask("second"), ask("down"), ask("good"), ask("long")]))]
    )
    assert found == {
        "all": [
            Parsed(4),
            Parsed(4),
            Parsed(None, "failed: connection lost"),
            Parsed(4),
            Parsed(None, "truncated: cut after 2 tokens"),
        ]
    }
    backend = caller.runner.backend
    assert isinstance(backend, FunctionBackend)
    asked = sorted((request.messages[0].content, request.replicate) for request in backend.seen)
    assert asked == [("down", 0), ("down", 1), ("down", 2), ("good", 0), ("long", 0), ("second", 0), ("second", 1)]
    assert {tuple(request.options.items()) for request in backend.seen} == {(("mode", "test"),)}
    assert (caller.stats.calls, caller.stats.shared) == (7, 1)


def test_a_prompt_that_does_not_fit_is_not_asked() -> None:
    backend = FunctionBackend(lambda request: "4", context=10)
    caller = Caller(LocalRunner(backend), {"max_tokens": 8})
    found = run_jobs(caller, [(1, ask_all(caller, [ask("two words"), ask("these are three")]))])
    # 2 + 8 tokens fit ten, 3 + 8 do not.
    assert found[1] == [
        Parsed(4),
        Parsed(None, "3 tokens and a reply of 8 do not fit the model's 10"),
    ]
    assert len(backend.seen) == 1


def test_a_dry_run_counts_and_asks_nobody() -> None:
    backend = FunctionBackend(lambda request: "4")
    dry = CountingBackend(backend)
    caller = Caller(LocalRunner(dry), retries=0)
    found = run_jobs(caller, [(1, ask_all(caller, [ask("two words"), ask("one")]))])
    assert [outcome.value for outcome in found[1]] == [None, None]
    assert (dry.calls, dry.prompt_tokens, backend.seen) == (2, 3, [])
    assert (dry.model, dry.options, dry.context_tokens) == ("function:test", {"mode": "test"}, None)


def test_duplicates_are_told_by_their_words() -> None:
    texts = [
        "What is tea?",
        "what is  TEA",
        "C++?",
        "C#?",
        "-5 °C",
        "5 °C",
        "well-known",
        "well known",
        "→",
        "⇒",
        "",
        "?",
    ]
    assert without_duplicates(texts) == ("What is tea?", "C++?", "C#?", "-5 °C", "5 °C", "well-known", "→", "⇒", "?")
