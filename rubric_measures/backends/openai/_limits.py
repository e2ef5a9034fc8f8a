"""Limits that an endpoint announces in the headers of its answers: what is left of them, and when they begin anew."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import NamedTuple

# What is left, and when it begins anew: of calls, then of tokens. The official endpoint (and Azure, Groq, Together, …),
# Anthropic, OpenRouter, the draft of the IETF.
_OF_CALLS = (
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
)
_OF_TOKENS = (
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
)
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:([\d.]+)s)?(?:([\d.]+)ms)?")
_UNITS = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)
_MOMENT = 1e9  # more seconds than this are a moment since 1970; more than a thousand times this, in milliseconds


class Announced(NamedTuple):
    """What an endpoint said is left, and for how many seconds that holds."""

    left: float
    seconds: float


def announced(
    headers: Mapping[str, str], tokens_a_call: float, now: datetime.datetime | None = None
) -> Announced | None:
    """The calls that may still begin, as the headers of an answer say it; None where they do not.

    Args:
        headers: of an answer.
        tokens_a_call: what a call takes of a limit on tokens.
        now: the time; None is the present.

    >>> announced({"x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-requests": "1m2.5s"}, 100)
    Announced(left=59.0, seconds=62.5)
    >>> announced({"x-ratelimit-remaining-tokens": "250", "x-ratelimit-reset-tokens": "20ms"}, 100)
    Announced(left=2.0, seconds=0.02)
    """
    found = []
    for names, size in ((_OF_CALLS, 1.0), (_OF_TOKENS, max(1.0, tokens_a_call))):
        for remaining, reset in names:
            left, seconds = _number(headers.get(remaining)), _seconds(headers.get(reset), now)
            if left is not None and seconds is not None and left >= 0:
                found.append(Announced(left // size, seconds))
                break
    return min(found, default=None)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def _seconds(text: str | None, now: datetime.datetime | None) -> float | None:
    """Seconds from now of a duration (`6m0s`, `20ms`), a number of seconds, or a moment; None: it is none of these."""
    if not text:
        return None
    now = now or datetime.datetime.now(datetime.UTC)
    value = _number(text)
    if value is not None:
        moment = value / 1000 if value > 1000 * _MOMENT else value
        return max(0.0, moment - now.timestamp() if value > _MOMENT else value)
    if (found := _DURATION.fullmatch(text.strip())) and any(found.groups()):
        parts = [_number(part) or 0.0 for part in found.groups()]
        return sum(part * unit for part, unit in zip(parts, _UNITS, strict=True))
    try:
        moment_ = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return max(0.0, (moment_.replace(tzinfo=moment_.tzinfo or datetime.UTC) - now).total_seconds())
