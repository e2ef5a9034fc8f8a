"""Reading ratings: which number of a reply is its verdict, if any; and replies that say that there is no answer."""

from __future__ import annotations

import re
import unicodedata

from rubric_measures.errors import InputError
from rubric_measures.prompts.replies import Parsed, clean_reply, find_objects

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


_NUMERALS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_WORDS = {word: number for number, word in enumerate(_NUMERALS)}
_N = r"(?P<n>[-−]?\d+(?:\.\d+)?)"
_N_OR_WORD = r"(?P<n>[-−]?\d+(?:\.\d+)?|" + "|".join(_WORDS) + ")"
_OF = r"(?:\s*/\s*(?P<max>\d+)|\s+(?:out\s+)?of\s+(?P<max2>\d+|five|three|two|ten))?"
_OUT_OF = r"(?:\s*/\s*(?P<max>\d+)|\s+out\s+of\s+(?P<max2>\d+|five|three|two|ten))"
_RANGE = r"(?P<range>\s*(?:-+>|=>|→|-|–|—|to|or|and)\s*\d+(?!\d))?"
# After a verdict: the end, punctuation, or a word that goes on about it. "3 topics", "5 %", "3rd" are no verdicts.
_TAIL = (
    r"(?![\w%°€$]|\.\d|,\d|/\d|:\d|-\w)(?=\s*(?:\Z|[\n.,;:!?)\]}\"'<>|(–—+=\\-])"
    r"|\s+(?:because|since|as|for|on|in|due|given|with|and|but|based|here|overall|to|stars?|points?|which|that|out|"
    r"rather|instead|it|there|this|the\s+(?:answer|passage|context|text|key|nugget|question|document|response))\b)"
)
_OPEN = r"[\s\"'(\[{<]*"
_KEYWORD = re.compile(
    r"(?:\b|_)(?:rating|rate|score|grade|label|verdict|mark|relevance|coverage|level|final\s+answer|my\s+answer|(?:answer|output|result|choice|response|so|final)(?=\s*:)|"
    r"judg(?:e)?ment|overall|option|therefore|thus|hence|conclusion)\b[\"'\])>}]*\s*(?:\([^()\n]{0,40}\)|\[[^\[\]\n]{0,40}\])?\s*"
    r"(?:(?:is|was|of|as|would|should|will|be|it|this|at|to|a|an|the|therefore|thus|[:=|→,]|->|[-–—](?=\s))\s*)*"
    + _OPEN + _N_OR_WORD + _RANGE + _OF + _TAIL,
    re.IGNORECASE,
)  # fmt: skip
_VERB = re.compile(
    r"\b(?:rate|rated|rating|give|gave|given|assign|assigned|score|scored|scores|grade|graded|choose|chose|chosen|select|"
    r"selected|pick|picked|deserves?|earns?|gets?|receives?|merits?|go(?:ing)?\s+with|say|is|it's|that's)\s+"
    r"(?:(?:it|this|that|the|passage|answer|context|nugget|document|response|a|an|as|at|with|of|rating|score|grade|option|"
    r"level|number|choice)\b:?\s+){0,6}" + _OPEN + _N + _RANGE + _OF + _TAIL,
    re.IGNORECASE,
)
# "Rating: 4. Actually, 3." takes back the verdict before it.
_REVISED = re.compile(
    r"\b(?:actually|correction|however|wait|no|(?:up)?on\s+(?:further\s+|second\s+)?(?:reflection|thoughts?))\s*[,:–—-]\s*"
    r"(?:(?:up)?on\s+(?:further\s+)?reflection\s*,\s*)?(?:(?:it|that|is|it's|rather|make|a|an)\s+){0,3}"
    + _OPEN + _N + _RANGE + _OF + r"(?=\s*(?:\Z|[.!\n]))(?!\.\d)",
    re.IGNORECASE,
)  # fmt: skip
# "I would not give it a 5", "rather than a 4": the number after these is not the verdict.
_NEGATED = re.compile(r"(?:\b(?:not|never|cannot|than|instead of)|n't) +(?:[\w']+ +){0,2}\Z", re.IGNORECASE)
_BARE_IS = re.compile(r"(?:\bis|it's|that's)\s+[\"'(\[{<]*[-−]?\d", re.IGNORECASE)
_FRACTION = re.compile(r"(?<![\w./-])" + _N + _OUT_OF + _TAIL, re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\{\s*" + _N + r"\s*\}|\[\[\s*(?P<n2>[-−]?\d+(?:\.\d+)?)\s*\]\]")
_SCALE_WORDS = (
    r"the\s+(?:answer|passage|context|text|key|nugget|question|document|response)|detailed|sufficient|mentioned|briefly|"
    r"minimally|not\s+mentioned|highly|mostly|partially|not\s+relevant|relevant|very|somewhat|limited"
)
_LEADING = re.compile(
    r"^[ \t]*(?:[-•>]\s+)*[\"'(\[]*" + _N + _RANGE
    + r"(?:(?P<mark>\s*[.)\]:\"'–—=-]+)[ \t]*(?P<text>\S[^\n]*)?"
    + r"|\s*(?P<paren>\([^\n]*|,(?!\d)[^\n]*)?"
    + r"|\s+(?=(?:because|since|as|stars?|points?|" + _SCALE_WORDS + r")\b)(?P<more>[^\n]*))[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)  # fmt: skip
_WHOLE = re.compile(r"[^\w$€£]*?" + _N + r"(?:\s*/\s*(?P<max>\d+))?[^\w%°€$]*")
_STARS = re.compile(r"\*\*|__|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")


def parse_rating(text: str, scale: tuple[int, int] = (0, 5), *, unparsed: str = "", compat: str = "") -> Parsed[int]:
    """Reads a rating: the last verdict of the reply, if it is a whole number of the scale.

    Verdicts are numbers that stand alone, behind a word such as "rating" or "score", in "N/5" and "N out of 5", or at
    the head of the reply as in the scale's own wording ("4: The answer is mostly …"). Years, counts ("3 topics"),
    ranges ("3-4"), halves ("4.5") and other scales ("7/10") are no grades.

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
        for key, value in found.items():
            if key.lower() in ("rating", "score", "grade", "label", "o", "final_score", "relevance"):
                if isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,9}(\.\d{1,9})?\s*", value):
                    value = float(value)
                if isinstance(value, float) or (type(value) is int and abs(value) < 10**9):
                    return float(value), ""
    return None


def _number(text: str) -> float:
    return float(_WORDS.get(text.lower(), text.replace("−", "-")))


def _last_number(text: str, scale: tuple[int, int]) -> tuple[float, str] | None:
    """The last verdict (number, problem) of a reply; None when there is no verdict at all."""
    if whole := _WHOLE.fullmatch(text):
        return _verdict(whole, scale)
    if text.lower().strip(" .!\n") in _WORDS:
        return _number(text.strip(" .!\n")), ""
    found: list[tuple[int, tuple[float, str]]] = []
    for pattern in (_KEYWORD, _VERB, _FRACTION, _BOXED, _REVISED):
        for match in pattern.finditer(text):
            if pattern is _VERB and _BARE_IS.match(match[0]):
                continue  # "The answer is 4." may answer the question itself
            if _NEGATED.search(text, max(0, match.start() - 80), match.start()):
                continue
            found.append((match.start("n") if match["n"] else match.start(), _verdict(match, scale)))
    found += _leading_numbers(text, scale)
    return max(found)[1] if found else None


def _leading_numbers(text: str, scale: tuple[int, int]) -> list[tuple[int, tuple[float, str]]]:
    """Numbers that head a line. Several different ones are a numbered list, or the scale copied: no verdict."""
    heads = [match for match in _LEADING.finditer(text) if match.start() == 0 or not (match["paren"] or match["more"])]
    last_line = text.rfind("\n") + 1
    bare_last = [match for match in heads if match.start() >= last_line and not match["text"]]
    if len({match["n"] for match in heads}) > 1:
        heads = bare_last if not all(match["mark"] for match in heads) else []
    kept = []
    for match in heads:
        first_of_list = match["text"] and match["n"] == "1" and match["mark"].strip() in (".", ")")
        if first_of_list and not re.match(_SCALE_WORDS, match["text"], re.IGNORECASE):
            continue  # "1. The heart …" opens a list
        if match.start() > 0 and match["text"]:
            continue  # a heading number in the middle of the reasoning
        kept.append((match.start("n"), _verdict(match, scale)))
    return kept


def _verdict(match: re.Match[str], scale: tuple[int, int]) -> tuple[float, str]:
    groups = match.groupdict()
    if groups.get("range"):
        return 0.0, f"a range ({match[0].strip()[-40:]}) is no rating"
    of = groups.get("max") or groups.get("max2")
    number = _number(groups.get("n") or groups["n2"])
    if of and _number(of) != scale[1]:
        return number, f"{number:g} of {of} is not on the scale {scale[0]} to {scale[1]}"
    return number, ""
