"""Graded-records files as streams of queries, whatever their order: lines parsed, passages checked, queries whole.

Files in which queries come back are sorted on disk, standard input is kept there, long lines are parsed in pieces.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import iter_copy_lines, iter_lines, open_binary, path_name, paused_collector
from rubric_measures.records._lines import SortedLines, in_other_shape, pieces_of, query_id_of, sort_lines
from rubric_measures.records.distributions import distributions_of
from rubric_measures.records.models import (
    DirectGrade,
    GradedPassage,
    ItemGradeSet,
    Judgment,
    PassageData,
    QueryPassages,
    RankingEntry,
    SelfRating,
    provenance_of,
)

__all__ = [
    "GradedFile",
    "PassageGroup",
    "PassageStream",
    "RepeatedPassageError",
    "UngroupedError",
    "add_passages",
    "batches",
    "passage_streams",
    "say_notes",
    "whole_queries",
]

_LOG = logging.getLogger("rubric_measures")
T = TypeVar("T")
_Entry = TypeVar("_Entry", ItemGradeSet, DirectGrade)
Lines = Iterable[tuple[int, bytes]]
"""(line number from 1, line) of a file."""
Batch = tuple[str, int, list[GradedPassage]]
"""(query id, line, some passages of the line)."""

_MANY: TypeAdapter[tuple[str | int, list[GradedPassage]]] = TypeAdapter(tuple[str | int, list[GradedPassage]])
_ONE: TypeAdapter[tuple[str | int, GradedPassage]] = TypeAdapter(tuple[str | int, GradedPassage])
_SOME: TypeAdapter[list[GradedPassage]] = TypeAdapter(list[GradedPassage])
# Lines from this length on are parsed in pieces: a parser needs many times the memory of its text.
_LONG = 4 << 20


class UngroupedError(FormatError):
    """A query comes back after another one, so a stream cannot give it whole; `GradedFile` sorts such files."""


class RepeatedPassageError(FormatError):
    """A passage comes twice in a stream of passages, which no longer has the first; whole queries can compare the
    two."""


class PassageStream(NamedTuple):
    """One query whose passages are parsed as they are asked for, to be looked at once and in turn.

    Attributes:
        query_id: the query.
        passages: its passages, in file order; ids are unique.
        line: the line where the query begins.
    """

    query_id: str
    passages: Iterator[GradedPassage]
    line: int


PassageGroup = QueryPassages | PassageStream
"""One query; whoever reads its passages once, in turn, and keeps none, needs memory for one of them only."""


class GradedFile:
    """A graded-records file that hands out whole queries, one at a time and as often as asked, whatever its order.

    Use it in a `with` block, which removes the temporary files. The queries come in the order in which they first
    appear, the passages of a query in file order: as `load_graded` gives them, but not all in memory.

    - A file in which queries come back after others is sorted on disk, and a note says so.
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
        """Hands the queries to a function; where the file turns out to need sorting, a second time from the beginning.

        A query may come with passages that are parsed when they are asked for and can be read only once: memory is that
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
        """The queries, each read as a whole; the order of the file is checked before the first one comes.

        A passage is dropped here once it was read.

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
                    shutil.copyfileobj(stack.enter_context(open_binary(self.name)), copy, 1 << 20)
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
            query_id = _query_of_line(number, line, self.name)
            if query_id != before:
                if query_id in done:
                    return False
                done.add(query_id)
                before = query_id
            del line
        return True

    def _sort(self) -> None:
        query_of = partial(_query_of_line, name=self.name)
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


def whole_queries(lines: Lines, name: str, notes: Counter[str]) -> Iterator[QueryPassages]:
    """The queries of `(line number, line)` pairs, each with all its passages; see `read_graded`.

    Args:
        lines: the lines of a file.
        name: the file, for errors.
        notes: is added to: what `say_notes` says.
    """
    done: set[str] = set()
    current: dict[str, GradedPassage] = {}
    query_id, first_line = "", 0
    for line_query, line, passages in batches(lines, name, notes):
        if first_line and line_query != query_id:
            done.add(query_id)
            group = list(current.values())
            current.clear()
            yield QueryPassages(query_id, group, first_line)
            del group
            first_line = 0
        if not first_line:
            _refuse_return(line_query, done, name, line)
            query_id, first_line = line_query, line
        add_passages(current, passages, name, line, line_query, notes)
        del passages
    if not first_line:
        raise FormatError("holds no graded passages", path=name)
    group = list(current.values())
    current.clear()
    yield QueryPassages(query_id, group, first_line)


def passage_streams(lines: Lines, name: str, notes: Counter[str]) -> Iterator[PassageStream]:
    """The same queries, with passages that are parsed when they are asked for: memory is that of one line's text.

    Raises:
        RepeatedPassageError: a passage comes twice.
    """
    parts = batches(lines, name, notes)
    ahead = next(parts, None)
    if ahead is None:
        raise FormatError("holds no graded passages", path=name)
    done: set[str] = set()

    def passages_of(query_id: str) -> Iterator[GradedPassage]:
        nonlocal ahead
        seen: set[str] = set()
        while ahead is not None and ahead[0] == query_id:
            _, line, passages = ahead
            fresh: dict[str, GradedPassage] = {}
            add_passages(fresh, passages, name, line, query_id, notes)
            if len(fresh) < len(passages) or not seen.isdisjoint(fresh):
                raise RepeatedPassageError(f"query {query_id!r} has a passage twice", path=name, line=line)
            seen.update(fresh)
            # What was handed out is kept by nobody here.
            ahead = None
            del passages
            waiting = list(fresh.values())[::-1]
            fresh.clear()
            while waiting:
                yield waiting.pop()
            ahead = next(parts, None)

    while ahead is not None:
        query_id, line, _ = ahead
        _refuse_return(query_id, done, name, line)
        done.add(query_id)
        passages = passages_of(query_id)
        yield PassageStream(query_id, passages, line)
        for _ in passages:
            pass


def _refuse_return(query_id: str, done: set[str], name: str, line: int) -> None:
    if query_id in done:
        raise UngroupedError(
            f"query {query_id!r} comes back after other queries; sort the file by query first", path=name, line=line
        )


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
                for piece in pieces_of(data) if query_id else ():
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


def _query_of_line(line: int, data: bytes, name: str) -> str:
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
        query_id, passages = in_other_shape(adapters[0], data, name, line, notes)
    if isinstance(query_id, int):
        notes["ids"] += 1
        query_id = str(query_id)
    if not query_id:
        raise FormatError("the query id is empty; expected text", path=name, line=line, field="[0]")
    return query_id, [passages] if isinstance(passages, GradedPassage) else cast(list[GradedPassage], passages)


def add_passages(
    group: dict[str, GradedPassage],
    passages: list[GradedPassage],
    name: str,
    line: int,
    query_id: str,
    notes: Counter[str],
) -> None:
    """Adds parsed passages of a query to those before them; what contradicts itself or another one is refused."""
    for passage in passages:
        known = group.setdefault(passage.doc_id, passage)
        if known is passage:
            if passage.paragraph_data is not None:
                _check_ids(passage.doc_id, passage.paragraph_data, name, line)
            for index, label in enumerate(passage.grades or ()):
                _check_details(label, name, line, f"grades[{index}]")
            for index, entry in enumerate(passage.exam_grades or ()):
                # Looked at here, as nearly no file has details.
                if entry.__pydantic_extra__:
                    _check_details(entry, name, line, f"exam_grades[{index}]")
                if entry.self_ratings:
                    notes["items"] += _checked_ratings(entry.self_ratings, passage.doc_id, index, name, line)
                else:
                    named = [*entry.correct_answered, *entry.wrong_answered]
                    notes["items"] += len(named) - len(set(named))
        elif known == passage or _bare(known) == _bare(passage):
            notes["passages"] += 1
        else:
            raise FormatError(
                f"passage {passage.doc_id!r} of query {query_id!r} comes twice with different content; keep one",
                path=name,
                line=line,
            )


def _check_details(entry: ItemGradeSet | DirectGrade, name: str, line: int, field: str) -> None:
    """Refuses what a grade set says about the making of its grades where it is none."""
    if not (entry.model_extra and entry.model_extra.get("details")):
        return
    try:
        distributions_of(entry)
    except InputError as error:
        raise FormatError(str(error), path=name, line=line, field=f"{field}.details") from None


def _check_ids(doc_id: str, data: PassageData, name: str, line: int) -> None:
    """Refuses rankings and judgments of another passage."""
    rankings: Sequence[RankingEntry | Judgment] = data.rankings or ()
    judgments: Sequence[RankingEntry | Judgment] = data.judgments or ()
    for kind, entries in (("rankings", rankings), ("judgments", judgments)):
        for index, entry in enumerate(entries):
            if entry.doc_id != doc_id:
                raise FormatError(
                    f"expected {doc_id!r}, the paragraph_id of the passage it is in; found {entry.doc_id!r}",
                    path=name,
                    line=line,
                    field=f"paragraph_data.{kind}[{index}].paragraphId",
                )


def _bare(passage: GradedPassage) -> GradedPassage:
    """The passage without the definitions of graders, which only one of its copies may have."""

    def bare(entries: list[_Entry]) -> list[_Entry]:
        made = [(entry, {**provenance_of(entry), "definition": None}) for entry in entries]
        return [entry.model_copy(update={"provenance": said}) for entry, said in made]

    changes = {name: bare(entries) for name in ("exam_grades", "grades") if (entries := getattr(passage, name))}
    return passage.model_copy(update=changes)


def _checked_ratings(ratings: list[SelfRating], doc_id: str, index: int, name: str, line: int) -> int:
    """How many of the ratings of a passage are of an item that was rated before.

    Raises:
        FormatError: one names no item, or two, or is -1.
    """
    item_ids: list[str | None] = [one.question_id for one in ratings]
    nuggets = [one.nugget_id for one in ratings]
    if None in item_ids or any(nuggets):
        for place, named in enumerate(zip(item_ids, nuggets, strict=True)):
            if named.count(None) != 1:
                raise FormatError(
                    f"a rating of passage {doc_id!r} needs exactly one of question_id and nugget_id",
                    path=name,
                    line=line,
                    field=f"exam_grades[{index}].self_ratings[{place}]",
                )
        item_ids = [one.item_id for one in ratings]
    rated = [one.self_rating for one in ratings]
    if -1 in rated:
        raise FormatError(
            "-1 is no grade; expected 0 to 5, or -2 where a document says the opposite",
            path=name,
            line=line,
            field=f"exam_grades[{index}].self_ratings[{rated.index(-1)}].self_rating",
        )
    return len(item_ids) - len(set(item_ids))


def say_notes(notes: Counter[str], name: str) -> None:
    """Says once what readers counted: ids that are numbers, passages and items that come twice."""
    if notes["ids"]:
        _LOG.warning("%s: %d query ids are numbers; read as text", name, notes["ids"])
    if notes["passages"]:
        _LOG.warning("%s: %d passages come twice with the same content; the first is kept", name, notes["passages"])
    if notes["items"]:
        _LOG.warning(
            "%s: %d grades name an item that their grade set has graded before; the later grade counts",
            name,
            notes["items"],
        )
