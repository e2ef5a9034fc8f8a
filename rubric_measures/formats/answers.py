"""Generated answers: of reports, of plain files with a query, a run and a text, and of tables that say the question.

Tables of answers, a row an answer: CSV, TSV, JSON, JSON lines, parquet, or rows in memory. The column names of ragas,
deepeval and Hugging Face datasets are known; other names are said by the user.
"""

from __future__ import annotations

import ast
import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, get_args

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import path_name, peek_head
from rubric_measures.base.json_text import parse_json
from rubric_measures.formats.base import Format, Head, PathName, head_of
from rubric_measures.formats.plain import PLAIN_ANSWERS, QUESTION_BANKS, QUESTION_RUNS
from rubric_measures.formats.reports import (
    REPORT_LINES,
    Answer,
    answer_of_report,
    is_submission,
    say_contradictions,
    say_lost_positions,
)
from rubric_measures.formats.specs import table
from rubric_measures.formats.tables import cells_of, plain_name, rows_of
from rubric_measures.types.entities import canonical_json


def read_answers(path: PathName, keep_lost: bool = False) -> list[Answer]:
    """The answers of a file, told apart by content: reports, or rows that say the query, the run and the text.

    Such rows stand in JSON lines, a JSON list, CSV, or TSV with or without a header; their fields are `query_id` (or
    `qid`, `topic_id`, …), `run_id` (or `agent`, `system`, …) and `text` (or `answer`, `response`).

    Args:
        path: the file.
        keep_lost: see `CitedReport.cited`.

    Raises:
        InputError: the file cannot be opened.
        FormatError: naming file, line and field; also when a run answers a query twice, or there are no answers.
    """
    name = path_name(path)
    if not peek_head(path).strip():
        return PLAIN_ANSWERS.read(path)
    head = head_of(path)
    first = head.object
    if not head.is_json or isinstance(first.get("nugget_bank"), list):
        form = QUESTION_BANKS if head.is_json else QUESTION_RUNS if QUESTION_RUNS.recognise(head) else PLAIN_ANSWERS
        return form.read(path)
    is_report = "metadata" in first or any(isinstance(first.get(one), list) for one in ("answer", "responses"))
    if not (is_report or is_submission(first)):
        return PLAIN_ANSWERS.read(path)
    reports = REPORT_LINES.read(path)
    say_lost_positions(reports, name)
    say_contradictions(reports)
    return [answer_of_report(report, keep_lost) for report in reports]


def is_answer_header(line: str) -> bool:
    """Whether a line names the columns of plain answers."""
    cells = cells_of(line)
    return len(cells) > 2 and PLAIN_ANSWERS.is_header(cells)


def _is_answers(head: Head) -> bool:
    if not head.is_json:
        return {"query_id", "run_id", "text"} <= set(cells_of(head.line))
    found = head.object
    return isinstance(found.get("answer"), str) or ("run_id" in found and isinstance(found.get("text"), str))


ANSWERS = Format("answers", PLAIN_ANSWERS.description, read_answers, PLAIN_ANSWERS.write, _is_answers)

Role = Literal["query", "answer", "reference", "contexts", "id", "run"]
ROLES: tuple[Role, ...] = get_args(Role)

# What each role is called, in small letters with underscores. Of these the first that a table has counts; of questions,
# answers and references there may be only one.
_NAMES: Mapping[Any, tuple[str, ...]] = table("answer table")
_ALONE: tuple[Role, ...] = ("query", "answer", "reference")
# In tables without another answer it is what the system said; beside one it is the reference.
_EITHER = "answer"
_COULD_BE_EITHER: tuple[Role, ...] = ("answer", "reference")


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
    name, _, found, _ = rows_of(source, "answers")
    said = dict(columns or {})
    rows = [(line, _flat(row["row"] if isinstance(row.get("row"), dict) else row)) for line, row in found]
    present = list(dict.fromkeys(column for _, row in rows for column in row))
    if lacking := [one for one in systems if one not in present]:
        problem = f"has no column {lacking[0]!r} with the answers of a system; it has {', '.join(present[:40])}"
        raise FormatError(problem, path=name, settings=("systems",))
    if systems:
        # A row an answer, beside what all systems share.
        shared = [column for column in present if column not in systems]
        rows = [
            (line, {**{one: cells.get(one) for one in shared}, "system": system, "response": cells.get(system)})
            for line, cells in rows
            for system in systems
        ]
        said = {"run": "system", **said, "answer": "response"}
    return _answer_rows(rows, said, name)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without objects inside: `response.output`."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        flat |= {f"{name}.{inner}": one for inner, one in value.items()} if isinstance(value, dict) else {name: value}
    return flat


def _answer_rows(listed: Sequence[tuple[int, Mapping[str, Any]]], columns: Mapping[str, str], name: str) -> AnswerTable:
    if not listed:
        raise FormatError("holds no rows; expected a row an answer", path=name)
    present = list(dict.fromkeys(column for _, row in listed for column in row))
    chosen = _chosen(present, columns, name)
    made: list[AnswerRow] = []
    for line, row in listed:
        said: dict[Role, Any] = {}
        for role in ROLES:
            value = row.get(chosen[role]) if role in chosen else None
            if role in ("contexts", "reference"):
                said[role] = _cell_texts(value)
            elif isinstance(value, list | tuple):
                raise FormatError("is a list; expected a text", path=name, line=line, field=chosen[role])
            else:
                said[role] = _cell_text(value) if role == "answer" else _cell_text(value).strip()
        if not said["query"]:
            raise FormatError("is empty; every row needs its question", path=name, line=line, field=chosen["query"])
        query, answer, reference, contexts, query_id, run_id = said.values()
        made.append(AnswerRow(line, query, answer, query_id, run_id, contexts, reference))
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
    known = {plain_name(column): column for column in reversed(present)}
    taken = set(said.values())
    chosen: dict[Role, str] = {role: said[role] for role in ROLES if said.get(role)}
    for role, names in _NAMES.items():
        found = [known[one] for one in names if one in known and known[one] not in taken and role not in said]
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
    usual = {"query": _NAMES["query"], "answer": (_EITHER, *_NAMES["answer"])}
    lacking = [role for role in usual if role not in chosen]
    if lacking:
        needed = "; ".join(f"{role}: one of {', '.join(usual[role])}" for role in lacking)
        problem = f"has no column of the {' and the '.join(lacking)}; it has {listed}; expected {needed}, or say which"
        # A table may have a column a system in the place of one of answers.
        settings = ("columns", "systems") if lacking == ["answer"] else ("columns",)
        raise FormatError(problem, path=name, settings=settings)
    return chosen


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
    for read in (partial(parse_json, lenient=True), ast.literal_eval):
        if isinstance(value, str) and value.lstrip().startswith("["):
            with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                found = read(value)
                value = found if isinstance(found, list) else value
    if hasattr(value, "tolist"):
        # An array of a data frame.
        value = value.tolist()
    texts = [_cell_text(_of_document(one)).strip() for one in (value if isinstance(value, list | tuple) else [value])]
    return tuple(text for text in texts if text)


def _of_document(value: Any) -> Any:
    """The text of a document that stands as an object; anything else as it is."""
    if isinstance(value, dict):
        return next((value[name] for name in ("text", "page_content", "content") if name in value), value)
    return value
