"""Graded passage records on disk: read whole or passage by passage, and written."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
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
    note_sources,
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
    is made of the lines counts only when the iterator is exhausted. A file that cannot be read again has a hash kept of
    what each passage says. Who lets go of a line (`del`) before asking for the next one takes a third less time.

    Raises:
        InputError, FormatError: as `load_graded`.
    """
    name = path_name(path)
    is_read_once = not Path(name).is_file()
    seen: dict[str, dict[str, int]] = {}
    again: set[tuple[str, str]] = set()
    counts: Counter[str] = Counter()
    for line, data in iter_lines(name):
        try:
            query_id, passages = _parsed(data, counts)
            known, new = seen.setdefault(query_id, {}), list[GradedPassage]()
            for passage in passages:
                doc_id, content = passage.doc_id, _content(passage) if is_read_once else 0
                if doc_id not in known:
                    known[doc_id] = content
                    new.append(passage)
                    continue
                counts["passages"] += 1
                again.add((query_id, doc_id))
                if known[doc_id] != content:
                    raise _twice(query_id, doc_id)
            _check(new, counts)
        except FormatError as error:
            raise FormatError(error.problem, path=name, line=line, field=error.field) from None
        yield QueryPassages(query_id, new, line)
        # Who holds on to a line while the next one is read takes a third more time.
        del passages, new
    if not seen:
        raise FormatError("holds no graded passages", path=name)
    if again and not is_read_once:
        _refuse_changed(name, again)
    for kind, said in _SAID.items() if counts else ():
        if counts[kind]:
            _LOG.warning("%s: %d " + said, name, counts[kind])


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


def _parsed(data: bytes, counts: Counter[str]) -> tuple[str, list[GradedPassage]]:
    """A line as (query id, passages); counts `ids` that are numbers.

    Raises:
        FormatError: not JSON, or a wrong field; names the field.
    """
    try:
        query_id, found = _LINES.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        data = _mended(data, counts)
        query_id, found = _in_words(data)
    if not data.isascii():
        # Of what is not looked at yet, nobody checked this.
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            parse_json(data)
    if isinstance(query_id, int):
        counts["ids"] += 1
        query_id = str(query_id)
    if not query_id:
        raise FormatError("the query id is empty; expected text", field="[0]")
    passages = [found] if isinstance(found, GradedPassage) else found
    note_sources(passages, ((data, "", place) for place in range(len(passages))))
    return query_id, passages


def _mended(data: bytes, counts: Counter[str]) -> bytes:
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
    counts["ids"] += len(numbers)
    return json.dumps(value, ensure_ascii=False).encode("utf-8") if numbers or renamed else data


def _check(passages: Iterable[GradedPassage], counts: Counter[str]) -> None:
    """Refuses what no field tells by itself; counts `items` that a grade set grades twice.

    Raises:
        FormatError: a ranking or judgment is of another passage, a rating names no item or two or is -1, or what a
            grade set says about its making is none.
    """
    # Most are made by the same prompt for the same items in one order, and nearly none has details.
    items: list[str] = []
    prompt = msgspec.Raw()
    for passage in passages:
        told, doc_id = passage.paragraph_data, passage.doc_id
        for one in () if told is None else (*(told.rankings or ()), *(told.judgments or ())):
            if one.doc_id != doc_id:
                raise _misplaced(passage)
        entry: ItemGradeSet | DirectGrade | None = None
        try:
            for entry in (*(passage.exam_grades or ()), *(passage.grades or ())):
                if entry.prompt_text != prompt:
                    prompt_in(bytes(entry.prompt_text))
                    prompt = entry.prompt_text
                if entry.details:
                    distributions_of(entry)
                if not isinstance(entry, ItemGradeSet):
                    continue
                named = entry.rated(items)[0] or [*entry.correct_answered, *entry.wrong_answered]
                if named is not items:
                    again = len(named) - len(set(named))
                    counts["items"] += again
                    items = [] if again else named
        except InputError as error:
            raise _in_field(error, passage, entry) from None


def _refuse_changed(name: str, again: Collection[tuple[str, str]]) -> None:
    """Reads a file once more, and refuses passages that came again with different content.

    Raises:
        FormatError: there is one.
    """
    contents: dict[tuple[str, str], int] = {}
    for line, data in iter_lines(name):
        query_id, passages = _parsed(data, Counter())
        for passage in passages:
            key = query_id, passage.doc_id
            if key in again and contents.setdefault(key, _content(passage)) != _content(passage):
                raise FormatError(_twice(*key).problem, path=name, line=line)


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


def _misplaced(passage: GradedPassage) -> FormatError:
    """The error of a passage that has the ranking or judgment of another one."""
    places = [(f"rankings[{number}]", one.doc_id) for number, one in enumerate(passage.rankings)]
    places += [(f"judgments[{number}]", one.doc_id) for number, one in enumerate(passage.judgments)]
    field, doc_id = next(place for place in places if place[1] != passage.doc_id)
    problem = f"expected {passage.doc_id!r}, the paragraph_id of the passage it is in; found {doc_id!r}"
    return FormatError(problem, field=f"paragraph_data.{field}.paragraphId")


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
