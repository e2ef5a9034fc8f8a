"""Long passages: chunks cover everything, fit, overlap; the frame is never cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubric_measures.grading.asking import Asking, Room, fit_passage, overlapping_chunks
from rubric_measures.models.base import Reply, Request
from rubric_measures.prompts.library import load_prompt
from rubric_measures.types.scales import Message


class Words:
    """A model whose tokens are words."""

    model = "words"
    options: Mapping[str, object] = {}

    def __init__(self, context_tokens: int | None) -> None:
        self.context_tokens = context_tokens

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        return iter([(request, Reply("5")) for request in requests])


FRAME = (Message("user", "is it said ?"),)  # 4 tokens, and 8 for the message


def chunked(text: str, room: int, overlap: float, count: Callable[[str], int]) -> tuple[str, ...]:
    return tuple(text[start:end] for start, end in overlapping_chunks(text, room, overlap, count))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8), min_size=1, max_size=60),
    st.integers(1, 20),
    st.floats(0, 0.9),
)
def test_chunks_fit_and_together_hold_every_word(words: list[str], room: int, overlap: float) -> None:
    chunks = chunked(" ".join(words), room, overlap, lambda text: len(text.split()))
    assert all(1 <= len(chunk.split()) <= room for chunk in chunks)
    # Every chunk continues within, or right behind, the words of the one before.
    covered = 0
    for chunk in chunks:
        part = chunk.split()
        starts = [start for start in range(covered + 1) if words[start : start + len(part)] == part]
        assert starts
        covered = max(covered, starts[-1] + len(part))
    assert covered == len(words)


def test_a_word_longer_than_the_room_is_cut_inside() -> None:
    chunks = chunked("x" * 10, 4, 0.0, len)
    assert chunks == ("xxxx", "xxxx", "xx")


@pytest.mark.parametrize("how", ["chunk", "truncate"])
def test_lines_that_are_quoted_are_counted_as_they_are_shown(how: str) -> None:
    """A page of questions and answers looks like the prompt's own parts, and each of its lines grows by a quote."""
    text = "\n".join(f"Question: what about {number} of them" for number in range(30))
    prompt = load_prompt("QuestionSelfRatedUnanswerablePromptWithChoices")

    def quoted(piece: str) -> str:
        return prompt.shown("context", piece)

    # Six words a line, seven with the quote; the first line stands behind the prompt's own `Context:`.
    assert (len(text.split()), len(quoted(text).split())) == (180, 209)
    fit = fit_passage(text, FRAME, 10, Room(Words(100)), Asking(long_passages=how), quoted)  # type: ignore[arg-type]
    # 100 - 4 - 8 - 10 = 78
    assert max(len(quoted(piece).split()) for piece in fit.pieces) in range(70, 79)
    assert fit_passage(text, FRAME, 10, Room(Words(231)), Asking(), quoted).pieces == (text,)
    assert len(fit_passage(text, FRAME, 10, Room(Words(230)), Asking(), quoted).pieces) == 2


def test_a_question_that_leaves_no_room_fails_and_is_not_cut() -> None:
    fit = fit_passage("w " * 30, FRAME, 10, Room(Words(30)), Asking())
    assert (fit.pieces, fit.status) == ((), "failed")
    assert "22 of the model's 30 tokens" in fit.note
