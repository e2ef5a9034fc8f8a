"""Calls of the bank makers: retries as further draws, order independent of the replies, dry runs."""

from __future__ import annotations

from typing import Any

from rubric_measures.grading.asking import Ask, Asking
from rubric_measures.grading.nuggetization import Caller, ask_all, without_duplicates
from rubric_measures.models.base import Reply, Request, Tally
from rubric_measures.models.running import LocalRunner
from rubric_measures.prompts.library import load_prompt
from rubric_measures.prompts.verdicts import Parsed
from rubric_measures.types.scales import Message
from tests.function_backend import FunctionBackend, caller_of


def asked(caller: Caller, *texts: str) -> list[Parsed[Any]]:
    """What a model says to some texts that are asked together."""
    asks = [Ask((Message("user", text),)) for text in texts]
    [found] = caller.run([("all", ask_all(caller.asker(load_prompt("bank.question.dl")), asks))]).values()
    return found


def test_unreadable_replies_are_drawn_again_and_lost_ones_are_left_for_the_next_run() -> None:
    def answer(request: Request) -> str | Reply:
        text = request.messages[0].content
        if text == "down":
            return Reply(None, "failed", "connection lost")
        if text == "long":
            return Reply("1. Why?\n2. How is", "truncated", "cut after 2 tokens")
        return '["Why?"]' if request.replicate == 1000 or text == "good" else "hm"

    caller = caller_of(answer, retries=2)
    assert asked(caller, "good", "second", "down", "good", "long") == [
        Parsed(("Why?",)),
        Parsed(("Why?",)),
        Parsed(None, "failed: connection lost"),
        Parsed(("Why?",)),
        # A list that was cut may lack an item, and half of one may stand in it.
        Parsed(None, "truncated: cut after 2 tokens"),
    ]
    backend = caller.runner.backend
    assert isinstance(backend, FunctionBackend)
    seen = sorted((request.messages[0].content, request.replicate) for request in backend.seen)
    assert seen == [("down", 0), ("good", 0), ("long", 0), ("long", 0), ("second", 0), ("second", 1000)]
    assert (caller.stats.calls, caller.stats.shared, caller.stats.redrawn) == (6, 1, 1)


def test_an_unreadable_reply_is_said_where_a_limit_forbids_another_draw() -> None:
    caller = Caller(LocalRunner(FunctionBackend(lambda request: "hm"), max_calls=1), Asking(retries=2))
    [alone] = asked(caller, "good")
    assert alone == Parsed(None, "no list of texts in the reply")
    # What was never asked is told apart from it.
    first, second = asked(Caller(LocalRunner(FunctionBackend(lambda request: "hm"), max_calls=1)), "one", "two")
    assert first == alone and second.reason == "failed: not asked: the limit of 1 calls was reached"


def test_a_prompt_that_does_not_fit_is_not_asked() -> None:
    backend = FunctionBackend(lambda request: '["Why?"]', context=18)
    caller = Caller(LocalRunner(backend), Asking(max_tokens=8))
    # 2 + 8 for the message + 8 tokens fit eighteen, 3 + 8 + 8 do not.
    assert asked(caller, "two words", "these are three") == [
        Parsed(("Why?",)),
        Parsed(None, "failed: it needs 19 of the model's 18 tokens"),
    ]
    assert len(backend.seen) == 1


def test_a_dry_run_counts_and_asks_nobody() -> None:
    backend = FunctionBackend(lambda request: "4")
    tally = Tally()
    caller = Caller(LocalRunner(backend, max_calls=0, tally=tally))
    assert [outcome.value for outcome in asked(caller, "two words", "one", "one")] == [None, None, None]
    assert (tally.calls, tally.repeated, tally.prompt_tokens, backend.seen) == (2, 1, 3, [])


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
