"""Rubrics of RAGDoll, the toolkit of TREC RAG 2026, and answers graded by them: JSON lines, a task a line.

A criterion has a weight, a type and a tier. A verdict is `satisfied` (1), `partially_satisfied` (½), `not_satisfied`
(0), or `failed`, which nobody gave and is no grade. Tasks that failed stay in the file, with a `status` other than
`completed`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, TypeAdapter

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import path_name
from rubric_measures.base.json_files import JsonLines, Record, TextId
from rubric_measures.formats.base import Format, PathName, write_objects
from rubric_measures.formats.nugget_sets import Criterion, RubricLine, bank_of_items, bank_of_rubrics
from rubric_measures.formats.nuggetizer_records import answer_passage, assigned_set
from rubric_measures.records.models import GradedPassage, QueryPassages
from rubric_measures.types.entities import RubricItem, TestBank

__all__ = [
    "GRADED",
    "RUBRIC",
    "VERDICT_GRADES",
    "GradedAnswer",
    "GradedCriterion",
    "bank_of_graded",
    "graded_answers",
    "read_graded_answers",
    "read_ragdoll_rubrics",
    "records_of_graded",
    "verdicts_of",
    "write_graded_answers",
    "write_ragdoll_rubrics",
]

_LOG = logging.getLogger("rubric_measures")
PROMPT_CLASS = "criteria.verdicts"
# The grades of the verdicts; `failed` is a status and no grade.
VERDICT_GRADES: Mapping[str, int] = MappingProxyType({"not_satisfied": 0, "partially_satisfied": 1, "satisfied": 2})
_VERDICTS: Mapping[float, str] = {grade: verdict for verdict, grade in VERDICT_GRADES.items()}
_Type = Literal["explicit", "implicit", "synthesis", "references", "communication", "instruction"]
# The weight that a criterion from a vital nugget has; a tier that nobody said follows it.
_VITAL = 5


class _Criterion(Record):
    text: Annotated[str, Field(pattern=r"\S")]
    type: _Type
    tier: Literal["mandatory", "optional"]
    weight: float
    source_nugget: str | None = None

    def criterion(self) -> Criterion:
        fields: dict[str, Any] = {"criterion": self.text, "weight": self.weight, "axis": self.type, "tier": self.tier}
        if self.source_nugget is not None:
            fields["source_nugget"] = self.source_nugget
        return Criterion(**fields)


class GradedCriterion(_Criterion):
    """A criterion and how well an answer meets it."""

    verdict: Literal["satisfied", "partially_satisfied", "not_satisfied", "failed"]


class _Rubric(Record):
    status: str
    qid: Annotated[TextId, Field(min_length=1)]
    query: str | None = None
    criteria: list[_Criterion] | None = None


class GradedAnswer(Record):
    """The criteria of one query, graded for the answer of one run.

    Attributes:
        status: `completed`, or what became of the task.
        qid: the query.
        run_id: the run.
        query: its text.
        answer_text: the answer.
        response_length: its length, as the file says it.
        criteria: the criteria with their verdicts; none where the task failed.
    """

    status: str
    qid: Annotated[TextId, Field(min_length=1)]
    run_id: Annotated[TextId, Field(min_length=1)]
    query: str | None = None
    answer_text: str | None = None
    response_length: float | None = None
    criteria: list[GradedCriterion] | None = None

    @property
    def judged(self) -> Sequence[GradedCriterion]:
        """The criteria of a task that was completed; none of another one."""
        return self.criteria or () if self.status == "completed" else ()


def _rubric(task: _Rubric | GradedAnswer) -> RubricLine:
    """The criteria of a task, without verdicts."""
    text = {} if task.query is None else {"query": task.query}
    return RubricLine(qid=task.qid, **text, rubrics=[one.criterion() for one in task.criteria or ()])


_RUBRICS = JsonLines(TypeAdapter(_Rubric), "rubrics of RAGDoll", lambda line: (line.qid,))
_GRADED = JsonLines(TypeAdapter(GradedAnswer), "graded answers", lambda line: (line.run_id, line.qid))


def read_ragdoll_rubrics(path: PathName) -> list[RubricLine]:
    """The rubrics of a file; the type is the axis. Tasks that failed have no criteria; they are counted and left out.

    Raises:
        InputError: the file cannot be opened, or every task failed.
        FormatError: naming file, line and field; also when a query comes twice.
    """
    found = _RUBRICS.read(path)
    kept = [one for one in found if one.status == "completed"]
    if not kept:
        raise InputError(f"{path_name(path)}: every task failed; there are no criteria")
    if len(kept) < len(found):
        _LOG.warning("%s: %d tasks failed and have no criteria; left out", path_name(path), len(found) - len(kept))
    return [_rubric(one) for one in kept]


def write_ragdoll_rubrics(path: PathName, lines: Iterable[RubricLine]) -> None:
    """Writes weighted criteria as rubrics of RAGDoll; a tier that nobody said is `mandatory` from weight 5 on.

    Raises:
        InputError: the file cannot be written, there are no criteria, or an axis is no type of RAGDoll.
    """
    tasks = (
        {
            "task_id": line.qid, "status": "completed", "qid": line.qid, "query": line.query or "",
            "criteria": [_written(line.qid, one) for one in line.rubrics],
        }
        for line in lines
    )  # fmt: skip
    write_objects(path, tasks, "criteria")


def _written(query_id: str, one: Criterion) -> dict[str, Any]:
    if one.axis not in get_args(_Type):
        known = ", ".join(get_args(_Type))
        raise InputError(f"query {query_id!r}: {one.criterion!r:.60} has the axis {one.axis!r}; RAGDoll knows {known}")
    tier = one.tier or ("mandatory" if one.weight >= _VITAL else "optional")
    weight = int(one.weight) if one.weight.is_integer() else one.weight
    return {
        "text": one.criterion, "type": one.axis, "tier": tier, "weight": weight, "source_nugget": one.source_nugget,
    }  # fmt: skip


def read_graded_answers(path: PathName) -> list[GradedAnswer]:
    """The graded answers of a file, in order; failed tasks and failed verdicts are counted and said.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when a run answers a query twice.
    """
    answers = _GRADED.read(path)
    verdicts = Counter(one.verdict for answer in answers for one in answer.judged)
    empty = sum(not answer.judged for answer in answers)
    if verdicts["failed"] or empty:
        text = "%s: %d of %d verdicts failed; %d answers have none at all"
        _LOG.warning(text, path_name(path), verdicts["failed"], verdicts.total(), empty)
    return answers


def bank_of_graded(answers: Iterable[GradedAnswer]) -> TestBank:
    """The criteria of graded answers as a bank: of each query those of any of its answers, once.

    Raises:
        InputError: a criterion has two weights, or stands twice in one answer.
    """
    items: dict[str, dict[str, RubricItem]] = {}
    texts: dict[str, str] = {}
    facets: dict[tuple[str, str], str] = {}
    for answer in answers:
        bank = bank_of_rubrics([_rubric(answer)])
        texts |= bank.query_texts
        facets |= bank.facet_texts
        known = items.setdefault(answer.qid, {})
        made = bank.for_query(answer.qid)
        if len(made) < len(answer.criteria or ()):
            raise InputError(f"run {answer.run_id!r}, query {answer.qid!r}: a criterion stands twice; keep one")
        for item in made:
            earlier = known.setdefault(item.item_id, item)
            if earlier.weight != item.weight:
                raise InputError(
                    f"query {answer.qid!r}: {item.text!r:.60} has the weights {earlier.weight:g} and {item.weight:g} "
                    "in two answers; name the bank that counts",
                    settings=("bank",),
                )
    return bank_of_items({query_id: tuple(known.values()) for query_id, known in items.items()}, texts, facets)


def verdicts_of(answer: GradedAnswer) -> dict[str, str]:
    """Item id -> verdict of an answer; empty where it has none."""
    if not answer.judged:
        return {}
    items = bank_of_rubrics([_rubric(answer)]).for_query(answer.qid)
    return {item.item_id: one.verdict for item, one in zip(items, answer.judged, strict=True)}


def records_of_graded(answers: Iterable[GradedAnswer]) -> list[QueryPassages]:
    """Graded records: one passage for each run's answer, ranked first by its run; failed verdicts are failed grades.

    An answer without verdicts has a failed grade for each criterion of its query.

    Raises:
        InputError: see `bank_of_graded`.
    """
    listed = list(answers)
    bank = bank_of_graded(listed)
    groups: dict[str, list[GradedPassage]] = {}
    for answer in listed:
        found = verdicts_of(answer)
        verdicts = {item.item_id: found.get(item.item_id, "failed") for item in bank.for_query(answer.qid)}
        entry = assigned_set(verdicts, VERDICT_GRADES, "ragdoll", PROMPT_CLASS)
        passage = answer_passage(answer.qid, answer.run_id, answer.answer_text or "", entry)
        groups.setdefault(answer.qid, []).append(passage)
    return [QueryPassages(query_id, passages) for query_id, passages in groups.items()]


def graded_answers(
    rubrics: Iterable[RubricLine],
    bank: TestBank,
    grades: Mapping[tuple[str, str], Mapping[str, float | None]],
    answers: Mapping[tuple[str, str], str],
    runs: Mapping[tuple[str, str], str],
) -> list[GradedAnswer]:
    """The graded answers that write grades; a criterion without a grade is `failed` (counted).

    Args:
        rubrics: the criteria, in the order of the bank.
        bank: the same as items.
        grades: (query_id, doc_id) -> item id -> grade 0 to 2; None where it failed.
        answers: (query_id, doc_id) -> text of the answer.
        runs: (query_id, run_id) -> doc_id of the run's answer.

    Raises:
        InputError: a grade is not 0, 1 or 2, or an axis is no type of RAGDoll.
    """
    lines = {line.qid: line for line in rubrics}
    made = []
    failed = 0
    for (query_id, run_id), doc_id in runs.items():
        criteria = []
        of_answer = grades.get((query_id, doc_id), {})
        for item, criterion in zip(bank.for_query(query_id), lines[query_id].rubrics, strict=True):
            grade = of_answer.get(item.item_id)
            if grade is not None and grade not in _VERDICTS:
                where = f"query {query_id!r}, document {doc_id!r}, item {item.item_id!r}"
                raise InputError(f"{where}: grade {grade:g} is no verdict; expected 0, 1 or 2")
            failed += grade is None
            said = "failed" if grade is None else _VERDICTS[grade]
            criteria.append({**_written(query_id, criterion), "verdict": said})
        text = answers.get((query_id, doc_id), "")
        fields = {
            "task_id": f"{run_id}:{query_id}", "status": "completed", "qid": query_id, "run_id": run_id,
            "query": bank.query_texts.get(query_id, ""), "answer_text": text, "response_length": len(text.split()),
            "criteria": criteria,
        }  # fmt: skip
        made.append(GradedAnswer.model_validate(fields))
    if failed:
        _LOG.warning("%d criteria have no grade and were written as failed", failed)
    return made


write_graded_answers = _GRADED.write


def _criteria(head: Mapping[str, Any]) -> list[Any] | None:
    """The criteria of the first line, if it is a task of RAGDoll."""
    found = head.get("criteria")
    is_task = "qid" in head and "status" in head and "criteria" in head
    return (found if isinstance(found, list) else []) if is_task else None


RUBRIC = Format(
    "rubrics",
    "rubrics of RAGDoll (TREC RAG 2026)",
    read_ragdoll_rubrics,
    write_ragdoll_rubrics,
    lambda head: _criteria(head.object) is not None and "run_id" not in head.object,
)
GRADED = Format(
    "graded answers",
    "answers graded by rubrics of RAGDoll",
    read_graded_answers,
    write_graded_answers,
    lambda head: _criteria(head.object) is not None and "run_id" in head.object,
)
