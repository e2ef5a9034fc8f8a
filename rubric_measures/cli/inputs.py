"""What commands share: how results are printed, gates, links to the review page, options that gather values."""

from __future__ import annotations

import argparse
import logging
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_args

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.json_text import parse_json
from rubric_measures.base.tables import Form, Report, render

if TYPE_CHECKING:
    from rubric_measures.analysis.boards import Board
    from rubric_measures.boards.kept import Gates
    from rubric_measures.pages.frame import ReviewAddress

T = TypeVar("T")


# Ending of a file -> the form that is written there, where --format does not say it.
_FORM_OF_ENDING = {
    ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".md": "markdown", ".tex": "latex", ".html": "html",
    ".csv": "CSV", ".parquet": "parquet", ".xlsx": "Excel", ".pdf": "PDF",
}  # fmt: skip


# What commands with a model take of `Asking` and of `Calls`; the others are for `grade`.
REPLIES = ("temperature", "max_tokens", "option", "retries")
CALLS = ("base_url", "model_option", "cache", "prices", "max_calls", "max_cost")


def check_places(places: int) -> None:
    """Refuses a number of decimal places that is none.

    Raises:
        InputError: it is not from -1 to 100.
    """
    if not -1 <= places <= 100:
        raise InputError(f"-p {places}: give a number of decimal places up to 100, or -1 for all digits")


@dataclass(frozen=True)
class Printed:
    """Output.

    Attributes:
        output: write there (default: standard output).
        format: default: as the ending of the output says, else text.
    """

    output: str = "-"
    format: Form | None = None

    forms: ClassVar[Sequence[str]] = get_args(Form)
    usual: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        _ = self.form

    @cached_property
    def form(self) -> str:
        """What `format` says, else the ending of the file, else the usual one."""
        if self.output in self.forms:
            text = f"-o {self.output}: -o names the file to write; the form is chosen by --format {self.output}"
            raise InputError(text)
        form = self.format or _FORM_OF_ENDING.get(PurePath(self.output.removesuffix(".gz")).suffix, self.usual)
        if form not in self.forms:
            raise InputError(f"-o {self.output}: {form} is not written here, but {', '.join(self.forms)}; see --format")
        return form

    def write(self, shown: Report | str) -> None:
        """Writes a report, or a text; at once, so that nothing is printed where a name cannot be."""
        with atomic_writer(self.output) as stream:
            stream.write(shown if isinstance(shown, str) else "".join(render(shown, self.form)))

    def show(self, found: Any, plot: str | None = None) -> int:
        """Writes what was found, draws it, and says what it leaves out; the exit status."""
        if plot is not None:
            found.plot(plot)
        self.write(found.report())
        found.log_notes()
        return 0 if found.is_complete else 1


class PrintedBoard(Printed):
    """Output.

    Attributes:
        format: default: as the ending of the output says, else tsv.
    """

    usual = "tsv"


class PrintedPage(Printed):
    """Output."""

    forms = (*get_args(Form), "html")


def progress(things: Iterable[T], total: int | None, what: str) -> Iterator[T]:
    """Passes things on with a progress bar on standard error; for where `is_watched`."""
    from tqdm import tqdm

    yield from tqdm(things, total=total, desc=what, file=sys.stderr, leave=False)


def is_watched() -> bool:
    """Whether somebody looks at standard error, and did not ask for quiet, so that a progress bar helps."""
    return sys.stderr.isatty() and logging.getLogger("rubric_measures").isEnabledFor(logging.INFO)


# Where `review` listens unless it is told otherwise.
REVIEW = "http://127.0.0.1:8642"


def review_of(graded: str, bank: object, grader: object) -> ReviewAddress | None:
    """Where the grades of a page can be reviewed; without a bank or from standard input nowhere."""
    found = review_over([graded, "--bank", bank, *(["--grader", grader] if grader else [])])
    return None if bank is None or graded == "-" else found


def review_over(files: Sequence[object]) -> ReviewAddress:
    """The review page, with the command that opens it over these files."""
    import shlex

    from rubric_measures.pages.frame import ReviewAddress

    return ReviewAddress(REVIEW, shlex.join(map(str, ["rubric_measures", "review", *files])))


def gates_of(limits: Mapping[str, float], run: str | None, is_compared: bool = False) -> Gates:
    """The gates that --fail-under and --run name (which may be the run that is compared, too); before all else."""
    if run and not limits and not is_compared:
        raise InputError("--run names the run that has to pass, and nothing is to be passed; add --fail-under")
    from rubric_measures.boards.kept import Gates

    return Gates(limits, run)


def gated(gates: Gates, board: Board, status: int, runs: Sequence[str] | None = None) -> int:
    """The exit status of a command: 3 with a line for each gate that the board does not pass, else what it was."""
    lines = gates.failed(board, runs)
    for line in lines:
        logging.getLogger("rubric_measures").error("%s", line)
    return 3 if lines else status


class Named(argparse.Action):
    """Gathers NAME=VALUE in a mapping.

    A value is a number where that is the `const`; else it is what it says where it is JSON (a number, true, a list),
    and text where it is none.
    """

    def __call__(self, parser: object, options: argparse.Namespace, given: object, option: str | None = None) -> None:
        """Adds a pair, or several."""
        for pair in given if isinstance(given, list) else [given]:
            # The name of a measure may hold the sign, and so may a text.
            name, equals, text = str(pair).rpartition("=") if self.const else str(pair).partition("=")
            try:
                value = float(text) if self.const else parse_json(text)
            except ValueError:
                value = math.nan if self.const else text
            if not equals or not name or (self.const and not math.isfinite(value)):
                raise InputError(f"{option} {pair!r}: expected NAME={self.const or 'VALUE'}")
            setattr(options, self.dest, {**getattr(options, self.dest, {}), name: value})


class Once(argparse.Action):
    """Takes one value, and refuses a second one in the place of using the last."""

    def __call__(self, parser: object, options: argparse.Namespace, value: object, option: str | None = None) -> None:
        """Keeps the value."""
        if getattr(options, self.dest, None) is not None:
            more = "say all in one, as KEY=VALUE,…" if "grader" in self.dest else "name one"
            raise InputError(f"{option} is given twice; {more}")
        setattr(options, self.dest, value)


def separate(text: str) -> list[str]:
    """What stands between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def reader(kinds: Iterable[type], choices: Sequence[Any]) -> Callable[[str], Any]:
    """Reads a number of one of these kinds, or one of these words."""

    def read(text: str) -> Any:
        if text in choices:
            return text
        for kind in kinds:
            try:
                return kind(text)
            except ValueError:
                continue
        what = "a number" if float in kinds else "a whole number"
        raise argparse.ArgumentTypeError(f"{text!r} is not {' or '.join([what, *choices])}")

    return read
