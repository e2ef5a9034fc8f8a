"""The table of file formats, and which of them a file has; one module holds what belongs to one format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import check_readable_twice, open_binary, path_name
from rubric_measures.base.plugins import PlugIn, Registry, usable
from rubric_measures.formats.base import KINDS, Format, Head, PathName
from rubric_measures.formats.leaderboard_forms import FORMS

__all__ = ["FORMATS", "Format", "Head", "added_format", "detect_format", "head_of"]


def _checked(plug_in: PlugIn, found: Any) -> Format:
    if not isinstance(found, Format):
        raise plug_in.refused(f"it is no rubric_measures.formats.Format, but {found!r:.60}")
    if found.kind not in KINDS:
        raise plug_in.refused(f"it holds {found.kind!r}; expected one of {', '.join(KINDS)}")
    return found


_HERE = "rubric_measures.formats"
# Format -> where it stands. A new format is a file, and a line here or an entry point of another package (and a bridge
# in `conversion` where it holds something new). The first one that recognises a file has it.
FORMATS: Registry[Format] = Registry(
    "rubric_measures.formats",
    "format",
    {
        "records": f"{_HERE}.records:RECORDS",
        "ragelo:queries": f"{_HERE}.ragelo:QUERIES",
        "ragelo:documents": f"{_HERE}.ragelo:DOCUMENTS",
        "ragelo:answers": f"{_HERE}.ragelo:ANSWERS",
        "ragelo:evaluations": f"{_HERE}.ragelo:EVALUATIONS",
        "ragelo:games": f"{_HERE}.ragelo:GAMES",
        "ragelo:ranking": f"{_HERE}.ragelo:RANKING",
        "run": f"{_HERE}.trec:RUN",
        "qrels": f"{_HERE}.trec:QRELS",
        "judgments": f"{_HERE}.trec:JUDGMENTS",
        "item-qrels": f"{_HERE}.trec:ITEM_QRELS",
        "assignments": f"{_HERE}.nuggetizer:ASSIGNMENTS",
        "ragdoll:graded": f"{_HERE}.ragdoll_rubrics:GRADED",
        "ragdoll:rubric": f"{_HERE}.ragdoll_rubrics:RUBRIC",
        "nuggets": f"{_HERE}.nuggetizer:NUGGETS",
        "ragdoll:battles": f"{_HERE}.ragdoll_battles:BATTLES",
        "games": f"{_HERE}.preferences:GAMES",
        "leaderboard": f"{_HERE}.leaderboard_writers:LEADERBOARD",
        **{f"leaderboard:{form}": f"{_HERE}.leaderboard_writers:OF_FORM.{form}" for form in FORMS},
        "ragdoll:support": f"{_HERE}.ragdoll_support:JUDGMENTS",
        "support-labels": f"{_HERE}.support_labels:SUPPORT_LABELS",
        "argue": f"{_HERE}.argue:ARGUE",
        "answers": f"{_HERE}.reports:ANSWERS",
        "bank": f"{_HERE}.bank:BANK",
        "bank:csv": f"{_HERE}.bank_csv:BANK_CSV",
        "nugget-bank": f"{_HERE}.autojudge:NUGGET_BANK",
        "nugget-lists": f"{_HERE}.autojudge:NUGGET_LISTS",
        "rubrics": f"{_HERE}.nugget_sets:RUBRICS",
        "requests": f"{_HERE}.nuggetizer:REQUESTS",
        "reports": f"{_HERE}.reports:REPORTS",
        "reports:rag": f"{_HERE}.report_forms:RAG",
        "reports:rag24": f"{_HERE}.report_forms:RAG24",
        "reports:ids": f"{_HERE}.report_forms:IDS",
        "topics": f"{_HERE}.topics:TOPICS",
        "csv": f"{_HERE}.grade_table:CSV",
        "parquet": f"{_HERE}.grade_table:PARQUET",
        "tqa": f"{_HERE}.tqa:TQA",
        "queries": f"{_HERE}.queries:QUERIES",
    },
    _checked,
)
# Any other JSON, and any two columns, are taken for queries.
_LAST = "queries"


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
        head.parsed()
    problem = "is of no format that can be told by content; name the format"
    raise FormatError(problem, path=name, line=1, settings=("source",))


def added_format(path: PathName) -> Format | None:
    """The format of another package that a file has; None where it has a built-in one, or none."""
    if path_name(path) == "-" or not FORMATS.added():
        return None
    try:
        name = detect_format(path)
    except FormatError:
        return None
    return None if name in FORMATS.built_in else FORMATS[name]


def _by_recognition() -> Iterator[tuple[str, Format]]:
    """The formats in the order in which they are tried; those of plug-ins are imported only if no built-in one fits."""
    for name in FORMATS.built_in:
        if name != _LAST:
            yield name, FORMATS[name]
    yield from usable(FORMATS.added(), _checked)
    yield _LAST, FORMATS[_LAST]


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
