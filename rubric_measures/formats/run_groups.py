"""Which run is of which group (a team, a family of models): a file of two columns."""

from __future__ import annotations

import os

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import read_text

__all__ = ["read_groups"]


def read_groups(path: str | os.PathLike[str]) -> dict[str, str]:
    """Run -> group.

    The file has lines `run group`, apart by a tab or else by the last space. A first line `run_id group` names the
    columns. Empty lines and those that begin with # are left out.

    Raises:
        FormatError: a line has no two columns, a run has two groups, or there is no run.
    """
    name = os.fspath(path)
    groups: dict[str, str] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        columns = stripped.split("\t") if "\t" in stripped else stripped.rsplit(None, 1)
        if len(columns) != 2 or not all(column.strip() for column in columns):
            raise FormatError(f"expected `run group`, not {stripped[:60]!r}", path=name, line=number)
        run, group = (column.strip() for column in columns)
        if not groups and run in ("run_id", "run"):
            continue
        if groups.get(run, group) != group:
            raise FormatError(f"run {run!r} is of two groups, {groups[run]!r} and {group!r}", path=name, line=number)
        groups[run] = group
    if not groups:
        raise FormatError("names no run; expected lines `run group`", path=name)
    return groups
