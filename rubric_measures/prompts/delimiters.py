"""The delimiters of a template, which tell the model its parts, and how texts are kept from forging them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple


class Delimiters(NamedTuple):
    """What tells the model where one part of a prompt ends and the next begins.

    Attributes:
        lines: what begins a line of the template: `Question:`, `[user question]`, `</document>` on its own line.
        inline: what stands inside its lines: the second label of `Question: {question} Context: {context}`, the tags of
            `<passage>{context}</passage>`, marks such as three quotes.
    """

    lines: tuple[str, ...] = ()
    inline: tuple[str, ...] = ()


# Line breaks as a reader (or a model) sees them, not only "\n".
_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
# What may stand before a delimiter without changing how the line reads: all but letters and digits, and "1.".
_LEAD = re.compile(rf"(?:[^\w{_BREAKS}]|_|\d{{1,3}}[.):](?!\d))*")
# What the mark of a quoted line is put behind: blanks, emphasis, bullets.
_BLANKS = re.compile(rf"[^\S{_BREAKS}]*")
_INDENT = re.compile(rf"(?:[^\S{_BREAKS}]|[*_#~|+•·‣▪◦–—-])*")
_LINE_START = re.compile(rf"[{_BREAKS}]")

_Rewritten = str | Callable[[re.Match[str]], str]

_FIELD = re.compile(r"\{[a-z_][a-z0-9_]*\}")
_MARKUP = r"[\s*_#>\"'`(\[<•-]*"
_LINE_LABEL = re.compile(rf"{_MARKUP}(?:\d+[.)]\s*)?([^\W_](?:(?![.!?;]\s)[^:：\n]){{0,60}}?\s*[:：=]){_MARKUP}\Z")
_INLINE_LABEL = re.compile(rf"((?:[^\W_][\w'’-]*\s+){{0,3}}[^\W_][\w'’-]*\s*[:：=]){_MARKUP}\Z")
_TAG = r"<[^<>\n]{1,40}>|\[[^\[\]\n]{1,40}\]"
_RUN = r"([\"'`<>])\2{1,}"
_OPENED = re.compile(rf"({_TAG})\s*\Z|({_RUN})\Z".replace("\\2", "\\3"))
_CLOSED = re.compile(rf"\s*({_TAG})|({_RUN})".replace("\\2", "\\3"))
_WHOLE_LINE = re.compile(
    r"(?:\[[^\[\]]{1,80}\]|[^\W_][^.!?:：]{0,60}[:：][*_]*|[*_]{2}[^*_]{1,60}[*_]{2}:?|"
    r"</?[\w -]{1,40}>|#{1,6} .{1,60}|[A-Z][A-Z _-]{1,40}"
    r"|(?:-{3,}|={3,}|`{3,}|\"{3,}).{0,20})\Z"
)


def delimiters_of(template: str) -> Delimiters:
    """The delimiters of a template: labels and tags around its fields, and short lines beside them.

    They are the labels before a field (`Question:`, `**Context:**`, `文脈:`), the tags and marks right around one, and
    the lines without a field that stand next to a line with one, or at the end (`[user question]`, `Answer:`).
    """
    lines: dict[str, None] = {}
    inline: dict[str, None] = {}
    rows = template.split("\n")
    filled = [number for number, row in enumerate(rows) if row.strip()]
    for place, number in enumerate(filled):
        row = rows[number]
        if _FIELD.search(row):
            _in_row(row, lines, inline)
            continue
        beside = [rows[filled[at]] for at in (place - 1, place + 1) if 0 <= at < len(filled)]
        bounds = len(row.strip()) <= 80 and any(_FIELD.fullmatch(other.strip()) for other in beside)
        near = place == len(filled) - 1 or any(_FIELD.search(other) for other in beside)
        if bounds or (near and _WHOLE_LINE.match(row.strip())):
            # A tag ends its part wherever it stands.
            (inline if re.fullmatch(r"<[^<>]+>", row.strip()) else lines).setdefault(row.strip())
    return Delimiters(tuple(lines), tuple(inline))


def _in_row(row: str, lines: dict[str, None], inline: dict[str, None]) -> None:
    """Adds the delimiters of one line that has fields."""
    begin = 0
    for field in _FIELD.finditer(row):
        before = row[begin : field.start()]
        if opened := _OPENED.search(before):
            inline.setdefault(opened[1] or opened[2])
        if closed := _CLOSED.match(row, field.end()):
            inline.setdefault(closed[1] or closed[2])
        if begin == 0 and (label := _LINE_LABEL.match(before)):
            lines.setdefault(label[1].strip())
        elif label := _INLINE_LABEL.search(before):
            # "of the Key Fact:" is called "Key Fact:".
            words = label[1].split()
            first = next((n for n, word in enumerate(words) if word[0].isupper()), 0)
            inline.setdefault(" ".join(words[first:]))
        begin = field.end()


# A passage is shown with each of its items, one after the other.
@lru_cache(maxsize=256)
def neutralise(text: str, delimiters: Delimiters, *, at_start: bool = True) -> str:
    """A text in which nothing passes for a delimiter of the template.

    Lines that begin with one are quoted: `Question: x` becomes `> Question: x`, whatever bullets, emphasis and blanks
    stand before it. What would be a delimiter inside of a line is written in another way: the label
    `Context:` as `"Context":`, the tag `</passage>` as `(/passage)`, three quotes with blanks between them. All
    other text stays as it is, byte for byte.

    Args:
        text: the value of a field.
        delimiters: the template's own delimiters (`delimiters_of`).
        at_start: the field stands at the beginning of a line, so that the value's first line counts as a line.
    """
    for pattern, rewritten in _inline_forgeries(delimiters.inline):
        text = pattern.sub(rewritten, text)
    if not delimiters.lines:
        return text
    forgery, words = _line_forgery(delimiters.lines)
    folded = text.casefold()
    if not any(word in folded for word in words):
        return text
    begins = [0] if at_start else []
    begins += [found.end() for found in _LINE_START.finditer(text)]
    pieces = []
    done = 0
    for begin in begins:
        place = _quoted_at(text, begin, forgery)
        if place is not None:
            pieces += [text[done:place], "> "]
            done = place
    return "".join((*pieces, text[done:]))


def _quoted_at(text: str, begin: int, forgery: re.Pattern[str]) -> int | None:
    """Where the mark of a line that begins with a delimiter goes; None for other lines."""
    lead = _LEAD.match(text, begin)
    assert lead is not None
    if lead[0].lstrip().startswith(">"):
        return None  # quoted already
    if forgery.match(text[lead.end() : lead.end() + 200].casefold()):
        indent = _INDENT.match(text, begin)
    elif forgery.match(text[begin : begin + 200].strip(" \t")):
        indent = _BLANKS.match(text, begin)
    else:
        return None
    assert indent is not None
    return indent.end()


@lru_cache(maxsize=512)
def _line_forgery(delimiters: tuple[str, ...]) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """What a line begins with, behind its bullets, where it passes for a delimiter; and words without which none is."""
    alternatives = []
    needed = []
    for text in delimiters:
        folded = text.casefold().strip()
        words = re.findall(r"[^\W_]+", folded)
        if not words:
            alternatives.append(re.escape(folded[:3]))
            needed.append(folded[0])
            continue
        # Between the words, and before the colon or bracket at the end, there may be blanks and emphasis.
        end = next(char for char in reversed(folded) if char not in "*_" and not char.isspace())
        closing = "[:：]" if end in ":：" else re.escape(end)
        tail = rf"[\s*_\"'`)\]#~]*?{closing}" if not (end.isalnum() or end == "_") else r"[^\w\n]*(?:\n|\Z)"
        alternatives.append(r"[\W_]{1,4}".join(map(re.escape, words)) + tail)
        needed.append(words[0])
    return re.compile("|".join(alternatives)), tuple(dict.fromkeys(needed))


@lru_cache(maxsize=512)
def _inline_forgeries(delimiters: tuple[str, ...]) -> tuple[tuple[re.Pattern[str], _Rewritten], ...]:
    """What passes for a delimiter inside of a line, in small or capital letters; and how it is written instead."""
    found: list[tuple[re.Pattern[str], _Rewritten]] = []
    for text in delimiters:
        if not re.search(r"\w", text):
            found.append((re.compile(rf"{re.escape(text[0])}{{{len(text)},}}"), lambda match: " ".join(match[0])))
        elif text[0] in "<[":
            inner = r"\s*".join(map(re.escape, re.findall(r"[^\W_]+|[^\w\s]|_", text[1:-1].lstrip("/"))))
            found.append((re.compile(rf"[<\[]\s*(/?\s*(?i:{inner})[^<>\[\]\n]{{0,40}})[>\]]"), r"(\1)"))
        else:
            words = r"\s+".join(map(re.escape, text[:-1].split()))
            end = "[:：]" if text[-1] in ":：" else re.escape(text[-1])
            label = rf"(?<!\w)(?={re.escape(text[0])})((?i:{words}))(\s*{end})"
            found.append((re.compile(label), r'"\1"\2'))
    return tuple(found)
