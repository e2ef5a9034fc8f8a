"""Answers whose nuggets were assigned (nuggetizer's files), or that were graded by criteria (RAGDoll's), as grades."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from rubric_measures.base.errors import FormatError, UnknownNameError, naming
from rubric_measures.base.files import path_name, paused_collector
from rubric_measures.formats.assignments import AssignedRow, assignment_rows, best_of_each
from rubric_measures.formats.nuggets import ASSIGNMENT_GRADES, NuggetSet, UnknownLabels
from rubric_measures.measures.grades import NONE, Grades, OnFailed, QueryGrades
from rubric_measures.types.entities import RubricItem, TestBank
from rubric_measures.types.scales import ASSIGNED


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


@dataclass
class _OpenQuery:
    """A query while its answers are read.

    Attributes:
        items: its items.
        columns: the columns of the items of an answer, by what most answers share.
        answers: run -> its columns, and the grades there; None is one that failed.
    """

    items: dict[str, RubricItem] = field(default_factory=dict)
    columns: dict[NuggetSet, list[int]] = field(default_factory=dict)
    answers: dict[str, tuple[Sequence[int], Sequence[float | None]]] = field(default_factory=dict)

    def matrix(self, query_id: str) -> QueryGrades:
        """The grades of all answers."""
        grades = np.full((len(self.answers), len(self.items)), NONE)
        # Most answers share the very list of their columns.
        alike: dict[int, tuple[Sequence[int], list[int], list[Sequence[float | None]]]] = {}
        for row, (columns, given) in enumerate(self.answers.values()):
            _, rows, values = alike.setdefault(id(columns), (columns, [], []))
            rows.append(row)
            values.append(given)
        for columns, rows, values in alike.values():
            # None becomes NaN.
            grades[np.ix_(rows, columns)] = np.array(values, float).reshape(len(rows), len(columns))
        failed = np.isnan(grades)
        grades[failed] = NONE
        docs = {run_id: row for row, run_id in enumerate(self.answers)}
        lost = failed if failed.any() else None
        return QueryGrades(query_id, tuple(self.items.values()), docs, grades, lost, ASSIGNED)


@dataclass
class _Answers:
    """All answers of a file while they are read."""

    name: str
    bank: TestBank | None
    queries: dict[str, _OpenQuery] = field(default_factory=dict)
    rankings: dict[str, dict[str, Sequence[str]]] = field(default_factory=dict)
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

    def placed(self, query_id: str, run_id: str, text: str | int, line: int = 0) -> None:
        """Notes the answer of a run.

        Raises:
            FormatError: the run has answered the query before.
        """
        of_run = self.rankings.setdefault(run_id, {})
        if query_id in of_run:
            problem = f"run {run_id!r} has answered query {query_id!r} before"
            raise FormatError(problem, path=self.name, line=line)
        of_run[query_id] = [run_id]
        self.texts.setdefault(run_id, {})[query_id] = text

    def done(self, on_failed: OnFailed | None, source: Mapping[str, object] | None) -> AssignedAnswers:
        """All of them; queries of the bank without an answer stand at the end."""
        for query_id in self.bank.items if self.bank is not None else ():
            self.query(query_id, "")
        grades = {query_id: query.matrix(query_id) for query_id, query in self.queries.items()}
        return AssignedAnswers(Grades(grades, on_failed, source), self.rankings, self.texts)


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
            query = found.query(row.query_id, f"{name}:{row.line}")
            found.placed(row.query_id, row.run_id, row.said_length or 0 if row.text is None else row.text, row.line)
            columns = query.columns.get(row.nuggets)
            if columns is None:
                columns = query.columns[row.nuggets] = _columns(query, row, bank, name)
            labels: Sequence[str] = row.labels
            if len(set(columns)) < len(columns):
                best = best_of_each(list(map(str, columns)), labels)
                columns, labels = list(map(int, best[0])), best[1]
            query.answers[row.run_id] = columns, list(map(ASSIGNMENT_GRADES.get, labels))
        return found.done(on_failed, source)


def _columns(query: _OpenQuery, row: AssignedRow, bank: TestBank | None, name: str) -> list[int]:
    """The column of each nugget; without a bank new ones join the query's items."""
    in_bank: dict[str, str] = {}
    for item in query.items.values() if bank is not None else ():
        in_bank.setdefault(item.text.strip(), item.item_id)
    item_ids = []
    for item in row.nuggets.items:
        if bank is not None:
            if item.text not in in_bank:
                problem = f"the test bank has no nugget {item.text[:60]!r} for query {row.query_id!r}"
                raise FormatError(problem, path=name, line=row.line)
            item_ids.append(in_bank[item.text])
        elif query.items.setdefault(item.item_id, item) != item:
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
        found.placed(answer.qid, answer.run_id, answer.answer_text or "")
        given = [VERDICT_GRADES.get(verdicts.get(item_id, "failed")) for item_id in query.items]
        query.answers[answer.run_id] = range(len(given)), given
    return found.done(on_failed, source)
