"""Graded passage records on disk: read whole or passage by passage, and written."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import atomic_writer, iter_lines, path_name, paused_collector
from rubric_measures.base.json_files import field_path, first_problem
from rubric_measures.base.json_text import parse_json
from rubric_measures.records.details import distributions_of
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

_LOG = logging.getLogger("rubric_measures")

_Entry = TypeVar("_Entry", ItemGradeSet, DirectGrade)
_MANY: TypeAdapter[tuple[str | int, list[GradedPassage]]] = TypeAdapter(tuple[str | int, list[GradedPassage]])
_ONE: TypeAdapter[tuple[str | int, GradedPassage]] = TypeAdapter(tuple[str | int, GradedPassage])
_GROUP: TypeAdapter[tuple[str, list[GradedPassage]]] = TypeAdapter(tuple[str, list[GradedPassage]])


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
    name = path_name(path)
    notes: Counter[str] = Counter()
    groups: dict[str, dict[str, GradedPassage]] = {}
    first_lines: dict[str, int] = {}
    adapters: list[TypeAdapter[Any]] = [_MANY, _ONE]
    with paused_collector():
        for line, data in iter_lines(name):
            query_id, passages = _parse_line(data, adapters, name, line, notes)
            first_lines.setdefault(query_id, line)
            _add_passages(groups.setdefault(query_id, {}), passages, name, line, query_id, notes)
    if not groups:
        raise FormatError("holds no graded passages", path=name)
    _say_notes(notes, name)
    return GradedFile(
        name,
        (QueryPassages(query_id, list(group.values()), first_lines[query_id]) for query_id, group in groups.items()),
    )


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


def _parse_line(
    data: bytes, adapters: list[TypeAdapter[Any]], name: str, line: int, notes: Counter[str]
) -> tuple[str, list[GradedPassage]]:
    """A line as (query id, passages).

    Args:
        data: the line.
        adapters: those of both shapes of a line; the one that fitted last is tried first.
        name: the file, for errors.
        line: its number.
        notes: `ids` is added to: how many query ids are numbers.

    Raises:
        FormatError: naming file, line and field: not JSON, a wrong field.
    """
    try:
        query_id, passages = adapters[0].validate_json(data)
    except ValidationError as error:
        if error.errors()[0]["loc"] == (1,):
            adapters.reverse()
        query_id, passages = _in_other_shape(adapters[0], data, name, line, notes)
    if isinstance(query_id, int):
        notes["ids"] += 1
        query_id = str(query_id)
    if not query_id:
        raise FormatError("the query id is empty; expected text", path=name, line=line, field="[0]")
    return query_id, [passages] if isinstance(passages, GradedPassage) else cast(list[GradedPassage], passages)


def _in_other_shape(
    adapter: TypeAdapter[Any], data: bytes, name: str, line: int, notes: Counter[str]
) -> tuple[Any, Any]:
    """Parses a line in the other shape, with numbers for query ids made text; slower, and only where it is needed."""
    problem: ValidationError
    try:
        return cast(tuple[Any, Any], adapter.validate_json(data))
    except ValidationError as error:
        problem = error
    try:
        value = parse_json(data)
        changed = _ids_as_text(value)
        if changed:
            result = cast(tuple[Any, Any], adapter.validate_json(json.dumps(value)))
            notes["ids"] += changed
            return result
    except ValidationError as error:
        problem = error
    except ValueError:
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


def _add_passages(
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
            "-1 is no grade; expected 0 or more, or -2 where a document says the opposite",
            path=name,
            line=line,
            field=f"exam_grades[{index}].self_ratings[{rated.index(-1)}].self_rating",
        )
    return len(item_ids) - len(set(item_ids))


def _say_notes(notes: Counter[str], name: str) -> None:
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
