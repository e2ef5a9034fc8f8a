"""What every parser needs: the result record, the reply without thoughts, lists and objects found in prose."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

__all__ = ["Parsed", "clean_reply", "find_lists", "find_objects", "numbered_lines"]

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Parsed(Generic[T_co]):
    """What a reply says: a value, or None and the reason why there is none (in one line)."""

    value: T_co | None
    reason: str = ""


_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"\A.*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)


def clean_reply(text: str) -> str:
    """The reply without the thoughts of a reasoning model (an unclosed `<think>` takes all that follows), stripped."""
    return _THOUGHT_END.sub("", _THINKING.sub("", text)).strip()


_MAX_NESTING = 50


class _CutOffError(Exception):
    """The text ended inside a list."""


def find_lists(text: str, *, quoted: bool = False) -> tuple[list[tuple[str, ...]], bool]:
    """All flat lists of strings in a text, in order, and whether the last one was cut off by the end of the text.

    Args:
        text: a reply.
        quoted: take only lists of quoted strings (and empty ones), so that `[1]` in prose is no list.
    """
    found: list[tuple[str, ...]] = []
    position = text.find("[")
    while position >= 0:
        try:
            scanned = _scan_list(text, position)
        except _CutOffError:
            return found, True
        if scanned is None:
            position = text.find("[", position + 1)
            continue
        entries, all_quoted, end = scanned
        if all_quoted or not quoted:
            found.append(entries)
        position = text.find("[", end)
    return found, False


def _scan_list(text: str, start: int) -> tuple[tuple[str, ...], bool, int] | None:
    """Reads one list that opens at `start`: (strings, all quoted, end); None when it is no flat list."""
    entries: list[str] = []
    all_quoted, position = True, start + 1
    while True:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        if position >= len(text):
            if entries and all_quoted:
                raise _CutOffError
            return None
        if text[position] == "]":
            return tuple(entries), all_quoted, position + 1
        if text[position] in "\"'“‘":
            entry, position = _scan_string(text, position)
            entries.append(entry)
            continue
        match = re.compile(r"[^\[\]{},\n\"]+").match(text, position)
        if match is None or len(match[0]) > 80:
            return None
        if match.end() >= len(text):
            return None
        entries.append(match[0].strip())
        all_quoted, position = False, match.end()


_CLOSERS = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "", "b": "", "f": ""}


def _scan_string(text: str, start: int) -> tuple[str, int]:
    """Reads one quoted string: it ends at a quote before a comma or a bracket, so that it's fine to write "it's"."""
    closer = _CLOSERS[text[start]]
    out: list[str] = []
    position = start + 1
    while position < len(text):
        char = text[position]
        if char == "\\" and position + 1 < len(text):
            following = text[position + 1]
            if following == "u" and (code := re.compile(r"[0-9a-fA-F]{4}").match(text, position + 2)):
                out.append(chr(int(code[0], 16)))
                position += 6
                continue
            out.append(_ESCAPES.get(following, following))
            position += 2
            continue
        if char == closer and _ENDS.match(text, position + 1):
            return "".join(out), position + 1
        out.append(char)
        position += 1
    raise _CutOffError


_ENDS = re.compile(r"\s*(?:\]|,\s*(?:[\"'“‘\]]|\Z)|\Z|\s*\n\s*[\"'“‘])")


def find_objects(text: str) -> list[dict[str, Any]]:
    """All JSON objects in a text that are not inside another one, in order; single quotes and trailing commas pass."""
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    position = text.find("{")
    while position >= 0:
        end = position + 1
        value: object = None
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            if closing := _balanced(text, position):
                end, value = closing, _repaired(text[position:closing])
                if value is None:
                    end = position + 1
        if isinstance(value, dict):
            found.append(value)
        position = text.find("{", end)
    return found


def _balanced(text: str, start: int) -> int:
    """Where the brace at `start` is closed (one past it); 0 when it is not, or nests too deep."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
        if depth > _MAX_NESTING:
            return 0
    return 0


def _repaired(text: str) -> object:
    """Parses an object after the usual repairs: single-quoted keys and values, bare keys, trailing commas."""
    if len(text) > 20_000:
        return None
    fixed = re.sub(r",(\s*[}\]])", r"\1", text)
    fixed = re.sub(r"(?<=[{,\[:])(\s*)'((?:[^'\n]|(?<=\w)'(?=\w))*)'(?=\s*[,:}\]])", _double_quoted, fixed)
    fixed = re.sub(r"([{,]\s*)([A-Za-z_]\w*)(\s*:)", r'\1"\2"\3', fixed)
    try:
        return json.loads(fixed)
    except (ValueError, RecursionError):
        return None


def _double_quoted(match: re.Match[str]) -> str:
    return match[1] + json.dumps(match[2], ensure_ascii=False)


def numbered_lines(text: str) -> list[str]:
    """The texts of lines such as `1. What …`, `2) …`, `- …`, `* …`, without their marks and quotes."""
    marks = re.compile(r"^\s*(?:\d{1,3}[.):]|[-*•])\s+(\S.*?)\s*$", re.MULTILINE)
    return [line.strip("\"'* ").rstrip(",") for line in marks.findall(text)]
