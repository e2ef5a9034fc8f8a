"""Replies of models read: grades, answers, lists and labels of items.

Reading lists of texts that a model wrote: questions, nuggets, updated nugget lists.

One tolerant parser a reply form; what is no verdict, or none surer than another, is unparsed, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rubric_measures.prompts.verdicts import (
    NUMBER,
    NUMERALS,
    SAYS,
    TABLE,
    Parsed,
    clean_reply,
    find_objects,
    find_values,
    read_part,
    read_verdict,
)

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
