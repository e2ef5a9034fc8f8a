"""Lines of a file brought together by query on disk: written once, packed, and read query by query."""

from __future__ import annotations

import os
import tempfile
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, NamedTuple

from rubric_measures.base.errors import InputError

__all__ = ["SortedLines", "sort_lines"]

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
