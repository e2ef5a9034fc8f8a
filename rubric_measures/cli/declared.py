"""Commands out of functions: options from signatures, help from docstrings, both read without an import.

A command is a function here, and the functions of the library that it calls:

    @command(power="rubric_measures.analysis.comparing:power", files={"scores": "BOARD…"})
    def power(power: Call, *, printed: Printed = Printed()) -> int:
        '''how many queries an experiment needs

        example:
          rubric_measures power board.json --smallest 0.05
        '''

Each parameter is an option: of the library's functions, and those of the command's own that are keywords. A parameter
that is a settings object, as `printed`, is a group of options: its fields. The entries `Args:` and
`Attributes:` of docstrings are the help.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

__all__ = ["Call", "Command", "command"]

Call: TypeAlias = functools.partial[Any]
F = TypeVar("F", bound=Callable[..., int])
_ROOT = Path(__file__).parents[2]
# What a terminal has of its own, or a notebook.
_NO_OPTIONS = frozenset({"self", "progress", "watch", "notes", "run_command"})
# One letter for one thing in all commands.
_SHORT = {"measures": "-m", "output": "-o", "places": "-p", "collection": "-c", "depth": "-k"}
# Options that take several values at once, that are repeated, and whose values have commas between them.
_SEVERAL = frozenset({"measures", "runs", "coefficients", "rel", "also", "answers", "systems", "fail_under", "assign"})
_REPEATED = frozenset({"collection", "grader", "model", "prompt"})
_WITH_COMMAS = frozenset({"queries"})
# Where the last of two values would be used in silence.
_ONCE = frozenset({"base_url", "grader", "label_grader", "grader_b"})
# Classes of objects whose fields are a group of options.
_SETTINGS = frozenset({"Asking", "Calls", "Draws", "Tests", "Printed", "PrintedBoard", "PrintedPage", "PrintedRatings"})
_OUTPUTS = ("output", "plot", "report", "save", "scores")
_NUMBERS = {"int": int, "float": float}
# What a value is called where the name of its option does not say it.
_WORDS = {
    "adjudicator": "NAME", "against": "ANSWERS", "allow_remote": "HOST", "also": "FILE", "answers": "FILE",
    "assessor": "NAME", "base_url": "URL", "baseline": "RUN", "copy": "FOLDER", "export": "FOLDER", "folder": "FOLDER",
    "grader_b": "GRADER", "official_measure": "MEASURE", "pack": "FOLDER", "source": "FORMAT", "state": "FILE",
    "to": "FORMAT",
}  # fmt: skip


class Parameter(NamedTuple):
    """A parameter of a function, or a field of a settings object.

    Attributes:
        name: of the parameter or field.
        kinds: `int`, `float`, `bool`, `str`, `file`, `pairs`, `numbers`, `couple`, `many`: what its annotation lets
            pass.
        choices: the literals among them.
        default: as text of the program; None where it is required.
        help: what the docstring says of it.
        holder: the parameter whose object it is a field of, or nothing.
        title: of that object.
        settings: the module and name of that object's class.
    """

    name: str
    kinds: frozenset[str]
    choices: tuple[Any, ...]
    default: str | None
    help: str
    holder: str = ""
    title: str = ""
    settings: tuple[str, str] = ("", "")


# A statement of a module begins in the first column, where no bracket is closed.
_STATEMENT = re.compile(r"\n(?=[^\s)\]}])")
_DEFINES = re.compile(r"(?:def|class) (\w+)|(\w+)(?:: \w+)? = ")
_HEAD = re.compile(r'def .*?""".*?"""', re.S)
_IMPORTS = re.compile(r"^ *from ([\w.]+) import (?:\(([^)]*)\)|([^#\n]*))", re.M)


@functools.cache
def _names(module: str) -> Mapping[str, str | tuple[str, str]]:
    """What a module defines, as text, and what it imports from where."""
    path = _ROOT.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    names: dict[str, str | tuple[str, str]] = {}
    for text in _STATEMENT.split(path.read_text(encoding="utf-8")):
        if found := _DEFINES.match(text):
            names[found[1] or found[2]] = text
        elif text.startswith(("from ", "if TYPE_CHECKING:")):
            for home, *listed in _IMPORTS.findall(text):
                each = (one.split() for one in "".join(listed).split(","))
                names |= {one[-1]: (home, one[0]) for one in each if one}
    return names


def _named(module: str, name: str) -> tuple[str, ast.AST | None]:
    """The module where a name is defined, and its definition; none of what other packages define."""
    found = _names(module).get(name)
    while isinstance(found, tuple):
        if not found[0].startswith("rubric_measures"):
            return module, None
        module, name = found
        found = _names(module).get(name)
    return module, None if found is None else _parsed(found)


@functools.cache
def _parsed(text: str) -> ast.AST | None:
    # What stands below the docstring of a function, or the fields of a class, takes time to parse and says no option.
    head = _HEAD.match(text)
    [node, *_] = ast.parse(re.split("\n    (?:def |@)", text, maxsplit=1)[0] if head is None else head[0]).body
    return node.value if isinstance(node, ast.Assign | ast.AnnAssign) else node


def _passing(module: str, node: ast.AST) -> Iterator[str | tuple[Any, ...]]:
    """What an annotation lets pass: kinds, see `Parameter`, and tuples of literals."""
    match node:
        case ast.BinOp(left=left, right=right):
            yield from _passing(module, left)
            yield from _passing(module, right)
        case ast.Constant(value=str(text)):
            yield from _passing(module, ast.parse(text, mode="eval").body)
        case ast.Subscript(value=ast.Name(id="Literal"), slice=among):
            values = ast.literal_eval(among)
            yield values if isinstance(values, tuple) else (values,)
        case ast.Subscript(value=ast.Name(id="Union"), slice=ast.Tuple(elts=each)):
            for one in each:
                yield from _passing(module, one)
        case ast.Subscript(value=ast.Name(id="Mapping"), slice=ast.Tuple(elts=[_, value])):
            yield "numbers" if isinstance(value, ast.Name) and value.id == "float" else "pairs"
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=[_, ast.Name(id="int" | "str" as kind)])):
            yield from ("couple", kind)
        case ast.Subscript(value=ast.Attribute()) | ast.Attribute():
            yield "file"
        case ast.Subscript(slice=ast.Tuple(elts=[inner, *_])) | ast.Subscript(slice=inner):
            yield "many"
            yield from _passing(module, inner)
        case ast.Name(id="int" | "float" | "bool" | "str" as kind):
            yield kind
        case ast.Name(id=name):
            home, found = _named(module, name)
            if found is not None and not isinstance(found, ast.ClassDef):
                yield from _passing(home, found)


_ENTRY = re.compile(r"^    (\w+): (.*?)(?=^    \w|\Z)", re.S | re.M)


def _helps(node: ast.ClassDef | ast.FunctionDef, module: str = "") -> dict[str, str]:
    """What a docstring says of each parameter or field; where it says: see another function, what that one says."""
    text = ast.get_docstring(node) or ""
    part = re.search(r"^(?:Args|Attributes):\n(.*?)(?=^\S|\Z)", text + "\n", re.S | re.M)
    found = {name: " ".join(said.split()) for name, said in _ENTRY.findall(part[1] if part else "")}
    for name, said in found.items():
        other = re.search(r"see `(\w+)`\.?$", said)
        home, known = _named(module, other[1]) if other and module else (module, None)
        if isinstance(known, ast.FunctionDef):
            found[name] = _helps(known, home).get(name, said)
    # What concerns Python alone is no help of an option.
    return {name: re.sub(r" In Python[^.]*\.", "", said).replace("`", "") for name, said in found.items()}


def _default(node: ast.expr) -> str:
    if isinstance(node, ast.Call) and any(one.arg == "default_factory" for one in node.keywords):
        return ""
    return ast.unparse(node)


def _parameter(module: str, name: str, of: ast.AST, default: ast.expr | None, said: str) -> Parameter:
    passing = list(_passing(module, of))
    kinds = frozenset(one for one in passing if isinstance(one, str))
    choices = tuple(value for one in passing if not isinstance(one, str) for value in one if value != "")
    return Parameter(name, kinds, choices, None if default is None else _default(default), said)


def _fields(module: str, node: ast.ClassDef) -> dict[str, Parameter]:
    """The fields of a settings class, those of its bases first."""
    found: dict[str, Parameter] = {}
    for base in node.bases:
        home, known = _named(module, base.id) if isinstance(base, ast.Name) else (module, None)
        if isinstance(known, ast.ClassDef):
            found |= _fields(home, known)
    helps = _helps(node)
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            name = one.target.id
            if ast.unparse(one.annotation).startswith("ClassVar"):
                continue
            found[name] = _parameter(module, name, one.annotation, one.value, helps.get(name, ""))
    return {name: one._replace(help=helps.get(name, one.help)) for name, one in found.items()}


def _function(target: str) -> tuple[str, ast.FunctionDef]:
    """Where a function, `MODULE:NAME`, is defined, and its definition."""
    home, _, name = target.partition(":")
    module, node = _named(home, name)
    assert isinstance(node, ast.FunctionDef), target
    return module, node


def summary(target: str) -> str:
    """The first line of a function's docstring."""
    return (ast.get_docstring(_function(target)[1]) or "").partition("\n")[0]


@functools.cache
def parameters(target: str) -> tuple[Parameter, ...]:
    """The parameters of a function, `MODULE:NAME`; in the place of a settings object its fields."""
    module, node = _function(target)
    helps = _helps(node, module)
    plain = [*node.args.posonlyargs, *node.args.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(node.args.defaults))
    pairs = [*zip(plain, [*defaults, *node.args.defaults], strict=True)]
    if (star := node.args.vararg) is not None:
        pairs.append((star, None))
    pairs += zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    found: list[Parameter] = []
    for one, default in pairs:
        if one.annotation is None or one.arg in _NO_OPTIONS:
            continue
        kind = next((name for name in ast.unparse(one.annotation).split(" | ") if name in _SETTINGS), None)
        at, settings = (module, None) if kind is None else _named(module, kind)
        if isinstance(settings, ast.ClassDef):
            title = (ast.get_docstring(settings) or "").partition("\n")[0].rstrip(".")
            title = title[:1].lower() + title[1:]
            of = (at, settings.name)
            found += [
                each._replace(holder=one.arg, title=title, settings=of) for each in _fields(at, settings).values()
            ]
        else:
            found.append(_parameter(module, one.arg, one.annotation, default, helps.get(one.arg, "")))
    return tuple(found)


class Command(NamedTuple):
    """A command.

    Attributes:
        name: of the function that runs it, whose docstring explains it.
        module: where that function is.
        calls: its parameter -> the function of the library, `MODULE:NAME`, that it is handed there, with what the
            options say.
        files: parameter -> how its positional argument is written: `BOARD`, `[BOARD]`, `RUN…`, `[RUN…]`.
        spelled: parameter -> its options, with blanks between them, where its name is none.
        without: parameters that are no options.
        fields: the parameter of a settings object -> those of its fields that are options, where not all are.
    """

    name: str
    module: str
    calls: Mapping[str, str]
    files: Mapping[str, str]
    spelled: Mapping[str, str]
    without: Sequence[str]
    fields: Mapping[str, Sequence[str]]

    @property
    def own(self) -> str:
        """The function that runs it."""
        return f"{self.module}:{self.name}"

    def options(self) -> dict[str, Parameter]:
        """All parameters by name, the command's own first; a settings object's together. What it says itself counts."""
        own = self._parameters(self.own)
        called = [one for target in self.calls.values() for one in self._parameters(target)]
        found: dict[str, Parameter] = {}
        # How output looks comes last.
        for one in sorted((*own, *called), key=lambda one: one in own and bool(one.holder)):
            known = found.setdefault(one.name, one)
            found[one.name] = known._replace(help=known.help or one.help)
        helps = _helps(self._node)
        return {name: one._replace(help=helps.get(name, one.help)) for name, one in found.items()}

    @property
    def _node(self) -> ast.FunctionDef:
        return _function(self.own)[1]

    def _parameters(self, target: str) -> list[Parameter]:
        # A call is no option.
        left_out = {*self.without, *(self.calls if target == self.own else ())}
        return [
            one
            for one in parameters(target)
            if one.name not in left_out and one.name in self.fields.get(one.holder, (one.name,))
        ]

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Declares all arguments."""
        parser.description, _, more = (ast.get_docstring(self._node) or "").partition("\n\n")
        parser.epilog = re.split(r"^Args:\n", more, maxsplit=1, flags=re.M)[0].rstrip()
        options = self.options()
        for name, written in self.files.items():
            _add_file(parser, options[name], written)
        groups: dict[str, argparse._ActionsContainer] = {"": parser}
        for one in options.values():
            if one.name not in self.files:
                if one.title not in groups:
                    groups[one.title] = parser.add_argument_group(one.title)
                _add(groups[one.title], one, self.spelled.get(one.name, ""))

    def run(self, given: Mapping[str, Any], run_command: Callable[..., int]) -> int:
        """Runs the command with the arguments that were given; `run_command` is for a command of commands.

        Raises:
            InputError: an output would replace an input, or two outputs are one file.
        """
        from rubric_measures.cli.inputs import is_watched

        self._keep_files(given)
        calls = []
        for target in self.calls.values():
            module, _, name = target.partition(":")
            function = getattr(importlib.import_module(module), name)
            settings, taken = self._settings(target, given), inspect.getfullargspec(function)
            if "progress" in (*taken.args, *taken.kwonlyargs):
                settings["progress"] = is_watched()
            # What stands before several values is not named either.
            first = [settings.pop(name) for name in taken.args if taken.varargs and name in settings]
            calls.append(functools.partial(function, *first, *settings.pop(taken.varargs or "", ()), **settings))
        own = getattr(importlib.import_module(self.module), self.name)
        settings = self._settings(self.own, given)
        if "run_command" in inspect.signature(own).parameters:
            settings["run_command"] = run_command
        return int(own(*calls, **settings))

    def _settings(self, target: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """What a function is called with, by the names of its parameters."""
        found: dict[str, Any] = {}
        held: dict[str, tuple[tuple[str, str], dict[str, Any]]] = {}
        # What the command's own function takes, it hands on itself.
        own = {one.name for one in self._parameters(self.own)} if target != self.own else ()
        for one in self._parameters(target):
            if one.name not in given or one.name in own:
                continue
            value = given[one.name]
            if "couple" in one.kinds:
                value = [tuple(pair) for pair in value] if "many" in one.kinds else tuple(value)
            settings = held.setdefault(one.holder, (one.settings, {}))[1] if one.holder else found
            settings[one.name] = value
        for holder, ((module, name), settings) in held.items():
            found[holder] = getattr(importlib.import_module(module), name)(**settings)
        return found

    def _keep_files(self, given: Mapping[str, Any]) -> None:
        from rubric_measures.corpora.loading import file_beside
        from rubric_measures.corpora.overwriting import keep_apart, keep_cache, keep_inputs

        outputs = {name: given[name] for name in _OUTPUTS if name not in self.files and given.get(name, "-") != "-"}
        keep_apart(**outputs)
        # What a function of the library writes, it looks after: grades may be added to a file in its place.
        handed = {one.name for target in self.calls.values() for one in parameters(target)}
        written = {name: path for name, path in outputs.items() if name not in handed}
        read: list[str] = []
        for name, one in self.options().items() if written else ():
            if ("file" in one.kinds or name in self.files) and name in given.keys() - {*outputs, "cache"}:
                read += given[name] if isinstance(given[name], list) else [given[name]]
        for path in written.values():
            keep_inputs(path, *(name.removeprefix("judgments:") for name in read))
        # Games that are played are paid for, too, where no cache is named.
        keep_cache(file_beside(given.get("save"), given.get("cache"), ".cache.sqlite"), *written.values())


def command(
    *, files: Mapping[str, str] | None = None, spelled: Mapping[str, str] | None = None,
    without: Sequence[str] = (), fields: Mapping[str, Sequence[str]] | None = None, **calls: str
) -> Callable[[F], F]:  # fmt: skip
    """Declares the function below as a command; see `Command`. The names of `calls` are those of its parameters."""

    def declare(function: F) -> F:
        made = Command(function.__name__, function.__module__, calls, files or {}, spelled or {}, without, fields or {})
        function.command = made  # type: ignore[attr-defined]
        return function

    return declare


def _add_file(parser: argparse.ArgumentParser, one: Parameter, written: str) -> None:
    word = written.strip("[]…")
    nargs = {"[…]": "*", "…": "+", "[]": "?"}.get(written.replace(word, ""))
    # What is not given is not there; argparse would put an empty list.
    default = {} if nargs is None else {"default": argparse.SUPPRESS}
    choices = {"choices": one.choices} if one.choices and not one.kinds else {}
    word = f"{{{','.join(map(str, one.choices))}}}" if choices else word
    parser.add_argument(one.name, metavar=word, nargs=nargs, help=_help(one), **default, **choices)  # type: ignore[arg-type]


def _help(one: Parameter) -> str:
    said = one.help.rstrip(".")
    try:
        default = ast.literal_eval(one.default or "None")
    except ValueError:
        default = None
    if default not in (None, False, True, "", (), {}, "-") and "default" not in said:
        shown = " ".join(map(str, default)) if isinstance(default, tuple) else str(default)
        said += f" (default {shown})"
    return said.replace("%", "%%")


def _add(group: argparse._ActionsContainer, one: Parameter, spelled: str) -> None:
    from rubric_measures.cli.inputs import Named, Once

    how: dict[str, Any] = {"dest": one.name, "help": _help(one), "default": argparse.SUPPRESS}
    numbers = [kind for name, kind in _NUMBERS.items() if name in one.kinds]
    word = one.name.replace("_", "-")
    metavar = word.upper()
    is_several = one.name in _SEVERAL and "many" in one.kinds
    is_turned_off = "bool" in one.kinds and one.default == "True"
    flags = spelled.split() or [*([_SHORT[one.name]] if one.name in _SHORT else []), f"--{'no-' * is_turned_off}{word}"]
    if "bool" in one.kinds and not one.choices:
        if one.default == "None":
            how["action"] = argparse.BooleanOptionalAction
        else:
            how["action"] = "store_false" if is_turned_off else "store_true"
        group.add_argument(*flags, **how)
        return
    if one.name in _WITH_COMMAS and "file" not in one.kinds:
        how |= {"type": _separate, "metavar": "NAME,…"}
    elif one.kinds & {"pairs", "numbers"} and "str" not in one.kinds:
        how |= {"action": Named, "metavar": "NAME=VALUE"}
        how |= {"const": "NUMBER", "nargs": "+"} if "numbers" in one.kinds else {}
    elif "couple" in one.kinds:
        kind = int if "int" in one.kinds else str
        how |= {"type": kind, "nargs": 2, "metavar": ("A", "B")} | ({"action": "append"} if "many" in one.kinds else {})
    elif numbers:
        how |= {"type": _reader(numbers, one.choices), "metavar": "|".join(("N", *map(str, one.choices)))}
    elif one.choices and "str" not in one.kinds:
        how |= {"choices": one.choices, "type": type(one.choices[0])}
    else:
        is_file = "file" in one.kinds or one.name in _OUTPUTS
        # As the help writes it: HOST:PORT, MEASURE=N.
        written = re.search(r"\b[A-Z]+[:=][A-Z]+(?:,…)?", one.help)
        metavar = metavar.removesuffix("S") if is_several else "FILE" if is_file else metavar
        how["metavar"] = _WORDS.get(one.name) or (metavar if written is None else written[0])
    if is_several:
        how |= {"nargs": "+", "action": "extend"}
    elif one.name in _REPEATED and "many" in one.kinds:
        how["action"] = "append"
    elif one.name in _ONCE:
        how["action"] = Once
    group.add_argument(*flags, required=one.default is None, **how)


def _separate(text: str) -> list[str]:
    """What stands between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _reader(kinds: Iterable[type], choices: Sequence[Any]) -> Callable[[str], Any]:
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
