"""What a decoder keeps of the tokens before, and so which ways of putting prompts together change no reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rubric_measures.backends.hf.loading import one_line
from rubric_measures.base.errors import BackendError

__all__ = ["Memory", "memory_of"]

# Positions come from the attention mask.
_BY_MASK = frozenset({"bloom"})
# Positions are places, of which only distances count: padding at the beginning moves nothing, inside a row it would.
_BY_DISTANCE = frozenset({"mpt"})
_WAY_OUT = "serve it and use openai:NAME --base-url URL"
# Settings under which configurations say how far layers look back.
_WINDOWS = ("sliding_window", "attention_chunk_size", "window_size", "local_attention", "attention_window")


@dataclass(frozen=True)
class Memory:
    """How the layers of a decoder look back.

    Attributes:
        paddable: whether rows may be padded on the left. Where positions cannot be given to a model, only rows of one
            length make a batch.
        reach: how many places (padding included) a shared prefix, what follows it and the reply may have together.
            Layers with a window count places: the padding between the prefix and a shorter suffix would push the
            prefix's beginning out of it. None where all layers see everything; 0 where nothing can be shared.
        edge: longer rows than this are computed with other positions, all rows of their batch alike; None without one.
    """

    paddable: bool
    reach: int | None
    edge: int | None = None


def memory_of(network: Any, parameters: frozenset[str], model: str) -> Memory:
    """How a model's layers look back, from its configuration and from what it keeps of one token.

    Args:
        network: the model.
        parameters: the arguments of its forward pass.
        model: its name, for errors.

    Raises:
        BackendError: it is recurrent, wholly or in part; keeps something else than keys and values; or cannot compute
            one token.
    """
    import torch

    device = next(network.parameters()).device
    one = torch.ones((1, 1), dtype=torch.long, device=device)
    try:
        with torch.inference_mode():
            out = network(input_ids=one, attention_mask=one, use_cache=True)
    except Exception as error:
        raise BackendError(f"{model}: not one token can be computed: {one_line(error)}") from None
    cache = getattr(out, "past_key_values", None)
    if cache is None or not hasattr(cache, "layers") or any(map(_is_recurrent, cache.layers)):
        raise BackendError(f"{model}: recurrent models are not supported here; {_WAY_OUT}")
    if strange := [type(layer).__name__ for layer in cache.layers if not _is_plain(layer)]:
        raise BackendError(f"{model}: attention that keeps {strange[0]} is not supported here; {_WAY_OUT}")
    config = network.config.get_text_config()
    edge = _edge_of(config)
    placed = "position_ids" in parameters and not _starts_elsewhere(network)
    if not placed and config.model_type not in _BY_MASK:
        return Memory(config.model_type in _BY_DISTANCE, 0, edge)
    windows = [getattr(layer, "sliding_window", None) for layer in cache.layers]
    reaches = [reach for reach in (*_windows_of(config), *windows, edge) if reach is not None]
    return Memory(True, min(reaches, default=None), edge)


def _is_recurrent(layer: Any) -> bool:
    """Whether a layer keeps a state that every token changes, beside keys and values or in their place."""
    return any(hasattr(layer, name) for name in ("recurrent_states", "conv_states"))


def _is_plain(layer: Any) -> bool:
    """Whether a layer keeps the keys and values of all tokens, or of those in its window.

    What others keep (compressed or indexed tokens, or what later versions of the library bring) may depend on padding,
    and may not follow when rows of a batch are chosen.
    """
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    return type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) or type(layer).__name__ == "DummyLayer"


def _windows_of(config: Any) -> list[int]:
    """The windows that a configuration names; layers that ignore them only lose the sharing of long prefixes."""
    found = [getattr(config, name, None) for name in _WINDOWS]
    return [size for size in found if isinstance(size, int) and not isinstance(size, bool) and size > 0]


def _edge_of(config: Any) -> int | None:
    """Where rotary positions of the kind `longrope` change from the factors of short rows to those of long ones."""
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    if not isinstance(rope, Mapping) or rope.get("rope_type", rope.get("type")) != "longrope":
        return None
    edge = rope.get("original_max_position_embeddings") or getattr(config, "original_max_position_embeddings", None)
    return int(edge) if edge else None


def _starts_elsewhere(network: Any) -> bool:
    """Whether positions are counted from behind the padding token's (RoBERTa), which only the model itself does."""
    import torch

    return any(
        isinstance(module, torch.nn.Embedding) and module.padding_idx is not None and "position" in name
        for name, module in network.named_modules()
    )
