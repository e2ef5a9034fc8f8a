"""The table of file formats, and which of them a file has; one module holds a family of formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import path_name
from rubric_measures.base.json_text import shown
from rubric_measures.base.plugins import PlugIn, Registry, usable
from rubric_measures.formats.base import FORMS, KINDS, Format, Head, PathName, head_of
from rubric_measures.formats.specs import KNOWN_NAMES, RecordLines, Spec, meant
from rubric_measures.formats.tables import cells_of

__all__ = ["FORMATS", "Format", "Head", "RecordLines", "Spec", "added_format", "detect_format", "head_of"]


def _checked(plug_in: PlugIn, found: Any) -> Format:
    if isinstance(found, Spec):
        # It reads rows of JSON, whatever it writes.
        tells = (found.recognise, replace(found, forms=("jsonl",)).recognise)
        found = found.format._replace(recognise=lambda head: any(tell(head) for tell in tells))
    elif isinstance(found, RecordLines):
        found = found.format
    if not isinstance(found, Format):
        raise plug_in.refused(f"it is no rubric_measures.formats.Format, Spec or RecordLines, but {found!r:.60}")
    if found.kind not in KINDS:
        raise plug_in.refused(f"it holds {found.kind!r}; expected one of {', '.join(KINDS)}")
    return found


_RAGELO = ("experiment", "results", "queries", "documents", "answers", "games")
# Format -> where it stands. A new format is a file, and a line here or an entry point of another package (and a bridge
# in `corpora.conversion` where it holds something new). The first one that recognises a file has it.
FORMATS: Registry[Format] = Registry(
    "rubric_measures.formats",
    "format",
    {
        "records": "rubric_measures.formats.judged:RECORDS",
        "run": "rubric_measures.formats.trec:RUN",
        **{f"ragelo:{name}": f"rubric_measures.formats.plain:RAGELO_{name.upper()}" for name in _RAGELO},
        "dragun:question-assessments": "rubric_measures.formats.judged:QUESTION_ASSESSMENTS.format",
        "questions": "rubric_measures.formats.plain:QUESTION_RUNS.format",
        "item-qrels": "rubric_measures.formats.trec:ITEM_QRELS",
        "qrels": "rubric_measures.formats.trec:QRELS",
        "judgments": "rubric_measures.formats.trec:JUDGMENTS",
        "assignments": "rubric_measures.formats.judged:ASSIGNMENTS",
        "dragun:assessments": "rubric_measures.formats.judged:ASSESSMENTS.format",
        "ragdoll:graded": "rubric_measures.formats.judged:GRADED",
        "ragdoll:rubric": "rubric_measures.formats.banks:RAGDOLL",
        "nuggets": "rubric_measures.formats.banks:NUGGETS",
        "ragdoll:battles": "rubric_measures.formats.plain:BATTLES",
        "games": "rubric_measures.formats.plain:GAMES",
        "csv": "rubric_measures.formats.grade_tables:GRADES",
        "parquet": "rubric_measures.formats.grade_tables:PARQUET",
        "leaderboard": "rubric_measures.formats.leaderboards:LEADERBOARD",
        **{f"leaderboard:{form}": f"rubric_measures.formats.leaderboards:OF_FORM.{form}" for form in FORMS},
        "ragdoll:support": "rubric_measures.formats.support:JUDGMENTS",
        "support-labels": "rubric_measures.formats.support:SUPPORT_LABELS",
        "argue": "rubric_measures.formats.support:ARGUE",
        "answers": "rubric_measures.formats.answers:ANSWERS",
        "bank": "rubric_measures.formats.banks:BANK",
        "bank:csv": "rubric_measures.formats.banks:BANK_CSV",
        "nugget-bank": "rubric_measures.formats.banks:NUGGET_BANK",
        "nugget-lists": "rubric_measures.formats.banks:NUGGET_LISTS",
        "dragun:rubrics": "rubric_measures.formats.banks:DRAGUN_ANSWERS.format",
        "dragun:questions": "rubric_measures.formats.banks:DRAGUN_QUESTIONS.format",
        "rubrics": "rubric_measures.formats.banks:RUBRICS",
        "requests": "rubric_measures.formats.judged:REQUESTS",
        "reports": "rubric_measures.formats.reports:REPORTS",
        "reports:rag": "rubric_measures.formats.reports:RAG",
        "reports:rag24": "rubric_measures.formats.reports:RAG24",
        "reports:ids": "rubric_measures.formats.reports:IDS",
        "topics": "rubric_measures.formats.queries:TOPICS",
        "tqa": "rubric_measures.formats.banks:TQA.format",
        "queries": "rubric_measures.formats.queries:QUERIES",
    },
    _checked,
)
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
        head.parsed()
    problem = "is of no format that can be told by content; name the format"
    if not head.is_json and 1 < len(columns := cells_of(head.line)) < _MANY:
        said = meant(columns, {one: one for one in KNOWN_NAMES})
        names = ", ".join(one if one.isprintable() and len(one) < 40 else shown(one) for one in columns[:8])
        problem = f"its columns {names} tell no format{said}; name the format, such as bank:csv"
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
