"""Graded records as what is scored: the grades of the one grade set that is chosen, rankings, judgments."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rubric_measures.base.sorting import by_rank
from rubric_measures.grades.compiled import Grades, OnFailed, QueryGrades, build_query
from rubric_measures.grades.grade_sets import GradeFilter, GradeSetSelector
from rubric_measures.grades.notes import note_left_out
from rubric_measures.records.details import CitedAnswer, cited_answer, sentence_items
from rubric_measures.records.files import load_graded
from rubric_measures.records.models import DirectGrade, GradeSetKey, ItemGradeSet, QueryPassages
from rubric_measures.types.entities import RubricItem, TestBank, describe, made_by

__all__ = [
    "RankedPassage",
    "RecordQuery",
    "collect_grades",
    "load_records",
    "read_records",
    "select_queries",
    "select_query",
]


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
