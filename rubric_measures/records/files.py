"""Graded passage records on disk: read whole or passage by passage, and written."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec

from rubric_measures.base.errors import FormatError, InputError, warn
from rubric_measures.base.files import atomic_writer, iter_lines, path_name, paused_collector
from rubric_measures.base.json_text import decoded, parse_json
from rubric_measures.records.models import (
    STATUSES,
    GradedPassage,
    ItemGradeSet,
    QueryPassages,
    content_of,
    distributions_of,
    note_sources,
    prompt_in,
)

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


def iter_graded(
    path: str | os.PathLike[str], compared: Collection[tuple[str, str]] = frozenset()
) -> Iterator[QueryPassages]:
    """The lines of a file, one by one, as `load_graded` reads them; a query may come in several.

    Nothing is kept but ids. So passages that come twice are compared last of all, in a second reading of the file: what
    is made of the lines counts only when the iterator is exhausted. A file that cannot be read again has a hash kept of
    what each passage says. Who lets go of a line (`del`) before asking for the next one takes a third less time.

    Args:
        path: the file.
        compared: (query_id, doc_id) of passages that are known to come twice; this is the second reading, then.

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
                doc_id = passage.doc_id
                content = _content(passage) if is_read_once or (query_id, doc_id) in compared else 0
                if doc_id not in known:
                    known[doc_id] = content
                    new.append(passage)
                    continue
                again.add((query_id, doc_id))
                counts["passages"] += 1
                if known[doc_id] != content:
                    problem = f"passage {doc_id!r} of query {query_id!r} comes twice with different content; keep one"
                    raise FormatError(problem)
            _check(new, counts)
        except FormatError as error:
            raise FormatError(error.problem, path=name, line=line, field=error.field) from None
        yield QueryPassages(query_id, new, line)
        # Who holds on to a line while the next one is read takes a third more time.
        del passages, new
    if not seen:
        raise FormatError("holds no graded passages", path=name)
    if again and not is_read_once and not compared:
        for _ in iter_graded(path, again):
            pass
    # Without those that are 0.
    for kind, said in _SAID.items() if +counts and not compared else ():
        warn("%s: %d " + said, name, counts[kind])


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
    """A line with numbers for query ids made text, and replies of direct labels under the name that they have.

    Whole numbers alone: 2003022.0 and 1e400 name no query that another file would know. What is no line of passages
    stays, to be refused as it is.
    """
    numbers, renamed = 0, 0
    try:
        value = parse_json(data)
        for passage in value[1] if isinstance(value[1], list) else value[1:]:
            told = passage.get("paragraph_data") or {}
            for name, key in (("judgments", "query"), ("rankings", "queryId")):
                for entry in told.get(name) or ():
                    if type(entry.get(key)) is int:
                        entry[key] = str(entry[key])
                        numbers += 1
            for entry in passage.get("grades") or ():
                if "answers" in entry and "answer" not in entry:
                    entry["answer"] = entry.pop("answers")
                    renamed += 1
    except (FormatError, LookupError, TypeError, AttributeError):
        return data
    counts["ids"] += numbers
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
        for name in ("rankings", "judgments") if told is not None else ():
            for number, one in enumerate(getattr(told, name) or ()):
                if one.doc_id != doc_id:
                    problem = f"expected {doc_id!r}, the paragraph_id of the passage it is in; found {one.doc_id!r}"
                    raise FormatError(problem, field=f"paragraph_data.{name}[{number}].paragraphId")
        for name in ("exam_grades", "grades"):
            for number, entry in enumerate(getattr(passage, name) or ()):
                try:
                    if entry.prompt_text != prompt:
                        prompt_in(bytes(entry.prompt_text))
                        prompt = entry.prompt_text
                    if entry.details:
                        distributions_of(entry)
                    if not isinstance(entry, ItemGradeSet):
                        continue
                    named = entry.rated(items)[0] or [*entry.correct_answered, *entry.wrong_answered]
                except FormatError as error:
                    raise FormatError(error.problem, field=f"{name}[{number}].{error.field}") from None
                if named is not items:
                    again = len(named) - len(set(named))
                    counts["items"] += again
                    items = [] if again else named


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


def _in_words(data: bytes) -> tuple[str | int, list[GradedPassage] | GradedPassage]:
    """A line that may be wrong."""
    try:
        return decoded(_LINES, data, choices=STATUSES)
    except FormatError as error:
        shape = "" if error.field or "is not JSON" in error.problem else 'expected ["query id", [passage, …]]: '
        problem = "the query id must be text" if error.field == "[0]" else shape + error.problem
        raise FormatError(problem, field=error.field) from None
