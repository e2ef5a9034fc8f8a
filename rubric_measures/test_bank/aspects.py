"""The test bank of a prompt that grades aspects of answers: each aspect is a rubric item of every query."""

from __future__ import annotations

from collections.abc import Mapping

from rubric_measures.base.entities import RubricItem, TestBank, make_item_id
from rubric_measures.base.errors import InputError
from rubric_measures.prompts import load_prompt

__all__ = ["aspect_bank"]


def aspect_bank(query_texts: Mapping[str, str], prompt: str = "ragelo.answer_pointwise") -> TestBank:
    """A bank whose items are the aspects that a prompt grades (`relevance`, `accuracy`, …), for each query.

    So each aspect has a grade of its own, and leaderboards, agreement and reports work as for any other bank.

    Args:
        query_texts: query_id -> text.
        prompt: the prompt's name or .toml file.

    Raises:
        InputError: the prompt does not grade aspects.

    >>> [item.text for item in aspect_bank({"q1": "What is ice?"})]
    ['relevance', 'accuracy', 'completeness', 'precision']
    """
    loaded = load_prompt(prompt)
    if loaded.parser != "aspects":
        raise InputError(f"prompt {prompt} does not grade aspects; name a test bank")
    items = {
        query_id: tuple(RubricItem(make_item_id(query_id, label), query_id, label) for label in loaded.labels)
        for query_id in query_texts
    }
    return TestBank(items, dict(query_texts))
