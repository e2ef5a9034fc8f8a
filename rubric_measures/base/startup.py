"""Ctrl-C before a command begins and after it ended: one line and status 130, whatever is being imported."""

# This module is what Ctrl-C finds first: it imports nothing that the interpreter has not loaded by itself.
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


_NAME = "rubric_measures"


def begin() -> None:
    """Lets Ctrl-C end the process at once where it is the command line, from here on; else does nothing.

    Plug-ins of pydantic are not looked for there, and cycles of garbage less often.

    An exception would be a traceback of whatever is being imported, or be lost where none can be raised. Nothing is
    done yet that could be finished or kept.
    """
    if not _is_command_line():
        return
    # Pydantic would look for plug-ins of its own in all installed packages; the commands have no use for one.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Until the handler stands: signal itself imports something.
    before, sys.excepthook = sys.excepthook, _say
    # What is imported stays. To look through it for garbage, at each few hundred objects and at the end, takes a fifth
    # of the time of a short command.
    import atexit
    import gc

    gc.set_threshold(50_000)
    atexit.register(gc.freeze)
    import signal

    # Where interrupts are ignored, as behind nohup, they stay so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
    sys.excepthook = before


def forget_interrupt() -> None:
    """Lets the process end with the status that it gives, after a KeyboardInterrupt that was caught.

    One that passed through code from a string, as dataclasses and named tuples run it, is remembered by Python: the
    process dies of the signal in the end. The next such code makes it forget.
    """
    exec("")


def leave(*_: object) -> None:
    """Ends the process with one line and status 130; a handler of signals."""
    try:
        os.write(2, b"rubric_measures: interrupted\n")
    finally:
        os._exit(130)


def _say(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        leave()
    sys.__excepthook__(kind, error, trace)


def _is_command_line() -> bool:
    """Whether the process was started as `python -m rubric_measures` or by the script of that name.

    Not where a process of another kind took over the arguments of its parent, as those of multiprocessing do.
    """
    if not 0 < len(sys.argv) <= len(sys.orig_argv):
        return False
    # What Python was told to run; `-m NAME` may be one argument, and scripts have an ending on Windows.
    told = sys.orig_argv[-len(sys.argv)]
    name = os.path.basename(told).removeprefix("-m").removesuffix(".exe")  # noqa: PTH119 - pathlib is not loaded yet
    return name == _NAME and sys.argv[0] in ("-m", told, told.removesuffix(".exe"))
