"""Where a reply says its verdict.

What every parser needs: the result record, the reply without thoughts, lists and objects found in prose.

Reading verdicts: one small grammar for ratings, for yes or no, and for labels in words.

A verdict is structured (JSON, `[[N]]`), labelled ("Final score: 2"), alone in its line, at the head of the reply
("4: The answer …") or said in prose ("I would rate it 3"). The surest class that has one decides; two different ones in
it are none, because a wrong number is worse than no number.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from rubric_measures.base.json_text import json_at, parse_json

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Parsed(Generic[T_co]):
    """What a reply says: a value, or None and the reason why there is none (in one line)."""

    value: T_co | None
    reason: str = ""


_LONGEST_TOKEN = 60  # that a reply ends with

# How replies say things: the words of labels, patterns, and parts of patterns.
TABLE = tomllib.loads(Path(__file__).with_name("replies.toml").read_text(encoding="utf-8"))
_WORDS: Mapping[str, frozenset[str]] = {kind: frozenset(said.split()) for kind, said in TABLE["words"].items()}
_PARTS = {name: "".join(said) for name, said in TABLE["parts"].items()}
_PARTS["known"] = "|".join(" ".join(TABLE["words"].values()).split())
_PART = re.compile(r"\{([a-z_]+)\}")


def _pattern(said: str | Sequence[str], **parts: str) -> re.Pattern[str]:
    """The pattern of an entry, in which its parts are put."""
    known = {**_PARTS, **parts}
    return re.compile(_PART.sub(lambda part: known[part[1]], "".join(said)))


SAYS: Mapping[str, re.Pattern[str]] = {name: _pattern(said) for name, said in TABLE["says"].items()}
NUMBER = _PARTS["number"]


def _without_end_tokens(text: str) -> str:
    text = SAYS["turn_end"].sub("", SAYS["turn_start"].sub("", text)).strip()
    while match := SAYS["end_token"].search(text, max(0, len(text) - _LONGEST_TOKEN)):
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
    return "\n".join(SAYS["marks"].sub("", thought).strip() for thought in thoughts), reply.strip()


def _parted(text: str) -> tuple[list[str], str]:
    """The thoughts in a reply, with their marks, and what is left of it."""
    if not SAYS["may_have_thoughts"].search(text):
        return [], text
    thoughts: list[str] = []

    def take(found: re.Match[str]) -> str:
        thoughts.append(found[0])
        return ""

    if "analysis" in text or "<|channel|>" in text:
        text, final = SAYS["final"].subn(take, text, count=1)
        text = SAYS["harmony_end"].sub("", text) if final else SAYS["not_final"].sub(take, text)
    return thoughts, SAYS["thought_end"].sub(take, SAYS["thinking"].sub(take, text))


_MAX_NESTING = 50
_MOST_BRACKETS = 5_000  # with more that open, a text is no answer, and each would be tried


class _CutOffError(Exception):
    """The text ended inside a list."""


def _scanned(text: str, opening: str) -> Iterator[tuple[int, Any]]:
    """Where something opens that can be read, and what it is; what opens inside of that is not looked at."""
    brackets = re.compile(f"[{re.escape(opening)}]")
    is_hostile = text.count("[") + text.count("{") > _MOST_BRACKETS
    position = len(text) if is_hostile else 0
    while opened := brackets.search(text, position):
        value, position = _value_at(text, opened.start())
        if value is not None:
            yield opened.start(), value


class Value(NamedTuple):
    """A list or an object of a reply that is not inside another one, and the label that stands before it.

    Attributes:
        value: what JSON makes of it.
        label: `questions` for `"questions": […]` in an object that was cut off, or for `Questions: […]` in prose.
    """

    value: list[Any] | dict[str, Any]
    label: str = ""


def find_values(text: str) -> tuple[list[Value], bool]:
    """All lists and objects of a reply, outermost, in order; and whether one was cut off by the end of the text.

    JSON is read as JSON, else after the usual repairs (`find_objects`). Lists without any quoted text (`[1]`,
    `[see above]`) are prose.
    """
    found: list[Value] = []
    try:
        for start, value in _scanned(text, "[{"):
            if not isinstance(value, list) or not value or _has_text(value):
                label = SAYS["label_before"].search(text, max(0, start - 60), start)
                found.append(Value(value, label[1].strip().lower() if label else ""))
    except _CutOffError:
        return found, True
    return found, False


def _value_at(text: str, start: int) -> tuple[Any, int]:
    """What opens at `start` (None when nothing that can be read does), and where to go on."""
    try:
        return json_at(text, start, lenient=True)
    except RecursionError:
        return None, len(text)  # what nests that deep is no answer, and each bracket of it would be tried again
    except ValueError:
        pass
    closing = _balanced(text, start)
    if not closing and SAYS["list_begun"].match(text, start):
        raise _CutOffError
    value = _repaired(text[start:closing]) if closing else None
    return (value, closing) if isinstance(value, dict | list) else (None, start + 1)


def _has_text(value: object) -> bool:
    return isinstance(value, dict | str) or (isinstance(value, list) and any(map(_has_text, value)))


def find_objects(text: str) -> list[dict[str, Any]]:
    """All JSON objects in a text that are not inside another one, in order; single quotes and trailing commas pass."""
    return [value for _, value in _scanned(text, "{") if isinstance(value, dict)]


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
        whole = parse_json(reply, lenient=True) if reply[:1] == "{" else None
    except ValueError:
        whole = None
    return [whole] if whole else find_objects(read_part(reply))


def _balanced(text: str, start: int) -> int:
    """Where the bracket at `start` is closed (one past it); 0 when it is not, or nests too deep."""
    depth = 0
    opening, closing = "[]" if text[start] == "[" else "{}"
    for match in re.compile(re.escape(opening) + "|" + re.escape(closing)).finditer(text, start):
        depth += 1 if match[0] == opening else -1
        if depth == 0:
            return match.end()
        if depth > _MAX_NESTING:
            return 0
    return 0


def _repaired(text: str) -> object:
    """Parses what is nearly JSON: with single or curly quotes, bare keys, trailing commas, and None for null."""
    if len(text) > 20_000:
        return None
    fixed = re.sub(r",(\s*[}\]])", r"\1", text.translate(str.maketrans("“”‘’", "\"\"''")))

    def double(found: re.Match[str]) -> str:
        inner = re.sub(r'(?<!\\)"', '\\"', found[2].replace("\\'", "'"))
        return f'{found[1]}"{inner}"'

    fixed = re.sub(r"(?<=[{,\[:])(\s*)'((?:\\.|[^'\n\\]|(?<=\w)'(?=\w))*)'(?=\s*[,:}\]])", double, fixed)
    fixed = re.sub(r"(?<=[,\[:])(\s*)None(?=\s*[,}\]])", r"\1null", fixed)
    fixed = re.sub(r"([{,]\s*)([A-Za-z_]\w*)(\s*:)", r'\1"\2"\3', fixed)
    try:
        return parse_json(fixed, lenient=True)
    except ValueError:
        return None


# What a match of a value stands for (None: no grade), and why it is none.
ValueOf = Callable[[re.Match[str]], tuple[int | None, str]]

_OF_WHOLE, _LABELLED, _IN_PROSE = 1, 2, 3
_PROSE = [name for name in TABLE["grammar"] if name.startswith("prose")]


def _sureness(label: str) -> int:
    """How sure a label is of the rating; 0 where it is none."""
    words = set(re.findall(r"[a-z]+", label.lower()))
    whole, noun, aspect, concluding = (words & _WORDS[kind] for kind in ("whole", "noun", "aspect", "concluding"))
    if aspect:
        return _LABELLED if whole else _IN_PROSE
    if whole or noun:
        return _OF_WHOLE if whole else _LABELLED
    return _IN_PROSE if concluding and re.search(r"[,:]\s*\Z", label) else 0


NUMERALS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@lru_cache(maxsize=64)
def _grammar(value: str) -> Mapping[str, re.Pattern[str]]:
    """The patterns of all forms by name, for one kind of value."""
    goes_on, sentence = ("|[.,;]", "|,") if value != NUMBER else ("", "")
    said = TABLE["grammar"].items()
    return {name: _pattern(one, value=value, goes_on=goes_on, sentence=sentence) for name, one in said}


class _Found(NamedTuple):
    """A verdict: how sure its form is, its value (None where it has none), and why it has none."""

    sureness: int
    value: int | None
    problem: str


def _structured(reply: str, pattern: re.Pattern[str], value_of: ValueOf) -> Iterator[_Found]:
    """The verdicts of the last JSON object that has one, or else those in double brackets and boxes."""
    for one in reversed(objects_of(reply)):
        said = {key: ("no", "yes")[entry] if isinstance(entry, bool) else str(entry)[:40] for key, entry in one.items()}
        matches = {re.sub(r"[\W_]+", " ", key): pattern.fullmatch(text.strip()) for key, text in said.items()}
        found = [_Found(_sureness(key), *value_of(match)) for key, match in matches.items() if match and _sureness(key)]
        if found:
            yield from found
            return
    for brackets in SAYS["brackets"].findall(read_part(reply)):
        if match := pattern.fullmatch("".join(brackets)):
            yield _Found(_OF_WHOLE, *value_of(match))


_ELSEWHERE = (None, "a rating on another scale")


def _plain(reply: str, pattern: re.Pattern[str], scale: tuple[int, int] | None) -> str:
    """The part of a reply that is read, without markup, quotations, lines of the prompt and what names the scale."""
    text = unicodedata.normalize("NFKC", read_part(reply)).translate(str.maketrans("“”„‘’′−_", "\"\"\"'''- "))
    text = re.sub(r"[*`\ufe0f\u20e3]|##+|#(?!\d)", "", text)
    text = "\n".join(line for one in text.splitlines() if (line := " ".join(one.split())))
    text = SAYS["quoted_line"].sub(r"\1", SAYS["copied"].sub("…", text))
    text = SAYS["quotation"].sub(lambda match: match[0] if pattern.fullmatch(match[1].strip(". ")) else '"…"', text)
    digits = len(str(scale[1])) if scale else 1
    text = SAYS["tag"].sub(r"\n\1: \2\n", re.sub(rf"\A(\d{{1,{digits}}}): \1\Z", r"\1", text)).strip()
    if scale is not None:
        ours = {(str(low), str(scale[1])) for low in (scale[0], 1)}
        text = SAYS["scale"].sub(lambda match: "" if match.group("low", "high") in ours else "¤", text)
        text = SAYS["extreme"].sub("", text).strip().lstrip(":, ")
    return text


def _sentence(text: str, position: int) -> str:
    """The sentence that holds a position, up to there."""
    return text[max(text.rfind(stop, 0, position) for stop in (". ", "! ", "? ", "\n")) + 1 : position]


def _is_of_entry(text: str, match: re.Match[str]) -> bool:
    """Whether a verdict stands inside of a numbered list, and so is that of one of its entries."""
    following = re.search(r"\n(\d{1,2})[.)] ", text[match.end() :])
    return bool(following and re.search(rf"^{int(following[1]) - 1}[.)] ", text[: match.start()], re.MULTILINE))


def _said(text: str, grammar: Mapping[str, re.Pattern[str]], value_of: ValueOf) -> Iterator[_Found]:
    """The verdicts that stand behind a label, or in prose."""
    for match in grammar["labelled"].finditer(text):
        before, separator = _sentence(text, match.start("label")), (match["sep"] or "").strip()
        sureness = _sureness(f"{match['label']} {match['aside'] or ''} {separator}")
        if (
            not sureness
            or SAYS["would_be"].search(before + match["label"])
            or (sureness == 2 and _is_of_entry(text, match))
        ):
            continue
        found = _ELSEWHERE if "¤" in before + match[0] else value_of(match)
        # Behind a word, a number that is no grade counts something: "the answer is 62".
        if found[0] is not None or separator in (":", "=") or found is _ELSEWHERE:
            yield _Found(sureness, *found)
    for match in (match for name in _PROSE for match in grammar[name].finditer(text)):
        before, found = _sentence(text, match.start("n")), value_of(match)
        if (
            found[0] is not None
            and not SAYS["supposed"].search(before)
            and not SAYS["supposed_after"].match(text, match.end())
        ):
            found = _ELSEWHERE if "¤" in before else found
            yield _Found(_OF_WHOLE if SAYS["revised"].search(match[0]) else _IN_PROSE, *found)


def _alone(lines: list[str], grammar: Mapping[str, re.Pattern[str]], value_of: ValueOf) -> Iterator[_Found]:
    """The verdicts alone in the first lines or the last ones, and one at the head of the reply."""
    entries = [match for line in lines[1:] if (match := grammar["entry"].match(line))]
    alone = [grammar["line"].fullmatch(line) for line in lines]
    # "3." below entries with marks is that of the next one, which was cut off.
    if (last := alone[-1]) and not (last["dot"] and any(map(SAYS["marked"].match, lines[:-1]))):
        above = lines[-2] if len(lines) > 1 else ""  # it may say what the number is of
        sureness = (_sureness(above) if SAYS["line_of_label"].fullmatch(above) else 0) or _OF_WHOLE
        yield from (_Found(sureness, *value_of(match)) for match in takewhile(bool, reversed(alone)) if match)
    if len(lines) > 1 and not (entries and entries[0]["n"] != "1"):
        yield from (_Found(_LABELLED, *value_of(match)) for match in takewhile(bool, alone) if match)
    if not alone[0] and (head := grammar["head"].match(lines[0])):
        like = [match["n"] for match in entries if match["mark"] == head["mark"].strip()[:1]]
        if {one.lower() for one in like} <= {head["n"].lower()}:
            yield _Found(_LABELLED, *value_of(head))


def read_verdict(reply: str, value: str, value_of: ValueOf, scale: tuple[int, int] | None = None) -> Parsed[int] | None:
    """The verdict of the surest class that has one; two different ones are none.

    Args:
        reply: the reply, without thoughts.
        value: the pattern of a value; its group `n` is what is said.
        value_of: what a match of it stands for.
        scale: where values are numbers, their scale; words that name it are left out.

    Returns:
        The value, or the reason why it is none; None where the reply holds no verdict at all.
    """
    pattern, grammar = re.compile(value, re.IGNORECASE), _grammar(value)
    found = list(_structured(reply, pattern, value_of))
    if not found:
        text = _plain(reply, pattern, scale)
        found = [*_said(text, grammar, value_of), *_alone(text.split("\n"), grammar, value_of)]
        surest = min((one.sureness for one in found), default=_IN_PROSE)
        # A last word may take back what was said: "Rating: 4. However, 2."
        for match in grammar["last_word"].finditer(text) if found or scale is None else ():
            if not SAYS["supposed"].search(_sentence(text, match.start("n"))):
                found.append(_Found(surest, *value_of(match)))
    surest = min((one.sureness for one in found), default=_IN_PROSE)
    verdicts = {one[1:] for one in found if one.sureness == surest}
    if len(verdicts) > 1:
        return Parsed(None, "several verdicts that differ, and none is surer than the others")
    return Parsed(*verdicts.pop()) if verdicts else None
