"""Prompts: loaded from TOML by name or from a user's file, rendered in one pass, hashed."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property, lru_cache
from importlib import resources
from os import PathLike
from pathlib import Path, PurePath
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from rubric_measures.base.errors import FormatError, InputError, PlugInError, RubricMeasuresError, UnknownNameError
from rubric_measures.base.files import check_readable_twice, path_name, read_text
from rubric_measures.base.plugins import PlugIn, plug_ins, say_once
from rubric_measures.prompts._checks import problems_of
from rubric_measures.prompts._delimiters import Delimiters, delimiters_of
from rubric_measures.prompts.frames import FIELD, Frame, Slot, Template, as_shown, cut, cut_json
from rubric_measures.types.entities import content_hash
from rubric_measures.types.scales import Message, Scale, scale_from

if TYPE_CHECKING:
    from rubric_measures.prompts.parsers import Parsed

# The group of entry points of other packages' prompts, and what one of them is.
PLUG_INS = ("rubric_measures.prompts", "folder of prompts")
_EMPTY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Prompt:
    """One prompt: a template with fields, and how its reply becomes a grade.

    Attributes:
        prompt_class: the published name (`QuestionSelfRatedUnanswerablePromptWithChoices`, `nuggets.assign`), or the
            name of a user's prompt.
        text: the template of the user message; `{name}` is a field.
        system: the system message; empty for none.
        target: what is shown: `question` or `nugget` (one item and a passage), `direct` (a query and a passage),
            `support` (a sentence and a document that it cites), `answer` (a query and an answer), `answers` (two of
            them), `query` (makes queries), `any` (an item of either kind).
        task: what the reply is for: `grade`, `extract` (a text for assessors to verify), `verify` (extract, then check
            against gold answers), `generate`, `label`, `compare`, or `part` (it fills a field of another prompt).
        parser: how a reply is read; one of `PARSERS` in `prompts._checks`.
        scale: lowest and highest grade; None where the reply is no grade.
        covers: the least grade that counts as covering, as support or as relevant; None takes the highest.
        partial: the least grade that earns half the credit; None where no grade is partial.
        labels: the labels, lowest grade first (`("No", "Yes")`); the aspects where the parser is `aspects`.
        citation: where the prompt comes from (paper, table).
        style: what the Rubric workbench calls the prompt in its files (`prompt_style`).
        defaults: values of fields that are settings; they are trusted, and may be given other values.
        context_line: the template of one segment of `{context}`, where the prompt shows several.
        verify: the name of the prompt that checks the extracted answer; empty for none.
        format: `template`, or `json`: the message is the canonical JSON of the fields.
        json_fields: the fields where the format is `json`.
        reply_tokens: how long a reply may become where it is longer than its verdict (reasoning); 0 for short replies.
        pattern: a regular expression whose group `grade` is where the grade stands in a reply; empty for the parser's
            own reading.
        json_field: the field of a JSON reply that holds the grade; empty for the parser's own reading.
        lists: `python` where lists of nuggets are shown as Python writes them; empty for JSON (`list_text`).
    """

    prompt_class: str
    text: str
    system: str = ""
    target: str = "question"
    task: str = "grade"
    parser: str = "rating"
    scale: tuple[int, int] | None = None
    covers: int | None = None
    partial: int | None = None
    labels: tuple[str, ...] = ()
    citation: str = ""
    style: str = ""
    defaults: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    context_line: str = ""
    verify: str = ""
    format: str = "template"
    json_fields: tuple[str, ...] = ()
    reply_tokens: int = 0
    pattern: str = ""
    json_field: str = ""
    lists: str = ""

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of all fields, in the order of their first appearance."""
        if self.format == "json":
            return self.json_fields
        return tuple(dict.fromkeys(FIELD.findall(self.system + "\n" + self.text)))

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The fields that have no default value."""
        return tuple(name for name in self.fields if name not in self.defaults)

    @cached_property
    def delimiters(self) -> Delimiters:
        """What separates the parts of the template; see `delimiters_of`."""
        # Programs that send one system message alone have their fields there.
        return delimiters_of(self.text or self.system)

    @property
    def reply_labels(self) -> tuple[str, ...]:
        """The complete replies that the prompt allows, lowest grade first; empty where the reply is free text.

        They are what goes into `Request.labels`: `("0", …, "5")` for a rating, `("No", "Yes")` for yes/no.
        """
        if self.parser == "rating" and self.scale is not None:
            return tuple(str(grade) for grade in range(self.scale[0], self.scale[1] + 1))
        if self.parser == "phrase":
            return tuple(filter(None, self.labels))
        return self.labels if self.parser == "yes_no" else ()

    @cached_property
    def grade_scale(self) -> Scale | None:
        """The scale of the grades that the prompt leads to; None where it leads to none."""
        names = self.labels if self.parser in ("yes_no", "label", "phrase", "label_list") else ()
        said = {"scale": self.scale, "covers": self.covers, "partial": self.partial, "grade_names": names}
        return scale_from(said)

    @cached_property
    def hash(self) -> str:
        """The sha256 of everything that decides what the model is shown and how its reply is read."""
        # A prompt without a reading of its own keeps the hash that its grades are found under.
        own = {"pattern": self.pattern, "json_field": self.json_field, "lists": self.lists}
        return content_hash(
            {
                **{key: value for key, value in own.items() if value},
                "context_line": self.context_line,
                "defaults": dict(self.defaults),
                "format": self.format,
                "json_fields": list(self.json_fields),
                "labels": list(self.labels),
                "parser": self.parser,
                "scale": list(self.scale) if self.scale else None,
                "system": self.system,
                "text": self.text,
            }
        )

    def render(self, **values: object) -> tuple[Message, ...]:
        """The messages with all fields filled in, in one pass: a value that holds `{name}` is not filled in again.

        Lines of a value that begin with one of the template's own delimiters are quoted with `> `, and delimiters
        inside of lines written in another way (`neutralise`), so that a passage cannot pretend to be another
        part of the prompt; everything else stays byte for byte. Settings (fields with a
        default) are trusted and stay as they are.

        Raises:
            InputError: fields are missing or unknown; the message names all of them.
        """
        return self.frame(values).messages({})

    def frame(self, values: Mapping[str, object], later: Collection[str] = ()) -> Frame:
        """The messages with some fields filled in, as `render` does it.

        Args:
            values: the values of the fields.
            later: the fields that are filled in by `Frame.messages`.

        Raises:
            InputError: fields are missing or unknown; the message names all of them.
        """
        given = {*values, *later}
        if given != self._required_set:
            self._check_fields(given)
        filled = {name: str(value) for name, value in {**self.defaults, **values}.items() if name not in later}
        return Frame(self._templates, self.delimiters, filled)

    def shown(self, name: str, value: str) -> str:
        """A field's value as the messages show it, see `render`; the longer form where they show it twice."""
        slots = [piece for _, pieces in self._templates for piece in pieces if isinstance(piece, Slot)]
        ways = {piece: as_shown(value, piece, self.delimiters) for piece in slots if piece.name == name}
        return max(ways.values(), key=len, default=value)

    @cached_property
    def _required_set(self) -> frozenset[str]:
        return frozenset(self.required)

    def _check_fields(self, given: Collection[str]) -> None:
        missing = [name for name in self.required if name not in given]
        unknown = sorted(set(given) - set(self.fields))
        if missing or unknown:
            problems = [
                f"{what} {', '.join(names)}" for what, names in (("missing", missing), ("unknown", unknown)) if names
            ]
            raise InputError(
                f"prompt {self.prompt_class}: {'; '.join(problems)} (its fields are {', '.join(self.fields) or 'none'})"
            )

    @cached_property
    def _templates(self) -> tuple[Template, ...]:
        if self.format == "json":
            return (Template("user", cut_json(self.fields)),)
        texts = (("system", self.system), ("user", self.text))
        return tuple(Template(role, cut(text, self.defaults)) for role, text in texts if text)

    def parse(self, reply: str, *, unparsed: str = "", compat: str = "", count: int | None = None) -> Parsed[Any]:
        """Reads a reply with the prompt's parser and scale.

        Args:
            reply: the model's text.
            unparsed: `exampp` for the rule of EXAM++ 4.2.2 (ratings only); empty for "no rating, no grade".
            compat: `workbench` for the rules of the Rubric workbench's program (ratings only); `nuggetizer` for those
                of that program (label lists only).
            count: how many labels a list must have (label lists only).
        """
        # Reading grades asks for the scales of prompts, and reads no reply.
        from rubric_measures.prompts.parsers import parse_reply

        return parse_reply(
            reply,
            self.parser,
            scale=self.scale,
            labels=self.labels,
            unparsed=unparsed,
            compat=compat,
            count=count,
            pattern=self.pattern,
            json_field=self.json_field,
        )

    def as_json(self) -> dict[str, object]:
        """Everything that the prompt is, for records; what has its default value is left out."""
        found: dict[str, object] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if value or (one.default is MISSING and one.default_factory is MISSING):
                found[one.name] = dict(value) if isinstance(value, Mapping) else value
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    def prompt_info(self) -> dict[str, object]:
        """The `prompt_info` of the Rubric workbench's files for grades made with this prompt, and their scale."""
        return {
            "prompt_class": self.prompt_class,
            "prompt_style": self.style or self.prompt_class,
            "context_first": False,
            "check_unanswerable": self.target in ("question", "nugget"),
            "check_answer_key": self.task == "verify",
            "is_self_rated": self.task == "grade" and self.target in ("question", "nugget", "support"),
            **(self.grade_scale.as_json() if self.grade_scale else {}),
        }


def list_text(texts: Iterable[str], form: str = "") -> str:
    """A list of strings as the nugget prompts show it: `["a", "b"]`; a double quote inside becomes a single one.

    Args:
        texts: the strings.
        form: `python` writes them as Python does, whatever quotes they have; empty is JSON.

    >>> list_text(["black, heavy", 'the "outer" layer'])
    '["black, heavy", "the \\'outer\\' layer"]'
    >>> list_text(["black, heavy", "the earth's crust"], "python")
    '[\\'black, heavy\\', "the earth\\'s crust"]'
    """
    if form == "python":
        return str(list(texts))
    return json.dumps([text.replace('"', "'") for text in texts], ensure_ascii=False)


@lru_cache(maxsize=1)
def _library() -> Mapping[str, Prompt]:
    raw: dict[str, dict[str, Any]] = {}
    folder = resources.files("rubric_measures.prompts")
    for name in ("published.toml", "own.toml", "programs.toml"):
        raw.update(tomllib.loads(folder.joinpath(name).read_text(encoding="utf-8")))
    for name, entry in raw.items():
        base, _, program = name.partition("@")
        if program:
            # The words of a program in the place of the paper's; all else is the paper's.
            inherited = {key: value for key, value in raw[base].items() if key not in ("text", "same_text_as")}
            raw[name] = {**inherited, **entry}
    return MappingProxyType({name: _from_entry(name, entry, raw) for name, entry in raw.items()})


def _from_entry(name: str, entry: Mapping[str, Any], raw: Mapping[str, Mapping[str, Any]]) -> Prompt:
    text = raw[entry["same_text_as"]]["text"] if "same_text_as" in entry else entry.get("text", "")
    defaults = {
        key: raw[value[1:]]["text"] if value[:1] == "@" and value[1:] in raw else value
        for key, value in entry.get("defaults", {}).items()
    }
    given = {
        "json_fields" if key == "fields" else key: tuple(said) if isinstance(said, list) else said
        for key, said in entry.items()
        if key != "same_text_as"
    }
    return Prompt(**{**given, "prompt_class": name, "text": text, "defaults": MappingProxyType(defaults)})


@lru_cache(maxsize=1)
def _added() -> tuple[Mapping[str, Prompt], Mapping[str, RubricMeasuresError]]:
    """The prompts of plug-ins by name; and what of them cannot be used, by the name that it would have."""
    prompts: dict[str, Prompt] = {}
    problems: dict[str, RubricMeasuresError] = {}
    for plug_in in plug_ins(*PLUG_INS).values():
        try:
            files = _files_of(plug_in)
        except PlugInError as error:
            problems[plug_in.name] = error
            continue
        for file in files:
            try:
                prompt = _read_file(file, {*_library(), *prompts})
            except InputError as error:
                problems[file.stem] = plug_in.refused(str(error))
            else:
                prompts[prompt.prompt_class] = prompt
    return MappingProxyType(prompts), MappingProxyType(problems)


def _files_of(plug_in: PlugIn) -> list[Path]:
    """The TOML files beside the `__init__.py` of a package."""
    package = plug_in.load()
    if not isinstance(package, ModuleType):
        raise plug_in.refused(f"it is no package whose folder holds .toml files, but {package!r:.60}")
    files = sorted(file for folder in getattr(package, "__path__", ()) for file in Path(folder).glob("*.toml"))
    if not files:
        raise plug_in.refused(f"the folder of {package.__name__} holds no .toml files")
    return files


def prompt_names() -> tuple[str, ...]:
    """The names of all prompts: those of this package in the order of its files, then those of plug-ins."""
    return (*_library(), *_added()[0])


def load_prompt(name: str) -> Prompt:
    """The prompt of a name, or of a user's file where the name ends in `.toml`.

    Raises:
        UnknownNameError: there is no prompt of this name.
        FormatError: the user's file is no prompt.
        PlugInError: the prompt is a plug-in's that cannot be used.
    """
    if name.endswith(".toml"):
        return load_prompt_file(name)
    prompts, problems = _added()
    if name in _library():
        if name in problems:
            say_once(str(problems[name]))
        return _library()[name]
    if name in prompts:
        return prompts[name]
    if name in problems:
        raise problems[name]
    hint = "; ".join(["or give a .toml file", *map(str, problems.values())])
    raise UnknownNameError("prompt", name, prompt_names(), hint=f"({hint})")


def added_prompts() -> Mapping[str, Prompt]:
    """The prompts of plug-ins by name; none has the name of one of this package."""
    return _added()[0]


def scale_of_prompt(name: str) -> Scale | None:
    """The scale of the grades that a prompt class stands for; None where the class is not known, or leads to none."""
    prompt = _library().get(name) or added_prompts().get(name)
    return None if prompt is None else prompt.grade_scale


def load_prompt_file(path: str | PathLike[str]) -> Prompt:
    """Reads a user's prompt: a TOML file with `text` (or `template`), `target`, `parser`, `scale` or `labels`.

    Further keys: `citation`, `name` (the file's name without .toml by default), `system`, `defaults` (settings),
    `reply_tokens`, `pattern` or `json_field` (where the grade stands in a reply). The fields that a template must and
    may have depend on its target (`FIELDS`).

    Raises:
        FormatError: the file is no TOML, or keys or fields are missing, unknown or of a wrong type: all in one message.
    """
    return _read_file(path, prompt_names())


def _read_file(path: str | PathLike[str], taken: Collection[str]) -> Prompt:
    """The prompt of a file, which has none of the names in `taken`."""
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
    return _from_entry(name, {"citation": "", **entry}, {})
