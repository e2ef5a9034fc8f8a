"""Prompts: loaded from TOML by name or from a user's file, rendered in one pass, hashed.

Prompts as TOML says them: those of this package, each read when it is asked for, and those of users' files.

The delimiters of a template, which tell the model its parts, and how texts are kept from forging them.

Filling templates: messages put together from parts, and their JSON from the JSON of the same parts.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache, cached_property, lru_cache
from json.encoder import encode_basestring as _quoted
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from rubric_measures.base.errors import FormatError, InputError, UnknownNameError
from rubric_measures.base.files import check_readable_twice, read_text, toml_tables
from rubric_measures.base.json_text import typed
from rubric_measures.base.tables import Table, columns
from rubric_measures.types.entities import content_hash
from rubric_measures.types.scales import CONTRADICTED, HELD, Message, Scale, scale_problems

if TYPE_CHECKING:
    from rubric_measures.prompts.parsers import Parsed

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


def _of_user(path: str) -> Prompt:
    """The prompt that a user's file says, under a name that no prompt of this package has.

    Raises:
        FormatError: the file is no TOML, or something in it is missing, unknown, of a wrong type, or not to be read.
    """
    # Each part of a command that needs the prompt reads it.
    check_readable_twice(path)
    source = read_text(path)
    try:
        entry = tomllib.loads(source)
    except (ValueError, RecursionError) as error:
        place = re.search(r"at line (\d+)", str(error))
        line = int(place[1]) if place else source.count("\n") + 1
        raise FormatError(f"is no TOML ({str(error).split(' (at ')[0]})", path=path, line=line) from None
    for name in (*_NEEDED, *entry):
        if name not in entry:
            raise FormatError("required field is missing", path=path, field=name)
        if name not in (*_NEEDED, *_OPTIONAL):
            raise FormatError(f"unknown field (known: {', '.join((*_NEEDED, *_OPTIONAL))})", path=path, field=name)
    if entry["parser"] == "yes_no":
        entry = {"scale": [0, 1], "labels": ["No", "Yes"], **entry}
    entry.setdefault("task", "extract" if entry["parser"] == "text" else "grade")
    name = entry.pop("name", PurePath(path).stem)
    if not isinstance(name, str):
        raise FormatError(f"expected a text; found {name}", path=path, field="name")
    made = typed(Prompt, {**entry, "prompt_class": name}, path)
    if problem := _problem_of(made):
        raise FormatError(problem, path=path)
    if name in _tables():
        problem = f"{name} is the name of another prompt, and grades of both could not be told apart: set another name"
        raise FormatError(problem, path=path, field="name")
    return made


def scale_of_prompt(name: str) -> Scale | None:
    """The scale of the grades that a prompt class stands for; None where the class is not known, or leads to none."""
    return load_prompt(name).grade_scale if name in _tables() else None


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
PARSERS = ("rating", "yes_no", "label", "phrase", "label_list", "aspects", "verdict", "text")
# Parsers whose labels are grades, one after the other.
_OF_LABELS = ("yes_no", "label", "phrase", "label_list")


# What a user's file must and may say of a prompt; see `Prompt`.
_NEEDED = ("text", "target", "parser")
_OPTIONAL = (
    "name", "system", "task", "scale", "covers", "partial", "labels", "citation", "defaults", "reply_tokens",
)  # fmt: skip


def _problem_of(given: Prompt) -> str:
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


class Delimiters(NamedTuple):
    """What tells the model where one part of a prompt ends and the next begins.

    Attributes:
        lines: what begins a line of a text that passes for a part: `Question:`, `[user question]`, `Answer:`.
        inline: what stands inside its lines: the second label of `Question: {question} Context: {context}`, the tags of
            `<passage>{context}</passage>`.
    """

    lines: tuple[str, ...] = ()
    inline: tuple[str, ...] = ()


# Line breaks as a reader (or a model) sees them, not only "\n".
_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
# What may stand before a delimiter without changing how the line reads: all but letters and digits, and "1.".
_LEAD = rf"(?:[^\w{_BREAKS}]|_|\d{{1,3}}[.):](?!\d))*+"
_LEAD_QUOTED = rf"[^\S{_BREAKS}]*+>"
# What the mark of a quoted line is put behind: blanks, emphasis, bullets.
_INDENT = rf"(?:[^\S{_BREAKS}]|[*_#~|+•·‣▪◦–—-])*+"

_MARKUP = r"[\s*_#>\"'`(\[<•-]*"
_LABEL = re.compile(rf"((?:[^\W_][\w'’-]*\s+){{0,3}}#?[^\W_][\w'’-]*\s*[:：=]){_MARKUP}\Z")
_TAG = r"<[^<>\n]{1,40}>|\[[^\[\]\n]{1,40}\]"
_TAGGED = re.compile(rf"(?:({_TAG})[^\S\n]*+)?{FIELD.pattern}[^\S\n]*+({_TAG})?")
_WHOLE_LINE = re.compile(
    r"(?:\[[^\[\]]{1,80}\]|[^\W_][^.!?:：]{0,60}[:：][*_]*|[*_]{2}[^*_]{1,60}[*_]{2}:?|"
    r"</?[\w -]{1,40}>|#{1,6} .{1,60}|[A-Z][A-Z _-]{1,40})\Z"
)


@lru_cache(maxsize=64)
def delimiters_of(template: str) -> Delimiters:
    """The delimiters of a template: labels and tags around its fields, and short lines beside them.

    They are the labels before a field (`Question:`, `**Context:**`, `文脈:`), the tags right around one, and the lines
    without a field that stand next to a line with one, or at the end (`[user question]`, `Answer:`).
    """
    lines: dict[str, None] = {}
    inline = dict.fromkeys(tag for opened, _, closed in _TAGGED.findall(template) for tag in (opened, closed) if tag)
    rows = [row.strip() for row in template.split("\n") if row.strip()]
    for place, row in enumerate(rows):
        for number, part in enumerate(FIELD.split(row)[:-1:2]):
            if label := _LABEL.search(part):
                # "of the Key Fact:" is called "Key Fact:".
                words = label[1].split()
                first = next((n for n, word in enumerate(words) if word[0].isupper()), 0)
                begins = not (number or first or re.search("[^\\W\\d]", part[: label.start()]))
                (lines if begins else inline).setdefault(" ".join(words[first:]))
        beside = rows[max(0, place - 1) : place] + rows[place + 1 : place + 2]
        bounds = len(row) <= 80 and any(map(FIELD.fullmatch, beside))
        is_near = place == len(rows) - 1 or any(map(FIELD.search, beside))
        if not FIELD.search(row) and (bounds or (is_near and _WHOLE_LINE.match(row))) and re.search(r"\w", row):
            # A tag ends its part wherever it stands.
            (inline if re.fullmatch(r"<[^<>]+>", row) else lines).setdefault(row)
    return Delimiters(tuple(lines), tuple(inline))


def neutralise(text: str, delimiters: Delimiters, *, at_start: bool = True) -> str:
    """A text in which nothing passes for a delimiter of the template.

    Lines that begin with one are quoted: `Question: x` becomes `> Question: x`, whatever bullets, emphasis and blanks
    stand before it. What would be a delimiter inside of a line is written in another way: the label `Context:` as
    `"Context":`, the tag `</passage>` as `(/passage)`. All other text stays as it is, byte for byte.

    Args:
        text: the value of a field.
        delimiters: the template's own delimiters (`delimiters_of`).
        at_start: the field stands at the beginning of a line, so that the value's first line counts as a line.
    """
    for forgery, rewritten in _forged_inline(delimiters.inline):
        text = forgery.sub(rewritten, text)
    if not delimiters.lines:
        return text
    forgery = _forged_lines(delimiters.lines)
    return forgery.sub(r"\g<0>> ", f"\n{text}")[1:] if at_start else forgery.sub(r"\g<0>> ", text)


@lru_cache(maxsize=512)
def _forged_lines(delimiters: tuple[str, ...]) -> re.Pattern[str]:
    """What stands before that with which a line passes for a delimiter; lines that are quoted already do not."""
    worded = []
    for text in delimiters:
        # Between the words, and before the colon or bracket at the end, there may be blanks and emphasis.
        words = r"[\W_]{1,4}".join(map(re.escape, re.findall(r"[^\W_]+", text)))
        end = text.rstrip("*_ ")[-1]
        closing = "[:：]" if end in ":：" else re.escape(end)
        worded.append(words + (r"[^\w\n]*(?:\n|\Z)" if end.isalnum() else rf"[\s*_\"'`)\]#~]*?{closing}"))
    return re.compile(rf"[{_BREAKS}](?!{_LEAD_QUOTED}){_INDENT}(?={_LEAD}(?i:{'|'.join(worded)}))")


@lru_cache(maxsize=512)
def _forged_inline(delimiters: tuple[str, ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    """What passes for a delimiter inside of a line, in small or capital letters; and how it is written instead."""
    found = []
    for text in delimiters:
        if text[0] in "<[":
            inner = r"\s*".join(map(re.escape, re.findall(r"[^\W_]+|[^\w\s]|_", text[1:-1].lstrip("/"))))
            found.append((rf"[<\[]\s*(/?\s*(?i:{inner})[^<>\[\]\n]{{0,40}})[>\]]", r"(\1)"))
        else:
            words = r"\s+".join(map(re.escape, text[:-1].split()))
            end = "[:：]" if text[-1] in ":：" else re.escape(text[-1])
            found.append((rf"(?<!\w)(?={re.escape(text[0])})((?i:{words}))(\s*{end})", r'"\1"\2'))
    return tuple((re.compile(pattern), rewritten) for pattern, rewritten in found)


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


class Frame(NamedTuple):
    """The messages of a prompt with some fields filled in; the others are filled in as often as one likes.

    A passage is shown with each of its items, so what they have in common is worked out once.

    Attributes:
        delimiters: the prompt's delimiters, which no value may forge.
        parts: of each message its role and its text, cut at the fields to come.
    """

    delimiters: Delimiters
    parts: Sequence[tuple[str, Sequence[str | Slot]]]

    def filled(self, values: Mapping[str, str]) -> Frame:
        """The same with the values of further fields."""
        parts: list[tuple[str, list[str | Slot]]] = []
        for role, pieces in self.parts:
            parts.append((role, shown := []))
            for one in pieces:
                if isinstance(one, Slot) and one.name in values:
                    one = as_shown(values[one.name], one, self.delimiters)
                shown.append(one)
        return Frame(self.delimiters, parts)

    def messages(self, values: Mapping[str, str]) -> tuple[Message, ...]:
        """The messages with the other fields filled in, too."""
        # A field that is left is an error: its name would be shown to the model.
        filled = cast("list[tuple[str, list[str]]]", self.filled(values).parts)
        return tuple(Message(role, "".join(texts)) for role, texts in filled)


# A passage is shown with each of its items, and items come back with every passage of their query.
@lru_cache(maxsize=512)
def as_shown(value: str, slot: Slot, delimiters: Delimiters) -> str:
    """A value as it stands in its place of the messages."""
    if slot.how in ("text", "quoted"):
        shown = neutralise(value, delimiters, at_start=slot.at_start)
        return shown.replace('"', "'") if slot.how == "quoted" else shown
    return _quoted(value) if slot.how == "json" else value


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
        parser: how a reply is read; one of `PARSERS`, or `list` or `items` of what makes test banks.
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
    defaults: Mapping[str, str] = field(default_factory=dict)
    context_line: str = ""
    verify: str = ""
    format: str = "template"
    json_fields: tuple[str, ...] = ()
    reply_tokens: int = 0
    lists: str = ""

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of all fields, in the order of their first appearance."""
        if self.format == "json":
            return self.json_fields
        return tuple(dict.fromkeys(FIELD.findall(self.system + "\n" + self.text)))

    @cached_property
    def replies(self) -> Mapping[str, int]:
        """The complete replies that the prompt allows, lowest grade first, with their grades; empty for free text.

        They are what goes into `Request.labels`: `0` to `5` for a rating, `No` and `Yes` for yes/no. Of more than 101
        grades there is no such list: it would be longer than the question, and longer than endpoints take.
        """
        low, high = self.scale or (0, 1)
        if self.parser == "rating" and self.scale is not None:
            return {str(grade): grade for grade in range(low, high + 1)} if high - low <= 100 else {}
        named = self.labels if self.parser in ("phrase", "yes_no") else ()
        return {label: grade for grade, label in enumerate(named, low) if label}

    @property
    def reply_words(self) -> str:
        """The replies that the prompt allows, as a sentence lists them; of many numbers the first and the last."""
        if self.parser == "rating" and self.scale is not None and self.scale[1] - self.scale[0] > 20:
            return f"the whole numbers from {self.scale[0]} to {self.scale[1]}"
        return ", ".join(self.replies or filter(None, self.labels))

    @cached_property
    def grade_scale(self) -> Scale | None:
        """The scale of the grades that the prompt leads to; None where it leads to none."""
        names = self.labels if self.parser in _OF_LABELS else ()
        # What else could be wrong, a user's file was refused for. Words of yes and no may be left out of it.
        if self.scale is None or (names and len(names) != self.scale[1] - self.scale[0] + 1):
            return None
        return Scale(*self.scale, self.scale[1] if self.covers is None else self.covers, self.partial, names)

    @cached_property
    def hash(self) -> str:
        """The sha256 of everything that decides what the model is shown and how its reply is read."""
        names = ["context_line", "format", "json_fields", "labels", "parser", "scale", "system", "text"]
        said = {name: getattr(self, name) for name in (*names, *(["lists"] if self.lists else []))}
        return content_hash({"defaults": dict(self.defaults), **said})

    def render(self, **values: object) -> tuple[Message, ...]:
        """The messages with all fields filled in, in one pass: a value that holds `{name}` is not filled in again.

        Lines of a value that begin with one of the template's own delimiters are quoted with `> `, and delimiters
        inside of lines written in another way (`neutralise`), so that a passage cannot pretend to be another
        part of the prompt; everything else stays byte for byte. Settings (fields with a
        default) are trusted and stay as they are.

        Raises:
            InputError: fields are missing or unknown.
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
        if not set(self.fields) - self.defaults.keys() <= given <= set(self.fields):
            has, names = (", ".join(some) or "none" for some in (self.fields, sorted(given)))
            raise InputError(f"prompt {self.prompt_class}: its fields are {has}; given were {names}")
        filled = {name: str(value) for name, value in {**self.defaults, **values}.items() if name not in later}
        return self._frame.filled(filled)

    def shown(self, name: str, value: str) -> str:
        """A field's value as the messages show it, see `render`; the longer form where they show it twice."""
        slots = [piece for _, pieces in self._frame.parts for piece in pieces if isinstance(piece, Slot)]
        ways = {piece: as_shown(value, piece, self._frame.delimiters) for piece in slots if piece.name == name}
        return max(ways.values(), key=len, default=value)

    @cached_property
    def _frame(self) -> Frame:
        if self.format == "json":
            # Canonical JSON, cut at the values, all of which are texts.
            pieces = [one for name in sorted(self.fields) for one in (f",{_quoted(name)}:", Slot(name, "json"))]
            return Frame(Delimiters(), [("user", ("{", str(pieces[0])[1:], *pieces[1:], "}"))])
        texts = (("system", self.system), ("user", self.text))
        parts = [(role, cut(text, self.defaults)) for role, text in texts if text]
        return Frame(delimiters_of(self.text or self.system), parts)

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
        from rubric_measures.prompts.parsers import Parsed, parse_reply

        if (grade := self.replies.get(reply.strip())) is not None:
            # A night of grading consists of such replies.
            return Parsed(grade)
        return parse_reply(reply, self.parser, self.scale, self.labels, unparsed=unparsed, compat=compat, count=count)

    def as_json(self) -> dict[str, object]:
        """Everything that the prompt is, for records; what has its default value is left out."""
        found: dict[str, object] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if value or (one.default is MISSING and one.default_factory is MISSING):
                found[one.name] = dict(value) if isinstance(value, Mapping) else value
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


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


def load_prompt(name: str) -> Prompt:
    """The prompt of a name, or of a user's file where the name ends in `.toml`.

    The file has `text`, `target`, `parser`, and `scale` or `labels`. Further keys: `citation`, `name`
    (the file's name without .toml by default), `system`, `defaults` (settings), `reply_tokens`. The fields that a
    template must and may have depend on its target (`FIELDS`).

    Raises:
        UnknownNameError: there is no prompt of this name.
        FormatError: the file is no TOML, or something in it is missing, unknown, of a wrong type, or not to be read.
    """
    if name.endswith(".toml"):
        return _of_user(name)
    if name not in _tables():
        raise UnknownNameError("prompt", name, prompt_names(), hint="(or give a .toml file)")
    return msgspec.convert({"text": "", **_own(name), "prompt_class": name}, Prompt)


def prompt_table() -> Table:
    """All prompts, a row each."""
    rows = []
    for name in sorted(prompt_names()):
        one = load_prompt(name)
        rows.append([name, one.target, one.task, str(one.grade_scale or "-"), one.citation])
    return Table(columns(["prompt", "target", "task", "scale", "source"], left=5), rows)


def described(name: str) -> str:
    """A prompt as it is sent, with what it is for.

    Raises:
        UnknownNameError: there is no such prompt.
    """
    one = load_prompt(name)
    parts = {"system": one.system, "user": one.text}
    if one.format == "json":
        parts = {"fields of the message, as JSON": ", ".join(one.json_fields)}
    shown = "".join(f"[{head}]\n{text.strip(chr(10))}\n" for head, text in parts.items() if text)
    head = f"{name}: target={one.target} task={one.task} scale={one.grade_scale or '-'}"
    return f"{head}\n{one.citation}\n\n{shown}"
