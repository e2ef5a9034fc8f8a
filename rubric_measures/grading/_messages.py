"""How a prompt shows passages and items: the messages of a call, made from texts and settings alone."""

from __future__ import annotations

import dataclasses
import functools
import random
import sys
from collections.abc import Mapping, Sequence

from rubric_measures.grading._combining import Unit
from rubric_measures.grading._settings import GradingSettings
from rubric_measures.grading._several import numbered, prompt_of_several
from rubric_measures.prompts import Prompt, list_text
from rubric_measures.prompts.library import Frame
from rubric_measures.types.entities import RubricItem
from rubric_measures.types.scales import Message

NO_DOCUMENTS = "(no documents are shown)"


class Showing:
    """Fills the fields of a prompt; what it makes follows from its arguments alone.

    Args:
        prompt: the prompt.
        settings: the values of its settings, the documents, and how items are ordered and shown together.

    Attributes:
        prompt: the prompt.
    """

    def __init__(self, prompt: Prompt, settings: GradingSettings) -> None:
        self.prompt = prompt
        self._asked = _explaining(prompt) if settings.explain else prompt
        # What is asked about several items; one that is left alone is asked about in the prompt's own words.
        self._asked_together = prompt_of_several(prompt, settings.explain) if settings.items_per_call != 1 else None
        self._settings = settings
        self._passage_fields = self._fields("context", "passage", "document", "answer", "citation")
        self._query_fields = self._fields("query", "query_title")
        self._item_fields = self._fields("question", "nugget", "statement")
        self._open_fields = self._fields("nuggets", "nuggets_length", "item", *self._item_fields)
        self._setting_fields = {name: value for name, value in settings.fields.items() if name in prompt.fields}
        # A passage is shown with each of its items, and its chunks with each replicate.
        self.frame = functools.lru_cache(maxsize=8)(self._make_frame)

    def _fields(self, *names: str) -> tuple[str, ...]:
        """Those of the names that are fields of the prompt."""
        return tuple(name for name in names if name in self.prompt.fields)

    @property
    def shows_query(self) -> bool:
        """Whether the text of the query is shown."""
        return bool(self._query_fields)

    @property
    def shows_documents(self) -> bool:
        """Whether documents are shown beside an answer."""
        return "documents" in self.prompt.fields

    @property
    def per_call(self) -> int | None:
        """How many items a call shows at most, each with its place; None where it is about one, or about a passage."""
        if self.prompt.parser == "label_list":
            return self._settings.nuggets_per_call
        if self._settings.items_per_call == 1:
            return None
        return sys.maxsize if self._settings.items_per_call == "all" else self._settings.items_per_call

    def batches(self, items: Sequence[RubricItem]) -> list[tuple[RubricItem, ...]]:
        """The items of a passage that are worked on together: all, or as many as a call shows."""
        size = min(self.per_call or sys.maxsize, max(1, len(items)))
        return [tuple(items[start : start + size]) for start in range(0, len(items), size)]

    def order(self, unit: Unit, replicate: int) -> tuple[RubricItem, ...]:
        """The order in which a call shows its items: that of the bank, or a seeded one for each replicate."""
        if self._settings.shuffle_seed is None or len(unit.items) < 2:
            return unit.items
        shuffled = list(unit.items)
        random.Random(f"{self._settings.shuffle_seed}/{unit.query_id}/{unit.doc_id}/{replicate}").shuffle(shuffled)
        return tuple(shuffled)

    def messages(self, unit: Unit, text: str, items: Sequence[RubricItem]) -> tuple[Message, ...]:
        """The messages about a passage's text, or a piece of it, with some items."""
        together = self._asked_together is not None and len(items) > 1
        return self.frame(unit.query_id, unit.query_text, text, together).messages(self.item_values(items))

    def shown(self, text: str) -> str:
        """A passage's text as the messages show it: longer, where lines would forge the prompt's own delimiters."""
        return max((self.prompt.shown(name, text) for name in self._passage_fields), key=len, default=text)

    def item_values(self, items: Sequence[RubricItem]) -> Mapping[str, str]:
        """The values of the fields that show the items."""
        if self.prompt.parser == "label_list":
            shown = list_text((item.text for item in items), self.prompt.lists)
            return {"nuggets": shown, "nuggets_length": str(len(items))}
        if not items:
            return {}
        if self._asked_together is not None and len(items) > 1:
            return dict.fromkeys(self._item_fields, numbered(items))
        item = items[0]
        values = dict.fromkeys(self._item_fields, item.text)
        if "item" in self.prompt.fields:
            values["item"] = "\n".join(" ".join(line.split()) for line in (item.text, *item.gold_answers))
        return values

    def _make_frame(self, query_id: str, query_text: str, text: str, together: bool = False) -> Frame:
        """The prompt about a passage, its items left open."""
        values: dict[str, object] = dict.fromkeys(self._passage_fields, text)
        if self.shows_documents:
            values["documents"] = self._settings.documents.get(query_id) or NO_DOCUMENTS
        values.update(self._setting_fields)
        for name in self._query_fields:
            values[name] = query_text
        asked = self._asked_together if together and self._asked_together else self._asked
        return asked.frame(values, self._open_fields)


def _explaining(prompt: Prompt) -> Prompt:
    """The prompt with a last line that asks for a reason before the grade."""
    labels = prompt.reply_labels or prompt.labels
    line = (
        'Reply with one JSON object and nothing else: {"reason": "one or two sentences", "grade": "…"}. '
        f"The reason comes first; the grade is one of {', '.join(labels)}."
    )
    return dataclasses.replace(prompt, text=f"{prompt.text.rstrip()}\n\n{line}\n")
