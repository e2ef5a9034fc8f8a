"""Leaderboards of other programs, long and wide: which form a file has is seen from its content, or refused."""

from __future__ import annotations

import logging
import math
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from rubric_measures.base.errors import FormatError, UnknownNameError
from rubric_measures.base.files import note_unfinished, path_name, read_text
from rubric_measures.base.tables import active
from rubric_measures.formats._trec_checked import is_number
from rubric_measures.formats.leaderboard_forms import (
    ALL,
    COLUMNS,
    FORMS,
    OWN_FORMAT,
    TOPIC_HEADERS,
    Form,
    KnownNames,
    cells_of,
    form_of_columns,
    form_of_text,
    id_columns,
    long_header,
)
from rubric_measures.formats.trec import columns_of, run_name_of
from rubric_measures.types.scales import LARGEST_SCORE

__all__ = ["ALL", "FORMS", "Form", "LeaderboardTable", "Score", "is_wide_row", "read_leaderboard"]

_LOG = logging.getLogger("rubric_measures")

# What our own TSV holds beside the measures.
_BESIDE = (
    *("stderr:", "coverage:", "queries:", "low:", "high:", "difference:", "p:", "group:", "check:"),
    *(f"{name}{end}:" for name in ("powered", "assessor", "naive") for end in ("", "_low", "_high")),
)
# What our own JSON holds beside a mean, and its greatest value.
_SIDE_FIELDS: Mapping[str, float] = MappingProxyType({"standard_error": sys.float_info.max, "coverage": 1})


class Score(NamedTuple):
    """One number of a leaderboard: one row a (run, measure, query).

    Attributes:
        run_id: the run.
        measure: the measure, as the file names it.
        query_id: the query, or `all` for the aggregate.
        value: the score, finite.
        error: the standard error of an aggregate, where the file gives it.
        coverage: the share of the grades that the value needed which exist, where the file gives it.
    """

    run_id: str
    measure: str
    query_id: str
    value: float
    error: float | None = None
    coverage: float | None = None


@dataclass(frozen=True)
class LeaderboardTable:
    """The numbers of a leaderboard file, in file order; no (run, measure, query) twice.

    Attributes:
        rows: the numbers.
    """

    rows: tuple[Score, ...]

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The runs, in the order of their first rows."""
        return tuple(dict.fromkeys(row.run_id for row in self.rows))

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures, in the order of their first rows."""
        return tuple(dict.fromkeys(row.measure for row in self.rows))

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The queries, in the order of their first rows, without `all`."""
        return tuple(dict.fromkeys(row.query_id for row in self.rows if row.query_id != ALL))

    def column(self, measure: str, query_id: str = ALL) -> dict[str, float]:
        """Run -> value of one measure for one query (the aggregate by default); runs without such a row are absent.

        Raises:
            UnknownNameError: no row has the measure.
        """
        return {row.run_id: row.value for row in self._of(measure) if row.query_id == query_id}

    def errors(self, measure: str) -> dict[str, float]:
        """Run -> standard error of the aggregate, where the file gives it."""
        return {row.run_id: row.error for row in self._of(measure) if row.query_id == ALL and row.error is not None}

    def per_query(self, measure: str) -> dict[str, dict[str, float]]:
        """Run -> query -> value of one measure, without the aggregate.

        Raises:
            UnknownNameError: no row has the measure.
        """
        values: dict[str, dict[str, float]] = {}
        for row in self._of(measure):
            if row.query_id != ALL:
                values.setdefault(row.run_id, {})[row.query_id] = row.value
        return values

    def _of(self, measure: str) -> list[Score]:
        rows = [row for row in self.rows if row.measure == measure]
        if not rows:
            raise UnknownNameError("measure", measure, self.measures, hint="(the leaderboard has no such column)")
        return rows


def read_leaderboard(
    path: str | os.PathLike[str],
    *,
    form: Form | None = None,
    queries: Collection[str] = (),
    runs: Collection[str] = (),
    measures: Collection[str] = (),
) -> LeaderboardTable:
    """Reads a leaderboard in any form of `FORMS`.

    Long forms, with or without a header (`run_id query_id measure value`): `run topic measure value` (ir_measures),
    `run measure topic value` (tot), `topic run measure value` (rag4reports), `measure topic value` (trec_eval; the run
    is named by its `runid` line, or by the file), `topic measure value` (query: what `ir_measures -q` prints),
    `topic Q0 run rank value measure` (ranking), JSON lines {run_id, topic_id, measure, value}. Wide forms: TSV or CSV
    with a header that names `run_id`, perhaps behind a query or a rank, JSON lines {run_id, topic_id, MEASURE: value,
    …}, the Rubric workbench's TSV, a JSON dict run -> rank (all are whole or half, from 1 to the number of runs) or
    score, and the JSON of this package's leaderboards.

    The form is seen from the content: the column that holds `all`, or only known queries, is the queries'; else the one
    form counts in which most columns hold what is known. Measures
    whose values are all text are left out and counted, empty cells of wide files too.

    Args:
        path: the file.
        form: the form, where it is known or cannot be seen.
        queries: known queries, to tell the columns of a file that has no `all`.
        runs: known runs, likewise.
        measures: known measures, likewise.

    Raises:
        InputError: the file cannot be opened.
        FormatError: the file is empty, or has no known form or several; a line has the wrong number of columns or no
            number; two lines give one run, measure and query different values.
    """
    name = path_name(path)
    text = read_text(path)
    if not text.strip():
        raise FormatError("is empty; expected a leaderboard", path=name)
    form = form or form_of_text(text, name)
    if form not in ("json", "dict", "jsonl"):
        note_unfinished(text, name)
    rows: Iterable[tuple[int, Score]]
    if form == "json":
        rows = _from_own_json(_json_object(text, name), name)
    elif form == "dict":
        rows = _from_dict(_json_object(text, name), name)
    elif form == "jsonl":
        rows = _from_json_lines(text, name)
    elif form in {"wide", "workbench"}:
        rows = _from_table(text, name, form)
    else:
        rows = _from_long(text, name, form, KnownNames(frozenset(queries), frozenset(runs), frozenset(measures)))
    unique = _unique(rows, name)
    if not unique:
        raise FormatError("holds no number; expected a leaderboard", path=name)
    return LeaderboardTable(unique)


def _unique(rows: Iterable[tuple[int, Score]], name: str) -> tuple[Score, ...]:
    """The rows without repetitions (counted); two values for one number are an error."""
    unique: dict[tuple[str, str, str], Score] = {}
    repeated = 0
    for line, row in rows:
        earlier = unique.setdefault(row[:3], row)
        if earlier is not row:
            if earlier != row:
                problem = f"{' '.join(row[:3])} was {earlier.value!r} before, now {row.value!r}"
                raise FormatError(problem, path=name, line=line)
            repeated += 1
    if repeated:
        _LOG.warning("%s: %d lines repeat an earlier one and were left out", name, repeated)
    return tuple(unique.values())


def _value(token: object, name: str, line: int, where: str = "value") -> float:
    """A finite number."""
    try:
        value = float(token) if isinstance(token, str | int | float) and not isinstance(token, bool) else math.nan
    except (ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise FormatError(f"{str(token)[:40]!r} is not a finite number", path=name, line=line, field=where)
    if abs(value) > LARGEST_SCORE:
        problem = f"{str(token)[:40]!r} is too large to compute with (at most {LARGEST_SCORE:g})"
        raise FormatError(problem, path=name, line=line, field=where)
    return value


def _from_long(text: str, name: str, form: Form | None, known: KnownNames) -> Iterator[tuple[int, Score]]:
    lines = [(number, row) for number, line in enumerate(text.split("\n"), 1) if (row := columns_of(line))]
    named = {row[2] for _, row in lines if _names_run(row)}
    lines = [(number, row) for number, row in lines if not _names_run(row)]
    if len(named) > 1:
        problem = f"holds several runs ({', '.join(sorted(named)[:5])}); give each run a file of its own"
        raise FormatError(problem, path=name)
    if lines and (said := long_header(lines[0][1])):
        if form not in (None, said):
            problem = f"its header says {said} ({' '.join(COLUMNS[said])}), not {form}; leave the form out"
            raise FormatError(problem, path=name, line=lines[0][0])
        form, lines = said, lines[1:]
    if not lines:
        return
    form = form or form_of_columns([row for _, row in lines], name, known)
    columns = COLUMNS[form]
    for number, row in lines:
        if len(row) != len(columns):
            problem = f"has {len(row)} columns; expected {len(columns)}: {' '.join(columns)}"
            raise FormatError(problem, path=name, line=number)
    place = {column: columns.index(column) for column in columns}
    alone = named.pop() if named else run_name_of(name)
    texts = _text_measures([row for _, row in lines], place["measure"], place["value"])
    left_out = 0
    for number, row in lines:
        if row[place["measure"]] in texts:
            left_out += 1
            continue
        run = row[place["run"]] if "run" in place else alone
        value = _value(row[place["value"]], name, number)
        yield number, Score(run, row[place["measure"]], row[place["topic"]], value)
    if left_out:
        _LOG.warning("%s: %d lines of %d text measures were left out", name, left_out, len(texts))


def _names_run(row: Sequence[str]) -> bool:
    """Whether a line of trec_eval says of which run all others are."""
    return len(row) == 3 and [*row[:2]] == ["runid", ALL]


def _text_measures(rows: Sequence[Sequence[str]], measure: int, value: int) -> set[str]:
    """The measures of which no value is a number."""
    numeric = {row[measure] for row in rows if is_number(row[value])}
    return {row[measure] for row in rows} - numeric


def _from_json_lines(text: str, name: str) -> Iterator[tuple[int, Score]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        row = _json_object(line, name, number)
        topic = row.get("topic_id", row.get("query_id"))
        if "measure" not in row and is_wide_row(row):
            topic = next((row[key] for key in TOPIC_HEADERS if key in row), ALL)
            for measure, value in row.items():
                if measure != "run_id" and measure not in TOPIC_HEADERS:
                    yield number, Score(row["run_id"], measure, str(topic), _value(value, name, number, measure))
            continue
        for key, found in (("run_id", row.get("run_id")), ("measure", row.get("measure")), ("topic_id", topic)):
            if not isinstance(found, str | int) or isinstance(found, bool) or found == "":
                raise FormatError("is missing or no text", path=name, line=number, field=key)
        value = _value(row.get("value"), name, number)
        yield number, Score(str(row["run_id"]), str(row["measure"]), str(topic), value)


def is_wide_row(row: Mapping[str, Any]) -> bool:
    """Whether a JSON object is the measures of a run, or of its answer to a query: ids, and else only numbers."""
    ids = {"run_id", *TOPIC_HEADERS}
    numbers = [value for key, value in row.items() if key not in ids]
    are = all(isinstance(value, int | float) and not isinstance(value, bool) for value in numbers)
    return isinstance(row.get("run_id"), str) and bool(numbers) and are


def _json_object(text: str, name: str, line: int = 0) -> dict[str, Any]:
    # Most uses of this package read no JSON leaderboard, and pydantic takes its time.
    from rubric_measures.base.json_files import check_keys, parse_json

    content = parse_json(text, path=name, line=line)
    check_keys(text, path=name, line=line)
    if not isinstance(content, dict):
        raise FormatError("is not a JSON object", path=name, line=line)
    return content


def _from_dict(content: Mapping[str, Any], name: str) -> Iterator[tuple[int, Score]]:
    values = {run: _value(value, name, 0, run) for run, value in content.items()}
    # Ranks are whole, or half where runs are tied, and none is beyond the number of runs.
    ranks = all(1 <= value <= len(values) and (2 * value).is_integer() for value in values.values())
    measure = "rank" if ranks else "score"
    for run, value in values.items():
        yield 0, Score(run, measure, ALL, value)


def _from_table(text: str, name: str, form: Form) -> Iterator[tuple[int, Score]]:
    """A table with a header: runs, perhaps queries, measures; `stderr:` and `coverage:`, or `+/-`, beside a measure."""
    lines = [
        (number, [active(cell) for cell in cells_of(line)])
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip()
    ]
    header, *rows = (row for _, row in lines)
    run, topic = id_columns(header) or (0, None)
    if len(set(header)) != len(header) and form == "wide":
        raise FormatError("names a column twice", path=name, line=lines[0][0])
    for number, row in lines[1:]:
        if len(row) != len(header):
            problem = f"has {len(row)} cells, the header {len(header)}; expected one for each, cut at tabs or commas"
            raise FormatError(problem, path=name, line=number)
    beside = {column: (column + 2, 0) for column in range(1, len(header) - 2) if header[column + 1] == "+/-"}
    if form != "workbench":
        beside = _measures_of(header, rows, {run, topic}, name)
    empty = 0
    for number, row in lines[1:]:
        for column, (error, coverage) in beside.items():
            if _is_empty(row[column]):
                empty += 1
                continue
            value = _value(row[column], name, number, header[column])
            spread = _optional(row, error, name, number, header)
            share = _optional(row, coverage, name, number, header)
            query_id = ALL if topic is None else row[topic]
            yield number, Score(row[run], header[column], query_id, value, spread, share)
    if empty:
        _LOG.warning("%s: %d empty cells were left out", name, empty)


def _measures_of(
    header: Sequence[str], rows: Sequence[Sequence[str]], ids: Set[int | None], name: str
) -> dict[int, tuple[int, int]]:
    """Column of a measure -> those of its standard error and of its coverage, 0 where there is none."""
    extra = {title: column for column, title in enumerate(header) if title.startswith(_BESIDE)}
    plain = [column for column in range(len(header)) if header[column] not in extra and column not in ids]
    numeric = [column for column in plain if any(is_number(row[column]) for row in rows)]
    if len(numeric) < len(plain):
        _LOG.warning("%s: %d columns without any number were left out", name, len(plain) - len(numeric))
    return {
        column: (extra.get(f"stderr:{header[column]}", 0), extra.get(f"coverage:{header[column]}", 0))
        for column in numeric
    }


def _is_empty(cell: str) -> bool:
    return cell.lower() in {"", "-", "nan", "none", "n/a"}


def _optional(row: Sequence[str], column: int, name: str, line: int, header: Sequence[str]) -> float | None:
    if not column or _is_empty(row[column]):
        return None
    return _value(row[column], name, line, header[column])


def _from_own_json(content: Mapping[str, Any], name: str) -> Iterator[tuple[int, Score]]:
    """The JSON that this package's leaderboards are printed as."""
    try:
        for run in content["runs"]:
            run_id = run["run_id"]
            if not isinstance(run_id, str):
                raise FormatError("is no text", path=name, field="run_id")
            for measure, cell in run["measures"].items():
                for query_id, value in cell.get("per_query", {}).items():
                    if value is not None:
                        yield 0, Score(run_id, measure, query_id, _value(value, name, 0, measure))
                if cell["mean"] is not None:
                    mean = _value(cell["mean"], name, 0, measure)
                    more = (_side_field(cell.get(key), key, name, measure) for key in _SIDE_FIELDS)
                    yield 0, Score(run_id, measure, ALL, mean, *more)
    except (KeyError, TypeError, AttributeError) as error:
        problem = f"is not a {OWN_FORMAT!r} file as this package writes it ({type(error).__name__}: {error})"
        raise FormatError(problem, path=name) from None


def _side_field(value: Any, key: str, name: str, measure: str) -> Any:
    """What stands beside a mean; None where the file says nothing."""
    highest = _SIDE_FIELDS[key]
    if value is None or (type(value) in (int, float) and 0 <= value <= highest):
        return value
    limit = "" if highest > 1 else " to 1"
    problem = f"{str(value)[:40]!r} is not a number from 0{limit}"
    raise FormatError(problem, path=name, field=f"{measure}.{key}")
