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
        if output and isinstance(path, str | os.PathLike) and path and _would_replace(output, path):
            raise InputError(f"{output}: is read here, and would be replaced; name another output")


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
            if isinstance(path, str | os.PathLike) and path and _would_replace(f"{cache}{ending}", path):
                raise InputError(f"{path}: is a file of the reply cache, too; name another one", settings=("cache",))


def _would_replace(output: _Path, path: _Path) -> bool:
    """Whether writing a file would replace another one, or a file of a collection."""
    return "-" not in (output, path) and any(_is_same(Path(output), file) for file in _files_of(path, output))


def _is_same(one: Path, other: Path) -> bool:
    is_one = followed(one).resolve() == followed(other).resolve()
    return is_one or (one.is_file() and other.is_file() and one.samefile(other))


def _files_of(source: _Path, output: _Path) -> list[Path]:
    """What an input is read from; collections are looked into where the output is there, so that it can be lost."""
    path = Path(source)
    is_collection = path.is_dir() or str(source).startswith("rubric-measures/")
    if path.is_file() or not Path(output).is_file() or not is_collection:
        return [path]
    from rubric_measures.corpora.collections import files_of

    return files_of(str(source))
