"""What a file format is: what its files hold, how they are read, written, and told by their beginning."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from rubric_measures.base.errors import FormatError

__all__ = ["KINDS", "Format", "Head", "Kind", "PathName", "write_objects"]

PathName: TypeAlias = str | os.PathLike[str]
# What files hold; `docs/plugins.md` says what each is in Python.
Kind = Literal[
    "records", "qrels", "item qrels", "judgments", "runs", "bank", "nuggets", "assignments", "requests", "rubrics",
    "nugget bank", "nugget bank lists", "queries", "topics", "reports", "answers", "evaluations", "games",
    "leaderboard", "support labels", "graded answers", "support judgments", "argue judgments", "grades",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Head:
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
            found, end = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            return self
        return Head(self.name, json.dumps(found).encode("utf-8"), text[end : end + (1 << 16)].encode("utf-8"))

    def parsed(self) -> Any:
        """The JSON value of the first line.

        Raises:
            FormatError: it is none.
        """
        # `import rubric_measures` comes by here, and pydantic takes its time.
        from rubric_measures.base.json_files import parse_json

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
    # `import rubric_measures` comes by here, and pydantic takes its time.
    from rubric_measures.base.json_files import write_texts

    write_texts(path, (json.dumps(row, ensure_ascii=False) for row in rows), what)
