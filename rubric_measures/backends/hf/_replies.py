"""Options of a request, and replies, as the Hugging Face backends read and write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rubric_measures.backends.base import Reply, Request
from rubric_measures.backends.hf._decoding import DecoderState, LabelScores, LabelTable, Written, score_labels
from rubric_measures.base.errors import InputError

__all__ = ["answered_replies", "label_reply", "least_mass", "mode_of", "token_limit", "written_reply"]

_MODES = ("generate", "labels")
_DEFAULT_TOKENS = 64


def mode_of(mode: str) -> str:
    """The mode, checked.

    Raises:
        InputError: there is no such mode.
    """
    if mode not in _MODES:
        raise InputError(f"mode {mode!r}: expected {' or '.join(_MODES)}")
    return mode


def least_mass(mass: float) -> float:
    """The option `label_mass`, checked.

    Raises:
        InputError: it is no probability.
    """
    if not 0 <= float(mass) <= 1:
        raise InputError(f"label_mass is {mass}; expected 0 to 1")
    return float(mass)


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

    Args:
        state: the rows after their prompts.
        tables: the labels of each row; None where the reply is to be generated.
        least_mass: the least probability of all labels of a row together; below it the reply is generated.
        by_labels: makes the reply of a row from its scores.
        by_writing: generates the replies of some rows, given with their state.
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
