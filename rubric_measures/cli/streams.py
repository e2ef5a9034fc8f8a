"""Standard input, output and error as commands find them: closed, full, of another encoding; other refusals."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from rubric_measures.base.errors import origin_of

__all__ = ["guarded", "open_streams"]

# What the machine refuses, whoever asks. A file that is not there when it should be is a defect instead.
_REFUSALS = frozenset(
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO", "EROFS", "EACCES", "EPERM", "EBADF", "EMFILE", "ENFILE", "ESTALE")
    if hasattr(errno, name)
)


class _ClosedOutput(io.TextIOBase):
    """Stands for a standard output that is closed: nothing is lost in silence."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> NoReturn:
        raise OSError(errno.EBADF, "standard output is closed; leave it open, or name an output file")


def open_streams() -> None:
    """Puts something in the place of standard streams that are closed, which Python says with None.

    Standard input is then empty, standard output refuses what is written, and nobody reads standard error. The numbers
    of the closed streams are taken, so that no file that is opened later gets one of them.
    """
    for number in range(3):
        with contextlib.suppress(OSError):
            os.fstat(number)
            continue
        os.open(os.devnull, os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - open as long as the process
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open as long as the process


def guarded(command: Callable[[], int], complain: Callable[[str], None]) -> int:
    """Runs a command and writes all that it printed; what streams, disk and downloads refuse is one line.

    Args:
        command: prints to standard output, and gives its exit status.
        complain: takes the line.

    Returns:
        the status of the command; 0 where the reader of the output is gone (`head`, `less`); 2 where the machine
        refuses.
    """
    try:
        try:
            status = command()
        except SystemExit:
            # Help, or wrong arguments.
            sys.stdout.flush()
            raise
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        _drop_output()
        return 0
    except UnicodeEncodeError as error:
        said = error.object[error.start : error.start + 20]
        if error.encoding.replace("-", "").lower() == "utf8":
            complain(f"{said!r} is no Unicode text and cannot be written; repair it in the input")
        elif error.encoding == sys.stdout.encoding:
            complain(f"standard output is {error.encoding}, which has no {said!r}; set PYTHONIOENCODING=utf-8")
        else:
            raise
        return 2
    except RuntimeError as error:
        if origin_of(error) != "ir_datasets":
            raise
        why = " ".join(str(error).split())[:300]
        complain(f"ir_datasets cannot give the collection ({why}); look after the connection, or give files")
        return 2
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        _drop_output()
        where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        full = "; make room, or name another output" if error.errno == errno.ENOSPC else ""
        complain(f"{where}reading or writing failed ({error.strerror}){full}")
        return 2
    except Exception as error:
        if not _is_refusal_of_database(error):
            raise
        complain(f"the cache cannot be read or written ({error}); make room, or name another with --cache")
        return 2


def _is_refusal_of_database(error: Exception) -> bool:
    """Whether SQLite could not write or read; not by its class, which would load sqlite3 for every command."""
    return str(getattr(error, "sqlite_errorname", "")).startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY"))


def _drop_output() -> None:
    """Lets what waits for standard output go nowhere where nobody takes it: the interpreter would say so at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, sys.stdout.fileno())
            os.close(nothing)
