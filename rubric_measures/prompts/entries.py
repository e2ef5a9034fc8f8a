"""Prompts as TOML says them: those of this package, each read when it is asked for, and those of users' files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from os import PathLike
from pathlib import Path, PurePath
from typing import Any

import msgspec

from rubric_measures.base.errors import FormatError, UnknownNameError
from rubric_measures.base.files import check_readable_twice, path_name, read_text, toml_tables
from rubric_measures.base.json_text import typed
from rubric_measures.types.scales import CONTRADICTED, HELD, Scale, scale_problems

FIELD = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
_FILES = ("published.toml", "own.toml", "programs.toml")


@cache
def _tables() -> Mapping[str, str]:
    """Name -> its lines of the files, of all prompts of this package; a leaderboard needs the scale of one prompt."""
    return toml_tables(*map(Path(__file__).with_name, _FILES))


@cache
def _own(name: str) -> Mapping[str, Any]:
    """What the files of this package say of a prompt, with the texts that it takes from others."""
    entry: dict[str, Any] = tomllib.loads(_tables()[name])[name]
    base, _, program = name.partition("@")
    if "same_text_as" in entry:
        entry["text"] = _own(entry.pop("same_text_as"))["text"]
    if program:
        # The words of a program in the place of the paper's; all else is the paper's.
        entry = {**_own(base), "text": "", **entry}
    defaults = {
        key: _own(value[1:])["text"] if value[:1] == "@" and value[1:] in _tables() else value
        for key, value in entry.get("defaults", {}).items()
    }
    return {**entry, "defaults": defaults}


def prompt_names() -> tuple[str, ...]:
    """The names of all prompts, in the order of their files."""
    return tuple(_tables())


def entry_of(name: str) -> Mapping[str, Any]:
    """What is said of the prompt of a name.

    Raises:
        UnknownNameError: there is no prompt of this name.
    """
    if name not in _tables():
        raise UnknownNameError("prompt", name, prompt_names(), hint="(or give a .toml file)")
    return _own(name)


def read_entry(path: str | PathLike[str], taken: Collection[str]) -> tuple[str, Mapping[str, Any]]:
    """The name of a user's prompt, which is none of those in `taken`, and what its file says.

    Raises:
        FormatError: the file is no TOML, or something in it is missing, unknown, of a wrong type, or not to be read.
    """
    shown = path_name(path)
    # Each part of a command that needs the prompt reads it.
    check_readable_twice(shown)
    source = read_text(path)
    try:
        entry = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        line = int(place[1]) if place else source.count("\n") + 1
        raise FormatError(f"is no TOML ({str(error).split(' (at ')[0]})", path=shown, line=line) from None
    except (ValueError, RecursionError):
        raise FormatError("has a number of too many digits, or a list nested too deeply", path=shown) from None
    if entry.get("parser") == "yes_no":
        entry = {"scale": [0, 1], "labels": ["No", "Yes"], **entry}
    if problem := _problem_of(typed(_UserPrompt, entry, shown)):
        raise FormatError(problem, path=shown)
    name = entry.pop("name", PurePath(shown).stem)
    if name in taken:
        problem = f"{name} is the name of another prompt, and grades of both could not be told apart: set another name"
        raise FormatError(problem, path=shown, field="name")
    entry.setdefault("task", "extract" if entry["parser"] == "text" else "grade")
    return name, {"citation": "", **entry}


def entry_scale(entry: Mapping[str, Any]) -> Scale | None:
    """The scale of the grades that a prompt leads to; None where it leads to none."""
    ends, covers = entry.get("scale"), entry.get("covers")
    names = tuple(entry.get("labels", ())) if entry.get("parser") in _OF_LABELS else ()
    # What else could be wrong, a user's file was refused for. Words of yes and no may be left out of it.
    if ends is None or (names and len(names) != ends[1] - ends[0] + 1):
        return None
    return Scale(ends[0], ends[1], ends[1] if covers is None else covers, entry.get("partial"), names)


def scale_of_prompt(name: str) -> Scale | None:
    """The scale of the grades that a prompt class stands for; None where the class is not known, or leads to none."""
    return entry_scale(_own(name)) if name in _tables() else None


# target -> (fields that its prompts must have, further fields that they may have)
FIELDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "question": (frozenset({"question", "context"}), frozenset({"query"})),
    "nugget": (frozenset({"nugget", "context"}), frozenset({"query"})),
    "direct": (frozenset({"query_title", "context"}), frozenset({"examples"})),
    "support": (frozenset({"statement", "citation"}), frozenset({"query"})),
    "answer": (frozenset({"query", "answer"}), frozenset({"documents", "domain"})),
    "answers": (frozenset({"answer_a", "answer_b"}), frozenset({"query", "documents"})),
}
# Grades of user's prompts begin at 0; of support and of items there is also a contradiction.
_LOWEST = dict.fromkeys(("support", "nugget", "question"), CONTRADICTED)
PARSERS = ("rating", "yes_no", "label", "phrase", "label_list", "list", "items", "aspects", "verdict", "text")
# Parsers whose labels are grades, one after the other.
_OF_LABELS = ("yes_no", "label", "phrase", "label_list")


class _UserPrompt(msgspec.Struct, forbid_unknown_fields=True):
    """What a user's file may say of a prompt; see `Prompt`."""

    text: str
    target: str
    parser: str
    name: str = ""
    system: str = ""
    task: str = ""
    scale: tuple[int, int] | None = None
    covers: int | None = None
    partial: int | None = None
    labels: tuple[str, ...] = ()
    citation: str = ""
    defaults: dict[str, str] = {}
    reply_tokens: int = 0


def _problem_of(given: _UserPrompt) -> str:
    """What is wrong with a user's prompt; empty when nothing is."""
    target, parser, scale, labels = given.target, given.parser, given.scale, given.labels
    for what, named, known in (("target", target, tuple(FIELDS)), ("parser", parser, PARSERS)):
        if named not in known:
            return f"unknown {what} {named!r} (known: {', '.join(known)})"
    required, optional = FIELDS[target]
    present = set(FIELD.findall(f"{given.system}\n{given.text}")) - set(given.defaults)
    if not required <= present <= required | optional:
        must, may, has = (", ".join(sorted(names)) or "none" for names in (required, optional, present))
        return f"a {target} prompt must have the fields {must} and may have {may}; the text has {has}"
    if scale is None and (parser == "rating" or given.covers is not None or given.partial is not None):
        return "parser rating, covers and partial need a scale, such as scale = [0, 5] with covers = 4"
    if scale and (wrong := scale_problems(scale, given.covers, given.partial, labels if parser in _OF_LABELS else ())):
        return f"scale {list(scale)}: {wrong}, such as scale = [0, 5] with covers = 4"
    lowest = _LOWEST.get(target, 0)
    if scale and ((scale[0] < 0 and scale[0] != lowest) or scale[1] > HELD[1]):
        more = f", or at {lowest} for a contradiction" if lowest else ""
        return (
            f"scale {list(scale)} has grades that no record holds: it begins at 0{more}, and ends at {HELD[1]} or below"
        )
    folded = [re.sub(r"[\s_-]+", "_", label.strip().lower()) for label in labels if label or parser != "phrase"]
    if parser == "yes_no" and (folded, scale) != (["no", "yes"], (0, 1)):
        return 'parser yes_no reads "No" and "Yes", on the scale [0, 1]; parser label reads other words'
    if parser in ("label", "phrase", "label_list", "aspects") and not labels:
        return f"parser {parser} needs labels, lowest grade first"
    if parser in _OF_LABELS and ("" in folded or len({*folded}) < len(folded)):
        return f"parser {parser} can never read {', '.join(map(repr, labels))} (labels are different words)"
    return ""
