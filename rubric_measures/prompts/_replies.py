"""What every parser needs: the result record, the reply without thoughts, lists and objects found in prose."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Parsed(Generic[T_co]):
    """What a reply says: a value, or None and the reason why there is none (in one line)."""

    value: T_co | None
    reason: str = ""


# How models and servers mark thoughts: tags, the brackets of Mistral, the diamonds of Kimi, the words of Ollama.
_TAGS = r"(?:seed:)?(?:think|thinking|thoughts?|reasoning|reflection|analysis|scratchpad)"
_THINKING = re.compile(
    rf"<(?P<tag>{_TAGS})>.*?(?:</(?P=tag)>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)|◁think▷.*?(?:◁/think▷|\Z)"
    r"|\AThinking\.\.\..*?\.\.\.\s*done thinking\.",
    re.DOTALL | re.IGNORECASE,
)
# Without any of these a reply has no thoughts; most replies are short and have none.
_MAY_HAVE_THOUGHTS = re.compile(r"[<\[◁]|analysis|\A(?i:thinking)")
_MARKS = re.compile(rf"</?{_TAGS}>|\[/?THINK\]|◁/?think▷|<\|[^<>|]{{1,40}}\|>", re.IGNORECASE)
_THOUGHT_END = re.compile(rf"\A.*(?:</{_TAGS}>|\[/THINK\]|◁/think▷)", re.DOTALL | re.IGNORECASE)
# The harmony format (gpt-oss): only the channel `final` is the reply. Decoded without its control tokens,
# "analysis", "assistant" and "final" run into the text.
_FINAL = re.compile(r"\A.*<\|channel\|>\s*final\b[^<]*<\|message\|>|\A\s*analysis(?=\w).*assistantfinal", re.DOTALL)
_NOT_FINAL = re.compile(
    r"\A\s*(?:<\|start\|>\s*assistant\s*)?<\|channel\|>\s*(?:analysis|commentary)\b.*|\A\s*analysis(?=[A-Z]).*",
    re.DOTALL,
)
_HARMONY_END = re.compile(r"<\|(?:end|return|call|start)\|>.*", re.DOTALL)

# What models end their replies with, where the server decodes it: "</s>", "<|eot_id|>", "<end_of_turn>".
_LONGEST_TOKEN = 60
_END_TOKEN = re.compile(
    r"(?:</s>|<eos>|<pad>|<eot>|</eot>|<end_of_(?:turn|text|utterance)>|\[/INST\]|<[|｜][^\s<>|｜]{1,40}[|｜]>)\Z",
    re.IGNORECASE,
)


# What ends a turn: what follows it belongs to another one, which the model made up.
_TURN_END = re.compile(
    r"(?<=\S)\s*(?:<[|｜](?:im_end|endoftext|end_of_text|eot_id|eom_id|eot|end|return|end_of_turn|end[▁_]of[▁_]sentence)[|｜]>"
    r"|<eos>|<end_of_turn>|<end_of_utterance>).*",
    re.DOTALL | re.IGNORECASE,
)
# What opens one: "<s>", but not that of a text struck out ("<s>4</s> 3").
_TURN_START = re.compile(
    r"\A(?:\s*(?:<s>(?!.*</s>\s*\S)|<bos>|<pad>|\[INST\]|<\|(?:begin_of_text|startoftext|assistant|end_header_id)\|>"
    r"|<\|(?:im_start|start_header_id)\|>\s*(?:assistant\b)?|<start_of_turn>\s*(?:model\b)?)){1,8}",
    re.DOTALL | re.IGNORECASE,
)


def _without_end_tokens(text: str) -> str:
    text = _TURN_END.sub("", _TURN_START.sub("", text)).strip()
    while match := _END_TOKEN.search(text, max(0, len(text) - _LONGEST_TOKEN)):
        text = text[: match.start()].rstrip()
    return text


def clean_reply(text: str) -> str:
    """The reply without a reasoning model's thoughts and end tokens, stripped; open thoughts take all that follows.

    >>> clean_reply("<think>Rating: 2?</think> 4"), clean_reply("analysisMaybe 3.assistantfinal4"), clean_reply("4</s>")
    ('4', '4', '4')
    """
    return _without_end_tokens(_parted(text)[1])


def without_thoughts(text: str) -> tuple[str, str]:
    """What a reasoning model thought, and the reply behind it; a text without thoughts stays as it is.

    >>> without_thoughts("<think>Rating: 2?</think> 4"), without_thoughts("Well.</think>4"), without_thoughts(" 4 ")
    (('Rating: 2?', '4'), ('Well.', '4'), ('', ' 4 '))
    """
    thoughts, reply = _parted(text)
    if not thoughts:
        return "", text
    return "\n".join(_MARKS.sub("", thought).strip() for thought in thoughts), reply.strip()


def _parted(text: str) -> tuple[list[str], str]:
    """The thoughts in a reply, with their marks, and what is left of it."""
    if not _MAY_HAVE_THOUGHTS.search(text):
        return [], text
    thoughts: list[str] = []

    def take(found: re.Match[str]) -> str:
        thoughts.append(found[0])
        return ""

    if "analysis" in text or "<|channel|>" in text:
        text, final = _FINAL.subn(take, text, count=1)
        text = _HARMONY_END.sub("", text) if final else _NOT_FINAL.sub(take, text)
    return thoughts, _THOUGHT_END.sub(take, _THINKING.sub(take, text))


_MAX_NESTING = 50
_MOST_BRACKETS = 5_000  # with more that open, a text is no answer, and each would be tried
_DEEPEST = 5  # lists inside of lists without quotes that JSON has


class _CutOffError(Exception):
    """The text ended inside a list."""


class Bare(str):
    """An entry of a list that stands there without quotes: a number, `null`, a name."""

    __slots__ = ()


def _is_hostile(text: str) -> bool:
    return text.count("[") + text.count("{") > _MOST_BRACKETS


def find_lists(text: str) -> tuple[list[tuple[str, ...]], bool]:
    """All flat lists of strings in a text, in order, and whether the last one was cut off by the end of the text."""
    found: list[tuple[str, ...]] = []
    position = -1 if _is_hostile(text) else text.find("[")
    while position >= 0:
        try:
            scanned = _scan_list(text, position)
        except _CutOffError:
            return found, True
        if scanned is None or not all(isinstance(entry, str) for entry in scanned[0]):
            position = text.find("[", position + 1)
            continue
        entries, end = scanned
        found.append(tuple(str(entry) for entry in entries))
        position = text.find("[", end)
    return found, False


class Value(NamedTuple):
    """A list or an object of a reply that is not inside another one, and the label that stands before it.

    Attributes:
        value: strings, lists, objects; what stands in a list without quotes is `Bare`, or what JSON makes of it.
        label: `questions` for `"questions": […]` in an object that was cut off, or for `Questions: […]` in prose.
    """

    value: list[Any] | dict[str, Any]
    label: str = ""


_LABEL_BEFORE = re.compile(r"(\w[\w ]{0,40}?)[\"'*`_]*\s*[:=][\"'*`_\s]*\Z")
_STRICT = json.JSONDecoder(strict=False)


def find_values(text: str) -> tuple[list[Value], bool]:
    """All lists and objects of a reply, outermost, in order; and whether one was cut off by the end of the text.

    JSON is read as JSON; else objects after the usual repairs (`find_objects`), and lists with single quotes, quotes
    inside quotes, trailing commas and lists inside. Lists without any quoted text (`[1]`, `[see above]`) are prose.
    """
    found: list[Value] = []
    position = len(text) if _is_hostile(text) else 0
    while opened := _OPENED.search(text, position):
        start = opened.start()
        try:
            value, position = _value_at(text, start)
        except _CutOffError:
            return found, True
        if value is None or (isinstance(value, list) and value and not _has_text(value)):
            continue
        label = _LABEL_BEFORE.search(text, max(0, start - 60), start)
        found.append(Value(value, label[1].strip().lower() if label else ""))
    return found, False


_OPENED = re.compile(r"[\[{]")


def _value_at(text: str, start: int) -> tuple[Any, int]:
    """What opens at `start` (None when nothing that can be read does), and where to go on."""
    try:
        return _STRICT.raw_decode(text, start)
    except RecursionError:
        return None, len(text)  # what nests that deep is no answer, and each bracket of it would be tried again
    except ValueError:
        pass
    if text[start] == "{":
        closing = _balanced(text, start)
        value = _repaired(text[start:closing]) if closing else None
        return (value, closing) if isinstance(value, dict) else (None, start + 1)
    scanned = _scan_list(text, start)
    return scanned or (None, start + 1)


def _has_text(value: object) -> bool:
    if isinstance(value, list):
        return any(_has_text(entry) for entry in value)
    return isinstance(value, dict) or (isinstance(value, str) and not isinstance(value, Bare))


def _scan_list(text: str, start: int, depth: int = 0) -> tuple[list[Any], int] | None:
    """Reads one list that opens at `start`: (entries, end); None when it is none.

    Entries are texts, `Bare` where they have no quotes, lists, and objects.
    """
    entries: list[Any] = []
    position = start + 1
    while True:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        if position >= len(text):
            if entries and not any(isinstance(entry, Bare) for entry in entries):
                raise _CutOffError
            return None
        if text[position] == "]":
            return entries, position + 1
        if text[position] in "\"'“‘":
            entry, position = _scan_string(text, position)
            entries.append(entry)
            continue
        if text[position] in "[{":
            if depth > _DEEPEST:
                return None
            inner = _scan_list(text, position, depth + 1) if text[position] == "[" else _value_at(text, position)
            if inner is None or inner[0] is None:
                return None
            entries.append(inner[0])
            position = inner[1]
            continue
        match = re.compile(r"[^\[\]{},\n\"]+").match(text, position)
        if match is None or len(match[0]) > 80:
            return None
        if match.end() >= len(text):
            return None
        entries.append(Bare(match[0].strip()))
        position = match.end()


_CLOSERS = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "", "b": "", "f": ""}


def _scan_string(text: str, start: int) -> tuple[str, int]:
    """Reads one quoted string: it ends at a quote before a comma or a bracket, so that it's fine to write "it's"."""
    closer = _CLOSERS[text[start]]
    out: list[str] = []
    position = start + 1
    while position < len(text):
        char = text[position]
        if char == "\\" and position + 1 < len(text):
            following = text[position + 1]
            if following == "u" and (code := re.compile(r"[0-9a-fA-F]{4}").match(text, position + 2)):
                out.append(chr(int(code[0], 16)))
                position += 6
                continue
            out.append(_ESCAPES.get(following, following))
            position += 2
            continue
        if char == closer and _ENDS.match(text, position + 1):
            return "".join(out), position + 1
        out.append(char)
        position += 1
    raise _CutOffError


# `"A?", null, "B?"` are three entries, though no quote follows the first comma.
_ENDS = re.compile(r"\s*(?:\]|,\s*(?:[\"'“‘\]\[{]|(?:null|None|true|false|[-\d.]+)\s*[,\]]|\Z)|\Z|\s*\n\s*[\"'“‘])")


def find_objects(text: str) -> list[dict[str, Any]]:
    """All JSON objects in a text that are not inside another one, in order; single quotes and trailing commas pass."""
    found: list[dict[str, Any]] = []
    position = -1 if _is_hostile(text) else text.find("{")
    while position >= 0:
        value, position = _value_at(text, position)
        if isinstance(value, dict):
            found.append(value)
        position = text.find("{", position)
    return found


def read_part(reply: str) -> str:
    """The part of a reply that is read: its first 1,000 and last 3,000 characters, without the words cut in two.

    Verdicts stand at the ends, and so the time stays bounded.
    """
    if len(reply) <= 4_000:
        return reply
    head, tail = re.sub(r"\S{0,100}\Z", "", reply[:1_000]), re.sub(r"\A\S*", "", reply[-3_000:])
    return f"{head}\n… {tail}"


def objects_of(reply: str) -> list[dict[str, Any]]:
    """The JSON objects of a reply: itself where it is one, of any length, else those in the part that is read."""
    try:
        whole = json.loads(reply, strict=False) if reply[:1] == "{" else None
    except (ValueError, RecursionError):
        whole = None
    return [whole] if whole else find_objects(read_part(reply))


def _balanced(text: str, start: int) -> int:
    """Where the brace at `start` is closed (one past it); 0 when it is not, or nests too deep."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
        if depth > _MAX_NESTING:
            return 0
    return 0


def _repaired(text: str) -> object:
    """Parses an object after the usual repairs: single-quoted keys and values, bare keys, trailing commas."""
    if len(text) > 20_000:
        return None
    fixed = re.sub(r",(\s*[}\]])", r"\1", text)
    quoted = r"(?<=[{,\[:])(\s*)'((?:[^'\n]|(?<=\w)'(?=\w))*)'(?=\s*[,:}\]])"
    fixed = re.sub(quoted, lambda found: found[1] + json.dumps(found[2], ensure_ascii=False), fixed)
    fixed = re.sub(r"([{,]\s*)([A-Za-z_]\w*)(\s*:)", r'\1"\2"\3', fixed)
    try:
        return json.loads(fixed)
    except (ValueError, RecursionError):
        return None
