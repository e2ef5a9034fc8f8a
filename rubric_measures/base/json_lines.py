"""JSON lines of one model: reading with file, line and field in every error, writing what was read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BeforeValidator, TypeAdapter

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import atomic_writer, iter_lines, path_name
from rubric_measures.base.json_models import validate_line

__all__ = ["JsonLines", "TextId"]

T = TypeVar("T")


def _number_as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


# An id that some files write as a number.
TextId = Annotated[str, BeforeValidator(_number_as_text)]


@dataclass(frozen=True)
class JsonLines(Generic[T]):
    """Files of one JSON object a line.

    Attributes:
        adapter: what each line must be.
        what: the objects in the plural, for errors.
        key: what no two objects may share; None where nothing is.
    """

    adapter: TypeAdapter[T]
    what: str
    key: Callable[[T], tuple[str, ...]] | None = None

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
        rows = [(line, validate_line(self.adapter, data, path=name, line=line)) for line, data in iter_lines(name)]
        if not rows:
            raise FormatError(f"is empty; expected {self.what}, one JSON object a line", path=name)
        return rows

    def once(self, rows: Iterable[tuple[int, T]], path: str | os.PathLike[str]) -> list[T]:
        """The objects without their lines; a `FormatError` where two share a key."""
        first: dict[tuple[str, ...], int] = {}
        objects = []
        for line, row in rows:
            if self.key is not None and (before := first.setdefault(self.key(row), line)) != line:
                problem = f"{' '.join(self.key(row))!r} is already in line {before}"
                raise FormatError(problem, path=path_name(path), line=line)
            objects.append(row)
        return objects

    def write(self, path: str | os.PathLike[str], rows: Iterable[T]) -> None:
        """Writes objects with the fields that they were made with, unknown ones included.

        Raises:
            InputError: the file cannot be written, or there is nothing to write.
        """
        empty = True
        with atomic_writer(path) as stream:
            for row in rows:
                empty = False
                stream.write(self.adapter.dump_json(row, by_alias=True, exclude_unset=True).decode("utf-8") + "\n")
            if empty:
                raise InputError(f"{path_name(path)}: there are no {self.what} to write")
