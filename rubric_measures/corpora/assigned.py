"""Judged answers as grades, nearly at the speed of parsing: nuggets assigned, criteria graded, answers assessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from rubric_measures.base.errors import FormatError, InputError, tell
from rubric_measures.base.files import path_name, paused_collector
from rubric_measures.formats import judged
from rubric_measures.formats.base import PathName
from rubric_measures.measures.grades import NONE, Grades, OnFailed, QueryGrades
from rubric_measures.types.entities import RubricItem, TestBank


@dataclass(frozen=True)
class AssignedAnswers:
    """What judged answers say.

    Attributes:
        grades: the grades of their items; labels that failed are grades that failed. A document is the answer of a run
            and is called after it.
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


# To so many queries two runs give other answers.
_MANY = 4


@dataclass
class _OpenQuery:
    """A query while its answers are read.

    Attributes:
        items: its items, in their order.
        docs: run -> the row of its answer.
        alike: of items that stand together their columns, the rows of the answers that say something of them, and what.
    """

    items: dict[str, RubricItem] = field(default_factory=dict)
    docs: dict[str, int] = field(default_factory=dict)
    alike: dict[judged.ItemSet, tuple[list[int], list[int], list[bytes]]] = field(default_factory=dict)


class _Codes:
    """What is said of an item, as a number, worse before better: 0 nobody asked, 1 it failed, or a grade from 2 on."""

    def __init__(self, toolkit: judged.Toolkit, notes: judged.Oddities) -> None:
        grades = sorted(toolkit.grades.values())
        self.toolkit, self.notes = toolkit, notes
        self.grades = np.array([NONE, NONE, *grades])
        self.of = {label: 2 + grades.index(grade) for label, grade in toolkit.grades.items()} | {judged.FAILED: 1}

    def said(self, labels: Sequence[str]) -> bytes:
        """The numbers of labels; what nobody defined failed."""
        try:
            return bytes(map(self.of.__getitem__, labels))
        except KeyError:
            return bytes(self.of[self.notes.known(label)] for label in labels)

    def matrix(self, query_id: str, query: _OpenQuery) -> QueryGrades:
        """The grades of all answers of a query; of two items that are one of the bank the better grade counts."""
        codes = np.full((len(query.docs), len(query.items)), int(self.toolkit.is_whole), np.uint8)
        for columns, rows, said in query.alike.values():
            given = np.frombuffer(b"".join(said), np.uint8).reshape(len(rows), len(columns))
            np.maximum.at(codes, (np.array(rows, int)[:, None], np.array(columns, int)), given)
        lost = codes == self.of[judged.FAILED]
        items, failed = tuple(query.items.values()), lost if lost.any() else None
        return QueryGrades(query_id, items, query.docs, self.grades[codes], failed, self.toolkit.scale)


def load_assignments(
    path: PathName,
    bank: TestBank | None = None,
    *,
    on_failed: OnFailed | None = None,
    source: Mapping[str, object] | None = None,
    kind: str = "assignments",
) -> AssignedAnswers:
    """The grades, rankings and lengths of a file of judged answers, whatever the order of its lines.

    The bank of a query is all items that any answer to it has, unless a bank is given: then its items count, and items
    are found in it by their id or text. Of an item that comes twice for one answer the first label counts, and labels
    that nobody defined are failed grades: one note counts them.

    Args:
        path: the file; several runs may be in it.
        bank: the complete bank, with importance or weights.
        on_failed: see `Grades`.
        source: what the grades are, for the signature.
        kind: what the file holds: `assignments`, `graded answers` or `assessments`.

    Raises:
        InputError: the file cannot be opened; an item has two importances or weights; the bank lacks a query or an
            item.
        FormatError: naming file, line and field; also when a run answers a query twice.
    """
    name = path_name(path)
    toolkit = {"assignments": judged.NUGGETIZER, "graded answers": judged.RAGDOLL}.get(kind, judged.DRAGUN)
    notes = judged.Oddities(toolkit)
    codes, queries, texts = _Codes(toolkit, notes), dict[str, _OpenQuery](), dict[str, dict[str, str | int]]()

    def opened(query_id: str, where: str = "") -> _OpenQuery:
        """A query that is new; with a bank it has the bank's items."""
        items = bank.for_query(query_id, where) if bank is not None else ()
        return _OpenQuery({item.item_id: item for item in items})

    # The lines make no cyclic garbage; looking for it would take as long as reading.
    with paused_collector():
        for row in judged.judged(_lines(path, kind), notes, name):
            query = queries.get(row.query_id)
            if query is None:
                query = queries[row.query_id] = opened(row.query_id, f"{name}:{row.line}" if row.line else name)
            place = len(query.docs)
            if query.docs.setdefault(row.run_id, place) != place:
                problem = f"run {row.run_id!r} has answered query {row.query_id!r} before"
                raise FormatError(problem, path=name, line=row.line)
            texts.setdefault(row.run_id, {})[row.query_id] = row.text
            if row.items not in query.alike:
                query.alike[row.items] = _columns(query, row, bank, name), [], []
            if row.labels:
                _, rows, said = query.alike[row.items]
                rows.append(place)
                said.append(codes.said(row.labels))
        for query_id in bank.items if bank is not None else ():
            # Queries of the bank without an answer.
            queries.setdefault(query_id, opened(query_id))
        notes.say(name)
        grades = {query_id: codes.matrix(query_id, query) for query_id, query in queries.items()}
    alike: dict[frozenset[tuple[str, str | int]], list[str]] = {}
    for run_id, of_run in texts.items():
        if len(of_run) >= _MANY and any(isinstance(one, str) and one for one in of_run.values()):
            alike.setdefault(frozenset(of_run.items()), []).append(run_id)
    for one, *others in alike.values():
        if others:
            alike_to = others[0] + f" (and {len(others) - 1} more)" * (len(others) > 1)
            tell("%s: runs %s and %s give the same answers to all queries: is one another run?", name, one, alike_to)
    rankings = {run_id: {query_id: [run_id] for query_id in of_run} for run_id, of_run in texts.items()}
    return AssignedAnswers(Grades(grades, on_failed, source), rankings, texts)


def _lines(path: PathName, kind: str) -> Iterable[tuple[int, judged.JudgedAnswer]]:
    if kind == "assignments":
        return judged.ASSIGNMENTS.each(path)
    return ((0, one) for one in (judged.GRADED if kind == "graded answers" else judged.ASSESSMENTS).read(path))


def _columns(query: _OpenQuery, row: judged.Judged, bank: TestBank | None, name: str) -> list[int]:
    """The column of each item; without a bank new ones join the query's items."""
    places = {item_id: place for place, item_id in enumerate(query.items)}
    # Of items with one text the first.
    by_text = {item.text.strip(): places[item.item_id] for item in reversed(query.items.values()) if bank is not None}
    columns = []
    for item in row.items.items:
        if bank is None:
            try:
                judged.same_item(query.items.setdefault(item.item_id, item), item)
            except InputError as error:
                raise FormatError(str(error), path=name, line=row.line, settings=error.settings) from None
            columns.append(places.setdefault(item.item_id, len(places)))
        elif (place := places.get(item.item_id, by_text.get(item.text))) is not None:
            columns.append(place)
        else:
            problem = f"the test bank has no {item.text[:60]!r} for query {row.query_id!r}"
            raise FormatError(problem, path=name, line=row.line)
    return columns
