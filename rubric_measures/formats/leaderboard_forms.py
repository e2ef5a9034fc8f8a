"""The forms of leaderboard files, and which of them a file has by its content."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

from rubric_measures.base.errors import FormatError

__all__ = [
    "ALL",
    "COLUMNS",
    "FORMS",
    "OVERALL",
    "OWN_FORMAT",
    "TOPIC_HEADERS",
    "Form",
    "KnownNames",
    "cells_of",
    "form_of_columns",
    "form_of_header",
    "form_of_text",
    "id_columns",
    "long_header",
]

# What a line that holds the aggregate over the queries has in the place of a query.
ALL = "all"
# The row of the best score that there is; the name that the Rubric workbench gives it. It is no run.
OVERALL = "_overall_"
OWN_FORMAT = "rubric_measures leaderboard 1"
Form = Literal[
    "ir_measures", "tot", "rag4reports", "trec_eval", "query", "ranking", "jsonl", "wide", "workbench", "dict", "json"
]
FORMS: tuple[Form, ...] = get_args(Form)

# The columns of the long forms; the value comes last, but in `ranking`.
COLUMNS: Mapping[Form, tuple[str, ...]] = MappingProxyType(
    {
        "ir_measures": ("run", "topic", "measure", "value"),
        "tot": ("run", "measure", "topic", "value"),
        "rag4reports": ("topic", "run", "measure", "value"),
        "trec_eval": ("measure", "topic", "value"),
        "query": ("topic", "measure", "value"),
        "ranking": ("topic", "Q0", "run", "rank", "value", "measure"),
    }
)
# What headers of long forms call their columns.
_TITLES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("run", "run_id", "runid", "run_tag"), "run"),
        **dict.fromkeys(("topic", "topic_id", "query", "query_id", "qid", "request_id", "narrative_id"), "topic"),
        **dict.fromkeys(("measure", "metric"), "measure"),
        **dict.fromkeys(("value", "score"), "value"),
    }
)
_RUN_HEADERS = {"run_id", "run", "run_tag", "method", "system"}
TOPIC_HEADERS = {title for title, kind in _TITLES.items() if kind == "topic"}
# Columns of tables of answers, which are no measures.
_TEXT_HEADERS = {"text", "answer", "response"}


class KnownNames(NamedTuple):
    """Names that are known from elsewhere, to tell the columns of a long form by; empty where nothing is known."""

    queries: frozenset[str] = frozenset()
    runs: frozenset[str] = frozenset()
    measures: frozenset[str] = frozenset()


_NOTHING = KnownNames()


def form_of_text(text: str, name: str) -> Form | None:
    """The form of a file; None for a long form, where the columns must decide."""
    stripped = text.lstrip()
    if stripped[0] == "{":
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            return "jsonl"
        if content.get("format") == OWN_FORMAT:
            return "json"
        return "jsonl" if isinstance(content.get("run_id"), str) else "dict"
    if stripped[0] == "[":
        what = (
            "holds graded records; score them, and give the board"
            if '"passage_id"' in text or '"paragraph_id"' in text
            else ("is a JSON list; expected JSON lines or a dict of runs")
        )
        raise FormatError(what, path=name)
    return form_of_header(stripped.partition("\n")[0])


def cells_of(line: str) -> list[str]:
    """The cells of a line of a wide table: cut at tabs, or at commas where there is no tab.

    A line that is longer than any table's is one cell.
    """
    import csv

    try:
        cells = line.split("\t") if "\t" in line else next(csv.reader([line], skipinitialspace=True), [])
    except csv.Error:
        cells = [line]
    return [cell.strip() for cell in cells]


def id_columns(header: Sequence[str]) -> tuple[int, int | None] | None:
    """Where a wide table has its runs and, if it has one, its queries; None where it is no such table.

    The runs stand first, or behind a query or a rank.

    >>> id_columns(["qid", "run_id", "ternary_score"])
    (1, 0)
    """
    run = next((place for place, title in enumerate(header) if title in _RUN_HEADERS), len(header))
    if run == len(header) or set(header[:run]) - TOPIC_HEADERS - {"rank"} or _TEXT_HEADERS.intersection(header):
        return None
    return run, next((place for place, title in enumerate(header) if title in TOPIC_HEADERS), None)


def form_of_header(line: str) -> Form | None:
    """The form of a table with this header; None where it is no header of a leaderboard, or a long one."""
    header = cells_of(line)
    if long_header(header) is not None:
        return None
    if "+/-" in header:
        return "workbench"
    ids = id_columns(header)
    return "wide" if ids is not None and len(header) > 1 + (ids[1] is not None) else None


def long_header(row: Sequence[str]) -> Form | None:
    """The long form whose columns the row names, as in `run_id query_id measure value`; None where it is no header."""
    titles = tuple(_TITLES.get(cell.lower(), "") for cell in row)
    return next((form for form, columns in COLUMNS.items() if columns == titles), None)


def form_of_columns(rows: Sequence[Sequence[str]], name: str, known: KnownNames = _NOTHING) -> Form:
    """Tells the long forms by their `topic` column (it holds `all`, or nothing but known queries), or by what is known.

    Raises:
        FormatError: no form, or several, fit; the message names them.
    """
    width = len(rows[0])
    if width == 6:
        if all(len(row) == 6 and row[1] == "Q0" for row in rows):
            return "ranking"
        raise FormatError("has six columns, but is not 'topic Q0 run rank value measure'", path=name, line=1)
    candidates = [form for form, columns in COLUMNS.items() if len(columns) == width and form != "ranking"]
    if not candidates:
        problem = (
            f"has {width} columns; a leaderboard has 3 ('measure topic value'), 4 ('run topic measure value') or 6"
        )
        raise FormatError(problem, path=name, line=1)
    values = [{row[column] for row in rows if len(row) == width} for column in range(width)]

    def narrowed(forms: Sequence[Form], test: Callable[[set[str]], bool]) -> list[Form]:
        return [form for form in forms if test(values[COLUMNS[form].index("topic")])]

    for forms in (narrowed(candidates, lambda column: ALL in column), candidates):
        fitting = narrowed(forms, lambda column: bool(known.queries) and column - {ALL} <= known.queries)
        if len(forms) == 1:
            return forms[0]
        if len(fitting) == 1:
            return fitting[0]
    familiar = _most_familiar(candidates, values, known)
    if len(familiar) == 1:
        return familiar[0]
    named = ", ".join(f"{form} ({' '.join(COLUMNS[form])})" for form in candidates)
    problem = f"could be any of {named}; name the form or the queries"
    raise FormatError(problem, path=name, settings=("form", "official_form", "assessor_form", "source"))


def _most_familiar(forms: Sequence[Form], values: Sequence[set[str]], known: KnownNames) -> list[Form]:
    """The forms in which most columns hold a known name of their kind; none where no column does."""
    kinds = {"topic": known.queries, "run": known.runs, "measure": known.measures}
    counts = [
        sum(not values[index].isdisjoint(kinds.get(column, ())) for index, column in enumerate(COLUMNS[form]))
        for form in forms
    ]
    return [form for form, count in zip(forms, counts, strict=True) if count and count == max(counts)]
