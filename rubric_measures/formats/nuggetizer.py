"""Files of nuggetizer and of TREC RAG: nuggets, assignments, their records, sets of nuggets.

Weighted criteria of ResearchRubrics, and what banks that are made of such files have in common.

Files of the nuggetizer program: nuggets, assignments, requests, metrics; also the nuggets of TREC RAG 2025.

Source: Pradeep et al., AutoNuggetizer (TREC 2024 RAG track); the program is version 0.0.5 of the package index.

What nuggetizer's files mean in our records: nuggets are banks, assignments are grades, and back.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field, TypeAdapter

from rubric_measures.base.errors import FormatError, InputError, UnknownNameError, warn
from rubric_measures.base.files import path_name, run_of_file
from rubric_measures.base.json_files import JsonLines, Record, TextId, validate_line
from rubric_measures.base.json_text import json_texts, parse_json
from rubric_measures.formats.base import Format, Head, given
from rubric_measures.formats.nuggets import (
    ASSIGNMENT_GRADES,
    AssignmentLabel,
    ImportanceLabel,
    UnknownLabels,
    bank_of_items,
    facet_ids,
    item_of_nugget,
    known_label,
    label_treatment,
    note_unknown_labels,
    with_known_labels,
)
from rubric_measures.records.models import (
    GradedPassage,
    ItemGradeSet,
    PromptInfo,
    QueryPassages,
    answer_passage,
)
from rubric_measures.types.entities import Grade, RubricItem, TestBank, make_item_id
from rubric_measures.types.scales import ASSIGNED


class Criterion(Record):
    """One criterion.

    Attributes:
        criterion: what an answer shall do, never blank.
        weight: from −5 (a penalty) to 5.
        axis: the kind of quality that it is about.
        tier: RAGDoll: `mandatory` or `optional`.
        source_nugget: RAGDoll: the nugget that it was made from.
    """

    criterion: Annotated[str, Field(pattern=r"\S")]
    weight: float
    axis: str | None = None
    tier: str | None = None
    source_nugget: str | None = None


class RubricLine(Record):
    """The criteria of one query (ResearchRubrics, RAGDoll); `query` is its text, where the file has it."""

    qid: TextId
    query: str | None = None
    rubrics: list[Criterion]


_RUBRICS = JsonLines(TypeAdapter(RubricLine), "weighted criteria", by_hand=True)
read_rubrics, write_rubrics = _RUBRICS.read, _RUBRICS.write


def bank_of_rubrics(lines: Iterable[RubricLine]) -> TestBank:
    """The bank that weighted criteria make: nuggets with a weight; the axis is the facet.

    Raises:
        InputError: a query comes twice, or a criterion has two weights.
    """
    items: dict[str, list[RubricItem]] = {}
    texts: dict[str, str] = {}
    facet_texts: dict[tuple[str, str], str] = {}
    for line in lines:
        if line.qid in items:
            raise InputError(f"query {line.qid!r} has two lines of criteria; join them first")
        if line.query is not None:
            texts[line.qid] = line.query
        facets = facet_ids(criterion.axis for criterion in line.rubrics)
        facet_texts |= {(line.qid, facet_id): text for text, facet_id in facets.items()}
        members = items.setdefault(line.qid, [])
        for criterion in line.rubrics:
            facet_id = facets.get((criterion.axis or "").strip())
            text = criterion.criterion.strip()
            item_id = make_item_id(line.qid, text, facet_id)
            said = {"tier": criterion.tier, "source_nugget": criterion.source_nugget}
            info = {name: value for name, value in said.items() if value is not None} or None
            members.append(RubricItem(item_id, line.qid, text, "nugget", facet_id, weight=criterion.weight, info=info))
    return bank_of_items(items, texts, facet_texts)


def rubric_lines(bank: TestBank) -> list[RubricLine]:
    """The lines that write a bank as weighted criteria.

    Raises:
        InputError: an item has no weight.
    """
    lines = []
    for query_id, items in bank.items.items():
        criteria = []
        for item in items:
            if item.weight is None:
                raise InputError(f"item {item.item_id!r} has no weight, and a criterion needs one")
            fields = {"criterion": item.text, "weight": item.weight, "axis": _facet_text(bank, item)}
            fields |= {name: _of_info(item, name) for name in ("tier", "source_nugget")}
            criteria.append(Criterion(**given(fields)))
        lines.append(RubricLine(**given({"qid": query_id, "query": bank.query_texts.get(query_id)}), rubrics=criteria))
    return lines


RUBRICS = Format(
    "rubrics",
    "weighted criteria of ResearchRubrics",
    read_rubrics,
    write_rubrics,
    lambda head: "rubrics" in head.object,
)
_Importance = Annotated[ImportanceLabel, BeforeValidator(known_label)]
_Assignment = Annotated[AssignmentLabel, BeforeValidator(known_label)]


class Nugget(Record):
    """One nugget.

    Attributes:
        text: the key fact, never blank.
        importance: `vital`, `okay`, `failed` (nobody could say), or None where nobody was asked.
        mapped_sub_narrative: TREC RAG 2025: the part of the narrative (the facet) that it belongs to.
        source: TREC RAG 2025: `original` or `post-edit`.
    """

    text: Annotated[str, Field(pattern=r"\S")]
    importance: _Importance | None = None
    mapped_sub_narrative: str | None = None
    source: str | None = None


class AssignedNugget(Nugget):
    """One nugget and how well an answer supports it."""

    assignment: _Assignment


class NuggetLine(Record):
    """The nuggets of one query; `query` is its text, where the file has it."""

    qid: TextId
    query: str | None = None
    nuggets: list[Nugget]


class AssignmentLine(Record):
    """The nuggets of one query, assigned to the answer of one run.

    Attributes:
        qid: the query.
        query: its text.
        run_id: the run; some files leave it out and are named after it.
        answer_text: the answer.
        response_length: its length in whitespace words.
        nuggets: the nuggets with their labels.
    """

    qid: TextId
    query: str | None = None
    run_id: TextId | None = None
    answer_text: str | None = None
    response_length: int | None = None
    nuggets: list[AssignedNugget]


class RequestQuery(Record):
    """The query of a request."""

    qid: TextId
    text: str


class CandidateDocument(Record):
    """The text of a candidate: a segment of MS MARCO v2.1, or what RankLLM's retrieval has of other collections."""

    segment: str = Field(validation_alias=AliasChoices("segment", "text", "contents", "content", "body", "passage"))


class Candidate(Record):
    """One document to make nuggets from."""

    docid: TextId = ""
    score: float | None = None
    doc: CandidateDocument


class RequestLine(Record):
    """A query and the documents to make its nuggets from; either may be plain text."""

    query: RequestQuery | str
    candidates: list[Candidate | str]


_NUGGETS = JsonLines(TypeAdapter(NuggetLine), "nuggets", lambda line: (line.qid,), by_hand=True)
_ASSIGNMENTS = JsonLines(TypeAdapter(AssignmentLine), "assignments", lambda line: (str(line.run_id), line.qid))
_REQUESTS = JsonLines(TypeAdapter(RequestLine), "requests")
read_nuggets, write_nuggets = _NUGGETS.read, _NUGGETS.write
read_requests, write_requests = _REQUESTS.read, _REQUESTS.write
write_assignments = _ASSIGNMENTS.write


def read_assignments(
    path: str | os.PathLike[str], unknown_labels: UnknownLabels | None = None, *, says: bool = True
) -> list[AssignmentLine]:
    """The lines of an assignments file.

    Args:
        path: the file.
        unknown_labels: what labels that nobody defined count as, with a note; None refuses them.
        says: whether the note is said, which helps nobody who asks for the nuggets alone.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when a run and query come twice. Lines without a run are of the
            one that the file is named after (`concise.jsonl`); of standard input they are refused.
    """
    name = path_name(path)
    found = label_treatment(unknown_labels)
    rows = []
    for number, data in json_texts(name):
        content = data if found is None else with_known_labels(parse_json(data, path=name, line=number), found)
        rows.append((number, validate_assignments(content, name, number)))
    if not rows:
        raise FormatError("is empty; expected assignments, one JSON object a line", path=name)
    if says:
        note_unknown_labels(found, name)
    return _ASSIGNMENTS.once(rows, path)


def validate_assignments(data: bytes | Mapping[str, Any], name: str, line: int) -> AssignmentLine:
    """One line of an assignments file, as JSON or as what that says; one that names no run has the name of the file.

    Raises:
        FormatError: naming file, line and field.
    """
    try:
        return _with_run(validate_line(_ASSIGNMENTS.adapter, data, path=name, line=line), name, line)
    except FormatError as error:
        if not error.field.endswith(".assignment"):
            raise
        problem = f"{error.problem}; labels that nobody defined can be taken as failed grades"
        raise FormatError(problem, path=name, line=line, field=error.field, settings=("unknown_labels",)) from None


def _with_run(line: AssignmentLine, name: str, number: int) -> AssignmentLine:
    if line.run_id:
        return line
    # An empty name is a mistake, and no name that was left out.
    run_id = run_of_file(name) if line.run_id is None else ""
    if not run_id:
        raise FormatError("names no run; say which one it is", path=name, line=number, field="run_id")
    return line.model_copy(update={"run_id": run_id})


def _is_assignments(head: Head) -> bool:
    nuggets = head.object.get("nuggets")
    return isinstance(nuggets, list) and any(isinstance(nugget, dict) and "assignment" in nugget for nugget in nuggets)


NUGGETS = Format(
    "nuggets",
    "nuggets of nuggetizer and of TREC RAG",
    read_nuggets,
    write_nuggets,
    lambda head: isinstance(head.object.get("nuggets"), list) and not _is_assignments(head),
)
ASSIGNMENTS = Format(
    "assignments", "nuggetizer's assigned nuggets", read_assignments, write_assignments, _is_assignments
)
REQUESTS = Format(
    "requests",
    "requests of nuggetizer and RankLLM: candidates of queries",
    read_requests,
    write_requests,
    lambda head: "candidates" in head.object,
)
PROMPT_CLASS = "nuggets.assign"
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
    warn("%d nuggets have no importance (failed); measures of vital and okay nuggets need one", failed)
    return bank_of_items(items, texts, facet_texts)


def nugget_lines(bank: TestBank) -> list[NuggetLine]:
    """The lines that write a bank as nuggets; what they cannot hold (ids, gold answers, weights) is left out.

    Raises:
        InputError: an item is a penalty (a negative weight): as a nugget it would count for an answer that has it.
    """
    _refuse_penalties(bank)
    lines = []
    for query_id, items in bank.items.items():
        nuggets = [Nugget(**_nugget_fields(bank, item)) for item in items]
        lines.append(NuggetLine(**given({"qid": query_id, "query": bank.query_texts.get(query_id)}), nuggets=nuggets))
    return lines


def _refuse_penalties(bank: TestBank) -> None:
    for item in bank:
        if item.weight is not None and item.weight < 0:
            raise InputError(
                f"query {item.query_id!r}: {item.text!r} is a penalty (weight {item.weight:g}), and a nugget counts "
                "for an answer that has it; take penalties out of the bank first"
            )


def _nugget_fields(bank: TestBank, item: RubricItem) -> dict[str, Any]:
    said = {"importance": item.importance, "mapped_sub_narrative": _facet_text(bank, item)}
    return given({"text": item.text, **said, "source": _of_info(item, "source")})


def _facet_text(bank: TestBank, item: RubricItem) -> str | None:
    """The text of an item's facet, or else its id."""
    facet_id = item.facet_id
    return None if facet_id is None else bank.facet_texts.get((item.query_id, facet_id), facet_id)


def _of_info(item: RubricItem, name: str) -> str | None:
    """A text that the info of an item holds."""
    found = item.info.get(name) if isinstance(item.info, dict) else None
    return found if isinstance(found, str) else None


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
    warn("%d nuggets come twice for one answer; the better assignment counts", repeated)
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
        passage = answer_passage(line.qid, run_id, line.answer_text or "", exam_grades=[entry])
        groups.setdefault(line.qid, []).append(passage)
    return [QueryPassages(query_id, passages) for query_id, passages in groups.items()]


def assigned_set(labels: Mapping[str, str], grades: Mapping[str, int], llm: str, prompt_class: str) -> ItemGradeSet:
    """The grade set of an answer's labels (item id -> label); one that `grades` does not have is a failed grade."""
    return ItemGradeSet.build(
        {item_id: grades[label] for item_id, label in labels.items() if label in grades},
        answers=list(labels.items()),
        llm=llm,
        kind="nugget",
        prompt_info=PromptInfo(prompt_class=prompt_class, **ASSIGNED.as_json()),
        item_status={item_id: "failed" for item_id, label in labels.items() if label not in grades},
    )


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
    warn("%d nuggets have no grade and were written as failed", notes["failed"])
    return lines
