"""Commands out of functions: an option is a parameter of the public function, its help a line of the docstring there.

A command is a function here, and the functions of the library that it calls:

    @Command(["rubric_measures.analysis.comparing:power"], files={"scores": "BOARD…"})
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
import contextlib
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

__all__ = ["Call", "Command"]

Call: TypeAlias = functools.partial[Any]
_ROOT = Path(__file__).parents[2]
# What a terminal has of its own, or a notebook.
_NO_OPTIONS = frozenset({"self", "progress", "watch", "notes"})
# One letter for one thing in all commands.
_SHORT = {"measures": "-m", "output": "-o", "places": "-p", "collection": "-c", "depth": "-k"}
# Options that take several values at once, that are repeated, and whose values have commas between them.
_SEVERAL = frozenset({"measures", "runs", "coefficients", "rel", "answers", "systems", "assign"})
_REPEATED = frozenset({"collection", "grader", "model", "prompt"})
_WITH_COMMAS = frozenset({"queries"})
# Where the last of two values would be used in silence.
_ONCE = frozenset({"base_url", "grader", "grader_b"})
# Classes of objects whose fields are a group of options.
_SETTINGS = frozenset({"Asking", "Calls", "Draws", "Tests", "Printed", "PrintedBoard", "PrintedPage"})
_OUTPUTS = ("output", "plot", "report", "save", "scores")
_NUMBERS = {"int": int, "float": float}
# What a value is called where the name of its option does not say it.
_WORDS = {
    "adjudicator": "NAME", "against": "NAME", "allow_remote": "HOST", "answers": "FILE",
    "assessor": "NAME", "base_url": "URL", "baseline": "RUN", "copy": "FOLDER", "export": "FOLDER", "folder": "FOLDER",
    "from": "FORMAT", "grader_b": "GRADER", "official_measure": "MEASURE", "pack": "FOLDER", "state": "FILE",
    "to": "FORMAT",
}  # fmt: skip


class Parameter(NamedTuple):
    """A parameter of a function, or a field of a settings object.

    Attributes:
        name: of the parameter or field.
        kinds: what its annotation lets pass, a key of `_KINDS` each.
        choices: the literals among them.
        default: as text of the program; None where it is required.
        help: what the docstring says of it.
        title: of the settings object that it is a field of.
        settings: the module and name of that object's class.
        holder: the parameter whose object it is a field of, or nothing.
    """

    name: str
    kinds: frozenset[str]
    choices: tuple[Any, ...]
    default: str | None
    help: str
    title: str = ""
    settings: tuple[str, str] = ("", "")
    holder: str = ""


# A statement of a module begins in the first column, where no bracket is closed.
_STATEMENT = re.compile(r"\n(?=[^\s)\]}])")
_DEFINES = re.compile(r"(?:def|class) (\w+)|(\w+)(?:: \w+)? = ")
_IMPORTS = re.compile(r"^ *from ([\w.]+) import (?:\(([^)]*)\)|([^#\n]*))", re.M)
# What stands below the docstring of a function, or the fields of a class, takes time to parse and says no option.
_HEAD = re.compile(r'def .*?""".*?"""|class .*?(?=\n    (?:def |@)|\Z)', re.S)


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


def _named(module: str, name: str) -> tuple[str, str]:
    """The module of the package where a name is defined, and how, as text; nothing of what others define."""
    found = _names(module).get(name, "") if module.startswith("rubric_measures") else ""
    return (module, found) if isinstance(found, str) else _named(*found)


@functools.cache
def _parsed(target: str) -> tuple[str, ast.ClassDef | ast.FunctionDef]:
    """Where a function (or class), `MODULE:NAME`, is defined, and its definition."""
    module, text = _named(*target.split(":"))
    head = _HEAD.match(text)
    [node] = ast.parse(head[0] if head else text).body
    assert isinstance(node, ast.ClassDef | ast.FunctionDef), target
    return module, node


def _spelled_out(module: str, annotation: str) -> str:
    """An annotation without the names that are short for other annotations."""

    def meaning(found: re.Match[str]) -> str:
        home, text = _named(module, found[0])
        return found[0] if _HEAD.match(text) or not text else _spelled_out(home, text.partition(" = ")[2])

    return re.sub(r"(?<![\w.])_?[A-Z]\w+\b(?!\.)", meaning, annotation)


_LITERAL = r"Literal\[([^]]*)\]"
# How an annotation says what it lets pass; each is looked for when those above it are taken out.
_KINDS = {
    "choices": _LITERAL,
    "numbers": r"Mapping\[\w+, float\]",
    "pairs": r"Mapping\[(?:[^][]|\[(?:[^][]|\[[^][]*\])*\])*\]",
    "file": r"\w+\.\w+(?:\[\w+\])?",
    "couple": r"tuple\[(?=(?:int|str), (?:int|str)\])",
    "many": r"\b(?!Union\b)\w+\[",
    **{name: rf"\b{name}\b" for name in ("int", "float", "bool", "str")},
}
_ENTRY = re.compile(r"^    (\w+): (.*?)(?=^    \w|\Z)", re.S | re.M)


def _helps(target: str) -> dict[str, str]:
    """What a docstring says of each parameter or field; where it says: see another function, what that one says."""
    module, node = _parsed(target)
    part = re.search(r"^(?:Args|Attributes):\n(.*?)(?=^\S|\Z)", f"{ast.get_docstring(node)}\n", re.S | re.M)
    found = {name: " ".join(said.split()) for name, said in _ENTRY.findall(part[1] if part else "")}
    for name, said in found.items():
        other = re.search(r"see `(\w+)`\.?$", said)
        if other and _named(module, other[1])[1].startswith("def "):
            said = _helps(f"{module}:{other[1]}").get(name, said)
        # What concerns Python alone is no help of an option.
        found[name] = re.sub(r" In Python[^.]*\.", "", said).replace("`", "")
    return found


def summary(target: str) -> str:
    """The first line of a docstring."""
    return (ast.get_docstring(_parsed(target)[1]) or "").partition("\n")[0]


@functools.cache
def parameters(target: str) -> tuple[Parameter, ...]:
    """The parameters of a function, `MODULE:NAME`, with fields in the place of a settings object; or those fields."""
    module, node = _parsed(target)
    helps = _helps(target)
    # By the parameter that holds it, and its name.
    found: dict[tuple[str, str], Parameter] = {}
    if isinstance(node, ast.ClassDef):
        for base in map(ast.unparse, node.bases):
            found |= {("", one.name): one for one in parameters(f"{module}:{base}")} if base in _SETTINGS else {}
        fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
        rows = [(ast.unparse(one.target), one.annotation, one.value) for one in fields]
    else:
        plain = [*node.args.posonlyargs, *node.args.args]
        needed = len(plain) - len(node.args.defaults)
        pairs = [*zip(plain, [*[None] * needed, *node.args.defaults], strict=True)]
        pairs += [(node.args.vararg, None)] if node.args.vararg else []
        pairs += zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        rows = [(one.arg, one.annotation, default) for one, default in pairs if one.annotation]
    for name, annotation, default in rows:
        said = ast.unparse(annotation)
        settings = next((one for one in said.split(" | ") if one in _SETTINGS), None)
        if settings is not None:
            found |= {(name, one.name): one._replace(holder=name) for one in parameters(f"{module}:{settings}")}
        elif name not in _NO_OPTIONS and not said.startswith(("ClassVar", "Call", "partial")):
            left = _spelled_out(module, said)
            choices = [
                one for among in re.findall(_LITERAL, left) for one in ast.literal_eval(f"{among},") if one != ""
            ]
            kinds = set[str]()
            for kind, pattern in _KINDS.items():
                left, times = re.subn(pattern, " ", left)
                kinds |= {kind} if times else set()
            usual = None if default is None else ast.unparse(default)
            found["", name] = Parameter(name, frozenset(kinds), tuple(choices), usual, helps.get(name, ""))
    if isinstance(node, ast.ClassDef):
        title = (ast.get_docstring(node) or "").partition("\n")[0].rstrip(".")
        about: dict[str, Any] = {"title": title[:1].lower() + title[1:], "settings": (module, node.name)}
        found = {at: one._replace(help=helps.get(one.name, one.help), **about) for at, one in found.items()}
    return tuple(found.values())


@dataclass(frozen=True)
class Command:
    """A command: `@Command(...)` above the function that runs it.

    Attributes:
        calls: the functions of the library, `MODULE:NAME`, that it is handed first, each with what the options say.
        files: parameter -> how its positional argument is written: `BOARD`, `[BOARD]`, `RUN…`, `[RUN…]`.
        spelled: parameter -> its options, with blanks between them, where its name is none.
        without: parameters that are no options.
        fields: the parameter of a settings object -> those of its fields that are options, where not all are.
        function: runs it; its docstring explains it.
        own: where that is, `MODULE:NAME`.
    """

    calls: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    spelled: Mapping[str, str] = field(default_factory=dict)
    without: Sequence[str] = ()
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)
    function: Callable[..., int] = int
    own: str = ""

    def __call__(self, function: Callable[..., int]) -> Command:
        """The command that a function runs."""
        return replace(self, function=function, own=f"{function.__module__}:{function.__name__}")

    def _taken(self, target: str) -> list[Parameter]:
        """The parameters of a function that are options."""
        every = (one for one in parameters(target) if one.name not in self.without)
        return [one for one in every if one.name in self.fields.get(one.holder, (one.name,))]

    def _options(self) -> dict[str, Parameter]:
        """All parameters by name, the command's own first; a settings object's together. What it says itself counts."""
        own = self._taken(self.own)
        called = [one for target in self.calls for one in self._taken(target)]
        found: dict[str, Parameter] = {}
        # How output looks comes last.
        for one in sorted((*own, *called), key=lambda one: one in own and bool(one.holder)):
            known = found.setdefault(one.name, one)
            found[one.name] = known._replace(help=known.help or one.help)
        helps = _helps(self.own)
        return {name: one._replace(help=helps.get(name, one.help)) for name, one in found.items()}

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Declares all arguments."""
        parser.description, _, more = (inspect.getdoc(self.function) or "").partition("\n\n")
        parser.epilog = re.split(r"^Args:\n", more, maxsplit=1, flags=re.M)[0].rstrip()
        options = self._options()
        for name, written in self.files.items():
            _add(parser, options.pop(name), written=written)
        groups: dict[str, argparse._ActionsContainer] = {"": parser}
        for one in options.values():
            if one.title not in groups:
                groups[one.title] = parser.add_argument_group(one.title)
            _add(groups[one.title], one, self.spelled.get(one.name, ""))

    def run(self, given: Mapping[str, Any]) -> int:
        """Runs the command with the arguments that were given.

        Raises:
            InputError: an output would replace an input, or two outputs are one file.
        """
        outputs = {name: given[name] for name in _OUTPUTS if name not in self.files and given.get(name, "-") != "-"}
        # What a function of the library writes, it looks after: grades may be added to a file in its place.
        handed = {one.name for target in self.calls for one in parameters(target)}
        written = [path for name, path in outputs.items() if name not in handed]
        if written or len(outputs) > 1:
            self._keep_files(given, outputs, written)
        return int(self._called(self.own, given, *(self._called(target, given) for target in self.calls))())

    def _called(self, target: str, given: Mapping[str, Any], *calls: Call) -> Call:
        """A function with what the arguments say of its parameters."""
        from rubric_measures.cli.inputs import is_watched

        module, _, name = target.partition(":")
        function = self.function if target == self.own else getattr(importlib.import_module(module), name)
        # What the command's own function takes, it hands on itself.
        own = {one.name for one in self._taken(self.own)} if target != self.own else ()
        settings: dict[str, Any] = {}
        held: dict[str, tuple[str, str]] = {}
        for one in self._taken(target):
            if one.name in given and one.name not in own:
                at = settings.setdefault(one.holder, {}) if one.holder else settings
                at[one.name] = given[one.name]
                held |= {one.holder: one.settings} if one.holder else {}
        for holder, (module, name) in held.items():
            settings[holder] = getattr(importlib.import_module(module), name)(**settings[holder])
        taken = inspect.getfullargspec(function)
        if "progress" in (*taken.args, *taken.kwonlyargs):
            settings["progress"] = is_watched()
        # What stands before several values is not named either.
        first = [settings.pop(name) for name in taken.args if taken.varargs and name in settings]
        return functools.partial(function, *calls, *first, *settings.pop(taken.varargs or "", ()), **settings)

    def _keep_files(self, given: Mapping[str, Any], outputs: Mapping[str, str], written: Sequence[str]) -> None:
        from rubric_measures.corpora.loading import file_beside
        from rubric_measures.corpora.overwriting import keep_apart, keep_cache, keep_inputs

        keep_apart(**outputs)
        read: list[str] = []
        for name, one in self._options().items():
            if ("file" in one.kinds or name in self.files) and name in given.keys() - {*outputs, "cache"}:
                read += given[name] if isinstance(given[name], list) else [given[name]]
        for path in written:
            keep_inputs(path, *(name.removeprefix("judgments:") for name in read))
        # Games that are played are paid for, too, where no cache is named.
        keep_cache(file_beside(given.get("save"), given.get("cache"), ".cache.sqlite"), *written)


def _add(group: argparse._ActionsContainer, one: Parameter, spelled: str = "", written: str = "") -> None:
    """Declares an option, as it is `spelled`, or a positional argument, as it is `written`."""
    from rubric_measures.cli.inputs import Named, Once, reader, separate

    said, default = one.help.rstrip("."), None
    with contextlib.suppress(ValueError):
        default = ast.literal_eval(one.default or "None")
    if default not in (None, False, True, "", (), {}, "-") and "default" not in said:
        said += f" (default {' '.join(map(str, default)) if isinstance(default, tuple) else default})"
    # What is not given is not there.
    how: dict[str, Any] = {"help": said.replace("%", "%%"), "default": argparse.SUPPRESS}
    if written:
        word = written.strip("[]…")
        how["nargs"] = {"[…]": "*", "…": "+", "[]": "?"}.get(written.replace(word, ""))
        if one.kinds == {"choices"}:
            word, how["choices"] = f"{{{','.join(one.choices)}}}", one.choices
        group.add_argument(one.name, metavar=word, **how)
        return
    how["dest"] = one.name
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
        how |= {"type": separate, "metavar": "NAME,…"}
    elif one.kinds & {"pairs", "numbers"} and "str" not in one.kinds:
        how |= {"action": Named, "metavar": "NAME=VALUE"}
        how |= {"const": "NUMBER", "nargs": "+", "metavar": "NAME=NUMBER"} if "numbers" in one.kinds else {}
    elif "couple" in one.kinds:
        kind = int if "int" in one.kinds else str
        how |= {"type": kind, "nargs": 2, "metavar": ("A", "B")} | ({"action": "append"} if "many" in one.kinds else {})
    elif numbers:
        how |= {"type": reader(numbers, one.choices), "metavar": "|".join(("N", *map(str, one.choices)))}
    elif one.choices and "str" not in one.kinds:
        how |= {"choices": one.choices, "type": type(one.choices[0])}
    else:
        is_file = "file" in one.kinds or one.name in _OUTPUTS
        # As the help writes it: HOST:PORT, MEASURE=N.
        found = re.search(r"\b[A-Z]+[:=][A-Z]+(?:,…)?", one.help)
        metavar = metavar.removesuffix("S") if is_several else "FILE" if is_file else metavar
        how["metavar"] = _WORDS.get(flags[-1].strip("-").replace("-", "_")) or (metavar if found is None else found[0])
    if is_several:
        how |= {"nargs": "+", "action": "extend"}
    elif one.name in _REPEATED and "many" in one.kinds:
        how["action"] = "append"
    elif one.name in _ONCE:
        how["action"] = Once
    group.add_argument(*flags, required=one.default is None, **how)
