"""Assigned nuggets in bulk: the lines of nuggetizer's files as typed structs, nearly at the speed of parsing them.

Lines that are not as nuggetizer writes them today go through the models of `formats.nuggetizer`, which know older forms
and name the field that is wrong. These are imported only then: pydantic takes as long as 10,000 lines.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import path_name, run_of_file
from rubric_measures.base.json_text import json_texts, parse_json
from rubric_measures.formats.nuggets import (
    ASSIGNMENT_GRADES,
    AssignmentLabel,
    ImportanceLabel,
    NuggetSet,
    UnknownLabels,
    label_treatment,
    note_unknown_labels,
    with_known_labels,
)

if TYPE_CHECKING:
    from rubric_measures.formats.nuggetizer import AssignmentLine


class _BulkNugget(msgspec.Struct, gc=False):
    text: str
    assignment: AssignmentLabel
    importance: ImportanceLabel | None = None
    mapped_sub_narrative: str | None = None
    source: str | None = None


class _BulkLine(msgspec.Struct, gc=False):
    """A line as nuggetizer writes it today: with the answer, and the run that gave it; further fields are skipped."""

    qid: str
    run_id: str
    answer_text: str
    nuggets: list[_BulkNugget]
    # Only looked at: a text that is no UTF-8 says that the file is damaged.
    query: object = None


_EMPTY = "is empty; expected assignments, one JSON object a line"
# One that failed says less than any other.
_WORTH: Mapping[str, int] = {**ASSIGNMENT_GRADES, "failed": -1}
_decoded = msgspec.json.Decoder(_BulkLine).decode
# (text, importance, sub-narrative) of every nugget of a line.
_Key = tuple[tuple[str, str | None, str | None], ...]


class AssignedRow(NamedTuple):
    """The nuggets of a query, assigned to the answer of a run.

    Attributes:
        query_id: the query.
        run_id: the run.
        nuggets: the nuggets.
        labels: the label of each: `support`, `partial_support`, `not_support` or `failed`.
        text: the answer.
        said_length: its length, as the file says it, where it lacks the text.
        line: where it stands in the file.
    """

    query_id: str
    run_id: str
    nuggets: NuggetSet
    labels: Sequence[str]
    text: str | None
    said_length: int | None
    line: int

    @property
    def length(self) -> int:
        """L, the length of the answer in whitespace words: of the text, else what the file says."""
        return len(self.text.split()) if self.text is not None else self.said_length or 0


@dataclass
class _OpenNuggets:
    """The nuggets of the last line of a query, labels aside, and all sets of nuggets that its lines have."""

    query_id: str
    last: list[_BulkNugget] = field(default_factory=list)
    last_set: NuggetSet | None = None
    sets: dict[_Key, NuggetSet] = field(default_factory=dict)

    def set_of(self, nuggets: list[_BulkNugget]) -> NuggetSet | None:
        """The set of the nuggets, which are not used again; None where it is new."""
        for one in nuggets:
            one.assignment = "failed"
        # Most lines of a query have the nuggets of the one before, and structs are compared fast.
        if nuggets != self.last:
            self.last, self.last_set = nuggets, self.sets.get(_key(nuggets))
        return self.last_set

    def added(self, nuggets: list[_BulkNugget]) -> NuggetSet:
        made = self.last_set = self.sets[_key(nuggets)] = NuggetSet.of(self.query_id, nuggets)
        return made


def _key(nuggets: list[_BulkNugget]) -> _Key:
    return tuple([(one.text, one.importance, one.mapped_sub_narrative) for one in nuggets])


def assignment_rows(path: str | os.PathLike[str], unknown_labels: UnknownLabels | None = None) -> Iterator[AssignedRow]:
    """The lines of a file of assignments, one after the other, whatever their order.

    Args:
        path: the file; several runs may be in it.
        unknown_labels: what labels that nobody defined count as, with a note in the end; None refuses them.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when there are no lines.
    """
    name = path_name(path)
    unknown = label_treatment(unknown_labels)
    queries: dict[str, _OpenNuggets] = {}
    for number, data in json_texts(name):
        text: str | None
        said_length = None
        try:
            line = _decoded(data)
            query_id, run_id, text, nuggets = line.qid, line.run_id, line.answer_text, line.nuggets
        except (ValueError, RecursionError):
            run_id = ""
        if not run_id:
            found = _careful(data, name, number, unknown)
            query_id, run_id, text, said_length = found.qid, str(found.run_id), found.answer_text, found.response_length
            nuggets = [
                _BulkNugget(one.text, one.assignment, one.importance, one.mapped_sub_narrative, one.source)
                for one in found.nuggets
            ]
        labels = [one.assignment for one in nuggets]
        query = queries.get(query_id) or queries.setdefault(query_id, _OpenNuggets(query_id))
        known = query.set_of(nuggets)
        if known is None:
            if not all(one.text.strip() for one in nuggets):
                _careful(data, name, number, unknown)
            known = query.added(nuggets)
        yield AssignedRow(query_id, run_id, known, labels, text, said_length, number)
    if not queries:
        raise FormatError(_EMPTY, path=name)
    note_unknown_labels(unknown, name)


class RawRow(NamedTuple):
    """A line as nuggetizer's own program reads it: any importance and any label, as they stand.

    Attributes:
        query_id: the query.
        run_id: the run; of a line without one, that which the file is named after.
        importances: of each nugget.
        labels: of each nugget.
    """

    query_id: str
    run_id: str
    importances: list[str]
    labels: list[str]


def raw_rows(path: str | os.PathLike[str]) -> Iterator[RawRow]:
    """The lines of a file of assignments as they stand, one after the other.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when there are no lines.
    """
    name, number = path_name(path), 0
    for number, data in json_texts(name):
        yield _raw(parse_json(data, path=name, line=number), name, number)
    if not number:
        raise FormatError(_EMPTY, path=name)


def _raw(content: Any, name: str, number: int) -> RawRow:
    try:
        query_id, run = content["qid"], content.get("run_id")
        if run is None:
            run = run_of_file(name)
        importances = [nugget["importance"] for nugget in content["nuggets"]]
        labels = [nugget["assignment"] for nugget in content["nuggets"]]
    except (KeyError, TypeError, AttributeError):
        problem = "expected qid, run_id and nuggets with importance and assignment"
        raise FormatError(problem, path=name, line=number) from None
    if run == "":
        raise FormatError("names no run; say which one it is", path=name, line=number, field="run_id")
    for what, found in (("qid", query_id), ("run_id", run), *(("nuggets", text) for text in importances + labels)):
        # Some files write ids as numbers.
        if not isinstance(found, str) and (what == "nuggets" or type(found) is not int):
            problem = f"expected a text; found {type(found).__name__}"
            raise FormatError(problem, path=name, line=number, field=what)
    return RawRow(str(query_id), str(run), importances, labels)


def _careful(data: bytes, name: str, line: int, unknown: Counter[str] | None) -> AssignmentLine:
    """A line in whatever form files ever had."""
    from rubric_measures.formats.nuggetizer import validate_assignments

    content = parse_json(data, path=name, line=line)
    return validate_assignments(data if unknown is None else with_known_labels(content, unknown), name, line)


def best_of_each(item_ids: Sequence[str], labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """Each item of a line once, with its best label."""
    best: dict[str, str] = {}
    for item_id, label in zip(item_ids, labels, strict=True):
        if _WORTH[label] > _WORTH[best.setdefault(item_id, label)]:
            best[item_id] = label
    return list(best), list(best.values())
