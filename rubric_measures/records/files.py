"""Graded passage records in files: read as a stream of query groups or whole, written canonically.

The models are in `workbench_models` and can be had from here too.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from pydantic import TypeAdapter

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import atomic_writer, iter_lines, path_name, paused_collector
from rubric_measures.records._lines import Lines, batches
from rubric_measures.records.models import (
    ITEM_CONTENTS,
    DirectGrade,
    GradedPassage,
    ItemGradeSet,
    Judgment,
    PassageData,
    PromptInfo,
    QueryPassages,
    RankingEntry,
    SelfRating,
    contents_of,
    grade_of_items,
    grader_hash,
    is_of_others,
    items_of_entry,
    kind_of_entry,
    provenance_of,
    repeated_items,
    settings_of_others,
)

__all__ = [
    "ITEM_CONTENTS",
    "DirectGrade",
    "GradedPassage",
    "ItemGradeSet",
    "Judgment",
    "PassageData",
    "PassageStream",
    "PromptInfo",
    "QueryPassages",
    "RankingEntry",
    "RepeatedPassageError",
    "SelfRating",
    "UngroupedError",
    "contents_of",
    "grade_of_items",
    "grader_hash",
    "is_of_others",
    "items_of_entry",
    "kind_of_entry",
    "load_graded",
    "passage_streams",
    "provenance_of",
    "read_graded",
    "repeated_items",
    "say_notes",
    "settings_of_others",
    "whole_queries",
    "write_graded",
]

_LOG = logging.getLogger("rubric_measures")
_Entry = TypeVar("_Entry", ItemGradeSet, DirectGrade)


class UngroupedError(FormatError):
    """A query comes back after another one, so a stream cannot hand it out whole; `GradedFile` sorts such files."""


class RepeatedPassageError(FormatError):
    """A passage comes twice in a stream of passages, which has forgotten the first; whole queries can compare them."""


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


_GROUP: TypeAdapter[tuple[str, list[GradedPassage]]] = TypeAdapter(tuple[str, list[GradedPassage]])


def read_graded(path: str | os.PathLike[str]) -> Iterator[QueryPassages]:
    """Streams the queries of a graded-records file, each with all its passages; memory is that of one query.

    Reads gzip (by content) or plain JSON lines, `["q", [passage, …]]` or `["q", passage]`; consecutive lines of one
    query are one group. A passage that comes twice with the same content is kept once and counted; query ids that are
    numbers become strings; both are said once, at the end of the file. A key that a JSON object names twice has its
    later value: to see it takes an eighth of the reading time more, even by counting keys alone (queries and banks,
    which people write, are looked through).

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field: not JSON, a wrong field, one passage id with two contents, a damaged
            gzip file, no passages at all.
        UngroupedError: a query comes back after another one.
    """
    name = path_name(path)
    notes: Counter[str] = Counter()
    yield from whole_queries(iter_lines(name), name, notes)
    say_notes(notes, name)


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
        _add(current, passages, name, line, line_query, notes)
        del passages
    if not first_line:
        raise FormatError("holds no graded passages", path=name)
    group = list(current.values())
    current.clear()
    yield QueryPassages(query_id, group, first_line)


def passage_streams(lines: Lines, name: str, notes: Counter[str]) -> Iterator[PassageStream]:
    """The same queries, with passages that are parsed as they are asked for: memory is that of one line's text.

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
            _add(fresh, passages, name, line, query_id, notes)
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
        for query_id, line, passages in batches(iter_lines(name), name, notes):
            first_lines.setdefault(query_id, line)
            _add(groups.setdefault(query_id, {}), passages, name, line, query_id, notes)
    if not groups:
        raise FormatError("holds no graded passages", path=name)
    say_notes(notes, name)
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
            if passage.paragraph_data is not None:
                _check_ids(passage.doc_id, passage.paragraph_data, name, line)
            for index, entry in enumerate(passage.exam_grades or ()):
                if entry.self_ratings and (wrong := _misnamed(entry.self_ratings)) is not None:
                    raise FormatError(
                        f"a rating of passage {passage.doc_id!r} needs exactly one of question_id and nugget_id",
                        path=name,
                        line=line,
                        field=f"exam_grades[{index}].self_ratings[{wrong}]",
                    )
                notes["items"] += repeated_items(entry)
        elif known == passage or _bare(known) == _bare(passage):
            notes["passages"] += 1
        else:
            raise FormatError(
                f"passage {passage.doc_id!r} of query {query_id!r} comes twice with different content; keep one",
                path=name,
                line=line,
            )


def _check_ids(doc_id: str, data: PassageData, name: str, line: int) -> None:
    """Refuses rankings and judgments of another passage."""
    known: Mapping[str, Sequence[RankingEntry | Judgment]] = {
        "rankings": data.rankings or (),
        "judgments": data.judgments or (),
    }
    for kind, entries in known.items():
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


def _misnamed(ratings: list[SelfRating]) -> int | None:
    """The first rating that names no item, or two."""
    questions, nuggets = [one.question_id for one in ratings], [one.nugget_id for one in ratings]
    if None not in questions and not any(nuggets):
        return None
    wrong = (i for i, one in enumerate(ratings) if (one.question_id is None) == (one.nugget_id is None))
    return next(wrong, None)


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
