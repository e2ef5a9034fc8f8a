"""JSON lines of one model: reading with file, line and field in every error, writing what was read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, TypeAdapter

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import atomic_writer, iter_lines, path_name
from rubric_measures.base.json_models import validate_line

__all__ = ["TextId", "read_json_lines", "write_json_lines"]

T = TypeVar("T")


def _number_as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


# An id that some files write as a number.
TextId = Annotated[str, BeforeValidator(_number_as_text)]


def read_json_lines(path: str | os.PathLike[str], adapter: TypeAdapter[T], what: str) -> list[tuple[int, T]]:
    """The (line number, object) pairs of a file of JSON lines.

    Args:
        path: the file.
        adapter: what each line must be.
        what: the objects in the plural, for the error of an empty file.

    Raises:
        InputError: the file cannot be opened.
        FormatError: a line is not what the adapter describes, or there are none.
    """
    name = path_name(path)
    rows = [(line, validate_line(adapter, data, path=name, line=line)) for line, data in iter_lines(name)]
    if not rows:
        raise FormatError(f"is empty; expected {what}, one JSON object a line", path=name)
    return rows


def write_json_lines(path: str | os.PathLike[str], adapter: TypeAdapter[T], rows: Iterable[T], what: str) -> None:
    """Writes objects as JSON lines with the fields that they were made with, unknown ones included.

    Raises:
        InputError: the file cannot be written, or there is nothing to write.
    """
    empty = True
    with atomic_writer(path) as stream:
        for row in rows:
            empty = False
            stream.write(adapter.dump_json(row, by_alias=True, exclude_unset=True).decode("utf-8") + "\n")
        if empty:
            raise InputError(f"{path_name(path)}: there are no {what} to write")
