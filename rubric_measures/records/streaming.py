"""Graded-records files of any order as streams of queries: ungrouped ones sorted on disk, standard input kept there."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, TypeVar

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import iter_copy_lines, iter_lines, path_name
from rubric_measures.records._line_sort import SortedLines, sort_lines
from rubric_measures.records._lines import Lines, query_of_line
from rubric_measures.records.files import (
    GradedPassage,
    PassageStream,
    QueryPassages,
    RepeatedPassageError,
    UngroupedError,
    passage_streams,
    say_notes,
    whole_queries,
)

__all__ = ["GradedFile", "PassageGroup"]

_LOG = logging.getLogger("rubric_measures")
T = TypeVar("T")

PassageGroup = QueryPassages | PassageStream
"""One query; whoever reads its passages once, in turn, and keeps none, needs memory for one of them only."""


class GradedFile:
    """A graded-records file that hands out whole queries, one at a time and as often as asked, whatever its order.

    To be used in a `with` block, which removes the temporary files. The queries come in the order in which they first
    appear, the passages of a query in file order: what `load_graded` gives, without holding it.

    - A file in which queries come back after others is sorted on disk when that is noticed, and is said to be.
    - Standard input, and pipes that have a name, are copied to disk, so that they can be read more than once.

    Args:
        path: the file, gzip or plain; `-` is standard input.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = path_name(path)
        self._files = contextlib.ExitStack()
        self._copy: IO[bytes] | None = None
        self._sorted: SortedLines | None = None
        self._whole = False
        self._grouped = False
        self._said = False

    def __enter__(self) -> GradedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()
        self._copy = self._sorted = None

    def consume(self, consume: Callable[[Iterator[PassageGroup]], T]) -> T:
        """Hands the queries to a function, and once more from the beginning where the file turns out to need sorting.

        A query may come with passages that are parsed as they are asked for, and can be looked at once: memory is that
        of one line's text. Where passages come twice in the file, queries come whole, and equal passages once.

        Args:
            consume: reads the queries; keeps nothing of a call that ended in an error.

        Returns:
            What `consume` returns.

        Raises:
            InputError: the file cannot be opened, or there is no room for temporary files.
            FormatError: as `read_graded`, but never an `UngroupedError`.
        """
        while True:
            try:
                return consume(self._groups())
            except UngroupedError:
                self._sort()
            except RepeatedPassageError:
                self._whole = True

    def __iter__(self) -> Iterator[PassageStream]:
        """The queries, each read as a whole; the order of the file is looked at before the first is handed out.

        A passage is forgotten here when it was looked at.

        Raises:
            InputError: as `consume`.
            FormatError: as `consume`.
        """
        if self._sorted is None and not self._grouped:
            self._grouped = self._is_grouped()
            if not self._grouped:
                self._sort()
        notes: Counter[str] = Counter()
        for query_id, passages, line in whole_queries(self._lines(), self.name, notes):
            yield PassageStream(query_id, _handed_out(passages), line)
        self._say(notes)

    def _groups(self) -> Iterator[PassageGroup]:
        notes: Counter[str] = Counter()
        read = whole_queries if self._whole else passage_streams
        yield from read(self._lines(), self.name, notes)
        self._say(notes)

    def _say(self, notes: Counter[str]) -> None:
        if not self._said:
            say_notes(notes, self.name)
        self._said = True

    def _lines(self) -> Lines:
        if self._sorted is not None:
            return self._sorted
        path = Path(self.name)
        is_pipe = self.name == "-" or (path.exists() and not path.is_file() and not path.is_dir())
        return self._copied_lines() if is_pipe else iter_lines(self.name)

    def _copied_lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines of what can be read once only, from a copy that is made on first use."""
        if self._copy is None:
            copy = self._temporary()
            try:
                with contextlib.ExitStack() as stack:
                    source = sys.stdin.buffer if self.name == "-" else stack.enter_context(open(self.name, "rb"))
                    shutil.copyfileobj(source, copy, 1 << 20)
                copy.flush()
            except OSError as error:
                raise InputError(
                    f"{self.name}: cannot be copied to {tempfile.gettempdir()} ({error.strerror or error})"
                ) from None
            self._copy = copy
        yield from iter_copy_lines(self._copy, self.name)

    def _temporary(self) -> IO[bytes]:
        """A file without a name, where the system can do that: nothing is left of it however the process ends."""
        return self._files.enter_context(tempfile.TemporaryFile(prefix="rubric_measures-"))

    def _is_grouped(self) -> bool:
        done: set[str] = set()
        before = None
        for number, line in self._lines():
            query_id = query_of_line(number, line, self.name)
            if query_id != before:
                if query_id in done:
                    return False
                done.add(query_id)
                before = query_id
            del line
        return True

    def _sort(self) -> None:
        query_of = partial(query_of_line, name=self.name)
        lines = sort_lines(self._lines(), query_of, self._temporary())
        _LOG.warning(
            "%s is not grouped by query (%d of %d queries come back after others), so it is sorted on disk first",
            self.name,
            len(lines.returning),
            len(lines.segments),
        )
        self._sorted = lines


def _handed_out(passages: list[GradedPassage]) -> Iterator[GradedPassage]:
    """The passages in order, each taken out of the list."""
    passages.reverse()
    while passages:
        yield passages.pop()
