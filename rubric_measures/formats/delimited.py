"""Tables with a header, cells parted by commas, semicolons or tabs, as spreadsheets and data frames write them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import note_unfinished, path_name, read_text
from rubric_measures.formats.base import PathName

__all__ = ["cells_of", "delimiter_of", "read_delimited"]

# The longest cell; an answer or a list of contexts is longer than what csv allows by itself.
_LONGEST = 1 << 30
_DELIMITERS = (",", "\t", ";")


def cells_of(line: str) -> list[str]:
    """The cells of one line, stripped; none where it is no line of a table."""
    try:
        reader = csv.reader([line], delimiter=delimiter_of(line), skipinitialspace=True)
        return [cell.strip() for cell in next(reader, [])]
    except csv.Error:
        # Lines of other files can hold what no header does: a carriage return, or a text of any length.
        return []


def delimiter_of(header: str) -> str:
    """What parts the cells of a header: of comma, tab and semicolon the one that gives most cells; comma of equals."""

    def cells(delimiter: str) -> int:
        try:
            return len(next(csv.reader([header], delimiter=delimiter), []))
        except csv.Error:
            return 0

    return max(_DELIMITERS, key=cells)


def read_delimited(
    path: PathName, columns: Sequence[str] = (), *, skip_spaces: bool = False
) -> tuple[tuple[str, ...], list[tuple[int, tuple[str, ...]]]]:
    """The header of a table, stripped, and its rows: (line in the file, as many cells); empty lines are passed over.

    Args:
        path: the file.
        columns: what the header must name, each once.
        skip_spaces: whether blanks after a delimiter belong to no cell (`qid, "a text"`).

    Raises:
        InputError: the file cannot be opened.
        FormatError: it is empty or no table, the header lacks a column, or a row has more or fewer cells than the
            header; names file and line.
    """
    name, text = path_name(path), read_text(path)
    if not text.strip():
        raise FormatError("is empty; expected a header and rows", path=name)
    before = csv.field_size_limit(_LONGEST)
    first = text.lstrip("\n").partition("\n")[0]
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter_of(first), strict=True, skipinitialspace=skip_spaces
    )
    header: tuple[str, ...] = ()
    rows: list[tuple[int, tuple[str, ...]]] = []
    try:
        line = 1
        for cells in reader:
            # Where the row begins: a cell may go over many lines.
            start, line = line, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = tuple(cell.strip() for cell in cells)
                missing = [column for column in columns if column not in header]
                if missing or (columns and len(set(header)) < len(header)):
                    problem = f"lacks {', '.join(missing)}" if missing else "names a column twice"
                    raise FormatError(f"the header {problem}; expected {','.join(columns)}", path=name, line=start)
            elif len(cells) != len(header):
                problem = f"{len(cells)} cells; the header has {len(header)} (quote texts that hold a delimiter)"
                raise FormatError(problem, path=name, line=start)
            else:
                rows.append((start, tuple(cells)))
    except csv.Error as error:
        raise FormatError(f"is no table ({error})", path=name, line=reader.line_num) from None
    finally:
        csv.field_size_limit(before)
    note_unfinished(text, name)
    return header, rows
