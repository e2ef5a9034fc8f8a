"""A chat message: what prompts are filled into and what backends send."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from json.encoder import encode_basestring as _quoted

__all__ = ["Message"]


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message.

    Attributes:
        role: `system`, `user` or `assistant`.
        content: the text.
    """

    role: str
    content: str
    # Not for `__init__`, so that `dataclasses.replace` never hands the JSON of one message on to another.
    _json: str = field(default="", init=False, repr=False, compare=False)

    @classmethod
    def of_parts(cls, role: str, texts: Iterable[str], quoted: Iterable[str]) -> Message:
        """A message put together from parts, by a maker of many similar ones.

        Args:
            role: the role.
            texts: the parts of the content.
            quoted: the parts of what `as_json` gives; JSON writes a text character by character.
        """
        message = cls(role, "".join(texts))
        object.__setattr__(message, "_json", "".join(quoted))
        return message

    def as_json(self) -> str:
        """The canonical JSON of the pair (role, content)."""
        return self._json or f"[{_quoted(self.role)},{_quoted(self.content)}]"
