"""What an endpoint shows about its model while it is asked: fields that it does not take, and whether it thinks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rubric_measures.backends.base import Reply

__all__ = ["Known"]

_RENAMED_FIELD = "max_completion_tokens"
# How endpoints say that the longest reply has another name; both names may also stand in a message about its value.
_RENAMED = re.compile(
    r"\bmax_tokens\b.{0,80}\b(?:use|try|with)[ '\"`\\]+max_completion_tokens\b|"
    r"\buse[ '\"`\\]+max_completion_tokens\b.{0,20}\binstead\b",
    re.IGNORECASE,
)
# How they say that a model takes no temperature, or only its own. A range that a value is out of is something else.
_NO_TEMPERATURE = re.compile(
    r"\b(?:unsupported|unknown|unrecognized|deprecated|not permitted)\b.{0,30}\btemperature\b|"
    # As LiteLLM says it, which knows what reasoning models take.
    r"(?:\bnot|n't) support\b.{0,30}\btemperature\b|"
    r"\btemperature\b['\"`\\]*.{0,40}?(?:not support|unsupported|not allowed|not permitted|deprecated|\bonly\b.{0,20}"
    r"(?:\ballowed|\bdefault|\bset to))",
    re.IGNORECASE,
)
# Tokens to think in, beside those of the reply: as a rule 64 times the reply's, within these bounds.
_ROOM_A_TOKEN, _LEAST_ROOM, _MOST_ROOM = 64, 4_096, 16_384
_THOUGHT_TAGS = re.compile(r"\A\s*<think|</think", re.IGNORECASE)


@dataclass
class Known:
    """What is known of a model at one endpoint; it grows with the answers and is kept as long as the backend.

    Attributes:
        thinking_tokens: the tokens that a model which thinks gets for it, beside those of the reply; None goes by the
            longest reply.
        token_field: what the endpoint calls the longest reply.
        left_out: fields that it does not take, although the request has them.
        thinks: whether a reply showed that the model thinks before it replies.
        most_room: the most tokens to think in that it takes; None while it took all that were asked for.
        answered: whether it ever gave a reply.
    """

    thinking_tokens: int | None = None
    token_field: str = "max_tokens"
    left_out: set[str] = field(default_factory=set)
    thinks: bool = False
    most_room: int | None = None
    answered: bool = False

    def longest(self, reply_tokens: int) -> int:
        """The tokens that are asked for where the reply may have so many: a model that thinks needs room for it.

        >>> Known().longest(64), Known(thinks=True).longest(64), Known(thinks=True, thinking_tokens=100).longest(64)
        (64, 4160, 164)
        """
        if not self.thinks:
            return reply_tokens
        room = self.thinking_tokens
        if room is None:
            room = max(_LEAST_ROOM, min(_MOST_ROOM, _ROOM_A_TOKEN * reply_tokens))
        return reply_tokens + (room if self.most_room is None else min(room, self.most_room))

    def learn(self, status: int, message: str, body: Mapping[str, Any]) -> bool:
        """Learns from a refusal what the same call can be sent with; whether it can be.

        It goes by this call's own body, as another call may have learned the same meanwhile.
        """
        if status not in (400, 422):
            return False
        if "max_tokens" in body and _RENAMED.search(message):
            self.token_field = _RENAMED_FIELD
            return True
        if "temperature" in body and _NO_TEMPERATURE.search(message):
            self.left_out.add("temperature")
            return True
        return False

    def shorten(self, sent: int, reply_tokens: int) -> bool:
        """Learns that so many tokens were too many; whether less room to think is left to try."""
        room = sent - reply_tokens
        if room <= 0:
            return False
        smaller = room // 2 if room >= 512 else 0
        self.most_room = smaller if self.most_room is None else min(self.most_room, smaller)
        return True

    def learn_from(self, reply: Reply) -> bool:
        """Learns from a reply whether the model thinks; whether that is news."""
        known = self.thinks
        # Nothing visible in all the tokens of a reply that was cut: they went into thoughts, shown or not.
        self.thinks = (
            known
            or bool(reply.raw.get("thinking") or reply.raw.get("reasoning_tokens"))
            or (reply.status == "truncated" and not reply.text)
            or bool(_THOUGHT_TAGS.search(reply.text or ""))
        )
        return self.thinks and not known
