"""Replies of models read: grades, answers, lists and labels of items.

What every parser needs: the result record, the reply without thoughts, lists and objects found in prose.

Where a reply says its verdict: one small grammar for ratings, for yes or no, and for labels in words. A verdict is
structured (JSON, `[[N]]`), labelled ("Final score: 2"), alone in its line, at the head of the reply ("4: The answer …")
or said in prose ("I would rate it 3"). The surest class that has one decides. Two different ones in it are none: a
wrong number is worse than no number.

One tolerant parser a reply form; what is no verdict, or none surer than another, is unparsed, with the reason.
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
    return _without_end_tokens(without_thoughts(text)[1])


def without_thoughts(text: str) -> tuple[str, str]:
    """What a reasoning model thought, and the reply behind it; a text without thoughts stays as it is.

    >>> without_thoughts("<think>Rating: 2?</think> 4"), without_thoughts("Well.</think>4"), without_thoughts(" 4 ")
    (('Rating: 2?', '4'), ('Well.', '4'), ('', ' 4 '))
    """
    if not SAYS["may_have_thoughts"].search(text):
        return "", text
    whole = text
    thoughts: list[str] = []

    def take(found: re.Match[str]) -> str:
        thoughts.append(found[0])
        return ""

    if "analysis" in text or "<|channel|>" in text:
        text, final = SAYS["final"].subn(take, text, count=1)
        text = SAYS["harmony_end"].sub("", text) if final else SAYS["not_final"].sub(take, text)
    reply = SAYS["thought_end"].sub(take, SAYS["thinking"].sub(take, text)).strip()
    return "\n".join(SAYS["marks"].sub("", one).strip() for one in thoughts), reply if thoughts else whole


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


_NOT_UNDERSTOOD = "the list cannot be understood: it is not clear which texts are asked for"


def parse_list(text: str) -> Parsed[tuple[str, ...]]:
    """Reads a list of strings (JSON or Pythonic, fenced or in prose): the last one, which may be empty.

    A list that was cut off is refused, and one that is not understood (`parse_items`).
    """
    return _parsed(clean_reply(text))


def parse_items(text: str) -> Parsed[tuple[str, ...]]:
    """Reads generated questions or nuggets: `{"questions": [...]}`, a bare list, one object a line.

    Elements may be strings, or objects of which it is clear which text is asked for (by its name, or as the only one).
    Nulls and empty texts say nothing and are left out. Of several lists in an object that with the name of what is
    asked for counts. A list that is not understood is refused, and so is one that was cut off.

    >>> parse_items('{"plan": ["a"], "questions": [{"id": "Q1", "question": "Why?"}, null]}').value
    ('Why?',)
    """
    reply = clean_reply(text)
    found = _parsed(reply)
    if found.reason != _NO_LIST:
        return found if found.value != () else Parsed(None, "the list is empty")
    objects = find_objects(reply)
    if len(objects) < 2:
        return found
    texts = _texts_of(objects)
    return Parsed(None, _NOT_UNDERSTOOD) if texts is None else Parsed(texts)


_NO_LIST = "no list in the reply"


def _parsed(reply: str) -> Parsed[tuple[str, ...]]:
    """The texts of the list of a reply."""
    values, truncated = find_values(reply)
    if truncated:
        return Parsed(None, "the list is not closed")
    holding = [one for one in values if isinstance(one.value, list) or list in map(type, one.value.values())]
    if not holding:
        return Parsed(None, _NO_LIST if reply else "the reply is empty")
    # The last one; one with the name of what is asked for before others.
    named = [one for one in holding if SAYS["asked_for_somehow"].fullmatch(_folded(one.label))]
    others = [one for one in holding if not SAYS["beside"].fullmatch(_folded(one.label))]
    chosen = (named or others or holding)[-1].value
    texts = _texts_of(chosen if isinstance(chosen, list) else _by_name(chosen, list))
    return Parsed(None, _NOT_UNDERSTOOD) if texts is None else Parsed(texts)


def _folded(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _by_name(value: Mapping[str, object], kind: type) -> Any:
    """What is asked for in an object: what has its name, or else all that there is; None when several could be it."""
    entries = [(_folded(key), entry) for key, entry in value.items() if isinstance(entry, kind)]
    for pattern in (SAYS["asked_for"], SAYS["asked_for_somehow"], SAYS["texts"]):
        if named := [entry for key, entry in entries if pattern.fullmatch(key)]:
            return named[0] if len(named) == 1 else None
    others = [entry for key, entry in entries if not SAYS["beside"].fullmatch(key)]
    return others[0] if len(others) == 1 else None


def _texts_of(values: Sequence[Any] | None) -> tuple[str, ...] | None:
    """The texts of a list, of whose objects those that are asked for; None where an entry is or has none."""
    if values is None:
        return None
    texts = []
    for value in (one for one in values if one is not None):
        text = _by_name(value, str) if isinstance(value, dict) else value
        if not isinstance(text, str):
            return None
        texts.append(" ".join(text.split()))
    return tuple(filter(None, texts))


def is_unanswerable(text: str) -> bool:
    """Whether a reply says that there is no answer ("unknown", "It does not say.") or is none ("a.", "(iii)", "").

    Source: EXAM++ (Farzi & Dietz 2024, section 4.2) lists the expressions and the ill-formed answers.

    >>> is_unanswerable("No relevant information."), is_unanswerable("(iii)"), is_unanswerable("No evidence of frost")
    (True, True, False)
    """
    stripped = " ".join(clean_reply(text).split())
    return bool(SAYS["unanswerable"].fullmatch(stripped) or SAYS["ill_formed"].fullmatch(stripped))


def parse_rating(text: str, scale: tuple[int, int] = (0, 5), *, unparsed: str = "", compat: str = "") -> Parsed[int]:
    """Reads a rating: the one verdict of the reply, if it is a whole number of the scale.

    Args:
        text: the reply.
        scale: lowest and highest grade.
        unparsed: `exampp`: a reply without a rating is 0 when it is an unanswerable expression (or empty), else 1
            (EXAM++ 4.2.2); a rating outside the scale stays unparsed.
        compat: `workbench`: a rating is a reply of one grade of the scale between non-word characters; else an
            unanswerable expression or nothing is 1, and an answer in words 0 (the workbench's program).
    """
    if compat == "workbench":
        digits = "|".join(str(grade) for grade in range(scale[0], scale[1] + 1))
        only = re.fullmatch(rf"\W*({digits})\W*", text)
        return Parsed(int(only[1] if only else is_unanswerable(text)))

    def value_of(match: re.Match[str]) -> tuple[int | None, str]:
        said, of = match["n"].lower(), match["max"]
        number = float(NUMERALS.index(said) if said in NUMERALS else said)
        if match["range"]:
            return None, f"a range ({match['n']}{match['range']}) is no rating"
        if scale[1] > 9 and said in NUMERALS and SAYS["tens"].search(match.string, 0, match.start("n")):
            return None, "a number in several words is no rating"
        if of and float(of) != scale[1]:
            return None, f"{number:g} of {of} is not on the scale {scale[0]} to {scale[1]}"
        if number % 1 or not scale[0] <= number <= scale[1]:
            return None, f"{number:g} is no grade of the scale {scale[0]} to {scale[1]}"
        return int(number), ""

    reply = clean_reply(text)
    found = read_verdict(reply, NUMBER, value_of, scale)
    if found is None and unparsed == "exampp":
        return Parsed(int(not is_unanswerable(reply)), "no rating in the reply; the rule of EXAM++ was applied")
    return found or Parsed(None, "no rating in the reply" if reply else "the reply is empty")


def parse_yes_no(text: str) -> Parsed[int]:
    """Reads yes (1) or no (0): the one verdict of the reply; "Yes or no" is none, and neither is "no doubt".

    >>> parse_yes_no("No, it only lists prices."), parse_yes_no("The answer to this is yes").value
    (Parsed(value=0, reason=''), 1)
    """
    whole = clean_reply(text)
    reply = SAYS["echo"].sub(" ", whole).strip()
    found = read_verdict(reply, "(?P<n>yes|no)", lambda match: (int(match["n"].lower() == "yes"), ""))
    if found is None and (opening := SAYS["opening"].match(reply)):
        return Parsed(int(bool(opening["yes"])))
    if reply != whole.strip():
        return found or Parsed(None, "yes and no are named together, and neither is the verdict")
    return found or Parsed(None, "no yes or no in the reply" if reply else "the reply is empty")


def parse_label(text: str, labels: Sequence[str], scale: tuple[int, int] | None = None) -> Parsed[int]:
    """Reads one of several labels: the grade (`scale[0]` + place in `labels`) of the one that is the verdict.

    A label that is stated ("Label: Not relevant", "Not relevant because …") counts before those inside of sentences;
    these must all be the same. "not very relevant" is none of "Not relevant", "Very relevant". A reply without a label
    may carry the grade as a number, read as a rating.
    """
    low = scale[0] if scale else 0
    folded = [_folded_label(name) for name in labels]
    any_label = "|".join(
        r"[\s_-]+".join(map(re.escape, name.split())) for name in sorted(folded, key=len, reverse=True)
    )

    def value_of(match: re.Match[str]) -> tuple[int | None, str]:
        return low + folded.index(_folded_label(match["n"])), ""

    reply = clean_reply(text)
    if stated := read_verdict(reply, rf"(?<!\w)(?P<n>{any_label})(?!\w)", value_of):
        return stated
    # A label that begins with "not" is one; "not", "isn't" or "no" before a label is none of them.
    mention = re.compile(
        rf"(?<!\w)(?P<n>{any_label})(?!\w)|\b(?:(?:not|never|\w{{1,9}}n['’]t)[ \t](?:[\w'’]{{1,20}}[ \t]){{0,2}}"
        rf"|no[ \t])(?:{any_label})(?!\w)",
        re.IGNORECASE,
    )
    found = {value_of(match)[0] if match["n"] else match[0] for match in mention.finditer(read_part(reply))}
    if not found:
        rating = parse_rating(reply, scale or (low, low + len(labels) - 1))
        return rating if rating.value is not None else Parsed(None, f"none of {', '.join(labels)} in the reply")
    grade = found.pop()
    if found or not isinstance(grade, int):
        reason = "several labels, and none is stated" if found else f"{grade!r} is none of {', '.join(labels)}"
        return Parsed(None, reason)
    return Parsed(grade)


def parse_phrase(text: str, labels: Sequence[str], scale: tuple[int, int] | None = None) -> Parsed[int]:
    """Reads a reply that is one of the labels and nothing else: its grade (`scale[0]` + place in `labels`).

    Capitals, quotes, stars and a full stop are free. A sentence around the label is no verdict: "not full support" says
    the opposite of the label that it holds. An empty label stands for a grade that nobody gives.

    >>> parse_phrase("'full support'.", ("No Support", "Partial Support", "Full Support")).value
    2
    """
    reply = clean_reply(text)
    said = _folded_label(reply.strip(" \t\r\n\"'`*.“”‘’"))
    folded = [_folded_label(name) for name in labels]
    if said and said in folded:
        return Parsed((scale[0] if scale else 0) + folded.index(said))
    known = ", ".join(filter(None, labels))
    return Parsed(None, f"the reply is not one of {known} alone" if reply else "the reply is empty")


def _folded_label(label: str) -> str:
    return re.sub(r"[\s_-]+", " ", label).lower()


def parse_label_list(text: str, labels: Sequence[str], count: int | None = None) -> Parsed[tuple[str, ...]]:
    """Reads a list of labels, the last list of the reply; every label must be known, and their number `count`.

    Capitals, blanks or hyphens for underscores, "okey" and "supported" are understood. Without brackets, one label a
    line is read where the number of lines is right. Where no labels are known, the list is taken as it stands, in small
    letters, whatever its length: so does the nuggetizer program (0.0.5), which leaves it to the scores what to make of
    it.
    """
    reply = clean_reply(text)
    if reply.rfind("[") > reply.rfind("]"):
        return Parsed(None, "the list is not closed")
    lists = [
        [word for one in found.split(",") if (word := one.strip(" \t\r\n\"'“”‘’`"))]
        for found in re.findall(r"\[(?!\d+\])([^\[\]]*)\]", reply)
    ]
    if not labels:
        return Parsed(tuple(map(str.lower, lists[-1]))) if lists else Parsed(None, "no list in the reply")
    lines = [re.sub(r"\A\W*(?:\d+[.):]\s*)?", "", line) for line in reply.splitlines() if line.strip()]
    if not lists and len(lines) != count:
        return Parsed(None, "no list in the reply" if reply else "the reply is empty")
    folded = [re.sub(r"[\s-]+", "_", word.strip(" .*\"'`").lower()) for word in (lists or [lines])[-1]]
    named = tuple(TABLE["aliases"].get(word, word) if word not in labels else word for word in folded)
    if strange := sorted({word for word in named if word not in labels}):
        return Parsed(None, f"unknown labels {', '.join(strange)[:80]} (known: {', '.join(labels)})")
    if count is not None and len(named) != count:
        return Parsed(None, f"{len(named)} labels for {count} items")
    return Parsed(named)


def parse_aspects(text: str, aspects: Sequence[str], scale: tuple[int, int] | None = None) -> Parsed[dict[str, int]]:
    """Reads the last JSON object that names aspects: every aspect must be there, with a grade of the scale."""
    reply, scale = clean_reply(text), scale or (0, 2)
    named = [found for found in find_objects(reply) if any(aspect in found for aspect in aspects)]
    if not named:
        return Parsed(None, "no object with the aspects in the reply" if reply else "the reply is empty")
    grades: dict[str, int] = {}
    for aspect in aspects:
        found = parse_rating(str(named[-1].get(aspect)), scale)
        if found.value is None:
            return Parsed(None, f"aspect {aspect}: {found.reason}")
        grades[aspect] = found.value
    return Parsed(grades)


_VERDICTS = {"a": "a", "b": "b", "c": "tie", "tie": "tie", "tie (both bad)": "both_bad"}


def parse_verdict(text: str, labels: Sequence[str] = (), scale: object = None) -> Parsed[str]:
    """Reads the last `[[A]]`, `[[B]]` or `[[C]]` of the reply as `a`, `b` or `tie`; without one there is no verdict.

    Where the labels have `Tie (Both Bad)`, as those of RAGDoll do, the reply must be one verdict in brackets and
    nothing else, as its judge has it.

    >>> parse_verdict("[[Tie (Both Bad)]]", ("A", "B", "Tie", "Tie (Both Bad)")).value
    'both_bad'
    """
    reply = clean_reply(text)
    if "Tie (Both Bad)" in labels:
        named = {f"[[{label}]]": _VERDICTS[label.lower()] for label in labels}
        wanted = Parsed(named.get(reply.strip()))
        return wanted if wanted.value else Parsed(None, f"the reply is not one of {', '.join(named)} alone")
    found = re.findall(r"\[\[[\s*_]*(a|b|c|tie)[\s*_]*\]\]", reply, re.IGNORECASE)
    return Parsed(_VERDICTS[found[-1].lower()]) if found else Parsed(None, "no [[A]], [[B]] or [[C]] in the reply")


def parse_text(text: str) -> Parsed[str]:
    """The reply as it is, without thoughts; unparsed when nothing is left."""
    reply = clean_reply(text)
    return Parsed(reply) if reply else Parsed(None, "the reply is empty")


def parse_reply(
    text: str, parser: str, scale: tuple[int, int] | None, labels: Sequence[str], *,
    unparsed: str = "", compat: str = "", count: int | None = None,
) -> Parsed[Any]:  # fmt: skip
    """Reads a reply with the parser of a name, see `Prompt`; see the parsers for the options."""
    if parser == "rating":
        return parse_rating(text, scale or (0, 5), unparsed=unparsed, compat=compat)
    if parser == "label_list":
        return parse_label_list(text, () if compat == "nuggetizer" else labels, count)
    if parser in _OF_LABELS:
        return _OF_LABELS[parser](text, labels, scale)
    return _OF_TEXTS[parser](text)


_OF_LABELS: Mapping[str, Callable[..., Parsed[Any]]] = {
    "aspects": parse_aspects, "label": parse_label, "phrase": parse_phrase, "verdict": parse_verdict,
}  # fmt: skip
_OF_TEXTS: Mapping[str, Callable[[str], Parsed[Any]]] = {
    "yes_no": parse_yes_no, "list": parse_list, "items": parse_items, "text": parse_text,
}  # fmt: skip
