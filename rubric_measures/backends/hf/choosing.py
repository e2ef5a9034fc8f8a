"""The backend `hf:NAME[@revision]`: which kind of Hugging Face model a name is, and the backend for it."""

from __future__ import annotations

import importlib
from typing import Any

from rubric_measures.backends.base import Backend
from rubric_measures.backends.hf.loading import ModelSource, find_source
from rubric_measures.backends.options import check_options
from rubric_measures.base.errors import BackendError

__all__ = ["make", "model_kind"]

_KINDS = {"seq2seq": "Seq2SeqBackend", "decoder": "DecoderBackend", "extractive": "ExtractiveBackend"}


def make(name: str, **options: Any) -> Backend:
    """The backend of a model of the hub (or of a folder), by its architecture; see its class for the options.

    Only the configuration is read here; tokenizer and weights are loaded when they are first used, so a run that is
    answered from the cache needs no weights.

    Raises:
        MissingExtraError: transformers or torch is not installed.
        BackendError: the model does not exist, cannot be fetched, or is of a kind that writes no answers.
        UnknownNameError: models of this kind do not have an option.
        InputError: an option has a value that makes no sense.
    """
    source = find_source(name)
    kind = model_kind(source)
    maker = getattr(importlib.import_module(f"rubric_measures.backends.hf._{kind}"), _KINDS[kind])
    check_options(f"hf:{name}", maker, options)
    backend: Backend = maker(source, **options)
    return backend


def model_kind(source: ModelSource) -> str:
    """`seq2seq`, `decoder` or `extractive`, by the architecture in the configuration.

    Raises:
        BackendError: the model is none of them.
    """
    from transformers import AutoModelForCausalLM

    config = source.config
    names = list(getattr(config, "architectures", None) or [])
    if any(name.endswith("ForQuestionAnswering") for name in names):
        return "extractive"
    if getattr(config, "is_encoder_decoder", False):
        return "seq2seq"
    writes = any(name.endswith(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")) for name in names)
    if (writes or not names) and type(config) in AutoModelForCausalLM._model_mapping:
        return "decoder"
    found = ", ".join(names) or type(config).__name__
    raise BackendError(
        f"{source.model}: {found} writes no answers; expected a sequence-to-sequence, a decoder-only or an extractive "
        "question-answering model"
    )
