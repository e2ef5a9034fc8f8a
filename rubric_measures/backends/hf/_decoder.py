"""Decoder-only models: chat template or plain text; a passage's keys and values are computed once for all its items."""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

from rubric_measures.backends.base import Message, Reply, Request
from rubric_measures.backends.hf._batching import by_length, one_line
from rubric_measures.backends.hf._decoding import DecoderState, Written, padded, selected_cache
from rubric_measures.backends.hf._replies import WritingJob, WritingModel, token_limit, written_reply
from rubric_measures.backends.hf.loading import ModelSource
from rubric_measures.backends.hf.text import chat_text, final_channel, markers_of, plain_text
from rubric_measures.base.errors import BackendError

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


_LEAST_SHARED = 16  # shorter prefixes are cheaper computed twice than kept


@dataclass(frozen=True)
class _DecoderJob(WritingJob):
    shared: int = 0

    @property
    def own(self) -> int:
        """How many tokens follow the shared prefix."""
        return len(self.ids) - self.shared


def common_prefix(rows: Sequence[tuple[int, ...]]) -> int:
    """How many tokens all rows begin with, leaving at least one token of each for itself.

    >>> common_prefix([(5, 6, 7), (5, 6, 8)]), common_prefix([(5, 6), (5, 6)])
    (2, 1)
    """
    low, high = min(rows), max(rows)  # what the least and the greatest share, all share
    shortest = min(len(row) for row in rows)
    same = next((place for place in range(min(len(low), len(high))) if low[place] != high[place]), shortest)
    return min(same, shortest - 1)


class _DecoderState:
    """Rows in the middle of decoding, with their keys and values."""

    def __init__(self, call: Any, cache: Any, mask: Any, logits: Any) -> None:
        self._call, self._cache, self._mask, self.logits = call, cache, mask, logits

    def step(self, tokens: Sequence[int]) -> None:
        import torch

        ids = torch.tensor(tokens, device=self._mask.device)[:, None]
        self._cache, self._mask, self.logits = self._call(ids, torch.ones_like(ids), self._mask, self._cache)

    def select(self, rows: Sequence[int]) -> _DecoderState:
        import torch

        chosen = torch.tensor(rows, device=self._mask.device)
        new = copy.copy(self)
        new._mask, new.logits = self._mask[chosen], self.logits[chosen]
        new._cache = selected_cache(self._cache, chosen)
        return new


class _Whole:
    """Rows that are computed anew, one by one, with every token: right whatever a model keeps of the tokens before."""

    def __init__(self, network: Any, rows: Sequence[tuple[int, ...]], logits: Any = None) -> None:
        self._network, self._rows = network, rows
        self.logits = self._computed() if logits is None else logits

    def _computed(self) -> Any:
        import torch

        device = self._network.device
        outs = [self._network(input_ids=torch.tensor([row], device=device), use_cache=False) for row in self._rows]
        return torch.cat([out.logits[:, -1].float() for out in outs])

    def step(self, tokens: Sequence[int]) -> None:
        self._rows = [(*row, token) for row, token in zip(self._rows, tokens, strict=True)]
        self.logits = self._computed()

    def select(self, rows: Sequence[int]) -> _Whole:
        return _Whole(self._network, [self._rows[row] for row in rows], self.logits[list(rows)])


class DecoderBackend(WritingModel):
    """Llama, Qwen, Mistral, GPT-2 and others of AutoModelForCausalLM.

    Messages go through the tokenizer's chat template; without one they are plain text, blank lines between them.
    Requests of one `group` stand next to each other: the longest token prefix that they share (the passage, in prompts
    that show it before the item) is computed once, and all its items continue from it as one batch. Where layers look
    back over a window only, that is done as far as prefix, item and reply fit into it. Prompts of models that keep
    anything else than keys and values are computed whole, one by one (see `Memory`).

    Mode `labels` (the default) takes, for requests with labels, the most probable of them:

        P(label) = Σ over its spellings of Π P(token | prompt, tokens before)

    that is, the probability that the reply *begins* with the label (with or without a blank before it). Where all
    labels together have less than `label_mass`, where one label begins another one ("1", "10"), and where a
    temperature is asked for, the reply is generated. Mode `generate` always generates. Generation takes the most
    probable token each time (or draws); penalties and sampling settings of the model's own generation config do not
    apply. Of a reply in channels (gpt-oss) the final one is the text; all of it is in `raw`. Plain-text models do not
    know where to end: with labels given, their replies end with the first line.

    Args:
        source: the model.
        mode: `labels` or `generate`.
        label_mass: the least probability of all labels together.
        thinking: whether models that can think before they reply do so (`enable_thinking` of the chat template).
        settings: see `HuggingFaceModel`.
    """

    auto_class = "AutoModelForCausalLM"

    def __init__(
        self,
        source: ModelSource,
        *,
        mode: str = "labels",
        label_mass: float = 0.8,
        thinking: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(source, mode=mode, label_mass=label_mass, **settings)
        self.thinking = thinking

    @property
    def options(self) -> Mapping[str, object]:
        """Device, dtype, revision, mode, thinking, and in mode `labels` the least mass."""
        mass = {"label_mass": self.label_mass} if self.mode == "labels" else {}
        return {**super().options, "mode": self.mode, "thinking": self.thinking, **mass}

    @cached_property
    def _chat(self) -> bool:
        return bool(self.tokenizer.chat_template)

    @property
    def context_tokens(self) -> int | None:
        """How many tokens messages and reply may have together: the model's limit less what the template adds."""
        if self.limit is None:
            return None
        return self.limit - self._overhead

    @cached_property
    def _overhead(self) -> int:
        return len(self._tokens((Message("user", "a"),)))

    @cached_property
    def _ends(self) -> frozenset[int]:
        found: set[int] = set()
        for ids in (self.network.generation_config.eos_token_id, self.tokenizer.eos_token_id):
            found.update(ids if isinstance(ids, list) else [] if ids is None else [ids])
        return frozenset(found)

    @cached_property
    def control_tokens(self) -> tuple[str, ...]:
        """The tokenizer's control tokens, and what else its chat template marks turns with (`[/INST]`)."""
        found = set(super().control_tokens)
        turns = (Message("user", ""), Message("assistant", ""), Message("user", ""))
        for messages in ((Message("system", ""), turns[0]), turns) if self._chat else ():
            # Some templates have no turns of an assistant, or no system messages.
            with contextlib.suppress(Exception):
                found |= markers_of(chat_text(self.tokenizer, messages, (), thinking=self.thinking))
        return tuple(sorted(found))

    def _tokens(self, messages: Sequence[Message]) -> list[int]:
        return self.prompt_tokens(messages, self._encoded)

    def _encoded(self, messages: Sequence[Message]) -> list[int]:
        control = self.control_tokens
        if self._chat:
            return self.encode(chat_text(self.tokenizer, messages, control, thinking=self.thinking))
        return self.encode(plain_text(messages, control), special=True)

    def _prepare(self, request: Request) -> _DecoderJob | Reply:
        self.check_options(request)
        ids = self._tokens(request.messages)
        limit = token_limit(request)
        if self.limit is not None and len(ids) + limit > self.limit:
            found = f"the prompt has {len(ids)} tokens and the reply may have {limit}"
            return Reply(None, "failed", f"{found}; the model takes {self.limit} together")
        if not ids:
            return Reply(None, "failed", "the prompt is empty")
        return _DecoderJob(request, tuple(ids), limit)

    @cached_property
    def _memory(self) -> Memory:
        return memory_of(self.network, self._parameters, self.model)

    def _plan(self, jobs: list[_DecoderJob]) -> Iterator[list[_DecoderJob]]:
        """Batches of groups that share a prefix, then batches of what stands alone."""
        groups: dict[object, list[_DecoderJob]] = {}
        for place, job in enumerate(jobs):
            groups.setdefault(job.request.group or place, []).append(job)
        alone: list[_DecoderJob] = []
        sharing: list[list[_DecoderJob]] = []
        for group in groups.values():
            length = common_prefix([job.ids for job in group]) if len(group) > 1 else 0
            shared = [replace(job, shared=length) for job in group]
            if length < _LEAST_SHARED or not self._in_reach(shared):
                alone += group
            else:
                sharing.append(shared)
        yield from self._sharing_batches(sharing)
        yield from ([job] for job in alone if self._is_whole(job))
        rest = (job for job in alone if not self._is_whole(job))
        yield from by_length(rest, lambda job: len(job.ids), self.batch_tokens)

    def _in_reach(self, jobs: Sequence[_DecoderJob]) -> bool:
        """Whether jobs may continue shared prefixes in one batch: no layer may lose sight of a beginning."""
        reply = max(self._reply_tokens(job) for job in jobs)
        return max(job.shared for job in jobs) + max(job.own for job in jobs) + reply <= self._memory.shared

    def _is_whole(self, job: _DecoderJob) -> bool:
        return not job.shared and len(job.ids) + self._reply_tokens(job) > self._memory.batched

    def _reply_tokens(self, job: _DecoderJob) -> int:
        """How many tokens may follow the prompt."""
        table = self._table(job.request)
        return max([job.limit, *(len(path) for paths in (table.paths if table else ()) for path in paths)])

    def _sharing_batches(self, groups: list[list[_DecoderJob]]) -> Iterator[list[_DecoderJob]]:
        batch: list[_DecoderJob] = []
        for group in sorted(groups, key=lambda group: -len(group[0].ids)):
            for start in range(0, len(group), most := max(1, self.batch_tokens // max(len(job.ids) for job in group))):
                wider = [*batch, *group[start : start + most]]
                longest = max(len(job.ids) for job in wider)
                if batch and (longest * len(wider) > self.batch_tokens or not self._in_reach(wider)):
                    yield batch
                    wider = wider[len(batch) :]
                batch = wider
        if batch:
            yield batch

    def _execute(self, jobs: Sequence[_DecoderJob]) -> list[Reply]:
        import torch

        with torch.inference_mode():
            return self._replies(jobs, self._begin(jobs))

    def _begin(self, jobs: Sequence[_DecoderJob]) -> DecoderState:
        """The state after the prompts; a prefix that several jobs share is computed once."""
        import torch

        if len(jobs) == 1 and self._is_whole(jobs[0]):
            return _Whole(self.network, [jobs[0].ids])
        prefixes = list(dict.fromkeys(job.ids[: job.shared] for job in jobs))
        if not all(prefixes):
            ids, mask = padded([job.ids for job in jobs], self.device, left=True)
            return _DecoderState(self._call, *self._call(ids, mask, None, None))
        ids, mask = padded(prefixes, self.device, left=True)
        cache, mask, _ = self._call(ids, mask, None, None)
        rows = torch.tensor([prefixes.index(job.ids[: job.shared]) for job in jobs], device=self.device)
        ids, suffix_mask = padded([job.ids[job.shared :] for job in jobs], self.device, left=True)
        return _DecoderState(self._call, *self._call(ids, suffix_mask, mask[rows], selected_cache(cache, rows)))

    def _call(self, ids: Any, new_mask: Any, old_mask: Any, cache: Any) -> tuple[Any, Any, Any]:
        """Continues rows by some tokens (padded on the left): cache, mask and the logits after the last token."""
        import torch

        mask = new_mask if old_mask is None else torch.cat([old_mask, new_mask], 1)
        places = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        arguments = {"input_ids": ids, "attention_mask": mask, "position_ids": places, "use_cache": True}
        if "logits_to_keep" in self._parameters:
            arguments["logits_to_keep"] = 1
        if cache is not None:
            arguments["past_key_values"] = cache
        out = self.network(**arguments)
        return out.past_key_values, mask, out.logits[:, -1].float()

    @cached_property
    def _parameters(self) -> frozenset[str]:
        return frozenset(inspect.signature(self.network.forward).parameters)

    def _spellings(self, label: str) -> tuple[tuple[int, ...], ...]:
        """The token sequences that a reply of this label may begin with: at once, or after a blank."""
        found = {tuple(self.encode(label)), tuple(self.encode(f" {label}"))}
        for before in ("Answer:", "\n"):
            stem = self.encode(before)
            for text in (label, f" {label}"):
                ids = self.encode(before + text)
                if ids[: len(stem)] == stem:
                    found.add(tuple(ids[len(stem) :]))
        found.discard(())
        # A sequence that begins with another one of the same label is contained in it.
        return tuple(sorted(ids for ids in found if not any(ids[:size] in found for size in range(1, len(ids)))))

    def _is_over(self, job: _DecoderJob, tokens: Sequence[int]) -> bool:
        return not self._chat and bool(job.request.labels) and "\n" in self._text(tokens).lstrip()

    def _reply(self, job: _DecoderJob, written: Written) -> Reply:
        text = self._text(written.tokens)
        if not self._channels:
            return written_reply(text.strip(), written, len(job.ids))
        # The marks between what the model thinks and its answer are control tokens.
        whole = self.tokenizer.decode(list(written.tokens), skip_special_tokens=False)
        reply = written_reply(final_channel(whole, text).strip(), written, len(job.ids))
        return replace(reply, raw={**reply.raw, "whole": whole})

    @cached_property
    def _channels(self) -> bool:
        """Whether the model writes in channels (gpt-oss)."""
        return {"<|channel|>", "<|message|>"} <= set(super().control_tokens)

    def _text(self, tokens: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(list(tokens), skip_special_tokens=True)
        return text
