"""Lines of records: what one parse does not do (long lines, ids, the other shape, errors), and sorting them on disk."""

from __future__ import annotations

import json
import os
import re
import tempfile
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import paused_collector
from rubric_measures.base.json_files import field_path, first_problem

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
        # Only whole numbers: 2003022.0 and 1e400 name no query that another file would know.
        if isinstance(found, int) and not isinstance(found, bool):
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


# Bytes of lines that are gathered in memory before they are written, query by query.
ROOM = 32 << 20


class _Segment(NamedTuple):
    """Lines of one query that were written together: where, how many packed bytes, their numbers and lengths."""

    offset: int
    size: int
    numbers: array[int]
    lengths: array[int]


@dataclass(frozen=True)
class SortedLines:
    """The lines of a file, those of one query together; as often as asked for, and in memory one query's segment.

    Attributes:
        stream: the file with the packed segments.
        segments: query -> its segments, in order of first appearance.
        returning: the queries whose lines do not all stand together in the file they came from.
    """

    stream: IO[bytes]
    segments: dict[str, list[_Segment]] = field(default_factory=dict)
    returning: set[str] = field(default_factory=set)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """(line number, line): queries in the order of their first lines, the lines of one in file order."""
        for segments in self.segments.values():
            for segment in segments:
                self.stream.seek(segment.offset)
                lines = zlib.decompress(self.stream.read(segment.size))
                start = 0
                for number, length in zip(segment.numbers, segment.lengths, strict=True):
                    if length == len(lines):
                        # The one long line of a query: not a second copy of it.
                        yield number, lines
                    else:
                        yield number, lines[start : start + length]
                    start += length
                del lines


def sort_lines(
    lines: Iterable[tuple[int, bytes]], query_of: Callable[[int, bytes], str], stream: IO[bytes]
) -> SortedLines:
    """Writes lines to a file, packed, so that they can be read query by query.

    Memory is that of `ROOM` bytes of lines, or of the longest line, and 16 bytes a line.

    Args:
        lines: (line number, line).
        query_of: the query of a line.
        stream: the file to write, empty.

    Raises:
        InputError: there is no room on the disk.
    """
    result = SortedLines(stream)
    gathered: dict[str, list[tuple[int, bytes]]] = {}
    held, before = 0, None
    for number, line in lines:
        query_id = query_of(number, line)
        if query_id != before and (query_id in gathered or query_id in result.segments):
            result.returning.add(query_id)
        before = query_id
        if held + len(line) > ROOM:
            _write(result, gathered)
            held = 0
        gathered.setdefault(query_id, []).append((number, line))
        held += len(line)
        del line
    _write(result, gathered)
    return result


def _write(result: SortedLines, gathered: dict[str, list[tuple[int, bytes]]]) -> None:
    """Appends the gathered lines, a segment a query, and forgets them."""
    try:
        result.stream.seek(0, os.SEEK_END)
        for query_id, lines in gathered.items():
            # Level 1: the disk is the slower part, and temporary folders may lie in memory.
            packed = zlib.compress(b"".join(line for _, line in lines), 1)
            numbers, lengths = zip(*((number, len(line)) for number, line in lines), strict=True)
            segment = _Segment(result.stream.tell(), len(packed), array("Q", numbers), array("Q", lengths))
            result.stream.write(packed)
            result.segments.setdefault(query_id, []).append(segment)
        result.stream.flush()
    except OSError as error:
        raise InputError(
            f"{tempfile.gettempdir()}: sorting by query needs room for temporary files ({error.strerror or error}); "
            "name another folder with the environment variable TMPDIR, or group the file by query"
        ) from None
    gathered.clear()
