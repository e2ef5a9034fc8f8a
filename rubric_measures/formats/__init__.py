"""The table of file formats, and which of them a file has; one module holds a family of formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import path_name
from rubric_measures.base.json_text import parse_json, shown
from rubric_measures.base.plugins import PlugIn, Registry, usable
from rubric_measures.base.tables import Column, Table
from rubric_measures.formats.base import KINDS, Format, Head, PathName, cells_of, head_of
from rubric_measures.formats.specs import KNOWN_NAMES, RecordLines, Spec, meant, places

__all__ = ["FORMATS", "Format", "Head", "RecordLines", "Spec", "detect_format", "head_of"]


def _checked(plug_in: PlugIn, found: Any) -> Format:
    if isinstance(found, Spec):
        # It reads rows of JSON, whatever it writes.
        tells = (found.recognise, replace(found, forms=("jsonl",)).recognise)
        found = found.format._replace(recognise=lambda head: any(tell(head) for tell in tells))
    if not isinstance(found, Format):
        raise plug_in.refused(f"it is no rubric_measures.formats.Format, Spec or RecordLines, but {found!r:.60}")
    if found.kind not in KINDS:
        raise plug_in.refused(f"it holds {found.kind!r}; expected one of {', '.join(KINDS)}")
    return found


# A new format is a table of `formats.toml`, or an entry point of another package (and a bridge in `corpora.bridges`
# where it holds something new). The first one that recognises a file has it.
FORMATS: Registry[Format] = Registry("rubric_measures.formats", "format", places(), _checked)
# Any other JSON, and any two columns, are taken for queries.
_LAST = "queries"
# A line of more cells is no header.
_MANY = 40


def detect_format(path: PathName) -> str:
    """The name of a file's format, by its content.

    Raises:
        InputError: the file cannot be opened, or is standard input (which can be read once only).
        FormatError: it is none that is told by content.
    """
    name = path_name(path)
    if name == "-":
        raise InputError("the format of standard input is not told by content; name it", settings=("source",))
    head = head_of(path)
    for found, one in _by_recognition():
        if one.recognise is not None and one.recognise(head):
            return found
    if head.is_json:
        # Says where it is no JSON.
        parse_json(head.first, path=name, line=1)
    problem = "is of no format that can be told by content; name the format"
    if not head.is_json and 1 < len(columns := cells_of(head.line)) < _MANY:
        said = meant(columns, {one: one for one in KNOWN_NAMES})
        names = ", ".join(one if one.isprintable() and len(one) < 40 else shown(one) for one in columns[:8])
        problem = f"its columns {names} tell no format{said}; name the format, such as bank:csv"
    raise FormatError(problem, path=name, line=1, settings=("source",))


def _by_recognition() -> Iterator[tuple[str, Format]]:
    """The formats in the order in which they are tried; those of plug-ins are imported only if no built-in one fits."""
    for name in FORMATS.built_in:
        if name != _LAST:
            yield name, FORMATS[name]
    yield from usable(FORMATS.added(), _checked)
    yield _LAST, FORMATS[_LAST]


def format_table() -> Table:
    """The formats, a row each."""
    heads = [Column(name, is_left=True) for name in ("format", "read", "written", "recognised", "what it is")]
    ways = {name: (one.read, one.write, one.recognise) for name, one in sorted(FORMATS.items())}
    return Table(
        heads,
        [[name, *("yes" if way else "-" for way in has), FORMATS[name].description] for name, has in ways.items()],
    )
