"""Opening and writing files: gzip by content, `-` as a stream, BOM and line ends; output renamed into place.

With the cyclic garbage collector paused while objects are read by the hundred thousand. Databases that others use, too.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import gzip
import io
import os
import re
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.plugins import say_once

if TYPE_CHECKING:
    import sqlite3

# Objects made in one pause that tell the loading of a file from the parsing of a line or of a piece of it.
_MANY = 250_000
_FEW = 5_000


@contextlib.contextmanager
def paused_collector() -> Iterator[None]:
    """Pauses the cyclic garbage collector: parsing makes many objects and no garbage (2.3 s -> 0.7 s for 63 MB).

    May be nested; the outermost block switches it on again, and only if it was on. What a whole file was made into is
    taken for old then: the collector would look through all of it, up to three times, as soon as it goes on (0.3 s).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # Python 3.12 freezes a few hundred objects by itself; who freezes a program has many thousands.
            if gc.get_count()[0] > _MANY and gc.get_freeze_count() < _FEW:
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@contextlib.contextmanager
def fewer_collections() -> Iterator[None]:
    """Lets the cyclic collector look seldom: grading makes many objects that live until their query is written."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)


_GZIP_MAGIC = b"\x1f\x8b"
# How zip files begin, as which spreadsheets (.xlsx, .ods) are saved.
_PACKED = b"PK\x03\x04"


# The name of a path as error messages print it (`-` is standard input).
path_name = os.fspath


def packed_beside(name: str) -> str:
    """Asks whether the file is meant that has the name with `.gz`, or without it; empty where none is there."""
    other = name.removesuffix(".gz") if name.endswith(".gz") else f"{name}.gz"
    return f"; did you mean {other}?" if Path(other).is_file() else ""


@contextlib.contextmanager
def open_binary(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens a file for reading as uncompressed bytes; gzip is recognised by content, `-` is standard input.

    Raises:
        InputError: the file does not exist or cannot be opened.
        FormatError: it is a spreadsheet; on reading, when a gzip file is truncated or damaged.
    """
    name = path_name(path)
    if name == "-":
        raw: BinaryIO = cast(BinaryIO, sys.stdin.buffer)
    else:
        try:
            raw = open(name, "rb", 1 << 18)  # noqa: SIM115 - closed below, standard input must stay open
        except OSError as error:
            if (folder := Path(name)).is_dir():
                ending = next((one.suffix for one in sorted(folder.iterdir()) if one.is_file()), "")
                raise InputError(f"{name}: is a folder; name its files: {folder / f'*{ending}'}") from None
            raise InputError(f"{name}: cannot be read ({error.strerror or error}){packed_beside(name)}") from None
    buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, raw))
    try:
        start = buffered.peek(4)
        if start.startswith(_PACKED):
            raise FormatError("is a spreadsheet or another packed file; save it as CSV", path=name)
        is_packed = start[:2] == _GZIP_MAGIC
        yield cast(BinaryIO, io.BufferedReader(gzip.GzipFile(fileobj=buffered), 1 << 18) if is_packed else buffered)
    except EOFError:
        raise FormatError("the gzip file is truncated; fetch or write it again", path=name) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(f"the gzip file is damaged ({error})", path=name) from None
    finally:
        if name != "-":
            buffered.close()


def note_unfinished(end: bytes | str, name: str) -> str:
    """Says that the last line of a file has no line end, where a cut could have changed a value unseen.

    Returns what it says; an empty text where that is nothing.
    """
    text = ""
    if end and end[-1:] not in ("\n", "\r", b"\n", b"\r"):
        text = f"{name}: the last line has no line end; is the file complete?"
        say_once(text)
    return text


def peek_head(path: str | os.PathLike[str], size: int = 4096) -> bytes:
    """The first bytes of a file, uncompressed and without BOM, to tell what it is; standard input can be read after it.

    Raises:
        InputError: the file cannot be opened, or is a pipe with a name (which can be read once only).
        FormatError: a gzip file is damaged.
    """
    name = path_name(path)
    if name != "-":
        if not Path(name).is_file():
            check_readable_twice(name)
        with open_binary(name) as stream:
            return stream.read(size).removeprefix(b"\xef\xbb\xbf")
    head = cast(io.BufferedReader, sys.stdin.buffer).peek(size)
    if head[:2] == _GZIP_MAGIC:
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, size)
        except zlib.error as error:
            raise FormatError(f"the gzip file is damaged ({error})", path=name) from None
    return head[:size].removeprefix(b"\xef\xbb\xbf")


def begins_records(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins with a JSON list of something else than objects, as graded records do."""
    head = peek_head(path).lstrip()
    return head[:1] == b"[" and head[1:].lstrip()[:1] != b"{"


def check_readable_twice(name: str) -> None:
    """Refuses pipes with a name, before they are looked into and then read: the second reader would wait for ever.

    Raises:
        InputError: the file is none that can be read twice.
    """
    path = Path(name)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"{name}: is no regular file, so it cannot be read twice; save it, or give it as -")


_RUN_SUFFIXES = {".run", ".txt", ".trec", ".res", ".tsv", ".input", ".csv", ".json", ".jsonl", ".parquet"}


def run_of_file(name: str) -> str:
    """The run that a file is named after: its name without the usual endings; empty of standard input."""
    path = Path(name.removesuffix(".gz"))
    return "" if name == "-" else "_".join((path.stem if path.suffix in _RUN_SUFFIXES else path.name).split())


def iter_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Yields `(line number from 1, line)` of a text file without line ends and BOM; blank lines are passed over."""
    with open_binary(path) as stream:
        for number, line in enumerate(stream, 1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line and not line.isspace():
                yield number, line.rstrip(b"\r\n")


def read_text(path: str | os.PathLike[str]) -> str:
    """The whole file as text (UTF-8 with or without BOM; line ends as `\\n`).

    Raises:
        InputError: the file cannot be opened.
        FormatError: it is not UTF-8, or a gzip file is damaged.
    """
    with open_binary(path) as stream:
        return decode_text(stream.read(), path_name(path))


def decode_text(data: bytes, name: str) -> str:
    """The text of a file's uncompressed bytes, as `read_text` gives it.

    Raises:
        FormatError: it is not UTF-8; names the file and the line.
    """
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError("is not UTF-8; convert the file first", path=name, line=line) from None
    # One character is found much faster than two, and most files have none.
    return text.replace("\r\n", "\n") if "\r" in text else text


# What only writing meets: whatever else is read inside of the block has a name of its own.
_FULL = [getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG") if hasattr(errno, name)]


# The head of a table, outside of texts of several lines; `["name".defaults]` goes on with its table.
_TOML_HEAD = r"'''.*?'''|\"\"\".*?\"\"\"|^\[(\"?)([^\"\n]+?)\1(?:\.defaults)?\]$"


def toml_tables(*paths: Path) -> dict[str, str]:
    """Name of a table -> its lines of TOML files of this package.

    To parse one table takes no time, and to parse all as long as to score a small file.
    """
    tables: dict[str, str] = {}
    for path in paths:
        text = path.read_text(encoding="utf-8")
        heads = [found for found in re.finditer(_TOML_HEAD, text, re.DOTALL | re.MULTILINE) if found[2]]
        for found, end in zip(heads, [*(later.start() for later in heads[1:]), len(text)], strict=True):
            tables[found[2]] = tables.get(found[2], "") + text[found.start() : end]
    return tables


@contextlib.contextmanager
def atomic_writer(path: str | os.PathLike[str]) -> Iterator[IO[str]]:
    """Opens `path` for writing text (UTF-8); the file appears under its name only when the block ends without an error.

    Until then it is a hidden file `.NAME.*.part` beside it, which names its process; what a killed writer of the same
    file left behind is removed.

    A name that ends in `.gz` is compressed (without a time stamp, so equal content gives equal bytes). `-` is standard
    output, written as it comes. Of a symbolic link the file it leads to is written, and the link stays.

    Raises:
        InputError: the folder does not exist or cannot be written.
    """
    name, temporary = path_name(path), None
    try:
        if name == "-":
            yield sys.stdout
            sys.stdout.flush()
            return
        target = followed(name)
        if target.is_dir():
            raise InputError(f"{name}: is a folder; name a file")
        if target.exists() and not target.is_file():
            # Devices and pipes (/dev/null, a FIFO) cannot be renamed over.
            with open(name, "w", encoding="utf-8", newline="\n") as stream:
                yield stream
            return
        # How the names of unfinished files of the target begin that are written on this machine.
        part = f".{target.name}.{os.uname().nodename}-"
        _remove_orphans(target.parent, part)
        try:
            handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f"{part}{os.getpid()}-", suffix=".part")
        except OSError as error:
            raise InputError(f"{name}: cannot be written ({error.strerror or error})") from None
        try:
            with os.fdopen(handle, "wb") as raw:
                if name.endswith(".gz"):
                    with (
                        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed,
                        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as stream,
                    ):
                        yield stream
                else:
                    with io.TextIOWrapper(raw, encoding="utf-8", newline="\n") as stream:
                        yield stream
            # What new files may not be is told by setting it.
            os.umask(umask := os.umask(0))
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~umask
            Path(temporary).chmod(mode)
            Path(temporary).replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as error:
        # What the system refuses names the file that was to be written: a full disk names none, a move its source.
        if error.errno in _FULL if error.filename is None else error.filename == temporary:
            error.filename = "standard output" if name == "-" else name
            error.filename2 = None
        raise


def followed(path: str | os.PathLike[str]) -> Path:
    """The file that a name leads to: what is renamed into place must not take the place of a symbolic link.

    Raises:
        InputError: links lead in a circle.
    """
    target = Path(path)
    if not target.is_symlink():
        return target
    resolved = Path(os.path.realpath(target))
    # Where links lead in a circle, one of them is all that there is.
    if resolved.is_symlink():
        raise InputError(f"{path_name(path)}: is a link that leads to itself; name a file")
    return resolved


def _remove_orphans(folder: Path, part: str) -> None:
    """Removes the files whose names begin so, which killed writers left."""
    pattern = re.compile(re.escape(part) + r"(\d{1,9})-[a-z0-9_]{8}\.part")
    # A folder that may be written but not listed has to do without.
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if (found := pattern.fullmatch(entry.name)) and is_gone(int(found[1])):
                Path(entry.path).unlink()


def is_gone(process: int) -> bool:
    """Whether no process of this number runs on this machine, which is no Windows."""
    with contextlib.suppress(PermissionError):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
    return False


def is_locked(error: Exception) -> bool:
    """Whether SQLite says that another program writes to a database now."""
    # SQLITE_BUSY and SQLITE_LOCKED.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (5, 6)


def use_wal(connection: sqlite3.Connection, patience: float) -> None:
    """Lets others read a database while one writes. SQLite does not wait here for another program that begins with the
    same file: it says at once that it is locked.

    Args:
        connection: to the database.
        patience: how many seconds to wait.
    """
    import sqlite3

    until = time.monotonic() + patience
    while True:
        try:
            connection.execute("pragma journal_mode=wal")
            return
        except sqlite3.OperationalError as error:
            if not is_locked(error) or time.monotonic() > until:
                raise
            time.sleep(0.02)
