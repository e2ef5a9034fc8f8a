"""Decoder-only models: chat template or plain text."""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from rubric_measures.backends.base import Message, Reply, Request
from rubric_measures.backends.hf._batching import by_length, padded
from rubric_measures.backends.hf._writing import Tokens, WritingJob, WritingModel, Written, token_limit, written_reply
from rubric_measures.backends.hf.loading import ModelSource
from rubric_measures.backends.hf.text import chat_text, final_channel, markers_of, plain_text


class DecoderBackend(WritingModel):
    """Llama, Qwen, Mistral, GPT-2 and others of AutoModelForCausalLM.

    Messages go through the tokenizer's chat template; without one they are plain text, blank lines between them.

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

    def _load_network(self) -> Any:
        from transformers import GenerationConfig

        network = super()._load_network()
        # Without penalties and sampling settings of its own.
        network.generation_config = GenerationConfig(eos_token_id=network.generation_config.eos_token_id)
        return network

    @property
    def options(self) -> Mapping[str, object]:
        """Device, dtype, revision, mode, thinking, and in mode `labels` the least mass."""
        return {**super().options, "thinking": self.thinking}

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

    def _prepare(self, request: Request) -> WritingJob | Reply:
        self.check_options(request)
        ids = self._tokens(request.messages)
        limit = token_limit(request)
        if self.limit is not None and len(ids) + limit > self.limit:
            found = f"the prompt has {len(ids)} tokens and the reply may have {limit}"
            return Reply(None, "failed", f"{found}; the model takes {self.limit} together")
        if not ids:
            return Reply(None, "failed", "the prompt is empty")
        return WritingJob(request, tuple(ids), limit)

    def _plan(self, jobs: list[WritingJob]) -> Iterator[list[WritingJob]]:
        return by_length(jobs, lambda job: len(job.ids), self.batch_tokens)

    @cached_property
    def _parameters(self) -> frozenset[str]:
        return frozenset(inspect.signature(self.network.forward).parameters)

    @cached_property
    def _pads(self) -> bool:
        """Whether prompts of other lengths may be generated together: padding in front of them changes no reply.

        It would where a model keeps anything else than keys and values, or counts positions in a way of its own, and
        with `longrope`, whose positions change for all rows that are computed with a long one.
        """
        rope = getattr(self.network.config.get_text_config(), "rope_parameters", None) or {}
        stateful = getattr(self.network, "_is_stateful", False)
        return "position_ids" in self._parameters and not stateful and rope.get("rope_type") != "longrope"

    def _together(self, jobs: Sequence[WritingJob], places: Sequence[int]) -> list[Sequence[int]]:
        if self._pads:
            return [places]
        alike = itertools.groupby(places, key=lambda place: len(jobs[place].ids))  # a batch is sorted by length
        return [list(members) for _, members in alike]

    def _shown(self, jobs: Sequence[WritingJob]) -> None:
        """Nothing: prompts are no part of their own."""

    def _row(self, job: WritingJob, begun: Tokens) -> Tokens:
        return (*job.ids, *begun)

    def _logits(self, shown: None, places: Sequence[int], rows: Sequence[Tokens], last: int) -> Any:
        ids, mask = padded(rows, self.device, left=True)
        kept = {"logits_to_keep": last} if "logits_to_keep" in self._parameters else {}
        return self.network(input_ids=ids, attention_mask=mask, use_cache=False, **kept).logits

    def _generation(self, shown: None, jobs: Sequence[WritingJob], places: Sequence[int]) -> dict[str, Any]:
        ids, mask = padded([jobs[place].ids for place in places], self.device, left=True)
        return {"input_ids": ids, "attention_mask": mask}

    def _spellings(self, label: str) -> tuple[Tokens, ...]:
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

    def _is_over(self, job: WritingJob, tokens: Sequence[int]) -> bool:
        return not self._chat and bool(job.request.labels) and "\n" in self._text(tokens).lstrip()

    def _reply(self, job: WritingJob, written: Written) -> Reply:
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
