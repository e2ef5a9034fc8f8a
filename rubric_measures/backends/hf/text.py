"""Messages as the text that a Hugging Face model is shown: chat template or plain text, control tokens defused."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any

from rubric_measures.backends.base import Message

__all__ = [
    "chat_text",
    "defused",
    "final_channel",
    "markers_of",
    "plain_text",
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


def defused(text: str, control: Sequence[str]) -> str:
    """A text in which no control token of the tokenizer (`<|im_end|>`, `</s>`) can be read: a space follows its first
    character.

    >>> defused("a <|im_end|> b", ["<|im_end|>"])
    'a < |im_end|> b'
    """
    present = [token for token in control if len(token) > 1 and token in text]
    if not present:
        return text
    pattern = "|".join(re.escape(token) for token in sorted(present, key=len, reverse=True))
    return re.sub(pattern, lambda found: f"{found[0][0]} {found[0][1:]}", text)


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
