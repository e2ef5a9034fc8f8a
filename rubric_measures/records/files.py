"""Graded passage records on disk: read whole or passage by passage, and written."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import atomic_writer, iter_lines, path_name, paused_collector
from rubric_measures.base.json_text import decoded, parse_json
from rubric_measures.records.models import (
    STATUSES,
    DirectGrade,
    GradedPassage,
    ItemGradeSet,
    QueryPassages,
    content_of,
    distributions_of,
    prompt_in,
)

_LOG = logging.getLogger("rubric_measures")
_LINES = msgspec.json.Decoder(tuple[str | int, list[GradedPassage] | GradedPassage])


class GradedFile(list[QueryPassages]):
    """The queries of a graded-records file.

    Attributes:
        name: the file, for messages.
    """

    def __init__(self, name: str, groups: Iterable[QueryPassages]) -> None:
        super().__init__(groups)
        self.name = name


def load_graded(path: str | os.PathLike[str]) -> GradedFile:
    """The whole file; lines of one query are merged wherever they stand, in the order of first appearance.

    Reads gzip (by content) or plain JSON lines, `["q", [passage, …]]` or `["q", passage]`. A passage that comes twice
    with the same content is kept once. Query ids that are numbers become strings. Both are counted and said once. Where
    a JSON object names a key twice, the later value counts, and no note says so: to look for it would take an eighth
    more reading time.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field: not JSON, a wrong field, one passage id with two contents, a damaged
            gzip file, no passages at all.
    """
    groups: dict[str, QueryPassages] = {}
    with paused_collector():
        for group in iter_graded(path):
            groups.setdefault(group.query_id, group._replace(passages=[])).passages.extend(group.passages)
    return GradedFile(path_name(path), groups.values())


def iter_graded(path: str | os.PathLike[str]) -> Iterator[QueryPassages]:
    """The lines of a file, one by one, as `load_graded` reads them; a query may come in several.

    Nothing is kept but ids. So passages that come twice are compared last of all, in a second reading of the file: what
    is made of the lines counts only when the iterator is exhausted. Who lets go of a line (`del`) before asking for the
    next one takes a third less time.

    Raises:
        InputError, FormatError: as `load_graded`.
    """
    reader = _Reader(path_name(path))
    for line, data in iter_lines(reader.name):
        # Nothing here holds on to a line while the next one is read: that would take a third more time.
        yield reader.read(data, line)
    reader.close()


def write_graded(path: str | os.PathLike[str], groups: Iterable[QueryPassages]) -> None:
    """Writes records canonically: one line a query, `["q", [passage, …]]`, gzipped when the name ends in `.gz`.

    The file appears only when all is written.

    Raises:
        InputError: a query comes twice, or there is nothing to write.
    """
    seen: set[str] = set()
    with atomic_writer(path) as stream:
        for group in groups:
            if group.query_id in seen:
                raise InputError(f"{path_name(path)}: query {group.query_id!r} comes twice; join its passages first")
            seen.add(group.query_id)
            passages = [msgspec.Raw(passage.raw) for passage in group.passages]
            line = msgspec.json.format(msgspec.json.encode((group.query_id, passages)), indent=-1)
            stream.write(line.decode("utf-8"))
            stream.write("\n")
        if not seen:
            raise InputError(f"{path_name(path)}: there are no graded passages to write")


class _Reader:
    """Reads the lines of a file, and knows what it has read.

    Attributes:
        name: the file.
        is_read_once: whether it cannot be read again; of each passage a hash of what it says is kept then.
        seen: query id -> passage -> its hash, or 0.
        again: query and id of passages that come twice.
        counts: what is said at the end: `ids` that are numbers, `passages` and `items` that come twice.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_read_once = not Path(name).is_file()
        self.seen: dict[str, dict[str, int]] = {}
        self.again: set[tuple[str, str]] = set()
        self.counts: Counter[str] = Counter()
        self._items: list[str] = []
        self._prompt = msgspec.Raw()

    def parse(self, data: bytes) -> tuple[str, list[GradedPassage]]:
        """A line as (query id, passages).

        Raises:
            FormatError: naming file, line and field: not JSON, a wrong field.
        """
        try:
            query_id, found = _LINES.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            data = self._mended(data)
            query_id, found = _in_words(data)
        if not data.isascii():
            # Of what is not looked at yet, nobody checked this.
            try:
                data.decode("utf-8")
            except UnicodeDecodeError:
                parse_json(data)
        if isinstance(query_id, int):
            self.counts["ids"] += 1
            query_id = str(query_id)
        if not query_id:
            raise FormatError("the query id is empty; expected text", field="[0]")
        passages = [found] if isinstance(found, GradedPassage) else found
        for place, passage in enumerate(passages):
            passage.belongs((data, "", place))
        return query_id, passages

    def _mended(self, data: bytes) -> bytes:
        """A line with numbers for query ids made text, and replies of direct labels under the name that they have."""
        try:
            value = parse_json(data)
        except FormatError:
            return data
        is_line = isinstance(value, list) and len(value) == 2
        holders: list[tuple[Any, Any]] = [(value, 0)] if is_line else []
        renamed = 0
        for passage in _objects(value[1] if isinstance(value[1], list) else value[1:]) if is_line else ():
            for told in _objects([passage.get("paragraph_data")]):
                holders += [(entry, "query") for entry in _objects(told.get("judgments")) if "query" in entry]
                holders += [(entry, "queryId") for entry in _objects(told.get("rankings")) if "queryId" in entry]
            for entry in _objects(passage.get("grades")):
                if "answers" in entry and "answer" not in entry:
                    entry["answer"] = entry.pop("answers")
                    renamed += 1
        # Only whole numbers: 2003022.0 and 1e400 name no query that another file would know.
        numbers = [(holder, key) for holder, key in holders if type(holder[key]) is int]
        for holder, key in numbers:
            holder[key] = str(holder[key])
        self.counts["ids"] += len(numbers)
        return json.dumps(value, ensure_ascii=False).encode("utf-8") if numbers or renamed else data

    def read(self, data: bytes, line: int) -> QueryPassages:
        """A line, without the passages that were in one before.

        Raises:
            FormatError: as `load_graded`.
        """
        try:
            query_id, passages = self.parse(data)
            return QueryPassages(query_id, self._new(query_id, passages), line)
        except FormatError as error:
            raise FormatError(error.problem, path=self.name, line=line, field=error.field) from None

    def _new(self, query_id: str, passages: list[GradedPassage]) -> list[GradedPassage]:
        """The passages of a line that are new, checked.

        Raises:
            FormatError: one is not new, has different content, and the file cannot be read again; a ranking or judgment
                is of another passage, a rating names no item or two or is -1, or what a grade set says about its making
                is none.
        """
        seen = self.seen.setdefault(query_id, {})
        new = []
        for passage in passages:
            doc_id, content = passage.doc_id, _content(passage) if self.is_read_once else 0
            if doc_id in seen:
                self.counts["passages"] += 1
                self.again.add((query_id, doc_id))
                if seen[doc_id] != content:
                    raise _twice(query_id, doc_id)
                continue
            seen[doc_id] = content
            new.append(passage)
            told = passage.paragraph_data
            for kind in ("rankings", "judgments") if told is not None else ():
                for number, place in enumerate(getattr(told, kind) or ()):
                    if place.doc_id != doc_id:
                        found = f"expected {doc_id!r}, the paragraph_id of the passage it is in; found {place.doc_id!r}"
                        raise FormatError(found, field=f"paragraph_data.{kind}[{number}].paragraphId")
            entry: ItemGradeSet | DirectGrade | None = None
            try:
                for entry in (*(passage.exam_grades or ()), *(passage.grades or ())):
                    # Most are made by the same prompt for the same items in one order, and nearly none has details.
                    if entry.prompt_text != self._prompt:
                        prompt_in(bytes(entry.prompt_text))
                        self._prompt = entry.prompt_text
                    if entry.details:
                        distributions_of(entry)
                    if isinstance(entry, DirectGrade):
                        continue
                    named = entry.rated_as(self._items)[0] or [*entry.correct_answered, *entry.wrong_answered]
                    if named is not self._items:
                        again = len(named) - len(set(named))
                        self.counts["items"] += again
                        self._items = [] if again else named
            except InputError as error:
                raise _in_field(error, passage, entry) from None
        return new

    def close(self) -> None:
        """What only the whole file tells: refuses passages that came again with different content; says the counts.

        Raises:
            FormatError: there is one, or the file holds nothing.
        """
        if not self.seen:
            raise FormatError("holds no graded passages", path=self.name)
        contents: dict[tuple[str, str], int] = {}
        for line, data in iter_lines(self.name) if self.again and not self.is_read_once else ():
            query_id, passages = _Reader(self.name).parse(data)
            for passage in passages:
                key = query_id, passage.doc_id
                if key in self.again and contents.setdefault(key, _content(passage)) != _content(passage):
                    raise FormatError(_twice(*key).problem, path=self.name, line=line)
        for name, said in _SAID.items():
            if self.counts[name]:
                _LOG.warning("%s: %d " + said, self.name, self.counts[name])


_SAID = {
    "ids": "query ids are numbers; read as text",
    "passages": "passages come twice with the same content; the first is kept",
    "items": "grades name an item that their grade set has graded before; the later grade counts",
}


def _content(passage: GradedPassage) -> int:
    """A hash of what a passage says, without the definitions of graders, which only one of its copies may have."""
    said = passage.as_json()
    for entry in [*(said.get("exam_grades") or ()), *(said.get("grades") or ())]:
        if isinstance(entry.get("provenance"), dict):
            entry["provenance"].pop("definition", None)
    return hash(content_of(said))


_SETS = ("exam_grades", "grades")


def _in_field(error: InputError, passage: GradedPassage, entry: object) -> FormatError:
    """The error of a grade set, with its place in the passage."""
    field, problem = (error.field, error.problem) if isinstance(error, FormatError) else ("details", str(error))
    entries = [(f"{name}[{number}]", one) for name in _SETS for number, one in enumerate(getattr(passage, name) or ())]
    return FormatError(problem, field=f"{next(place for place, one in entries if one is entry)}.{field}")


def _in_words(data: bytes) -> tuple[str | int, list[GradedPassage] | GradedPassage]:
    """A line that may be wrong."""
    try:
        return decoded(_LINES, data, choices=STATUSES)
    except FormatError as error:
        problem = error.problem
        if error.field == "[0]":
            problem = "the query id must be text"
        elif not error.field and "is not JSON" not in problem:
            problem = f'expected ["query id", [passage, …]]: {problem}'
        raise FormatError(problem, field=error.field) from None


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _twice(query_id: str, doc_id: str) -> FormatError:
    return FormatError(f"passage {doc_id!r} of query {query_id!r} comes twice with different content; keep one")
