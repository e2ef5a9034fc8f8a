"""Reference answers to a test bank without a model: each sentence is a nugget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rubric_measures.base.words import sentence_ends
from rubric_measures.types.entities import RubricItem, TestBank, make_item_id

__all__ = ["reference_sentences"]


def reference_sentences(references: Mapping[str, Sequence[str]], texts: Mapping[str, str]) -> TestBank:
    """The sentences of reference answers as vital nuggets: what the reference says, a good answer has to say.

    Lines of a list are sentences, too, without their bullets. A sentence that comes twice is one nugget.

    Args:
        references: query id -> its reference answer, in one text or several.
        texts: query id -> the query.

    >>> bank = reference_sentences({"q1": ["Air scatters blue light. Eyes see little violet."]}, {})
    >>> [item.text for item in bank]
    ['Air scatters blue light.', 'Eyes see little violet.']
    """
    items: dict[str, tuple[RubricItem, ...]] = {}
    for query_id, parts in references.items():
        made: dict[str, RubricItem] = {}
        for sentence in (one for part in parts for line in part.splitlines() for one in _sentences(line)):
            item_id = make_item_id(query_id, sentence)
            made.setdefault(item_id, RubricItem(item_id, query_id, sentence, "nugget", importance="vital"))
        items[query_id] = tuple(made.values())
    return TestBank(items, {query_id: texts[query_id] for query_id in references if query_id in texts})


def _sentences(text: str) -> list[str]:
    text = text.strip().removeprefix("- ").removeprefix("* ").removeprefix("• ")
    found, start = [], 0
    for stop in sentence_ends(text):
        sentence = " ".join(text[start:stop].split())
        # Marks alone state nothing.
        if any(char.isalnum() for char in sentence):
            found.append(sentence)
        start = stop
    return found
