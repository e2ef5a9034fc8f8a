"""Files of the nuggetizer program: nuggets, assignments, requests, metrics; also the nuggets of TREC RAG 2025.

Source: Pradeep et al., AutoNuggetizer (TREC 2024 RAG track); the program is version 0.0.5 of the package index.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import AliasChoices, BeforeValidator, Field, TypeAdapter

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import path_name, run_of_file
from rubric_measures.base.json_files import JsonLines, Record, TextId, json_texts, parse_json, validate_line
from rubric_measures.formats.base import Format, Head

__all__ = [
    "ASSIGNMENTS",
    "NUGGETS",
    "REQUESTS",
    "AssignedNugget",
    "AssignmentLine",
    "Candidate",
    "Nugget",
    "NuggetLine",
    "RequestLine",
    "UnknownLabels",
    "label_treatment",
    "note_unknown_labels",
    "read_assignments",
    "read_nuggets",
    "read_requests",
    "validate_assignments",
    "with_known_labels",
    "write_assignments",
    "write_nuggets",
    "write_requests",
]

_LOG = logging.getLogger("rubric_measures")
UnknownLabels: TypeAlias = Literal["failed"]
"""What labels that nobody defined count as; without it they are refused."""


def _label(value: Any) -> Any:
    """Older files write labels with capitals, spaces and hyphens, and `okey`; RAGDoll writes `fail`."""
    if not isinstance(value, str):
        return value
    label = "_".join(value.lower().replace("-", " ").replace("_", " ").split())
    return {"okey": "okay", "fail": "failed"}.get(label, label)


ImportanceLabel = Annotated[Literal["vital", "okay", "failed"], BeforeValidator(_label)]
_Assigned = Literal["support", "partial_support", "not_support", "failed"]
AssignmentLabel = Annotated[_Assigned, BeforeValidator(_label)]


class Nugget(Record):
    """One nugget.

    Attributes:
        text: the key fact, never blank.
        importance: `vital`, `okay`, `failed` (nobody could say), or None where nobody was asked.
        mapped_sub_narrative: TREC RAG 2025: the part of the narrative (the facet) that it belongs to.
        source: TREC RAG 2025: `original` or `post-edit`.
    """

    text: Annotated[str, Field(pattern=r"\S")]
    importance: ImportanceLabel | None = None
    mapped_sub_narrative: str | None = None
    source: str | None = None


class AssignedNugget(Nugget):
    """One nugget and how well an answer supports it."""

    assignment: AssignmentLabel


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


def label_treatment(unknown_labels: object) -> Counter[str] | None:
    """Where labels that nobody defined are counted, if they are to count as failed; None where they are refused.

    Raises:
        InputError: something else is to be done with them.
    """
    if unknown_labels not in (None, "failed"):
        raise InputError(f"unknown_labels is {unknown_labels!r}; expected failed, or nothing")
    return None if unknown_labels is None else Counter()


def with_known_labels(content: Any, found: Counter[str]) -> Any:
    """A line of assignments in which labels that nobody defined are `failed`; they are counted."""
    nuggets = content.get("nuggets") if isinstance(content, dict) else None
    if not isinstance(nuggets, list):
        return content
    known = []
    for nugget in nuggets:
        label = nugget.get("assignment") if isinstance(nugget, dict) else None
        if isinstance(label, str) and _label(label) not in get_args(_Assigned):
            found[label] += 1
            nugget = {**nugget, "assignment": "failed"}
        known.append(nugget)
    return {**content, "nuggets": known}


def note_unknown_labels(found: Counter[str] | None, name: str) -> None:
    """Says how many labels counted as failed because nobody defined them."""
    if found:
        shown = ", ".join(f"{label!r} {count}" for label, count in found.most_common(3))
        _LOG.warning("%s: %d labels that nobody defined (%s) are failed grades", name, found.total(), shown)


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
