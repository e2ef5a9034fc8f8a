"""What produced a number: every setting that could change it, in one canonical text and a short hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from rubric_measures.base.entities import RubricItem, TestBank

__all__ = [
    "Signature",
    "bank_content",
    "bank_hash",
    "canonical_json",
    "content_hash",
    "describe",
    "item_content",
    "made_by",
]

# Made once: json.dumps with arguments makes an encoder for each call.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces, UTF-8 as it is, NaN refused.

    Raises:
        ValueError: the value holds NaN or infinity, or something that JSON cannot say.
    """
    return _ENCODER.encode(value)


def content_hash(value: object) -> str:
    """The sha256 hex digest of the canonical JSON of a value; the only key function of caches and manifests."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def bank_hash(bank: TestBank) -> str:
    """The first twelve hex digits of the hash of all that a bank says about its items."""
    return content_hash([asdict(item) for item in sorted(bank, key=lambda item: (item.query_id, item.item_id))])[:12]


def bank_content(bank: TestBank) -> str:
    """The sha256 of the texts, ids, kinds and answer keys of a bank: what grades refer to."""
    return content_hash(
        {
            query_id: [[item.item_id, item.text, item.kind, list(item.gold_answers)] for item in items]
            for query_id, items in bank.items.items()
        }
    )


def item_content(item: RubricItem) -> str:
    """What an item says to a grader (text, kind, gold answers), in sixteen hex digits."""
    return content_hash([item.text, item.kind, list(item.gold_answers)])[:16]


def describe(grade_sets: Iterable[tuple[str, ...]], bank: TestBank | None) -> dict[str, object]:
    """What grades are, for the signature: the grade sets (`GradeSetKey`), and the bank by its content."""
    return {
        "grades": [str(key) for key in sorted(grade_sets)],
        "bank": None if bank is None else bank_hash(bank),
    }


def made_by(made: Iterable[str]) -> dict[str, object]:
    """The signatures of the graders, for the signature of what is scored; nothing where the records have none."""
    listed = sorted(made)
    return {"graders": listed} if listed else {}


@dataclass(frozen=True)
class Signature:
    """The settings behind a number; equal signatures (and equal input) mean equal numbers.

    Attributes:
        settings: name -> JSON-able value; names are sorted in the text, so their order does not matter.
    """

    settings: Mapping[str, object]

    def __str__(self) -> str:
        """`name:value|name:value|…`, sorted by name; values as compact JSON, strings bare."""
        return "|".join(
            f"{name}:{value if isinstance(value, str) else canonical_json(value)}"
            for name, value in sorted(self.settings.items())
        )

    @property
    def short(self) -> str:
        """The first twelve hex digits of the hash of all settings."""
        return content_hash(dict(self.settings))[:12]

    def extended(self, **settings: object) -> Signature:
        """A signature with further (or replaced) settings."""
        return Signature({**self.settings, **settings})
