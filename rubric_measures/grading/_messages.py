"""How a prompt shows passages and items: the messages of a call, made from texts and settings alone."""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping, Sequence

from rubric_measures.backends.base import Message
from rubric_measures.base.entities import RubricItem
from rubric_measures.grading._outcomes import Unit
from rubric_measures.grading._settings import GradingSettings
from rubric_measures.prompts import Prompt, list_text
from rubric_measures.prompts.frames import Frame

__all__ = ["NO_DOCUMENTS", "Showing"]

NO_DOCUMENTS = "(no documents are shown)"


class Showing:
    """Fills the fields of a prompt; what it makes follows from its arguments, so that records can be read back.

    Args:
        prompt: the prompt.
        settings: the values of its settings, the documents, and how items are ordered and shown together.

    Attributes:
        prompt: the prompt.
    """

    def __init__(self, prompt: Prompt, settings: GradingSettings) -> None:
        self.prompt = prompt
        self._settings = settings
        self._passage_fields = self._fields("context", "passage", "document", "answer")
        self._query_fields = self._fields("query", "query_title")
        self._item_fields = self._fields("question", "nugget")
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

    def batches(self, items: Sequence[RubricItem]) -> list[tuple[RubricItem, ...]]:
        """The items of a passage that are worked on together: all, or as many as a label list shows."""
        size = self._settings.nuggets_per_call if self.prompt.parser == "label_list" else max(1, len(items))
        return [tuple(items[start : start + size]) for start in range(0, len(items), size)]

    def order(self, unit: Unit, replicate: int) -> tuple[RubricItem, ...]:
        """The order in which a label list shows its items: that of the bank, or a seeded one for each replicate."""
        if self._settings.shuffle_seed is None or len(unit.items) < 2:
            return unit.items
        shuffled = list(unit.items)
        random.Random(f"{self._settings.shuffle_seed}/{unit.query_id}/{unit.doc_id}/{replicate}").shuffle(shuffled)
        return tuple(shuffled)

    def messages(self, unit: Unit, text: str, items: Sequence[RubricItem]) -> tuple[Message, ...]:
        """The messages about a passage's text, or a piece of it, with some items."""
        return self.frame(unit.query_id, unit.query_text, text).messages(self.item_values(items))

    def shown(self, text: str) -> str:
        """A passage's text as the messages show it: longer, where lines would forge the prompt's own delimiters."""
        return max((self.prompt.shown(name, text) for name in self._passage_fields), key=len, default=text)

    def item_values(self, items: Sequence[RubricItem]) -> Mapping[str, str]:
        """The values of the fields that show the items."""
        if self.prompt.parser == "label_list":
            return {"nuggets": list_text(item.text for item in items), "nuggets_length": str(len(items))}
        if not items:
            return {}
        item = items[0]
        values = dict.fromkeys(self._item_fields, item.text)
        if "item" in self.prompt.fields:
            values["item"] = "\n".join(" ".join(line.split()) for line in (item.text, *item.gold_answers))
        return values

    def _make_frame(self, query_id: str, query_text: str, text: str) -> Frame:
        """The prompt about a passage, its items left open."""
        values: dict[str, object] = dict.fromkeys(self._passage_fields, text)
        if self.shows_documents:
            values["documents"] = self._settings.documents.get(query_id) or NO_DOCUMENTS
        values.update(self._setting_fields)
        for name in self._query_fields:
            values[name] = query_text
        return self.prompt.frame(values, self._open_fields)
