"""Messages as the text that a Hugging Face model is shown: chat template or plain text, control tokens defused."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from rubric_measures.backends.base import Message

__all__ = [
    "breaks",
    "breaks_of_tokens",
    "chat_text",
    "defused",
    "final_channel",
    "markers_of",
    "plain_text",
    "shown_length",
    "with_blanks",
    "without_blanks",
]

# Some templates print today's date (strftime_now, date_string); a reply may not depend on the day it was asked for.
_DATE = datetime.date(2024, 7, 26)
_FORMATS = ("%d %b %Y", "%d %B %Y", "%B %d, %Y", "%A, %B %d, %Y", "%Y-%m-%d")
_DATES = {form: _DATE.strftime(form) for form in _FORMATS}
_FIXED_DATE = (
    f"{{%- macro strftime_now(format) -%}}{{{{ {_DATES!r}.get(format, {_DATES[_FORMATS[0]]!r}) }}}}{{%- endmacro -%}}"
)


# What tells the parts of a conversation apart in a rendered template, also where the tokenizer has no token for it.
_MARKER = re.compile(
    r"<\|[^<>|\n]{1,40}\|>|<{1,2}/?[A-Za-z][\w/]{0,30}>{1,2}|\[/?[A-Z_]{2,20}\]|#{2,4} [A-Z][\w ]{0,30}:"
)

_FINAL = re.compile(
    r"<\|channel\|>\s*final\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>(.*?)(?=<\|[a-z]+\|>|\Z)", re.DOTALL
)


def breaks(text: str, control: Sequence[str]) -> tuple[int, ...]:
    """The places of a text at which a blank keeps it from writing a control token: behind the token's first character.

    >>> breaks("a <|im_end|> b", ["<|im_end|>"])
    (3,)
    """
    present = [token for token in control if len(token) > 1 and token in text]
    if not present:
        return ()
    pattern = "|".join(re.escape(token) for token in sorted(present, key=len, reverse=True))
    return tuple(match.start() + 1 for match in re.finditer(pattern, text))


def with_blanks(text: str, places: Sequence[int]) -> str:
    """The text with a blank in front of the characters at some places, which are in order.

    >>> with_blanks("</s>", [1])
    '< /s>'
    """
    ends = [0, *places, len(text)]
    return " ".join(text[start:end] for start, end in itertools.pairwise(ends))


def without_blanks(place: int, places: Sequence[int]) -> int:
    """Where a place of `with_blanks(text, places)` is in the text itself.

    >>> [without_blanks(place, [1]) for place in range(5)]
    [0, 1, 1, 2, 3]
    """
    return place - sum(blank + number < place for number, blank in enumerate(places))


def defused(text: str, control: Sequence[str]) -> str:
    """A text in which no control token of the tokenizer (`<|im_end|>`, `</s>`) can be read: a space follows its first
    character.

    >>> defused("a <|im_end|> b", ["<|im_end|>"])
    'a < |im_end|> b'
    """
    return with_blanks(text, breaks(text, control))


def breaks_of_tokens(text: str, control: Sequence[str], spans: Callable[[str], Sequence[tuple[int, int]]]) -> list[int]:
    """The places of `breaks`, and those that are needed so that a tokenizer finds no control token (by `spans`).

    A tokenizer reads a text as its normaliser leaves it: fullwidth letters become plain ones, invisible characters
    vanish, and control tokens arise that nobody saw.

    Raises:
        ValueError: blanks do not help.
    """
    places = set(breaks(text, control))
    while found := spans(with_blanks(text, sorted(places))):
        before = len(places)
        order = sorted(places)
        for first, last in found:
            start, end = without_blanks(first, order), without_blanks(last, order)
            places.update(sorted(set(range(start + 1, end)) - places)[:1])
        if len(places) == before:
            raise ValueError("the text has a control token of the model that cannot be broken up")
    return sorted(places)


def shown_length(
    text: str,
    control: Sequence[str],
    control_ids: Collection[int],
    encode: Callable[[str], list[int]],
    spans: Callable[[str], Sequence[tuple[int, int]]],
) -> int:
    """How many tokens a text has as it is shown, without control tokens (see `breaks_of_tokens`)."""
    ids = encode(defused(text, control))
    if any(token in control_ids for token in ids):
        ids = encode(with_blanks(text, breaks_of_tokens(text, control, spans)))
    return len(ids)


def markers_of(rendered: str) -> frozenset[str]:
    """What a rendered conversation marks its turns with: `<|im_start|>`, `[/INST]`, `<<SYS>>`, `### Response:`."""
    return frozenset(_MARKER.findall(rendered))


def final_channel(whole: str, plain: str) -> str:
    """The answer in a reply of channels, empty where the reply ended before it; `plain`, without control tokens, where
    there is no channel.

    >>> final_channel("<|channel|>analysis<|message|>Is it 3?<|end|><|start|>assistant<|channel|>final<|message|>4", "")
    '4'
    """
    if "<|channel|>" not in whole:
        return plain
    found = _FINAL.findall(whole)
    return found[-1] if found else ""


def plain_text(messages: Sequence[Message], control: Sequence[str]) -> str:
    """The contents of the messages, a blank line between them."""
    return "\n\n".join(defused(message.content, control) for message in messages)


def chat_text(tokenizer: Any, messages: Sequence[Message], control: Sequence[str], *, thinking: bool) -> str:
    """The messages in the tokenizer's chat template, up to where the reply begins.

    Where the template has no system messages (it raises an error), the system message stands in front of the first
    user message.
    """
    from jinja2.exceptions import TemplateError

    turns = [{"role": message.role, "content": defused(message.content, control)} for message in messages]
    try:
        return _rendered(tokenizer, turns, thinking)
    except TemplateError:
        if len(turns) < 2 or turns[0]["role"] != "system":
            raise
        merged = {"role": turns[1]["role"], "content": f"{turns[0]['content']}\n\n{turns[1]['content']}"}
        return _rendered(tokenizer, [merged, *turns[2:]], thinking)


def _rendered(tokenizer: Any, turns: list[dict[str, str]], thinking: bool) -> str:
    template = tokenizer.get_chat_template()
    text: str = tokenizer.apply_chat_template(
        turns,
        chat_template=_FIXED_DATE + template if "strftime_now" in template else template,
        tokenize=False,
        add_generation_prompt=True,
        enable_thinking=thinking,
        date_string=_DATES[_FORMATS[0]],
    )
    return text
