"""Leaderboards as files: their forms, read and written.

Leaderboards of other programs, long and wide: which form a file has is seen from its content, or refused. Whatever the
form, a file is numbers of runs by measure and query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from operator import eq
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

from rubric_measures.base.errors import FormatError, UnknownNameError, tell, warn
from rubric_measures.base.files import (
    begins_records,
    note_unfinished,
    path_name,
    paused_collector,
    peek_head,
    read_text,
    run_of_file,
)
from rubric_measures.base.json_text import typed
from rubric_measures.base.tables import active
from rubric_measures.formats.base import (
    OVERALL,
    Form,
    Format,
    Head,
    PathName,
    cells_of,
    is_number,
    plain_name,
    say_left_out,
    write_columns,
)
from rubric_measures.formats.specs import RUN_IDS, figure, ident, names_of, table, unique
from rubric_measures.formats.tables import PARQUET, Cells, row_of, rows_of
from rubric_measures.formats.trec import columns_of
from rubric_measures.types.entities import BOARD_FORMAT, KeptBoard

# What a line that holds the aggregate over the queries has in the place of a query.
ALL = "all"

# The columns of the long forms; the value comes last, but in `ranking`.
COLUMNS: Mapping[Form, tuple[str, ...]] = table("leaderboard columns")  # type: ignore[assignment]
# Those that have all that a number is.
WRITTEN: tuple[Form, ...] = ("ir_measures", "tot", "rag4reports")
# What files call the columns of long forms.
_TITLES = {name: kind for kind, titles in table("leaderboard titles").items() for name in names_of(titles)}
# `runid` begins a row of trec_eval.
_RUN_HEADERS = {*RUN_IDS, "method"} - {"runid"}
_TOPIC_HEADERS = {title for title, kind in _TITLES.items() if kind == "topic"}
# What columns of ranks are called, 1 best.
RANKS = frozenset({"rank", "place", "position"})
# Columns of tables of answers, which are no measures.
_TEXT_HEADERS = {"text", "answer", "response"}
# What our own TSV holds beside the measures.
_BESIDE = ("stderr:", "coverage:", "check:", "+/-")
_EMPTY = {"", "-", "nan", "none", "n/a"}
_Raw: TypeAlias = "tuple[int, str, Score]"
"""One number as a file has it: its line (0 where that says nothing), what messages call it, and what is not checked."""


@lru_cache(1 << 10)
def _id_columns(titles: tuple[str, ...]) -> tuple[str | None, str | None, dict[str, str]]:
    """What a wide table calls its runs and its queries; and the columns of a long one: kind -> title."""
    run, topic = (
        next((title for title in titles if title in known or plain_name(title) in known - {"runid"}), None)
        for known in (_RUN_HEADERS, _TOPIC_HEADERS)
    )
    return run, topic, {_TITLES[title.lower()]: title for title in titles if title.lower() in _TITLES}


def _is_table(line: str) -> bool:
    """Whether a line is the header of a wide table, or of a long one parted by tabs or commas.

    The runs of a wide table stand first, or behind a query or a rank.

    >>> _is_table("qid,run_id,ternary_score"), _is_table("qid,text,run_id")
    (True, False)
    """
    header = cells_of(line)
    run, topic, _ = _id_columns(tuple(header))
    if _long_header(header) or run is None or {*map(plain_name, header[: header.index(run)])} - _TOPIC_HEADERS - RANKS:
        return _long_header(header) is not None or "+/-" in header
    return not _TEXT_HEADERS.intersection(header) and len(header) > 1 + (topic is not None)


def _long_header(row: Sequence[str]) -> Form | None:
    """The long form whose columns the row names, as in `run_id query_id measure value`; None where it is no header."""
    titles = tuple(_TITLES.get(cell.lower(), cell) for cell in row)
    return next((form for form, columns in COLUMNS.items() if columns == titles and "measure" in columns), None)


def _cut(line: str) -> list[str]:
    """The cells of a line: a name before a tab may hold blanks."""
    return [cell.strip() for cell in line.split("\t")] if "\t" in line else columns_of(line)


def _are_scores(rows: Sequence[Sequence[str]]) -> bool:
    """Whether each row is a run and its score."""
    return bool(rows) and all(len(row) == 2 and is_number(row[1]) for row in rows)


def _form_of_columns(rows: Sequence[Sequence[str]], name: str, queries: Collection[str]) -> Form:
    """Tells the long forms by their `topic` column: it holds `all`, or nothing but known queries, or some of them; or
    whole numbers, and no column has more names.

    Raises:
        FormatError: no form, or several, fit; the message names them.
    """
    if _are_scores(rows[:1]):
        return "scores"
    said: dict[Form, Any] = {}
    names = [set(one) for one in zip(*(row for row in rows if len(row) == len(rows[0])), strict=True)][:-1]
    numbers = [one for one in names if all(map(str.isdecimal, one))]
    for form, columns in COLUMNS.items():
        # Without `all` those of a ranking are those of a run, whose documents are no runs.
        if len(columns) == len(rows[0]) > 2 and ("Q0" not in columns or [ALL, "Q0"] in [row[:2] for row in rows]):
            topics = {row[columns.index("topic")] for row in rows if len(row) == len(columns)}
            are_known = bool(queries) and topics <= {*queries, ALL}, not topics.isdisjoint(queries)
            said[form] = ALL in topics, *are_known, numbers == [topics] and len(topics) == max(2, *map(len, names))
    fitting = [form for form, one in said.items() if one == max(said.values())]
    # What stands there in qrels and runs, unless it is a query.
    second = {cell for row in rows for cell in row[1:2]}
    is_trec = second in ({"0"}, {"Q0"}) and not any(any(one[:3]) for one in said.values())
    if len(fitting) == 1 and not is_trec:
        if not any(said[fitting[0]][:3]):
            warn(f"{name}: its numbers are read as queries ({' '.join(COLUMNS[fitting[0]])}); else name its columns")
        return fitting[0]
    named = ", ".join(f"{form} ({' '.join(COLUMNS[form])})" for form in said or COLUMNS)
    text = f"{'could be any' if said else 'is none'} of {named}; "
    text = "holds qrels or a run, and no scores of runs; score runs by qrels first, else " if is_trec else text
    text += "write the columns' names above, run_id first"
    raise FormatError(text, path=name, line=0 if said else 1, settings=("source",))


class Score(NamedTuple):
    """One number of a leaderboard: one row a (run, measure, query).

    Attributes:
        run_id: the run.
        measure: the measure, as the file names it.
        query_id: the query, or `all` for the aggregate.
        value: the score, finite.
        error: the standard error of an aggregate, where the file gives it.
    """

    run_id: str
    measure: str
    query_id: str
    value: float
    error: float | None = None


@dataclass(frozen=True)
class LeaderboardTable:
    """The numbers of a leaderboard file, in file order; no (run, measure, query) twice.

    Attributes:
        rows: the numbers of runs.
        best: those of the best possible score, which is no run: of rows called `_overall_`, and of our own JSON.
        unscored: runs of our own JSON that have no score by some measure.
        settings: how our own JSON was scored.
    """

    rows: tuple[Score, ...]
    best: tuple[Score, ...] = ()
    unscored: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The runs, in the order of their first rows."""
        return tuple(dict.fromkeys(row.run_id for row in self.rows))

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures, in the order of their first rows."""
        return tuple(dict.fromkeys(row.measure for row in self.rows))

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


def read_leaderboard(path: PathName, queries: Collection[str] = (), form: Form | None = None) -> LeaderboardTable:
    """Reads a leaderboard, long or wide.

    Long forms, with or without a header (`run_id query_id measure value`): `run topic measure value` (ir_measures),
    `run measure topic value` (tot), `topic run measure value` (rag4reports), `measure topic value` (trec_eval; the run
    is named by its `runid` line, or by the file), `topic measure value` (query: what `ir_measures -q` prints),
    `topic Q0 run rank value measure` (ranking), JSON lines {run_id, topic_id, measure, value}. Wide forms: TSV or CSV
    with a header that names `run_id`, perhaps behind a query or a rank, JSON lines {run_id, topic_id, MEASURE: value,
    …}, the Rubric workbench's TSV, a JSON dict run -> rank (all are whole or half, from 1 to the number of runs) or
    score, the same as lines `run score` without a header, and the JSON of this package's leaderboards.

    The form is seen from the content: the column that holds `all`, or known queries, is the queries'. Measures whose
    values are all text are left out and counted, empty cells of wide files too. Where there is no topic, values are
    aggregates.

    Args:
        path: the file.
        queries: known queries, to tell the columns of a file that has no `all`.
        form: the form of lines that have no header, whatever their content shows.

    Raises:
        InputError: the file cannot be opened.
        FormatError: the file is empty, or has no known form or several; a line has the wrong number of columns or no
            number; two lines give one run, measure and query different values.
    """
    name, start = path_name(path), peek_head(path, 1 << 16).lstrip()
    if begins_records(path):
        raise FormatError("holds a JSON list, as graded records do; score these, and give the board", path=name)
    unscored: list[tuple[str, str]] = []
    settings: Mapping[str, Any] = {}
    is_json = start[:1] in (b"{", b"[") or start.startswith(PARQUET)
    with paused_collector():
        if is_json or (form is None and _is_table(start.partition(b"\n")[0].decode("utf-8", "replace"))):
            found = rows_of(path, "a leaderboard", by_hand=True)
            rows = list(found.rows)
            if found.is_text:
                rows = [(line, {to: active(cell.strip()) for to, cell in cells.items()}) for line, cells in rows]
            if is_json and rows and rows[0][1].get("format") == BOARD_FORMAT:
                kept = typed(KeptBoard, rows[0][1], name)
                (rows, unscored), settings = _rows_of_board(kept), kept.settings
        else:
            rows = _rows_of_lines(read_text(path), name, queries, form)
        scores = _checked(list(_numbers(rows, name, is_json)), name)
    of_runs = tuple(row for row in scores if row.run_id != OVERALL)
    if not of_runs:
        raise FormatError("holds no number of a run; expected a leaderboard", path=name)
    best = tuple(row for row in scores if row.run_id == OVERALL)
    for measure, count in Counter(measure for _, measure in unscored).items():
        warn("%s: %d rows without a score by %s left out: nobody knows their place", name, count, measure)
    return LeaderboardTable(of_runs, best, tuple(run_id for run_id, _ in unscored), settings)


def _checked(numbers: Sequence[_Raw], name: str) -> list[Score]:
    """The numbers without repetitions and without texts (counted); two values for one number are an error."""
    # Texts are no numbers: a measure of nothing else is none.
    are = {str(one.measure) for _, _, one in numbers if not isinstance(one.value, str) or is_number(one.value)}
    if not are:
        raise FormatError("holds no number; expected a leaderboard, with decimal points and without %", path=name)
    left_out = Counter(str(one.measure) for _, _, one in numbers if str(one.measure) not in are)
    warn("%s: %d values of %d measures are text and were left out", name, left_out.total(), len(left_out))
    rows = ((line, _score(raw, name, line, field)) for line, field, raw in numbers if str(raw.measure) in are)
    return list(unique(((line, row[:3], row) for line, row in rows), name, "numbers", is_same=eq))


def _score(raw: Score, name: str, line: int, field: str) -> Score:
    """The number, of which names are texts and all else is finite."""
    made: list[Any] = []
    for title, said in zip(("run_id", "measure", "topic_id", field, "+/-"), raw, strict=True):
        try:
            is_left_out = said is None and len(made) == 4
            made.append(ident(said) if len(made) < 3 else None if is_left_out else float(figure(said)))
        except ValueError as error:
            raise FormatError(f"{error}; found {str(said)[:40]!r}", path=name, line=line, field=title) from None
    return Score(*made)


def _rows_of_lines(text: str, name: str, queries: Collection[str], form: Form | None) -> list[tuple[int, Cells]]:
    """A long form: lines without a header, or with one, cut at blanks and tabs."""
    note_unfinished(text, name)
    cut = [(at, _cut(line)) for at, line in enumerate(text.split("\n"), 1) if line.strip()]
    # A line of trec_eval says of which run all others are.
    named = {row[2] for _, row in cut if row[:2] == ["runid", ALL] and len(row) == 3}
    rows = [(line, row) for line, row in cut if row[:2] != ["runid", ALL]]
    if not rows:
        raise FormatError("is empty; expected a leaderboard", path=name)
    if len(named) > 1:
        raise FormatError(f"holds several runs ({', '.join(sorted(named)[:5])}); give each its own file", path=name)
    header = _long_header(rows[0][1])
    rows = rows[1:] if header else rows
    form = header or form or _form_of_columns([row for _, row in rows], name, queries)
    run, measure = next(iter(named), run_of_file(name) or "run"), _of_pairs([row[-1] for _, row in rows])
    alone = {"run": run, "topic": ALL, "measure": measure}
    return [(line, {**alone, **row_of(COLUMNS[form], row, f"form {form}", name, line)}) for line, row in rows]


def _of_pairs(values: Collection[Any]) -> str:
    """What numbers of runs are: ranks are whole, or half where runs are tied, and none is beyond the number of runs."""
    found = [float(value) if isinstance(value, str) and is_number(value) else value for value in values]
    are = (type(one) in (int, float) and 1 <= one <= len(found) and not 2 * one % 1 for one in found)
    return "rank" if all(are) else "score"


def _numbers(rows: Sequence[tuple[int, Cells]], name: str, is_json: bool) -> Iterator[_Raw]:
    """The numbers of rows with names. `stderr:` and `coverage:`, or `+/-`, stand beside a measure."""
    alone = {"run": run_of_file(name) or "run", "topic": ALL}
    empty = 0
    for line, row in rows:
        if not row:
            raise FormatError("is an empty object; expected a run and its scores", path=name, line=line)
        titles = tuple(row)
        run, topic, kinds = _id_columns(titles)
        if {"measure", "value"} <= kinds.keys():
            said = {**alone, **{kind: row[title] for kind, title in kinds.items()}}
            yield (
                line,
                "value",
                Score(said["run"], said["measure"], said["topic"], said["value"], row.get("+/-") or None),
            )
        elif is_json and len(rows) == 1 and not isinstance(row.get(run or ""), str):
            measure = _of_pairs(row.values())
            yield from ((0, one, Score(one, measure, ALL, value)) for one, value in row.items())
        else:
            run = run or titles[0]
            query_id = ALL if topic is None else row[topic]
            errors = {title.removeprefix("stderr:"): title for title in titles if title.startswith("stderr:")}
            # The workbench's: a measure, `+/-`, its standard error.
            errors |= {
                one: error for one, sign, error in zip(titles, titles[1:], titles[2:], strict=False) if sign == "+/-"
            }
            kept = {title: cell for title, cell in row.items() if str(cell).lower() not in _EMPTY}
            beside = {run, topic, *errors.values()}
            measures = [one for one in titles if one not in beside and not one.startswith(_BESIDE)]
            empty += len(set(measures) - kept.keys())
            for title in filter(kept.__contains__, measures):
                yield line, title, Score(row[run], title, query_id, kept[title], kept.get(errors.get(title, "")))
    warn("%s: %d empty cells were left out", name, empty)


def _rows_of_board(kept: KeptBoard) -> tuple[list[tuple[int, Any]], list[tuple[str, str]]]:
    """The numbers of a board of ours as rows, and the runs that have no score by a measure."""
    cells: list[Any] = [(run.run_id, *cell) for run in kept.runs for cell in run.measures.items()]
    unscored = [(run_id, measure) for run_id, measure, cell in cells if cell.mean is None]
    rows = [
        (0, {"run": run, "measure": measure, "topic": topic, "value": value, "+/-": error if topic == ALL else None})
        for run, measure, cell in (*cells, *((OVERALL, *best) for best in kept.best.items())) if cell.mean is not None
        for error in [cell.standard_error] for topic, value in {**cell.per_query, ALL: cell.mean}.items()
        if value is not None
    ]  # fmt: skip
    return rows, unscored


def write_leaderboard(path: PathName, table: LeaderboardTable, form: Form = "ir_measures") -> None:
    """Writes a leaderboard, a number a line; reading the file gives the same rows, without standard errors (said).

    Args:
        path: the file.
        table: the numbers; all digits are written. The row of the best possible score (`_overall_`) is left out, as it
            would be read as a run.
        form: one of `WRITTEN`; by default lines `run topic measure value`.

    Raises:
        InputError: the file cannot be written, or a name is empty.
    """
    tell("%s: %d values of %s left out, which is no run", path_name(path), len(table.best), OVERALL)
    places = [("run", "measure", "topic", "value").index(column) for column in COLUMNS[form]]
    write_columns(path, ([row[place] for place in places] for row in table.rows), "\t")  # type: ignore[misc]
    errors = sum(row.error is not None for row in table.rows)
    say_left_out(path, [f"{errors} standard errors"] if errors else ())


def _is_leaderboard(head: Head) -> bool:
    """Whether it is our own JSON, a row of JSON lines, a header of measures, or a row that ends in its value."""
    line, row = head.line, head.object
    if head.is_json:
        numbers = [type(value) in (int, float) for key, value in row.items() if key not in {"run_id", *_TOPIC_HEADERS}]
        is_wide = isinstance(row.get("run_id"), str) and bool(numbers) and all(numbers)
        return row.get("format") == BOARD_FORMAT or {"run_id", "measure"} <= row.keys() or is_wide
    # The last line may be cut.
    lines = [one for one in (line, *head.rest.split("\n")[:-1]) if one.strip()]
    columns = line.split()
    is_mean = len(columns) == 3 and columns[1] == ALL
    if _long_header(columns) or is_mean or _are_scores(list(map(_cut, lines))):
        return True
    if _is_table(line):
        return any(is_number(cell) for cell in cells_of((*lines, head.rest)[1])[1:])
    # One tab stands between a query and its text, which may end in a number.
    return len(columns) == 4 and is_number(columns[-1]) and line.count("\t") in (0, 3)


LEADERBOARD = Format(
    "leaderboard", "leaderboard in any form; written as run topic measure value", read_leaderboard, write_leaderboard,
    _is_leaderboard,
)  # fmt: skip
# One for each form that is written: `OF_FORM.tot`.
OF_FORM = SimpleNamespace(**{
    form: Format("leaderboard", f"leaderboard, form {form}", read, write) for form in WRITTEN
    for read, write in [(partial(read_leaderboard, form=form), partial(write_leaderboard, form=form))]
})  # fmt: skip
