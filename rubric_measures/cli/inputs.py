"""What commands share: options for grades, measures and what stands beside means; reading what an argument names."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import logging
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from rubric_measures.base.errors import InputError
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.json_text import parse_json
from rubric_measures.base.tables import BOARD_FORMS, TABLE_FORMS, BoardForm, Report, TableForm, render
from rubric_measures.corpora.overwriting import keep_apart, keep_inputs
from rubric_measures.formats.base import FORMS
from rubric_measures.measures.grades import OnFailed, check_on_failed

if TYPE_CHECKING:
    from rubric_measures.api import Board
    from rubric_measures.boards.kept import Gates
    from rubric_measures.pages.frame import ReviewAddress

T = TypeVar("T")


def add_grade_options(parser: argparse.ArgumentParser, scores: bool = True, several: str = "") -> None:
    """Adds the options that say which grades of a records file count, and how failed ones do where there are scores.

    With `several`, which says what they are, there may be several graders.
    """
    group = parser.add_argument_group("which grades")
    group.add_argument("--bank", metavar="BANK", help="the test bank: the items that make up the denominators")
    add_grader_option(group, several, several=bool(several))
    if not scores:
        return
    group.add_argument(
        "--on-failed",
        type=_on_failed,
        metavar="{expected,zero,error,GRADE}",
        help="a failed grade: counts as much as the valid grades of the ranking let expect (expected: the default, "
        "refused from 20 %% failed unless it is written out), counts as not covered (zero), or stops the command "
        "(error); or a number: it counts as that grade",
    )


def add_grader_option(group: argparse._ActionsContainer, text: str = "", several: bool = False) -> None:
    """Adds the option that says whose grades count; with `several` it is repeated for each member of a panel."""
    usual = (
        "whose grades count: a model, judge of a table or assessor (human:NAME); or KEY=VALUE,… with the keys model, "
        "prompt, kind (question, nugget, direct), items (question-bank, tqa, nugget), set (the hash that an error "
        "lists; + between several), scale (0-5:4: 4 covers; 0-5:4:3: 3 is partial), assessors (override: their grades "
        "stand in the grader's place; of two the lower), grade (of distributions: expected, mode, median)"
    )
    action: Any = "append" if several else Once
    group.add_argument(
        "--grader", metavar="GRADER", action=action, help=f"{text}, as of `leaderboard`" if text else usual
    )


def add_form_option(group: argparse._ActionsContainer, option: str, of: str) -> None:
    """Adds the option that names the form of a leaderboard; that of --board-form is called `form`."""
    name = option.removeprefix("--").removeprefix("board-").replace("-", "_")
    group.add_argument(option, dest=name, choices=FORMS, help=f"the form of {of}, where it cannot be seen")


def add_document_options(add: Callable[..., object], text: str) -> None:
    """Adds the options of the documents that are shown beside answers, and of the labels that choose them."""
    add("--documents", metavar="SOURCE", help=f"{text}; graded records, or a collection")
    usual = argparse.SUPPRESS
    add("--level-shown", type=int, default=usual, metavar="N", help="the lowest label of documents shown (default 2)")
    add("--label-grader", metavar="GRADER", action=Once, help="whose direct labels count, as --grader")


def add_endpoint_options(add: Callable[..., object]) -> None:
    """Adds the options that say where a model is asked, to a parser or group whose `add_argument` this is."""
    add("--base-url", action=Once, metavar="URL", help="openai: the endpoint")
    add("--model-option", action=NamedValue, default={}, metavar="NAME=VALUE", help="a setting of the model's backend")


def add_limit_options(add: Callable[..., object], cache: str, priced: str = "--max-cost; see `grade`") -> None:
    """Adds the options of the reply cache, which lies at `cache` by default, and of the limits on calls."""
    add("--cache", metavar="FILE", help=f"the reply cache (default: {cache})")
    add("--prices", metavar="FILE", help=f"price table, for {priced}")
    add("--max-calls", type=int, metavar="N", help="make so many calls at most, in all runs over the cache; 0: none")
    add("--max-cost", type=float, metavar="COST", help="make no call that costs more in all; needs --prices")


def _on_failed(text: str) -> OnFailed:
    try:
        return check_on_failed(int(text) if text.isascii() and text.isdecimal() else text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error).partition("; ")[2]) from None


# Ending of a file -> the form that is written there, where --format does not say it.
_FORM_OF_ENDING = {
    ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".md": "markdown", ".tex": "latex", ".html": "html",
    ".csv": "CSV", ".parquet": "parquet",
}  # fmt: skip


# What commands with a model take of `Calls`; those of a runner are for `grade`.
CALLS = ("base_url", "model_option", "cache", "prices", "max_calls", "max_cost")


def check_places(places: int) -> None:
    """Refuses a number of decimal places that is none.

    Raises:
        InputError: it is not from -1 to 100.
    """
    if not -1 <= places <= 100:
        raise InputError(f"-p {places}: give a number of decimal places up to 100, or -1 for all digits")


def form_of(output: str, given: str | None, forms: Sequence[str], usual: str) -> str:
    """The form that is given, else what the ending of a file says, else the usual one.

    Raises:
        InputError: the file is called as a form is, or its ending says a form that is not among these.
    """
    if output in forms:
        raise InputError(f"-o {output}: -o names the file to write; the form is chosen by --format {output}")
    form = given or _FORM_OF_ENDING.get(PurePath(output.removesuffix(".gz")).suffix, usual)
    if form not in forms:
        raise InputError(f"-o {output}: {form} is not written here, but {', '.join(forms)}; see --format")
    return form


@dataclass(frozen=True)
class Printed:
    """Output.

    Attributes:
        output: write there (default: standard output).
        format: default: as the ending of the output says, else text.
        places: decimal places, -1 for all digits (default 4).
    """

    output: str = "-"
    format: TableForm | None = None
    places: int | None = None

    forms: ClassVar[Sequence[str]] = TABLE_FORMS
    usual: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        check_places(self.digits)
        _ = self.form

    @property
    def digits(self) -> int:
        """The decimal places."""
        return 4 if self.places is None else self.places

    @property
    def form(self) -> str:
        """What `format` says, else the ending of the file, else the usual one."""
        return form_of(self.output, self.format, self.forms, self.usual)

    def write(self, shown: Report | str) -> None:
        """Writes a report, or a text; at once, so that nothing is printed where a name cannot be."""
        with atomic_writer(self.output) as stream:
            stream.write(shown if isinstance(shown, str) else "".join(render(shown, self.form)))

    def show(self, found: Any, plot: str | None = None) -> int:
        """Writes what was found, draws it, and says what it leaves out; the exit status."""
        if plot is not None:
            found.plot(plot)
        self.write(found.report(self.digits))
        found.log_notes()
        return 0 if found.is_complete else 1


@dataclass(frozen=True)
class PrintedBoard(Printed):
    """Output.

    Attributes:
        format: default: as the ending of the output says, else tsv.
        places: decimal places, -1 for all digits (default 4, in JSON all).
    """

    format: BoardForm | None = None  # type: ignore[assignment]

    forms: ClassVar[Sequence[str]] = BOARD_FORMS
    usual: ClassVar[str] = "tsv"

    @property
    def digits(self) -> int:
        """The decimal places."""
        return self.places if self.places is not None else -1 if self.form in ("json", "jsonl") else 4


@dataclass(frozen=True)
class PrintedRatings(PrintedBoard):
    """Output.

    Attributes:
        format: default: as the ending of the output says, else text; json has everything.
        places: decimal places of ratings, -1 for all digits (default 1, in files for programs all).
    """

    usual: ClassVar[str] = "text"

    @property
    def digits(self) -> int:
        """The decimal places."""
        return self.places if self.places is not None else 1 if self.form in ("text", "latex", "markdown") else -1


class _Form(argparse.Action):
    """The form of the output: what --format says, else what the file's ending says, else the command's own."""

    usual = "text"

    def __call__(self, parser: object, options: argparse.Namespace, value: object, option: str | None = None) -> None:
        setattr(options, self.dest, value)

    def settle(self, options: argparse.Namespace) -> None:
        """Chooses the form, once all arguments are known.

        Raises:
            InputError: the file is called as a form is, or its ending says a form that the command does not write.
        """
        given = getattr(options, self.dest)
        setattr(options, self.dest, form_of(options.output, given, tuple(self.choices or ()), self.usual))


def add_output_options(
    parser: argparse.ArgumentParser, forms: Sequence[str] = TABLE_FORMS, usual: str = "text", text: str = ""
) -> None:
    """Adds -o for the file that is written, and --format for its form; `usual` is that of standard output."""
    parser.add_argument("-o", "--output", metavar="FILE", default="-", help="write there (default: standard output)")
    text = text or f"default: as the ending of FILE says, else {usual}"
    action = parser.add_argument("--format", dest="output_format", action=_Form, choices=tuple(forms), help=text)
    assert isinstance(action, _Form)
    action.usual = usual


def write_output(options: argparse.Namespace, report: Report) -> None:
    """Writes a report where -o says, in its form; at once, so that nothing is printed where a name cannot be."""
    with atomic_writer(options.output) as stream:
        stream.write("".join(render(report, options.output_format)))


class _Places(argparse.Action):
    def __call__(self, parser: object, options: argparse.Namespace, value: object, option: str | None = None) -> None:
        if not isinstance(value, int) or not -1 <= value <= 100:
            raise InputError(f"{option} {value}: give a number of decimal places up to 100, or -1 for all digits")
        setattr(options, self.dest, value)


def add_places_option(
    parser: argparse.ArgumentParser, default: int | None = 4, of: str = "", usual: str = "4, in JSON -1"
) -> None:
    """Adds ir_measures' option for decimal places; without a default it is as `usual` says."""
    usual = usual if default is None else str(default)
    text = f"decimal places{of} (default {usual}; -1: all digits)"
    parser.add_argument("-p", "--places", type=int, action=_Places, default=default, help=text)


def keep_inputs_of(options: argparse.Namespace, *inputs: str | None) -> None:
    """`keep_inputs` for -o and --plot, which must not be one file either.

    Raises:
        InputError: an input would be replaced, or one output by the other.
    """
    for output in (options.output, options.plot):
        if output not in (None, "-"):
            keep_inputs(output, *inputs)
    if options.plot is not None:
        keep_apart(output=options.output, plot=options.plot)


DRAWS = ("rounds", "seed", "level")


def passed(options: argparse.Namespace, function: Callable[..., object]) -> dict[str, Any]:
    """The options that bear the names of a function's keywords."""
    parameters = inspect.signature(function).parameters
    names = [name for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY]
    given = {name: getattr(options, name) for name in names if hasattr(options, name)}
    if "draws" in names:
        from rubric_measures.analysis.resampling import Draws

        given["draws"] = Draws(*(getattr(options, name) for name in DRAWS))
    return given


def settings_of(kind: type[T], given: dict[str, Any]) -> T:
    """A settings object of the options that bear the names of its fields, which are taken out of `given`."""
    names = [one.name for one in dataclasses.fields(kind) if one.name in given]  # type: ignore[arg-type]
    found = {name: given.pop(name) for name in names}
    return kind(**{name: value for name, value in found.items() if value not in (None, {})})


def progress(things: Iterable[T], total: int | None, what: str) -> Iterator[T]:
    """Passes things on with a progress bar on standard error; for where `is_watched`."""
    from tqdm import tqdm

    yield from tqdm(things, total=total, desc=what, file=sys.stderr, leave=False)


# Where `review` listens unless it is told otherwise.
REVIEW_PORT = 8642
REVIEW = "http://127.0.0.1:8642"


def add_review_option(parser: argparse._ActionsContainer) -> None:
    """Adds --review-address, of pages whose grades lead into the review page."""
    text = f"where `review` runs: links called review lead there (default {REVIEW})"
    parser.add_argument("--review-address", metavar="URL", default=REVIEW, help=text)


def review_of(address: str, graded: str, bank: object, grader: object) -> ReviewAddress | None:
    """Where the grades of a page can be reviewed; without a bank or from standard input nowhere.

    Raises:
        InputError: the address is none of a page.
    """
    found = review_over(address, [graded, "--bank", bank, *(["--grader", grader] if grader else [])])
    return None if bank is None or graded == "-" else found


def review_over(address: str, files: Sequence[object]) -> ReviewAddress:
    """The review page at an address, with the command that opens it over these files.

    Raises:
        InputError: the address is none of a page.
    """
    import shlex

    from rubric_measures.pages.frame import ReviewAddress

    address = address.rstrip("/")
    if not address.startswith(("http://", "https://")) or "?" in address:
        raise InputError(f"--review-address {address}: expected http://HOST:PORT, as `review` prints it")
    return ReviewAddress(address, shlex.join(map(str, ["rubric_measures", "review", *files])))


def add_plot_option(parser: argparse._ActionsContainer, what: str, kinds: Sequence[str] = ()) -> None:
    """Adds --plot, and --plot-kind where there are several pictures; the first kind is the default."""
    parser.add_argument("--plot", metavar="FILE", help=f"also draw {what}: .pdf, .svg or .png")
    if kinds:
        parser.add_argument(
            "--plot-kind", choices=kinds, default=kinds[0], help=f"what --plot draws (default {kinds[0]})"
        )


def add_draw_options(group: argparse._ActionsContainer, rounds: str = "") -> None:
    """Adds the options of what is drawn."""
    group.add_argument("--level", type=float, default=0.95, help="nominal coverage of intervals (default 0.95)")
    group.add_argument("--rounds", type=int, default=10_000, help=f"rounds of what is drawn (default 10000{rounds})")
    group.add_argument("--seed", type=int, default=42, help="seed of everything that is drawn (default 42)")


def gates_of(limits: Sequence[str], run: str | None) -> Gates:
    """The gates that --fail-under and --run name; before anything is computed or written."""
    if run and not limits:
        raise InputError("--run names the run that has to pass, and nothing is to be passed; add --fail-under")
    from rubric_measures.boards.kept import read_gates

    return read_gates(limits, run)


def gated(gates: Gates, board: Board, status: int, runs: Sequence[str] | None = None) -> int:
    """The exit status of a command: 3 with a line for each gate that the board does not pass, else what it was."""
    lines = gates.failed(board, runs)
    for line in lines:
        logging.getLogger("rubric_measures").error("%s", line)
    return 3 if lines else status


class NamedValue(argparse.Action):
    """Gathers NAME=VALUE in a mapping; a value that is JSON (a number, true, a list) is what it says, else text."""

    def __call__(self, parser: object, options: argparse.Namespace, pair: object, option: str | None = None) -> None:
        """Adds a pair."""
        name, equals, text = str(pair).partition("=")
        if not equals or not name:
            raise InputError(f"{option} {pair!r}: expected NAME=VALUE")
        try:
            value = parse_json(text, lenient=True)
        except ValueError:
            value = text
        try:
            # Python reads NaN and infinities, which JSON does not know.
            json.dumps(value, allow_nan=False)
        except ValueError:
            raise InputError(f"{option} {pair!r}: {text} is no number that a request can have") from None
        setattr(options, self.dest, {**getattr(options, self.dest, {}), name: value})


class Once(argparse.Action):
    """Takes one value, and refuses a second one in the place of using the last."""

    def __call__(self, parser: object, options: argparse.Namespace, value: object, option: str | None = None) -> None:
        """Keeps the value."""
        if getattr(options, self.dest, None) is not None:
            more = "say all in one, as KEY=VALUE,…" if "grader" in self.dest else "name one"
            raise InputError(f"{option} is given twice; {more}")
        setattr(options, self.dest, value)


class NamedNumber(argparse.Action):
    """Gathers NAME=NUMBER in a mapping."""

    def __call__(self, parser: object, options: argparse.Namespace, pairs: object, option: str | None = None) -> None:
        """Adds a pair, or several."""
        for pair in pairs if isinstance(pairs, list) else [pairs]:
            name, _, text = str(pair).rpartition("=")
            try:
                value = float(text)
            except ValueError:
                value = math.nan
            if not name or not math.isfinite(value):
                raise InputError(f"{option} {pair!r}: expected NAME=NUMBER")
            setattr(options, self.dest, {**getattr(options, self.dest, {}), name: value})


def ids(text: str) -> list[str]:
    """The ids of ID,ID,…"""
    return [name.strip() for name in text.split(",") if name.strip()]


def is_watched() -> bool:
    """Whether somebody looks at standard error, and did not ask for quiet, so that a progress bar helps."""
    return sys.stderr.isatty() and logging.getLogger("rubric_measures").isEnabledFor(logging.INFO)
