"""Lines of graded-records files: which query they are of, and their passages, long lines in pieces."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import paused_collector
from rubric_measures.base.json_files import field_path, first_problem
from rubric_measures.records.models import GradedPassage

__all__ = ["Batch", "Lines", "batches", "query_id_of", "query_of_line"]

Lines = Iterable[tuple[int, bytes]]
"""(line number from 1, line) of a file."""
Batch = tuple[str, int, list[GradedPassage]]
"""(query id, line, some passages of the line)."""

# ["q1", …: a query id, as text or as a number.
_HEAD = re.compile(rb'\s*\[\s*(?:("(?:[^"\\]|\\.)*")|(-?\d+)(?=\s*,))')
_MANY: TypeAdapter[tuple[str | int, list[GradedPassage]]] = TypeAdapter(tuple[str | int, list[GradedPassage]])
_ONE: TypeAdapter[tuple[str | int, GradedPassage]] = TypeAdapter(tuple[str | int, GradedPassage])
_SOME: TypeAdapter[list[GradedPassage]] = TypeAdapter(list[GradedPassage])
# Lines from this length on are parsed in pieces of about that size: a parser needs many times the memory of its text.
_LONG, _PIECE = 4 << 20, 1 << 20
# Where a piece may begin. The quotation mark cannot be inside a string, nor end one: a bare word follows it.
_PASSAGE = re.compile(rb'\{\s*"paragraph_id"\s*:')


def batches(lines: Lines, name: str, notes: Counter[str]) -> Iterator[Batch]:
    """The passages of lines, in order; those of a long line come in several batches.

    Args:
        lines: the lines.
        name: the file, for errors.
        notes: `ids` is added to: how many query ids are numbers.

    Raises:
        FormatError: naming file, line and field: not JSON, a wrong field.
    """
    adapters: list[TypeAdapter[Any]] = [_MANY, _ONE]
    for line, data in lines:
        done = 0
        if len(data) >= _LONG:
            query_id = query_id_of(data) or ""
            with contextlib.suppress(ValidationError):
                for piece in _pieces(data) if query_id else ():
                    with paused_collector():
                        passages = _SOME.validate_json(piece)
                    done += len(passages)
                    yield query_id, line, passages
                    del passages
                # Nothing is left of the line; without pieces it is parsed as a whole.
                if done:
                    del data
                    continue
        query_id, passages = _parse_line(data, adapters, name, line, notes)
        # The reader of lines waits for the next line, and would keep this one meanwhile.
        del data
        yield query_id, line, passages[done:]
        del passages


def _pieces(data: bytes) -> Iterator[bytes]:
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


def query_of_line(line: int, data: bytes, name: str) -> str:
    """The query id of a line, parsed as a whole where it must be.

    Raises:
        FormatError: the line is no line of graded records.
    """
    found = query_id_of(data)
    return _parse_line(data, [_MANY, _ONE], name, line, Counter())[0] if found is None else found


def _parse_line(
    data: bytes, adapters: list[TypeAdapter[Any]], name: str, line: int, notes: Counter[str]
) -> tuple[str, list[GradedPassage]]:
    """A line as (query id, passages); of both shapes the one that fitted last is tried first."""
    try:
        with paused_collector():
            query_id, passages = adapters[0].validate_json(data)
    except ValidationError as error:
        if error.errors()[0]["loc"] == (1,):
            adapters.reverse()
        query_id, passages = _second_try(adapters[0], data, name, line, notes)
    if isinstance(query_id, int):
        notes["ids"] += 1
        query_id = str(query_id)
    if not query_id:
        raise FormatError("the query id is empty; expected text", path=name, line=line, field="[0]")
    return query_id, [passages] if isinstance(passages, GradedPassage) else cast(list[GradedPassage], passages)


def _second_try(adapter: TypeAdapter[Any], data: bytes, name: str, line: int, notes: Counter[str]) -> tuple[Any, Any]:
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
