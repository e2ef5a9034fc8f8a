"""Kinds of Hugging Face models: sequence to sequence, decoders, extractive question answering.

Decoder-only models: chat template or plain text.

Sequence-to-sequence models (FLAN-T5): greedy replies or whole-label scores from one encoder pass a batch.

Extractive question answering (models fine-tuned on SQuAD2): the best span of the passage, or "no answer".
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rubric_measures.base.errors import BackendError, InputError
from rubric_measures.base.json_text import parse_json
from rubric_measures.models.base import Backend, Reply, Request, check_options
from rubric_measures.models.hf import (
    FORGED,
    HuggingFaceModel,
    ModelSource,
    Tokens,
    WritingJob,
    WritingModel,
    by_length,
    chat_text,
    defused,
    find_source,
    markers_of,
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

    def _encoded(self, messages: Sequence[Message]) -> list[int]:
        control = self.control_tokens
        if self._chat:
            return self.encode(chat_text(self.tokenizer, messages, control, thinking=self.thinking))
        return self.encode(plain_text(messages, control), special=True)

    @cached_property
    def _parameters(self) -> frozenset[str]:
        return frozenset(inspect.signature(self.network.forward).parameters)

    @cached_property
    def _pads(self) -> bool:
        """Whether prompts of other lengths may be computed together: padding in front of them changes no reply.

        It would where a model keeps anything else than keys and values, or counts positions in a way of its own (those
        like RoBERTa), and with `longrope`, whose positions change for all rows that are computed with a long one.
        """
        if any(hasattr(part, "create_position_ids_from_input_ids") for part in self.network.modules()):
            return False
        rope = getattr(self.network.config.get_text_config(), "rope_parameters", None) or {}
        stateful = getattr(self.network, "_is_stateful", False)
        return "position_ids" in self._parameters and not stateful and rope.get("rope_type") != "longrope"

    def _alike(self, ids: Tokens) -> int:
        return 0 if self._pads else len(ids)

    def _shown(self, jobs: Sequence[WritingJob]) -> None:
        """Nothing: prompts are no part of their own."""

    def _logits(self, shown: None, jobs: Sequence[WritingJob], rows: Sequence[tuple[int, Tokens]], last: int) -> Any:
        ids, mask = padded([(*jobs[place].ids, *begun) for place, begun in rows], self.device, left=True)
        more: dict[str, Any] = {"logits_to_keep": last} if "logits_to_keep" in self._parameters else {}
        if self._pads:
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
        return not self._chat and bool(job.request.labels) and "\n" in self._text(tokens).lstrip()

    @cached_property
    def _channels(self) -> bool:
        """Whether the model writes in channels (gpt-oss)."""
        return {"<|channel|>", "<|message|>"} <= set(super().control_tokens)

    def _text(self, tokens: Sequence[int]) -> str:
        # The marks between what the model thinks and its answer are control tokens.
        text: str = self.tokenizer.decode(list(tokens), skip_special_tokens=not self._channels)
        return text


# Settings of a model's generation config that change greedy decoding.
_RULES = (
    "forced_bos_token_id", "forced_eos_token_id", "min_length", "min_new_tokens", "no_repeat_ngram_size",
    "repetition_penalty", "encoder_no_repeat_ngram_size", "encoder_repetition_penalty",
    "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens", "bad_words_ids", "sequence_bias",
)  # fmt: skip


class Seq2SeqBackend(WritingModel):
    """T5, FLAN-T5 and others of AutoModelForSeq2SeqLM; one with rules of its own for generation (BART) is refused.

    Mode `generate` writes the reply greedily, token by token, as `model.generate(num_beams=1, do_sample=False)` does.
    Mode `labels` scores every label of `Request.labels` as a whole reply (all its tokens and the end token) and replies
    with the most probable one; where the labels together have less than `label_mass` of the probability, it generates.
    Above 1/2, the label is provably what greedy decoding writes (`equals_greedy`). Requests without labels,
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
    labels_are_whole = True

    def _load_network(self) -> Any:
        network = super()._load_network()
        config = network.generation_config
        found = {name: getattr(config, name, None) for name in _RULES}
        ruled = [
            name
            for name, value in found.items()
            # A token may have the number 0.
            if value not in (None, [], {}) and ("_id" in name or value != (1 if "penalty" in name else 0))
        ]
        if ruled:
            said = f"its generation config has rules of its own ({', '.join(ruled)}), which are not followed here"
            raise BackendError(f"{self.model}: {said}; take a model without, such as FLAN-T5")
        return network

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        found = self.network.generation_config.eos_token_id
        if found is None:
            found = self.tokenizer.eos_token_id
        return tuple(found) if isinstance(found, list) else (found,)

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
_LEAST_ROOM = 16  # tokens of the passage that a window must have room for


@dataclass(frozen=True)
class _Window:
    """Question and a stretch of the passage as the model is shown them: tokens and their segments.

    For each token of the passage `spans` has its place in the text; the score at `null` means "no answer".
    """

    ids: tuple[int, ...]
    kinds: tuple[int, ...]
    spans: tuple[tuple[int, int] | None, ...]
    null: int


@dataclass(frozen=True)
class _WindowJob:
    request: Request
    context: str
    windows: tuple[_Window, ...]

    @property
    def tokens(self) -> int:
        return sum(len(window.ids) for window in self.windows)


# The score of the best span of a window, the window's no-answer score, and the span as characters of the passage.
_Best = tuple[float, float, tuple[int, int]]


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
        window: tokens of question and passage that are shown together.
        stride: tokens that a window repeats of the one before.
        no_answer_margin: how much better "no answer" must be than the best span.
        settings: see `HuggingFaceModel`.

    Source: Devlin et al. 2019 (BERT), section 4.3, for the spans and the no-answer score.
    """

    auto_class = "AutoModelForQuestionAnswering"
    reads_prompts = ("ExtractiveQuestionAnswering", "ExtractiveAnswer")

    def __init__(
        self,
        source: ModelSource,
        *,
        window: int = 384,
        stride: int = 128,
        no_answer_margin: float = 0.0,
        **settings: Any,
    ) -> None:
        super().__init__(source, **settings)
        self.window, self.stride, self.margin = int(window), int(stride), float(no_answer_margin)
        if not 0 <= self.stride < self.window:
            raise InputError(f"stride is {stride}, window is {window}; expected 0 <= stride < window")

    @property
    def options(self) -> Mapping[str, object]:
        """Device, dtype, revision, window, stride and margin."""
        return {
            **super().options,
            "window": self.window,
            "stride": self.stride,
            "no_answer_margin": self.margin,
        }

    @property
    def context_tokens(self) -> int | None:
        """Unlimited: long passages are seen in windows."""
        return None

    def _prepare(self, request: Request) -> _WindowJob | Reply:
        try:
            fields = parse_json(request.messages[-1].content, lenient=True)
            context, question = (defused(str(fields[name]), self.control_tokens) for name in ("context", "question"))
        except (ValueError, KeyError, TypeError, IndexError):
            return Reply(None, "failed", "this model reads only the prompt ExtractiveQuestionAnswering")
        if not context.strip():
            return Reply(NO_ANSWER, raw={"mode": "extractive"})
        size = min(self.window, self.limit or self.window)
        taken = len(self.encode(question)) + self.tokenizer.num_special_tokens_to_add(pair=True)
        if size - taken < _LEAST_ROOM:
            return Reply(None, "failed", f"the question needs {taken} of the {size} tokens that the model is shown")
        return _WindowJob(request, context, tuple(self._windows(question.strip(), context, size, size - taken)))

    def _windows(self, question: str, context: str, size: int, room: int) -> Iterator[_Window]:
        with self._lock:  # the library keeps truncation settings on the tokenizer itself
            shown = self.tokenizer(
                question,
                context,
                truncation="only_second",
                max_length=size,
                stride=min(self.stride, room // 2),
                return_overflowing_tokens=True,
                return_offsets_mapping=True,
                return_token_type_ids=True,
                verbose=False,
            )
            parts = [shown.sequence_ids(place) for place in range(len(shown["input_ids"]))]
        for ids, kinds, offsets, part in zip(
            shown["input_ids"], shown["token_type_ids"], shown["offset_mapping"], parts, strict=True
        ):
            # The library counts what a normaliser makes of a text as a token of that text.
            if any(which is not None and token in self.control_ids for which, token in zip(part, ids, strict=True)):
                raise ValueError(FORGED)
            spans = tuple(
                (start, end) if which == 1 and end > start else None
                for which, (start, end) in zip(part, offsets, strict=True)
            )
            start = self.tokenizer.cls_token_id
            yield _Window(tuple(ids), tuple(kinds), spans, ids.index(start) if start in ids else 0)

    def _execute(self, jobs: Sequence[_WindowJob]) -> list[Reply]:
        import torch

        windows = [window for job in jobs for window in job.windows]
        found: dict[int, _Best] = {}
        with torch.inference_mode():
            # One job may have more windows than a batch holds.
            for places in by_length(range(len(windows)), lambda place: len(windows[place].ids), self.batch_tokens):
                found.update(zip(places, self._best([windows[place] for place in places]), strict=True))
        in_order = map(found.__getitem__, range(len(windows)))
        return [self._reply(job, list(itertools.islice(in_order, len(job.windows)))) for job in jobs]

    def _best(self, windows: Sequence[_Window]) -> list[_Best]:
        """The best span of each window."""
        import torch

        ids, mask = padded([window.ids for window in windows], self.device, left=False)
        arguments = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in self.tokenizer.model_input_names:
            arguments["token_type_ids"] = padded([window.kinds for window in windows], self.device, left=False)[0]
        out = self.network(**arguments)
        allowed = torch.zeros(ids.shape, dtype=torch.bool)
        for row, window in enumerate(windows):
            allowed[row, [place for place, span in enumerate(window.spans) if span]] = True
        allowed = allowed.to(self.device)
        starts, ends = out.start_logits.float(), out.end_logits.float()
        width = ids.shape[1]
        # near[s, e]: a span from s to e goes forward and is short enough
        near = torch.ones((width, width), dtype=torch.bool, device=self.device).triu().tril(_LONGEST_ANSWER - 1)
        allowed = near & allowed[:, :, None] & allowed[:, None, :]
        score = (starts[:, :, None] + ends[:, None, :]).masked_fill(~allowed, float("-inf"))
        nulls = (starts + ends)[range(len(windows)), [window.null for window in windows]]
        bests = []
        # What is wanted of all windows comes from the device at once.
        found = (one.tolist() for one in (*score.flatten(1).max(1), nulls))
        for window, value, place, null in zip(windows, *found, strict=True):
            first, last = window.spans[place // width], window.spans[place % width]
            bests.append((value, null, (first[0], last[1]) if first and last else (0, 0)))
        return bests

    def _reply(self, job: _WindowJob, bests: Sequence[_Best]) -> Reply:
        score, _, (start, end) = max(bests, key=lambda found: found[0])
        null = min(found[1] for found in bests)
        text = job.context[start:end].strip()
        raw: dict[str, object] = {"mode": "extractive", "no_answer_score": round(null, 4)}
        if end > start:
            raw |= {"span": [start, end], "span_score": round(score, 4)}
        if not text or null > score + self.margin:
            text = NO_ANSWER
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
