"""Labels of support, graded records as a format.

Labels of citation support as TREC RAG 2024 and 2025 publish them, and what they are in our records.

A line is an answer: its sentences, and for each citation "2" (full support), "1" (partial), "0" (none) or "-1" (nobody
said). Sentence ids are no keys: some files repeat and skip them. The order of citations counts, their ids do not.

Source: Thakur et al., Support Evaluation for the TREC 2024 RAG Track, SIGIR 2025; files of the tracks.

Graded passage records as one format among the others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field, TypeAdapter

from rubric_measures.base.errors import InputError, warn
from rubric_measures.base.files import path_name
from rubric_measures.base.json_files import JsonLines, Record, TextId
from rubric_measures.formats.base import Format, Head, PathName
from rubric_measures.records.models import (
    GradedPassage,
    ItemGradeSet,
    PromptInfo,
    QueryPassages,
    answer_passage,
    cited_answers,
    load_graded,
    write_graded,
)
from rubric_measures.types.entities import CitedAnswer
from rubric_measures.types.scales import CONTRADICTED, Scale

# The grades of the labels.
SUPPORT = Scale(0, 2, 2, 1, ("No Support", "Partial Support", "Full Support"))
# What the grade sets of such files say of their making.
LABELLERS, PROMPT_CLASS = "human:support-labels", "SupportLabels"
_UNLABELLED = "-1"

_Label = Literal["2", "1", "0", "-1"]


def _text(value: Any) -> Any:
    # Some real lines have NaN in the place of a text.
    return "" if isinstance(value, float) and math.isnan(value) else value


class SupportCitation(Record):
    """One citation of a sentence.

    Attributes:
        citation_id: its position in the references, or 0, as the file has it (`citationID` or `citationId`).
        reference: the document.
        support: the label.
    """

    citation_id: int = Field(
        default=0, validation_alias=AliasChoices("citationID", "citationId"), serialization_alias="citationID"
    )
    reference: Annotated[str, Field(min_length=1)]
    support: _Label


class SupportSentence(Record):
    """One sentence.

    Attributes:
        sentence_id: its number as the file has it (`sentenceID` or `sentenceId`); no key.
        text: the sentence; empty where the file has none.
        verification_worthy: "0" where an assessor said that it needs no citation.
        combined: the label of all citations together (`citationsCombibed`, as the files write it).
        citations: what it cites, most important first.
    """

    sentence_id: int = Field(
        validation_alias=AliasChoices("sentenceID", "sentenceId"), serialization_alias="sentenceID"
    )
    verification_worthy: Literal["0", "1"] | None = None
    combined: _Label | None = Field(default=None, alias="citationsCombibed")
    text: Annotated[str, BeforeValidator(_text)]
    citations: list[SupportCitation]


class SupportAnswer(Record):
    """One answer with its labels.

    Attributes:
        query_id: the topic (`topic_id` or `narrative_id`).
        run_id: the run.
        sentences: the sentences.
    """

    query_id: Annotated[TextId, Field(min_length=1)] = Field(
        validation_alias=AliasChoices("topic_id", "narrative_id"), serialization_alias="topic_id"
    )
    run_id: Annotated[str, Field(min_length=1)]
    sentences: list[SupportSentence]


_LINES = JsonLines(
    TypeAdapter(SupportAnswer), "labelled answers", lambda answer: (answer.run_id, answer.query_id), lenient=True
)
write_support_labels = _LINES.write


def read_support_labels(path: PathName) -> list[SupportAnswer]:
    """The answers of a file of support labels, in order.

    Sentences that stand twice count each, as in the toolkit of the track; these and texts that are missing are counted
    and said.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when a run answers a topic twice, or a label is none.
    """
    answers = _LINES.read(path)
    notes: Counter[str] = Counter()
    for answer in answers:
        ids = Counter(sentence.sentence_id for sentence in answer.sentences)
        notes["twice"] += sum(count - 1 for count in ids.values())
        notes["wordless"] += sum(not sentence.text.strip() for sentence in answer.sentences)
        notes["empty"] += not answer.sentences
    for what, said in (
        ("twice", "sentences stand twice in their answer; each counts"),
        ("wordless", "sentences have no text"),
        ("empty", "answers have no sentences; they score 0"),
    ):
        warn("%s: %d %s", path_name(path), notes[what], said)
    return answers


def records_of_support_labels(answers: Iterable[SupportAnswer]) -> list[QueryPassages]:
    """Graded records of labelled answers: answers, and the documents that they cite with the labels as grades.

    A citation labelled -1 has no grade. The documents have no text: these files do not hold any.

    Raises:
        InputError: a sentence cites a document twice, with two labels.
    """
    cited: list[CitedAnswer] = []
    grades: dict[tuple[str, str], dict[str, int]] = {}
    for answer in answers:
        made = CitedAnswer.of(
            answer.query_id,
            answer.run_id,
            [sentence.text for sentence in answer.sentences],
            [[one.reference for one in sentence.citations] for sentence in answer.sentences],
            [_grade(sentence.combined) for sentence in answer.sentences],
            _kept(answer),
        )
        cited.append(made)
        for item, sentence in zip(made.sentences, answer.sentences, strict=True):
            for one in sentence.citations:
                grade = _grade(one.support)
                if grade is None:
                    continue
                of_document = grades.setdefault((answer.query_id, one.reference), {})
                if of_document.setdefault(item.item_id, grade) != grade:
                    raise InputError(
                        f"query {answer.query_id!r}, run {answer.run_id!r}, sentence {sentence.sentence_id}: document "
                        f"{one.reference!r} has two labels; keep one"
                    )
    info = PromptInfo(prompt_class=PROMPT_CLASS, **SUPPORT.as_json())
    sets = {
        key: ItemGradeSet.build(
            found,
            answers=[(item_id, str(grade)) for item_id, grade in found.items()],
            llm=LABELLERS,
            kind="nugget",
            prompt_info=info,
            pairs=True,
        )
        for key, found in grades.items()
    }
    return records_of_cited_answers(cited, sets)


def records_of_cited_answers(
    answers: Iterable[CitedAnswer], grades: Mapping[tuple[str, str], ItemGradeSet] | None = None
) -> list[QueryPassages]:
    """Records of answers and of the documents that they cite, without texts, by query.

    An answer is called after its run, is ranked first by it, and keeps its sentences; nobody grades it. A cited
    document is graded for the sentences that cite it.

    Args:
        answers: the answers; a run has one a query.
        grades: (query, document) -> its grades.

    Raises:
        InputError: a run answers a query twice, or is called as a document that is cited.
    """
    by_query: dict[str, dict[str, CitedAnswer]] = {}
    for answer in answers:
        of_query = by_query.setdefault(answer.query_id, {})
        if answer.run_id in of_query:
            raise InputError(f"run {answer.run_id!r} answers query {answer.query_id!r} twice; keep one answer")
        of_query[answer.run_id] = answer
    groups = []
    for query_id, of_query in by_query.items():
        cited = {doc_id: None for answer in of_query.values() for one in answer.sentences for doc_id in one.citations}
        clash = next((doc_id for doc_id in cited if doc_id in of_query), None)
        if clash is not None:
            raise InputError(f"query {query_id!r}: {clash!r} names a run and a document that is cited; rename the run")
        passages = [_passage_of(answer) for answer in of_query.values()]
        for doc_id in cited:
            entry = (grades or {}).get((query_id, doc_id))
            graded: dict[str, Any] = {} if entry is None else {"exam_grades": [entry]}
            passages.append(GradedPassage(doc_id=doc_id, text="", **graded))
        groups.append(QueryPassages(query_id, passages))
    return groups


def _passage_of(answer: CitedAnswer) -> GradedPassage:
    said: dict[str, Any] = {
        "sentences": [sentence.text for sentence in answer.sentences],
        "citations": [sentence.citations for sentence in answer.sentences],
        "items": [sentence.item_id for sentence in answer.sentences],
        **answer.more,
    }
    if any(sentence.joined is not None for sentence in answer.sentences):
        said["joined"] = [sentence.joined for sentence in answer.sentences]
    text = " ".join(said["sentences"])
    return answer_passage(answer.query_id, answer.run_id, text, paragraph={"answers": {answer.run_id: said}})


def _grade(label: str | None) -> int | None:
    return None if label is None or label == _UNLABELLED else int(label)


def _kept(answer: SupportAnswer) -> dict[str, Any]:
    """What the file says of sentences beside text, citations and labels."""
    kept: dict[str, Any] = {"sentence_ids": [sentence.sentence_id for sentence in answer.sentences]}
    worthy = [sentence.verification_worthy for sentence in answer.sentences]
    if any(one is not None for one in worthy):
        kept["verification_worthy"] = worthy
    return kept


def labels_of_support_records(
    groups: Iterable[QueryPassages], grades: Mapping[tuple[str, str, str], int], scale: Scale | None
) -> list[SupportAnswer]:
    """Labelled answers of graded records; a citation without a grade is labelled -1.

    A grade that covers is full support, one that is partial is partial support, any other none. Contradictions become
    none, as these files cannot hold them; they are counted.

    Args:
        groups: the records.
        grades: (query, document, item) -> grade.
        scale: the scale of the grades; None where there are none.

    Raises:
        InputError: the records hold no answers with sentences and citations.
    """
    made: list[SupportAnswer] = []
    contradicted = 0
    for group in groups:
        for answer in cited_answers(group):
            sentences = []
            for place, sentence in enumerate(answer.sentences):
                citations = []
                for rank, doc_id in enumerate(sentence.citations):
                    grade = grades.get((group.query_id, doc_id, sentence.item_id))
                    contradicted += grade == CONTRADICTED
                    citations.append({"citationID": rank, "reference": doc_id, "support": _label(grade, scale)})
                fields: dict[str, Any] = {"sentenceID": _of(answer.more.get("sentence_ids"), place, place)}
                if (worthy := _of(answer.more.get("verification_worthy"), place, None)) is not None:
                    fields["verification_worthy"] = worthy
                if any(one.joined is not None for one in answer.sentences):
                    fields["citationsCombibed"] = _UNLABELLED if sentence.joined is None else str(sentence.joined)
                sentences.append({**fields, "text": sentence.text, "citations": citations})
            fields = {"topic_id": group.query_id, "run_id": answer.run_id, "sentences": sentences}
            made.append(SupportAnswer.model_validate(fields))
    if not made:
        raise InputError("the records hold no answers with sentences and citations; support labels are of these")
    warn("%d contradictions are written as no support: these files have no label for them", contradicted)
    return made


def _of(listed: Sequence[Any] | None, place: int, other: Any) -> Any:
    return listed[place] if isinstance(listed, list) and place < len(listed) else other


def _label(grade: int | None, scale: Scale | None) -> str:
    if grade is None or scale is None:
        return _UNLABELLED
    partial = scale.covers if scale.partial is None else scale.partial
    return "2" if grade >= scale.covers else "1" if grade >= partial else "0"


SUPPORT_LABELS = Format(
    "support labels",
    "answers with labels of what their citations support (TREC RAG)",
    read_support_labels,
    write_support_labels,
    lambda head: head.has(b"sentences", b"run_id"),
)


def _is_records(head: Head) -> bool:
    """Each line is a list: the query and its passages."""
    return isinstance(head.value, list) and not (head.value and isinstance(head.value[0], dict))


RECORDS = Format(
    "records", "graded passages of the Rubric workbench (.jsonl.gz)", load_graded, write_graded, _is_records
)
