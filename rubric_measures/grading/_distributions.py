"""The distribution over grades that a reply comes with: probabilities of its labels, or of its first token."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["distribution_of_reply", "mean_distribution"]

# With less on all labels together, the first token says something else than a label.
_LEAST_MASS = 0.5
# What tokenizers write in the place of a blank.
_BLANKS = " \t\n▁Ġ"


def distribution_of_reply(
    raw: Mapping[str, object], labels: Sequence[str], grade_of: Callable[[str], Any]
) -> dict[int, float] | None:
    """Grade -> probability of a reply, together 1; None where the reply does not tell.

    Args:
        raw: what else came with the reply: `label_probabilities` (of whole labels), or `first_token_logprobs`, the
            candidates for the first token, each of which counts for the label that begins with it. Labels of which no
            candidate is listed have less than the least candidate, and count as 0.
        labels: the labels that the prompt allows.
        grade_of: reads the grade of a label; None where it has none.
    """
    shares = _whole_labels(raw.get("label_probabilities"), labels)
    if shares is None:
        shares = _first_tokens(raw.get("first_token_logprobs"), labels)
    if shares is None:
        return None
    found: dict[int, float] = {}
    for label, share in shares.items():
        grade = grade_of(label)
        if type(grade) is not int:
            return None
        found[grade] = found.get(grade, 0.0) + share
    total = math.fsum(found.values())
    return {grade: share / total for grade, share in sorted(found.items())}


def _whole_labels(said: object, labels: Sequence[str]) -> dict[str, float] | None:
    """The probabilities of all labels; None where some are not said."""
    if not isinstance(said, Mapping) or not set(labels) <= said.keys():
        return None
    shares = {label: float(said[label]) for label in labels}
    return shares if sum(shares.values()) > 0 else None


def _first_tokens(said: object, labels: Sequence[str]) -> dict[str, float] | None:
    """The probabilities of labels by the first token; None where one begins several, or most of it begins none."""
    shares = dict.fromkeys(labels, 0.0)
    for token, score in said if isinstance(said, list) else ():
        start = str(token).strip(_BLANKS).casefold()
        if not start:
            continue
        fitting = [label for label in labels if label.casefold() == start]
        fitting = fitting or [label for label in labels if label.casefold().startswith(start)]
        if len(fitting) > 1:
            return None
        if fitting:
            shares[fitting[0]] += math.exp(score)
    return shares if sum(shares.values()) >= _LEAST_MASS else None


def mean_distribution(drawn: Sequence[tuple[int, Mapping[int, float] | None]]) -> dict[int, float]:
    """The mean of the distributions of several draws; a draw without one is its grade for certain."""
    found: dict[int, float] = {}
    for grade, distribution in drawn:
        for one, share in (distribution or {grade: 1.0}).items():
            found[one] = found.get(one, 0.0) + share / len(drawn)
    return dict(sorted(found.items()))
