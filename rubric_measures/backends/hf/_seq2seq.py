"""Sequence-to-sequence models (FLAN-T5): greedy replies or whole-label scores from one encoder pass a batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from rubric_measures.backends.base import Message, Reply, Request
from rubric_measures.backends.hf._batching import by_length, padded
from rubric_measures.backends.hf._writing import Tokens, WritingJob, WritingModel, Written, token_limit, written_reply
from rubric_measures.backends.hf.loading import ModelSource
from rubric_measures.backends.hf.text import plain_text
from rubric_measures.base.errors import BackendError

# Settings of a model's generation config that change greedy decoding, with the values that change nothing.
_NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "forced_bos_token_id": (None,),
    "forced_eos_token_id": (None,),
    "min_length": (None, 0),
    "min_new_tokens": (None, 0),
    "no_repeat_ngram_size": (None, 0),
    "encoder_no_repeat_ngram_size": (None, 0),
    "repetition_penalty": (None, 1.0),
    "encoder_repetition_penalty": (None, 1.0),
    "exponential_decay_length_penalty": (None,),
    "suppress_tokens": (None, []),
    "begin_suppress_tokens": (None, []),
    "bad_words_ids": (None, []),
    "sequence_bias": (None, {}),
}


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

    def __init__(
        self, source: ModelSource, *, mode: str = "generate", label_mass: float = 0.8, **settings: Any
    ) -> None:
        super().__init__(source, mode=mode, label_mass=label_mass, **settings)

    @property
    def context_tokens(self) -> int | None:
        """How many tokens the prompt may have."""
        return self.limit

    def _load_network(self) -> Any:
        network = super()._load_network()
        config = network.generation_config
        ruled = [name for name, neutral in _NEUTRAL.items() if getattr(config, name, None) not in neutral]
        if ruled:
            found = f"its generation config has rules of its own ({', '.join(ruled)}), which are not followed here"
            raise BackendError(f"{self.model}: {found}; take a model without, such as FLAN-T5")
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

    def _plan(self, jobs: list[WritingJob]) -> Iterator[list[WritingJob]]:
        return by_length(jobs, lambda job: len(job.ids), self.batch_tokens)

    def _prepare(self, request: Request) -> WritingJob | Reply:
        self.check_options(request)
        ids = self.prompt_tokens(request.messages, self._encoded)
        if self.limit is not None and len(ids) > self.limit:
            return Reply(None, "failed", f"the prompt has {len(ids)} tokens, the model takes {self.limit}")
        return WritingJob(request, tuple(ids), token_limit(request))

    def _encoded(self, messages: Sequence[Message]) -> list[int]:
        return self.encode(plain_text(messages, self.control_tokens), special=True)

    def _shown(self, jobs: Sequence[WritingJob]) -> tuple[Any, Any]:
        ids, mask = padded([job.ids for job in jobs], self.device, left=False)
        return self.network.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state, mask

    def _of_jobs(self, shown: tuple[Any, Any], places: Sequence[int]) -> dict[str, Any]:
        from transformers.modeling_outputs import BaseModelOutput

        encoded, mask = (part[list(places)] for part in shown)
        return {"encoder_outputs": BaseModelOutput(last_hidden_state=encoded), "attention_mask": mask}

    def _row(self, job: WritingJob, begun: Tokens) -> Tokens:
        return (self._start, *begun)

    def _logits(self, shown: Any, places: Sequence[int], rows: Sequence[Tokens], last: int) -> Any:
        import torch

        ids = torch.tensor(rows, device=self.device)
        return self.network(**self._of_jobs(shown, places), decoder_input_ids=ids, use_cache=False).logits

    def _generation(self, shown: Any, jobs: Sequence[WritingJob], places: Sequence[int]) -> dict[str, Any]:
        return self._of_jobs(shown, places)

    def _spellings(self, label: str) -> tuple[tuple[int, ...], ...]:
        return ((*self.encode(label), *self._ends[:1]),)

    def _reply(self, job: WritingJob, written: Written) -> Reply:
        text = self.tokenizer.decode(written.tokens, skip_special_tokens=True).strip()
        return written_reply(text, written, len(job.ids))
