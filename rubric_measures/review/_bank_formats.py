"""The bank in every format that can hold one, read and written as `convert` does, and what a format cannot hold."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rubric_measures.base.entities import TestBank
from rubric_measures.base.errors import InputError, UnknownNameError, naming
from rubric_measures.base.files import path_name
from rubric_measures.formats.bank import BankEntry, bank_of_entries, is_bank, load_bank, read_bank


def read_entries(path: str | os.PathLike[str]) -> list[BankEntry]:
    """The entries of a bank in any format that holds one, as a CSV table.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it holds no bank.
    """
    if path_name(path) == "-" or is_bank(path):
        return read_bank(path)
    from rubric_measures.conversion import Options
    from rubric_measures.conversion.bridges import bridged, targets_of
    from rubric_measures.formats import FORMATS, detect_format

    one = FORMATS[detect_format(path)]
    if one.read is None or not targets_of(one.kind, ["bank"]):
        return read_bank(path)
    return list(bridged(one.read(path), one.kind, "bank", Options()))


def read_test_bank(path: str | os.PathLike[str]) -> TestBank:
    """The bank that `read_entries` reads; errors of the workbench's own format name the line."""
    if path_name(path) == "-" or is_bank(path):
        return load_bank(path)
    with naming(path):
        return bank_of_entries(read_entries(path))


class MadeBank(NamedTuple):
    """A bank in one format.

    Attributes:
        name: the format, as `convert --to` calls it.
        file_name: the file that it is written to.
        content: what its writer takes.
        note: what the format cannot hold, counted, in one line; empty where nothing is lost.
    """

    name: str
    file_name: str
    content: Any
    note: str


def bank_formats() -> dict[str, str]:
    """Format -> one line about it: those of `convert` that hold the items of a bank, besides the bank's own."""
    from rubric_measures.conversion.bridges import targets_of
    from rubric_measures.formats import FORMATS

    return {
        name: one.description
        for name, one in FORMATS.items()
        # Queries are made of a bank, too, but no bank comes back from them.
        if one.write and one.kind != "bank" and targets_of(one.kind, ["bank"]) and targets_of("bank", [one.kind])
    }


def made_banks(entries: Sequence[BankEntry], names: Sequence[str]) -> list[MadeBank]:
    """The bank in each of the formats; nothing is written yet, so that one that cannot hold it stops all.

    Raises:
        UnknownNameError: no such format of banks.
        InputError: a format cannot hold the bank, naming the format.
    """
    from rubric_measures.conversion import Options
    from rubric_measures.conversion.bridges import bridged, losses
    from rubric_measures.formats import FORMATS

    known = bank_formats()
    made = []
    for name in dict.fromkeys(names):
        if name not in known:
            raise UnknownNameError("format of banks", name, known)
        kind = FORMATS[name].kind
        try:
            content = bridged(list(entries), "bank", kind, Options())
            note = losses(entries, content, kind)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
        made.append(MadeBank(name, f"bank.{name.replace(':', '-')}.jsonl", content, note))
    return made


def write_banks(folder: Path, banks: Sequence[MadeBank]) -> None:
    """Writes the banks into a folder."""
    from rubric_measures.formats import FORMATS

    for bank in banks:
        write = FORMATS[bank.name].write
        assert write is not None
        write(folder / bank.file_name, bank.content)
