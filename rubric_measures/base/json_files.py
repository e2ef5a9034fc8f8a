"""Files of JSON objects, a model of pydantic each: the base of these models, files read and written.

One pydantic parse a line, errors in the file's own names. Commands that need no model of pydantic do not import this.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import atomic_writer, path_name, paused_collector
from rubric_measures.base.json_text import check_keys, json_texts, parse_json, placed, shown

T = TypeVar("T")


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
        text = f"{text}; found {shown(first['input'])}"
    if len(problems) > 1:
        text += f" (and {len(problems) - 1} more)"
    return first["loc"], text


def validate_line(
    adapter: TypeAdapter[T], data: bytes | Mapping[str, Any], *, path: str, line: int, lenient: bool = False
) -> T:
    """Validates one JSON text, or what one says; NaN and infinity pass where it is `lenient` alone.

    Raises:
        FormatError: it is not JSON, or not what the adapter describes; names file, line and field.
    """
    try:
        with paused_collector():
            row = adapter.validate_json(data) if isinstance(data, bytes) else adapter.validate_python(data)
    except ValidationError as error:
        location, text = first_problem(error)
        text, line = placed(text, line)
        raise FormatError(text, path=path, line=line, field=field_path(location)) from None
    # Models keep fields that they do not know, whatever is in them.
    if isinstance(data, bytes) and not lenient and (b"NaN" in data or b"Infinity" in data):
        parse_json(data, path=path, line=line)
    return row


def _number_as_text(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


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
        lenient: whether real files have NaN where nothing is known.
    """

    adapter: TypeAdapter[T]
    what: str
    key: Callable[[T], tuple[str, ...]] | None = None
    by_hand: bool = False
    lenient: bool = False

    def read(self, path: str | os.PathLike[str], bulk: Callable[[bytes], T] | None = None) -> list[T]:
        """The objects of a file.

        Args:
            path: the file.
            bulk: a fast decoder of most lines, which says no more than what it is asked for; what it refuses, the
                adapter reads, or says what is wrong.

        Raises:
            InputError: the file cannot be opened.
            FormatError: naming file, line and field; also when there are none, or two share a key.
        """
        return self.once(self.numbered(path, bulk), path)

    def numbered(self, path: str | os.PathLike[str], bulk: Callable[[bytes], T] | None = None) -> list[tuple[int, T]]:
        """The (line number, object) pairs of a file, whatever their keys; see `read`."""
        name = path_name(path)
        with paused_collector():
            rows = [(line, self._valid(data, name, line, bulk)) for line, data in json_texts(name)]
        if not rows:
            raise FormatError(f"is empty; expected {self.what}, one JSON object a line", path=name)
        return rows

    def _valid(self, data: bytes, name: str, line: int, bulk: Callable[[bytes], T] | None) -> T:
        if bulk is not None:
            with contextlib.suppress(ValueError, RecursionError):
                return bulk(data)
        row = validate_line(self.adapter, data, path=name, line=line, lenient=self.lenient)
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
