"""Whether an extracted answer matches a gold answer: normalised words, then an edit distance."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

from rubric_measures.backends.words import stem
from rubric_measures.prompts import is_unanswerable

__all__ = ["matches_any", "matches_gold"]

_TRUE = frozenset({"true", "yes", "correct"})
_FALSE = frozenset({"false", "no", "incorrect", "wrong"})
_WORD = re.compile(r"\w+(?:['’]\w+)*")
# A sign belongs to a number where nothing stands right before it: "-5", but "1914-1918" and "COVID-19".
_NUMBER = re.compile(r"(?:(?<![\w)\]])[-–−])?\d+(?:,\d{3})*(?:\.\d+)?")
# "C++", "F#", "Ca2+", "Cl-"
_SYMBOL = re.compile(r"[^\W_]+[+#]+(?!\w)|\b[a-z]{1,2}\d?[-–−](?!\w)")
_ROMAN = re.compile(r"[ivx]{2,4}")
_NEGATIONS = frozenset({"no", "not", "never", "none", "nor", "neither", "nothing", "nobody", "cannot", "without"})
_OPPOSITES = (
    ("above", "below"), ("over", "under"), ("up", "down"), ("in", "out"), ("on", "off"), ("before", "after"),
    ("more", "less"), ("more", "fewer"), ("most", "least"), ("inside", "outside"), ("all", "none"), ("few", "many"),
)  # fmt: skip


@lru_cache(maxsize=1)
def _stopwords() -> frozenset[str]:
    """The English stopwords of the bm25s wheel: the list of NLTK, whose own package downloads it."""
    # Only the module with the list: the package imports numba where it is installed, which takes more than a second.
    package = find_spec("bm25s")
    folders = package.submodule_search_locations if package else None
    if not folders:
        raise ModuleNotFoundError("bm25s holds the stopwords and is not installed: pip install bm25s", name="bm25s")
    return frozenset(run_path(str(Path(folders[0]) / "stopwords.py"))["STOPWORDS_EN_PLUS"])


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower().replace("’", "'")


@lru_cache(maxsize=1 << 14)
def _normal(text: str) -> str:
    """Lower case, without stopwords and punctuation, stemmed; a text of stopwords only keeps them."""
    words = _WORD.findall(_folded(text))
    stems = [
        stem(word.removesuffix("'s").replace("'", ""))
        for word in words
        if word not in _stopwords() and word.removesuffix("'s") not in _stopwords()
    ]
    return " ".join(stems) or " ".join(words) or text.strip().lower()


@lru_cache(maxsize=1 << 14)
def _exact(text: str) -> frozenset[str]:
    """What is another answer when a character of it is another: numbers with their signs, symbols, single letters."""
    folded = _folded(text)
    words = _WORD.findall(folded)
    marks = {_canonical(number) for number in _NUMBER.findall(folded)}
    marks.update(symbol.replace("–", "-").replace("−", "-") for symbol in _SYMBOL.findall(folded))
    marks.update(word for word in words if _ROMAN.fullmatch(word))
    # "a" and "I" are words, but for the end of a name: "vitamin A".
    marks.update(word for word in words if len(word) == 1 and word.isalpha() and word not in "ai")
    if len(words) > 1 and words[-1] in ("a", "i"):
        marks.add(words[-1])
    return frozenset(marks)


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
    if _exact(answer) != _exact(gold):
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
    letter ("C++", "vitamin D", "World War II"), in a negation or in a word and its opposite (above, below) never match
    (ours): stopword lists hold "not" and "above", and a digit of a long answer is less than 20 % of it.

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

    left, right = _normal(answer), _normal(gold)
    if compat == "workbench":
        word = re.sub(r"[^\w\s]", "", answer).strip().lower()
        for accepted in (_TRUE, _FALSE):
            if gold.strip().lower() in ("true", "false") and gold.strip().lower() in accepted:
                return word in accepted
        total = len(left) + len(right)
        return left == right or 10 * (total - Indel.distance(left, right)) > 8 * total
    if _contradicts(answer, gold):
        return False
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
