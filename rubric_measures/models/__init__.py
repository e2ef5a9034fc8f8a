"""Models behind one method: complete(requests) -> replies; the store of replies; runners."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.base.plugins import Registry
from rubric_measures.base.tables import Table, columns
from rubric_measures.models.base import Backend, Reply, ReplyStatus, Request, check_options
from rubric_measures.types.scales import Message

__all__ = ["BACKENDS", "Backend", "Message", "Reply", "ReplyStatus", "Request", "make_backend"]


# Kind of model -> what makes its backend: a function of the name behind the colon, where the kind has one, and of the
# kind's settings. A new kind is a file, and a line here or an entry point of another package.
BACKENDS: Registry[Callable[..., Backend]] = Registry(
    "rubric_measures.backends",
    "model kind",
    {
        "lexical": "rubric_measures.models.lexical:LexicalBackend",
        "scripted": "rubric_measures.models.lexical:make_scripted",
        "hf": "rubric_measures.models.hf:make_hf",
        "litellm": "rubric_measures.models.openai:LiteLLM",
        "openai": "rubric_measures.models.openai:OpenAICompatible",
    },
    # What is no function is refused as one with other arguments is.
    lambda _, found: found,
)


def make_backend(spec: str, **options: Any) -> Backend:
    """The backend of a name as the command line writes it.

    Args:
        spec: `lexical`, `scripted:FILE`, `hf:google/flan-t5-large`, `openai:gpt-4o`, or `KIND:NAME` of a plug-in.
        options: settings of the kind of backend (`base_url`, `dtype`, `concurrency`, …); see the backends.

    Raises:
        UnknownNameError: there is no such kind, or this kind does not have an option.
        InputError: the name behind the colon is missing, or an option has a value that makes no sense.
        MissingExtraError: the kind needs an optional dependency.
        PlugInError: the kind is a plug-in's that cannot be used.
    """
    kind, _, name = spec.partition(":")
    try:
        make = BACKENDS[kind]
    except UnknownNameError:
        raise UnknownNameError("model", spec, BACKENDS, hint="(write KIND:NAME, as openai:gpt-4o)") from None
    # Each kind is imported where it is asked for, so that nobody pays for another one's dependencies.
    if isinstance(make, type):
        check_options(spec, make, options)
    given = (name,) if name else ()
    try:
        inspect.signature(make).bind(*given, **options)
    except TypeError as error:
        said = str(error).replace("too many positional arguments", f"{kind} takes no name")
        raise InputError(f"model {spec!r}: {said}") from None
    return make(*given, **options)


def model_table() -> Table:
    """The kinds of models, each with the first line of what makes it."""
    said = {kind: (inspect.getdoc(BACKENDS[kind]) or "").partition("\n")[0] for kind in BACKENDS}
    return Table(columns(["model", "what it is"], left=2), [[kind, what] for kind, what in said.items()])
