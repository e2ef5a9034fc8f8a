"""Support judgments of RAGDoll, the toolkit of TREC RAG 2026: a citation of a sentence a line, and its label.

These files know nothing of sentences that cite nothing, which recall needs: they become labelled answers with the
answers beside them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from rubric_measures.base.errors import InputError
from rubric_measures.base.json_files import JsonLines, Record, TextId
from rubric_measures.formats.base import Format, Head, PathName, write_objects
from rubric_measures.formats.reports import Answer
from rubric_measures.formats.support_labels import SupportAnswer

__all__ = [
    "JUDGMENTS",
    "SupportTask",
    "answers_of_judgments",
    "judgments_of_answers",
    "read_support_judgments",
    "write_support_judgments",
]

_LOG = logging.getLogger("rubric_measures")
_LABELS: Mapping[str | None, str] = {"FS": "2", "PS": "1", "NS": "0", None: "-1"}
_SAID = {label: said for said, label in _LABELS.items()}
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
    if failed:
        _LOG.warning("%d support judgments failed; their citations have no label (-1)", failed)
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
                label = _SAID[one.support]
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
    if bare:
        _LOG.warning("%d citations without a label left out: a support judgment has one", bare)
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
