"""Filling templates: messages put together from parts, and their JSON from the JSON of the same parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring as _quoted
from typing import NamedTuple

from rubric_measures.prompts._delimiters import Delimiters, neutralise
from rubric_measures.types.scales import Message

__all__ = ["FIELD", "Frame", "Slot", "Template", "as_shown", "cut", "cut_json"]

FIELD = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


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


class Template(NamedTuple):
    """One message: its role, and its text cut at the fields."""

    role: str
    pieces: tuple[str | Slot, ...]


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


def cut_json(fields: Iterable[str]) -> tuple[str | Slot, ...]:
    """The canonical JSON of an object with those fields, all of them texts, cut at the values."""
    pieces: list[str | Slot] = ["{"]
    for number, name in enumerate(sorted(fields)):
        pieces += [f"{',' * bool(number)}{_quoted(name)}:", Slot(name, "json")]
    return (*pieces, "}")


class Frame:
    """The messages of a prompt with some fields filled in; the others are filled in as often as one likes.

    A passage is shown with each of its items, so what they have in common is worked out once. JSON writes a text
    character by character: the JSON of a message is that of its parts, one after the other.

    Args:
        templates: the messages.
        delimiters: the prompt's delimiters, which no value may forge.
        values: the values of some fields.
    """

    def __init__(self, templates: Sequence[Template], delimiters: Delimiters, values: Mapping[str, str]) -> None:
        self._delimiters = delimiters
        # Role, parts, the JSON of the parts, and the places of the fields to come among them.
        self._parts: list[tuple[str, list[str], list[str], list[tuple[int, Slot]]]] = []
        for role, pieces in templates:
            texts, quoted = [""], [f'[{_quoted(role)},"']
            open_slots: list[tuple[int, Slot]] = []
            for piece in pieces:
                if isinstance(piece, Slot) and piece.name not in values:
                    open_slots.append((len(texts), piece))
                    texts += ["", ""]
                    quoted += ["", ""]
                    continue
                text = as_shown(values[piece.name], piece, delimiters) if isinstance(piece, Slot) else piece
                texts[-1] += text
                quoted[-1] += _quoted(text)[1:-1]
            quoted[-1] += '"]'
            self._parts.append((role, texts, quoted, open_slots))

    def messages(self, values: Mapping[str, str]) -> tuple[Message, ...]:
        """The messages with the other fields filled in, too."""
        found = []
        for role, texts, quoted, open_slots in self._parts:
            if open_slots:
                texts, quoted = texts.copy(), quoted.copy()
                for place, slot in open_slots:
                    texts[place], quoted[place] = _remembered(values[slot.name], slot, self._delimiters)
            found.append(Message.of_parts(role, texts, quoted))
        return tuple(found)


# Items come back with every passage of their query.
@lru_cache(maxsize=256)
def _remembered(value: str, slot: Slot, delimiters: Delimiters) -> tuple[str, str]:
    """A value as it is shown, and that as JSON writes it."""
    text = as_shown(value, slot, delimiters)
    return text, _quoted(text)[1:-1]


def as_shown(value: str, slot: Slot, delimiters: Delimiters) -> str:
    """A value as it stands in its place of the messages."""
    if slot.how in ("text", "quoted"):
        shown = neutralise(value, delimiters, at_start=slot.at_start)
        return shown.replace('"', "'") if slot.how == "quoted" else shown
    return _quoted(value) if slot.how == "json" else value
