"""Answers with citations as tracks take them, and what each track allows (`track_rules.toml`).

A report is what one run answered to one topic, as sentences with citations (TREC RAG 2024–2026, RAGTIME, DRAGUN,
Auto-Judge), or as a text with the ids that it cites in brackets (BioGen 2024).
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, TypeAlias, TypeGuard

import msgspec
from msgspec import Struct

from rubric_measures.base.errors import FormatError, InputError, UnknownNameError, warn
from rubric_measures.base.files import path_name
from rubric_measures.base.json_text import json_texts, parse_json
from rubric_measures.base.words import sentence_ends
from rubric_measures.formats.specs import TOPIC_IDS, RecordLines, table
from rubric_measures.records.models import JsonRecord
from rubric_measures.types.entities import Grade

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
        for what, names in (("run_id", ("run_id",)), ("topic_id or narrative_id", TOPIC_IDS)):
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
        return self._named(*TOPIC_IDS)[0]

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

    def _found(self, sentence: Sentence) -> list[_Id]:
        """What a sentence cites, most important first; positions that `references` does not have stay numbers."""
        citations = sentence.citations
        if isinstance(citations, dict):
            return [doc_id for doc_id, _ in sorted(citations.items(), key=lambda pair: -pair[1])]
        if citations is None or (self.answer is None and self.references is None):
            # Without references numbers are ids, as those of PubMed are.
            return list(map(str, citations or sentence.supported_citations or ()))
        known = self.references or ()
        return [known[one] if isinstance(one, int) and 0 <= one < len(known) else one for one in citations]

    def cited(self, sentence: Sentence, keep_lost: bool = False) -> list[str]:
        """Ids of the documents that a sentence cites, most important first, each once.

        Args:
            sentence: the sentence.
            keep_lost: positions that `references` does not have are `references[N]`, and not left out.
        """
        found = [one for one in self._found(sentence) if keep_lost or isinstance(one, str)]
        return list(dict.fromkeys(one if isinstance(one, str) else f"references[{one}]" for one in found))

    @property
    def lost_citations(self) -> int:
        """How many citations are positions that `references` does not have."""
        return sum(isinstance(one, int) for sentence in self.sentences for one in self._found(sentence))

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


def report_texts(name: str) -> Iterator[tuple[int, bytes]]:
    """The reports of a file, one by one, unread where nothing but a look at them is needed."""
    for line, data in json_texts(name):
        content = parse_json(data, path=name, line=line) if b'"results"' in data else None
        if is_submission(content):
            yield from ((line, msgspec.json.encode(one)) for one in reports_of_submission(content, name, line))
        else:
            yield line, data


REPORT_LINES = RecordLines(
    **table("reports"), type=CitedReport, key=lambda report: (report.run_name, report.query_id), texts=report_texts,
)  # fmt: skip
write_reports = REPORT_LINES.write


def read_reports(path: str | os.PathLike[str]) -> list[CitedReport]:
    """The reports of a file, in order.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when a run answers a topic twice.
    """
    reports = REPORT_LINES.read(path)
    say_lost_positions(reports, path_name(path))
    return reports


def say_lost_positions(reports: Iterable[CitedReport], name: str) -> None:
    """Says how many citations lead nowhere."""
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


def grades_of_reports(reports: Iterable[CitedReport]) -> Iterator[Grade]:
    """The grades of `evaldata.nugget_grades`: one row a (topic, run, item); the document is called after the run.

    An entry without a grade is a grade that failed.

    Raises:
        InputError: a report's nugget_grades have another form.
    """
    for report in reports:
        for item_id, entry in report.item_grades().items():
            note = "" if entry.grade is not None else "no grade in evaldata.nugget_grades"
            ids = report.query_id, report.run_name, entry.grade, item_id
            yield Grade(*ids, "failed" if note else "graded", entry.reasoning or "", note=note)


REPORTS = REPORT_LINES.format._replace(read=read_reports)
Length: TypeAlias = Literal["words", "characters"]


class TrackRules(SimpleNamespace):
    """The rules of one track and form; the head of `track_rules.toml` says what each field means."""


@cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("track_rules.toml").read_text(encoding="utf-8"))


def tracks() -> tuple[str, ...]:
    """The names of the tracks, and of the forms of tracks that have several."""
    return tuple(name for name in _tables() if name != "usual")


def track_rules(track: str) -> tuple[TrackRules, ...]:
    """The rules of a track, of each of its forms.

    >>> [rules.name for rules in track_rules("rag26")]
    ['TREC RAG 2026']

    Raises:
        UnknownNameError: nobody knows the track.
    """
    if track not in tracks():
        raise UnknownNameError("track", track, tracks())
    names, usual = _tables()[track].get("one_of", [track]), _tables()["usual"]
    return tuple(TrackRules(**{**usual, **_tables()[name]}) for name in names)
