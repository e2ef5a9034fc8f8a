"""Answers whose nuggets were assigned (nuggetizer's files), or that were graded by criteria (RAGDoll's), as grades.

Lines of assignments are read as typed structs, nearly at the speed of parsing them. Those that are not as nuggetizer
writes them today go through the models of `formats.nuggetizer`, which know older forms and name the field that is
wrong. These are imported only then: pydantic takes as long as 10,000 lines.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from rubric_measures.base.errors import FormatError, UnknownNameError, naming
from rubric_measures.base.files import path_name, paused_collector
from rubric_measures.base.json_text import json_texts, parse_json
from rubric_measures.formats.nuggets import (
    ASSIGNMENT_GRADES,
    NO_ASSIGNMENTS,
    AssignmentLabel,
    ImportanceLabel,
    UnknownLabels,
    facet_ids,
    item_of_nugget,
    label_treatment,
    note_unknown_labels,
    with_known_labels,
)
from rubric_measures.measures.grades import NONE, Grades, OnFailed, QueryGrades
from rubric_measures.types.entities import RubricItem, TestBank
from rubric_measures.types.scales import ASSIGNED

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


@dataclass(frozen=True, eq=False)
class NuggetSet:
    """The items of nuggets that stand together, in order; each set is itself alone, so that much can be kept by it."""

    items: tuple[RubricItem, ...]


class AssignedRow(NamedTuple):
    """The nuggets of a query, assigned to the answer of a run.

    Attributes:
        query_id: the query.
        run_id: the run.
        nuggets: the nuggets.
        labels: the label of each: `support`, `partial_support`, `not_support` or `failed`.
        text: the answer; its length in whitespace words, as the file says it, where it lacks the text.
        line: where it stands in the file.
    """

    query_id: str
    run_id: str
    nuggets: NuggetSet
    labels: Sequence[str]
    text: str | int
    line: int


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
    # Of each query the nuggets of its last line, labels aside; most lines have those of the one before.
    last: dict[str, tuple[list[_BulkNugget], NuggetSet]] = {}
    sets: dict[tuple[object, ...], NuggetSet] = {}
    for number, data in json_texts(name):
        text: str | int
        try:
            line = _decoded(data)
            query_id, run_id, text, nuggets = line.qid, line.run_id, line.answer_text, line.nuggets
        except (ValueError, RecursionError):
            run_id = ""
        if not run_id:
            found = _careful(data, name, number, unknown)
            query_id, run_id = found.qid, str(found.run_id)
            text = found.response_length or 0 if found.answer_text is None else found.answer_text
            nuggets = [
                _BulkNugget(one.text, one.assignment, one.importance, one.mapped_sub_narrative, one.source)
                for one in found.nuggets
            ]
        labels = [one.assignment for one in nuggets]
        for one in nuggets:
            one.assignment = "failed"
        before, alike = last.get(query_id, (None, None))
        if alike is None or nuggets != before:
            # Who wrote a nugget makes it no other one.
            key = (query_id, *[(one.text, one.importance, one.mapped_sub_narrative) for one in nuggets])
            alike = sets.get(key)
            if alike is None:
                if not all(one.text.strip() for one in nuggets):
                    _careful(data, name, number, unknown)
                facets = facet_ids(one.mapped_sub_narrative for one in nuggets)
                alike = sets[key] = NuggetSet(tuple([item_of_nugget(query_id, one, facets) for one in nuggets]))
            last[query_id] = nuggets, alike
        yield AssignedRow(query_id, run_id, alike, labels, text, number)
    if not last:
        raise FormatError(NO_ASSIGNMENTS, path=name)
    note_unknown_labels(unknown, name)


def _careful(data: bytes, name: str, line: int, unknown: Counter[str] | None) -> AssignmentLine:
    """A line in whatever form files ever had."""
    from rubric_measures.formats.nuggetizer import validate_assignments

    parsed = parse_json(data, path=name, line=line)
    return validate_assignments(data if unknown is None else with_known_labels(parsed, unknown), name, line)


@dataclass(frozen=True)
class AssignedAnswers:
    """What assignments say.

    Attributes:
        grades: 2 support, 1 partial_support, 0 not_support; `failed` is a grade that failed. A document is the answer
            of a run and is called after it.
        rankings: run -> query -> its answer, as a ranking of one document.
        texts: run -> query -> the answer, or the length that the file says.
    """

    grades: Grades
    rankings: Mapping[str, Mapping[str, Sequence[str]]]
    texts: Mapping[str, Mapping[str, str | int]]

    @cached_property
    def lengths(self) -> Mapping[str, Mapping[str, int]]:
        """run -> query -> L, the length in whitespace words (of the text, else what the file says)."""
        return {
            run_id: {query_id: one if isinstance(one, int) else len(one.split()) for query_id, one in of_run.items()}
            for run_id, of_run in self.texts.items()
        }


_decoded = msgspec.json.Decoder(_BulkLine).decode
# What is said of an item of an answer, worse before better: nobody asked, it failed, or a grade from 0.
_CODES: dict[str, int] = {"failed": 1, **{label: 2 + grade for label, grade in ASSIGNMENT_GRADES.items()}}
_LABELS = {grade: label for label, grade in ASSIGNMENT_GRADES.items()}
_GRADES = np.array([NONE, NONE, *sorted(ASSIGNMENT_GRADES.values())])


class _Alike(NamedTuple):
    """Answers that say something of the same items.

    Attributes:
        columns: the column of each item; one may come twice.
        rows: the rows of the answers.
        labels: what each says of the items, one answer after the other.
    """

    columns: Sequence[int]
    rows: list[int]
    labels: list[str]


@dataclass
class _OpenQuery:
    """A query while its answers are read.

    Attributes:
        items: its items.
        docs: run -> the row of its answer.
        alike: the answers, by the nuggets that they share.
    """

    items: dict[str, RubricItem] = field(default_factory=dict)
    docs: dict[str, int] = field(default_factory=dict)
    alike: dict[NuggetSet | None, _Alike] = field(default_factory=dict)

    def matrix(self, query_id: str) -> QueryGrades:
        """The grades of all answers."""
        codes = np.zeros((len(self.docs), len(self.items)), np.uint8)
        for columns, rows, labels in self.alike.values():
            said = np.frombuffer(bytes(map(_CODES.__getitem__, labels)), np.uint8).reshape(len(rows), len(columns))
            at = np.array(rows)[:, None], np.array(columns, int)
            if len(set(columns)) == len(columns):
                codes[at] = said
            else:
                # Of an item that comes twice the better grade counts.
                np.maximum.at(codes, at, said)
        lost = codes == _CODES["failed"]
        items, failed = tuple(self.items.values()), lost if lost.any() else None
        return QueryGrades(query_id, items, self.docs, _GRADES[codes], failed, ASSIGNED)


@dataclass
class _Answers:
    """All answers of a file while they are read."""

    name: str
    bank: TestBank | None
    queries: dict[str, _OpenQuery] = field(default_factory=dict)
    texts: dict[str, dict[str, str | int]] = field(default_factory=dict)

    def query(self, query_id: str, where: str) -> _OpenQuery:
        """A query; with a bank it has the bank's items.

        Raises:
            UnknownNameError: the bank lacks it.
        """
        found = self.queries.get(query_id)
        if found is None:
            found = self.queries[query_id] = _OpenQuery()
            if self.bank is not None:
                found.items = {item.item_id: item for item in self.bank.for_query(query_id, where)}
        return found

    def placed(self, query: _OpenQuery, query_id: str, run_id: str, text: str | int, line: int = 0) -> int:
        """The row of the answer of a run.

        Raises:
            FormatError: the run has answered the query before.
        """
        row = len(query.docs)
        if query.docs.setdefault(run_id, row) != row:
            problem = f"run {run_id!r} has answered query {query_id!r} before"
            raise FormatError(problem, path=self.name, line=line)
        self.texts.setdefault(run_id, {})[query_id] = text
        return row

    def done(self, on_failed: OnFailed | None, source: Mapping[str, object] | None) -> AssignedAnswers:
        """All of them; queries of the bank without an answer stand at the end."""
        for query_id in self.bank.items if self.bank is not None else ():
            self.query(query_id, "")
        grades = {query_id: query.matrix(query_id) for query_id, query in self.queries.items()}
        rankings = {run_id: {query_id: [run_id] for query_id in of_run} for run_id, of_run in self.texts.items()}
        return AssignedAnswers(Grades(grades, on_failed, source), rankings, self.texts)


def load_assignments(
    path: str | os.PathLike[str],
    bank: TestBank | None = None,
    *,
    on_failed: OnFailed | None = None,
    source: Mapping[str, object] | None = None,
    unknown_labels: UnknownLabels | None = None,
) -> AssignedAnswers:
    """The grades, rankings and lengths of a file of assignments, whatever the order of its lines.

    The bank of a query is all nuggets that any line of it assigns, unless a bank is given: then its items count, and
    nuggets are found in it by their text. A nugget that comes twice in a line has its better assignment.

    Args:
        path: the file; several runs may be in it.
        bank: the complete bank, with importance.
        on_failed: see `Grades`.
        source: what the grades are, for the signature.
        unknown_labels: what labels that nobody defined count as, with a note; None refuses them.

    Raises:
        InputError: the file cannot be opened; a nugget has two importances; the bank lacks a query or a nugget.
        FormatError: naming file, line and field; also when a run answers a query twice.
    """
    name = path_name(path)
    found = _Answers(name, bank)
    # The lines make no cyclic garbage; looking for it would take as long as reading.
    with paused_collector():
        for row in assignment_rows(path, unknown_labels):
            query = found.queries.get(row.query_id) or found.query(row.query_id, f"{name}:{row.line}")
            place = found.placed(query, row.query_id, row.run_id, row.text, row.line)
            alike = query.alike.get(row.nuggets)
            if alike is None:
                alike = query.alike[row.nuggets] = _Alike(_columns(query, row, bank, name), [], [])
            alike.rows.append(place)
            alike.labels.extend(row.labels)
        return found.done(on_failed, source)


def _columns(query: _OpenQuery, row: AssignedRow, bank: TestBank | None, name: str) -> list[int]:
    """The column of each nugget; without a bank new ones join the query's items."""
    # Of items with one text the first.
    in_bank = {item.text.strip(): item.item_id for item in reversed(query.items.values()) if bank is not None}
    item_ids = []
    for item in row.nuggets.items:
        if bank is not None:
            if item.text not in in_bank:
                problem = f"the test bank has no nugget {item.text[:60]!r} for query {row.query_id!r}"
                raise FormatError(problem, path=name, line=row.line)
            item_ids.append(in_bank[item.text])
        elif (known := query.items.setdefault(item.item_id, item)) is not item and known != item:
            problem = f"nugget {item.text[:60]!r} of query {row.query_id!r} has two importances; keep one"
            raise FormatError(problem, path=name, line=row.line)
        else:
            item_ids.append(item.item_id)
    places = {item_id: place for place, item_id in enumerate(query.items)}
    return [places[item_id] for item_id in item_ids]


def load_graded_answers(
    path: str | os.PathLike[str],
    bank: TestBank | None = None,
    *,
    on_failed: OnFailed | None = None,
    source: Mapping[str, object] | None = None,
) -> AssignedAnswers:
    """The grades, rankings and lengths of a file of graded answers: 2 satisfied, 1 partially, 0 not.

    The bank of a query is all criteria that any of its answers has, unless a bank is given: then its items and weights
    count. Of an answer that was not graded at all, every grade failed.

    Args:
        path: the file; several runs may be in it.
        bank: the complete bank, with weights.
        on_failed: see `Grades`.
        source: what the grades are, for the signature.

    Raises:
        InputError: the file cannot be opened; a criterion has two weights; the bank lacks a query.
        FormatError: naming file, line and field; also when a run answers a query twice.
        UnknownNameError: the bank lacks a criterion.
    """
    from rubric_measures.formats.ragdoll import VERDICT_GRADES, bank_of_graded, read_graded_answers, verdicts_of

    answers = read_graded_answers(path)
    with naming(path):
        known = bank_of_graded(answers) if bank is None else bank
    found = _Answers(path_name(path), known)
    for answer in answers:
        query = found.query(answer.qid, "")
        verdicts = verdicts_of(answer)
        if strange := sorted(verdicts.keys() - query.items.keys()):
            where = f"({found.name}: run {answer.run_id!r}, query {answer.qid!r})"
            raise UnknownNameError("criterion", strange[0], query.items, hint=where)
        place = found.placed(query, answer.qid, answer.run_id, answer.answer_text or "")
        alike = query.alike.setdefault(None, _Alike(range(len(query.items)), [], []))
        alike.rows.append(place)
        alike.labels.extend(_LABELS.get(VERDICT_GRADES.get(verdicts.get(one, ""), -1), "failed") for one in query.items)
    return found.done(on_failed, source)
