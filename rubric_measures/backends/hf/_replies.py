"""Options of a request, and replies, as the Hugging Face backends read and write them."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

from rubric_measures.backends.base import Reply, Request
from rubric_measures.backends.hf._decoding import DecoderState, LabelScores, LabelTable, Written, score_labels
from rubric_measures.backends.hf.loading import HuggingFaceModel, ModelSource
from rubric_measures.base.errors import InputError

__all__ = ["WritingModel", "answered_replies", "label_reply", "token_limit", "written_reply"]

_MODES = ("generate", "labels")
_DEFAULT_TOKENS = 64


class WritingModel(HuggingFaceModel):
    """What models that write have in common: the mode, and the labels of a request as tokens.

    Raises:
        InputError: there is no such mode, or the mass is no probability.
    """

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


def token_limit(request: Request) -> int:
    """How many tokens the reply may have: the option `max_tokens`, 64 without it.

    Raises:
        InputError: it is less than 1.
    """
    limit = int(str(request.options.get("max_tokens") or _DEFAULT_TOKENS))
    if limit < 1:
        raise InputError(f"max_tokens is {limit}; expected 1 or more")
    return limit


def label_reply(scores: LabelScores, prompt_tokens: int, *, greedy: bool | None = None) -> Reply:
    """The reply of label scoring: the best label; the probabilities that were computed are in `raw`."""
    raw: dict[str, object] = {
        "mode": "labels",
        "label_probabilities": {label: float(f"{value:.6g}") for label, value in scores.probabilities.items()},
    }
    if greedy is not None:
        raw["equals_greedy"] = greedy
    return Reply(scores.best, prompt_tokens=prompt_tokens, completion_tokens=1, raw=raw)


def written_reply(text: str, written: Written, prompt_tokens: int) -> Reply:
    """The reply of generation; without an end before the limit it is `truncated`."""
    count = len(written.tokens) + written.ended
    if written.ended:
        return Reply(text, prompt_tokens=prompt_tokens, completion_tokens=count, raw={"mode": "generate"})
    reason = f"the reply was cut after {count} tokens"
    return Reply(text, "truncated", reason, prompt_tokens, count, {"mode": "generate"})


def answered_replies(
    state: DecoderState,
    tables: Sequence[LabelTable | None],
    least_mass: float,
    by_labels: Callable[[int, LabelScores], Reply],
    by_writing: Callable[[Sequence[int], DecoderState], Sequence[Reply]],
) -> list[Reply]:
    """The replies of a batch whose prompts were computed: by label scoring where that decides, else by generation.

    A row without a table is generated, and so is one whose labels have less than `least_mass` together.
    """
    scored = [(place, table) for place, table in enumerate(tables) if table is not None]
    replies: dict[int, Reply] = {}
    if scored:
        chosen = state if len(scored) == len(tables) else state.select([place for place, _ in scored])
        found = score_labels(chosen, [table for _, table in scored], least_mass)
        for (place, _), scores in zip(scored, found, strict=True):
            if scores is not None:
                replies[place] = by_labels(place, scores)
    rest = [place for place in range(len(tables)) if place not in replies]
    if rest:
        state = state if len(rest) == len(tables) else state.select(rest)
        replies.update(zip(rest, by_writing(rest, state), strict=True))
    return [replies[place] for place in range(len(tables))]
