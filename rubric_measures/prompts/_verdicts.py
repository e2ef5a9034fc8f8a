"""Reading verdicts: one small grammar for ratings, for yes or no, and for labels in words.

A verdict is structured (JSON, `[[N]]`), labelled ("Final score: 2"), alone in its line, at the head of the reply
("4: The answer …") or said in prose ("I would rate it 3"). The surest class that has one decides; two different ones in
it are none, because a wrong number is worse than no number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from rubric_measures.prompts._replies import Parsed, objects_of, read_part

# What a match of a value stands for (None: no grade), and why it is none.
ValueOf = Callable[[re.Match[str]], tuple[int | None, str]]

# Every word of a label must be known, else it is none.
_WHOLE = "final overall total verdict conclusion o actually revised updated corrected correction reflection edit"
_NOUN = (
    "rating rate score grade category level answer assessment evaluation result label mark judgement judgment output "
    "classification decision response"
)
_ASPECT = (
    "relevance relevancy relevant coverage completeness accuracy clarity depth detail quality correctness correct "
    "helpfulness usefulness specificity support self"
)
_CONCLUDING = "therefore thus hence so"
_SMALL = (
    "the a an my your this that its it is was are be been being would should will must can i of as at to for on in by "
    "and but or with given assigned deserves gets receives decide assign give make passage query question document "
    "text context nugget item rated scored graded"
)
_KNOWN = "|".join(f"{_WHOLE} {_NOUN} {_ASPECT} {_CONCLUDING} {_SMALL}".split())
_OF_WHOLE, _LABELLED, _IN_PROSE = 1, 2, 3


def _sureness(label: str) -> int:
    """How sure a label is of the rating; 0 where it is none."""
    words = set(re.findall(r"[a-z]+", label.lower()))
    whole, noun, aspect, concluding = (words & set(kind.split()) for kind in (_WHOLE, _NOUN, _ASPECT, _CONCLUDING))
    if aspect:
        return _LABELLED if whole else _IN_PROSE
    if whole or noun:
        return _OF_WHOLE if whole else _LABELLED
    return _IN_PROSE if concluding and re.search(r"[,:]\s*\Z", label) else 0


NUMERALS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NUMBER = (
    rf"(?P<n>-?(?:0|[1-9]\d*)(?:\.\d+)?|(?:{'|'.join(NUMERALS)})\b)"
    r"(?P<range>\s?(?:[-–—~]|to|or|and)\s?\d+(?:\.\d+)?)?(?:\s?(?:/|out\sof)\s?(?P<max>\d+)(?:\.0+)?)?"
)
# What may stand behind a value: the end, punctuation that no digit follows, or a word that goes on.
_END = (
    r"(?=[)\]}]*(?:\s*\Z|\n|[.!;,](?=[\s)\]}<\"']|\Z)|:(?=\s\D|\n|\Z)|\s?[(\[|<}→]|\s[–—-]\s(?!\d)|\s(?:because|since|as|"
    r"for|and|but|so|given|due|which|while|although|though|meaning|indicating|rather|instead|to\s(?:this|the))\s(?!\d)))"
)
_CLAUSE = r"(?:\A|(?<=[\n.!?:;,|({\[<>\"–—-])|(?<=\sand)|(?<=\sbut)|(?<=\sso)|(?<=\swhile)|(?<=\d)(?=\s))[ ]?"
_GAP = r"[^.!?\n:;\d]{0,120}?[\s:(]{1,3}"
_RATED = r"rated|scored|graded|categori[sz]ed|classified"


class _Grammar(NamedTuple):
    """The patterns of all forms, for one kind of value."""

    labelled: re.Pattern[str]
    prose: tuple[re.Pattern[str], ...]
    head: re.Pattern[str]
    line: re.Pattern[str]
    entry: re.Pattern[str]
    last_word: re.Pattern[str]


@lru_cache(maxsize=64)
def _grammar(value: str) -> _Grammar:
    of = r"(?P<q>[\"'])?[(\[{]{0,2}" + value + r"(?(q)(?P=q))"
    prose = (
        r"\bI(?:'d|'ll|\swould|\swill|\scan|\smust|\stherefore|\sthus|\salso)*\s(?:rate|give|score|grade|assign|"
        r"categori[sz]e|classify|choose|select|pick|say|conclude|assess|judge|label|mark|go\swith|lower|raise|change)\b",
        rf"\bI(?:'ve|\shave)(?:\s(?!not|never)[a-z]+){{0,5}}?\s(?:{_RATED})\b",
        rf"{_CLAUSE}(?:it|(?:the|this)\s(?:passage|text|context|document|answer|response|article|nugget))\s(?:(?:is|should\sbe)\s"
        rf"(?:{_RATED}|given|assigned|covered)|gets|deserves|receives|merits|earns)(?=\s)(?:\s(?:an?|the|at|as|of|rating|score|"
        r"grade|level|category))*",
        r"\bmaking\s(?:it|this|that)\s(?:[a-z]+\s){0,7}?(?:category|level|rating|score|grade)(?:\sof)?",
    )
    goes_on, sentence = ("|[.,;]", "|,") if value != NUMBER else ("", "")
    patterns = (
        rf"{_CLAUSE}(?:\(?\d{{1,2}}[.):]\s|step\s\d+:\s)?(?P<label>(?:\b(?:{_KNOWN})\b(?:[\s,'\"]{{1,3}}|-(?=[a-z]))?){{1,14}})"
        r"(?P<aside>\([^()\n]{0,80}\)|\[[^][\n]{0,80}\])?[)\"']?\s?¤?\s?"
        rf"(?P<sep>(?:[:=|→>]|->|=>|[-–—](?=\s)|is\b)\s?)?{of}{_END}",
        rf"(?:[-•>]\s)?[(\[]*{of}[)\]]*(?P<mark>:\s(?=[a-z(])|\s[-–—]\s(?=[a-z])|\s\((?=[a-z])|,?\s(?=(?:because|since)\b){goes_on})",
        rf"(?:[-•>]\s)?[(\[{{]*{of}[)\]}}]*(?P<dot>[.!]?)",
        rf"(?:[-•>]\s)?[(\[]*{value}\s?(?P<mark>[.):\]=–—-])(?=\s)",
        rf"(?:[.!?,…]|\bwait:|\ba)\s{of}(?=[.!]?\Z{sentence})",
    )
    labelled, *others = (re.compile(one, re.IGNORECASE) for one in patterns)
    gaps = (_GAP, _GAP, r"\s", r"\s")
    said = (
        re.compile(rf"{one}{gap}{of}(?:\srelevance\b)?{_END}", re.IGNORECASE)
        for one, gap in zip(prose, gaps, strict=True)
    )
    return _Grammar(labelled, tuple(said), *others)


class _Found(NamedTuple):
    """A verdict: how sure its form is, its value (None where it has none), and why it has none."""

    sureness: int
    value: int | None
    problem: str


_BRACKETS = re.compile(r"\[\[\s*([\w.-]+)\s*\]\]|\\boxed\{\s*(?:\\text\{)?\s*([\w.-]+)\s*\}")


def _structured(reply: str, pattern: re.Pattern[str], value_of: ValueOf) -> Iterator[_Found]:
    """The verdicts of the last JSON object that has one, or else those in double brackets and boxes."""
    for one in reversed(objects_of(reply)):
        said = {key: ("no", "yes")[entry] if isinstance(entry, bool) else str(entry)[:40] for key, entry in one.items()}
        matches = {re.sub(r"[\W_]+", " ", key): pattern.fullmatch(text.strip()) for key, text in said.items()}
        found = [_Found(_sureness(key), *value_of(match)) for key, match in matches.items() if match and _sureness(key)]
        if found:
            yield from found
            return
    for brackets in _BRACKETS.findall(read_part(reply)):
        if match := pattern.fullmatch("".join(brackets)):
            yield _Found(_OF_WHOLE, *value_of(match))


_COPIED = re.compile(r"^(?:query|passage|document)\s?:(?!\s?\S{1,3}$).*$", re.IGNORECASE | re.MULTILINE)
_QUOTED_LINE = re.compile(r"^\"([^\"\n]*)\"\.?$", re.MULTILINE)
_QUOTED = re.compile(r"(?<![^\s(\[{:>=—–])\"([^\"\n]*[^\W\d_]{2}[^\"\n]*)\"(?!\s?:)")
_TAG = re.compile(r"<\s?([a-z][a-z _-]{0,30})>\s*([^<>\n]{1,40}?)\s*</\s?\1>", re.IGNORECASE)
_SCALE = re.compile(
    r"(?:(?:\b(?:on|using|with|in|by|from)\s)?(?:\b(?:an?|the|this|my)\s)?(?:\brating\s|\bgrading\s)?\bscale\s?(?:of|from|is|:|=|"
    r"ranges\sfrom|goes\sfrom|between)?\s?[(\[]?|[(\[]\s?)(?P<low>\d+)\s?(?:\([^()\n]{1,40}\)\s?)?(?:-|–|to|and)\s?"
    r"(?P<high>\d+)\b(?!\.\d)(?:\s?[)\]]|\s\([^()\n]{1,40}\))?",
    re.IGNORECASE,
)
_EXTREMES = "(?:max(?:imum)?|min(?:imum)?|highest|lowest|best|worst)"
_EXTREME = re.compile(
    rf"\b{_EXTREMES}\b\.?(?:\spossible)?(?:\s(?:rating|score|grade|mark|level|value)s?)?(?:\s(?:is|was|of|being))?\s?[:=]?\s?\d+"
    rf"|\b\d+\s?(?:=|is|being)\s?(?:the\s)?{_EXTREMES}\b",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"\b(?:if|unless|had|with\s(?:more|further))\b|\b(?:not|never|than|n't)\s+an?\s*\Z", re.IGNORECASE
)
_WOULD_BE = re.compile(r"\b(?:if|unless|had)\b.*\bwould\b", re.IGNORECASE | re.DOTALL)
_SUPPOSED_AFTER = re.compile(r",?\s(?:if|unless|only\sif|had)\b", re.IGNORECASE)
_REVISED = re.compile(r"\b(?:change|lower|raise)\b", re.IGNORECASE)
_LINE_OF_LABEL = re.compile(rf"(?:\W{{0,3}}\b(?:{_KNOWN})\b)+\W{{0,3}}", re.IGNORECASE)
_MARKED = re.compile(r"(?:[-•>]\s)?[(\[]?\d{1,2}[.):\]]")
_ELSEWHERE = (None, "a rating on another scale")


def _plain(reply: str, pattern: re.Pattern[str], scale: tuple[int, int] | None) -> str:
    """The part of a reply that is read, without markup, quotations, lines of the prompt and what names the scale."""
    text = unicodedata.normalize("NFKC", read_part(reply)).translate(str.maketrans("“”„‘’′−_", "\"\"\"'''- "))
    text = re.sub(r"[*`\ufe0f\u20e3]|##+|#(?!\d)", "", text)
    text = "\n".join(line for one in text.splitlines() if (line := " ".join(one.split())))
    text = _QUOTED_LINE.sub(r"\1", _COPIED.sub("…", text))
    text = _QUOTED.sub(lambda match: match[0] if pattern.fullmatch(match[1].strip(". ")) else '"…"', text)
    text = _TAG.sub(r"\n\1: \2\n", re.sub(r"\A(\d): \1\Z", r"\1", text)).strip()
    if scale is not None:
        ours = {(str(low), str(scale[1])) for low in (scale[0], 1)}
        text = _SCALE.sub(lambda match: "" if match.group("low", "high") in ours else "¤", text)
        text = _EXTREME.sub("", text).strip().lstrip(":, ")
    return text


def _sentence(text: str, position: int) -> str:
    """The sentence that holds a position, up to there."""
    return text[max(text.rfind(stop, 0, position) for stop in (". ", "! ", "? ", "\n")) + 1 : position]


def _is_of_entry(text: str, match: re.Match[str]) -> bool:
    """Whether a verdict stands inside of a numbered list, and so is that of one of its entries."""
    following = re.search(r"\n(\d{1,2})[.)] ", text[match.end() :])
    return bool(following and re.search(rf"^{int(following[1]) - 1}[.)] ", text[: match.start()], re.MULTILINE))


def _said(text: str, grammar: _Grammar, value_of: ValueOf) -> Iterator[_Found]:
    """The verdicts that stand behind a label, or in prose."""
    for match in grammar.labelled.finditer(text):
        before, separator = _sentence(text, match.start("label")), (match["sep"] or "").strip()
        sureness = _sureness(f"{match['label']} {match['aside'] or ''} {separator}")
        if not sureness or _WOULD_BE.search(before + match["label"]) or (sureness == 2 and _is_of_entry(text, match)):
            continue
        found = _ELSEWHERE if "¤" in before + match[0] else value_of(match)
        # Behind a word, a number that is no grade counts something: "the answer is 62".
        if found[0] is not None or separator in (":", "=") or found is _ELSEWHERE:
            yield _Found(sureness, *found)
    for match in (match for pattern in grammar.prose for match in pattern.finditer(text)):
        before, found = _sentence(text, match.start("n")), value_of(match)
        if found[0] is not None and not _SUPPOSED.search(before) and not _SUPPOSED_AFTER.match(text, match.end()):
            found = _ELSEWHERE if "¤" in before else found
            yield _Found(_OF_WHOLE if _REVISED.search(match[0]) else _IN_PROSE, *found)


def _alone(lines: list[str], grammar: _Grammar, value_of: ValueOf) -> Iterator[_Found]:
    """The verdicts alone in the first lines or the last ones, and one at the head of the reply."""
    entries = [match for line in lines[1:] if (match := grammar.entry.match(line))]
    alone = [grammar.line.fullmatch(line) for line in lines]
    # "3." below entries with marks is that of the next one, which was cut off.
    if (last := alone[-1]) and not (last["dot"] and any(map(_MARKED.match, lines[:-1]))):
        above = lines[-2] if len(lines) > 1 else ""  # it may say what the number is of
        sureness = (_sureness(above) if _LINE_OF_LABEL.fullmatch(above) else 0) or _OF_WHOLE
        yield from (_Found(sureness, *value_of(match)) for match in takewhile(bool, reversed(alone)) if match)
    if len(lines) > 1 and not (entries and entries[0]["n"] != "1"):
        yield from (_Found(_LABELLED, *value_of(match)) for match in takewhile(bool, alone) if match)
    if not alone[0] and (head := grammar.head.match(lines[0])):
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
        for match in grammar.last_word.finditer(text) if found or scale is None else ():
            if not _SUPPOSED.search(_sentence(text, match.start("n"))):
                found.append(_Found(surest, *value_of(match)))
    surest = min((one.sureness for one in found), default=_IN_PROSE)
    verdicts = {one[1:] for one in found if one.sureness == surest}
    if len(verdicts) > 1:
        return Parsed(None, "several verdicts that differ, and none is surer than the others")
    return Parsed(*verdicts.pop()) if verdicts else None
