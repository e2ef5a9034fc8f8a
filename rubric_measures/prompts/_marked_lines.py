"""Items of a reply in lines such as `1. What …` or `- …`: which of the lines are items, and what of a line is one."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["marked_texts"]

_LINE = re.compile(r"^([^\S\n]*)(\d{1,3}[.):]|[-*•])[^\S\n]+(\S.*?)\s*$", re.MULTILINE)
# The line that says that the items begin: what stands before it is a plan.
_HEADING = re.compile(
    r"^[#*_\s]*(?:(?:the|my|final|generated|list of)\s+)*(?:questions?|nuggets?|key facts?)\s*[*_]*\s*:?[*_]*[^\S\n]*$",
    re.IGNORECASE | re.MULTILINE,
)
_SENTENCE = re.compile(r".*\?|\S+(?:\s+\S+){2,}[.!]")
_EXPLANATION = re.compile(r"\s*(?:[(–—:-]|[^\W\d_])[^?]*")
_BOLD_START = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1(?!\w)(.*)\Z")
_QUOTED_START = re.compile(r"[\"“]([^\"“”]+)[\"”](.*)\Z")
# "**" of arithmetic and of programs stays, and so does "__init__".
_EMPHASIS = (
    re.compile(r"(?<![\w*])\*\*(?=[^\s*])(.+?)(?<=[^\s*])\*\*(?![\w*])"),
    re.compile(r"(?<![\w*])\*(?=[^\s*])([^*]+?)(?<=[^\s*])\*(?![\w*])"),
    re.compile(r"(?<![\w_])__(?=[^\s_])([^_]+ [^_]+)(?<=[^\s_])__(?![\w_])"),
)
_NAME = re.compile(r"(?:questions?|nuggets?|q|n)\s*\d*\s*:\s*(?=\S)", re.IGNORECASE)
_REMARK = re.compile(r"(.*\?)\s*(?:\([^?()]*\)|[-–—:]\s[^?]*)\Z")


class _Line(NamedTuple):
    """A line with a mark: how far it is indented, whether the mark is a number, and its text."""

    indent: int
    numbered: bool
    text: str


def marked_texts(reply: str) -> list[str]:
    """The items of a reply in lines such as `1. What …`, `2) …`, `- …`, `* …`, without marks, quotes and emphasis.

    Where `Questions:` stands on a line of its own, those behind it count. Of numbered lines and bullets the numbered
    ones are the items, of lines of several depths the outer ones, unless they are headings (`Basics:`): then those
    below them are. What explains an item behind it is left out, where emphasis, quotes or a bracket show where it ends.

    >>> marked_texts("1. **What is a leap year?** The definition.\\n   - keep it short\\n2. Why do they exist?")
    ['What is a leap year?', 'Why do they exist?']
    """
    heading = _HEADING.search(reply)
    found = _lines(reply[heading.end() :]) if heading else []
    if len(found) < 2:
        found = _lines(reply)
    found = _outer(found, [line for line in found if line.numbered])
    least = min((line.indent for line in found), default=0)
    return [line.text for line in _outer(found, [line for line in found if line.indent <= least + 1])]


def _lines(text: str) -> list[_Line]:
    return [
        _Line(len(match[1].expandtabs(4)), match[2][0].isdigit(), _item(match[3])) for match in _LINE.finditer(text)
    ]


def _outer(lines: list[_Line], outer: list[_Line]) -> list[_Line]:
    """The outer ones of some lines, or those below them, where these are the items; all where it is not clear."""
    known = set(outer)
    inner = [line for line in lines if line not in known]
    if not inner or len(outer) < 2:
        return lines
    if all("?" in line.text for line in lines):
        return lines
    headings = sum(line.text.endswith(":") for line in outer)
    asked = [sum("?" in line.text for line in part) for part in (outer, inner)]
    if headings == len(outer) or asked == [0, len(inner)]:
        return inner
    return lines if headings else outer


def _item(text: str) -> str:
    """The item in the text of a line."""
    text = text.rstrip(", ")
    if text[:1] == text[-1:] == "'":
        text = text.strip("'")
    for pattern in (_BOLD_START, _QUOTED_START):
        if start := pattern.match(text):
            first, rest = start.groups()[-2:]
            # Behind a whole sentence stands what explains it; another question belongs to it, and so does what goes on.
            explains = _EXPLANATION.fullmatch(rest) and not rest.strip()[0].islower() and _SENTENCE.fullmatch(first)
            if not rest.strip(" .,*_") or explains:
                text = first
                break
    for pattern in _EMPHASIS:
        text = pattern.sub(r"\1", text)
    text = _NAME.sub("", text, count=1) if _NAME.match(text) else text
    if remark := _REMARK.match(text):
        text = remark[1]
    return text.strip("* ")
