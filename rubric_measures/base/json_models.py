"""Validated JSON: one pydantic parse a line, its errors as one line in the file's own names, collector paused."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import paused_collector

__all__ = ["check_keys", "field_path", "first_problem", "parse_json", "validate_line"]

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
    elif first["type"] not in ("json_invalid", "value_error"):
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
        raise FormatError(text, path=path, line=line, field=field_path(location)) from None


def parse_json(data: bytes | str, *, path: str, line: int = 0) -> Any:
    """Parses one JSON text without a model; NaN, infinity and lone surrogates are refused.

    Raises:
        FormatError: it is not JSON; names file and line.
    """
    try:
        return from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise FormatError(f"is not JSON: {error}", path=path, line=line) from None


def check_keys(data: bytes | str, *, path: str, line: int = 0) -> None:
    """Refuses an object that names a key twice; parsers keep the last in silence.

    It parses the text once more, and slower, so it is for files that people write: queries and test banks.

    Raises:
        FormatError: a key comes twice; names file and line.
    """

    twice: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            twice.extend(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        return fields

    # What is no JSON is its parser's to refuse.
    with contextlib.suppress(ValueError, RecursionError):
        json.loads(data, object_pairs_hook=note)
    if twice:
        raise FormatError(f"the key {twice[0]!r} comes twice in one object; keep one", path=path, line=line)
