"""Writing leaderboards in the forms that `formats.leaderboards` reads."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType, SimpleNamespace

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.base.files import atomic_writer, path_name
from rubric_measures.base.tables import inert
from rubric_measures.formats._trec_checked import is_number
from rubric_measures.formats.base import Format, Head
from rubric_measures.formats.leaderboard_forms import (
    ALL,
    COLUMNS,
    FORMS,
    OVERALL,
    OWN_FORMAT,
    Form,
    cells_of,
    form_of_header,
    long_header,
)
from rubric_measures.formats.leaderboards import LeaderboardTable, is_wide_row, read_leaderboard
from rubric_measures.formats.trec import IdCleaner

__all__ = ["LEADERBOARD", "OF_FORM", "write_leaderboard"]

# Forms of our own and of the workbench, which know that the row of the best score is no run.
_WITH_BEST = frozenset(("wide", "workbench"))
_LOG = logging.getLogger("rubric_measures")


def write_leaderboard(path: str | os.PathLike[str], table: LeaderboardTable, form: Form = "ir_measures") -> None:
    """Writes a leaderboard; reading the file gives the same rows, but for what its form cannot hold (said).

    Args:
        path: the file.
        table: the numbers; all digits are written.
        form: one of `FORMS` but `json`; by default lines `run topic measure value`. Only `wide` and `workbench` have
            the row of the best score (`_overall_`), as others would read it as a run.

    Raises:
        InputError: the file cannot be written, the form is not known, it holds one run (or measure) only and the
            table has several, or a name holds a tab or line end.
    """
    if form not in _WRITERS:
        raise UnknownNameError("leaderboard form", form, _WRITERS)
    best = [row for row in table.rows if row.run_id == OVERALL]
    if best and form not in _WITH_BEST:
        table = replace(table, rows=tuple(row for row in table.rows if row.run_id != OVERALL))
        _LOG.info("%s: %d values of %s left out: it is no run", path_name(path), len(best), OVERALL)
    clean = IdCleaner()
    lines = _WRITERS[form](table, form, clean)
    with atomic_writer(path) as stream:
        stream.writelines(f"{line}\n" for line in lines)
    clean.say(path_name(path))
    lost = _lost(table, form)
    if lost:
        _LOG.warning("%s: the form %s has no place for %s, which were left out", path_name(path), form, lost)


def _lost(table: LeaderboardTable, form: Form) -> str:
    """What the form cannot hold of the table, in words; empty where nothing is lost."""
    parts = []
    queries = sum(row.query_id != ALL for row in table.rows)
    if queries and form in {"wide", "workbench", "dict"}:
        parts.append(f"{queries} values of single queries")
    errors = sum(row.error is not None for row in table.rows)
    if errors and form not in {"wide", "workbench"}:
        parts.append(f"{errors} standard errors")
    return " and ".join(parts)


def _long(table: LeaderboardTable, form: Form, clean: IdCleaner) -> Iterator[str]:
    columns = COLUMNS[form]
    if "run" not in columns:
        if len(table.run_ids) != 1:
            raise InputError(f"the form {form} holds one run a file; the table has {len(table.run_ids)}")
        if form == "trec_eval":
            yield f"runid\t{ALL}\t{clean(table.run_ids[0])}"
    ranks = _ranks(table) if "rank" in columns else {}
    for row in table.rows:
        fields: Mapping[str, str] = {
            "run": clean(row.run_id),
            "measure": clean(row.measure),
            "topic": clean(row.query_id),
            "value": repr(row.value),
            "Q0": "Q0",
            "rank": str(ranks.get(row[:3], 0)),
        }
        yield "\t".join(fields[column] for column in columns)


def _ranks(table: LeaderboardTable) -> dict[tuple[str, str, str], int]:
    """The place of each row among the runs of its measure and query, best first, run_id descending in ties."""
    groups: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for row in table.rows:
        groups.setdefault((row.measure, row.query_id), []).append((row.value, row.run_id))
    return {
        (run_id, measure, query_id): rank
        for (measure, query_id), members in groups.items()
        for rank, (_, run_id) in enumerate(sorted(members, reverse=True), 1)
    }


def _json_lines(table: LeaderboardTable, _: Form, __: IdCleaner) -> Iterator[str]:
    for row in table.rows:
        fields = {"run_id": row.run_id, "topic_id": row.query_id, "measure": row.measure, "value": row.value}
        yield json.dumps(fields, ensure_ascii=False, allow_nan=False)


def _wide(table: LeaderboardTable, _: Form, __: IdCleaner) -> Iterator[str]:
    cells = {(row.run_id, row.measure): row for row in table.rows if row.query_id == ALL}
    measures = list(dict.fromkeys(measure for _, measure in cells))
    with_error = {measure for (_, measure), row in cells.items() if row.error is not None}
    with_coverage = {measure for (_, measure), row in cells.items() if row.coverage is not None}
    header = ["run_id"]
    for measure in measures:
        header += [measure]
        header += [f"stderr:{measure}"] * (measure in with_error)
        header += [f"coverage:{measure}"] * (measure in with_coverage)
    yield _tabbed(header)
    for run_id in dict.fromkeys(run_id for run_id, _ in cells):
        line = [run_id]
        for measure in measures:
            row = cells.get((run_id, measure))
            line += [_shown(row.value if row else None)]
            line += [_shown(row.error if row else None)] * (measure in with_error)
            line += [_shown(row.coverage if row else None)] * (measure in with_coverage)
        yield _tabbed(line)


def _shown(value: float | None) -> str:
    return "-" if value is None else repr(value)


def _tabbed(cells: list[str]) -> str:
    for cell in cells:
        if "\t" in cell or "\n" in cell or cell != cell.strip():
            raise InputError(f"{cell!r} cannot be written to a TSV file: it begins or ends with a space or holds a tab")
    return "\t".join(map(inert, cells))


def _workbench(table: LeaderboardTable, form: Form, __: IdCleaner) -> Iterator[str]:
    measure = _only_measure(table, form)
    yield _tabbed(["method", measure, "+/-", "std-err"])
    for row in table.rows:
        if row.query_id == ALL:
            yield _tabbed([row.run_id, repr(row.value), "+/-", _shown(row.error)])


def _dict(table: LeaderboardTable, form: Form, __: IdCleaner) -> Iterator[str]:
    measure = _only_measure(table, form)
    values = table.column(measure)
    whole = {run: int(value) if measure == "rank" and value.is_integer() else value for run, value in values.items()}
    yield json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=1)


def _only_measure(table: LeaderboardTable, form: Form) -> str:
    measures = {row.measure for row in table.rows if row.query_id == ALL}
    if len(measures) != 1:
        raise InputError(f"the form {form} holds the aggregates of one measure; the table has {len(measures)}")
    return measures.pop()


_WRITERS: Mapping[Form, Callable[[LeaderboardTable, Form, IdCleaner], Iterator[str]]] = MappingProxyType(
    dict.fromkeys(COLUMNS, _long) | {"jsonl": _json_lines, "wide": _wide, "workbench": _workbench, "dict": _dict}
)


def _is_leaderboard(head: Head) -> bool:
    """Whether it is our own JSON, a row of JSON lines, a header of measures, or a row that ends in its value."""
    line = head.line
    if head.goes_on:
        return OWN_FORMAT in line + head.rest
    if head.is_json:
        found = head.object
        return found.get("format") == OWN_FORMAT or {"run_id", "measure"} <= found.keys() or is_wide_row(found)
    if form_of_header(line):
        second = next((row for row in head.rest.split("\n") if row.strip()), "")
        return any(is_number(cell) for cell in cells_of(second)[1:])
    columns = line.split()
    if long_header(columns):
        return True
    if len(columns) == 3 and columns[1] == ALL:
        return True
    # One tab stands between a query and its text, which may end in a number.
    return len(columns) == 4 and is_number(columns[-1]) and line.count("\t") in (0, 3)


def _format(form: Form) -> Format:
    return Format(
        "leaderboard",
        f"leaderboard, form {form}",
        lambda path: read_leaderboard(path, form=form),
        partial(write_leaderboard, form=form) if form in _WRITERS else None,
    )


LEADERBOARD = Format(
    "leaderboard",
    "leaderboard in any form; written as run topic measure value",
    read_leaderboard,
    write_leaderboard,
    _is_leaderboard,
)
# One for each form: `OF_FORM.wide`.
OF_FORM = SimpleNamespace(**{form: _format(form) for form in FORMS})
