"""Telling a file's format by its content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import open_binary, path_name
from rubric_measures.base.json_models import parse_json
from rubric_measures.conversion._formats import PathName
from rubric_measures.formats.leaderboard_forms import ALL, OWN_FORMAT, form_of_header, is_number
from rubric_measures.formats.ragelo import detect_kind

__all__ = ["detect_format"]


def detect_format(path: PathName) -> str:
    """The name of a file's format, by its content.

    Raises:
        InputError: the file cannot be opened, or is standard input (which can be read once only).
        FormatError: it is none that is told by content.
    """
    name = path_name(path)
    if name == "-":
        raise InputError("the format of standard input is not told by content; name it with --from")
    with open_binary(path) as stream:
        head = stream.read(3).removeprefix(b"\xef\xbb\xbf") + stream.readline(1 << 24)
        while head and head.isspace():
            head = stream.readline(1 << 24)
        rest = stream.read(1 << 16)
    start = head.lstrip()[:1]
    if not start:
        raise FormatError("is empty", path=name)
    if start in (b"[", b"{"):
        return _json_format(head, rest, name)
    return _column_format(head.decode("utf-8", "replace").rstrip("\r\n"), rest, name)


def _json_format(head: bytes, rest: bytes, name: str) -> str:
    try:
        value = parse_json(head, path=name, line=1)
    except FormatError:
        # One JSON text over several lines: a preload, lessons, or queries.
        if head.strip() in (b"[", b"{") or head.rstrip().endswith((b",", b"{", b"[")):
            if OWN_FORMAT.encode() in head + rest:
                return "leaderboard"
            if b'"nugget_dict"' in head + rest:
                return "preload"
            return "tqa" if b'"globalID"' in head + rest else "queries"
        raise
    if isinstance(value, list):
        first = value[0] if value else None
        if isinstance(first, dict):
            return "tqa" if "globalID" in first else "queries"
        return "records"
    return _object_format(value)


def _object_format(value: Mapping[str, Any]) -> str:
    """The format whose first line is this object."""
    nuggets = value.get("nuggets")
    if isinstance(nuggets, list):
        assigned = any(isinstance(nugget, dict) and "assignment" in nugget for nugget in nuggets)
        return "assignments" if assigned else "nuggets"
    if "agent_a" in value:
        return "games"
    if value.get("format") == OWN_FORMAT or ("run_id" in value and "measure" in value):
        return "leaderboard"
    if isinstance(value.get("answer"), str) or ("run_id" in value and isinstance(value.get("text"), str)):
        return "answers"
    telling = {
        "items": "bank",
        "nugget_dict": "preload",
        "nugget_bank": "nugget-bank",
        "claim_bank": "nugget-bank",
        "rubrics": "rubrics",
        "candidates": "requests",
        "answer": "reports",
        "responses": "reports",
        "metadata": "reports",
        "request_id": "topics",
    }
    return next((name for key, name in telling.items() if key in value), "queries")


def _is_leaderboard(line: str, rest: str) -> bool:
    """Whether a first line is that of a leaderboard: a header of measures, or a row that ends in its value."""
    if form_of_header(line):
        second = next((row for row in rest.split("\n") if row.strip()), "")
        return any(is_number(cell) for cell in second.split("\t")[1:])
    columns = line.split()
    if len(columns) == 3 and columns[1] == ALL:
        return True
    # One tab stands between a query and its text, which may end in a number.
    return len(columns) == 4 and is_number(columns[-1]) and line.count("\t") in (0, 3)


def _column_format(line: str, rest: bytes, name: str) -> str:
    if kind := detect_kind(line):
        return f"ragelo:{kind}"
    columns = line.split()
    if len(columns) in (5, 6) and columns[3].isdecimal() and line.count("\t") != 1:
        return "run"
    if len(columns) == 4 and columns[3].lstrip("-").isdecimal() and line.count("\t") != 1:
        lines = [line, *rest.decode("utf-8", "replace").split("\n")[:-1]]
        pairs = [tuple(row[:1] + row[2:3]) for row in map(str.split, lines) if len(row) == 4]
        return "item-qrels" if len(set(pairs)) < len(pairs) or columns[1] not in ("0", "Q0") else "qrels"
    if _is_leaderboard(line, rest.decode("utf-8", "replace")):
        return "leaderboard"
    if "\t" in line:
        return "queries"
    raise FormatError("is of no format that can be told by content; name it with --from", path=name, line=1)
