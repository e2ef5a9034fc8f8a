"""Tables in every output form: text, TSV, Markdown, LaTeX, JSON, JSON lines.

A command says what it found as a `Report`. A form is one function from a report to pieces of text; entered in `FORMS`,
it works for every command.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from string import ascii_letters
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from rubric_measures.base.errors import CONTROL, UnknownNameError, escaped, in_number

if TYPE_CHECKING:
    import pandas


class Ranged(NamedTuple):
    """A value with its interval: behind it for people, in columns `low:NAME` and `high:NAME` for programs."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Marked(NamedTuple):
    """A value that stands out: bold where a form has bold type, else with the mark behind it."""

    value: str | int | float | Ranged | None
    mark: str = "*"
    bold: bool = True
    boxed: bool = False


class Undefined(NamedTuple):
    """A value that does not exist, and why: `-` with the reason below the table, `null` in JSON."""

    reason: str


Cell = str | int | float | None | Ranged | Marked | Undefined
T = TypeVar("T")


class Column(NamedTuple):
    """One column.

    Attributes:
        header: its name.
        places: decimal places of its floats; -1 prints all digits.
        is_left: aligned to the left, as text is.
        width: the aligned text shortens longer cells to so many characters; None keeps them whole.
        only: `people` or `programs` where the others do not see it.
        is_ranged: its cells are `Ranged`.
    """

    header: str
    places: int = 4
    is_left: bool = False
    width: int | None = None
    only: Literal["", "people", "programs"] = ""
    is_ranged: bool = False


class Table(Struct, frozen=True):
    """One table.

    Attributes:
        columns: the columns; text shows no header where none has a name.
        rows: a cell for each column; None is an undefined value.
        title: what stands above it.
        notes: lines that stand below it.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    notes: Sequence[str] = ()

    def seen_by(self, who: Literal["people", "programs"]) -> Table:
        """The table without the columns that only others see; programs have a column for each number."""
        places = [place for place, one in enumerate(self.columns) if one.only in ("", who)]
        heads = [self.columns[place] for place in places]
        rows: list[list[Cell]] = [[row[place] for place in places] for row in self.rows]
        if who == "programs" and any(head.is_ranged for head in heads):
            rows = [[part for pair in zip(row, heads, strict=True) for part in _parts(*pair)] for row in rows]
            heads = [
                head._replace(header=start + head.header, is_ranged=False)
                for head in heads
                for start in (("", "low:", "high:") if head.is_ranged else ("",))
            ]
        return Table(heads, rows, self.title, self.notes)


def _parts(cell: Cell, column: Column) -> Sequence[Cell]:
    """The numbers of a cell."""
    if not column.is_ranged:
        return (cell,)
    value = cell.value if isinstance(cell, Marked) else cell
    return value if isinstance(value, Ranged) else (value, None, None)


class Report(NamedTuple):
    """What a command found, in the shapes that forms need; each is made only when a form asks for it.

    Attributes:
        tables: for reading; consumed once.
        data: the same for programs, one value a cell; empty: the tables. Consumed once.
        content: the JSON object, of plain values; None: `rows`, with an object a row of the data.
    """

    tables: Iterable[Table]
    data: Iterable[Table] = ()
    content: Callable[[], Mapping[str, object]] | None = None


class Reported(ABC):
    """What is found, and printed as the text of its report."""

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong with what was looked at."""
        return True

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing that was asked for."""
        return True

    @abstractmethod
    def report(self) -> Report:
        """What `render` shows in any form."""

    def log_notes(self) -> None:  # noqa: B027 - most leave nothing out
        """Logs what the report leaves out."""

    def render(self, form: str = "text") -> str:
        """What is found, in one of `FORMS`, such as `latex`."""
        return "".join(render(self.report(), form))

    def __repr__(self) -> str:
        # All of it is what `print` shows.
        return f"<{type(self).__name__}>"

    def __str__(self) -> str:
        return self.render().rstrip("\n")

    def _repr_html_(self) -> str:
        return in_notebook(self.report().tables)

    def to_dataframe(self) -> pandas.DataFrame:
        """The rows and columns of the form `tsv`, with all digits; NaN or None is what does not exist.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from rubric_measures.base.plugins import require

        report = self.report()
        rows = [row for table in (report.data or report.tables) for row in _objects(table)]
        frame: pandas.DataFrame = require("pandas", "pandas").DataFrame(rows)
        return frame


def in_lines(lines: Iterable[str]) -> Table:
    """Plain lines, to read."""
    return Table([Column("", is_left=True)], [[in_number(line)] for line in lines])


def columns(headers: Iterable[str], places: int = 4, left: int = 1) -> list[Column]:
    """Columns of these headers; the first `left` are aligned to the left."""
    return [Column(header, places, is_left=index < left) for index, header in enumerate(headers)]


def declared(
    rows: Iterable[T],
    cells: Mapping[Column | str, Callable[[T], Cell]],
    places: int = 4,
    title: str = "",
    notes: Sequence[str] = (),
) -> Table:
    """A table whose columns say what they show of a row's object; a name is a column of these decimal places.

    >>> declared([1, 2], {"number": lambda one: one, "square": lambda one: one**2}).rows
    [[1, 1], [2, 4]]
    """
    heads = [
        one if isinstance(one, Column) else Column(one, places, is_left=place == 0) for place, one in enumerate(cells)
    ]
    return Table(heads, [[cell(row) for cell in cells.values()] for row in rows], title, notes)


def number(value: float | None, places: int = 4) -> str:
    """A number with so many decimal places (all digits for -1); `-` for None.

    >>> number(0.5), number(0.1, -1), number(None)
    ('0.5000', '0.1', '-')
    """
    if value is None:
        return "-"
    return repr(float(value)) if places < 0 else f"{value:z.{places}f}"


def ranged(value: float | None, low: float | None, high: float | None, places: int = 4) -> str:
    """A number with its interval behind it, where it has one.

    >>> ranged(0.5, 0.25, 0.75, 2), ranged(0.5, None, None, 2)
    ('0.50 [0.25, 0.75]', '0.50')
    """
    shown = number(value, places)
    if value is None or low is None or high is None:
        return shown
    return f"{shown} [{number(low, places)}, {number(high, places)}]"


def inert(text: str) -> str:
    """The text as a cell that no spreadsheet takes for a formula; `active` gives it back.

    >>> inert("=1+1"), inert("@name"), inert("'=1+1"), inert("-0.5"), inert("bm25")
    ("'=1+1", "'@name", "''=1+1", '-0.5', 'bm25')
    """
    return f"'{text}" if is_formula(text.lstrip("'")) else text


_OPENS_FORMULA = frozenset("=+-@")


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would compute a cell of this text; numbers, `+` and `-` are none."""
    if text[:1] not in _OPENS_FORMULA or len(text) < 2 or text == "+/-":
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def active(cell: str) -> str:
    """What `inert` was given."""
    return cell[1:] if cell[:1] == "'" and is_formula(cell.lstrip("'")) else cell


def letters(groups: Iterable[int]) -> str:
    """Numbers of groups as letters, small ones, then capitals, `(53)` and so on where these end; `-` for none.

    >>> letters([0, 2]), letters([26]), letters([52]), letters([])
    ('ac', 'A', '(53)', '-')
    """
    return "".join(f"({group + 1})" if group > 51 else ascii_letters[group] for group in groups) or "-"


def render(report: Report, form: str) -> Iterator[str]:
    """The report in a form, as pieces of text.

    Args:
        report: what to show; consumed.
        form: `text` (aligned), `tsv` (tables of the same columns have one header), `markdown`, `latex` (booktabs),
            `json`, or `jsonl` (an object a row, with all digits).

    Raises:
        UnknownNameError: there is no such form.
    """
    if form not in FORMS:
        raise UnknownNameError("output format", form, FORMS, settings=("output_format",))
    return FORMS[form](report if report.data else report._replace(data=report.tables))


def _shown(cell: Cell, column: Column) -> str:
    if isinstance(cell, float):
        return number(cell, column.places)
    if isinstance(cell, Ranged):
        return ranged(*cell, column.places)
    if isinstance(cell, str):
        return cell if cell.isprintable() else escaped(cell)
    if cell is None or isinstance(cell, Undefined):
        return "-"
    return _shown(cell.value, column) + cell.mark if isinstance(cell, Marked) else str(cell)


def _grid(table: Table, shown: Callable[[Cell, Column], str] = _shown) -> list[list[str]]:
    """Header and rows as text."""
    rows = ([column.header for column in table.columns], *table.rows)
    return [[shown(cell, column) for cell, column in zip(row, table.columns, strict=True)] for row in rows]


def _aligned(grid: Sequence[Sequence[str]], table: Table, widths: Sequence[int]) -> Iterator[list[str]]:
    for row in grid:
        yield [
            text.ljust(width) if column.is_left else text.rjust(width)
            for text, column, width in zip(row, table.columns, widths, strict=True)
        ]


def _widths(grid: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, texts)) for texts in zip(*grid, strict=True)]


def _notes(table: Table) -> list[str]:
    """The notes of a table, and why values of its columns are undefined."""
    reasons = dict.fromkeys(
        f"{column.header} -: {cell.reason}"
        for row in table.rows
        for cell, column in zip(row, table.columns, strict=True)
        if isinstance(cell, Undefined)
    )
    return [escaped(in_number(note)) for note in (*reasons, *table.notes)]


def _for_people(
    report: Report,
    rows: Callable[[Table], Iterator[str]],
    title: str,
    note: str,
    said: Callable[[str], str] = str,
) -> Iterator[str]:
    """The tables one below the other, each with its title and its notes, as a form writes these."""
    for index, whole in enumerate(report.tables):
        table = whole.seen_by("people")
        yield "\n" * (index > 0)
        yield title.format(said(escaped(table.title))) if table.title else ""
        yield from rows(table)
        yield from (note.format(said(one)) for one in _notes(table))


def _text(table: Table) -> Iterator[str]:
    def shown(cell: Cell, column: Column) -> str:
        text = _shown(cell, column)
        return text if column.width is None or len(text) <= column.width else text[: column.width - 1] + "…"

    indent = "  " if table.title else ""
    head = [_shown(column.header, column) for column in table.columns]
    grid = [head, *_grid(table, shown)[1:]]
    for row in _aligned(grid if any(head) else grid[1:], table, _widths(grid)):
        yield f"{indent}{'  '.join(row)}".rstrip() + "\n"
    if any(head) and not table.rows:
        yield f"{indent}(none)\n"
    yield "\n" * bool(_notes(table))


def _tsv(report: Report) -> Iterator[str]:
    known: list[Cell] = []
    for whole in report.data:
        # A plain board needs no other view.
        table = whole.seen_by("programs") if any(one.only or one.is_ranged for one in whole.columns) else whole
        head: list[Cell] = [column.header for column in table.columns]
        for row in (head, *table.rows) if head != known else table.rows:
            cells = [(cell, _shown(cell, column)) for cell, column in zip(row, table.columns, strict=True)]
            line = "\t".join(
                inert(text) if text[:1] in _OPENS_FORMULA and isinstance(cell, str) else text for cell, text in cells
            )
            yield f"\n{line}\n" if row is head and known else f"{line}\n"
        known = head


# An underscore inside a word is no markup; one at its edge is. An ampersand begins an entity.
_MARKUP = re.compile(r"[\\`*\[\]<>|#~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")


def markdown_text(text: str) -> str:
    """The text as a cell: nothing in it is a border or markup."""
    return _MARKUP.sub(r"\\\g<0>", text)


def _markdown_cell(cell: Cell, column: Column) -> str:
    if isinstance(cell, Marked) and cell.bold:
        return f"**{markdown_text(_shown(cell.value, column))}**"
    return markdown_text(_shown(cell, column))


def _markdown(table: Table) -> Iterator[str]:
    grid = _grid(table, _markdown_cell)
    # Cells that the aligned text shortens are too long to pad.
    widths = [
        3 if column.width is not None else max(width, 3)
        for column, width in zip(table.columns, _widths(grid), strict=True)
    ]
    rule = ["-" * width if column.is_left else "-" * (width - 1) + ":"
            for column, width in zip(table.columns, widths, strict=True)]  # fmt: skip
    head, *rows = _aligned(grid, table, widths)
    yield from (f"| {' | '.join(row)} |\n" for row in (head, rule, *rows))


_TEX = {char: f"\\{char}" for char in "&%$#_{}"}
_TEX |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
_TEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
_TEX |= {"±": r"$\pm$", "†": r"$\dagger$", "−": "$-$", "κ": r"$\kappa$", "α": r"$\alpha$", "τ": r"$\tau$"}
_TEX |= {"ρ": r"$\rho$", "λ": r"$\lambda$"}


def _latex_text(text: str) -> str:
    return "".join(_TEX.get(char, char) for char in text)


def _latex_cell(cell: Cell, column: Column) -> str:
    text = _shown(cell.value if isinstance(cell, Marked) else cell, column)
    # A hyphen is no minus in print.
    text = _latex_text(text if column.is_left else re.sub(r"(?<![^ \[])-(?=\d)", "−", text))
    if isinstance(cell, Marked):
        text = f"\\textbf{{{text}}}" if cell.bold else text
        text = f"\\fbox{{{text}}}" if cell.boxed else text
    return text


def _latex_row(cells: Sequence[str]) -> str:
    # What begins with [ or * would be an argument of the line end before it.
    guard = "{}" if cells[0].startswith(("[", "*")) else ""
    return f"{guard}{' & '.join(cells)} \\\\\n"


def _latex(table: Table) -> Iterator[str]:
    head, *rows = _grid(table, _latex_cell)
    yield f"\\begin{{tabular}}{{{''.join('l' if column.is_left else 'r' for column in table.columns)}}}\n"
    yield "\\toprule\n" + _latex_row(head) + "\\midrule\n"
    yield from map(_latex_row, rows)
    yield "\\bottomrule\n\\end{tabular}\n"


# Rows of a table and of a picture that a notebook shows.
_ROWS, _BARS = 50, 20


def in_notebook(tables: Iterable[Table], said: str = "", bars: Mapping[str, Ranged] | None = None) -> str:
    """Tables as HTML for a notebook, with a small picture: nothing in them is markup.

    Args:
        tables: of long ones the first rows are shown, and the others counted.
        said: what stands first.
        bars: what is drawn: name -> value, perhaps with its interval. None draws the first column of the first table
            that has intervals.
    """
    import jinja2
    from markupsafe import Markup

    def shown(cell: Cell, column: Column) -> str:
        if isinstance(cell, Marked) and cell.bold:
            return Markup("<b>{}</b>").format(_shown(cell.value, column))
        return _shown(cell, column)

    whole = list(tables)
    if bars is None:
        bars = _ranged_column(whole[0]) if whole else {}
    drawn = itertools.islice(bars.items(), _BARS)
    known = {escaped(name): [end for end in bar if end is not None and math.isfinite(end)] for name, bar in drawn}
    low, high = (pick((0.0, *itertools.chain(*known.values()))) for pick in (min, max))
    places = {name: [200 + 300 * (end - low) / (high - low or 1) for end in (0.0, *known[name])] for name in known}
    pages = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    made: str = pages.get_template("notebook.html").render(
        said=said if "\n" in said else escaped(said),
        bars=[(name, zero, at, line) for name, (zero, *ends) in places.items() for at, *line in [ends] if ends],
        tables=[
            (
                escaped(table.title),
                _grid(replace(table, rows=table.rows[:_ROWS]), shown),
                [*(f"and {left} more" for left in [len(table.rows) - _ROWS] if left > 0), *_notes(table)],
            )
            for table in (one.seen_by("people") for one in whole)
        ],
    )
    return made


def _ranged_column(table: Table) -> dict[str, Ranged]:
    """The first column of values with intervals, by the names of its rows."""
    rows = [[cell.value if isinstance(cell, Marked) else cell for cell in row] for row in table.rows]
    place = next((row.index(cell) for row in rows for cell in row if isinstance(cell, Ranged)), 0)
    return {str(row[0]): cell for row in rows if isinstance(cell := row[place], Ranged)}


def plain(value: Any) -> Any:
    """What JSON can say of a value: records as objects, tuples as lists, keys as text, no number as null."""
    if isinstance(value, Marked):
        return plain(value.value)
    if isinstance(value, Undefined) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, Struct):
        value = asdict(value)
    elif is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(content) for key, content in value.items()}
    if isinstance(value, list | tuple):
        return [plain(content) for content in value]
    return value


def _dumped(content: object, indent: int | None = None) -> str:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=indent)
    # The same text for a reader; JSON itself escapes the controls below the space only.
    return re.sub(CONTROL.replace("\x00-\x1f", ""), lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def _objects(table: Table) -> Iterator[dict[str, object]]:
    """The rows of a table as objects; `reasons` says why values are undefined."""
    table = table.seen_by("programs")
    names = [column.header for column in table.columns]
    for row in table.rows:
        cells = dict(zip(names, row, strict=True))
        reasons = {name: cell.reason for name, cell in cells.items() if isinstance(cell, Undefined)}
        yield plain({**cells, "reasons": reasons} if reasons else cells)


def _json(report: Report) -> Iterator[str]:
    if report.content is not None:
        yield _dumped(report.content(), 1)
        return
    yield _dumped({"rows": [row for table in report.data for row in _objects(table)]}, 1)


FORMS: Mapping[str, Callable[[Report], Iterator[str]]] = MappingProxyType(
    {
        "text": partial(_for_people, rows=_text, title="{}\n", note="{}\n"),
        "tsv": _tsv,
        "json": _json,
        "jsonl": lambda report: (_dumped(row) for table in report.data for row in _objects(table)),
        "latex": partial(_for_people, rows=_latex, title="% {}\n", note="% {}\n"),
        "markdown": partial(_for_people, rows=_markdown, title="### {}\n\n", note="\n{}\n", said=markdown_text),
    }
)
Form = Literal["text", "tsv", "json", "jsonl", "latex", "markdown"]
