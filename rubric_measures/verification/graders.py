"""What labels of assessors say of a grader.

What a grader and assessors (or another grader) both graded in records, and the answers that the grader graded.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rubric_measures.analysis.calibration import (
    Anchor,
    Calibration,
    RunGrades,
    bias_rows,
    calibrated_runs,
)
from rubric_measures.analysis.resampling import USUAL_DRAWS, Draws
from rubric_measures.base.errors import InputError, tell, warn
from rubric_measures.corpora.loading import Bank, File, Rows, bank_of, file_path
from rubric_measures.formats.judged import GRADES, is_grade_table, read_as_records
from rubric_measures.measures.findings import Looked, say
from rubric_measures.measures.grade_sets import (
    HUMAN,
    Grader,
    grade_of_assessors,
    grades_by_assessors,
    note_anchors,
)
from rubric_measures.measures.grades import PARTIAL
from rubric_measures.measures.loading import RecordQuery, select_queries
from rubric_measures.records.models import (
    QueryPassages,
    load_graded,
)
from rubric_measures.types.entities import TestBank

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
        counts: what became of assessors' grades, see `AssessorGrades.anchors`.
        stands: for how many grades one of the truth's stands, of those that an audit asked.
    """

    anchors: list[Anchor] = field(default_factory=list)
    answers: list[RunGrades] = field(default_factory=list)
    rel: int = 0
    several: str = ""
    failed: int = 0
    unmatched: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    stands: dict[_Key, float] = field(default_factory=dict)


def by_machines(groups: Iterable[QueryPassages]) -> Iterator[QueryPassages]:
    """The groups without the grades of assessors."""
    for group in groups:
        passages = []
        for passage in group.passages:
            sets = [entry for entry in passage.exam_grades or () if not entry.llm.startswith(HUMAN)]
            is_whole = len(sets) == len(passage.exam_grades or ())
            passages.append(passage if is_whole else passage.replacing(exam_grades=sets))
        yield group._replace(passages=passages)


def read_anchored(
    path: str | os.PathLike[str],
    bank: TestBank | None,
    wanted: Grader,
    anchors: str | os.PathLike[str],
    against: str = ASSESSORS,
) -> Anchored:
    """The grades of one grader beside those of the truth, and its answers.

    Args:
        path: graded records of the grader, or a table of grades.
        bank: the test bank, where it is known; only grades of its items count.
        wanted: chooses the grader.
        anchors: graded records with the truth's grades, may be the same file; or a table of them, of which
            `assessors` are all that grade there.
        against: `assessors` (`human:NAME`, what they said before they saw the grader's grade; of several the median, of
            two the lower), or the model whose grades are the truth: an older grader, or the same one before.

    Raises:
        InputError: there is no grade that both gave, or the truth's grades are not on the grader's scale.
    """
    found, groups = Anchored(), read_as_records(path)
    if against != ASSESSORS:
        truth = _by_model(anchors, bank, against)
    elif is_grade_table(anchors):
        truth = _by_table(anchors, os.fspath(path) == os.fspath(anchors))
    else:
        truth = _by_assessors(anchors, bank, found)
    queries, looked = select_queries(by_machines(groups), groups.name, bank, wanted), Looked()
    matched = 0
    for query in queries:
        looked.add(query.grades, {})
        if query.grades.is_partial:
            # Pairs that rankings had open are no sample of all pairs.
            raise InputError(f"{os.fspath(path)}: {PARTIAL}; calibrate with grades of all pairs")
        matched += _add(found, query, truth)
    if not matched:
        raise InputError(f"{os.fspath(path)}: no item of a passage has a grade by the grader and one by {against}")
    found.unmatched = len(truth) - matched
    say(looked.notes((), found.rel))
    return found


def _add(found: Anchored, query: RecordQuery, truth: dict[_Key, float]) -> int:
    """Puts what one query holds in; how many of the truth's grades it matches."""
    grades = query.grades
    kinds = {item.item_id: item.importance or "question" for item in grades.items}
    rows: dict[str, dict[str, float]] = {}
    for row in grades.rows():
        rows.setdefault(row.doc_id, {})[row.iteration] = row.relevance
    if rows:
        found.rel = grades.level()
    matched = 0
    for doc_id, of_doc in sorted(rows.items()):
        for item_id, grade in sorted(of_doc.items()):
            key = query.query_id, doc_id, item_id
            said = truth.get(key)
            if said is None:
                continue
            if grades.scale is not None and said not in grades.scale:
                raise InputError(
                    f"the truth grades {item_id} with {said:g}, which is not on the grader's scale {grades.scale}"
                )
            matched += 1
            found.anchors.append(
                Anchor(query.query_id, kinds.get(item_id, ""), grade, said, found.stands.get(key, 1.0))
            )
    for run_id, ranking in sorted(query.rankings.items()):
        if len(ranking) > 1:
            found.several = found.several or run_id
        for doc_id in ranking[:1]:
            found.answers.append(RunGrades(run_id, query.query_id, tuple(rows.get(doc_id, {}).values())))
            if grades.failed is not None and doc_id in grades.docs:
                found.failed += int(grades.failed[grades.docs[doc_id]].sum())
    return matched


def _by_assessors(path: str | os.PathLike[str], bank: TestBank | None, held: Anchored) -> dict[_Key, float]:
    found, counts = dict[_Key, float](), held.counts
    for group in load_graded(path):
        where = group.at(os.fspath(path))
        items = None if bank is None else {item.item_id: item for item in bank.for_query(group.query_id, where)}
        for passage in group.passages:
            theirs = grades_by_assessors(passage, None, items)
            for item_id, grade in theirs.anchors(counts).items():
                key = group.query_id, passage.doc_id, item_id
                found[key], held.stands[key] = grade, theirs.stands.get(item_id, 1.0)
    if not found:
        seen = f"; {counts['not_blind']} were given in sight of the grader's" if counts["not_blind"] else ""
        raise InputError(f"{os.fspath(path)}: holds no grades by assessors ({HUMAN}NAME) that count{seen}")
    note_anchors(counts)
    return found


def _by_table(path: str | os.PathLike[str], is_same: bool) -> dict[_Key, float]:
    """The grades of all who grade in a table; where it is the grader's own, those of `human:NAME`."""
    rows = [row for row in GRADES.read(path) if not is_same or row.grader.startswith(HUMAN)]
    if not rows:
        problem = f"{os.fspath(path)}: holds no grades by {HUMAN}NAME; name the grader, and who is the truth"
        raise InputError(problem, settings=("grader", "against"))
    found: dict[_Key, dict[str, float]] = {}
    for row in rows:
        if row.grade is not None:
            found.setdefault((row.query_id, row.doc_id, row.item_id), {})[row.grader] = row.grade
    return {key: grade_of_assessors(given.values()) for key, given in found.items()}


def _by_model(path: str | os.PathLike[str], bank: TestBank | None, grader: str) -> dict[_Key, float]:
    records = read_as_records(path)
    return {
        (row.query_id, row.doc_id, row.iteration): row.relevance
        for query in select_queries(records, records.name, bank, Grader.parse(grader))
        for row in query.grades.rows()
    }


def calibrate(
    graded: File | Rows,
    *,
    anchors: File | Rows | None = None,
    against: str = "assessors",
    smallest: float = 0.1,
    draws: Draws = USUAL_DRAWS,
    bank: Bank | None = None,
    grader: str | Grader | None = None,
) -> Calibration:
    """How far a grader is off, and the scores that the truth would give.

    Args:
        graded: graded records of the grader, or a table of grades (a file, a frame, …).
        anchors: the same with the truth's grades of some of the same items; in a table of their own all are assessors'.
            The same file by default.
        against: `assessors` (what they said before they saw the grader's grade), or the grader whose grades are the
            truth: an older one (equating), or the same one at an earlier time (drift).
        smallest: the smallest bias that matters, in grades.
        draws: of the intervals; no rounds for none.
        bank: the test bank.
        grader: who is corrected: a name, or `model=…,prompt=…,scale=0-5:4`.

    Raises:
        InputError: nothing has both grades, or the grader gives grades outside of those that the truth graded.
    """
    if not smallest > 0:
        raise InputError(f"the smallest bias that matters is above 0, not {smallest:g}", settings=("smallest",))
    with file_path(graded) as path, file_path(path if anchors is None or anchors is graded else anchors) as truth:
        found = read_anchored(path, bank_of(bank), Grader.parse(grader), truth, against)
    warn("%d grades of the truth are of nothing that the grader graded, and are left out", found.unmatched)
    several = f"run {found.several} ranks several passages for a query; calibrated scores are of answers"
    reason = several if found.several else "" if found.answers else "the records rank nothing"
    if reason:
        tell("no calibrated scores: %s", reason)
    elif found.failed:
        warn("%d grades of the answers failed, and are left out of their scores", found.failed)
    runs = [] if reason else calibrated_runs(found.anchors, found.answers, found.rel, draws)
    settings = {
        "against": against, "assessors": dict(found.counts), "rel": found.rel, "smallest": float(smallest),
        "draws": draws, "reason": reason,
    }  # fmt: skip
    return Calibration(bias_rows(found.anchors, draws.level), runs, settings)
