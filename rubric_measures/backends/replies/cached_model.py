"""Grading from the cache without the model: a Hugging Face model as the reply cache knows it."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from rubric_measures.backends import make_backend
from rubric_measures.backends.base import Backend, Reply, Request
from rubric_measures.backends.hf.choosing import backend_class
from rubric_measures.backends.hf.text import shown_length
from rubric_measures.backends.options import check_options
from rubric_measures.backends.replies.cache import ReplyCache
from rubric_measures.backends.replies.model_notes import ModelNote
from rubric_measures.base.errors import BackendError, InputError, MissingExtraError
from rubric_measures.base.extras import require

__all__ = ["CachedModel", "make_cached_backend"]

_LOG = logging.getLogger("rubric_measures")


class CachedModel:
    """Makes the requests that a model was asked before, with its setting `context`; it answers none."""

    def __init__(self, note: ModelNote, context: int | None = None) -> None:
        self.note, self._context = note, context

    def __getattr__(self, name: str) -> Any:
        # What only some backends say of themselves (`deterministic`, `reads_prompts`, …).
        said: Mapping[str, Any] = self.__dict__["note"].facts.get("says", {})
        if name not in said:
            raise AttributeError(name)
        return said[name]

    @property
    def model(self) -> str:
        """As in the cache."""
        return self.note.model

    @property
    def options(self) -> Mapping[str, object]:
        """As in the cache: device and dtype are those that the replies were computed with."""
        return self.note.options

    @property
    def context_tokens(self) -> int | None:
        """As the model has it."""
        facts: Mapping[str, Any] = self.note.facts
        limit = self._context or facts["limit"]
        return None if facts["unlimited"] or limit is None else limit - facts["overhead"]

    @cached_property
    def _tokenizer(self) -> Any:
        if not self.note.tokenizer:
            raise BackendError(
                f"{self.model}: a cache cannot hold its kind of tokenizer, which cuts long passages; "
                "the model's tokenizer and configuration are needed here (not its weights)"
            )
        try:
            tokenizer = require("tokenizers", "hf").Tokenizer.from_str(self.note.tokenizer)
        except MissingExtraError:
            raise MissingExtraError(f"counting the tokens of {self.model}", "hf") from None
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    def count_tokens(self, text: str) -> int:
        """As the model counts."""
        tokenizer, facts = self._tokenizer, self.note.facts
        controls: Any = facts["control_ids"]

        def encode(shown: str) -> list[int]:
            ids: list[int] = tokenizer.encode(shown, add_special_tokens=False).ids
            return ids

        def spans(shown: str) -> list[tuple[int, int]]:
            found = tokenizer.encode(shown, add_special_tokens=False)
            return [span for token, span in zip(found.ids, found.offsets, strict=True) if token in controls]

        control: Any = facts["control_tokens"]
        return shown_length(text, control, controls, encode, spans)

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Answers nothing.

        Raises:
            BackendError: always.
        """
        raise BackendError(f"{self.model}: only its replies in the cache are here", settings=("cache_only",))


def make_cached_backend(spec: str, cache: str | os.PathLike[str] | None, **options: Any) -> Backend:
    """The backend for a run that makes no call.

    For models of Hugging Face it is the one whose replies the cache has, also where the model itself, its device or
    the library is not there, or its files are others; of several in the cache, `options` say which. All others are
    made as ever.

    Raises:
        InputError: the cache has replies of several such models.
        BackendError: the model is neither in the cache nor here.
        MissingExtraError: the same, where the library is missing.
    """
    if not spec.startswith("hf:") or cache is None or not Path(cache).is_file():
        return make_backend(spec, **options)
    name = os.fspath(cache)
    with ReplyCache(cache, read_only=True) as opened:
        noted = [note for note in opened.model_notes() if note.model in (spec, f"{spec}@main")]
    fitting = [note for note in noted if _fits(note, spec, options)]
    if not fitting:
        return _made_here(spec, name, noted, options)
    with contextlib.suppress(BackendError, MissingExtraError):
        here = make_backend(spec, **options)
        if any((note.model, dict(note.options)) == (here.model, dict(here.options)) for note in fitting):
            return here
    if len(fitting) > 1:
        ways = f"{name} has replies of {spec} made in several ways: {_all(fitting)}"
        if choice := [setting for setting in _differing(fitting) if setting != "revision"]:
            raise InputError(f"{ways}; choose one by {choice[0]}", settings=("model_option",))
        raise InputError(f"{ways}; bring the model's files here, so that one of these revisions is chosen")
    _LOG.warning("%s: from the cache, as it replied with %s", spec, _list(fitting[0].options))
    context = options.get("context")
    return CachedModel(fitting[0], int(context) if context is not None else None)


def _made_here(spec: str, cache: str, noted: list[ModelNote], options: dict[str, Any]) -> Backend:
    """The backend of a model that the cache does not know, or not so."""
    try:
        return make_backend(spec, **options)
    except (BackendError, MissingExtraError) as error:
        if noted:
            raise InputError(f"{cache} has no replies of {spec} with {_list(options)}; it has {_all(noted)}") from None
        if isinstance(error, MissingExtraError):
            raise
        hint = f"{cache} does not know the model, so its configuration and tokenizer are needed here"
        raise BackendError(f"{error}; {hint}") from None


def _fits(note: ModelNote, spec: str, options: Mapping[str, object]) -> bool:
    check_options(spec, backend_class(str(note.facts["kind"])), options)
    wanted = {name: value for name, value in options.items() if name in note.options and value != "auto"}
    return all(note.options[name] == value for name, value in wanted.items())


def _list(options: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(options.items())) or "no settings"


def _differing(notes: list[ModelNote]) -> list[str]:
    names = sorted({name for note in notes for name in note.options})
    return [name for name in names if len({str(note.options.get(name)) for note in notes}) > 1]


def _all(notes: list[ModelNote]) -> str:
    names = _differing(notes) or sorted(notes[0].options)
    return "; ".join(_list({name: note.options.get(name) for name in names}) for note in notes)
