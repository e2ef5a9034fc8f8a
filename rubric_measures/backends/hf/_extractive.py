"""Extractive question answering (models fine-tuned on SQuAD2): the best span of the passage, or "no answer"."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rubric_measures.backends.base import Reply, Request
from rubric_measures.backends.hf._batching import by_length, padded
from rubric_measures.backends.hf.loading import FORGED, HuggingFaceModel, ModelSource
from rubric_measures.backends.hf.text import defused
from rubric_measures.base.errors import InputError

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


@dataclass(frozen=True)
class _Best:
    """The best span of a window, as characters of the passage, and the window's no-answer score."""

    score: float
    null: float
    span: tuple[int, int]


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

    def _plan(self, jobs: list[_WindowJob]) -> Iterator[list[_WindowJob]]:
        return by_length(jobs, lambda job: job.tokens, self.batch_tokens)

    def _prepare(self, request: Request) -> _WindowJob | Reply:
        self.check_options(request)
        try:
            fields = json.loads(request.messages[-1].content)
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
                for place, best in zip(places, self._best([windows[place] for place in places]), strict=True):
                    found[place] = best
        replies = []
        first = 0
        for job in jobs:
            replies.append(self._reply(job, [found[first + place] for place in range(len(job.windows))]))
            first += len(job.windows)
        return replies

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
        bests = []
        for row, window in enumerate(windows):
            score = starts[row][:, None] + ends[row][None, :]
            score = score.masked_fill(~(near & allowed[row][:, None] & allowed[row][None, :]), float("-inf"))
            value, place = score.flatten().max(0)
            first, last = window.spans[int(place) // width], window.spans[int(place) % width]
            null = float(starts[row, window.null] + ends[row, window.null])
            bests.append(_Best(float(value), null, (first[0], last[1]) if first and last else (0, 0)))
        return bests

    def _reply(self, job: _WindowJob, bests: Sequence[_Best]) -> Reply:
        best = max(bests, key=lambda found: found.score)
        null = min(found.null for found in bests)
        start, end = best.span
        text = job.context[start:end].strip()
        raw: dict[str, object] = {"mode": "extractive", "no_answer_score": round(null, 4)}
        if end > start:
            raw |= {"span": [start, end], "span_score": round(best.score, 4)}
        if not text or null > best.score + self.margin:
            text = NO_ANSWER
        return Reply(text, prompt_tokens=job.tokens, raw=raw)
