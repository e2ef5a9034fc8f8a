"""Calls of the bank makers: retries as further draws, equal questions once, order independent of the replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from rubric_measures.backends.base import Message, Reply, Request
from rubric_measures.errors import GradingError
from rubric_measures.prompts.parsers import parse_rating
from rubric_measures.test_bank.calls import Ask, Caller, Outcome, ask_all, normalised, without_duplicates


def ask(name: str, text: str) -> Ask[int]:
    return Ask((name, 0), (Message("user", text),), parse_rating)


def test_retries_are_further_draws_and_equal_questions_are_one_call() -> None:
    seen: list[tuple[str, int]] = []

    def complete(requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        for request in reversed(list(requests)):
            text = request.messages[0].content
            seen.append((text, request.replicate))
            if text == "down":
                yield request, Reply(None, "failed", "connection lost")
            else:
                yield request, Reply("4" if request.replicate == 1 or text == "good" else "hm")

    asks = [ask("a", "good"), ask("b", "second"), ask("c", "down"), ask("d", "good")]
    outcomes = ask_all(Caller("m", complete, retries=2), asks)
    assert list(outcomes.items()) == [
        (("a", 0), Outcome(4, "", 1)),
        (("b", 0), Outcome(4, "", 2)),
        (("c", 0), Outcome(None, "failed: connection lost", 3)),
        (("d", 0), Outcome(4, "", 1)),
    ]
    assert sorted(seen) == [("down", 0), ("down", 1), ("down", 2), ("good", 0), ("second", 0), ("second", 1)]


def test_a_request_without_reply_is_an_error() -> None:
    with pytest.raises(GradingError, match="1 requests were not answered"):
        ask_all(Caller("m", lambda requests: iter(())), [ask("a", "x")])


def test_normalised_texts() -> None:
    texts = ["What is tea?", "what is  TEA", "C++?", "C#?", "→", "⇒", "", "Tea – what is"]
    assert without_duplicates(texts) == ("What is tea?", "C++?", "→", "⇒", "Tea – what is")
    assert normalised("Ａ-b_c") == "a b c"
