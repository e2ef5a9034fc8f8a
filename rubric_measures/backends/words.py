"""Word normalisation for the lexical grader and for matching answers: lower case, stopwords, stems."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import snowballstemmer

__all__ = ["STOPWORDS", "content_stems", "stem"]

# English function words, our own short list: articles, pronouns, prepositions, conjunctions, auxiliaries, question
# words, and a few adverbs that say nothing about a topic. Negations stay content: "not toxic" is not "toxic".
_STOPWORDS_TEXT = """
    a about above after again all also am among an and any are around as at be became because become been before being
    below between both but by can could did do does doing done down during each either else etc ever every few for from
    further had has have having he hence her here hers herself him himself his how however i if in into is it its
    itself just let like many may me might more most much must my myself of off on once one only onto or other our ours
    ourselves out over own per quite rather s same shall she should since so some such t than that the their theirs
    them themselves then there these they this those through thus to too toward towards under until up upon us very
    was we were what when where whether which while who whom whose why will with within would you your yours yourself
    yourselves
    """
STOPWORDS = frozenset(_STOPWORDS_TEXT.split())
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_STEMMER = snowballstemmer.stemmer("english")


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The Snowball (English) stem of a lower-case word; numbers and words of other scripts stay as they are."""
    return str(_STEMMER.stemWord(word))


@lru_cache(maxsize=1 << 16)
def _normal(word: str) -> str:
    """The stem of a word as it stands in a text; empty for a stopword."""
    folded = word.replace("’", "'").removesuffix("'s")
    return "" if folded in STOPWORDS else stem(folded.replace("'", ""))


def content_stems(text: str) -> tuple[str, ...]:
    """The stems of the content words of a text, in order, repetitions included; numbers are content words.

    >>> content_stems("What is the outer layer of the skin?")
    ('outer', 'layer', 'skin')
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    stems = (_normal(word) for word in _WORD.findall(text.lower()))
    return tuple(found for found in stems if found)
