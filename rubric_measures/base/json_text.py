"""The one place that parses JSON, and the JSON texts of files with their places; without pydantic.

What files say is read strictly, replies of models and what we stored ourselves as Python reads it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import iter_lines, path_name

_PLACE = re.compile(r" at line (\d+) column (\d+)")
_TOKEN = re.compile(r'[{}]|(?P<text>"(?:[^"\\]|\\.)*")(?P<colon>\s*:)?', re.DOTALL)
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_decoded = msgspec.json.Decoder().decode
_STRICT, _LENIENT = json.JSONDecoder(), json.JSONDecoder(strict=False)
# What nests deeper cannot be written again.
_DEEPEST = 200


def parse_json(data: bytes | str, *, path: str = "", line: int = 0, lenient: bool = False) -> Any:
    """The value of one JSON text.

    NaN, infinity and lone surrogates are refused, and so are texts that nest deeper than 200 levels. Whole numbers keep
    all their digits.

    Args:
        data: the text, UTF-8 without BOM, which `iter_lines` and `read_text` take off.
        path: the file, for errors.
        line: its line, or 0.
        lenient: whether NaN, infinities, lone surrogates and control characters in strings pass: for replies of models
            and servers, and for what we stored ourselves.

    Raises:
        FormatError: it is not JSON; names file and line.
    """
    with contextlib.suppress(ValueError, RecursionError):
        value = _decoded(data)
        if lenient or not _is_deep(data):
            return value
    try:
        if lenient:
            return json.loads(data, strict=False)
        # It says best what is wrong and where; and 1e400 is a number to it, if no finite one.
        from pydantic_core import from_json

        return from_json(data, allow_inf_nan=False)
    except (ValueError, RecursionError) as error:
        text, line = placed(f"is not JSON: {error}", line)
        raise FormatError(text, path=path, line=line) from None


def _is_deep(data: bytes | str) -> bool:
    """Whether a JSON text may nest too deep; only those with many brackets are looked at."""
    if isinstance(data, str):
        data = data.encode("utf-8")
    if data.count(b"[") + data.count(b"{") <= _DEEPEST:
        return False
    brackets = _STRING.sub(b"", data).translate(None, _NO_BRACKETS)
    for _ in range(_DEEPEST):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if not brackets:
            return False
    return True


def placed(problem: str, line: int) -> tuple[str, int]:
    """A parser's message without the line that it names, and that line where no other is known."""
    found = _PLACE.search(problem)
    if found is None:
        return problem, line
    return problem.replace(found[0], f" at column {found[2]}"), line or int(found[1])


def json_at(text: str, start: int = 0, *, lenient: bool = False) -> tuple[Any, int]:
    """The JSON value that begins at a place of a text, and where it ends; `lenient` as in `parse_json`.

    Raises:
        ValueError: none begins there.
        RecursionError: one does, and nests too deep.
    """
    return (_LENIENT if lenient else _STRICT).raw_decode(text, start)


def json_texts(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """The JSON texts of a file, each with the line that it begins in, unread but for their ends.

    A text a line; or the elements of one list; or texts over several lines, one behind the other. A file that begins
    as no JSON is given line by line.

    Raises:
        InputError: the file cannot be opened.
        FormatError: a list, or a text over several lines, is not JSON; names file and line.
    """
    name = path_name(path)
    lines = iter_lines(name)
    first = next(lines, None)
    if first is None:
        return
    start = first[1].lstrip()[:1]
    if start != b"[" and (start != b"{" or _is_json(first[1])):
        yield first
        yield from lines
        return
    text, at = bytearray(), 1
    for number, line in itertools.chain([first], lines):
        text += b"\n" * (number - at) + line
        at = number
    try:
        yield from scanned_json(text.decode("utf-8"), name)
    except UnicodeDecodeError as error:
        line_number = text.count(b"\n", 0, error.start) + 1
        raise FormatError("is not UTF-8; convert the file first", path=name, line=line_number) from None


def _is_json(data: bytes) -> bool:
    try:
        _STRICT.decode(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


def scanned_json(text: str, name: str) -> Iterator[tuple[int, bytes]]:
    """The JSON texts of a text, or the elements of its one list, as `json_texts` gives those of a file."""
    place, counted, line = 0, 0, 1

    def skip(mark: str = "") -> str:
        """Goes over white space, and `mark` where it is next; gives the next character."""
        nonlocal place
        while place < len(text) and text[place].isspace():
            place += 1
        if mark and text[place : place + 1] == mark:
            place += 1
            return skip()
        return text[place : place + 1]

    in_list = skip() == "["
    if in_list:
        skip("[")
    while (found := skip()) and not (in_list and found == "]"):
        line += text.count("\n", counted, place)
        counted = start = place
        try:
            _, place = json_at(text, place)
        except (ValueError, RecursionError) as error:
            at = getattr(error, "pos", place)
            problem = f"is not JSON: {getattr(error, 'msg', 'is nested too deep')}"
            raise FormatError(problem, path=name, line=line + text.count("\n", counted, at)) from None
        yield line, text[start:place].encode("utf-8")
        if in_list and skip() not in ("]", ","):
            break
        skip("," if in_list else "")
    if in_list and found != "]":
        problem = "is not JSON: expected ',' or ']' after an element of the list"
        raise FormatError(problem, path=name, line=text.count("\n", 0, place) + 1)


def check_keys(data: bytes | str, *, path: str, line: int = 0) -> None:
    """Refuses an object that names a key twice; parsers keep the last in silence.

    It parses the text once more, and slower, so it is for files that are written by hand: queries, test banks, nuggets,
    rubrics, leaderboards, prices.

    Raises:
        FormatError: a key comes twice; names file and line.
    """
    found = False

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        fields = dict(pairs)
        found = found or len(fields) < len(pairs)
        return fields

    # What is no JSON is its parser's to refuse.
    with contextlib.suppress(ValueError, RecursionError):
        json.loads(data, object_pairs_hook=note)
    if found:
        text = data if isinstance(data, str) else data.decode("utf-8")
        key, place = _second_key(text)
        problem = f"the key {key[:60]!r} comes twice in one object; keep one"
        raise FormatError(problem, path=path, line=line or text.count("\n", 0, place) + 1)


def _second_key(text: str) -> tuple[str, int]:
    """The first key of a JSON text that its object has already, and where it stands."""
    objects: list[set[str]] = []
    for found in _TOKEN.finditer(text):
        if found[0] in "{}":
            objects = [*objects, set()] if found[0] == "{" else objects[:-1]
        elif found["colon"]:
            key = json.loads(found["text"])
            if key in objects[-1]:
                return key, found.start()
            objects[-1].add(key)
    raise AssertionError("no key comes twice")
