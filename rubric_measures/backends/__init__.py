"""Models behind one method: complete(requests) -> replies; and the reply cache."""

from __future__ import annotations

import importlib
from typing import Any

from rubric_measures.backends.base import Backend, Message, Reply, ReplyStatus, Request
from rubric_measures.backends.options import check_options
from rubric_measures.base.errors import InputError, UnknownNameError

__all__ = ["BACKEND_KINDS", "Backend", "Message", "Reply", "ReplyStatus", "Request", "make_backend"]

# kind -> what stands behind the colon
BACKEND_KINDS = {"lexical": "", "scripted": "FILE", "hf": "NAME", "openai": "NAME"}


def make_backend(spec: str, **options: Any) -> Backend:
    """The backend of a name as the command line writes it.

    Args:
        spec: `lexical`, `scripted:FILE`, `hf:google/flan-t5-large`, `openai:gpt-4o`.
        options: settings of the kind of backend (`base_url`, `dtype`, `concurrency`, …); see the backends.

    Raises:
        UnknownNameError: there is no such kind, or this kind does not have an option.
        InputError: the name behind the colon is missing, or an option has a value that makes no sense.
        MissingExtraError: the kind needs an optional dependency.
    """
    kind, _, name = spec.partition(":")
    if kind not in BACKEND_KINDS:
        known = [f"{known}:{what}" if what else known for known, what in BACKEND_KINDS.items()]
        raise UnknownNameError("model", spec, known, hint="(a model is named KIND or KIND:NAME)")
    if bool(name) != bool(BACKEND_KINDS[kind]):
        wanted = f"{kind}:{BACKEND_KINDS[kind]}" if BACKEND_KINDS[kind] else kind
        raise InputError(f"model {spec!r}: expected {wanted}")
    return _make(kind, name, options)


def _make(kind: str, name: str, options: dict[str, Any]) -> Backend:
    # Each kind is imported where it is asked for, so that nobody pays for another one's dependencies.
    if kind == "lexical":
        from rubric_measures.backends._lexical import LexicalBackend

        check_options("lexical", LexicalBackend, options)
        return LexicalBackend()
    if kind == "scripted":
        from rubric_measures.backends._scripted import ScriptedBackend

        check_options(f"scripted:{name}", ScriptedBackend, options)
        return ScriptedBackend.from_file(name, **options)
    module = {"hf": "hf._choosing", "openai": "openai._backend"}[kind]
    backend: Backend = importlib.import_module(f"rubric_measures.backends.{module}").make(name, **options)
    return backend
