"""Prompts as TOML says them: those of this package, each read when it is asked for, of plug-ins, and of users.

What is wrong with a user's prompt file: keys, fields, scales that no record holds, labels that no reply can name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from os import PathLike
from pathlib import Path, PurePath
from typing import Any

from rubric_measures.base.errors import (
    FormatError,
    InputError,
    PlugInError,
    RubricMeasuresError,
    UnknownNameError,
)
from rubric_measures.base.files import check_readable_twice, path_name, read_text, toml_tables
from rubric_measures.base.plugins import PlugIn, plug_ins, say_once
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


@cache
def _added() -> tuple[Mapping[str, Mapping[str, Any]], Mapping[str, RubricMeasuresError]]:
    """The prompts of plug-ins by name; and what of them cannot be used, by the name that it would have."""
    entries: dict[str, Mapping[str, Any]] = {}
    problems: dict[str, RubricMeasuresError] = {}
    for plug_in in plug_ins("rubric_measures.prompts", "folder of prompts").values():
        try:
            files = _files_of(plug_in)
        except PlugInError as error:
            problems[plug_in.name] = error
            continue
        for file in files:
            try:
                name, entry = read_entry(file, {*_tables(), *entries})
            except InputError as error:
                problems[file.stem] = plug_in.refused(str(error))
            else:
                entries[name] = entry
    return entries, problems


def _files_of(plug_in: PlugIn) -> list[Path]:
    """The TOML files beside the `__init__.py` of a package."""
    package = plug_in.load()
    files = sorted(file for folder in getattr(package, "__path__", ()) for file in Path(folder).glob("*.toml"))
    if not files:
        raise plug_in.refused(f"it is no package whose folder holds .toml files, but {package!r:.60}")
    return files


def prompt_names() -> tuple[str, ...]:
    """The names of all prompts: those of this package in the order of its files, then those of plug-ins."""
    return (*_tables(), *_added()[0])


def entry_of(name: str) -> Mapping[str, Any]:
    """What is said of the prompt of a name.

    Raises:
        UnknownNameError: there is no prompt of this name.
        PlugInError: the prompt is a plug-in's that cannot be used.
    """
    entries, problems = _added()
    if name in _tables():
        if name in problems:
            say_once(str(problems[name]))
        return _own(name)
    if name in entries:
        return entries[name]
    if name in problems:
        raise problems[name]
    hint = "; ".join(["or give a .toml file", *map(str, problems.values())])
    raise UnknownNameError("prompt", name, prompt_names(), hint=f"({hint})")


def read_entry(path: str | PathLike[str], taken: Collection[str]) -> tuple[str, Mapping[str, Any]]:
    """The name of a user's prompt, which is none of those in `taken`, and what its file says.

    Raises:
        FormatError: the file is no TOML, or keys or fields are missing, unknown or of a wrong type: all in one message.
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
    if "template" in entry and "text" not in entry:
        entry["text"] = entry.pop("template")
    problems = problems_of(entry)
    if problems:
        found = re.search(r"^(?:text|template)\s*=", source, re.MULTILINE)
        line = source.count("\n", 0, found.start()) + 1 if found else 1
        raise FormatError("; ".join(problems), path=shown, line=line)
    name = entry.pop("name", PurePath(shown).stem)
    if name in taken:
        problem = f"{name} is the name of another prompt, and grades of both could not be told apart: set another name"
        raise FormatError(problem, path=shown, field="name")
    entry.setdefault("task", "extract" if entry["parser"] == "text" else "grade")
    if entry["parser"] == "yes_no":
        entry.setdefault("scale", [0, 1])
        entry.setdefault("labels", ["No", "Yes"])
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
    entry = _own(name) if name in _tables() else _added()[0].get(name)
    return None if entry is None else entry_scale(entry)


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


def problems_of(entry: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with a user's prompt, as far as it can be seen at once."""
    types: dict[str, type] = {
        "name": str, "text": str, "system": str, "target": str, "task": str, "parser": str, "scale": list,
        "covers": int, "partial": int, "labels": list, "citation": str, "defaults": dict, "reply_tokens": int,
    }  # fmt: skip
    problems = [f"missing key {key}" for key in ("text", "target", "parser") if key not in entry]
    problems += [f"unknown key {key}" for key in sorted(set(entry) - set(types))]
    problems += [
        f"{key} must be a {kind.__name__}"
        for key, kind in types.items()
        if not isinstance(entry.get(key, kind()), kind)
    ]
    if problems:
        return problems
    target, parser, scale, labels = entry["target"], entry["parser"], entry.get("scale"), entry.get("labels", [])
    if target not in FIELDS:
        problems.append(f"unknown target {target!r} (known: {', '.join(FIELDS)})")
    if parser not in PARSERS:
        problems.append(f"unknown parser {parser!r} (known: {', '.join(PARSERS)})")
    problems += _problems_of_scale(entry)
    if parser in ("label", "phrase", "label_list", "aspects") and not labels:
        problems.append(f"parser {parser} needs labels, lowest grade first")
    if not all(isinstance(text, str) for text in [*labels, *entry.get("defaults", {}).values()]):
        problems.append("labels and defaults must be strings")
    elif parser in _OF_LABELS and labels and (scale is None or _is_scale(scale)):
        problems += _problems_of_labels(parser, labels, scale)
    return [*problems, *_problems_of_fields(entry)]


def _problems_of_scale(entry: Mapping[str, Any]) -> list[str]:
    """What is wrong with the grades that a prompt asks for."""
    scale, lowest = entry.get("scale"), _LOWEST.get(entry["target"], 0)
    if scale is None:
        needs = entry["parser"] == "rating" or (entry["parser"] != "yes_no" and entry.keys() & {"covers", "partial"})
        return ["parser rating, covers and partial need a scale, such as scale = [0, 5] with covers = 4"] * bool(needs)
    if not _is_scale(scale):
        return ["scale must be [lowest, highest], two integers"]
    if (scale[0] < 0 and scale[0] != lowest) or scale[1] > HELD[1]:
        more = f", or begin at {lowest} for a contradiction" if lowest else ""
        problem = f"has grades that no record holds: it must lie within 0 to {HELD[1]}{more}, such as scale = [0, 5]"
        return [f"scale {str(scale)[:40]} {problem}"]
    if "covers" not in entry and scale[1] - scale[0] > 1:
        level = f"such as covers = {scale[1] - 1} (and partial, where grades below it earn half)"
        return [f"scale {scale} needs covers, the least grade that counts as covering, {level}"]
    wrong = scale_problems(scale, entry.get("covers"), entry.get("partial"))
    return [wrong] if wrong else []


def _problems_of_fields(entry: Mapping[str, Any]) -> list[str]:
    """The fields that the text of a prompt lacks, and those that its target does not have."""
    required, optional = FIELDS.get(entry["target"], (frozenset(), frozenset()))
    present = set(FIELD.findall(entry.get("system", "") + "\n" + entry["text"])) - set(entry.get("defaults", {}))
    if not required or required <= present <= required | optional:
        return []
    must, may, has = (", ".join(sorted(names)) or "none" for names in (required, optional, present))
    return [f"a {entry['target']} prompt must have the fields {must} and may have {may}; the text has {has}"]


def _is_scale(scale: Sequence[object]) -> bool:
    return len(scale) == 2 and all(type(grade) is int for grade in scale) and scale[0] < scale[1]  # type: ignore[operator]


def _problems_of_labels(parser: str, labels: Sequence[str], scale: Sequence[int] | None) -> list[str]:
    """Labels that do not stand for the grades of the scale one by one, or that the parser would never read as that."""
    if scale and len(labels) != scale[1] - scale[0] + 1:
        return [f"{len(labels)} labels do not fit scale {list(scale)}: one label a grade, lowest first"]
    if parser == "yes_no" and ([one.lower() for one in labels] != ["no", "yes"] or (scale and scale[0])):
        return ['parser yes_no reads "No" and "Yes", on the scale [0, 1]; parser label reads other words']
    said = [one for one in labels if one or parser != "phrase"]
    folded = [re.sub(r"[\s_-]+", "_", one.strip().lower()) for one in said]
    if "" in folded or len({*folded}) < len(folded) or (parser == "label_list" and folded != said):
        more = ", in small letters, with _ for blanks" if parser == "label_list" else ""
        return [f"parser {parser} can never read {', '.join(map(repr, labels))} (labels are different words{more})"]
    return []
