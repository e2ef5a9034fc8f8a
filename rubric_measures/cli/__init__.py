"""The command line: `rubric_measures COMMAND`; one command is a function that declares what it calls.

Standard input, output and error are taken as commands find them: closed, full, of another encoding.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import errno
import gc
import importlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from rubric_measures.base import __version__
from rubric_measures.base.errors import (
    BackendError,
    GradingError,
    RubricMeasuresError,
    UnknownNameError,
    escaped,
    origin_of,
    shortened,
)
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.plugins import say_once
from rubric_measures.cli.declared import Command, summary

__all__ = ["COMMANDS", "guarded", "main", "run_command"]

# Pydantic would look for plug-ins of its own in all installed packages; the commands have no use for one.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
# What is imported stays. To look through it for garbage, at each few hundred objects and at the end, takes a fifth of
# the time of a short command.
gc.set_threshold(50_000)
atexit.register(gc.freeze)

# Module -> its commands, in the order of the help. Modules load when a command is asked for, so that --help is instant.
_MODULES = {
    "making": "example answers pool generate grade combine",
    "scoring": "leaderboard evaluate qrels convert",
    "concluding": "check compare correlate agreement power tournament",
    "looking": "calibrate verify review cache list_",
}
# A function may not be called as what Python has: `list_`.
COMMANDS = {
    name.rstrip("_"): f"rubric_measures.cli.{module}:{name}"
    for module, names in _MODULES.items()
    for name in names.split()
}


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the arguments, without the usage before it."""

    def error(self, message: str) -> NoReturn:
        if "arguments are required" in message:
            # argparse counts those in that may be left out.
            for action in self._actions:
                if action.nargs in ("*", "?") and not action.option_strings:
                    message = message.replace(f", {action.metavar}", "")
        message = message.replace("the following arguments are required:", "name")
        self.exit(2, escaped(f"{self.prog}: {message}; --help lists the options") + "\n")


def _overview() -> argparse.ArgumentParser:
    width = max((len(name) for name in COMMANDS), default=0)
    listing = "\n".join(f"  {name:<{width}}  {summary(target)}" for name, target in COMMANDS.items())
    parser = _Parser(
        prog="rubric_measures",
        description="Grade passages and answers against a test bank, score runs, compare leaderboards.",
        epilog=f"commands:\n{listing}\n\n`rubric_measures COMMAND --help` explains a command, with an example.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__, help="print the version and exit")
    parser.add_argument(
        "--completion", choices=("bash", "zsh", "tcsh"), help="print what completes commands and options in this shell"
    )
    parser.add_argument("command", nargs="?", metavar="COMMAND", help="one of the commands below")
    return parser


def _command_parser(name: str) -> tuple[argparse.ArgumentParser, Command]:
    parser = _Parser(prog=f"rubric_measures {name}", formatter_class=argparse.RawDescriptionHelpFormatter)
    module, _, function = COMMANDS[name].partition(":")
    command: Command = getattr(importlib.import_module(module), function)
    command.add_to(parser)
    said = parser.add_mutually_exclusive_group()
    said.add_argument("--quiet", action="store_true", help="print warnings and errors alone: no notes, no progress")
    said.add_argument("--verbose", action="store_true", help="print all notes, each with the seconds until then")
    return parser, command


# Parameter of the library -> the option of the command that runs.
_OPTIONS: dict[str, str] = {}


def _options_for(settings: Iterable[str]) -> str:
    """The options of the running command that set these parameters of the library, to be put behind a message."""
    named = [_OPTIONS[name] for name in settings if name in _OPTIONS]
    return f" ({', '.join(dict.fromkeys(named))})" if named else ""


class _NoteHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Prints the library's counted notes to standard error, one line each."""

    def format(self, record: logging.LogRecord) -> str:
        prefix = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        if logging.getLogger("rubric_measures").level == logging.DEBUG:
            prefix = f"{record.relativeCreated / 1000:.1f} s: {prefix}"
        said = record.getMessage()
        # Signatures are long, and needed whole.
        said = said if said.startswith("signature ") else shortened(said)
        return escaped(f"rubric_measures: {prefix}{said}{_options_for(getattr(record, 'settings', ()))}")


def _meant(arguments: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """Refuses options that there are not, and ends lists of measures where a file begins: `-m A B FILE`."""
    names = [name for action in parser._actions for name in action.option_strings]
    lists = [action for action in parser._actions if "-m" in action.option_strings and action.nargs == "+"]
    for action in lists:
        # Each measure gets an option of its own.
        action.nargs = 1
    meant: list[str] = []
    is_list = False
    for place, one in enumerate(arguments):
        if one == "--":
            return [*meant, *arguments[place:]]
        if one.startswith("--") and not any(name.startswith(one.partition("=")[0]) for name in names):
            import difflib

            near = difflib.get_close_matches(one := one.partition("=")[0], names, cutoff=0.7)
            parser.error(f"unknown option {one!r}" + f": did you mean {', '.join(near)}?" * bool(near))
        is_more = is_list and meant[-1] != "-m"
        if (one.startswith("-") and one != "-") or (is_more and (one == "-" or os.access(one, os.F_OK))):
            is_list = False
        elif is_more:
            meant.append("-m")
        if lists and (one == "-m" or (one[:3] == "--m" and "--measures".startswith(one))):
            is_list, one = True, "-m"
        meant.append(one)
    return meant


def run_command(arguments: Sequence[str]) -> int:
    """Runs one command, given with its arguments; errors are exceptions.

    Returns:
        the exit status of the command.

    Raises:
        UnknownNameError: there is no such command.
        RubricMeasuresError: whatever the command raises.
    """
    name = arguments[0]
    if name not in COMMANDS:
        raise UnknownNameError("command", name, COMMANDS)
    parser, command = _command_parser(name)
    _OPTIONS.clear()
    _OPTIONS.update({action.dest: action.option_strings[-1] for action in parser._actions if action.option_strings})
    if "grader" in _OPTIONS:
        for key in ("items", "scale", "assessors", "grade"):
            _OPTIONS.setdefault(key, f"--grader {key}=…")
    options = parser.parse_intermixed_args(_meant(arguments[1:], parser))
    is_quiet, is_verbose = (vars(options).pop(name) for name in ("quiet", "verbose"))
    if getattr(options, "plot", None) is not None:
        # What cannot be drawn is refused before hours of computing, in all commands alike.
        from rubric_measures.analysis.plots import check_figure_path

        check_figure_path(options.plot)
    if is_quiet or is_verbose:
        # `_answer` sets it back.
        logging.getLogger("rubric_measures").setLevel(logging.WARNING if is_quiet else logging.DEBUG)
    return command.run(vars(options))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: the arguments without the program's name; those of the process by default.

    Returns:
        0 fine, 1 computed but incomplete (and said so), 2 the user's input is wrong, 130 interrupted.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    for name in ("SIGTERM", "SIGHUP") if argv is None else ():
        # Batch systems and closed terminals end a process by these: as by Ctrl-C, it keeps what is done. Those that are
        # ignored, as behind nohup, stay so.
        if signal.getsignal(number := getattr(signal, name, signal.SIGINT)) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    if arguments[:1] in (["leaderboard"], ["evaluate"], ["qrels"]):
        # Scores are sums of small arrays. Threads for linear algebra would take as long to begin as numpy to import.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    open_streams()
    return guarded(lambda: _answer(arguments), _complain)


def _complain(text: str) -> None:
    # The terminal may be gone.
    with contextlib.suppress(OSError):
        print(escaped(f"rubric_measures: {shortened(text)}"), file=sys.stderr, flush=True)


def _answer(arguments: list[str]) -> int:
    """Runs one command, or explains them all; errors are lines, and an exit status."""
    handler = _NoteHandler(sys.stderr)
    # What is said once is said once in a command.
    say_once.cache_clear()
    logger = logging.getLogger("rubric_measures")
    logger.addHandler(handler)
    propagate, logger.propagate = logger.propagate, False
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        return run_command(arguments) if arguments and not arguments[0].startswith("-") else _explain(arguments)
    except RubricMeasuresError as error:
        _complain(f"{error}{_options_for(error.settings)}")
        # A model that cannot be used at all is a wrong name, key or address: nothing was computed.
        return 1 if isinstance(error, GradingError) and not isinstance(error, BackendError) else 2
    except KeyboardInterrupt:
        _complain("interrupted; finished work is kept")
        return 130
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate
        logger.setLevel(level)


def _explain(arguments: list[str]) -> int:
    """Answers what is asked without a command."""
    overview = _overview()
    options = overview.parse_args(arguments)
    if options.completion:
        print(_completion(options.completion))
        return 0
    overview.print_help()
    return 2


def _completion(shell: str) -> str:
    """What completes commands, options, choices and file names in a shell; the library shtab writes it."""
    from rubric_measures.base.plugins import require

    shtab = require("shtab", "completion")
    parser = argparse.ArgumentParser(prog="rubric_measures")
    commands = parser.add_subparsers()
    for name in COMMANDS:
        command = _command_parser(name)[0]
        for action in command._actions:
            if action.choices is None and action.nargs != 0 and action.type is None:
                # Most values name files; those that do not are typed anyway.
                action.complete = shtab.FILE  # type: ignore[attr-defined]
        # A parser takes another one's place only by name.
        commands.add_parser(name, help=command.description)
        commands.choices[name] = command
    return str(shtab.complete(parser, shell))


# What the machine refuses is no defect; a file that is not there when it should be is one.
_DEFECTS = (None, errno.ENOENT, errno.EINVAL)
_MENDS = {
    errno.ENOSPC: "; make room, or name another output",
    errno.EBADF: "; leave standard output open, or name an output file",
}


def open_streams() -> None:
    """Puts something in the place of standard streams that are closed, which Python says with None.

    Standard input is then empty, standard output refuses what is written, and nobody reads standard error. The numbers
    of the closed streams are taken, so that no file that is opened later gets one of them.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
        if getattr(sys, name) is None:
            # Open as long as the process.
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


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
            return command()
        finally:
            # Flushes it, also after help, and names it where that fails.
            with atomic_writer("-"):
                pass
    except BrokenPipeError:
        _drop_output()
        return 0
    except Exception as error:
        if not (said := _refusal(error)):
            raise
        _drop_output()
        complain(said)
        return 2


def _refusal(error: Exception) -> str:
    """What streams, disk or downloads refuse, on a line; empty where the error is a defect."""
    if isinstance(error, UnicodeEncodeError) and error.encoding.lower() in ("utf-8", sys.stdout.encoding.lower()):
        said = error.object[error.start : error.start + 20]
        return f"{said!r} cannot be written as {error.encoding}; repair it in the input, or set PYTHONIOENCODING=utf-8"
    if isinstance(error, RuntimeError) and origin_of(error) == "ir_datasets":
        why = " ".join(str(error).split())[:300]
        return f"ir_datasets cannot give the collection ({why}); look after the connection, or give files"
    if isinstance(error, OSError) and error.errno not in _DEFECTS:
        where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        return f"{where}reading or writing failed ({error.strerror}){_MENDS.get(error.errno or 0, '')}"
    return ""


def _drop_output() -> None:
    """Lets what waits for standard output go nowhere where nobody takes it: the interpreter would say so at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, sys.stdout.fileno())
            os.close(nothing)
