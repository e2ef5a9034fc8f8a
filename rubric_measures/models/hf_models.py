"""Kinds of Hugging Face models: sequence to sequence, decoders, extractive question answering.

Decoder-only models: chat template or plain text.

Sequence-to-sequence models (FLAN-T5): greedy replies or whole-label scores from one encoder pass a batch.

Extractive question answering (models fine-tuned on SQuAD2): the best span of the passage, or "no answer".
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rubric_measures.base.json_text import parse_json
from rubric_measures.models.base import Backend, Reply, Request, check_options
from rubric_measures.models.hf import (
    HuggingFaceModel,
    ModelSource,
    Tokens,
    WritingJob,
    WritingModel,
    chat_text,
    defused,
    find_source,
    model_kind,
    padded,
    plain_text,
)
from rubric_measures.types.scales import Message


class DecoderBackend(WritingModel):
    """Llama, Qwen, Mistral, GPT-2 and others of AutoModelForCausalLM.

    Messages go through the tokenizer's chat template; without one they are plain text, blank lines between them.

    Mode `labels` (the default) takes, for requests with labels, the most probable of them:

        P(label) = Σ over its spellings of Π P(token | prompt, tokens before)

    that is, the probability that the reply *begins* with the label (with or without a blank before it). Where all
    labels together have less than `label_mass`, where one label begins another one ("1", "10"), and where a
    temperature is asked for, the reply is generated. Mode `generate` always generates. Generation takes the most
    probable token each time (or draws); penalties and sampling settings of the model's own generation config do not
    apply. A reply in channels (gpt-oss) has the marks of these. Plain-text models do not know where to end: with labels
    given, their replies end with the first line.

    Args:
        source: the model.
        mode: `labels` or `generate`.
        label_mass: the least probability of all labels together.
        thinking: whether models that can think before they reply do so (`enable_thinking` of the chat template).
        settings: see `HuggingFaceModel`.
    """

    auto_class = "AutoModelForCausalLM"
    usual_mode = "labels"

    def __init__(self, source: ModelSource, *, thinking: bool = False, **settings: Any) -> None:
        super().__init__(source, **settings)
        self.thinking = thinking

    @property
    def options(self) -> Mapping[str, object]:
        """Device, dtype, revision, mode, thinking, and in mode `labels` the least mass."""
        return {**super().options, "thinking": self.thinking}

    @property
    def context_tokens(self) -> int | None:
        """How many tokens messages and reply may have together: the model's limit less what the template adds."""
        if self.limit is None:
            return None
        return self.limit - self._overhead

    @cached_property
    def _overhead(self) -> int:
        return len(self._encoded((Message("user", "a"),)))

    def _encoded(self, messages: Sequence[Message]) -> list[int]:
        control = self.control_tokens
        if self.tokenizer.chat_template:
            return self.encode(chat_text(self.tokenizer, messages, control, thinking=self.thinking))
        return self.encode(plain_text(messages, control), special=True)

    @cached_property
    def _parameters(self) -> frozenset[str]:
        return frozenset(inspect.signature(self.network.forward).parameters)

    @cached_property
    def pads(self) -> bool:
        """Whether prompts of other lengths may be computed together: padding in front of them changes no reply.

        It would where a model keeps anything else than keys and values, or counts positions in a way of its own (those
        like RoBERTa), and with `longrope`, whose positions change for all rows that are computed with a long one.
        """
        if any(hasattr(part, "create_position_ids_from_input_ids") for part in self.network.modules()):
            return False
        rope = getattr(self.network.config.get_text_config(), "rope_parameters", None) or {}
        stateful = getattr(self.network, "_is_stateful", False)
        return "position_ids" in self._parameters and not stateful and rope.get("rope_type") != "longrope"

    def _shown(self, jobs: Sequence[WritingJob]) -> None:
        """Nothing: prompts are no part of their own."""

    def _logits(self, shown: None, jobs: Sequence[WritingJob], rows: Sequence[tuple[int, Tokens]], last: int) -> Any:
        ids, mask = padded([(*jobs[place].ids, *begun) for place, begun in rows], self.device, left=True)
        more: dict[str, Any] = {"logits_to_keep": last} if "logits_to_keep" in self._parameters else {}
        if self.pads:
            more["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)
        return self.network(input_ids=ids, attention_mask=mask, use_cache=False, **more).logits

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
        return not self.tokenizer.chat_template and bool(job.request.labels) and "\n" in self._text(tokens).lstrip()

    @cached_property
    def _channels(self) -> bool:
        """Whether the model writes in channels (gpt-oss)."""
        return {"<|channel|>", "<|message|>"} <= set(super().control_tokens)

    def _text(self, tokens: Sequence[int]) -> str:
        # The marks between what the model thinks and its answer are control tokens.
        text: str = self.tokenizer.decode(list(tokens), skip_special_tokens=not self._channels)
        return text


class Seq2SeqBackend(WritingModel):
    """T5, FLAN-T5 and others of AutoModelForSeq2SeqLM; rules that a model has for generation (BART) do not apply.

    Mode `generate` writes the reply greedily, token by token, as `model.generate(num_beams=1, do_sample=False)` does.
    Mode `labels` scores every label of `Request.labels` as a whole reply (all its tokens and the end token) and replies
    with the most probable one; where the labels together have less than `label_mass` of the probability, it generates.
    Above 1/2, the label is provably what greedy decoding writes, as every token on its way is. Requests without labels,
    and such with a temperature above 0, are generated.

    Equal requests get equal replies; in another batch, with other padding, sums are rounded in another order, which may
    flip a reply where two tokens are equally probable up to the precision of the dtype.

    Args:
        source: the model.
        mode: `generate` or `labels`.
        label_mass: the least probability of all labels together.
        settings: see `HuggingFaceModel`.
    """

    auto_class = "AutoModelForSeq2SeqLM"
    # The reply has a context of its own: the decoder's.
    reply_shares_context = False

    @cached_property
    def _start(self) -> int:
        found: int | None = self.network.generation_config.decoder_start_token_id
        return self.network.config.decoder_start_token_id if found is None else found

    def _encoded(self, messages: Sequence[Message]) -> list[int]:
        return self.encode(plain_text(messages, self.control_tokens), special=True)

    def _shown(self, jobs: Sequence[WritingJob]) -> tuple[Any, Any]:
        ids, mask = padded([job.ids for job in jobs], self.device, left=False)
        return self.network.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state, mask

    def _of_jobs(self, shown: tuple[Any, Any], places: Sequence[int]) -> dict[str, Any]:
        from transformers.modeling_outputs import BaseModelOutput

        encoded, mask = (part[list(places)] for part in shown)
        return {"encoder_outputs": BaseModelOutput(last_hidden_state=encoded), "attention_mask": mask}

    def _logits(self, shown: Any, jobs: Sequence[WritingJob], rows: Sequence[tuple[int, Tokens]], last: int) -> Any:
        import torch

        ids = torch.tensor([(self._start, *begun) for _, begun in rows], device=self.device)
        places = [place for place, _ in rows]
        return self.network(**self._of_jobs(shown, places), decoder_input_ids=ids, use_cache=False).logits

    def _generation(self, shown: Any, jobs: Sequence[WritingJob], places: Sequence[int]) -> dict[str, Any]:
        return self._of_jobs(shown, places)

    def _spellings(self, label: str) -> tuple[tuple[int, ...], ...]:
        return ((*self.encode(label), *self._ends[:1]),)


NO_ANSWER = "no answer"
_LONGEST_ANSWER = 30  # tokens; as in the SQuAD evaluation scripts
_WINDOW, _STRIDE = 384, 128  # tokens of question and passage shown together, and those that two windows share


@dataclass(frozen=True)
class _SpanJob:
    """A question about a passage; `shown` has the windows of the passage as the library makes them."""

    request: Request
    context: str
    shown: Any

    @property
    def tokens(self) -> int:
        return int(self.shown["attention_mask"].sum())


class ExtractiveBackend(HuggingFaceModel):
    """BERT, RoBERTa, DeBERTa and others of AutoModelForQuestionAnswering.

    The last message is canonical JSON, `{"context": PASSAGE, "question": QUESTION}` (the prompts
    `ExtractiveQuestionAnswering` and `ExtractiveAnswer`). The reply is the span of the passage with the highest

        score(span) = start_logit(first token) + end_logit(last token),   at most 30 tokens

    or "no answer" where the no-answer score, start_logit + end_logit of the first special token, is greater than that
    plus `no_answer_margin`. A long passage is seen in overlapping windows: the best span of all of them counts,
    and the lowest of their no-answer scores. So no passage is too long.

    Args:
        source: the model.
        no_answer_margin: how much better "no answer" must be than the best span.
        settings: see `HuggingFaceModel`.

    Source: Devlin et al. 2019 (BERT), section 4.3, for the spans and the no-answer score.
    """

    auto_class = "AutoModelForQuestionAnswering"
    reads_prompts = ("ExtractiveQuestionAnswering", "ExtractiveAnswer")
    context_tokens = None  # long passages are seen in windows

    def __init__(self, source: ModelSource, *, no_answer_margin: float = 0.0, **settings: Any) -> None:
        super().__init__(source, **settings)
        self.margin = float(no_answer_margin)

    @property
    def options(self) -> Mapping[str, object]:
        """Device, dtype, revision, window, stride and margin."""
        return {**super().options, "window": _WINDOW, "stride": _STRIDE, "no_answer_margin": self.margin}

    def _prepare(self, request: Request) -> _SpanJob | Reply:
        try:
            fields = parse_json(request.messages[-1].content, lenient=True)
            context, question = (defused(str(fields[name]), self.control_tokens) for name in ("context", "question"))
        except (ValueError, KeyError, TypeError, IndexError):
            return Reply(None, "failed", "this model reads only the prompt ExtractiveQuestionAnswering")
        if not context.strip():
            return Reply(NO_ANSWER, raw={"mode": "extractive"})
        size = min(_WINDOW, self.limit or _WINDOW)
        room = size - len(self.encode(question)) - self.tokenizer.num_special_tokens_to_add(pair=True)
        if room < 2:
            return Reply(None, "failed", f"the question leaves no room of the {size} tokens that the model is shown")
        shown = self.tokenizer(
            question.strip(),
            context,
            truncation="only_second",
            max_length=size,
            stride=min(_STRIDE, room // 2),
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            padding=True,
            return_tensors="pt",
            verbose=False,
        )
        return _SpanJob(request, context, shown)

    def _execute(self, jobs: Sequence[_SpanJob]) -> list[Reply]:
        import torch

        with torch.inference_mode():
            return [self._reply(job) for job in jobs]

    def _reply(self, job: _SpanJob) -> Reply:
        shown = job.shown
        names = [name for name in self.tokenizer.model_input_names if name in shown]
        out = self.network(**{name: shown[name].to(self.device) for name in names})
        starts, ends = (one.float().cpu().numpy() for one in (out.start_logits, out.end_logits))
        windows = np.arange(len(starts))
        special = (shown["input_ids"] == self.tokenizer.cls_token_id).int().argmax(1).numpy()
        null = float((starts[windows, special] + ends[windows, special]).min())
        offsets = shown["offset_mapping"].numpy()
        inside = np.array([[part == 1 for part in shown.sequence_ids(window)] for window in windows])
        inside &= offsets[..., 1] > offsets[..., 0]
        # Window, first token, last token; a span goes forward and is short enough.
        scores = np.where(inside, starts, -np.inf)[:, :, None] + np.where(inside, ends, -np.inf)[:, None]
        size = scores.shape[1]
        scores[:, np.tri(size, k=-1, dtype=bool) | ~np.tri(size, k=_LONGEST_ANSWER - 1, dtype=bool)] = -np.inf
        window, first, last = np.unravel_index(scores.argmax(), scores.shape)
        score, text = float(scores[window, first, last]), NO_ANSWER
        raw: dict[str, object] = {"mode": "extractive", "no_answer_score": round(null, 4)}
        if score > -np.inf:
            start, end = int(offsets[window, first, 0]), int(offsets[window, last, 1])
            raw |= {"span": [start, end], "span_score": round(score, 4)}
            if null <= score + self.margin:
                text = job.context[start:end].strip() or NO_ANSWER
        return Reply(text, prompt_tokens=job.tokens, raw=raw)


_KINDS: dict[str, type[HuggingFaceModel]] = {
    "seq2seq": Seq2SeqBackend,
    "decoder": DecoderBackend,
    "extractive": ExtractiveBackend,
}


def make_hf(name: str, **options: Any) -> Backend:
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
    maker = _KINDS[model_kind(source)]
    check_options(f"hf:{name}", maker, options)
    return maker(source, **options)
