"""What citations support: label files of TREC RAG, support judgments of RAGDoll, judged reports of Auto-ARGUE.

A line of labels is an answer: its sentences, and for each citation "2" (full support), "1" (partial), "0" (none) or
"-1" (nobody said). Sentence ids are no keys: some files repeat and skip them. The order of citations counts, their ids
do not. A support judgment is a citation of a sentence; its file knows nothing of sentences that cite nothing, which
recall needs: judgments become labelled answers with the answers beside them.

Sources: Thakur et al., Support Evaluation for the TREC 2024 RAG Track, SIGIR 2025; files of the tracks; RAGDoll; Walden
et al. 2025, Auto-ARGUE, and its judgment files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from rubric_measures.base.errors import InputError, warn
from rubric_measures.base.files import path_name
from rubric_measures.formats.answers import Answer, CitedReport
from rubric_measures.formats.base import PathName, given, write_columns
from rubric_measures.formats.specs import RecordLines, Row, Spec, spec, table
from rubric_measures.records.models import (
    GradedPassage,
    ItemGradeSet,
    JsonRecord,
    PromptInfo,
    QueryPassages,
    answer_passage,
)
from rubric_measures.types.entities import CitedAnswer
from rubric_measures.types.scales import Scale

# The grades of the labels.
SUPPORT = Scale(0, 2, 2, 1, ("No Support", "Partial Support", "Full Support"))
# What the grade sets of such files say of their making.
LABELLERS, PROMPT_CLASS = "support-labels", "SupportLabels"
_UNLABELLED = "-1"
_Label = Literal["2", "1", "0", "-1"]
_Name = Annotated[str, Meta(min_length=1)]


class SupportCitation(Struct, gc=False):
    """One citation of a sentence: the document, and its label; the ids in files count nothing."""

    reference: _Name
    support: _Label


class SupportSentence(Struct, gc=False):
    """One sentence.

    Attributes:
        citations: what it cites, most important first.
        text: the sentence; None where the file has none.
        combined: the label of all citations together (`citationsCombibed`, as the files write it).
    """

    citations: list[SupportCitation]
    text: str | None
    combined: _Label | None = msgspec.field(name="citationsCombibed", default=None)


class SupportAnswer(JsonRecord, frozen=True, kw_only=True):
    """One answer with its labels; `topic_id` or `narrative_id` is the topic."""

    topic_id: _Name | int | None = None
    narrative_id: _Name | int | None = None
    run_id: _Name
    sentences: list[SupportSentence]

    def __post_init__(self) -> None:
        if self.topic_id is None and self.narrative_id is None:
            raise ValueError("names no topic_id or narrative_id")

    @property
    def query_id(self) -> str:
        """The topic."""
        return str(self.topic_id if self.topic_id is not None else self.narrative_id)


_LINES = RecordLines(**table("support-labels"), type=SupportAnswer)


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
        texts = [text for one in answer.sentences if (text := (one.text or "").strip())]
        notes["sentences stand twice in their answer; each counts"] += len(texts) - len(set(texts))
        notes["sentences have no text"] += len(answer.sentences) - len(texts)
        notes["answers have no sentences; they score 0"] += not answer.sentences
    for said, count in notes.items():
        warn("%s: %d %s", path_name(path), count, said)
    return answers


SUPPORT_LABELS = _LINES.format._replace(read=read_support_labels)


def records_of_support_labels(answers: Iterable[SupportAnswer]) -> list[QueryPassages]:
    """Graded records of labelled answers: answers, and the documents that they cite with the labels as grades.

    A citation labelled -1 has no grade. The documents have no text: these files do not hold any.

    Raises:
        InputError: a sentence cites a document twice, with two labels.
    """
    cited: list[CitedAnswer] = []
    grades: dict[tuple[str, str], dict[str, int]] = {}
    for answer in answers:
        listed = answer.sentences
        texts, joined = [one.text or "" for one in listed], [_grade(one.combined) for one in listed]
        cites = [[cite.reference for cite in one.citations] for one in listed]
        cited.append(CitedAnswer.of(answer.query_id, answer.run_id, texts, cites, joined))
        for item, sentence in zip(cited[-1].sentences, listed, strict=True):
            for one in sentence.citations:
                of_document = grades.setdefault((answer.query_id, one.reference), {})
                grade = _grade(one.support)
                if grade is not None and of_document.setdefault(item.item_id, grade) != grade:
                    where = f"query {answer.query_id!r}, run {answer.run_id!r}, {item.text[:60]!r}"
                    raise InputError(f"{where}: document {one.reference!r} has two labels; keep one")
    info = PromptInfo(prompt_class=PROMPT_CLASS, **SUPPORT.as_json())
    sets = {
        key: ItemGradeSet.build(
            found, answers=[(item_id, str(grade)) for item_id, grade in found.items()], llm=LABELLERS, kind="nugget",
            prompt_info=info, pairs=True,
        )
        for key, found in grades.items() if found
    }  # fmt: skip
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
        if of_query.setdefault(answer.run_id, answer) is not answer:
            raise InputError(f"run {answer.run_id!r} answers query {answer.query_id!r} twice; keep one answer")
    groups = []
    for query_id, of_query in by_query.items():
        cited = {doc_id: None for answer in of_query.values() for one in answer.sentences for doc_id in one.citations}
        clash = next((doc_id for doc_id in cited if doc_id in of_query), None)
        if clash is not None:
            raise InputError(f"query {query_id!r}: {clash!r} names a run and a document that is cited; rename the run")
        passages = [_passage_of(answer) for answer in of_query.values()]
        for doc_id in cited:
            entry = (grades or {}).get((query_id, doc_id))
            passages.append(GradedPassage(doc_id=doc_id, text="", **given({"exam_grades": entry and [entry]})))
        groups.append(QueryPassages(query_id, passages))
    return groups


def _passage_of(answer: CitedAnswer) -> GradedPassage:
    places = {"sentences": 1, "citations": 2, "items": 0, "joined": 3}
    said = {name: [sentence[place] for sentence in answer.sentences] for name, place in places.items()}
    if {*said["joined"]} <= {None}:
        del said["joined"]
    text = " ".join(map(str, said["sentences"]))
    return answer_passage(answer.query_id, answer.run_id, text, paragraph={"answers": {answer.run_id: said}})


def _grade(label: str | None) -> int | None:
    return None if label is None or label == _UNLABELLED else int(label)


# A row is a citation of a sentence. The program appends what it does again.
JUDGMENTS: Spec[list[Row]] = spec(
    "ragdoll:support", outof=lambda rows: ({"further": row.cells} for row in rows),
    check=lambda said: (
        "expected a support_label exactly when the status is completed"
        if (said["label"] is None) == (said["status"] == "completed")
        else None
    ),
)  # fmt: skip


def answers_of_judgments(tasks: Sequence[Row], answers: Iterable[Answer]) -> list[SupportAnswer]:
    """Labelled answers: all that are given, with the labels of their citations; -1 where nobody gave one.

    Judgments that failed are counted and said.

    Args:
        tasks: the judgments.
        answers: the answers that were judged, with their sentences and citations.

    Raises:
        InputError: a judgment is of no such answer, sentence or citation, or of another sentence; a citation has two
            labels; an answer comes twice, or has no sentences.
    """
    # The sentences of each, with what they cite.
    known: dict[tuple[str, str], list[tuple[str, Sequence[str]]]] = {}
    for answer in answers:
        of = answer.run_id, answer.query_id
        if of in known or (answer.text.strip() and not answer.sentences):
            problem = "the answer comes twice, or has no sentences; give one report"
            raise InputError(f"run {of[0]!r}, query {of[1]!r}: {problem}", settings=("answers",))
        known[of] = list(zip(answer.sentences, chain(answer.citations, repeat(())), strict=False))
    labels: dict[tuple[Any, ...], str | None] = {}
    for _, said, *_ in tasks:
        of, place, doc_id, label = (said["run_id"], said["query_id"]), said["sentence"], said["doc_id"], said["label"]
        [(text, cited)] = known.get(of, [])[place:][:1] or [("", ())]
        is_cited = doc_id in cited and text.split() == said["statement"].split()
        if not is_cited or labels.setdefault((*of, place, doc_id), label) != label:
            problem = "has two labels; keep one" if is_cited else "is cited by no such sentence of the answers"
            where = f"run {of[0]!r}, query {of[1]!r}, sentence {place}"
            raise InputError(f"{where}: document {doc_id!r} {problem}", settings=("answers",))
    failed = sum(row.said["label"] is None for row in tasks)
    warn("%d support judgments failed; their citations have no label (-1)", failed)
    made = []
    for of, listed in known.items():
        sentences: Any = []
        for place, (text, doc_ids) in enumerate(listed):
            marks = [
                {"citationID": rank, "reference": one, "support": labels.get((*of, place, one)) or _UNLABELLED}
                for rank, one in enumerate(doc_ids)
            ]
            sentences.append({"sentenceID": place, "text": text, "citations": marks})
        made.append(SupportAnswer(topic_id=of[1], run_id=of[0], sentences=sentences))
    return made


_STATES = "SENTENCE_ANSWERS_QUESTION"


class ArgueJudgment(Struct):
    """One judgment.

    Attributes:
        judgment_type_id: what was judged; kinds that nobody knows here are kept.
        response: what was said, by fields that the kind has.
        provenance: what it is about: `doc_id`, …
    """

    judgment_type_id: str
    response: dict[str, Any] | None = None
    provenance: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        try:
            set(self.matches)
        except (KeyError, TypeError, AttributeError):
            expected = "expected matched_nuggets, a list of {question_text, matched_answer}"
            raise ValueError(f"response: {expected}") from None

    @property
    def matches(self) -> list[tuple[str, str]]:
        """The (question, gold answer) pairs that the sentence states, of a judgment that says them."""
        said = self.response or {} if self.judgment_type_id == _STATES else {}
        pairs = [(one["question_text"], one["matched_answer"]) for one in said.get("matched_nuggets") or ()]
        return [(text, one) for text, found in pairs for one in ([found] if isinstance(found, str) else found)]

    @property
    def doc_id(self) -> str | None:
        """The document that it is about, where it names one."""
        found = (self.provenance or {}).get("doc_id", (self.response or {}).get("doc_id"))
        return found if isinstance(found, str) else None


class _Cited(Struct):
    doc_id: str


class ArgueSentence(Struct):
    """A segment of a report with what was judged of it; only segments of the type `sentence` are counted."""

    segment_type: str = "sentence"
    text: str = ""
    citations: list[_Cited] | None = None
    judgments: list[ArgueJudgment] | None = None

    def said(self, kind: str, name: str) -> dict[str, bool | None]:
        """Document -> what judgments of a kind say of it; None where they do not say it."""
        of_kind = (one for one in self.judgments or () if one.judgment_type_id == kind)
        said = {one.doc_id: (one.response or {}).get(name) for one in of_kind}
        return {doc_id: one if isinstance(one, bool) else None for doc_id, one in said.items() if doc_id is not None}

    @property
    def lacks_citation(self) -> bool | None:
        """Whether it needs a citation and is the first to say what it says; None where nobody judged the need."""
        said = {name: value for one in self.judgments or () for name, value in (one.response or {}).items()}
        needs = said.get("requires_citation")
        return needs and said.get("is_first_instance") is not False if isinstance(needs, bool) else None


class ArgueReport(JsonRecord, frozen=True, kw_only=True):
    """A report and the judgments of its sentences."""

    report: CitedReport
    judgments: list[ArgueSentence]


ARGUE = RecordLines(**table("argue"), type=ArgueReport)

Scores: TypeAlias = Mapping[tuple[str, str, str], float]


def write_argue_scores(path: PathName, rows: Scores) -> None:
    """Writes a file of scores as Auto-ARGUE does: `run_id`, `request_id`, `metric`, `value`, with that header.

    Raises:
        InputError: the file cannot be written.
    """
    header = ("run_id", "request_id", "metric", "value")
    write_columns(path, [header, *((*of, value) for of, value in rows.items())], "\t")
