"""Tables of answers, a row an answer: CSV, TSV, JSON, JSON lines, parquet, or rows in memory.

The column names of ragas, deepeval, promptfoo and Hugging Face datasets are known; other names are said by the user.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, get_args

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import path_name, peek_head
from rubric_measures.base.json_text import json_texts, parse_json
from rubric_measures.base.plugins import require
from rubric_measures.formats.base import PathName, read_delimited
from rubric_measures.types.entities import canonical_json

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
    head = peek_head(path)
    if not head.strip():
        raise FormatError("is empty; expected a table with a row an answer", path=name)
    if head.startswith(b"PAR1"):
        return answer_rows(_parquet_rows(path, name), columns, name)
    if head.lstrip()[:1] in (b"{", b"["):
        return answer_rows(_json_rows(path, name), columns, name)
    header, rows = read_delimited(path)
    wide = [place for place, column in enumerate(header) if _WIDE.match(column)]
    if wide and "answer" not in (columns or {}):
        return answer_rows(
            _unpivoted(header, rows, wide), {"run": "system", **(columns or {}), "answer": "response"}, name
        )
    # Of a name that comes twice the first one counts.
    places = {column: header.index(column) for column in header}
    return answer_rows(
        [(line, {column: cells[place] for column, place in places.items()}) for line, cells in rows],
        columns,
        name,
    )


def _parquet_rows(path: PathName, name: str) -> list[tuple[int, dict[str, Any]]]:
    parquet = require("pyarrow.parquet", "parquet")
    try:
        rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot be read as parquet ({str(error).splitlines()[0]:.120})", path=name) from None
    return [(number, _flat(row)) for number, row in enumerate(rows, 1)]


def _json_rows(path: PathName, name: str) -> list[tuple[int, dict[str, Any]]]:
    found: list[tuple[int, Any]] = [(line, parse_json(data, path=name, line=line)) for line, data in json_texts(path)]
    if len(found) == 1 and isinstance(found[0][1], dict):
        found = _inside(*found[0])
    rows: list[tuple[int, dict[str, Any]]] = []
    for line, row in found:
        if not isinstance(row, dict):
            raise FormatError(f"expected an object with an answer, found {row!r:.40}", path=name, line=line)
        rows.append((line, _flat(row["row"] if row.keys() >= {"row", "row_idx"} else row)))
    _name_providers([row for _, row in rows])
    return rows


def _inside(line: int, value: dict[str, Any]) -> list[tuple[int, Any]]:
    """The rows that one object holds: lists that programs wrap, or columns; else it is a row itself."""
    inner = value.get("results")
    if isinstance(inner, dict):
        # promptfoo wraps its results twice.
        inner = inner.get("results")
    for listed in (inner, value.get("testCases"), value.get("test_cases"), value.get("rows"), value.get("data")):
        if isinstance(listed, list) and listed and all(isinstance(row, dict) for row in listed):
            return list(enumerate(listed, 1))
    cells = list(value.values())
    if cells and all(isinstance(column, list) for column in cells) and len({len(column) for column in cells}) == 1:
        return list(enumerate((dict(zip(value, row, strict=True)) for row in zip(*cells, strict=True)), 1))
    if cells and all(isinstance(column, dict) and column.keys() == cells[0].keys() for column in cells):
        places = list(cells[0])
        if all(place.isdigit() for place in places):
            return [(int(place) + 1, {name: column[place] for name, column in value.items()}) for place in places]
    return [(line, value)]


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
    header: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]], wide: Sequence[int]
) -> list[tuple[int, dict[str, Any]]]:
    """A row an answer, from a table with a column a system."""
    matches = {place: _WIDE.match(header[place]) for place in wide}
    told = {place: (match["provider"], match["prompt"]) for place, match in matches.items() if match}
    several = len({prompt for _, prompt in told.values()}) > 1
    names = {place: _run_name(provider, prompt, several) for place, (provider, prompt) in told.items()}
    if len(set(names.values())) < len(names):
        names = {place: f"{name} {number}" for number, (place, name) in enumerate(names.items(), 1)}
    # Behind the first system stand its grades and notes, and those of the others.
    shared = header[: wide[0]]
    return [
        (line, {**dict(zip(shared, cells, strict=False)), "system": name, "response": cells[place]})
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
            return _text(value)

        query = text("query").strip()
        if not query:
            raise FormatError("is empty; every row needs its question", path=name, line=line, field=chosen["query"])
        texts = (_texts(cells.get("contexts")), _texts(cells.get("reference")))
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
        known.setdefault(_plain(column), column)
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


def _plain(column: str) -> str:
    """`Actual Output`, `actualOutput` and `response.output` as `actual_output` and `response_output`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column)
    return re.sub(r"[^a-z0-9]+", "_", parted.lower()).strip("_")


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return canonical_json(value) if isinstance(value, dict) else str(value)


def _texts(value: Any) -> tuple[str, ...]:
    """The texts of a list, or of a cell that holds one as JSON or as Python writes it; else the one text."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _listed(value)
    if hasattr(value, "tolist"):
        # An array of a data frame.
        value = value.tolist()
    if not isinstance(value, list | tuple):
        value = [value]
    texts = [_text(_of_document(one)).strip() for one in value]
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
