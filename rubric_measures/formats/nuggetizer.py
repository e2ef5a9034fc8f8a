"""Files of the nuggetizer program: nuggets, assignments, requests, metrics; also the nuggets of TREC RAG 2025.

Source: Pradeep et al., AutoNuggetizer (TREC 2024 RAG track); the program is version 0.0.5 of the package index.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import path_name
from rubric_measures.base.json_lines import TextId, read_json_lines, write_json_lines
from rubric_measures.base.json_models import field_path, first_problem, validate_line
from rubric_measures.formats.base import Format, Head
from rubric_measures.records.models import Record

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
    "read_assignments",
    "read_nuggets",
    "read_requests",
    "validate_assignments",
    "write_assignments",
    "write_nuggets",
    "write_requests",
]


def _label(value: Any) -> Any:
    """Older files write labels with capitals, spaces and hyphens, and `okey`."""
    if not isinstance(value, str):
        return value
    label = "_".join(value.lower().replace("-", " ").replace("_", " ").split())
    return "okay" if label == "okey" else label


ImportanceLabel = Annotated[Literal["vital", "okay", "failed"], BeforeValidator(_label)]
AssignmentLabel = Annotated[Literal["support", "partial_support", "not_support", "failed"], BeforeValidator(_label)]


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
    """The text of a candidate."""

    segment: str


class Candidate(Record):
    """One document to make nuggets from."""

    docid: TextId = ""
    score: float | None = None
    doc: CandidateDocument


class RequestLine(Record):
    """A query and the documents to make its nuggets from; either may be plain text."""

    query: RequestQuery | str
    candidates: list[Candidate | str]


_NUGGETS: TypeAdapter[NuggetLine] = TypeAdapter(NuggetLine)
_ASSIGNMENTS: TypeAdapter[AssignmentLine] = TypeAdapter(AssignmentLine)
_REQUESTS: TypeAdapter[RequestLine] = TypeAdapter(RequestLine)


def read_nuggets(path: str | os.PathLike[str]) -> list[NuggetLine]:
    """The lines of a nuggets file, of the program or of TREC RAG 2025.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when a query comes twice.
    """
    rows = read_json_lines(path, _NUGGETS, "nuggets")
    _unique([(line, (row.qid,)) for line, row in rows], path)
    return [row for _, row in rows]


def write_nuggets(path: str | os.PathLike[str], lines: Iterable[NuggetLine]) -> None:
    """Writes nuggets, one query a line.

    Raises:
        InputError: the file cannot be written, or there is nothing to write.
    """
    write_json_lines(path, _NUGGETS, lines, "nuggets")


def read_assignments(path: str | os.PathLike[str], run_id: str | None = None) -> list[AssignmentLine]:
    """The lines of an assignments file.

    Args:
        path: the file.
        run_id: the run of lines that name none.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when a line has no run, or a run and query come twice.
    """
    rows = read_json_lines(path, _ASSIGNMENTS, "assignments")
    lines = []
    for number, line in rows:
        lines.append((number, _with_run(line, path_name(path), number, run_id)))
    _unique([(number, (str(line.run_id), line.qid)) for number, line in lines], path)
    return [line for _, line in lines]


def validate_assignments(data: bytes | Mapping[str, Any], name: str, line: int, run_id: str | None) -> AssignmentLine:
    """One line of an assignments file, as JSON text or as what that says; see `read_assignments`.

    Raises:
        FormatError: naming file, line and field.
    """
    if isinstance(data, bytes):
        return _with_run(validate_line(_ASSIGNMENTS, data, path=name, line=line), name, line, run_id)
    try:
        return _with_run(_ASSIGNMENTS.validate_python(data), name, line, run_id)
    except ValidationError as error:
        location, text = first_problem(error)
        raise FormatError(text, path=name, line=line, field=field_path(location)) from None


def _with_run(line: AssignmentLine, name: str, number: int, run_id: str | None) -> AssignmentLine:
    if line.run_id:
        return line
    if not run_id:
        raise FormatError("names no run; say which one it is", path=name, line=number, field="run_id")
    return line.model_copy(update={"run_id": run_id})


def write_assignments(path: str | os.PathLike[str], lines: Iterable[AssignmentLine]) -> None:
    """Writes assignments, one query and run a line.

    Raises:
        InputError: the file cannot be written, or there is nothing to write.
    """
    write_json_lines(path, _ASSIGNMENTS, lines, "assignments")


def read_requests(path: str | os.PathLike[str]) -> list[RequestLine]:
    """The lines of a requests file: queries with the documents to make nuggets from.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field.
    """
    return [row for _, row in read_json_lines(path, _REQUESTS, "requests")]


def write_requests(path: str | os.PathLike[str], lines: Iterable[RequestLine]) -> None:
    """Writes requests, one query a line.

    Raises:
        InputError: the file cannot be written, or there is nothing to write.
    """
    write_json_lines(path, _REQUESTS, lines, "requests")


def _unique(keys: Iterable[tuple[int, tuple[str, ...]]], path: str | os.PathLike[str]) -> None:
    first: dict[tuple[str, ...], int] = {}
    for line, key in keys:
        before = first.setdefault(key, line)
        if before != line:
            raise FormatError(f"{' '.join(key)!r} is already in line {before}", path=path_name(path), line=line)


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
    "nuggetizer's requests: candidates of queries",
    read_requests,
    write_requests,
    lambda head: "candidates" in head.object,
)
