"""Whether an extracted answer matches a gold answer: normalised words, then an edit distance."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from rubric_measures.backends.words import content_stems
from rubric_measures.prompts import is_unanswerable

__all__ = ["matches_any", "matches_gold"]

_TRUE = frozenset({"true", "yes", "correct"})
_FALSE = frozenset({"false", "no", "incorrect", "wrong"})


@lru_cache(maxsize=1 << 14)
def _normal(text: str) -> str:
    """Lower case, without stopwords and punctuation, stemmed; a text of stopwords only keeps them."""
    return " ".join(content_stems(text)) or " ".join(re.findall(r"\w+", text.lower())) or text.strip().lower()


def matches_gold(answer: str, gold: str, *, compat: str = "") -> bool:
    """Whether an answer says what a gold answer says.

    Both are lower-cased, freed of stopwords and stemmed; they match when the edit distance (Levenshtein, characters)
    is less than 20 % of the longer one's length.

    Args:
        answer: the extracted answer.
        gold: the gold answer.
        compat: `workbench`: a similarity of 2 · matches / (total length) above 80 % instead, and gold answers "true"
            and "false" also accept yes, correct / no, incorrect, wrong, as the workbench's program has it.

    Source: EXAM++ (Farzi and Dietz 2024), section 4.2.1; the Rubric workbench's program.

    >>> matches_gold("The epidermis.", "epidermis"), matches_gold("rising", "rise"), matches_gold("dermis", "epidermis")
    (True, True, False)
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
