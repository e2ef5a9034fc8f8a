"""What a file format is: what its files hold, how they are read, written, and told by their beginning; rows of ids."""

from __future__ import annotations

import contextlib
import csv
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from msgspec import Struct

from rubric_measures.base.errors import CONTROL, FormatError, InputError, warn
from rubric_measures.base.files import atomic_writer, check_readable_twice, open_binary, path_name, peek_head
from rubric_measures.base.json_text import parse_json, scanned_json

PathName: TypeAlias = str | os.PathLike[str]
# What files hold; `docs/plugins.md` says what each is in Python.
Kind = Literal[
    "records", "qrels", "item qrels", "judgments", "runs", "bank", "assignments", "requests", "queries",
    "reports", "answers", "games", "leaderboard", "support labels", "graded answers",
    "support judgments", "argue judgments", "assessments", "experiment", "grades",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
# The long forms of leaderboard files; `formats.leaderboards` reads them. All others show what they are.
Form = Literal["ir_measures", "tot", "rag4reports", "trec_eval", "query", "ranking", "scores"]
_DELIMITERS = (",", ";")
# Spaces part the columns of TREC files, and a terminal would obey the others.
_SPACE = re.compile(r"[\s" + CONTROL[1:])
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
            return parse_json(self.first) if self.is_json else None
        except FormatError:
            return None

    @property
    def object(self) -> Mapping[str, Any]:
        """The JSON object of the first line, or the first one of a list; empty where there is none."""
        found = self.value[0] if isinstance(self.value, list) and self.value else self.value
        return found if isinstance(found, dict) else {}

    def tells(self, told: Iterable[str]) -> bool:
        """Whether the first object has some fields: of `a|b` one, `a.b` inside, and there in the first of a list."""

        def has(value: Any, path: str) -> bool:
            name, _, inner = path.partition(".")
            found = value[0] if isinstance(value, list) and value else value
            return isinstance(found, dict) and name in found and (not inner or has(found[name], inner))

        return all(any(has(self.object, one) for one in name.split("|")) for name in told)


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


def say_left_out(path: PathName, lost: Iterable[str]) -> None:
    """Says in one note what a file that was written has no place for; nothing where that is nothing."""
    if said := ", ".join(lost):
        warn("%s: left out, as such files have no place for it: %s", path_name(path), said)


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a value; others are not written."""
    return {name: value for name, value in fields.items() if value is not None}


def is_number(token: str) -> bool:
    """Whether a text is a number as other programs write one: Python also takes `2_0`, and the digits of any script."""
    try:
        float(token)
    except ValueError:
        return False
    return token.isascii() and "_" not in token


def head_of(path: PathName) -> Head:
    """The beginning of a file; standard input can be read after it.

    Raises:
        InputError: the file cannot be opened, or is a pipe, which can be read once only.
        FormatError: it is empty.
    """
    name = path_name(path)
    if name == "-":
        # It can be read after that.
        first, _, rest = peek_head(name).lstrip().partition(b"\n")
        return Head(name, first, rest)
    check_readable_twice(name)
    with open_binary(path) as stream:
        first = stream.read(3).removeprefix(b"\xef\xbb\xbf") + stream.readline(1 << 24)
        while first and first.isspace():
            first = stream.readline(1 << 24)
        rest = stream.read(1 << 16)
        head = Head(name, first, rest)
        if head.is_json and head.value is None:
            # The first object, perhaps of a list, stands over several lines, or several on one.
            text = (first + rest + stream.read(1 << 24)).decode("utf-8", "ignore")
            with contextlib.suppress(FormatError):
                _, found = next(scanned_json([text.encode()], name), (0, b""))
                head = Head(name, found, rest) if found[:1] == b"{" else head
    if not first.strip():
        raise FormatError("is empty", path=name)
    return head


def cells_of(line: str) -> list[str]:
    """The cells of one line, stripped; none where it is no line of a table."""
    return [cell.strip() for cell in _split(line, delimiter_of(line))]


def delimiter_of(header: str) -> str:
    """What parts the cells of a header: a tab where there is one, else of comma and semicolon what gives more cells."""
    return "\t" if "\t" in header else max(_DELIMITERS, key=lambda one: len(_split(header, one)))


def _split(line: str, delimiter: str) -> list[str]:
    # Lines of other files can hold what no header does: a carriage return, or a text of any length.
    with contextlib.suppress(csv.Error):
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    return []


# A line of a damaged file may have a hundred thousand cells, and all formats look at it.
@lru_cache(maxsize=1024)
def plain_name(column: str) -> str:
    """`Actual Output`, `actualOutput` and `response.output` as `actual_output` and `response_output`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column)
    return re.sub(r"[^a-z0-9]+", "_", parted.lower()).strip("_")


# Rows repeat the ids of queries, documents and items.
@lru_cache(1 << 16)
def written_id(identifier: str) -> str:
    """The id as TREC files have it: spaces and control characters as `%20` and the like.

    >>> written_id("my answer")
    'my%20answer'
    """
    if identifier.isprintable() and " " not in identifier:
        return identifier
    return _SPACE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), identifier)


def write_columns(path: PathName, rows: Iterable[Sequence[str | float]], mark: str = " ") -> None:
    """Writes rows of ids and numbers, with a mark between the columns.

    Spaces inside an id are written as `%20` and the like, said once with the count.

    Raises:
        InputError: the file cannot be written, or an id is empty.
    """
    changed: dict[str, str] = {}
    with atomic_writer(path) as stream:
        for row in rows:
            cells = [written_id(one) if isinstance(one, str) else repr(one) for one in row]
            if "" in cells:
                raise InputError("an empty id cannot be written to a TREC file")
            line = mark.join(cells)
            if "%" in line:
                changed.update(
                    (str(one), said) for one, said in zip(row, cells, strict=True) if said not in (one, repr(one))
                )
            stream.write(f"{line}\n")
    text = "%s: %d ids hold spaces or control characters and were percent-encoded (%r became %s, another id)"
    warn(text, path_name(path), len(changed), *next(iter(changed.items()), ("", "")))
