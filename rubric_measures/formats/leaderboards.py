"""Leaderboards as files: their forms, read and written.

The forms of leaderboard files, and which of them a file has by its content.

Leaderboards of other programs, long and wide: which form a file has is seen from its content, or refused.

Writing leaderboards in the forms that `formats.leaderboards` reads.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

from rubric_measures.base.errors import FormatError, InputError, UnknownNameError, warn
from rubric_measures.base.files import atomic_writer, note_unfinished, path_name, read_text
from rubric_measures.base.json_text import check_keys, parse_json
from rubric_measures.base.tables import active, inert
from rubric_measures.formats.base import FORMS, OVERALL, Form, Format, Head
from rubric_measures.formats.trec import IdCleaner, columns_of, is_number, run_name_of
from rubric_measures.types.scales import LARGEST_SCORE

# What a line that holds the aggregate over the queries has in the place of a query.
ALL = "all"
OWN_FORMAT = "rubric_measures leaderboard 1"

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
            content = parse_json(text, lenient=True)
        except FormatError:
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
        rows: the numbers of runs.
        best: those of the best possible score, which is no run: of rows called `_overall_`, and of our own JSON.
    """

    rows: tuple[Score, ...]
    best: tuple[Score, ...] = ()

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
    of_runs = tuple(row for row in unique if row.run_id != OVERALL)
    if not of_runs:
        raise FormatError(f"holds no number{' of a run' * bool(unique)}; expected a leaderboard", path=name)
    return LeaderboardTable(of_runs, tuple(row for row in unique if row.run_id == OVERALL))


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
    warn("%s: %d lines repeat an earlier one and were left out", name, repeated)
    return tuple(unique.values())


def _value(token: object, name: str, line: int, where: str = "value") -> float:
    """A finite number."""
    is_one = is_number(token) if isinstance(token, str) else type(token) in (int, float)
    try:
        value = float(token) if is_one else math.nan  # type: ignore[arg-type]
    except OverflowError:
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
    warn("%s: %d lines of %d text measures were left out", name, left_out, len(texts))


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
    warn("%s: %d empty cells were left out", name, empty)


def _measures_of(
    header: Sequence[str], rows: Sequence[Sequence[str]], ids: Set[int | None], name: str
) -> dict[int, tuple[int, int]]:
    """Column of a measure -> those of its standard error and of its coverage, 0 where there is none."""
    extra = {title: column for column, title in enumerate(header) if title.startswith(_BESIDE)}
    plain = [column for column in range(len(header)) if header[column] not in extra and column not in ids]
    numeric = [column for column in plain if any(is_number(row[column]) for row in rows)]
    warn("%s: %d columns without any number were left out", name, len(plain) - len(numeric))
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
        best = {"run_id": OVERALL, "measures": content.get("best", {})}
        for run in (*content["runs"], best):
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


def write_leaderboard(path: str | os.PathLike[str], table: LeaderboardTable, form: Form = "ir_measures") -> None:
    """Writes a leaderboard; reading the file gives the same rows, but for what its form cannot hold (said).

    Args:
        path: the file.
        table: the numbers; all digits are written.
        form: one of `FORMS` but `json`; by default lines `run topic measure value`. Only `workbench` has a row of
            the best possible score (`_overall_`), as others would read it as a run.

    Raises:
        InputError: the file cannot be written, the form is not known, it holds one run (or measure) only and the
            table has several, or a name holds a tab or line end.
    """
    if form not in _WRITERS:
        raise UnknownNameError("leaderboard form", form, _WRITERS)
    if form == "workbench":
        table = LeaderboardTable((*table.best, *table.rows))
    elif table.best:
        _LOG.info("%s: %d values of %s left out: it is no run", path_name(path), len(table.best), OVERALL)
    clean = IdCleaner()
    lines = _WRITERS[form](table, form, clean)
    with atomic_writer(path) as stream:
        stream.writelines(f"{line}\n" for line in lines)
    clean.say(path_name(path))
    lost = _lost(table, form)
    if lost:
        warn("%s: the form %s has no place for %s, which were left out", path_name(path), form, lost)


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
