"""Which words of a passage are marked: those with the stem of a content word of an item, in the item's language."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import snowballstemmer

_WORD = re.compile(r"\w+")
# Scripts that put no spaces between words: two characters that stand together count as a word.
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
# Scripts of one stemmer each; the others are Latin.
_SCRIPTS = {
    "russian": re.compile("[\u0400-\u04ff]"),
    "arabic": re.compile("[\u0600-\u06ff]"),
    "greek": re.compile("[\u0370-\u03ff]"),
    "hindi": re.compile("[\u0900-\u097f]"),
}
# Words of questions that say nothing about a topic and would mark half of a passage; by them a language is known.
_COMMON_TEXTS = {
    "english": """
        a an and are as at be been by can could did do does for from had has have how if in into is it its many may more
        most much of on or some such than that the their there these they this to was were what when where which who
        whose why will with would
        """,
    "german": """
        am an auf aus bei das dass dem den der des die durch ein eine einem einen einer es für hat ist im in kann man
        mit nach nicht oder sich sind und unter vom von warum was welche welchen welcher welches wenn wer werden wie
        wieso wird wo wurde wurden zu zum zur über
        """,
    "french": """
        au aux avec ce ces cette comment dans de des du elle en est et il la le les leur mais on ou où par pour
        pourquoi qu quand que quel quelle quelles quels qui quoi sa se ses son sont sur un une
        """,
    "spanish": """
        al como con cual cuales cuando cuál cuáles cuándo cómo de del donde dónde el en es esta este la las lo los para
        por que quien quién qué se son su sus un una y
        """,
    "italian": """
        che chi come con cosa cui da dei del della delle di dove e gli i il in la le lo nel nella per perché quale quali
        quando si sono su un una è
        """,
    "portuguese": """
        a ao as com como da das de do dos e em na no o onde os para por porque quais qual quando que quem se são um uma
        é
        """,
    "dutch": """
        aan bij dat de die een en het hoe in is met naar of om op over te tot uit van voor waarom waar wanneer wat welke
        wie wordt worden zijn
        """,
}
_COMMON = {language: frozenset(text.split()) for language, text in _COMMON_TEXTS.items()}


class Piece(NamedTuple):
    """A stretch of a text, and whether it is marked."""

    text: str
    marked: bool


def _language(text: str) -> str:
    """The language of an item: by its script, or by its common words; English where nothing tells."""
    for language, script in _SCRIPTS.items():
        if script.search(text):
            return language
    words = set(_WORD.findall(text.casefold()))
    # Of as many common words in two languages the first one counts.
    return max(_COMMON, key=lambda language: len(words & _COMMON[language]))


@lru_cache(maxsize=16)
def _stemmer(language: str) -> snowballstemmer.stemmer:
    return snowballstemmer.stemmer(language)


@lru_cache(maxsize=1 << 14)
def _stem(word: str, language: str) -> str:
    return str(_stemmer(language).stemWord(word))


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]


def mark_words(passage: str, *sources: str) -> list[Piece]:
    """Cuts a passage into pieces; words with the stem of a content word of the sources are marked.

    The pieces' texts together are the passage, unchanged.

    >>> [piece.text for piece in mark_words("Leaves hold a pigment.", "Which pigment is in a leaf?") if piece.marked]
    ['pigment']
    """
    language = _language(" ".join(sources))
    common = _COMMON.get(language, frozenset())
    words = {word for source in sources for word in _WORD.findall(source.casefold()) if word not in common}
    wanted = {_stem(word, language) for word in words}
    pairs = {pair for source in sources for run in _UNSPACED.findall(source) for pair in _pairs(run)}
    spans = [match.span() for match in _WORD.finditer(passage) if _stem(match.group().casefold(), language) in wanted]
    for match in _UNSPACED.finditer(passage) if pairs else ():
        start = match.start()
        spans += [(start + at, start + at + 2) for at, pair in enumerate(_pairs(match.group())) if pair in pairs]
    return _cut(passage, sorted(spans))


def _cut(passage: str, spans: list[tuple[int, int]]) -> list[Piece]:
    """The passage in pieces; spans, by their start, may overlap."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    pieces: list[Piece] = []
    last = 0
    for start, end in joined:
        if start > last:
            pieces.append(Piece(passage[last:start], False))
        pieces.append(Piece(passage[start:end], True))
        last = end
    if last < len(passage):
        pieces.append(Piece(passage[last:], False))
    return pieces
