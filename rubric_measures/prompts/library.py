"""Prompt texts from TOML files: checked, named, with their scales and frames.

Filling templates: messages put together from parts, and their JSON from the JSON of the same parts.

What is wrong with a user's prompt file: keys, fields, scales that no record holds, labels that no reply can name.

Prompts: loaded from TOML by name or from a user's file, rendered in one pass, hashed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property, lru_cache
from importlib import resources
from json.encoder import encode_basestring as _quoted
from os import PathLike
from pathlib import Path, PurePath
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from rubric_measures.base.errors import (
    FormatError,
    InputError,
    PlugInError,
    RubricMeasuresError,
    UnknownNameError,
    users_pattern,
)
from rubric_measures.base.files import check_readable_twice, path_name, read_text
from rubric_measures.base.plugins import PlugIn, plug_ins, say_once
from rubric_measures.prompts.delimiters import Delimiters, delimiters_of, neutralise
from rubric_measures.types.entities import content_hash
from rubric_measures.types.scales import CONTRADICTED, HELD, Message, Scale, scale_from, scale_problems

if TYPE_CHECKING:
    from rubric_measures.prompts.verdicts import Parsed


FIELD = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


# A field between double quotes.
_QUOTED = re.compile(r"(?:[^\"]|\A)?\"\{[a-z_][a-z0-9_]*\}\"(?!\")")
# What the owner of the test bank wrote, and no passage.
_ASKED = frozenset({"question", "correct_answer", "nugget", "query", "query_title", "query_text", "query_subtopic"})


class Slot(NamedTuple):
    """A field of a template.

    Attributes:
        name: the field.
        how: `trusted` for a value that stays as it is, `json` for one that becomes a JSON string, else `text`: what
            passes for a delimiter is quoted; `quoted` is a text between double quotes, which has none of its own.
        at_start: the field stands at the beginning of a line.
    """

    name: str
    how: str = "text"
    at_start: bool = False


class Template(NamedTuple):
    """One message: its role, and its text cut at the fields."""

    role: str
    pieces: tuple[str | Slot, ...]


def cut(template: str, trusted: Iterable[str]) -> tuple[str | Slot, ...]:
    """A template's text, cut at its fields."""
    trusted = frozenset(trusted)
    pieces: list[str | Slot] = []
    end = 0
    for match in FIELD.finditer(template):
        at_start = match.start() == 0 or template[match.start() - 1] == "\n"
        quoted = match[1] not in _ASKED and _QUOTED.match(template, max(0, match.start() - 2), match.end() + 2)
        how = "trusted" if match[1] in trusted else "quoted" if quoted else "text"
        pieces += [template[end : match.start()], Slot(match[1], how, at_start)]
        end = match.end()
    return (*pieces, template[end:])


def cut_json(fields: Iterable[str]) -> tuple[str | Slot, ...]:
    """The canonical JSON of an object with those fields, all of them texts, cut at the values."""
    pieces: list[str | Slot] = ["{"]
    for number, name in enumerate(sorted(fields)):
        pieces += [f"{',' * bool(number)}{_quoted(name)}:", Slot(name, "json")]
    return (*pieces, "}")


class Frame:
    """The messages of a prompt with some fields filled in; the others are filled in as often as one likes.

    A passage is shown with each of its items, so what they have in common is worked out once. JSON writes a text
    character by character: the JSON of a message is that of its parts, one after the other.

    Args:
        templates: the messages.
        delimiters: the prompt's delimiters, which no value may forge.
        values: the values of some fields.
    """

    def __init__(self, templates: Sequence[Template], delimiters: Delimiters, values: Mapping[str, str]) -> None:
        self._delimiters = delimiters
        # Role, parts, the JSON of the parts, and the places of the fields to come among them.
        self._parts: list[tuple[str, list[str], list[str], list[tuple[int, Slot]]]] = []
        for role, pieces in templates:
            texts, quoted = [""], [f'[{_quoted(role)},"']
            open_slots: list[tuple[int, Slot]] = []
            for piece in pieces:
                if isinstance(piece, Slot) and piece.name not in values:
                    open_slots.append((len(texts), piece))
                    texts += ["", ""]
                    quoted += ["", ""]
                    continue
                text = as_shown(values[piece.name], piece, delimiters) if isinstance(piece, Slot) else piece
                texts[-1] += text
                quoted[-1] += _quoted(text)[1:-1]
            quoted[-1] += '"]'
            self._parts.append((role, texts, quoted, open_slots))

    def messages(self, values: Mapping[str, str]) -> tuple[Message, ...]:
        """The messages with the other fields filled in, too."""
        found = []
        for role, texts, quoted, open_slots in self._parts:
            if open_slots:
                texts, quoted = texts.copy(), quoted.copy()
                for place, slot in open_slots:
                    texts[place], quoted[place] = _remembered(values[slot.name], slot, self._delimiters)
            found.append(Message.of_parts(role, texts, quoted))
        return tuple(found)


# Items come back with every passage of their query.
@lru_cache(maxsize=256)
def _remembered(value: str, slot: Slot, delimiters: Delimiters) -> tuple[str, str]:
    """A value as it is shown, and that as JSON writes it."""
    text = as_shown(value, slot, delimiters)
    return text, _quoted(text)[1:-1]


def as_shown(value: str, slot: Slot, delimiters: Delimiters) -> str:
    """A value as it stands in its place of the messages."""
    if slot.how in ("text", "quoted"):
        shown = neutralise(value, delimiters, at_start=slot.at_start)
        return shown.replace('"', "'") if slot.how == "quoted" else shown
    return _quoted(value) if slot.how == "json" else value


# target -> (fields that its prompts must have, further fields that they may have)
FIELDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "question": (frozenset({"question", "context"}), frozenset({"query"})),
    "nugget": (frozenset({"nugget", "context"}), frozenset({"query"})),
    "direct": (frozenset({"query_title", "context"}), frozenset({"examples"})),
    "support": (frozenset({"statement", "citation"}), frozenset({"query"})),
    "answer": (frozenset({"query", "answer"}), frozenset({"documents", "domain"})),
    "answers": (frozenset({"answer_a", "answer_b"}), frozenset({"query", "documents"})),
}
# Grades of user's prompts begin at 0; of support there is also a contradiction.
_LOWEST = {"support": CONTRADICTED}
PARSERS = ("rating", "yes_no", "label", "phrase", "label_list", "list", "items", "aspects", "verdict", "text")
# Parsers whose labels are grades, one after the other.
_OF_LABELS = ("yes_no", "label", "phrase", "label_list")
# Parsers that a prompt may tell where the one grade of a reply stands.
_OF_ONE_GRADE = ("rating", "yes_no", "label", "phrase")


def problems_of(entry: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with a user's prompt, as far as it can be seen at once."""
    types: dict[str, type] = {
        "name": str, "text": str, "system": str, "target": str, "task": str, "parser": str, "scale": list,
        "covers": int, "partial": int, "labels": list, "citation": str, "defaults": dict, "reply_tokens": int,
        "pattern": str, "json_field": str,
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
    return [*problems, *_problems_of_reading(entry), *_problems_of_fields(entry)]


def _problems_of_scale(entry: Mapping[str, Any]) -> list[str]:
    """What is wrong with the grades that a prompt asks for."""
    scale, lowest = entry.get("scale"), _LOWEST.get(entry["target"], 0)
    if scale is None:
        without = entry["parser"] != "yes_no" and entry.keys() & {"covers", "partial"}
        needs = ["covers and partial need"] * bool(without) + ["parser rating needs"] * (entry["parser"] == "rating")
        return [f"{what} a scale, such as scale = [0, 5] with covers = 4" for what in needs]
    if not _is_scale(scale):
        return ["scale must be [lowest, highest], two integers"]
    if not lowest <= scale[0] < scale[1] <= HELD[1]:
        problem = f"has grades that no record holds: it must lie within {lowest} to {HELD[1]}, such as scale = [0, 5]"
        return [f"scale {str(scale)[:40]} {problem}"]
    if "covers" not in entry and scale[1] - scale[0] > 1:
        level = f"such as covers = {scale[1] - 1} (and partial, where grades below it earn half)"
        return [f"scale {scale} needs covers, the least grade that counts as covering, {level}"]
    wrong = scale_problems(scale, entry.get("covers"), entry.get("partial"))
    return [wrong] if wrong else []


def _problems_of_fields(entry: Mapping[str, Any]) -> list[str]:
    """The fields that the text of a prompt lacks, and those that its target does not have."""
    if entry["target"] not in FIELDS:
        return []
    required, optional = FIELDS[entry["target"]]
    present = set(FIELD.findall(entry.get("system", "") + "\n" + entry["text"])) - set(entry.get("defaults", {}))

    def braced(names: Set[str]) -> str:
        return ", ".join("{" + name + "}" for name in sorted(names))

    missing, unknown = required - present, present - required - optional
    problems = [f"the text lacks {braced(missing)}"] if missing else []
    if unknown:
        known = braced(required | optional)
        problems.append(f"unknown {braced(unknown)} (a {entry['target']} prompt has {known})")
    return problems


def _problems_of_reading(entry: Mapping[str, Any]) -> list[str]:
    """What is wrong with where a prompt says that the grade stands."""
    own = [key for key in ("pattern", "json_field") if key in entry]
    if not own:
        return []
    if len(own) == 2:
        return ["pattern and json_field both say where the grade stands: leave one of them out"]
    if not entry[own[0]]:
        return [f"{own[0]} is empty: leave it out, or say where the grade stands"]
    if entry["parser"] not in _OF_ONE_GRADE:
        return [f"{own[0]} needs parser {', '.join(_OF_ONE_GRADE[:-1])} or {_OF_ONE_GRADE[-1]}"]
    if own[0] == "json_field":
        return []
    try:
        has_group = "grade" in users_pattern(entry["pattern"]).groupindex
    except re.error as error:
        return [f"pattern is no regular expression ({error})"]
    return [] if has_group else ["pattern has no group named grade, such as (?P<grade>[0-5])"]


def _is_scale(scale: Sequence[object]) -> bool:
    return len(scale) == 2 and all(type(grade) is int for grade in scale) and scale[0] < scale[1]  # type: ignore[operator]


def _problems_of_labels(parser: str, labels: Sequence[str], scale: Sequence[int] | None) -> list[str]:
    """Labels that do not stand for the grades of the scale one by one, or that the parser would never read as that."""
    low = scale[0] if scale else 0
    if scale and len(labels) != scale[1] - low + 1:
        return [f"{len(labels)} labels do not fit scale {list(scale)}: one label a grade, lowest first"]
    if parser == "yes_no" and (scale or [0, 1])[0] != 0:
        return [f"scale {scale} does not fit parser yes_no: it must be [0, 1]"]
    given = [(place, label) for place, label in enumerate(labels) if label or parser != "phrase"]
    unread = [label for place, label in given if _read_back(label, parser, labels) != place]
    if not unread and (parser != "yes_no" or len(labels) == 2):
        return []
    hint = {
        "yes_no": 'its labels are "No" and "Yes"; parser label reads others',
        "label_list": "labels are different, in small letters, with _ for blanks",
        "label": "labels are different words",
        "phrase": "labels are different words",
    }[parser]
    return [f"parser {parser} can never read {', '.join(map(repr, unread or labels))} as listed ({hint})"]


def _read_back(label: str, parser: str, labels: Sequence[str]) -> int | None:
    """The place at which the parser sees a reply that is the label itself; None where it sees no label."""
    from rubric_measures.prompts.parsers import parse_label, parse_label_list, parse_phrase, parse_yes_no

    if not label.strip():
        return None
    if parser == "yes_no":
        return parse_yes_no(label).value
    if parser == "label":
        return parse_label(label, labels).value
    if parser == "phrase":
        return parse_phrase(label, labels).value
    found: Parsed[tuple[str, ...]] = parse_label_list(json.dumps([label]), labels, 1)
    return labels.index(found.value[0]) if found.value else None


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
        parser: how a reply is read; one of `PARSERS`.
        scale: lowest and highest grade; None where the reply is no grade.
        covers: the least grade that counts as covering, as support or as relevant; None of two grades takes the higher.
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

        They are what goes into `Request.labels`: `("0", …, "5")` for a rating, `("No", "Yes")` for yes/no. Of more than
        101 grades there is no such list: it would be longer than the question, and longer than endpoints take.
        """
        if self.parser == "rating" and self.scale is not None:
            low, high = self.scale
            return tuple(map(str, range(low, high + 1))) if high - low <= 100 else ()
        if self.parser == "phrase":
            return tuple(filter(None, self.labels))
        return self.labels if self.parser == "yes_no" else ()

    @property
    def reply_words(self) -> str:
        """The replies that the prompt allows, as a sentence lists them; of many numbers the first and the last."""
        if self.parser == "rating" and self.scale is not None and self.scale[1] - self.scale[0] > 20:
            return f"the whole numbers from {self.scale[0]} to {self.scale[1]}"
        return ", ".join(self.reply_labels or tuple(filter(None, self.labels)))

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
