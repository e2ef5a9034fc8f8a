"""Graded passage records in files: read as a stream of query groups or whole, written canonically.

The models are in `workbench_models` and can be had from here too.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from rubric_measures.collector import paused_collector
from rubric_measures.errors import FormatError, InputError
from rubric_measures.files import atomic_writer, iter_lines, path_name
from rubric_measures.formats.json_models import field_path, first_problem
from rubric_measures.formats.workbench_models import (
    DirectGrade,
    GradedPassage,
    ItemGradeSet,
    Judgment,
    PassageData,
    PromptInfo,
    QueryPassages,
    Ranking,
    SelfRating,
    grade_of_items,
    repeated_items,
)

__all__ = [
    "DirectGrade",
    "GradedPassage",
    "ItemGradeSet",
    "Judgment",
    "PassageData",
    "PromptInfo",
    "QueryPassages",
    "Ranking",
    "SelfRating",
    "UngroupedError",
    "grade_of_items",
    "load_graded",
    "read_graded",
    "repeated_items",
    "write_graded",
]

_LOG = logging.getLogger("rubric_measures")


class UngroupedError(FormatError):
    """A query comes back after another one, so a stream cannot hand it out whole; `load_graded` can read the file."""


# ["q1", …: a query id without escapes.
_HEAD = re.compile(rb'\s*\[\s*"([^"\\]*)"')
_GROUP: TypeAdapter[tuple[str, list[GradedPassage]]] = TypeAdapter(tuple[str, list[GradedPassage]])
_MANY: TypeAdapter[tuple[str | int, list[GradedPassage]]] = TypeAdapter(tuple[str | int, list[GradedPassage]])
_ONE: TypeAdapter[tuple[str | int, GradedPassage]] = TypeAdapter(tuple[str | int, GradedPassage])


def read_graded(path: str | os.PathLike[str]) -> Iterator[QueryPassages]:
    """Streams the queries of a graded-records file, each with all its passages; memory is that of one query.

    Reads gzip (by content) or plain JSON lines, `["q", [passage, …]]` or `["q", passage]`; consecutive lines of one
    query are one group. A passage that comes twice with the same content is kept once and counted; query ids that are
    numbers become strings; both are said once, when the file is at its end.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field: not JSON, a wrong field, one passage id with two contents, a damaged
            gzip file, no passages at all.
        UngroupedError: a query comes back after another one.
    """
    name = path_name(path)
    notes: Counter[str] = Counter()
    done: set[str] = set()
    current: dict[str, GradedPassage] = {}
    adapters: list[TypeAdapter[Any]] = [_MANY, _ONE]
    query_id, first_line = "", 0
    for line, data in iter_lines(name):
        ahead = _query_id_of(data)
        if first_line and ahead is not None and ahead != query_id:
            # Handed out before the next line is parsed, and kept by nobody here: one query in memory, not two.
            done.add(query_id)
            yield QueryPassages(query_id, _taken(current), first_line)
            first_line = 0
        line_query, passages = _parse_line(data, adapters, name, line, notes)
        if first_line and line_query != query_id:
            done.add(query_id)
            yield QueryPassages(query_id, _taken(current), first_line)
            first_line = 0
        if not first_line:
            if line_query in done:
                raise UngroupedError(
                    f"query {line_query!r} comes back after other queries; sort the file by query first",
                    path=name,
                    line=line,
                )
            query_id, first_line = line_query, line
        _add(current, passages, name, line, line_query, notes)
        del data, passages
    if not first_line:
        raise FormatError("holds no graded passages", path=name)
    yield QueryPassages(query_id, _taken(current), first_line)
    _say(notes, name)


def _query_id_of(data: bytes) -> str | None:
    """The query id at the head of a line, without parsing the rest; None where it does not stand there plainly."""
    match = _HEAD.match(data)
    return match.group(1).decode("utf-8", "replace") if match else None


def _taken(current: dict[str, GradedPassage]) -> list[GradedPassage]:
    passages = list(current.values())
    current.clear()
    return passages


def load_graded(path: str | os.PathLike[str]) -> list[QueryPassages]:
    """The whole file in memory; lines of one query are merged wherever they stand, in the order of first appearance.

    Raises:
        InputError: the file cannot be opened.
        FormatError: as `read_graded`, but never an `UngroupedError`.
    """
    name = path_name(path)
    notes: Counter[str] = Counter()
    groups: dict[str, dict[str, GradedPassage]] = {}
    first_lines: dict[str, int] = {}
    with paused_collector():
        adapters: list[TypeAdapter[Any]] = [_MANY, _ONE]
        for line, data in iter_lines(name):
            query_id, passages = _parse_line(data, adapters, name, line, notes)
            first_lines.setdefault(query_id, line)
            _add(groups.setdefault(query_id, {}), passages, name, line, query_id, notes)
    if not groups:
        raise FormatError("holds no graded passages", path=name)
    _say(notes, name)
    return [QueryPassages(query_id, list(group.values()), first_lines[query_id]) for query_id, group in groups.items()]


def _add(
    group: dict[str, GradedPassage],
    passages: list[GradedPassage],
    name: str,
    line: int,
    query_id: str,
    notes: Counter[str],
) -> None:
    for passage in passages:
        known = group.setdefault(passage.doc_id, passage)
        if known is passage:
            for index, entry in enumerate(passage.exam_grades or ()):
                if entry.self_ratings and (wrong := _misnamed(entry.self_ratings)) is not None:
                    raise FormatError(
                        f"a rating of passage {passage.doc_id!r} needs exactly one of question_id and nugget_id",
                        path=name,
                        line=line,
                        field=f"exam_grades[{index}].self_ratings[{wrong}]",
                    )
                notes["items"] += repeated_items(entry)
        elif known == passage:
            notes["passages"] += 1
        else:
            raise FormatError(
                f"passage {passage.doc_id!r} of query {query_id!r} comes twice with different content; keep one",
                path=name,
                line=line,
            )


def _misnamed(ratings: list[SelfRating]) -> int | None:
    """The first rating that names no item, or two."""
    questions = [rating.question_id for rating in ratings]
    if None not in questions and not any(rating.nugget_id for rating in ratings):
        return None
    wrong = (i for i, one in enumerate(ratings) if (one.question_id is None) == (one.nugget_id is None))
    return next(wrong, None)


def _say(notes: Counter[str], name: str) -> None:
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
            line = _GROUP.dump_json((group.query_id, group.passages), by_alias=True, exclude_unset=True)
            stream.write(line.decode("utf-8"))
            stream.write("\n")
        if not seen:
            raise InputError(f"{path_name(path)}: there are no graded passages to write")
