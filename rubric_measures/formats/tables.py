"""Rows of any table: CSV, TSV, JSON lines, one JSON value, parquet; data frames and rows in memory."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

from rubric_measures.base.errors import FormatError, InputError, warn
from rubric_measures.base.files import note_unfinished, open_binary, path_name, peek_head
from rubric_measures.base.json_text import check_keys, json_texts, parse_json
from rubric_measures.base.plugins import require
from rubric_measures.formats.base import PathName, cells_of, delimiter_of

Cells: TypeAlias = Mapping[str, Any]
# What rows an object is that stands alone in a file at this line.
Unwrap: TypeAlias = Callable[[int, dict[str, Any]], list[tuple[int, Any]]]
# Made from the first line of a file, or its first JSON text: whether another may be wanted. It lets a broken one pass,
# and whoever reads that says what is wrong.
Sieve: TypeAlias = Callable[[bytes], Callable[[bytes], bool]]
# The longest cell; an answer or a list of contexts is longer than what csv allows by itself.
_LONGEST = 1 << 30
# What stands for a byte that is no UTF-8, and the letter that it is to Windows; some bytes are none.
_ESCAPED = re.compile("[\udc80-\udcff]")
_WINDOWS = {0xDC00 + byte: said for byte in range(128, 256) if (said := bytes([byte]).decode("cp1252", "ignore"))}
# How a file of parquet begins.
PARQUET = b"PAR1"


class Rows(NamedTuple):
    """The rows of a table; a file is read while they are asked for.

    Attributes:
        name: the file, or what stands for it in messages.
        rows: (line in the file, else number of the row; column -> cell), once.
        is_text: whether cells are texts, as those of CSV.
    """

    name: str
    rows: Iterator[tuple[int, Cells]]
    is_text: bool = False


def rows_of(
    source: Any,
    what: str,
    *,
    is_header: Callable[[Sequence[str]], bool] = lambda cells: True,
    bare: Sequence[Sequence[str]] = (),
    is_quoted: bool = True,
    by_hand: bool = False,
    unwrap: Unwrap | None = None,
    sieve: Sieve | None = None,
) -> Rows:
    """The rows of a table, whatever holds them.

    Args:
        source: a file, told by its content; a frame of pandas or polars; a mapping of columns; rows (mappings); or
            `Rows`, which are given back.
        what: the rows in the plural, for errors.
        is_header: whether the first line of CSV or TSV names the columns.
        bare: the columns of lines with tabs that have no header, by their number.
        is_quoted: whether cells of TSV without a header may stand in quotes; those of other tables always may.
        by_hand: whether people write such files: then no JSON object may name a field twice.
        unwrap: (line, object) -> the rows that one object holds, where it stands alone; see `unwrapped`.
        sieve: tells which JSON texts, and lines with tabs and no header, are read; others are passed over.

    Raises:
        InputError: the file cannot be opened, or the source is no table.
        FormatError: it is empty, damaged, or no table; here, or while the rows are read.
        MissingExtraError: it is parquet, and pyarrow is not installed.
    """
    if isinstance(source, Rows):
        return source
    unwrap = unwrap or unwrapped
    if not isinstance(source, str) and not hasattr(source, "__fspath__"):
        return _in_memory(source, what, unwrap)
    name = path_name(source)
    # Standard input is read once.
    sieve = None if name == "-" else sieve
    head = peek_head(source)
    if not head.strip():
        raise FormatError(f"is empty; expected {what}", path=name)
    if b"\0" in head and not head.startswith(PARQUET):
        raise FormatError(f"is no text in UTF-8; expected {what}", path=name)
    if head.startswith(PARQUET):
        return Rows(name, _parquet(source, name))
    if head.lstrip()[:1] in (b"{", b"["):
        return Rows(name, _json(source, name, by_hand, unwrap if head.lstrip()[:1] == b"{" else unwrapped, sieve))
    first = head.lstrip(b" \r\n").partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
    is_plain = "\t" in first and not is_quoted and not is_header(cells_of(first))
    lines = _cells(source, name, delimiter_of(first), is_plain)
    if is_plain and sieve is not None:
        one = next(lines)
        found = _wanted_lines(source, sieve(first.encode()), one[0])
        lines = chain([one], ((line, _letters(data, name, line).split("\t")) for line, data in found))
    return _delimited(lines, name, is_header, bare if "\t" in first else ())


def _in_memory(source: Any, what: str, unwrap: Unwrap) -> Rows:
    name = f"the {what}"
    if hasattr(source, "to_dicts"):
        # polars
        source = source.to_dicts()
    elif hasattr(source, "columns") and hasattr(source, "to_dict"):
        source = with_index(source)
        # None, whatever stands for no value.
        _check_columns(source.columns, name)
        source = source.astype(object).where(source.notna(), None).to_dict("records")
    elif isinstance(source, Mapping):
        source = [row for _, row in unwrap(1, _plain(dict(source)))]
    if not isinstance(source, Iterable):
        raise InputError(f"{source!r:.60} is no table; give a file, a data frame, or rows")

    def rows() -> Iterator[tuple[int, Cells]]:
        for number, row in enumerate(source, 1):
            if not isinstance(row, Mapping):
                raise InputError(f"{name}: row {number} is {row!r:.40}; expected a mapping")
            _check_columns(row, name)
            yield number, _plain(dict(row))

    return Rows(name, rows())


def with_index(table: Any) -> Any:
    """A table whose columns are also the named levels of its index, as far as no column is called so; or any other."""
    names = getattr(getattr(table, "index", None), "names", ())
    levels = [name for name in names if name is not None and name not in table.columns]
    return table.reset_index(levels) if levels else table


def _check_columns(columns: Iterable[Any], name: str, line: int = 0) -> None:
    """Refuses columns whose name is no text, and two of one name, of which the last would count in silence."""
    known = set()
    for column in columns:
        if not isinstance(column, str):
            raise FormatError(f"expected names of columns that are texts; found {column!r:.40}", path=name, line=line)
        if column and column in known:
            raise FormatError(f"the header names {column} twice; keep one", path=name, line=line)
        known.add(column)


def _plain(value: Any) -> Any:
    """What arrays and numbers of numpy hold, and None for what stands for no value in pandas."""
    if type(value) in (str, int, float):
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def _parquet(source: PathName, name: str) -> Iterator[tuple[int, Cells]]:
    parquet = require("pyarrow.parquet", "parquet")
    try:
        # A file may be one group of rows: it is read by pieces.
        with parquet.ParquetFile(source, pre_buffer=False, buffer_size=1 << 20) as file:
            yield from enumerate((row for batch in file.iter_batches(1024) for row in batch.to_pylist()), 1)
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot be read as parquet ({str(error).splitlines()[0]:.120})", path=name) from None


def parquet_columns(source: PathName) -> tuple[str, ...]:
    """The columns of a parquet file; none where it is damaged.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    try:
        return tuple(require("pyarrow.parquet", "parquet").read_schema(source).names)
    except (OSError, ValueError):
        return ()


def _json(
    source: PathName, name: str, by_hand: bool, unwrap: Unwrap, sieve: Sieve | None
) -> Iterator[tuple[int, Cells]]:
    texts = json_texts(source)
    head = list(islice(texts, 2))
    if sieve is not None and head:
        (line, first), (after, _) = head[0], head[-1]
        parse_json(first, path=name, line=line)
        may_be = sieve(first)
        # Elements of a list, and objects over several lines or several on one, are read to find their ends.
        are_lines = line < after and b"\n" not in first and peek_head(source).lstrip()[:1] == b"{"
        texts = _wanted_lines(source, may_be, after) if are_lines else (one for one in texts if may_be(one[1]))
    for line, data in chain(head, texts):
        value = parse_json(data, path=name, line=line)
        if by_hand:
            check_keys(data, path=name, line=line)
        alone = len(head) == 1 and isinstance(value, dict)
        for number, row in unwrap(line, value) if alone else [(line, value)]:
            if not isinstance(row, dict):
                raise FormatError(f"expected an object, found {row!r:.40}", path=name, line=number)
            yield number, row


def _wanted_lines(source: PathName, may_be: Callable[[bytes], bool], after: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a file behind one that may be wanted."""
    with open_binary(source) as stream:
        for number, line in enumerate(stream, 1):
            if may_be(line) and number > after and not line.isspace():
                yield number, line.rstrip(b"\r\n")


def _letters(data: bytes, name: str, line: int) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise FormatError("is not UTF-8; convert the file first", path=name, line=line) from None


def unwrapped(line: int, value: dict[str, Any]) -> list[tuple[int, Any]]:
    """The rows that one object holds: lists that programs wrap, or columns; else it is a row itself."""
    for listed in map(value.get, ("results", "testCases", "test_cases", "rows", "data")):
        if isinstance(listed, list) and listed and all(isinstance(row, dict) for row in listed):
            return list(enumerate(listed, 1))
    cells = list(value.values())
    if cells and all(isinstance(column, list) for column in cells) and len({len(column) for column in cells}) == 1:
        return list(enumerate((dict(zip(value, row, strict=True)) for row in zip(*cells, strict=True)), 1))
    if cells and all(isinstance(column, dict) and column.keys() == cells[0].keys() for column in cells):
        places = list(cells[0])
        if all(str(place).isdigit() for place in places):
            return [(int(place) + 1, {name: column[place] for name, column in value.items()}) for place in places]
    return [(line, value)]


def _delimited(
    lines: Iterator[tuple[int, list[str]]],
    name: str,
    is_header: Callable[[Sequence[str]], bool],
    bare: Sequence[Sequence[str]],
) -> Rows:
    first = next(lines, (1, []))
    columns, said = tuple(cell.strip() for cell in first[1]), "header"
    if not is_header(columns):
        known = next((tuple(names) for names in bare if len(names) == len(columns)), None)
        if known is None:
            # The header lacks something: whoever knows the columns says what.
            return Rows(name, iter([(first[0], dict.fromkeys(columns, ""))]), True)
        columns, said, lines = known, "first line", chain([first], lines)
    _check_columns(columns, name, first[0])

    def rows() -> Iterator[tuple[int, Cells]]:
        for line, cells in lines:
            yield line, row_of(columns, cells, said, name, line)

    return Rows(name, rows(), True)


def row_of(columns: Sequence[str], cells: Sequence[str], said: str, name: str, line: int) -> Cells:
    """The cells of a line by their columns.

    Args:
        columns: the columns.
        cells: the cells.
        said: the line that says how many there are.
        name: the file.
        line: the line.

    Raises:
        FormatError: they are not as many.
    """
    if len(cells) != len(columns):
        problem = f"{len(cells)} cells; the {said} has {len(columns)} (quote texts that hold a delimiter)"
        raise FormatError(problem, path=name, line=line)
    return dict(zip(columns, cells, strict=True))


def _cells(source: PathName, name: str, delimiter: str, is_plain: bool) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that is not empty, with the line where it begins.

    Bytes that are no UTF-8 are read as Windows writes them (cp1252), which is said.
    """
    with open_binary(source) as binary:
        # Standard input stays open.
        found = io.BytesIO(binary.read()) if name == "-" else binary
        stream = io.TextIOWrapper(found, encoding="utf-8-sig", errors="surrogateescape", newline="")
        last, is_windows = "", False

        def watched() -> Iterator[str]:
            nonlocal last, is_windows
            for last in stream:
                if not last.isascii() and _ESCAPED.search(last):
                    last, is_windows = last.translate(_WINDOWS), True
                    if _ESCAPED.search(last):
                        raise FormatError("is not UTF-8; convert the file first", path=name, line=reader.line_num + 1)
                yield last

        before = csv.field_size_limit(_LONGEST)
        reader = csv.reader(
            watched(), delimiter=delimiter, strict=True, skipinitialspace=delimiter != "\t",
            quoting=csv.QUOTE_NONE if is_plain else csv.QUOTE_MINIMAL,
        )  # fmt: skip
        try:
            line = 1
            for cells in reader:
                # Where the row begins: a cell may go over many lines.
                start, line = line, reader.line_num + 1
                if any(cell.strip() for cell in cells):
                    yield start, cells
        except csv.Error as error:
            raise FormatError(f"is no table ({error})", path=name, line=reader.line_num) from None
        finally:
            csv.field_size_limit(before)
    if is_windows:
        warn("%s: is not UTF-8; read as Windows writes it (cp1252)", name)
    note_unfinished(last, name)
