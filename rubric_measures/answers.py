"""Generated answers: read from report files, cut into passages at sentence ends."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from rubric_measures.errors import FormatError, InputError
from rubric_measures.files import iter_lines, path_name
from rubric_measures.formats.json_models import parse_json

__all__ = ["Answer", "Segment", "answer_segments", "read_answers", "split_answer"]

# A sentence ends at . ! ? … (with closing quotes and brackets) before white space, or at a blank line.
_SENTENCE_END = re.compile(r"""[.!?…]+["'”’)\]»]*(?=\s)|[。！？]["'”’)\]»」』]*|\n\s*(?=\n)""")
_ABBREVIATION = re.compile(r"(?:^|[\s(\[])(?:[A-Z]|Dr|Mr|Mrs|Ms|Prof|St|vs|cf|ca|e\.g|i\.e|Fig|fig|No|approx)\.$")


class Answer(NamedTuple):
    """What one system wrote for one query."""

    query_id: str
    run_id: str
    text: str


class Segment(NamedTuple):
    """A passage of an answer; `rank` is its place in the answer, from 1."""

    query_id: str
    run_id: str
    rank: int
    text: str


def split_answer(text: str, max_words: int = 400) -> list[str]:
    """Cuts a text into passages at sentence ends, in order, each as long as fits.

    Words are what white space separates; no word is lost, and no passage has more than `max_words` of them. Only a
    sentence that is longer than that is cut inside, at a word.

    Args:
        text: an answer; white space around passages is dropped, inside it stays.
        max_words: at least 1. The TREC RAG track allows answers of 400 words.

    Returns:
        The passages; none for a text without words.

    Raises:
        InputError: max_words is less than 1.
    """
    if max_words < 1:
        raise InputError(f"an answer cannot be cut into passages of {max_words} words; ask for 1 or more")
    passages: list[str] = []
    start = end = words = 0
    for stop in _sentence_ends(text):
        more = len(text[end:stop].split())
        if words and words + more > max_words:
            passages.append(text[start:end].strip())
            start, words = end, 0
        if more > max_words:
            # `start` is `end` here: whatever came before has just been closed.
            *full, rest = _cut_words(text[start:stop].strip(), max_words)
            passages += full
            start = stop - len(rest) - (len(text[start:stop]) - len(text[start:stop].rstrip()))
            more = len(rest.split())
        words += more
        end = stop
    last = text[start:].strip()
    return [*passages, last] if last else passages


def _sentence_ends(text: str) -> Iterator[int]:
    for match in _SENTENCE_END.finditer(text):
        after = text[match.end() :].lstrip()[:1] if match.end() < len(text) else ""
        blank_line = match[0].isspace()
        if not blank_line and (after.islower() or _ABBREVIATION.search(text, max(0, match.start() - 12), match.end())):
            continue
        yield match.end()
    yield len(text)


def _cut_words(text: str, max_words: int) -> list[str]:
    """Pieces of at most `max_words` words, cut at white space."""
    starts = [match.start() for match in re.finditer(r"\S+", text)][::max_words]
    return [text[start:stop].strip() for start, stop in zip(starts, [*starts[1:], len(text)], strict=True)]


def answer_segments(answers: Iterable[Answer], max_words: int = 400) -> Iterator[Segment]:
    """The passages of answers, each answer's in order.

    Raises:
        InputError: max_words is less than 1.
    """
    for answer in answers:
        for rank, text in enumerate(split_answer(answer.text, max_words), 1):
            yield Segment(answer.query_id, answer.run_id, rank, text)


def read_answers(path: str | os.PathLike[str]) -> list[Answer]:
    """The answers of a report file (TREC RAG, RAGTIME, DRAGUN, Auto-Judge): JSON lines, one object a topic and run.

    The text is the sentences joined by one space.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when a run answers a query twice, or there are no answers.
    """
    name = path_name(path)
    answers: list[Answer] = []
    seen: dict[tuple[str, str], int] = {}
    for line, data in iter_lines(name):
        answer = _answer(parse_json(data, path=name, line=line), name, line)
        before = seen.setdefault(answer[:2], line)
        if before != line:
            raise FormatError(
                f"run {answer.run_id!r} has answered query {answer.query_id!r} in line {before}", path=name, line=line
            )
        answers.append(answer)
    if not answers:
        raise FormatError("holds no answers", path=name)
    return answers


def _answer(report: Any, name: str, line: int) -> Answer:
    if not isinstance(report, dict):
        raise FormatError("expected an object {metadata, answer or responses}", path=name, line=line)
    metadata = report.get("metadata")
    places = [metadata if isinstance(metadata, dict) else {}, report]
    run_id = next((place["run_id"] for place in places if place.get("run_id") is not None), None)
    topics = ("topic_id", "narrative_id")
    query_id = next((place[key] for place in places for key in topics if place.get(key) is not None), None)
    if isinstance(query_id, int) and not isinstance(query_id, bool):
        query_id = str(query_id)
    for what, value in (("run_id", run_id), ("topic_id", query_id)):
        if not isinstance(value, str) or not value:
            raise FormatError(f"expected text in {what}", path=name, line=line, field=f"metadata.{what}")
    key = "answer" if "answer" in report else "responses"
    sentences = report.get(key)
    if not isinstance(sentences, list):
        raise FormatError("expected a list of {text, citations}", path=name, line=line, field=key)
    texts = []
    for index, sentence in enumerate(sentences):
        text = sentence.get("text") if isinstance(sentence, dict) else None
        if not isinstance(text, str):
            raise FormatError("expected text", path=name, line=line, field=f"{key}[{index}].text")
        texts.append(text)
    return Answer(str(query_id), str(run_id), " ".join(texts))
