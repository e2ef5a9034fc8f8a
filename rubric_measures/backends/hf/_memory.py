"""What a decoder keeps of the tokens before, and so which prompts may be computed together without changing a reply."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

from rubric_measures.backends.hf._batching import one_line
from rubric_measures.base.errors import BackendError

__all__ = ["Memory", "memory_of"]

# What layers keep that remember the keys and values of all tokens, of those in their window, or another layer's.
_PLAIN = {"DynamicLayer", "DynamicSlidingWindowLayer", "DummyLayer"}
# Settings under which configurations say how far layers look back.
_WINDOWS = ("sliding_window", "attention_chunk_size", "window_size", "local_attention", "attention_window")


class Memory(NamedTuple):
    """How the layers of a decoder look back.

    Attributes:
        batched: longer prompts (with their replies) than this are computed whole, one by one; 0 where all are.
        shared: how many places a shared prefix, what follows it and the reply may have together. Layers with a window
            count places: padding in between would push the prefix's beginning out of it.
    """

    batched: float = inf
    shared: float = inf


def memory_of(network: Any, parameters: frozenset[str], model: str) -> Memory:
    """How a model's layers look back, by its configuration and by what it keeps of one token.

    Prompts are put together only where all layers are known to keep plain keys and values, and positions can be given.

    Raises:
        BackendError: it cannot compute one token.
    """
    import torch

    one = torch.ones((1, 1), dtype=torch.long, device=next(network.parameters()).device)
    try:
        with torch.inference_mode():
            cache = getattr(network(input_ids=one, attention_mask=one), "past_key_values", None)
    except Exception as error:
        raise BackendError(f"{model}: not one token can be computed: {one_line(error)}") from None
    layers = getattr(cache, "layers", None)
    if not layers or any(type(layer).__name__ not in _PLAIN for layer in layers):
        return Memory(0, 0)
    if "position_ids" not in parameters or _starts_elsewhere(network):
        return Memory(0, 0)
    config = network.config.get_text_config()
    windows = [getattr(config, name, None) for name in _WINDOWS] + [
        getattr(layer, "sliding_window", None) for layer in layers
    ]
    edge = _edge_of(config)
    return Memory(edge, min([edge, *(size for size in windows if type(size) is int and size > 0)]))


def _edge_of(config: Any) -> float:
    """Where rotary positions of the kind `longrope` change for all rows that are computed with a long one."""
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") != "longrope":
        return inf
    name = "original_max_position_embeddings"
    edge: float = rope.get(name, getattr(config, name, 0))
    return edge


def _starts_elsewhere(network: Any) -> bool:
    """Whether positions are counted from behind the padding token's (RoBERTa), which only the model itself does."""
    import torch

    return any(
        isinstance(module, torch.nn.Embedding) and module.padding_idx is not None and "position" in name
        for name, module in network.named_modules()
    )
