"""Lines of records that one parse does not do: long ones in pieces, ids without the rest, the other shape, errors."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import paused_collector
from rubric_measures.base.json_files import field_path, first_problem

__all__ = ["in_other_shape", "pieces_of", "query_id_of"]

# ["q1", …: a query id, as text or as a number.
_HEAD = re.compile(rb'\s*\[\s*(?:("(?:[^"\\]|\\.)*")|(-?\d+)(?=\s*,))')
# Bytes of a piece of a long line, about.
_PIECE = 1 << 20
# Where a piece may begin. The quotation mark cannot be inside a string, nor end one: a bare word follows it.
_PASSAGE = re.compile(rb'\{\s*"paragraph_id"\s*:')


def pieces_of(data: bytes) -> Iterator[bytes]:
    """A line `["q", [passage, …]]` as JSON lists of about `_PIECE` bytes; nothing where it does not look like that.

    A piece that is cut at an object inside a passage has an open bracket: it is no JSON, so it cannot pass for one.
    """
    head = _HEAD.match(data)
    opening = re.compile(rb"\s*,\s*\[\s*(?=\{)").match(data, head.end()) if head is not None and head.group(1) else None
    if opening is None:
        return
    start = opening.end()
    while (cut := _PASSAGE.search(data, start + _PIECE)) is not None:
        yield b"[" + data[start : cut.start()].rstrip().removesuffix(b",") + b"]"
        start = cut.start()
    yield b"[" + data[start:].rstrip().removesuffix(b"]")


def query_id_of(data: bytes) -> str | None:
    """The query id at the head of a line, without parsing the rest; None where it does not stand there plainly."""
    match = _HEAD.match(data)
    if match is None:
        return None
    try:
        if match.group(2):
            return str(int(match.group(2)))
        return str(from_json(match.group(1)))
    except ValueError:
        return None


def in_other_shape(
    adapter: TypeAdapter[Any], data: bytes, name: str, line: int, notes: Counter[str]
) -> tuple[Any, Any]:
    """Parses a line in the other shape, with numbers for query ids made text; slower, and only where it is needed."""
    problem: ValidationError
    try:
        with paused_collector():
            return cast(tuple[Any, Any], adapter.validate_json(data))
    except ValidationError as error:
        problem = error
    try:
        value = json.loads(data)
        changed = _ids_as_text(value)
        if changed:
            with paused_collector():
                result = cast(tuple[Any, Any], adapter.validate_json(json.dumps(value)))
            notes["ids"] += changed
            return result
    except ValidationError as error:
        problem = error
    except (ValueError, RecursionError):
        pass
    raise _format_error(problem, name, line) from None


def _ids_as_text(value: Any) -> int:
    """Makes the query ids of a freshly parsed line text, in place; returns how many were numbers."""
    changed = 0
    if not (isinstance(value, list) and len(value) == 2):
        return 0
    holders: list[tuple[Any, Any]] = [(value, 0)]
    for passage in value[1] if isinstance(value[1], list) else [value[1]]:
        data = passage.get("paragraph_data") if isinstance(passage, dict) else None
        if isinstance(data, dict):
            for field, key in (("judgments", "query"), ("rankings", "queryId")):
                entries = data.get(field)
                holders += (
                    [(entry, key) for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
                )
    for holder, key in holders:
        found = value[0] if holder is value else holder.get(key)
        if isinstance(found, int | float) and not isinstance(found, bool):
            holder[key] = str(found)
            changed += 1
    return changed


def _format_error(error: ValidationError, name: str, line: int) -> FormatError:
    location, text = first_problem(error)
    # A union of id types puts its own labels into the location; the user's file has no such level.
    if location and location[0] == 0:
        location, text = (0,), "the query id must be text"
    if not location and error.errors()[0]["type"] != "json_invalid":
        text = f'expected ["query id", [passage, …]]: {text}'
    return FormatError(text, path=name, line=line, field=field_path(location))
