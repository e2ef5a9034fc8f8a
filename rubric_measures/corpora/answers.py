"""Generated answers: cut into passages at sentence ends, or whole; what is empty, missing or too long is counted."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from unicodedata import category

from rubric_measures.base.errors import InputError, counted, warn
from rubric_measures.base.words import sentence_ends
from rubric_measures.formats.queries import Limit, length_of, limit_for
from rubric_measures.formats.reports import Answer

# Scripts without blanks: of Han and kana two characters count as a word, of Thai, Lao, Tibetan, Burmese and Khmer five
# (with the vowels and tones that belong to the last).
_HAN = "\u3001-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uffee\U00020000-\U0003ffff"
_THAI = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff"
_MARKS = "".join(
    char for char in map(chr, range(0xE00, 0x1800)) if re.match(f"[{_THAI}]", char) and category(char)[0] == "M"
)
_LONGEST_WORD = 50
_WORD = re.compile(rf"[{_HAN}]{{1,2}}|[{_THAI}]{{1,5}}[{_MARKS}]*|[^\s{_HAN}{_THAI}]{{1,{_LONGEST_WORD}}}")


class AnswerSegment(NamedTuple):
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

    Nothing but white space is lost, and no passage has more than `max_words` words. Words are what white space
    separates; where a script has no blanks, or a word has more than 50 characters, its characters are counted (two of
    Han or kana, five of Thai, Lao, Tibetan, Burmese or Khmer, else 50 are a word). Only a sentence that is longer than
    a passage is cut inside, at white space, and only a word that is longer than one, inside the word.

    A sentence ends at `.` `!` `?` or `…` before white space, at the marks of other scripts (`。` `।` `؟` `۔` …), and at
    a blank line; not before a small letter, nor after initials (J. Smith, U.S. Navy), common abbreviations (Dr.,
    et al., p.m.) and the numbers of a list. Time is linear in the length of the text.

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
    ends = itertools.pairwise([*_cuts(_pieces(text, max_words), max_words), len(text)])
    return [passage for start, end in ends if (passage := text[start:end].strip())]


def _words(text: str) -> int:
    """How many words a text has, see `split_answer`."""
    tokens = text.split()
    if text.isascii() and all(len(token) <= _LONGEST_WORD for token in tokens):
        return len(tokens)
    return sum(1 for _ in _WORD.finditer(text))


def _pieces(text: str, max_words: int) -> Iterator[tuple[int, int]]:
    """Where each sentence begins, and how many words it has; after one that is too long the same of its parts."""
    start = 0
    for end in sentence_ends(text):
        sentence = text[start:end]
        words = _words(sentence)
        yield start, words
        for token in re.finditer(r"\S+", sentence) if words > max_words else ():
            places = [word.start() for word in _WORD.finditer(token[0])]
            for number in range(0, len(places), max_words):
                yield start + token.start() + places[number], min(max_words, len(places) - number)
        start = end


def _cuts(pieces: Iterable[tuple[int, int]], max_words: float) -> list[int]:
    """Where passages begin of pieces (where it begins, how many words); a piece that is too long is one alone."""
    cuts, words = [0], 0
    for start, more in pieces:
        if words + more > max_words:
            cuts.append(start)
            words = 0
        words += more
    return cuts


def answer_segments(answers: Iterable[Answer], max_words: int | None = 400) -> Iterator[AnswerSegment]:
    """The passages of answers, each answer's in order; an answer without words has none.

    An answer that comes in sentences is cut between them, so that every passage keeps its citations; only a sentence of
    more than `max_words` words is cut itself. Ranked questions are a passage each. Other answers are cut by
    `split_answer`.

    Args:
        answers: the answers.
        max_words: the longest passage; None leaves answers whole.

    Raises:
        InputError: max_words is less than 1.
    """
    for answer in answers:
        if answer.questions:
            pieces: list[_Piece] = [(question, (), ()) for question in answer.questions]
        else:
            pieces = _sentence_groups(answer, max_words) if answer.sentences else _texts(answer.text, max_words)
        for rank, (text, sentences, citations) in enumerate(pieces, 1):
            yield AnswerSegment(answer.query_id, answer.run_id, rank, text, sentences, citations)


_Piece = tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]]


def _texts(text: str, max_words: int | None) -> list[_Piece]:
    texts = split_answer(text, max_words) if max_words is not None else [text.strip()] if text.strip() else []
    return [(piece, (), ()) for piece in texts]


def _sentence_groups(answer: Answer, max_words: int | None) -> list[_Piece]:
    most = math.inf if max_words is None else max_words
    if most < 1:
        raise InputError(f"an answer cannot be cut into passages of {max_words} words; ask for 1 or more")
    sizes = list(map(_words, answer.sentences))
    pieces: list[_Piece] = []
    for start, end in itertools.pairwise([*_cuts(enumerate(sizes), most), len(sizes)]):
        sentences = answer.sentences[start:end]
        if sum(sizes[start:end]) > most:
            pieces += _texts(sentences[0], max_words)
        elif text := " ".join(sentences).strip():
            pieces.append((text, sentences, answer.citations[start:end]))
    return pieces


def check_answers(
    answers: Sequence[Answer],
    queries: Collection[str] | None = None,
    *,
    track: str | None = None,
    limits: Mapping[str, Limit] | None = None,
) -> None:
    """Says once how many answers are empty, missing, or longer than the track allows, each with an example.

    Args:
        answers: the answers of all runs.
        queries: the queries that were asked; None takes those that any run answers.
        track: `rag24`, `rag25` (400 words), `rag26` (1,024 words), `dragun` (250 words), `ragtime` (characters after
            NFKC, per topic); None checks the limits of queries only.
        limits: query id -> its own limit, which goes before that of the track.

    Raises:
        UnknownNameError: nobody knows the track.
    """
    limit_for(track)
    asked = list(dict.fromkeys(queries if queries is not None else (answer.query_id for answer in answers)))
    answered: dict[str, set[str]] = {}
    too_long: list[tuple[float, str, str]] = []
    for answer in answers:
        answered.setdefault(answer.run_id, set()).add(answer.query_id)
        limit = limit_for(track, (limits or {}).get(answer.query_id))
        if limit is not None and not answer.questions and (length := length_of(answer.text, limit.unit)) > limit.most:
            said = f"has {length} of {limit.most} {limit.unit} for query {answer.query_id}"
            too_long.append((length / limit.most, answer.run_id, said))
    empty = [(answer.run_id, answer.query_id) for answer in answers if not answer.words]
    missing = [(run_id, query_id) for run_id, found in answered.items() for query_id in asked if query_id not in found]
    for pairs, what in ((empty, "empty answer"), (missing, "missing answer")):
        for run_id, query_id in pairs[:1]:
            warn(f"{counted(len(pairs), what)}, scored 0 (such as that of run {run_id} to query {query_id})")
    speaking = {answer.run_id for answer in answers if answer.words}
    if silent := [run_id for run_id in answered if run_id not in speaking]:
        warn(f"{counted(len(silent), 'run')} without a word in any answer, scored 0: {', '.join(silent)}")
    if too_long:
        _, run_id, said = max(too_long, key=lambda one: one[0])
        runs = len({run_id for _, run_id, _ in too_long})
        text = (
            f"{len(too_long)} answers of {runs} runs are longer than allowed (run {run_id} {said}); they are kept whole"
        )
        warn(text)
