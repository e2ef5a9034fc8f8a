"""Assigned nuggets (nuggetizer's files) as grades: read line by line."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import path_name, paused_collector
from rubric_measures.base.json_files import json_texts, parse_json
from rubric_measures.formats.nuggetizer import (
    ASSIGNMENT_GRADES,
    AssignmentLine,
    UnknownLabels,
    facet_ids,
    item_of_nugget,
    label_treatment,
    note_unknown_labels,
    validate_assignments,
    with_known_labels,
)
from rubric_measures.grades.compiled import Grades, OnFailed, QueryGrades, masks_of
from rubric_measures.types.entities import RubricItem, TestBank
from rubric_measures.types.scales import ASSIGNED

__all__ = ["AssignedAnswers", "load_assignments"]

# One that failed says less than any other.
_WORTH: Mapping[str, int] = {**ASSIGNMENT_GRADES, "failed": -1}
_LABELS = frozenset(_WORTH)
# (text, importance, sub-narrative) of every nugget of a line, which most lines of a query share.
_Key = tuple[tuple[Any, Any, Any], ...]


@dataclass(frozen=True)
class AssignedAnswers:
    """What assignments say.

    Attributes:
        grades: 2 support, 1 partial_support, 0 not_support; `failed` is a grade that failed. A document is the answer
            of a run and is called after it.
        rankings: run -> query -> its answer, as a ranking of one document.
        lengths: run -> query -> L, the length in whitespace words (of the text, else what the file says).
    """

    grades: Grades
    rankings: Mapping[str, Mapping[str, Sequence[str]]]
    lengths: Mapping[str, Mapping[str, int]]


@dataclass
class _OpenQuery:
    """A query while its lines are read.

    Attributes:
        items: its items, in order of appearance.
        known: the nuggets of a line -> their item ids, and whether each comes once.
        answers: run -> the items of its answer, each once, and their labels.
    """

    items: dict[str, RubricItem] = field(default_factory=dict)
    known: dict[_Key, tuple[list[str], bool]] = field(default_factory=dict)
    answers: dict[str, tuple[Sequence[str], Sequence[str]]] = field(default_factory=dict)

    def compiled(self, query_id: str, items: Sequence[RubricItem]) -> QueryGrades:
        """The grades of all answers: labels become masks here, as no item of an answer has two of them."""
        bit = {item.item_id: 1 << place for place, item in enumerate(items)}
        bits: dict[int, list[int]] = {}
        levels: dict[str, dict[float, int]] = {}
        failed: dict[str, int] = {}
        for run_id, (item_ids, labels) in self.answers.items():
            # Most answers share the very list of their items, so what it means is looked up once.
            own = bits.get(id(item_ids))
            if own is None:
                own = bits[id(item_ids)] = [bit[item_id] for item_id in item_ids]
            masks = masks_of(labels, own)
            if lost := masks.pop("failed", 0):
                failed[run_id] = lost
            levels[run_id] = {ASSIGNMENT_GRADES[label]: mask for label, mask in masks.items()}
        return QueryGrades(query_id, tuple(items), levels, failed, ASSIGNED)


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
    unknown = label_treatment(unknown_labels)
    queries: dict[str, _OpenQuery] = {}
    rankings: dict[str, dict[str, list[str]]] = {}
    lengths: dict[str, dict[str, int]] = {}
    # The lines make no cyclic garbage; looking for it would take as long as reading.
    with paused_collector():
        for line, data in json_texts(name):
            row = _AssignmentLine.of(data, name, line, unknown)
            query = queries.get(row.query_id) or queries.setdefault(row.query_id, _OpenQuery())
            if row.query_id in rankings.setdefault(row.run_id, {}):
                problem = f"run {row.run_id!r} has answered query {row.query_id!r} before"
                raise FormatError(problem, path=name, line=line)
            rankings[row.run_id][row.query_id] = [row.run_id]
            lengths.setdefault(row.run_id, {})[row.query_id] = row.length
            known = query.known.get(row.key)
            if known is None:
                item_ids = _item_ids(query, row, bank, name, line)
                known = query.known[row.key] = item_ids, len(set(item_ids)) == len(item_ids)
            item_ids, is_each_once = known
            query.answers[row.run_id] = (item_ids, row.labels) if is_each_once else _best_of_each(item_ids, row.labels)
    if not queries:
        raise FormatError("is empty; expected assignments, one JSON object a line", path=name)
    note_unknown_labels(unknown, name)
    grades = {
        query_id: query.compiled(query_id, [*query.items.values()] if bank is None else bank.for_query(query_id))
        for query_id, query in queries.items()
    }
    for query_id, items in (bank.items if bank is not None else {}).items():
        grades.setdefault(query_id, QueryGrades(query_id, items, {}, scale=ASSIGNED))
    return AssignedAnswers(Grades(grades, on_failed, source), rankings, lengths)


class _AssignmentLine(NamedTuple):
    """One line; its nuggets as JSON, or validated where the line is not as nuggetizer writes it today."""

    query_id: str
    run_id: str
    length: int
    key: _Key
    labels: list[str]
    nuggets: AssignmentLine | list[dict[str, Any]]

    @classmethod
    def of(cls, data: bytes, name: str, line: int, unknown: Counter[str] | None) -> _AssignmentLine:
        content = parse_json(data, path=name, line=line)
        try:
            nuggets = content["nuggets"]
            labels = [nugget["assignment"] for nugget in nuggets]
            key = tuple([(one["text"], one.get("importance"), one.get("mapped_sub_narrative")) for one in nuggets])
            query_id, run, text = content["qid"], content.get("run_id"), content["answer_text"]
            hash(key)
            strings = all(isinstance(found, str) for found in (query_id, run, text))
            if run and strings and isinstance(nuggets, list) and _LABELS.issuperset(labels):
                return cls(query_id, run, len(text.split()), key, labels, nuggets)
        except (KeyError, TypeError, AttributeError):
            # Not as nuggetizer writes it today: the models know older forms, and name the field that is wrong.
            pass
        known = data if unknown is None else with_known_labels(content, unknown)
        row = validate_assignments(known, name, line)
        key = tuple([(one.text, one.importance, one.mapped_sub_narrative) for one in row.nuggets])
        labels = [one.assignment for one in row.nuggets]
        length = len(row.answer_text.split()) if row.answer_text is not None else row.response_length or 0
        return cls(row.qid, str(row.run_id), length, key, labels, row)


def _item_ids(query: _OpenQuery, row: _AssignmentLine, bank: TestBank | None, name: str, line: int) -> list[str]:
    """The item of each nugget of a line that is like no line before; new nuggets join the query's items."""
    parsed = row.nuggets
    if isinstance(parsed, list):
        parsed = validate_assignments({"qid": row.query_id, "run_id": row.run_id, "nuggets": parsed}, name, line)
    facets = facet_ids(nugget.mapped_sub_narrative for nugget in parsed.nuggets)
    in_bank: dict[str, str] = {}
    if bank is not None:
        for item in bank.for_query(row.query_id, f"{name}:{line}"):
            in_bank.setdefault(item.text.strip(), item.item_id)
    item_ids = []
    for nugget in parsed.nuggets:
        item = item_of_nugget(row.query_id, nugget, facets)
        if bank is not None:
            if item.text not in in_bank:
                problem = f"the test bank has no nugget {item.text[:60]!r} for query {row.query_id!r}"
                raise FormatError(problem, path=name, line=line)
            item_ids.append(in_bank[item.text])
            continue
        if query.items.setdefault(item.item_id, item) != item:
            problem = f"nugget {item.text[:60]!r} of query {row.query_id!r} has two importances; keep one"
            raise FormatError(problem, path=name, line=line)
        item_ids.append(item.item_id)
    return item_ids


def _best_of_each(item_ids: Sequence[str], labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """Each nugget of a line once, with its better label."""
    best: dict[str, str] = {}
    for item_id, label in zip(item_ids, labels, strict=True):
        if _WORTH[label] > _WORTH[best.setdefault(item_id, label)]:
            best[item_id] = label
    return list(best), list(best.values())
