"""One tolerant parser a reply form; what is no verdict, or none surer than another, is unparsed, with the reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rubric_measures.base.errors import InputError
from rubric_measures.prompts._item_lists import parse_items, parse_list
from rubric_measures.prompts._replies import (
    Parsed,
    clean_reply,
    find_lists,
    find_objects,
    objects_of,
    read_part,
    without_thoughts,
)
from rubric_measures.prompts._verdicts import NUMBER, NUMERALS, read_verdict

__all__ = [
    "Parsed",
    "clean_reply",
    "is_unanswerable",
    "objects_of",
    "parse_aspects",
    "parse_items",
    "parse_label",
    "parse_label_list",
    "parse_list",
    "parse_rating",
    "parse_reply",
    "parse_text",
    "parse_verdict",
    "parse_yes_no",
    "without_thoughts",
]

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


def parse_rating(text: str, scale: tuple[int, int] = (0, 5), *, unparsed: str = "", compat: str = "") -> Parsed[int]:
    """Reads a rating: the one verdict of the reply, if it is a whole number of the scale.

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
        digits = "|".join(str(grade) for grade in range(scale[0], scale[1] + 1))
        only = re.fullmatch(rf"\W*({digits})\W*", text)
        return Parsed(int(only[1] if only else is_unanswerable(text)))

    def value_of(match: re.Match[str]) -> tuple[int | None, str]:
        said, of = match["n"].lower(), match["max"]
        number = float(NUMERALS.index(said) if said in NUMERALS else said)
        if match["range"]:
            return None, f"a range ({match['n']}{match['range']}) is no rating"
        if of and float(of) != scale[1]:
            return None, f"{number:g} of {of} is not on the scale {scale[0]} to {scale[1]}"
        if number % 1 or not scale[0] <= number <= scale[1]:
            return None, f"{number:g} is no grade of the scale {scale[0]} to {scale[1]}"
        return int(number), ""

    reply = clean_reply(text)
    found = read_verdict(reply, NUMBER, value_of, scale)
    if found is None and unparsed == "exampp":
        return _by_exampp(reply)
    return found or Parsed(None, "no rating in the reply" if reply else "the reply is empty")


def _by_exampp(reply: str) -> Parsed[int]:
    return Parsed(int(not is_unanswerable(reply)), "no rating in the reply; the rule of EXAM++ was applied")


_ECHO = re.compile(r"[\"'*]{0,4}\byes[\"'*]{0,4}\s?(?:or|and|/|\|)\s?[\"'*]{0,4}no\b[\"'*]{0,4}\s?\??", re.IGNORECASE)
_OPENING = re.compile(
    r"\W*(?:(?P<yes>yes)\b|no\b(?=\s(?:the|it|this|that|there|because|relevant|answer|information|mention|i)\b))",
    re.IGNORECASE,
)


def parse_yes_no(text: str) -> Parsed[int]:
    """Reads yes (1) or no (0): the one verdict of the reply; "Yes or no" is none, and neither is "no doubt".

    >>> parse_yes_no("No, it only lists prices."), parse_yes_no("The answer to this is yes").value
    (Parsed(value=0, reason=''), 1)
    """
    whole = clean_reply(text)
    reply = _ECHO.sub(" ", whole).strip()
    found = read_verdict(reply, "(?P<n>yes|no)", lambda match: (int(match["n"].lower() == "yes"), ""))
    if found is None and (opening := _OPENING.match(reply)):
        return Parsed(int(bool(opening["yes"])))
    if reply != whole.strip():
        return found or Parsed(None, "yes and no are named together, and neither is the verdict")
    return found or Parsed(None, "no yes or no in the reply" if reply else "the reply is empty")


def parse_label(text: str, labels: Sequence[str], scale: tuple[int, int] | None = None) -> Parsed[int]:
    """Reads one of several labels: the grade (`scale[0]` + place in `labels`) of the one that is the verdict.

    A label that is stated ("Label: Not relevant", "Not relevant because …") counts before those inside of sentences;
    these must all be the same. "not very relevant" is none of "Not relevant", "Very relevant". A reply without a label
    may carry the grade as a number, read as a rating.
    """
    low = scale[0] if scale else 0
    folded = [_folded_label(name) for name in labels]
    any_label = "|".join(
        r"[\s_-]+".join(map(re.escape, name.split())) for name in sorted(folded, key=len, reverse=True)
    )

    def value_of(match: re.Match[str]) -> tuple[int | None, str]:
        return low + folded.index(_folded_label(match["n"])), ""

    reply = clean_reply(text)
    if stated := read_verdict(reply, rf"(?<!\w)(?P<n>{any_label})(?!\w)", value_of):
        return stated
    # A label that begins with "not" is one; "not", "isn't" or "no" before a label is none of them.
    mention = re.compile(
        rf"(?<!\w)(?P<n>{any_label})(?!\w)|\b(?:(?:not|never|\w{{1,9}}n['’]t)[ \t](?:[\w'’]{{1,20}}[ \t]){{0,2}}"
        rf"|no[ \t])(?:{any_label})(?!\w)",
        re.IGNORECASE,
    )
    found = {value_of(match)[0] if match["n"] else match[0] for match in mention.finditer(read_part(reply))}
    if not found:
        rating = parse_rating(reply, scale or (low, low + len(labels) - 1))
        return rating if rating.value is not None else Parsed(None, f"none of {', '.join(labels)} in the reply")
    grade = found.pop()
    if found or not isinstance(grade, int):
        reason = "several labels, and none is stated" if found else f"{grade!r} is none of {', '.join(labels)}"
        return Parsed(None, reason)
    return Parsed(grade)


def parse_phrase(text: str, labels: Sequence[str], scale: tuple[int, int] | None = None) -> Parsed[int]:
    """Reads a reply that is one of the labels and nothing else: its grade (`scale[0]` + place in `labels`).

    Capitals, quotes, stars and a full stop are free. A sentence around the label is no verdict: "not full support" says
    the opposite of the label that it holds. An empty label stands for a grade that nobody gives.

    >>> parse_phrase("'full support'.", ("No Support", "Partial Support", "Full Support")).value
    2
    """
    reply = clean_reply(text)
    said = _folded_label(reply.strip(" \t\r\n\"'`*.“”‘’"))
    folded = [_folded_label(name) for name in labels]
    if said and said in folded:
        return Parsed((scale[0] if scale else 0) + folded.index(said))
    known = ", ".join(filter(None, labels))
    return Parsed(None, f"the reply is not one of {known} alone" if reply else "the reply is empty")


def _folded_label(label: str) -> str:
    return re.sub(r"[\s_-]+", " ", label).lower()


_ALIASES = {
    "okey": "okay", "ok": "okay", "supported": "support", "not_supported": "not_support", "no_support": "not_support",
    "partially_supported": "partial_support", "partially_support": "partial_support", "partial": "partial_support",
}  # fmt: skip


def parse_label_list(text: str, labels: Sequence[str], count: int | None = None) -> Parsed[tuple[str, ...]]:
    """Reads a list of labels, the last list of the reply; every label must be known, and their number `count`.

    Capitals, blanks or hyphens for underscores, "okey" and "supported" are understood. Without brackets, one label a
    line is read where the number of lines is right.
    """
    reply = clean_reply(text)
    lists, truncated = find_lists(reply)
    if truncated:
        return Parsed(None, "the list is not closed")
    words: Sequence[str] | None = lists[-1] if lists else None
    if words is None and count:
        lines = [re.sub(r"\A\W*(?:\d+[.):]\s*)?", "", line) for line in reply.splitlines() if line.strip()]
        words = lines if len(lines) == count else None
    if words is None:
        return Parsed(None, "no list in the reply" if reply else "the reply is empty")
    folded = [re.sub(r"[\s-]+", "_", word.strip(" .*\"'`").lower()) for word in words]
    named = tuple(_ALIASES.get(word, word) if word not in labels else word for word in folded)
    if strange := sorted({word for word in named if word not in labels}):
        return Parsed(None, f"unknown labels {', '.join(strange)[:80]} (known: {', '.join(labels)})")
    if count is not None and len(named) != count:
        return Parsed(None, f"{len(named)} labels for {count} items")
    return Parsed(named)


def _raw_label_list(text: str) -> Parsed[tuple[str, ...]]:
    """Reads the last list of the reply as it stands, in small letters, whatever its length and labels.

    So does the nuggetizer program (0.0.5), which leaves it to the scores what to make of unknown labels.
    """
    lists, truncated = find_lists(clean_reply(text))
    if truncated or not lists:
        return Parsed(None, "the list is not closed" if truncated else "no list in the reply")
    return Parsed(tuple(label.lower() for label in lists[-1]))


def parse_aspects(text: str, aspects: Sequence[str], scale: tuple[int, int] = (0, 2)) -> Parsed[dict[str, int]]:
    """Reads the last JSON object that names aspects: every aspect must be there, with a grade of the scale."""
    reply = clean_reply(text)
    named = [found for found in find_objects(reply) if any(aspect in found for aspect in aspects)]
    if not named:
        return Parsed(None, "no object with the aspects in the reply" if reply else "the reply is empty")
    grades: dict[str, int] = {}
    for aspect in aspects:
        value = named[-1].get(aspect)
        if isinstance(value, str) and re.fullmatch(r"\s*\d{1,3}\s*", value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:
            return Parsed(None, f"aspect {aspect} has no whole number")
        if not scale[0] <= value <= scale[1]:
            return Parsed(None, f"aspect {aspect}: {str(value)[:20]} is no grade of the scale {scale[0]} to {scale[1]}")
        grades[aspect] = int(value)
    return Parsed(grades)


_VERDICTS = {"a": "a", "b": "b", "c": "tie", "tie": "tie", "tie (both bad)": "both_bad"}


_BOTH_BAD = "Tie (Both Bad)"


def parse_verdict(text: str, labels: Sequence[str] = ()) -> Parsed[str]:
    """Reads the last `[[A]]`, `[[B]]` or `[[C]]` of the reply as `a`, `b` or `tie`; without one there is no verdict.

    Where the labels have `Tie (Both Bad)`, as those of RAGDoll do, the reply must be one verdict in brackets and
    nothing else, as its judge has it.

    >>> parse_verdict("[[Tie (Both Bad)]]", ("A", "B", "Tie", "Tie (Both Bad)")).value
    'both_bad'
    """
    reply = clean_reply(text)
    if _BOTH_BAD in labels:
        named = {f"[[{label}]]": _VERDICTS[label.lower()] for label in labels}
        wanted = Parsed(named.get(reply.strip()))
        return wanted if wanted.value else Parsed(None, f"the reply is not one of {', '.join(named)} alone")
    found = re.findall(r"\[\[[\s*_]*(a|b|c|tie)[\s*_]*\]\]", reply, re.IGNORECASE)
    return Parsed(_VERDICTS[found[-1].lower()]) if found else Parsed(None, "no [[A]], [[B]] or [[C]] in the reply")


def parse_text(text: str) -> Parsed[str]:
    """The reply as it is, without thoughts; unparsed when nothing is left."""
    reply = clean_reply(text)
    return Parsed(reply) if reply else Parsed(None, "the reply is empty")


def _own_parts(reply: str, pattern: str, json_field: str) -> list[str]:
    """The parts of a reply that a prompt's own reading says hold the grade."""
    if pattern:
        return [match["grade"] for match in re.finditer(pattern, read_part(reply)) if match["grade"]]
    entries = [found[json_field] for found in objects_of(reply) if json_field in found][-1:]
    return [("no", "yes")[entry] if isinstance(entry, bool) else str(entry) for entry in entries]


def parse_reply(
    text: str,
    parser: str,
    *,
    scale: tuple[int, int] | None = None,
    labels: Sequence[str] = (),
    unparsed: str = "",
    compat: str = "",
    count: int | None = None,
    pattern: str = "",
    json_field: str = "",
) -> Parsed[Any]:
    """Reads a reply with the parser of a name; see the parsers for the options.

    With `pattern` (its group `grade`) or `json_field` (of the last JSON object that has it), the parser reads only
    what stands there; where it stands several times, all must say the same.

    Raises:
        InputError: there is no such parser.
    """
    if (pattern or json_field) and not compat:
        reply = clean_reply(text)
        parts = _own_parts(reply, pattern, json_field)
        found = {parse_reply(part, parser, scale=scale, labels=labels) for part in parts}
        if found:
            return found.pop() if len(found) == 1 else Parsed(None, "several verdicts that differ")
        if unparsed == "exampp":
            return _by_exampp(reply)
        where = f"pattern {pattern}" if pattern else f"JSON field {json_field}"
        return Parsed(None, f"nothing in the reply stands where {where} says")
    match parser:
        case "rating":
            return parse_rating(text, scale or (0, 5), unparsed=unparsed, compat=compat)
        case "yes_no":
            return parse_yes_no(text)
        case "label":
            return parse_label(text, labels, scale)
        case "phrase":
            return parse_phrase(text, labels, scale)
        case "label_list":
            return _raw_label_list(text) if compat == "nuggetizer" else parse_label_list(text, labels, count)
        case "list":
            return parse_list(text)
        case "items":
            return parse_items(text)
        case "aspects":
            return parse_aspects(text, labels, scale or (0, 2))
        case "verdict":
            return parse_verdict(text, labels)
        case "text":
            return parse_text(text)
        case _:
            raise InputError(f"unknown parser {parser!r}")
