"""What a format is; lines with separators.

What a file format is: what its files hold, how they are read, written, and told by their beginning.

Tables with a header, cells parted by commas, semicolons or tabs, as spreadsheets and data frames write them.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from msgspec import Struct

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import check_readable_twice, note_unfinished, open_binary, path_name, read_text
from rubric_measures.base.json_text import json_at, parse_json

PathName: TypeAlias = str | os.PathLike[str]
# What files hold; `docs/plugins.md` says what each is in Python.
Kind = Literal[
    "records", "qrels", "item qrels", "judgments", "runs", "bank", "nuggets", "assignments", "requests", "rubrics",
    "nugget bank", "nugget bank lists", "queries", "topics", "reports", "answers", "evaluations", "games",
    "leaderboard", "support labels", "graded answers", "support judgments", "argue judgments", "grades",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
# The forms of leaderboard files; `formats.leaderboards` reads and writes them.
Form = Literal[
    "ir_measures", "tot", "rag4reports", "trec_eval", "query", "ranking", "jsonl", "wide", "workbench", "dict", "json"
]
FORMS: tuple[Form, ...] = get_args(Form)
# The name that the Rubric workbench gives the row of the best possible score. It is no run.
OVERALL = "_overall_"


class Head(Struct, frozen=True, dict=True):
    """The beginning of a file, by which its format is told.

    Attributes:
        name: the file, for messages.
        first: the first line that is not empty, unpacked where the file is gzipped; the first JSON object where objects
            stand over several lines, or several on one.
        more: what follows, up to 64 KiB.
    """

    name: str
    first: bytes
    more: bytes = b""

    @cached_property
    def line(self) -> str:
        """The first line as text, without its end."""
        return self.first.decode("utf-8", "replace").rstrip("\r\n")

    @cached_property
    def rest(self) -> str:
        """What follows the first line, as text."""
        return self.more.decode("utf-8", "replace")

    @cached_property
    def is_json(self) -> bool:
        """Whether the file begins as a JSON object or list."""
        return self.line.lstrip()[:1] in ("{", "[")

    @cached_property
    def value(self) -> Any:
        """The JSON value of the first line; None where it is none."""
        try:
            return self.parsed() if self.is_json else None
        except FormatError:
            return None

    @property
    def object(self) -> Mapping[str, Any]:
        """The JSON object of the first line; empty where it is none."""
        return self.value if isinstance(self.value, dict) else {}

    def has(self, *keys: bytes) -> bool:
        """Whether the first line begins a JSON object and names all these keys."""
        return self.first.lstrip().startswith(b"{") and all(b'"%b"' % key in self.first for key in keys)

    @property
    def goes_on(self) -> bool:
        """Whether the first line begins a JSON text of several lines."""
        ends = self.line.strip() in ("[", "{") or self.line.rstrip().endswith((",", "{", "["))
        return self.is_json and ends and self.value is None

    def joined(self, further: bytes) -> Head:
        """This beginning with the first object on a line of its own; as it is where that is longer than all of this.

        Args:
            further: what follows `more`.
        """
        try:
            text = (self.first + self.more + further).decode("utf-8", "ignore").lstrip()
            found, end = json_at(text)
        except (ValueError, RecursionError):
            return self
        return Head(self.name, json.dumps(found).encode("utf-8"), text[end : end + (1 << 16)].encode("utf-8"))

    def parsed(self) -> Any:
        """The JSON value of the first line.

        Raises:
            FormatError: it is none.
        """
        return parse_json(self.first, path=self.name, line=1)


class Format(NamedTuple):
    """One file format.

    Attributes:
        kind: what a file holds. Formats of one kind convert into each other without loss of what both can hold.
        description: one line.
        read: path -> content; None where it is only written.
        write: (path, content); None where it is only read.
        recognise: whether a file that begins so has the format; None where that cannot be told.
    """

    kind: Kind
    description: str
    read: Callable[[PathName], Any] | None = None
    write: Callable[[PathName, Any], None] | None = None
    recognise: Callable[[Head], bool] | None = None


def write_objects(path: PathName, rows: Iterable[Mapping[str, Any]], what: str) -> None:
    """Writes JSON objects, one a line, with all their fields; `what` is their plural, for the error.

    Raises:
        InputError: the file cannot be written, or there is nothing to write.
    """
    # Most uses of this package write no JSON lines, and pydantic takes its time.
    from rubric_measures.base.json_files import write_texts

    write_texts(path, (json.dumps(row, ensure_ascii=False) for row in rows), what)


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a value; others are not written."""
    return {name: value for name, value in fields.items() if value is not None}


# The longest cell; an answer or a list of contexts is longer than what csv allows by itself.
_LONGEST = 1 << 30
_DELIMITERS = (",", "\t", ";")


def cells_of(line: str) -> list[str]:
    """The cells of one line, stripped; none where it is no line of a table."""
    try:
        reader = csv.reader([line], delimiter=delimiter_of(line), skipinitialspace=True)
        return [cell.strip() for cell in next(reader, [])]
    except csv.Error:
        # Lines of other files can hold what no header does: a carriage return, or a text of any length.
        return []


def delimiter_of(header: str) -> str:
    """What parts the cells of a header: of comma, tab and semicolon the one that gives most cells; comma of equals."""

    def cells(delimiter: str) -> int:
        try:
            return len(next(csv.reader([header], delimiter=delimiter), []))
        except csv.Error:
            return 0

    return max(_DELIMITERS, key=cells)


def read_delimited(
    path: PathName, columns: Sequence[str] = (), *, skip_spaces: bool = False
) -> tuple[tuple[str, ...], list[tuple[int, tuple[str, ...]]]]:
    """The header of a table, stripped, and its rows: (line in the file, as many cells); empty lines are passed over.

    Args:
        path: the file.
        columns: what the header must name, each once.
        skip_spaces: whether blanks after a delimiter belong to no cell (`qid, "a text"`).

    Raises:
        InputError: the file cannot be opened.
        FormatError: it is empty or no table, the header lacks a column, or a row has more or fewer cells than the
            header; names file and line.
    """
    name, text = path_name(path), read_text(path)
    if not text.strip():
        raise FormatError("is empty; expected a header and rows", path=name)
    before = csv.field_size_limit(_LONGEST)
    first = text.lstrip("\n").partition("\n")[0]
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter_of(first), strict=True, skipinitialspace=skip_spaces
    )
    header: tuple[str, ...] = ()
    rows: list[tuple[int, tuple[str, ...]]] = []
    try:
        line = 1
        for cells in reader:
            # Where the row begins: a cell may go over many lines.
            start, line = line, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = tuple(cell.strip() for cell in cells)
                missing = [column for column in columns if column not in header]
                if missing or (columns and len(set(header)) < len(header)):
                    problem = f"lacks {', '.join(missing)}" if missing else "names a column twice"
                    raise FormatError(f"the header {problem}; expected {','.join(columns)}", path=name, line=start)
            elif len(cells) != len(header):
                problem = f"{len(cells)} cells; the header has {len(header)} (quote texts that hold a delimiter)"
                raise FormatError(problem, path=name, line=start)
            else:
                rows.append((start, tuple(cells)))
    except csv.Error as error:
        raise FormatError(f"is no table ({error})", path=name, line=reader.line_num) from None
    finally:
        csv.field_size_limit(before)
    note_unfinished(text, name)
    return header, rows


def head_of(path: PathName) -> Head:
    """The beginning of a file.

    Raises:
        InputError: the file cannot be opened, or is a pipe, which can be read once only.
        FormatError: it is empty.
    """
    name = path_name(path)
    check_readable_twice(name)
    with open_binary(path) as stream:
        first = stream.read(3).removeprefix(b"\xef\xbb\xbf") + stream.readline(1 << 24)
        while first and first.isspace():
            first = stream.readline(1 << 24)
        rest = stream.read(1 << 16)
        head = Head(name, first, rest)
        if first.lstrip().startswith(b"{") and head.value is None:
            head = head.joined(stream.read(1 << 24))
    if not first.strip():
        raise FormatError("is empty", path=name)
    return head
