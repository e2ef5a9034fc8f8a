"""Reading test banks of any format."""

from __future__ import annotations

from typing import TypeAlias

from rubric_measures.api._sources import File, file_path
from rubric_measures.base.entities import TestBank
from rubric_measures.base.errors import FormatError

__all__ = ["Bank", "bank_of", "load_bank"]

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
