"""Reading lists of texts that a model wrote, as values or in marked lines: questions, nuggets, updated nugget lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rubric_measures.prompts._replies import Bare, Parsed, Value, clean_reply, find_values

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


class _MarkedLine(NamedTuple):
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


def _lines(text: str) -> list[_MarkedLine]:
    return [
        _MarkedLine(len(match[1].expandtabs(4)), match[2][0].isdigit(), _item(match[3]))
        for match in _LINE.finditer(text)
    ]


def _outer(lines: list[_MarkedLine], outer: list[_MarkedLine]) -> list[_MarkedLine]:
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


# Names of what is asked for, the surest first; a name is in small letters, with "_" for blanks and hyphens.
_ITEM = r"(?:questions?|nuggets?)"
_NAMES = (
    re.compile(_ITEM),
    re.compile(rf"(?:\w+_)?{_ITEM}(?:_?(?:text|list|set|bank))?(?:_?\d+)?"),
    re.compile(r"(?:\w+_)?(?:texts?|contents?|items?|list|(?:key_?)?facts?|query|queries)(?:_?\d+)?"),
)
# What stands beside the texts that are asked for. "Q1" and "vital" are no questions.
_BESIDE = re.compile(
    r"(?:\w+_)?(?:ids?|numbers?|no|nr|index|rank|type|kind|category|topics?|difficulty|importance|labels?|scores?|"
    r"analys[ie]s|reason(?:s|ing)?|rationales?|thoughts?|thinking|notes?|comments?|explanations?|steps?|plan|"
    r"references?|sources?|answers?)"
)
_NUMBERED = re.compile(r"(?:question|nugget|q|n)?_?\d+")
_NOT_UNDERSTOOD = "the list cannot be understood: it is not clear which texts are asked for"


def parse_list(text: str) -> Parsed[tuple[str, ...]]:
    """Reads a list of strings (JSON or Pythonic, fenced or in prose): the last one; a list cut off is refused.

    Lists of other things than texts are understood as `parse_items` does it, and refused where they are not.
    """
    reply = clean_reply(text)
    values, truncated = find_values(reply)
    if truncated:
        return Parsed(None, "the list is not closed")
    chosen = _chosen(values)
    if chosen is None:
        return Parsed(None, "no list in the reply" if reply else "the reply is empty")
    return _parsed(_texts_in(chosen))


def parse_items(text: str) -> Parsed[tuple[str, ...]]:
    """Reads generated questions or nuggets: `{"questions": [...]}`, a bare list, one object a line, numbered lines.

    Elements may be strings, objects of which it is clear which text is asked for (by its name, or as the only one), or
    lists of one such element. Nulls and empty texts say nothing and are left out. Of several lists in an object that
    with the name of what is asked for counts; which lines are items: see `marked_texts`. A list that is not
    understood is refused, and so is one that was cut off.

    >>> parse_items('{"plan": ["a"], "questions": [{"id": "Q1", "question": "Why?"}, null]}').value
    ('Why?',)
    """
    reply = clean_reply(text)
    values, truncated = find_values(reply)
    if truncated:
        return Parsed(None, "the list is not closed")
    chosen = _chosen([value for value in values if value.value])
    if chosen is not None:
        parsed = _parsed(_texts_in(chosen))
        return parsed if parsed.value != () else Parsed(None, "the list is empty")
    found: Sequence[str] | None = None
    if len(values) > 1:
        found = _texts_of([value.value for value in values])  # one object a text
        if found is None and any(value.value for value in values):
            return Parsed(None, _NOT_UNDERSTOOD)
    if not found:
        found = _stripped(marked_texts(reply))
    if len(found) > 1:
        return Parsed(tuple(found))
    return Parsed(None, "no list of texts in the reply" if reply else "the reply is empty")


def _parsed(texts: tuple[str, ...] | None) -> Parsed[tuple[str, ...]]:
    return Parsed(texts) if texts is not None else Parsed(None, _NOT_UNDERSTOOD)


def _chosen(values: Sequence[Value]) -> list[object] | Mapping[str, object] | None:
    """The last value of a reply that holds a list; a list with the name of what is asked for before one without."""
    holding = [value for value in values if isinstance(value.value, list) or _holds_list(value.value)]
    kept = [value for value in holding if not _BESIDE.fullmatch(_folded(value.label))] or holding
    if not kept:
        return None
    last = kept[-1]
    if last.label and not _is_named(last.label):
        last = next((value for value in reversed(kept) if _is_named(value.label)), last)
    return last.value


def _is_named(label: str) -> bool:
    return any(pattern.fullmatch(_folded(label)) for pattern in _NAMES[:2])


def _folded(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _holds_list(value: object) -> bool:
    """Whether an object holds a list, or is one in disguise: `{"1": …, "2": …}`, `{"question_1": …}`."""
    if not isinstance(value, Mapping):
        return isinstance(value, list) and bool(value)
    return _is_numbered(value) or any(_holds_list(entry) for entry in value.values())


def _is_numbered(value: Mapping[str, object]) -> bool:
    return len(value) > 1 and all(_NUMBERED.fullmatch(_folded(key)) for key in value)


def _texts_in(value: object) -> tuple[str, ...] | None:
    """The texts of a list, or of the list in an object; None when it is not clear which they are."""
    if isinstance(value, Mapping) and not _is_numbered(value):
        return _texts_in(_by_name(value, _holds_list))
    if isinstance(value, Mapping):
        value = list(value.values())
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    return _texts_of(value) if isinstance(value, list) else None


def _by_name(value: Mapping[str, object], usable: Callable[[object], bool]) -> object:
    """What is asked for in an object: what has its name, or else all that there is; None when several could be it."""
    entries = [(_folded(key), entry) for key, entry in value.items() if usable(entry)]
    for pattern in _NAMES:
        if named := [entry for key, entry in entries if pattern.fullmatch(key)]:
            return named[0] if len(named) == 1 else None
    others = [entry for key, entry in entries if not _BESIDE.fullmatch(key)]
    return others[0] if len(others) == 1 else None


def _texts_of(values: Sequence[object]) -> tuple[str, ...] | None:
    texts: list[str] = []
    for value in values:
        found = _texts_of_element(value)
        if found is None:
            return None
        texts += found
    return _stripped(texts)


def _texts_of_element(value: object) -> tuple[str, ...] | None:
    if value is None or (isinstance(value, Bare) and value.lower() in ("null", "none")):
        return ()
    if isinstance(value, str):
        return None if isinstance(value, Bare) else (value,)
    if isinstance(value, list):
        return _texts_of_element(value[0]) if len(value) == 1 else None
    if not isinstance(value, Mapping):
        return None
    if _is_numbered(value):
        return _texts_of(list(value.values()))
    named = _by_name(value, lambda entry: isinstance(entry, str | Mapping) and bool(entry))
    return None if named is None else _texts_of_element(named)


def _stripped(found: Sequence[str]) -> tuple[str, ...]:
    return tuple(text for text in (" ".join(entry.split()) for entry in found) if text)
