"""What a reply cache keeps of a Hugging Face model, so that its requests can be made again without it."""

from __future__ import annotations

from typing import Any

from rubric_measures.backends.replies.model_notes import ModelNote

__all__ = ["note_of"]

# What only some backends say of themselves, and others ask for.
_SAID = ("deterministic", "reads_prompts", "reply_shares_context")
_PROBES = (
    "The epidermis is the outer layer; 3.5 % of it, or 5-6?",
    " two  blanks\nand\ta tab ",
    "na\u00efve \u4e2d\u6587 \uff21 </s>",
)


def note_of(backend: Any) -> ModelNote:
    """The note of a Hugging Face backend: all that decides what requests it gets.

    Args:
        backend: a `HuggingFaceModel` of one of the three kinds.
    """
    kind = type(backend).__module__.rpartition("._")[2]
    shown = backend.context_tokens
    facts = {
        "control_ids": sorted(backend.control_ids),
        "control_tokens": list(backend.control_tokens),
        "kind": kind,
        "limit": backend.own_limit,
        "overhead": (backend.limit or shown) - shown if shown is not None else 0,
        "says": {name: getattr(backend, name) for name in _SAID if hasattr(backend, name)},
        "unlimited": kind == "extractive",
    }
    return ModelNote(backend.model, backend.options, facts, _tokenizer_json(backend))


def _tokenizer_json(backend: Any) -> str:
    """The tokenizer as text, where the text gives the same tokens: some have rules besides it."""
    own: Any = getattr(backend.tokenizer, "backend_tokenizer", None)
    if not hasattr(own, "to_str"):
        return ""
    text: str = own.to_str()
    again = type(own).from_str(text)
    again.no_truncation()
    again.no_padding()
    same = all(again.encode(probe, add_special_tokens=False).ids == backend.encode(probe) for probe in _PROBES)
    return text if same else ""
