"""Which words of a passage are marked: those with the stem of a content word of an item."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import snowballstemmer

_WORD = re.compile(r"\w+")
_STEMMER = snowballstemmer.stemmer("english")
# Words of questions that say nothing about a topic and would mark half of a passage.
_COMMON_TEXT = """
    a an and are as at be been by can could did do does for from had has have how if in into is it its many may more
    most much of on or some such than that the their there these they this to was were what when where which who
    whose why will with would
    """
_COMMON = frozenset(_COMMON_TEXT.split())


class Piece(NamedTuple):
    """A stretch of a text, and whether it is marked."""

    text: str
    marked: bool


@lru_cache(maxsize=1 << 14)
def _stem(word: str) -> str:
    return str(_STEMMER.stemWord(word))


def _stems(text: str) -> set[str]:
    return {_stem(word) for word in _WORD.findall(text.casefold()) if word not in _COMMON}


def mark_words(passage: str, *sources: str) -> list[Piece]:
    """Cuts a passage into pieces; words with the stem of a content word of the sources are marked.

    The pieces' texts together are the passage, unchanged.

    >>> [piece.text for piece in mark_words("Leaves hold a pigment.", "Which pigment is in a leaf?") if piece.marked]
    ['pigment']
    """
    wanted = set().union(*(_stems(source) for source in sources))
    pieces: list[Piece] = []
    end = 0
    for match in _WORD.finditer(passage):
        if _stem(match.group().casefold()) not in wanted:
            continue
        if match.start() > end:
            pieces.append(Piece(passage[end : match.start()], False))
        pieces.append(Piece(match.group(), True))
        end = match.end()
    if end < len(passage):
        pieces.append(Piece(passage[end:], False))
    return pieces
