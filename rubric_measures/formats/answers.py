"""Generated answers: reports with citations, plain files with a query, a run and a text, and tables with the question.

A report is what one run answered to one topic, as sentences with citations (TREC RAG 2024–2026, RAGTIME, DRAGUN,
Auto-Judge), or as a text with the ids that it cites in brackets (BioGen 2024). What each track allows stands in
`track_rules.toml`. Tables of answers have a row an answer: CSV, TSV, JSON, JSON lines, parquet, or rows in memory. The
column names of ragas, deepeval and Hugging Face datasets are known; other names are said by the user.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rubric_measures.base.errors import FormatError, InputError, UnknownNameError, warn
from rubric_measures.base.files import path_name, run_of_file
from rubric_measures.base.json_text import json_texts, parse_json
from rubric_measures.base.words import sentence_ends
from rubric_measures.formats.base import Format, Head, PathName, cells_of, head_of
from rubric_measures.formats.specs import TOPIC_IDS, RecordLines, Row, Spec, flattened, lacks, same, spec, table
from rubric_measures.formats.tables import Rows, rows_of
from rubric_measures.records.models import JsonRecord

_BRACKET = re.compile(r"\s*\[\s*((?:PMID:?\s*)?\d+(?:\s*[,;]\s*(?:PMID:?\s*)?\d+)*)\s*\]")
_ID = re.compile(r"\d+")
# Places of texts that stand beside the answer.
_MARK = re.compile(r"\s*\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")
_BEHIND = re.compile(rf"([.!?…。]+)((?:{_MARK.pattern})+)")
_BIOGEN_RUNS: Spec[list[Row]] = spec("biogen runs")


def cited_sentences(text: str, is_behind: bool = False) -> tuple[list[tuple[str, list[str]]], int]:
    """The sentences of an answer without its brackets with the ids that each cites, in order; and how many are lost.

    Only brackets that hold numbers alone are citations.

    >>> cited_sentences("Aspirin thins blood [12, 7]. [5] It may [in some] help [9].")
    ([('Aspirin thins blood.', ['12', '7']), ('It may [in some] help.', ['9'])], 1)
    >>> cited_sentences("Aspirin thins blood. [12, 7] It may [in some] help. [9]", is_behind=True)
    ([('Aspirin thins blood.', ['12', '7']), ('It may [in some] help.', ['9'])], 0)

    Args:
        text: the answer.
        is_behind: whether a bracket behind a stop is of the sentence that ends there, and holds places of at most four
            digits; else it is nobody's, and holds ids, as in BioGen 2024.
    """
    sentences, bracket = [], _MARK if is_behind else _BRACKET
    text = _BEHIND.sub(lambda found: f"{found[2]}{found[1]}", text) if is_behind else text
    start = lost = 0
    for end in sentence_ends(text):
        piece, start = text[start:end].strip(), end
        while not is_behind and (found := _BRACKET.match(piece)):
            piece = piece[found.end() :].lstrip()
            lost += len(_ID.findall(found[1]))
        if said := bracket.sub("", piece).strip():
            ids = [number for found in bracket.finditer(piece) for number in _ID.findall(found[1])]
            sentences.append((said, list(dict.fromkeys(str(int(one)) if is_behind else one for one in ids))))
    return sentences, lost


def report_texts(name: str) -> Iterator[tuple[int, bytes]]:
    """The reports of a file, one by one; a run of BioGen 2024 is one object, whose answers are made reports.

    Raises:
        FormatError: a result of such a run is no {topic_id, answer, references}.
    """
    texts = json_texts(name)
    first = list(islice(texts, 1))
    texts = chain(first, texts)
    if not first or not _BIOGEN_RUNS.recognise(Head(name, first[0][1])):
        yield from texts
        return
    runs = ((line, parse_json(data, path=name, line=line)) for line, data in texts)
    for line, run, of_run, _ in _BIOGEN_RUNS.rows(Rows(name, runs)):
        every = 0
        for _, said, further, _ in run["results"]:
            sentences, lost = cited_sentences(said["answer"])
            every += lost
            report = {
                "metadata": {**of_run, "run_id": run["run_id"], "topic_id": said["topic_id"]},
                "answer": [{"text": one, "citations": ids} for one, ids in sentences],
                "references": said["references"],
                # The answer as it was written.
                "biogen_2024": {"answer": said["answer"], **further},
            }
            yield line, msgspec.json.encode(report)
        warn("%s: %d citations stand behind the end of a sentence, and belong to none", name, every)


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


class _Evaluated(Struct, frozen=True, omit_defaults=True):
    nugget_grades: dict[str, ItemGrade] | None = None


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
        evaldata: what graders added, `nugget_grades` among it.
    """

    metadata: ReportMetadata = msgspec.field(default_factory=ReportMetadata)
    topic_id: _Id | None = None
    qid: _Id | None = None
    run_id: _Id | None = None
    answer: list[Sentence] | None = None
    responses: list[Sentence] | None = None
    references: list[_Id] | None = None
    documents: dict[str, Any] | None = None
    segments: dict[str, Any] | None = None
    evaldata: _Evaluated | None = None

    def __post_init__(self) -> None:
        if self.answer is None and self.responses is None:
            raise ValueError("has neither answer nor responses; one must be a list of {text, citations}")
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

    def cited(self, sentence: Sentence) -> list[_Id]:
        """What a sentence cites, most important first; positions that `references` does not have stay numbers."""
        citations = sentence.citations
        if isinstance(citations, dict):
            return [doc_id for doc_id, _ in sorted(citations.items(), key=lambda pair: -pair[1])]
        if citations is None or (self.answer is None and self.references is None):
            # Without references numbers are ids, as those of PubMed are.
            return list(map(str, citations or sentence.supported_citations or ()))
        known = list(map(str, self.references or ()))
        return [known[one] if isinstance(one, int) and 0 <= one < len(known) else one for one in citations]

    @property
    def item_grades(self) -> Mapping[str, ItemGrade]:
        """Item id -> grade of `evaldata.nugget_grades`; empty where there are none."""
        return (self.evaldata and self.evaldata.nugget_grades) or {}


REPORT_LINES = RecordLines(**table("reports"), type=CitedReport, texts=report_texts)


def read_reports(path: str | os.PathLike[str]) -> list[CitedReport]:
    """The reports of a file, in order.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when a run answers a topic twice.
    """
    reports = REPORT_LINES.read(path)
    lost = sum(isinstance(one, int) for report in reports for said in report.sentences for one in report.cited(said))
    warn("%s: %d citations point to positions that references does not have", path_name(path), lost)
    return reports


def say_contradictions(reports: Iterable[CitedReport]) -> None:
    """Says what answers, which cite what supports them, do not hold."""
    against = sum(len(one.contradicted_citations or ()) for report in reports for one in report.sentences)
    warn("%d contradicted_citations left out: answers cite what supports them", against)


def _document_text(said: Any) -> str:
    text, title = _of_document(said), said.get("title") if isinstance(said, Mapping) else None
    if not isinstance(text, str):
        return ""
    return f"{title}: {text}" if text and isinstance(title, str) and title.strip() else text


def answer_of_report(report: CitedReport, keep_lost: bool = False) -> Answer:
    """The answer that a report is.

    Args:
        report: the report.
        keep_lost: citations of positions that `references` does not have are `references[N]`, and not left out.
    """
    sentences = tuple(sentence.text for sentence in report.sentences)
    found = (
        [one if isinstance(one, str) else f"references[{one}]" for one in of if keep_lost or isinstance(one, str)]
        for of in map(report.cited, report.sentences)
    )
    given = {**(report.segments or {}), **(report.documents or {})}
    documents = tuple((doc_id, text) for doc_id, said in given.items() if (text := _document_text(said)))
    citations = tuple(tuple(dict.fromkeys(of_sentence)) for of_sentence in found)
    return Answer(report.query_id, report.run_name, report.text, sentences, citations, documents)


REPORTS = REPORT_LINES.format._replace(read=read_reports)
Length: TypeAlias = Literal["words", "characters"]


class TrackRules(SimpleNamespace):
    """The rules of one track and form; the head of `track_rules.toml` says what each field means."""


def track_rules(track: str) -> tuple[TrackRules, ...]:
    """The rules of a track, of each of its forms.

    >>> [rules.name for rules in track_rules("rag26")]
    ['TREC RAG 2026']

    Raises:
        UnknownNameError: nobody knows the track.
    """
    tables = tomllib.loads(Path(__file__).with_name("track_rules.toml").read_text(encoding="utf-8"))
    usual = tables.pop("usual")
    if track not in tables:
        raise UnknownNameError("track", track, tables)
    return tuple(TrackRules(**{**usual, **tables[name]}) for name in tables[track].get("one_of", [track]))


def _question_runs(rows: Iterable[Row]) -> list[Answer]:
    """The questions of each run and topic: those of a bank in order, others by rank (two of one in order)."""
    found: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for _, said, *_ in rows:
        ranked = found.setdefault((said["query_id"], said["run_id"]), [])
        listed = said.get("questions")
        ranked += [(0, one.said["text"]) for one in listed] if listed is not None else [(said["rank"], said["text"])]
    return [
        Answer(*ids, " ".join(questions), questions=questions)
        for ids, ranked in found.items()
        for questions in [tuple(text for _, text in sorted(ranked, key=itemgetter(0)))]
    ]


_ANSWERS: dict[str, Any] = {
    "into": lambda rows: [Answer(**row.said) for row in rows],
    "outof": lambda answers: (
        {**one._asdict(), "sentences": None, "citations": any(one.citations)} for one in answers
    ),
}  # fmt: skip
PLAIN_ANSWERS: Spec[list[Answer]] = spec("answers", **_ANSWERS)
RAGELO_ANSWERS = spec("ragelo:answers", **_ANSWERS)
QUESTION_RUNS: Spec[list[Answer]] = spec("questions", into=_question_runs)


# Banks of questions that are handed in as a run (RAGTIME, task 3).
QUESTION_BANKS: Spec[list[Answer]] = spec("question banks", into=_question_runs)


def read_answers(path: PathName, keep_lost: bool = False) -> list[Answer]:
    """The answers of a file, told apart by content: reports, or rows that say the query, the run and the text.

    Such rows stand in JSON lines, a JSON list, CSV, or TSV with or without a header; their fields are `query_id` (or
    `qid`, `topic_id`, …), `run_id` (or `agent`, `system`, …) and `text` (or `answer`, `response`).

    Args:
        path: the file.
        keep_lost: see `answer_of_report`.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when a run answers a query twice, or there are no answers.
    """
    head = head_of(path)
    for form in (QUESTION_BANKS, QUESTION_RUNS):
        if form.recognise(head):
            return form.read(path)
    if _is_answers(head) or not head.is_json or not REPORT_LINES.recognise(head):
        return PLAIN_ANSWERS.read(path)
    reports = read_reports(path)
    say_contradictions(reports)
    return [answer_of_report(report, keep_lost) for report in reports]


def _is_answers(head: Head) -> bool:
    if not head.is_json:
        return {"query_id", "run_id", "text"} <= set(cells_of(head.line))
    found = head.object
    return isinstance(found.get("answer"), str) or ("run_id" in found and isinstance(found.get("text"), str))


ANSWERS = Format("answers", PLAIN_ANSWERS.description, read_answers, PLAIN_ANSWERS.write, _is_answers)

# Of several columns of these nobody knows which one is meant.
_ALONE = ("query", "answer", "reference")


class AnswerRow(NamedTuple):
    """One answer of one run.

    Attributes:
        line: where it stands: the line of a table or of JSON lines, else the number of the row, from 1.
        query: the question.
        answer: what the system said; may be empty.
        reference: what a good answer says, in one text or several; empty where nobody wrote one.
        contexts: the texts that were retrieved for the answer.
        query_id: the id of the question, where the table gives one.
        run_id: the system or version that answered, where the table says it.
    """

    line: int
    query: str
    answer: str
    reference: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    query_id: str = ""
    run_id: str = ""


@dataclass(frozen=True)
class AnswerTable:
    """The rows of a table, and which of its columns they are.

    Attributes:
        name: the file, or what stands for it.
        rows: the answers.
        columns: role -> column.
        unused: the columns that nothing was read from, but one without a name, as the index of pandas.
    """

    name: str
    rows: tuple[AnswerRow, ...]
    columns: Mapping[str, str]
    unused: tuple[str, ...]

    @property
    def stem(self) -> str:
        """What a run is called that is the only one of the file."""
        return run_of_file(self.name.removeprefix("the ")) or "answers"


def parsed_columns(text: str) -> dict[str, str]:
    """The columns of `query=question,answer=response,id=`; nothing behind a role says that the table has none.

    Raises:
        InputError: it is of another form.
    """
    pairs = [part.partition("=") for part in text.split(",")]
    found = {role.strip(): column.strip() for role, is_said, column in pairs if is_said}
    if len(found) < len(pairs):
        said = f"expected {'=COLUMN, '.join(ROLES)}=COLUMN, with commas between them"
        raise InputError(f"columns {text!r:.80}: {said}", settings=("columns",))
    return found


def _texts_of(value: Any) -> tuple[str, ...]:
    """The texts of a list, or of a cell that holds one as JSON or as Python writes it; else the one text."""
    for read in (partial(parse_json, lenient=True), ast.literal_eval):
        if isinstance(value, str) and value.lstrip().startswith("["):
            with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                value = read(value)
    texts = map(_of_document, value if isinstance(value, list) else [value])
    # What programs write of None and of NaN, and people of nothing, is no text.
    said = (str(one).strip() for one in texts)
    return tuple(one for one in said if one.casefold() not in {"", "none", "null", "nan", "n/a"})


def _of_document(value: Any) -> Any:
    """The text of a document that stands as an object; anything else as it is."""
    if isinstance(value, dict):
        return next((value[one] for one in ("text", "segment", "page_content", "content") if one in value), value)
    return value


_TABLE: Spec[list[Row]] = spec("answer table", {"texts of a cell": (_texts_of, same)})
ROLES = tuple(one.to for one in _TABLE.fields)


def read_answer_table(
    source: Any, columns: Mapping[str, str] | None = None, systems: Sequence[str] = ()
) -> AnswerTable:
    """Reads a table with a row an answer, or with a column a system; what a file is is told by its content.

    Args:
        source: a file: CSV, TSV, JSON (a list of objects, columns as pandas and datasets write them, test runs of
            deepeval), JSON lines, or parquet; gzipped or not. Or a data frame, or rows in memory.
        columns: role (`ROLES`) -> column, where the names are others than those that are known; an empty name says that
            the table has none.
        systems: the columns that are the answers of a system each, which is called as its column.

    Raises:
        InputError: the file cannot be opened, or what is given is no table.
        FormatError: it is empty or damaged, has no column of questions or answers or lacks that of a system, columns
            are not clear, or a question is empty; names file, line and columns.
        MissingExtraError: it is parquet, and pyarrow is not installed.
    """
    name, found, _ = rows_of(source, "answers")
    said = dict(columns or {})
    rows = [(line, row["row"] if isinstance(row.get("row"), dict) else row) for line, row in found]
    rows = [(line, flattened(row, row)) for line, row in rows]
    present = list(dict.fromkeys(column for _, row in rows for column in row))
    if unknown := said.keys() - set(ROLES):
        raise InputError(f"columns: {min(unknown)!r} is none of {', '.join(ROLES)}", settings=("columns",))
    for setting, asked in (("columns", said.values()), ("systems", systems)):
        if lacking := [one for one in asked if one and one not in present]:
            problem = f"has no column {lacking[0]!r}{' with the answers of a run' * (setting == 'systems')}"
            raise FormatError(f"{problem}; it has {', '.join(present[:40])}", path=name, settings=(setting,))
    if systems:
        # A row an answer, beside what all systems share.
        run, answer = "its name", f"column {' or '.join(systems)}"
        present = [*(column for column in present if column not in systems), run, answer]
        rows = [(line, {**cells, run: one, answer: cells.get(one)}) for line, cells in rows for one in systems]
        said = {"run": run, **said, "answer": answer}
    fields = (
        one._replace(names=tuple(filter(None, [said[one.to]])) if one.to in said else one.names)
        for one in _TABLE.fields
    )
    form = replace(_TABLE, fields=tuple(sorted(fields, key=lambda one: one.to not in said)))
    if rows and (needed := form.lacking(present)):
        raise FormatError(f"{lacks(needed, present)}; or say which", path=name, settings=("columns", "systems"))
    chosen = form.columns(present) if rows else {}
    for role, names in chosen.items():
        if len(names) > 1 and role in _ALONE:
            problem = f"columns {' and '.join(names[:3])} could each be the {role}; say which ({role}={names[0]})"
            raise FormatError(problem, path=name, settings=("columns",))
    filled = ((line, {column: row.get(column) for column in present}) for line, row in rows)
    said_in: Any = ((line, map(said.get, ROLES)) for line, said, *_ in form.rows(Rows(name, filled)))
    made = tuple(AnswerRow._make([line, *(() if one is None else one for one in roles)]) for line, roles in said_in)
    used = {role: chosen[role][0] for role in ROLES if chosen[role]}
    return AnswerTable(name, made, used, tuple(one for one in present if one and one not in used.values()))
