"""Grades from records, assignments and criteria.

Graded records as what is scored: the grades of the one grade set that is chosen, rankings, judgments.

Assigned nuggets (nuggetizer's files) as grades: read line by line.

Answers graded by rubrics (RAGDoll's files) as grades: 2 satisfied, 1 partially, 0 not; `failed` is none.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from rubric_measures.base.errors import FormatError, UnknownNameError, naming
from rubric_measures.base.files import path_name, paused_collector
from rubric_measures.base.json_text import json_texts, parse_json
from rubric_measures.base.sorting import by_rank
from rubric_measures.formats.assignments import best_of_each
from rubric_measures.formats.nuggetizer import AssignmentLine, validate_assignments
from rubric_measures.formats.nuggets import (
    ASSIGNMENT_GRADES,
    UnknownLabels,
    facet_ids,
    item_of_nugget,
    label_treatment,
    note_unknown_labels,
    with_known_labels,
)
from rubric_measures.formats.ragdoll import VERDICT_GRADES, bank_of_graded, read_graded_answers, verdicts_of
from rubric_measures.measures.grade_sets import GradeFilter, GradeSetSelector
from rubric_measures.measures.grades import Grades, OnFailed, QueryGrades, build_query, masks_of, note_left_out
from rubric_measures.records.details import CitedAnswer, cited_answer, sentence_items
from rubric_measures.records.files import load_graded
from rubric_measures.records.models import DirectGrade, GradeSetKey, ItemGradeSet, QueryPassages
from rubric_measures.types.entities import RubricItem, TestBank, describe, made_by
from rubric_measures.types.scales import ASSIGNED


class RankedPassage(NamedTuple):
    """One place of a run's ranking inside the records; sorts best first."""

    rank: int
    score: float
    doc_id: str


@dataclass(frozen=True)
class RecordQuery:
    """One query of a graded-records file, ready to be scored.

    Attributes:
        grades: the compiled grades of the one grade set that was selected.
        rankings: run -> doc_ids by rank; a `Gap` where a document has no record (see `by_rank`).
        ranks: run -> all its places as the file has them, whatever query they name; only where asked for.
        judgments: doc_id -> the highest judgment of the passage for the query.
        passages: all doc_ids, in file order.
        grade_sets: the grade sets that its grades are of; one, unless the first of several was asked for.
        made: the signatures of the graders that made them, where the records have any.
        part: the name of the part of the query (`query_id/facet_id`) whose items these are; None for all of them.
        disagreements: run -> places where its scores say another order than its ranks.
    """

    grades: QueryGrades
    rankings: Mapping[str, Sequence[str]]
    ranks: Mapping[str, Sequence[RankedPassage]]
    judgments: Mapping[str, float]
    passages: Sequence[str]
    grade_sets: frozenset[GradeSetKey] = frozenset()
    made: frozenset[str] = frozenset()
    part: str | None = None
    disagreements: Mapping[str, int] = field(default_factory=dict)

    @property
    def query_id(self) -> str:
        """The query."""
        return self.grades.query_id


@dataclass
class _PassageGrades:
    """The grades of one passage: item -> grade, and the items without a valid one."""

    grades: Mapping[str, float]
    failed: Sequence[str] = ()


def _read_entry(entry: ItemGradeSet | DirectGrade, selector: GradeSetSelector) -> _PassageGrades:
    grades, statuses = selector.grades_of(entry)
    return _PassageGrades(grades, [item_id for item_id in statuses if item_id not in grades])


def select_query(
    group: QueryPassages, selector: GradeSetSelector, bank: TestBank | None, keep_ranks: bool = False
) -> RecordQuery:
    """Compiles one query of the records.

    Raises:
        InputError: several grade sets pass the filter.
        UnknownNameError: the bank does not have the query.
    """
    query_id = group.query_id
    items: Sequence[RubricItem] | None = None
    by_id: dict[str, RubricItem] | None = None
    if bank is not None:
        items = bank.for_query(query_id, f"{selector.source}:{group.line}" if group.line else selector.source)
        by_id = {item.item_id: item for item in items}
    chosen: dict[str, _PassageGrades] = {}
    ranks: dict[str, list[RankedPassage]] = {}
    places: dict[str, list[tuple[int, float, str]]] = {}
    judgments: dict[str, float] = {}
    doc_ids: list[str] = []
    answers: dict[str, CitedAnswer] = {}
    for passage in group.passages:
        doc_id = passage.doc_id
        if passage.paragraph and (answer := cited_answer(query_id, passage)) is not None:
            answers[doc_id] = answer
        doc_ids.append(doc_id)
        entry = selector.choose(passage, by_id)
        if bank is not None and bank.edited:
            selector.count_old(query_id, passage, bank)
        if entry is not None:
            chosen[doc_id] = _read_entry(entry, selector)
        for ranking in passage.rankings:
            if keep_ranks:
                ranks.setdefault(ranking.method, []).append(RankedPassage(ranking.rank, ranking.score, doc_id))
            if ranking.query_id == query_id:
                places.setdefault(ranking.method, []).append((ranking.rank, ranking.score, doc_id))
            else:
                selector.strangers += 1
        label = passage.judged(query_id)
        if label is not None:
            judgments[doc_id] = label
    if answers and items is None:
        # The sentences are all items that there are, also those that nobody graded.
        items = sentence_items(answers.values())
    where = f"{selector.source}: query {query_id!r}"
    placed = {run_id: by_rank(of_run, doc_ids, where, run_id) for run_id, of_run in places.items()}
    grades, left_out = build_query(
        query_id,
        (),
        items,
        [(doc_id, lost) for doc_id, one in chosen.items() for lost in one.failed if by_id is None or lost in by_id],
        {doc_id: one.grades for doc_id, one in chosen.items()},
        selector.scale,
    )
    selector.left_out.update(left_out)
    if answers:
        grades = replace(grades, answers={doc_id: answer.sentences for doc_id, answer in answers.items()})
    rankings = {run_id: one.doc_ids for run_id, one in placed.items()}
    disagreements = {run_id: one.disagreements for run_id, one in placed.items() if one.disagreements}
    return RecordQuery(
        grades,
        rankings,
        ranks,
        judgments,
        doc_ids,
        frozenset(selector.found) | selector.assessors,
        frozenset(selector.made),
        disagreements=disagreements,
    )


def read_records(
    path: str | os.PathLike[str],
    bank: TestBank | None = None,
    wanted: GradeFilter | None = None,
    *,
    keep_ranks: bool = False,
) -> Iterator[RecordQuery]:
    """The queries of a graded-records file with the grades of exactly one grade set.

    Queries of the bank that the file lacks come last, without grades.

    Args:
        path: the file; `-` is standard input.
        bank: the complete test bank: the denominators, and the choice among grade sets over different items.
        wanted: the filter.
        keep_ranks: also fill `RecordQuery.ranks`.

    Raises:
        FormatError: the file is no graded-records file.
        InputError: no grade set, or more than one, passes the filter.
        UnknownNameError: the bank lacks a query of the file.
    """
    groups = load_graded(path)
    yield from select_queries(groups, groups.name, bank, wanted, keep_ranks=keep_ranks)


def select_queries(
    groups: Iterable[QueryPassages],
    name: str,
    bank: TestBank | None = None,
    wanted: GradeFilter | None = None,
    *,
    keep_ranks: bool = False,
) -> Iterator[RecordQuery]:
    """The queries of graded records with the grades of exactly one grade set; see `read_records`."""
    selector = GradeSetSelector(wanted or GradeFilter(), name)
    seen: set[str] = set()
    for group in groups:
        seen.add(group.query_id)
        yield select_query(group, selector, bank, keep_ranks)
    if not selector.found:
        inside = "" if bank is None else " of items in the bank"
        if bank is not None and any(key.kind == "direct" for key in selector.outside):
            inside += " (labels of whole passages are no grades of items; leave the bank out to use them)"
        if selector.stale:
            inside += (
                f" ({selector.stale} grades by assessors were given to other words or gold answers of their items)"
            )
        raise selector.nothing_found(inside)
    if bank is not None:
        for query_id, items in bank.items.items():
            if query_id not in seen:
                yield RecordQuery(QueryGrades(query_id, items, {}, scale=selector.scale), {}, {}, {}, [])
    # Whether an entry is of the grade set or of another one is known at the end only.
    left_out = sum((selector.outside.get(key, Counter()) for key in selector.found), selector.left_out)
    if left_out:
        note_left_out(left_out)
    selector.note_counts()
    if selector.strangers and not keep_ranks:
        logging.getLogger("rubric_measures").warning(
            "%s: %d rankings name another query and were left out", name, selector.strangers
        )


def load_records(
    path: str | os.PathLike[str],
    bank: TestBank | None = None,
    wanted: GradeFilter | None = None,
    on_failed: OnFailed | None = None,
) -> Grades:
    """The grades of a graded-records file, to be given to ir_measures as qrels; see `read_records`."""
    return collect_grades(read_records(path, bank, wanted), bank, on_failed)


def collect_grades(queries: Iterable[RecordQuery], bank: TestBank | None, on_failed: OnFailed | None = None) -> Grades:
    """The grades of a stream of `select_queries`, all together."""
    found: dict[str, QueryGrades] = {}
    sets, made = frozenset[GradeSetKey](), frozenset[str]()
    for query in queries:
        found[query.query_id] = query.grades
        sets |= query.grade_sets
        made |= query.made
    return Grades(found, on_failed, {**describe(sets, bank), **made_by(made)})


_LABELS = frozenset([*ASSIGNMENT_GRADES, "failed"])
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
            query.answers[row.run_id] = (item_ids, row.labels) if is_each_once else best_of_each(item_ids, row.labels)
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


def load_graded_answers(
    path: str | os.PathLike[str],
    bank: TestBank | None = None,
    *,
    on_failed: OnFailed | None = None,
    source: Mapping[str, object] | None = None,
) -> AssignedAnswers:
    """The grades, rankings and lengths of a file of graded answers.

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
    answers = read_graded_answers(path)
    with naming(path):
        known = bank_of_graded(answers) if bank is None else bank
    queries: dict[str, QueryGrades] = {}
    rankings: dict[str, dict[str, list[str]]] = {}
    lengths: dict[str, dict[str, int]] = {}
    for query_id in dict.fromkeys([*(answer.qid for answer in answers), *known.items]):
        items = known.for_query(query_id)
        known_ids = [item.item_id for item in items]
        graded: dict[str, dict[str, float]] = {}
        failed: list[tuple[str, str]] = []
        for answer in answers:
            if answer.qid != query_id:
                continue
            verdicts = verdicts_of(answer)
            if strange := sorted(verdicts.keys() - set(known_ids)):
                where = f"({path_name(path)}: run {answer.run_id!r}, query {query_id!r})"
                raise UnknownNameError("criterion", strange[0], known_ids, hint=where)
            of_items = {item.item_id: VERDICT_GRADES.get(verdicts.get(item.item_id, "failed")) for item in items}
            graded[answer.run_id] = {item_id: grade for item_id, grade in of_items.items() if grade is not None}
            failed += [(answer.run_id, item_id) for item_id, grade in of_items.items() if grade is None]
            rankings.setdefault(answer.run_id, {})[query_id] = [answer.run_id]
            lengths.setdefault(answer.run_id, {})[query_id] = len((answer.answer_text or "").split())
        queries[query_id], _ = build_query(query_id, (), items, failed, graded, ASSIGNED)
    return AssignedAnswers(Grades(queries, on_failed, source), rankings, lengths)
