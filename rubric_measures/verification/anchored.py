"""What a grader and assessors (or another grader) both graded in records, and the answers that the grader graded."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rubric_measures.analysis.calibration import Anchor, RunGrades
from rubric_measures.base.errors import InputError
from rubric_measures.measures.grade_sets import HUMAN, GradeFilter, grade_of_assessors, grades_by_assessors
from rubric_measures.measures.loading import RecordQuery, read_records, select_queries
from rubric_measures.records.files import load_graded
from rubric_measures.records.models import GradedPassage, QueryPassages
from rubric_measures.types.entities import TestBank

__all__ = ["ASSESSORS", "Anchored", "by_machines", "machine_graded", "read_anchored"]

ASSESSORS = "assessors"
_Key = tuple[str, str, str]


@dataclass
class Anchored:
    """What records hold of a grader and of the truth that it is held to.

    Attributes:
        anchors: the grades that both gave.
        answers: every run's answers.
        rel: the least grade that covers.
        several: a run that ranks several passages for a query, so that its scores are none of answers; empty otherwise.
        failed: how many grades of the answers failed.
        unmatched: grades of the truth that the grader did not give.
    """

    anchors: list[Anchor] = field(default_factory=list)
    answers: list[RunGrades] = field(default_factory=list)
    rel: int = 0
    several: str = ""
    failed: int = 0
    unmatched: int = 0


def by_machines(groups: Iterable[QueryPassages]) -> Iterator[QueryPassages]:
    """The groups without the grades of assessors."""
    for group in groups:
        yield group._replace(passages=list(map(machine_graded, group.passages)))


def machine_graded(passage: GradedPassage) -> GradedPassage:
    """The passage without the grades of assessors."""
    sets = [entry for entry in passage.exam_grades or () if not entry.llm.startswith(HUMAN)]
    return passage if len(sets) == len(passage.exam_grades or ()) else passage.model_copy(update={"exam_grades": sets})


def read_anchored(
    path: str | os.PathLike[str],
    bank: TestBank | None,
    wanted: GradeFilter,
    anchors: str | os.PathLike[str],
    against: str = ASSESSORS,
    rel: int | None = None,
) -> Anchored:
    """The grades of one grader beside those of the truth, and its answers.

    Args:
        path: graded records of the grader.
        bank: the test bank, where it is known; only grades of its items count.
        wanted: chooses the grader.
        anchors: graded records with the truth's grades; may be the same file.
        against: `assessors` (`human:NAME`; of several the median, of two the lower), or the model whose grades are the
            truth: an older grader, or the same one before.
        rel: the least grade that covers; None takes the scale's.

    Raises:
        InputError: there is no grade that both gave, or the truth's grades are not on the grader's scale.
    """
    truth = _by_assessors(anchors, bank) if against == ASSESSORS else _by_model(anchors, bank, against)

    groups = load_graded(path)
    found, matched = Anchored(), 0
    for query in select_queries(by_machines(groups), groups.name, bank, wanted):
        matched += _add(found, query, truth, rel)
    if not matched:
        raise InputError(f"{os.fspath(path)}: no item of a passage has a grade by the grader and one by {against}")
    found.unmatched = len(truth) - matched
    return found


def _add(found: Anchored, query: RecordQuery, truth: dict[_Key, float], rel: int | None) -> int:
    """Puts what one query holds in; how many of the truth's grades it matches."""
    grades = query.grades
    kinds = {item.item_id: item.importance or "question" for item in grades.items}
    rows: dict[str, dict[str, float]] = {}
    for row in grades.rows():
        rows.setdefault(row.doc_id, {})[row.iteration] = row.relevance
    if rows:
        found.rel = grades.level(rel)
    matched = 0
    for doc_id, of_doc in sorted(rows.items()):
        for item_id, grade in sorted(of_doc.items()):
            said = truth.get((query.query_id, doc_id, item_id))
            if said is None:
                continue
            if grades.scale is not None and said not in grades.scale:
                raise InputError(
                    f"the truth grades {item_id} with {said:g}, which is not on the grader's scale {grades.scale}"
                )
            matched += 1
            found.anchors.append(Anchor(query.query_id, kinds.get(item_id, ""), grade, said))
    for run_id, ranking in sorted(query.rankings.items()):
        if len(ranking) > 1:
            found.several = found.several or run_id
        for doc_id in ranking[:1]:
            found.answers.append(RunGrades(run_id, query.query_id, tuple(rows.get(doc_id, {}).values())))
            found.failed += grades.failed.get(doc_id, 0).bit_count()
    return matched


def _by_assessors(path: str | os.PathLike[str], bank: TestBank | None) -> dict[_Key, float]:
    found: dict[_Key, float] = {}
    stale = 0
    for group in load_graded(path):
        items = None if bank is None else {item.item_id: item for item in bank.for_query(group.query_id)}
        for passage in group.passages:
            theirs = grades_by_assessors(passage, None, items)
            stale += theirs.stale
            for item_id, given in theirs.grades.items():
                found[group.query_id, passage.doc_id, item_id] = grade_of_assessors(given)
    if stale:
        logging.getLogger("rubric_measures").warning(
            "%d grades by assessors were given to other words of their items and are left out", stale
        )
    if not found:
        raise InputError(f"{os.fspath(path)}: holds no grades by assessors ({HUMAN}NAME) that count")
    return found


def _by_model(path: str | os.PathLike[str], bank: TestBank | None, llm: str) -> dict[_Key, float]:
    return {
        (row.query_id, row.doc_id, row.iteration): row.relevance
        for query in read_records(path, bank, GradeFilter(llm))
        for row in query.grades.rows()
    }
