"""Whether an extracted answer matches a gold answer: normalised words, then an edit distance."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from importlib.util import find_spec
from itertools import combinations, pairwise
from pathlib import Path
from runpy import run_path
from typing import NamedTuple

from rubric_measures.backends.words import stem
from rubric_measures.base.errors import RubricMeasuresError
from rubric_measures.prompts import is_unanswerable

__all__ = ["matches_any", "matches_gold", "stopwords"]

_INSTALL_STOPWORDS = "install it with: pip install 'bm25s>=0.2.12,<0.4'"

_TRUE = frozenset({"true", "yes", "correct"})
_FALSE = frozenset({"false", "no", "incorrect", "wrong"})
_WORD = re.compile(r"\w+(?:['’]\w+)*")
# A sign belongs to a number where nothing stands right before it: "-5", but "1914-1918" and "COVID-19".
_NUMBER = re.compile(r"(?:(?<![\w)\]])[-–−])?\d+(?:,\d{3})*(?:\.\d+)?")
# "C++", "F#", "Ca2+", "Cl-"
_SYMBOL = re.compile(r"[^\W_]+[+#]+(?!\w)|\b[a-z]{1,2}\d?[-–−](?!\w)")
_ROMAN = re.compile(r"[ivx]{2,4}|(?=[ivxlc]{3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DOT = re.compile(r"(?<!\d)\.|\.(?!\d)")
_ROMAN_DIGITS = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
# "U.S.", "J. K. Rowling"
_ABBREVIATION = re.compile(r"(?<!\w)[^\W\d_](?:\.\s?[^\W\d_](?=\.))+\.|(?<!\w)[^\W\d_](?:\.[^\W\d_])+(?!\w)")
_NEGATIONS = frozenset({"no", "not", "never", "none", "nor", "neither", "nothing", "nobody", "cannot", "without"})
_OPPOSITES = (
    ("above", "below"), ("over", "under"), ("up", "down"), ("in", "out"), ("on", "off"), ("before", "after"),
    ("more", "less"), ("more", "fewer"), ("most", "least"), ("inside", "outside"), ("all", "none"), ("few", "many"),
    *combinations(("hundred", "thousand", "million", "billion", "trillion"), 2),
    *combinations(("dollars", "euros", "pounds", "yen"), 2),
)  # fmt: skip
_ERAS = (frozenset({"bc", "bce"}), frozenset({"ad", "ce"}))
_CURRENCIES = frozenset("$€£¥₹")
# A letter beside one of these is a kind ("Vitamin D Deficiency"), no initial that may be left out. The second ones can
# be verbs ("plan a trip"), and so name none before a small "a" or "i".
_KINDS = frozenset(
    {"hepatitis", "influenza", "phase", "serie", "streptococcus", "type", "types", "vitamin", "vitamins"}
)
_OTHER_KINDS = frozenset({
    "act", "appendix", "article", "bowl", "category", "cell", "cells", "chapter", "chromosome", "class", "division",
    "factor", "figure", "generation", "grade", "group", "level", "model", "option", "part", "plan", "planet",
    "schedule", "section", "series", "size", "stage", "strain", "tier", "title", "virus", "volume", "war",
})  # fmt: skip


@lru_cache(maxsize=1)
def stopwords() -> frozenset[str]:
    """The English stopwords of the bm25s wheel: the list of NLTK, whose own package downloads it.

    Raises:
        RubricMeasuresError: bm25s is not installed, or of a release that has no such list.
    """
    # Only the module with the list: the package imports numba where it is installed, which takes more than a second.
    package = find_spec("bm25s")
    folders = package.submodule_search_locations if package else None
    if not folders:
        raise RubricMeasuresError(f"bm25s has the stopwords and is not installed; {_INSTALL_STOPWORDS}")
    path = Path(folders[0]) / "stopwords.py"
    try:
        listed = run_path(str(path))["STOPWORDS_EN_PLUS"]
    except (OSError, KeyError, ImportError):
        listed = ()
    if not listed or not all(isinstance(word, str) for word in listed):
        raise RubricMeasuresError(f"{path}: has no STOPWORDS_EN_PLUS in this release; {_INSTALL_STOPWORDS}")
    return frozenset(listed)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower().replace("’", "'")


@lru_cache(maxsize=1 << 14)
def _normal(text: str) -> str:
    """Lower case, without stopwords and punctuation, stemmed; a text of stopwords only keeps them."""
    words = _WORD.findall(_folded(text))
    stems = [
        stem(word.removesuffix("'s").replace("'", ""))
        for word in words
        if word not in stopwords() and word.removesuffix("'s") not in stopwords()
    ]
    return " ".join(stems) or " ".join(words) or text.strip().lower()


class _Marks(NamedTuple):
    """What is another answer when a character of it is another.

    Attributes:
        exact: numbers with their signs, symbols, Roman numerals, single letters.
        initials: letters of a name ("John F. Kennedy"), which others leave out.
        articles: "A" and "I" between words with capitals: initials, if not words.
        abbreviations: "us" for "U.S.".
        words: all words.
        currencies: their signs.
        beside: each "a" and "i" with the word before and with the word behind: "stage i", "i lung".
        lettered: those of them whose letter is no word, with that letter: ("i", "stage i").
    """

    exact: frozenset[str]
    initials: frozenset[str]
    articles: frozenset[str]
    abbreviations: frozenset[str]
    words: frozenset[str]
    currencies: frozenset[str]
    beside: frozenset[str]
    lettered: frozenset[tuple[str, str]]


@lru_cache(maxsize=1 << 14)
def _marks(text: str) -> _Marks:
    plain = unicodedata.normalize("NFKC", text).replace("’", "'")
    folded = plain.lower()
    exact = {_canonical(number) for number in _NUMBER.findall(folded)}
    exact.update(symbol.replace("–", "-").replace("−", "-") for symbol in _SYMBOL.findall(folded))
    dotted = [match.span() for match in _ABBREVIATION.finditer(plain)]
    found = list(_WORD.finditer(plain))
    initials: set[str] = set()
    articles: set[str] = set()
    lettered: set[tuple[str, str]] = set()
    words = [match[0].lower() for match in found]
    for position, match in enumerate(found):
        word = match[0].lower()
        if any(start <= match.start() < end for start, end in dotted):
            continue
        if _ROMAN.fullmatch(word):
            exact.add(word)
        elif len(word) == 1 and word.isalpha():
            kind = _is_kind(plain, found, position)
            if not kind and _is_initial(plain, found, position):
                (articles if match[0] in "AI" and plain[match.end()] != "." else initials).add(word)
            # "a" and "I" are words, but for the end of a name: "vitamin A".
            elif kind or word not in "ai" or 0 < position == len(found) - 1:
                exact.add(word)
                here = words[max(0, position - 1) : position + 2]
                lettered.update((word, " ".join(pair)) for pair in pairwise(here) if word in "ai")
    abbreviations = (re.sub(r"[.\s]", "", plain[start:end]).lower() for start, end in dotted)
    return _Marks(
        exact=frozenset(exact),
        initials=frozenset(initials),
        articles=frozenset(articles),
        abbreviations=frozenset(abbreviations),
        words=frozenset(words),
        currencies=_CURRENCIES.intersection(plain),
        beside=frozenset(" ".join(pair) for pair in pairwise(words) if "a" in pair or "i" in pair),
        lettered=frozenset(lettered),
    )


def _is_kind(text: str, words: list[re.Match[str]], position: int) -> bool:
    """Whether a letter names a kind or a number: it stands beside such a word, or as "George I of England"."""
    here = words[position]
    before = words[position - 1] if position > 0 else None
    after = words[position + 1] if position + 1 < len(words) else None
    # "A cell", "the class I like": words, where no name says otherwise.
    word = here[0] in "aAiI"
    if before and text[before.end() : here.start()] in (" ", "-"):
        kind, capital = before[0].lower(), before[0][0].isupper() and here[0].isupper()
        if kind in _KINDS or (kind in _OTHER_KINDS and (capital or not word)):
            return True
        if here[0] == "I" and capital and len(kind) > 1 and after and after[0] == "of":
            return True
    return bool(after and after[0].lower() in _KINDS | _OTHER_KINDS and not word and text[here.end()] != ".")


def _is_initial(text: str, words: list[re.Match[str]], position: int) -> bool:
    """Whether a letter stands for a name: a dot and a word follow, or it stands between two words of a name."""
    if position == len(words) - 1:
        return False
    here, after = words[position], words[position + 1]
    if text[here.end()] == ".":
        return True
    if position == 0 or here[0] in "ai":
        return False
    before = words[position - 1]
    between = text[before.end() : here.start()] + text[here.end() : after.start()]
    around = (before[0], after[0])
    return (
        between.isspace()
        and all(len(word) > 1 and word.isalpha() and word.lower() not in stopwords() for word in around)
        and all(word[0].isupper() is here[0].isupper() for word in around)
    )


def _marks_differ(left: _Marks, right: _Marks) -> bool:
    """Whether marks say that two texts are different answers; what only one text writes out says nothing."""
    # "Article I, Section 8" and "article I section 8": only capitals told that the letter is no word.
    mine = left.exact - right.exact - right.initials - _as_words(left, right)
    theirs = right.exact - left.exact - left.initials - _as_words(right, left)
    mine, theirs = (
        _without_romans(mine, theirs, right.words - left.words),
        _without_romans(theirs, mine, left.words - right.words),
    )
    if mine or theirs:
        return True
    unshared = [_unshared(one, other) for one, other in ((left, right), (right, left))]
    if any(_other_abbreviation(*pair) for pair in ((unshared[0], right, left), (unshared[1], left, right))):
        return True
    if left.currencies and right.currencies and left.currencies != right.currencies:
        return True
    eras = [[bool(era & (one.words | one.abbreviations)) for era in _ERAS] for one in (left, right)]
    return sorted(eras) == [[False, True], [True, False]] or _initials_differ(left, right, unshared)


def _as_words(one: _Marks, other: _Marks) -> frozenset[str]:
    """The letters "a" and "i" of one text that the other has beside the same word, as a word or not."""
    return frozenset(letter for letter, pair in one.lettered if pair in other.beside)


def _initials_differ(left: _Marks, right: _Marks, unshared: list[frozenset[str]]) -> bool:
    """Whether initials are others ("John F.", "John D."), or more where both have some: "George H. W.", "George W."."""
    firm = [one.initials.union(*missing) for one, missing in zip((left, right), unshared, strict=True)]
    mine = (firm[0] | left.articles) - firm[1] - right.articles - right.exact
    theirs = (firm[1] | right.articles) - firm[0] - left.articles - left.exact
    if mine and theirs:
        return True
    # Of "H. W." one letter is shared: a name. Of "U.S." none is.
    names = [
        one.initials.union(*(some for some in missing if set(some) & other.initials))
        for one, other, missing in zip((left, right), (right, left), unshared, strict=True)
    ]
    return bool(names[0] & names[1]) and bool((mine & names[0]) | (theirs & names[1]))


def _without_romans(marks: frozenset[str], others: frozenset[str], words: frozenset[str]) -> frozenset[str]:
    """The marks that are not a number of the other text in the other numerals: "II" and "2"."""
    values = {_roman(other) for other in others}
    return frozenset(mark for mark in marks if mark not in values and _roman(mark) not in words)


def _roman(number: str) -> str:
    """The Roman numeral of a whole number from 1 to 3999; of other texts "", which is no word."""
    if not (number.isascii() and number.isdigit() and 0 < int(number[:5]) < 4000):
        return ""
    value, numeral = int(number[:5]), ""
    for worth, digits in _ROMAN_DIGITS:
        numeral += digits * (value // worth)
        value %= worth
    return numeral


def _unshared(one: _Marks, other: _Marks) -> frozenset[str]:
    return one.abbreviations - other.abbreviations - other.words


def _other_abbreviation(unshared: frozenset[str], other: _Marks, one: _Marks) -> bool:
    """Whether another text has something else where one has an abbreviation: "U.K.", but "US"; "a.m.", but "pm"."""
    rivals = (other.abbreviations | other.words) - one.abbreviations - one.words - stopwords()
    return bool({len(abbreviation) for abbreviation in unshared} & {len(rival) for rival in rivals})


def _canonical(number: str) -> str:
    whole, _, fraction = number.replace(",", "").lstrip("-–−").partition(".")
    fraction = fraction.rstrip("0")
    value = (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")
    return f"-{value}" if number[0] in "-–−" and value != "0" else value


@lru_cache(maxsize=1 << 14)
def _turns(text: str) -> tuple[frozenset[str], bool]:
    """The words of a text, and whether one of them negates it."""
    words = frozenset(_WORD.findall(_folded(text)))
    return words, bool(words & _NEGATIONS) or any(word.endswith("n't") for word in words)


def _contradicts(answer: str, gold: str) -> bool:
    """Whether two texts differ in what stopword lists and edit distances pass over: "+1" and "-1", "above", "not"."""
    if _marks_differ(_marks(answer), _marks(gold)):
        return True
    (left, left_negated), (right, right_negated) = _turns(answer), _turns(gold)
    if left_negated != right_negated:
        return True
    mine, theirs = left - right, right - left
    return any((one in mine and other in theirs) or (other in mine and one in theirs) for one, other in _OPPOSITES)


def matches_gold(answer: str, gold: str, *, compat: str = "") -> bool:
    """Whether an answer says what a gold answer says.

    Both are lower-cased, freed of stopwords and stemmed; they match when the edit distance (Levenshtein, characters)
    is less than 20 % of the longer one's length. Texts that differ in a number or its sign, in a symbol or a single
    letter ("C++", "vitamin D", "World War II"), in a negation, in a word and its opposite (above, below), in the size
    (million, billion), the currency or the era (BC, AD) of a number never match (ours): stopword lists hold "not" and
    "above", and a digit of a long answer is less than 20 % of it. All initials of a name that one of them leaves out
    and Roman for Arabic numerals are left to the distance; texts that differ in dots ("U.S.") and capitals
    only are equal.

    Args:
        answer: the extracted answer.
        gold: the gold answer.
        compat: `workbench`: a similarity of 2 · matches / (total length) above 80 % instead, and gold answers "true"
            and "false" also accept yes, correct / no, incorrect, wrong, as the workbench's program has it.

    Source: EXAM++ (Farzi and Dietz 2024), section 4.2.1; the Rubric workbench's program.

    >>> matches_gold("The epidermis.", "epidermis"), matches_gold("rising", "rise"), matches_gold("dermis", "epidermis")
    (True, True, False)
    >>> matches_gold("above the surface", "below the surface"), matches_gold("C++", "C"), matches_gold("-1", "+1")
    (False, False, False)
    """
    from rapidfuzz.distance import Indel, Levenshtein

    if compat == "workbench":
        left, right = _normal(answer), _normal(gold)
        word = re.sub(r"[^\w\s]", "", answer).strip().lower()
        for accepted in (_TRUE, _FALSE):
            if gold.strip().lower() in ("true", "false") and gold.strip().lower() in accepted:
                return word in accepted
        total = len(left) + len(right)
        return left == right or 10 * (total - Indel.distance(left, right)) > 8 * total
    undotted = [_DOT.sub("", _folded(text)).strip() for text in (answer, gold)]
    if undotted[0] and undotted[0] == undotted[1]:
        return True
    if _contradicts(answer, gold):
        return False
    left, right = (_normal(_THOUSANDS.sub("", text)) for text in (answer, gold))
    longer = max(len(left), len(right))
    return left == right or 5 * Levenshtein.distance(left, right) < longer


def matches_any(answer: str, gold_answers: Iterable[str], *, compat: str = "") -> bool:
    """Whether an answer matches one of the gold answers; an unanswerable expression matches none of them.

    A gold answer that is such an expression itself ("no") is matched by it.
    """
    golds = tuple(gold_answers)
    if is_unanswerable(answer) and not any(is_unanswerable(gold) for gold in golds):
        return False
    return any(matches_gold(answer, gold, compat=compat) for gold in golds)
