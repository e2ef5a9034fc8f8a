"""Graders from a JSON-able description, for workers of clusters and for configuration files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rubric_measures.backends import make_backend
from rubric_measures.backends.replies.cache import ReplyCache
from rubric_measures.backends.replies.cached_model import make_cached_backend
from rubric_measures.base.errors import InputError
from rubric_measures.grading._grader import Grader
from rubric_measures.grading._settings import GradingSettings
from rubric_measures.runners import LocalRunner

__all__ = ["load_grader"]


def load_grader(spec: Mapping[str, Any] | str) -> Grader:
    """A grader from a JSON-able description, so that a worker of a cluster can make its own.

    Args:
        spec: a mapping or its JSON text: `model` (as on the command line), `model_options`, `prompts`, `settings` (the
            fields of `GradingSettings`), `cache` (a path, or null), `cache_only`.

    Raises:
        InputError: a field is unknown or missing, or has a wrong value.

    >>> from rubric_measures.grading import GradingTask
    >>> from rubric_measures.base.entities import RubricItem
    >>> grader = load_grader('{"model": "lexical", "prompts": ["LexicalCoverage"]}')
    >>> item = RubricItem("q/1", "q", "Outer layer of the skin?")
    >>> grader.grade([GradingTask("q", "d", "The epidermis is the outer layer of skin.", item)])[0].relevance
    5
    """
    try:
        fields = json.loads(spec) if isinstance(spec, str) else dict(spec)
    except ValueError as error:
        raise InputError(f"the grader's spec is no JSON ({error})") from None
    known = {"model", "model_options", "prompts", "settings", "cache", "cache_only"}
    if not isinstance(fields, dict) or "model" not in fields or set(fields) - known:
        raise InputError(f"a grader's spec is an object with model and perhaps {', '.join(sorted(known - {'model'}))}")
    settings_of_model = fields.get("model_options", {})
    if fields.get("cache_only"):
        backend = make_cached_backend(fields["model"], fields.get("cache"), **settings_of_model)
    else:
        backend = make_backend(fields["model"], **settings_of_model)
    cache = ReplyCache(fields["cache"]) if fields.get("cache") else None
    try:
        settings = GradingSettings(**fields.get("settings", {}))
    except TypeError as error:
        raise InputError(f"the grader's settings: {str(error).split('() ')[-1]}") from None
    runner = LocalRunner(backend, cache, cache_only=bool(fields.get("cache_only")))
    return Grader(runner, tuple(fields.get("prompts", ())), settings)
