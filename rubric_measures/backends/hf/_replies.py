"""Options of a request, and replies, as the Hugging Face backends read and write them."""

from __future__ import annotations

import abc
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from rubric_measures.backends.base import Reply, Request
from rubric_measures.backends.hf._decoding import (
    DecoderState,
    LabelScores,
    LabelTable,
    Written,
    score_labels,
    write_replies,
)
from rubric_measures.backends.hf.loading import HuggingFaceModel, ModelSource
from rubric_measures.base.errors import InputError

_MODES = ("generate", "labels")
_DEFAULT_TOKENS = 64


@dataclass(frozen=True)
class WritingJob:
    """A request as tokens, and how many its reply may have."""

    request: Request
    ids: tuple[int, ...]
    limit: int


class WritingModel(HuggingFaceModel):
    """What models that write have in common: the mode, and the labels of a request as tokens.

    Raises:
        InputError: there is no such mode, or the mass is no probability.
    """

    # Whether a label is scored as a whole reply, with its end.
    labels_are_whole = False

    def __init__(self, source: ModelSource, *, mode: str, label_mass: float, **settings: Any) -> None:
        super().__init__(source, **settings)
        if mode not in _MODES:
            raise InputError(f"mode {mode!r}: expected {' or '.join(_MODES)}")
        if not 0 <= float(label_mass) <= 1:
            raise InputError(f"label_mass is {label_mass}; expected 0 to 1")
        self.mode, self.label_mass = mode, float(label_mass)
        self._tables: dict[tuple[str, ...], LabelTable] = {}

    @abc.abstractmethod
    def _spellings(self, label: str) -> tuple[tuple[int, ...], ...]:
        """The token sequences that write a label."""

    def _table(self, request: Request) -> LabelTable | None:
        """The labels of a request, where they are scored; a prompt asks for the same ones again and again."""
        labels = request.labels
        if self.mode != "labels" or not labels or request.options.get("temperature"):
            return None
        if labels not in self._tables:
            self._tables[labels] = LabelTable(labels, tuple(self._spellings(label) for label in labels))
        return self._tables[labels] if self._tables[labels].usable else None

    @property
    @abc.abstractmethod
    def _ends(self) -> Collection[int]:
        """The end tokens."""

    @abc.abstractmethod
    def _reply(self, job: Any, written: Written) -> Reply:
        """The reply of generation."""

    def _is_over(self, job: Any, tokens: Sequence[int]) -> bool:
        """Whether a reply ends without an end token."""
        return False

    def _replies(self, jobs: Sequence[WritingJob], state: DecoderState) -> list[Reply]:
        """The replies of a batch whose prompts were computed: by label scoring where that decides, else by writing."""
        tables = [self._table(job.request) for job in jobs]
        scored = [(place, table) for place, table in enumerate(tables) if table is not None]
        replies: dict[int, Reply] = {}
        if scored:
            chosen = state if len(scored) == len(tables) else state.select([place for place, _ in scored])
            found = score_labels(chosen, [table for _, table in scored], self.label_mass)
            for (place, _), scores in zip(scored, found, strict=True):
                if scores is not None:
                    replies[place] = self._label_reply(jobs[place], scores)
        rest = [place for place in range(len(tables)) if place not in replies]
        if rest:
            state = state if len(rest) == len(tables) else state.select(rest)
            replies.update(zip(rest, self._written([jobs[place] for place in rest], state), strict=True))
        return [replies[place] for place in range(len(tables))]

    def _label_reply(self, job: WritingJob, scores: LabelScores) -> Reply:
        """The best label; the probabilities of all labels are in `raw`."""
        raw: dict[str, object] = {
            "mode": "labels",
            "label_probabilities": {label: float(f"{value:.6g}") for label, value in scores.probabilities.items()},
        }
        if self.labels_are_whole:
            raw["equals_greedy"] = scores.is_greedy
        return Reply(scores.best, prompt_tokens=len(job.ids), completion_tokens=1, raw=raw)

    def _written(self, jobs: Sequence[WritingJob], state: DecoderState) -> list[Reply]:
        requests, limits = [job.request for job in jobs], [job.limit for job in jobs]
        found = write_replies(
            state, requests, limits, frozenset(self._ends), lambda row, tokens: self._is_over(jobs[row], tokens)
        )
        return [self._reply(job, written) for job, written in zip(jobs, found, strict=True)]


def token_limit(request: Request) -> int:
    """How many tokens the reply may have: the option `max_tokens`, 64 without it.

    Raises:
        InputError: it is less than 1.
    """
    limit = int(str(request.options.get("max_tokens") or _DEFAULT_TOKENS))
    if limit < 1:
        raise InputError(f"max_tokens is {limit}; expected 1 or more")
    return limit


def written_reply(text: str, written: Written, prompt_tokens: int) -> Reply:
    """The reply of generation; without an end before the limit it is `truncated`."""
    count = len(written.tokens) + written.ended
    if written.ended:
        return Reply(text, prompt_tokens=prompt_tokens, completion_tokens=count, raw={"mode": "generate"})
    reason = f"the reply was cut after {count} tokens"
    return Reply(text, "truncated", reason, prompt_tokens, count, {"mode": "generate"})
