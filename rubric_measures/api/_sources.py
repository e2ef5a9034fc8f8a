"""What functions of the API take where they read: names of files, open files, rows, test banks of any format."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

from rubric_measures.base.entities import TestBank
from rubric_measures.base.errors import FormatError, InputError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = [
    "Bank",
    "File",
    "bank_of",
    "file_path",
    "is_file",
    "listed",
    "load_bank",
]


File: TypeAlias = str | os.PathLike[str] | IO[bytes] | IO[str]
"""A file: its name (gzip or plain; `-` is standard input), or the open file, read from where it stands."""


def is_file(source: object) -> TypeIs[File]:
    """Whether something is a `File`: a name, or open for reading."""
    return isinstance(source, str | os.PathLike) or hasattr(source, "read")


def listed(files: File | Iterable[File]) -> list[File]:
    """One file or several, as a list."""
    return [files] if is_file(files) else list(files)


@contextlib.contextmanager
def file_path(source: File) -> Iterator[str]:
    """The name under which a file can be read; an open file is copied to disk for as long as the block lasts.

    Errors name the open file, not the copy.
    """
    if isinstance(source, str | os.PathLike):
        yield os.fspath(source)
        return
    name = getattr(source, "name", None)
    shown = name if isinstance(name, str) else "open file"
    with tempfile.TemporaryDirectory(prefix="rubric_measures-") as folder:
        copy = Path(folder) / (Path(shown).name or "open file")
        content = source.read()
        copy.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
        try:
            yield str(copy)
        except FormatError as error:
            if error.path != str(copy):
                raise
            raise FormatError(
                error.problem, path=shown, line=error.line, field=error.field, settings=error.settings
            ) from None
        except InputError as error:
            if str(copy) not in str(error):
                raise
            raise InputError(str(error).replace(str(copy), shown), settings=error.settings) from None


Bank: TypeAlias = TestBank | File
"""A test bank, or a file that holds one."""


def load_bank(source: File) -> TestBank:
    """Reads a test bank of any format that this package reads; the format is told by content.

    >>> from io import StringIO
    >>> import rubric_measures
    >>> rubric_measures.load_bank(StringIO('{"qid": "q1", "nuggets": [{"text": "Blue.", "importance": "vital"}]}'))
    TestBank(1 items of 1 queries)

    Args:
        source: the file: a question or nugget bank of the Rubric workbench, nuggets or assignments of nuggetizer,
            rubrics, Auto-Judge's banks, …; `docs/test-banks.md` lists them. Standard input (`-`) holds a bank of the
            workbench.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it holds no bank; or it contradicts itself. Names file, line and field.
    """
    from rubric_measures.formats import bank

    with file_path(source) as path:
        if path == "-" or bank.is_bank(path):
            return bank.load_bank(path)
        from rubric_measures.conversion.bridges import Options, bridged, targets_of
        from rubric_measures.formats import FORMATS, detect_format

        try:
            name = detect_format(path)
        except FormatError:
            name = "bank"
        kind, read = FORMATS[name].kind, FORMATS[name].read
        if name == "bank" or read is None or not targets_of(kind, ["bank"]):
            # What is no bank at all is refused by the reader of banks, who says what it expects.
            return bank.load_bank(path)
        return bank.bank_of_entries(bridged(read(path), kind, "bank", Options()))


def bank_of(bank: Bank | None) -> TestBank | None:
    """The bank itself, wherever it is."""
    return bank if bank is None or isinstance(bank, TestBank) else load_bank(bank)
