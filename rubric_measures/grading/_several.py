"""Several items of a passage in one call: which prompts can be asked so, how they ask, and how their reply is read."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from rubric_measures.base.errors import InputError
from rubric_measures.grading._settings import GradingSettings
from rubric_measures.prompts import Prompt
from rubric_measures.prompts.verdicts import Parsed, clean_reply, objects_of
from rubric_measures.types.entities import RubricItem

_NAMES = {"question": "questions", "nugget": "key facts"}
_KEY = re.compile(r"\s*#?(\d{1,3})[.):]?\s*")


def refuse_several(prompt: Prompt, settings: GradingSettings) -> None:
    """Refuses several items a call where a prompt does not ask for one grade of one item in its own words.

    Raises:
        InputError: the prompt is of another kind, or another setting says what a reply looks like.
    """
    name = prompt.prompt_class
    if prompt.parser == "label_list":
        raise InputError(
            f"prompt {name} shows lists of nuggets, of a length that another setting says",
            settings=("items_per_call", "nuggets_per_call"),
        )
    asks_for_one = prompt.task == "grade" and prompt.parser in ("rating", "yes_no", "label", "phrase")
    if not asks_for_one or prompt.format != "template" or prompt.target not in _NAMES or "item" in prompt.fields:
        text = f"prompt {name} does not ask for one grade of one question or nugget, so it is not asked about several"
        raise InputError(text, settings=("items_per_call",))
    if settings.compat or settings.unparsed or prompt.pattern or prompt.json_field:
        text = f"replies about several items are JSON, and prompt {name} or a setting says another form; leave one out"
        raise InputError(text, settings=("items_per_call", "compat", "unparsed"))


def prompt_of_several(prompt: Prompt, explain: bool = False) -> Prompt:
    """The prompt with a last line that asks for a grade of each item, perhaps with a reason before it."""
    labels = prompt.reply_labels or tuple(filter(None, prompt.labels))
    what, one, more = "the grade", '"…"', '"…"'
    if explain:
        what, one, more = "a reason and then the grade", '{"reason": "one or two sentences", "grade": "…"}', "{…}"
    line = (
        f"There are several {_NAMES[prompt.target]} above, each with its number. Grade each of them by itself, as if "
        f"it were the only one. Reply with one JSON object and nothing else, which has {what} of each number: "
        f'{{"1": {one}, "2": {more}}}. Each grade is one of {", ".join(labels)}.'
    )
    return dataclasses.replace(prompt, text=f"{prompt.text.rstrip()}\n\n{line}\n")


def numbered(items: Sequence[RubricItem]) -> str:
    """The items as such a call shows them: a line each, with its number."""
    return "\n" + "\n".join(f"{number}. {' '.join(item.text.split())}" for number, item in enumerate(items, 1))


def read_several(text: str, prompt: Prompt, count: int) -> Parsed[dict[int, int]]:
    """Reads the grades of numbered items: place from 0 -> grade; those that are missing or no grade are left out.

    Of an item with two different grades there is none. A reply that has a number that was not asked about counted in
    another way, so none of its grades surely belongs to its item.
    """
    reply = clean_reply(text)
    said: dict[int, set[int | None]] = {}
    for found in objects_of(reply):
        for key, entry in found.items():
            if match := _KEY.fullmatch(key):
                value = entry.get("grade") if isinstance(entry, dict) else entry
                known = isinstance(value, str | int | float)
                word = ("no", "yes")[value] if isinstance(value, bool) else str(value)
                said.setdefault(int(match[1]), set()).add(prompt.parse(word).value if known else None)
    if strange := [number for number in said if not 1 <= number <= count]:
        return Parsed(None, f"the reply grades item {strange[0]}, and there are {count}")
    grades = {}
    for number, values in said.items():
        if len(values) == 1 and (grade := next(iter(values))) is not None:
            grades[number - 1] = grade
    return Parsed(grades) if grades else Parsed(None, "no grades of numbered items in the reply")


def read_reasons(text: str) -> dict[int, str]:
    """The reasons beside the grades of numbered items: place from 0 -> reason, of the items that have one."""
    found = {
        int(match[1]) - 1: entry["reason"].strip()
        for one in objects_of(clean_reply(text))
        for key, entry in one.items()
        if (match := _KEY.fullmatch(key)) and isinstance(entry, dict) and isinstance(entry.get("reason"), str)
    }
    return {place: reason for place, reason in found.items() if reason}
