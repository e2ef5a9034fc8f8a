"""Words and sentences of a text: stems, stopwords, where sentences end.

Where sentences end: by marks, white space and a list of abbreviations, without a model.

Word normalisation for the lexical grader and for matching answers: lower case, stopwords, stems.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

# What closes a quotation or bracket belongs to the sentence that ends before it.
_CLOSING = "\"'”’)\\]»」』】》〉）"
# A sentence ends at . ! ? … before white space; at the marks of scripts that put none behind them, or not always
# (Chinese and Japanese, Hindi, Urdu and Arabic, Armenian, Ethiopic, Burmese, Khmer); or at a blank line. Nothing of a
# run of marks is looked at twice: models that loop write many thousands of them.
_SENTENCE_END = re.compile(
    rf"(?<![.!?…])[.!?…]++[{_CLOSING}]*+(?=\s)"
    rf"|[。！？｡।॥؟۔։።፧။៕។][.!?…。！？]*+[{_CLOSING}]*+"
    r"|\n\s*(?=\n)"
)
_NEXT_CHARACTER = re.compile(r"\S")
# After these a stop ends no sentence, whatever follows: a passage that goes on for one sentence more costs little, one
# that ends in the middle of a name costs the name. Initials (J. Smith, U.S. Navy), numbers of a list, and the usual.
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[])(?:(?:[A-Z]\.)*[A-Z]|Dr|Mr|Mrs|Ms|Prof|St|Jr|Sr|Gen|Col|Capt|Lt|Sen|Rep|Gov|Inc|Ltd|Co|Corp|Mt|Rev"
    r"|et al|vs|cf|ca|a\.m|p\.m|e\.g|i\.e|Fig|fig|Eq|Sec|No|Vol|pp|approx)\.\Z"
    r"|^\s*\d{1,3}\.\Z",
    re.MULTILINE,
)
_LOOK_BACK = 12


def sentence_ends(text: str) -> Iterator[int]:
    """Where the sentences of a text end, in order; the last place is the end of the text.

    A sentence ends at `.` `!` `?` or `…` before white space, at the marks of other scripts (`。` `।` `؟` `۔` …), and at
    a blank line; not before a small letter, nor after initials, common abbreviations and the numbers of a list. Time is
    linear in the length of the text.

    >>> list(sentence_ends("Dr. Who came. He left."))
    [13, 22]
    """
    for match in _SENTENCE_END.finditer(text):
        after = _NEXT_CHARACTER.search(text, match.end())
        if not match[0].isspace() and after is not None and after[0].islower():
            continue
        if match[0] == "." and _ABBREVIATION.search(text, max(0, match.start() - _LOOK_BACK), match.end()):
            continue
        yield match.end()
    yield len(text)


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


# To import all its languages takes longer than to score most boards.
_stemmer: Callable[[], Any] = cache(lambda: import_module("snowballstemmer").stemmer("english"))


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The Snowball (English) stem of a lower-case word; numbers and words of other scripts stay as they are."""
    return str(_stemmer().stemWord(word))


@lru_cache(maxsize=256)
def content_stems(text: str) -> frozenset[str]:
    """The stems of the content words of a text; numbers are content words.

    >>> sorted(content_stems("What is the outer layer of the skin?"))
    ['layer', 'outer', 'skin']
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    words = (word.removesuffix("'s") for word in _WORD.findall(text.lower().replace("’", "'")))
    return frozenset(stem(word.replace("'", "")) for word in words if word not in STOPWORDS)
