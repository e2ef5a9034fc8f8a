"""Graded passage records in files: read whole or query by query, written canonically."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator

from pydantic import TypeAdapter

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import atomic_writer, iter_lines, path_name, paused_collector
from rubric_measures.records.models import GradedPassage, QueryPassages
from rubric_measures.records.streaming import add_passages, batches, say_notes, whole_queries

__all__ = ["load_graded", "read_graded", "write_graded"]

_GROUP: TypeAdapter[tuple[str, list[GradedPassage]]] = TypeAdapter(tuple[str, list[GradedPassage]])


def read_graded(path: str | os.PathLike[str]) -> Iterator[QueryPassages]:
    """Streams the queries of a graded-records file, each with all its passages; memory is that of one query.

    Reads gzip (by content) or plain JSON lines, `["q", [passage, …]]` or `["q", passage]`; consecutive lines of one
    query are one group. A passage that comes twice with the same content is kept once. Query ids that are numbers
    become strings. Both are counted and said once, at the end of the file. Where a JSON object names a key twice, the
    later value counts, and no note says so: to look for it would take an eighth more reading time.

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
            add_passages(groups.setdefault(query_id, {}), passages, name, line, query_id, notes)
    if not groups:
        raise FormatError("holds no graded passages", path=name)
    say_notes(notes, name)
    return [QueryPassages(query_id, list(group.values()), first_lines[query_id]) for query_id, group in groups.items()]


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
