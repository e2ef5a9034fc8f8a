"""Runs of answers with citations: the forms of the tracks, and what each track allows.

Runs of TREC BioGen 2024: one object a run, each answer a text with the ids that it cites in brackets.

Reports of generating systems (TREC RAG 2024–2026, RAGTIME, DRAGUN, BioGen, Auto-Judge) and plain files of answers.

A report is what one run answered to one topic: sentences with citations. Plain files say (query_id, run_id, text).

The forms in which tracks take reports: any report written in the one of another track, what is lost said.

What tracks take as runs: `track_rules.toml`, read.

Tables of answers, a row an answer: CSV, TSV, JSON, JSON lines, parquet, or rows in memory. The column names of ragas,
deepeval, promptfoo and Hugging Face datasets are known; other names are said by the user.
"""

from __future__ import annotations

import ast
import hashlib
import logging
import math
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import resources
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeGuard, get_args

import msgspec
from msgspec import Struct
from pydantic import AliasChoices, Field, TypeAdapter

from rubric_measures.base.errors import FormatError, InputError, UnknownNameError, warn
from rubric_measures.base.files import note_unfinished, open_binary, path_name
from rubric_measures.base.json_files import Record, TextId, validate_line
from rubric_measures.base.json_text import json_texts, parse_json
from rubric_measures.base.words import sentence_ends
from rubric_measures.formats.base import Format, Head, PathName, head_of, write_objects
from rubric_measures.formats.specs import RecordLines
from rubric_measures.formats.tables import plain_name, rows_of
from rubric_measures.records.models import JsonRecord
from rubric_measures.types.entities import Grade, canonical_json

_LOG = logging.getLogger("rubric_measures")
# The field of a report that keeps the answer as it was written.
ORIGINAL = "biogen_2024"
_BRACKET = re.compile(r"\s*\[\s*((?:PMID:?\s*)?\d+(?:\s*[,;]\s*(?:PMID:?\s*)?\d+)*)\s*\]")
_ID = re.compile(r"\d+")


def is_submission(content: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether a JSON value is such a run."""
    return isinstance(content, Mapping) and isinstance(content.get("results"), list) and "run_name" in content


def _cited_sentences(text: str) -> list[tuple[str, list[str]]]:
    """The sentences of an answer without its brackets, and the ids that each cites, in order.

    Only brackets that hold numbers alone are citations. One in front of a sentence stands behind the end of the one
    before, and is nobody's, as in the track.

    >>> _cited_sentences("Aspirin thins blood [12, 7]. It may [in some] help [9].")
    [('Aspirin thins blood.', ['12', '7']), ('It may [in some] help.', ['9'])]
    """
    sentences = []
    start = 0
    for end in sentence_ends(text):
        piece, start = text[start:end].strip(), end
        while found := _BRACKET.match(piece):
            piece = piece[found.end() :].lstrip()
        if piece:
            ids = [number for found in _BRACKET.finditer(piece) for number in _ID.findall(found[1])]
            sentences.append((_BRACKET.sub("", piece).strip(), list(dict.fromkeys(ids))))
    return sentences


def lost_brackets(text: str) -> int:
    """How many citations of an answer stand behind the end of their sentence, and count nothing."""
    every = [number for found in _BRACKET.finditer(text) for number in _ID.findall(found[1])]
    kept = [number for _, ids in _cited_sentences(text) for number in ids]
    return len(set(every) - set(kept))


def reports_of_submission(
    content: Mapping[str, Any], name: str, line: int = 0, *, says: bool = True
) -> Iterator[dict[str, Any]]:
    """The answers of a run as reports: sentences with ids, and the answer as it was.

    Args:
        content: the object; see `is_submission`.
        name: its file, for errors.
        line: where in the file it begins.
        says: whether citations that belong to no sentence are counted in a note.

    Raises:
        FormatError: a result is no {topic_id, answer, references}.
    """
    of_run = {key: value for key, value in content.items() if key not in ("results", "run_name")}
    lost = 0
    for place, result in enumerate(content["results"]):
        if not isinstance(result, Mapping) or not isinstance(result.get("answer"), str):
            problem = "expected {topic_id, answer, references}, the answer being a text"
            raise FormatError(problem, path=name, line=line, field=f"results[{place}]")
        text = result["answer"]
        lost += lost_brackets(text)
        yield {
            "metadata": {**of_run, "run_id": content["run_name"], "topic_id": result.get("topic_id")},
            "answer": [{"text": said, "citations": ids} for said, ids in _cited_sentences(text)],
            "references": _as_text(result.get("references")),
            ORIGINAL: {key: value for key, value in result.items() if key not in ("topic_id", "references")},
        }
    if says:
        warn("%s: %d citations stand behind the end of a sentence, and belong to none", name, lost)


def _as_text(said: Any) -> Any:
    """A number, and the numbers of a list, as text; whatever else it is as it is."""
    if isinstance(said, list):
        return [_as_text(one) if isinstance(one, int) else one for one in said]
    return str(said) if isinstance(said, int) and not isinstance(said, bool) else said


_QUERY_FIELDS = ("query_id", "qid", "topic_id", "request_id", "narrative_id")
_RUN_FIELDS = ("run_id", "run", "agent", "system")
_HEADS = ("results", "run_name", "metadata", "answer", "responses")


def answer_doc_id(text: str) -> str:
    """The document id of an answer: md5 hex of its text (UTF-8), so the same text from two runs is one document.

    TREC Auto-Judge names answers so in qrels.

    >>> answer_doc_id("Leaves change color.")
    'b571a2860ffbf6d6ac832236e8a6fca1'
    """
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


class Answer(NamedTuple):
    """What one run answered to one query; the first three fields are all that plain files have.

    Attributes:
        query_id: the query.
        run_id: the run.
        text: the answer: the sentences joined by one space; may be empty.
        sentences: the sentences, in order; empty where the file has text only.
        citations: per sentence the ids of the documents it cites, most important first.
        documents: (id, text) of documents whose texts stand beside the answer.
        questions: what a run asks in the place of an answer, best question first (TREC DRAGUN task 1, RAGTIME task 3);
            each is a passage of its own.
    """

    query_id: str
    run_id: str
    text: str
    sentences: tuple[str, ...] = ()
    citations: tuple[tuple[str, ...], ...] = ()
    documents: tuple[tuple[str, str], ...] = ()
    questions: tuple[str, ...] = ()

    @property
    def doc_id(self) -> str:
        """The answer as a document; see `answer_doc_id`."""
        return answer_doc_id(self.text)

    @property
    def words(self) -> int:
        """L, the length in whitespace words."""
        return len(self.text.split())


class _PlainAnswer(Record):
    query_id: Annotated[TextId, Field(min_length=1, validation_alias=AliasChoices(*_QUERY_FIELDS))]
    run_id: Annotated[TextId, Field(min_length=1, validation_alias=AliasChoices(*_RUN_FIELDS))]
    text: Annotated[str, Field(validation_alias=AliasChoices("text", "answer", "response"))]


_PLAIN = TypeAdapter(_PlainAnswer)


_Id: TypeAlias = str | int


class Sentence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One sentence of a report and what it cites.

    Attributes:
        text: the sentence.
        citations: positions in the report's `references` (TREC RAG), ids (DRAGUN, BioGen, Auto-Judge), both mixed
            (TREC RAG 2026), or id -> score (RAGTIME).
        supported_citations: ids, where a track asks apart for what supports and what contradicts (BioGen, task A).
        contradicted_citations: the ids of what contradicts.
        existing_supported_citations: the ids that come with the topic.
    """

    text: str
    citations: list[_Id] | dict[str, float] | None = None
    supported_citations: list[_Id] | None = None
    contradicted_citations: list[_Id] | None = None
    existing_supported_citations: list[_Id] | None = None


class ReportMetadata(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who wrote the report for which topic."""

    team_id: str | None = None
    run_id: _Id | None = None
    topic_id: _Id | None = None
    narrative_id: _Id | None = None
    qa_id: _Id | None = None
    request_id: _Id | None = None


class ItemGrade(Struct, frozen=True):
    """A grade of one item in `evaldata.nugget_grades`, as the Rubric judge of TREC Auto-Judge writes it."""

    grade: int | None = None
    reasoning: str | None = None


class CitedReport(JsonRecord, frozen=True, kw_only=True):
    """What one run answered to one topic.

    Attributes:
        metadata: run and topic; TREC RAG 2024 has them at the top level (too).
        topic_id: the topic, at the top level; RAGDoll calls it `qid`.
        qid: the same.
        run_id: the run, at the top level.
        answer: the sentences (TREC RAG).
        responses: the sentences (RAGTIME, DRAGUN, BioGen, Auto-Judge); a report has one of the two, or both alike.
        references: ids of the documents that citations point to by position; responses without them cite ids, also
            where these are numbers.
        documents: id -> {text, title, url}.
        segments: the same (RAGDoll).
        evaldata: what judges added, `nugget_grades` among it.
    """

    metadata: ReportMetadata = msgspec.field(default_factory=ReportMetadata)
    topic_id: _Id | None = None
    qid: _Id | None = None
    run_id: _Id | None = None
    answer: list[Sentence] | None = None
    responses: list[Sentence] | None = None
    references: list[str] | None = None
    documents: dict[str, Any] | None = None
    segments: dict[str, Any] | None = None
    evaldata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.answer is None and self.responses is None:
            raise ValueError("has neither answer nor responses; expected a list of {text, citations}")
        if self.answer is not None and self.responses is not None and self.answer != self.responses:
            raise ValueError("answer and responses differ; a report has one of them")
        for what, names in (("run_id", ("run_id",)), ("topic_id or narrative_id", _TOPIC_IDS)):
            found = self._named(*names)
            if not all(found) or len(found) != 1:
                two = f"two {what}: {', '.join(found)}" if len(found) > 1 and all(found) else f"no {what}"
                raise ValueError(f"names {two}")

    def _named(self, *names: str) -> list[str]:
        said = (getattr(place, name, None) for place in (self.metadata, self) for name in names)
        return sorted({str(one) for one in said if one is not None})

    @property
    def query_id(self) -> str:
        """The topic."""
        return self._named(*_TOPIC_IDS)[0]

    @property
    def run_name(self) -> str:
        """The run."""
        return self._named("run_id")[0]

    @property
    def sentences(self) -> list[Sentence]:
        """The sentences, whatever the file calls them."""
        return self.answer if self.answer is not None else self.responses or []

    @property
    def text(self) -> str:
        """The sentences joined by one space."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def document_texts(self) -> tuple[tuple[str, str], ...]:
        """Id and text (behind the title, if there is one) of the documents that the report brings along."""
        given = {**(self.segments or {}), **(self.documents or {})}
        texts = ((doc_id, _document_text(said)) for doc_id, said in given.items())
        return tuple((doc_id, text) for doc_id, text in texts if text)

    def cited(self, sentence: Sentence, keep_lost: bool = False) -> list[str]:
        """Ids of the documents that a sentence cites, most important first, each once.

        Args:
            sentence: the sentence.
            keep_lost: positions that `references` does not have are `references[N]`, and not left out.
        """
        citations = sentence.citations
        if isinstance(citations, dict):
            return sorted(citations, key=lambda doc_id: -citations[doc_id])
        if citations is None or self._cites_numbers:
            return list(dict.fromkeys(map(str, citations or sentence.supported_citations or ())))
        found = (place if isinstance(place, str) else self._reference(place, keep_lost) for place in citations)
        return list(dict.fromkeys(doc_id for doc_id in found if doc_id is not None))

    def _reference(self, place: int, keep_lost: bool) -> str | None:
        if self.references is not None and 0 <= place < len(self.references):
            return self.references[place]
        return f"references[{place}]" if keep_lost else None

    @property
    def _cites_numbers(self) -> bool:
        """Whether numbers are ids of documents, as those of PubMed are."""
        return self.answer is None and self.references is None

    @property
    def lost_citations(self) -> int:
        """How many citations are positions that `references` does not have."""
        if self._cites_numbers:
            return 0
        places = [place for sentence in self.sentences for place in sentence.citations or () if isinstance(place, int)]
        return sum(not 0 <= place < len(self.references or ()) for place in places)

    def item_grades(self) -> dict[str, ItemGrade]:
        """Item id -> grade of `evaldata.nugget_grades`; empty where there are none.

        Raises:
            InputError: they do not have the form {item id: {grade, reasoning}}.
        """
        try:
            return msgspec.convert((self.evaldata or {}).get("nugget_grades") or {}, dict[str, ItemGrade])
        except msgspec.ValidationError:
            where = f"run {self.run_name!r}, topic {self.query_id!r}"
            raise InputError(f"{where}: evaldata.nugget_grades is not {{item id: {{grade, reasoning}}}}") from None


_TOPIC_IDS = ("topic_id", "narrative_id", "qa_id", "request_id", "qid")
_IDS = (*_TOPIC_IDS, "run_id")
_OF_SENTENCES = ("supported_citations", "contradicted_citations", "existing_supported_citations")


def _with_text_ids(report: CitedReport, _: str = "") -> CitedReport:
    """The report with texts for ids that its file writes as numbers."""
    said = report.as_json()
    sentences = [*(said.get("answer") or ()), *(said.get("responses") or ())]
    places = [(said, _IDS), (said.get("metadata", {}), _IDS), *((one, _OF_SENTENCES) for one in sentences)]
    for place, names in places:
        place.update({name: _as_text(place[name]) for name in names if name in place})
    return report if said == report.as_json() else CitedReport.read(msgspec.json.encode(said))


def _report_texts(name: str) -> Iterator[tuple[int, bytes]]:
    """The reports of a file, one by one, unread where nothing but a look at them is needed."""
    for line, data in json_texts(name):
        content = parse_json(data, path=name, line=line) if b'"results"' in data else None
        if is_submission(content):
            yield from ((line, msgspec.json.encode(one)) for one in reports_of_submission(content, name, line))
        else:
            yield line, data


_REPORTS = RecordLines(
    kind="reports", description="generated answers with citations", what="reports", type=CitedReport,
    key=lambda report: (report.run_name, report.query_id), named=_with_text_ids, texts=_report_texts,
)  # fmt: skip
write_reports = _REPORTS.write


def read_reports(path: str | os.PathLike[str]) -> list[CitedReport]:
    """The reports of a file, in order.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when a run answers a topic twice.
    """
    reports = _REPORTS.read(path)
    _say_lost(reports, path_name(path))
    return reports


def _say_lost(reports: Iterable[CitedReport], name: str) -> None:
    count = sum(report.lost_citations for report in reports)
    warn("%s: %d citations point to positions that references does not have", name, count)


def say_contradictions(reports: Iterable[CitedReport]) -> None:
    """Says what answers, which cite what supports them, do not hold."""
    against = sum(len(one.contradicted_citations or ()) for report in reports for one in report.sentences)
    warn("%d contradicted_citations left out: answers cite what supports them", against)


def _document_text(said: Any) -> str:
    if not isinstance(said, Mapping):
        return said if isinstance(said, str) else ""
    text = next((said[name] for name in ("text", "segment") if isinstance(said.get(name), str)), "")
    title = said.get("title")
    return f"{title}: {text}" if text and isinstance(title, str) and title.strip() else text


def answer_of_report(report: CitedReport, keep_lost: bool = False) -> Answer:
    """The answer that a report is; see `CitedReport.cited` for citations that are lost."""
    sentences = tuple(sentence.text for sentence in report.sentences)
    citations = tuple(tuple(report.cited(sentence, keep_lost)) for sentence in report.sentences)
    return Answer(report.query_id, report.run_name, report.text, sentences, citations, report.document_texts)


def report_of_answer(answer: Answer) -> CitedReport:
    """A report (in the form of Auto-Judge) of an answer; text without sentences becomes one sentence."""
    sentences = answer.sentences or ((answer.text,) if answer.text else ())
    citations = answer.citations or ((),) * len(sentences)
    metadata = ReportMetadata(team_id="", run_id=answer.run_id, topic_id=answer.query_id)
    responses = [Sentence(text=text, citations=list(ids)) for text, ids in zip(sentences, citations, strict=True)]
    return CitedReport(metadata=metadata, responses=responses)


def read_answers(path: str | os.PathLike[str], keep_lost: bool = False) -> list[Answer]:
    """The answers of a file: reports, plain JSON lines, or TSV, told apart by content.

    Plain JSON lines have `query_id` (or `qid`, `topic_id`), `run_id` (or `agent`, `system`) and `text` (or `answer`);
    TSV has the columns query_id, run_id, text, with or without that header.

    Args:
        path: the file.
        keep_lost: see `CitedReport.cited`.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when a run answers a query twice, or there are no answers.
    """
    name = path_name(path)
    from rubric_measures.formats.plain import QUESTION_RUNS

    if name != "-" and QUESTION_RUNS.recognise(head_of(path)):
        return QUESTION_RUNS.read(path)
    answers: list[Answer] = []
    reports: list[CitedReport] = []
    seen: dict[tuple[str, str], int] = {}
    of_columns = False
    for line, data in _report_texts(name):
        if not data.lstrip().startswith(b"{"):
            answer = _answer_of_columns(data, name, line)
            of_columns = True
            if answer is None:
                continue
        else:
            content = parse_json(data, path=name, line=line)
            if isinstance(content.get("nugget_bank"), list):
                answer = _questions_of_bank(content, name, line)
            elif any(isinstance(content.get(key), list) for key in ("answer", "responses")) or "metadata" in content:
                report = _REPORTS.one(data, name, line)
                reports.append(report)
                answer = answer_of_report(report, keep_lost)
            else:
                plain = validate_line(_PLAIN, data, path=name, line=line)
                answer = Answer(plain.query_id, plain.run_id, plain.text)
        if answer[:2] in seen:
            problem = f"run {answer.run_id!r} has answered query {answer.query_id!r} in line {seen[answer[:2]]}"
            raise FormatError(problem, path=name, line=line)
        seen[answer[:2]] = line
        answers.append(answer)
    if not answers:
        raise FormatError("is empty; expected reports, or lines (query_id, run_id, text)", path=name)
    _say_lost(reports, name)
    say_contradictions(reports)
    if of_columns and Path(name).is_file():
        with open_binary(name) as stream:
            note_unfinished(stream.read(), name)
    return answers


def _questions_of_bank(content: Mapping[str, Any], name: str, line: int) -> Answer:
    """The questions of a bank that is handed in as a run (RAGTIME, task 3), in their order."""
    metadata = content.get("metadata")
    said = metadata if isinstance(metadata, Mapping) else {}
    questions = [one.get("question") if isinstance(one, Mapping) else None for one in content["nugget_bank"]]
    if not said.get("run_id") or not said.get("topic_id") or not all(isinstance(one, str) for one in questions):
        problem = "expected metadata with run_id and topic_id, and a nugget_bank of {question, …}"
        raise FormatError(problem, path=name, line=line)
    asked = tuple(map(str, questions))
    return Answer(str(said["topic_id"]), str(said["run_id"]), " ".join(asked), questions=asked)


def _answer_of_columns(data: bytes, name: str, line: int) -> Answer | None:
    try:
        columns = data.decode("utf-8").split("\t")
    except UnicodeDecodeError:
        raise FormatError("is not UTF-8; convert the file first", path=name, line=line) from None
    if len(columns) != 3:
        problem = f"has {len(columns)} columns; expected query_id, run_id and text, cut at tabs, or a JSON object"
        raise FormatError(problem, path=name, line=line)
    query_id, run_id, text = columns
    if line == 1 and query_id.strip() in _QUERY_FIELDS and run_id.strip() in _RUN_FIELDS:
        return None
    if not query_id.strip() or not run_id.strip():
        raise FormatError("the query or run id is empty", path=name, line=line)
    return Answer(query_id.strip(), run_id.strip(), text)


def write_answers(path: str | os.PathLike[str], answers: Iterable[Answer]) -> None:
    """Writes answers as plain JSON lines {query_id, run_id, text}; sentences and citations need `write_reports`.

    Raises:
        InputError: the file cannot be written, or there is nothing to write.
    """
    rows = ({"query_id": answer.query_id, "run_id": answer.run_id, "text": answer.text} for answer in answers)
    write_objects(path, rows, "answers")


def grades_of_reports(reports: Iterable[CitedReport]) -> Iterator[Grade]:
    """The grades of `evaldata.nugget_grades`: one row a (topic, run, item); the document is called after the run.

    An entry without a grade is a grade that failed.

    Raises:
        InputError: a report's nugget_grades have another form.
    """
    for report in reports:
        for item_id, entry in report.item_grades().items():
            failed = entry.grade is None
            yield Grade(
                report.query_id,
                report.run_name,
                entry.grade,
                item_id,
                "failed" if failed else "graded",
                entry.reasoning or "",
                note="no grade in evaldata.nugget_grades" if failed else "",
            )


def _write_without_citations(path: PathName, answers: Sequence[Answer]) -> None:
    write_answers(path, answers)
    say_lost_citations(answers)


def say_lost_citations(answers: Iterable[Answer]) -> None:
    """Says how many answers were written to a file that has no place for what they cite."""
    warn(
        "citations of %d answers left out: only reports have a place for them",
        sum(any(answer.citations) for answer in answers),
    )


def _is_answers(head: Head) -> bool:
    found = head.object
    return isinstance(found.get("answer"), str) or ("run_id" in found and isinstance(found.get("text"), str))


ANSWERS = Format(
    "answers", "generated answers as {query_id, run_id, text}", read_answers, _write_without_citations, _is_answers
)


def _is_reports(head: Head) -> bool:
    if is_submission(head.object) or any(name in head.object for name in ("answer", "responses", "metadata")):
        return True
    if not head.goes_on and not isinstance(head.value, list):
        return False
    # One list, or one object over several lines, may be long: it is not read to be told.
    named = {name for name in _HEADS if f'"{name}"' in head.line or f'"{name}"' in head.rest}
    return {"results", "run_name"} <= named or ("metadata" in named and bool(named & {"answer", "responses"}))


REPORTS = Format("reports", "generated answers with citations", read_reports, write_reports, _is_reports)
# What a sentence has besides its text, and what a note calls it.
_LOST = {"contradicted_citations": "contradicted_citations", "existing_supported_citations": "given citations"}


def _cited(report: CitedReport, sentence: Sentence, lost: Counter[str]) -> list[str]:
    """The ids that a sentence cites; what the forms of tracks have no place for is counted."""
    ids = report.cited(sentence)
    given = sentence.citations or sentence.supported_citations or ()
    lost["scores of citations"] += len(given) if isinstance(given, dict) else 0
    for name, said in _LOST.items():
        lost[said] += len(getattr(sentence, name) or ())
    lost["citations that are repeated, or positions that references does not have"] += len(given) - len(ids)
    return ids


def _rewritten(report: CitedReport, form: str, lost: Counter[str]) -> dict[str, Any]:
    """A report in a form: `rag` and `rag24` cite positions in `references`, `ids` the documents."""
    said = report.as_json()
    cited = [_cited(report, sentence, lost) for sentence in report.sentences]
    every = list(dict.fromkeys(doc_id for ids in cited for doc_id in ids))
    if form == "ids":
        lost["references that no sentence cites"] += len(set(report.references or ()) - set(every))
    else:
        every = list(dict.fromkeys([*(report.references or ()), *every]))
    places = {doc_id: place for place, doc_id in enumerate(every)}
    sentences = [
        {name: one for name, one in whole.items() if name not in (*_OF_SENTENCES, "citations")}
        | {"citations": ids if form == "ids" else [places[doc_id] for doc_id in ids]}
        for whole, ids in zip(said.get("answer") or said.get("responses") or (), cited, strict=True)
    ]
    metadata = {name: one for name, one in said.get("metadata", {}).items() if name not in _IDS}
    metadata |= {"run_id": report.run_name, "narrative_id" if form == "rag" else "topic_id": report.query_id}
    known = (*_IDS, "metadata", "answer", "responses", "references", ORIGINAL)
    further = {name: one for name, one in said.items() if name not in known}
    if form == "ids":
        return {"metadata": metadata, **further, "responses": sentences, "references": every}
    if form == "rag":
        return {"metadata": metadata, **further, "references": every, "answer": sentences}
    if "narrative" in metadata:
        metadata["topic"] = metadata.pop("narrative")
    words = sum(len(sentence.text.split()) for sentence in report.sentences)
    return {**metadata, **further, "references": every, "response_length": words, "answer": sentences}


def _form(name: str, tracks: str) -> Format:
    def write(path: PathName, reports: Sequence[CitedReport]) -> None:
        lost: Counter[str] = Counter()
        write_objects(path, (_rewritten(report, name, lost) for report in reports), "reports")
        for what, count in lost.items():
            warn("%s: left out, as this form has no place for them: %d %s", path_name(path), count, what)

    return Format("reports", f"reports in the form of {tracks}", None, write)


RAG = _form("rag", "TREC RAG 2025 and 2026")
RAG24 = _form("rag24", "TREC RAG 2024")
IDS = _form("ids", "RAGTIME, DRAGUN and BioGen 2025 (B)")

Length: TypeAlias = Literal["words", "characters"]
# The kinds of findings: what a rule is about.
Kind: TypeAlias = Literal[
    "form", "metadata", "type", "copies", "run_id", "missing", "unknown", "twice", "empty", "blank", "length",
    "citations", "cited_twice", "place", "ids", "references", "reference_twice", "uncited", "given", "prefix",
    "documents", "order",
]  # fmt: skip


class TrackRules(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rules of one track and form; the head of `track_rules.toml` says what each field means."""

    name: str
    source: tuple[str, ...]
    form: Literal["answers", "text", "grounded", "ranking", "nuggets"] = "answers"
    sentences: Literal["answer", "responses"] = "answer"
    topic: str = "topic_id"
    also: str | None = None
    metadata: tuple[str, ...] = ()
    top_level: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    copies: str | None = None
    limit: int | None = None
    unit: Length = "words"
    citations: int | None = None
    cited_in: tuple[str, ...] = ("citations",)
    cited_as: tuple[Literal["position", "id", "score"], ...] = ("id",)
    depth: int | None = None
    given: str | None = None
    ids: str
    references: Literal["required", "none"] = "none"
    texts: bool = False
    references_most: int | None = None
    all_cited: bool = False
    run_id_most: int | None = None
    run_id_safe: int | None = None
    prefix: bool = False
    warnings: tuple[Kind, ...]


@cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("track_rules.toml").read_text(encoding="utf-8"))


def tracks() -> tuple[str, ...]:
    """The names of the tracks, and of the forms of tracks that have several."""
    return tuple(_tables())


def track_rules(track: str) -> tuple[TrackRules, ...]:
    """The rules of a track, of each of its forms.

    >>> [rules.name for rules in track_rules("rag26")]
    ['TREC RAG 2026']

    Raises:
        UnknownNameError: nobody knows the track.
    """
    if track not in _tables():
        raise UnknownNameError("track", track, tracks())
    table = _tables()[track]
    return tuple(msgspec.convert(_tables()[name], TrackRules) for name in table.get("one_of", [track]))


Role = Literal["query", "answer", "reference", "contexts", "id", "run"]
ROLES: tuple[Role, ...] = get_args(Role)

# What each role is called, in small letters with underscores. Of these the first that a table has counts; of questions,
# answers and references there may be only one.
_NAMES: Mapping[Role, tuple[str, ...]] = {
    "query": ("user_input", "question", "query", "query_text", "input", "prompt", "instruction"),
    "answer": (
        "response", "actual_output", "response_output", "generated_answer", "model_answer", "prediction", "output",
        "completion",
    ),
    "reference": (
        "reference", "reference_answer", "expected_output", "expected_answer", "expected", "ground_truth",
        "ground_truths", "gold_answer", "golden_answer", "ideal",
    ),
    "contexts": (
        "retrieved_contexts", "retrieval_context", "retrieved_documents", "contexts", "context", "documents",
        "passages",
    ),
    "id": ("query_id", "question_id", "qid", "topic_id", "request_id", "narrative_id", "id"),
    "run": (
        "system", "run_id", "run", "version", "variant", "experiment", "model", "model_name", "generation_model_name",
    ),
}  # fmt: skip
_ALONE: tuple[Role, ...] = ("query", "answer", "reference")
# In tables without another answer it is what the system said; beside one it is the reference.
_EITHER = "answer"
_COULD_BE_EITHER: tuple[Role, ...] = ("answer", "reference")
# promptfoo's CSV: a column a provider and prompt, `[openai:gpt-4o] Answer in one sentence`.
_WIDE = re.compile(r"^\[(?P<provider>[^\]]+)\] ?(?P<prompt>.*)$", re.DOTALL)
_LONGEST_NAME = 60


class AnswerRow(NamedTuple):
    """One answer of one run.

    Attributes:
        line: where it stands: the line of a table or of JSON lines, else the number of the row, from 1.
        query: the question.
        answer: what the system said; may be empty.
        query_id: the id of the question, where the table gives one.
        run_id: the system or version that answered, where the table says it.
        contexts: the texts that were retrieved for the answer.
        reference: what a good answer says, in one text or several; empty where nobody wrote one.
    """

    line: int
    query: str
    answer: str
    query_id: str = ""
    run_id: str = ""
    contexts: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()


@dataclass(frozen=True)
class AnswerTable:
    """The rows of a table, and which of its columns they are.

    Attributes:
        name: the file, or what stands for it.
        rows: the answers.
        columns: role -> column.
        unused: the columns that nothing was read from.
    """

    name: str
    rows: tuple[AnswerRow, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()

    @property
    def stem(self) -> str:
        """The file's name without folder and endings."""
        name = PurePath(self.name).name.removeprefix("the ")
        for ending in (".gz", ".csv", ".tsv", ".jsonl", ".json", ".parquet"):
            name = name.removesuffix(ending)
        return name or "answers"


def parsed_columns(text: str) -> dict[str, str]:
    """The columns of `query=question,answer=response,id=`; nothing behind a role says that the table has none.

    Raises:
        InputError: it is of another form, or names no role.
    """
    found: dict[str, str] = {}
    for part in text.split(","):
        role, equals, column = (one.strip() for one in part.partition("="))
        if not equals or role not in ROLES or role in found:
            said = f"expected {'=COLUMN, '.join(ROLES)}=COLUMN, with commas between them"
            raise InputError(f"columns {text!r:.80}: {said}", settings=("columns",))
        found[role] = column
    return found


def read_answer_table(path: PathName, columns: Mapping[str, str] | None = None) -> AnswerTable:
    """Reads a file with a row an answer; what it is is told by its content.

    Args:
        path: CSV, TSV, JSON (a list of objects, columns as pandas and datasets write them, test runs of deepeval,
            results of promptfoo), JSON lines, or parquet; gzipped or not.
        columns: role (`ROLES`) -> column, where the names are others than those that are known; an empty name says that
            the table has none.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it is empty or damaged, or has no column of questions or answers; names file, line and columns.
        MissingExtraError: it is parquet, and pyarrow is not installed.
    """
    name = path_name(path)
    found = rows_of(path, "a table with a row an answer")
    if found.is_text:
        header = found.columns or ()
        wide = [column for column in header if _WIDE.match(column)]
        if wide and "answer" not in (columns or {}):
            made = _unpivoted(header, found.rows, wide)
            return answer_rows(made, {"run": "system", **(columns or {}), "answer": "response"}, name)
        return answer_rows(found.rows, columns, name)
    rows = [(line, _flat(row["row"] if row.keys() >= {"row", "row_idx"} else row)) for line, row in found.rows]
    _name_providers([row for _, row in rows])
    return answer_rows(rows, columns, name)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without objects inside: `response.output`; variables of promptfoo's tests stand by themselves."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name == "vars" and isinstance(value, dict):
            flat |= {inner: found for inner, found in value.items() if inner not in row}
        elif isinstance(value, dict):
            flat |= {f"{name}.{inner}": found for inner, found in value.items()}
        else:
            flat[name] = value
    return flat


def _name_providers(rows: Sequence[dict[str, Any]]) -> None:
    """Gives promptfoo's results the name of their provider, and of their prompt where there are several."""
    if not any("provider.id" in row for row in rows):
        return
    prompts = {str(row.get("prompt.label", "")) for row in rows}
    for row in rows:
        provider = str(row.get("provider.label") or row.get("provider.id") or "")
        row["system"] = _run_name(provider, str(row.get("prompt.label", "")), len(prompts) > 1)
        # That of the result, not of the question; the prompt is the question with words around it.
        for name in ("id", "prompt.raw", "prompt.label"):
            row.pop(name, None)


def _run_name(provider: str, prompt: str, is_told: bool) -> str:
    name = f"{provider} {' '.join(prompt.split())}" if is_told else provider
    return name.strip()[:_LONGEST_NAME].rstrip()


def _unpivoted(
    header: Sequence[str], rows: Iterable[tuple[int, Mapping[str, Any]]], wide: Sequence[str]
) -> list[tuple[int, dict[str, Any]]]:
    """A row an answer, from a table with a column a system."""
    matches = {column: _WIDE.match(column) for column in wide}
    told = {column: (match["provider"], match["prompt"]) for column, match in matches.items() if match}
    several = len({prompt for _, prompt in told.values()}) > 1
    names = {column: _run_name(provider, prompt, several) for column, (provider, prompt) in told.items()}
    if len(set(names.values())) < len(names):
        names = {column: f"{name} {number}" for number, (column, name) in enumerate(names.items(), 1)}
    # Behind the first system stand its grades and notes, and those of the others.
    shared = header[: header.index(wide[0])]
    return [
        (line, {**{column: cells[column] for column in shared}, "system": name, "response": cells[place]})
        for line, cells in rows
        for place, name in names.items()
    ]


def answer_rows(
    rows: Iterable[tuple[int, Mapping[str, Any]]], columns: Mapping[str, str] | None = None, name: str = "the answers"
) -> AnswerTable:
    """The answers in rows of any source.

    Args:
        rows: (line, column -> value).
        columns: as for `read_answer_table`.
        name: what they are of, for errors.

    Raises:
        FormatError: there are none, columns are missing or not clear, or a question is empty.
    """
    listed = list(rows)
    if not listed:
        raise FormatError("holds no rows; expected a row an answer", path=name)
    present = list(dict.fromkeys(column for _, row in listed for column in row))
    chosen = _chosen(present, columns or {}, name)
    made: list[AnswerRow] = []
    for line, row in listed:
        cells = {role: row.get(column) for role, column in chosen.items()}

        def text(role: Role, cells: Mapping[Role, Any] = cells, line: int = line) -> str:
            value = cells.get(role)
            if isinstance(value, list | tuple):
                raise FormatError("is a list; expected a text", path=name, line=line, field=chosen[role])
            return _cell_text(value)

        query = text("query").strip()
        if not query:
            raise FormatError("is empty; every row needs its question", path=name, line=line, field=chosen["query"])
        texts = (_cell_texts(cells.get("contexts")), _cell_texts(cells.get("reference")))
        made.append(AnswerRow(line, query, text("answer"), text("id").strip(), text("run").strip(), *texts))
    used = set(chosen.values())
    named = {str(role): column for role, column in chosen.items()}
    return AnswerTable(name, tuple(made), named, tuple(column for column in present if column not in used))


def _chosen(present: Sequence[str], said: Mapping[str, str], name: str) -> dict[Role, str]:
    """Role -> column, for the roles that the table has."""
    listed = ", ".join(present[:40]) + (f" and {len(present) - 40} more" if len(present) > 40 else "")
    for role, column in said.items():
        if role not in ROLES:
            raise InputError(f"columns: {role!r} is none of {', '.join(ROLES)}", settings=("columns",))
        if column and column not in present:
            problem = f"has no column {column!r}; it has {listed}"
            raise FormatError(problem, path=name, settings=("columns",))
    known: dict[str, str] = {}
    for column in present:
        known.setdefault(plain_name(column), column)
    taken = set(said.values())
    chosen: dict[Role, str] = {}
    for role, names in _NAMES.items():
        if role in said:
            if said[role]:
                chosen[role] = said[role]
            continue
        found = [known[one] for one in names if one in known and known[one] not in taken]
        if role in _ALONE and len(found) > 1:
            both = " and ".join(found[:3])
            problem = f"columns {both} could each be the {role}; say which ({role}={found[0]})"
            raise FormatError(problem, path=name, settings=("columns",))
        if found:
            chosen[role] = found[0]
    either = known.get(_EITHER)
    if either is not None and either not in taken | set(chosen.values()):
        free: list[Role] = [role for role in _COULD_BE_EITHER if role not in chosen and role not in said]
        if free:
            chosen[free[0]] = either
    lacking = [role for role in ("query", "answer") if role not in chosen]
    if lacking:
        needed = "; ".join(f"{role}: one of {', '.join(_usual(role))}" for role in lacking)  # type: ignore[arg-type]
        problem = f"has no column of the {' and the '.join(lacking)}; it has {listed}; expected {needed}, or say which"
        raise FormatError(problem, path=name, settings=("columns",))
    return chosen


def _usual(role: Role) -> list[str]:
    return [*(["answer"] if role == "answer" else []), *_NAMES[role]]


def _cell_text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return canonical_json(value) if isinstance(value, dict) else str(value)


def _cell_texts(value: Any) -> tuple[str, ...]:
    """The texts of a list, or of a cell that holds one as JSON or as Python writes it; else the one text."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _listed(value)
    if hasattr(value, "tolist"):
        # An array of a data frame.
        value = value.tolist()
    if not isinstance(value, list | tuple):
        value = [value]
    texts = [_cell_text(_of_document(one)).strip() for one in value]
    return tuple(text for text in texts if text)


def _of_document(value: Any) -> Any:
    """The text of a document that stands as an object; anything else as it is."""
    if isinstance(value, dict):
        return next((value[name] for name in ("text", "page_content", "content") if name in value), value)
    return value


def _listed(cell: str) -> Any:
    for read in (partial(parse_json, lenient=True), ast.literal_eval):
        try:
            value = read(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, list):
            return value
    return cell
