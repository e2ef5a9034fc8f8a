"""The embedded grader `lexical`: how many of an item's content words a passage states. A floor, not a judge."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from rubric_measures.backends.base import Reply, Request
from rubric_measures.backends.options import check_options
from rubric_measures.base.words import content_stems


@lru_cache(maxsize=64)
def _passage_words(text: str) -> frozenset[str]:
    return frozenset(content_stems(text))


@lru_cache(maxsize=8192)
def _item_words(text: str) -> tuple[frozenset[str], ...]:
    """The content words of an item: of its text, or, with an answer key, of its text and each answer."""
    question, *answers = text.split("\n")
    words = frozenset(content_stems(question))
    return tuple(words | frozenset(content_stems(answer)) for answer in answers) or (words,)


def lexical_grade(item: str, passage: str) -> int:
    """The share of an item's content words that a passage states, as a grade.

        grade = ⌊5 · |W(item) ∩ W(passage)| / |W(item)|⌋

    W is the set of the stems of the words that are no stopwords; numbers count. So 5 means every content word, 4 at
    least 80 %, 3 at least 60 %, 2 at least 40 %, 1 at least 20 %, 0 less. Neither the order of the words nor their
    frequency (here or in a collection) matters. Lines of the item after the first are gold answers: the words of the
    item and of one answer are looked for, and the best answer counts.

    It measures word overlap and nothing else: a passage stuffed with keywords gets 5, a paraphrase 0. Use it as the
    floor that an LLM grader has to beat, to try out a pipeline, and in tests; not as a judge.

    Args:
        item: the question or key fact; gold answers on further lines.
        passage: the text to grade.

    Returns:
        0 to 5; 0 for an item without content words, or an empty passage.

    >>> lexical_grade("Outer layer of the skin?", "The epidermis is the outer layer of skin.")
    5
    """
    stated = _passage_words(passage)
    return max(5 * len(words & stated) // len(words) if words else 0 for words in _item_words(item))


def lexical_support(statement: str, document: str) -> str:
    """How many of a statement's content words a document has, as a label of support.

    At least 80 % are `Full Support`, at least 60 % `Partial Support`, less `No Support`: the grades 4 and 3 of
    `lexical_grade`. A floor that a judge has to beat: it sees neither negations of the document nor wrong numbers
    among right ones, and a paraphrase has no support.

    >>> lexical_support("Skin has an outer layer.", "The epidermis is the outer layer of skin.")
    'Full Support'
    """
    grade = lexical_grade(" ".join(statement.split()), document)
    return "Full Support" if grade >= 4 else "Partial Support" if grade == 3 else "No Support"


def lexical_verdict(query: str, documents: str, answer_a: str, answer_b: str) -> str:
    """The answer that covers more: `[[A]]`, `[[B]]`, or `[[C]]` when both cover equally much.

        coverage = |W(answer) ∩ W(query and documents)|,   without documents |W(answer)|

    W is as for `lexical_grade`. Repeating a word wins nothing, and the order in which the answers are shown does not
    matter; length does, as a longer answer has room for more words. A floor that an LLM judge has to beat.

    >>> lexical_verdict("Why is the sky blue?", "Air scatters blue light.", "It is blue.", "Air scatters light.")
    '[[B]]'
    """
    stated = [frozenset(content_stems(answer)) for answer in (answer_a, answer_b)]
    if documents.strip():
        wanted = _passage_words(query + "\n" + documents)
        stated = [words & wanted for words in stated]
    first, second = map(len, stated)
    return "[[A]]" if first > second else "[[B]]" if second > first else "[[C]]"


_PROMPTS = ("LexicalCoverage", "LexicalSupport", "LexicalComparison")


class LexicalBackend:
    """A backend without a model: replies to `LexicalCoverage` (a digit), `LexicalSupport` and `LexicalComparison`."""

    # Another draw gives the same reply, and there are no generation options.
    deterministic = True
    embedded = True
    reads_prompts = _PROMPTS[:2]

    @property
    def model(self) -> str:
        """`lexical:1`; the number changes when a grade would."""
        return "lexical:1"

    @property
    def options(self) -> Mapping[str, object]:
        """None."""
        return {}

    @property
    def context_tokens(self) -> int | None:
        """Unlimited."""
        return None

    def count_tokens(self, text: str) -> int:
        """Zero: nothing is shown to a model."""
        return 0

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Grades each request; one that is of another prompt than its own fails."""
        for request in requests:
            yield request, _reply(request)


def _reply(request: Request) -> Reply:
    try:
        fields = json.loads(request.messages[-1].content)
        if "answer_a" in fields:
            texts = (str(fields[name]) for name in ("query", "documents", "answer_a", "answer_b"))
            return Reply(lexical_verdict(*texts))
        if "statement" in fields:
            return Reply(lexical_support(str(fields["statement"]), str(fields["citation"])))
        item, passage = fields["item"], fields["passage"]
    except (ValueError, KeyError, TypeError, IndexError):
        return Reply(None, "failed", f"the lexical grader reads only {', '.join(_PROMPTS)}")
    return Reply(str(lexical_grade(item, passage)))


def make(**options: object) -> LexicalBackend:
    """The backend `lexical`, which has no settings."""
    check_options("lexical", LexicalBackend, options)
    return LexicalBackend()
