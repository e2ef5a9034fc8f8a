"""JSON and JSON lines, read with their places and written; the base of the pydantic models of files.

One pydantic parse a line, errors in the file's own names. Commands that need no model of pydantic do not import this.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import from_json

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import atomic_writer, iter_lines, path_name, paused_collector

T = TypeVar("T")

_PLACE = re.compile(r" at line (\d+) column (\d+)")
_TOKEN = re.compile(r'[{}]|(?P<text>"(?:[^"\\]|\\.)*")(?P<colon>\s*:)?', re.DOTALL)


def field_path(location: Sequence[int | str]) -> str:
    """The path of a field as the user sees it in the file.

    >>> field_path((1, 3, "paragraph_data", "rankings", 0, "rank"))
    '[1][3].paragraph_data.rankings[0].rank'
    """
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return path.removeprefix(".")


def first_problem(error: ValidationError) -> tuple[tuple[int | str, ...], str]:
    """The first error of a validation: (where, one line that says what was expected and what was found)."""
    problems = error.errors(include_url=False, include_context=False)
    first = problems[0]
    text = first["msg"].removeprefix("Value error, ")
    if first["type"] == "missing":
        text = "required field is missing"
    elif first["type"] == "json_invalid":
        text = text.replace("Invalid JSON:", "is not JSON:")
    elif first["type"] != "value_error":
        text = f"{text}; found {_short(first['input'])}"
    if len(problems) > 1:
        text += f" (and {len(problems) - 1} more)"
    return first["loc"], text


def _short(value: Any) -> str:
    text = " ".join(repr(value).split()) if not isinstance(value, list | dict) else ""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"an object with {', '.join(map(repr, list(value)[:4])) or 'no fields'}"
    return text if len(text) <= 60 else text[:57] + "…"


def validate_line(adapter: TypeAdapter[T], data: bytes | str | Mapping[str, Any], *, path: str, line: int) -> T:
    """Validates one JSON text, or what one says.

    Raises:
        FormatError: it is not JSON, or not what the adapter describes; names file, line and field.
    """
    try:
        with paused_collector():
            return adapter.validate_json(data) if isinstance(data, bytes | str) else adapter.validate_python(data)
    except ValidationError as error:
        location, text = first_problem(error)
        text, line = _with_line(text, line)
        raise FormatError(text, path=path, line=line, field=field_path(location)) from None


def _with_line(problem: str, line: int) -> tuple[str, int]:
    """A parser's message without the line that it names, and that line where no other is known."""
    found = _PLACE.search(problem)
    if found is None:
        return problem, line
    return problem.replace(found[0], f" at column {found[2]}"), line or int(found[1])


def parse_json(data: bytes | str, *, path: str, line: int = 0) -> Any:
    """Parses one JSON text without a model; NaN, infinity and lone surrogates are refused.

    Raises:
        FormatError: it is not JSON; names file and line.
    """
    try:
        return from_json(data, allow_inf_nan=False)
    except ValueError as error:
        text, line = _with_line(f"is not JSON: {error}", line)
        raise FormatError(text, path=path, line=line) from None


def json_texts(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """The JSON texts of a file, each with the line that it begins in, unread but for their ends.

    A text a line; or the elements of one list; or texts over several lines, one behind the other. A file that begins
    as no JSON is given line by line.

    Raises:
        InputError: the file cannot be opened.
        FormatError: a list, or a text over several lines, is not JSON; names file and line.
    """
    name = path_name(path)
    lines = iter_lines(name)
    first = next(lines, None)
    if first is None:
        return
    start = first[1].lstrip()[:1]
    if start != b"[" and (start != b"{" or _is_json(first[1])):
        yield first
        yield from lines
        return
    text, at = bytearray(), 1
    for number, line in itertools.chain([first], lines):
        text += b"\n" * (number - at) + line
        at = number
    try:
        yield from scanned_json(text.decode("utf-8"), name)
    except UnicodeDecodeError as error:
        line_number = text.count(b"\n", 0, error.start) + 1
        raise FormatError("is not UTF-8; convert the file first", path=name, line=line_number) from None


def _is_json(data: bytes) -> bool:
    try:
        from_json(data)
    except ValueError:
        return False
    return True


def scanned_json(text: str, name: str) -> Iterator[tuple[int, bytes]]:
    """The JSON texts of a text, or the elements of its one list, as `json_texts` gives those of a file."""
    decoder = json.JSONDecoder()
    place, counted, line = 0, 0, 1

    def skip(mark: str = "") -> str:
        """Goes over white space, and `mark` where it is next; gives the next character."""
        nonlocal place
        while place < len(text) and text[place].isspace():
            place += 1
        if mark and text[place : place + 1] == mark:
            place += 1
            return skip()
        return text[place : place + 1]

    in_list = skip() == "["
    if in_list:
        skip("[")
    while (found := skip()) and not (in_list and found == "]"):
        line += text.count("\n", counted, place)
        counted = start = place
        try:
            _, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            at = getattr(error, "pos", place)
            problem = f"is not JSON: {getattr(error, 'msg', 'is nested too deep')}"
            raise FormatError(problem, path=name, line=line + text.count("\n", counted, at)) from None
        yield line, text[start:place].encode("utf-8")
        if in_list and skip() not in ("]", ","):
            break
        skip("," if in_list else "")
    if in_list and found != "]":
        problem = "is not JSON: expected ',' or ']' after an element of the list"
        raise FormatError(problem, path=name, line=text.count("\n", 0, place) + 1)


def check_keys(data: bytes | str, *, path: str, line: int = 0) -> None:
    """Refuses an object that names a key twice; parsers keep the last in silence.

    It parses the text once more, and slower, so it is for files that are written by hand: queries, test banks, nuggets,
    rubrics, leaderboards, prices.

    Raises:
        FormatError: a key comes twice; names file and line.
    """
    found = False

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        fields = dict(pairs)
        found = found or len(fields) < len(pairs)
        return fields

    # What is no JSON is its parser's to refuse.
    with contextlib.suppress(ValueError, RecursionError):
        json.loads(data, object_pairs_hook=note)
    if found:
        text = data if isinstance(data, str) else data.decode("utf-8")
        key, place = _second_key(text)
        problem = f"the key {key[:60]!r} comes twice in one object; keep one"
        raise FormatError(problem, path=path, line=line or text.count("\n", 0, place) + 1)


def _second_key(text: str) -> tuple[str, int]:
    """The first key of a JSON text that its object has already, and where it stands."""
    objects: list[set[str]] = []
    for found in _TOKEN.finditer(text):
        if found[0] in "{}":
            objects = [*objects, set()] if found[0] == "{" else objects[:-1]
        elif found["colon"]:
            key = json.loads(found["text"])
            if key in objects[-1]:
                return key, found.start()
            objects[-1].add(key)
    raise AssertionError("no key comes twice")


def _number_as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


# An id; some files write it as a number.
TextId = Annotated[str, BeforeValidator(_number_as_text)]


def write_texts(path: str | os.PathLike[str], texts: Iterable[str], what: str) -> None:
    """Writes texts, one a line; `what` is their plural, for the error.

    Raises:
        InputError: the file cannot be written, or there is nothing to write.
    """
    empty = True
    with atomic_writer(path) as stream:
        for text in texts:
            empty = False
            stream.write(text + "\n")
        if empty:
            raise InputError(f"{path_name(path)}: there are no {what} to write")


@dataclass(frozen=True)
class JsonLines(Generic[T]):
    """Files of one JSON object a line; what is pretty-printed, one object over several lines, is read too.

    Attributes:
        adapter: what each object must be.
        what: the objects in the plural, for errors.
        key: what no two objects may share; None where nothing is.
        by_hand: whether people edit such files: then no object may name a field twice.
    """

    adapter: TypeAdapter[T]
    what: str
    key: Callable[[T], tuple[str, ...]] | None = None
    by_hand: bool = False

    def read(self, path: str | os.PathLike[str]) -> list[T]:
        """The objects of a file.

        Raises:
            InputError: the file cannot be opened.
            FormatError: naming file, line and field; also when there are none, or two share a key.
        """
        return self.once(self.numbered(path), path)

    def numbered(self, path: str | os.PathLike[str]) -> list[tuple[int, T]]:
        """The (line number, object) pairs of a file, whatever their keys."""
        name = path_name(path)
        rows = [(line, self._valid(data, name, line)) for line, data in json_texts(name)]
        if not rows:
            raise FormatError(f"is empty; expected {self.what}, one JSON object a line", path=name)
        return rows

    def _valid(self, data: bytes, name: str, line: int) -> T:
        row = validate_line(self.adapter, data, path=name, line=line)
        if self.by_hand:
            check_keys(data, path=name, line=line)
        return row

    def once(self, rows: Iterable[tuple[int, T]], path: str | os.PathLike[str]) -> list[T]:
        """The objects without their lines; a `FormatError` where two share a key."""
        first: dict[tuple[str, ...], int] = {}
        objects = []
        for line, row in rows:
            key = self.key(row) if self.key is not None else None
            if key in first:
                problem = f"{' '.join(key)!r} is already in line {first[key]}"
                raise FormatError(problem, path=path_name(path), line=line)
            if key is not None:
                first[key] = line
            objects.append(row)
        return objects

    def write(self, path: str | os.PathLike[str], rows: Iterable[T]) -> None:
        """Writes objects with the fields that they were made with, unknown ones included.

        Raises:
            InputError: the file cannot be written, or there is nothing to write.
        """
        dumped = (self.adapter.dump_json(row, by_alias=True, exclude_unset=True).decode("utf-8") for row in rows)
        write_texts(path, dumped, self.what)


class Record(BaseModel):
    """Base of the models of files: frozen, no coercion, unknown fields kept, our names and the file's accepted."""

    model_config = ConfigDict(
        extra="allow",
        frozen=True,
        strict=True,
        populate_by_name=True,
        allow_inf_nan=False,
        ser_json_inf_nan="constants",
    )
