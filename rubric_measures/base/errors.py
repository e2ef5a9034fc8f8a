"""The exceptions of the package: one tree, every message one line that says what is wrong, where, and what to do.

RubricMeasuresError
├── InputError            the user's input is wrong (the command line exits with 2)
│   ├── FormatError       a file cannot be read as the format that it should have: path, line, field
│   ├── UnknownNameError  a name that nobody knows; lists near ones
│   └── MeasureError      a measure, its parameters, or its combination with the grades makes no sense
│       └── MeasureNameError  what was written for a measure is none
├── MissingExtraError     an optional dependency is not installed; names the extra
├── PlugInError           what another package adds cannot be used; names the package
└── GradingError          grading could not go on; finished work is kept
    └── BackendError      a model or an endpoint could not be used at all
        └── DeviceLostError  it could be used, but no call of this process can use its device any more
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterable, Iterator
from functools import partial

# Controls, line ends that `str.splitlines` knows, and marks that turn the direction of what follows.
CONTROL = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"


def escaped(text: str) -> str:
    r"""The text on one line: a terminal would obey a control character, and a tab or line end would be a border.

    >>> print(escaped("a\tb\x1b[1m"))
    a\tb\x1b[1m
    """
    if text.isprintable():
        return text
    return re.sub(CONTROL, lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


# Not folders: the path of a file is needed whole.
_LONG_WORD = re.compile(r"[^\s/]{301,}")
# Longer than any message but those that quote whole texts of items, or list many names.
_LONG_STRETCH = re.compile(r"[^/]{1001,}")


def shortened(text: str) -> str:
    """The text without the middle of words that are longer than any name that somebody gave, and of long lines.

    The start of a message names the file, and its end says what to do.

    >>> len(shortened("such as " + "x" * 140_000))
    309
    >>> len(shortened("item 'so it is " + "and so on " * 200 + "' comes twice"))
    1001
    """
    text = _LONG_WORD.sub(lambda found: f"{found[0][:200]}…{found[0][-100:]}", text)
    return _LONG_STRETCH.sub(lambda found: f"{found[0][:700]}…{found[0][-300:]}", text)


def counted(number: int, what: str) -> str:
    """A number and what it counts.

    >>> counted(1, "grade"), counted(2, "query")
    ('1 grade', '2 queries')
    """
    if number == 1:
        return f"1 {what}"
    return f"{number} {what[:-1]}ies" if what.endswith("y") else f"{number} {what}s"


def some_of(names: Iterable[object], most: int = 5) -> str:
    """Names; of many the first ones, and how many more there are.

    >>> some_of("abc"), some_of("abcd", 2)
    ('a, b, c', 'a, b and 2 more')
    """
    every = list(map(str, names))
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")


# What a number may count, but in messages that name none: each is made singular behind a 1 that is no name (`query 1`).
_NOUNS = (
    "actors agents answers assessments blocks calls cells characters chunks citations columns contradictions documents "
    "edits entries errors facets facts fields files games grades groups ids importances intervals items judges "
    "judgments labels leaderboards lines lists measures members nuggets others pages pairs parts passages places "
    "points queries questions rankings ranks references replicates replies reports requests rounds rows runs samples "
    "scales scores sentences sets sources tasks texts tokens topics values verdicts warnings weights words"
)
_BEFORE = "after|all|and|are|for|has|have|holds|in|of|on|only|than|their|to"
_ONE = (
    rf"((?:^|[:;,(] ?|\b(?:{_BEFORE}) )1 (?:(?!of|has|is|was|no|in|to)[a-z]+ )?)({_NOUNS.replace(' ', '|')})"
    r"\b(?![-./]\w)"
)
# What is said of one thing, up to what is said of another; what stands in brackets is of no matter.
_CLAUSE = (
    r"(?:^|(?<=[:;,] )|(?<=\()|(?<=their )|(?<=for ))1 (?:of \d+ )?[a-z]"
    r"(?:\([^()]*\)|(?!, (?:so|as|or|which) )[^;:()])*"
)
_VERBS = "belong|come|count|cover|differ|hold|name|need|point|read|repeat|score|share|stand|wait"
_VERB = rf"\([^()]*\)|(?<!not )(?<!be )(?<!they )(?<!s that )\b(are|were|have|do|their|(?<!1 )(?:{_VERBS}))\b"
_THEY = rf"\([^()]*\)|\bthey (are|were|have|do|can|may|{_VERBS})\b"
_OF_ONE = {"are": "is", "were": "was", "have": "has", "do": "does", "their": "its", "can": "can", "may": "may"}


def in_number(text: str) -> str:
    """A message in which what is counted once stands in the singular, with its verb.

    >>> in_number("a.txt: 1 lines repeat an earlier judgment and were left out")
    'a.txt: 1 line repeats an earlier judgment and was left out'
    >>> in_number("1 documents are not in the collection; they can be skipped")
    '1 document is not in the collection; it can be skipped'
    >>> in_number("2 grades left out: their 1 queries are not in the bank")
    '2 grades left out: their 1 query is not in the bank'
    >>> in_number("1 replies could not be read")
    '1 reply could not be read'
    """

    def verb(found: re.Match[str]) -> str:
        told = found[1] and _OF_ONE.get(found[1], f"{found[1]}s")
        return found[0].replace(found[1], told).replace("they ", "it ") if told else found[0]

    # Patterns are compiled where they are first needed: few messages count one thing.
    if "1 " not in text:
        return text
    text = re.sub(_ONE, lambda found: found[1] + re.sub("ies$", "ys", found[2])[:-1], text)
    said = re.sub(_CLAUSE, lambda found: re.sub(_VERB, verb, found[0]), text)
    return re.sub(_THEY, verb, said) if re.search(_CLAUSE, text) else text


def _say_in_number(record: logging.LogRecord) -> bool:
    record.msg, record.args = in_number(record.getMessage()), None
    return True


logging.getLogger("rubric_measures").addFilter(_say_in_number)


def refuse_ignored(names: Iterable[str], where: str = "here", *why: str) -> None:
    """Refuses settings that would do nothing, as they would be ignored in silence.

    Args:
        names: of them.
        where: they would do nothing.
        why: settings that make them useless, or would give them a use; they are named, too.

    Raises:
        InputError: there are some.
    """
    if ignored := sorted(set(names)):
        raise InputError(f"{', '.join(ignored)} would have no effect {where}; leave it out", settings=(*ignored, *why))


def warn(text: str, *values: object, settings: tuple[str, ...] = (), level: int = logging.WARNING) -> None:
    """Logs what was left out or changed, unless one of the values is the count 0.

    Args:
        text: with a place for each value, as `logging` fills them.
        values: names, and how many there are.
        settings: parameters that change it; the command line adds its options.
        level: how grave it is.
    """
    if 0 not in values:
        logging.getLogger("rubric_measures").log(level, text, *values, extra={"settings": settings})


tell = partial(warn, level=logging.INFO)


def origin_of(error: BaseException) -> str:
    """The top-level package whose code raised an exception; empty where that is not known.

    What another program raises over our user's input is an answer to be put into words; what our own code raises
    without meaning to is a defect, whose traceback somebody needs.
    """
    module, trace = "", error.__traceback__
    while trace is not None:
        module, trace = trace.tb_frame.f_globals.get("__name__", ""), trace.tb_next
    return module.partition(".")[0]


class RubricMeasuresError(Exception):
    """Base of every exception that this package raises on purpose.

    Args:
        settings: the parameters of the library that mend it (`bank`, `on_failed`), where the message alone does not
            say where to turn. The command line adds its options of these names.
    """

    def __init__(self, *args: object, settings: Iterable[str] = ()) -> None:
        super().__init__(*(in_number(one) if isinstance(one, str) else one for one in args))
        self.settings = tuple(settings)

    def __reduce__(self) -> tuple[object, ...]:
        # Other arguments than the message are attributes.
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[RubricMeasuresError], args: tuple[object, ...]) -> RubricMeasuresError:
    return kind.__new__(kind, *args)


class InputError(RubricMeasuresError, ValueError):
    """The user's input is wrong; nothing was written."""


class FormatError(InputError):
    """A file does not have the format that it should have.

    Args:
        problem: what was found and what was expected, in one line.
        path: the file, or `-` for standard input; left out of the message when empty.
        line: one-based line number; 0 when no line can be named.
        field: the field inside the line (`paragraph_data.rankings[3].rank`), when one can be named.
        settings: see `RubricMeasuresError`.
    """

    def __init__(
        self, problem: str, *, path: str = "", line: int = 0, field: str = "", settings: Iterable[str] = ()
    ) -> None:
        self.problem = in_number(" ".join(problem.split()))
        self.path = path
        self.line = line
        self.field = field
        super().__init__(problem, settings=settings)

    def __str__(self) -> str:
        where = self.path
        if self.line:
            where = f"{where}:{self.line}" if where else f"line {self.line}"
        return ": ".join(part for part in (where, self.field, self.problem) if part)


@contextlib.contextmanager
def naming(*names: object, beside: Iterable[object] = ()) -> Iterator[None]:
    """Puts the name of the file, or of all of them, before what is wrong with the content and names no file.

    Args:
        names: the files one of which is to blame; what is no name of a file is passed over.
        beside: further files that are read; what is wrong with them names them.

    Raises:
        InputError: as it is raised inside, with the name.
    """
    try:
        yield
    except InputError as error:
        called = list(dict.fromkeys(os.fspath(name) for name in names if isinstance(name, str | os.PathLike)))
        is_of_content = type(error) in (InputError, FormatError, MeasureError) or getattr(error, "kind", "") == "query"
        is_named = getattr(error, "path", "") or any(name in str(error) for name in [*called, *map(str, beside)])
        if not is_of_content or not called or is_named:
            raise
        if isinstance(error, FormatError) and error.line and len(called) == 1:
            raise FormatError(error.problem, path=called[0], line=error.line, field=error.field) from None
        kind = MeasureError if isinstance(error, MeasureError) else InputError
        raise kind(f"{', '.join(called)}: {error}", settings=error.settings) from None


class UnknownNameError(InputError):
    """A name is not known; the message lists near ones.

    Args:
        kind: what is named, in the singular (`prompt`, `run`, `query`).
        name: the name as the user wrote it.
        known: the names that exist.
        hint: more to know, at the end.
        where: file and line where the name stands, where they are known.
        settings: see `RubricMeasuresError`.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        known: Iterable[str],
        *,
        hint: str = "",
        where: str = "",
        settings: Iterable[str] = (),
    ) -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        import difflib

        folded = {one.casefold(): one for one in self.known}
        near = [folded[one] for one in difflib.get_close_matches(name.casefold(), folded, n=3)]
        if near:
            tail = f"did you mean {', '.join(near)}?"
        elif not self.known:
            tail = "there are none"
        else:
            tail = f"known: {', '.join(self.known[:12])}" + (", …" if len(self.known) > 12 else "")
        self.hint, self.where = hint, where
        start = f"{where}: " if where else ""
        super().__init__(f"{start}unknown {kind} {name!r}: {tail}" + (f" {hint}" if hint else ""), settings=settings)


class MeasureError(InputError):
    """A measure or its parameters make no sense, or cannot be computed from these grades."""


class MeasureNameError(MeasureError):
    """What was written for a measure is none; no file is to blame for that."""


class MissingExtraError(RubricMeasuresError, ImportError):
    """An optional dependency is missing; the message is the command that installs it.

    Args:
        module: the module that is not there.
        extra: the extra that brings it.
    """

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(f"{module} is not installed; in the checkout: pip install '.[{extra}]'")


class PlugInError(RubricMeasuresError):
    """What another package adds cannot be imported, or is not what it should be."""


class GradingError(RubricMeasuresError):
    """Grading could not go on; what was finished is in the cache."""


class BackendError(GradingError):
    """A model or an endpoint could not be used at all (unknown model, no connection, wrong key)."""


class DeviceLostError(BackendError):
    """The device of a model gave up over a call, and only another process can use it; the model itself was usable."""
