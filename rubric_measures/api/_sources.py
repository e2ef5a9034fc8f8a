"""What functions of the API take where they read: names of files, open files, rows."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

from rubric_measures.base.errors import FormatError, InputError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = ["File", "file_path", "is_file", "listed"]

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
