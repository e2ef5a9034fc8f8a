"""Replies of models read: grades, answers, lists and labels of items.

Reading lists of texts that a model wrote, as values or in marked lines: questions, nuggets, updated nugget lists.

One tolerant parser a reply form; what is no verdict, or none surer than another, is unparsed, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rubric_measures.prompts.verdicts import (
    NUMBER,
    NUMERALS,
    SAYS,
    TABLE,
    Bare,
    Parsed,
    Value,
    clean_reply,
    find_lists,
    find_objects,
    find_values,
    objects_of,
    read_part,
    read_verdict,
)


class _MarkedLine(NamedTuple):
    """A line with a mark: how far it is indented, whether the mark is a number, and its text."""

    indent: int
    numbered: bool
    text: str


def marked_texts(reply: str) -> list[str]:
    """The items of a reply in lines such as `1. What …`, `2) …`, `- …`, `* …`, without marks, quotes and emphasis.

    Where `Questions:` stands on a line of its own, those behind it count. Of numbered lines and bullets the numbered
    ones are the items, of lines of several depths the outer ones, unless they are headings (`Basics:`): then those
    below them are. What stands behind a question explains it, and is left out.

    >>> marked_texts("1. **What is a leap year?** The definition.\\n   - keep it short\\n2. Why do they exist?")
    ['What is a leap year?', 'Why do they exist?']
    """
    heading = SAYS["heading"].search(reply)
    found = _lines(reply[heading.end() :]) if heading else []
    if len(found) < 2:
        found = _lines(reply)
    found = _outer(found, [line for line in found if line.numbered])
    least = min((line.indent for line in found), default=0)
    return [line.text for line in _outer(found, [line for line in found if line.indent <= least + 1])]


def _lines(text: str) -> list[_MarkedLine]:
    return [
        _MarkedLine(len(match[1].expandtabs(4)), match[2][0].isdigit(), _item(match[3]))
        for match in SAYS["line"].finditer(text)
    ]


def _outer(lines: list[_MarkedLine], outer: list[_MarkedLine]) -> list[_MarkedLine]:
    """The outer ones of some lines, or those below them, where these are the items; all where it is not clear."""
    known = set(outer)
    inner = [line for line in lines if line not in known]
    if not inner or len(outer) < 2:
        return lines
    if all("?" in line.text for line in lines):
        return lines
    headings = sum(line.text.endswith(":") for line in outer)
    asked = [sum("?" in line.text for line in part) for part in (outer, inner)]
    if headings == len(outer) or asked == [0, len(inner)]:
        return inner
    return lines if headings else outer


def _item(text: str) -> str:
    """The item in the text of a line: without emphasis and quotes, and without what explains a question behind it."""
    for pattern in (SAYS["bold"], SAYS["italic"], SAYS["underlined"]):
        text = pattern.sub(r"\1", text)
    question, mark, behind = text.rstrip(", ").rpartition("?")
    text = question + mark or behind
    quoted = SAYS["quoted_item"].fullmatch(text)
    return SAYS["name"].sub("", quoted[1] if quoted else text, count=1).strip("* ")


_NOT_UNDERSTOOD = "the list cannot be understood: it is not clear which texts are asked for"


def parse_list(text: str) -> Parsed[tuple[str, ...]]:
    """Reads a list of strings (JSON or Pythonic, fenced or in prose): the last one; a list cut off is refused.

    Lists of other things than texts are understood as `parse_items` does it, and refused where they are not.
    """
    reply = clean_reply(text)
    values, truncated = find_values(reply)
    if truncated:
        return Parsed(None, "the list is not closed")
    chosen = _chosen(values)
    if chosen is None:
        return Parsed(None, "no list in the reply" if reply else "the reply is empty")
    return _parsed(_texts_in(chosen))


def parse_items(text: str) -> Parsed[tuple[str, ...]]:
    """Reads generated questions or nuggets: `{"questions": [...]}`, a bare list, one object a line, numbered lines.

    Elements may be strings, objects of which it is clear which text is asked for (by its name, or as the only one), or
    lists of one such element. Nulls and empty texts say nothing and are left out. Of several lists in an object that
    with the name of what is asked for counts; which lines are items: see `marked_texts`. A list that is not
    understood is refused, and so is one that was cut off.

    >>> parse_items('{"plan": ["a"], "questions": [{"id": "Q1", "question": "Why?"}, null]}').value
    ('Why?',)
    """
    reply = clean_reply(text)
    values, truncated = find_values(reply)
    if truncated:
        return Parsed(None, "the list is not closed")
    chosen = _chosen([value for value in values if value.value])
    if chosen is not None:
        parsed = _parsed(_texts_in(chosen))
        return parsed if parsed.value != () else Parsed(None, "the list is empty")
    found: Sequence[str] | None = None
    if len(values) > 1:
        found = _texts_of([value.value for value in values])  # one object a text
        if found is None and any(value.value for value in values):
            return Parsed(None, _NOT_UNDERSTOOD)
    if not found:
        found = _stripped(marked_texts(reply))
    if len(found) > 1:
        return Parsed(tuple(found))
    return Parsed(None, "no list of texts in the reply" if reply else "the reply is empty")


def _parsed(texts: tuple[str, ...] | None) -> Parsed[tuple[str, ...]]:
    return Parsed(texts) if texts is not None else Parsed(None, _NOT_UNDERSTOOD)


def _chosen(values: Sequence[Value]) -> list[object] | Mapping[str, object] | None:
    """The last value of a reply that holds a list; a list with the name of what is asked for before one without."""
    holding = [value for value in values if isinstance(value.value, list) or _holds_list(value.value)]
    kept = [value for value in holding if not SAYS["beside"].fullmatch(_folded(value.label))] or holding
    if not kept:
        return None
    last = kept[-1]
    if last.label and not _is_named(last.label):
        last = next((value for value in reversed(kept) if _is_named(value.label)), last)
    return last.value


def _is_named(label: str) -> bool:
    return SAYS["asked_for_somehow"].fullmatch(_folded(label)) is not None


def _folded(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _holds_list(value: object) -> bool:
    """Whether an object holds a list, or is one in disguise: `{"1": …, "2": …}`, `{"question_1": …}`."""
    if not isinstance(value, Mapping):
        return isinstance(value, list) and bool(value)
    return _is_numbered(value) or any(_holds_list(entry) for entry in value.values())


def _is_numbered(value: Mapping[str, object]) -> bool:
    return len(value) > 1 and all(SAYS["numbered"].fullmatch(_folded(key)) for key in value)


def _texts_in(value: object) -> tuple[str, ...] | None:
    """The texts of a list, or of the list in an object; None when it is not clear which they are."""
    if isinstance(value, Mapping) and not _is_numbered(value):
        return _texts_in(_by_name(value, _holds_list))
    if isinstance(value, Mapping):
        value = list(value.values())
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    return _texts_of(value) if isinstance(value, list) else None


def _by_name(value: Mapping[str, object], usable: Callable[[object], bool]) -> object:
    """What is asked for in an object: what has its name, or else all that there is; None when several could be it."""
    entries = [(_folded(key), entry) for key, entry in value.items() if usable(entry)]
    for pattern in (SAYS["asked_for"], SAYS["asked_for_somehow"], SAYS["texts"]):
        if named := [entry for key, entry in entries if pattern.fullmatch(key)]:
            return named[0] if len(named) == 1 else None
    others = [entry for key, entry in entries if not SAYS["beside"].fullmatch(key)]
    return others[0] if len(others) == 1 else None


def _texts_of(values: Sequence[object]) -> tuple[str, ...] | None:
    texts: list[str] = []
    for value in values:
        found = _texts_of_element(value)
        if found is None:
            return None
        texts += found
    return _stripped(texts)


def _texts_of_element(value: object) -> tuple[str, ...] | None:
    if value is None or (isinstance(value, Bare) and value.lower() in ("null", "none")):
        return ()
    if isinstance(value, str):
        return None if isinstance(value, Bare) else (value,)
    if isinstance(value, list):
        return _texts_of_element(value[0]) if len(value) == 1 else None
    if not isinstance(value, Mapping):
        return None
    if _is_numbered(value):
        return _texts_of(list(value.values()))
    named = _by_name(value, lambda entry: isinstance(entry, str | Mapping) and bool(entry))
    return None if named is None else _texts_of_element(named)


def _stripped(found: Sequence[str]) -> tuple[str, ...]:
    return tuple(text for text in (" ".join(entry.split()) for entry in found) if text)


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
        return _by_exampp(reply)
    return found or Parsed(None, "no rating in the reply" if reply else "the reply is empty")


def _by_exampp(reply: str) -> Parsed[int]:
    return Parsed(int(not is_unanswerable(reply)), "no rating in the reply; the rule of EXAM++ was applied")


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
    lists, truncated = find_lists(reply)
    if truncated:
        return Parsed(None, "the list is not closed")
    words: Sequence[str] | None = lists[-1] if lists else None
    if not labels:
        return Parsed(tuple(map(str.lower, lists[-1]))) if lists else Parsed(None, "no list in the reply")
    if words is None and count:
        lines = [re.sub(r"\A\W*(?:\d+[.):]\s*)?", "", line) for line in reply.splitlines() if line.strip()]
        words = lines if len(lines) == count else None
    if words is None:
        return Parsed(None, "no list in the reply" if reply else "the reply is empty")
    folded = [re.sub(r"[\s-]+", "_", word.strip(" .*\"'`").lower()) for word in words]
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
        value = named[-1].get(aspect)
        if isinstance(value, str) and re.fullmatch(r"\s*\d{1,3}\s*", value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:
            return Parsed(None, f"aspect {aspect} has no whole number")
        if not scale[0] <= value <= scale[1]:
            return Parsed(None, f"aspect {aspect}: {str(value)[:20]} is no grade of the scale {scale[0]} to {scale[1]}")
        grades[aspect] = int(value)
    return Parsed(grades)


_VERDICTS = {"a": "a", "b": "b", "c": "tie", "tie": "tie", "tie (both bad)": "both_bad"}


_BOTH_BAD = "Tie (Both Bad)"


def parse_verdict(text: str, labels: Sequence[str] = (), scale: object = None) -> Parsed[str]:
    """Reads the last `[[A]]`, `[[B]]` or `[[C]]` of the reply as `a`, `b` or `tie`; without one there is no verdict.

    Where the labels have `Tie (Both Bad)`, as those of RAGDoll do, the reply must be one verdict in brackets and
    nothing else, as its judge has it.

    >>> parse_verdict("[[Tie (Both Bad)]]", ("A", "B", "Tie", "Tie (Both Bad)")).value
    'both_bad'
    """
    reply = clean_reply(text)
    if _BOTH_BAD in labels:
        named = {f"[[{label}]]": _VERDICTS[label.lower()] for label in labels}
        wanted = Parsed(named.get(reply.strip()))
        return wanted if wanted.value else Parsed(None, f"the reply is not one of {', '.join(named)} alone")
    found = re.findall(r"\[\[[\s*_]*(a|b|c|tie)[\s*_]*\]\]", reply, re.IGNORECASE)
    return Parsed(_VERDICTS[found[-1].lower()]) if found else Parsed(None, "no [[A]], [[B]] or [[C]] in the reply")


def parse_text(text: str) -> Parsed[str]:
    """The reply as it is, without thoughts; unparsed when nothing is left."""
    reply = clean_reply(text)
    return Parsed(reply) if reply else Parsed(None, "the reply is empty")


def _own_parts(reply: str, pattern: str, json_field: str) -> list[str]:
    """The parts of a reply that a prompt's own reading says hold the grade."""
    if pattern:
        return [match["grade"] for match in re.finditer(pattern, read_part(reply)) if match["grade"]]
    entries = [found[json_field] for found in objects_of(reply) if json_field in found][-1:]
    return [("no", "yes")[entry] if isinstance(entry, bool) else str(entry) for entry in entries]


class Reading(NamedTuple):
    """How a prompt's replies are read; see `Prompt`."""

    parser: str
    scale: tuple[int, int] | None = None
    labels: Sequence[str] = ()
    pattern: str = ""
    json_field: str = ""


def parse_reply(
    text: str, how: Reading, *, unparsed: str = "", compat: str = "", count: int | None = None
) -> Parsed[Any]:
    """Reads a reply with the parser of a name; see the parsers for the options.

    With `pattern` (its group `grade`) or `json_field` (of the last JSON object that has it), the parser reads only
    what stands there; where it stands several times, all must say the same. By `unparsed` `workbench`, whatever is no
    rating is the reverse of what `exampp` makes of it.
    """
    parser, scale, labels, pattern, json_field = how
    if unparsed == "workbench" and parser == "rating":
        read = parse_reply(text, how, compat=compat)
        return read if read.value is not None else Parsed(int(is_unanswerable(text)))
    if (pattern or json_field) and not compat:
        reply = clean_reply(text)
        plain = how._replace(pattern="", json_field="")
        found = {parse_reply(part, plain) for part in _own_parts(reply, pattern, json_field)}
        if found:
            return found.pop() if len(found) == 1 else Parsed(None, "several verdicts that differ")
        if unparsed == "exampp":
            return _by_exampp(reply)
        where = f"pattern {pattern}" if pattern else f"JSON field {json_field}"
        return Parsed(None, f"nothing in the reply stands where {where} says")
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
