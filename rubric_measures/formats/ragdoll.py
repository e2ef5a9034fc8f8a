"""Files of RAGDoll: rubrics, support.

Rubrics of RAGDoll, the toolkit of TREC RAG 2026, and answers graded by them: JSON lines, a task a line.

A criterion has a weight, a type and a tier. A verdict is `satisfied` (1), `partially_satisfied` (½), `not_satisfied`
(0), or `failed`, which nobody gave and is no grade. Tasks that failed stay in the file, with a `status` other than
`completed`.

Support judgments of RAGDoll, the toolkit of TREC RAG 2026: a citation of a sentence a line, and its label.

These files know nothing of sentences that cite nothing, which recall needs: they become labelled answers with the
answers beside them.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

import msgspec
from pydantic import Field, TypeAdapter, model_validator

from rubric_measures.base.errors import InputError, warn
from rubric_measures.base.files import path_name
from rubric_measures.base.json_files import JsonLines, Record, TextId
from rubric_measures.formats.base import Format, Head, PathName, given, write_objects
from rubric_measures.formats.labels import SupportAnswer
from rubric_measures.formats.nuggetizer import Criterion, RubricLine, assigned_set, bank_of_rubrics
from rubric_measures.formats.nuggets import bank_of_items
from rubric_measures.formats.reports import Answer
from rubric_measures.records.models import GradedPassage, QueryPassages, answer_passage
from rubric_measures.types.entities import RubricItem, TestBank

_LOG = logging.getLogger("rubric_measures")
PROMPT_CLASS = "criteria.verdicts"
# The grades of the verdicts; `failed` is a status and no grade.
VERDICT_GRADES: Mapping[str, int] = MappingProxyType({"not_satisfied": 0, "partially_satisfied": 1, "satisfied": 2})
_RUBRIC_VERDICTS: Mapping[float, str] = {grade: verdict for verdict, grade in VERDICT_GRADES.items()}
_Type = Literal["explicit", "implicit", "synthesis", "references", "communication", "instruction"]
_Tier = Literal["mandatory", "optional"]
_GradedAs = Literal["satisfied", "partially_satisfied", "not_satisfied", "failed"]
# The weight that a criterion from a vital nugget has; a tier that nobody said follows it.
_VITAL = 5


class _Criterion(Record):
    text: Annotated[str, Field(pattern=r"\S")]
    type: _Type
    tier: _Tier
    weight: float
    source_nugget: str | None = None

    def criterion(self) -> Criterion:
        said = {"weight": self.weight, "axis": self.type, "tier": self.tier, "source_nugget": self.source_nugget}
        return Criterion(**given({"criterion": self.text, **said}))


class GradedCriterion(_Criterion):
    """A criterion and how well an answer meets it."""

    verdict: _GradedAs


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


class _BulkCriterion(msgspec.Struct, gc=False):
    text: Annotated[str, msgspec.Meta(pattern=r"\S")]
    type: _Type
    tier: _Tier
    weight: float
    verdict: _GradedAs
    source_nugget: str | None = None


class _BulkAnswer(msgspec.Struct, gc=False):
    """A graded answer without the fields that nobody knows."""

    status: str
    qid: Annotated[str, msgspec.Meta(min_length=1)]
    run_id: Annotated[str, msgspec.Meta(min_length=1)]
    query: str | None = None
    answer_text: str | None = None
    response_length: float | None = None
    criteria: list[_BulkCriterion] | None = None

    @property
    def judged(self) -> Sequence[_BulkCriterion]:
        return self.criteria or () if self.status == "completed" else ()


AnyGradedAnswer: TypeAlias = GradedAnswer | _BulkAnswer
_decoded = msgspec.json.Decoder(_BulkAnswer).decode


def _rubric(query_id: str, query: str | None, criteria: Iterable[Criterion]) -> RubricLine:
    return RubricLine(**given({"qid": query_id, "query": query}), rubrics=list(criteria))


def _bank_of(answer: AnyGradedAnswer) -> TestBank:
    """The criteria of an answer as a bank, which most answers to a query share."""
    said = [(one.text, one.type, one.tier, one.weight, one.source_nugget) for one in answer.criteria or ()]
    return _shared_bank(answer.qid, answer.query, tuple(said))


@lru_cache(maxsize=10_000)
def _shared_bank(query_id: str, query: str | None, criteria: tuple[tuple[Any, ...], ...]) -> TestBank:
    made = (_Criterion(**dict(zip(_Criterion.model_fields, one, strict=True))).criterion() for one in criteria)
    return bank_of_rubrics([_rubric(query_id, query, made)])


_RUBRICS = JsonLines(TypeAdapter(_Rubric), "rubrics of RAGDoll", lambda line: (line.qid,))
_GRADED: JsonLines[Any] = JsonLines(TypeAdapter(GradedAnswer), "graded answers", lambda line: (line.run_id, line.qid))


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
    warn("%s: %d tasks failed and have no criteria; left out", path_name(path), len(found) - len(kept))
    return [_rubric(one.qid, one.query, [each.criterion() for each in one.criteria or ()]) for one in kept]


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


def read_graded_answers(path: PathName, whole: bool = False) -> list[AnyGradedAnswer]:
    """The graded answers of a file, in order; failed tasks and failed verdicts are counted and said.

    Args:
        path: the file.
        whole: whether fields that nobody knows are kept, to be written again; that takes five times as long.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when a run answers a query twice.
    """
    answers: list[AnyGradedAnswer] = _GRADED.read(path, None if whole else _decoded)
    verdicts = Counter(one.verdict for answer in answers for one in answer.judged)
    empty = sum(not answer.judged for answer in answers)
    if verdicts["failed"] or empty:
        text = "%s: %d of %d verdicts failed; %d answers have none at all"
        _LOG.warning(text, path_name(path), verdicts["failed"], verdicts.total(), empty)
    return answers


def bank_of_graded(answers: Iterable[AnyGradedAnswer]) -> TestBank:
    """The criteria of graded answers as a bank: of each query those of any of its answers, once.

    Raises:
        InputError: a criterion has two weights, or stands twice in one answer.
    """
    items: dict[str, dict[str, RubricItem]] = {}
    texts: dict[str, str] = {}
    facets: dict[tuple[str, str], str] = {}
    seen: dict[int, TestBank] = {}
    for answer in answers:
        bank = _bank_of(answer)
        if id(bank) in seen:
            continue
        seen[id(bank)] = bank
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


def verdicts_of(answer: AnyGradedAnswer) -> dict[str, str]:
    """Item id -> verdict of an answer; empty where it has none."""
    if not answer.judged:
        return {}
    items = _bank_of(answer).for_query(answer.qid)
    return dict(zip((item.item_id for item in items), (one.verdict for one in answer.judged), strict=True))


def records_of_graded(answers: Iterable[AnyGradedAnswer]) -> list[QueryPassages]:
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
        passage = answer_passage(answer.qid, answer.run_id, answer.answer_text or "", exam_grades=[entry])
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
            if grade is not None and grade not in _RUBRIC_VERDICTS:
                where = f"query {query_id!r}, document {doc_id!r}, item {item.item_id!r}"
                raise InputError(f"{where}: grade {grade:g} is no verdict; expected 0, 1 or 2")
            failed += grade is None
            said = "failed" if grade is None else _RUBRIC_VERDICTS[grade]
            criteria.append({**_written(query_id, criterion), "verdict": said})
        text = answers.get((query_id, doc_id), "")
        fields = {
            "task_id": f"{run_id}:{query_id}", "status": "completed", "qid": query_id, "run_id": run_id,
            "query": bank.query_texts.get(query_id, ""), "answer_text": text, "response_length": len(text.split()),
            "criteria": criteria,
        }  # fmt: skip
        made.append(GradedAnswer.model_validate(fields))
    warn("%d criteria have no grade and were written as failed", failed)
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
    partial(read_graded_answers, whole=True),
    write_graded_answers,
    lambda head: _criteria(head.object) is not None and "run_id" in head.object,
)
_LABELS: Mapping[str | None, str] = {"FS": "2", "PS": "1", "NS": "0", None: "-1"}
_SUPPORT_SAID = {label: said for said, label in _LABELS.items()}
_REPLIES = {"FS": "Full Support", "PS": "Partial Support", "NS": "No Support"}


class SupportMetadata(Record):
    """Which citation it is: the sentence, and the place among its citations, from 0."""

    topic_id: Annotated[TextId, Field(min_length=1)]
    run_id: Annotated[TextId, Field(min_length=1)]
    sentence_index: Annotated[int, Field(ge=0)]
    citation_index: Annotated[int, Field(ge=0)]
    docid: Annotated[str, Field(min_length=1)]


class SupportTask(Record):
    """One citation of a sentence.

    Attributes:
        statement: the sentence.
        support_label: FS (full), PS (partial), NS (no support); None where the task failed.
        status: `completed`, or what became of the task.
        metadata: which citation it is.
    """

    statement: str
    support_label: Literal["FS", "PS", "NS"] | None
    status: str
    metadata: SupportMetadata

    @model_validator(mode="after")
    def _one_outcome(self) -> Self:
        if (self.support_label is None) == (self.status == "completed"):
            raise ValueError("expected a support_label exactly when the status is completed")
        return self

    @property
    def key(self) -> tuple[str, ...]:
        """Run, topic, sentence and citation."""
        said = self.metadata
        return said.run_id, said.topic_id, f"s{said.sentence_index}", f"c{said.citation_index}"


_TASKS = JsonLines(TypeAdapter(SupportTask), "support judgments", lambda task: task.key)
read_support_judgments = _TASKS.read


def write_support_judgments(path: PathName, tasks: Sequence[SupportTask]) -> None:
    """Writes support judgments; the text of the cited document is empty, as labelled answers have none.

    Raises:
        InputError: the file cannot be written, or there are no judgments.
    """
    write_objects(path, (task.model_dump() for task in tasks), "support judgments")


def answers_of_judgments(tasks: Iterable[SupportTask], answers: Iterable[Answer]) -> list[SupportAnswer]:
    """Labelled answers: all that are given, with the labels of their citations; -1 where nobody gave one.

    Judgments that failed are counted and said.

    Args:
        tasks: the judgments.
        answers: the answers that were judged, with their sentences and citations.

    Raises:
        InputError: a judgment is of no such answer, sentence or citation, or of another sentence; a citation has two
            labels; an answer comes twice, or has no sentences.
    """
    known: dict[tuple[str, str], Answer] = {}
    for answer in answers:
        where = f"run {answer.run_id!r}, topic {answer.query_id!r}"
        if answer.text.strip() and not answer.sentences:
            raise InputError(f"{where}: the answer has no sentences; give reports", settings=("answers",))
        if known.setdefault((answer.run_id, answer.query_id), answer) is not answer:
            raise InputError(f"{where}: the answer comes twice; keep one", settings=("answers",))
    labels: dict[tuple[str, str], dict[tuple[int, str], str | None]] = {}
    failed = 0
    for task in tasks:
        said = task.metadata
        of_answer = labels.setdefault((said.run_id, said.topic_id), {})
        _check(task, known.get((said.run_id, said.topic_id)))
        failed += task.support_label is None
        if of_answer.setdefault((said.sentence_index, said.docid), task.support_label) != task.support_label:
            raise InputError(f"{_where(task)}: document {said.docid!r} has two labels; keep one")
    warn("%d support judgments failed; their citations have no label (-1)", failed)
    return [_labelled(answer, labels.get(key, {})) for key, answer in known.items()]


def _where(task: SupportTask) -> str:
    said = task.metadata
    return f"run {said.run_id!r}, topic {said.topic_id!r}, sentence {said.sentence_index}"


def _check(task: SupportTask, answer: Answer | None) -> None:
    """Refuses a judgment that is of something else than the answer says."""
    said = task.metadata
    if answer is None:
        raise InputError(f"{_where(task)}: there is no such answer", settings=("answers",))
    if said.sentence_index >= len(answer.sentences):
        count = len(answer.sentences)
        raise InputError(f"{_where(task)}: the answer has {count} sentences, from 0", settings=("answers",))
    if answer.sentences[said.sentence_index].split() != task.statement.split():
        raise InputError(f"{_where(task)}: the statement is another sentence", settings=("answers",))
    if said.docid not in answer.citations[said.sentence_index]:
        raise InputError(f"{_where(task)}: does not cite {said.docid!r}", settings=("answers",))


def _labelled(answer: Answer, labels: Mapping[tuple[int, str], str | None]) -> SupportAnswer:
    citations = answer.citations or ((),) * len(answer.sentences)
    sentences = [
        {
            "sentenceID": place, "text": text,
            "citations": [
                {"citationID": rank, "reference": doc_id, "support": _LABELS[labels.get((place, doc_id))]}
                for rank, doc_id in enumerate(cited)
            ],
        }
        for place, (text, cited) in enumerate(zip(answer.sentences, citations, strict=True))
    ]  # fmt: skip
    return SupportAnswer.model_validate({"topic_id": answer.query_id, "run_id": answer.run_id, "sentences": sentences})


def judgments_of_answers(answers: Iterable[SupportAnswer]) -> list[SupportTask]:
    """The labels of answers as judgments, a citation a task; citations without a label are left out and counted."""
    tasks: list[SupportTask] = []
    bare = 0
    for answer in answers:
        for place, sentence in enumerate(answer.sentences):
            for rank, one in enumerate(sentence.citations):
                label = _SUPPORT_SAID[one.support]
                if label is None:
                    bare += 1
                    continue
                ids = {"topic_id": answer.query_id, "run_id": answer.run_id}
                made: dict[str, Any] = {
                    "task_id": f"{answer.run_id}:{answer.query_id}:s{place}:c{rank}", "statement": sentence.text,
                    "citation": "", "support_label": label, "raw_output": _REPLIES[label], "status": "completed",
                    "error": None,
                    "metadata": {**ids, "sentence_index": place, "citation_index": rank, "docid": one.reference},
                }  # fmt: skip
                tasks.append(SupportTask.model_validate(made))
    warn("%d citations without a label left out: a support judgment has one", bare)
    return tasks


def _is_judgment(head: Head) -> bool:
    return "support_label" in head.object and isinstance(head.object.get("metadata"), dict)


JUDGMENTS = Format(
    "support judgments",
    "support judgments of RAGDoll, a citation a line",
    read_support_judgments,
    write_support_judgments,
    _is_judgment,
)
