"""The documents for nugget creation: by judgments, by direct grades, or all."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from rubric_measures import Grader
from rubric_measures.base.errors import InputError
from rubric_measures.grading.nuggetization import SourceSegment, related_segments
from rubric_measures.records.models import GradedPassage, QueryPassages


def passage(
    doc_id: str, text: str, judgment: int | None = None, grades: list[dict[str, Any]] | None = None
) -> GradedPassage:
    judgments = [] if judgment is None else [{"paragraphId": doc_id, "query": "q", "relevance": judgment}]
    return GradedPassage(doc_id=doc_id, text=text, paragraph_data={"judgments": judgments}, grades=grades)


def direct(label: int | None, llm: str = "m", prompt: str = "umbrela3", **more: Any) -> dict[str, Any]:
    return {
        "correctAnswered": bool(label), "answer": str(label), "self_ratings": label, "llm": llm,
        "prompt_info": {"prompt_class": prompt}, **more,
    }  # fmt: skip


def test_by_judgments_at_a_level(caplog: pytest.LogCaptureFixture) -> None:
    group = QueryPassages(
        "q", [passage("a", "A", 2), passage("b", "B", 0), passage("c", "C"), passage("d", "A", 1), passage("e", "E", 1)]
    )
    with caplog.at_level(logging.WARNING, "rubric_measures"):
        assert related_segments([group]) == {
            "q": [SourceSegment("a", "A"), SourceSegment("e", "E")]
        }  # d has the text of a
    assert caplog.messages == ["1 passages left out: no judgment"]
    assert related_segments([group], level=2) == {"q": [SourceSegment("a", "A")]}
    assert [segment.doc_id for segment in related_segments([group], by="all")["q"]] == ["a", "b", "c", "e"]


def test_by_direct_grades() -> None:
    group = QueryPassages(
        "q",
        [
            passage("a", "A", grades=[direct(2)]),
            passage("b", "B", grades=[direct(0)]),
            passage("c", "C", grades=[direct(None, correctAnswered=True, answer="Yes")]),
            passage("d", "D", grades=[direct(None, correctAnswered=False, status="unparsed")]),
            passage("e", "E", grades=[direct(None, correctAnswered=False, llm_response_error="timeout")]),
        ],
    )
    assert [segment.doc_id for segment in related_segments([group], by="direct")["q"]] == ["a", "c"]


def test_several_direct_graders_must_be_told_apart() -> None:
    group = QueryPassages("q", [passage("a", "A", grades=[direct(2), direct(0, llm="n"), direct(1, prompt="Thomas")])])
    with pytest.raises(InputError, match=r"model=m,prompt=Thomas,kind=direct; model=m,prompt=umbrela3,.*; model=n,"):
        related_segments([group], by="direct")
    assert related_segments([group], by="direct", grader=Grader("n")) == {"q": []}
    assert related_segments([group], by="direct", grader=Grader("m", "Thomas"))["q"] == [SourceSegment("a", "A")]
