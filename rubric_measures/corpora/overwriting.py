"""Outputs that would replace what a command or a function reads, or another output: refused before anything is made."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import followed

_Path = str | os.PathLike[str]


def keep_inputs(output: _Path | None, *inputs: object) -> None:
    """Refuses an output that would replace one of the files it is made of; of a collection, one of its files.

    Args:
        output: the file to write.
        inputs: what is read; what is no name of a file is passed over.

    Raises:
        InputError: it would.
    """
    for path in inputs:
        if output and _would_replace(output, path):
            raise InputError(f"{output}: is read here, and would be replaced; name another output")


def refuse_table(output: _Path | None) -> None:
    """Refuses the name of a table for what is written as JSON lines.

    Raises:
        InputError: it is one.
    """
    if output and os.fspath(output).removesuffix(".gz").endswith((".csv", ".tsv", ".parquet")):
        raise InputError(f"{output}: is written as JSON lines; name a .jsonl.gz file, and `convert` that to a table")


def keep_apart(**outputs: _Path | None) -> None:
    """Refuses two outputs of a command that are one file.

    Raises:
        InputError: two of them are one.
    """
    for (what, output), (other, also) in itertools.combinations(outputs.items(), 2):
        if output and also and (output == also == "-" or _would_replace(output, also)):
            raise InputError(f"{also}: is the name of the {what} and of the {other}; name another one")


def keep_cache(cache: _Path | None, *files: object) -> None:
    """Refuses a reply cache where a command reads or writes something else; the files beside it belong to it.

    Args:
        cache: its file; None or nothing for none.
        files: what else is read and written; what is no name of a file is passed over.

    Raises:
        InputError: one of them is a file of the cache: its replies would be lost, or the file.
    """
    for ending in ("", "-wal", "-shm", "-journal") if cache and cache != ":memory:" else ():
        for path in files:
            if _would_replace(f"{cache}{ending}", path):
                raise InputError(f"{path}: is a file of the reply cache, too; name another one", settings=("cache",))


def _would_replace(output: _Path, source: object) -> bool:
    """Whether writing a file would replace another one, or a file of a collection."""
    if not isinstance(source, str | os.PathLike) or not source or "-" in (output, source):
        return False
    one, path = Path(output), Path(source)
    is_there, files = one.is_file(), [path]
    # Collections are looked into where the output is there, so that it can be lost.
    if is_there and path.is_dir():
        from rubric_measures.corpora.collections import files_of

        files = files_of(path)
    written = followed(one).resolve()
    return any(
        followed(file).resolve() == written or (is_there and file.is_file() and one.samefile(file)) for file in files
    )
