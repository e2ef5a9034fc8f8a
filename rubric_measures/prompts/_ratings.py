"""Reading ratings: which number of a reply is its verdict, if any; and replies that say that there is no answer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from rubric_measures.base.errors import InputError
from rubric_measures.prompts._rating_patterns import (
    ABOUT_IT,
    ASPECT,
    ASPECT_ANYWHERE,
    ASPECT_ENTRY,
    ASPECT_HEADING,
    ASPECT_KEY,
    BARE_IS,
    BOUND,
    FINAL_LABEL,
    FOREIGN,
    HYPOTHETICAL,
    IF_AFTER,
    LAST_SENTENCE,
    LEADING,
    NEGATED,
    NUMERALS,
    OF_ASPECT,
    OF_OTHERS,
    OTHER_SCALE_AFTER,
    OVERALL_ANYWHERE,
    REVISED_LABEL,
    SCALE_WORDS,
    STRONG,
    WEAK,
    WHOLE,
    without_scale,
)
from rubric_measures.prompts._replies import Parsed, clean_reply, find_objects

__all__ = ["is_unanswerable", "parse_rating"]

_EXPRESSIONS = (
    "unanswerable", "no", "no answer", "not enough information", "unknown", "it is not possible to tell",
    "it does not say", "no relevant information",
)  # fmt: skip
_UNANSWERABLE = re.compile(
    r"\W*(?:" + "|".join(_EXPRESSIONS) + r")\W*"
    # The longer expressions also open sentences: "It does not say in the text.", "No relevant information was found."
    r"|\W*(?:there is |the (?:context|passage|text) (?:has|contains|gives|provides) )?"
    r"(?:" + "|".join((*_EXPRESSIONS[-3:], "not enough information")) + r")"
    r"(?: (?:in|to|from|about|for|on|is|was|provided|given|available|here|why|what|how|who|when|where)\b[^\n]{0,120})?"
    r"\W*"
    r"|\W*(?:the|this) (?:question|query) is unanswerable\W*",
    re.IGNORECASE,
)
_ILL_FORMED = re.compile(r"\(?(?:[a-z]|[ivx]{1,5})[.)]+|\((?:[a-z]|[ivx]{1,5})\)\.?|\W*", re.IGNORECASE)


def is_unanswerable(text: str) -> bool:
    """Whether a reply says that there is no answer ("unknown", "It does not say.") or is none ("a.", "(iii)", "").

    Source: EXAM++ (Farzi & Dietz 2024, section 4.2) lists the expressions and the ill-formed answers.

    >>> is_unanswerable("No relevant information."), is_unanswerable("(iii)"), is_unanswerable("No evidence of frost")
    (True, True, False)
    """
    stripped = " ".join(clean_reply(text).split())
    return bool(_UNANSWERABLE.fullmatch(stripped) or _ILL_FORMED.fullmatch(stripped))


_STARS = re.compile(r"\*\*|__|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")
_CLOSING_HASHES = re.compile(r"(?<=[\w.]) #{1,6} ?$", re.MULTILINE)  # "## Rating: 3 ##"
_KEYS = (
    "final_rating", "final_score", "final_grade", "overall_rating", "overall_score", "overall_grade", "rating", "score",
    "grade", "overall", "label", "o", "relevance", "relevance_score", "relevance_rating", "coverage_score",
)  # fmt: skip


def parse_rating(text: str, scale: tuple[int, int] = (0, 5), *, unparsed: str = "", compat: str = "") -> Parsed[int]:
    """Reads a rating: the last verdict of the reply, if it is a whole number of the scale.

    Forms that state the rating count before mentions in prose, and of them the last: a number alone at the head or at
    the end, the scale's own wording ("4: The answer is mostly …"), a label at the head of a line or sentence ("Rating:
    4", "Final score = 4/5"), "I would give it a 4", and what takes back a verdict ("Actually 2", "I change it to 3").
    Else aspects ("Relevance: 3"), else prose about the passage ("it gets 3 out of 5"); where any of these differ
    there is no rating. Numbers that name the scale or its ends ("max score: 5", "from 0 to 5") or count something
    ("3 topics", "option 2"), conditions ("it would be 5 if …"), bounds ("≥4"), ranges ("3-4"), halves ("4.5") and
    other scales ("7/10") are no grades.

    Args:
        text: the reply.
        scale: lowest and highest grade.
        unparsed: `exampp`: a reply without a rating is 0 when it is an unanswerable expression (or empty), else 1
            (EXAM++ 4.2.2); a rating outside the scale stays unparsed.
        compat: `workbench`: a rating is a reply of one digit of the scale between non-word characters; else an
            unanswerable expression or nothing is 1, and an answer in words 0 (the workbench's program).

    Raises:
        InputError: an option has an unknown value.
    """
    if compat not in ("", "workbench") or unparsed not in ("", "exampp"):
        raise InputError(f"parsing option compat={compat!r}, unparsed={unparsed!r}: known are workbench and exampp")
    if compat == "workbench":
        return Parsed(_workbench_rating(text, scale))
    reply = clean_reply(text)
    plain = re.sub(r"[^\S\n]+", " ", _STARS.sub("", unicodedata.normalize("NFKC", reply)))
    plain = _CLOSING_HASHES.sub("", plain)
    found = _keyed_number(reply) or _last_number(re.sub(r"\s*\n\s*", "\n", plain), scale)
    if found is None:
        if unparsed == "exampp":
            return Parsed(0 if is_unanswerable(reply) else 1, "no rating in the reply; the rule of EXAM++ was applied")
        return Parsed(None, "the reply is empty" if not reply else "no rating in the reply")
    number, problem = found
    if problem:
        return Parsed(None, problem)
    if number % 1 != 0 or not scale[0] <= number <= scale[1]:
        return Parsed(None, f"{number:g} is no grade of the scale {scale[0]} to {scale[1]}")
    return Parsed(int(number))


def _workbench_rating(text: str, scale: tuple[int, int]) -> int:
    digits = "|".join(str(grade) for grade in range(scale[0], scale[1] + 1))
    if match := re.fullmatch(rf"\W*({digits})\W*", text):
        return int(match[1])
    return 1 if is_unanswerable(text) else 0


def _keyed_number(reply: str) -> tuple[float, str] | None:
    """The rating of the last JSON object that has one under a usual key; its other texts are no verdicts."""
    for found in reversed(find_objects(reply)):
        by_key = {re.sub(r"[\s-]+", "_", key.lower()): _plain_number(value) for key, value in found.items()}
        for key in _KEYS:
            if (value := by_key.get(key)) is None:
                continue
            # Of sub-scores alone none is the rating, but when they agree.
            if (
                ASPECT_KEY.fullmatch(key)
                and len({by_key[one] for one in by_key if ASPECT_KEY.fullmatch(one)} - {None}) > 1
            ):
                return 0.0, "several numbers that may be the rating"
            return value, ""
    return None


def _plain_number(value: object) -> float | None:
    """The number of a JSON value that is one, be it quoted; None for all others."""
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,9}(\.\d{1,9})?\s*", value):
        return float(value)
    if isinstance(value, float) or (type(value) is int and abs(value) < 10**9):
        return float(value)
    return None


def _number(text: str) -> float:
    return float(NUMERALS.get(text.lower(), text.replace("−", "-")))


class _Found(NamedTuple):
    """A verdict.

    Attributes:
        position: where its number stands.
        sureness: of its form: 3 states the rating, 2 that of an aspect, 1 is in prose.
        verdict: number and problem.
        aspect: it states the rating, but of an aspect: "Final relevance score: 3".
    """

    position: int
    sureness: int
    verdict: tuple[float, str]
    aspect: bool = False


def _last_number(text: str, scale: tuple[int, int]) -> tuple[float, str] | None:
    """The last verdict (number, problem) of a reply; None when there is no verdict at all.

    Of the surest form of verdict the last one counts. Verdicts in prose, or about aspects, that differ from one another
    are none.
    """
    if whole := WHOLE.fullmatch(text):
        return None if BOUND.search(text[: whole.start("n")]) else _verdict(whole, scale)
    if text.lower().strip(" .!\n") in NUMERALS:
        return _number(text.strip(" .!\n")), ""
    text = without_scale(text, scale)
    if FOREIGN not in text and (whole := WHOLE.fullmatch(text)):
        return _verdict(whole, scale)
    found = [one for pattern in STRONG for one in _stated(text, pattern, scale, 3)]
    found += [_Found(*lead) for lead in _leading_numbers(text, scale)]
    if last := LAST_SENTENCE.search(text):
        found.append(_Found(last.start("n"), 3, _verdict(last, scale)))
    found += _stated(text, ASPECT, scale, 2)
    weak = [one for pattern in WEAK for one in _stated(text, pattern, scale, 1)]
    found += weak
    if not found:
        return None
    sureness = max(one.sureness for one in found)
    found = [one for one in found if one.sureness == sureness]
    if sureness == 2:
        # Sub-scores may stand in a row, and with them the rating of the whole, which prose may tell, too.
        whole_ones = list(_stated(text, OVERALL_ANYWHERE, scale, 2))
        prose = [one for one in weak if ABOUT_IT.search(text[_sentence(text, one.position) : one.position])]
        found = whole_ones or [*found, *_stated(text, ASPECT_ANYWHERE, scale, 2), *prose]
    elif sureness == 1:
        found += _stated(text, OVERALL_ANYWHERE, scale, 2)
    chosen = max(found)
    if (sureness < 3 or chosen.aspect) and len({one.verdict for one in found}) > 1:
        return 0.0, "several numbers that may be the rating"
    if FOREIGN in text[_sentence(text, chosen.position) : chosen.position]:
        return 0.0, f"a rating on another scale than {scale[0]} to {scale[1]}"
    return chosen.verdict


def _stated(text: str, pattern: re.Pattern[str], scale: tuple[int, int], sureness: int) -> Iterator[_Found]:
    """The verdicts of one form, without those that the reply rejects or that would hold under a condition."""
    for match in pattern.finditer(text):
        start = match.start("n") if match["n"] else match.start()
        if pattern in WEAK and BARE_IS.match(match[0]):
            continue
        if NEGATED.search(text, max(0, match.start() - 80), match.start()):
            continue
        if HYPOTHETICAL.search(text, max(0, match.start() - 200), start) or IF_AFTER.match(text, match.end()):
            continue
        if OTHER_SCALE_AFTER.match(text, match.end()):
            continue
        if sureness == 1 and not _is_about_it(text, match):
            continue
        verdict = _verdict(match, scale)
        if BOUND.search(text, max(0, start - 3), start) and text[match.end() : match.end() + 1] != ">":
            verdict = 0.0, "a bound is no rating"
        how_sure, aspect = _of_aspect(text, match, start) if sureness == 3 else (sureness, False)
        yield _Found(start, how_sure, verdict, aspect)


def _of_aspect(text: str, match: re.Match[str], start: int) -> tuple[int, bool]:
    """How sure a statement is of the whole rating, as in `_Found`: one that names an aspect may be of that only."""
    said = text[match.start() : start]
    groups = match.groupdict()
    named = groups.get("aspect") or OF_ASPECT.search(said)
    if (named and FINAL_LABEL.search(said)) or groups.get("coverage"):
        return 3, True
    if named and not REVISED_LABEL.search(said):
        return 2, False
    return (2 if _is_under_aspect(text, match.start()) else 3), False


def _is_under_aspect(text: str, position: int) -> bool:
    """Whether the line above is the heading of an aspect: "**Relevance**"."""
    end = text.rfind("\n", 0, position + 1)
    return end > 0 and bool(ASPECT_HEADING.fullmatch(text, text.rfind("\n", 0, end) + 1, end))


def _sentence(text: str, position: int) -> int:
    """Where the sentence begins that holds a position."""
    return max(text.rfind(stop, 0, position) for stop in (". ", "! ", "? ", "\n")) + 1


def _is_about_it(text: str, match: re.Match[str]) -> bool:
    """Whether a sentence speaks of what is rated; of a few words, it can speak of nothing else."""
    start = _sentence(text, match.start())
    if OF_OTHERS.search(text[max(start, match.start("n") - 300) : match.start("n")]):
        return False
    sentence = text[start : match.end()]
    return len(sentence.split()) <= 4 or bool(ABOUT_IT.search(sentence))


def _leading_numbers(text: str, scale: tuple[int, int]) -> list[tuple[int, int, tuple[float, str]]]:
    """Numbers that head a line, but for those of a list. Several different ones are the scale copied: no verdict.

    One alone in its line below the heading of an aspect is the rating of that aspect.
    """
    heads = [match for match in LEADING.finditer(text) if match.start() == 0 or not (match["paren"] or match["more"])]
    of_aspects = {match.start(): match for match in heads if _is_under_aspect(text, match.start() - 1)}
    heads = _without_list([match for match in heads if match.start() not in of_aspects])
    last_line = text.rfind("\n") + 1
    bare_last = [match for match in heads if match.start() >= last_line and not match["text"]]
    if len({match["n"] for match in heads}) > 1:
        only_numbers = len(heads) == text.count("\n") + 1 and not any(match["text"] for match in heads)
        heads = bare_last if not only_numbers and not all(match["mark"] for match in heads) else []
    kept = [(match.start("n"), 2, _verdict(match, scale)) for match in of_aspects.values() if not match["text"]]
    for match in heads:
        first_of_list = match["text"] and match["n"] == "1" and match["mark"].strip() in (".", ")")
        if first_of_list and not re.match(SCALE_WORDS, match["text"], re.IGNORECASE):
            continue  # "1. The heart …" opens a list
        if match["text"] and match["mark"] in (".", ")") and ASPECT_ENTRY.match(match["text"]):
            continue
        if match.start() > 0 and match["text"]:
            continue  # a heading number in the middle of the reasoning
        kept.append((match.start("n"), 3, _verdict(match, scale)))
    return kept


_LIST_MARKS = (".", ")", "]", ":", "-", "–", "—")


def _without_list(heads: list[re.Match[str]]) -> list[re.Match[str]]:
    """The numbers that head lines, without the numbered list that follows the first one: "4", "1. It names …", "2. …".

    A list counts up from 1. A head that is written like the entries ("0. Not …", "1. Hardly …") may be one of a scale
    that was copied, and so stays beside them, unless its number and its words are those of a grade above.
    """
    entries = [match for match in heads[1:] if match["text"] and match["mark"].strip() in _LIST_MARKS]
    counted: set[int] = set()
    for match in entries:
        number = _number(match["n"])
        if number != 1 and number - 1 not in counted:
            return heads
        counted.add(int(number))
    if not entries:
        return heads
    first = heads[0]
    if first["text"] and first["mark"].strip() == entries[0]["mark"].strip():
        worded = re.match(SCALE_WORDS, first["text"], re.IGNORECASE)
        if not worded or len(counted) < 2 or first["n"] == "0":
            return heads
    return [match for match in heads if match not in entries]


def _verdict(match: re.Match[str], scale: tuple[int, int]) -> tuple[float, str]:
    groups = match.groupdict()
    if groups.get("range"):
        return 0.0, f"a range ({match[0].strip()[-40:]}) is no rating"
    of = groups.get("max") or groups.get("max2")
    number = _number(groups.get("n") or groups["n2"])
    if of and _number(of) != scale[1]:
        return number, f"{number:g} of {of} is not on the scale {scale[0]} to {scale[1]}"
    return number, ""
