"""One tolerant parser a reply form: the last verdict counts, and what is no verdict is unparsed, with the reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rubric_measures.base.errors import InputError
from rubric_measures.prompts._item_lists import parse_items, parse_list
from rubric_measures.prompts._ratings import is_unanswerable, parse_rating
from rubric_measures.prompts._replies import Parsed, clean_reply, find_lists, find_objects

__all__ = [
    "Parsed",
    "clean_reply",
    "is_unanswerable",
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
    "raw_label_list",
]

_YES_NO_END = r"\b(?=\W*(?:\Z|\n)|\s*[,.;:!)\]\"'*–—-]|\s+(?:because|since|as|due)\b)"
_YES_NO = re.compile(
    r"(?:\A|(?<=[\n.!?:;>]))[\s\"'*_#(\[-]*(?P<a>yes|no)" + _YES_NO_END +
    r"|\b(?:answer|verdict|judge?ment|label|response|output|result|conclusion|relevan(?:t|ce)|correct|say|therefore|thus|hence)\b"
    r"[\"'*_\]]*,?\s*(?:is|would\s+be|:|=)?\s*[\"'*_(\[]*(?P<b>yes|no)" + _YES_NO_END,
    re.IGNORECASE,
)  # fmt: skip
_YES_NO_HEAD = re.compile(
    r"\W*(?:(?P<yes>yes)\b|(?P<no>no)\b(?=\s+(?:the|it|this|that|there|because|since|as|relevant|answer|information|mention|i)\b))",
    re.IGNORECASE,
)
_YES_NO_ECHO = re.compile(r"[\"'*]*yes[\"'*]*\s*(?:or|/|\|)\s*[\"'*]*no[\"'*]*|\byes and no\b", re.IGNORECASE)


# "The passage states that the answer is no": what a text says, not the reply; "…, so the answer is no" is the reply's.
_REPORTED = re.compile(
    r"\b(?:says|said|saying|states?|stated|stating|reads|claims?|claimed|mentions?|mentioned|quotes?|quoted|writes|wrote|asks|"
    r"asked|replies|replied|according\s+to)\b(?:(?!\b(?:so|therefore|thus|hence|but|however|I)\b)[^.!?\n])*\Z",
    re.IGNORECASE,
)


def _is_of_others(reply: str, match: re.Match[str]) -> bool:
    """Whether a yes or no stands in a quotation, or in a sentence that tells what a text says."""
    start = match.start("a") if match["a"] else match.start()
    before = reply[max(0, start - 300) : start]
    line = before[before.rfind("\n") + 1 :]
    quoted = line.count('"') % 2 == 1 or line.count("“") > line.count("”")
    return quoted or bool(_REPORTED.search(before))


def parse_yes_no(text: str) -> Parsed[int]:
    """Reads yes (1) or no (0): the last verdict of the reply; "Yes or no" is none, and neither is "no doubt".

    Where the reply begins with one, those that it quotes are none: 'Yes. The passage states: "No, they cannot."'

    >>> parse_yes_no("No, it only lists prices."), parse_yes_no("Answer: **Yes**").value
    (Parsed(value=0, reason=''), 1)
    """
    reply = _YES_NO_ECHO.sub(" ", clean_reply(text))
    matches = list(_YES_NO.finditer(reply))
    head = _YES_NO_HEAD.match(reply)
    if head or (matches and matches[0].start() == 0):
        matches = [match for match in matches if match.start() == 0 or not _is_of_others(reply, match)]
    found = [(match["a"] or match["b"]).lower() for match in matches]
    if not found and head:
        found = ["yes" if head["yes"] else "no"]
    if not found:
        return Parsed(None, "no yes or no in the reply" if reply else "the reply is empty")
    return Parsed(1 if found[-1] == "yes" else 0)


_BEFORE_LABEL = re.compile(r"(?:\A|[.:!?;\n>=–—])[\s\"'*_(\[-]*\Z")
_AFTER_LABEL = re.compile(r"[\"'*_)\]]*\s*(?:\Z|[.,:;!?\n(<–—-]|(?:because|since|as)\b)", re.IGNORECASE)


# "First I thought: Very relevant": a statement that the reply may take back.
_FIRST_THOUGHT = re.compile(r"\b(?:first|initially|originally|thought|tempted)\b[^.!?\n]*\Z", re.IGNORECASE)


def _stands_alone(reply: str, match: re.Match[str]) -> bool:
    """Whether a label is a statement: it begins a line or sentence, or stands behind a colon, and nothing goes on."""
    before = _BEFORE_LABEL.search(reply, max(0, match.start() - 20), match.start())
    if not before or _FIRST_THOUGHT.search(reply, max(0, match.start() - 80), match.start()):
        return False
    return bool(_AFTER_LABEL.match(reply, match.end()))


# Between labels that are listed in one line: "Not relevant, Somewhat relevant, or Very relevant"
_LISTED = re.compile(
    r"[\s\"'*_`]*[,;/|][\s\"'*_`]*(?:(?:or|and)\b[\s\"'*_`]*)?|[\s\"'*_`]+(?:or|and)\b[\s\"'*_`]*", re.IGNORECASE
)
# A line of a scale: its mark, the label, what it means.
_LINE_MARK = re.compile(r"[-*•>|#\"'_(\[ \t]{0,12}(?:\d{1,2}[ \t]{0,3}[.:)=–—-]?[ \t]{0,3})?[*\"'_]{0,4}")
_MEANING = re.compile(r"[*_\"')\]]{0,4}[ \t]{0,3}(?:\(\d{1,2}\)[ \t]{0,3})?[:=–—|-]{1,3}[*_ \t]{0,6}[^\s*_]")


def _without_scale_copied(reply: str, found: list[re.Match[str]], grades: list[int], count: int) -> list[int]:
    """The places in `found` that are not those of a copied scale: all labels, up or down, a line each or in a row."""
    copied: set[int] = set()
    for first in range(len(found) - count + 1):
        run = range(first, first + count)
        order = [grades[place] for place in run]
        if count < 2 or order not in (list(range(count)), list(range(count))[::-1]):
            continue
        between = [reply[found[place].end() : found[place + 1].start()] for place in run[:-1]]
        if all(map(_LISTED.fullmatch, between)) or all(_is_line_of_scale(reply, found[place]) for place in run):
            copied.update(run)
    return [place for place in range(len(found)) if place not in copied]


def _is_line_of_scale(reply: str, match: re.Match[str]) -> bool:
    line = reply.rfind("\n", 0, match.start()) + 1
    return bool(_LINE_MARK.fullmatch(reply, line, match.start())) and bool(_MEANING.match(reply, match.end()))


def parse_label(text: str, labels: Sequence[str], scale: tuple[int, int] | None = None) -> Parsed[int]:
    """Reads one of several labels in prose: the grade (`scale[0]` + place in `labels`) of the last label named.

    Labels that stand alone ("Label: Not relevant", "Not relevant because …") count before those inside of sentences;
    the labels of a copied scale are none.

    "not very relevant" is none of "Not relevant", "Very relevant": it is unparsed. A reply without a label may carry
    the grade as a number, read as a rating.
    """
    reply = clean_reply(text)
    low = scale[0] if scale else 0
    names = sorted(labels, key=len, reverse=True)
    any_label = "|".join(r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", name))) for name in names)
    # A label that begins with "not" is one; "not", "isn't" or "no" before a label is none of them.
    pattern = re.compile(
        rf"(?<!\w)(?P<label>{any_label})(?!\w)"
        rf"|\b(?:(?:not|never|\w+n['’]t)[ \t]+(?:[\w'’]+[ \t]+){{0,2}}|no[ \t]+)(?P<negated>{any_label})(?!\w)",
        re.IGNORECASE,
    )
    folded = [_folded_label(name) for name in labels]
    found = list(pattern.finditer(reply))
    grades = [folded.index(_folded_label(match["label"])) if match["label"] else -len(labels) for match in found]
    places = _without_scale_copied(reply, found, grades, len(labels))
    if found and not places:
        return Parsed(None, "all labels, and no choice between them")
    # A label that stands for itself counts before those that are parts of sentences.
    stated = [place for place in places if found[place]["label"] and _stands_alone(reply, found[place])]
    if not places:
        rating = parse_rating(reply, scale or (low, low + len(labels) - 1))
        return rating if rating.value is not None else Parsed(None, f"none of {', '.join(labels)} in the reply")
    last = (stated or places)[-1]
    if found[last]["negated"]:
        return Parsed(None, f"{' '.join(found[last][0].split())!r} is none of {', '.join(labels)}")
    return Parsed(low + grades[last])


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


def raw_label_list(text: str) -> Parsed[tuple[str, ...]]:
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


_VERDICTS = {"a": "a", "b": "b", "c": "tie", "tie": "tie"}


def parse_verdict(text: str) -> Parsed[str]:
    """Reads the last `[[A]]`, `[[B]]` or `[[C]]` of the reply as `a`, `b` or `tie`; without one there is no verdict."""
    found = re.findall(r"\[\[[\s*_]*(a|b|c|tie)[\s*_]*\]\]", clean_reply(text), re.IGNORECASE)
    return Parsed(_VERDICTS[found[-1].lower()]) if found else Parsed(None, "no [[A]], [[B]] or [[C]] in the reply")


def parse_text(text: str) -> Parsed[str]:
    """The reply as it is, without thoughts; unparsed when nothing is left."""
    reply = clean_reply(text)
    return Parsed(reply) if reply else Parsed(None, "the reply is empty")


def parse_reply(
    text: str,
    parser: str,
    *,
    scale: tuple[int, int] | None = None,
    labels: Sequence[str] = (),
    unparsed: str = "",
    compat: str = "",
    count: int | None = None,
) -> Parsed[Any]:
    """Reads a reply with the parser of a name; see the parsers for the options.

    Raises:
        InputError: there is no such parser.
    """
    match parser:
        case "rating":
            return parse_rating(text, scale or (0, 5), unparsed=unparsed, compat=compat)
        case "yes_no":
            return parse_yes_no(text)
        case "label":
            return parse_label(text, labels, scale)
        case "label_list":
            return raw_label_list(text) if compat == "nuggetizer" else parse_label_list(text, labels, count)
        case "list":
            return parse_list(text)
        case "items":
            return parse_items(text)
        case "aspects":
            return parse_aspects(text, labels, scale or (0, 2))
        case "verdict":
            return parse_verdict(text)
        case "text":
            return parse_text(text)
        case _:
            raise InputError(f"unknown parser {parser!r}")
