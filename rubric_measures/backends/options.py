"""The settings of a kind of model: wrong ones are named, and none passes for a generation option of a request."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Collection, Iterable

from rubric_measures.backends.base import Backend
from rubric_measures.errors import InputError, UnknownNameError

__all__ = ["check_options", "refuse_settings"]

# What a request says by itself: as an option it would be sent in place of that, and the records would not know.
_SAID_ELSEWHERE = {
    "best_of": "--replicates",
    "echo": "nothing: replies come without their prompts",
    "extra_body": "each of its fields in an --option of its own",
    "max_completion_tokens": "--max-tokens",
    "max_new_tokens": "--max-tokens",
    "messages": "--prompt",
    "model": "--model",
    "n": "--replicates",
    "prompt": "--prompt",
    "stream": "nothing: replies come whole",
}
# Options that endpoints and models know, for names that are almost one of them; they may know others.
_KNOWN = (
    "allowed_token_ids", "bad_words", "chat_template_kwargs", "frequency_penalty", "grammar", "guided_regex",
    "ignore_eos", "length_penalty", "logit_bias", "logprobs", "max_tokens", "min_p", "min_tokens", "mirostat",
    "num_ctx", "options", "parallel_tool_calls", "presence_penalty", "prompt_cache_key", "prompt_logprobs",
    "reasoning", "reasoning_effort", "repeat_penalty", "repetition_penalty", "response_format", "safety_identifier",
    "seed", "service_tier", "skip_special_tokens", "stop", "stop_token_ids", "store", "structured_outputs",
    "temperature", "thinking", "tool_choice", "tools", "top_a", "top_k", "top_logprobs", "top_n_tokens", "top_p",
    "truncate_prompt_tokens", "typical_p", "use_beam_search", "user", "verbosity",
)  # fmt: skip
_ALMOST = 0.85


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
    """Refuses settings that a class of backends does not have.

    Args:
        model: the model as the user wrote it.
        maker: the class; see `_settings_of`.
        given: the names that the user gave.

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

    Args:
        backend: the backend, or a stand-in that holds it as `backend`.
        given: the names of the generation options.

    Raises:
        InputError: one of them is a setting, or no name.
        UnknownNameError: one of them is almost the name of another one.
    """
    for name in given:
        if name in _SAID_ELSEWHERE:
            raise InputError(f"--option {name}: is no generation option of a reply; say {_SAID_ELSEWHERE[name]}")
        if not re.fullmatch(r"[^\W\d][\w.-]*", name):
            raise InputError(f"--option {name!r}: is no name; expected NAME=VALUE without blanks")
        plain = name.lower().replace("-", "_")
        if name not in _KNOWN and difflib.get_close_matches(plain, _KNOWN, n=1, cutoff=_ALMOST):
            raise UnknownNameError("generation option", plain, _KNOWN, hint=f"(--option {name})")
    settings = _settings_of(type(getattr(backend, "backend", backend))) | set(backend.options)
    if wrong := sorted(settings.intersection(given)):
        raise InputError(
            f"--option {wrong[0]}: is a setting of the model, not of a reply; say --model-option {wrong[0]}=VALUE"
        )
