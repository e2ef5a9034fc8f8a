"""What nuggetizer's files mean in our records: nuggets are banks, assignments are grades, and back."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.formats.nugget_sets import bank_of_items, facet_ids
from rubric_measures.formats.nuggetizer import AssignedNugget, AssignmentLine, Nugget, NuggetLine, RequestLine
from rubric_measures.records.models import (
    GradedPassage,
    ItemGradeSet,
    PassageData,
    PromptInfo,
    QueryPassages,
    RankingEntry,
)
from rubric_measures.types.entities import Grade, RubricItem, TestBank, make_item_id
from rubric_measures.types.scales import ASSIGNED

__all__ = [
    "ASSIGNMENT_GRADES",
    "assignment_lines",
    "bank_of_nuggets",
    "grades_of_assignments",
    "item_of_nugget",
    "nugget_lines",
    "passages_of_requests",
    "records_of_assignments",
]

_LOG = logging.getLogger("rubric_measures")
PROMPT_CLASS = "nuggets.assign"
# The grades of the three labels; `failed` is a status and no grade.
ASSIGNMENT_GRADES: Mapping[str, int] = MappingProxyType({"not_support": 0, "partial_support": 1, "support": 2})
_LABELS: Mapping[float, str] = {grade: label for label, grade in ASSIGNMENT_GRADES.items()}


def bank_of_nuggets(lines: Iterable[NuggetLine | AssignmentLine]) -> TestBank:
    """The bank that nuggets make; sub-narratives become facets, importance `failed` becomes none.

    Several assignments of one query give its nuggets once. A nugget that comes twice in a query (and facet) is kept
    once; this is counted, and so are nuggets whose importance failed.

    Raises:
        InputError: a nugget has two importances.
    """
    items: dict[str, list[RubricItem]] = {}
    texts: dict[str, str] = {}
    facet_texts: dict[tuple[str, str], str] = {}
    failed = 0
    for line in lines:
        if line.query is not None:
            texts.setdefault(line.qid, line.query)
        facets = facet_ids(nugget.mapped_sub_narrative for nugget in line.nuggets)
        facet_texts |= {(line.qid, facet_id): text for text, facet_id in facets.items()}
        made = [item_of_nugget(line.qid, nugget, facets) for nugget in line.nuggets]
        failed += sum(nugget.importance == "failed" for nugget in line.nuggets)
        if line.qid not in items:
            items[line.qid] = made
        elif isinstance(line, AssignmentLine):
            known = {item.item_id for item in items[line.qid]}
            items[line.qid] += [item for item in made if item.item_id not in known]
        else:
            raise InputError(f"query {line.qid!r} has two lines of nuggets; join them first")
    if failed:
        _LOG.warning("%d nuggets have no importance (failed); measures of vital and okay nuggets need one", failed)
    return bank_of_items(items, texts, facet_texts)


def item_of_nugget(query_id: str, nugget: Nugget, facets: Mapping[str, str]) -> RubricItem:
    """The rubric item that a nugget of a query is; `facets` says the ids of sub-narratives."""
    facet_id = facets.get((nugget.mapped_sub_narrative or "").strip())
    return RubricItem(
        item_id=make_item_id(query_id, nugget.text, facet_id),
        query_id=query_id,
        text=nugget.text.strip(),
        kind="nugget",
        facet_id=facet_id,
        importance=None if nugget.importance == "failed" else nugget.importance,
        info=None if nugget.source is None else {"source": nugget.source},
    )


def nugget_lines(bank: TestBank) -> list[NuggetLine]:
    """The lines that write a bank as nuggets; what they cannot hold (ids, gold answers, weights) is left out.

    Raises:
        InputError: an item is a penalty (a negative weight): as a nugget it would count for an answer that has it.
    """
    _refuse_penalties(bank)
    lines = []
    for query_id, items in bank.items.items():
        fields: dict[str, Any] = {"qid": query_id}
        if query_id in bank.query_texts:
            fields["query"] = bank.query_texts[query_id]
        lines.append(NuggetLine(**fields, nuggets=[Nugget(**_nugget_fields(bank, item)) for item in items]))
    return lines


def _refuse_penalties(bank: TestBank) -> None:
    for item in bank:
        if item.weight is not None and item.weight < 0:
            raise InputError(
                f"query {item.query_id!r}: {item.text!r} is a penalty (weight {item.weight:g}), and a nugget counts "
                "for an answer that has it; take penalties out of the bank first"
            )


def _nugget_fields(bank: TestBank, item: RubricItem) -> dict[str, Any]:
    fields: dict[str, Any] = {"text": item.text}
    if item.importance is not None:
        fields["importance"] = item.importance
    if item.facet_id is not None:
        fields["mapped_sub_narrative"] = bank.facet_texts.get((item.query_id, item.facet_id), item.facet_id)
    if isinstance(item.info, dict) and isinstance(item.info.get("source"), str):
        fields["source"] = item.info["source"]
    return fields


def grades_of_assignments(lines: Iterable[AssignmentLine]) -> list[Grade]:
    """The grades that assignments are: 2 support, 1 partial_support, 0 not_support; `failed` is a status.

    One row a (query, run, nugget); the document is the run's answer and is called after the run. A nugget that comes
    twice in a line has its better grade (as the best of an answer's passages counts), and this is counted.
    """
    grades: list[Grade] = []
    repeated = 0
    for line in lines:
        facets = facet_ids(nugget.mapped_sub_narrative for nugget in line.nuggets)
        best: dict[str, Grade] = {}
        for nugget in line.nuggets:
            item_id = item_of_nugget(line.qid, nugget, facets).item_id
            value = ASSIGNMENT_GRADES.get(nugget.assignment)
            status: Literal["graded", "failed"] = "graded" if value is not None else "failed"
            grade = Grade(line.qid, str(line.run_id), value, item_id, status, nugget.assignment)
            earlier = best.setdefault(item_id, grade)
            if earlier is not grade:
                repeated += 1
                if value is not None and (earlier.relevance is None or earlier.relevance < value):
                    best[item_id] = grade
        grades += best.values()
    if repeated:
        _LOG.warning("%d nuggets come twice for one answer; the better assignment counts", repeated)
    return grades


def passages_of_requests(lines: Iterable[RequestLine], query_ids: Mapping[str, str]) -> list[QueryPassages]:
    """The candidates of requests as ungraded passages, in their order; those without an id are named by their place.

    Args:
        lines: requests.
        query_ids: text -> query id, for requests that give only the text of their query.

    Raises:
        UnknownNameError: the text of a query is not among them.
    """
    groups = []
    for line in lines:
        if not isinstance(line.query, str):
            query_id = line.query.qid
        elif line.query in query_ids:
            query_id = query_ids[line.query]
        else:
            raise UnknownNameError("query text", line.query, query_ids)
        passages = []
        for place, candidate in enumerate(line.candidates, 1):
            name, text = ("", candidate) if isinstance(candidate, str) else (candidate.docid, candidate.doc.segment)
            passages.append(GradedPassage(doc_id=name or f"candidate {place}", text=text))
        groups.append(QueryPassages(query_id, passages))
    return groups


def records_of_assignments(lines: Iterable[AssignmentLine]) -> list[QueryPassages]:
    """Graded records of assignments: one passage for each run's answer, ranked first by its run.

    Their grade sets have the prompt class `nuggets.assign`, so that measures and leaderboards read them like grades
    that were made here.
    """
    lines = list(lines)
    labels: dict[tuple[str, str], dict[str, str]] = {}
    for grade in grades_of_assignments(lines):
        labels.setdefault(grade[:2], {})[grade.iteration] = grade.answer
    groups: dict[str, list[GradedPassage]] = {}
    for line in lines:
        run_id = str(line.run_id)
        entry = assigned_set(labels.get((line.qid, run_id), {}), ASSIGNMENT_GRADES, "nuggetizer", PROMPT_CLASS)
        groups.setdefault(line.qid, []).append(answer_passage(line.qid, run_id, line.answer_text or "", entry))
    return [QueryPassages(query_id, passages) for query_id, passages in groups.items()]


def assigned_set(labels: Mapping[str, str], grades: Mapping[str, int], llm: str, prompt_class: str) -> ItemGradeSet:
    """The grade set of an answer's labels (item id -> label); one that `grades` does not have is a failed grade."""
    return ItemGradeSet.build(
        {item_id: grades[label] for item_id, label in labels.items() if label in grades},
        answers=list(labels.items()),
        llm=llm,
        kind="nugget",
        prompt_info=PromptInfo.model_validate({"prompt_class": prompt_class, **ASSIGNED.as_json()}),
        item_status={item_id: "failed" for item_id, label in labels.items() if label not in grades},
    )


def answer_passage(query_id: str, run_id: str, text: str, entry: ItemGradeSet) -> GradedPassage:
    """A run's answer as a passage that is called after the run, which ranks it first."""
    place = {"method": run_id, "doc_id": run_id, "query_id": query_id, "rank": 1, "score": 1.0}
    fields = {
        "doc_id": run_id,
        "text": text,
        "paragraph_data": PassageData(rankings=[RankingEntry.model_validate(place)]),
        "exam_grades": [entry],
    }
    return GradedPassage.model_validate(fields)


def assignment_lines(
    bank: TestBank, grades: Iterable[Grade], answers: Mapping[tuple[str, str], str], runs: Mapping[tuple[str, str], str]
) -> list[AssignmentLine]:
    """The lines that write grades of answers as assignments: one line a query and run, nuggets in bank order.

    An answer without any grade has no nuggets, as long as other lines list those of its query: so it scores the same.

    Args:
        bank: the nuggets; each must have an importance, or none have.
        grades: grades 0–2 of answers; other statuses, and nuggets without a grade, are written as `failed` (counted).
        answers: (query_id, doc_id) -> text of the answer.
        runs: (query_id, run_id) -> doc_id of the run's answer.

    Raises:
        InputError: a grade is not 0, 1 or 2, or an item is a penalty, see `nugget_lines`.
    """
    _refuse_penalties(bank)
    by_answer: dict[tuple[str, str], dict[str, Grade]] = {}
    for grade in grades:
        if grade.relevance is not None and grade.relevance not in _LABELS:
            where = f"query {grade.query_id!r}, document {grade.doc_id!r}, item {grade.iteration!r}"
            raise InputError(f"{where}: grade {grade.relevance} is no assignment; expected 0, 1 or 2")
        by_answer.setdefault(grade[:2], {})[grade.iteration] = grade
    graded_queries = {query_id for query_id, _ in by_answer}
    lines = []
    notes: Counter[str] = Counter()
    for (query_id, run_id), doc_id in runs.items():
        graded = by_answer.get((query_id, doc_id), {})
        text = answers.get((query_id, doc_id), "")
        fields: dict[str, Any] = {"query": bank.query_texts[query_id]} if query_id in bank.query_texts else {}
        nuggets = []
        for item in bank.for_query(query_id) if graded or query_id not in graded_queries else ():
            found = graded.get(item.item_id)
            label = "failed" if found is None or found.relevance is None else _LABELS[found.relevance]
            notes[label] += 1
            nuggets.append(AssignedNugget.model_validate({**_nugget_fields(bank, item), "assignment": label}))
        length = len(text.split())
        lines.append(
            AssignmentLine(
                **fields, qid=query_id, run_id=run_id, answer_text=text, response_length=length, nuggets=nuggets
            )
        )
    if notes["failed"]:
        _LOG.warning("%d nuggets have no grade and were written as failed", notes["failed"])
    return lines
