"""The settings of a kind of model: wrong ones are named, and none passes for a generation option of a request."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Collection, Iterable

from rubric_measures.backends.base import Backend
from rubric_measures.base.errors import InputError, UnknownNameError

__all__ = ["check_options", "refuse_settings"]

# What a request says by itself, and the parameter that says it: as an option it would take that one's place.
_SAID_ELSEWHERE = {
    "best_of": "replicates", "echo": "", "extra_body": "", "max_completion_tokens": "max_tokens",
    "max_new_tokens": "max_tokens", "messages": "prompt", "model": "model", "n": "replicates", "prompt": "prompt",
    "stream": "",
}  # fmt: skip
# The usual options of endpoints. They may know others, so only what is almost one of these is taken for a slip.
_KNOWN = frozenset({
    "chat_template_kwargs", "frequency_penalty", "grammar", "json_schema", "logit_bias", "logprobs", "max_tokens",
    "min_p", "min_tokens", "num_ctx", "presence_penalty", "reasoning_effort", "reasoning_format", "repetition_penalty",
    "response_format", "seed", "stop", "temperature", "top_k", "top_logprobs", "top_p",
})  # fmt: skip
_ALMOST = 0.87  # `seeds` is almost `seed` (0.89), `top_probs` is not `top_logprobs` (0.86)


def _settings_of(maker: type) -> set[str]:
    """The arguments with a default of a class of backends, those of the classes above it included."""
    return {
        name
        for one in maker.__mro__
        if "__init__" in vars(one)
        for name, parameter in inspect.signature(vars(one)["__init__"]).parameters.items()
        if parameter.default is not parameter.empty
    }


def check_options(model: str, maker: type, given: Iterable[str]) -> None:
    """Refuses settings that a class of backends does not have (see `_settings_of`).

    Raises:
        UnknownNameError: one of them is no setting.
    """
    known = _settings_of(maker)
    for name in given:
        if name not in known:
            raise UnknownNameError("option", name, known, hint=f"(of the model {model!r})")


def refuse_settings(backend: Backend, given: Collection[str]) -> None:
    """Refuses generation options that are settings of the model's backend, that a request says by itself, or misspelt.

    A request's option of such a name would stand in its key and in the record, and change nothing: the backend computes
    as it was made, and endpoints ignore in silence what they do not know. Names like no known one are let through.

    Raises:
        InputError: one of them is a setting, or no name.
        UnknownNameError: one of them is almost the name of another one.
    """
    for name in given:
        if name in _SAID_ELSEWHERE:
            mends = [_SAID_ELSEWHERE[name]] if _SAID_ELSEWHERE[name] else ()
            raise InputError(
                f"{name} is no generation option of a reply: the request says it by itself", settings=mends
            )
        if not re.fullmatch(r"[^\W\d][\w.-]*", name):
            raise InputError(
                f"{name!r} is no name of a generation option; expected letters, digits, _ and -", settings=("option",)
            )
        plain = name.lower().replace("-", "_")
        if name not in _KNOWN and difflib.get_close_matches(plain, _KNOWN, 1, _ALMOST):
            raise UnknownNameError("generation option", plain, _KNOWN, hint=f"(given: {name})", settings=("option",))
    settings = _settings_of(type(getattr(backend, "backend", backend))) | set(backend.options)
    if wrong := sorted(settings.intersection(given)):
        raise InputError(f"{wrong[0]} is a setting of the model, not of a reply", settings=("model_option",))
