"""Tables of answers that cite their retrieved contexts as [1], [2], …: their sentences with what they cite."""

from __future__ import annotations

import logging
import re

from rubric_measures.api._answer_rows import Questions
from rubric_measures.base.errors import InputError, counted
from rubric_measures.base.words import sentence_ends
from rubric_measures.formats.reports import Answer, answer_doc_id

_LOG = logging.getLogger("rubric_measures")
_SETTINGS = ("measures", "columns")
_MARK = re.compile(r"\s*\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")
# A mark behind the stop is of the sentence that ends there.
_BEHIND = re.compile(rf"([.!?…。]+)((?:{_MARK.pattern})+)")


def answers_with_citations(asked: Questions) -> list[Answer]:
    """The answers in sentences, with the contexts that each cites: `[1]` is the first one of its row.

    A number that no context has is left out and counted.

    Raises:
        InputError: no row has contexts, or no answer cites one.
    """
    if not any(row.contexts for _, row in asked.answers.values()):
        text = "there are no retrieved contexts that answers could cite; name their column"
        raise InputError(text, settings=_SETTINGS)
    answers = []
    lost: list[str] = []
    for (query_id, run_id), (where, row) in asked.answers.items():
        contexts = [(f"context/{answer_doc_id(text)}", text) for text in row.contexts]
        sentences: list[str] = []
        citations: list[tuple[str, ...]] = []
        for sentence in _sentences(row.answer):
            numbers = [int(number) for mark in _MARK.findall(sentence) for number in re.findall(r"\d+", mark)]
            text = _MARK.sub("", sentence).strip()
            lost += [f"[{number}] at {where}" for number in numbers if not 0 < number <= len(contexts)]
            if text:
                sentences.append(text)
                cited = (contexts[number - 1][0] for number in numbers if 0 < number <= len(contexts))
                citations.append(tuple(dict.fromkeys(cited)))
        said = (" ".join(sentences), tuple(sentences), tuple(citations))
        answers.append(Answer(query_id, run_id, *said, tuple(dict(contexts).items())))
    if not any(cited for answer in answers for cited in answer.citations):
        raise InputError("no answer cites a context of its row; write [1] for the first one", settings=_SETTINGS)
    if lost:
        _LOG.warning("%s of no context left out (such as %s)", counted(len(lost), "citation"), lost[0])
    return answers


def _sentences(text: str) -> list[str]:
    """The sentences, with their marks before the stop."""
    text = _BEHIND.sub(lambda found: f"{found[2]}{found[1]}", text)
    ends = list(sentence_ends(text))
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
