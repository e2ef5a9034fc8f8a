"""Families of models: which runs are made by relatives of the grader, that may favour them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

__all__ = ["family_of", "relatives"]

# Family -> how names of its models begin, behind the provider. What begins otherwise is of no known family.
_STEMS: Mapping[str, tuple[str, ...]] = {
    "claude": ("claude",),
    "command": ("command", "c4ai", "aya"),
    "deepseek": ("deepseek",),
    "flan-t5": ("flan", "t5-"),
    "gemini": ("gemini", "gemma", "palm"),
    "gpt": ("gpt", "chatgpt", "o1", "o3", "o4", "text-davinci", "davinci"),
    "grok": ("grok",),
    "llama": ("llama", "meta-llama", "vicuna", "alpaca"),
    "mistral": ("mistral", "mixtral", "ministral", "codestral", "magistral"),
    "nova": ("nova",),
    "olmo": ("olmo", "tulu"),
    "phi": ("phi",),
    "qwen": ("qwen", "qwq"),
}


def family_of(model: str) -> str | None:
    """The family of a model's name, by the vendor's stem; None where it is not known, which claims nothing.

    >>> family_of("openai:gpt-4o"), family_of("meta-llama/Llama-3.1-70B-Instruct"), family_of("my-model")
    ('gpt', 'llama', None)
    """
    name = re.split(r"[/:]", model.strip().lower())
    # A release may stand behind a colon (`llama3:70b`), the provider before one or a slash.
    for part in reversed(name):
        for family, stems in _STEMS.items():
            if any(re.match(rf"{re.escape(stem)}(?![a-z])" if stem != "t5-" else stem, part) for stem in stems):
                return family
    return None


def relatives(made_by: Mapping[str, str], graders: Iterable[str]) -> dict[str, list[str]]:
    """Family -> the runs whose model is of the family of a grader's model; empty where there is none.

    Args:
        made_by: run -> model.
        graders: the names of the models that graded.
    """
    known = {family_of(grader) for grader in graders} - {None}
    found: dict[str, list[str]] = {}
    for run, model in made_by.items():
        family = family_of(model)
        if family is not None and family in known:
            found.setdefault(family, []).append(run)
    return found
