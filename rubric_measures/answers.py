"""Generated answers: cut into passages at sentence ends, or whole; what is empty, missing or too long is counted."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rubric_measures.errors import InputError
from rubric_measures.formats.reports import Answer, read_answers
from rubric_measures.formats.topics import Topic, length_of, limit_for

__all__ = [
    "Answer",
    "AnswerCheck",
    "Segment",
    "TooLong",
    "answer_lengths",
    "answer_segments",
    "check_answers",
    "read_answers",
    "say_answer_check",
    "split_answer",
]

_LOG = logging.getLogger("rubric_measures")

# A sentence ends at . ! ? … (with closing quotes and brackets) before white space, or at a blank line.
_SENTENCE_END = re.compile(r"""[.!?…]+["'”’)\]»]*(?=\s)|[。！？]["'”’)\]»」』]*|\n\s*(?=\n)""")
_NEXT_CHARACTER = re.compile(r"\S")
_ABBREVIATION = re.compile(r"(?:^|[\s(\[])(?:[A-Z]|Dr|Mr|Mrs|Ms|Prof|St|vs|cf|ca|e\.g|i\.e|Fig|fig|No|approx)\.$")


class Segment(NamedTuple):
    """A passage of an answer.

    Attributes:
        query_id: the query.
        run_id: the run.
        rank: its place in the answer, from 1.
        text: the passage.
        sentences: its sentences, where the answer gives some and none had to be cut.
        citations: per sentence the documents it cites.
    """

    query_id: str
    run_id: str
    rank: int
    text: str
    sentences: tuple[str, ...] = ()
    citations: tuple[tuple[str, ...], ...] = ()


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
        after = _NEXT_CHARACTER.search(text, match.end())
        blank_line = match[0].isspace()
        goes_on = after is not None and after[0].islower()
        if not blank_line and (goes_on or _ABBREVIATION.search(text, max(0, match.start() - 12), match.end())):
            continue
        yield match.end()
    yield len(text)


def _cut_words(text: str, max_words: int) -> list[str]:
    """Pieces of at most `max_words` words, cut at white space."""
    starts = [match.start() for match in re.finditer(r"\S+", text)][::max_words]
    return [text[start:stop].strip() for start, stop in zip(starts, [*starts[1:], len(text)], strict=True)]


def answer_segments(answers: Iterable[Answer], max_words: int | None = 400) -> Iterator[Segment]:
    """The passages of answers, each answer's in order; an answer without words has none.

    An answer that comes in sentences is cut between them, so that every passage keeps its citations; only a sentence of
    more than `max_words` is cut itself. Other answers are cut by `split_answer`.

    Args:
        answers: the answers.
        max_words: the longest passage; None leaves answers whole.

    Raises:
        InputError: max_words is less than 1.
    """
    for answer in answers:
        pieces = _sentence_groups(answer, max_words) if answer.sentences else _texts(answer.text, max_words)
        for rank, (text, sentences, citations) in enumerate(pieces, 1):
            yield Segment(answer.query_id, answer.run_id, rank, text, sentences, citations)


_Piece = tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]]


def _texts(text: str, max_words: int | None) -> list[_Piece]:
    texts = split_answer(text, max_words) if max_words is not None else [text.strip()] if text.strip() else []
    return [(piece, (), ()) for piece in texts]


def _sentence_groups(answer: Answer, max_words: int | None) -> list[_Piece]:
    if max_words is not None and max_words < 1:
        raise InputError(f"an answer cannot be cut into passages of {max_words} words; ask for 1 or more")
    pieces: list[_Piece] = []
    places: list[int] = []
    words = 0

    def close() -> None:
        text = " ".join(answer.sentences[place] for place in places).strip()
        if text:
            sentences = tuple(answer.sentences[place] for place in places)
            citations = tuple(answer.citations[place] for place in places) if answer.citations else ()
            pieces.append((text, sentences, citations))
        places.clear()

    for place, sentence in enumerate(answer.sentences):
        more = len(sentence.split())
        if max_words is not None and words + more > max_words:
            close()
            words = 0
        if max_words is not None and more > max_words:
            pieces += _texts(sentence, max_words)
            continue
        places.append(place)
        words += more
    close()
    return pieces


def answer_lengths(answers: Iterable[Answer]) -> dict[str, dict[str, int]]:
    """Run -> query -> L, the length of the answer in whitespace words (0 for an empty one)."""
    lengths: dict[str, dict[str, int]] = {}
    for answer in answers:
        lengths.setdefault(answer.run_id, {})[answer.query_id] = answer.words
    return lengths


class TooLong(NamedTuple):
    """An answer that is longer than its limit, with both in the limit's unit (`words` or `characters`)."""

    query_id: str
    run_id: str
    length: int
    most: int
    unit: str


@dataclass(frozen=True)
class AnswerCheck:
    """What is wrong with the answers of runs.

    Attributes:
        answers: how many answers there are.
        empty: (run, query) of answers without words; they score 0.
        missing: (run, query) without an answer; they score 0.
        unknown: (run, query) of answers to queries that nobody asked.
        too_long: answers over the limit.
        silent: runs without any answer with words.
    """

    answers: int
    empty: tuple[tuple[str, str], ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()
    too_long: tuple[TooLong, ...] = ()
    silent: tuple[str, ...] = ()


def check_answers(
    answers: Sequence[Answer],
    queries: Collection[str] | None = None,
    *,
    track: str | None = None,
    topics: Mapping[str, Topic] | None = None,
) -> AnswerCheck:
    """Counts the answers that are empty, missing, to unknown queries, or longer than the track allows.

    Args:
        answers: the answers of all runs.
        queries: the queries that were asked; None takes those that any run answers.
        track: `rag24`, `rag25` (400 words), `rag26` (1,024 words), `dragun` (250 words), `ragtime` (characters after
            NFKC, per topic); None checks the limits of topics only.
        topics: query id -> topic, whose own limit goes before that of the track.

    Raises:
        UnknownNameError: nobody knows the track.
    """
    limit_for(track)
    asked = list(dict.fromkeys(queries if queries is not None else (answer.query_id for answer in answers)))
    known = set(asked)
    answered: dict[str, set[str]] = {}
    too_long = []
    speaking = {answer.run_id for answer in answers if answer.words}
    for answer in answers:
        answered.setdefault(answer.run_id, set()).add(answer.query_id)
        limit = limit_for(track, (topics or {}).get(answer.query_id))
        if limit is not None and (length := length_of(answer.text, limit.unit)) > limit.most:
            too_long.append(TooLong(answer.query_id, answer.run_id, length, limit.most, limit.unit))
    return AnswerCheck(
        answers=len(answers),
        empty=tuple((answer.run_id, answer.query_id) for answer in answers if not answer.words),
        missing=tuple(
            (run_id, query_id) for run_id, found in answered.items() for query_id in asked if query_id not in found
        ),
        unknown=tuple((answer.run_id, answer.query_id) for answer in answers if answer.query_id not in known),
        too_long=tuple(too_long),
        silent=tuple(run_id for run_id in answered if run_id not in speaking),
    )


def say_answer_check(check: AnswerCheck) -> None:
    """Says once how many answers are empty, missing and too long, each with an example."""
    for pairs, what in (
        (check.empty, "%d answers are empty and score 0 (such as that of run %s to query %s)"),
        (check.missing, "%d answers are missing and score 0 (such as that of run %s to query %s)"),
    ):
        if pairs:
            _LOG.warning(what, len(pairs), *pairs[0])
    if check.silent:
        _LOG.warning(
            "%d runs have no answer with words: they are kept with empty passages, and score 0: %s",
            len(check.silent),
            ", ".join(check.silent),
        )
    if check.too_long:
        worst = max(check.too_long, key=lambda one: one.length / one.most)
        runs = Counter(one.run_id for one in check.too_long)
        _LOG.warning(
            "%d answers of %d runs are longer than allowed (run %s has %d of %d %s for query %s); they are kept whole",
            len(check.too_long),
            len(runs),
            worst.run_id,
            worst.length,
            worst.most,
            worst.unit,
            worst.query_id,
        )
