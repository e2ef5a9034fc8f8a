"""Answers graded by rubrics (RAGDoll's files) as grades: 2 satisfied, 1 partially, 0 not; `failed` is none."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rubric_measures.base.errors import UnknownNameError, naming
from rubric_measures.base.files import path_name
from rubric_measures.formats.ragdoll import VERDICT_GRADES, bank_of_graded, read_graded_answers, verdicts_of
from rubric_measures.grades.assignments import AssignedAnswers
from rubric_measures.grades.compiled import Grades, OnFailed, QueryGrades, build_query
from rubric_measures.types.entities import TestBank
from rubric_measures.types.scales import ASSIGNED

__all__ = ["load_graded_answers"]


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
